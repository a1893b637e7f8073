"""Measure what preparing expression values is worth, and how the recipes were chosen.

    python benchmarks/preparation.py run [--datasets NAME ...] [--variants NAME ...]
    python benchmarks/preparation.py suggest
    python benchmarks/preparation.py tables

`run` clusters the 18 gene sets of the paper, found as `mdec datasets` finds them, with
the number of classes given, and appends one record to the results for each set, variant
and seed that is not there yet; "noisy DS-1" is a raw set less a noisy background, and
"counts 0" is simulated. `suggest` records what the rule for the number of clusters says
where one cluster is ruled out. `tables` prints what docs/quality.md shows. NMI is in
percent, over the larger entropy. The variants "today" need the packages of the study
`today`, which docs/experiments.md names.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec import Ensemble, generate_ensemble
from mdec.bench.evaluation import nmi_max
from mdec.bench.methods import METHODS, resolve
from mdec.consensus import CONSENSUS
from mdec.datasets import load_dataset
from mdec.preparation import ExpressionPreparation, SampleScaler, kind_of_values
from mdec.preparation.recipes import (
    DRAWN,
    center_samples,
    leading_features,
    stabilize,
    variance_order,
)
from mdec.selection.rule import select_n_clusters
from mdec.weights import ensemble_driven_cluster_index

ROOT = Path(__file__).resolve().parents[1]
GENE_SETS = [f"DS-{number}" for number in range(1, 19)]
LOG_RATIOS = {"DS-2", "DS-4", "DS-13", "DS-14", "DS-18"}
# DS-17 holds ratios, the others intensities.
INTENSITIES = [f"DS-{n}" for n in (1, 3, 5, 6, 7, 8, 9, 10, 11, 12, 15, 16)]
NOISY = [f"noisy {name}" for name in INTENSITIES]
COUNTS = [f"counts {number}" for number in range(5)]
MIXTURES = [
    (1, 0.5),
    (1, 1, 0.5),
    (1, 1, 1, 0.5),
    (1, 0.75, 0.5),
    (1, 1, 0.75, 0.5),
    (1, 1, 0.35),
    (1, 1, 1, 0.35),
    (1, 1, 0.75, 0.35),
    (1, 1, 1, 0.5, 0.35),
]
# Clusterers of the data themselves.
PEERS = [name for name, method in METHODS.items() if method.generator is None]
SHORT = {"hierarchical": "HC", "spectral": "SC", "bipartite": "BG"}

Array = NDArray[np.float64]
Labels = NDArray[np.integer]
Scores = dict[str, float]
Table = dict[str, dict[str, Scores]]
Variant = Callable[[Array, int, int], dict[str, Labels]]


def consensus(ensemble: Ensemble, n_clusters: int, seed: int) -> dict[str, Labels]:
    """Apply the three consensus functions to one ensemble."""
    return {
        name: function(ensemble, n_clusters, random_state=seed)
        for name, function in CONSENSUS.items()
    }


def load(name: str, folder: Path | None) -> tuple[Array, Labels]:
    """Return samples and their classes."""
    if name in COUNTS:
        return simulated_counts(int(name.split()[1]))
    dataset = load_dataset(name.split()[-1], folder=folder, download=False)
    assert dataset.target is not None
    X = dataset.data.astype(np.float64)
    if name in NOISY:
        # As a scanner's background, of about the intensity of a silent gene.
        X += np.random.default_rng(0).normal(-50.0, 50.0, size=X.shape)
    return X, dataset.target


def simulated_counts(number: int) -> tuple[Array, Labels]:
    """Draw cells of four types whose depths differ more than their types."""
    rng = np.random.default_rng(number)
    n_cells, n_genes, n_markers = 200, 1000, 40
    y = rng.integers(4, size=n_cells)
    means = np.tile(np.exp(rng.normal(-1.0, 1.5, size=n_genes)), (4, 1))
    for cluster in range(4):
        markers = rng.choice(n_genes, size=n_markers, replace=False)
        means[cluster, markers] *= np.exp(rng.normal(0.0, 1.0, size=n_markers))
    depths = np.exp(rng.normal(0.0, 0.5, size=(n_cells, 1)))
    X = rng.poisson(rng.gamma(2.0, depths * means[y] / 2.0))
    return X.astype(np.float64), y


def fixed_values(X: Array, power: float, center: bool, share: float) -> Array:
    """Prepare all sets alike; log-ratios have no power to take."""
    values = X if kind_of_values(X)[0] == "log-ratios" else stabilize(X, power)
    values = center_samples(values) if center else values
    return values[:, leading_features(variance_order(values), share)]


def fixed(power: float, center: bool, share: float) -> Variant:
    """Prepare with one recipe for all sets."""

    def variant(X: Array, n_clusters: int, seed: int) -> dict[str, Labels]:
        values = fixed_values(X, power, center, share)
        return consensus(generate_ensemble(values, random_state=seed), n_clusters, seed)

    return variant


def changed(change: Callable[[Array], Array], variant: Variant) -> Variant:
    """Change the values first."""
    return lambda X, n_clusters, seed: variant(change(X), n_clusters, seed)


def cut_off(X: Array) -> Array:
    return np.maximum(X, 0.0)


def same_totals(X: Array) -> Array:
    return SampleScaler(center=False, scale="total").fit_transform(X)


def expression(X: Array) -> Array:
    return ExpressionPreparation().fit_transform(X)


def on_expression(**settings: Any) -> Variant:
    """Prepare by what the values are."""

    def variant(X: Array, n_clusters: int, seed: int) -> dict[str, Labels]:
        ensemble = generate_ensemble(expression(X), random_state=seed, **settings)
        return consensus(ensemble, n_clusters, seed)

    return variant


def diversified(X: Array, n_clusters: int, seed: int) -> dict[str, Labels]:
    """Let each member draw its own preparation."""
    ensemble = generate_ensemble(X, random_state=seed, preparation="diversified")
    return consensus(ensemble, n_clusters, seed)


def as_auto(X: Array, n_clusters: int, seed: int) -> dict[str, Labels]:
    """Let members draw the power of the kinds that have several."""
    drawn = kind_of_values(X)[0] in DRAWN
    return (diversified if drawn else on_expression())(X, n_clusters, seed)


def mixed(*powers: float) -> Variant:
    """Let each member draw the power of its values, one as likely as another."""

    def variant(X: Array, n_clusters: int, seed: int) -> dict[str, Labels]:
        made = {each: members_at(each, X, seed) for each in set(powers)}
        drawn = [
            powers[np.random.default_rng([seed, member]).integers(len(powers))]
            for member in range(100)
        ]
        columns = [made[each][:, member] for member, each in enumerate(drawn)]
        ensemble = Ensemble.from_labels(np.stack(columns, axis=1))
        return consensus(ensemble, n_clusters, seed)

    return variant


_MADE: dict[tuple[float, int], tuple[Array, NDArray[np.int32]]] = {}


def members_at(power: float, X: Array, seed: int) -> NDArray[np.int32]:
    """Return a hundred members of one power, made once for all mixtures."""
    known, labels = _MADE.get((power, seed), (None, None))
    if known is not X or labels is None:
        values = np.sign(X) * np.abs(X) ** power
        labels = generate_ensemble(values, random_state=seed).labels
        _MADE[power, seed] = X, labels
    return labels


def clusters_from_k(X: Array, n_clusters: int, seed: int) -> dict[str, Labels]:
    """Draw the members' numbers of clusters from K upward."""
    most = max(2, math.ceil(math.sqrt(len(X))))
    bounds = min(n_clusters, most), max(n_clusters, most)
    return on_expression(base_n_clusters_range=bounds)(X, n_clusters, seed)


