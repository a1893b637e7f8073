"""What a fitted model says of rows that it has not seen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from mdec._support.parallel import single_threaded_blas
from mdec.confidence import firm_labels, item_consensus, memberships
from mdec.generation import FLOATS
from mdec.prediction import (
    JoinedPlacement,
    Placement,
    held_new_rows,
    nearest_profiles,
    new_associations,
    placed,
    predict_base_clusters,
)

Array = NDArray[np.floating]


def _has_dense_rows(model: Any) -> bool:
    known = getattr(model, "_placement", None)
    return known is None or not sparse.issparse(known.rows)


class Placed(NamedTuple):
    """New rows in their clusters.

    Attributes
    ----------
    clusters : ndarray of shape (n_new,)
        As of `MDEC.predict`.
    confidence : ndarray of shape (n_new,)
        As of `MDEC.predict_confidence`.
    unlike : ndarray of shape (n_new,)
        As of `MDEC.unlike_training`.
    """

    clusters: NDArray[np.int32]
    confidence: Array
    unlike: NDArray[np.bool_]


class MembershipMixin:
    """How far samples belong to the clusters of a fitted estimator."""

    ensemble_: Any
    cluster_weights_: Array
    consensus_labels_: Any

    @property
    def membership_(self) -> Array:
        """How far each sample belongs to each cluster; rows add up to one.

        The mean co-association of a sample with the samples of each cluster, itself
        left out, over the sum of these, of shape (n_samples, n_clusters); computed when
        it is asked for. The columns are the clusters of `consensus_labels_`.
        """
        check_is_fitted(self, "ensemble_")
        ensemble = self.ensemble_.gather()
        labels = np.asarray(self.consensus_labels_)
        with single_threaded_blas():
            return memberships(item_consensus(ensemble, labels, self.cluster_weights_))


def held_clusters(
    base: NDArray[np.int32],
    known: Placement | JoinedPlacement,
    least: float | None,
) -> tuple[NDArray[np.int32], Array]:
    """Return the clusters of new rows and how firmly the ensemble holds them there.

    Parameters
    ----------
    base : ndarray of shape (n_new, n_members)
        Base cluster of each new row in each member.
    known : Placement or JoinedPlacement
        What to place them by.
    least : float or None
        Rows of less confidence get -1; None leaves none out.

    Returns
    -------
    clusters : ndarray of shape (n_new,)
        Their clusters.
    confidence : ndarray of shape (n_new,)
        In [0, 1].
    """
    with single_threaded_blas():
        clusters = nearest_profiles(base, known.offsets, known.means, known.weights)
        sure = held_new_rows(base, clusters, known)
    return firm_labels(clusters, sure, least), sure


class NewRowsMixin(MembershipMixin):
    """The methods of an estimator that place new rows."""

    n_jobs: int | None
    min_confidence: float | None
    _placement: Placement

    def predict(self, X: ArrayLike) -> NDArray[np.int32]:
        """Return the clusters of new rows.

        In each base clustering a new row joins the base cluster with the largest
        summed similarity among its nearest training rows; it then joins the cluster
        with the largest mean weighted co-association, which the spectral and the
        bipartite consensus divide by the roots of the degrees.

        Parameters
        ----------
        X : array-like or sparse of shape (n_new, n_features)
            New rows, prepared like those of `fit`.

        Returns
        -------
        ndarray of shape (n_new,)
            Clusters with the numbers of `labels_`. Rows of `fit` nearly always get
            their own cluster, but not by rule; for those use `labels_`. -1 for rows
            that are held less firmly than `min_confidence`, if it is set.
        """
        rows = self._checked_rows(X)
        if self.min_confidence is not None:
            return self._held(rows)[0]
        return placed(rows, self._placement, n_jobs=self.n_jobs)

    @available_if(_has_dense_rows)
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return how far new rows belong to each cluster.

        A model of sparse rows does not have it: of those scikit-learn expects it of
        classifiers alone.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            New rows, prepared like those of `fit`.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            As `membership_`; rows add up to one. These are shares of the ensemble's
            agreement, not chances that a cluster is right.
        """
        rows, known = self._checked_rows(X), self._placement
        base = predict_base_clusters(rows, known, n_jobs=self.n_jobs)
        with single_threaded_blas():
            return memberships(new_associations(base, known))

    def predict_confidence(self, X: ArrayLike) -> Array:
        """Return how firmly the ensemble holds new rows in their clusters.

        Parameters
        ----------
        X : array-like or sparse of shape (n_new, n_features)
            New rows, prepared like those of `fit`.

        Returns
        -------
        ndarray of shape (n_new,)
            In [0, 1], as `confidence_`. A row far from all others may be held firmly:
            ask `unlike_training` as well.
        """
        return self._held(self._checked_rows(X))[1]

    def unlike_training(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Tell which new rows are unlike anything in training.

        Such a row is farther from its nearest training rows, measured by how far these
        are from theirs, than 99 of 100 training rows are (below a hundred rows, than
        any of them).

        Parameters
        ----------
        X : array-like or sparse of shape (n_new, n_features)
            New rows, prepared like those of `fit`.

        Returns
        -------
        ndarray of shape (n_new,)
            True for rows whose cluster means little. See docs/confidence.md for how
            often the rule is right.
        """
        return self._unlike(self._checked_rows(X))

    @property
    def training_rows_(self) -> Any:
        """Training rows that new ones are compared with: all, or the landmarks'."""
        check_is_fitted(self, "ensemble_")
        return self._placement.rows

    def place(self, X: ArrayLike) -> Placed:
        """Return clusters, confidence and the flag of new rows, in one go.

        Parameters
        ----------
        X : array-like or sparse of shape (n_new, n_features)
            New rows, prepared like those of `fit`.

        Returns
        -------
        Placed
            ``clusters``, ``confidence`` and ``unlike``: what `predict`,
            `predict_confidence` and `unlike_training` return.
        """
        rows = self._checked_rows(X)
        return Placed(*self._held(rows), self._unlike(rows))

    def _checked_rows(self, X: Any) -> Any:
        check_is_fitted(self, "ensemble_")
        rows = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        return self._placement.alike(rows)

    def _held(self, rows: Any) -> tuple[NDArray[np.int32], Array]:
        known = self._placement
        base = predict_base_clusters(rows, known, n_jobs=self.n_jobs)
        return held_clusters(base, known, self.min_confidence)

    def _unlike(self, rows: Any) -> NDArray[np.bool_]:
        with single_threaded_blas():
            return self._placement.familiar.unlike(self._placement.as_compared(rows))
