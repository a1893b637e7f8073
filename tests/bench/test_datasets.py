"""Registry, loaders and downloads; the network is a server on this machine."""

from __future__ import annotations

import csv
import hashlib
import http.server
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from mdec.bench import datasets
from mdec.bench.datasets import FORMATS, SourceFile, compact, mat
from mdec.datasets import (
    Dataset,
    data_dir,
    dataset_info,
    fetch_dataset,
    list_datasets,
    load_dataset,
)

PREPARED = (1, 2, 3, 5, 6, 8, 10, 11, 13, 14, 16, 17, 20, 22, 23, 24, 26, 30)
RAW_ALONE = (4, 7, 9, 12, 15, 18, 19, 21, 25, 28)

GENES = (
    '\t"s1"\t"s2"\t"s3"\n\t"late"\t"early"\t"late"\ng1\t1\t2.5\t-3\ng2\t10\t20\t3E-2\n'
)


def test_thirty_datasets_with_sources_and_citations() -> None:
    infos = list_datasets()
    assert [info.id for info in infos] == [f"DS-{i}" for i in range(1, 31)]
    assert all(info.citation and info.source for info in infos)
    assert all(bool(info.files) != bool(info.manual) for info in infos)
    assert {info.id for info in infos if info.manual} == {
        "DS-25",
        "DS-27",
        "DS-28",
        "DS-29",
    }
    assert len(list_datasets("gene expression")) == 18


def test_registry_agrees_with_the_paper_and_the_pinned_sources(shared: Path) -> None:
    with (shared / "paper" / "datasets.csv").open() as file:
        for row in csv.DictReader(file):
            info = dataset_info(row["dataset"])
            assert info.name == row["name"]
            assert (info.n_samples, info.n_classes) == (
                int(row["samples"]),
                int(row["classes"]),
            )
            if info.id not in ("DS-5", "DS-6"):
                assert info.n_features == int(row["dimension"])
    with (shared / "datasets" / "sources.csv").open() as file:
        expected = [
            (
                row["dataset"],
                f"https://raw.githubusercontent.com/{row['github_repo']}/"
                f"{row['commit']}/{row['path']}",
                int(row["bytes"]),
                row["sha256"],
            )
            for row in csv.DictReader(file)
        ]
    found = [
        (info.id, f.url(), f.size, f.sha256)
        for info in list_datasets()
        for f in info.files
    ]
    assert found == expected


@pytest.mark.parametrize("number", PREPARED)
def test_loaders_equal_the_prepared_files(shared: Path, number: int) -> None:
    (path,) = (shared / "datasets" / "prepared").glob(f"DS-{number:02d}_*.npz")
    raw = shared / "datasets" / "raw"
    dataset = load_dataset(f"DS-{number}", folder=raw, download=False)
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(dataset.data, archive["X"])
        np.testing.assert_array_equal(dataset.target, archive["y"])
        assert dataset.data.dtype == archive["X"].dtype
    assert len(dataset.target_names) == dataset_info(dataset.name).n_classes
    _assert_as_registered(dataset)


def _assert_as_registered(dataset: Dataset) -> None:
    info = dataset_info(dataset.name)
    digests = [
        hashlib.sha256(values.tobytes()).hexdigest()
        for values in (dataset.data, dataset.target)
        if values is not None
    ]
    assert digests == [info.data_sha256, info.classes_sha256]


