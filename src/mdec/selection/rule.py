"""How many clusters: criteria side by side, and a rule that makes a suggestion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array, Labels
from mdec._support.parallel import single_threaded_blas
from mdec._support.progress import Progress
from mdec._support.random import member_stream
from mdec.base import Base
from mdec.base.pairs import PRECOMPUTED, Metric
from mdec.ensemble import Ensemble
from mdec.ensemble.plan import Plan
from mdec.generation import generate_ensemble
from mdec.selection.criteria import cuts, measure_numbers
from mdec.selection.null import (
    NULL_LEVEL,
    NullReference,
    default_numbers,
    draw_samples,
    null_reference,
)
from mdec.weights import WEIGHTINGS

# The criteria are measured on at most this many samples and members.
MAX_SAMPLES = 1000
MAX_MEMBERS = 100

# Of so many samples a member clusters at least these.
FEWEST_CLUSTERED = 50

# Metrics that need no function of a user's own, and parameters of a plan that other
# members have as they are.
_NO_FUNCTION = None, PRECOMPUTED
_OF_PLAN = "max_features", "mu_range", "n_neighbors_range", "device"

# What each criterion counts in the product, of 1, 1/2 and 1/4 for each.
EXPONENTS = {"silhouette": 1.0, "agreement": 1.0, "eigengap": 0.5, "merge_gap": 0.25}

# Numbers to look at have this share of the largest score, close ones this.
WORTHY_SHARE, CLOSE_SHARE = 0.5, 0.8
MAX_CANDIDATES = 4


@dataclass(frozen=True)
class Candidate:
    """A number of clusters to look at.

    Attributes
    ----------
    n_clusters : int
        The number.
    score : float
        Its score as a share of the largest.
    sentence : str
        What its clusters are like.
    """

    n_clusters: int
    score: float
    sentence: str


@dataclass(frozen=True)
class KSelection:
    """Criteria for each number of clusters, and the suggestion made from them.

    Attributes
    ----------
    n_clusters : int
        The suggestion; 1 if the data are no more clustered than draws of one cluster.
    reason : str
        Why, in a few sentences.
    table : dict of ndarray
        One entry per number of clusters in each column: "n_clusters", "score", "pac",
        "delta_area", "eigengap", "merge_gap", "agreement" and "silhouette".
    cdf : ndarray of shape (n_numbers, n_levels)
        Share of the pairs whose consensus is at most each of `levels`.
    levels : ndarray of shape (n_levels,)
        Levels of the consensus, from 0 to 1.
    partitions : ndarray of shape (n_numbers, n_measured)
        The consensus clusters of some samples, at most a thousand.
    samples : ndarray of shape (n_measured,)
        These samples.
    null : NullReference or None
        None where only labels were given and no data to draw from.
    candidates : tuple of Candidate
        Numbers to look at, the best first, coarse and fine; also where the
        suggestion is one cluster.
    """

    n_clusters: int
    reason: str
    table: dict[str, NDArray[Any]]
    cdf: Array
    levels: Array
    partitions: NDArray[np.int32]
    samples: NDArray[np.int64]
    null: NullReference | None
    candidates: tuple[Candidate, ...] = ()

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
    X: Any = None,
    k_range: Sequence[int] | None = None,
    weighting: str = "entropy",
    allow_one: bool = True,
    base: Base | None = None,
    metric: Metric | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> KSelection:
    """Measure numbers of clusters and suggest one.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings; they do not depend on the number of clusters.
    X : array of shape (n_samples, n_features), or sequence of them, optional
        The data, one table for each view of the ensemble, or all pairs of samples if it
        was made of these. Members for the criteria and draws of one cluster are made of
        them. Without them the members of the ensemble are measured, and one cluster is
        never suggested.
    k_range : sequence of int, optional
        Numbers to measure; None is 2 to a fifth of the samples, at most 30.
    weighting : {"entropy", "uniform"}, default="entropy"
        Weights of the base clusters.
    allow_one : bool, default=True
        False to suggest one of `k_range` even if the null reference finds no more
        than one cluster; the reason then says so.
    base, metric : callable, default=None
        The base clustering and the metric of your own that the ensemble was made with,
        if it was. Where the base clustering is not given, the members of the ensemble
        are measured; without the metric there are no draws either.
    n_jobs : int, default=None
        Members made at the same time; changes nothing else.
    seed : int, default=0
        Seed of members, splits and draws. It does not follow that of the ensemble, so
        that the suggestion for given data is the same whatever the latter is.
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
    ks = check_k_range(k_range, ensemble.n_samples)
    rng = member_stream(seed, 0, "selection")
    samples = draw_samples(ensemble.n_samples, MAX_SAMPLES, rng)
    part, null = ensemble.among(samples), None
    with single_threaded_blas():
        partitions = cuts(part, WEIGHTINGS[weighting](part), ks)
    if X is not None:
        tables = list(X) if ensemble.views else [X]
        parts = [ensemble.view(v) for v in range(len(ensemble.views))] or [ensemble]
        plans = [each.plan for each in parts]
        for table, plan in zip(tables, plans, strict=True):
            if table.shape[1] != plan.n_features:
                raise ValueError(
                    f"X has {table.shape[1]} columns and the ensemble was made of "
                    f"{plan.n_features}; give what it was made of."
                )
        if metric is not None or all(each.metric in _NO_FUNCTION for each in plans):
            # The threads of the host serve a GPU anyway.
            threads = n_jobs if all(each.device == "cpu" for each in plans) else -1
            work = metric, threads, progress
            null = null_reference(tables, plans, seed, *work)
            if base is not None or not any(each.has_own_base for each in plans):
                own = {"base": base or "graph", "metric": metric, "n_jobs": n_jobs}
                part = _make_members(ensemble, tables, plans, rng, seed, own)
    with single_threaded_blas():
        found = measure_numbers(part, ks, weighting, rng)
    table = found["table"]
    table["score"] = suggestion_score(table)
    candidates = list_candidates(table, partitions)
    suggested, reason = suggest(table, candidates, null, allow_one=allow_one)
    found |= {"samples": samples, "null": null, "candidates": candidates}
    return KSelection(suggested, reason, partitions=partitions, **found)


