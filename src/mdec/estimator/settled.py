"""All that follows from an ensemble and its consensus clusters."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.parallel import single_threaded_blas
from mdec.confidence import firm_labels, held_samples
from mdec.confidence.profiles import Profiles, summed_profiles
from mdec.consensus.partitions import count_clusters
from mdec.ensemble import Ensemble
from mdec.prediction import Placement
from mdec.rows import Rows, opened

# Parameters of `MDEC` that come in after the members are made.
_AFTER = ("n_clusters", "consensus", "weighting", "min_confidence")


def drawn_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that its members are made with."""
    given = model.get_params(deep=False)
    return {name: value for name, value in given.items() if name not in _AFTER}


def settle(model: Any, rows: Rows, clusters: list[Any]) -> None:
    """Set the labels of an estimator, how firm they are, and what new rows go by.

    Parameters
    ----------
    model : MDEC
        With its ensemble and weights.
    rows : Rows
        The data.
    clusters : list
        Handles of the consensus clusters of each row block.
    """
    n_clusters, profiles = hold(model, clusters)
    keep_firm(model, n_clusters, model.min_confidence)
    model._placement = Placement.of(
        rows,
        model.ensemble_,
        clusters,
        model.cluster_weights_,
        profiles,
        by_degree=model.consensus != "hierarchical",
    )


def hold(model: Any, clusters: list[Any]) -> tuple[int, Profiles]:
    """Set the consensus labels of an estimator and how firmly samples are held.

    Parameters
    ----------
    model : MDEC or MultiViewMDEC
        With its ensemble and weights.
    clusters : list
        Handles of the consensus clusters of each row block.

    Returns
    -------
    n_clusters : int
        Number of clusters.
    profiles : Profiles
        Sums over the clusters.
    """
    ensemble = model.ensemble_
    model.consensus_labels_ = ensemble.joined(clusters)
    n_clusters = count_clusters(ensemble.worker, clusters)
    over = ensemble, clusters, model.cluster_weights_
    profiles = summed_profiles(*over, n_clusters)
    model.confidence_ = ensemble.joined(held_samples(*over, profiles))
    return n_clusters, profiles


def keep_firm(model: Any, n_clusters: int, least: float | None) -> None:
    """Set the labels of an estimator: those of samples that are held firmly enough.

    Parameters
    ----------
    model : MDEC
        With its consensus labels and their confidence.
    n_clusters : int
        Number of clusters in the consensus labels.
    least : float or None
        Samples of less confidence get -1; None leaves none out.
    """
    model.labels_, model.n_clusters_ = model.consensus_labels_, n_clusters
    if least is None:
        return
    model.labels_ = firm_labels(model.consensus_labels_, model.confidence_, least)
    found = np.unique(np.asarray(model.labels_))
    model.n_clusters_ = int(np.count_nonzero(found >= 0))
    if not model.n_clusters_:
        warnings.warn(
            f"no sample reaches min_confidence={least}; all labels are -1, lower it.",
            UserWarning,
            stacklevel=4,
        )


def assembled(
    model: Any,
    X: NDArray[np.floating],
    ensemble: Ensemble,
    labels: NDArray[np.int32],
    weights: NDArray[np.floating],
) -> Any:
    """Fit an estimator with what was made step by step; nothing is made again.

    Parameters
    ----------
    model : MDEC
        The estimator, with the parameters of those steps.
    X : ndarray of shape (n_samples, n_features)
        What the ensemble was made of.
    ensemble : Ensemble
        From `mdec.generate_ensemble`.
    labels : ndarray of shape (n_samples,)
        Its consensus clusters.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.

    Returns
    -------
    MDEC
        The estimator itself, as `fit` leaves it.
    """
    model.n_features_in_ = X.shape[1]
    model.ensemble_, model.base_ = ensemble, ensemble.plan.base
    model.cluster_weights_ = weights
    with single_threaded_blas():
        settle(model, opened(X), ensemble.split(labels))
    return model
