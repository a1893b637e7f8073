"""Locally weighted consensus (LWGP, LWEA) and evidence accumulation (EAC)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdec._support.random import RandomState
from mdec.baselines._estimator import Positive, documented, estimator_of
from mdec.baselines._new_rows import PlacingBaseline
from mdec.consensus import bipartite, hierarchical
from mdec.ensemble import Ensemble
from mdec.weights import ensemble_driven_cluster_index, uniform_weights


@documented()
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
    n_clusters : int
        Number of clusters, at most the number of base clusters.
    theta : float, default=0.4
        Scale of the entropy in the clusters' weights; the authors' value.
    random_state : int, RandomState, Generator or None
        Seed of the eigen-solver and of k-means.

    Notes
    -----
    The normalised cut of the bipartite graph :math:`B = H\,diag(ECI)`, found by the
    transfer cut. The weight :math:`ECI(C) = \exp(-H(C) / (\theta M))` tells how far the
    ensemble agrees with a cluster. With :math:`\theta = 1` it is the consensus of
    MDEC-BG. Eigenvectors come from an iteration instead of a full decomposition.

    References
    ----------
    D. Huang, C.-D. Wang, J.-H. Lai, "Locally weighted ensemble clustering", IEEE
    Transactions on Cybernetics 48(5), 2018.
    """
    weights = ensemble_driven_cluster_index(ensemble, theta)
    return bipartite(ensemble, n_clusters, weights, random_state=random_state)


@documented(like=lwgp)
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
    n_clusters : int
        Number of clusters; exactly that many come out.
    random_state : int, RandomState, Generator or None
        Not used: there is nothing random in it.

    Notes
    -----
    The two clusters with the largest mean of :math:`A = H\,diag(ECI)\,H^T / M` merge
    until `n_clusters` are left, with :math:`ECI(C) = \exp(-H(C) / (\theta M))`. The
    authors cut the tree at a height, which gives fewer clusters under ties; here the
    last merges are undone.
    """
    weights = ensemble_driven_cluster_index(ensemble, theta)
    return hierarchical(ensemble, n_clusters, weights, random_state=random_state)


@documented()
def eac(
    ensemble: Ensemble, n_clusters: int, *, random_state: RandomState = None
) -> NDArray[np.int32]:
    r"""Merge samples by average linkage on the co-association (EAC).

    Parameters
    ----------
    n_clusters : int
        Number of clusters; exactly that many come out.

    Notes
    -----
    The two clusters with the largest mean of :math:`A = H H^T / M`, how often base
    clusters join two samples, merge until `n_clusters` are left. The authors use single
    and average linkage; this is average.

    References
    ----------
    A. L. N. Fred, A. K. Jain, "Combining multiple clusterings using evidence
    accumulation", IEEE Transactions on Pattern Analysis and Machine Intelligence 27(6),
    2005.
    """
    weights = uniform_weights(ensemble)
    return hierarchical(ensemble, n_clusters, weights, random_state=random_state)


@estimator_of(lwgp)
class LWGP(PlacingBaseline):
    """Locally weighted graph partitioning."""

    theta: Positive = 0.4

    _by_degree = True

    def _weights(self) -> NDArray[np.floating]:
        return ensemble_driven_cluster_index(self.ensemble_, self.theta)


@estimator_of(lwea)
class LWEA(PlacingBaseline):
    """Locally weighted evidence accumulation."""

    theta: Positive = 0.4

    def _weights(self) -> NDArray[np.floating]:
        return ensemble_driven_cluster_index(self.ensemble_, self.theta)


@estimator_of(eac)
class EAC(PlacingBaseline):
    """Evidence accumulation clustering."""
