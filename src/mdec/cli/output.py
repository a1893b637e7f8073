"""What the commands print of their results: for people, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from mdec.cli.options import PrintOptions
from mdec.tables.budget import list_names

Summary = dict[str, Any]


def examples(*lines: str) -> str:
    """Return the end of a help text: commands to try, one on each line.

    Examples
    --------
    >>> examples("mdec demo")
    'Examples:\\n\\nmdec demo'
    """
    return "\n\n".join(["Examples:", *lines])


def show(
    summary: Summary,
    parts: Callable[[Summary], Iterable[RenderableType]],
    printing: PrintOptions,
) -> None:
    """Print a summary: nothing, JSON, or its parts for people.

    Parameters
    ----------
    summary : dict
        Numbers, strings, lists and dicts only.
    parts : callable
        Returns what people see of it, line by line or table by table.
    printing : PrintOptions
        Whether to print nothing, or JSON.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    if printing.as_json:
        console.out(json.dumps(summary, indent=1))
    elif not printing.quiet:
        for part in parts(summary):
            # Paths and the like stay on one line, whatever their length.
            console.print(part, soft_wrap=isinstance(part, Text))


def result_parts(summary: Summary) -> Iterator[RenderableType]:
    """Yield the K table, the clusters and the files of a result.

    That of a consensus matrix has clusters and files alone.
    """
    if "criteria" in summary:
        yield criteria_table(summary)
        yield f"Suggested K: {summary['suggested_n_clusters']}. {summary['reason']}\n"
        yield from map(candidate_line, summary["candidates"])
    yield record_table("Clusters", summary["clusters"])
    if "view_support" in summary:
        yield number_table(
            "Support by view",
            ["view", *(str(row["cluster"]) for row in summary["clusters"])],
            [[row["view"][:40], *row["clusters"]] for row in summary["view_support"]],
        )
    if scores := summary.get("scores"):
        yield (
            f"Against the known classes: NMI {scores['nmi_max']:.3f} (divided by the "
            f"larger entropy), ARI {scores['ari']:.3f}"
        )
    if "n_ambiguous" in summary:
        yield ambiguity_line(summary)
    if "n_left_out" in summary:
        yield f"{summary['n_left_out']} samples are left out (cluster -1)"
    model = summary.get("model", {})
    if "left_out" in model:
        yield f"No model was written: {model['left_out']}."
    for name, path in summary["files"].items():
        size = f" ({format_size(model['bytes'])})" if name == "model.npz" else ""
        yield file_line(f"{path}{size}")


def prediction_parts(summary: Summary) -> Iterator[RenderableType]:
    """Yield where new samples were placed."""
    yield from (f"Note: {note}." for note in summary["notes"])
    yield record_table("New samples", summary["clusters"])
    yield ambiguity_line(summary)
    if summary["n_unlike_training"]:
        yield (
            f"{summary['n_unlike_training']} of {summary['n_samples']} samples are "
            "unlike anything in training; their clusters mean little."
        )
    yield file_line(summary["out"])


def comparison_parts(summary: Summary) -> Iterator[RenderableType]:
    """Yield two clusterings side by side."""
    for which in ("a", "b"):
        if names := summary[f"only_in_{which}"]:
            yield (
                f"{len(names)} samples are only in {which.upper()} and left out: "
                f"{list_names(names)}."
            )
    yield number_table(
        "Samples in both",
        ["A / B", *(name[:20] for name in summary["clusters_b"])],
        [
            [name[:20], *(count or "." for count in counts)]
            for name, counts in zip(
                summary["clusters_a"], summary["counts"], strict=True
            )
        ],
    )
    yield (
        f"{summary['n_samples']} samples: ARI {summary['ari']:.3f}, NMI "
        f"{summary['nmi_max']:.3f} (divided by the larger entropy)"
    )
    yield from map(file_line, summary["files"])


def reading_parts(summary: Summary) -> Iterator[RenderableType]:
    """Yield what was read and what would be done."""
    read = {name.replace("_", " "): v for name, v in summary["reading"].items()}
    for name, value in (read | (summary["plan"] or {})).items():
        values = value if isinstance(value, list) else [value]
        words = "; ".join(_format_value(each) for each in values)
        yield Text(f"{name:<22} {words or 'none'}")


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        low, high = _format_value(value["min"]), _format_value(value["max"])
        return f"{value['name']} ({value['type']}, {low} to {high})"
    if isinstance(value, float):
        return f"{value:.6g}"
    words = {"None": "none", "True": "yes", "False": "no", "": "''"}
    return words.get(str(value), str(value))


def candidate_line(candidate: Mapping[str, Any]) -> str:
    """Return a number to look at, with its share of the largest score."""
    share = f"{100 * candidate['score']:.0f} % of the largest score"
    return f"  {candidate['n_clusters']}: {candidate['sentence']} ({share})"


def criteria_table(summary: Summary) -> Table:
    """Return the K table with the suggestion marked."""
    names = ["score", "eigengap", "merge_gap", "agreement", "silhouette", "pac"]
    suggested = summary["suggested_n_clusters"]
    table = number_table(
        "Number of clusters", ["K", *(name.replace("_", " ") for name in names)]
    )
    for row in summary["criteria"]:
        best = row["n_clusters"] == suggested
        table.add_row(
            f"{row['n_clusters']}{' *' if best else ''}",
            *(f"{row[name]:.3f}" if name in row else "" for name in names),
            style="bold" if best else None,
        )
    return table


def record_table(title: str, records: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of clusters, records of the same keys."""
    names = [
        "samples" if key == "size" else key.replace("_", " ") for key in records[0]
    ]
    return number_table(title, names, [list(each.values()) for each in records])


def number_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[Any]] = ()
) -> Table:
    """Return a table of names on the left and numbers on the right."""
    table = Table(title=title, title_justify="left", box=None)
    for place, name in enumerate(header):
        table.add_column(Text(name), justify="right" if place else "left")
    for row in rows:
        cells = (f"{c:.2f}" if isinstance(c, float) else str(c) for c in row)
        table.add_row(*map(Text, cells))
    return table


def ambiguity_line(summary: Summary) -> str:
    """Return how many samples are ambiguous."""
    if summary["mean_confidence"] is None:
        return "all samples are in one cluster, with no other to be near to"
    return (
        f"{summary['n_ambiguous']} of {summary['n_samples']} samples are ambiguous; "
        f"mean confidence {summary['mean_confidence']:.2f}"
    )


def file_line(path: str) -> Text:
    """Return a path on a line of its own."""
    return Text(f"  {path}")


def format_size(n_bytes: int) -> str:
    """Return a size in the unit that people read.

    Examples
    --------
    >>> format_size(512), format_size(34_000), format_size(2_500_000)
    ('512 bytes', '34 kB', '2.5 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    kilo = n_bytes / 1000
    return f"{kilo:.0f} kB" if kilo < 1000 else f"{kilo / 1000:.1f} MB"
