"""The similarity kernels: Eqs. 1 to 5 and the plain similarities of the ablation.

The formulas take arrays of NumPy or PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import rankdata

from mdec._support.arrays import Array, namespace
from mdec.base.copies import CopiesError
from mdec.ensemble.draws import KERNELS as KERNELS
from mdec.ensemble.draws import LEAST_FEATURES
from mdec.numerics.magnitude import rows_at_unit_scale
from mdec.numerics.sparse_rows import unit_sparse_rows

# Copies of a sample are at distance zero; without a floor their scale would be zero
# and their similarity infinite.
RELATIVE_FLOOR = 1e-6

# Units in the last place up to which a product of unit rows may be all rounding.
_ROUNDINGS = 64.0


def mean_neighbor_distance(means: Any, floor: float = RELATIVE_FLOOR) -> Any:
    r"""Return the neighbour distance of each sample, Eq. 2, above zero.

    Parameters
    ----------
    means : ndarray of shape (n_samples,)
        Mean distance of each sample to its k nearest others.
    floor : float
        What zero becomes, as a share of the median of the positive means; the least
        positive mean if that is less.

    Returns
    -------
    ndarray of shape (n_samples,)
        :math:`\rho_k(x_i)`.

    Notes
    -----
    :math:`\rho_k(x_i) = \frac{1}{k} \sum_{x_j \in KNN(x_i)} d(x_i, x_j)`. The floor
    acts only where a sample has k copies.

    Examples
    --------
    >>> mean_neighbor_distance(np.array([0.0, 2.0, 4.0]))
    array([3.e-06, 2.e+00, 4.e+00])
    >>> mean_neighbor_distance(np.array([0.0, 1e-9, 2.0, 4.0]))
    array([1.e-09, 1.e-09, 2.e+00, 4.e+00])
    """
    positive = means[means > 0.0]
    if len(positive) == 0:
        raise CopiesError(
            "the nearest neighbours of every sample are copies of it, so no distance "
            "gives a scale; leave copies out."
        )
    if len(positive) == len(means):
        return means
    xp = namespace(means)
    # Of an even number PyTorch takes the lower of the two in the middle.
    median = 0.5 * (xp.median(positive) - xp.median(-positive))
    return xp.maximum(means, xp.minimum(floor * median, positive.min()))


def as_kernel_takes_them(squared: Any, kernel: str) -> Any:
    """Return squared distances as a scaled kernel takes them: roots for Eq. 1.

    Examples
    --------
    >>> as_kernel_takes_them(np.array([4.0]), "scaled_exponential")
    array([2.])
    """
    if kernel != "scaled_exponential":
        return squared
    return namespace(squared).sqrt(squared)


def scaling_term(distance: Any, rho_i: Any, rho_j: Any) -> Any:
    r"""Return the scale of each pair, Eq. 3.

    Parameters
    ----------
    distance : ndarray of shape (n_pairs,)
        Distances.
    rho_i, rho_j : ndarray of shape (n_pairs,)
        Neighbour distances of the two ends.

    Returns
    -------
    ndarray of shape (n_pairs,)
        :math:`\varepsilon_{ij}`.

    Notes
    -----
    :math:`\varepsilon_{ij} = (\rho_k(x_i) + \rho_k(x_j) + d(x_i, x_j)) / 3`.

    Examples
    --------
    >>> float(scaling_term(1.0, 2.0, 3.0))
    2.0
    """
    return (rho_i + rho_j + distance) / 3.0


def scaled_exponential_similarity(distance: Any, scale: Any, mu: float) -> Any:
    r"""Return the similarity of Eq. 1 as printed.

    Parameters
    ----------
    distance : ndarray of shape (n_pairs,)
        Distances.
    scale : ndarray of shape (n_pairs,)
        Scale of each pair, from `scaling_term`.
    mu : float
        Width of the kernel.

    Returns
    -------
    ndarray of shape (n_pairs,)
        In (0, 1].

    Notes
    -----
    :math:`\varphi(x_i, x_j) = \exp(-d_{ij} / (\mu \varepsilon_{ij}))` with the
    Euclidean distance.
    """
    return namespace(distance).exp(-distance / (mu * scale))


def scaled_gaussian_similarity(distance: Any, scale: Any, mu: float) -> Any:
    r"""Return the similarity that made the published tables.

    Parameters
    ----------
    distance : ndarray of shape (n_pairs,)
        Squared distances.
    scale : ndarray of shape (n_pairs,)
        Of `scaling_term`.
    mu : float
        Width of the kernel.

    Returns
    -------
    ndarray of shape (n_pairs,)
        Positive similarities, without an upper bound.

    Notes
    -----
    :math:`W_{ij} = \mathcal{N}(D_{ij}; 0, \mu \varepsilon_{ij})`, the normal density
    of the *squared* distance :math:`D`.
    """
    width = mu * scale
    exponent = -0.5 * (distance / width) ** 2
    return namespace(distance).exp(exponent) / (math.sqrt(2.0 * math.pi) * width)


SIMILARITY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "scaled_gaussian": scaled_gaussian_similarity,
    "scaled_exponential": scaled_exponential_similarity,
}
ANGULAR = tuple(LEAST_FEATURES)


def scaled_similarity(
    kernel: str, distance: Any, rho_i: Any, rho_j: Any, mu: Any
) -> Any:
    """Return the similarity of pairs by a scaled kernel, Eqs. 1 and 3."""
    return SIMILARITY[kernel](distance, scaling_term(distance, rho_i, rho_j), mu)


# The kernels that sparse rows stay sparse for.
SPARSE_KERNELS = (*SIMILARITY, "cosine")


def greatest_unseen_similarity(
    distance: Array, rho: Array, greatest_rho: Array, mu: float
) -> Array:
    r"""Bound the scaled Gaussian similarity of a sample to a sample not seen yet.

    Parameters
    ----------
    distance : ndarray
        What the squared distance to the unseen sample is at least.
    rho : ndarray
        Neighbour distance of the sample itself.
    greatest_rho : ndarray
        What the neighbour distance of the unseen sample is at most.
    mu : float
        Width.

    Returns
    -------
    ndarray
        A bound that decreases in `distance`.

    Notes
    -----
    The density :math:`e^{-(D/s)^2/2}/s` grows in the width s up to :math:`s = D`, so
    the widest scale below D gives the bound.
    """
    widest = mu * scaling_term(distance, rho, greatest_rho)
    width = np.where(distance > 0.0, np.minimum(widest, distance), widest)
    return scaled_gaussian_similarity(distance, width, 1.0)


def angular_coordinates(X: Array, kernel: str, *, fixed_width: bool = False) -> Array:
    """Map rows to unit length so that products are the named similarity.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows in a subspace.
    kernel : {"cosine", "correlation", "spearman"}
        Spearman ranks each row first, correlation and Spearman centre it.
    fixed_width : bool, default=False
        Whether the extra coordinate is there in any case, so that blocks of rows fit
        each other.

    Returns
    -------
    ndarray of shape (n_samples, n_coordinates)
        Rows of length one. Rows without a direction share an extra coordinate: they
        are alike to each other and to nothing else.

    Notes
    -----
    Two features correlate by 1 or -1 whatever they are, and one not at all. So data of
    fewer than three get further features that are zero in every sample: a profile is
    then one against that baseline, as it is for the cosine.

    Examples
    --------
    >>> angular_coordinates(np.array([[4.0, 3.0], [0.0, 0.0]]), "cosine")
    array([[0.8, 0.6, 0. ],
           [0. , 0. , 1. ]])
    """
    missing = LEAST_FEATURES[kernel] - X.shape[1]
    if kernel != "cosine" and missing > 0:
        X = np.pad(X, ((0, 0), (0, missing)))
    rows: Any = rankdata(X, axis=1) if kernel == "spearman" else rows_at_unit_scale(X)
    if kernel == "cosine":
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        lost = norms == 0.0
    else:
        # Rounding may leave a constant row a little beside its mean.
        lost = np.ptp(rows, axis=1, keepdims=True) == 0.0
        rows = np.where(lost, 0.0, rows - rows.mean(axis=1, keepdims=True))
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Array = rows / np.where(lost, 1.0, norms)
    return np.hstack([unit, lost]) if fixed_width or lost.any() else unit


def angular_similarity(squared: Any) -> Any:
    """Return the products of unit rows, given their squared distances.

    Notes
    -----
    A negative product counts as no bond, and so does one that rounding leaves of rows
    without anything in common.

    Examples
    --------
    >>> angular_similarity(np.array([0.0, 2.0, 4.0]))
    array([1., 0., 0.])
    """
    similarity = (1.0 - 0.5 * squared).clip(0.0)
    rounding = _ROUNDINGS * namespace(squared).finfo(squared.dtype).eps
    return similarity * (similarity > rounding)


def coordinates(X: Any, kernel: str, *, fixed_width: bool = False) -> Any:
    """Return rows of a subspace as a kernel looks at them; sparse ones stay so."""
    if sparse.issparse(X):
        return sparse_coordinates(X, kernel)
    if kernel not in ANGULAR:
        return X
    return angular_coordinates(X, kernel, fixed_width=fixed_width)


def require_sparse_kernel(kernel: str) -> None:
    """Raise one sentence for a kernel that would fill the zeros of sparse rows."""
    if kernel not in SPARSE_KERNELS:
        raise ValueError(
            f"kernel={kernel!r} would fill the zeros of sparse rows; use one of "
            f"{', '.join(SPARSE_KERNELS)}, or give X.toarray() if it fits in memory."
        )


def sparse_coordinates(X: sparse.csr_array, kernel: str) -> sparse.csr_array:
    """Return sparse rows of a subspace as a kernel looks at them, in float64.

    The cosine takes rows of unit length; those without a direction share an extra
    coordinate, as in `angular_coordinates`.

    Examples
    --------
    >>> X = sparse.csr_array([[3.0, 4.0], [0.0, 0.0]])
    >>> sparse_coordinates(X, "cosine").toarray()
    array([[0.6, 0.8, 0. ],
           [0. , 0. , 1. ]])
    """
    require_sparse_kernel(kernel)
    rows = X.astype(np.float64, copy=False)
    if kernel != "cosine":
        return rows
    unit, lost = unit_sparse_rows(rows)
    extra = sparse.csr_array(lost[:, None].astype(np.float64))
    return sparse.hstack([unit, extra], format="csr")
