"""The methods that studies know by name.

A method is ``function(data, n_clusters, *, random_state, **parameters) -> labels``,
where data is the ensemble if the method names a generator and X if it does not. Studies
name any such function as "module:function"; those of registry/methods.toml and the
baselines have a short name too. Clusterers from other packages are imported when they
are used.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.decomposition import PCA
from sklearn.neighbors import kneighbors_graph

from mdec._support.optional import MissingPackageError, import_optional
from mdec.bench.baselines import BASELINES, GENERATION
from mdec.bench.records import Parameters
from mdec.consensus import CONSENSUS
from mdec.ensemble import Ensemble
from mdec.generation import generate_ensemble
from mdec.preparation import ExpressionPreparation, kind_of_values
from mdec.preparation.recipes import DRAWN
from mdec.weights import WEIGHTINGS

Labels = NDArray[np.integer]
Array = NDArray[Any]


@dataclass(frozen=True)
class Method:
    """A function as "module:function", and the arguments of every call.

    `generator` names the generator of the ensemble that the method works on; None if it
    works on the data.
    """

    function: str
    generator: str | None = None
    parameters: Parameters = field(default_factory=dict)


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
    ensemble: Ensemble, n_clusters: int, *, consensus: str, **options: Any
) -> Labels:
    """Apply a consensus function of MDEC with the weights it asks for."""
    weights = WEIGHTINGS[options.pop("weighting", "entropy")](ensemble)
    return CONSENSUS[consensus](ensemble, n_clusters, weights, **options)


def baseline(ensemble: Ensemble, n_clusters: int, *, name: str, **options: Any) -> Any:
    """Apply a baseline's consensus function."""
    return BASELINES[name](ensemble, n_clusters, **options)


def generate_prepared_ensemble(X: Any, **settings: Any) -> Ensemble:
    """Generate an ensemble from prepared values; members draw powers that vary."""
    values = np.asarray(X, dtype=np.float64)
    if kind_of_values(values)[0] in DRAWN:
        settings["preparation"] = "diversified"
    else:
        values = ExpressionPreparation().fit_transform(values)
    ensemble: Ensemble = generate_ensemble(values, **settings)
    return ensemble


def generate_components(X: Any, *, random_state: int, n_components: int = 50) -> Array:
    """Return principal components of values that are prepared as `mdec fit` does."""
    values = ExpressionPreparation().fit_transform(X)
    model = PCA(min(n_components, *values.shape), random_state=random_state)
    return model.fit_transform(values)


def kmeans(X: Array, n_clusters: int, *, random_state: int, n_init: int = 10) -> Labels:
    """Cluster by k-means, best of several starts."""
    return KMeans(n_clusters, n_init=n_init, random_state=random_state).fit_predict(X)


def spectral_knn(
    X: Array, n_clusters: int, *, random_state: int, n_neighbors: int = 10
) -> Labels:
    """Cluster by spectral clustering of the nearest-neighbour graph."""
    near = min(n_neighbors, len(X) - 1)
    graph = {"affinity": "nearest_neighbors", "n_neighbors": near}
    model = SpectralClustering(n_clusters, random_state=random_state, **graph)
    return model.fit_predict(X)


def ward(X: Array, n_clusters: int, **_: Any) -> Labels:
    """Cluster by Ward's linkage; nothing in it is random."""
    return AgglomerativeClustering(n_clusters).fit_predict(X)


def hdbscan(X: Array, *_: Any, min_cluster_size: int = 5, **__: Any) -> Labels:
    """Cluster by density; finds its own number of clusters, noise is one more."""
    smallest = min(min_cluster_size, len(X))
    return HDBSCAN(min_cluster_size=smallest, copy=True).fit_predict(X)


def finch(X: Array, n_clusters: int, **_: Any) -> Labels:
    """Cluster by first neighbours, down to the requested number of clusters."""
    package = import_optional("finch", needed_for="FINCH", install="finch-clust")
    return package.FINCH(X, req_clust=n_clusters, verbose=False)[2]


def genie(X: Array, n_clusters: int, **_: Any) -> Labels:
    """Cluster by linkage with a bound on the inequality of cluster sizes."""
    package = import_optional("genieclust", needed_for="Genie", install="genieclust")
    return package.Genie(n_clusters=n_clusters).fit_predict(X)


