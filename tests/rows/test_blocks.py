"""Rows in blocks: sources, fixed bounds, sums in a fixed order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mdec import MDEC, generate_ensemble
from mdec._support.progress import report_progress
from mdec.rows import blocks, work
from mdec.rows.blocks import as_rows, block_bounds, block_height, refuse_useless
from mdec.rows.sources import open_rows
from mdec.rows.work import LocalExecutor, gather_rows, ordered_sum, rows_of


@pytest.fixture
def X() -> np.ndarray:
    rng = np.random.default_rng(2)
    centers = 3.0 * rng.normal(size=(4, 6))
    return (centers[rng.integers(4, size=700)] + rng.normal(size=(700, 6))).astype(
        np.float32
    )


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 128)


def test_blocks_of_sparse_rows_go_by_what_they_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_NUMBERS", 2**14)
    X = np.zeros((5000, 100), dtype=np.float32)
    X[:, :7], X[0, 7] = 1.0, 1.0
    rows = as_rows(sparse.csr_array(X))
    assert rows.bounds == [(0, 2048), (2048, 4096), (4096, 5000)]


def write_parquet(path: Path, X: np.ndarray, group: int) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({f"f{i}": X[:, i] for i in range(X.shape[1])})
    parquet.write_table(table, path, row_group_size=group)


def test_a_parquet_file_may_have_empty_row_groups(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X = np.random.default_rng(0).normal(size=(7, 3))
    path = tmp_path / "x.parquet"
    schema = pyarrow.schema([(f"f{i}", pyarrow.float64()) for i in range(3)])
    with parquet.ParquetWriter(path, schema) as writer:
        for part in (X[:0], X[:4], X[:0], X[4:], X[:0]):
            writer.write_table(pyarrow.table(list(part.T), schema=schema))
    source = open_rows(path)
    assert parquet.ParquetFile(path).metadata.num_row_groups == 5
    for start, stop in ((0, 7), (0, 4), (4, 7), (3, 5)):
        np.testing.assert_array_equal(source.read(start, stop), X[start:stop])


def test_bounds_cover_every_row_once() -> None:
    for n_rows in (1, 127, 128, 129, 1000):
        bounds = block_bounds(n_rows, 4)
        covered = np.concatenate([np.arange(*each) for each in bounds])
        np.testing.assert_array_equal(covered, np.arange(n_rows))


def test_blocks_are_bounded_in_rows_and_numbers() -> None:
    for n_features in (1, 64, 784, 20_000):
        height = block_height(n_features)
        assert height <= blocks.BLOCK_ROWS
        assert height * n_features <= max(blocks.BLOCK_NUMBERS, 1024 * n_features)
        assert height & (height - 1) == 0


class Recorder(LocalExecutor):
    """Notes how many partial sums are added together."""

    def __init__(self) -> None:
        self.sums: list[int] = []

    def call(self, func: Any, *args: Any) -> Any:
        if func is work._add:
            self.sums.append(len(args[0]))
        return super().call(func, *args)


@pytest.mark.parametrize("n_blocks", [1, 3, 4, 5, 16, 17, 70])
def test_sum_over_blocks(n_blocks: int) -> None:
    values = np.random.default_rng(n_blocks).normal(size=(n_blocks, 3))
    executor = Recorder()
    total = ordered_sum(executor, lambda parts: np.sum(parts, axis=0), list(values))
    np.testing.assert_allclose(total, values.sum(axis=0), rtol=1e-12)
    assert max(executor.sums, default=0) <= work.FAN_IN


def test_sum_keeps_the_order() -> None:
    """A sum that is not associative tells how it was bracketed."""
    shown = ordered_sum(
        LocalExecutor(),
        lambda parts: np.array(["".join(parts)], dtype=object),
        list("abcdefghi"),
    )
    assert shown[0] == "abcdefghi"


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", ["array", "npy", "parquet"])
def test_sources_read_the_same_rows(X: np.ndarray, tmp_path: Path, kind: str) -> None:
    source: Any = X
    if kind == "npy":
        np.save(tmp_path / "x.npy", X)
        source = open_rows(tmp_path / "x.npy")
    if kind == "parquet":
        write_parquet(tmp_path / "x.parquet", X, group=90)
        source = open_rows(tmp_path / "x.parquet")
    assert source.shape == X.shape
    assert source.dtype == X.dtype
    read = np.concatenate([rows_of(block) for block in as_rows(source).blocks])
    np.testing.assert_array_equal(read, X)
    rows = np.array([0, 5, 127, 128, 300, 699])
    opened = as_rows(source)
    picked = gather_rows(LocalExecutor(), opened.blocks, opened.bounds, rows)
    np.testing.assert_array_equal(picked, X[rows])


@pytest.mark.usefixtures("small_blocks")
def test_files_give_the_labels_of_the_array(X: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    write_parquet(tmp_path / "x.parquet", X, group=200)
    settings: dict[str, Any] = {
        "n_clusters": 4,
        "ensemble_size": 3,
        "base": "landmark",
        "consensus": "bipartite",
        "random_state": 0,
    }
    expected = MDEC(**settings).fit(X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for source in (
        mapped,
        open_rows(tmp_path / "x.npy"),
        open_rows(tmp_path / "x.parquet"),
    ):
        model = MDEC(**settings).fit(source)
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        np.testing.assert_array_equal(model.predict(X[:9]), expected.predict(X[:9]))
        assert model.n_features_in_ == 6


def test_auto_takes_landmarks_for_files(X: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    source = open_rows(tmp_path / "x.npy")
    made = generate_ensemble(source, ensemble_size=1, base="auto", random_state=0)
    assert made.parameters["base"] == "landmark"
    with pytest.raises(ValueError, match="base='graph' needs all rows in memory"):
        generate_ensemble(source, ensemble_size=1)


def test_files_that_cannot_be_read_in_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "ints.npy", np.ones((5, 2), dtype=np.int64))
    np.save(tmp_path / "columns.npy", np.asfortranarray(np.ones((5, 2))))
    np.save(tmp_path / "flat.npy", np.ones(5))
    (tmp_path / "damaged.npy").write_bytes(b"no array")
    for name, words in (
        ("ints.npy", "float32 or float64"),
        ("columns.npy", "column by column"),
        ("flat.npy", "a table"),
        ("damaged.npy", "damaged"),
        ("table.csv", "save it as .npy or .parquet"),
    ):
        with pytest.raises(ValueError, match=words):
            open_rows(tmp_path / name)


@pytest.mark.usefixtures("small_blocks")
def test_rows_are_checked(X: np.ndarray) -> None:
    refuse_useless(as_rows(X))
    with pytest.raises(ValueError, match="all 300 samples are equal"):
        refuse_useless(as_rows(np.ones((300, 2))))
    for bad in (np.nan, np.inf):
        X[500, 3] = bad
        with pytest.raises(ValueError, match="NaN or infinity"):
            refuse_useless(as_rows(X))


def test_progress_says_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int]] = []
    hook = report_progress(lambda *each: seen.append(each), 4, verbose=2)
    for done in range(1, 5):
        hook(done, 4)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("mdec: 1 of 4 base clusterings in ")
    assert lines[-1].endswith("about 0 s left")
    report_progress(None, 2, verbose=0)(1, 2)
    assert capsys.readouterr().err == ""


def test_a_block_of_parquet_takes_little_more_than_its_rows(tmp_path: Path) -> None:
    """Whatever the size of the row groups, which are the writer's choice."""
    pyarrow = pytest.importorskip("pyarrow")
    X = np.random.default_rng(0).normal(size=(40_000, 30))
    write_parquet(tmp_path / "x.parquet", X, group=40_000)
    source = open_rows(tmp_path / "x.parquet")
    pool = pyarrow.proxy_memory_pool(pyarrow.default_memory_pool())
    before = pyarrow.default_memory_pool()
    pyarrow.set_memory_pool(pool)
    try:
        read = source.read(30_000, 34_000)
    finally:
        pyarrow.set_memory_pool(before)
    np.testing.assert_array_equal(read, X[30_000:34_000])
    assert 0 < pool.max_memory() < 4 * read.nbytes < X.nbytes / 2