def consensus_of_three(X: Array, n_clusters: int, seed: int) -> dict[str, Labels]:
    """Cluster the answers of the three consensus functions once more."""
    ensemble = generate_ensemble(expression(X), random_state=seed)
    answers = consensus(ensemble, n_clusters, seed)
    joint = Ensemble.from_labels(np.stack(list(answers.values()), axis=1))
    return consensus(joint, n_clusters, seed)


def adjusted_r2(X: Array, labels: Labels) -> Array:
    """Return how much of each feature's variance some clusters explain, adjusted."""
    total = X.var(axis=0) * len(X)
    within = np.zeros(X.shape[1])
    for cluster in range(labels.max() + 1):
        rows = X[labels == cluster]
        within += rows.var(axis=0) * len(rows)
    n_clusters = len(np.unique(labels))
    left = within / max(1, len(X) - n_clusters)
    whole = total / (len(X) - 1)
    return 1.0 - np.divide(left, whole, out=np.ones_like(left), where=whole > 0.0)


def held_back(X: Array, ensemble: Ensemble) -> Array:
    """Return members by features: adjusted R2 where a member did not see a feature."""
    table = np.full((len(ensemble), X.shape[1]), np.nan)
    for row, member in enumerate(ensemble.members):
        unseen = np.ones(X.shape[1], dtype=bool)
        unseen[ensemble.plan.features(member)] = False
        table[row, unseen] = adjusted_r2(X[:, unseen], ensemble.labels[:, row])
    return table


