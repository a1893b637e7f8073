"""Hostile files: one limit for all of them, no way out of the file, no formulas."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import struct
import sys
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from mdec import Ensemble
from mdec.clustering import Settings, cluster_ensemble
from mdec.tables.budget import display_name
from mdec.tables.hdf5 import write_h5ad
from mdec.tables.reading import read_table
from mdec.tables.text import escape_formula, unescape_formula

LIMIT = 2_000_000


def zipped(content):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", content)
    return out.getvalue()


def refused(path, match=r"unpacks to .* limit is 0\.0 GB; raise it with max_bytes="):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=match) as caught:
            read_table(path, max_bytes=LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    held = Path("/proc/self/fd")  # where the system tells what is open
    still_open = [each.resolve() for each in held.iterdir()] if held.exists() else []
    assert path.resolve() not in still_open
    assert "\n" not in str(caught.value)
    assert peak < 12 * LIMIT


PACKED = {
    "csv": bytes,
    "csv.gz": gzip.compress,
    "csv.bz2": bz2.compress,
    "csv.xz": lzma.compress,
    "csv.zip": zipped,
    "gct.gz": gzip.compress,
    "mtx.gz": gzip.compress,
}


@pytest.mark.parametrize("ending", PACKED)
def test_text_that_unpacks_to_too_much(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(PACKED[ending](b"1,2,3\n" * 1_000_000))
    refused(path)


def test_a_matrix_market_header_that_claims_too_much(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text(
        "%%MatrixMarket matrix coordinate real general\n100000 100000 1\n1 1 1.0\n"
    )
    refused(path)


def test_a_sparse_archive_that_claims_too_much(tmp_path):
    path = tmp_path / "a.npz"
    sparse.save_npz(path, sparse.csr_array((100_000, 100_000)))
    refused(path)


def test_a_matlab_file_whose_elements_unpack_to_more_than_they_claim(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"X": np.zeros((3, 3))})
    bomb = zlib.compress(bytes(50_000_000))
    with path.open("ab") as file:
        file.write(struct.pack("<II", 15, len(bomb)) + bomb)
    refused(path)
    savemat(path, {"X": np.zeros((3000, 3000))}, do_compression=True)
    refused(path)


def test_a_workbook_that_unpacks_to_too_much(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * 50_000_000)
    refused(path)


def test_parquet_metadata_that_claim_too_much(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    pandas.DataFrame(np.zeros((200_000, 3)), columns=list("abc")).to_parquet(path)
    refused(path)


@pytest.fixture
def hdf5(tmp_path):
    """Return an .h5ad file to be changed, and its path."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5ad"

    class Whole:
        def __enter__(self):
            self.file = h5py.File(path, "w")
            self.file["X"] = np.arange(24.0).reshape(6, 4) ** 2
            for name, n in (("obs", 6), ("var", 4)):
                group = self.file.create_group(name)
                group.attrs["_index"] = "_index"
                group["_index"] = [f"{name}{i}" for i in range(n)]
            return self.file

        def __exit__(self, *_):
            self.file.close()

    return Whole(), path


def test_the_unchanged_file_is_read(hdf5):
    whole, path = hdf5
    with whole:
        pass
    assert read_table(path, max_bytes=LIMIT).values.shape == (6, 4)


@pytest.mark.parametrize("kind", ["fixed", "texts", "one long text", "chunk"])
def test_an_index_that_is_too_large(hdf5, kind):
    import h5py

    whole, path = hdf5
    with whole as file:
        del file["obs/_index"]
        if kind == "fixed":
            file["obs"].create_dataset("_index", (10**9,), "S100", compression="gzip")
        elif kind == "texts":
            file["obs"].create_dataset("_index", (10**9,), h5py.string_dtype())
        elif kind == "chunk":
            file["obs"].create_dataset(
                "_index", (6,), "S100", chunks=(10**7,), maxshape=(None,)
            )
        else:
            names = file["obs"].create_dataset("_index", (6,), h5py.string_dtype())
            names[...] = ["x" * 1_000_000] * 6
    refused(path)


