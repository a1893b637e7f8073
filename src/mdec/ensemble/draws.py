"""The random draws of a member: its features, and its kernel with k and mu."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

# Names of kernels, sorted, each with its share of the members.
Shares = tuple[tuple[str, float], ...]


def subspace_size(n_features: int, sampling_ratio: float) -> int:
    r"""Return the number of features to draw, :math:`\lfloor \tau D + 1/2 \rfloor`."""
    return math.floor(sampling_ratio * n_features + 0.5)


def draw_subspace(
    n_features: int, sampling_ratio: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    r"""Draw the features of a member, without replacement.

    Parameters
    ----------
    n_features : int
        D.
    sampling_ratio : float
        :math:`\tau`, the share of the features to draw.
    rng : Generator
        Source of the draw.

    Returns
    -------
    ndarray
        :math:`\lfloor \tau D + 1/2 \rfloor` sorted feature numbers.

    Examples
    --------
    >>> draw_subspace(5, 0.5, np.random.default_rng(0)).size
    3
    """
    size = subspace_size(n_features, sampling_ratio)
    return np.sort(rng.choice(n_features, size=size, replace=False))


def draw_kernel_params(
    n_samples: int,
    n_neighbors_range: tuple[int, int],
    mu_range: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[int, float]:
    r"""Draw the two parameters of a member's kernel, Eqs. 4 and 5.

    Parameters
    ----------
    n_samples : int
        Caps the number of neighbours at ``n_samples - 1``.
    n_neighbors_range : tuple of int
        Least and greatest k, both included.
    mu_range : tuple of float
        Interval of the kernel's width.
    rng : Generator
        Source of the draws.

    Returns
    -------
    k : int
        Number of neighbours.
    mu : float
        Width.

    Notes
    -----
    :math:`k` is uniform on :math:`\{k_{min}, ..., k_{max}\}` and :math:`\mu` on
    :math:`[\mu_{min}, \mu_{max}]`.
    """
    low, high = (min(k, n_samples - 1) for k in n_neighbors_range)
    n_neighbors = int(rng.integers(low, high, endpoint=True))
    return n_neighbors, float(rng.uniform(*mu_range))


def draw_kernel(shares: Shares, rng: np.random.Generator) -> str:
    """Draw the kernel of a member, each as often as its share says.

    Examples
    --------
    >>> draw_kernel((("cosine", 0.5), ("spearman", 0.5)), np.random.default_rng(0))
    'spearman'
    """
    below = np.cumsum([share for _, share in shares])
    # Rounding may leave the last of the sums a little below one.
    place = int(np.searchsorted(below[:-1], rng.random(), side="right"))
    return shares[place][0]
