"""Cells of AnnData objects: clustered, and the results put where scverse looks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mdec.estimator import MDEC
from mdec.preparation.kinds import kind_of_layer
from mdec.preparation.recipes import CELL_KINDS
from mdec.results import read_result_model
from mdec.rows.blocks import block_bounds
from mdec.tables import Table
from mdec.tables.budget import list_names
from mdec.tables.hdf5 import add_clustering, add_clusters
from mdec.tables.steps import TableSteps, prepare_table


@dataclass(frozen=True, eq=False)
class CellSource:
    """Where the values of a model's cells were taken from, and what was done to them.

    Attributes
    ----------
    layer, use_rep : str or None
        As given to `cluster`.
    steps : TableSteps
        What is done to new cells as well.
    """

    layer: str | None
    use_rep: str | None
    steps: TableSteps


def cluster(
    adata: Any,
    n_clusters: Any = "auto",
    *,
    layer: str | None = None,
    use_rep: str | None = None,
    key_added: str = "mdec",
    prepare: str = "auto",
    n_top_genes: int | None = None,
    **parameters: Any,
) -> MDEC:
    """Cluster the cells of an AnnData object, in the manner of scverse.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells by genes, in memory or backed by a file, which is read in blocks. It gets
        ``obs[key]``, the clusters as a category, without one for cells below the least
        confidence; ``obs[key + "_confidence"]``; ``obs[key + "_second_choice"]``, -1
        for none; ``obsm[key + "_membership"]``, how far each cell belongs to each
        cluster; and ``uns[key]``, the settings and how the number was chosen.
    n_clusters : int, "auto" or pair of int, default="auto"
        Number of clusters.
    layer : str, default=None
        Layer to cluster; None for X.
    use_rep : str, default=None
        Key of ``obsm`` to cluster as it is, such as "X_pca"; None for X or a layer.
    key_added : str, default="mdec"
        Name of the results.
    prepare : {"auto", "none", "expression", "diversified"}, default="auto"
        What is done to X or a layer first, see `mdec.tables.steps.prepare_table`.
        Counts are scaled to the same sum and logged, and highly variable genes stay.
    n_top_genes : int, default=None
        How many of these; None for what suits the values, 2,000 for counts.
    **parameters
        Further parameters of `MDEC`. The consensus is that of `default_consensus` if
        none is given.

    Returns
    -------
    MDEC
        The fitted model; its ``cells_`` says where the values were and what was done to
        them, for `predict_into`.
    """
    if layer is not None and use_rep is not None:
        raise ValueError("layer and use_rep both say what to cluster; give one.")
    table = _read_cells(adata, layer, use_rep)
    model = MDEC(n_clusters, **parameters)
    how = prepare if use_rep is None else "none"
    prepared = prepare_table(table, how, n_top_genes=n_top_genes)
    if prepared.preparation is not None:
        model.set_params(preparation=prepared.preparation)
    if "consensus" not in parameters:
        model.set_params(consensus=default_consensus(prepared.words))
    model.fit(prepared.values)
    model.cells_ = CellSource(layer, use_rep, prepared.steps)
    notes = {"params": model.get_params(), "preparation": prepared.words}
    notes["source"] = {"layer": layer, "use_rep": use_rep}
    if (selection := model.clustering_.selection) is not None:
        notes |= {"reason": selection.reason, "criteria": dict(selection.table)}
    add_clustering(adata, key_added, model.clustering_, notes)
    return model


def default_consensus(words: Mapping[str, str | None]) -> str:
    """Return the consensus function that serves values, by what was done to them.

    Examples
    --------
    >>> default_consensus({"kind": "counts", "prepared": "one sum, log2(1 + x)"})
    'spectral'
    >>> default_consensus({"kind": "intensities", "prepared": "log2(1 + x)"})
    'hierarchical'
    """
    of_cells = words["prepared"] and words["kind"] in CELL_KINDS
    return "spectral" if of_cells else "hierarchical"


def predict_into(
    adata: Any,
    model: MDEC | str | os.PathLike[str],
    *,
    layer: str | None = None,
    use_rep: str | None = None,
    key_added: str = "mdec",
) -> None:
    """Place new cells in the clusters of a model.

    Parameters
    ----------
    adata : anndata.AnnData
        New cells, with the genes of the model in any order. Genes that the model does
        not keep may be absent and count as zero. ``obs[key]``,
        ``obs[key + "_confidence"]`` and ``obsm[key + "_membership"]`` are as in
        `cluster`; ``obs[key + "_unlike_training"]`` is True for cells whose cluster
        means little.
    model : MDEC or path-like
        What `cluster` returned, or the model.npz of ``mdec fit``.
    layer, use_rep : str, default=None
        What to place; None for what the model was fitted to, if that is known.
    key_added : str, default="mdec"
        Name of the results.
    """
    if isinstance(model, MDEC):
        source = getattr(model, "cells_", None)
        if source is None:
            raise ValueError(
                "the model was not made by mdec.anndata.cluster and does not know its "
                "genes; cluster again, or give the model.npz of mdec fit."
            )
    else:
        loaded, steps = read_result_model(Path(model))
        if not isinstance(loaded, MDEC):
            raise ValueError("the model is of several tables; give one of one table.")
        model, source = loaded, CellSource(layer, use_rep, steps)
    if layer is None and use_rep is None:
        layer, use_rep = source.layer, source.use_rep
    table = _read_cells(adata, layer, use_rep)
    values = table.values if use_rep else _match_genes(table, source.steps)
    values = source.steps.apply(values)
    clusters, sure, unlike = model.place(values)
    add_clusters(adata, key_added, clusters, sure, model.predict_proba(values))
    adata.obs[f"{key_added}_unlike_training"] = unlike


def _read_cells(adata: Any, layer: str | None, use_rep: str | None) -> Table:
    """Return X, a layer or an embedding of an AnnData object as a table."""
    samples = [str(name) for name in adata.obs_names]
    if use_rep is not None:
        values = _read_rows(_find(adata.obsm, use_rep, "embedding"))
        names = [f"{use_rep} {i + 1}" for i in range(values.shape[1])]
        return Table(values, samples, names)
    values = _read_rows(
        adata.X if layer is None else _find(adata.layers, layer, "layer")
    )
    genes, reading = [str(name) for name in adata.var_names], {"names_of_columns": True}
    kind = kind_of_layer(values, layer, adata.uns)
    return Table(values, samples, genes, reading=reading, kind=kind)


def _find(parts: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in parts:
        # The newest AnnData has X among the layers, without a name.
        there = list_names([each for each in parts if each], 8) or "none"
        raise ValueError(f"there is no {what} {name!r}; there are: {there}.")
    return parts[name]


def _read_rows(X: Any) -> Any:
    """Return numbers in memory, sparse ones as CSR; those of a file block by block."""
    if sparse.issparse(X):
        rows: Any = sparse.csr_array(X)
    elif isinstance(X, np.ndarray) or hasattr(X, "to_numpy"):
        rows = np.asarray(X)
    else:  # in a file, which gives rows as arrays or sparse
        parts = [sparse.csr_array(X[a:b]) for a, b in block_bounds(*X.shape)]
        rows = sparse.vstack(parts, format="csr")
    if rows.dtype != np.float32:
        rows = rows.astype(np.float64, copy=False)
    if not np.isfinite(rows.data if sparse.issparse(rows) else rows).all():
        raise ValueError(
            "some values of the cells are missing or infinite; fill them in, or leave "
            "these cells out."
        )
    return rows


def _match_genes(table: Table, steps: TableSteps) -> Any:
    """Return the columns of new cells in the order of a model's genes."""
    if steps.names is None:
        raise ValueError(
            "the model's genes have no names, or some have the same; make them unique "
            "with adata.var_names_make_unique() and cluster again."
        )
    places = {name: place for place, name in enumerate(table.feature_names)}
    needed = steps.arrays.get("features", np.arange(steps.n_features))
    absent = [steps.names[j] for j in needed if steps.names[j] not in places]
    if absent:
        raise ValueError(
            f"the new cells lack {len(absent)} of the {len(needed)} genes that the "
            f"model takes ({list_names(absent)}); add them, or cluster the genes that "
            "both have."
        )
    pairs = [(places[name], j) for j, name in enumerate(steps.names) if name in places]
    # A product puts the genes in their places, sparse or not.
    ones = np.ones(len(pairs), dtype=table.values.dtype)
    shape = len(table.feature_names), steps.n_features
    return table.values @ sparse.csr_array((ones, np.array(pairs).T), shape=shape)
