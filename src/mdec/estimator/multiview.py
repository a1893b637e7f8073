"""MDEC over several tables of the same samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from mdec._support.arrays import Array
from mdec.estimator import MDEC
from mdec.estimator.base import ClusteringEstimator
from mdec.rows.sources import is_dask_array

Tables = Mapping[str, ArrayLike]


@dataclass(eq=False, repr=False)
class MultiViewMDEC(ClusteringEstimator):
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
    labels_, consensus_labels_, confidence_, membership_, n_clusters_, clustering_
        As in `MDEC`.
    ensemble_ : Ensemble
        The base clusterings of all views, see `Ensemble.concatenate`.
    cluster_weights_ : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    views_ : list of str
        Names of the views, in the order of `fit`.
    view_confidence_ : ndarray of shape (n_samples, n_views)
        How certain each sample's cluster is by each view alone; the weights of the
        views do not change it.
    view_support_ : ndarray of shape (n_views, n_clusters)
        How clearly each view alone sets each cluster apart, see
        `mdec.confidence.cluster_support`; 0.5 is not at all.
    k_selection_ : KSelection
        The criteria for each number of clusters, where the estimator's `n_clusters`
        does not give it.

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

    # The first layout also had the mean profiles of each view, which nothing needs.
    _file_kind: ClassVar[str] = "mdec model of views"
    _file_format: ClassVar[int] = 2

    estimator: MDEC | None = None
    _: KW_ONLY
    view_weights: Mapping[str, float] | Sequence[float] | None = None

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
        self._parameters._validate_params()
        return self._fit(check_tables(X))

    @property
    def view_confidence_(self) -> Array:
        """How certain each sample's cluster is by each view, (n_samples, n_views)."""
        return self._fitted.view_confidence

    @property
    def view_support_(self) -> Array:
        """How clearly each view alone sets clusters apart, (n_views, n_clusters)."""
        return self._fitted.view_support

    @property
    def _parameters(self) -> MDEC:
        return MDEC() if self.estimator is None else self.estimator

    @classmethod
    def _from_parameters(cls, parameters: Mapping[str, Any], view_weights: Any) -> Self:
        return cls(MDEC(**parameters), view_weights=view_weights)

    def _split_tables(self, X: Any) -> Sequence[Any]:
        tables = check_tables(X)
        if set(tables) != set(self.views_):
            missing = [name for name in self.views_ if name not in tables]
            other = [name for name in tables if name not in self.views_]
            raise ValueError(
                f"new rows must come with the views {self.views_}; missing are "
                f"{missing}, unknown are {other}."
            )
        return [tables[name] for name in self.views_]


def check_tables(X: Any) -> dict[str, Any]:
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
        numbers = ", ".join(f"{n!r}: {(*size, 0)[0]}" for n, size in lengths.items())
        raise ValueError(
            f"views must have the same samples; their numbers of rows are {numbers}."
        )
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
    return tables
