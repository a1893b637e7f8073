"""Clusterers by others, called as studies call methods; each is imported when used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.optional import import_optional

Labels = NDArray[np.integer]
Array = NDArray[Any]


def kmeans(X: Array, n_clusters: int, *, random_state: int, n_init: int = 10) -> Labels:
    """Cluster by k-means, best of several starts."""
    from sklearn.cluster import KMeans

    return KMeans(n_clusters, n_init=n_init, random_state=random_state).fit_predict(X)


def spectral_knn(
    X: Array, n_clusters: int, *, random_state: int, n_neighbors: int = 10
) -> Labels:
    """Cluster by spectral clustering of the nearest-neighbour graph."""
    from sklearn.cluster import SpectralClustering

    return SpectralClustering(
        n_clusters,
        affinity="nearest_neighbors",
        n_neighbors=min(n_neighbors, len(X) - 1),
        random_state=random_state,
    ).fit_predict(X)


def ward(X: Array, n_clusters: int, *, random_state: int) -> Labels:  # noqa: ARG001
    """Cluster by Ward's linkage; nothing in it is random."""
    from sklearn.cluster import AgglomerativeClustering

    return AgglomerativeClustering(n_clusters).fit_predict(X)


def hdbscan(
    X: Array,
    n_clusters: int,  # noqa: ARG001
    *,
    random_state: int,  # noqa: ARG001
    min_cluster_size: int = 5,
) -> Labels:
    """Cluster by density; finds its own number of clusters, noise is one more."""
    from sklearn.cluster import HDBSCAN

    smallest = min(min_cluster_size, len(X))
    return HDBSCAN(min_cluster_size=smallest, copy=True).fit_predict(X)


def finch(X: Array, n_clusters: int, *, random_state: int) -> Labels:  # noqa: ARG001
    """Cluster by first neighbours, down to the asked number of clusters."""
    package = import_optional("finch", needed_for="FINCH", install="finch-clust")
    return package.FINCH(X, req_clust=n_clusters, verbose=False)[2]


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
    return package.Genie(n_clusters=n_clusters).fit_predict(X)


def resampled_consensus(
    X: Array, n_clusters: int, *, random_state: int, n_resamples: int = 20
) -> Labels:
    """Cluster by average linkage on the consensus matrix of resampled Ward trees."""
    name = "consensusclustering"
    package = import_optional(name, needed_for=name, install=name)
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
    return linkage.fit_predict(1.0 - model.consensus_k(n_clusters))


def inmoose_consensus(
    X: Array, n_clusters: int, *, random_state: int, n_resamples: int = 20
) -> Labels:
    """Cluster the consensus matrix of resampled Ward trees, as inmoose does."""
    module = "inmoose.consensus_clustering.consensus_clustering"
    package = import_optional(module, needed_for="inmoose", install="inmoose")
    from sklearn.cluster import AgglomerativeClustering

    model = package.consensusClustering(
        AgglomerativeClustering,
        mink=n_clusters,
        maxk=n_clusters + 1,
        nb_resampling_iteration=n_resamples,
    )
    model.compute_consensus_clustering(X, random_state)
    return np.asarray(model.predict(n_clusters))


PEERS = {
    "k-means": kmeans,
    "spectral kNN": spectral_knn,
    "Ward": ward,
    "HDBSCAN": hdbscan,
    "FINCH": finch,
    "Leiden": leiden,
    "Genie": genie,
    "consensusclustering": resampled_consensus,
    "inmoose": inmoose_consensus,
}