def test_a_sparse_matrix_that_is_too_large(hdf5):
    whole, path = hdf5
    for n_data, shape in ((2 * 10**9, (6, 4)), (10, (10**6, 10**6))):
        with whole as file:
            del file["X"]
            group = file.create_group("X")
            group.attrs["shape"] = shape
            group.attrs["encoding-type"] = "csr_matrix"
            for name, length in (("data", n_data), ("indices", n_data), ("indptr", 7)):
                group.create_dataset(name, (length,), "i4", chunks=True)
        refused(path)


def outside_link(file, secret):
    import h5py

    del file["X"]
    file["X"] = h5py.ExternalLink(str(secret.with_suffix(".h5")), "X")


def outside_group(file, secret):
    import h5py

    del file["var"]
    file["var"] = h5py.ExternalLink(str(secret.with_suffix(".h5")), "/")


def outside_storage(file, secret):
    del file["X"]
    file.create_dataset("X", (6, 4), "u1", external=[(str(secret), 0, 24)])


def outside_virtual(file, secret):
    import h5py

    del file["X"]
    layout = h5py.VirtualLayout((6, 4), "f8")
    layout[:] = h5py.VirtualSource(str(secret.with_suffix(".h5")), "X", (6, 4))
    file.create_virtual_dataset("X", layout)


def soft(file, secret):
    import h5py

    del file["X"]
    file["elsewhere"] = h5py.ExternalLink(str(secret.with_suffix(".h5")), "X")
    file["X"] = h5py.SoftLink("/elsewhere")


WAYS = [outside_link, outside_group, outside_storage, outside_virtual, soft]


def write_outside(tmp_path, hdf5, way):
    """Write an .h5ad file with a part in another file."""
    import h5py

    whole, path = hdf5
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(100)))
    with h5py.File(secret.with_suffix(".h5"), "w") as other:
        other["X"] = np.random.default_rng(0).normal(size=(6, 4))
        other.attrs["_index"] = "_index"
        other["_index"] = list("abcd")
    with whole as file:
        way(file, secret)
    return path


@pytest.mark.parametrize("way", WAYS)
def test_nothing_outside_an_hdf5_file_is_read(tmp_path, hdf5, way):
    path = write_outside(tmp_path, hdf5, way)
    refused(path, "outside itself, by a link or as external or virtual data")


class Anndata:
    """Stands in for the package: it would read all of a file, and write a copy."""

    def __init__(self):
        self.obs, self.obsm, self.uns = {}, {}, {}

    @classmethod
    def read_h5ad(cls, path):
        assert path.is_file()
        return cls()

    def write_h5ad(self, path):
        Path(path).write_text("copy")


def copy(path, monkeypatch, **options):
    monkeypatch.setitem(sys.modules, "anndata", Anndata)
    clustering = cluster_ensemble(
        Ensemble.from_labels(np.repeat([0, 1], 3)[:, None]), Settings(2)
    )
    target = path.with_name("copy.h5ad")
    try:
        with write_h5ad(path, target, clustering, {"params": {}}, **options):
            pass
    finally:
        assert {each.name for each in path.parent.glob(".mdec*")} == set()
    return target


def test_a_whole_file_is_copied(hdf5, monkeypatch):
    h5py = pytest.importorskip("h5py")
    pytest.importorskip("pandas")
    whole, path = hdf5
    with whole as file:
        file["uns/words"] = ["a", "b"]
        file["uns/scalar"] = "word"
        kinds = [("name", h5py.string_dtype()), ("score", "f8")]
        file["uns/records"] = np.array([("a", 1.0), ("b", 2.0)], dtype=kinds)
    assert copy(path, monkeypatch, max_bytes=LIMIT).read_text() == "copy"


@pytest.mark.parametrize("way", WAYS)
def test_nothing_outside_an_hdf5_file_is_copied(tmp_path, hdf5, way, monkeypatch):
    path = write_outside(tmp_path, hdf5, way)
    with pytest.raises(ValueError, match="outside itself"):
        copy(path, monkeypatch)
    assert not (tmp_path / "copy.h5ad").exists()


