"""How many clusters: criteria side by side, and a rule that makes a suggestion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array
from mdec._support.parallel import single_threaded_blas
from mdec._support.progress import Progress
from mdec._support.random import member_stream
from mdec.base.custom import Base
from mdec.coassociation import locally_weighted_coassociation
from mdec.ensemble import Ensemble
from mdec.selection.criteria import (
    cdf_area,
    coassociation_silhouette,
    consensus_distribution,
    cuts,
    delta_area,
    eigengaps,
    proportion_ambiguous,
)
from mdec.selection.null import NULL_LEVEL, NullReference, null_reference
from mdec.weights import WEIGHTINGS

# The criteria are measured on at most this many samples, drawn at random.
MAX_SAMPLES = 1000
MAX_CLUSTERS = 20
N_SPLITS = 10


@dataclass(frozen=True)
class KSelection:
    """Criteria for each number of clusters, and the suggestion made from them.

    Attributes
    ----------
    n_clusters : int
        The suggestion; 1 if the data are no more clustered than rotations of
        them.
    reason : str
        Why, in a sentence or two.
    table : dict of ndarray
        One entry per number of clusters in each column: "n_clusters", "pac", "area",
        "delta_area", "eigengap", "agreement", "silhouette"; and "p_value" where the
        null reference was drawn, see `NullReference.p_values`.
    cdf : ndarray of shape (n_numbers, n_levels)
        Share of the pairs whose consensus is at most each of `levels`.
    levels : ndarray of shape (n_levels,)
        Levels of the consensus, from 0 to 1.
    partitions : ndarray of shape (n_numbers, n_measured)
        The consensus clusters of the measured samples.
    samples : ndarray of shape (n_measured,)
        Rows on which the criteria were measured.
    null : NullReference or None
        None where only labels were given and no data to draw from.
    """

    n_clusters: int
    reason: str
    table: dict[str, NDArray[Any]]
    cdf: Array
    levels: Array
    partitions: NDArray[np.int32]
    samples: NDArray[np.int64]
    null: NullReference | None

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row for each number of clusters.
        """
        import pandas

        return pandas.DataFrame(self.table).set_index("n_clusters")


