"""Powers of two that keep squares within floating point.

A power of two changes no digit of a number. So data of any scale can be brought to one
at which squared differences neither overflow nor vanish, and what is computed there is
the same up to one factor.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mdec._support.arrays import Array

# Numbers of these magnitudes have squared differences within float64, and room beside
# them for sums and ratios.
_SAFE = 400

# The largest that a number may become, as a power of two.
_TOP = 490

# The bits of a float64 but its sign, and numbers that are looked at together.
_MAGNITUDE = np.uint64(2**63 - 1)
_AT_ONCE = 2**16

TOO_WIDE = (
    "the values of X span more magnitudes than float64 can square; drop the outliers, "
    "or take logarithms or ranks of the values."
)


def at_safe_scale(X: Array) -> Array:
    """Return X, multiplied by a power of two if squares would leave float64.

    Parameters
    ----------
    X : ndarray
        Finite numbers.

    Returns
    -------
    ndarray
        X itself if its numbers lie between 2 ** -400 and 2 ** 400; float32 that is
        larger than 2 ** 100 in float64. Else constant columns become zero.

    Examples
    --------
    >>> X = np.array([1.0, 3.0])
    >>> at_safe_scale(X) is X
    True
    >>> bool(at_safe_scale(1e300 * X).max() < 10.0)
    True
    """
    if X.dtype != np.float64:
        # Their differences are made in float32, and squared in float64.
        extreme = largest_magnitude(X) > 2.0**100
        return X.astype(np.float64) if extreme else X
    if has_safe_scale(X):
        return X
    if X.ndim == 2 and len(X) > 1:
        # What all rows have in common makes no difference between them.
        X = np.where(X.min(axis=0) == X.max(axis=0), 0.0, X)
    least, greatest = _exponents(X)
    power = min(-(least + greatest) // 2, _TOP - greatest)
    if least + power < np.finfo(np.float64).minexp:
        raise ValueError(TOO_WIDE)
    return np.ldexp(X, power)


def has_safe_scale(X: Array) -> bool:
    """Tell whether `at_safe_scale` leaves float64 numbers, and any of them, alone.

    Examples
    --------
    >>> has_safe_scale(np.array([1.0, 0.0])), has_safe_scale(np.array([1.0, 1e-200]))
    (True, False)
    """
    least, greatest = _exponents(X)
    return greatest <= _SAFE and least >= -_SAFE


def largest_magnitude(X: Any) -> float:
    """Return the largest absolute value of an array or of sparse rows.

    Examples
    --------
    >>> largest_magnitude(np.array([[2.0, -3.0]]))
    3.0
    """
    return max(float(X.max()), -float(X.min()))


def _exponents(X: Array) -> tuple[int, int]:
    """Return the least and greatest binary exponents of float64 numbers but zeros.

    Of zeros alone both are 0. A number x has the exponent e if 2 ** (e - 1) <= |x| <
    2 ** e; all subnormal numbers count as the least of them.
    """
    bits = np.ravel(X, order="K").view(np.uint64)
    least, greatest = _MAGNITUDE, np.uint64(0)
    for start in range(0, bits.size, _AT_ONCE):
        part = bits[start : start + _AT_ONCE] & _MAGNITUDE
        greatest = max(greatest, part.max())
        # Zero becomes the largest number of all.
        part -= np.uint64(1)
        least = min(least, part.min())
    if greatest == 0:
        return 0, 0
    low, high = (int(least) + 1) >> 52, int(greatest) >> 52
    return (low or -52) - 1022, (high or -51) - 1022


def to_power(largest: float, exponent: int) -> float:
    """Return the power of two that brings a number just below ``2 ** exponent``.

    Examples
    --------
    >>> 3.0 * to_power(3.0, 0)
    0.75
    >>> to_power(0.0, 10)
    1.0
    """
    if largest == 0.0:
        return 1.0
    # Beyond these the power itself is no float64.
    return math.ldexp(1.0, max(-1000, min(exponent - math.frexp(largest)[1], 1000)))


def rows_at_unit_scale(rows: Array) -> Array:
    """Return rows, each multiplied by a power of two if its squares need that.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        Finite numbers.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        The rows themselves if no square would leave their precision; else in float64,
        those of extreme scale with their largest magnitude at one half or above.

    Examples
    --------
    >>> rows_at_unit_scale(np.array([[3.0, 4.0], [2.0**-1000, 2.0**-1001]]))
    array([[3.  , 4.  ],
           [0.5 , 0.25]])
    """
    largest = np.maximum(rows.max(axis=1), -rows.min(axis=1)).astype(np.float64)
    safe = 2.0 ** (0.4 * np.finfo(rows.dtype).maxexp)
    extreme = (largest > safe) | ((largest < 1.0 / safe) & (largest > 0.0))
    if not extreme.any():
        return rows
    exponent = np.where(extreme, -np.frexp(largest)[1], 0)
    return np.ldexp(rows.astype(np.float64), exponent[:, None])
