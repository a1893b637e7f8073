"""Readers: what they detect, what they refuse, and that nothing else comes out."""

from __future__ import annotations

import bz2
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import mmwrite, savemat

from mdec.tables.clusterings import read_base_clusterings
from mdec.tables.reading import Table, read_table
from mdec.tables.roles import AmbiguousTableError
from mdec.tables.steps import transform_values

VALUES = np.arange(24.0).reshape(6, 4)
SAMPLES = [f"s{i}" for i in range(6)]
FEATURES = ["TP53", "EGFR", "MYC", "KRAS"]


def write(path, header, rows, separator=","):
    lines = [separator.join(map(str, line)) for line in ([header] if header else [])]
    lines += [separator.join(map(str, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def rows_of(values, names=None):
    return [
        ([names[i]] if names else []) + row for i, row in enumerate(values.tolist())
    ]


@pytest.mark.parametrize("separator", [",", "\t", ";"])
@pytest.mark.parametrize("corner", ["", "gene", None])
def test_header_and_index_are_found(tmp_path, separator, corner):
    header = FEATURES if corner is None else [corner, *FEATURES]
    path = write(tmp_path / "a.csv", header, rows_of(VALUES, SAMPLES), separator)
    table = read_table(path)
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.sample_names == SAMPLES
    assert table.feature_names == FEATURES
    assert table.labels is None


def test_bare_numbers_have_neither(tmp_path):
    table = read_table(write(tmp_path / "a.csv", None, rows_of(VALUES)))
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.sample_names == ["1", "2", "3", "4", "5", "6"]
    assert table.feature_names[0] == "feature 1"


def test_an_unnamed_column_of_numbers_is_an_index(tmp_path):
    path = write(tmp_path / "a.csv", ["", *FEATURES], rows_of(VALUES, list(range(6))))
    assert read_table(path).sample_names == ["0", "1", "2", "3", "4", "5"]
    assert read_table(path, index=False).values.shape == (6, 5)


def test_transpose_turns_genes_in_rows(tmp_path):
    path = write(tmp_path / "a.tsv", ["", *SAMPLES], rows_of(VALUES.T, FEATURES), "\t")
    table = read_table(path, transpose=True)
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.sample_names == SAMPLES
    assert table.feature_names == FEATURES


def test_label_column_and_label_row(tmp_path):
    classes = list("aabbcc")
    rows = [[*row, classes[i]] for i, row in enumerate(rows_of(VALUES, SAMPLES))]
    path = write(tmp_path / "a.csv", ["id", *FEATURES, "class"], rows)
    table = read_table(path, label_column="class")
    assert table.labels.tolist() == classes
    assert table.feature_names == FEATURES
    rows = [["class", *classes], *rows_of(VALUES.T, FEATURES)]
    path = write(tmp_path / "b.csv", ["gene", *SAMPLES], rows)
    table = read_table(path, transpose=True, label_column="class")
    assert table.labels.tolist() == classes
    np.testing.assert_array_equal(table.values, VALUES)


def test_binary_formats(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    np.savez(tmp_path / "a.npz", X=VALUES, y=np.arange(6) % 2, sample_names=SAMPLES)
    savemat(tmp_path / "a.mat", {"fea": VALUES, "gnd": np.arange(6)[:, None] % 2})
    for ending in ("npy", "npz", "mat"):
        table = read_table(tmp_path / f"a.{ending}")
        np.testing.assert_array_equal(table.values, VALUES)
        assert (table.labels is None) == (ending == "npy")
    assert read_table(tmp_path / "a.npz").sample_names == SAMPLES
    turned = read_table(tmp_path / "a.npy", transpose=True)
    assert turned.values.shape == (4, 6)


def test_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(VALUES, index=SAMPLES, columns=FEATURES)
    frame["class"] = list("aabbcc")
    frame.to_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet", label_column="class")
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.sample_names == SAMPLES
    assert table.labels.tolist() == list("aabbcc")
    with pytest.raises(ValueError, match="'class' holds no numbers"):
        read_table(tmp_path / "a.parquet")


@pytest.mark.parametrize("which", ["sample_names", "feature_names"])
def test_names_of_one_side_of_a_turned_array(tmp_path, which):
    np.savez(tmp_path / "a.npz", X=VALUES.T, **{which: FEATURES})
    table = read_table(tmp_path / "a.npz", transpose=True)
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.feature_names == FEATURES


@pytest.mark.parametrize("layout", ["dense", "csr", "csc"])
def test_h5ad(tmp_path, layout):
    h5py = pytest.importorskip("h5py")
    from scipy import sparse

    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        if layout == "dense":
            file["X"] = VALUES
        else:
            matrix = sparse.csr_array(VALUES).asformat(layout)
            group = file.create_group("X")
            group.attrs["shape"] = VALUES.shape
            group.attrs["encoding-type"] = f"{layout}_matrix"
            for name in ("data", "indices", "indptr"):
                group[name] = getattr(matrix, name)
        for name, index in (("obs", SAMPLES), ("var", FEATURES)):
            group = file.create_group(name)
            group.attrs["_index"] = "_index"
            group["_index"] = index
        cells = file["obs"].create_group("cell")
        cells["categories"] = ["B", "T"]
        cells["codes"] = np.array([0, 0, 1, 1, 0, 1], dtype=np.int8)
    table = read_table(tmp_path / "a.h5ad", label_column="cell")
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.sample_names == SAMPLES
    assert table.labels.tolist() == list("BBTTBT")
    kept = read_table(tmp_path / "a.h5ad", label_column="cell", sparse=True).values
    assert sparse.issparse(kept) == (layout != "dense")
    np.testing.assert_array_equal(kept.toarray() if layout != "dense" else kept, VALUES)


BAD_TEXT = {
    "empty": ("", "is empty"),
    "blank": ("\n \n", "is empty"),
    "one column": ("a\n1\n2\n3\n", "one column"),
    "all text": ("a,b,c\nx,y,z\nu,v,w\np,q,r\n", "no numbers"),
    "ragged": ("a,b,c\n1,2,3\n1,2\n4,5,6\n", "2 in row 3"),
    "mixed": ("id,a,b\ns,1,2\nt,1,foo\nu,4,5\n", "'foo' is not a number"),
    "missing": ("id,a,b\ns,1,2\nt,1,\nu,4,5\n", "missing"),
    "NA": ("id,a,b\ns,1,2\nt,1,NA\nu,4,5\n", "missing"),
    "infinite": ("id,a,b\ns,1,2\nt,1,-inf\nu,4,5\n", "infinite"),
    "duplicates": ("id,a,b\ns,1,2\ns,1,3\nu,4,5\n", "'s' more than once"),
    "two samples": ("id,a,b,c\ns,1,2,3\nt,1,3,4\n", "transpose it"),
    "names only": ("id,a,b\n", "no numbers below"),
    "underscores": ("id,a,b\ns,1_0,2\nt,1,3\nu,4,5\n", "not a number|holds"),
}


def check_words(error):
    """Several doubts are a list; what settles them, if anything does, comes last."""
    first, *others = str(error).split("\n")
    if others:
        assert isinstance(error, AmbiguousTableError)
        assert first.endswith("may be meant in several ways:")
        assert all(each.startswith(("- ", "Say all at once: ")) for each in others)


@pytest.mark.parametrize("name", BAD_TEXT)
def test_bad_text_gets_one_sentence(tmp_path, name):
    content, message = BAD_TEXT[name]
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_table(tmp_path / "a.csv")
    check_words(caught.value)


def npy_header(shape, dtype="<f8"):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue()


def test_forged_sizes_are_refused_before_allocating(tmp_path):
    content = npy_header((125_000, 10_000)) + bytes(800)
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", content)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match="claims 10 GB"):
            read_table(tmp_path / name)


def test_a_zip_bomb_is_refused_before_unpacking(tmp_path):
    shape = (10_000, 2_000)
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("X.npy", "w", force_zip64=True) as file,
    ):
        file.write(npy_header(shape))
        for _ in range(160):
            file.write(bytes(1_000_000))
    assert (tmp_path / "a.npz").stat().st_size < 1_000_000
    with pytest.raises(ValueError, match=r"unpacks to 0\.2 GB and the limit is 0\.1"):
        read_table(tmp_path / "a.npz", max_bytes=100_000_000)


def test_pickles_are_refused(tmp_path):
    bomb = np.array([{"a": 1}, None], dtype=object)
    np.save(tmp_path / "a.npy", bomb, allow_pickle=True)
    np.savez(tmp_path / "a.npz", X=bomb)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match="Python objects"):
            read_table(tmp_path / name)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (2, 5), (5, 1)])
