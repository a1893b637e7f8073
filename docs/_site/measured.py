"""Write measured numbers into the pages, from what the runs recorded.

A page has a table or a sentence between two comments, ``<!-- numbers: NAME -->`` and
``<!-- end of numbers -->``. When the site is built each is made again from the records;
``python docs/_site/measured.py`` does the same for the files themselves, which are read
on other sites too, and a test fails where a file has another number than its records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from study_numbers import BLOCKS as OF_STUDIES
from study_numbers import (
    CONSENSUS,
    MDEC,
    scores,
    sentence,
    table,
    three,
    times,
)

from mdec.bench.summary import published_table
from mdec.selection.null import LOOKS

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "benchmarks" / "results"
MARK = "<!-- numbers: "
PAGES = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))
    if "_build" not in path.parts and MARK in path.read_text("utf-8")
]
BLOCK = re.compile(
    r"(<!-- numbers: ([\w-]+) -->\n)(.*?)(<!-- end of numbers -->)", re.S
)
# Families and rows of the record of the choice of K.
FAMILIES = {"genes": "gene sets", "images": "image sets", "cells": "sets of cells"}
AS_IT_IS = "the rule as it is"
GENE_SETS = [f"DS-{number}" for number in range(1, 19)]


@cache
def read_lines(name: str) -> list[dict[str, Any]]:
    """Return the records of a benchmark, the oldest first."""
    text = (RECORDS / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def newest(name: str, key: str = "name") -> dict[str, dict[str, Any]]:
    """Return the last record of each name."""
    return {str(record[key]): record for record in read_lines(name)}


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
    ours = scores("paper-tables")[MDEC]
    paper = published_table("nmi_max", [*ours.index], MDEC).average_score
    today, cells = scores("today"), scores("cells")
    others = today.drop(columns=MDEC).mean()
    prepared = cells.mean()
    million = newest("scale")["million mixture"]
    k_means = newest("scale")["compare mixture"]["mini_batch_kmeans_nmi"]
    found = newest("choosing-k", "what")["rules"]
    choice, shown = found["rows"], ("genes", "cells")
    places = [list(found["sets"]).index(family) for family in shown]
    of_sets, of_cells = (found["sets"][family] for family in shown)
    without = ", ".join(sorted({*cells.index} - {*of_cells}))
    left_out = f" (without {without})" if without else ""

    def chosen(rule: str) -> list[str]:
        return [f"{choice[rule][place][0]:.1f}" for place in places]

    seconds = times("paper-tables", "cpu_seconds_1").loc["DS-30", "MDEC-HC"]
    of_paper = published_table("seconds", ["DS-30"], ["MDEC-HC"]).mean[0, 0]
    return table(
        ["", "mdec", "for comparison"],
        [
            [
                f"{len(ours)} datasets of the paper, hierarchical / spectral / "
                "bipartite consensus",
                three(ours.mean()),
                f"{three(paper)} as published",
            ],
            [
                f"the same {len(today)} datasets, runs beside other methods",
                f"{today[MDEC].mean().max():.1f}",
                f"{others.max():.1f} for {others.idxmax()}, the best of {len(others)} "
                "methods in use today",
            ],
            [
                f"{len(GENE_SETS)} gene-expression datasets, values prepared",
                three(over_sets(prepared_scores("expression")[0])),
                f"{three(over_sets(prepared_scores('none')[0]))} not prepared",
            ],
            [
                f"{len(cells)} single-cell datasets, values prepared",
                three(prepared[MDEC]),
                f"{prepared['Leiden']:.1f} for Leiden, its resolution searched to give "
                f"K; {prepared['SC3s']:.1f} for SC3s",
            ],
            *(
                [
                    f"K chosen by mdec, {len(of_family)} {words}",
                    f"{chosen(AS_IT_IS)[place]}; groups are found in "
                    f"{firm_share(shown[place]):.0f} %",
                    f"{chosen('K given')[place]} with K given",
                ]
                for place, (of_family, words) in enumerate(
                    (
                        (of_sets, "gene-expression datasets"),
                        (of_cells, f"single-cell datasets{left_out}"),
                    )
                )
            ),
            [
                f"{million['rows']:,} rows of {million['features']} features, on "
                "two cores",
                f"{million['seconds']:.0f} s, {million['peak_gb']:.1f} GB, "
                f"NMI {million['nmi']:.1f}",
                f"NMI {min(k_means):.1f} to {max(k_means):.1f} for MiniBatchKMeans",
            ],
            [
                "time for 11,000 x 256 (DS-30)",
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
            if rule != "the rule, on members that follow the seed"
        ),
    )


def firm_share(family: str) -> float:
    """Return the percentage of the sets of a family in which groups are firm."""
    found = newest("choosing-k", "what")["firm"]
    p_values = np.array([*found["p_values"][family].values()])
    return 100.0 * float(np.mean(p_values < found["level"]))


def firm_groups() -> str:
    """Return how often each kind of data is called more than one cluster."""
    lines = newest("choosing-k", "what")
    words = {
        "correlated": "correlated, 5 factors",
        "lognormal": "lognormal, not prepared",
        "negative binomial": "negative binomial, not prepared",
        "heavy-tailed": "heavy-tailed (t, 3 degrees)",
    }
    # What has structure, but no classes, follows.
    noise = sorted(
        lines["noise"]["rows"],
        key=lambda row: row["data"].startswith(("gradient", "ring", "batch")),
    )
    rows = [
        [f"{words.get(r['data'], r['data'])} ({r['sets']})", f"{r['firm']:.1f}"]
        for r in noise
    ]
    rows += [
        [f"{FAMILIES[f]} with classes ({len(of_family)})", f"{firm_share(f):.0f}"]
        for f, of_family in lines["firm"]["p_values"].items()
    ]
    draws, sets = LOOKS[-1], lines["noise"]["rows"][0]["sets"]
    chance = 1.0 / (draws + 1)
    error = np.sqrt(chance * (1.0 - chance) / sets)
    words = sentence(
        f"Chance alone would give {100 * chance:.1f} ± {100 * error:.1f} % of {sets}",
        "datasets.",
    )
    return f"{table(['data (number of sets)', 'firm groups, percent'], rows)}\n{words}"


def choosing_time() -> str:
    """Return what the test for groups and the choice of K take beside a fit."""
    found = newest("choosing-k", "what")["time"]["rows"]
    names = [
        f"{row['data'].replace('_', ' ')} ({' x '.join(map(str, row['shape']))})"
        for row in found
    ]
    ratios = [
        (test / fit, auto / fit) for fit, test, _, auto in (r["seconds"] for r in found)
    ]
    tests, fits = (
        " / ".join(f"{v:.1f}" for v in each) for each in zip(*ratios, strict=True)
    )
    return sentence(
        f"On {', '.join(names[:-1])} and {names[-1]}, choosing K takes {fits} times",
        f"the CPU time of a fit with K given, of which the test takes {tests}.",
    )


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
            row("goal", (3, 6, 16), digits=0),
            row(
                "scikit-learn's spectral clustering / mdec",
                (r["sklearn"] / r["per_port_member"] for r in found),
            ),
        ],
    )


def gpu() -> str:
    """Return the seconds of an ensemble on a GPU, and what they are to be."""
    known = newest("gpu")
    goals: dict[str, float | None] = {
        "sets DS-11": 0.08,
        "sets DS-26": 0.2,
        "sets DS-30": 0.8,
        "large wide": 12.0,
        "large long": 20.0,
        "large million": None,
    }
    found = [known[name] for name in goals]

    def row(name: str, values: Iterable[float | None]) -> list[str]:
        return [name, *("" if v is None else f"{v:.3g}" for v in values)]

    return table(
        ["seconds", *(" x ".join(f"{n}" for n in r["shape"]) for r in found)],
        [
            row("generation", (r["generation"] for r in found)),
            row("goal", goals.values()),
            row("`fit`, bipartite", (r.get("fit, bipartite") for r in found)),
            row("goal", [*[None] * (len(found) - 1), 15.0]),
            row("`predict`, 400 rows", (r.get("predict, 400 rows") for r in found)),
            row("`fit`, K chosen", (r.get("fit, auto") for r in found)),
            row("goal", [1.0, *[None] * (len(found) - 1)]),
        ],
    )


def gpu_kernels() -> str:
    """Return how long a GPU is busy with what, in an ensemble."""
    known = newest("gpu")
    found = [known[f"sets {name}"] for name in ("DS-26", "DS-30")]
    for record in found:
        # What takes less than a twentieth of the time has no row of its own.
        for kind, spent in list(record["kernels"].items()):
            if max(r["kernels"].get(kind, 0.0) / r["busy"] for r in found) < 0.05:
                record["kernels"]["everything else"] += spent
                record["kernels"][kind] = 0.0
    kinds = sorted(
        {k for record in found for k, spent in record["kernels"].items() if spent},
        key=lambda kind: -found[-1]["kernels"].get(kind, 0.0),
    )
    return table(
        ["milliseconds", *(" x ".join(f"{n}" for n in r["shape"]) for r in found)],
        [
            *(
                [kind, *(f"{1e3 * r['kernels'].get(kind, 0.0):.1f}" for r in found)]
                for kind in kinds
            ),
            ["idle", *(f"{1e3 * (r['generation'] - r['busy']):.0f}" for r in found)],
            ["launches", *(f"{r['launches']:,}" for r in found)],
        ],
    )


def gpu_agreement() -> str:
    """Return how far the members and scores of a GPU are those of the CPU."""
    found = {
        str(record["name"]): record
        for record in read_lines("gpu")
        if record["name"].startswith("agree") and record["base"] == "graph"
    }
    records = list(found.values())
    alike = [each["mean ARI"] for each in records]
    least = min(records, key=lambda each: each["mean ARI"])
    rows = [
        [f"mean ARI of a member, {len(records)} sets", f"{np.mean(alike):.3f}"],
        [f"least, {least['name'].split()[1]}", f"{least['mean ARI']:.3f}"],
    ]
    for consensus in CONSENSUS.values():
        pairs = np.mean([each[f"NMI, {consensus}"] for each in records], axis=0)
        rows.append([f"NMI, {consensus}", f"{pairs[0]:.1f} and {pairs[1]:.1f}"])
    return table(["", "CPU and GPU"], rows)


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


def many_rows() -> str:
    """Return what ten million rows take, from a file and on a cluster."""
    found = {r["what"]: r for r in read_lines("many-rows") if r["rows"] == 10**7}
    file, cluster = found["npy"], found["dask"]
    equal = "equal" if found["compare"]["labels_as_npy"] else "different"
    return sentence(
        f"{file['rows']:,} rows of {file['features']} features, M = {file['members']}",
        f"(`benchmarks/many_rows.py`): {file['seconds']:.0f} s and",
        f"{file['peak_gb']:.1f} GB from a .npy file, NMI {file['nmi']:.1f}. On four",
        "Dask workers, one of which is killed, as is the client:",
        f"{cluster['seconds_of_both']:.0f} s with the restart,",
        f"{cluster['worker_peak_gb']:.1f} GB a worker, {equal} labels.",
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
    on_gpu = {
        tuple(record["shape"]): record["fit, spectral"]
        for name, record in newest("gpu").items()
        if name.startswith("cells")
    }
    return table(
        ["CPU time, peak memory", *(f"{n:,} x {d}" for n, d in shapes)],
        [
            *map(row, ("mdec", "Leiden")),
            ["mdec / Leiden", *(f"{each:.0f}" for each in over)],
            ["goal", "10", "15"],
            ["mdec on a GPU, elapsed", *(f"{on_gpu[each]:.1f} s" for each in shapes)],
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
    return sentence(
        f"Of {found['tried']} changes in {found['modules_tried']} of",
        f"{found['modules']} modules, {found['killed']} were noticed at commit",
        f"{found['commit']} (`python benchmarks/mutations.py --summary --record`).",
    )


def deviations() -> str:
    """Return what each choice between paper and released code changes."""
    known = newest("deviations", "choice")
    shown = {
        "kernel as printed": "the similarity as the paper prints it",
        "k from 5 to 19": "k from 5 to 19",
        "M = 30": "M = 30",
        "uniform weights": "equal weights for all base clusters",
        "diagonal of Eq. 21": "the diagonal of A by Eq. 21",
        "with column factor": "the factor per column in the transfer cut",
    }

    def change(name: str, choice: str, score: str = "nmi_max") -> str:
        if (found := known.get(f"{name}: {choice}")) is None:
            return ""
        return f"{found[score] - known[f'{name}: ours']['nmi_max']:+.1f}"

    names = CONSENSUS.values()
    rows = [
        [words, *(change(n, choice) for n in names)] for choice, words in shown.items()
    ]
    rows.append(
        [
            "NMI by the geometric mean, for the same labels",
            *(change(name, "ours", "nmi_geometric") for name in names),
        ]
    )
    return table(["change", "HC", "SC", "BG"], rows)


def rows_of(name: str, what: str) -> list[list[Any]]:
    """Return the rows that a benchmark has printed, without their heads."""
    return list(newest(name, "what")[what]["rows"][1:])


def calibration() -> str:
    """Return the purity of the quarters of the samples by confidence."""
    known = rows_of("confidence", "confidence")
    shown = ("DS-01", "DS-06", "DS-16", "DS-24", "DS-26")
    heads = ["most confident quarter", "second", "third", "least confident"]
    found = [
        [row[0].replace("_", " "), *row[1:5]] for row in known if row[0][:5] in shown
    ]
    purer = sum(float(row[5]) > 0.0 for row in known)
    words = sentence(
        f"On {purer} of {len(known)} datasets the most confident quarter is purer than",
        "the rest.",
    )
    return f"{table(['dataset', *heads], found)}\n{words}"


def placed() -> str:
    """Return what placing samples costs, compared with clustering them."""
    known = rows_of("confidence", "predict")
    sets = {row[0] for row in known}
    lost = {
        name: -float(np.mean([float(row[5]) for row in known if row[1] == name]))
        for name in CONSENSUS.values()
    }
    return sentence(
        f"On {len(sets)} image datasets, the NMI of samples that `predict` assigns is",
        ", ".join(f"{value:.1f} ({name})" for name, value in lost.items()),
        "points lower than if they are clustered with all the others (`python",
        "benchmarks/people_figures.py predict DATA`).",
    )


def unlike() -> str:
    """Return how often new samples are flagged."""
    *known, mean = rows_of("confidence", "unlike")
    same, one, ten, doubled, permuted, many = (f"{float(v):.0f} %" for v in mean[2:])
    return sentence(
        f"On {len(known)} datasets, {same} of unchanged new samples are flagged,",
        f"{one} after a shift by the standard deviation of all values, {ten} after ten",
        f"times that, {many} after a million times, {doubled} if all values are",
        f"doubled, and {permuted} if the columns are permuted (`python",
        "benchmarks/people_figures.py unlike DATA`).",
    )


def sparse() -> str:
    """Return what sparse texts take."""
    cosine, gaussian = (
        newest("scale")[f"sparse {kernel} 2"]
        for kernel in ("cosine", "scaled_gaussian")
    )
    per_member = [each["cpu_seconds"] / each["members"] for each in (cosine, gaussian)]
    return sentence(
        f"{cosine['rows']:,} texts on 20 topics with {cosine['features']:,} words,",
        f"{100 * cosine['filled']:.0f} % of the entries filled, take",
        f"{per_member[0]:.0f} CPU seconds per base clustering with the cosine and",
        f"{per_member[1]:.0f} with the scaled Gaussian, and {cosine['peak_gb']:.1f} GB",
        "including the data (`python benchmarks/scale.py sparse --members 2`).",
    )


def landmarks() -> str:
    """Return how far landmarks are from graphs on image datasets."""
    runs: dict[str, list[float]] = {}
    for name, record in newest("scale").items():
        if name.startswith("images "):
            found = [record[method.removeprefix("MDEC-")] for method in MDEC]
            runs.setdefault(record["dataset"], []).append(float(np.mean(found)))
    graphs = scores("paper-tables")[MDEC].mean(axis=1)
    ahead = [float(np.mean(found)) - graphs[name] for name, found in runs.items()]
    return sentence(
        f"On {len(ahead)} image datasets, landmarks change NMI by",
        f"{np.mean(ahead):+.1f} points on average, from {min(ahead):+.1f} to",
        f"{max(ahead):+.1f}, compared with graphs (`images DATA`).",
    )


def memory() -> str:
    """Return the peak memory of the steps."""
    known = newest("performance")
    prefix = "memory "
    cases = [name.removeprefix(prefix) for name in known if name.startswith(prefix)]

    def row(case: str) -> list[str]:
        step, _, size = case.rpartition("-")
        found = known[prefix + case]
        amount = (
            f"{found['mb']} MB" if found["mb"] < 1000 else f"{found['mb'] / 1e3:.1f} GB"
        )
        made = "three base clusterings" if step == "generation" else step
        words = f"{made}, {int(size):,} samples"
        return [words, amount, f"{found['cpu_seconds']:.1f}"]

    return table(["step", "peak memory", "CPU seconds"], map(row, cases))


def growth() -> str:
    """Return the exponents of CPU time over features, samples and members."""
    known = newest("performance")
    shown = {
        "generation, per member (N = 1500) over D": "a base clustering, over features",
        "generation, per member (D = 200) over N": "a base clustering, over samples",
        "hierarchical (M = 100) over N": "hierarchical consensus, over samples",
        "spectral (M = 100) over N": "spectral consensus, over samples",
        "bipartite (M = 100) over N": "bipartite consensus, over samples",
    }
    return table(
        ["CPU time of", "exponent"],
        (
            [words, f"{known[f'growth {title}']['exponent']:.1f}"]
            for title, words in shown.items()
        ),
    )


def first_fit() -> str:
    """Return what the first fit and new samples take."""
    known = newest("performance")
    small, empty = known["start-up 100 x 1000"], known["start-up 300 x 50"]
    graph = known["predict graph"]
    share = graph["400 rows again"] / graph["fit"]
    return table(
        ["what", "CPU seconds", "goal"],
        [
            ["`import mdec`", f"{small['import mdec']:.2f}", ""],
            [
                "first fit after installation, 300 x 50, compiling included",
                f"{empty['first fit']:.1f}",
                "3",
            ],
            ["the same fit again", f"{empty['second fit']:.2f}", ""],
            ["fit of 100 x 1000 in a fresh process", f"{small['cold fit']:.2f}", ""],
            ["the same in a running process", f"{small['warm fit']:.2f}", ""],
            [
                "`predict`, one row, model of 1600 x 649",
                f"{graph['another row']:.2f}",
                "",
            ],
            ["`predict`, 400 rows, first call", f"{graph['400 rows']:.1f}", ""],
            [
                "`predict`, 400 rows, later calls",
                f"{graph['400 rows again']:.1f}, {share:.2f} of the fit",
                "0.15 of the fit",
            ],
        ],
    )


def plain_tables() -> str:
    """Return ARI on ordinary tables, with K given and with K chosen."""
    shown = {
        "wine": "wine",
        "breast_cancer": "breast cancer",
        "iris with ids": "iris with ids (left alone)",
        "customers, a file": "customers with cities and dates",
        "customers": "customers, numbers alone",
        "outliers": "heavy tails in eight units",
        "modechoice": "modes of travel",
        "anes96": "votes (anes96)",
        "heart patients": "heart patients",
        "coded patients": "the same with codes",
    }
    ways = {
        "none": "as it is",
        "auto": "`mdec fit` alone",
        "standardise": "`--transform standardise`",
        "log": "`--transform log`",
    }
    known = {
        (record["table"], record["way"]): record
        for record in read_lines("plain-tables")
        if record["seed"] == 0 and "k" in record
    }

    def cell(name: str, way: str) -> str:
        if (found := known.get((name, way))) is None:
            return ""
        words = f"{found['given_ari']:.2f}; {found['chosen_ari']:.2f} ({found['k']})"
        return f"**{words}**" if way == "auto" else words

    return table(
        ["table", *ways.values()],
        ([words, *(cell(name, way) for way in ways)] for name, words in shown.items()),
    )


BLOCKS: dict[str, Callable[[], str]] = {
    "evidence": evidence,
    "choosing-k": choosing_k,
    "firm-groups": firm_groups,
    "choosing-time": choosing_time,
    "speed": speed,
    "gpu": gpu,
    "gpu-kernels": gpu_kernels,
    "gpu-agreement": gpu_agreement,
    "scale": scale,
    "many-rows": many_rows,
    "cells": cells,
    "preparation": preparation,
    "machines": machines,
    "mutations": mutations,
    "deviations": deviations,
    "calibration": calibration,
    "placed": placed,
    "unlike": unlike,
    "sparse": sparse,
    "landmarks": landmarks,
    "memory": memory,
    "growth": growth,
    "first-fit": first_fit,
    "plain-tables": plain_tables,
    **OF_STUDIES,
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
