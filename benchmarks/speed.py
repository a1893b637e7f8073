"""Time mdec against a straight port, bare matrix products and scikit-learn.

    python benchmarks/speed.py [--data DIR] [--sizes small medium large] [--jobs 2]

All sides run one after the other, on the same cores and the same drawn members; with
``--jobs 1`` in this process and in CPU seconds, which a busy machine disturbs less.
Slow sides run fewer members and are scaled up, and say so. Without ``--data``
the sizes are generated mixtures; with it, the files of DS-11, DS-26 and DS-30. Each
run appends a line of JSON to benchmarks/results/speed.jsonl.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import straight_port as port
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.cluster import SpectralClustering
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import mdec
from mdec import weights
from mdec._support.parallel import single_threaded_blas
from mdec.base import graphs, members
from mdec.consensus import CONSENSUS
from mdec.ensemble import Ensemble
from mdec.numerics import affinity

SIZES = {
    "small": ("DS-11", 248, 2526, 2),
    "medium": ("DS-26", 2000, 649, 10),
    "large": ("DS-30", 11000, 256, 10),
}
RESULTS = Path(__file__).parent / "results" / "speed.jsonl"


def load(size: str, data: Path | None) -> NDArray[Any]:
    name, n_samples, n_features, n_groups = SIZES[size]
    if data is not None:
        path = next(data.glob(f"{name}_*.npz"))
        return np.load(path, allow_pickle=False)["X"]
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(n_groups, 12)) * 2.0
    latent = centers[rng.integers(n_groups, size=n_samples)]
    latent = latent + rng.normal(size=latent.shape)
    noise = rng.normal(size=(n_samples, n_features))
    return (latent @ rng.normal(size=(12, n_features)) + noise).astype(np.float32)


def clock(function: Callable[[], object], jobs: int = 2) -> float:
    """Seconds by the clock; of one job the processor's."""
    now = time.process_time if jobs == 1 else time.perf_counter
    start = now()
    function()
    return now() - start


def blocked_products(X: NDArray[Any], member: Any) -> None:
    """The multiply-adds of one member's distances: all N x N, float32, in blocks."""
    rows = np.ascontiguousarray(X[:, member[0]], dtype=np.float32)
    out = np.empty((512, len(rows)), dtype=np.float32)
    for start in range(0, len(rows), 512):
        block = rows[start : start + 512]
        np.dot(block, rows.T, out=out[: len(block)])


def single_threaded(
    work: Callable[..., object], X: NDArray[Any], members: list[Any]
) -> None:
    with threadpool_limits(1):
        for member in members:
            work(X, member)


def per_member(
    work: Callable[..., object], X: NDArray[Any], members: list[Any], jobs: int
) -> float:
    """Seconds per member with `jobs` processes of one thread each.

    One process per core is how a plain port is run in parallel: its loops hold the
    interpreter lock. The data is shared, and the workers are warmed up first.
    """
    with Parallel(n_jobs=jobs, backend="loky") as run:
        task = delayed(single_threaded)
        run(task(work, X, members[:1]) for _ in range(jobs))
        # Setting the threads costs milliseconds, so not for each member.
        parts = [members[i :: 4 * jobs] for i in range(min(4 * jobs, len(members)))]
        seconds = clock(lambda: run(task(work, X, part) for part in parts), jobs)
        return seconds / len(members)


def port_member(X: NDArray[Any], member: Any) -> None:
    port.base_clustering(X, *member)


def sklearn_member(X: NDArray[Any], member: Any) -> None:
    features, n_neighbors, _, n_clusters = member
    SpectralClustering(
        n_clusters,
        affinity="nearest_neighbors",
        n_neighbors=n_neighbors,
        n_init=3,
        random_state=0,
    ).fit(X[:, features])


