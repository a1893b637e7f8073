"""The tables of `mdec fit`: read, matched by sample, and prepared for an estimator."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdec._support.progress import duration
from mdec.anndata import default_consensus
from mdec.cli.options import (
    ClusterOptions,
    InputOptions,
    MethodOptions,
    name_flags,
    parse_k,
)
from mdec.estimator import MDEC
from mdec.estimator.costs import estimate_memory, estimate_seconds
from mdec.generation import resolve_base
from mdec.preparation.recipes import MANY_CELLS, N_COMPONENTS
from mdec.rows import as_rows
from mdec.selection.rule import MAX_MEMBERS
from mdec.tables.budget import display_name
from mdec.tables.reading import distinct_names, match_samples
from mdec.tables.steps import PreparedTable, TableSteps, prepare_table

OFF = "--prepare none"

# Work above which a shorter way is proposed, and the features that this way takes.
LONG_SECONDS, FEW_FEATURES = 60.0, 2000

# What is done to the values where no genes are chosen for all base clusterings.
HINDERING = {
    "--transform": ("log", "standardise"),
    "--prepare": ("none", "diversified"),
}

# Columns that are named are those of the first table.
NO_COLUMNS: dict[str, Any] = {
    "label_column": None,
    "drop": (),
    "features": (),
    "variable": None,
    "category_columns": (),
}


@dataclass(frozen=True, eq=False)
class Run:
    """What a run reads, one table or several views by their names, and its estimator.

    Whether the consensus `serves_cells` says that it is spectral, though nobody asked
    for it.
    """

    file: Path
    source: InputOptions
    tables: dict[str, PreparedTable]
    model: MDEC
    serves_cells: bool = False

    @property
    def first(self) -> PreparedTable:
        """The table, or that of the first view."""
        return next(iter(self.tables.values()))

    @property
    def views(self) -> list[str]:
        """Names of the views; none for one table."""
        return list(self.tables) if len(self.tables) > 1 else []

    def each(self, name: str) -> Any:
        """Return an attribute of the table, or of each view."""
        found = {key: getattr(table, name) for key, table in self.tables.items()}
        return found if self.views else found.popitem()[1]

    @property
    def steps(self) -> TableSteps:
        """What was done to the table; of views in words alone."""
        if not self.views:
            return self.first.steps
        done = {name: each.description for name, each in self.each("steps").items()}
        words = "; ".join(f"{name}: {each}" for name, each in done.items() if each)
        n_features = sum(each.steps.n_features for each in self.tables.values())
        return TableSteps(n_features, None, description=words)

    @property
    def words(self) -> dict[str, str | None]:
        """What the first table holds, what is done to it, why, and how not to."""
        words = self.first.words
        return {**words, "flag": OFF if words["prepared"] else None}

    @property
    def shape(self) -> str:
        """The size in words."""
        size = f"{len(self.first.values)} samples x"
        if not self.views:
            return f"{size} {self.first.steps.n_features} features"
        widths = {n: each.values.shape[1] for n, each in self.tables.items()}
        listed = ", ".join(f"{name} ({width})" for name, width in widths.items())
        return f"{size} features of {listed}"

    def describe_preparation(self) -> Iterator[str]:
        """Yield lines on what was found in each table and what is done to it."""
        for name, each in self.tables.items():
            start, words = f"{name}: " if self.views else "", each.words
            if words["prepared"] is None:
                yield f"{start}Not prepared: {words['reason']}"
                continue
            kind = words["kind"] if words["kind"] != "other" else "no expression values"
            yield f"{start}Found {kind}: {words['reason']}"
            yield f"{start}Prepared: {words['prepared']}. Turn this off with {OFF}."

    def estimate(self) -> str:
        """Say about how much work it is, and what would shorten work that is long."""
        seconds, source = self.seconds(), self.source
        tables = [each.values for each in self.tables.values()]
        gigabytes = estimate_memory(tables, self.model) / 1e9
        words = f"about {duration(seconds)} of processor time for the base clusterings"
        words += f" and {gigabytes:.1f} GB of memory"
        many = len(self.first.values) > MANY_CELLS
        shorter = self.seconds(N_COMPONENTS if many else FEW_FEATURES)
        if source.n_top_genes is None and seconds > max(LONG_SECONDS, 2.0 * shorter):
            given = {"--transform": source.transform, "--prepare": source.prepare}
            against = [f"{f} {how}" for f, how in given.items() if how in HINDERING[f]]
            place = f" in place of {' and '.join(against)}" if against else ""
            way = f"--n-top-genes {FEW_FEATURES}{place}"
            words += f"; with {way}, about {duration(shorter)}"
        return words

    def seconds(self, most: float = math.inf) -> float:
        """Estimate the processor seconds of all base clusterings.

        Further ones are made to choose the number of clusters. Tables may keep `most`
        features at most.
        """
        model, total = self.model, 0.0
        size = model.ensemble_size
        if not isinstance(model.n_clusters, int):
            size += min(size, MAX_MEMBERS)
        for each in self.tables.values():
            base, _ = resolve_base(str(model.base), model.device, as_rows(each.values))
            n, d = each.values.shape
            seen = n * model.max_samples, min(d, most) * model.max_features
            total += size * estimate_seconds(base, *seen)
        return total


def read_run(
    file: Path, source: InputOptions, clusters: ClusterOptions, method: MethodOptions
) -> Run:
    """Read the tables of a run, prepare each by itself, and make the estimator.

    Further tables have the samples of the first, in its order. What names no column
    holds for all.
    """
    model, files = method.estimator(clusters), [file, *(source.view or ())]
    first = source.read(file, sparse=True)
    first.reading["notes"] = [name_flags(each) for each in first.reading["notes"]]
    names = distinct_names(files)
    tables = {names[0]: first}
    for name, other in zip(names[1:], files[1:], strict=True):
        table = source.read(other, **NO_COLUMNS, sparse=True)
        words = display_name(file), display_name(other)
        tables[name] = match_samples(first, table, *words)
    how = source.prepare, source.transform
    prepared = {
        name: prepare_table(table, *how, n_top_genes=source.n_top_genes)
        for name, table in tables.items()
    }
    drawn = {name: each.preparation for name, each in prepared.items()}
    several = {name: each for name, each in drawn.items() if each is not None} or None
    model.set_params(
        n_clusters=parse_k(clusters.k, first.values.shape[0]),
        preparation=several if len(files) > 1 else drawn[names[0]],
    )
    suiting = {default_consensus(each.words) for each in prepared.values()}
    if clusters.consensus is None and len(suiting) == 1:
        model.set_params(consensus=suiting.pop())
    cells = clusters.consensus is None and model.consensus == "spectral"
    return Run(file, source, prepared, model, cells)