def _make_members(
    ensemble: Ensemble,
    tables: Sequence[Any],
    plans: Sequence[Plan],
    rng: np.random.Generator,
    seed: int,
    functions: Mapping[str, Any],
) -> Ensemble:
    """Make members of at most a thousand samples, with the parameters of others."""
    rows = draw_samples(ensemble.n_samples, MAX_SAMPLES, rng)
    stream, made = member_stream(seed, 1, "selection"), []
    size = min(len(ensemble), MAX_MEMBERS) / len(plans)
    for X, plan in zip(tables, plans, strict=True):
        low, high = plan.base_n_clusters_range
        share, metric = plan.max_samples, functions["metric"] or plan.metric
        if ensemble.n_samples > MAX_SAMPLES:
            X = X[np.ix_(rows, rows)] if metric == PRECOMPUTED else X[rows]
        if X.shape[0] < plan.n_samples:
            # A small share of few samples would leave members too few to cluster.
            share = max(share, min(1.0, FEWEST_CLUSTERED / X.shape[0]))
            high = max(low, min(high, math.ceil(math.sqrt(share * X.shape[0]))))
        changed = {
            "ensemble_size": max(1, round(size)),
            "kernel": plan.kernel_shares,
            "preparation": None if plan.preparation is None else "diversified",
            "base_n_clusters_range": (low, high),
            "max_samples": share,
            "metric": metric,
            "random_state": stream,
        }
        same = {name: getattr(plan, name) for name in _OF_PLAN}
        made.append(generate_ensemble(X, **{**functions, **same, **changed}))
    if len(made) == 1:
        return made[0]
    shares = [each.share for each in ensemble.views if each.share is not None]
    return Ensemble.concatenate(made, weights=shares or None)


