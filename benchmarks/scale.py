"""Measure landmarks: a million rows, growth, quality, files beyond memory, clusters.

    python benchmarks/scale.py million mixture      # 1,000,000 x 64, M = 50
    python benchmarks/scale.py million digits
    python benchmarks/scale.py wide                 # 100,000 x 784, M = 50
    python benchmarks/scale.py compare mixture      # k-means and graphs, same rows
    python benchmarks/scale.py growth [--figure FILE.svg]
    python benchmarks/scale.py images DATA [DS-20]  # folder of DS-XX_name.npz files
    python benchmarks/scale.py tangled DATA         # 50,000 moved USPS images
    python benchmarks/scale.py counts DATA          # USPS with fewer landmarks
    python benchmarks/scale.py search DATA          # what the coarse search finds
    python benchmarks/scale.py larger-than-memory [--folder F]
    python benchmarks/scale.py sparse [--members M] # 50,000 x 20,000, 2 % filled
    python benchmarks/scale.py cluster              # a LocalCluster, workers lost
    python benchmarks/scale.py model                # the cost model beside the figures

Each measurement runs in a fresh process and appends a line to
benchmarks/results/scale.jsonl; what is there is not measured again without --again.
Memory is the peak resident size of the whole process, data included.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

RESULTS = Path(__file__).parent / "results" / "scale.jsonl"
GRAPH_SCORES = Path(__file__).parents[1] / "docs/results/paper-tables/tables/nmi_max.md"
LABELS = Path(tempfile.gettempdir()) / "mdec-scale"
IMAGES = ("DS-20", "DS-22", "DS-23", "DS-24", "DS-26", "DS-30")
LARGER_ROWS = 6_000_000
GROWTH = (10_000, 30_000, 100_000, 300_000, 1_000_000)
N_SETTINGS = {"ensemble_size": 50, "random_state": 0, "n_jobs": 2}


def nmi(known: np.ndarray, found: np.ndarray) -> float:
    """NMI divided by the larger entropy, in percent."""
    return 100 * normalized_mutual_info_score(known, found, average_method="max")


def mixture(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Twenty overlapping clusters of unequal size and width in 64 dimensions."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(20, 2.0))
    centers = 0.75 * rng.normal(size=(20, 64)).astype(np.float32)
    widths = rng.uniform(0.7, 1.5, size=20).astype(np.float32)
    y = rng.choice(20, size=n_rows, p=shares)
    X = rng.standard_normal((n_rows, 64), dtype=np.float32)
    X *= widths[y][:, None]
    X += centers[y]
    return X, y


def digits(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The 8 x 8 digits, drawn with replacement, with noise on every pixel."""
    from sklearn.datasets import load_digits

    images, classes = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(images), size=n_rows)
    X = rng.standard_normal((n_rows, 64), dtype=np.float32)
    X *= 2.0
    X += images.astype(np.float32)[drawn]
    return X, classes[drawn]