@pytest.fixture(scope="module")
def unpacked(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Raw files of the datasets that lie nowhere as arrays."""
    archive = shared / "datasets" / "raw-more.tar.xz"
    if not archive.exists():
        pytest.skip(f"needs {archive}")
    folder = tmp_path_factory.mktemp("raw")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("number", RAW_ALONE)
def test_loaders_give_the_registered_values(unpacked: Path, number: int) -> None:
    dataset = load_dataset(f"DS-{number}", folder=unpacked, download=False)
    assert len(dataset.target_names) == dataset_info(dataset.name).n_classes
    _assert_as_registered(dataset)


def test_checksums_of_all_that_could_be_had() -> None:
    lacking = {info.id for info in list_datasets() if not info.data_sha256}
    assert lacking == {"DS-27", "DS-29"}
    assert lacking == {info.id for info in list_datasets() if not info.classes_sha256}


def test_names_are_found_however_they_are_spelt() -> None:
    for name in ("DS-22", "ds22", "Binary Alphadigits", "binary-alphadigits"):
        assert dataset_info(name).id == "DS-22"
    with pytest.raises(ValueError, match="mdec datasets list"):
        dataset_info("DS-31")
    with pytest.raises(ValueError, match="the kinds are"):
        list_datasets("sound")


def _cells() -> dict[str, Any]:
    """Return four genes of three cells, as the sets of single cells store them."""
    counts = sparse.csr_array([[0, 300, 0, 1], [0, 0, 0, 0], [7, 0, 0, 2]])
    parts = {name: getattr(counts, name) for name in ("data", "indices", "indptr")}
    return parts | {"shape": counts.shape, "y": np.array([1, 0, 1])}


def test_cells_are_found_below_the_folder(tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    np.savez(tmp_path / "cells" / "yan.npz", **_cells())
    (path,) = fetch_dataset("yan", folder=tmp_path)
    X, labels = FORMATS["sparse_cells"]([path])
    assert X.tolist() == [[0, 300, 0, 1], [0, 0, 0, 0], [7, 0, 0, 2]]
    assert labels.tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="yan should be 90 x 19595"):
        load_dataset("yan", folder=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"put mecs\.npz with .* into .*mecs"):
        load_dataset("mecs", folder=tmp_path)
    known = list_datasets("single cells")
    assert len(known) == 13
    assert all(info.manual and info.data_sha256 for info in known)


def test_data_dir_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MDEC_DATA", str(tmp_path))
    assert data_dir() == tmp_path
    assert data_dir("elsewhere") == Path("elsewhere")
    monkeypatch.delenv("MDEC_DATA")
    assert data_dir().name == "mdec"


@pytest.mark.parametrize("name", ["digits", "wine", "breast-cancer", "gaussians"])
def test_built_in_datasets_are_as_announced(name: str) -> None:
    dataset, info = load_dataset(name), dataset_info(name)
    assert dataset.data.shape == (info.n_samples, info.n_features)
    assert dataset.target is not None
    assert np.unique(dataset.target).size == info.n_classes


def test_gene_tables_with_one_and_two_headers(tmp_path: Path) -> None:
    two = tmp_path / "two.txt"
    two.write_text(GENES)
    one = tmp_path / "one.txt"
    one.write_text(GENES.split("\n", 1)[1])
    for path in (two, one):
        X, labels = FORMATS["gene_table"]([path])
        np.testing.assert_array_equal(X, np.float32([[1, 10], [2.5, 20], [-3, 0.03]]))
        assert labels.tolist() == ["late", "early", "late"]


def test_images_and_digit_files(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for folder, level in (("1b", 9), ("1a", 3)):
        (tmp_path / folder).mkdir()
        grey = np.full((4, 2), level, dtype=np.uint8)
        grey[3, 0] = 255
        image.fromarray(grey).save(tmp_path / folder / "x.pgm")
    X, labels = FORMATS["pgm_folders"](sorted(tmp_path.rglob("*.pgm")))
    assert X[:, :5].tolist() == [[3, 3, 3, 255, 3], [9, 9, 9, 255, 9]]
    assert labels.tolist() == ["1a", "1b"]
    csv_file = tmp_path / "mnist.csv"
    csv_file.write_text("0,255,7\n3,4,2\n")
    X, labels = FORMATS["csv_label_last"]([csv_file])
    assert (X.dtype, X.tolist(), labels.tolist()) == (
        np.uint8,
        [[0, 255], [3, 4]],
        [7, 2],
    )


def test_labels_stand_where_the_format_says(tmp_path: Path) -> None:
    path = tmp_path / "x.mat"
    values = np.array([[3.0, 10.0, 0.5], [1.0, 20.0, 1.5], [3.0, 30.0, 2.5]])
    scipy.io.savemat(path, {"table": values})
    X, labels = FORMATS["mat_label_first"]([path])
    np.testing.assert_array_equal(X, values[:, 1:])
    assert labels.tolist() == [3, 1, 3]
    path = tmp_path / "x.csv"
    rows = np.column_stack([values[:, 1:], np.eye(10)[[7, 0, 7]]])
    np.savetxt(path, rows, delimiter=",")
    X, labels = FORMATS["one_hot_csv"]([path])
    np.testing.assert_array_equal(X, values[:, 1:])
    assert labels.tolist() == [7, 0, 7]


def test_gisette_parts_are_stacked(tmp_path: Path) -> None:
    contents = ("1 2\n3 999\n", "1\n-1\n", "5 6\n", "1\n")
    paths = []
    for index, text in enumerate(contents):
        paths.append(tmp_path / str(index))
        paths[-1].write_text(text)
    X, labels = FORMATS["gisette"](paths)
    assert X.tolist() == [[1, 2], [3, 999], [5, 6]]
    assert labels.tolist() == [1, -1, 1]


def test_compact_keeps_every_value() -> None:
    for values in ([0.0, 255.0], [0.5, 1.0], [-1.0, 3.0], [0.0, 256.0]):
        X = np.array([values])
        np.testing.assert_array_equal(compact(X), X)
    assert compact(np.array([[0.0, 255.0]])).dtype == np.uint8


def test_files_of_your_own(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    from scipy.io import savemat

    X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    names = np.array(["b", "a", "b"])
    frame = pandas.DataFrame({"u": X[:, 0], "v": X[:, 1], "label": names})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    np.savez(tmp_path / "a.npz", X=X, y=names)
    savemat(tmp_path / "a.mat", {"X": X, "Y": np.array([[5], [2], [5]])})
    for suffix, target in (("csv", "label"), ("parquet", "label"), ("npz", None)):
        dataset = load_dataset(tmp_path / f"a.{suffix}", target=target)
        np.testing.assert_array_equal(dataset.data, X)
        assert dataset.target is not None
        assert dataset.target.tolist() == [0, 1, 0]
        assert dataset.target_names == ("b", "a")
    dataset = load_dataset(tmp_path / "a.mat")
    assert dataset.target is not None
    assert dataset.target.tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match=r"no column .species.; .*label"):
        load_dataset(tmp_path / "a.csv", target="species")
    with pytest.raises(ValueError, match=r"column .label. .*a, b.* holds categories"):
        load_dataset(tmp_path / "a.csv", target="u")
    with pytest.raises(ValueError, match="check its name"):
        load_dataset(tmp_path / "b.csv")


def test_anndata_files(tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata")
    pandas = pytest.importorskip("pandas")
    obs = pandas.DataFrame({"cell_type": ["B", "T", "B"]}, index=list("xyz"))
    content = anndata.AnnData(np.eye(3, 2, dtype=np.float32), obs=obs)
    content.write_h5ad(tmp_path / "a.h5ad")
    dataset = load_dataset(tmp_path / "a.h5ad", target="cell_type")
    assert dataset.data.tolist() == np.eye(3, 2).tolist()
    assert dataset.target_names == ("B", "T")


def test_a_missing_manual_file_says_what_goes_where(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"575 PGM faces .* into .*DS-25\."):
        load_dataset("DS-25", folder=tmp_path)


def test_offline_names_the_file_and_the_cure(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"data_MF.mat .* MDEC_DATA"):
        load_dataset("DS-26", folder=tmp_path, download=False)


class _Server:
    """Serves one file, whole or spoilt, and counts how often it was asked."""

    def __init__(self) -> None:
        self.answer: Callable[[http.server.BaseHTTPRequestHandler], None]
        self.n_requests = 0
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.n_requests += 1
                server.answer(self)

            def log_message(self, *_: Any) -> None:
                """Keep the test's output clean."""

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def send(self, body: bytes, announced: int | None = None, code: int = 200) -> None:
        def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
            handler.send_response(code)
            handler.send_header("Content-Length", str(announced or len(body)))
            handler.end_headers()
            handler.wfile.write(body)

        self.answer = answer

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[_Server]:
    running = _Server()
    yield running
    running.close()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Pin DS-3 to a file of a few bytes."""
    pytest.importorskip("pooch")
    body = GENES.encode()
    digest = hashlib.sha256(body).hexdigest()
    file = SourceFile("o/n", "c", "d/genes.txt", len(body), digest)
    known = dataset_info("DS-3")
    shape = {"n_samples": 3, "n_features": 2, "n_classes": 2}
    info = replace(known, name="Small", files=(file,), **shape)
    monkeypatch.setattr(datasets, "all_datasets", lambda: {"DS-3": info})
    return body


def test_download_then_cache(server: _Server, small: bytes, tmp_path: Path) -> None:
    server.send(small)
    for _ in range(2):
        (path,) = fetch_dataset("DS-3", folder=tmp_path, base_url=server.url)
    assert path == tmp_path / "DS-3" / "genes.txt"
    assert path.read_bytes() == small
    assert server.n_requests == 1
    dataset = load_dataset("DS-3", folder=tmp_path, download=False)
    assert dataset.target_names == ("late", "early")


def test_a_damaged_copy_is_downloaded_again(
    server: _Server, small: bytes, tmp_path: Path
) -> None:
    (tmp_path / "DS-3").mkdir()
    (tmp_path / "DS-3" / "genes.txt").write_bytes(small[:-1] + b"!")
    server.send(small)
    (path,) = fetch_dataset("DS-3", folder=tmp_path, base_url=server.url)
    assert path.read_bytes() == small


def test_wrong_checksum(server: _Server, small: bytes, tmp_path: Path) -> None:
    server.send(small[:-1] + b"!")
    with pytest.raises(ValueError, match=r"sha256 .* nothing was kept; try again"):
        fetch_dataset("DS-3", folder=tmp_path, base_url=server.url)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_truncated_file(server: _Server, small: bytes, tmp_path: Path) -> None:
    server.send(small[:10], announced=len(small))
    with pytest.raises((ConnectionError, ValueError), match="nothing was kept"):
        fetch_dataset("DS-3", folder=tmp_path, base_url=server.url)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("small")
def test_the_servers_refusal_is_named(server: _Server, tmp_path: Path) -> None:
    server.send(b"gone", code=404)
    with pytest.raises(ConnectionError, match="the server answered 404"):
        fetch_dataset("DS-3", folder=tmp_path, base_url=server.url)


@pytest.mark.usefixtures("small")
def test_no_network(server: _Server, tmp_path: Path) -> None:
    server.close()
    with pytest.raises(ConnectionError, match="check the network and try again"):
        fetch_dataset("DS-3", folder=tmp_path, base_url=server.url)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_files_of_matlab_7_3_are_named(tmp_path: Path) -> None:
    path = tmp_path / "new.mat"
    text = b"MATLAB 7.3 MAT-file".ljust(124)
    path.write_bytes(text + b"\x00\x02IM" + bytes(400))
    with pytest.raises(ValueError, match=r"new\.mat.* not a MATLAB file before .*7\.3"):
        mat([path])
