"""Write the tables of measured numbers into the pages, from what the runs recorded.

A page has a table between two comments, ``<!-- numbers: NAME -->`` and ``<!-- end of
numbers -->``. When the site is built each is made again from the records; ``python
docs/_site/measured.py`` does the same for the files themselves, which are read on other
sites too, and a test fails where a file has another number than its records.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mdec.bench.summary import published_table

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
RECORDS = ROOT / "benchmarks" / "results"
PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("evidence", "choosing-k")),
    *(ROOT / "docs" / f"{name}.md" for name in ("performance", "quality")),
    *(ROOT / "docs" / f"{name}.md" for name in ("reliability", "scale")),
]
BLOCK = re.compile(
    r"(<!-- numbers: ([\w-]+) -->\n)(.*?)(<!-- end of numbers -->)", re.S
)
CONSENSUS = {
    "MDEC-HC": "hierarchical",
    "MDEC-SC": "spectral",
    "MDEC-BG": "bipartite",
}
# Families and rows of the record of the choice of K.
FAMILIES = {"genes": "gene sets", "images": "image sets", "cells": "sets of cells"}
AS_IT_IS, TESTED = "the rule as it is", "the same, 0 if no groups are firm"
GENE_SETS = [f"DS-{number}" for number in range(1, 19)]


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown, which ends with a line break."""
    lines = [f"| {' | '.join(row)} |" for row in (list(heads), *map(list, rows))]
    rule = "|---" * (lines[0].count("|") - 1) + "|"
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"


