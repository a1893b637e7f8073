"""The steps of preparing values, and which of them suit each kind of values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh
from scipy.linalg.blas import dsyrk
from scipy.ndimage import median_filter, uniform_filter1d
from sklearn.utils import gen_batches

from mdec._support.arrays import Array
from mdec._support.memory import require_memory
from mdec._support.parallel import single_threaded_blas
from mdec.numerics.digits import nine_digits

# Genes that fewer cells express tell nothing of groups of cells.
MIN_CELLS = 3

# Genes of about the same mean, by which the variance of one is judged.
_TREND_GENES = 201

# Of more cells principal components stand for the genes, as before the neighbour graphs
# of the field: every pair of cells is measured by a fortieth of the numbers.
MANY_CELLS, N_COMPONENTS = 4000, 50

# Binary digits of loadings, and of the largest value. Sums of their products are exact,
# so that no processor rounds them in a way of its own.
_DIGITS = 20

# Numbers of a table, zeros included, that are prepared at a time.
_BLOCK = 2**20


def stabilize(X: Array, power: float) -> Array:
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
    >>> stabilize(np.array([-4.0, 0.0, 9.0]), 0.5)
    array([-2.,  0.,  3.])
    >>> stabilize(np.array([-1.0, 0.0, 7.0]), 0.0)
    array([-1.,  0.,  3.])
    """
    if power == 1.0:
        return X
    sizes = np.abs(X)
    return np.copysign(sizes**power if power else np.log1p(sizes) / math.log(2.0), X)


def fill_zeros(X: Any) -> Array:
    """Return an array of rows that may be sparse.

    Examples
    --------
    >>> fill_zeros(sparse.csr_array(np.eye(2)))
    array([[1., 0.],
           [0., 1.]])
    """
    return X.toarray() if sparse.issparse(X) else X


def sample_totals(X: Array | sparse.csr_array) -> NDArray[np.float64]:
    """Return the sum of each sample, such as the library size of counts.

    Zeros are passed over, so that sparse rows have the totals of the same rows filled.

    Examples
    --------
    >>> sample_totals(np.array([[1.0, 2.0], [0.0, 0.0]]))
    array([3., 0.])
    """
    ones = np.ones(X.shape[1])
    return np.concatenate([sparse.csr_array(X[rows]) @ ones for rows in _blocks(X)])


