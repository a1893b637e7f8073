"""How far the ensemble agrees with each of its clusters: Eqs. 16 to 19."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array
from mdec.ensemble import Ensemble
from mdec.rows.work import LocalExecutor, ordered_sum

# Bytes that are counted at once: what stays in the cache, and more on a cluster, where
# each round trip costs.
_CACHED_BYTES, _SENT_BYTES = 2**20, 2**26


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
    return entropy_of_overlaps(count_shared_samples(ensemble, member, member + 1))


def count_shared_samples(
    ensemble: Ensemble, first: int, last: int
) -> NDArray[np.int64]:
    """Count the samples that clusters of some members share with every base cluster.

    The members go from `first` up to but without `last`. Counted block by block, where
    the labels are.
    """
    from mdec.numerics.loops.landmarks import count_overlaps

    offsets, members = ensemble.offsets, range(first, last)

    def count(parts: list[NDArray[np.int32]]) -> NDArray[np.int64]:
        tables = [
            reduce(np.add, [count_overlaps(part, m, offsets) for part in parts])
            for m in members
        ]
        # A copy of one would take a tenth of the time that counting takes.
        return tables[0] if len(tables) == 1 else np.concatenate(tables)

    handle = ordered_sum(ensemble.executor, count, ensemble.parts)
    overlaps: NDArray[np.int64] = ensemble.executor.value(handle)
    return overlaps


def entropy_of_overlaps(overlaps: Any, log2: Callable[[Any], Any] | None = None) -> Any:
    """Return the entropy of every base cluster in bits, Eqs. 16 and 17, from overlaps.

    Overlaps are the samples that each cluster of one member shares with every base
    cluster, of NumPy or PyTorch; `log2` takes the logarithm of whole numbers, of 1 for
    0, None being a table of NumPy's.
    """
    sizes = overlaps.sum(axis=0)
    if log2 is None:
        # Overlaps are whole numbers up to N, so their logarithms come from a table.
        log2 = np.log2(np.maximum(np.arange(sizes.max() + 1), 1)).__getitem__
    within = (overlaps * log2(overlaps)).sum(axis=0)
    return (log2(sizes) - within / sizes.clip(1)).clip(0.0)


def ensemble_entropy(ensemble: Ensemble, device: str = "cpu") -> Array:
    r"""Return the entropy of every base cluster with regard to all members.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    device : {"cpu", "cuda", "torch"}, default="cpu"
        Where to count the overlaps of clusters.

    Returns
    -------
    ndarray of shape (n_base_clusters,)
        :math:`H(C)` in bits.

    Notes
    -----
    Eq. 18: :math:`H(C_i) = \sum_m H^m(C_i)`; its own member adds nothing.
    """
    offsets = ensemble.offsets
    if device != "cpu":
        from mdec.engines import tensors

        labels, place = ensemble.gather().labels, tensors.find_device(device)
        counts = tensors.count_overlaps(labels, offsets, place)
        tables = (counts[start:stop] for start, stop in pairwise(offsets.tolist()))
        each = [entropy_of_overlaps(t, lambda n: n.clip(1.0).log2()) for t in tables]
        found: Array = sum(each).cpu().numpy()
        return found
    total = np.zeros(ensemble.n_base_clusters)
    widest = 8 * int(np.diff(offsets).max()) * ensemble.n_base_clusters
    here = isinstance(ensemble.executor, LocalExecutor)
    together = max(1, (_CACHED_BYTES if here else _SENT_BYTES) // widest)
    for first in range(0, len(ensemble), together):
        last = min(first + together, len(ensemble))
        overlaps = count_shared_samples(ensemble, first, last)
        for start, stop in pairwise(offsets[first : last + 1] - offsets[first]):
            total += entropy_of_overlaps(overlaps[start:stop])
    return total


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
        In (0, 1]; 1 for a cluster that no member splits. Of joined views with shares
        of their own, multiplied by what their members count.

    Notes
    -----
    Eq. 19: :math:`ECI(C_i) = \exp(-H(C_i) / (\theta M))`. Where members leave samples
    out, a member judges by the samples of :math:`C_i` that it clusters, and M counts
    the members that cluster any.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 1], [0, 1], [0, 0]])
    >>> ensemble_driven_cluster_index(ensemble).round(4)
    array([0.6065, 1.    , 1.    ])
    """
    judges: Any = len(ensemble)
    if not ensemble.is_complete:
        # Members that cluster any sample of each base cluster.
        whole = ensemble.gather()
        present = (whole.labels >= 0).astype(np.float64)
        judges = np.count_nonzero(whole.indicator().T @ present, axis=1)
    index = np.exp(-ensemble_entropy(ensemble, device) / (theta * judges))
    return index * uniform_weights(ensemble)


def uniform_weights(
    ensemble: Ensemble,
    device: str = "cpu",  # noqa: ARG001
) -> Array:
    """Return a weight of one for every base cluster, the ablation of the paper.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    device : str, default="cpu"
        Not used.

    Returns
    -------
    ndarray of shape (n_base_clusters,)
        Ones; of joined views with shares of their own, what the clusters' members
        count.
    """
    if ensemble.member_weights is None:
        return np.ones(ensemble.n_base_clusters)
    return np.repeat(ensemble.member_weights, np.diff(ensemble.offsets))


WEIGHTINGS: dict[str, Callable[..., Array]] = {
    "entropy": ensemble_driven_cluster_index,
    "uniform": uniform_weights,
}