def test_arrays_that_are_no_tables(tmp_path, shape):
    np.save(tmp_path / "a.npy", np.zeros(shape))
    with pytest.raises(ValueError, match=r"dimensions|samples in rows|columns of num"):
        read_table(tmp_path / "a.npy")


def check_reads_or_refuses(path):
    try:
        table = read_table(path, max_bytes=10_000_000)
    except ValueError as error:
        check_words(error)
    else:
        assert isinstance(table, Table)
        assert np.isfinite(table.values).all()
        assert table.values.shape == (len(table.sample_names), len(table.feature_names))
    assert path.resolve() not in open_files()


def open_files():
    """Return what this process holds open, where the system tells."""
    held = Path("/proc/self/fd")
    return [each.resolve() for each in held.iterdir()] if held.exists() else []


fuzz = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@fuzz
@given(st.binary(max_size=300))
@pytest.mark.parametrize(
    "ending", ["csv", "npy", "npz", "mat", "gct", "mtx", "xlsx", "csv.gz", "txt.xz"]
)
def test_arbitrary_bytes_are_read_or_refused(tmp_path, ending, content):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(content)
    check_reads_or_refuses(path)


@fuzz
@given(st.text(alphabet='ab01.,;\t"\n-eNA \x00é', max_size=200))
def test_arbitrary_text_is_read_or_refused(tmp_path, content):
    (tmp_path / "a.csv").write_text(content, encoding="utf-8")
    check_reads_or_refuses(tmp_path / "a.csv")


