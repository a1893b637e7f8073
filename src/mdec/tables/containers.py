"""Clusterings put back into what pandas and AnnData hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
    >>> import numpy, pandas
    >>> frame = pandas.DataFrame(numpy.random.default_rng(0).normal(size=(20, 4)))
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


def add_clustering(
    adata: Any, key: str, clustering: Clustering, notes: Mapping[str, Any]
) -> None:
    """Add a clustering of its observations to an AnnData object.

    It has `add_clusters`, ``obs[key + "_second_choice"]``, and in ``uns`` the notes:
    what AnnData files can hold. Settings become text, and what is None is left out.
    """
    labels, confidence = clustering.firm_labels, clustering.confidence
    add_clusters(adata, key, labels, confidence, clustering.membership)
    adata.obs[f"{key}_second_choice"] = clustering.second_choice
    params = {k: str(v) for k, v in notes["params"].items() if v is not None}
    groups = {
        name: {k: v for k, v in each.items() if v is not None}
        if isinstance(each, Mapping)
        else each
        for name, each in notes.items()
    }
    rest = {"n_clusters": clustering.n_clusters, "params": params}
    adata.uns[key] = {**groups, **rest}


def add_clusters(
    adata: Any, key: str, labels: Any, confidence: Any, membership: Any
) -> None:
    """Add clusters of its observations to an AnnData object.

    Parameters
    ----------
    adata : anndata.AnnData
        The object. ``obs[key]`` becomes a category of cluster names, none for samples
        below the least confidence; ``obs[key + "_confidence"]`` stands beside it, and
        ``obsm[key + "_membership"]`` says how far each belongs to each cluster.
    key : str
        The key.
    labels, confidence, membership : ndarray
        As `Clustering` has them.
    """
    import pandas

    names = [str(k) for k in range(membership.shape[1])]
    adata.obs[key] = pandas.Categorical.from_codes(labels, names)
    adata.obs[f"{key}_confidence"] = confidence
    adata.obsm[f"{key}_membership"] = membership


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
        What ``uns["mdec"]`` says, see `describe_clustering`.
    max_bytes : int
        What the whole file may unpack to.
    """
    anndata = import_optional(
        "anndata", needed_for="writing .h5ad files", install="mdec[anndata]"
    )
    check_h5ad(source, max_bytes)
    adata = anndata.read_h5ad(source)
    add_clustering(adata, "mdec", clustering, notes)
    # HDF5 writes to a name and not to an open file.
    beside = target.with_name(f".mdec-{target.name}")
    try:
        adata.write_h5ad(beside)
        copy_permissions(target, beside)
        yield
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
