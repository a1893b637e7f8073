"""What every consensus function does before and after its own work."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.cluster import contingency_matrix

from mdec._support.arrays import Array, Labels
from mdec._support.memory import require_memory
from mdec.ensemble import Ensemble
from mdec.ensemble.numbering import number_blocks
from mdec.numerics.eigen import is_dense
from mdec.rows.work import Executor, LocalExecutor
from mdec.weights import ensemble_driven_cluster_index

# Up to this order eigenvectors are found before a GPU has begun.
HOST_ORDER = 500


def resolve_weights(ensemble: Ensemble, weights: Array | None) -> Array:
    """Return the given weights of the base clusters, or the ECI."""
    if weights is None:
        return ensemble_driven_cluster_index(ensemble)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (ensemble.n_base_clusters,):
        raise ValueError(
            f"weights must hold one number for each of the {ensemble.n_base_clusters} "
            f"base clusters, got shape {weights.shape}."
        )
    if not np.all(np.isfinite(weights)) or weights.min() < 0.0 or not weights.any():
        raise ValueError("weights must be finite, not negative and not all zero.")
    return weights


def trivial_partition(n_samples: int, n_clusters: int) -> NDArray[np.int32] | None:
    """Return the partition into one cluster or into single samples, else None."""
    if not isinstance(n_clusters, Integral) or not 1 <= n_clusters <= n_samples:
        raise ValueError(
            f"n_clusters={n_clusters!r} must be a whole number from 1 to the "
            f"{n_samples} samples."
        )
    if n_clusters == 1:
        return np.zeros(n_samples, dtype=np.int32)
    if n_clusters == n_samples:
        return np.arange(n_samples, dtype=np.int32)
    return None


def require_for_consensus(ensemble: Ensemble, n_bytes: int) -> None:
    """Raise if a consensus function cannot have the bytes that it needs."""
    purpose = f"the consensus of {len(ensemble)} base clusterings of "
    what = f"{purpose}{ensemble.n_samples} samples"
    require_memory(n_bytes, what, "make a smaller ensemble")


def number_clusters(
    executor: Executor, labels: list[Any], n_clusters: int
) -> list[Any]:
    """Number clusters of blocks by their first samples; warn if some are missing."""
    numbered, n_found = number_blocks(executor, labels)
    if n_found < n_clusters:
        warnings.warn(
            f"{n_found} clusters are returned instead of {n_clusters}: the base "
            "clusterings keep no more groups of samples apart, or some clusters of the "
            "consensus are empty.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return numbered


def number_by_appearance(labels: Labels, n_clusters: int) -> NDArray[np.int32]:
    """Number clusters in the order of their first samples; warn if some are missing."""
    (numbered,) = number_clusters(LocalExecutor(), [labels], n_clusters)
    return np.asarray(numbered)


def gram_on_device(
    shape: tuple[int, ...], n_vectors: int, device: str
) -> Callable[..., Any] | None:
    """Return what makes of a matrix P the operator of :math:`P P^T` on a device.

    None where this process does as well: of small matrices, and of those that do not
    fit the device.
    """
    if device == "cpu" or shape[0] <= HOST_ORDER or is_dense(shape[0], n_vectors):
        return None
    from mdec.engines import tensors

    place = tensors.find_device(device)
    if not tensors.fits(8 * shape[0] * shape[1], place):
        return None
    return partial(tensors.GramOperator, device=place)


def match_clusters(
    a: NDArray[np.str_], b: NDArray[np.str_]
) -> tuple[list[str], list[str], NDArray[np.int64]]:
    """Count samples by their clusters, with matched clusters on the diagonal.

    Of two clusterings; returns the clusters of `a` in their order, numbers by size,
    those of `b` in the order that matches, and the samples in both.

    Examples
    --------
    >>> rows, columns, counts = match_clusters(
    ...     np.array(["0", "0", "1"]), np.array(["y", "y", "x"])
    ... )
    >>> rows, columns, counts.tolist()
    (['0', '1'], ['y', 'x'], [[2, 0], [0, 1]])
    """
    rows, columns = (sorted(set(each.tolist()), key=_by_number) for each in (a, b))
    first, second = (dict(zip(n, range(len(n)), strict=True)) for n in (rows, columns))
    counts = contingency_matrix([first[n] for n in a], [second[n] for n in b])
    matched, places = linear_sum_assignment(counts, maximize=True)
    order = places[np.argsort(matched)].tolist()
    order += [j for j in range(len(columns)) if j not in order]
    return rows, [columns[j] for j in order], counts[:, order]


def _by_number(name: str) -> tuple[bool, float, str]:
    whole = name.lstrip("-").isdecimal()
    return (not whole, float(name) if whole else 0.0, name)
