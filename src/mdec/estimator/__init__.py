"""MDEC as a scikit-learn estimator: a thin, validated shell."""

from __future__ import annotations

import os
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from mdec import generation
from mdec._support import callbacks
from mdec._support.parallel import single_threaded_blas
from mdec._support.random import RandomState
from mdec.base.given import PRECOMPUTED, Metric
from mdec.base.kernels import KERNELS
from mdec.base.mixes import Kernel
from mdec.base.own import Base
from mdec.base.sparse_rows import SPARSE_KERNELS
from mdec.consensus import CONSENSUS, agreed
from mdec.engines.card import DEVICES
from mdec.estimator.kept import KeptMixin
from mdec.estimator.new_rows import NewRowsMixin
from mdec.estimator.settled import drawn_parameters, settle
from mdec.rows import Rows, RowSource, opened
from mdec.rows.sources import is_dask_array
from mdec.selection import select_n_clusters
from mdec.weights import WEIGHTINGS

_COUNT = Interval(Integral, 1, None, closed="left")


class MDEC(
    NewRowsMixin,
    KeptMixin,
    callbacks.CallbackSupportMixin,
    ClusterMixin,
    BaseEstimator,
):
    r"""Multidiversified ensemble clustering.

    A hundred base clusterings are made, each in a random half of the features and
    with a randomly drawn similarity kernel; their clusters are weighted by how far
    the rest of the ensemble agrees with them; a consensus function gives the answer.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters; "auto" takes the number that `mdec.selection.rule` suggests,
        which may be one.
    consensus : {"hierarchical", "spectral", "bipartite"}, default="hierarchical"
        Consensus function: MDEC-HC, MDEC-SC or MDEC-BG.
    ensemble_size : int, default=100
        M, the number of base clusterings.
    sampling_ratio : float, default=0.5
        :math:`\tau`, the share of the features that a base clustering looks at.
    kernel : str, list of str or mapping of str to float, default="scaled_gaussian"
        "scaled_gaussian" made the published tables, "scaled_exponential" is Eq. 1 as
        printed; "cosine", "correlation" and "spearman" are plain similarities. Of
        several each base clustering draws its own, all alike or with the shares given.
    mu_range : tuple of float, default=(0.2, 0.8)
        Interval of the kernel's width.
    n_neighbors_range : tuple of int, default=(5, 20)
        Interval of the number of neighbours, capped below the number of samples.
    base_n_clusters_range : tuple of int, default=None
        Interval of the base clusterings' number of clusters; None is 2 to
        :math:`\lceil\sqrt N\rceil`, with landmarks at most 100.
    weighting : {"entropy", "uniform"}, default="entropy"
        Weights of the base clusters: the ECI, or all alike.
    base : {"graph", "landmark", "auto"} or callable, default="graph"
        How a base clustering is made: from the similarity graph of all samples, or
        from their ties to landmarks, whose cost grows only linearly. "auto" takes
        landmarks above 20,000 samples, and for rows that are not in memory. A function
        ``base(rows, n_clusters, rng) -> labels`` of your own gets the rows of a
        subspace, the number of clusters drawn, which it may ignore, and a random
        stream; -1 leaves a row out. `mdec.base.from_estimator` makes one of any
        scikit-learn clusterer.
    metric : None, "precomputed" or callable, default=None
        "precomputed": X holds the distances or similarities of all pairs of samples,
        told apart by the diagonal. Features are not drawn then, and `sampling_ratio`
        has no effect; k, mu, the number of clusters and, with `sample_ratio`, the
        samples still are. A function ``metric(rows) -> (n, n) matrix`` of your own
        measures the rows of each subspace. See `generate_ensemble`.
    preparation : {None, "diversified"}, default=None
        "diversified": each base clustering draws how expression values are prepared.
    sample_ratio : float, default=1.0
        Share of the samples that a base clustering clusters, drawn without
        replacement; the others are unlabelled (-1) in it. 1 is the paper's.
    min_confidence : float, default=None
        Samples that the ensemble holds less firmly are left out: -1 in `labels_`, and
        new rows in `predict`. None leaves none out.
    device : {"cpu", "cuda", "auto", "torch"}, default="cpu"
        "cuda" uses an NVIDIA card, "auto" does where there is one; needs the extra
        `gpu`. The draws are the same, labels differ by rounding only.
    checkpoint : path-like, default=None
        Folder that keeps each base clustering once it is finished; a run that was
        stopped goes on from there. Needs an integer `random_state`.
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
        How far each sample belongs to each of these clusters; rows add up to one.
    ensemble_ : Ensemble
        The base clusterings.
    cluster_weights_ : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    confidence_ : ndarray of shape (n_samples,)
        How firmly the ensemble holds each sample in its cluster, in [0, 1]; 0.5 is
        undecided.
    n_clusters_ : int
        Number of clusters in `labels_`, samples that are left out not counted.
    base_ : str
        How the base clusterings were made; tells what "auto" took, or the name of a
        function of your own.
    k_selection_ : KSelection
        The criteria for each number of clusters, with ``n_clusters="auto"`` only.
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

    ensemble_: Any
    n_features_in_: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [_COUNT, StrOptions({"auto"})],
        "consensus": [StrOptions(set(CONSENSUS))],
        "ensemble_size": [_COUNT],
        "sampling_ratio": [Interval(Real, 0, 1, closed="right")],
        "kernel": [StrOptions(set(KERNELS)), list, tuple, Mapping],
        "mu_range": [tuple, list],
        "n_neighbors_range": [tuple, list],
        "base_n_clusters_range": [tuple, list, None],
        "weighting": [StrOptions(set(WEIGHTINGS))],
        "base": [StrOptions(set(generation.BASES)), callable],
        "metric": [StrOptions({PRECOMPUTED}), callable, None],
        "preparation": [StrOptions(set(generation.PREPARATIONS)), None],
        "sample_ratio": [Interval(Real, 0, 1, closed="right")],
        "min_confidence": [Interval(Real, 0, 1, closed="both"), None],
        "device": [StrOptions(set(DEVICES))],
        "checkpoint": [str, os.PathLike, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        consensus: str = "hierarchical",
        ensemble_size: int = 100,
        sampling_ratio: float = 0.5,
        kernel: Kernel = "scaled_gaussian",
        mu_range: tuple[float, float] = (0.2, 0.8),
        n_neighbors_range: tuple[int, int] = (5, 20),
        base_n_clusters_range: tuple[int, int] | None = None,
        weighting: str = "entropy",
        base: str | Base = "graph",
        metric: str | Metric | None = None,
        preparation: str | None = None,
        sample_ratio: float = 1.0,
        min_confidence: float | None = None,
        device: str = "cpu",
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.consensus = consensus
        self.ensemble_size = ensemble_size
        self.sampling_ratio = sampling_ratio
        self.kernel = kernel
        self.mu_range = mu_range
        self.n_neighbors_range = n_neighbors_range
        self.base_n_clusters_range = base_n_clusters_range
        self.weighting = weighting
        self.base = base
        self.metric = metric
        self.preparation = preparation
        self.sample_ratio = sample_ratio
        self.min_confidence = min_confidence
        self.device = device
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @callbacks.with_callbacks
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
        rows = self._validated(X)
        drawn = drawn_parameters(self)
        progress = callbacks.member_progress(self, self.ensemble_size)
        ensemble = generation.generate_ensemble(rows, progress=progress, **drawn)
        generation.refuse_unseen(ensemble)
        plan, self.ensemble_, self.base_ = ensemble.plan, ensemble, ensemble.plan.base
        with single_threaded_blas():
            weigh = WEIGHTINGS[self.weighting]
            self.cluster_weights_ = weigh(ensemble, device=plan.device)
            if self.n_clusters == "auto":
                # Rows of the same covariance without groups have no such pairs.
                known = None
                if self.metric is None:
                    known = generation.rows_as_seen(rows, plan)
                self.k_selection_ = select_n_clusters(
                    ensemble,
                    X=known,
                    weighting=self.weighting,
                    base=self.base if callable(self.base) else None,
                    n_jobs=self.n_jobs,
                )
            settle(self, rows, self._clusters(self.consensus, None))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kernels = [self.kernel] if isinstance(self.kernel, str) else self.kernel
        replaced = callable(self.base), self.metric is not None, self.preparation
        tags.input_tags.sparse = set(kernels) <= set(SPARSE_KERNELS) and not any(
            replaced
        )
        tags.input_tags.pairwise = self.metric == PRECOMPUTED
        return tags

    def _validated(self, X: Any) -> Rows:
        """Return the rows in blocks, or raise one sentence for what cannot be done."""
        if isinstance(X, RowSource) or is_dask_array(X):
            self.n_features_in_ = X.shape[1]
        else:
            X = validate_data(
                self,
                X,
                accept_sparse="csr",
                dtype=generation.FLOATS,
                ensure_min_samples=3,
            )
        if isinstance(self.n_clusters, str):
            if is_dask_array(X):
                raise ValueError(
                    "n_clusters='auto' is not looked for on a cluster; fit a sample of "
                    "the rows with it, then all rows with the number it finds."
                )
        elif self.n_clusters > X.shape[0]:
            raise ValueError(
                f"n_clusters={self.n_clusters} is more than n_samples={X.shape[0]}; "
                "ask for at most one cluster per sample."
            )
        return opened(X)

    def recluster(
        self, n_clusters: int | None = None, consensus: str | None = None
    ) -> Any:
        """Return new labels from the fitted ensemble; nothing is generated again.

        Parameters
        ----------
        n_clusters : int, default=None
            Number of clusters; None for the estimator's own.
        consensus : str, default=None
            Consensus function; None for the estimator's own.

        Returns
        -------
        ndarray of shape (n_samples,)
            The labels that `fit` gives with these settings and the same seed.
        """
        check_is_fitted(self, "ensemble_")
        name = self.consensus if consensus is None else consensus
        with single_threaded_blas():
            return self.ensemble_.joined(self._clusters(name, n_clusters))

    def _clusters(self, consensus: str, n_clusters: int | None) -> list[Any]:
        """Return consensus clusters block by block, by default as many as set."""
        own = self.n_clusters
        if isinstance(own, str):
            own = self.k_selection_.n_clusters
        wanted = own if n_clusters is None else n_clusters
        ensemble, plan = self.ensemble_, self.ensemble_.plan
        weights, seed = self.cluster_weights_, plan.entropy
        return agreed(ensemble, wanted, consensus, weights, seed, plan.device)