@contextmanager
def stopwatch(seconds: dict[str, float]) -> Iterator[None]:
    """Time the stages of generation by wrapping the functions that do them.

    What a stage calls of another counts there alone.
    """
    stages = [
        (members, "distances_about_mean", "neighbours"),
        (graphs, "nearest_pairs", "neighbours"),
        (graphs, "squared_distances", "neighbours"),
        (members, "similarity_graph", "graph"),
        (members, "graph_from_distances", "graph"),
        (affinity, "leading_vectors", "eigenvectors"),
        (members, "kmeans", "k-means"),
    ]
    originals = []
    inner = [0.0]
    for module, name, stage in stages:
        original = getattr(module, name)
        originals.append((module, name, original))

        def timed(
            *args: Any, _do: Any = original, _stage: str = stage, **kwargs: Any
        ) -> Any:
            inner.append(0.0)
            start = time.process_time()
            result = _do(*args, **kwargs)
            taken = time.process_time() - start
            seconds[_stage] = seconds.get(_stage, 0.0) + taken - inner.pop()
            inner[-1] += taken
            return result

        setattr(module, name, timed)
    try:
        yield
    finally:
        for module, name, original in originals:
            setattr(module, name, original)


def check_same_graphs(X: NDArray[Any], ensemble: Ensemble) -> None:
    """The port and mdec must build the same similarity graphs.

    Copies of a sample are ties, of which the port keeps any, so edges are compared as
    sorted weights, and their places but for a few.
    """
    for member in ensemble.members[:2]:
        ours = members.member_similarity(X, member, ensemble.plan)
        features = ensemble.plan.features(member)
        rows = X[:, features].astype(np.float64)
        theirs = port.similarity(rows, member.n_neighbors, member.mu)
        weights_equal = ours.nnz == theirs.nnz and np.allclose(
            np.sort(ours.data), np.sort(theirs.data), rtol=1e-4
        )
        n_moved = ((ours > 0.0) != (theirs > 0.0)).nnz
        if not weights_equal or n_moved > 1e-3 * ours.nnz:
            raise SystemExit("the straight port and mdec disagree on a graph")


