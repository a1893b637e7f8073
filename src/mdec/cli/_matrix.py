"""Clusters of a consensus matrix: labels, but nothing that asks for clusterings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from mdec._support.files import write_atomically
from mdec._support.folders import replaced_together
from mdec.cli._model import MODEL
from mdec.cli._output import table_csv
from mdec.cli._work import parse_k
from mdec.confidence import confidence, second_choice
from mdec.consensus.matrix import (
    METHODS,
    checked_matrix,
    from_matrix,
    matrix_associations,
)
from mdec.report.clustering.views import cluster_rows
from mdec.tables.door import shown_name
from mdec.tables.matrices import read_consensus_matrix
from mdec.tables.text import shown_as_text

# Of an earlier result in the same folder; they would speak of other clusters.
_GONE = (MODEL, "ensemble.npz", "report.html", "signatures.csv")


def cut_matrix(
    file: Path, k: str, consensus: str, out: Path, seed: int, max_bytes: int
) -> dict[str, Any]:
    """Cluster a consensus matrix, write labels.csv and summary.json.

    Parameters
    ----------
    file : Path
        The matrix.
    k : str
        Number of clusters.
    consensus : str
        How: "hierarchical" or "spectral".
    out : Path
        Folder of the results, `claimed` by the command.
    seed : int
        Seed of k-means.
    max_bytes : int
        A file that claims to unpack to more is refused.

    Returns
    -------
    dict
        The content of summary.json.
    """
    if consensus not in METHODS:
        raise ValueError(
            f"--consensus {consensus} needs the clusterings themselves; a consensus "
            f"matrix is clustered by {' or '.join(METHODS)}."
        )
    given, names = read_consensus_matrix(file, max_bytes=max_bytes)
    similarity = checked_matrix(given)
    number, _ = parse_k(k, len(similarity))
    if number is None:
        raise ValueError(
            f"--k {k}: a consensus matrix does not tell the number of clusters; give "
            "it, such as --k 4."
        )
    labels = from_matrix(similarity, number, method=consensus, random_state=seed)
    association = matrix_associations(similarity, labels)
    sure, second = confidence(association, labels), second_choice(association, labels)
    files = {name: str(out / name) for name in ("labels.csv", "summary.json")}
    summary: dict[str, Any] = {
        "file": shown_name(file),
        "n_samples": len(labels),
        "n_clusters": association.shape[1],
        "consensus": consensus,
        "seed": seed,
        "clusters": cluster_rows(
            association, labels, sure, np.arange(association.shape[1])
        ),
        "mean_confidence": float(sure.mean()),
        "files": files,
    }
    columns = {
        "sample": [shown_as_text(name) for name in names],
        "cluster": labels.tolist(),
        "confidence": [f"{value:.4f}" for value in sure],
        "second_choice": ["" if other < 0 else other for other in second.tolist()],
    }
    with replaced_together(out, gone=_GONE) as folder:
        write_atomically(folder / "labels.csv", table_csv(columns))
        content = json.dumps(summary, indent=1).encode()
        write_atomically(folder / "summary.json", content)
    return summary
