"""``mdec compare``: two clusterings of the same samples side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

from mdec._support.files import atomic_file, write_atomically
from mdec._support.optional import import_optional
from mdec.cli._options import DEFAULT_GB, AsJson, IdColumn, MaxGb, Quiet
from mdec.cli._output import examples, show_comparison, table_csv
from mdec.evaluation import ari, nmi_max
from mdec.tables.clusterings import read_base_clusterings
from mdec.tables.text import shown_as_text

EPILOG = examples(
    "mdec compare result-a result-b",
    "mdec compare result/labels.csv truth.csv --out compared.svg",
    "mdec compare result result --column-b known_class",
)

# Columns that labels.csv and predicted.csv call their clusters.
CLUSTER = "cluster"
PICTURES = (".png", ".svg", ".pdf")

ColumnHelp = "Column of the clustering in {}; the only one, or 'cluster', if absent."


def command(
    a: Annotated[Path, typer.Argument(help="Table of labels, or folder of a result.")],
    b: Annotated[Path, typer.Argument(help="The same, to compare it with.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Picture: a .png, .svg or .pdf file."),
    ] = None,
    table: Annotated[
        Path | None, typer.Option(help="Contingency table as a .csv file.")
    ] = None,
    column_a: Annotated[str | None, typer.Option(help=ColumnHelp.format("A"))] = None,
    column_b: Annotated[str | None, typer.Option(help=ColumnHelp.format("B"))] = None,
    id_column: IdColumn = None,
    max_gb: MaxGb = DEFAULT_GB,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare two clusterings: ARI, NMI, and which clusters are which.

    Samples are matched by their names. Clusters of B stand in the order that matches
    those of A best.
    """
    if out is not None and out.suffix.lower() not in PICTURES:
        raise ValueError(f"--out {out} is no picture; give {', '.join(PICTURES)}.")
    max_bytes = int(max_gb * 2**30)
    first = _read(a, column_a, id_column, max_bytes)
    second = _read(b, column_b, id_column, max_bytes)
    shared = [name for name in first if name in second]
    if len(shared) < 2:
        raise ValueError(
            f"{str(a)!r} and {str(b)!r} share {len(shared)} samples by name; compare "
            "clusterings of the same samples, or name them with --id-column."
        )
    left = np.array([first[name] for name in shared])
    right = np.array([second[name] for name in shared])
    rows, columns, counts = matched_contingency(left, right)
    summary = {
        "a": str(a),
        "b": str(b),
        "n_samples": len(shared),
        "only_in_a": [name for name in first if name not in second],
        "only_in_b": [name for name in second if name not in first],
        "ari": ari(left, right),
        "nmi_max": nmi_max(left, right),
        "clusters_a": rows,
        "clusters_b": columns,
        "counts": counts.tolist(),
        "files": [str(each) for each in (out, table) if each is not None],
    }
    if table is not None:
        cells = {"cluster": [shown_as_text(row) for row in rows]}
        for place, name in enumerate(columns):
            cells[f"{shown_as_text(name)}"] = counts[:, place].tolist()
        write_atomically(table, table_csv(cells))
    if out is not None:
        _draw(out, summary)
    show_comparison(summary, quiet=quiet, as_json=as_json)


def matched_contingency(
    a: NDArray[np.str_], b: NDArray[np.str_]
) -> tuple[list[str], list[str], NDArray[np.int64]]:
    """Count samples by their clusters, with matched clusters on the diagonal.

    Parameters
    ----------
    a, b : ndarray of str of shape (n_samples,)
        Two clusterings.

    Returns
    -------
    rows, columns : list of str
        Clusters of `a` in their order, and of `b` in the order that matches; numbers
        count by size.
    counts : ndarray of shape (n_rows, n_columns)
        Samples in both.

    Examples
    --------
    >>> rows, columns, counts = matched_contingency(
    ...     np.array(["0", "0", "1"]), np.array(["y", "y", "x"])
    ... )
    >>> rows, columns, counts.tolist()
    (['0', '1'], ['y', 'x'], [[2, 0], [0, 1]])
    """
    names = [sorted(set(each.tolist()), key=_by_number) for each in (a, b)]
    codes = [
        np.array([{n: i for i, n in enumerate(order)}[label] for label in each])
        for order, each in zip(names, (a, b), strict=True)
    ]
    counts = np.asarray(contingency_matrix(*codes), dtype=np.int64)
    matched, places = linear_sum_assignment(counts, maximize=True)
    order = [int(places[np.argsort(matched)][i]) for i in range(len(places))]
    order += [j for j in range(counts.shape[1]) if j not in order]
    return names[0], [names[1][j] for j in order], counts[:, order]


def _by_number(name: str) -> tuple[bool, float, str]:
    whole = name.lstrip("-").isdecimal()
    return (not whole, float(name) if whole else 0.0, name)


def _read(
    path: Path, column: str | None, id_column: str | None, max_bytes: int
) -> dict[str, str]:
    """Return the cluster of each sample that has one, by its name."""
    file = path / "labels.csv" if path.is_dir() else path
    if not file.is_file():
        raise ValueError(
            f"{str(file)!r} is not a file; give a table of labels or a result folder."
        )
    settings: dict[str, Any] = {"id_column": id_column, "max_bytes": max_bytes}
    if column is None and _has_clusters(file):
        column = CLUSTER
    labels, samples, members = read_base_clusterings(file, column=column, **settings)
    if len(members) > 1:
        shown = ", ".join(repr(name[:40]) for name in members[:5])
        raise ValueError(
            f"{file.name!r} holds {len(members)} clusterings ({shown}); say which with "
            "--column-a or --column-b."
        )
    pairs = zip(samples, labels[:, 0].tolist(), strict=True)
    return {name: label for name, label in pairs if label is not None}


def _has_clusters(file: Path) -> bool:
    if file.suffix.lower() != ".csv":
        return False
    with file.open(encoding="utf-8", errors="replace") as lines:
        return CLUSTER in lines.readline(10_000).strip().split(",")


def _draw(path: Path, summary: dict[str, Any]) -> None:
    figures = import_optional(
        "matplotlib.figure", needed_for="the picture", install="mdec[report]"
    )
    counts = np.array(summary["counts"])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    size = [max(3.5, 0.45 * n + 2.0) for n in counts.shape[::-1]]
    figure = figures.Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    for i, j in np.ndindex(*counts.shape):
        shade = "white" if shares[i, j] > 0.6 else "black"
        if counts[i, j]:
            axes.text(j, i, str(counts[i, j]), ha="center", va="center", color=shade)
    for which, names in (("x", summary["clusters_b"]), ("y", summary["clusters_a"])):
        # Dollar signs would start a formula.
        shown = [name[:20].replace("$", r"\$") for name in names]
        turned = {"rotation": 90} if which == "x" and max(map(len, shown)) > 4 else {}
        axes.set(**{f"{which}ticks": range(len(names))})
        axes.set(**{f"{which}ticklabels": shown})
        axes.tick_params(axis=which, length=0, **turned)
    axes.set(xlabel="B", ylabel="A")
    axes.set_title(f"ARI {summary['ari']:.3f}, NMI {summary['nmi_max']:.3f}")
    with atomic_file(path) as file:
        figure.savefig(file, format=path.suffix.lower().lstrip("."), dpi=150)
