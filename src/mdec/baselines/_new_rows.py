"""Clusters of new rows, for the methods whose consensus gives each sample its own.

Base clusterings by k-means say where a new row belongs: to the nearest centre. A
method that then compares a sample with whole clusters says the same of a new row. The
others do not: a balanced partition has no rule for one more sample, and the walks of
PTA and PTGP and the graph of SPCE are those of the training samples.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from mdec._support.parallel import single_threaded_blas
from mdec.baselines._estimator import FLOATS, Baseline
from mdec.baselines._generation import features_of_members
from mdec.confidence.profiles import mean_profiles, summed_profiles
from mdec.ensemble import Ensemble
from mdec.numerics.nearest import at_common_scale
from mdec.numerics.transfer import nearest_centers
from mdec.prediction import nearest_profiles
from mdec.weights import uniform_weights

Array = NDArray[np.floating]


class PlacingBaseline(Baseline):
    """A baseline that places new rows."""

    # Whether the consensus compares co-associations over the roots of the degrees.
    _by_degree: ClassVar[bool] = False

    def _settle(self, data: Array) -> None:
        self._rows = data

    def _weights(self) -> Array:
        """Return the weights of the base clusters in the consensus."""
        return uniform_weights(self.ensemble_)

    def predict(self, X: ArrayLike) -> NDArray[np.int32]:
        """Return the clusters of new rows.

        In each base clustering a new row joins the base cluster with the nearest
        centre; it then joins the cluster with the largest mean co-association, as the
        method weights it.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_new,)
            Clusters with the numbers of `labels_`. Rows of `fit` nearly always get
            their own cluster, but not by rule; for those use `labels_`.
        """
        check_is_fitted(self, "ensemble_")
        new = validate_data(self, X, dtype=FLOATS, reset=False)
        ensemble, clusters = self.ensemble_, self.ensemble_.split(self.labels_)
        with single_threaded_blas():
            base = nearest_base_clusters(self._rows, new, ensemble)
            weights = self._weights()
            profiles = summed_profiles(ensemble, clusters, weights, self.n_clusters_)
            means = mean_profiles(
                ensemble, clusters, weights, profiles, by_degree=self._by_degree
            )
            return nearest_profiles(base, ensemble.offsets, means, weights)


def nearest_base_clusters(
    X: Array, X_new: Array, ensemble: Ensemble
) -> NDArray[np.int32]:
    """Return the base cluster with the nearest centre, in each member.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        What the ensemble was made of.
    X_new : ndarray of shape (n_new, n_features)
        New rows.
    ensemble : Ensemble
        Of `generate_kmeans_ensemble` or `generate_stratified_ensemble`.

    Returns
    -------
    ndarray of shape (n_new, n_members)
        Labels of the same clusters as in the ensemble.
    """
    from mdec.numerics import loops

    old, new = at_common_scale(X, X_new)
    center = old.mean(axis=0)
    old, new = old - center, new - center
    base = np.empty((len(new), len(ensemble)), dtype=np.int32)
    for member, features in enumerate(features_of_members(X, ensemble)):
        rows: Any = np.ascontiguousarray(old[:, features])
        labels = np.ascontiguousarray(ensemble.labels[:, member])
        sums = np.zeros((int(labels.max()) + 1, features.size))
        counts = np.zeros(len(sums), dtype=np.int64)
        loops.group_sums(rows, labels, sums, counts)
        inside = np.ascontiguousarray(new[:, features])
        base[:, member] = nearest_centers(inside, sums / counts[:, None])
    return base