@cache
def read_lines(name: str) -> list[dict[str, Any]]:
    """Return the records of a benchmark, the oldest first."""
    text = (RECORDS / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def newest(name: str, key: str = "name") -> dict[str, dict[str, Any]]:
    """Return the last record of each name."""
    return {str(record[key]): record for record in read_lines(name)}


def mean_scores(study: str) -> tuple[list[str], dict[str, float]]:
    """Return the datasets that every method of a study has, and mean NMI over them."""
    scores: dict[str, dict[str, float]] = {}
    with (RESULTS / study / "scores.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["metric"] == "nmi_max" and row["status"] == "ok":
                scores.setdefault(row["method"], {})[row["dataset"]] = float(
                    row["mean"]
                )
    datasets = [
        name
        for name in next(iter(scores.values()))
        if all(name in each for each in scores.values())
    ]
    return datasets, {
        method: float(np.mean([each[name] for name in datasets]))
        for method, each in scores.items()
    }


def cpu_seconds(dataset: str) -> dict[str, float]:
    """Return the CPU seconds of every method on one dataset."""
    lines = (RESULTS / "paper-tables" / "tables" / "cpu_seconds_1.md").read_text(
        "utf-8"
    )
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines.splitlines()
    ]
    found = next(row for row in rows if row[0] == dataset)
    numbers = [re.search(r"\d+(?:\.\d+)?", cell) for cell in found]
    return {
        method: float(number[0])
        for method, number in zip(rows[0][1:], numbers[1:], strict=True)
        if number
    }


def three(values: Iterable[float]) -> str:
    """Return the scores of the three consensus functions."""
    return " / ".join(f"{value:.1f}" for value in values)


def prepared_scores(variant: str) -> tuple[dict[str, dict[str, float]], int]:
    """Return NMI by dataset and consensus function of a preparation, and the seeds."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for record in read_lines("preparation"):
        if record["variant"] == variant and record["dataset"] in GENE_SETS:
            runs.setdefault(record["dataset"], []).append(record)
    means = {
        name: {
            each: float(np.mean([record[each] for record in found]))
            for each in CONSENSUS.values()
        }
        for name, found in runs.items()
    }
    return means, min(len(found) for found in runs.values())


def over_sets(means: dict[str, dict[str, float]]) -> list[float]:
    """Return the means over the datasets, one for each consensus function."""
    return [
        float(np.mean([each[name] for each in means.values()]))
        for name in CONSENSUS.values()
    ]


def evidence() -> str:
    """Return the table of the front page."""
    datasets, ours = mean_scores("paper-tables")
    paper = published_table("nmi_max", datasets, list(CONSENSUS)).mean.mean(axis=0)
    in_use, today = mean_scores("today")
    others = {name: score for name, score in today.items() if name not in CONSENSUS}
    best = max(others, key=others.__getitem__)
    cells, prepared = mean_scores("cells")
    million = newest("scale")["million mixture"]
    k_means = newest("scale")["compare mixture"]["mini_batch_kmeans_nmi"]
    found = newest("choosing-k", "what")["rules"]
    choice, shown = found["rows"], ("genes", "cells")
    places = [list(found["sets"]).index(family) for family in shown]
    of_sets, of_cells = (found["sets"][family] for family in shown)
    without = ", ".join(sorted({*cells} - {*of_cells}))
    left_out = f" (without {without})" if without else ""

    def chosen(rule: str) -> str:
        return " / ".join(f"{choice[rule][place][0]:.1f}" for place in places)

    seconds = cpu_seconds("DS-30")["MDEC-HC"]
    of_paper = published_table("seconds", ["DS-30"], ["MDEC-HC"]).mean[0, 0]
    return table(
        ["", "mdec", "for comparison"],
        [
            [
                f"the paper repeated: {len(datasets)} datasets, "
                "hierarchical / spectral / bipartite consensus",
                three(ours[name] for name in CONSENSUS),
                f"{three(paper)} as published",
            ],
            [
                f"methods in use today, {len(in_use)} datasets",
                f"{max(today[name] for name in CONSENSUS):.1f}",
                f"{others[best]:.1f} for {best}, the best of {len(others)}",
            ],
            [
                f"{len(GENE_SETS)} gene-expression datasets, values prepared",
                three(over_sets(prepared_scores("expression")[0])),
                f"{three(over_sets(prepared_scores('none')[0]))} not prepared",
            ],
            [
                f"{len(cells)} single-cell datasets, values prepared",
                three(prepared[name] for name in CONSENSUS),
                f"{prepared['Leiden']:.1f} for Leiden, its resolution searched to give "
                f"K; {prepared['SC3s']:.1f} for SC3s",
            ],
            [
                f"K chosen by mdec, {len(of_sets)} gene-expression / {len(of_cells)} "
                f"single-cell datasets{left_out}",
                f"{chosen(AS_IT_IS)}; {chosen(TESTED)} if a dataset in which no groups "
                "are found scores 0",
                f"{chosen('K given')} with K given",
            ],
            [
                f"{million['rows']:,} rows of {million['features']} features, "
                "two cores",
                f"{million['seconds']:.0f} s, {million['peak_gb']:.1f} GB, "
                f"NMI {million['nmi']:.1f}",
                f"NMI {min(k_means):.1f} to {max(k_means):.1f} for MiniBatchKMeans",
            ],
            [
                "11,000 x 256 (DS-30)",
                f"{seconds:.0f} CPU s on one core",
                f"{of_paper:.0f} s as published, on 14 cores",
            ],
        ],
    )


def choosing_k() -> str:
    """Return NMI and agreement of the seeds by rule and family."""
    found = newest("choosing-k", "what")["rules"]
    without_share = "K given", "best K of all (not attainable)"
    return table(
        ["rule", *(f"{len(found['sets'][f])} {FAMILIES[f]}" for f in found["sets"])],
        (
            [
                rule,
                *(
                    f"{nmi:.1f}"
                    if rule in without_share
                    else f"{nmi:.1f} ({same:.0f} %)"
                    for nmi, same in values
                ),
            ]
            for rule, values in found["rows"].items()
        ),
    )


def firm_groups() -> str:
    """Return how often each kind of data is called more than one cluster."""
    lines = newest("choosing-k", "what")
    words = {
        "correlated": "correlated, 5 factors",
        "lognormal": "lognormal, not prepared",
        "negative binomial": "negative binomial, not prepared",
        "heavy-tailed": "heavy-tailed (t, 3 degrees)",
    }
    rows = [
        [f"{words.get(r['data'], r['data'])} ({r['sets']})", f"{r['firm']:.1f}"]
        for r in lines["noise"]["rows"]
    ]
    found = lines["rules"]
    rows += [
        [f"{FAMILIES[f]} with classes ({len(found['sets'][f])})", f"{share:.0f}"]
        for f, share in found["firm"].items()
    ]
    return table(["data (number of sets)", "firm groups, percent"], rows)


def one_core() -> list[dict[str, Any]]:
    """Return the newest record of each size that was measured on one core."""
    found = {
        tuple(record["shape"]): record
        for record in read_lines("speed")
        if record["jobs"] == 1
    }
    return [found[shape] for shape in sorted(found)]


def speed() -> str:
    """Return the CPU time of a member by steps, and as a multiple of the yardsticks."""
    found = one_core()
    steps = ("neighbours", "graph", "eigenvectors", "k-means")

    def row(name: str, values: Iterable[float], digits: int = 1) -> list[str]:
        shown = (
            f"{value:.{digits}f}" if value < 10 else f"{value:.0f}" for value in values
        )
        return [name, *shown]

    return table(
        [
            "CPU ms per base clustering",
            *(f"{r['shape'][0]} x {r['shape'][1]}" for r in found),
        ],
        [
            row("matrix products alone", (1e3 * r["bare_products"] for r in found)),
            *(
                row(name, (1e3 * r["stages_per_member"][name] for r in found))
                for name in steps
            ),
            row(
                "mdec / matrix products",
                (r["per_member"] / r["bare_products"] for r in found),
            ),
            row(
                "direct port / mdec",
                (r["port"] / r["per_port_member"] for r in found),
            ),
            row(
                "scikit-learn's spectral clustering / mdec",
                (r["sklearn"] / r["per_port_member"] for r in found),
            ),
        ],
    )


def gpu() -> str:
    """Return the seconds of a fit on a GPU."""
    known = newest("gpu")
    names = [
        *("DS-11 (248, 2526)", "DS-26 (2000, 649)", "DS-30 (11000, 256)"),
        "mixture (50000, 784)",
    ]
    found = [known[name] for name in names]
    shapes = [re.findall(r"\d+", name.partition("(")[2]) for name in names]
    steps = ("neighbours and similarities", "eigenvectors", "k-means")
    return table(
        ["seconds, M = 100", *(" x ".join(shape) for shape in shapes)],
        [
            *([step, *(f"{r['split'][step]:.2f}" for r in found)] for step in steps),
            [
                "`MDEC.fit`, hierarchical",
                *(f"{r['fit, hierarchical']:.2f}" for r in found),
            ],
        ],
    )


def scale() -> str:
    """Return the runs of many rows."""
    known = newest("scale")
    shown = {
        "million mixture": "twenty overlapping Gaussian clusters",
        "million digits": "digits drawn with replacement, with noise",
        "wide": "digits enlarged, moved, with noise",
        "larger-than-memory": "a file of {file_gb:.1f} GB; limit {limit_gb:.0f} GB",
    }

    def row(name: str, words: str) -> list[str]:
        found = known[name.replace("-", " ")]
        baseline = known.get(f"compare {name.replace('million ', '')}", {})
        scores = baseline.get("mini_batch_kmeans_nmi")
        return [
            f"`{name}`",
            f"{found['rows']:,} x {found['features']}, {words.format(**found)}",
            f"{found['members']}",
            f"{found['seconds']:.0f}",
            f"{found['peak_gb']:.1f} GB",
            f"{found['nmi']:.1f}",
            f"{min(scores):.0f} to {max(scores):.0f}" if scores else "not run",
        ]

    return table(
        ["command", "data", "M", "seconds", "peak memory", "NMI", "MiniBatchKMeans"],
        (row(name, words) for name, words in shown.items()),
    )


def cells() -> str:
    """Return the time and memory of many cells, beside Leiden."""
    found = {
        (*record["many"], record["method"]): record
        for record in read_lines("cells")
        if "many" in record
    }
    shapes = list(dict.fromkeys((cells, features) for cells, features, _ in found))

    def row(method: str) -> list[str]:
        own = [found[*shape, method] for shape in shapes]
        return [
            method,
            *(f"{r['seconds']:.0f} s, {r['peak_mb'] / 1e3:.1f} GB" for r in own),
        ]

    over = [
        found[*shape, "mdec"]["seconds"] / found[*shape, "Leiden"]["seconds"]
        for shape in shapes
    ]
    return table(
        ["CPU time, peak memory", *(f"{n:,} x {d}" for n, d in shapes)],
        [
            *map(row, ("mdec", "Leiden")),
            ["mdec / Leiden", *(f"{each:.0f}" for each in over)],
        ],
    )


def preparation() -> str:
    """Return what preparing expression values gains."""
    shown = {
        "none": "none",
        "expression": "`ExpressionPreparation`, as `mdec fit`",
        "auto": "each base clustering draws the power",
    }
    before, _ = prepared_scores("none")

    def row(variant: str, words: str) -> list[str]:
        found, _ = prepared_scores(variant)
        lost = [
            f"{name} with {method[-2:]} ({found[name][each] - before[name][each]:.0f})"
            for method, each in CONSENSUS.items()
            for name in GENE_SETS
            if found[name][each] - before[name][each] < -3.0
        ]
        return [
            words,
            *(f"{value:.1f}" for value in over_sets(found)),
            ", ".join(lost) or "no set",
        ]

    heads = ["HC", "SC", "BG", "sets that lose more than 3 points"]
    return table(["preparation", *heads], (row(*each) for each in shown.items()))


def machines() -> str:
    """Return what differs, and which tests fail, as on other machines."""
    lines = read_lines("machines")
    labels = {
        (row["setting"], row["dataset"]): row
        for row in lines
        if row["what"] == "labels"
    }
    tests = {row["setting"]: row for row in lines if row["what"] == "tests"}

    def row(setting: str) -> list[str]:
        own = [each for (name, _), each in labels.items() if name == setting]
        members, partitions = (
            sum(each[part] for each in own) for part in ("members", "consensus")
        )
        other = sum(each["other"] for each in own)
        differ = sum(len(each["differ"]) for each in own)
        found = tests.get(setting, {"text": "not run"})
        counts = [str(found.get(part, "")) for part in ("passed", "failed", "skipped")]
        return [
            setting,
            *([f"{other} of {members}", f"{differ} of {partitions}"] if own else "--"),
            *([found["text"], "", ""] if found["text"] else counts),
            ", ".join(
                dict.fromkeys(e["commit"] for e in [*own, found] if "commit" in e)
            ),
        ]

    heads = ["setting", "other members", "other consensus"]
    heads += ["tests passed", "failed", "skipped", "commit"]
    names = dict.fromkeys(each["setting"] for each in lines)
    return table(heads, map(row, names))


def mutations() -> str:
    """Return how many small faults the tests notice."""
    found = read_lines("mutation-counts")[-1]
    return table(
        ["changes tried", "noticed", "modules with a change", "commit"],
        [
            [
                f"{found['tried']}",
                f"{found['killed']}",
                f"{found['modules_tried']} of {found['modules']}",
                found["commit"],
            ]
        ],
    )


BLOCKS: dict[str, Callable[[], str]] = {
    "evidence": evidence,
    "choosing-k": choosing_k,
    "firm-groups": firm_groups,
    "speed": speed,
    "gpu": gpu,
    "scale": scale,
    "cells": cells,
    "preparation": preparation,
    "machines": machines,
    "mutations": mutations,
}


def renewed(text: str) -> str:
    """Return a page with every table of numbers made again from the records."""
    return BLOCK.sub(
        lambda found: f"{found[1]}\n{BLOCKS[found[2]]()}\n{found[4]}", text
    )


def setup(app: Any) -> dict[str, bool]:
    """Make the tables again for every page that Sphinx reads."""

    def renew(app: Any, name: str, text: list[str]) -> None:  # noqa: ARG001
        text[0] = renewed(text[0])

    app.connect("source-read", renew)
    return {"parallel_read_safe": True}


def main() -> None:
    """Renew the files."""
    for path in PAGES:
        path.write_text(renewed(path.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
