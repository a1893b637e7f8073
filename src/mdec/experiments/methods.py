"""The methods that studies know by name, and the thin calls around them.

A method is ``function(data, n_clusters, *, random_state, **parameters) -> labels``,
where data is the ensemble if the method names a generator and X if it does not. Studies
name any such function as "module:function".
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.optional import MissingPackageError, import_optional
from mdec.consensus import CONSENSUS
from mdec.ensemble import Ensemble
from mdec.weights import WEIGHTINGS

Labels = NDArray[np.integer]
Array = NDArray[Any]


@dataclass(frozen=True)
class Method:
    """How a method is called.

    Attributes
    ----------
    function : str
        "module:function".
    generator : str or None
        Maker of the ensemble it works on; None if it works on the data.
    parameters : dict
        Arguments that every call gets.
    """

    function: str
    generator: str | None
    parameters: dict[str, Any]


GENERATORS = {
    "mdec": "mdec.generation:generate_ensemble",
    "kmeans": "mdec.baselines:generate_kmeans_ensemble",
    "stratified": "mdec.baselines:generate_stratified_ensemble",
}

_HERE = "mdec.experiments.methods"
_STRATIFIED = ("SSCSPA", "SSHGPA", "SSMCLA")
_ON_KMEANS = (
    "KCC",
    "PTGP",
    "SEC",
    "ECC",
    "LWGP",
    "SPCE",
    "EAC",
    "LWEA",
    "PTA",
    "CSPA",
    "HGPA",
    "MCLA",
)
_DIRECT = {
    "k-means": "kmeans",
    "spectral kNN": "spectral_knn",
    "Ward": "ward",
    "HDBSCAN": "hdbscan",
    "FINCH": "finch",
    "Leiden": "leiden",
    "Genie": "genie",
    "consensusclustering": "resampled_consensus",
    "inmoose": "inmoose_consensus",
}

METHODS: dict[str, Method] = {
    **{
        name: Method(f"{_HERE}:baseline", "stratified", {"name": name})
        for name in _STRATIFIED
    },
    **{
        name: Method(f"{_HERE}:baseline", "kmeans", {"name": name})
        for name in _ON_KMEANS
    },
    **{
        f"MDEC-{short}": Method(f"{_HERE}:mdec", "mdec", {"consensus": name})
        for short, name in (
            ("HC", "hierarchical"),
            ("SC", "spectral"),
            ("BG", "bipartite"),
        )
    },
    **{
        name: Method(f"{_HERE}:{function}", None, {})
        for name, function in _DIRECT.items()
    },
}


def resolve(function: str) -> Any:
    """Return the function that "module:function" names.

    Examples
    --------
    >>> resolve("math:sqrt")(9.0)
    3.0
    """
    module, _, name = function.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise MissingPackageError(
            f"{function!r} needs the module {error.name!r}, which is not installed; "
            "install it or start from the folder that holds it."
        ) from error
    except AttributeError as error:
        raise ValueError(
            f"{function!r} names no function; write it as module:function."
        ) from error


def mdec(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    consensus: str,
    weighting: str = "entropy",
    random_state: int,
) -> Labels:
    """Apply a consensus function of MDEC with the weights it asks for."""
    weights = WEIGHTINGS[weighting](ensemble)
    return CONSENSUS[consensus](
        ensemble, n_clusters, weights, random_state=random_state
    )


def baseline(
    ensemble: Ensemble, n_clusters: int, *, name: str, random_state: int, **options: Any
) -> Labels:
    """Apply a baseline's consensus function."""
    function = resolve("mdec.baselines:BASELINES")[name]
    labels: Labels = function(
        ensemble, n_clusters, random_state=random_state, **options
    )
    return labels


def kmeans(X: Array, n_clusters: int, *, random_state: int, n_init: int = 10) -> Labels:
    """Cluster by k-means, best of several starts."""
    from sklearn.cluster import KMeans

    model = KMeans(n_clusters, n_init=n_init, random_state=random_state)
    labels: Labels = model.fit_predict(X)
    return labels


