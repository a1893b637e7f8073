"""Is there more than one cluster? The data beside rotations of them that have one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mdec._support.parallel import single_threaded_blas
from mdec._support.progress import Progress
from mdec._support.random import member_stream
from mdec.coassociation import locally_weighted_coassociation
from mdec.ensemble import Ensemble
from mdec.generation import generate_ensemble
from mdec.selection.criteria import coassociation_silhouette, cuts, eigengaps
from mdec.weights import WEIGHTINGS

Array = NDArray[np.floating]

NULL_SAMPLES = 300
NULL_MEMBERS = 100

# After so many draws the rest is left out if the p-value lies outside of the range.
LOOKS = ((10, 1e-4, 0.5), (20, 1e-3, 0.2), (40, 5e-3, 0.1), (80, 0.0, 1.0))

_TINY = 1e-12


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


def rotated_samples(X: Array, rng: np.random.Generator) -> Array:
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
    X: Array,
    ensemble: Ensemble,
    ks: Sequence[int],
    weighting: str,
    seed: int,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> NullReference:
    """Compare the silhouettes with those of the data with their samples rotated.

    The ensemble was made by `generate_ensemble` from X; above 300 samples a random 300
    are compared. ``progress(done, n_draws)`` counts the draws up to the next look.

    Notes
    -----
    Clear cases need few draws and close ones many: the p-value is looked at after 10,
    20 and 40 draws, and only one between 0.0001 and 0.5, 0.001 and 0.2, 0.005 and 0.1
    calls for more, 80 at most.
    """
    n_samples = min(len(X), NULL_SAMPLES)
    ks = [k for k in ks if k < n_samples]
    rng = member_stream(seed, 1, "selection")

    def measured(data: Array, rng: np.random.Generator) -> Array:
        made = _like(ensemble, data, rng, n_jobs)
        return _clearness(made, ks, weighting)

    if n_samples == len(X):
        observed = _clearness(ensemble[:NULL_MEMBERS], ks, weighting)
    else:
        X = X[np.sort(rng.choice(len(X), n_samples, replace=False))]
        observed = measured(X, rng)
    draws: list[Array] = []
    for look, low, high in LOOKS:
        for draw in range(len(draws), look):
            rng = member_stream(seed, 2 + draw, "selection")
            draws.append(measured(rotated_samples(X, rng), rng))
            if progress is not None:
                progress(draw + 1, look)
        compared = compare_with_null(observed, np.array(draws))
        if not low <= compared.p_value <= high:
            break
    return compared


def compare_with_null(observed: Array, draws: Array) -> NullReference:
    r"""Test whether the groups are clearer than in the null draws.

    Silhouettes and eigengaps for each number of clusters: `observed`, (2, n_numbers),
    and those of each draw, (n_draws, 2, n_numbers).

    Notes
    -----
    One test looks at the best product of silhouette and eigengap over K. The other
    looks at the greatest excess :math:`\max_K (s_K - \bar s_K) / \sigma_K` of the
    silhouettes over those of the draws, where each draw is taken against the others.
    Each p-value is that of one more value of a normal sample, by Student's t, and both
    tests together have theirs by Bonferroni.
    """
    silhouettes = draws[:, 0]
    best = np.log(np.maximum(draws.prod(axis=1).max(axis=1), _TINY))
    own_best = np.log(max(float(observed.prod(axis=0).max()), _TINY))
    others = [np.delete(silhouettes, r, axis=0) for r in range(len(draws))]
    excess = np.array(list(map(_greatest_excess, silhouettes, others)))
    own_excess = _greatest_excess(observed[0], silhouettes)
    p_value = 2.0 * min(_tail(own_best, best), _tail(own_excess, excess))
    return NullReference(observed[0], silhouettes, min(p_value, 1.0))


def _greatest_excess(values: Array, others: Array) -> float:
    spread = others.std(axis=0, ddof=1) * math.sqrt(1.0 + 1.0 / len(others))
    return float(((values - others.mean(axis=0)) / np.maximum(spread, _TINY)).max())


def _tail(value: float, sample: Array) -> float:
    """Return the chance that one more value of a normal sample is as large."""
    spread = sample.std(ddof=1) * math.sqrt(1.0 + 1.0 / sample.size)
    score = (value - sample.mean()) / max(float(spread), _TINY)
    return float(stats.t.sf(score, sample.size - 1))


def _like(
    ensemble: Ensemble, X: Array, rng: np.random.Generator, n_jobs: int | None
) -> Any:
    """Make an ensemble of other data with the parameters of a given one."""
    plan = ensemble.plan
    low, high = plan.base_n_clusters_range
    if len(X) < ensemble.n_samples:
        high = max(low, min(high, math.ceil(math.sqrt(len(X)))))
    return generate_ensemble(
        X,
        ensemble_size=min(len(ensemble), NULL_MEMBERS),
        sampling_ratio=plan.sampling_ratio,
        kernel=plan.kernel,
        mu_range=plan.mu_range,
        n_neighbors_range=plan.n_neighbors_range,
        preparation=None if plan.preparation is None else "diversified",
        base_n_clusters_range=(low, high),
        n_jobs=n_jobs,
        random_state=rng,
    )


def _clearness(ensemble: Ensemble, ks: Sequence[int], weighting: str) -> Array:
    """Return silhouette and eigengap for each number of clusters."""
    with single_threaded_blas():
        weights = WEIGHTINGS[weighting](ensemble)
        similarity = locally_weighted_coassociation(ensemble, weights)
        parts = cuts(ensemble, weights, ks)
        silhouettes = [coassociation_silhouette(similarity, each) for each in parts]
        gaps = eigengaps(similarity, ks)
        return np.maximum(np.stack([np.array(silhouettes), gaps]), 0.0)