def generation_times(
    X: NDArray[Any], jobs: int, n_port: int, n_members: int
) -> dict[str, Any]:
    mdec.generate_ensemble(X, ensemble_size=2, random_state=1, n_jobs=jobs)
    stages: dict[str, float] = {}
    with stopwatch(stages):
        n_split = min(10, n_members)
        mdec.generate_ensemble(X, ensemble_size=n_split, random_state=0)
    made: list[Ensemble] = []
    seconds = clock(
        lambda: made.append(
            mdec.generate_ensemble(
                X, ensemble_size=n_members, random_state=0, n_jobs=jobs
            )
        ),
        jobs,
    )
    ensemble = made[0]
    same = seconds
    if n_port < n_members:
        same = clock(
            lambda: mdec.generate_ensemble(
                X, ensemble_size=n_port, random_state=0, n_jobs=jobs
            ),
            jobs,
        )
    # The same members on both sides: they differ in cost.
    n_few = max(4, n_members // 4)
    one_job = clock(
        lambda: mdec.generate_ensemble(X, ensemble_size=n_few, random_state=0, n_jobs=1)
    )
    few_jobs = clock(
        lambda: mdec.generate_ensemble(
            X, ensemble_size=n_few, random_state=0, n_jobs=jobs
        )
    )
    check_same_graphs(X, ensemble)
    drawn = [
        (ensemble.plan.features(m), m.n_neighbors, m.mu, m.n_clusters)
        for m in ensemble.members
    ]
    dense = X.astype(np.float64)
    bare = per_member(blocked_products, X, drawn, jobs)
    ported = per_member(port_member, dense, drawn[:n_port], jobs)
    theirs = per_member(sklearn_member, X, drawn[:n_port], jobs)
    return {
        "members": n_members,
        "one": jobs == 1,
        "port_members": n_port,
        "mdec_seconds": seconds,
        "per_member": seconds / n_members,
        "per_port_member": same / n_port,
        "speedup_of_jobs": one_job / few_jobs,
        "bare_products": bare,
        "port": ported,
        "sklearn": theirs,
        "stages_per_member": {k: v / n_split for k, v in stages.items()},
        "ensemble": ensemble,
    }


def consensus_times(
    ensemble: Ensemble, n_clusters: int, with_port: bool, jobs: int
) -> dict[str, Any]:
    with single_threaded_blas():
        weights.ensemble_driven_cluster_index(ensemble[:2])
        for name in CONSENSUS:
            CONSENSUS[name](ensemble[:3], 2, random_state=0)
        out: dict[str, Any] = {}
        index: list[NDArray[Any]] = []
        out["weights"] = clock(
            lambda: index.append(weights.ensemble_driven_cluster_index(ensemble)), jobs
        )
        for name, function in CONSENSUS.items():
            out[name] = clock(
                lambda f=function: f(ensemble, n_clusters, index[0], random_state=0),
                jobs,
            )
        out["all"] = sum(out.values())
    if with_port:
        labels = ensemble.labels

        def everything() -> None:
            w = port.cluster_weights(labels)
            A = port.coassociation(labels, w)
            port.hierarchical(A, n_clusters)
            port.spectral(A, n_clusters)
            port.bipartite(labels, w, n_clusters)

        with threadpool_limits(1):
            out["port"] = clock(everything, jobs)
    return out


def machine() -> dict[str, Any]:
    names = ("numpy", "scipy", "scikit-learn", "numba", "joblib")
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [x for x in info.read_text().splitlines() if "model name" in x]
        cpu = f"{lines[0].split(':')[1].strip()}, {len(lines)} cores"
    return {
        "mdec": mdec.__version__,
        "python": platform.python_version(),
        "cpu": cpu,
        **{name: version(name) for name in names},
    }


def print_result(size: str, shape: tuple[int, ...], result: dict[str, Any]) -> None:
    print(f"\n{size}: {shape[0]} x {shape[1]}, M = {result['members']}")
    print(f"  generation           {result['mdec_seconds']:9.2f} s")
    bare = result["bare_products"]
    print(f"    {'bare products':<18} {1000 * bare:9.1f} ms per member")
    for stage, value in result["stages_per_member"].items():
        share = f"{value / bare:6.2f} x the bare products" if result["one"] else ""
        print(f"    {stage:<18} {1000 * value:9.1f} ms, one core {share}")
    same = result["per_port_member"]
    print(f"  jobs against one job {result['speedup_of_jobs']:9.2f} x")
    print(f"  straight port        {result['port'] / same:9.2f} x our time")
    print(f"  scikit-learn         {result['sklearn'] / same:9.2f} x our time")
    print(f"  ours to bare GEMM    {result['per_member'] / bare:9.2f} x")
    for name, value in result["consensus"].items():
        print(f"  consensus {name:<12}{value:9.2f} s")
    if "port" in result["consensus"]:
        ratio = result["consensus"]["port"] / result["consensus"]["all"]
        print(f"  consensus port       {ratio:9.2f} x our time")
    if result["port_members"] < result["members"]:
        print(f"  (port and scikit-learn: {result['port_members']} members, scaled)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of DS-XX_name.npz files")
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), choices=SIZES)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--port-members", type=int, nargs=3, default=(100, 20, 4))
    parser.add_argument("--no-consensus-port", action="store_true")
    options = parser.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    for size in options.sizes:
        X = load(size, options.data)
        n_port = dict(zip(SIZES, options.port_members, strict=True))[size]
        result = generation_times(
            X, options.jobs, min(n_port, options.members), options.members
        )
        ensemble = result.pop("ensemble")
        result["consensus"] = consensus_times(
            ensemble, SIZES[size][3], not options.no_consensus_port, options.jobs
        )
        print_result(size, X.shape, result)
        record = {
            "size": size,
            "shape": X.shape,
            "data": "paper" if options.data else "generated",
            "jobs": options.jobs,
            "date": time.strftime("%Y-%m-%d"),
            **machine(),
            **result,
        }
        with RESULTS.open("a") as file:
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    import warnings

    # The comparators warn of disconnected graphs, which MDEC handles.
    warnings.simplefilter("ignore", UserWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
