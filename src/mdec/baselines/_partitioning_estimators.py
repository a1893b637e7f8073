"""CSPA, HGPA and MCLA as estimators, on all features and on stratified subspaces."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from mdec._support.random import RandomState
from mdec.baselines._estimator import BaselineEstimator, StratifiedEstimator
from mdec.baselines._partitioning import cspa, hgpa, mcla


class CSPA(BaselineEstimator):
    r"""Cluster-based similarity partitioning.

    Base clusterings come from k-means on all features with random numbers of clusters.
    The co-association graph is partitioned into parts of equal size.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    partitioner : {"metis", "spectral"}, default="metis"
        "metis" needs the extra ``metis``; "spectral" is a normalised cut without
        balance, another method for those who cannot install it.
    ensemble_size : int, default=100
        M, the number of base clusterings, as in the paper's tables.
    base_n_clusters_range : tuple of int, default=None
        Interval of their numbers of clusters; None is 2 to :math:`\lceil\sqrt N\rceil`.
    n_jobs : int, default=None
        Base clusterings made at the same time, as in joblib; changes no label.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an integer makes the result repeatable.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, numbered in the order of first samples.
    ensemble_ : Ensemble
        The base clusterings.
    n_clusters_ : int
        Number of clusters in `labels_`.
    n_features_in_ : int
        Number of features seen in `fit`.

    See Also
    --------
    mdec.baselines.cspa : The consensus function, with its objective.

    References
    ----------
    A. Strehl, J. Ghosh, "Cluster ensembles: a knowledge reuse framework for combining
    multiple partitions", Journal of Machine Learning Research 3, 2002.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(60, n_features=20, centers=3, random_state=0)
    >>> model = CSPA(3, ensemble_size=20, partitioner="spectral", random_state=0)
    >>> model.fit(X).n_clusters_
    3
    """

    _function = staticmethod(cspa)
    _options = ("partitioner",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaselineEstimator._parameter_constraints,
        "partitioner": [StrOptions({"metis", "spectral"})],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        partitioner: str = "metis",
        ensemble_size: int = 100,
        base_n_clusters_range: tuple[int, int] | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            n_clusters,
            ensemble_size=ensemble_size,
            base_n_clusters_range=base_n_clusters_range,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.partitioner = partitioner


class HGPA(BaselineEstimator):
    r"""Hypergraph partitioning.

    Base clusterings come from k-means on all features with random numbers of clusters.
    Samples are parted equally so that few base clusters are cut.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    partitioner : {"mtkahypar", "spectral"}, default="mtkahypar"
        "mtkahypar" needs the extra ``hypergraph``; "spectral" is a normalised cut
        without balance, another method for those who cannot install it.
    ensemble_size : int, default=100
        M, the number of base clusterings, as in the paper's tables.
    base_n_clusters_range : tuple of int, default=None
        Interval of their numbers of clusters; None is 2 to :math:`\lceil\sqrt N\rceil`.
    n_jobs : int, default=None
        Base clusterings made at the same time, as in joblib; changes no label.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an integer makes the result repeatable.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, numbered in the order of first samples.
    ensemble_ : Ensemble
        The base clusterings.
    n_clusters_ : int
        Number of clusters in `labels_`.
    n_features_in_ : int
        Number of features seen in `fit`.

    See Also
    --------
    mdec.baselines.hgpa : The consensus function, with its objective.

    References
    ----------
    A. Strehl, J. Ghosh, "Cluster ensembles: a knowledge reuse framework for combining
    multiple partitions", Journal of Machine Learning Research 3, 2002.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(60, n_features=20, centers=3, random_state=0)
    >>> model = HGPA(3, ensemble_size=20, partitioner="spectral", random_state=0)
    >>> model.fit(X).n_clusters_
    3
    """

    _function = staticmethod(hgpa)
    _options = ("partitioner",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaselineEstimator._parameter_constraints,
        "partitioner": [StrOptions({"mtkahypar", "spectral"})],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        partitioner: str = "mtkahypar",
        ensemble_size: int = 100,
        base_n_clusters_range: tuple[int, int] | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            n_clusters,
            ensemble_size=ensemble_size,
            base_n_clusters_range=base_n_clusters_range,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.partitioner = partitioner


class MCLA(BaselineEstimator):
    r"""Meta-clustering.

    Base clusterings come from k-means on all features with random numbers of clusters.
    Base clusters are grouped into meta-clusters, and samples go to the likeliest.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters; a meta-cluster that wins no sample is left out, with a
        warning.
    partitioner : {"metis", "spectral"}, default="metis"
        "metis" needs the extra ``metis``; "spectral" is a normalised cut without
        balance, another method for those who cannot install it.
    ensemble_size : int, default=100
        M, the number of base clusterings, as in the paper's tables.
    base_n_clusters_range : tuple of int, default=None
        Interval of their numbers of clusters; None is 2 to :math:`\lceil\sqrt N\rceil`.
    n_jobs : int, default=None
        Base clusterings made at the same time, as in joblib; changes no label.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an integer makes the result repeatable.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, numbered in the order of first samples.
    ensemble_ : Ensemble
        The base clusterings.
    n_clusters_ : int
        Number of clusters in `labels_`.
    n_features_in_ : int
        Number of features seen in `fit`.

    See Also
    --------
    mdec.baselines.mcla : The consensus function, with its objective.

    References
    ----------
    A. Strehl, J. Ghosh, "Cluster ensembles: a knowledge reuse framework for combining
    multiple partitions", Journal of Machine Learning Research 3, 2002.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(60, n_features=20, centers=3, random_state=0)
    >>> model = MCLA(3, ensemble_size=20, partitioner="spectral", random_state=0)
    >>> model.fit(X).n_clusters_
    3
    """

    _function = staticmethod(mcla)
    _options = ("partitioner",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaselineEstimator._parameter_constraints,
        "partitioner": [StrOptions({"metis", "spectral"})],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        partitioner: str = "metis",
        ensemble_size: int = 100,
        base_n_clusters_range: tuple[int, int] | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            n_clusters,
            ensemble_size=ensemble_size,
            base_n_clusters_range=base_n_clusters_range,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.partitioner = partitioner


class SSCSPA(StratifiedEstimator):
    r"""Cluster-based similarity partitioning of stratified subspaces.

    Base clusterings come from k-means on random features, drawn alike from strata of
    similar ones. The co-association graph is partitioned into parts of equal size.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    partitioner : {"metis", "spectral"}, default="metis"
        "metis" needs the extra ``metis``; "spectral" is a normalised cut without
        balance, another method for those who cannot install it.
    sampling_ratio : float, default=0.5
        Share of each stratum of features that a base clustering looks at; our
        calibration, the ratio of MDEC.
    n_strata : int, default=None
        Strata of features; None is :math:`\lfloor\sqrt D\rfloor`, the choice of the
        nearest public code.
    ensemble_size : int, default=100
        M, the number of base clusterings, as in the paper's tables.
    base_n_clusters_range : tuple of int, default=None
        Interval of their numbers of clusters; None is 2 to :math:`\lceil\sqrt N\rceil`.
    n_jobs : int, default=None
        Base clusterings made at the same time, as in joblib; changes no label.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an integer makes the result repeatable.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, numbered in the order of first samples.
    ensemble_ : Ensemble
        The base clusterings.
    n_clusters_ : int
        Number of clusters in `labels_`.
    n_features_in_ : int
        Number of features seen in `fit`.

    See Also
    --------
    mdec.baselines.cspa : The consensus function, with its objective.

    References
    ----------
    L. Jing, K. Tian, J. Z. Huang, "Stratified feature sampling method for ensemble
    clustering of high dimensional data", Pattern Recognition 48(11), 2015.

    A. Strehl, J. Ghosh, "Cluster ensembles: a knowledge reuse framework for combining
    multiple partitions", Journal of Machine Learning Research 3, 2002.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(60, n_features=20, centers=3, random_state=0)
    >>> model = SSCSPA(3, ensemble_size=20, partitioner="spectral", random_state=0)
    >>> model.fit(X).n_clusters_
    3
    """

    _function = staticmethod(cspa)
    _options = ("partitioner",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StratifiedEstimator._parameter_constraints,
        "partitioner": [StrOptions({"metis", "spectral"})],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        partitioner: str = "metis",
        sampling_ratio: float = 0.5,
        n_strata: int | None = None,
        ensemble_size: int = 100,
        base_n_clusters_range: tuple[int, int] | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            n_clusters,
            ensemble_size=ensemble_size,
            base_n_clusters_range=base_n_clusters_range,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.partitioner = partitioner
        self.sampling_ratio = sampling_ratio
        self.n_strata = n_strata


class SSHGPA(StratifiedEstimator):
    r"""Hypergraph partitioning of stratified subspaces.

    Base clusterings come from k-means on random features, drawn alike from strata of
    similar ones. Samples are parted equally so that few base clusters are cut.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    partitioner : {"mtkahypar", "spectral"}, default="mtkahypar"
        "mtkahypar" needs the extra ``hypergraph``; "spectral" is a normalised cut
        without balance, another method for those who cannot install it.
    sampling_ratio : float, default=0.5
        Share of each stratum of features that a base clustering looks at; our
        calibration, the ratio of MDEC.
    n_strata : int, default=None
        Strata of features; None is :math:`\lfloor\sqrt D\rfloor`, the choice of the
        nearest public code.
    ensemble_size : int, default=100
        M, the number of base clusterings, as in the paper's tables.
    base_n_clusters_range : tuple of int, default=None
        Interval of their numbers of clusters; None is 2 to :math:`\lceil\sqrt N\rceil`.
    n_jobs : int, default=None
        Base clusterings made at the same time, as in joblib; changes no label.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an integer makes the result repeatable.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, numbered in the order of first samples.
    ensemble_ : Ensemble
        The base clusterings.
    n_clusters_ : int
        Number of clusters in `labels_`.
    n_features_in_ : int
        Number of features seen in `fit`.

    See Also
    --------
    mdec.baselines.hgpa : The consensus function, with its objective.

    References
    ----------
    L. Jing, K. Tian, J. Z. Huang, "Stratified feature sampling method for ensemble
    clustering of high dimensional data", Pattern Recognition 48(11), 2015.

    A. Strehl, J. Ghosh, "Cluster ensembles: a knowledge reuse framework for combining
    multiple partitions", Journal of Machine Learning Research 3, 2002.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(60, n_features=20, centers=3, random_state=0)
    >>> model = SSHGPA(3, ensemble_size=20, partitioner="spectral", random_state=0)
    >>> model.fit(X).n_clusters_
    3
    """

    _function = staticmethod(hgpa)
    _options = ("partitioner",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StratifiedEstimator._parameter_constraints,
        "partitioner": [StrOptions({"mtkahypar", "spectral"})],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        partitioner: str = "mtkahypar",
        sampling_ratio: float = 0.5,
        n_strata: int | None = None,
        ensemble_size: int = 100,
        base_n_clusters_range: tuple[int, int] | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            n_clusters,
            ensemble_size=ensemble_size,
            base_n_clusters_range=base_n_clusters_range,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.partitioner = partitioner
        self.sampling_ratio = sampling_ratio
        self.n_strata = n_strata


class SSMCLA(StratifiedEstimator):
    r"""Meta-clustering of stratified subspaces.

    Base clusterings come from k-means on random features, drawn alike from strata of
    similar ones. Base clusters are grouped into meta-clusters, and samples go to the
    likeliest.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters; a meta-cluster that wins no sample is left out, with a
        warning.
    partitioner : {"metis", "spectral"}, default="metis"
        "metis" needs the extra ``metis``; "spectral" is a normalised cut without
        balance, another method for those who cannot install it.
    sampling_ratio : float, default=0.5
        Share of each stratum of features that a base clustering looks at; our
        calibration, the ratio of MDEC.
    n_strata : int, default=None
        Strata of features; None is :math:`\lfloor\sqrt D\rfloor`, the choice of the
        nearest public code.
    ensemble_size : int, default=100
        M, the number of base clusterings, as in the paper's tables.
    base_n_clusters_range : tuple of int, default=None
        Interval of their numbers of clusters; None is 2 to :math:`\lceil\sqrt N\rceil`.
    n_jobs : int, default=None
        Base clusterings made at the same time, as in joblib; changes no label.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an integer makes the result repeatable.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, numbered in the order of first samples.
    ensemble_ : Ensemble
        The base clusterings.
    n_clusters_ : int
        Number of clusters in `labels_`.
    n_features_in_ : int
        Number of features seen in `fit`.

    See Also
    --------
    mdec.baselines.mcla : The consensus function, with its objective.

    References
    ----------
    L. Jing, K. Tian, J. Z. Huang, "Stratified feature sampling method for ensemble
    clustering of high dimensional data", Pattern Recognition 48(11), 2015.

    A. Strehl, J. Ghosh, "Cluster ensembles: a knowledge reuse framework for combining
    multiple partitions", Journal of Machine Learning Research 3, 2002.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(60, n_features=20, centers=3, random_state=0)
    >>> model = SSMCLA(3, ensemble_size=20, partitioner="spectral", random_state=0)
    >>> model.fit(X).n_clusters_
    3
    """

    _function = staticmethod(mcla)
    _options = ("partitioner",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StratifiedEstimator._parameter_constraints,
        "partitioner": [StrOptions({"metis", "spectral"})],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        partitioner: str = "metis",
        sampling_ratio: float = 0.5,
        n_strata: int | None = None,
        ensemble_size: int = 100,
        base_n_clusters_range: tuple[int, int] | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            n_clusters,
            ensemble_size=ensemble_size,
            base_n_clusters_range=base_n_clusters_range,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.partitioner = partitioner
        self.sampling_ratio = sampling_ratio
        self.n_strata = n_strata
