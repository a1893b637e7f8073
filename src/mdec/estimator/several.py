"""MDEC over several tables of the same samples."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from mdec._support.memory import MAX_BYTES
from mdec._support.parallel import single_threaded_blas
from mdec._support.random import root_entropy, view_entropy
from mdec._support.sealed import parts_that_fit
from mdec.confidence import (
    cluster_support,
    confidence,
    memberships,
    view_associations,
)
from mdec.confidence.profiles import mean_profiles, summed_profiles
from mdec.consensus import agreed
from mdec.ensemble import Ensemble
from mdec.estimator import MDEC
from mdec.estimator.kept_views import read_views, restored_views, write_views
from mdec.estimator.new_rows import MembershipMixin, held_clusters
from mdec.estimator.settled import drawn_parameters, hold, keep_firm
from mdec.generation import (
    FLOATS,
    check_resumable,
    generate_ensemble,
    refuse_unseen,
)
from mdec.prediction import (
    JoinedPlacement,
    Placement,
    new_associations,
    predict_base_clusters,
)
from mdec.rows import Rows
from mdec.rows.sources import is_dask_array
from mdec.selection import select_n_clusters
from mdec.weights import WEIGHTINGS, weights_of_view

Array = NDArray[np.floating]
Tables = Mapping[str, ArrayLike]


class MultiViewMDEC(MembershipMixin, ClusterMixin, BaseEstimator):
    r"""Multidiversified ensemble clustering of several views of the same samples.

    Each view (expression, methylation, proteins) gets its own base clusterings; all of
    them together are weighted and agree on one clustering.

    Parameters
    ----------
    estimator : MDEC, default=None
        Has the parameters: `ensemble_size` base clusterings are made of each view, and
        the others mean what they mean in `MDEC`. None is ``MDEC()``.
    view_weights : mapping of str to float, or sequence of float, default=None
        How much each view counts; None lets all base clusterings count alike.

    Attributes
    ----------
    labels_, consensus_labels_, confidence_, membership_, n_clusters_
        As in `MDEC`.
    ensemble_ : Ensemble
        The base clusterings of all views, see `Ensemble.concatenate`.
    cluster_weights_ : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    views_ : list of str
        Names of the views, in the order of `fit`.
    view_confidence_ : ndarray of shape (n_samples, n_views)
        How firmly each view alone holds each sample in its cluster.
    view_support_ : ndarray of shape (n_views, n_clusters)
        How firmly each view alone holds each cluster together, see
        `mdec.confidence.cluster_support`; 0.5 is not at all.
    k_selection_ : KSelection
        The criteria for each number of clusters, with ``n_clusters="auto"`` only. One
        cluster is not tested for.

    Notes
    -----
    The streams of a view follow from the seed and its name, so that neither other views
    nor the order of views change its base clusterings. A single view has those of
    `MDEC` with the seed ``ensemble_.view(0).plan.entropy``.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(60, n_features=20, centers=3, random_state=0)
    >>> noise = np.random.default_rng(0).normal(size=(60, 10))
    >>> model = MultiViewMDEC(MDEC(3, ensemble_size=20, random_state=0))
    >>> model.fit({"blobs": X, "noise": noise}).n_clusters_
    3
    >>> blobs, noise = model.view_support_
    >>> bool(blobs.min() > 0.8 and noise.max() < 0.6)
    True
    """

    ensemble_: Ensemble
    _placement: JoinedPlacement

    def __init__(
        self,
        estimator: MDEC | None = None,
        *,
        view_weights: Mapping[str, float] | Sequence[float] | None = None,
    ) -> None:
        self.estimator = estimator
        self.view_weights = view_weights

    @property
    def _parameters(self) -> MDEC:
        return MDEC() if self.estimator is None else self.estimator

    def fit(self, X: Tables, y: object = None) -> Self:  # noqa: ARG002
        """Cluster the samples of several tables.

        Parameters
        ----------
        X : mapping of str to array-like of shape (n_samples, n_features)
            The tables by name, with the same samples in the same order; indices of
            data frames must be equal.
        y : object, default=None
            Not used.

        Returns
        -------
        self : MultiViewMDEC
            The fitted estimator.
        """
        tables = _checked_tables(X)
        own = self._parameters
        entropy = root_entropy(own.random_state)
        if own.checkpoint is not None:
            check_resumable(own.random_state)
        rows: dict[str, Rows] = {}
        parts: dict[str, Ensemble] = {}
        self.feature_names_: dict[str, NDArray[Any] | None] = {}
        for number, (name, table) in enumerate(tables.items()):
            part = clone(own).set_params(random_state=view_entropy(entropy, name))
            if own.checkpoint is not None:
                part.set_params(checkpoint=Path(own.checkpoint) / f"view-{number + 1}")
            part._validate_params()
            rows[name] = part._validated(table)
            self.feature_names_[name] = getattr(part, "feature_names_in_", None)
            parts[name] = generate_ensemble(rows[name], **drawn_parameters(part))
        ensemble = Ensemble.concatenate(parts, weights=self.view_weights)
        refuse_unseen(ensemble)
        self.ensemble_, self.views_ = ensemble, list(tables)
        with single_threaded_blas():
            self.cluster_weights_ = WEIGHTINGS[own.weighting](ensemble)
            wanted = own.n_clusters
            if isinstance(wanted, str):
                self.k_selection_ = select_n_clusters(
                    ensemble, weighting=own.weighting, n_jobs=own.n_jobs, seed=entropy
                )
                wanted = self.k_selection_.n_clusters
            weights = self.cluster_weights_
            clusters = agreed(ensemble, wanted, own.consensus, weights, entropy)
            self._settle(list(rows.values()), clusters)
        return self

    def _settle(self, rows: list[Rows], clusters: list[Any]) -> None:
        """Set the labels, how firm they are, and what new rows are placed by."""
        own, ensemble, weights = self._parameters, self.ensemble_, self.cluster_weights_
        by_degree = own.consensus != "hierarchical"
        n_clusters, profiles = hold(self, clusters)
        keep_firm(self, n_clusters, own.min_confidence)
        views = []
        for number, part in enumerate(rows):
            alone = ensemble.view(number)
            inside = alone.split(self.consensus_labels_)
            over_view = alone, inside, weights_of_view(ensemble, weights, number)
            sums = summed_profiles(*over_view, n_clusters)
            views.append(Placement.of(part, *over_view, sums, by_degree=by_degree))
        means, plain = (
            mean_profiles(ensemble, clusters, weights, profiles, by_degree=each)
            for each in (by_degree, False)
        )
        self._placement = JoinedPlacement(
            tuple(views), ensemble.offsets, means, weights, plain
        )

    def _associations(self) -> list[Array]:
        """Return the samples' mean co-association with clusters, view by view."""
        check_is_fitted(self, "ensemble_")
        with single_threaded_blas():
            return view_associations(
                self.ensemble_, self.consensus_labels_, self.cluster_weights_
            )

    @property
    def view_confidence_(self) -> Array:
        """How firmly each view alone holds each sample, (n_samples, n_views)."""
        labels = self.consensus_labels_
        columns = [confidence(each, labels) for each in self._associations()]
        return np.stack(columns, axis=1)

    @property
    def view_support_(self) -> Array:
        """How firmly each view alone holds each cluster, (n_views, n_clusters)."""
        labels = self.consensus_labels_
        return np.stack(
            [cluster_support(each, labels) for each in self._associations()]
        )

    def predict(self, X: Tables) -> NDArray[np.int32]:
        """Return the clusters of new rows.

        Parameters
        ----------
        X : mapping of str to array-like of shape (n_new, n_features)
            A table of the new rows for each view.

        Returns
        -------
        ndarray of shape (n_new,)
            As of `MDEC.predict`.
        """
        return self._held(X)[0]

    def predict_confidence(self, X: Tables) -> Array:
        """Return how firmly the ensemble holds new rows, as `MDEC.predict_confidence`.

        Parameters
        ----------
        X : mapping of str to array-like of shape (n_new, n_features)
            A table of the new rows for each view.

        Returns
        -------
        ndarray of shape (n_new,)
            In [0, 1].
        """
        return self._held(X)[1]

    def predict_proba(self, X: Tables) -> Array:
        """Return how far new rows belong to each cluster, as `MDEC.predict_proba`.

        Parameters
        ----------
        X : mapping of str to array-like of shape (n_new, n_features)
            A table of the new rows for each view.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            Rows add up to one.
        """
        base = self._base_clusters(X)
        with single_threaded_blas():
            return memberships(new_associations(base, self._placement))

    def _held(self, X: Tables) -> tuple[NDArray[np.int32], Array]:
        least = self._parameters.min_confidence
        return held_clusters(self._base_clusters(X), self._placement, least)

    def _base_clusters(self, X: Tables) -> NDArray[np.int32]:
        check_is_fitted(self, "ensemble_")
        tables = _checked_tables(X)
        if set(tables) != set(self.views_):
            missing = [name for name in self.views_ if name not in tables]
            other = [name for name in tables if name not in self.views_]
            raise ValueError(
                f"new rows must come with the views {self.views_}; missing are "
                f"{missing}, unknown are {other}."
            )
        columns = []
        for name, placement in zip(self.views_, self._placement.views, strict=True):
            checker = _named(placement.plan.n_features, self.feature_names_[name])
            rows = validate_data(
                checker, tables[name], accept_sparse="csr", dtype=FLOATS, reset=False
            )
            n_jobs = self._parameters.n_jobs
            columns.append(predict_base_clusters(rows, placement, n_jobs=n_jobs))
        return np.concatenate(columns, axis=1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, all or nothing.

        Parameters
        ----------
        path : path-like
            The file, an .npz archive whatever its name; an old one is replaced at the
            end. It holds the rows of `fit`, as that of `MDEC.save`.
        """
        check_is_fitted(self, "ensemble_")
        write_views(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Self:
        """Read a model that `save` wrote; nothing in it is executed.

        Parameters
        ----------
        path : path-like
            The file.
        max_bytes : int, default=4 GiB
            A file that claims to unpack to more is refused before it is.

        Returns
        -------
        MultiViewMDEC
            With the parameters, attributes and predictions of the saved one.
        """
        content, arrays = read_views(path, max_bytes)
        with parts_that_fit(path):
            return restored_views(cls, content, arrays)


def _named(n_features: int, names: NDArray[Any] | None) -> BaseEstimator:
    """Return an estimator that knows what features a view has."""
    checker = BaseEstimator()
    checker.n_features_in_ = n_features
    if names is not None:
        checker.feature_names_in_ = np.asarray(names, dtype=object)
    return checker


def _checked_tables(X: Any) -> dict[str, Any]:
    """Return the tables by name, or raise one sentence for what cannot be views."""
    if not isinstance(X, Mapping) or not X:
        raise ValueError(
            "several views are given as a mapping of names to tables, such as "
            "{'expression': X1, 'methylation': X2}; use MDEC for one table."
        )
    tables = dict(X)
    if not all(isinstance(name, str) for name in tables):
        raise ValueError("names of views must be strings.")
    if any(is_dask_array(table) for table in tables.values()):
        raise ValueError(
            "views are not clustered on a Dask cluster; give arrays in memory or rows "
            "of files."
        )
    lengths = {name: np.shape(table)[:1] for name, table in tables.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{n!r}: {(*size, 0)[0]}" for n, size in lengths.items())
        raise ValueError(
            f"views must have the same samples; their numbers of rows are {told}."
        )
    _check_indices(tables)
    return tables


def _check_indices(tables: Mapping[str, Any]) -> None:
    indexed = {
        name: list(table.index)
        for name, table in tables.items()
        if hasattr(table, "index") and hasattr(table, "columns")
    }
    for name, index in indexed.items():
        first = next(iter(indexed))
        if index != indexed[first]:
            raise ValueError(
                f"the indices of the views {first!r} and {name!r} differ; put the rows "
                "in one order, for instance with X2.loc[X1.index]."
            )
