"""The steps, one function each: power, sums, centring, spread, order of features."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def stabilized(X: Array, power: float) -> Array:
    r"""Return values whose variance grows less with their mean.

    Parameters
    ----------
    X : ndarray
        Values.
    power : float
        1 leaves them as they are, 1/2 is the square root, 0 is :math:`\log_2(1 + x)`.

    Returns
    -------
    ndarray
        Of the same shape and precision.

    Notes
    -----
    Zero stays zero. A negative value, as background subtraction leaves it, becomes
    minus what its size becomes: order and sign are kept, and noise around zero stays
    noise around zero.

    Examples
    --------
    >>> stabilized(np.array([-4.0, 0.0, 9.0]), 0.5)
    array([-2.,  0.,  3.])
    >>> stabilized(np.array([-1.0, 0.0, 7.0]), 0.0)
    array([-1.,  0.,  3.])
    """
    if power == 1.0:
        return X
    sizes = np.abs(X)
    return np.copysign(sizes**power if power else np.log1p(sizes) / math.log(2.0), X)


def sample_totals(X: Array) -> NDArray[np.float64]:
    """Return the sum of each sample, such as the library size of counts.

    Examples
    --------
    >>> sample_totals(np.array([[1.0, 2.0], [0.0, 0.0]]))
    array([3., 0.])
    """
    return X.sum(axis=1, dtype=np.float64)


def scaled_to_total(X: Array, total: float) -> Array:
    """Scale each sample to the same sum.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Counts.
    total : float
        The sum; that of a typical training sample keeps the values' size.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Samples without a positive sum are left as they are.

    Examples
    --------
    >>> scaled_to_total(np.array([[1.0, 3.0], [0.0, 0.0]]), 8.0)
    array([[2., 6.],
           [0., 0.]])
    """
    totals = sample_totals(X)
    factors = np.divide(total, totals, out=np.ones_like(totals), where=totals > 0.0)
    return (X * factors[:, None]).astype(X.dtype, copy=False)


def centered(X: Array) -> Array:
    """Subtract each sample's mean.

    Examples
    --------
    >>> centered(np.array([[1.0, 3.0], [5.0, 5.0]]))
    array([[-1.,  1.],
           [ 0.,  0.]])
    """
    means = X.mean(axis=1, keepdims=True, dtype=np.float64)
    return (X - means).astype(X.dtype, copy=False)


def scaled_to_spread(X: Array) -> Array:
    """Divide each sample by its standard deviation.

    Samples of equal values have none and are left as they are.

    Examples
    --------
    >>> scaled_to_spread(np.array([[4.0, 8.0], [5.0, 5.0]]))
    array([[2., 4.],
           [5., 5.]])
    """
    # Relative to the largest value, so that squares neither overflow nor vanish.
    sizes = np.abs(X).max(axis=1, keepdims=True).astype(np.float64)
    sizes[sizes == 0.0] = 1.0
    relative = X / sizes
    spreads = relative.std(axis=1, keepdims=True)
    # Equal values may differ from their mean by rounding.
    some = spreads > 1e-12
    return np.where(some, relative / np.where(some, spreads, 1.0), X).astype(X.dtype)


def variance_order(X: Array) -> NDArray[np.int64]:
    """Return the features from the most to the least variable.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Values.

    Returns
    -------
    ndarray of shape (n_features,)
        Feature numbers; equal ones in their order.

    Examples
    --------
    >>> variance_order(np.array([[0.0, 0.0, 1.0], [0.0, 2.0, 2.0]]))
    array([1, 2, 0])
    """
    return np.argsort(-feature_spreads(X), kind="stable")


def feature_spreads(X: Array) -> NDArray[np.float64]:
    """Return the features' standard deviations, relative to the largest value of all.

    Examples
    --------
    >>> feature_spreads(np.array([[0.0, 2.0], [1.0, 2.0]]))
    array([0.25, 0.  ])
    """
    return np.std(X / (float(np.abs(X).max()) or 1.0), axis=0, dtype=np.float64)


def leading_features(order: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Return the leading share of ordered features, at least one, sorted by number.

    Examples
    --------
    >>> leading_features(np.array([3, 0, 2, 1]), 0.5)
    array([0, 3])
    """
    # Not one more where the product was rounded up.
    size = max(1, math.ceil(share * order.size - 1e-9))
    return np.sort(order[:size])
