"""Clusterings of pandas and AnnData objects, with the results put back into them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.confidence import (
    confidence,
    firm_labels,
    item_consensus,
    second_choice,
)
from mdec.ensemble import Ensemble
from mdec.estimator import MDEC


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
    found = pandas.DataFrame(_columns(model), index=frame.index)
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
        The copy, if asked for. What is added is told in `write_back`; with
        ``n_clusters="auto"`` the criteria and the reason are in ``uns`` too.
    """
    if use_rep is not None and layer is not None:
        raise ValueError("give use_rep or layer, not both.")
    target = adata.copy() if copy else adata
    X = target.obsm[use_rep] if use_rep is not None else _matrix(target, layer)
    model = MDEC(n_clusters, **parameters).fit(X)
    told: dict[str, Any] = {"params": model.get_params()}
    if n_clusters == "auto":
        told["reason"] = model.k_selection_.reason
        told["criteria"] = dict(model.k_selection_.table)
    clustered = model.ensemble_, model.consensus_labels_, model.cluster_weights_
    least = model.min_confidence
    write_back(target, *clustered, told, key_added=key_added, min_confidence=least)
    return target if copy else None


def write_back(
    adata: Any,
    ensemble: Ensemble,
    labels: NDArray[np.int32],
    weights: NDArray[np.floating],
    told: dict[str, Any],
    *,
    key_added: str = "mdec",
    min_confidence: float | None = None,
) -> None:
    """Put a clustering of its observations into an AnnData object.

    Parameters
    ----------
    adata : anndata.AnnData
        The object. ``obs[key]`` becomes a category of cluster names,
        ``obs[key + "_confidence"]`` and ``obs[key + "_second_choice"]`` stand beside
        it, and ``obsm[key + "_item_consensus"]`` has the mean co-association with
        every cluster.
    ensemble : Ensemble
        The base clusterings.
    labels : ndarray of shape (n_obs,)
        The clusters.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    told : dict
        What ``uns[key]`` says, beside the number of clusters; parameters become text.
    key_added : str, default="mdec"
        The key.
    min_confidence : float, default=None
        Samples held less firmly have no category; None gives one to all.
    """
    import pandas

    association = item_consensus(ensemble, labels, weights)
    n_clusters = association.shape[1]
    names = [str(k) for k in range(n_clusters)]
    sure = confidence(association, labels)
    codes = firm_labels(labels, sure, min_confidence)
    adata.obs[key_added] = pandas.Categorical.from_codes(codes, names)
    adata.obs[f"{key_added}_confidence"] = sure
    adata.obs[f"{key_added}_second_choice"] = second_choice(association, labels)
    adata.obsm[f"{key_added}_item_consensus"] = association
    params = {k: str(v) for k, v in told["params"].items() if v is not None}
    adata.uns[key_added] = {**told, "n_clusters": n_clusters, "params": params}


def _columns(model: MDEC) -> dict[str, Any]:
    labels = model.consensus_labels_
    association = item_consensus(model.ensemble_, labels, model.cluster_weights_)
    return {
        "cluster": model.labels_,
        "confidence": model.confidence_,
        "second_choice": second_choice(association, labels),
    }


def _matrix(adata: Any, layer: str | None) -> Any:
    X = adata.X if layer is None else adata.layers[layer]
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)
