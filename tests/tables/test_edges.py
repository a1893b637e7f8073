"""Tables at the edges: odd signs and names, odd numbers, odd ends of lines."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdec.results.tables import format_csv, label_columns
from mdec.tables.arrays import _count_arrays
from mdec.tables.clusterings import read_base_clusterings, read_consensus_matrix
from mdec.tables.reading import read_table
from mdec.tables.roles import AmbiguousTableError

HEAD = "%%MatrixMarket matrix coordinate real general\n3 3 3\n"

NAMES = [
    *("#7", "#", "# a", "=1+1", "'=b", "''-c", "-5", "+1", "@x", "a,b", 'a"b', "007"),
    *("1e5", "NaN", "none", "\N{BYTE ORDER MARK}a", "a\x85b", "a\u2028b", "a\x1cb"),
]


@pytest.mark.parametrize(
    "index", ["1.5", "0", "-1", "4", "nan", "inf", "1e300", "1e-300", "3.0000000001"]
)
@pytest.mark.parametrize("place", [0, 1])
def test_an_entry_lies_on_a_cell(tmp_path: Path, index: str, place: int) -> None:
    pytest.importorskip("pandas")
    entry = ["2", "2"]
    entry[place] = index
    rows = ["1 1 1.5", f"{' '.join(entry)} 2.5", "3 3 3.5"]
    (tmp_path / "a.mtx").write_text(HEAD + "\n".join(rows) + "\n")
    with pytest.raises(ValueError, match=r"'a\.mtx' is damaged"):
        read_table(tmp_path / "a.mtx")


def test_whole_indices_may_be_written_with_a_point(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    (tmp_path / "a.mtx").write_text(HEAD + "1.0 1 1.5\n2 2.0 2.5\n3 3 3.5\n")
    found = read_table(tmp_path / "a.mtx").values
    np.testing.assert_array_equal(found, np.diag([1.5, 2.5, 3.5]))


SIGNS = ["\x85", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"]


@pytest.mark.parametrize("sign", SIGNS)
def test_signs_that_end_no_line(tmp_path: Path, sign: str) -> None:
    pytest.importorskip("pandas")
    table = f"#1.2\n2\t3\nName\tDescription\ts1\ts2\ts3\ng{sign}1\ta{sign}b\t1\t2\t3\n"
    table += 'g2\t5" end\t4\t5\t6.5\n'
    (tmp_path / "a.gct").write_text(table, encoding="utf-8", newline="")
    found = read_table(tmp_path / "a.gct")
    assert found.feature_names == [f"g{sign}1".strip(), "g2"]
    np.testing.assert_array_equal(found.values, [[1, 4], [2, 5], [3, 6.5]])
    (tmp_path / "m.mtx").write_text(HEAD + "1 1 1\n2 2 2\n3 3 3\n")
    names = f"c{sign}1\nc2\nc3\n"
    (tmp_path / "m_barcodes.tsv").write_text(names, encoding="utf-8", newline="")
    assert read_table(tmp_path / "m.mtx").sample_names == [f"c{sign}1", "c2", "c3"]
    text = f"id,a,b\nx{sign}y,1.5,2\ny,3,4\nz,5,6\n"
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    assert read_table(tmp_path / "a.csv").sample_names == [f"x{sign}y", "y", "z"]


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    n = len(NAMES)
    labels, confidence = np.arange(n) % 3, np.linspace(0.0, 1.0, n)
    known = np.array([f"={i % 2}" if i % 4 else "'#c" for i in range(n)])
    columns = label_columns(NAMES, labels, confidence, labels, known)
    (tmp_path / "labels.csv").write_bytes(format_csv(columns))
    found, samples, members = read_base_clusterings(
        tmp_path / "labels.csv", drop=["confidence"], id_column="sample"
    )
    assert samples == NAMES
    assert members == ["cluster", "second_choice", "known_class"]
    assert found[:, 0].tolist() == [str(label) for label in labels]
    assert found[:, 2].tolist() == known.tolist()
    table = read_table(
        tmp_path / "labels.csv",
        id_column="sample",
        label_column="known_class",
        features=["c*"],
    )
    assert table.sample_names == NAMES
    assert table.labels is not None
    assert table.labels.tolist() == known.tolist()


def test_a_row_that_looks_like_a_comment_is_not_dropped(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    path = tmp_path / "a.csv"
    path.write_text("id,a,b\ns1,1.5,2\n#7,3,4\ns3,5,6\ns4,7,8\n")
    with pytest.raises(AmbiguousTableError, match="'#7' begins like a comment"):
        read_table(path)
    path.write_text('id,a,b\ns1,1.5,2\n"#7",3,4\ns3,5,6\n')
    assert read_table(path).sample_names == ["s1", "#7", "s3"]
    path.write_text(
        "# made by a, b, 3\n#\nid,a,b\ns1,1.5,2\n# batch 2\ns3,5,6\ns4,7,8\n"
    )
    assert read_table(path).sample_names == ["s1", "s3", "s4"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\N{BYTE ORDER MARK}"])
def test_ends_of_lines_and_marks(tmp_path: Path, end: str, mark: str) -> None:
    pytest.importorskip("pandas")
    rows = ["id,a,b", "007,1.5,2", "1e5,3,-4e-3", '"x\ty",5,6', ""]
    content = (mark + end.join(rows)).encode()
    for name, pack in (("a.csv", bytes), ("a.csv.gz", gzip.compress)):
        (tmp_path / name).write_bytes(pack(content))
        found = read_table(tmp_path / name)
        assert found.sample_names == ["007", "1e5", "x\ty"]
        assert found.feature_names == ["a", "b"]
        np.testing.assert_array_equal(found.values, [[1.5, 2], [3, -4e-3], [5, 6]])
    rows = ["#1.2", "2\t3", "N\tD\ts1\ts2\ts3", "g1\tx\t1\t2\t3", "g2\ty\t4\t5\t6", ""]
    (tmp_path / "a.gct").write_bytes((mark + end.join(rows)).encode())
    assert read_table(tmp_path / "a.gct").sample_names == ["s1", "s2", "s3"]


@pytest.mark.parametrize("word", ["inf", "-Infinity", "1e999"])
def test_infinite_numbers_are_named(tmp_path: Path, word: str) -> None:
    pytest.importorskip("pandas")
    (tmp_path / "a.csv").write_text(f"id,a,b\nx,1.5,2\ny,{word},4\nz,5,6\n")
    with pytest.raises(ValueError, match="sample 'y', column 'a': the value is infin"):
        read_table(tmp_path / "a.csv")
    gct = f"#1.2\n2\t3\nN\tD\tx\ty\tz\ng1\t-\t1\t{word}\t3\ng2\t-\t4\t5\t6\n"
    (tmp_path / "a.gct").write_text(gct)
    with pytest.raises(ValueError, match="sample 'y', column 'g1': the value is inf"):
        read_table(tmp_path / "a.gct")


def test_empty_texts(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    rows = ["id,a,b,class", "x,1.5,1,u", '"",3,2,""', "z,5,3,v", "w,6,4,v"]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    found = read_table(tmp_path / "a.csv", label_column="class", features=["a", "b"])
    assert found.sample_names == ["x", "", "z", "w"]
    assert found.labels is not None
    assert found.labels.tolist() == ["u", "", "v", "v"]


def test_numbers_as_names_of_columns(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(9, 4)).round(3)
    rows = [",".join(map(str, row)) for row in X]
    (tmp_path / "a.csv").write_text("\n".join(["1,2,3,4", *rows]))
    found = read_table(tmp_path / "a.csv", header=True)
    assert found.feature_names == ["1", "2", "3", "4"]
    np.testing.assert_array_equal(found.values, X)


def test_names_of_samples_in_a_parquet_file_are_no_formulas(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1.5, 2, 3], "b": [4.0, 5, 6.5]})
    frame.insert(0, "id", ["'=a", "=a", "b"])
    frame.to_parquet(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").sample_names == ["'=a", "=a", "b"]


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".gct", ".mtx", ".txt"])
def test_bytes_that_are_no_table(tmp_path: Path, ending: str) -> None:
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    for size in (0, 1, 3, 100, 2000):
        for alphabet in (b"\n\r\t,;# \"'1.", bytes(range(256)), b"\n,1"):
            letters = np.frombuffer(alphabet, dtype=np.uint8)
            content = rng.choice(letters, size=size).tobytes()
            for start in (b"", b"#1.2\n1\t1\n", HEAD.encode()):
                (tmp_path / f"a{ending}").write_bytes(start + content)
                for read in (read_table, read_base_clusterings, read_consensus_matrix):
                    message = ""
                    try:
                        read(tmp_path / f"a{ending}")
                    except AmbiguousTableError as error:
                        message = str(error).replace("\n- ", "").partition("\n")[0]
                    except ValueError as error:
                        message = str(error)
                    assert "\n" not in message


@pytest.mark.parametrize("limit", ["nan", "0", "-1"])
def test_a_limit_is_a_number_above_zero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], limit: str
) -> None:
    pytest.importorskip("typer")
    from mdec.cli import main

    (tmp_path / "a.csv").write_text("a,b\n1,2.5\n3,4\n5,6\n7,9\n")
    command = ["fit", str(tmp_path / "a.csv"), "--max-gb", limit, "--dry-run"]
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 2
    assert f"--max-gb {limit} is not a limit" in capsys.readouterr().err


def test_a_limit_may_be_infinite(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    from mdec.cli import main

    (tmp_path / "a.csv").write_text("a,b\n1,2.5\n3,4\n5,6\n7,9\n")
    with pytest.raises(SystemExit) as ended:
        main(["fit", str(tmp_path / "a.csv"), "--max-gb", "inf", "--dry-run"])
    assert ended.value.code == 0


@pytest.mark.parametrize("kind", ["arrays", "texts", "index"])
def test_many_cells_of_one_long_text(tmp_path: Path, kind: str) -> None:
    """Which an .h5ad file may hold in arrays, in two dimensions, or as attributes."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = np.ones((4, 2))
        for group, size in (("obs", 4), ("var", 2)):
            file.create_group(group).attrs["_index"] = "name"
            file[group]["name"] = np.array([str(i) for i in range(size)], dtype="S")
        if kind == "arrays":
            dtype = h5py.vlen_dtype(np.float64)
            column = file["obs"].create_dataset("c", (4,), dtype=dtype)
            for i in range(4):
                column[i] = np.zeros(50_000)
        elif kind == "texts":
            words = np.array([["x" * 200_000] * 4] * 4, dtype=object)
            file["obs"].create_dataset("c", data=words, dtype=h5py.string_dtype())
        else:
            file["obs"].attrs["_index"] = ["x" * 8000] * 4
    words = "damaged" if kind == "index" else "unpacks to"
    with pytest.raises(ValueError, match=words):
        read_table(path, max_bytes=1_000_000)


