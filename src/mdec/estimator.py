"""MDEC as a scikit-learn estimator: a thin, validated shell."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from mdec._support.callbacks import (
    CallbackSupportMixin,
    member_progress,
    with_callbacks,
)
from mdec._support.parallel import single_threaded_blas
from mdec._support.random import RandomState
from mdec.base.kernels import KERNELS
from mdec.base.landmarks import pool_rows
from mdec.confidence import confidence, item_consensus
from mdec.consensus import CONSENSUS, ON_DEVICE
from mdec.consensus._blocks import blocked_confidence, blocked_profiles
from mdec.engines.card import DEVICES
from mdec.engines.cluster import (
    distributed_ensemble,
    distributed_labels,
    distributed_weights,
)
from mdec.generation import generate_ensemble, training_rows
from mdec.plan import BASES, row_bounds
from mdec.prediction import (
    assign_to_clusters,
    nearest_profiles,
    predict_base_clusters,
    predict_landmark_clusters,
)
from mdec.rows.blocks import Here, Worker, gathered_rows
from mdec.rows.dask import DistributedEnsemble, as_dask_array, check_dask_array
from mdec.rows.sources import RowSource, is_dask_array
from mdec.selection.rule import select_n_clusters
from mdec.weights import WEIGHTINGS


class MDEC(CallbackSupportMixin, ClusterMixin, BaseEstimator):
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
    kernel : str, default="scaled_gaussian"
        "scaled_gaussian" made the published tables, "scaled_exponential" is Eq. 1 as
        printed; "cosine", "correlation" and "spearman" are plain similarities.
    mu_range : tuple of float, default=(0.2, 0.8)
        Interval of the kernel's width.
    n_neighbors_range : tuple of int, default=(5, 20)
        Interval of the number of neighbours, capped below the number of samples.
    base_n_clusters_range : tuple of int, default=None
        Interval of the base clusterings' number of clusters; None is 2 to
        :math:`\lceil\sqrt N\rceil`, with landmarks at most 100.
    weighting : {"entropy", "uniform"}, default="entropy"
        Weights of the base clusters: the ECI, or all alike.
    base : {"graph", "landmark", "auto"}, default="graph"
        How a base clustering is made: from the similarity graph of all samples, or
        from their ties to landmarks, whose cost grows only linearly. "auto" takes
        landmarks above 20,000 samples, and for rows that are not in memory.
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
        Cluster of each sample, numbered in the order of first samples.
    ensemble_ : Ensemble
        The base clusterings.
    cluster_weights_ : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    confidence_ : ndarray of shape (n_samples,)
        How firmly the ensemble holds each sample in its cluster, in [0, 1]; 0.5 is
        undecided.
    n_clusters_ : int
        Number of clusters in `labels_`.
    base_ : {"graph", "landmark"}
        How the base clusterings were made; tells what "auto" took.
    k_selection_ : KSelection
        The criteria for each number of clusters, with ``n_clusters="auto"`` only.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
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
        "n_clusters": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
        ],
        "consensus": [StrOptions(set(CONSENSUS))],
        "ensemble_size": [Interval(Integral, 1, None, closed="left")],
        "sampling_ratio": [Interval(Real, 0, 1, closed="right")],
        "kernel": [StrOptions(set(KERNELS))],
        "mu_range": [tuple, list],
        "n_neighbors_range": [tuple, list],
        "base_n_clusters_range": [tuple, list, None],
        "weighting": [StrOptions(set(WEIGHTINGS))],
        "base": [StrOptions(set(BASES))],
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
        kernel: str = "scaled_gaussian",
        mu_range: tuple[float, float] = (0.2, 0.8),
        n_neighbors_range: tuple[int, int] = (5, 20),
        base_n_clusters_range: tuple[int, int] | None = None,
        weighting: str = "entropy",
        base: str = "graph",
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
        self.device = device
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like, RowSource or Dask array of shape (n_samples, n_features)
            At least three samples, not all equal; no missing values. Files larger than
            memory are opened with `mdec.rows.open_rows`. Of a Dask array the
            rows stay on the workers, and `labels_` and `confidence_` are Dask arrays.
        y : object, default=None
            Not used.

        Returns
        -------
        self : MDEC
            The fitted estimator.
        """
        if is_dask_array(X):
            return self._fit_on_cluster(X)
        data: Any = X
        if isinstance(X, RowSource):
            self.n_features_in_ = X.shape[1]
        else:
            data = validate_data(
                self, X, dtype=(np.float64, np.float32), ensure_min_samples=3
            )
        self._check_n_clusters(data.shape[0])
        self.ensemble_ = generate_ensemble(
            data,
            n_jobs=self.n_jobs,
            progress=member_progress(self, self.ensemble_size),
            **self._generation_settings(),
        )
        self.base_ = self.ensemble_.parameters["base"]
        self.cluster_weights_ = WEIGHTINGS[self.weighting](
            self.ensemble_, device=self.ensemble_.parameters["device"]
        )
        self._fit_X = training_rows(data, self.ensemble_.parameters)
        if self.n_clusters == "auto":
            self.k_selection_ = select_n_clusters(
                self.ensemble_,
                X=self._fit_X,
                weighting=self.weighting,
                n_jobs=self.n_jobs,
            )
        self.labels_ = self.recluster()
        self.n_clusters_ = int(self.labels_.max()) + 1
        if self.base_ == "landmark":
            bounds = row_bounds(self.ensemble_.parameters)
            parts = [self.ensemble_.labels[start:stop] for start, stop in bounds]
            clusters = [self.labels_[start:stop] for start, stop in bounds]
            self.confidence_ = np.concatenate(self._held(Here(), parts, clusters))
        else:
            association = item_consensus(
                self.ensemble_, self.labels_, self.cluster_weights_
            )
            self.confidence_ = confidence(association, self.labels_)
        return self

    def _held(self, worker: Worker, parts: list[Any], clusters: list[Any]) -> list[Any]:
        """Return the confidences block by block; keep what `predict` will need."""
        ensemble, weights = self.ensemble_, self.cluster_weights_
        rows = pool_rows(ensemble.n_samples, ensemble.parameters["entropy"])
        bounds = row_bounds(ensemble.parameters)
        over = worker, parts, clusters, self.n_clusters_, ensemble.offsets, weights
        with single_threaded_blas():
            profiles, sizes = blocked_profiles(*over)
            held = blocked_confidence(
                worker, parts, clusters, profiles, sizes, ensemble.offsets, weights
            )
            if self.consensus != "hierarchical":
                totals = worker.value(profiles).sum(axis=0)
                profiles, _ = blocked_profiles(*over, totals)
            self._means = worker.value(profiles) / worker.value(sizes)[:, None]
        self._pool_labels = worker.value(gathered_rows(worker, parts, bounds, rows))
        return held

    def _generation_settings(self) -> dict[str, Any]:
        return {
            "ensemble_size": self.ensemble_size,
            "sampling_ratio": self.sampling_ratio,
            "kernel": self.kernel,
            "mu_range": self.mu_range,
            "n_neighbors_range": self.n_neighbors_range,
            "base_n_clusters_range": self.base_n_clusters_range,
            "base": self.base,
            "device": self.device,
            "checkpoint": self.checkpoint,
            "random_state": self.random_state,
            "verbose": self.verbose,
        }

    def _check_n_clusters(self, n_samples: int) -> None:
        if isinstance(self.n_clusters, Integral) and self.n_clusters > n_samples:
            raise ValueError(
                f"n_clusters={self.n_clusters} is more than n_samples={n_samples}; ask "
                "for at most one cluster per sample."
            )

    def _fit_on_cluster(self, X: Any) -> Self:
        """Do what `fit` does, with rows and labels left on a Dask cluster."""
        if isinstance(self.n_clusters, str):
            raise ValueError(
                "n_clusters='auto' is not looked for on a cluster; fit a sample of the "
                "rows with it, then all rows with the number it finds."
            )
        check_dask_array(X)
        self._check_n_clusters(X.shape[0])
        self.n_features_in_ = X.shape[1]
        self.ensemble_, self._fit_X = distributed_ensemble(
            X,
            progress=member_progress(self, self.ensemble_size),
            **self._generation_settings(),
        )
        ensemble = self.ensemble_
        self.base_ = ensemble.parameters["base"]
        with single_threaded_blas():
            self.cluster_weights_ = distributed_weights(ensemble, self.weighting)
            clusters, self.n_clusters_ = distributed_labels(
                ensemble, self.n_clusters, self.consensus, self.cluster_weights_
            )
        held = self._held(ensemble.worker, ensemble.parts, clusters)
        self.labels_ = as_dask_array(clusters, ensemble.bounds, np.int32)
        self.confidence_ = as_dask_array(held, ensemble.bounds, np.float64)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.int32]:
        """Return the clusters of new rows.

        In each base clustering a new row joins the base cluster with the largest
        summed similarity among its nearest training rows; it then joins the cluster
        with the largest mean weighted co-association, which the spectral and the
        bipartite consensus divide by the roots of the degrees.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            New rows, prepared like those of `fit`.

        Returns
        -------
        ndarray of shape (n_new,)
            Clusters with the numbers of `labels_`. Rows of `fit` nearly always get
            their own cluster, but not by rule; for those use `labels_`.
        """
        check_is_fitted(self, "ensemble_")
        data = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        if self.base_ == "landmark":
            return self._predict_by_landmarks(data)
        base = predict_base_clusters(
            self._fit_X, data, self.ensemble_, n_jobs=self.n_jobs
        )
        with single_threaded_blas():
            return assign_to_clusters(
                base,
                self.ensemble_,
                self.labels_,
                self.cluster_weights_,
                by_degree=self.consensus != "hierarchical",
            )

    def _predict_by_landmarks(self, X: NDArray[np.floating]) -> NDArray[np.int32]:
        ensemble = self.ensemble_
        base = predict_landmark_clusters(
            self._fit_X,
            self._pool_labels,
            X,
            ensemble.members,
            ensemble.parameters,
            n_jobs=self.n_jobs,
        )
        with single_threaded_blas():
            return nearest_profiles(
                base, ensemble.offsets, self._means, self.cluster_weights_
            )

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
        ensemble = self.ensemble_
        name = self.consensus if consensus is None else consensus
        if name not in CONSENSUS:
            raise ValueError(
                f"consensus={name!r} is not one of {', '.join(CONSENSUS)}."
            )
        own = self.n_clusters
        if isinstance(own, str):
            own = self.k_selection_.n_clusters
        wanted = own if n_clusters is None else n_clusters
        settings = {"random_state": ensemble.parameters["entropy"]}
        if name in ON_DEVICE:
            settings["device"] = ensemble.parameters["device"]
        with single_threaded_blas():
            if isinstance(ensemble, DistributedEnsemble):
                parts, _ = distributed_labels(
                    ensemble, wanted, name, self.cluster_weights_
                )
                return as_dask_array(parts, ensemble.bounds, np.int32)
            return CONSENSUS[name](
                ensemble,
                wanted,
                self.cluster_weights_,
                **settings,
            )