def _blocks(X: Array | sparse.csr_array) -> Iterator[slice]:
    """Yield a few rows at a time, zeros of sparse ones counted."""
    yield from gen_batches(X.shape[0], max(1, _BLOCK // X.shape[1]))


def relative_sizes(X: Array, axis: int) -> tuple[Array, NDArray[np.float64]]:
    """Return values over the largest of their axis, and that.

    So squares neither overflow nor vanish.
    """
    sizes = np.abs(X).max(axis=axis, keepdims=True).astype(np.float64)
    sizes[sizes == 0.0] = 1.0
    return X / sizes, sizes


def total_factors(
    X: Array | sparse.csr_array, total: float | None
) -> NDArray[np.float64]:
    """Return what each sample is multiplied by to get a sum.

    It is 1 for samples without a positive sum, and for all if `total` is None.

    Examples
    --------
    >>> total_factors(np.array([[1.0, 3.0], [0.0, 0.0]]), 8.0)
    array([2., 1.])
    """
    if total is None:
        return np.ones(X.shape[0])
    totals = sample_totals(X)
    return np.divide(total, totals, out=np.ones_like(totals), where=totals > 0.0)


def center_samples(X: Array) -> Array:
    """Subtract each sample's mean.

    Examples
    --------
    >>> center_samples(np.array([[1.0, 3.0], [5.0, 5.0]]))
    array([[-1.,  1.],
           [ 0.,  0.]])
    """
    means = X.mean(axis=1, keepdims=True, dtype=np.float64)
    return (X - means).astype(X.dtype, copy=False)


def scale_to_spread(X: Array) -> Array:
    """Divide each sample by its standard deviation.

    Samples of equal values have none and are left as they are.

    Examples
    --------
    >>> scale_to_spread(np.array([[4.0, 8.0], [5.0, 5.0]]))
    array([[2., 4.],
           [5., 5.]])
    """
    relative, _ = relative_sizes(X, 1)
    spreads = relative.std(axis=1, keepdims=True)
    # Equal values may differ from their mean by rounding.
    some = spreads > 1e-12
    return np.where(some, relative / np.where(some, spreads, 1.0), X).astype(X.dtype)


def variance_order(X: Array) -> NDArray[np.int64]:
    """Return the features from the most to the least variable, equal ones in order.

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


def excess_variances(
    X: Array | sparse.csr_array, total: float | None, power: float
) -> NDArray[np.float64]:
    """Return how much more each gene varies than genes of about its mean do.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Expression of genes in cells, not negative.
    total, power : float
        The sum that samples are scaled to and the power, after which genes vary.

    Returns
    -------
    ndarray of shape (n_features,)
        Variance less the running median of the variances in the order of the means;
        minus infinity for genes that fewer than `MIN_CELLS` samples express.

    Notes
    -----
    The variance of counts grows with their mean and falls again where the logarithm
    holds it down, so that the most variable genes of all would be those of one level.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0, 4.0], [1.0, 2.0, 2.0], [0.0, 3.0, 6.0]])
    >>> excess_variances(X, None, 1.0).round(3)
    array([  -inf, -0.028,  0.028])
    """
    n_samples, n_features = X.shape
    factors = total_factors(X, total)
    # Relative to the largest value, so that squares neither overflow nor vanish.
    largest = float(max(X.max(), -X.min())) if power == 1.0 else 1.0
    sums, squares = np.zeros(n_features), np.zeros(n_features)
    n_expressing = np.zeros(n_features, dtype=np.int64)
    for rows in _blocks(X):
        block = sparse.csr_array(X[rows])
        scales = np.repeat(factors[rows], np.diff(block.indptr))
        values = stabilize(block.data * scales, power) / (largest or 1.0)
        sums += np.bincount(block.indices, values, n_features)
        squares += np.bincount(block.indices, values**2, n_features)
        n_expressing += np.bincount(block.indices[values != 0.0], minlength=n_features)
    used = np.flatnonzero(n_expressing >= min(MIN_CELLS, n_samples))
    excess = np.full(n_features, -np.inf)
    if not used.size:
        return excess
    means = sums[used] / n_samples
    # Rounded, so that no processor puts equal genes in an order of its own.
    variances = nine_digits(np.maximum(squares[used] / n_samples - means**2, 0.0))
    order = np.argsort(nine_digits(means), kind="stable")
    trend = median_filter(variances[order], size=_TREND_GENES, mode="nearest")
    smooth = uniform_filter1d(trend, _TREND_GENES, mode="nearest")
    excess[used[order]] = nine_digits(variances[order] - smooth)
    return excess


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


@dataclass(frozen=True)
class Recipe:
    """What suits one kind of values; docs/quality.md says how it was found.

    Attributes
    ----------
    power, share : float
        Of the transform, see `stabilize`, and of the most variable features, which are
        kept.
    drawn_powers, drawn_shares : tuple of float
        Powers that the members of a diversified ensemble draw from; one that is listed
        twice is drawn twice as often. Least and largest share that they draw.
    totals, center : bool
        Samples are scaled to the same sum first; each one's mean is subtracted last.
    n_top : int or None
        Number of highly variable features that is kept, of those that enough samples
        express, see `excess_variances`; None keeps the share.
    """

    power: float = 1.0
    share: float = 1.0
    drawn_powers: tuple[float, ...] = (1.0,)
    drawn_shares: tuple[float, float] = (0.1, 1.0)
    totals: bool = False
    center: bool = False
    n_top: int | None = None


RECIPES = {
    "counts": Recipe(0.0, drawn_powers=(0.0,), totals=True, n_top=2000),
    "log-counts": Recipe(n_top=2000),
    "abundances": Recipe(0.0, drawn_powers=(0.0,), totals=True, n_top=2000),
    "log-abundances": Recipe(n_top=2000),
    "intensities": Recipe(
        0.75, drawn_powers=(1.0, 1.0, 0.75, 0.35), drawn_shares=(1.0, 1.0)
    ),
    "logged": Recipe(share=0.3, center=True),
    "ratios": Recipe(0.0, drawn_powers=(0.0,)),
    "log-ratios": Recipe(share=0.2, center=True),
    "other": Recipe(),
}

# What values can be; "other" is left alone.
KINDS = tuple(RECIPES)

# Kinds of which highly variable genes are chosen, as of single cells.
CELL_KINDS = tuple(kind for kind, each in RECIPES.items() if each.n_top is not None)

# Kinds of which the members of a diversified ensemble draw the power.
DRAWN = tuple(kind for kind, each in RECIPES.items() if len(each.drawn_powers) > 1)


@dataclass(frozen=True, eq=False)
class Preparation:
    """What is learnt from training samples for one power of the transform.

    Attributes
    ----------
    power, total, center : float, float or None, bool
        Of the transform, the sum that samples are scaled to, and whether each one's
        mean is subtracted.
    order : ndarray of shape (n_features,)
        Features from the most to the least variable, after all this.
    n_expressed : int or None
        How many of them enough samples express, which come first; None for all.
    """

    power: float
    total: float | None
    center: bool
    order: NDArray[np.int64]
    n_expressed: int | None = None


@dataclass(frozen=True)
class Draw:
    """The preparation of one member of a diversified ensemble.

    Its power of the transform and its share of the most variable features.
    """

    power: float
    share: float


def learn_preparation(
    X: Array | sparse.csr_array, kind: str, power: float
) -> Preparation:
    """Learn from training samples what preparing others takes.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Training samples.
    kind : str
        What the values are, see `KINDS`.
    power : float
        Of the transform.

    Returns
    -------
    Preparation
        Serves every member that draws this power.

    Examples
    --------
    >>> X = np.array([[1.0, 4.0, 9.0], [1.0, 16.0, 9.0]])
    >>> learn_preparation(X, "intensities", 0.5).order
    array([1, 0, 2])
    """
    recipe = RECIPES[kind]
    total = float(np.median(sample_totals(X))) if recipe.totals else None
    everything = np.arange(X.shape[1])
    learnt = Preparation(power, total, recipe.center, everything)
    if recipe.n_top is not None:
        excess = excess_variances(X, total, power)
        order = np.argsort(-excess, kind="stable")
        return replace(learnt, order=order, n_expressed=int(np.isfinite(excess).sum()))
    return replace(learnt, order=variance_order(prepare(X, learnt, everything)))


def prepare(
    X: Array | sparse.csr_array, preparation: Preparation, features: NDArray[np.int64]
) -> Array:
    """Return some features of samples, prepared.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Samples with all their features, those of training or new ones.
    preparation : Preparation
        What was learnt from the training samples.
    features : ndarray
        Numbers of the features wanted.

    Returns
    -------
    ndarray of shape (n_samples, len(features))
        Each sample's values depend on that sample alone.

    Examples
    --------
    >>> X = np.array([[1.0, 4.0, 9.0], [1.0, 16.0, 9.0]])
    >>> learnt = learn_preparation(X, "intensities", 0.5)
    >>> prepare(X, learnt, learnt.order[:1])
    array([[2.],
           [4.]])
    """
    if preparation.center:
        return center_samples(stabilize(fill_zeros(X), preparation.power))[:, features]
    if preparation.total is None and preparation.power == 1.0:
        return fill_zeros(X[:, features])
    factors = total_factors(X, preparation.total)[:, None]
    prepared = np.empty((X.shape[0], len(features)), dtype=X.dtype)
    for rows in _blocks(X):
        part = fill_zeros(X[rows][:, features])
        if preparation.total is not None:
            part = (part * factors[rows]).astype(X.dtype, copy=False)
        prepared[rows] = stabilize(part, preparation.power)
    return prepared


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components of training samples, which stand for their features.

    Attributes
    ----------
    means : ndarray of shape (n_features,)
        What is subtracted from each feature.
    loadings : ndarray of shape (n_features, n_components)
        What each feature adds to the components, the first of which vary most.
    exponent : int
        The power of two above all differences from the means.
    """

    means: Array
    loadings: Array
    exponent: int

    @property
    def names(self) -> list[str]:
        """What the components are called."""
        return [f"component {j + 1}" for j in range(self.loadings.shape[1])]

    @classmethod
    def of(cls, X: Array, n_components: int) -> Self:
        """Learn so many at most from the prepared features of training samples.

        Those that vary by rounding alone are left out. The feature with the largest
        loading on a component adds to it.
        """
        n_features = X.shape[1]
        require_memory(
            8 * n_features**2,
            f"the principal components of {n_features} features",
            "keep fewer of them, or set n_components=0",
        )
        means = nine_digits(X.mean(axis=0, dtype=np.float64))
        ends = X.max(axis=0) - means, X.min(axis=0) - means
        exponent = int(np.frexp(np.abs(ends).max())[1])
        products = np.zeros((n_features, n_features), order="F")
        last = max(0, n_features - n_components), n_features - 1
        with single_threaded_blas():
            for rows in _blocks(X):
                # So small that squares neither overflow nor vanish.
                part = np.ldexp(X[rows] - means, -exponent)
                products = dsyrk(1.0, part.T, 1.0, products, overwrite_c=True)
            found = eigh(products, lower=False, overwrite_a=True, subset_by_index=last)
        variances, loadings = (each[..., ::-1] for each in found)
        loadings = loadings[:, variances >= 1e-9 * variances[0]]
        largest = np.argmax(nine_digits(np.abs(loadings)), axis=0)
        loadings = loadings * np.sign(loadings[largest, np.arange(len(largest))])
        rounded = np.ldexp(np.rint(np.ldexp(loadings, _DIGITS)), -_DIGITS)
        return cls(means, rounded, exponent)

    def apply(self, X: Array) -> Array:
        """Return the components of samples, each of which depends on itself alone."""
        places = _DIGITS - self.exponent
        components = np.empty((X.shape[0], self.loadings.shape[1]), dtype=X.dtype)
        for rows in _blocks(X):
            whole = np.rint(np.ldexp(X[rows] - self.means, places))
            components[rows] = np.ldexp(whole @ self.loadings, -places)
        return components