def weighted_members(X: Array, n_clusters: int, seed: int) -> dict[str, Labels]:
    """Weigh members by how well they explain the features they did not see."""
    values = expression(X)
    ensemble = generate_ensemble(values, random_state=seed)
    worth = np.maximum(np.nanmean(held_back(values, ensemble), axis=1), 0.0)
    worth = worth / worth.max() if worth.max() > 0.0 else np.ones_like(worth)
    weights = ensemble_driven_cluster_index(ensemble)
    weights = weights * np.repeat(worth, ensemble.cluster_counts)
    return {
        name: function(ensemble, n_clusters, weights, random_state=seed)
        for name, function in CONSENSUS.items()
    }


def _screened(
    values: Array, worth: Array, share: float, n_clusters: int, seed: int
) -> dict[str, Labels]:
    best = leading_features(np.argsort(-worth, kind="stable"), share)
    ensemble = generate_ensemble(values[:, best], random_state=seed)
    return consensus(ensemble, n_clusters, seed)


def screened_by_members(share: float) -> Variant:
    """Keep the features that members which did not see them explain."""

    def variant(X: Array, n_clusters: int, seed: int) -> dict[str, Labels]:
        values = expression(X)
        ensemble = generate_ensemble(values, random_state=seed)
        table = held_back(values, ensemble)
        worth = np.nan_to_num(np.nanmean(table, axis=0), nan=-np.inf)
        return _screened(values, worth, share, n_clusters, seed)

    return variant


def screened_by_consensus(share: float) -> Variant:
    """Keep the features that a consensus of many small clusters explains."""

    def variant(X: Array, n_clusters: int, seed: int) -> dict[str, Labels]:
        values = expression(X)
        ensemble = generate_ensemble(values, random_state=seed)
        many = max(2 * n_clusters, math.ceil(math.sqrt(len(X))))
        labels = CONSENSUS["hierarchical"](ensemble, many, random_state=seed)
        worth = adjusted_r2(values, labels)
        return _screened(values, worth, share, n_clusters, seed)

    return variant


def peers(values: Callable[[Array], Array]) -> Variant:
    """Cluster by what people use today, as the study `today` does."""

    def variant(X: Array, n_clusters: int, seed: int) -> dict[str, Labels]:
        Z = values(X)
        return {
            name: resolve(METHODS[name].function)(Z, n_clusters, random_state=seed)
            for name in PEERS
        }

    return variant


def _name(power: float, center: bool, share: float) -> str:
    steps = [{1.0: "none", 0.5: "root", 0.0: "log"}.get(power, f"power {power:g}")]
    steps += ["centred"] * center + [f"{share:.0%}"] * (share < 1.0)
    return ", ".join(steps)


# Power of positive values, whether samples are centred, share of the features.
GRID = [
    (1.0, False, 1.0),
    (0.8, False, 1.0),
    (0.75, False, 1.0),
    (0.75, False, 0.5),
    (0.75, False, 0.3),
    (0.6, False, 1.0),
    (0.5, False, 1.0),
    (0.5, False, 0.3),
    (0.5, True, 1.0),
    (0.5, True, 0.3),
    (0.5, True, 0.2),
    (0.5, True, 0.1),
    (0.0, True, 0.3),
    (0.0, True, 1.0),
    (0.0, False, 1.0),
]
FIXED: dict[str, Variant] = {_name(*each): fixed(*each) for each in GRID}
IDEAS: dict[str, Variant] = {
    "expression": on_expression(),
    "auto": as_auto,
    "expression, K_m from K": clusters_from_k,
    "expression, M = 300": on_expression(ensemble_size=300),
    "expression, consensus of three": consensus_of_three,
    "expression, members weighted": weighted_members,
    "expression, screened by members": screened_by_members(0.5),
    "expression, screened by consensus": screened_by_consensus(0.5),
}
PREPARED: dict[str, Callable[[Array], Array]] = {
    "none": lambda X: X,
    "expression": expression,
    "root, centred, 30%": lambda X: fixed_values(X, 0.5, True, 0.3),
}
TODAY: dict[str, Variant] = {
    f"today, {name}": peers(values) for name, values in PREPARED.items()
}
ON_NOISY: dict[str, Variant] = {
    **{name: FIXED[name] for name in ("none", "power 0.75", "root")},
    "cut off at 0, power 0.75": changed(cut_off, FIXED["power 0.75"]),
    "cut off at 0, root": changed(cut_off, FIXED["root"]),
}
ON_COUNTS: dict[str, Variant] = {
    **{name: FIXED[name] for name in ("none", "root", "log")},
    "same sum, power 0.75": changed(same_totals, FIXED["power 0.75"]),
    "same sum, root": changed(same_totals, FIXED["root"]),
    "same sum, log": changed(same_totals, FIXED["log"]),
    "same sum, log, centred": changed(same_totals, FIXED["log, centred"]),
    "same sum, log, 50%": changed(same_totals, fixed(0.0, False, 0.5)),
    "same sum, log, 20%": changed(same_totals, fixed(0.0, False, 0.2)),
}
MIXED = {f"mixed {', '.join(map(str, each))}": mixed(*each) for each in MIXTURES}
VARIANTS = FIXED | IDEAS | TODAY | ON_NOISY | ON_COUNTS | MIXED


