"""MDEC as a scikit-learn estimator: a thin, validated shell."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from mdec import generation
from mdec._support.docstrings import describe_as
from mdec._support.progress import Progress, progress_hooks
from mdec._support.random import RandomState
from mdec.base import Base
from mdec.base.kernels import SPARSE_KERNELS
from mdec.base.pairs import PRECOMPUTED, Metric
from mdec.clustering import NumberOfClusters, cluster_tables
from mdec.consensus import CONSENSUS
from mdec.engines.gpu import DEVICES
from mdec.ensemble.draws import KERNELS, Kernel
from mdec.estimator.base import ClusteringEstimator
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


@describe_as(generation.generate_ensemble)
@dataclass(eq=False, repr=False)
class MDEC(CallbackSupportMixin, ClusteringEstimator):
    r"""Multidiversified ensemble clustering.

    A hundred base clusterings, the members of the ensemble, are made, each in a random
    half of the features and with a randomly drawn similarity kernel; their clusters are
    weighted by how much the rest of the ensemble agrees with them; a consensus function
    combines them.

    Parameters
    ----------
    n_clusters : int, "auto" or pair of int, default=8
        Number of clusters; "auto" takes the number that `mdec.selection` suggests,
        which may be one; a pair (low, high) takes the best number in that range. The
        suggestion depends on the data alone: `random_state` does not change it.
    consensus : {"hierarchical", "spectral", "bipartite"}, default="hierarchical"
        Consensus function: MDEC-HC, MDEC-SC or MDEC-BG.
    weighting : {"entropy", "uniform"}, default="entropy"
        Weights of the base clusters: the ECI, or all equal.
    preparation : {None, "diversified"} or mapping of these, default=None
        "diversified": each base clustering draws how expression values are prepared.
        In `MultiViewMDEC` also by the names of views.
    min_confidence : float, default=None
        Samples with less confidence are left out (-1 in `labels_`), and so are new
        rows in `predict`. None leaves out no sample.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an integer makes the result repeatable.

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
    @describe_as(generation.generate_ensemble)
    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Cluster the rows of X; of a Dask array the results are Dask arrays as well.

        Parameters
        ----------
        y : object, default=None
            Not used.

        Returns
        -------
        self : MDEC
            The fitted estimator.
        """
        rows, names = self._read_table(X)
        settings, drawing = self._settings()
        progress = self._member_progress()
        clustering = cluster_tables(rows, settings, drawing, progress=progress)
        self._set_attributes(clustering, [names])
        return self

    def _member_progress(self) -> Progress:
        """Return a hook that passes each finished member on to callbacks, if any."""
        members = progress_hooks().members
        if not getattr(self, "_skl_callbacks", None):
            return members
        context = self._init_callback_context(max_subtasks=self.ensemble_size)
        context.call_on_fit_task_begin(estimator=self)

        def hook(done: int, total: int) -> None:
            members(done, total)
            task = context.subcontext(task_name="member")
            task.call_on_fit_task_begin(estimator=self)
            task.call_on_fit_task_end(estimator=self)
            if done == total:
                context.call_on_fit_task_end(estimator=self)

        return hook

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
