"""Is there more than one cluster? The data beside rotations of them that have one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse, stats

from mdec._support.arrays import Array
from mdec._support.parallel import single_threaded_blas
from mdec._support.progress import Progress
from mdec._support.random import member_stream
from mdec.base.custom import Base
from mdec.coassociation import locally_weighted_coassociation
from mdec.ensemble import Ensemble
from mdec.generation import generate_ensemble
from mdec.selection.criteria import coassociation_silhouette, cuts
from mdec.weights import WEIGHTINGS

# Chance that noise of one Gaussian cluster is called more than one.
NULL_LEVEL = 0.02

# Below this a normal tail makes groups certain, however few the draws.
CERTAIN = 1e-4


# Most samples and members that are compared, and when draws are looked at. Clear groups
# show at a glance; the rest is looked at more closely.
N_DRAWS = 99
GLANCE = 200, 20, (10,)
CLOSE = 300, 50, (10, 20, 40, N_DRAWS)

_TINY = 1e-12

# Where few samples are compared, a member clusters at least these.
_FEWEST_CLUSTERED = 50


@dataclass(frozen=True)
class NullReference:
    """Criteria beside those of data that have one cluster by construction.

    Attributes
    ----------
    observed : ndarray of shape (n_numbers,)
        Silhouette of the data for each number of clusters.
    draws : ndarray of shape (n_draws, n_numbers)
        The same of the data with their samples rotated at random.
    p_value : float
        Chance of groups at least as clear in one further draw.
    """

    observed: Array
    draws: Array
    p_value: float

    @property
    def p_values(self) -> Array:
        """For each number of clusters, the share of draws at least as clear there.

        (b + 1) / (R + 1), with b of the R draws at least as clear for that very number;
        never below 1 / (R + 1). Each is a test by itself: that many are looked at is
        what `p_value` accounts for.
        """
        as_clear = (self.draws >= self.observed).sum(axis=0)
        shares: Array = (as_clear + 1) / (len(self.draws) + 1)
        return shares

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
    X: Any,
    ensemble: Ensemble,
    ks: Sequence[int],
    weighting: str,
    seed: int,
    *,
    base: Base | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> NullReference:
    """Compare the silhouettes with those of the data with their samples rotated.

    The ensemble was made by `generate_ensemble` from X. ``progress(done, n_draws)``
    counts the draws up to the next look.

    Notes
    -----
    Clear cases need little and close ones much. First 10 draws of at most 200 samples
    and 20 members are made, which is enough if the data are far beyond all of them.
    Otherwise up to 300 samples and 50 members are compared, and looked at when there
    are 10, 20 and 40 draws; 99 are made unless two are already as clear as the data,
    or the data are far beyond all of them.
    """
    make = partial(generate_like, ensemble, base=base, n_jobs=n_jobs)
    over = X, ensemble, ks, weighting, seed, make, progress
    reference = _compare_draws(*over, *GLANCE)
    return reference if reference.p_value <= CERTAIN else _compare_draws(*over, *CLOSE)


def _compare_draws(
    X: Any,
    ensemble: Ensemble,
    ks: Sequence[int],
    weighting: str,
    seed: int,
    make: Callable[..., Ensemble],
    progress: Progress | None,
    n_samples: int,
    n_members: int,
    looks: Sequence[int],
) -> NullReference:
    """Compare the data with draws until the answer is certain or the last is made."""
    n_samples = min(X.shape[0], n_samples)
    ks = [k for k in ks if k < n_samples]
    rng = member_stream(seed, 1, "selection")
    whole = n_samples == X.shape[0]
    if not whole:
        X = X[np.sort(rng.choice(X.shape[0], n_samples, replace=False))]
    if sparse.issparse(X):
        # Rotations fill every place, and these rows are few.
        X = X.toarray()
    made = ensemble[:n_members] if whole else make(X, rng, n_members)
    observed = silhouettes(made, ks, weighting)
    draws: list[Array] = []
    for look in looks:
        for draw in range(len(draws), look):
            rng = member_stream(seed, 2 + draw, "selection")
            made = make(rotate_samples(X, rng), rng, n_members)
            draws.append(silhouettes(made, ks, weighting))
            if progress is not None:
                progress(draw + 1, look)
        reference = compare_with_null(observed, np.array(draws))
        as_clear = round(reference.p_value * (len(draws) + 1))
        # Further draws cannot change the answer, or hardly can.
        if reference.p_value <= CERTAIN or as_clear > NULL_LEVEL * (N_DRAWS + 1):
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


def generate_like(
    ensemble: Ensemble,
    X: Array,
    rng: np.random.Generator,
    n_members: int,
    *,
    base: Base | None,
    n_jobs: int | None,
) -> Any:
    """Make an ensemble of other data with the parameters of a given one."""
    plan = ensemble.plan
    if plan.metric is not None or (plan.has_own_base and base is None):
        part = f"metric={plan.metric}" if plan.metric else f"base={plan.base}"
        raise ValueError(
            f"the null reference makes members of other rows, and {part} is not at "
            "hand for them; give base=..., or leave out X."
        )
    low, high = plan.base_n_clusters_range
    share = plan.max_samples
    if len(X) < ensemble.n_samples:
        # A small share of few samples would leave members too few to cluster.
        share = max(share, min(1.0, _FEWEST_CLUSTERED / len(X)))
        high = max(low, min(high, math.ceil(math.sqrt(share * len(X)))))
    return generate_ensemble(
        X,
        ensemble_size=min(len(ensemble), n_members),
        max_features=plan.max_features,
        kernel=plan.kernel_shares,
        mu_range=plan.mu_range,
        n_neighbors_range=plan.n_neighbors_range,
        preparation=None if plan.preparation is None else "diversified",
        base_n_clusters_range=(low, high),
        max_samples=share,
        base="graph" if base is None else base,
        n_jobs=n_jobs,
        random_state=rng,
    )


def silhouettes(ensemble: Ensemble, ks: Sequence[int], weighting: str) -> Array:
    """Return the silhouette for each number of clusters."""
    with single_threaded_blas():
        weights = WEIGHTINGS[weighting](ensemble)
        similarity = locally_weighted_coassociation(ensemble, weights)
        parts = cuts(ensemble, weights, ks)
        return np.array([coassociation_silhouette(similarity, each) for each in parts])