def run(options: argparse.Namespace) -> None:
    """Append the records that are missing."""
    done = {(r["dataset"], r["variant"], r["seed"]) for r in read(options.results)}
    for name in options.datasets:
        X, y = load(name, options.data)
        n_clusters = len(np.unique(y))
        wanted = product(
            range(options.seeds), options.variants or FIXED | IDEAS | TODAY
        )
        for seed, variant in wanted:
            if (name, variant, seed) in done:
                continue
            answers = VARIANTS[variant](X, n_clusters, seed)
            scores = {
                method: round(100.0 * nmi_max(y, labels), 3)
                for method, labels in answers.items()
            }
            record = {"dataset": name, "variant": variant, "seed": seed} | scores
            append(options.results, record)


def suggest(options: argparse.Namespace) -> None:
    """Append the numbers of clusters that are suggested and not recorded yet."""
    done = {(r["dataset"], r["variant"], r["seed"]) for r in read(options.results)}
    for variant, values in PREPARED.items():
        for name in options.datasets:
            X, y = load(name, options.data)
            for seed in range(options.seeds):
                if (name, f"K, {variant}", seed) in done:
                    continue
                ensemble = generate_ensemble(values(X), random_state=seed)
                record = {
                    "dataset": name,
                    "variant": f"K, {variant}",
                    "seed": seed,
                    "suggested": select_n_clusters(ensemble).n_clusters,
                    "classes": len(np.unique(y)),
                }
                append(options.results, record)