def leiden(X: Array, *_: Any, random_state: int, n_neighbors: int = 15) -> Labels:
    """Cluster the neighbour graph by modularity; finds its own number of clusters."""
    leidenalg = import_optional("leidenalg", needed_for="Leiden", install="leidenalg")
    igraph = import_optional("igraph", needed_for="Leiden", install="igraph")
    graph = kneighbors_graph(X, min(n_neighbors, len(X) - 1)).tocoo()
    edges = {(min(i, j), max(i, j)) for i, j in zip(graph.row, graph.col, strict=True)}
    partition = leidenalg.find_partition(
        igraph.Graph(n=len(X), edges=sorted(edges)),
        leidenalg.ModularityVertexPartition,
        seed=random_state % 2**31,
    )
    return np.asarray(partition.membership)


def scanpy_leiden(
    X: Array, n_clusters: int, *, random_state: int, search: bool = True
) -> Labels:
    """Cluster as scanpy does: by Leiden, on its weighted graph of 15 neighbours.

    The resolution is that with the number of clusters that is asked for, or nearly; 1
    without `search`, so that the number is Leiden's own.
    """
    needs = {"needed_for": "Leiden by scanpy", "install": "scanpy leidenalg igraph"}
    scanpy, *_ = (
        import_optional(n, **needs) for n in ("scanpy", "leidenalg", "igraph")
    )
    seed, near = random_state % 2**31, min(15, len(X) - 1)
    cells = scanpy.AnnData(X)
    scanpy.pp.neighbors(cells, n_neighbors=near, use_rep="X", random_state=seed)

    def cluster(resolution: float) -> Labels:
        options = {"random_state": seed, "flavor": "leidenalg"}
        scanpy.tl.leiden(cells, resolution=resolution, **options)
        return np.asarray(cells.obs["leiden"]).astype(int)

    if not search:
        return cluster(1.0)
    found: list[Labels] = []
    low, high = 1e-3, 16.0  # between which the resolution is searched
    for _ in range(25):
        resolution = (low * high) ** 0.5
        found.append(cluster(resolution))
        surplus = np.unique(found[-1]).size - n_clusters
        if surplus == 0:
            break
        low, high = (resolution, high) if surplus < 0 else (low, resolution)
    return min(found, key=lambda labels: abs(np.unique(labels).size - n_clusters))


def consensusclustering(
    X: Array, n_clusters: int, *, random_state: int, n_resamples: int = 20
) -> Labels:
    """Cluster by average linkage on the consensus matrix of resampled Ward trees."""
    name = "consensusclustering"
    package = import_optional(name, needed_for=name, install=name)
    model = package.ConsensusClustering(
        AgglomerativeClustering(),
        min_clusters=n_clusters,
        max_clusters=n_clusters + 1,
        n_resamples=n_resamples,
        rng=random_state,
    )
    model.fit(X)
    apart = {"metric": "precomputed", "linkage": "average"}
    linkage = AgglomerativeClustering(n_clusters, **apart)
    return linkage.fit_predict(1.0 - model.consensus_k(n_clusters))


def inmoose(
    X: Array, n_clusters: int, *, random_state: int, n_resamples: int = 20
) -> Labels:
    """Cluster the consensus matrix of resampled Ward trees, as inmoose does."""
    module = "inmoose.consensus_clustering.consensus_clustering"
    package = import_optional(module, needed_for="inmoose", install="inmoose")
    model = package.consensusClustering(
        AgglomerativeClustering,
        mink=n_clusters,
        maxk=n_clusters + 1,
        nb_resampling_iteration=n_resamples,
    )
    model.compute_consensus_clustering(X, random_state)
    return np.asarray(model.predict(n_clusters))


def sc3s(X: Array, n_clusters: int, *, random_state: int) -> Labels:
    """Cluster components by a consensus of k-means, the successor of SC3 in Python."""
    package = import_optional("sc3s", needed_for="SC3s", install="sc3s")
    anndata = import_optional("anndata", needed_for="SC3s", install="mdec[anndata]")
    cells = anndata.AnnData(X, obsm={"X_pca": X})
    package.tl.consensus(cells, n_clusters=[n_clusters], random_state=random_state)
    return np.unique(cells.obs[f"sc3s_{n_clusters}"], return_inverse=True)[1]


_REGISTRY = tomllib.loads(
    (files("mdec.bench") / "registry" / "methods.toml").read_text("utf-8")
)
GENERATORS = {name: Method(**each) for name, each in _REGISTRY["generators"].items()}
METHODS = {
    name: Method(f"{__name__}:baseline", generator, {"name": name})
    for name, generator in GENERATION.items()
} | {name: Method(**each) for name, each in _REGISTRY["methods"].items()}
