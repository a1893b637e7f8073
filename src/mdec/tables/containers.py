"""Clusterings of pandas and AnnData objects, with the results put back into them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mdec._support.files import copy_permissions
from mdec._support.memory import MAX_BYTES
from mdec._support.optional import import_optional
from mdec.clustering import Clustering
from mdec.estimator import MDEC
from mdec.tables.hdf5 import check_h5ad


def cluster_frame(frame: Any, n_clusters: int | str = "auto", **parameters: Any) -> Any:
    """Cluster the rows of a pandas DataFrame.

    Parameters
    ----------
    frame : pandas.DataFrame
        Samples in rows, numbers in columns.
    n_clusters : int or "auto"
        Number of clusters.
    **parameters
        Further parameters of `MDEC`.

    Returns
    -------
    pandas.DataFrame
        Cluster, confidence and second choice of each row, with the rows' index; the
        fitted estimator is in ``attrs["mdec"]``.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame(np.random.default_rng(0).normal(size=(20, 4)))
    >>> found = cluster_frame(frame, 2, ensemble_size=5, random_state=0)
    >>> list(found.columns)
    ['cluster', 'confidence', 'second_choice']
    """
    import pandas

    model = MDEC(n_clusters, **parameters).fit(frame)
    columns = {
        "cluster": model.labels_,
        "confidence": model.confidence_,
        "second_choice": model.clustering_.second_choice,
    }
    found = pandas.DataFrame(columns, index=frame.index)
    found.attrs["mdec"] = model
    return found


def cluster_anndata(
    adata: Any,
    n_clusters: int | str = "auto",
    *,
    use_rep: str | None = None,
    layer: str | None = None,
    key_added: str = "mdec",
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Cluster the observations of an AnnData object, in the manner of scanpy.

    Parameters
    ----------
    adata : anndata.AnnData
        The object; it is changed unless `copy` is True.
    n_clusters : int or "auto"
        Number of clusters.
    use_rep : str, default=None
        Key of ``obsm`` to cluster, such as "X_pca"; None for X or a layer.
    layer : str, default=None
        Layer to cluster; None for X.
    key_added : str, default="mdec"
        Name of the results.
    copy : bool, default=False
        Whether to return a changed copy.
    **parameters
        Further parameters of `MDEC`.

    Returns
    -------
    anndata.AnnData or None
        The copy, if asked for. `add_clustering` says what is added; with
        ``n_clusters="auto"`` the criteria and the reason are in ``uns`` too.
    """
    if use_rep is not None and layer is not None:
        raise ValueError("give use_rep or layer, not both.")
    target = adata.copy() if copy else adata
    if use_rep is not None:
        X = target.obsm[use_rep]
    else:
        X = target.X if layer is None else target.layers[layer]
        X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    model = MDEC(n_clusters, **parameters).fit(X)
    notes: dict[str, Any] = {"params": model.get_params()}
    if n_clusters == "auto":
        notes["reason"] = model.k_selection_.reason
        notes["criteria"] = dict(model.k_selection_.table)
    add_clustering(target, model.clustering_, notes, key_added=key_added)
    return target if copy else None


def add_clustering(
    adata: Any,
    clustering: Clustering,
    notes: dict[str, Any],
    *,
    key_added: str = "mdec",
) -> None:
    """Add a clustering of its observations to an AnnData object.

    Parameters
    ----------
    adata : anndata.AnnData
        The object. ``obs[key]`` becomes a category of cluster names, none for samples
        below the least confidence; ``obs[key + "_confidence"]`` and
        ``obs[key + "_second_choice"]`` stand beside it, and
        ``obsm[key + "_item_consensus"]`` has the mean co-association with every
        cluster.
    clustering : Clustering
        The clustering of the observations.
    notes : dict
        What ``uns[key]`` says, beside the number of clusters; parameters become text.
    key_added : str, default="mdec"
        The key.
    """
    import pandas

    names = [str(k) for k in range(clustering.n_clusters)]
    codes = pandas.Categorical.from_codes(clustering.firm_labels, names)
    adata.obs[key_added] = codes
    adata.obs[f"{key_added}_confidence"] = clustering.confidence
    adata.obs[f"{key_added}_second_choice"] = clustering.second_choice
    adata.obsm[f"{key_added}_item_consensus"] = clustering.association
    params = {k: str(v) for k, v in notes["params"].items() if v is not None}
    rest = {"n_clusters": clustering.n_clusters, "params": params}
    adata.uns[key_added] = {**notes, **rest}


@contextmanager
def write_h5ad(
    source: Path,
    target: Path,
    clustering: Clustering,
    notes: dict[str, Any],
    *,
    max_bytes: int = MAX_BYTES,
) -> Iterator[None]:
    """Make a copy of an AnnData file with a clustering of its observations.

    It takes its name when the block has ended well.

    Parameters
    ----------
    source : Path
        The file. One with links, external or virtual data, or with more than
        `max_bytes`, is refused before anything is read or written.
    target : Path
        The copy; an old one is replaced at the end.
    clustering : Clustering
        The clustering of the observations.
    notes : dict
        As in `add_clustering`.
    max_bytes : int
        What the whole file may unpack to.
    """
    anndata = import_optional(
        "anndata", needed_for="writing .h5ad files", install="mdec[anndata]"
    )
    check_h5ad(source, max_bytes)
    adata = anndata.read_h5ad(source)
    add_clustering(adata, clustering, notes)
    # HDF5 writes to a name and not to an open file.
    beside = target.with_name(f".mdec-{target.name}")
    try:
        adata.write_h5ad(beside)
        copy_permissions(target, beside)
        yield
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