def test_a_heap_of_texts_without_end_is_refused(tmp_path):
    content = bytearray(whole_file(tmp_path, "h5ad"))
    place = content.index(b"GCOL") + 16
    while content[place : place + 2] != b"\0\0":
        size = int.from_bytes(content[place + 8 : place + 16], "little")
        place += 16 + -(-size // 8) * 8
    free = int.from_bytes(content[place + 8 : place + 16], "little")
    for size in (0, free - 48, 2**64 - 16):
        content[place + 8 : place + 16] = size.to_bytes(8, "little")
        (tmp_path / "a.h5ad").write_bytes(content)
        # In a process of its own, because HDF5 cannot be interrupted.
        words = "from mdec.tables import read_table; read_table('a.h5ad')"
        ended = subprocess.run(
            [sys.executable, "-c", words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "'a.h5ad' is damaged or not an .h5ad file" in ended.stderr


@fuzz
@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=6),
    st.integers(0, 400),
)
@pytest.mark.parametrize(
    "ending",
    [
        *("npy", "npz", "mat", "parquet", "feather", "h5ad", "xlsx", "gct", "mtx"),
        "csv.bz2",
    ],
)
def test_damaged_files_are_read_or_refused(tmp_path, ending, changes, cut):
    path = tmp_path / f"a.{ending}"
    whole = whole_file(tmp_path, ending)
    damaged = bytearray(whole[: len(whole) - cut] if cut % 3 == 0 else whole)
    for place, value in changes:
        if damaged:
            damaged[place % len(damaged)] = value
    path.write_bytes(bytes(damaged))
    check_reads_or_refuses(path)


def test_an_archive_that_claims_to_be_encrypted_is_refused(tmp_path):
    content = bytearray(whole_file(tmp_path, "npz"))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.npz").write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"damaged or not an \.npz archive"):
        read_table(tmp_path / "a.npz")


def whole_file(folder, ending):
    path = folder / f"whole.{ending}"
    if not path.exists():
        if ending == "npy":
            np.save(path, VALUES)
        elif ending == "npz":
            np.savez_compressed(path, X=VALUES, y=np.arange(6))
        elif ending == "mat":
            savemat(path, {"X": VALUES, "y": np.arange(6)}, do_compression=True)
        elif ending == "parquet":
            pytest.importorskip("pyarrow")
            pandas = pytest.importorskip("pandas")
            pandas.DataFrame(VALUES, SAMPLES, FEATURES).to_parquet(path)
        elif ending == "feather":
            pytest.importorskip("pyarrow")
            pandas = pytest.importorskip("pandas")
            frame = pandas.DataFrame(VALUES, columns=FEATURES)
            frame.assign(id=SAMPLES).to_feather(path)
        elif ending == "xlsx":
            openpyxl = pytest.importorskip("openpyxl")
            book = openpyxl.Workbook()
            for row in [["", *FEATURES], *rows_of(VALUES, SAMPLES)]:
                book.active.append(row)
            book.save(path)
        elif ending == "gct":
            lines = ["#1.2", "4\t6", "\t".join(["Name", "Description", *SAMPLES])]
            for name, row in zip(FEATURES, VALUES.T.tolist(), strict=True):
                lines.append("\t".join([name, "x", *map(str, row)]))
            path.write_text("\n".join(lines))
        elif ending == "mtx":
            mmwrite(path, VALUES)
        elif ending == "csv.bz2":
            write(folder / "plain.csv", ["id", *FEATURES], rows_of(VALUES, SAMPLES))
            path.write_bytes(bz2.compress((folder / "plain.csv").read_bytes()))
        else:
            h5py = pytest.importorskip("h5py")
            with h5py.File(path, "w") as file:
                file["X"] = VALUES
                for name, index in (("obs", SAMPLES), ("var", FEATURES)):
                    group = file.create_group(name)
                    group.attrs["_index"] = "_index"
                    group["_index"] = index
    return path.read_bytes()


def test_base_clusterings_with_names_words_and_gaps(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("sample,km,ward\na,x,1\nb,x,\nc,y,2\nd,NA,-1\n")
    labels, samples, members = read_base_clusterings(path)
    assert labels.tolist() == [["x", "1"], ["x", None], ["y", "2"], [None, None]]
    assert samples == ["a", "b", "c", "d"]
    assert members == ["km", "ward"]


def test_bare_base_clusterings(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("0,1\n0,1\n1,0\n1,0\n")
    labels, samples, members = read_base_clusterings(path)
    assert labels.shape == (4, 2)
    assert samples == ["1", "2", "3", "4"]
    assert members == ["clustering 1", "clustering 2"]


def test_transforms():
    np.testing.assert_allclose(transform_values(VALUES, "log"), np.log2(VALUES + 1))
    scaled = transform_values(np.column_stack([VALUES, np.ones(6)]), "standardise")
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 1, 1, 0])
    with pytest.raises(ValueError, match="negative"):
        transform_values(-VALUES, "log")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float32"])
def test_every_kind_of_number(tmp_path, dtype):
    values = np.random.default_rng(0).integers(0, 2, size=(12, 5)).astype(dtype)
    np.save(tmp_path / "a.npy", values)
    found = read_table(tmp_path / "a.npy").values
    np.testing.assert_array_equal(found, values.astype(np.float64))
    assert found.dtype == (np.float32 if dtype == "float32" else np.float64)


def test_names_of_another_length_are_refused(tmp_path):
    for kind, n in (("sample_names", 5), ("feature_names", 3)):
        names = {kind: [f"x{i}" for i in range(n)]}
        np.savez(tmp_path / "a.npz", X=VALUES, **names)
        with pytest.raises(ValueError, match=f"names for {n} "):
            read_table(tmp_path / "a.npz")


def test_places_in_an_h5ad_file(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file["X"] = VALUES
        file["layers/counts"] = VALUES**2
        file["obsm/X_pca"] = VALUES[:, :2]
        for name, index in (("obs", SAMPLES), ("var", FEATURES)):
            group = file.create_group(name)
            group.attrs["_index"] = "_index"
            group["_index"] = index
        cells = file["obs"].create_group("cell")
        cells["categories"] = ["B", "T"]
        cells["codes"] = np.array([0, -1, 1, 1, 0, -1], dtype=np.int8)
        file["obs/again"] = ["c"] * len(SAMPLES)
    path = tmp_path / "a.h5ad"
    for name in ("counts", "layers/counts"):
        np.testing.assert_array_equal(read_table(path, variable=name).values, VALUES**2)
    pca = read_table(path, variable="obsm/X_pca")
    assert pca.feature_names == ["X_pca 1", "X_pca 2"]
    np.testing.assert_array_equal(pca.values, VALUES[:, :2])
    assert read_table(path, label_column="cell").labels.tolist() == [
        *("B", "", "T", "T", "B", "")
    ]
    with h5py.File(path, "a") as file:
        file["obs"].attrs["_index"] = "again"
    found = read_table(path)
    assert found.sample_names == ["1", "2", "3", "4", "5", "6"]
    assert "names of samples repeat ('c', 'c', ...)" in found.reading["notes"][0]
    with h5py.File(path, "a") as file:
        file["obs"].attrs["_index"] = "_index"
    listed = "it has 'obsm/X_pca', 'X', 'layers/counts'"
    with pytest.raises(ValueError, match=listed):
        read_table(path, variable="obsm/X_pcs")
    with pytest.raises(ValueError, match="no column of obs 'cll'; it has 'cell'"):
        read_table(path, label_column="cll")


def test_wrong_names_are_answered_by_what_exists(tmp_path):
    np.savez(tmp_path / "a.npz", X=VALUES, y=np.arange(6) % 2)
    with pytest.raises(ValueError, match="no array 'Z'; it has 'X', 'y'"):
        read_table(tmp_path / "a.npz", variable="Z")
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "notes"
    page = book.create_sheet("data")
    for row in [["", *FEATURES], *rows_of(VALUES, SAMPLES)]:
        page.append(row)
    book.save(tmp_path / "a.xlsx")
    found = read_table(tmp_path / "a.xlsx", variable="data")
    np.testing.assert_array_equal(found.values, VALUES)
    with pytest.raises(ValueError, match="no sheet 'dat'; it has 'data', 'notes'"):
        read_table(tmp_path / "a.xlsx", variable="dat")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n5,7\n")
    with pytest.raises(ValueError, match="holds one table only"):
        read_table(tmp_path / "a.csv", variable="X")


def test_annotations_beside_genes_in_rows_are_named(tmp_path):
    rows = [[row[0], "a gene", *row[1:]] for row in rows_of(VALUES.T, FEATURES)]
    path = write(tmp_path / "a.csv", ["gene", "about", *SAMPLES], rows)
    with pytest.raises(ValueError, match=r"drop=\['about'\]"):
        read_table(path, transpose=True)
    table = read_table(path, transpose=True, drop=["about", "MYC"])
    np.testing.assert_array_equal(table.values, VALUES[:, [0, 1, 3]])
    assert table.sample_names == SAMPLES


def test_columns_that_are_no_features_are_kept(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"s{i},{i * 0.7},{i * i * 0.3},site {i % 2},{i % 3}" for i in range(9)]
    path.write_text("\n".join(["id,a,b,site,dose", *rows]))
    table = read_table(path, drop=["site", "dose"])
    assert table.feature_names == ["a", "b"]
    assert list(table.columns) == ["site", "dose"]
    assert table.columns["site"] == [f"site {i % 2}" for i in range(9)]
    assert table.columns["dose"] == [str(i % 3) for i in range(9)]
    wide = tmp_path / "wide.csv"
    head = ",".join(f"g{j}" for j in range(50))
    rows = [",".join(str(i + 0.1 * j * j) for j in range(50)) for i in range(5)]
    wide.write_text("\n".join([head, *rows]))
    kept = read_table(wide, features=["g0", "g1"]).columns
    assert list(kept) == [f"g{j}" for j in range(2, 14)]


def test_columns_of_obs_are_kept(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file["X"] = np.arange(12.0).reshape(4, 3) ** 1.5
        for name, size in (("obs", 4), ("var", 3)):
            group = file.create_group(name)
            group.attrs["_index"] = "_index"
            group["_index"] = [f"{name} {i}".encode() for i in range(size)]
        file["obs/age"] = [30.5, 40.0, np.nan, 50.0]
        file["obs/short"] = [1, 2]
        file["obs/cell/codes"] = np.array([0, 1, -1, 0], dtype=np.int8)
        file["obs/cell/categories"] = [b"B", b"T"]
    columns = read_table(tmp_path / "a.h5ad").columns
    assert columns == {"age": ["30.5", "40", "", "50"], "cell": ["B", "T", "", "B"]}
    chosen = read_table(tmp_path / "a.h5ad", label_column="cell")
    assert list(chosen.columns) == ["age"]


def test_columns_that_a_model_does_not_know_are_dropped_by_name(tmp_path):
    text = "cell,extra,b,a,more\nx,9,2,1,8\ny,9.5,4,3,7\nz,9,6,5,8\n"
    path = tmp_path / "new.csv"
    path.write_text(text)
    table = read_table(path, known_features=["a", "b"])
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4], [5, 6]])
    assert list(table.sample_names) == ["x", "y", "z"]
    assert set(table.columns) == {"extra", "more"}


