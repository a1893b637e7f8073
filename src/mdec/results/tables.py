"""The tables of a result, as text that spreadsheets read and never compute."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array, Labels
from mdec._support.memory import require_memory
from mdec._support.parallel import single_threaded_blas
from mdec.clustering import Clustering
from mdec.coassociation import locally_weighted_coassociation
from mdec.consensus.dendrogram import LINKED_SAMPLES
from mdec.consensus.partitions import number_by_appearance
from mdec.report import Description
from mdec.selection.criteria import cuts
from mdec.tables.text import escape_formula

EXTRA_TABLES = ("consensus", "labels", "membership")

# A larger matrix is written as an array, and one beyond that not at all.
TEXT_SAMPLES = 2000
MATRIX_SAMPLES = 20_000


def check_extra_tables(names: Sequence[str], n_samples: int) -> None:
    """Raise before a long run what would fail after it, of tables in `EXTRA_TABLES`."""
    if unknown := set(names) - set(EXTRA_TABLES):
        raise ValueError(
            f"{min(unknown)!r} is not an additional table; choose from "
            f"{', '.join(EXTRA_TABLES)}."
        )
    if "consensus" in names:
        if n_samples > MATRIX_SAMPLES:
            raise ValueError(
                f"the consensus matrix of {n_samples} samples would take "
                f"{4e-9 * n_samples**2:.1f} GB; it is written for at most "
                f"{MATRIX_SAMPLES}."
            )
        what = f"the consensus matrix of {n_samples} samples"
        require_memory(matrix_memory(n_samples), what, "leave it out")
    if "labels" in names and n_samples > LINKED_SAMPLES:
        raise ValueError(
            f"labels for every number of clusters are cut from one dendrogram of at "
            f"most {LINKED_SAMPLES} samples, and there are {n_samples}; cluster the "
            "ensemble again for other numbers."
        )


def name_extra_file(name: str, n_samples: int) -> str:
    """Return the name of the file of a further table.

    Examples
    --------
    >>> name_extra_file("consensus", 100), name_extra_file("consensus", 5000)
    ('consensus.csv', 'consensus.npy')
    """
    if name == "consensus" and n_samples > TEXT_SAMPLES:
        return "consensus.npy"
    return {"labels": "labels-for-every-k.csv"}.get(name, f"{name}.csv")


def matrix_memory(n_samples: int) -> int:
    """Return the bytes that making the consensus matrix takes."""
    return 24 * n_samples**2


def label_columns(
    sample_names: Sequence[str],
    labels: Labels,
    confidence: Array,
    second_choice: Labels,
    known: NDArray[Any] | None = None,
) -> dict[str, list[Any]]:
    """Return the columns of labels.csv; a second choice of -1 is none."""
    columns: dict[str, list[Any]] = {
        "sample": [escape_formula(name) for name in sample_names],
        "cluster": labels.tolist(),
        "confidence": [f"{value:.4f}" for value in confidence],
        "second_choice": ["" if k < 0 else k for k in second_choice.tolist()],
    }
    if known is not None:
        columns["known_class"] = [escape_formula(name) for name in known.tolist()]
    return columns


def signature_columns(described: Description) -> dict[str, list[Any]]:
    """Return the features that set the clusters apart; none without values."""
    rows = described["signatures"]
    return {
        "cluster": [row["cluster"] for row in rows],
        "feature": [escape_formula(row["name"]) for row in rows],
        "effect": [f"{row['effect']:.4f}" for row in rows],
        "mean_inside": [f"{row['inside']:.6g}" for row in rows],
        "mean_outside": [f"{row['outside']:.6g}" for row in rows],
    }


def extra_files(
    names: Iterable[str], clustering: Clustering, columns: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files of further tables.

    The columns are those of labels.csv.
    """
    ensemble, weights = clustering.ensemble.gather(), clustering.weights
    first = {name: columns[name] for name in ("sample", "cluster")}
    for name in names:
        with single_threaded_blas():
            if name == "membership":
                shares = enumerate(clustering.membership.T)
                more = {
                    f"cluster_{k}": [f"{x:.4f}" for x in each] for k, each in shares
                }
                content = format_csv(first | more)
            elif name == "labels":
                ks = clustering.criteria.table["n_clusters"].tolist()
                parts = zip(ks, cuts(ensemble, weights, ks), strict=True)
                more = {
                    f"k_{k}": number_by_appearance(part, k).tolist()
                    for k, part in parts
                }
                content = format_csv(first | more)
            else:
                matrix = locally_weighted_coassociation(ensemble, weights)
                content = format_matrix(matrix, first["sample"])
        yield name_extra_file(name, ensemble.n_samples), content


def format_matrix(matrix: Array, names: Sequence[str]) -> bytes:
    """Return the consensus of all pairs of samples as text, or as an array."""
    if len(matrix) > TEXT_SAMPLES:
        buffer = io.BytesIO()
        np.save(buffer, matrix.astype(np.float32), allow_pickle=False)
        return buffer.getvalue()
    cells = ((f"{value:.4f}" for value in row) for row in matrix)
    rows = ([name, *row] for name, row in zip(names, cells, strict=True))
    return format_rows(["sample", *names], rows)


def format_csv(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Return columns as a text table.

    Examples
    --------
    >>> format_csv({"sample": ["a", "b"], "cluster": [0, 1]})
    b'sample,cluster\\na,0\\nb,1\\n'
    """
    return format_rows(list(columns), zip(*columns.values(), strict=True))


def format_rows(header: Sequence[str], rows: Iterable[Iterable[Any]]) -> bytes:
    """Return rows under a header as a text table, whatever names stand there twice."""
    text = io.StringIO(newline="")
    plain = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    for row in (header, *rows):
        cells = list(row)
        # Without quotation marks the row would read as a comment.
        hidden = bool(cells) and str(cells[0]).startswith("#")
        (quoted if hidden else plain).writerow(cells)
    return text.getvalue().encode()
