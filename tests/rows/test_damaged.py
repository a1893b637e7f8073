"""Files of rows that are odd or damaged: the right numbers, or one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mdec import MDEC
from mdec.rows import as_rows, open_rows

HEADER = 128


@pytest.fixture
def X() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(60, 3))


@pytest.mark.parametrize(
    "names", [["a", "a", "b"], ["a", "b", "a"], ["a.b", "a", "b"], ["", "", ""]]
)
def test_columns_are_told_apart_by_their_place(
    tmp_path: Path, X: np.ndarray, names: list[str]
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(list(X.T), names=names), tmp_path / "x.parquet")
    source = open_rows(tmp_path / "x.parquet")
    for start, stop in ((0, 60), (0, 20), (20, 60), (59, 60)):
        np.testing.assert_array_equal(source.read(start, stop), X[start:stop])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_nothing_to_cluster(tmp_path: Path, shape: tuple[int, int]) -> None:
    np.save(tmp_path / "x.npy", np.zeros(shape))
    with pytest.raises(ValueError, match=f"has {shape[0]} rows and {shape[1]} columns"):
        open_rows(tmp_path / "x.npy")


def test_a_parquet_file_without_rows(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    empty = pyarrow.table({"a": np.zeros(0), "b": np.zeros(0)})
    parquet.write_table(empty, tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="has 0 rows and 2 columns"):
        open_rows(tmp_path / "x.parquet")


def test_damaged_files_end_in_a_sentence(tmp_path: Path, X: np.ndarray) -> None:
    np.save(tmp_path / "x.npy", X)
    whole = (tmp_path / "x.npy").read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        content = bytearray(whole)
        for place in rng.integers(0, HEADER, size=rng.integers(1, 3)):
            content[place] = rng.integers(256)
        (tmp_path / "y.npy").write_bytes(content)
        message = ""
        try:
            rows = as_rows(open_rows(tmp_path / "y.npy"))
            assert [block().shape[1] for block in rows.blocks] == [rows.shape[1]]
        except ValueError as error:
            message = str(error)
        refused += bool(message)
        assert not message or message.startswith("'y.npy' ")
        assert "\n" not in message
    assert refused > 300


def test_a_file_that_is_cut_short(tmp_path: Path, X: np.ndarray) -> None:
    np.save(tmp_path / "x.npy", X)
    source = open_rows(tmp_path / "x.npy")
    content = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(content[:-8])
    with pytest.raises(ValueError, match="ends before the rows that it had"):
        source.read(0, 60)
    with pytest.raises(ValueError, match=r"claims .* the file is damaged"):
        open_rows(tmp_path / "x.npy")
    with pytest.raises(FileNotFoundError):
        open_rows(tmp_path / "none.npy")


def test_parquet_that_is_none(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for content in (b"", b"PAR1xxxxPAR1", b"no table at all"):
        (tmp_path / "x.parquet").write_bytes(content)
        with pytest.raises(ValueError, match=r"'x\.parquet' is damaged or not"):
            open_rows(tmp_path / "x.parquet")


@pytest.mark.parametrize("shape", [(10,), (), (2, 2, 2)])
def test_a_dask_array_that_is_no_table(shape: tuple[int, ...]) -> None:
    array = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="give a table of two dimensions"):
        MDEC(2, ensemble_size=2).fit(array.ones(shape))


@pytest.mark.parametrize("base", ["graph", "landmark"])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("value", [1e308, -1e308, np.finfo(np.float64).max])
def test_a_constant_column_makes_no_difference(
    X: np.ndarray, value: float, form: Any, base: str
) -> None:
    labels = []
    for constant in (1.0, value):
        X[:, 1] = constant
        model = MDEC(2, ensemble_size=4, base=base, random_state=0)
        labels.append(model.fit(form(X)).labels_)
    np.testing.assert_array_equal(*labels)


def test_huge_numbers_of_both_signs_are_the_reason_with_landmarks(
    X: np.ndarray,
) -> None:
    X[:, 1] = np.where(np.arange(len(X)) % 2, 1e306, -1e306)
    with pytest.raises(ValueError, match="more magnitudes than float64"):
        MDEC(2, ensemble_size=4, base="landmark", random_state=0).fit(X)
