"""Is there more than one cluster? The data beside rotations of them that have one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse, stats

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
# chance of 1 in 40 for one Gaussian cluster.
NULL_LEVEL = 0.05
N_DRAWS = 39

# Below this a normal tail makes groups certain, however few the draws.
CERTAIN = 1e-4

# Most samples, members and clusters that are compared, and when draws are looked at.
# Clear groups show at a glance; the rest is looked at more closely.
GLANCE = 200, 16, (8,)
CLOSE = 300, 50, (10, 20, N_DRAWS)
MAX_TESTED = 12

# Draws of directions for the gap between two groups, how many at a time, the leading
# directions that are looked at, and the share of the samples on either side.
GAP_DRAWS, GAP_BLOCK = 10_999, 500
GAP_DIRECTIONS = 2
GAP_SIDE = 0.1

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

    def draw(self, n_samples: int, rng: np.random.Generator) -> Samples:
        """Return at most so many of the samples, in their order."""
        if len(self) <= n_samples:
            return self
        some = np.sort(rng.choice(len(self), n_samples, replace=False))
        return replace(self, tables=tuple(table[some] for table in self.tables))

    @property
    def dense(self) -> list[Array]:
        """The tables with every place filled, as rotations do; these rows are few."""
        return [
            np.asarray(table.toarray() if sparse.issparse(table) else table)
            for table in self.tables
        ]

    def rotate(self, seed: int, draw: int) -> Samples:
        """Return data without groups; all tables are rotated alike."""
        tables = tuple(
            rotate_samples(table, member_stream(seed, 2 + draw, "selection"))
            for table in self.dense
        )
        return replace(self, tables=tables)

    def gap_p_value(self, seed: int) -> float:
        """Return the p-value of a gap in any of the tables, for all that are tried."""
        rng = member_stream(seed, 1, "selection")
        return min(1.0, len(self.tables) * min(gap_p_value(t, rng) for t in self.dense))

    def make_members(self, n_members: int, seed: int) -> Ensemble:
        """Make members of these samples with the parameters of the ensemble's.

        The streams are those of the seed, for the data and for every draw: data of one
        cluster and their rotations are then alike in distribution, given the streams.
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
        The same of the data with their samples rotated at random.
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
        """Return which of some numbers were compared, and their draws."""
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


def rotate_samples(X: Array, rng: np.random.Generator) -> Array:
    r"""Draw data without groups that have the very mean and covariance of X.

    :math:`1 \bar x^T + O (X - 1 \bar x^T)` with a random rotation O of the samples that
    leaves the vector of ones in place.

    Notes
    -----
    A rotation of the samples keeps the mean and the sample covariance, and makes every
    sample a mixture of all, so that groups are lost. For one Gaussian cluster of any
    covariance the rotated data have the same distribution as the data, so a comparison
    with them is fair whatever the number of features.
    """
    center = X.mean(axis=0)
    shape = len(X), len(X) - 1

    def basis() -> Array:
        block = rng.standard_normal(shape)
        block -= block.mean(axis=0)
        vectors, triangle = np.linalg.qr(block)
        return vectors * np.sign(np.diag(triangle))

    return center + basis() @ (basis().T @ (X - center))


def null_reference(
    samples: Samples,
    weighting: str,
    seed: int = 0,
    *,
    members: Ensemble | None = None,
    progress: Progress | None = None,
) -> NullReference:
    """Compare the silhouettes with those of the data with their samples rotated.

    Members that were made of these very samples with the seed may be given;
    ``progress(done, n_draws)`` counts the draws up to the next look.

    Notes
    -----
    Silhouettes of 2 to 12 clusters are compared. Clear cases need little and close ones
    much. First 8 draws of at most 200 samples and 16 members are made, which is enough
    if the data are far beyond all of them, or if an empty gap divides them (see
    `gap_p_value`). Otherwise up to 300 samples and 50 members
    are compared, and looked at when there are 10 and 20 draws; 39 are made unless two
    are already as clear as the data, or the data are far beyond all of them.
    """
    gap = 0.0
    for n_samples, n_members, looks in (GLANCE, CLOSE):
        n_members = min(n_members, len(samples.ensemble))
        some = samples.draw(n_samples, member_stream(seed, 0, "selection"))
        if members is None or some is not samples or len(samples.tables) > 1:
            made = some.make_members(n_members, seed)
        else:
            made = members[:n_members]
        ks = default_numbers(len(some))[: MAX_TESTED - 1]
        observed = silhouettes(made, ks, weighting)
        draws: list[Array] = []
        for look in looks:
            for draw in range(len(draws), look):
                made = some.rotate(seed, draw).make_members(n_members, seed)
                draws.append(silhouettes(made, ks, weighting))
                if progress is not None:
                    progress(draw + 1, look)
            reference = compare_with_null(observed, np.array(draws))
            if reference.p_value <= CERTAIN:
                return reference
            gap = gap or some.gap_p_value(seed)
            if gap <= CERTAIN:
                return replace(reference, p_value=gap)
            # Further draws cannot change the answer.
            if reference.p_value * (len(draws) + 1) > NULL_LEVEL * (N_DRAWS + 1) + 0.5:
                break
    return reference


def gap_p_value(X: Array, rng: np.random.Generator) -> float:
    r"""Test whether an empty gap divides the samples along a leading direction.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    float
        (b + 1) / (R + 1), with b of R draws that have as wide a gap.

    Notes
    -----
    Two groups far apart make one long cloud when they are rotated, which members cut as
    clearly as the groups themselves. But they lie at its two ends. The coordinates
    along the leading principal directions are left singular vectors; those of rotated
    samples are random unit vectors, whatever the covariance, so that draws cost next to
    nothing. The widest gap is taken less the third widest: values on a grid have
    many alike.
    """
    n_samples, n_features = X.shape
    rows = X - X.mean(axis=0)
    # Squares of values near the ends of the range would be lost.
    rows /= np.abs(rows).max() or 1.0
    n_leading = min(GAP_DIRECTIONS, n_features, n_samples - 2)
    if n_samples < 10:
        return 1.0
    values, vectors = linalg.eigh(
        rows @ rows.T, subset_by_index=[n_samples - n_leading, n_samples - 1]
    )
    if values[-1] < _TINY:
        return 1.0
    observed = widest_gap(vectors)
    n_as_wide = 0
    for first in range(0, GAP_DRAWS, GAP_BLOCK):
        size = min(GAP_BLOCK, GAP_DRAWS - first)
        drawn = rng.standard_normal((size, n_samples, n_leading))
        drawn -= drawn.mean(axis=1, keepdims=True)
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        n_as_wide += int((widest_gap(drawn) >= observed).sum())
    return (n_as_wide + 1) / (GAP_DRAWS + 1)


def widest_gap(coordinates: Array) -> Array:
    """Return the widest gap between neighbours less the third widest.

    Coordinates are (..., n_samples, n_directions); a tenth of the samples lie on
    either side of a gap, and the direction with the widest one counts.

    Examples
    --------
    >>> float(widest_gap(np.array([0, 1, 2, 3, 4, 9, 10, 11, 12, 13.0])[:, None]))
    4.0
    """
    n_samples = coordinates.shape[-2]
    side = max(2, int(GAP_SIDE * n_samples))
    inner = np.sort(coordinates, axis=-2)[..., side - 1 : n_samples - side + 1, :]
    gaps = np.partition(np.diff(inner, axis=-2), (-3, -1), axis=-2)
    return (gaps[..., -1, :] - gaps[..., -3, :]).max(axis=-1)


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
