"""Is there more than one cluster? The data beside draws of one cluster like them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, sparse, special, stats

from mdec._support.arrays import Array
from mdec._support.parallel import single_threaded_blas
from mdec._support.progress import Progress
from mdec._support.random import member_stream
from mdec.base import Base
from mdec.coassociation import locally_weighted_coassociation
from mdec.ensemble import Ensemble
from mdec.ensemble.plan import Plan
from mdec.generation import generate_ensemble
from mdec.selection.criteria import coassociation_silhouette, cuts
from mdec.weights import WEIGHTINGS

# Groups are firm where p lies below; with 39 draws that is none of them as clear, a
# chance of 1 in 40 for one cluster.
NULL_LEVEL = 0.05
N_DRAWS = 39

# Below this a normal tail makes groups certain, however few the draws.
CERTAIN = 1e-4

# Most samples that are compared, and when draws are looked at: clear groups show at a
# glance. Then the most features of a table, members and clusters.
STAGES = (150, (6,)), (500, (6, 12, N_DRAWS))
MOST_FEATURES, MOST_MEMBERS = 2000, 16
MAX_TESTED = 12

# The statistic of Jarque and Bera below which a feature looks normal.
NORMAL_BELOW = 3.0

# Numbers of clusters that "auto" compares.
MAX_CLUSTERS = 30
SAMPLES_PER_CLUSTER = 5

_TINY = 1e-12

# Where few samples are compared, a member clusters at least these.
_FEWEST_CLUSTERED = 50


def default_numbers(n_samples: int) -> list[int]:
    """Return 2 to a fifth of the samples, at most 30.

    Examples
    --------
    >>> default_numbers(22)
    [2, 3, 4]
    """
    return list(
        range(2, max(2, min(MAX_CLUSTERS, n_samples // SAMPLES_PER_CLUSTER)) + 1)
    )


@dataclass(frozen=True)
class Samples:
    """Samples in one table or several, and how members are made of them.

    Attributes
    ----------
    tables : tuple of ndarray or csr_array
        Rows of the samples, one table for each plan.
    plans : tuple of Plan
        What members of each table are drawn with.
    ensemble : Ensemble
        The base clusterings that others are to be like.
    base : callable or None
        The user's own base clustering, if there is one.
    n_jobs : int or None
        Members made at the same time.
    """

    tables: tuple[Any, ...]
    plans: tuple[Plan, ...]
    ensemble: Ensemble
    base: Base | None = None
    n_jobs: int | None = None

    @classmethod
    def of(
        cls, X: Any, ensemble: Ensemble, base: Base | None, n_jobs: int | None
    ) -> Samples:
        """Pair rows with the ensemble that was made of them, view by view."""
        views = range(len(ensemble.views))
        plans = tuple(ensemble.view(v).plan for v in views) or (ensemble.plan,)
        tables = tuple(X) if views else (X,)
        for plan in plans:
            if plan.metric is not None or (plan.has_own_base and base is None):
                part = f"metric={plan.metric}" if plan.metric else f"base={plan.base}"
                raise ValueError(
                    f"the null reference makes members of other rows, and {part} is "
                    "not at hand for them; give base=..., or leave out X."
                )
        return cls(tables, plans, ensemble, base, n_jobs)

    def __len__(self) -> int:
        return int(self.tables[0].shape[0])

    def draw(
        self,
        n_samples: int,
        rng: np.random.Generator,
        n_features: int | None = None,
    ) -> Samples:
        """Return at most so many of the samples and features, in their order."""
        tables = self.tables
        if len(self) > n_samples:
            some = np.sort(rng.choice(len(self), n_samples, replace=False))
            tables = tuple(table[some] for table in tables)
        if n_features is not None:
            for place, table in enumerate(tables):
                if table.shape[1] > n_features:
                    some = rng.choice(table.shape[1], n_features, replace=False)
                    some = table[:, np.sort(some)]
                    tables = (*tables[:place], some, *tables[place + 1 :])
        return self if tables is self.tables else replace(self, tables=tables)

    @cached_property
    def clouds(self) -> tuple[Cloud, ...]:
        """What draws are made of, table by table; these rows are few."""
        return tuple(
            Cloud.of(np.asarray(table.toarray() if sparse.issparse(table) else table))
            for table in self.tables
        )

    def without_groups(self, seed: int, draw: int) -> Samples:
        """Draw data of one cluster like these; all tables are rotated alike."""
        tables = tuple(
            cloud.draw(member_stream(seed, 2 + draw, "selection"))
            for cloud in self.clouds
        )
        return replace(self, tables=tables)

    def make_members(self, n_members: int, seed: int) -> Ensemble:
        """Make members of these samples with the parameters of the ensemble's.

        The streams are those of the seed, for the data and for every draw: data of one
        cluster and the draws are then alike in distribution, given the streams.
        """
        rng = member_stream(seed, 1, "selection")
        made = [
            self._make_view(
                table, plan, max(1, round(n_members / len(self.plans))), rng
            )
            for table, plan in zip(self.tables, self.plans, strict=True)
        ]
        if len(made) == 1:
            return made[0]
        shares = [each.share for each in self.ensemble.views if each.share is not None]
        return Ensemble.concatenate(made, weights=shares or None)

    def _make_view(
        self, X: Any, plan: Plan, n_members: int, rng: np.random.Generator
    ) -> Any:
        low, high = plan.base_n_clusters_range
        share, n_samples = plan.max_samples, X.shape[0]
        if n_samples < plan.n_samples:
            # A small share of few samples would leave members too few to cluster.
            share = max(share, min(1.0, _FEWEST_CLUSTERED / n_samples))
            high = max(low, min(high, math.ceil(math.sqrt(share * n_samples))))
        return generate_ensemble(
            X,
            ensemble_size=n_members,
            max_features=plan.max_features,
            kernel=plan.kernel_shares,
            mu_range=plan.mu_range,
            n_neighbors_range=plan.n_neighbors_range,
            preparation=None if plan.preparation is None else "diversified",
            base_n_clusters_range=(low, high),
            max_samples=share,
            base="graph" if self.base is None else self.base,
            device=plan.device,
            n_jobs=self.n_jobs,
            random_state=rng,
        )


@dataclass(frozen=True)
class NullReference:
    """Criteria beside those of data that have one cluster by construction.

    Attributes
    ----------
    observed : ndarray of shape (n_numbers,)
        Silhouette of the data for 2, 3, 4 and more clusters.
    draws : ndarray of shape (n_draws, n_numbers)
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

    def beside(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], Array]:
        """Return which of some numbers were compared, and their draws.

        Parameters
        ----------
        numbers : ndarray of int
            Numbers of clusters.

        Returns
        -------
        numbers : ndarray of int
            Those that were compared.
        draws : ndarray of shape (n_draws, n_numbers)
            Silhouettes of the draws with as many clusters.
        """
        numbers = numbers[numbers - 2 < self.observed.size]
        return numbers, self.draws[:, numbers - 2]

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
        Normal scores of the features, in axes of the samples that leave out the mean.
    center, spread : ndarray of shape (n_features,)
        Mean and standard deviation of each feature.
    values : ndarray of shape (n_samples, n_features)
        What the ranks of each feature stand for: its values, with one hump.
    is_normal, is_tied : ndarray of bool of shape (n_features,)
        Features that look normal, and those that have few values.

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
    few values keep them in their very shares.
    """

    scores: Array
    center: Array
    spread: Array
    values: Array
    is_normal: NDArray[np.bool_]
    is_tied: NDArray[np.bool_]

    @classmethod
    def of(cls, X: Array) -> Cloud:
        """Take the normal scores and the values of a table apart."""
        n_samples, half = len(X), len(X) // 2
        values, center, spread = np.sort(X, axis=0), X.mean(axis=0), X.std(axis=0)
        gaps = np.diff(values, axis=0)
        is_tied = (gaps > 0.0).sum(axis=0) < half
        scores = (X - center) / np.where(spread > 0.0, spread, 1.0)
        skewness, excess = (scores**3).mean(axis=0), (scores**4).mean(axis=0) - 3.0
        far = n_samples / 6.0 * (skewness**2 + excess**2 / 4.0)
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
        axes = linalg.helmert(n_samples)
        return cls(axes @ scores, center, spread, values, is_normal, is_tied)

    def draw(self, rng: np.random.Generator) -> Array:
        """Rotate the scores at random, and make them values again."""
        n_samples = len(self.values)
        block = rng.standard_normal((n_samples, n_samples - 1))
        block -= block.mean(axis=0)
        vectors, triangle = np.linalg.qr(block)
        scores = (vectors * np.sign(np.diag(triangle))) @ self.scores
        ranks = (special.ndtr(scores) * n_samples).astype(np.intp)
        ranks = np.minimum(ranks, n_samples - 1)
        # Each of few values comes as often as it did, so that none is lost.
        ranks[:, self.is_tied] = scores[:, self.is_tied].argsort(axis=0).argsort(axis=0)
        drawn = np.take_along_axis(self.values, ranks, axis=0)
        return np.where(self.is_normal, self.center + self.spread * scores, drawn)


def null_reference(
    samples: Samples,
    weighting: str,
    seed: int = 0,
    *,
    progress: Progress | None = None,
) -> NullReference:
    """Compare the silhouettes with those of draws that have one cluster.

    ``progress(done, n_draws)`` counts the draws up to the next look.

    Notes
    -----
    Silhouettes of 2 to 12 clusters are compared, of at most 2000 features and 16
    members. First there are 6 draws of at most 150 samples, which is enough if the data
    are far beyond all of them. Otherwise up to 500 samples are compared, and looked at
    when there are 6 and 12 draws; 39 are made unless two are already as clear as the
    data, or the data are far beyond all of them.
    """
    n_members, n_samples = min(MOST_MEMBERS, len(samples.ensemble)), 0
    for most, looks in STAGES:
        if n_samples < len(samples):
            rng = member_stream(seed, 0, "selection")
            some = samples.draw(most, rng, MOST_FEATURES)
            n_samples, draws = len(some), list[Array]()
            ks = default_numbers(n_samples)[: MAX_TESTED - 1]
            observed = silhouettes(some.make_members(n_members, seed), ks, weighting)
        for look in looks:
            for draw in range(len(draws), look):
                made = some.without_groups(seed, draw).make_members(n_members, seed)
                draws.append(silhouettes(made, ks, weighting))
                if progress is not None:
                    progress(draw + 1, look)
            reference = compare_with_null(observed, np.array(draws))
            if reference.p_value <= CERTAIN:
                return reference
            # Further draws of as many samples cannot change the answer.
            if reference.p_value * (look + 1) > 2.5:
                break
    return reference


def compare_with_null(observed: Array, draws: Array) -> NullReference:
    r"""Test whether the groups are clearer than in the null draws.

    Silhouettes for each number of clusters: `observed`, (n_numbers,), and those of each
    draw, (n_draws, n_numbers).

    Notes
    -----
    What is compared is the greatest excess :math:`\max_K (s_K - \bar s_K) / \sigma_K`
    of the silhouettes over those of all others, data and draws alike. If the data have
    one cluster they rank among the draws like one of them, so the p-value is
    :math:`(b + 1) / (R + 1)`, where b of the R draws exceed as much. That is exact, but
    never below 1 / (R + 1): data far beyond all draws have the p-value of one more
    value of a normal sample instead, by Student's t, if it is at most 0.0001.
    """
    excess = _excesses(np.vstack([observed, draws]))
    tail = float(stats.t.sf(_scores(excess[0], _excesses(draws)), len(draws) - 1))
    n_as_clear = int((excess[1:] >= excess[0]).sum())
    p_value = tail if tail <= CERTAIN else (n_as_clear + 1) / (len(draws) + 1)
    return NullReference(observed, draws, p_value)


def _excesses(silhouettes: Array) -> Array:
    """Return the greatest excess of each row over all other rows."""
    return np.array(
        [
            _scores(row, np.delete(silhouettes, number, axis=0)).max()
            for number, row in enumerate(silhouettes)
        ]
    )


def _scores(value: Array, sample: Array) -> Array:
    """Return how many spreads of one more value of a sample a value lies above it."""
    spread = sample.std(axis=0, ddof=1) * math.sqrt(1.0 + 1.0 / len(sample))
    return (value - sample.mean(axis=0)) / np.maximum(spread, _TINY)


def silhouettes(ensemble: Ensemble, ks: Sequence[int], weighting: str) -> Array:
    """Return the silhouette for each number of clusters."""
    with single_threaded_blas():
        weights = WEIGHTINGS[weighting](ensemble)
        similarity = locally_weighted_coassociation(ensemble, weights)
        parts = cuts(ensemble, weights, ks)
        return np.array([coassociation_silhouette(similarity, each) for each in parts])
