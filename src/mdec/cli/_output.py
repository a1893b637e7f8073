"""What the commands print: progress on the error stream, results on the other."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from mdec._support.progress import Progress as Hook


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[dict[str, Hook | None]]:
    """Yield hooks for the two long steps, which show bars with the time left."""
    if quiet:
        yield {"members": None, "null": None}
        return
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )

    def hook(description: str) -> Hook:
        started: list[Any] = []

        def advance(done: int, total: int) -> None:
            if not started:
                bars.start()
                started.append(bars.add_task(description, total=total))
            bars.update(started[0], completed=done, total=total)

        return advance

    from mdec.numerics.loops.jit import compiling_told

    try:
        with compiling_told(lambda line: bars.console.print(f"mdec: {line}")):
            yield {"members": hook("base clusterings"), "null": hook("null reference")}
    finally:
        if bars.tasks:
            bars.stop()


def show_summary(summary: dict[str, Any], *, quiet: bool, as_json: bool) -> None:
    """Print the result: nothing, JSON or a table for people."""
    if as_json:
        _show_json(summary)
        return
    if quiet:
        return
    console = Console(highlight=False)
    console.print(criteria_table(summary))
    console.print(Text(f"Suggested K: {summary['suggested_n_clusters']}. "), end="")
    console.print(Text(summary["reason"]))
    console.print()
    console.print(cluster_table(summary))
    if "view_support" in summary:
        console.print(support_table(summary))
    if summary["scores"]:
        scores = summary["scores"]
        console.print(
            f"Against the known classes: NMI {scores['nmi_max']:.3f} (divided by the "
            f"larger entropy), ARI {scores['ari']:.3f}"
        )
    console.print(
        f"{summary['n_ambiguous']} of {summary['n_samples']} samples are ambiguous; "
        f"mean confidence {summary['mean_confidence']:.2f}"
    )
    if "n_left_out" in summary:
        console.print(f"{summary['n_left_out']} samples are left out (cluster -1)")
    kept = summary.get("model", {})
    if kept.get("left_out"):
        console.print(Text(f"No model was written: {kept['left_out']}."))
    for name, path in summary["files"].items():
        size = f" ({shown_size(kept['bytes'])})" if name == "model.npz" else ""
        console.print(Text(f"  {path}{size}"), soft_wrap=True)


def shown_size(n_bytes: int) -> str:
    """Return a size in the unit that people read.

    Examples
    --------
    >>> shown_size(512), shown_size(34_000), shown_size(2_500_000)
    ('512 bytes', '34 kB', '2.5 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    kilo = n_bytes / 1000
    return f"{kilo:.0f} kB" if kilo < 1000 else f"{kilo / 1000:.1f} MB"


def _show_json(content: dict[str, Any]) -> None:
    Console(soft_wrap=True, highlight=False).out(json.dumps(content, indent=1))


def show_reading(
    reading: dict[str, Any], plan: dict[str, Any] | None = None, *, as_json: bool
) -> None:
    """Print what was read and what would be done, as JSON or for people."""
    console = Console(highlight=False, soft_wrap=True)
    if as_json:
        console.out(json.dumps({"reading": reading, "plan": plan}, indent=1))
        return
    told = {name.replace("_", " "): value for name, value in reading.items()}
    for name, value in (told | (plan or {})).items():
        shown = value if isinstance(value, list) else [value]
        words = "; ".join(_word(each) for each in shown)
        console.print(Text(f"{name:<22} {words or 'none'}"))


def _word(value: Any) -> str:
    if isinstance(value, dict):
        low, high = _word(value["min"]), _word(value["max"])
        return f"{value['name']} ({value['type']}, {low} to {high})"
    if isinstance(value, float):
        return f"{value:.6g}"
    return {"None": "none", "True": "yes", "False": "no"}.get(str(value), str(value))


def criteria_table(summary: dict[str, Any]) -> Table:
    """Return the K table with the suggestion marked."""
    table = Table("K", title="Number of clusters", title_justify="left", box=None)
    names = ["pac", "delta_area", "eigengap", "agreement", "silhouette"]
    if any("p_value" in row for row in summary["criteria"]):
        names.append("p_value")
    for name in names:
        table.add_column(name.replace("_", " "), justify="right")
    for row in summary["criteria"]:
        chosen = row["n_clusters"] == summary["suggested_n_clusters"]
        table.add_row(
            f"{row['n_clusters']}{' *' if chosen else ''}",
            *(f"{row[name]:.3f}" if name in row else "" for name in names),
            style="bold" if chosen else None,
        )
    return table


def cluster_table(summary: dict[str, Any]) -> Table:
    """Return size, consensus and confidence of each cluster."""
    table = Table("cluster", title="Clusters", title_justify="left", box=None)
    for name in ("samples", "consensus", "confidence", "ambiguous"):
        table.add_column(name, justify="right")
    for row in summary["clusters"]:
        table.add_row(
            str(row["cluster"]),
            str(row["size"]),
            f"{row['consensus']:.2f}",
            f"{row['confidence']:.2f}",
            str(row["ambiguous"]),
        )
    return table


def support_table(summary: dict[str, Any]) -> Table:
    """Return how firmly each view alone holds each cluster."""
    table = Table("view", title="Support by view", title_justify="left", box=None)
    for row in summary["clusters"]:
        table.add_column(str(row["cluster"]), justify="right")
    for row in summary["view_support"]:
        shares = (f"{share:.2f}" for share in row["clusters"])
        table.add_row(Text(row["view"][:40]), *shares)
    return table


def show_prediction(summary: dict[str, Any], *, quiet: bool, as_json: bool) -> None:
    """Print where new samples were placed: nothing, JSON or a table for people."""
    console = Console(highlight=False)
    if as_json:
        _show_json(summary)
        return
    if quiet:
        return
    for note in summary["notes"]:
        console.print(Text(f"Note: {note}."))
    table = Table("cluster", title="New samples", title_justify="left", box=None)
    for name in ("samples", "confidence", "unlike training"):
        table.add_column(name, justify="right")
    for row in summary["clusters"]:
        numbers = row["cluster"], row["size"]
        sure = f"{row['confidence']:.2f}"
        table.add_row(*map(str, numbers), sure, str(row["unlike_training"]))
    console.print(table)
    n_samples, n_unlike = summary["n_samples"], summary["n_unlike_training"]
    console.print(
        f"{summary['n_ambiguous']} of {n_samples} samples are ambiguous; mean "
        f"confidence {summary['mean_confidence']:.2f}"
    )
    if n_unlike:
        console.print(
            f"{n_unlike} of {n_samples} samples are unlike anything in training; their "
            "clusters mean little."
        )
    console.print(Text(f"  {summary['out']}"), soft_wrap=True)


def show_cut(summary: dict[str, Any], *, quiet: bool, as_json: bool) -> None:
    """Print the clusters of a consensus matrix: nothing, JSON or a table for people."""
    if as_json:
        _show_json(summary)
        return
    if quiet:
        return
    console = Console(highlight=False)
    console.print(cluster_table(summary))
    for path in summary["files"].values():
        console.print(Text(f"  {path}"), soft_wrap=True)


def show_comparison(summary: dict[str, Any], *, quiet: bool, as_json: bool) -> None:
    """Print two clusterings side by side: nothing, JSON or a table for people."""
    console = Console(highlight=False)
    if as_json:
        _show_json(summary)
        return
    if quiet:
        return
    for which in ("a", "b"):
        names = summary[f"only_in_{which}"]
        if names:
            shown = ", ".join(repr(name[:40]) for name in names[:3])
            more = ", ..." if len(names) > 3 else ""
            words = f"{len(names)} samples are only in {which.upper()} and left out"
            console.print(Text(f"{words}: {shown}{more}."))
    table = Table("A / B", title="Samples in both", title_justify="left", box=None)
    for name in summary["clusters_b"]:
        table.add_column(Text(name[:20]), justify="right")
    for name, counts in zip(summary["clusters_a"], summary["counts"], strict=True):
        cells = [str(count) if count else "." for count in counts]
        table.add_row(Text(name[:20]), *cells)
    console.print(table)
    console.print(
        f"{summary['n_samples']} samples: ARI {summary['ari']:.3f}, NMI "
        f"{summary['nmi_max']:.3f} (divided by the larger entropy)"
    )
    for path in summary["files"]:
        console.print(Text(f"  {path}"), soft_wrap=True)


def examples(*lines: str) -> str:
    """Return the end of a help text: commands to try, one on each line.

    Examples
    --------
    >>> examples("mdec demo")
    'Examples:\\n\\nmdec demo'
    """
    return "\n\n".join(["Examples:", *lines])


def table_csv(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Return columns as a text table.

    Examples
    --------
    >>> table_csv({"sample": ["a", "b"], "cluster": [0, 1]})
    b'sample,cluster\\na,0\\nb,1\\n'
    """
    return rows_csv(list(columns), zip(*columns.values(), strict=True))


def rows_csv(header: Sequence[str], rows: Iterable[Iterable[Any]]) -> bytes:
    """Return rows under a header as a text table.

    Examples
    --------
    >>> rows_csv(["sample", "sample"], [["a", 1]])
    b'sample,sample\\na,1\\n'
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()
