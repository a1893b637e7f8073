"""Cluster up to ten million rows, from files and on a cluster that loses processes.

    python benchmarks/many_rows.py npy [--rows 10000000]      # a .npy file
    python benchmarks/many_rows.py parquet [--rows 10000000]  # the same rows
    python benchmarks/many_rows.py dask [--rows 10000000]     # four worker processes
    python benchmarks/many_rows.py compare [--rows 10000000]  # their labels

Twenty unequal, overlapping Gaussian clusters of 50 features; landmarks, four members,
bipartite consensus. Files lie in --folder and are written once. On the cluster a worker
is killed after the first member and the client after the second; another client goes on
from the checkpoint. Each measurement runs in a fresh process and appends a line to
benchmarks/results/many-rows.jsonl. Memory is the peak resident size of a process, pages
of mapped files included; processor seconds are those of all processes that cluster.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from records import append_lines, commit_of_source
from scale import nmi, peak_gb, warm

N_FEATURES, N_CLUSTERS, N_WORKERS = 50, 20, 4
HEIGHT = 250_000
SETTINGS: dict[str, Any] = {
    "consensus": "bipartite",
    "base": "landmark",
    "ensemble_size": 4,
    "random_state": 0,
}


def known_clusters(n_rows: int) -> np.ndarray:
    """Return the cluster of each row; a smaller table begins a larger one."""
    shares = np.random.default_rng(0).dirichlet(np.full(N_CLUSTERS, 2.0))
    return np.random.default_rng(1).choice(N_CLUSTERS, size=n_rows, p=shares)


def blocks(n_rows: int) -> Any:
    """Yield the rows, some at a time."""
    rng = np.random.default_rng(2)
    centers = 0.75 * rng.normal(size=(N_CLUSTERS, N_FEATURES)).astype(np.float32)
    widths = rng.uniform(0.7, 1.5, size=N_CLUSTERS).astype(np.float32)
    y = known_clusters(n_rows)
    for start in range(0, n_rows, HEIGHT):
        part = y[start : start + HEIGHT]
        X = rng.standard_normal((len(part), N_FEATURES), dtype=np.float32)
        X *= widths[part][:, None]
        X += centers[part]
        yield start, X


def write_npy(path: Path, n_rows: int) -> None:
    shape = n_rows, N_FEATURES
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    for start, X in blocks(n_rows):
        out[start : start + len(X)] = X
    out.flush()


def write_parquet(path: Path, n_rows: int) -> None:
    import pyarrow
    from pyarrow import parquet

    names = [f"feature {j}" for j in range(N_FEATURES)]
    schema = pyarrow.schema([(name, pyarrow.float32()) for name in names])
    with parquet.ParquetWriter(path, schema) as writer:
        for _, X in blocks(n_rows):
            writer.write_table(pyarrow.table(dict(zip(names, X.T, strict=True))))


def rows_file(folder: str, kind: str, n_rows: int) -> Path:
    """Return the path of the rows, written if it does not exist."""
    path = Path(folder) / f"rows-{n_rows}.{kind}"
    if not path.exists():
        part = path.with_suffix(".part")
        {"npy": write_npy, "parquet": write_parquet}[kind](part, n_rows)
        part.rename(path)
    return path


def labels_file(folder: str, kind: str, n_rows: int) -> Path:
    return Path(folder) / f"labels-{kind}-{n_rows}.npy"


def fit_file(folder: str, kind: str, n_rows: int) -> dict[str, Any]:
    """Cluster the rows of a file with two threads."""
    from mdec import MDEC
    from mdec.rows import open_rows

    warm()
    start = time.perf_counter(), time.process_time()
    model = MDEC(N_CLUSTERS, n_jobs=2, **SETTINGS)
    model.fit(open_rows(rows_file(folder, kind, n_rows)))
    seconds, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    np.save(labels_file(folder, kind, n_rows), model.labels_)
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "peak_gb": round(peak_gb(), 2),
        "nmi": round(nmi(known_clusters(n_rows), model.labels_), 2),
        **compared(folder, kind, n_rows),
    }


def compared(folder: str, kind: str, n_rows: int) -> dict[str, Any]:
    """Tell whether the labels are those of the .npy file in one process."""
    paths = [labels_file(folder, each, n_rows) for each in ("npy", kind)]
    if kind == "npy" or not paths[0].exists():
        return {}
    alone, found = map(np.load, paths)
    return {"labels_as_npy": bool(np.array_equal(alone, found))}


def read_block(path: str, block_info: Any = None) -> np.ndarray:
    """Read the rows of one block of a Dask array on a worker."""
    start, stop = block_info[None]["array-location"][0]
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def client(address: str, folder: str, n_rows: int, fate: str) -> dict[str, Any]:
    """Cluster on the workers; "killed" loses a worker and then itself."""
    import dask.array as da
    from distributed import Client

    from mdec import MDEC

    path, checkpoint = rows_file(folder, "npy", n_rows), Path(folder) / "checkpoint"
    heights = [HEIGHT] * (n_rows // HEIGHT)
    heights += [n_rows % HEIGHT] if n_rows % HEIGHT else []
    rows = da.map_blocks(
        read_block,
        str(path),
        chunks=(tuple(heights), (N_FEATURES,)),
        dtype=np.float32,
        meta=np.empty((0, 0), np.float32),
    )

    def wait_for(n_members: int) -> None:
        while len(list(checkpoint.glob("member-??????.npz"))) < n_members:
            time.sleep(0.1)

    with Client(address) as connection:
        pids = list(connection.run(os.getpid).values())

        def kill() -> None:
            wait_for(1)
            os.kill(pids[0], signal.SIGKILL)
            wait_for(2)
            os.kill(os.getpid(), signal.SIGKILL)

        if fate == "killed":
            threading.Thread(target=kill, daemon=True).start()
        start = time.perf_counter()
        model = MDEC(N_CLUSTERS, checkpoint=checkpoint, **SETTINGS).fit(rows)
        labels = model.labels_.compute()
        seconds = time.perf_counter() - start
        np.save(labels_file(folder, "dask", n_rows), labels)
        peaks = connection.run(peak_gb)
    return {
        "seconds": round(seconds, 1),
        "client_peak_gb": round(peak_gb(), 2),
        "worker_peak_gb": round(max(peaks.values()), 2),
        "nmi": round(nmi(known_clusters(n_rows), labels), 2),
    }


def fit_cluster(folder: str, n_rows: int) -> dict[str, Any]:
    """Cluster with four worker processes, one of which is lost, as is the client."""
    from distributed import LocalCluster

    rows_file(folder, "npy", n_rows)
    checkpoint = Path(folder) / "checkpoint"
    for old in checkpoint.glob("*"):
        old.unlink()
    sent = psutil.net_io_counters(pernic=True)["lo"].bytes_sent
    start = time.perf_counter()
    with LocalCluster(
        host="127.0.0.1",
        n_workers=N_WORKERS,
        threads_per_worker=1,
        memory_limit="4GB",
        dashboard_address="127.0.0.1:0",
    ) as local:
        each = [local.scheduler_address, folder, str(n_rows)]
        command = [sys.executable, __file__, "--here", "client", *each]
        killed = subprocess.run([*command, "killed"], check=False)
        reused = sorted(checkpoint.glob("member-??????.npz"))
        times = [path.stat().st_mtime_ns for path in reused]
        found = json.loads(subprocess.check_output([*command, "finishes"]))
    return {
        "client_killed": killed.returncode == -signal.SIGKILL,
        "members_reused": len(reused),
        "reused_unchanged": times == [path.stat().st_mtime_ns for path in reused],
        "seconds_of_both": round(time.perf_counter() - start, 1),
        "loopback_gb": round(
            (psutil.net_io_counters(pernic=True)["lo"].bytes_sent - sent) / 1e9, 2
        ),
        **found,
        **compared(folder, "dask", n_rows),
    }


def here(words: list[str]) -> dict[str, Any]:
    """Do one measurement in this process."""
    match words:
        case ["npy" | "parquet" as kind, folder, rows]:
            return fit_file(folder, kind, int(rows))
        case ["dask", folder, rows]:
            return fit_cluster(folder, int(rows))
        case ["compare", folder, rows]:
            return compared(folder, "dask", int(rows))
        case ["client", address, folder, rows, fate]:
            return client(address, folder, int(rows), fate)
    raise SystemExit(f"cannot measure {words}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="+")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", default=f"{tempfile.gettempdir()}/mdec-many-rows")
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(here(options.what)))
        return
    Path(options.folder).mkdir(exist_ok=True)
    (kind,) = options.what
    if kind in ("npy", "parquet"):
        rows_file(options.folder, kind, options.rows)
    command = [sys.executable, __file__, "--here", kind, options.folder]
    made = subprocess.check_output([*command, str(options.rows)], text=True)
    line = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit_of_source(),
        "what": kind,
        "rows": options.rows,
        "features": N_FEATURES,
        "members": SETTINGS["ensemble_size"],
        "cores": os.cpu_count(),
        **json.loads(made.splitlines()[-1]),
    }
    append_lines("many-rows", [line])
    print(json.dumps(line))


if __name__ == "__main__":
    main()