def large_digits(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Digits enlarged to 28 x 28 pixels, moved by up to two of them, with noise."""
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    images, classes = load_digits(return_X_y=True)
    large = zoom(images.reshape(-1, 8, 8), (1, 3.5, 3.5), order=1).astype(np.float32)
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(images), size=n_rows)
    shifts = rng.integers(-2, 3, size=(n_rows, 2))
    X = rng.standard_normal((n_rows, 28, 28), dtype=np.float32)
    for i in range(n_rows):
        X[i] += np.roll(large[drawn[i]], shifts[i], axis=(0, 1))
    return X.reshape(n_rows, 784), classes[drawn]


DATA = {"mixture": mixture, "digits": digits, "wide": large_digits}


def topics(n_rows: int, n_features: int = 20_000, fill: float = 0.02) -> Any:
    """Counts of words in texts of twenty unequal topics, as sparse logarithms.

    A fourth of the words of a text are of its topic, the rest are common to all.
    """
    from scipy import sparse

    rng = np.random.default_rng(0)
    y = rng.choice(20, size=n_rows, p=rng.dirichlet(np.full(20, 2.0)))
    common = rng.permutation(n_features)
    n_own = n_features // 100
    own = np.array([rng.choice(n_features, n_own, replace=False) for _ in range(20)])
    # Some of the words drawn are the same, so that more are drawn than stay.
    lengths = rng.poisson(1.1 * fill * n_features, size=n_rows)
    texts = np.repeat(np.arange(n_rows, dtype=np.int32), lengths)
    # Few common words are frequent, most are rare.
    drawn = (n_features * rng.random(texts.size, dtype=np.float32) ** 2).astype(int)
    special = rng.random(texts.size) < 0.25
    places = rng.integers(n_own, size=texts.size)
    words = np.where(special, own[y[texts], places], common[drawn]).astype(np.int32)
    counts = np.ones(texts.size, dtype=np.float32)
    X = sparse.coo_array((counts, (texts, words)), (n_rows, n_features)).tocsr()
    X.data = np.log1p(X.data)
    return X, y


def sparse_rows(kernel: str, n_members: int) -> dict[str, Any]:
    """Landmarks on sparse rows."""
    from mdec import MDEC

    X, y = topics(50_000)
    settings = {"base": "auto", "consensus": "bipartite", "random_state": 0}
    MDEC(20, ensemble_size=2, kernel=kernel, **settings).fit(X[:3000])
    before = peak_gb()
    start = time.perf_counter(), time.process_time()
    model = MDEC(20, ensemble_size=n_members, kernel=kernel, **settings).fit(X)
    return {
        **described_rows(X),
        "members": n_members,
        "base": model.base_,
        "seconds": round(time.perf_counter() - start[0], 1),
        "cpu_seconds": round(time.process_time() - start[1], 1),
        "before_gb": round(before, 2),
        "peak_gb": round(peak_gb(), 2),
        "nmi": round(nmi(y, model.labels_), 2),
    }


def sparse_baseline(name: str) -> dict[str, Any]:
    """Two ways of k-means that take sparse rows as well."""
    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.decomposition import TruncatedSVD
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    X, y = topics(50_000)
    reduced = TruncatedSVD(50, random_state=0), Normalizer()
    baselines = {
        "mini-batch k-means": MiniBatchKMeans(20, n_init=3, random_state=0),
        "SVD, k-means": make_pipeline(*reduced, KMeans(20, n_init=3, random_state=0)),
    }
    start = time.perf_counter(), time.process_time()
    labels = baselines[name].fit_predict(X)
    return {
        **described_rows(X),
        "seconds": round(time.perf_counter() - start[0], 1),
        "cpu_seconds": round(time.process_time() - start[1], 1),
        "peak_gb": round(peak_gb(), 2),
        "nmi": round(nmi(y, labels), 2),
    }


def described_rows(X: Any) -> dict[str, Any]:
    return {
        "rows": X.shape[0],
        "features": X.shape[1],
        "filled": round(X.nnz / (X.shape[0] * X.shape[1]), 4),
        "data_gb": round((X.data.nbytes + X.indices.nbytes) / 1e9, 2),
    }


def peak_gb() -> float:
    # Not getrusage, which counts the memory of the process that started this one.
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found.group(1)) * 1024 / 1e9


def warm() -> None:
    """Compile and load what a first call would count."""
    from mdec import MDEC

    X, _ = mixture(3000)
    MDEC(
        20, consensus="bipartite", base="landmark", ensemble_size=2, random_state=0
    ).fit(X)


def fit_measured(name: str, n_rows: int, *, others: bool) -> dict[str, Any]:
    from mdec import MDEC
    from mdec.consensus import CONSENSUS

    X, y = DATA[name](n_rows)
    warm()
    n_clusters = int(y.max()) + 1
    settings = N_SETTINGS
    data_gb = X.nbytes / 1e9
    start = time.perf_counter()
    model = MDEC(n_clusters, consensus="bipartite", base="landmark", **settings).fit(X)
    seconds = time.perf_counter() - start
    LABELS.mkdir(exist_ok=True)
    np.save(LABELS / f"{name}-{n_rows}-{settings['ensemble_size']}.npy", model.labels_)
    found = {
        "rows": n_rows,
        "features": X.shape[1],
        "members": settings["ensemble_size"],
        "landmarks": model.ensemble_.parameters["n_landmarks"],
        "seconds": round(seconds, 1),
        "peak_gb": round(peak_gb(), 2),
        "data_gb": round(data_gb, 2),
        "nmi": round(nmi(y, model.labels_), 2),
    }
    # Another consensus function, of the same ensemble.
    for consensus in ("hierarchical", "spectral") if others else ():
        start = time.perf_counter()
        labels = CONSENSUS[consensus](model.ensemble_, n_clusters, random_state=0)
        found[f"{consensus}_seconds"] = round(time.perf_counter() - start, 1)
        found[f"{consensus}_nmi"] = round(nmi(y, labels), 2)
        found[f"{consensus}_peak_gb"] = round(peak_gb(), 2)
    return found


def compare(name: str, n_rows: int) -> dict[str, Any]:
    """MiniBatchKMeans on all rows, and graphs on the first 10,000."""
    from sklearn.cluster import MiniBatchKMeans

    from mdec import MDEC

    X, y = DATA[name](n_rows)
    n_clusters = int(y.max()) + 1
    labels = np.load(LABELS / f"{name}-{n_rows}-50.npy")
    scores = []
    start = time.perf_counter()
    for seed in range(3):
        baseline = MiniBatchKMeans(n_clusters, n_init=3, random_state=seed).fit(X)
        scores.append(nmi(y, baseline.labels_))
    seconds = (time.perf_counter() - start) / 3
    few = slice(0, 10_000)
    exact = MDEC(n_clusters, consensus="bipartite", base="graph", **N_SETTINGS)
    exact.fit(X[few])
    return {
        "rows": n_rows,
        "nmi": round(nmi(y, labels), 2),
        "mini_batch_kmeans_nmi": [round(each, 2) for each in scores],
        "mini_batch_kmeans_seconds": round(seconds, 1),
        "sample_nmi": round(nmi(y[few], labels[few]), 2),
        "sample_graph_nmi": round(nmi(y[few], exact.labels_), 2),
    }


def growth(n_rows: int) -> dict[str, Any]:
    """Four members and their consensus, memory above what is there before."""
    from mdec import MDEC

    X, y = mixture(n_rows)
    warm()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    before = pages * resource.getpagesize() / 1e9
    start = time.perf_counter()
    model = MDEC(
        20,
        consensus="bipartite",
        base="landmark",
        ensemble_size=4,
        base_n_clusters_range=(40, 40),
        random_state=0,
        n_jobs=2,
    ).fit(X)
    return {
        "rows": n_rows,
        "seconds": round(time.perf_counter() - start, 2),
        "above_data_gb": round(peak_gb() - before, 3),
        "nmi": round(nmi(y, model.labels_), 2),
    }


def read_images(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    path = next(Path(folder).glob(f"DS-{int(name[3:]):02d}_*.npz"))
    with np.load(path) as archive:
        return archive["X"].astype(np.float64), archive["y"].ravel()


def moved_images(folder: str) -> tuple[np.ndarray, np.ndarray]:
    """50,000 USPS images, each moved by up to half a pixel either way, with noise."""
    X, y = read_images("DS-30", folder)
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(X), size=50_000)
    shifts = rng.integers(-1, 2, size=(len(drawn), 2))
    images = X.astype(np.float32).reshape(-1, 16, 16)[drawn]
    for i, shift in enumerate(shifts):
        images[i] = 0.5 * (images[i] + np.roll(images[i], shift, axis=(0, 1)))
    noise = rng.standard_normal((len(drawn), 256), dtype=np.float32)
    noise *= np.float32(0.1 * X.std())
    return images.reshape(-1, 256) + noise, y[drawn]


def scored(X: np.ndarray, y: np.ndarray, base: str, **settings: Any) -> dict[str, Any]:
    """Make an ensemble and score its three consensus clusterings."""
    from mdec import generate_ensemble
    from mdec._support.parallel import single_threaded_blas
    from mdec.consensus import CONSENSUS

    start = time.perf_counter()
    ensemble = generate_ensemble(X, base=base, n_jobs=2, **settings)
    found: dict[str, Any] = {
        "rows": len(X),
        "members": len(ensemble),
        "landmarks": ensemble.parameters.get("n_landmarks"),
        "seconds": round(time.perf_counter() - start, 1),
    }
    seed, n_clusters = settings["random_state"], len(np.unique(y))
    with single_threaded_blas():
        for short, consensus in zip(("HC", "SC", "BG"), CONSENSUS, strict=True):
            labels = CONSENSUS[consensus](ensemble, n_clusters, random_state=seed)
            found[short] = round(nmi(y, labels), 2)
    return found


def images(name: str, folder: str, seed: int) -> dict[str, Any]:
    X, y = read_images(name, folder)
    return {
        "dataset": name,
        "seed": seed,
        **scored(X, y, "landmark", random_state=seed),
    }


def fewer(count: int, folder: str) -> dict[str, Any]:
    """USPS with another greatest number of landmarks."""
    from mdec.ensemble import draws

    draws.MAX_LANDMARKS = count
    X, y = read_images("DS-30", folder)
    return scored(X, y, "landmark", random_state=0)


def coarse_search(name: str, folder: str) -> dict[str, Any]:
    """Compare the ten nearest of 10,000 landmarks with those that are found."""
    from mdec.numerics.landmark_search import (
        LandmarkIndex,
        index_landmarks,
        nearest_landmarks,
    )

    X = moved_images(folder)[0] if name == "tangled" else DATA[name](30_000)[0]
    rng = np.random.default_rng(0)
    half = rng.permutation(X.shape[1])[: X.shape[1] // 2]
    rows = np.ascontiguousarray(X[:30_000, half] - X[:30_000, half].mean(axis=0))
    points, others = rows[:10_000], rows[10_000:]
    index = index_landmarks(points, rng)
    whole = LandmarkIndex(points, index.half_norms, points[:0], [])
    found, apart = nearest_landmarks(others, index, 10)
    nearest, least = nearest_landmarks(others, whole, 10)
    same = [np.isin(a, b).mean() for a, b in zip(nearest, found, strict=True)]
    return {
        "recall": round(float(np.mean(same)), 4),
        "distance_ratio": round(float(np.sqrt(apart).sum() / np.sqrt(least).sum()), 4),
        "looked_at": round(float(np.mean([each.size for each in index.around]))),
    }


def tangled(folder: str, base: str) -> dict[str, Any]:
    X, y = moved_images(folder)
    return {"base": base, **scored(X, y, base, ensemble_size=30, random_state=0)}


def larger_than_memory(folder: str, rows: int = LARGER_ROWS) -> dict[str, Any]:
    """6 GB of rows under an address space of 3 GB, files and threads included."""
    from mdec import MDEC
    from mdec.rows.sources import open_rows

    path = Path(folder) / "larger.npy"
    warm()
    limit = 3 * 10**9
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    start = time.perf_counter()
    model = MDEC(
        20,
        consensus="bipartite",
        base="landmark",
        ensemble_size=4,
        random_state=0,
        n_jobs=2,
        verbose=2,
    ).fit(open_rows(path))
    seconds = time.perf_counter() - start
    rng = np.random.default_rng(0)
    y = rng.integers(20, size=rows)
    return {
        "rows": rows,
        "features": 256,
        "file_gb": round(path.stat().st_size / 1e9, 2),
        "limit_gb": limit / 1e9,
        "members": 4,
        "seconds": round(seconds, 1),
        "peak_gb": round(peak_gb(), 2),
        "nmi": round(nmi(y, model.labels_), 2),
    }


def write_rows(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(20, size=rows)
    centers = 0.5 * np.random.default_rng(1).normal(size=(20, 256))
    out = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float32, shape=(rows, 256)
    )
    noise = np.random.default_rng(2).standard_normal((2**16, 256), dtype=np.float32)
    for start in range(0, rows, 2**16):
        part = y[start : start + 2**16]
        out[start : start + 2**16] = noise[: len(part)] + centers[part]
        np.random.default_rng(start).shuffle(noise)
    out.flush()


def cluster() -> dict[str, Any]:
    """Labels of 2 and 4 workers, of a run that loses one, of a new scheduler."""
    import dask.array as da
    from distributed import Client, LocalCluster

    from mdec import MDEC

    X, _ = mixture(150_000)
    settings: dict[str, Any] = {
        "consensus": "bipartite",
        "base": "landmark",
        "ensemble_size": 6,
        "random_state": 0,
    }
    rows = da.from_array(X, chunks=(20_000, 64))
    start = time.perf_counter()
    alone = MDEC(20, n_jobs=1, **settings).fit(X)
    found: dict[str, Any] = {
        "rows": len(X),
        "single_process_seconds": round(time.perf_counter() - start, 1),
    }
    started = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:0",
    }

    def same(model: Any) -> bool:
        labels = model.ensemble_.labels.compute()
        return bool(
            np.array_equal(model.labels_.compute(), alone.labels_)
            and np.array_equal(labels, alone.ensemble_.labels)
        )

    with LocalCluster(host="127.0.0.1", **started) as local, Client(local) as client:
        start = time.perf_counter()
        model = MDEC(20, **settings).fit(rows)
        found["two_workers_seconds"] = round(time.perf_counter() - start, 1)
        found["two_workers_same"] = same(model)
        local.scale(4)
        client.wait_for_workers(4)
        found["four_workers_same"] = same(MDEC(20, **settings).fit(rows))
        found["killed_same"] = same(killed_fit(client, rows, settings))
    with tempfile.TemporaryDirectory() as folder:
        kept = {**settings, "checkpoint": Path(folder) / "kept"}
        with (
            LocalCluster(host="127.0.0.1", **started) as local,
            Client(local),
        ):
            MDEC(20, **{**kept, "ensemble_size": 3}).fit(rows)
        files = sorted((Path(folder) / "kept").glob("member-??????.npz"))
        times = [each.stat().st_mtime_ns for each in files]
        with (
            LocalCluster(host="127.0.0.1", **started) as local,
            Client(local),
        ):
            found["new_scheduler_same"] = same(MDEC(20, **kept).fit(rows))
        found["kept_members_reused"] = times == [
            each.stat().st_mtime_ns for each in files
        ]
    found["out_of_memory"] = out_of_memory(rows, settings, started)
    return found


def killed_fit(client: Any, rows: Any, settings: dict[str, Any]) -> Any:
    """Fit while one worker is killed after the second member."""
    from mdec import MDEC, generation

    report_progress = generation.report_progress

    def hook(progress: Any, total: int, verbose: int) -> Any:
        inner = report_progress(progress, total, verbose)

        def kill(done: int, total: int) -> None:
            if done == 2:
                pid = next(iter(client.run(os.getpid).values()))
                os.kill(pid, signal.SIGKILL)
            inner(done, total)

        return kill

    generation.report_progress = hook
    try:
        return MDEC(20, **settings).fit(rows)
    finally:
        generation.report_progress = report_progress


def out_of_memory(rows: Any, settings: dict[str, Any], started: dict[str, Any]) -> str:
    import dask
    from distributed import Client, LocalCluster

    from mdec import MDEC

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(host="127.0.0.1", memory_limit="360MB", **started) as local,
        Client(local),
    ):
        try:
            MDEC(20, **settings).fit(rows)
        except MemoryError as error:
            return str(error)
    return "no error"


# Fitted to the measured points, for one core: multiply-adds of float32 products in a
# second, other seconds for each row of a member, and for each member.
PRODUCTS, BY_ROW, BY_MEMBER = 27e9, 9e-6, 1.3


def modelled(n: float, d: float, p: float, m: float, cores: float) -> float:
    """Seconds of the cost model."""
    from mdec.base.landmarks import CANDIDATES
    from mdec.numerics.landmark_search import AROUND_CELL, N_CELLS, REFINEMENTS

    searched = n + REFINEMENTS * min(n, CANDIDATES * p) + p
    products = (N_CELLS + AROUND_CELL) * d * searched / PRODUCTS
    return m * (products + BY_ROW * n + BY_MEMBER) / cores


def cost_model() -> None:
    """Print the model beside the measured points, and what it predicts."""
    for line in RESULTS.read_text().splitlines():
        row = json.loads(line)
        kind = row["name"].split()[0]
        if kind in ("million", "wide", "growth"):
            members = row.get("members", 4)
            d = row.get("features", 64) / 2
            predicted = modelled(row["rows"], d, 10_000, members, 2)
            both = f"measured {row['seconds']:.1f} s, model {predicted:.1f} s"
            print(f"{row['name']}: {both}")
    minutes = modelled(1e8, 32, 10_000, 50, 64) / 60
    print(f"1e8 x 64, M = 50, 64 workers: {minutes:.0f} min")


def describe() -> dict[str, Any]:
    import mdec

    return {
        "date": datetime.now(UTC).date().isoformat(),
        "mdec": mdec.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "numpy": np.__version__,
    }


def run(name: str, options: argparse.Namespace, *arguments: str) -> dict[str, Any]:
    """Measure in a fresh process, unless the results have it."""
    if RESULTS.exists() and not options.again:
        for line in RESULTS.read_text().splitlines():
            if (row := json.loads(line))["name"] == name:
                print(json.dumps(row), flush=True)
                return dict(row)
    made = subprocess.run(
        [sys.executable, __file__, "--here", *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    row = {"name": name, **json.loads(made.stdout.splitlines()[-1]), **describe()}
    with RESULTS.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps(row), flush=True)
    return row


def here(arguments: list[str]) -> dict[str, Any]:
    """Do one measurement in this process."""
    match arguments:
        case ["fit", name, rows]:
            # The spectral one takes over eight minutes on the mixture.
            return fit_measured(name, int(rows), others=name != "mixture")
        case ["compare", name, rows]:
            return compare(name, int(rows))
        case ["growth", rows]:
            return growth(int(rows))
        case ["images", name, folder, seed]:
            return images(name, folder, int(seed))
        case ["tangled", folder, base]:
            return tangled(folder, base)
        case ["fewer", count, folder]:
            return fewer(int(count), folder)
        case ["search", name, folder]:
            return coarse_search(name, folder)
        case ["larger-than-memory", folder]:
            return larger_than_memory(folder)
        case ["sparse", kernel, members]:
            return sparse_rows(kernel, int(members))
        case ["sparse-baseline", name]:
            return sparse_baseline(name)
        case ["cluster"]:
            return cluster()
    raise SystemExit(f"cannot measure {arguments}")


def exponent(sizes: list[float], values: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def growth_figure(rows: list[dict[str, Any]], path: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mdec"
    from matplotlib import pyplot

    sizes = [row["rows"] for row in rows]
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for axis, key, unit in zip(
        axes,
        ("seconds", "above_data_gb"),
        ("seconds", "GB above the data"),
        strict=True,
    ):
        values = [row[key] for row in rows]
        slope = exponent(sizes, values)
        axis.loglog(sizes, values, "o-", label=f"measured, exponent {slope:.2f}")
        line = [values[-1] * size / sizes[-1] for size in sizes]
        axis.loglog(sizes, line, "k:", label="exponent 1")
        axis.set(xlabel="rows", ylabel=unit)
        axis.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def graph_scores() -> dict[str, np.ndarray]:
    """Means of MDEC-HC, MDEC-SC and MDEC-BG with graphs, its last three columns."""
    found = {}
    for line in GRAPH_SCORES.read_text().splitlines():
        cells = [each.strip() for each in line.split("|")[1:-1]]
        if cells and cells[0] in IMAGES:
            means = [re.search(r"[\d.]+", cell) for cell in cells[-3:]]
            found[cells[0]] = np.array([float(each.group()) for each in means if each])
    return found


def images_table(options: argparse.Namespace, folder: str, names: list[str]) -> None:
    graph = graph_scores()
    gaps = []
    for name in names:
        made = [
            run(f"images {name} {seed}", options, "images", name, folder, str(seed))
            for seed in range(options.seeds)
        ]
        ours = np.mean([[row[each] for each in ("HC", "SC", "BG")] for row in made], 0)
        theirs = graph[name]
        gaps.append(ours - theirs)
        cells = " | ".join(
            f"{a:.1f} ({a - b:+.1f})" for a, b in zip(ours, theirs, strict=True)
        )
        print(f"| {name} | {made[0]['landmarks']} | {cells} |", flush=True)
    print("mean difference HC, SC, BG:", np.round(np.mean(gaps, axis=0), 2))
    print("worst:", np.round(np.min(gaps, axis=0), 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what")
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--again", action="store_true", help="measure once more")
    parser.add_argument("--here", action="store_true", help="in this process")
    parser.add_argument("--figure")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--members", type=int, default=20)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    options = parser.parse_args()
    if options.here:
        print(json.dumps(here([options.what, *options.rest])))
        return
    match [options.what, *options.rest]:
        case ["million", name]:
            run(f"million {name}", options, "fit", name, "1000000")
        case ["wide"]:
            run("wide", options, "fit", "wide", "100000")
        case ["compare", name]:
            rows = "100000" if name == "wide" else "1000000"
            run(f"compare {name}", options, "compare", name, rows)
        case ["growth"]:
            rows = [run(f"growth {n}", options, "growth", str(n)) for n in GROWTH]
            sizes = [row["rows"] for row in rows]
            for key in ("seconds", "above_data_gb"):
                print(key, round(exponent(sizes, [row[key] for row in rows]), 3))
            if options.figure:
                growth_figure(rows, options.figure)
        case ["images", folder, *names]:
            images_table(options, folder, names or list(IMAGES))
        case ["tangled", folder]:
            for base in ("landmark", "graph"):
                run(f"tangled {base}", options, "tangled", folder, base)
        case ["counts", folder]:
            for count in (2000, 5000):
                run(f"{count} landmarks", options, "fewer", str(count), folder)
        case ["search", folder]:
            for name in (*DATA, "tangled"):
                run(f"search {name}", options, "search", name, folder)
        case ["larger-than-memory"]:
            # Written here, so that the pages do not count for the process measured.
            path = Path(options.folder) / "larger.npy"
            if not path.exists():
                write_rows(path, LARGER_ROWS)
            run("larger than memory", options, "larger-than-memory", options.folder)
        case ["sparse"]:
            members = str(options.members)
            for name in ("mini-batch k-means", "SVD, k-means"):
                run(f"sparse {name}", options, "sparse-baseline", name)
            for name in ("cosine", "scaled_gaussian"):
                run(f"sparse {name} {members}", options, "sparse", name, members)
        case ["cluster"]:
            run("cluster", options, "cluster")
        case ["model"]:
            cost_model()
        case _:
            parser.error("see the top of this file for what to measure")


if __name__ == "__main__":
    main()
