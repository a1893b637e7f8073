"""Locally weighted consensus (LWGP, LWEA) and evidence accumulation (EAC)."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from mdec._support.random import RandomState
from mdec.baselines._estimator import BaselineEstimator
from mdec.consensus import bipartite, hierarchical
from mdec.ensemble import Ensemble
from mdec.weights import ensemble_driven_cluster_index, uniform_weights


def lwgp(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    theta: float = 0.4,
    random_state: RandomState = None,
) -> NDArray[np.int32]:
    r"""Cut the locally weighted graph of samples and base clusters (LWGP).

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    n_clusters : int
        Number of clusters, at most the number of base clusters.
    theta : float, default=0.4
        Scale of the entropy in the clusters' weights; the authors' value.
    random_state : int, RandomState, Generator or None
        Seed of the eigen-solver and of k-means.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples.

    Notes
    -----
    The normalised cut of the bipartite graph :math:`B = H\,diag(ECI)`, found by the
    transfer cut, with :math:`ECI(C) = \exp(-H(C) / (\theta M))`. With
    :math:`\theta = 1` it is the consensus of MDEC-BG. Eigenvectors come from an
    iteration instead of a full decomposition.

    References
    ----------
    D. Huang, C.-D. Wang, J.-H. Lai, "Locally weighted ensemble clustering", IEEE
    Transactions on Cybernetics 48(5), 2018.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> lwgp(ensemble, 2, random_state=0)
    array([0, 0, 1, 1], dtype=int32)
    """
    weights = ensemble_driven_cluster_index(ensemble, theta)
    return bipartite(ensemble, n_clusters, weights, random_state=random_state)


def lwea(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    theta: float = 0.4,
    random_state: RandomState = None,
) -> NDArray[np.int32]:
    r"""Merge samples by average linkage on the locally weighted co-association (LWEA).

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    n_clusters : int
        Number of clusters; exactly that many come out.
    theta : float, default=0.4
        Scale of the entropy in the clusters' weights; the authors' value.
    random_state : int, RandomState, Generator or None
        Not used: there is nothing random in it.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples.

    Notes
    -----
    The two clusters with the largest mean of :math:`A = H\,diag(ECI)\,H^T / M` merge
    until `n_clusters` are left, with :math:`ECI(C) = \exp(-H(C) / (\theta M))`. The
    authors cut the tree at a height, which gives fewer clusters under ties; here the
    last merges are undone.

    References
    ----------
    D. Huang, C.-D. Wang, J.-H. Lai, "Locally weighted ensemble clustering", IEEE
    Transactions on Cybernetics 48(5), 2018.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> lwea(ensemble, 2)
    array([0, 0, 1, 1], dtype=int32)
    """
    weights = ensemble_driven_cluster_index(ensemble, theta)
    return hierarchical(ensemble, n_clusters, weights, random_state=random_state)


def eac(
    ensemble: Ensemble, n_clusters: int, *, random_state: RandomState = None
) -> NDArray[np.int32]:
    r"""Merge samples by average linkage on the co-association (EAC).

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    n_clusters : int
        Number of clusters; exactly that many come out.
    random_state : int, RandomState, Generator or None
        Not used: there is nothing random in it.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples.

    Notes
    -----
    The two clusters with the largest mean of :math:`A = H H^T / M` merge until
    `n_clusters` are left. The authors use single and average linkage; this is average.

    References
    ----------
    A. L. N. Fred, A. K. Jain, "Combining multiple clusterings using evidence
    accumulation", IEEE Transactions on Pattern Analysis and Machine Intelligence 27(6),
    2005.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> eac(ensemble, 2)
    array([0, 0, 1, 1], dtype=int32)
    """
    weights = uniform_weights(ensemble)
    return hierarchical(ensemble, n_clusters, weights, random_state=random_state)


class LWGP(BaselineEstimator):
    r"""Locally weighted graph partitioning.

    Base clusterings come from k-means on all features with random numbers of clusters.
    The graph of samples and base clusters, weighted by how far the ensemble agrees with
    each cluster, is cut.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    theta : float, default=0.4
        Scale of the entropy in the clusters' weights; the authors' value.
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
    mdec.baselines.lwgp : The consensus function, with its objective.

    References
    ----------
    D. Huang, C.-D. Wang, J.-H. Lai, "Locally weighted ensemble clustering", IEEE
    Transactions on Cybernetics 48(5), 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(60, n_features=20, centers=3, random_state=0)
    >>> model = LWGP(3, ensemble_size=20, random_state=0)
    >>> model.fit(X).n_clusters_
    3
    """

    _function = staticmethod(lwgp)
    _options = ("theta",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaselineEstimator._parameter_constraints,
        "theta": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        theta: float = 0.4,
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
        self.theta = theta


class LWEA(BaselineEstimator):
    r"""Locally weighted evidence accumulation.

    Base clusterings come from k-means on all features with random numbers of clusters.
    Average linkage merges samples by how often weighted clusters join them.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters; exactly that many come out.
    theta : float, default=0.4
        Scale of the entropy in the clusters' weights; the authors' value.
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
    mdec.baselines.lwea : The consensus function, with its objective.

    References
    ----------
    D. Huang, C.-D. Wang, J.-H. Lai, "Locally weighted ensemble clustering", IEEE
    Transactions on Cybernetics 48(5), 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(60, n_features=20, centers=3, random_state=0)
    >>> model = LWEA(3, ensemble_size=20, random_state=0)
    >>> model.fit(X).n_clusters_
    3
    """

    _function = staticmethod(lwea)
    _options = ("theta",)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaselineEstimator._parameter_constraints,
        "theta": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        theta: float = 0.4,
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
        self.theta = theta


class EAC(BaselineEstimator):
    r"""Evidence accumulation clustering.

    Base clusterings come from k-means on all features with random numbers of clusters.
    Average linkage merges samples by how often clusters join them.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters; exactly that many come out.
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
    mdec.baselines.eac : The consensus function, with its objective.

    References
    ----------
    A. L. N. Fred, A. K. Jain, "Combining multiple clusterings using evidence
    accumulation", IEEE Transactions on Pattern Analysis and Machine Intelligence 27(6),
    2005.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(60, n_features=20, centers=3, random_state=0)
    >>> model = EAC(3, ensemble_size=20, random_state=0)
    >>> model.fit(X).n_clusters_
    3
    """

    _function = staticmethod(eac)