def select_n_clusters(
    ensemble: Ensemble,
    *,
    X: Array | None = None,
    k_range: Sequence[int] | None = None,
    weighting: str = "entropy",
    allow_one: bool = True,
    base: Base | None = None,
    n_jobs: int | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> KSelection:
    """Measure numbers of clusters on a finished ensemble and suggest one.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings; they do not depend on the number of clusters.
    X : ndarray of shape (n_samples, n_features), optional
        The data, from which the null reference is drawn; without it one cluster is
        never suggested.
    k_range : sequence of int, optional
        Numbers to measure; None is 2 to the root of the number of samples, at most
        20.
    weighting : {"entropy", "uniform"}, default="entropy"
        Weights of the base clusters.
    allow_one : bool, default=True
        False to suggest one of `k_range` even if the null reference finds no more
        than one cluster; the reason then says so.
    base : callable, default=None
        The base clustering of your own that the ensemble was made with; the null
        reference takes it too.
    n_jobs : int, default=None
        Members of the null reference made at the same time; changes nothing else.
    seed : int, optional
        Seed of the splits and draws; None for that of the ensemble.
    progress : callable, default=None
        Called as ``progress(done, n_draws)`` after each draw of the null reference,
        with the draws that are made before the next look.

    Returns
    -------
    KSelection
        The table, the suggestion and the reason.

    Notes
    -----
    Average linkage gives the clusters for every number at once, whatever consensus
    function makes the final ones; above 1000 samples a random thousand is measured.

    Examples
    --------
    >>> labels = np.repeat([[0, 0, 1], [1, 0, 0], [2, 1, 0]], 10, axis=0)
    >>> select_n_clusters(Ensemble.from_labels(labels), k_range=[2, 3, 4]).n_clusters
    3
    """
    if seed is None:
        seed = int(ensemble.parameters.get("entropy", 0))
    n_samples, ks = ensemble.n_samples, check_k_range(k_range, ensemble.n_samples)
    rng = member_stream(seed, 0, "selection")
    samples = np.arange(n_samples)
    if n_samples > MAX_SAMPLES:
        samples = np.sort(rng.choice(n_samples, MAX_SAMPLES, replace=False))
    with single_threaded_blas():
        found = _measure(ensemble.among(samples), ks, weighting, rng)
    table, null = found["table"], None
    if X is not None:
        null = null_reference(
            X,
            ensemble,
            ks,
            weighting,
            seed,
            base=base,
            n_jobs=n_jobs,
            progress=progress,
        )
        # Few samples are compared, and no more clusters than they can have.
        table["p_value"] = np.full(len(ks), np.nan)
        table["p_value"][: null.observed.size] = null.p_values
    suggested, reason = suggest(table, null, allow_one=allow_one)
    return KSelection(suggested, reason, **found, samples=samples, null=null)


def check_k_range(k_range: Sequence[int] | None, n_samples: int) -> list[int]:
    """Return the numbers to compare in order, or raise for those that cannot be.

    None is 2 to the root of the number of samples, at most 20.
    """
    most = min(n_samples, MAX_SAMPLES) - 1
    if k_range is None:
        end = min(MAX_CLUSTERS, max(2, math.ceil(math.sqrt(n_samples))), most)
        return list(range(2, end + 1))
    ks = sorted({int(k) for k in k_range})
    if not ks or ks[0] < 2 or ks[-1] > most:
        raise ValueError(
            f"the numbers of clusters to compare must lie between 2 and {most}; got "
            f"{ks[0] if ks else 'none'} to {ks[-1] if ks else 'none'}."
        )
    return ks


def suggest(
    table: dict[str, NDArray[Any]],
    null: NullReference | None,
    *,
    allow_one: bool = True,
) -> tuple[int, str]:
    """Turn the columns of `KSelection.table` into a suggestion and its reason.

    The reason is one or two sentences; one cluster is suggested only if `allow_one`.
    """
    verdict = _null_verdict(null)
    if null is not None and null.p_value > NULL_LEVEL and allow_one:
        return 1, verdict
    score = suggestion_score(table)
    order = np.argsort(-score, kind="stable")
    k = int(table["n_clusters"][order[0]])
    reason = (
        f"K = {k} has the largest product of eigengap "
        f"({table['eigengap'][order[0]]:.2f}), silhouette "
        f"({table['silhouette'][order[0]]:.2f}) and split-half agreement "
        f"({table['agreement'][order[0]]:.2f})"
    )
    if order.size > 1:
        second = int(table["n_clusters"][order[1]])
        share = score[order[1]] / max(score[order[0]], np.finfo(float).tiny)
        reason += f"; K = {second} comes next with {100 * share:.0f} % of it"
        if k == max(table["n_clusters"]):
            reason += "; it is the largest number compared, so compare larger ones too"
    return k, f"{reason}. {verdict}"


def _null_verdict(null: NullReference | None) -> str:
    if null is None:
        return "Whether there is more than one cluster was not tested."
    if null.p_value <= NULL_LEVEL:
        return (
            "The groups are clearer than in data of the same mean and covariance "
            f"without groups, the samples rotated at random ({null.words}; groups are "
            f"supposed up to {NULL_LEVEL:g})."
        )
    return (
        "The groups are no clearer than in data of the same mean and covariance "
        "without groups, the samples rotated at random (best silhouette "
        f"{null.observed.max():.3f} against {null.draws.max(axis=1).mean():.3f} on "
        f"average, {null.words}; groups are supposed up to {NULL_LEVEL:g})."
    )


def suggestion_score(table: dict[str, NDArray[Any]]) -> Array:
    """Return the product of the three criteria that the suggestion rests on.

    Eigengap times silhouette times agreement, negative factors as zero: large where the
    groups are separate, hold together, and come out of either half of the ensemble.
    """
    factors = [table[name] for name in ("eigengap", "silhouette", "agreement")]
    score: Array = np.prod([np.maximum(each, 0.0) for each in factors], axis=0)
    return score


def _measure(
    ensemble: Ensemble, ks: Sequence[int], weighting: str, rng: np.random.Generator
) -> dict[str, Any]:
    """Return the fields of `KSelection` that are measured on an ensemble."""
    # Not needed to fit with a given number of clusters, and slow to load.
    from sklearn.metrics import adjusted_rand_score

    weights = WEIGHTINGS[weighting](ensemble)
    similarity = locally_weighted_coassociation(ensemble, weights)
    partitions = cuts(ensemble, weights, ks)
    halves = _cut_halves(ensemble, ks, weighting, rng)
    distributions = [consensus_distribution(halves[:, i]) for i in range(len(ks))]
    areas = np.array([cdf_area(*each) for each in distributions])
    agreements = [
        np.mean(list(map(adjusted_rand_score, halves[::2, i], halves[1::2, i])))
        for i in range(len(ks))
    ]
    table = {
        "n_clusters": np.array(ks),
        "pac": np.array([proportion_ambiguous(*each) for each in distributions]),
        "area": areas,
        "delta_area": delta_area(areas),
        "eigengap": eigengaps(similarity, ks),
        "agreement": np.array(agreements),
        "silhouette": np.array(
            [coassociation_silhouette(similarity, each) for each in partitions]
        ),
    }
    levels, cdf = distributions[0][0], np.stack([each[1] for each in distributions])
    return {"table": table, "cdf": cdf, "levels": levels, "partitions": partitions}


def _cut_halves(
    ensemble: Ensemble, ks: Sequence[int], weighting: str, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Return consensus clusters of both halves of random splits of the members."""
    size = len(ensemble)
    if size == 1:
        halves = [ensemble, ensemble]
    else:
        orders = [rng.permutation(size) for _ in range(N_SPLITS)]
        chosen = [h for o in orders for h in (o[: size // 2], o[size // 2 :])]
        halves = [ensemble[half.tolist()] for half in chosen]
    return np.stack([cuts(half, WEIGHTINGS[weighting](half), ks) for half in halves])
