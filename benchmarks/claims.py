"""The tables of docs/results/README.md that no page of a study has.

python benchmarks/claims.py RECORDS

RECORDS is a folder of records, docs/results/records if left out. A test finds every row
that is printed on the page.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from mdec.bench.records import Records, read_records
from mdec.bench.summary import (
    Part,
    Sweep,
    comparable_parts,
    hardware,
    list_hardware,
    published_table,
    rank_test,
    score_table,
    sweep,
)

RECORDS = Path(__file__).parents[1] / "docs" / "results" / "records"
MDEC = ("MDEC-HC", "MDEC-SC", "MDEC-BG")
METRICS = ("nmi_max", "ari")
# The columns of a difference, in both metrics.
KINDS = {"all": None, "gene sets": "gene expression", "image sets": "image"}


def table(heads: list[str], rows: Iterator[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


def parts(records: Records, method: str) -> dict[str, Part]:
    """Return the datasets on which a method has all scores, and those of each kind."""
    whole = next(p for p in comparable_parts(records, "ari") if method in p.methods)
    kinds = {"all": whole, **whole.by_kind()}
    return {shown: kinds[kind or "all"] for shown, kind in KINDS.items()}


def swept(records: Records, x: str, part: Part) -> list[Sweep]:
    """Return the means against a parameter by both metrics."""
    return [sweep(records, metric, x, part.holds) for metric in METRICS]


def both(values: list[float]) -> str:
    """Return two differences, by NMI and ARI, with their signs."""
    return ", ".join(f"{round(value, 1) + 0.0:+.1f}" for value in values)


def lead(records: Records) -> str:
    """Return how far MDEC is from the paper, and ahead of the best baseline."""
    scores = score_table(records, "nmi_max", lambda run: run["method"] in MDEC)
    paper = published_table("nmi_max", scores.datasets, MDEC)
    baselines = score_table(
        records, "nmi_max", lambda run: run["method"] in ("PTGP", "ECC")
    )
    best = baselines.average_score.max()

    def rows() -> Iterator[list[str]]:
        found = scores.average_score
        yield [f"mdec, {len(scores.datasets)} datasets", *(f"{v:.2f}" for v in found)]
        yield ["published, same datasets", *(f"{v:.2f}" for v in paper.average_score)]
        apart = np.abs(scores.mean - paper.mean)
        yield ["mean distance per dataset", *(f"{v:.2f}" for v in apart.mean(axis=0))]
        yield ["largest distance", *(
            f"{apart[i, j]:.2f} on {scores.datasets[i]}"
            for j, i in enumerate(apart.argmax(axis=0))
        )]  # fmt: skip
        yield [
            "above the better of PTGP and ECC",
            *(f"{100 * (v / best - 1):.0f} %" for v in found),
        ]

    return table(["NMI", *MDEC], rows())


def sizes(records: Records) -> str:
    """Return mean NMI at three sizes, how far it moves, and the best baseline."""
    heads = ["NMI", "M = 20", "100", "300", "span from 50 on", "best baseline at any M"]

    def rows() -> Iterator[list[str]]:
        # A baseline was run on fewer sets, and only the same ones compare.
        for shown, part in list(parts(records, "LWGP").items())[1:]:
            found = sweep(records, "nmi_max", "ensemble_size", part.holds)
            at = [found.values.index(m) for m in (20, 100, 300)]
            later = np.array(found.values) >= 50
            ours = [found.columns.index(method) for method in MDEC]
            others = np.delete(found.mean, ours, axis=1)
            names = np.delete(np.array(found.columns), ours)
            _, best = np.unravel_index(np.nanargmax(others), others.shape)
            baseline = f"{names[best]} {np.nanmax(others):.1f}"
            for j in ours:
                yield [
                    f"{found.columns[j]}, {len(part.datasets)} {shown}",
                    *(f"{found.mean[i, j]:.1f}" for i in at),
                    f"{np.ptp(found.mean[later, j]):.1f}",
                    baseline,
                ]

    return table(heads, rows())


def kernels(records: Records) -> str:
    """Return mean NMI with four kernels."""
    heads = ["NMI", "diversified", "cosine", "correlation", "Spearman"]

    def rows() -> Iterator[list[str]]:
        for shown, part in parts(records, MDEC[0]).items():
            found = sweep(records, "nmi_max", "kernel", part.holds)
            for j, method in enumerate(found.columns):
                label = f"{method}, {len(part.datasets)} {shown}".replace(" all", "")
                yield [label, *(f"{value:.2f}" for value in found.mean[:, j])]

    return table(heads, rows())


def ratios(records: Records) -> str:
    """Return what small and full samples of features cost against moderate ones."""

    def against_moderate(found: Sweep, j: int, tau: float) -> float:
        moderate = [0.4 <= value <= 0.8 for value in found.values]
        at = found.values.index(tau)
        return float(found.mean[at, j] - found.mean[moderate, j].mean())

    measures: dict[str, Callable[[Sweep, int], float]] = {
        "tau = 0.2": lambda found, j: against_moderate(found, j, 0.2),
        "tau = 1": lambda found, j: against_moderate(found, j, 1.0),
        "highest less lowest": lambda found, j: float(np.ptp(found.mean[:, j])),
    }

    def rows() -> Iterator[list[str]]:
        chosen = [
            swept(records, "max_features", part)
            for part in parts(records, MDEC[0]).values()
        ]
        for method in MDEC:
            j = chosen[0][0].columns.index(f"{method}, weighting=entropy")
            for words, measure in measures.items():
                cells = [both([measure(each, j) for each in found]) for found in chosen]
                yield [f"{method}, {words}", *cells]

    return table(["NMI, ARI", *KINDS], rows())


def weights(records: Records) -> str:
    """Return what weights gain over equal ones on average, and at how many tau."""

    def rows() -> Iterator[list[str]]:
        chosen = {
            shown: swept(records, "max_features", part)
            for shown, part in parts(records, MDEC[0]).items()
        }
        for method in MDEC:
            names = [f"{method}, weighting={name}" for name in ("entropy", "uniform")]
            cells = []
            for found in chosen.values():
                gains = []
                for each in found:
                    weighted, equal = (each.columns.index(name) for name in names)
                    gains.append(each.mean[:, weighted] - each.mean[:, equal])
                ahead = " and ".join(str((gain > 0).sum()) for gain in gains)
                means = both([float(gain.mean()) for gain in gains])
                cells.append(f"{means} ({ahead} of {len(gains[0])})")
            yield [method, *cells]

    return table(["NMI, ARI", *KINDS], rows())


def standing(records: Records) -> str:
    """Return scores and ranks where all methods were run, in the order of ranks."""
    nmi, ari = (score_table(records, metric).in_common() for metric in METRICS)
    test = rank_test(nmi)

    def rows() -> Iterator[list[str]]:
        columns = np.column_stack(
            [
                nmi.average_score,
                nmi.average_rank,
                ari.average_score,
                ari.average_rank,
            ]
        )
        for j in np.argsort(columns[:, 1], kind="stable"):
            values = [f"{value:.2f}" for value in columns[j]]
            yield [nmi.methods[j], *values, str(nmi.top_counts()[j])]

    words = (
        f"{len(nmi.datasets)} datasets; Nemenyi's critical difference by NMI is "
        f"{test.critical_difference:.2f}."
    )
    heads = ["mean", "NMI", "rank", "ARI", "rank", "among the first three by NMI"]
    return f"{words}\n\n{table(heads, rows())}"


def seconds(records: Records) -> str:
    """Return the CPU seconds of MDEC and baselines on the processor of most runs."""
    place = list_hardware(records)[0]
    times = score_table(records, "cpu_seconds", lambda run: hardware(run) == place)
    paper = published_table("cpu_seconds", times.datasets, times.methods)
    shapes = [
        (records.datasets[name]["n_samples"], records.datasets[name]["n_features"])
        for name in times.datasets
    ]
    small = [i for i, (n_samples, _) in enumerate(shapes) if n_samples < 500]
    groups = {f"{len(small)} sets of less than 500 samples": small} | {
        f"{name}, {shape[0]} x {shape[1]}": [i]
        for i, (name, shape) in enumerate(zip(times.datasets, shapes, strict=True))
        if i not in small
    }
    ours = [times.methods.index(method) for method in MDEC]
    rest = [j for j in range(len(times.methods)) if j not in ours]

    def spread(values: np.ndarray) -> str:
        known = values[~np.isnan(values)]
        ends = [known.min(), known.max()] if known.size else []
        shown = [f"{end:.2g}" if end < 10 else f"{end:.0f}" for end in ends]
        return " to ".join(dict.fromkeys(shown)) or "-"

    def rows() -> Iterator[list[str]]:
        for words, found in groups.items():
            cells = [
                spread(each.mean[np.ix_(found, columns)])
                for columns in (ours, rest)
                for each in (times, paper)
            ]
            yield [words, *cells]

    heads = ["CPU seconds", "MDEC", "paper", "baselines", "paper"]
    return f"{place}:\n\n{table(heads, rows())}"


CLAIMS: dict[str, tuple[str, Callable[[Records], str]]] = {
    "lead": ("paper-tables", lead),
    "sizes": ("ensemble-size", sizes),
    "kernels": ("metrics", kernels),
    "ratios": ("sampling-ratio", ratios),
    "weights": ("sampling-ratio", weights),
    "seconds": ("paper-tables", seconds),
    "today": ("today", standing),
    "cells": ("cells", standing),
}


def main() -> None:
    """Print all tables."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    all_records: dict[str, Records] = {}
    for name, (study, claim) in CLAIMS.items():
        if study not in all_records:
            all_records[study] = read_records(folder / f"{study}.jsonl.gz")
        print(f"{name}\n\n{claim(all_records[study])}\n")


if __name__ == "__main__":
    main()