def test_numbers_that_are_saved_as_words(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1.5, 2, 3], "b": [4.0, 5, 6.5]})
    frame["c"] = ["1.5", "NA", "2"]
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"column 'c' holds numbers that are saved as"):
        read_table(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet", drop=["c"]).values.shape == (3, 2)


NOTED = {
    "lies far from": ("id,a,b\ns1,1.5,2\ns2,3,-999\ns3,2,5\ns4,7,8\n", (4, 2)),
    "above the table": ("Made in 2024\n\nid,a,b\ns1,1.5,2\ns2,3,4\ns3,2,5\n", (3, 2)),
    "below the table": ("id,a,b\ns1,1.5,2\ns2,3,4\ns3,2,5\nSource: us\n", (3, 2)),
    "sums up the others": ("id,a,b\ns1,1,2\ns2,3,4\ns3,2,5\nTotal,6,11\n", (3, 2)),
    "is called 'Total'": ("id,a,b\ns1,1,2\ns2,3,4\ns3,2,5\nTotal,9,9\n", (4, 2)),
    "without their signs": ("id,a,b\ns1,1.5,2 m\ns2,3,4 m\ns3,2,5 m\n", (3, 2)),
    "read as Windows-1252": ("id,a,\xe4\ns1,1.5,2\ns2,3,4\ns3,2,5\n", (3, 2)),
    "together name": ("x,,y,\na,b,a,b\n1.5,2,3,4\n3,4,5,6\n2,5,7,8\n", (3, 4)),
}


@pytest.mark.parametrize("words", NOTED)
def test_what_is_odd_and_read_all_the_same_is_noted(tmp_path: Path, words: str) -> None:
    pytest.importorskip("pandas")
    content, shape = NOTED[words]
    (tmp_path / "a.csv").write_text(content, encoding="latin-1")
    found = read_table(tmp_path / "a.csv")
    assert any(words in note for note in found.reading["notes"])
    assert found.values.shape == shape
    assert found.feature_names[0] == ("x a" if shape[1] == 4 else "a")
    assert found.feature_names[-1] in ("b", "\xe4", "y b")


def test_marks_of_missing_values_are_taken(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    (tmp_path / "a.csv").write_text("id,a,b\ns1,1.5,2\ns2,lost,-9\ns3,2,5\ns4,7,8\n")
    with pytest.raises(AmbiguousTableError) as error:
        read_table(tmp_path / "a.csv", missing=["-9", "lost"])
    assert error.value.cure == {"impute": "median"}
    found = read_table(tmp_path / "a.csv", missing=["-9", "lost"], impute="median")
    np.testing.assert_array_equal(found.values[1], [2.0, 5.0])


def test_small_elements_of_matlab_files_hold_four_bytes() -> None:
    def element(size: int) -> memoryview:
        return memoryview(struct.pack("<II", size << 16 | 1, 0))

    assert _count_arrays(element(4), "<") == 0
    with pytest.raises(ValueError, match="a small element is too long"):
        _count_arrays(element(5), "<")


@pytest.mark.parametrize("read", [read_base_clusterings, read_consensus_matrix])
def test_a_quotation_mark_that_never_ends_is_said(tmp_path: Path, read: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,a,b\ns1,0,1\ns2,1,"0\ns3,0,0\n')
    with pytest.raises(ValueError, match=r"'a\.csv' is damaged or not a text table"):
        read(path)


def test_a_table_without_rows_has_no_orientation(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.feather"
    names = ["a", "b", "c"]
    pandas.DataFrame({name: [] for name in names}, dtype=str).to_feather(path)
    with pytest.raises(ValueError, match="holds no numbers but ''"):
        read_table(path)
