"""Tables of a result that are written only when they are asked for."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.files import write_atomically
from mdec._support.memory import require_memory
from mdec.cli._output import rows_csv, table_csv
from mdec.coassociation import locally_weighted_coassociation
from mdec.confidence import memberships
from mdec.consensus.partitions import numbered_by_appearance
from mdec.ensemble import Ensemble
from mdec.selection.criteria import cuts

Array = NDArray[np.floating]
Labels = NDArray[np.integer]

ASKED = ("consensus", "labels", "membership")

# Every file that may be written; those of an earlier run go.
ASKED_FILES = (
    "consensus.csv",
    "consensus.npy",
    "labels-for-every-k.csv",
    "membership.csv",
)

# A larger matrix is written as an array, and one beyond that not at all; the
# dendrogram of more samples starts from groups of them.
TEXT_SAMPLES = 2000
MATRIX_SAMPLES = 20_000
LINKED_SAMPLES = 60_000


def parse_asked(words: str | None, n_samples: int) -> tuple[str, ...]:
    """Return what was asked for, or raise before a long run what would fail after it.

    Parameters
    ----------
    words : str or None
        Such as "consensus,membership".
    n_samples : int
        Number of samples.

    Returns
    -------
    tuple of str
        Of `ASKED`.

    Examples
    --------
    >>> parse_asked("membership, labels", 100)
    ('membership', 'labels')
    """
    if words is None:
        return ()
    asked = tuple(word.strip() for word in words.split(","))
    for word in asked:
        if word not in ASKED:
            raise ValueError(f"--write {word} is not one of {', '.join(ASKED)}.")
    if "consensus" in asked:
        if n_samples > MATRIX_SAMPLES:
            raise ValueError(
                f"--write consensus: the matrix of {n_samples} samples would take "
                f"{matrix_bytes(n_samples) / 1e9:.1f} GB; it is written for at most "
                f"{MATRIX_SAMPLES}."
            )
        require_memory(
            matrix_memory(n_samples),
            f"--write consensus for {n_samples} samples",
            "leave it out",
        )
    if "labels" in asked and n_samples > LINKED_SAMPLES:
        raise ValueError(
            f"--write labels cuts one dendrogram of at most {LINKED_SAMPLES} samples, "
            f"and there are {n_samples}; use mdec consensus for other numbers."
        )
    return asked


def matrix_bytes(n_samples: int) -> int:
    """Return the bytes of the consensus matrix in a file of numbers.

    Examples
    --------
    >>> matrix_bytes(1000)
    4000000
    """
    return 4 * n_samples**2


def matrix_memory(n_samples: int) -> int:
    """Return the bytes that making the consensus matrix takes."""
    return 6 * matrix_bytes(n_samples)


def write_asked(
    folder: Path,
    asked: Sequence[str],
    ensemble: Ensemble,
    weights: Array,
    association: Array,
    shown: Mapping[str, Sequence[Any]],
    numbers: Sequence[int],
) -> list[str]:
    """Write what was asked for and return the names of the files.

    Parameters
    ----------
    folder : Path
        Where.
    asked : sequence of str
        Of `ASKED`.
    ensemble : Ensemble
        The base clusterings.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    association : ndarray of shape (n_samples, n_clusters)
        Item consensus of the samples.
    shown : mapping
        Columns "sample" and "cluster" as labels.csv has them.
    numbers : sequence of int
        Numbers of clusters to cut the dendrogram into.

    Returns
    -------
    list of str
        The names.
    """
    files: dict[str, bytes] = {}
    first = {name: shown[name] for name in ("sample", "cluster")}
    if "membership" in asked:
        shares = memberships(association)
        columns = {
            f"cluster_{k}": [f"{value:.4f}" for value in shares[:, k]]
            for k in range(shares.shape[1])
        }
        files["membership.csv"] = table_csv(first | columns)
    if "labels" in asked:
        parts = cuts(ensemble, weights, numbers)
        columns = {
            f"k_{k}": numbered_by_appearance(part, k).tolist()
            for k, part in zip(numbers, parts, strict=True)
        }
        files["labels-for-every-k.csv"] = table_csv(first | columns)
    if "consensus" in asked:
        matrix = locally_weighted_coassociation(ensemble, weights)
        if ensemble.n_samples > TEXT_SAMPLES:
            buffer = io.BytesIO()
            np.save(buffer, matrix.astype(np.float32), allow_pickle=False)
            files["consensus.npy"] = buffer.getvalue()
        else:
            names = first["sample"]
            rows = (
                [name, *(f"{value:.4f}" for value in row)]
                for name, row in zip(names, matrix, strict=True)
            )
            files["consensus.csv"] = rows_csv(["sample", *names], rows)
    for name, content in files.items():
        write_atomically(folder / name, content)
    return list(files)
