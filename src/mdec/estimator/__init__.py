"""MDEC as scikit-learn estimators, of one table or several: thin, validated shells."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from mdec import generation
from mdec._support.arrays import Array
from mdec._support.random import RandomState
from mdec.base import Base
from mdec.base.kernels import SPARSE_KERNELS
from mdec.base.pairs import PRECOMPUTED, Metric
from mdec.clustering import NumberOfClusters, ViewWeights
from mdec.consensus import CONSENSUS
from mdec.engines.gpu import DEVICES
from mdec.ensemble.draws import KERNELS, Kernel
from mdec.estimator.base import ClusteringEstimator
from mdec.rows.sources import is_dask_array
from mdec.weights import WEIGHTINGS

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's; an estimator then takes no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


_COUNT = Interval(Integral, 1, None, closed="left")


@dataclass(eq=False, repr=False)
class MDEC(CallbackSupportMixin, ClusteringEstimator):
    r"""Multidiversified ensemble clustering.

    A hundred base clusterings are made, each in a random half of the features and
    with a randomly drawn similarity kernel; their clusters are weighted by how much
    the rest of the ensemble agrees with them; a consensus function combines them.

    Parameters
    ----------
    n_clusters : int, "auto" or pair of int, default=8
        Number of clusters; "auto" takes the number that `mdec.selection` suggests,
        which may be one; a pair (low, high) takes the best number in that range. The
        suggestion depends on the data alone: `random_state` does not change it.
    consensus : {"hierarchical", "spectral", "bipartite"}, default="hierarchical"
        Consensus function: MDEC-HC, MDEC-SC or MDEC-BG.
    ensemble_size : int, default=100
        M, the number of base clusterings.
    max_features : float, default=0.5
        :math:`\tau`, the share of the features that a base clustering uses.
    kernel : str, list of str or mapping of str to float, default="scaled_gaussian"
        "scaled_gaussian" made the published tables, "scaled_exponential" is Eq. 1 as
        printed; "cosine", "correlation" and "spearman" are plain similarities. If
        several are given, each base clustering picks one at random, all equally likely
        or with the shares given.
    mu_range : tuple of float, default=(0.2, 0.8)
        Interval of the kernel's width.
    n_neighbors_range : tuple of int, default=(5, 20)
        Interval of the number of neighbours, capped below the number of samples.
    base_n_clusters_range : tuple of int, default=None
        Interval of the base clusterings' number of clusters; None is 2 to
        :math:`\lceil\sqrt N\rceil`, with landmarks at most 100.
    weighting : {"entropy", "uniform"}, default="entropy"
        Weights of the base clusters: the ECI, or all equal.
    base : {"graph", "landmark", "auto"} or callable, default="graph"
        How a base clustering is made: from the similarity graph of all samples, or
        from their ties to landmarks, whose cost grows only linearly. "auto" uses
        landmarks above 20,000 samples, and for rows that are not in memory. A function
        ``base(rows, n_clusters, rng) -> labels`` of your own gets the rows of a
        subspace, the number of clusters drawn, which it may ignore, and a random
        stream; -1 leaves a row out. `mdec.base.from_estimator` makes one of any
        scikit-learn clusterer.
    metric : None, "precomputed" or callable, default=None
        "precomputed": X has the distances or similarities of all pairs of samples,
        as the diagonal shows. Features are not drawn then, and `max_features`
        has no effect; k, mu, the number of clusters and, with `max_samples`, the
        samples still are. A function ``metric(rows) -> (n, n) matrix`` of your own
        measures the rows of each subspace. See `generate_ensemble`.
    preparation : {None, "diversified"} or mapping of these, default=None
        "diversified": each base clustering draws how expression values are prepared.
        In `MultiViewMDEC` also by the names of views.
    max_samples : float, default=1.0
        Share of the samples that a base clustering clusters, drawn without
        replacement; the others are unlabelled (-1) in it, except for copies of
        those drawn. The paper uses 1.
    min_confidence : float, default=None
        Samples with less confidence are left out (-1 in `labels_`), and so are new
        rows in `predict`. None leaves out no sample.
    device : {"cpu", "cuda", "auto", "torch"}, default="cpu"
        "cuda" uses an NVIDIA GPU, "auto" does where there is one; needs the extra
        `gpu`. The draws are the same, labels differ by rounding only.
    checkpoint : path-like, default=None
        Folder that stores each finished base clustering, so that a run that was
        stopped continues from there. Needs an integer `random_state`.
    n_jobs : int, default=None
        Base clusterings made at the same time, as in joblib; changes no label.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an integer makes the result repeatable.
    verbose : int, default=0
        Above 0, finished base clusterings and the time left are written to stderr.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, numbered in the order of first samples; -1 for those
        below `min_confidence`, if it is set.
    consensus_labels_ : ndarray of shape (n_samples,)
        The same with no sample left out.
    membership_ : ndarray of shape (n_samples, n_clusters)
        How strongly each sample belongs to each of these clusters; rows add up to one.
    ensemble_ : Ensemble
        The base clusterings.
    cluster_weights_ : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    confidence_ : ndarray of shape (n_samples,)
        How certain each sample's cluster is, in [0, 1]; 0.5 is undecided.
    n_clusters_ : int
        Number of clusters in `labels_`, samples that are left out not counted.
    clustering_ : Clustering
        The clustering itself, which these attributes are taken from: another number of
        clusters, comparisons of numbers, memberships, second choices.
    base_ : str
        How the base clusterings were made: what "auto" chose, or the name of a
        function of your own.
    k_selection_ : KSelection
        The criteria for each number of clusters, unless `n_clusters` is a number.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X has names.

    See Also
    --------
    generate_ensemble : The base clusterings alone.
    Ensemble.from_labels : Consensus of clusterings of your own.

    References
    ----------
    D. Huang, C.-D. Wang, J.-H. Lai, C.-K. Kwoh, "Toward Multidiversified Ensemble
    Clustering of High-Dimensional Data: From Subspaces to Metrics and Beyond", IEEE
    Transactions on Cybernetics 52(11), 2022, doi 10.1109/TCYB.2021.3049633.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(60, n_features=20, centers=3, random_state=0)
    >>> model = MDEC(n_clusters=3, ensemble_size=20, random_state=0).fit(X)
    >>> bool((model.recluster(consensus="bipartite") == model.labels_).all())
    True
    """

    _file_kind: ClassVar[str] = "mdec model"
    _file_format: ClassVar[int] = 1

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [_COUNT, StrOptions({"auto"}), tuple, list],
        "consensus": [StrOptions(set(CONSENSUS))],
        "ensemble_size": [_COUNT],
        "max_features": [Interval(Real, 0, 1, closed="right")],
        "kernel": [StrOptions(set(KERNELS)), list, tuple, Mapping],
        "mu_range": [tuple, list],
        "n_neighbors_range": [tuple, list],
        "base_n_clusters_range": [tuple, list, None],
        "weighting": [StrOptions(set(WEIGHTINGS))],
        "base": [StrOptions(set(generation.BASES)), callable],
        "metric": [StrOptions({PRECOMPUTED}), callable, None],
        "preparation": [StrOptions(set(generation.PREPARATIONS)), Mapping, None],
        "max_samples": [Interval(Real, 0, 1, closed="right")],
        "min_confidence": [Interval(Real, 0, 1, closed="both"), None],
        "device": [StrOptions(set(DEVICES))],
        "checkpoint": [str, os.PathLike, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    n_clusters: NumberOfClusters = 8
    _: KW_ONLY
    consensus: str = "hierarchical"
    ensemble_size: int = 100
    max_features: float = 0.5
    kernel: Kernel = "scaled_gaussian"
    mu_range: tuple[float, float] = (0.2, 0.8)
    n_neighbors_range: tuple[int, int] = (5, 20)
    base_n_clusters_range: tuple[int, int] | None = None
    weighting: str = "entropy"
    base: str | Base = "graph"
    metric: str | Metric | None = None
    preparation: str | Mapping[str, str] | None = None
    max_samples: float = 1.0
    min_confidence: float | None = None
    device: str = "cpu"
    checkpoint: str | os.PathLike[str] | None = None
    n_jobs: int | None = None
    random_state: RandomState = None
    verbose: int = 0

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like, sparse, RowSource or Dask array of shape (n_samples, n_features)
            At least three samples, not all equal; no missing values. Sparse rows stay
            sparse, for the scaled kernels and the cosine. Files larger than memory are
            opened with `mdec.rows.open_rows`. Of a Dask array the rows stay on the
            workers, and `labels_` and `confidence_` are Dask arrays.
        y : object, default=None
            Not used.

        Returns
        -------
        self : MDEC
            The fitted estimator.
        """
        return self._fit({"": X}, several=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        several = isinstance(self.kernel, Mapping | list | tuple)
        kernels = self.kernel if several else [self.kernel]
        replaced = callable(self.base), self.metric is not None, self.preparation
        tags.input_tags.sparse = not any(replaced) and all(
            each in SPARSE_KERNELS for each in kernels
        )
        tags.input_tags.pairwise = self.metric == PRECOMPUTED
        return tags


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
    view_weights: ViewWeights = None

    def fit(self, X: Mapping[str, ArrayLike], y: object = None) -> Self:  # noqa: ARG002
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
        tables, weights = check_tables(X), self.view_weights
        return self._fit(tables, several=True, view_weights=weights)

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