def append(path: Path, record: dict[str, Any]) -> None:
    """Write one record."""
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """Return all records."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def means(
    records: list[dict[str, Any]], variants: Iterable[str], sets: list[str]
) -> Table:
    """Return variant -> dataset -> method -> mean NMI, over seeds that all have.

    Variants that lack some of the sets are left out.
    """
    runs: dict[str, dict[str, dict[int, Scores]]] = {}
    for record in records:
        scores = {k: v for k, v in record.items() if not isinstance(v, str)}
        seeds = runs.setdefault(record["variant"], {}).setdefault(record["dataset"], {})
        seeds[record["seed"]] = scores
    complete = [v for v in variants if set(sets) <= runs.get(v, {}).keys()]
    if not complete:
        return {}
    common = set.intersection(*(set(runs[v][d]) for v in complete for d in sets))
    print(f"\nSeeds: {len(common)}.\n")
    return {
        variant: {
            name: {
                key: float(np.mean([runs[variant][name][seed][key] for seed in common]))
                for key in runs[variant][name][min(common)]
            }
            for name in sets
        }
        for variant in complete
    }


def _over(scores: dict[str, Scores], datasets: list[str], method: str) -> float:
    return float(np.mean([scores[dataset][method] for dataset in datasets]))


def _typical(scores: dict[str, Scores], dataset: str) -> float:
    return float(np.mean([scores[dataset][method] for method in SHORT]))


def print_means(table: Table, sets: list[str]) -> None:
    """Print one row for each variant, and where it loses."""
    print("| preparation | HC | SC | BG | more than 3 below none: HC; SC; BG |")
    print("|---|---|---|---|---|")
    for variant, scores in table.items():
        cells = [f"{_over(scores, sets, method):.1f}" for method in SHORT]
        lost = []
        for method in SHORT:
            gains = {d: scores[d][method] - table["none"][d][method] for d in sets}
            worst = [f"{d} {gain:.0f}" for d, gain in gains.items() if gain < -3.0]
            lost.append(", ".join(worst) or "-")
        print(f"| {variant} | {' | '.join(cells)} | {'; '.join(lost)} |")


def print_sets(table: Table) -> None:
    """Print the gene sets one by one."""
    print("\n| set | " + " | ".join(f"{v}: HC / SC / BG" for v in table) + " |")
    print("|---" * (len(table) + 1) + "|")
    for name in GENE_SETS:
        cells = [
            " / ".join(f"{scores[name][method]:.1f}" for method in SHORT)
            for scores in table.values()
        ]
        print(f"| {name} | {' | '.join(cells)} |")


def print_peers(table: Table, own: Table) -> None:
    """Print what people use today, and MDEC, with the same preparations."""
    print("| method | " + " | ".join(v.partition(", ")[2] for v in table) + " |")
    print("|---" * (len(table) + 1) + "|")
    for method in PEERS:
        cells = [f"{_over(scores, GENE_SETS, method):.1f}" for scores in table.values()]
        print(f"| {method} | {' | '.join(cells)} |")
    cells = [
        " / ".join(f"{_over(scores, GENE_SETS, method):.1f}" for method in SHORT)
        for scores in own.values()
    ]
    print(f"| MDEC, {' / '.join(SHORT.values())} | {' | '.join(cells)} |")


def print_suggestions(table: Table) -> None:
    """Print the suggested numbers of clusters, mean over the seeds."""
    print("| set | classes | " + " | ".join(v[3:] for v in table) + " |")
    print("|---" * (len(table) + 2) + "|")
    errors = defaultdict(list)
    for name in GENE_SETS:
        found = [scores[name] for scores in table.values()]
        classes = found[0]["classes"]
        for variant, each in zip(table, found, strict=True):
            errors[variant].append(abs(math.log2(each["suggested"] / classes)))
        cells = " | ".join(f"{each['suggested']:.1f}" for each in found)
        print(f"| {name} | {classes:.0f} | {cells} |")
    cells = " | ".join(f"{np.mean(errors[variant]):.2f}" for variant in table)
    print(f"| mean error, doublings | | {cells} |")


def print_choice(table: Table) -> None:
    """Print what is chosen for each set by the other sets of its kind alone."""
    print("\n| rule | kind | left-out score | none | chosen |")
    print("|---|---|---|---|---|")
    raw = [name.removeprefix("noisy ") for name in NOISY]
    for careful in (False, True):
        for kind, sets in (("intensities", raw), ("log-ratios", sorted(LOG_RATIOS))):
            left_out, chosen = [], defaultdict(int)
            for name in sets:
                rest = [each for each in sets if each != name]
                best = _chosen(table, rest, careful)
                chosen[best] += 1
                left_out.append(_typical(table[best], name))
            base = np.mean([_typical(table["none"], name) for name in sets])
            words = "; ".join(f"{v} ({count})" for v, count in chosen.items())
            rule = "no set may lose 3" if careful else "best mean"
            print(
                f"| {rule} | {kind} | {np.mean(left_out):.1f} | {base:.1f} | {words} |"
            )


def _chosen(table: Table, sets: list[str], careful: bool) -> str:
    def worth(variant: str) -> tuple[bool, float]:
        gains = [_typical(table[variant], d) - _typical(table["none"], d) for d in sets]
        return not careful or min(gains) >= -3.0, float(np.mean(gains))

    return max(table, key=worth)


def tables(records: list[dict[str, Any]]) -> None:
    """Print everything."""
    final = means(records, ("none", "expression", "auto"), GENE_SETS)
    print_means(final, GENE_SETS)
    print_sets(final)
    fixed_ones = means(records, FIXED, GENE_SETS)
    print_means(fixed_ones, GENE_SETS)
    print_choice(fixed_ones)
    print_means(
        means(records, ("none", "power 0.75", *MIXED), INTENSITIES), INTENSITIES
    )
    print_means(means(records, ("none", *IDEAS), GENE_SETS), GENE_SETS)
    print_means(means(records, ON_NOISY, NOISY), NOISY)
    print_means(means(records, ON_COUNTS, COUNTS), COUNTS)
    print_peers(means(records, TODAY, GENE_SETS), means(records, PREPARED, GENE_SETS))
    suggestions = [f"K, {name}" for name in PREPARED]
    print_suggestions(means(records, suggestions, GENE_SETS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("run", "suggest", "tables"))
    parser.add_argument("--variants", nargs="*", choices=VARIANTS)
    parser.add_argument("--datasets", nargs="*", default=GENE_SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", type=Path, help="folder of the datasets' files")
    parser.add_argument(
        "--results", type=Path, default=ROOT / "benchmarks/results/preparation.jsonl"
    )
    options = parser.parse_args()
    # Neighbour graphs of small sets fall apart, which the peers warn of.
    warnings.filterwarnings("ignore", category=UserWarning)
    if options.action == "run":
        run(options)
        return
    if options.action == "suggest":
        suggest(options)
        return
    tables(read(options.results))


if __name__ == "__main__":
    main()