@pytest.mark.parametrize("kind", ["numbers", "texts", "records", "groups"])
def test_a_copy_that_would_be_too_large(hdf5, kind, monkeypatch):
    """In parts that clustering does not need, too."""
    h5py = pytest.importorskip("h5py")
    whole, path = hdf5
    with whole as file:
        if kind == "numbers":
            file.create_dataset("uns/x", (10**9,), "f8", compression="gzip")
        elif kind == "groups":
            file["uns/a"] = file.create_group("uns/b")
            file["uns/a/up"] = file["uns"]
        else:
            dtype = h5py.string_dtype()
            dtype = dtype if kind == "texts" else [("name", dtype), ("score", "f8")]
            texts = file.create_dataset("uns/x", (6,), dtype)
            word = "x" * 1_000_000
            texts[...] = (
                [word] * 6 if kind == "texts" else np.array([(word, 1.0)] * 6, dtype)
            )
    with pytest.raises(ValueError, match=r"unpacks to .* limit is|is damaged or not"):
        copy(path, monkeypatch, max_bytes=LIMIT)
    assert not path.with_name("copy.h5ad").exists()


NAMES = [
    '=HYPERLINK("http://x","y")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "'=1",
    "''=1",
]
NAMES += ["\uff1d1", "-5", "s1", "'quoted'", "a=b", "O'Neil", "", "=", "-"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_shown_as_text_and_read_back(name):
    shown = escape_formula(name)
    assert unescape_formula(shown) == name
    assert shown[:1] not in set("=+@\t\r\n\uff1d")
    assert shown[:1] != "-" or name in ("-5", "-")


def test_formulas_in_names_survive_a_table(tmp_path):
    names = ['=HYPERLINK("http://x","y")', "+a", "'=b", "s"]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["sample", "a", "b"])
        rows.writerows(
            [[escape_formula(n), i + 0.5, i**2] for i, n in enumerate(names)]
        )
    assert read_table(tmp_path / "a.csv").sample_names == names


@pytest.mark.parametrize("kind", [0, 8, 200])
def test_a_matlab_file_of_an_unknown_type(tmp_path, kind):
    path = tmp_path / "a.mat"
    values = np.arange(12.0).reshape(4, 3) ** 2
    savemat(path, {"X": values})
    np.testing.assert_array_equal(read_table(path).values, values)
    content = bytearray(path.read_bytes())
    tag = struct.pack("<II", 9, values.nbytes)
    place = content.index(tag)
    content[place : place + 4] = struct.pack("<I", kind)
    path.write_bytes(bytes(content))
    refused(path, "damaged or not a MATLAB file")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("name", ["y", "sample_names", "X"])
def test_text_that_is_no_text(tmp_path, name, order):
    words = np.array([f"s{i}" for i in range(5)], dtype=f"{order}U3")
    arrays = {"X": np.arange(20.0).reshape(5, 4), name: words}
    np.savez(tmp_path / "whole.npz", **arrays)
    words.view(f"{order}u4")[4] = 0x110005
    np.savez(tmp_path / "a.npz", **arrays)
    if name != "X":
        assert len(read_table(tmp_path / "whole.npz").values) == 5
    with pytest.raises(ValueError, match=r"damaged or not an \.npz archive"):
        read_table(tmp_path / "a.npz")


def test_a_sparse_matlab_matrix_with_indices_outside_of_it(tmp_path):
    savemat(tmp_path / "a.mat", {"X": sparse.csc_array(np.eye(6)[::-1, :4])})
    read_table(tmp_path / "a.mat")
    content = (tmp_path / "a.mat").read_bytes()
    rows, wrong = (np.array([5, 4, 3, n], dtype="<i4").tobytes() for n in (2, 10**6))
    assert content.count(rows) == 1
    (tmp_path / "a.mat").write_bytes(content.replace(rows, wrong))
    with pytest.raises(ValueError, match="damaged or not a MATLAB file"):
        read_table(tmp_path / "a.mat")


def test_sentences_name_the_file_or_standard_input():
    assert display_name(Path("folder") / "a.csv") == "a.csv"
    assert display_name(Path("-")) == "standard input"


def test_a_nullable_column_of_an_h5ad_file(tmp_path):
    """Missing where the mask says so, whatever value stands there."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        file["X"] = np.random.default_rng(0).normal(size=(4, 3))
        for holder, names in (("obs", "abcd"), ("var", "uvw")):
            group = file.create_group(holder)
            group.attrs["_index"] = "_index"
            group["_index"] = list(names)
        file["obs/age/values"] = [30, 40, 50, 60]
        file["obs/age/mask"] = [False, True, False, False]
    table = read_table(tmp_path / "a.h5ad", label_column="age")
    assert [str(label) for label in table.labels] == ["30", "", "50", "60"]