def spectral_knn(
    X: Array, n_clusters: int, *, random_state: int, n_neighbors: int = 10
) -> Labels:
    """Cluster by spectral clustering of the nearest-neighbour graph."""
    from sklearn.cluster import SpectralClustering

    model = SpectralClustering(
        n_clusters,
        affinity="nearest_neighbors",
        n_neighbors=min(n_neighbors, len(X) - 1),
        random_state=random_state,
    )
    labels: Labels = model.fit_predict(X)
    return labels


def ward(X: Array, n_clusters: int, *, random_state: int) -> Labels:  # noqa: ARG001
    """Cluster by Ward's linkage; nothing in it is random."""
    from sklearn.cluster import AgglomerativeClustering

    labels: Labels = AgglomerativeClustering(n_clusters).fit_predict(X)
    return labels


def hdbscan(
    X: Array,
    n_clusters: int,  # noqa: ARG001
    *,
    random_state: int,  # noqa: ARG001
    min_cluster_size: int = 5,
) -> Labels:
    """Cluster by density; finds its own number of clusters, noise is one more."""
    from sklearn.cluster import HDBSCAN

    model = HDBSCAN(min_cluster_size=min(min_cluster_size, len(X)), copy=True)
    labels: Labels = model.fit_predict(X)
    return labels


def finch(X: Array, n_clusters: int, *, random_state: int) -> Labels:  # noqa: ARG001
    """Cluster by first neighbours, down to the asked number of clusters."""
    package = import_optional("finch", needed_for="FINCH", install="finch-clust")
    labels: Labels = package.FINCH(X, req_clust=n_clusters, verbose=False)[2]
    return labels


def leiden(
    X: Array,
    n_clusters: int,  # noqa: ARG001
    *,
    random_state: int,
    n_neighbors: int = 15,
) -> Labels:
    """Cluster the neighbour graph by modularity; finds its own number of clusters."""
    leidenalg = import_optional("leidenalg", needed_for="Leiden", install="leidenalg")
    igraph = import_optional("igraph", needed_for="Leiden", install="igraph")
    from sklearn.neighbors import kneighbors_graph

    graph = kneighbors_graph(X, min(n_neighbors, len(X) - 1)).tocoo()
    edges = {(min(i, j), max(i, j)) for i, j in zip(graph.row, graph.col, strict=True)}
    partition = leidenalg.find_partition(
        igraph.Graph(n=len(X), edges=sorted(edges)),
        leidenalg.ModularityVertexPartition,
        seed=random_state % 2**31,
    )
    return np.asarray(partition.membership)


def genie(X: Array, n_clusters: int, *, random_state: int) -> Labels:  # noqa: ARG001
    """Cluster by linkage with a bound on the inequality of cluster sizes."""
    package = import_optional("genieclust", needed_for="Genie", install="genieclust")
    labels: Labels = package.Genie(n_clusters=n_clusters).fit_predict(X)
    return labels


def resampled_consensus(
    X: Array, n_clusters: int, *, random_state: int, n_resamples: int = 20
) -> Labels:
    """Cluster by average linkage on the consensus matrix of resampled Ward trees."""
    package = import_optional(
        "consensusclustering",
        needed_for="consensusclustering",
        install="consensusclustering",
    )
    from sklearn.cluster import AgglomerativeClustering

    model = package.ConsensusClustering(
        AgglomerativeClustering(),
        min_clusters=n_clusters,
        max_clusters=n_clusters + 1,
        n_resamples=n_resamples,
        rng=random_state,
    )
    model.fit(X)
    linkage = AgglomerativeClustering(
        n_clusters, metric="precomputed", linkage="average"
    )
    labels: Labels = linkage.fit_predict(1.0 - model.consensus_k(n_clusters))
    return labels


def inmoose_consensus(
    X: Array, n_clusters: int, *, random_state: int, n_resamples: int = 20
) -> Labels:
    """Cluster the consensus matrix of resampled Ward trees, as inmoose does."""
    package = import_optional(
        "inmoose.consensus_clustering.consensus_clustering",
        needed_for="inmoose",
        install="inmoose",
    )
    from sklearn.cluster import AgglomerativeClustering

    model = package.consensusClustering(
        AgglomerativeClustering,
        mink=n_clusters,
        maxk=n_clusters + 1,
        nb_resampling_iteration=n_resamples,
    )
    model.compute_consensus_clustering(X, random_state)
    labels: Labels = np.asarray(model.predict(n_clusters))
    return labels
