"""What a fitted model says of rows that it has not seen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from mdec._support.parallel import single_threaded_blas
from mdec.generation import FLOATS
from mdec.prediction import (
    Placement,
    held_new_rows,
    nearest_profiles,
    placed,
    predict_base_clusters,
)

Array = NDArray[np.floating]


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


class NewRowsMixin:
    """The methods of an estimator that place new rows."""

    n_jobs: int | None
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
            their own cluster, but not by rule; for those use `labels_`.
        """
        return placed(self._checked_rows(X), self._placement, n_jobs=self.n_jobs)

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
        with single_threaded_blas():
            clusters = nearest_profiles(base, known.offsets, known.means, known.weights)
            return clusters, held_new_rows(base, clusters, known)

    def _unlike(self, rows: Any) -> NDArray[np.bool_]:
        with single_threaded_blas():
            return self._placement.familiar.unlike(self._placement.as_compared(rows))