@dataclass(frozen=True, eq=False)
class Versions:
    """The data as members see them: as they are, or once for each drawn power.

    Attributes
    ----------
    plain : ndarray of shape (n_samples, n_features)
        As they are.
    learnt, made : dict of Preparation, dict of ndarray
        What was learnt from training samples, and the data prepared, by power; empty
        without preparation.
    about_mean : ndarray of shape (n_samples, n_features) or None
        The data as they are, each feature about its mean, where the squares of all
        fit into float64: members need not see to either again.
    """

    plain: Array
    learnt: dict[float, Preparation] = field(default_factory=dict)
    made: dict[float, Array] = field(default_factory=dict)
    about_mean: Array | None = None

    @classmethod
    def of(
        cls, X: Array, kind: str | None, learnt: dict[float, Preparation] | None = None
    ) -> Self:
        """Prepare data of a kind once for each power that members may draw.

        None is no preparation. Without what training samples taught, it is learnt from
        these.
        """
        if kind is None:
            return cls(X)
        if learnt is None:
            powers = RECIPES[kind].drawn_powers
            learnt = {power: learn_preparation(X, kind, power) for power in powers}
        whole = np.arange(X.shape[1])
        made = {power: prepare(X, each, whole) for power, each in learnt.items()}
        return cls(X, learnt, made)

    def select(self, draw: Draw | None) -> tuple[Array, NDArray[np.int64] | None]:
        """Return the data that a member sees, and the features it may draw from."""
        if draw is None:
            return self.plain, None
        order = self.learnt[draw.power].order
        return self.made[draw.power], leading_features(order, draw.share)


def draw_preparation(kind: str, rng: np.random.Generator) -> Draw:
    """Draw the preparation of one member.

    A power that suits the kind of values, and a share of the features, each doubling of
    it as likely as another.

    Examples
    --------
    >>> draw_preparation("log-ratios", np.random.default_rng(0)).power
    1.0
    """
    powers, (low, high) = RECIPES[kind].drawn_powers, RECIPES[kind].drawn_shares
    power = powers[rng.integers(len(powers))]
    return Draw(power, low * (high / low) ** rng.random())
