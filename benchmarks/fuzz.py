"""Give every reader damaged and made-up files, and see how it takes them.

    python benchmarks/fuzz.py [--inputs 2000] [--seed 0] [--reader NAME ...]

For each reader whole files of every kind that it reads are damaged: bytes turned, cut,
repeated and spliced, also inside their compression with the checksums put right,
numbers replaced by huge ones, values of JSON by others. A reader has to return, or to
raise a ValueError, an OSError or a MemoryError of one sentence, within a few seconds
and within 1 GiB beyond what it starts with. The checkpoint has to give the very member
that was written, or none, and whatever lies in the folder of a result, a new result
leaves alone what is not its own. Prints the inputs tried and the failures of each
reader, and leaves the smallest failing inputs in fuzz-failures/.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import importlib.util
import io
import json
import lzma
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mdec import MDEC, Ensemble, MultiViewMDEC, generate_ensemble
from mdec._support.archives import read_sealed, write_sealed
from mdec.bench.records import decode_labels, encode_labels, read_records
from mdec.bench.study import STUDY_FILES, read_study, study_names
from mdec.engines.checkpoint import Checkpoint
from mdec.estimator.persistence import write_model
from mdec.results import read_result_model, write_result
from mdec.rows.work import LocalExecutor
from mdec.tables import read_table
from mdec.tables.clusterings import read_base_clusterings
from mdec.tables.roles import AmbiguousTableError
from mdec.tables.steps import TableSteps

TESTS = Path(__file__).parents[1] / "tests"

MAX_BYTES = 2**26
MORE_MEMORY = 2**30
SECONDS = 5.0

# A reader that hangs is killed after this many seconds by the clock.
PATIENCE = 120.0


@dataclass(frozen=True)
class Reader:
    """What is fuzzed: whole files by name, and what is done with a damaged one."""

    wholes: list[tuple[str, bytes]]
    read: Callable[[Path], object]


# ------------------------------------------------------------------ whole files


def table() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, size=(7, 5)) / 4.0
    samples = [f"s{i}" for i in range(7)]
    return X, [f"class {i % 2}" for i in range(7)], samples, [f"g{i}" for i in range(5)]


def table_readers(folder: Path) -> dict[str, Reader]:
    """Return a reader for each ending, with the ways to write such files."""
    wholes: dict[str, list[tuple[str, bytes]]] = {}
    for name, write in _writers().WRITERS.items():
        place = folder / "".join(c if c.isalnum() else "-" for c in name)
        place.mkdir()
        try:
            path, _ = write(place, table())
        except BaseException as error:
            # A package that is not there skips, which is no Exception.
            if type(error).__name__ != "Skipped":
                raise
            continue
        if path.is_dir():
            # The readers of the files in it have inputs of their own.
            continue
        ending = "".join(path.suffixes)
        wholes.setdefault(ending, []).append((path.name, path.read_bytes()))
    read = partial(read_table, max_bytes=MAX_BYTES)
    return {f"table {ending}": Reader(found, read) for ending, found in wholes.items()}


def _writers() -> ModuleType:
    path = TESTS / "tables" / "writers.py"
    spec = importlib.util.spec_from_file_location("table_writers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def other_readers(folder: Path) -> dict[str, Reader]:
    X = np.random.default_rng(0).normal(size=(30, 6))
    kept = folder / "checkpoint"
    ensemble = generate_ensemble(
        X, ensemble_size=3, random_state=0, checkpoint=kept, n_neighbors_range=(3, 5)
    )
    ensemble.save(folder / "e.npz")
    model = MDEC(2, ensemble_size=3, random_state=0).fit(X)
    model.save(folder / "m.npz")
    models = _models(folder, X)
    write_result(model.clustering_, folder / "result", model=model)
    arrays = {"a": np.arange(6.0), "b": np.ones((2, 3), dtype=np.int32)}
    write_sealed(folder / "s.npz", {"x": [1, "two"]}, arrays)
    labels = "id,a,b\n" + "".join(f"s{i},{i % 2},{i % 3}\n" for i in range(6))
    return {
        "Ensemble.load": Reader(
            [("e.npz", (folder / "e.npz").read_bytes()), *_old_ensemble()],
            partial(Ensemble.load, max_bytes=MAX_BYTES),
        ),
        "MDEC.load": Reader(
            [("m.npz", (folder / "m.npz").read_bytes())],
            partial(MDEC.load, max_bytes=MAX_BYTES),
        ),
        "model": Reader(models, partial(_predict, X_new=X[:3])),
        "result folder": Reader(
            _result_files(folder / "result"),
            partial(_replace_result, whole=folder / "result", model=model),
        ),
        "read_sealed": Reader(
            [("s.npz", (folder / "s.npz").read_bytes())],
            partial(read_sealed, max_bytes=MAX_BYTES),
        ),
        "checkpoint": Reader(
            [(path.name, path.read_bytes()) for path in sorted(kept.iterdir())],
            partial(_load_members, kept=kept, ensemble=ensemble),
        ),
        "base clusterings": Reader([("l.csv", labels.encode())], read_base_clusterings),
        "study": Reader([("s.toml", text) for text in _studies()], read_study),
        "records": Reader(
            [("r.jsonl", _records()), ("r.jsonl.gz", gzip.compress(_records()))],
            _read_all_labels,
        ),
    }


def _models(folder: Path, X: np.ndarray) -> list[tuple[str, bytes]]:
    """Return models with steps before them, of landmarks and of two views."""
    single = MDEC(2, ensemble_size=3, random_state=0)
    steps = TableSteps(6, tuple(f"g{i}" for i in range(6)))
    write_model(folder / "steps.npz", single.fit(X), steps.to_json(), steps.arrays)
    single.set_params(base="landmark").fit(X).save(folder / "landmarks.npz")
    views = MultiViewMDEC(single.set_params(base="graph"))
    views.fit(_split(X)).save(folder / "views.npz")
    paths = [folder / f"{name}.npz" for name in ("steps", "landmarks", "views")]
    return [(path.name, path.read_bytes()) for path in paths]


def _split(X: np.ndarray) -> dict[str, np.ndarray]:
    return {"left": X[:, :3], "right": X[:, 3:]}


def _predict(path: Path, X_new: np.ndarray) -> None:
    """Place new rows with a model, as `mdec predict` does."""
    model, _ = read_result_model(path, MAX_BYTES)
    several = isinstance(model, MultiViewMDEC)
    labels = model.predict(_split(X_new) if several else X_new)
    assert labels.shape == (len(X_new),), "not one label for each row"
    assert labels.min() >= -1, "a label below none"


# Where a file of a result belongs that a whole folder does not have: what a killed run
# has left behind says which files are to go.
LEFT_BEHIND = {"gone": ".mdec-new/.mdec-gone", "lock": ".mdec-lock"}
STRANGE_NAMES = b"labels.csv\n../outside.txt\n"


def _result_files(whole: Path) -> list[tuple[str, bytes]]:
    files = [path for path in sorted(whole.iterdir()) if path.suffix != ".html"]
    left = [
        ("gone", b"labels.csv\nmodel.npz\n"),
        ("gone", STRANGE_NAMES),
        ("lock", b""),
    ]
    return [*((path.name, path.read_bytes()) for path in files), *left]


def _replace_result(path: Path, whole: Path, model: MDEC) -> None:
    """Read a result with one damaged file, and write another one in its place."""
    place = path.parent / "result"
    shutil.copytree(whole, place)
    target = place / LEFT_BEHIND.get(path.name, path.name)
    target.parent.mkdir(exist_ok=True)
    path.replace(target)
    others = {path.parent / "outside.txt": "outside", place / "mine.txt": "mine"}
    for other, text in others.items():
        other.write_text(text)
    try:
        read_base_clusterings(place / "labels.csv", column="cluster")
        write_result(model.clustering_, place)
    finally:
        for other, text in others.items():
            assert other.exists(), f"{other.name} is lost"
            assert other.read_text() == text, f"{other.name} is changed"
        shutil.rmtree(place)


def _old_ensemble() -> list[tuple[str, bytes]]:
    path = TESTS / "data" / "version-0.1" / "ensemble.npz"
    return [(path.name, path.read_bytes())]


def _load_members(path: Path, kept: Path, ensemble: Ensemble) -> None:
    """Load all members of a checkpoint, one of whose files is the given one."""
    place = path.parent / "damaged"
    shutil.copytree(kept, place)
    try:
        path.replace(place / path.name)
        header = json.loads((kept / "checkpoint.json").read_text())
        store = Checkpoint(place, header["data"], ensemble.plan, LocalExecutor())
        for index, member in enumerate(ensemble.members):
            found = store.load(index)
            if found is None:
                continue
            assert not hasattr(found, "reason"), "a member became a failure"
            assert found[0] == member, "another member came back"
            labels = np.concatenate(found[1])
            assert (labels == ensemble.labels[:, index]).all(), "other labels came back"
    finally:
        shutil.rmtree(place)


def _studies() -> list[bytes]:
    return [(STUDY_FILES / f"{name}.toml").read_bytes() for name in study_names()]


def _records() -> bytes:
    run = {"study": "s", "dataset": "d", "method": "m", "generator": None}
    run |= {"generator_parameters": {}, "parameters": {"a": 1}, "repetition": 0}
    run |= {"generator_seed": 1, "seed": 2, "status": "ok", "message": ""}
    packed = encode_labels(np.arange(8) % 3)
    rows: list[dict[str, Any]] = [
        {"record": "study", "study": {"name": "s"}},
        {
            **{"record": "dataset", "dataset": "d", "n_samples": 8, "n_features": 2},
            **{"n_clusters": 3, "dtype": "float64", "sha256": "0", "classes": packed},
        },
        *({"record": "run", **run, "repetition": i, "labels": packed} for i in (0, 1)),
    ]
    lines = [json.dumps(row, separators=(",", ":")) for row in rows]
    return ("\n".join(lines) + "\n").encode()


def _read_all_labels(path: Path) -> None:
    store = read_records(path)
    for run in store.runs.values():
        if isinstance(run.get("labels"), str):
            decode_labels(run["labels"])


# ------------------------------------------------------------------ damage

HUGE = (b"99999999999", b"4294967295", b"-1", b"1e308", b"nan", b"0", b"")
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**63, 10**30, 1e308, float("nan"), "", "x" * 99),
    *([], [[]], {}, {"a": 1}, [1, 2, 3], "2020-01-01", "<i9:AAAA"),
)


def changed(content: bytes, kind: str, a: int, b: int, other: bytes) -> bytes:
    """Return damaged content; `a` and `b` say where and how much."""
    if not content:
        return other
    at, length = a % len(content), b % 64 + 1
    if kind == "bit":
        turned = bytearray(content)
        turned[at] ^= 1 << b % 8
        return bytes(turned)
    if kind == "cut":
        return content[:at]
    if kind == "drop":
        return content[:at] + content[at + length :]
    if kind == "repeat":
        return content[:at] + content[at : at + length] * (b % 7 + 2) + content[at:]
    if kind == "splice":
        return content[:at] + other[b % (len(other) + 1) :]
    if kind == "bytes":
        new = bytes([(0, 255, 127, 128, a % 256)[b % 5]]) * (b % 8 + 1)
        return content[:at] + new + content[at + len(new) :]
    if kind == "number":
        return _new_number(content, at, HUGE[b % len(HUGE)])
    if kind == "json":
        return _new_value(content, a, VALUES[b % len(VALUES)])
    return _changed_inside(content, kind.removeprefix("inside "), a, b, other)


KINDS = ("bit", "cut", "drop", "repeat", "splice", "bytes", "number", "json")
KINDS += tuple(f"inside {kind}" for kind in KINDS)


def _new_number(content: bytes, at: int, new: bytes) -> bytes:
    """Replace the next number in digits."""
    start = next((i for i in range(at, len(content)) if content[i] in b"0123456789"), 0)
    end = start
    while end < len(content) and content[end] in b"0123456789.":
        end += 1
    return content[:start] + new + content[end:]


def _new_value(content: bytes, which: int, new: Any) -> bytes:
    """Replace a value anywhere in a line of JSON."""
    lines = content.split(b"\n")
    try:
        place = which % len(lines)
        tree = [json.loads(lines[place])]
    except ValueError:
        return content + json.dumps(new).encode()
    spots: list[tuple[Any, Any]] = []

    def collect(node: Any) -> None:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        for key in keys:
            spots.append((node, key))
            if isinstance(node[key], dict | list):
                collect(node[key])

    collect(tree)
    node, key = spots[which // 7 % len(spots)]
    node[key] = new
    lines[place] = json.dumps(tree[0]).encode()
    return b"\n".join(lines)


# What a file may raise that was damaged before and is to be damaged inside.
UNPACKING = (
    *(OSError, EOFError, ValueError, KeyError, RuntimeError, struct.error),
    *(BadZipFile, zlib.error, lzma.LZMAError),
)


def _changed_inside(content: bytes, kind: str, a: int, b: int, other: bytes) -> bytes:
    """Damage what a compressed file holds, and pack it again with right checksums."""
    packers: dict[bytes, tuple[Any, Any]] = {
        b"\x1f\x8b": (gzip.decompress, gzip.compress),
        b"BZh": (bz2.decompress, bz2.compress),
        b"\xfd7zXZ": (lzma.decompress, lzma.compress),
    }
    for magic, (unpack, pack) in packers.items():
        if content.startswith(magic):
            try:
                packed: bytes = pack(changed(unpack(content), kind, a, b, other))
            except UNPACKING:
                return content[::-1]
            return packed
    if content.startswith(b"PK"):
        return _changed_archive(content, kind, a, b, other)
    return changed(content, kind, a, b, other)


def _changed_archive(content: bytes, kind: str, a: int, b: int, other: bytes) -> bytes:
    out = io.BytesIO()
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    except UNPACKING:
        return content[::-1]
    chosen = sorted(parts)[b % len(parts)] if parts else ""
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            new = changed(part, kind, a, b // 7, other) if name == chosen else part
            archive.writestr(name, new)
    return out.getvalue()


def inputs(wholes: list[tuple[str, bytes]]) -> st.SearchStrategy[tuple[str, bytes]]:
    """Return a strategy for names and contents of damaged or made-up files."""
    places = st.integers(0, 2**20)
    contents = [content for _, content in wholes]
    steps = st.lists(
        st.tuples(st.sampled_from(KINDS), places, places, st.sampled_from(contents)),
        min_size=1,
        max_size=4,
    )

    def damaged(whole: tuple[str, bytes], steps: list[Any]) -> tuple[str, bytes]:
        name, content = whole
        for kind, a, b, other in steps:
            content = changed(content, kind, a, b, other)[: 2**20]
        return name, content

    whole = st.sampled_from(wholes)
    words = st.text(alphabet='ab01.,;\t"\n-eNA[]{}=: \x00é', max_size=200)
    made_up = st.one_of(st.binary(max_size=300), words.map(str.encode))
    names = whole.map(lambda each: each[0])
    return st.one_of(*[st.builds(damaged, whole, steps)] * 9, st.tuples(names, made_up))


# ------------------------------------------------------------------ one reader


def try_one(reader: Reader, name: str, content: bytes, folder: Path) -> None:
    """Raise an AssertionError unless a reader takes an input as it should."""
    place = folder / "input"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / name).write_bytes(content)
    start = time.process_time()
    try:
        reader.read(place / name)
    except (ValueError, OSError, MemoryError) as error:
        said = str(error)
        own = not isinstance(error, OSError) and type(error) is not MemoryError
        if isinstance(error, AmbiguousTableError):
            said = said.partition("\n")[0]  # a list of what is to be said
        if own and (not said or "\n" in said or len(said) > 1000):
            raise AssertionError(f"no sentence: {said[:200]!r}") from error
    seconds = time.process_time() - start
    assert seconds < SECONDS, f"{seconds:.1f} seconds"


def fuzz_here(reader: Reader, n_inputs: int, seed: int, folder: Path) -> None:
    """Fuzz in this process; the number of inputs tried is kept in a file."""
    if Path("/proc/self/statm").exists():
        used = int(Path("/proc/self/statm").read_text().split()[0])
        limit = used * resource.getpagesize() + MORE_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    warnings.simplefilter("ignore")
    tried = 0

    @hypothesis.seed(seed)
    @settings(
        max_examples=n_inputs,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(inputs(reader.wholes))
    def check(given_input: tuple[str, bytes]) -> None:
        nonlocal tried
        tried += 1
        (folder / "tried").write_text(str(tried))
        try_one(reader, *given_input, folder)

    check()


def fuzz(reader: Reader, n_inputs: int, seed: int, folder: Path) -> tuple[int, str]:
    """Fuzz in a child, which may crash or hang; return inputs tried and what failed."""
    (folder / "tried").write_text("0")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            fuzz_here(reader, n_inputs, seed, folder)
            code = 0
        except BaseException:  # noqa: BLE001 - a forked child must not return
            (folder / "failure").write_text(traceback.format_exc())
        os._exit(code)
    last, since, done = "", time.monotonic(), 0
    while not done:
        done, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.05)
        now = (folder / "tried").read_text()
        if now != last:
            last, since = now, time.monotonic()
        if not done and time.monotonic() - since > PATIENCE:
            os.kill(child, signal.SIGKILL)
    tried, code = int(last or 0), os.waitstatus_to_exitcode(status)
    if code == 0:
        return tried, ""
    found = folder / "failure"
    if code == 1 and found.exists():
        return tried, found.read_text()
    return tried, f"the reader ended the process, with code {code}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", nargs="+", default=[])
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"))
    options = parser.parse_args()
    total, failed = 0, 0
    with tempfile.TemporaryDirectory(prefix="mdec-fuzz-") as temporary:
        place = Path(temporary)
        (place / "tables").mkdir()
        readers = {**table_readers(place / "tables"), **other_readers(place)}
        for name, reader in readers.items():
            if options.reader and name not in options.reader:
                continue
            folder = place / "work" / "".join(c if c.isalnum() else "-" for c in name)
            folder.mkdir(parents=True)
            tried, failure = fuzz(reader, options.inputs, options.seed, folder)
            total, failed = total + tried, failed + bool(failure)
            print(f"{tried:6d} inputs  {name}{': FAILED' if failure else ''}")
            if failure:
                lines = [line[:200] for line in failure.splitlines()]
                print("\n".join(lines[-40:]), file=sys.stderr)
                shutil.copytree(
                    folder, options.failures / folder.name, dirs_exist_ok=True
                )
    print(f"{total:6d} inputs of {len(readers)} readers, {failed} readers failed")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