def check_k_range(k_range: Sequence[int] | None, n_samples: int) -> list[int]:
    """Return the numbers to compare in order, or raise for those that cannot be.

    None is 2 to a fifth of the samples, at most 30.
    """
    most = min(n_samples, MAX_SAMPLES) - 1
    ks = default_numbers(n_samples) if k_range is None else sorted({*map(int, k_range)})
    if not ks or ks[0] < 2 or ks[-1] > most:
        raise ValueError(
            f"the numbers of clusters to compare must lie between 2 and {most}; got "
            f"{ks[0] if ks else 'none'} to {ks[-1] if ks else 'none'}."
        )
    return ks


def suggest(
    table: dict[str, NDArray[Any]],
    candidates: Sequence[Candidate],
    null: NullReference | None,
    *,
    allow_one: bool = True,
) -> tuple[int, str]:
    """Turn the columns of `KSelection.table` into a suggestion and its reason.

    The reason is a few sentences; one cluster is suggested only if `allow_one`.
    """
    ks, score, best = table["n_clusters"], table["score"], candidates[0]
    row = int(np.flatnonzero(ks == best.n_clusters)[0])
    words = [f"{each.replace('_', ' ')} {table[each][row]:.2f}" for each in EXPONENTS]
    lead = f"K = {best.n_clusters} has the largest score ({', '.join(words)})."
    close = ks[(score >= CLOSE_SHARE * score[row]) & (ks != best.n_clusters)]
    if close.size and score[row] > 0.0:
        numbers = ", ".join(map(str, close))
        lead += f" Close to it: {numbers}; let what you know decide between them."
    if len(ks) > 1 and best.n_clusters == ks[-1]:
        lead += " It is the largest number compared, so compare larger ones too."
    verdict = "Whether there is more than one cluster was not tested."
    if null is not None:
        verdict = (
            f"The groups are {'clearer' if null.is_firm else 'no clearer'} than in "
            "draws of one cluster with the same distributions and correlations "
            f"({null.words}; groups are firm below {NULL_LEVEL:g})."
        )
        if allow_one and not null.is_firm:
            split = f"the best split would be K = {best.n_clusters}: {best.sentence}"
            return 1, f"No firm groups; {split}. {verdict} {lead}"
    return best.n_clusters, f"{best.sentence}. {lead} {verdict}"


def suggestion_score(table: dict[str, NDArray[Any]]) -> Array:
    """Return the product of the criteria that the suggestion rests on.

    Silhouette times agreement times the root of the eigengap times the fourth root of
    the merge gap, negative factors as zero: large where groups hold together, come out
    of either half of the members, and stand apart in the spectrum and the dendrogram.
    """
    factors = [np.maximum(table[name], 0.0) ** each for name, each in EXPONENTS.items()]
    return np.prod(factors, axis=0)


def list_candidates(
    table: dict[str, NDArray[Any]], partitions: NDArray[np.int32]
) -> tuple[Candidate, ...]:
    """Return the number with the largest score, then other peaks that come near it."""
    ks, score = table["n_clusters"], table["score"]
    best, top = int(score.argmax()), max(float(score.max()), np.finfo(float).tiny)
    padded = np.concatenate([[-1.0], score, [-1.0]])
    peaks = (score >= padded[:-2]) & (score > padded[2:])
    peaks &= score >= WORTHY_SHARE * score[best]
    peaks[best] = True
    rows = np.flatnonzero(peaks)
    order = rows[np.lexsort((rows, -score[rows], rows != best))]
    return tuple(
        Candidate(int(ks[i]), float(score[i]) / top, describe_sizes(partitions[i]))
        for i in order[:MAX_CANDIDATES]
    )


def describe_sizes(labels: Labels) -> str:
    """Say in words how large the clusters are.

    Examples
    --------
    >>> describe_sizes(np.repeat([0, 1, 2], [3, 3, 4]))
    '3 clusters with 30 % to 40 % of the samples each'
    """
    shares = np.sort(np.bincount(labels))[::-1] / len(labels)
    low, high = f"{100 * shares[-1]:.2g} %", f"{100 * shares[0]:.2g} %"
    span = low if low == high else f"{low} to {high}"
    return f"{shares.size} clusters with {span} of the samples each"
