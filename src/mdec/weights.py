"""How far the ensemble agrees with each of its clusters: Eqs. 16 to 19."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.ensemble import Ensemble

Array = NDArray[np.floating]


def cluster_entropy(ensemble: Ensemble, member: int) -> Array:
    r"""Return the entropy of every base cluster with regard to one member.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    member : int
        The member m that judges.

    Returns
    -------
    ndarray of shape (n_base_clusters,)
        :math:`H^m(C)` in bits; 0 where the member clusters no sample of C.

    Notes
    -----
    Eqs. 16 and 17: :math:`H^m(C_i) = -\sum_j p(C_i, C^m_j) \log_2 p(C_i, C^m_j)` with
    :math:`p(C_i, C^m_j) = |C_i \cap C^m_j| / |C_i|`. With s the size of C and n the
    overlaps this is :math:`\log_2 s - \frac{1}{s} \sum_j n_j \log_2 n_j`.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 1], [0, 1], [0, 0]])
    >>> cluster_entropy(ensemble, 1)
    array([1., 0., 0.])
    """
    from mdec.numerics import loops

    overlaps = loops.count_overlaps(ensemble.labels, member, ensemble.offsets)
    return entropy_of_overlaps(overlaps)


def entropy_of_overlaps(overlaps: Any, log2: Callable[[Any], Any] | None = None) -> Any:
    """Return the entropy of every base cluster from its overlaps with one member.

    Parameters
    ----------
    overlaps : array of shape (n_own, n_base_clusters)
        Samples that each of the member's clusters shares with every base cluster, of
        NumPy or PyTorch.
    log2 : callable, optional
        Takes the logarithm of whole numbers, of 1 for 0; None for a table of NumPy's.

    Returns
    -------
    array of shape (n_base_clusters,)
        Bits, Eqs. 16 and 17.
    """
    sizes = overlaps.sum(axis=0)
    if log2 is None:
        # Overlaps are whole numbers up to N, so their logarithms come from a table.
        log2 = np.log2(np.maximum(np.arange(sizes.max() + 1), 1)).__getitem__
    within = (overlaps * log2(overlaps)).sum(axis=0)
    return (log2(sizes) - within / sizes.clip(1)).clip(0.0)


def ensemble_entropy(ensemble: Ensemble, device: str = "cpu") -> Array:
    r"""Return the entropy of every base cluster with regard to all members.

    Notes
    -----
    Eq. 18: :math:`H(C_i) = \sum_m H^m(C_i)`; its own member adds nothing.
    """
    if device != "cpu":
        return _entropy_on_device(ensemble, device)
    total = np.zeros(ensemble.n_base_clusters)
    for member in range(len(ensemble)):
        total += cluster_entropy(ensemble, member)
    return total


def _entropy_on_device(ensemble: Ensemble, device: str) -> Array:
    from mdec.engines import tensors

    offsets = ensemble.offsets
    place = tensors.find_device(device)
    overlaps = tensors.count_overlaps(ensemble.labels, offsets, place)
    total = overlaps.new_zeros(len(overlaps))
    for start, stop in pairwise(offsets.tolist()):
        total += entropy_of_overlaps(
            overlaps[start:stop], lambda counts: counts.clip(1.0).log2()
        )
    entropy: Array = total.cpu().numpy()
    return entropy


def ensemble_driven_cluster_index(
    ensemble: Ensemble, theta: float = 1.0, device: str = "cpu"
) -> Array:
    r"""Return the weight of every base cluster (ECI).

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    theta : float, default=1.0
        Scale of the entropy; the paper has 1.
    device : {"cpu", "cuda", "torch"}, default="cpu"
        Where to count the overlaps of clusters.

    Returns
    -------
    ndarray of shape (n_base_clusters,)
        In (0, 1]; 1 for a cluster that no member splits.

    Notes
    -----
    Eq. 19: :math:`ECI(C_i) = \exp(-H(C_i) / (\theta M))`.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 1], [0, 1], [0, 0]])
    >>> ensemble_driven_cluster_index(ensemble).round(4)
    array([0.6065, 1.    , 1.    ])
    """
    return np.exp(-ensemble_entropy(ensemble, device) / (theta * len(ensemble)))


def uniform_weights(ensemble: Ensemble, device: str = "cpu") -> Array:  # noqa: ARG001
    """Return a weight of one for every base cluster, the ablation of the paper."""
    return np.ones(ensemble.n_base_clusters)


WEIGHTINGS: dict[str, Callable[..., Array]] = {
    "entropy": ensemble_driven_cluster_index,
    "uniform": uniform_weights,
}