def test_a_marked_header_over_one_row(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("# made by hand\n#a,b,c\n1,2.5,3\n")
    table = read_table(path, least_samples=1)
    assert list(table.feature_names) == ["a", "b", "c"]
    np.testing.assert_array_equal(table.values, [[1.0, 2.5, 3.0]])


def workbook(path, **sheets):
    book = pytest.importorskip("openpyxl").Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        page = book.create_sheet(title)
        for row in rows:
            page.append(row)
    book.save(path)
    return path


def test_the_sheet_with_the_table_is_found_beside_notes(tmp_path):
    table = [["", *FEATURES], *rows_of(VALUES, SAMPLES)]
    notes = [["Measured in May"], ["by", "hand", 2024]]
    path = workbook(tmp_path / "a.xlsx", About=notes, Data=table, Empty=[])
    found = read_table(path)
    np.testing.assert_array_equal(found.values, VALUES)
    note = "the file has the sheets 'About', 'Data', 'Empty', and 'Data' is read"
    assert found.reading["notes"] == [note]
    alone = read_table(workbook(tmp_path / "b.xlsx", Data=table))
    assert alone.reading["notes"] == []


def test_of_several_tables_in_a_workbook_one_is_asked_for(tmp_path):
    table = [["", *FEATURES], *rows_of(VALUES, SAMPLES)]
    twice = [["", *FEATURES], *rows_of(2.0 * VALUES, SAMPLES)]
    path = workbook(tmp_path / "a.xlsx", May=table, June=twice, Notes=[["none"]])
    with pytest.raises(
        ValueError, match="2 of the sheets 'May', 'June', 'Notes' hold"
    ) as error:
        read_table(path)
    assert error.value.cure == {"variable": "May"}
    np.testing.assert_array_equal(read_table(path, **error.value.cure).values, VALUES)
    found = read_table(path, variable="June").values
    np.testing.assert_array_equal(found, 2.0 * VALUES)


def test_a_title_above_the_table_of_a_sheet_is_left_out(tmp_path):
    table = [["", *FEATURES], *rows_of(VALUES, SAMPLES)]
    rows = [["Table 1"], ["all values in mg"], [], *table]
    found = read_table(workbook(tmp_path / "a.xlsx", Data=rows))
    np.testing.assert_array_equal(found.values, VALUES)
    note = "what stands above the table is left out ('Table 1')"
    assert found.reading["notes"] == [note]
