"""Is there more than one cluster? The data beside draws of one cluster like them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, sparse, special, stats

from mdec._support.arrays import Array
from mdec._support.parallel import map_parallel, single_threaded_blas
from mdec._support.progress import Progress
from mdec._support.random import member_stream
from mdec.base import measure_pairs
from mdec.base.copies import CopiesError
from mdec.base.graphs import graph_from_distances
from mdec.base.kernels import KERNELS, coordinates
from mdec.base.pairs import PRECOMPUTED, Metric, Pairs
from mdec.ensemble.plan import Plan
from mdec.numerics.affinity import normalized_affinity
from mdec.numerics.magnitude import at_safe_scale
from mdec.numerics.neighbors import squared_distances
from mdec.preparation.recipes import DRAWN, RECIPES, learn_preparation, prepare

# Groups are firm where p lies below; with 39 draws that is none of them as clear, a
# chance of 1 in 40 for one cluster. They are looked at when there are so many.
NULL_LEVEL = 0.05
LOOKS = 12, 39

# Below the first a normal tail makes groups certain, however few the draws; above the
# second no more are made.
CERTAIN, HOPELESS = 1e-4, 0.5

# Samples that are compared: all up to the first, a quarter of more, at most the second;
# and the most features, values and eigenvalues.
FEW_SAMPLES, MOST_SAMPLES = 200, 500
MOST_FEATURES, MOST_VALUES = 1000, 65_000
MAX_TESTED = 12

# The graph that is compared: neighbours, at most a quarter of the samples, and width.
N_NEIGHBORS, MU = 10, 0.5

# A feature with fewer steps between its values has few values. Others look normal below
# a statistic of Jarque and Bera that one normal sample in twenty exceeds.
MANY_STEPS, NORMAL_BELOW = 15, 6.0

# Steps in which the correlations of features with few values are found.
TURNS = 4

# Numbers of clusters that "auto" compares.
MAX_CLUSTERS = 30
SAMPLES_PER_CLUSTER = 5

# Parts of the largest number that are rounding, what is divided by at least, and from
# where on excesses have a logarithm.
_ROUNDING, _TINY, _LEAST = 1e-9, 1e-12, 0.1


def default_numbers(n_samples: int) -> list[int]:
    """Return 2 to a fifth of the samples, at most 30.

    Examples
    --------
    >>> default_numbers(22)
    [2, 3, 4]
    """
    most = max(2, min(MAX_CLUSTERS, n_samples // SAMPLES_PER_CLUSTER))
    return list(range(2, most + 1))


def draw_samples(
    n_samples: int, most: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return all samples, or the most that are looked at."""
    if n_samples <= most:
        return np.arange(n_samples)
    return np.sort(rng.choice(n_samples, most, replace=False))


@dataclass(frozen=True)
class NullReference:
    """What shows groups, in the data and in draws of one cluster.

    Attributes
    ----------
    observed : ndarray of shape (n_values,)
        Of the data, see `measure_groups`.
    draws : ndarray of shape (n_draws, n_values)
        The same of draws that have one cluster.
    p_value : float
        Chance of groups at least as clear in one further draw.
    """

    observed: Array
    draws: Array
    p_value: float

    @property
    def is_firm(self) -> bool:
        """Whether the groups are clearer than chance makes them."""
        return self.p_value < NULL_LEVEL

    @property
    def words(self) -> str:
        """The p-value as far as the draws can tell it.

        Examples
        --------
        >>> draws = np.zeros((10, 1))
        >>> NullReference(np.ones(1), draws, 1 / 11).words
        'p at most 0.09, from 10 draws'
        >>> NullReference(np.ones(1), draws, 1e-9).words
        'p < 0.0001'
        """
        n_draws = len(self.draws)
        if self.p_value <= CERTAIN:
            return f"p < {CERTAIN:g}"
        if self.p_value * (n_draws + 1) < 1.5:
            return f"p at most {self.p_value:.1g}, from {n_draws} draws"
        return f"p = {self.p_value:.2g}"


@dataclass(frozen=True)
class Cloud:
    r"""One cluster whose features have the distributions and correlations of a table's.

    Attributes
    ----------
    scores : ndarray of shape (n_samples - 1, n_features)
        Normal scores of the features, in axes of the samples that leave out the mean,
        and before they are rounded to few values.
    center, spread : ndarray of shape (n_features,)
        Mean and standard deviation of each feature.
    values : ndarray of shape (n_samples, n_features)
        What the ranks of each feature stand for: its values, with one hump.
    is_normal, is_tied : ndarray of bool of shape (n_features,)
        Features that look normal, and those that have few values.
    kernel : str
        The kernel that compares samples.
    norms : ndarray of shape (n_samples,)
        In ascending order the squared distances of samples from their mean, which those
        of draws are brought to along their directions: those that differ in scale are
        no groups.
    lengths : ndarray of shape (n_pairs,) or None
        In ascending order the squared distances of pairs after that, with their ties
        and their largest value, where only these are known.

    Notes
    -----
    A Gaussian copula: a random rotation O of the samples that leaves the vector of ones
    in place keeps mean and covariance of the normal scores, makes every sample a
    mixture of all, and so loses the groups. For one cluster whose features are
    monotone functions of Gaussian ones, draws have the distribution of the data,
    whatever the number of features, their tails and their skewness.

    Normal scores of a feature that looks normal are its values. Others come from
    ranks, and their ranks become values again. Far apart groups part the values of a
    feature too. So the gaps between neighbouring values, from the middle of their
    narrowest half, are made to grow to either side, with least squares. Features with
    few values keep them in their very shares. See `undo_rounding` for their scores.
    """

    scores: Array
    center: Array
    spread: Array
    values: Array
    is_normal: NDArray[np.bool_]
    is_tied: NDArray[np.bool_]
    kernel: str
    norms: Array
    lengths: Array | None

    @classmethod
    def of(
        cls, X: Array, kernel: str = KERNELS[0], seed: int = 0, *, pairs: bool = False
    ) -> Cloud:
        """Take apart the scores and values of a table, or of `scale_pairs` of pairs."""
        n_samples, half = len(X), len(X) // 2
        values, center, spread = np.sort(X, axis=0), X.mean(axis=0), X.std(axis=0)
        gaps = np.diff(values, axis=0)
        scores = (X - center) / np.where(spread > 0.0, spread, 1.0)
        skewness, excess = (scores**3).mean(axis=0), (scores**4).mean(axis=0) - 3.0
        far = n_samples / 6.0 * (skewness**2 + excess**2 / 4.0)
        is_tied = (gaps > 0.0).sum(axis=0) < min(half, MANY_STEPS)
        is_normal = (far < NORMAL_BELOW) & ~is_tied
        other = stats.rankdata(X[:, ~is_normal], axis=0)
        other = special.ndtri((other - 0.5) / n_samples)
        other -= other.mean(axis=0)
        scores[:, ~is_normal] = other / np.maximum(other.std(axis=0), _TINY)
        widths = values[half:] - values[: n_samples - half]
        modes = np.clip(widths.argmin(axis=0) + half // 2, 1, n_samples - 2)
        fit = optimize.isotonic_regression
        for feature in np.flatnonzero(~is_tied & ~is_normal):
            mode, steps = modes[feature], gaps[:, feature]
            steps[:mode] = fit(steps[:mode], increasing=False).x
            steps[mode:] = fit(steps[mode:]).x
            values[1:, feature] = values[0, feature] + steps.cumsum()
        levels = np.sort(scores[:, is_tied], axis=0)
        scores = linalg.helmert(n_samples) @ scores
        if is_tied.any():
            scores = undo_rounding(scores, levels, is_tied, seed)
        products, lengths = _products_about_mean(X, kernel), None
        norms = np.sort(products.diagonal())
        if pairs:
            squared = _distances_at_norms(products, norms)
            lengths = np.sort(squared[np.triu_indices(n_samples, 1)])
        of_draws = scores, center, spread, values, is_normal, is_tied
        return cls(*of_draws, kernel, norms, lengths)

    def draw(self, rng: np.random.Generator) -> Array:
        """Rotate the scores at random, and make them values again."""
        last, scores = len(self.values) - 1, rotate(self.scores, rng)
        drawn = self.center + self.spread * scores
        few, other = self.is_tied, ~self.is_normal & ~self.is_tied
        ranks = (special.ndtr(scores[:, other]) * (last + 1)).astype(np.intp)
        ranks = np.minimum(ranks, last)
        drawn[:, other] = np.take_along_axis(self.values[:, other], ranks, axis=0)
        drawn[:, few] = give_by_rank(scores[:, few], self.values[:, few])
        return drawn


def rotate(scores: Array, rng: np.random.Generator) -> Array:
    """Return samples about a mean of zero that mix the rows of scores at random."""
    block = rng.standard_normal((len(scores) + 1, len(scores)))
    block -= block.mean(axis=0)
    vectors, triangle = np.linalg.qr(block)
    mixed: Array = (vectors * np.sign(np.diag(triangle))) @ scores
    return mixed


def give_by_rank(scores: Array, values: Array) -> Array:
    """Give samples the sorted values of each feature, in the order of their scores.

    Each value comes as often as it did, so that none of few is lost.
    """
    given = np.empty_like(values)
    np.put_along_axis(given, scores.argsort(axis=0), values, axis=0)
    return given


def undo_rounding(
    scores: Array, levels: Array, is_tied: NDArray[np.bool_], seed: int
) -> Array:
    """Return the scores that features with few values could be made from.

    Scores and features are those of a `Cloud` of the data as they are, the levels are
    the sorted scores of the features with few values. Rounding takes a part of the
    correlations away, and draws would be rounded once more. So the axes of the samples
    are made longer or shorter, until those of a draw are as long as those of the data,
    and features keep their lengths.
    """
    wanted, norms = linalg.eigvalsh(scores @ scores.T), np.linalg.norm(scores, axis=0)
    least = max(_ROUNDING * wanted[-1], _TINY)
    for turn in range(TURNS):
        drawn = rotate(scores, member_stream(seed, turn, "selection", attempt=1))
        drawn[:, is_tied] = give_by_rank(drawn[:, is_tied], levels)
        # The first axis is that of the mean.
        found = linalg.eigvalsh(drawn @ drawn.T)[1:]
        factors = np.sqrt(np.maximum(wanted, least) / np.maximum(found, least))
        sizes, axes = linalg.eigh(scores @ scores.T)
        # Axes of equal length are as good in any direction, and have one factor.
        same = np.cumsum(np.diff(sizes, prepend=sizes[0]) > _ROUNDING * sizes[-1])
        factors = (np.bincount(same, factors) / np.bincount(same))[same]
        scores = (axes * factors) @ (axes.T @ scores)
        scores *= norms / np.maximum(np.linalg.norm(scores, axis=0), _TINY)
    return scores


def null_reference(
    tables: Sequence[Any],
    plans: Sequence[Plan],
    seed: int = 0,
    metric: Metric | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> NullReference:
    """Compare the groups with those of draws that have one cluster.

    The tables have the same samples or all their pairs, the plans say by which kernel
    and features members look at each, and `metric` is the user's own measure of pairs.
    `seed` is that of the samples, features and draws; `progress` is called with the
    draws that are made, and how many there are up to the next look.

    Notes
    -----
    At most 200 samples or a quarter of them are compared, never more than 500, in at
    most 1000 features and 65,000 values. 12 draws are made, and 39 unless p is above
    0.5 by then or the data are far beyond all of them.
    """
    rng, n_samples = member_stream(seed, 0, "selection"), tables[0].shape[0]
    most = min(max(FEW_SAMPLES, n_samples // 4), MOST_SAMPLES)
    some = draw_samples(n_samples, most, rng)
    with single_threaded_blas():
        clouds, seen = [], []
        for table, plan in zip(tables, plans, strict=True):
            X = _take_features(table, plan, some, rng, metric)
            kernel = max(plan.kernel_shares, key=plan.kernel_shares.__getitem__)
            pairs = metric is not None or plan.metric == PRECOMPUTED
            seen.append(X)
            clouds.append(Cloud.of(X, kernel, seed, pairs=pairs))
        observed = measure_groups(seen, clouds)
        draws: list[Array] = []
        for look in LOOKS:
            numbers, shared = range(len(draws), look), (clouds, seed)
            for made in map_parallel(
                _measure_draw, numbers, shared=shared, n_jobs=n_jobs
            ):
                draws.append(made)
                if progress is not None:
                    progress(len(draws), look)
            reference = compare_with_null(observed, np.stack(draws))
            if not CERTAIN < reference.p_value < HOPELESS:
                break
    return reference


def _measure_draw(number: int, clouds: Sequence[Cloud], seed: int) -> Array:
    """Draw all tables, rotated alike, and measure the groups in them."""
    streams = (member_stream(seed, 2 + number, "selection") for _ in clouds)
    return measure_groups(list(map(Cloud.draw, clouds, streams)), clouds)


def _take_features(
    X: Any,
    plan: Plan,
    samples: NDArray[np.int64],
    rng: np.random.Generator,
    metric: Metric | None,
) -> Array:
    """Return some samples in some of their features, or by axes of their pairs."""
    if plan.metric == PRECOMPUTED:
        return scale_pairs(Pairs.of(X[np.ix_(samples, samples)], plan.metric))
    rows, most = X[samples], min(MOST_FEATURES, MOST_VALUES // len(samples))
    if metric is not None:
        return scale_pairs(measure_pairs(metric, rows))
    if plan.preparation in DRAWN:
        # Members draw the power; the recipe's own stands for all.
        power = RECIPES[plan.preparation].power
        learnt = learn_preparation(rows, plan.preparation, power)
        return prepare(rows, learnt, learnt.order[:most]).astype(np.float64)
    if X.shape[1] > most:
        rows = rows[:, np.sort(rng.choice(X.shape[1], most, replace=False))]
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, np.float64)


def scale_pairs(pairs: Pairs) -> Array:
    """Return coordinates in which samples have given distances, by classical scaling.

    Distances that are not Euclidean have axes of negative squared length too, so that
    the others are off by as much: those that are half real at least are taken.
    Similarities are taken to be exp(-d^2 / 2) if all are positive, and 1 - d^2 / 2 if
    not.

    Examples
    --------
    >>> line = Pairs.of([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]], "metric")
    >>> abs(np.diff(scale_pairs(line)[:, 0])).round(6)
    array([1., 2.])
    """
    squared = pairs.values
    if pairs.similar:
        near = squared.min() > 0.0
        squared = -2.0 * np.log(squared) if near else 2.0 - 2.0 * squared
    sizes, axes = linalg.eigh(_inner_products(squared))
    shown = sizes > max(_ROUNDING * sizes[-1], -2.0 * sizes[0])
    scaled: Array = (axes[:, shown] * np.sqrt(sizes[shown]))[:, ::-1]
    return scaled


def _inner_products(squared: Array) -> Array:
    """Return the inner products about the mean, of squared distances."""
    means = squared.mean(axis=0)
    products: Array = 0.5 * (means[:, None] + means - squared - means.mean())
    return products


def measure_groups(tables: Sequence[Array], clouds: Sequence[Cloud]) -> Array:
    r"""Return what shows groups in tables of the same samples.

    Samples of each table are given the distances of its `Cloud`. The values are the
    eigenvalues :math:`\lambda_2, \dots, \lambda_{12}` of the normalised similarity
    graph of all samples, of several tables their mean: K - 1 of them are near one if
    there are K groups. Then how clear the widest gap along the leading axis is, see
    `widest_gap`: a long cluster has eigenvalues near one too, but no gap.
    """
    n_samples = len(tables[0])
    n_neighbors = max(1, min(N_NEIGHBORS, n_samples // 4))
    graph, products = np.zeros((2, n_samples, n_samples))
    for X, known in zip(tables, clouds, strict=True):
        own = _products_about_mean(X, known.kernel)
        products += own / max(own.trace(), _TINY)
        squared = _distances_at_norms(own, known.norms)
        if known.lengths is not None:
            above = np.triu_indices(n_samples, 1)
            squared[above] = give_by_rank(squared[above], known.lengths)
            squared = np.triu(squared) + np.triu(squared).T
        try:
            own = graph_from_distances(squared, known.kernel, n_neighbors, MU)
        except CopiesError:
            # Every sample is where others are, and only they are near.
            own = sparse.csr_array((squared == 0.0).astype(np.float64))
        graph += normalized_affinity(own).toarray() / len(tables)
    n_values = len(default_numbers(n_samples)[: MAX_TESTED - 1])
    last = [n_samples - 1 - n_values, n_samples - 2]
    values = linalg.eigvalsh(graph, subset_by_index=last)[::-1]
    leading = [n_samples - 2, n_samples - 1]
    sizes, axes = linalg.eigh(products, subset_by_index=leading)
    # Of several axes of equal size each is as good.
    alone = sizes[1] - sizes[0] > _ROUNDING * sizes[1]
    return np.append(values, widest_gap(axes[:, 1]) if alone else 0.0).round(9)


def _products_about_mean(X: Array, kernel: str) -> Array:
    return _inner_products(squared_distances(at_safe_scale(coordinates(X, kernel))))


def _distances_at_norms(products: Array, norms: Array) -> Array:
    """Return squared distances once samples have other norms, in the same order."""
    own = products.diagonal()
    wanted = norms[own.argsort(kind="stable").argsort(kind="stable")]
    factors = np.sqrt(wanted / np.maximum(own, max(_ROUNDING * own.mean(), _TINY)))
    squared = wanted[:, None] + wanted - 2.0 * products * factors[:, None] * factors
    np.fill_diagonal(squared, 0.0)
    return np.where(squared > _ROUNDING * wanted.mean(), squared, 0.0)


def widest_gap(places: Array) -> float:
    """Return how clearly the widest gap between samples on a line parts them.

    This is g / (g + s), with the gap g between neighbours and the spread s of the
    samples about the means of its two sides. A tenth of them is on each side at least.

    Examples
    --------
    >>> round(widest_gap(np.array([0.0, 2.0, 8.0, 10.0])), 3)
    0.857
    """
    values, edge = np.sort(places), len(places) // 10
    gaps = np.diff(values).round(9)[edge : len(values) - 1 - edge]
    sides = np.split(values, [edge + int(gaps.argmax()) + 1])
    spread = math.sqrt(sum(each.size * each.var() for each in sides) / len(values))
    return float(gaps.max() / max(gaps.max() + spread, _TINY))


def compare_with_null(observed: Array, draws: Array) -> NullReference:
    r"""Test whether the groups are clearer than in the null draws.

    What `measure_groups` finds: `observed`, (n_values,), and for each draw, (n_draws,
    n_values).

    Notes
    -----
    What is compared is the greatest excess :math:`\max_j (x_j - \bar x_j) / \sigma_j`
    over the values of all others, data and draws alike. If the data have one cluster
    they rank among the draws like one of them, so the p-value is
    :math:`(b + 1) / (R + 1)`, where b of the R draws exceed as much. That is exact, but
    never below 1 / (R + 1): data far beyond all draws have the p-value of one more
    value of a lognormal sample instead, by Student's t, if it is at most 0.0001.
    """
    excess = _excesses(np.vstack([observed, draws]))
    logs = (np.log(np.maximum(each, _LEAST)) for each in (excess[0], _excesses(draws)))
    tail = float(stats.t.sf(_scores(*logs), len(draws) - 1))
    n_as_clear = int((excess[1:] >= excess[0]).sum())
    p_value = tail if tail <= CERTAIN else (n_as_clear + 1) / (len(draws) + 1)
    return NullReference(observed, draws, p_value)


def _excesses(values: Array) -> Array:
    """Return the greatest excess of each row over all other rows."""
    others = (np.delete(values, number, axis=0) for number in range(len(values)))
    return np.array([each.max() for each in map(_scores, values, others)]).round(9)


def _scores(value: Array, sample: Array) -> Array:
    """Return how many spreads of one more value of a sample a value lies above it."""
    spread = sample.std(axis=0, ddof=1) * math.sqrt(1.0 + 1.0 / len(sample))
    scores: Array = (value - sample.mean(axis=0)) / np.maximum(spread, _TINY)
    return scores
