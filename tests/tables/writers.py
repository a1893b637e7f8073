"""Thirty-odd ways to write the same table; each gives a path and what to say of it."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import zipfile

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite, savemat


def text(
    table,
    separator=",",
    *,
    header=True,
    index=True,
    classes=True,
    corner="id",
    decimal=".",
    quoting=csv.QUOTE_MINIMAL,
    end="\n",
):
    """Return the table as text; short of its corner if that is None."""
    X, y, samples, features = table
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=separator, quoting=quoting, lineterminator=end)
    if header:
        names = [] if corner is None or not index else [corner]
        writer.writerow([*names, *features, *(["class"] if classes else [])])
    for i, row in enumerate(X.tolist()):
        cells = [repr(value).replace(".", decimal) for value in row]
        last = [y[i]] if classes else []
        writer.writerow([*([samples[i]] if index else []), *cells, *last])
    return out.getvalue()


def turned(table, separator="\t"):
    """Return the table as text with features in rows and classes in the first."""
    X, y, samples, features = table
    lines = [separator.join(["gene", *samples]), separator.join(["class", *y])]
    for name, column in zip(features, X.T.tolist(), strict=True):
        lines.append(separator.join([name, *map(repr, column)]))
    return "\n".join(lines) + "\n"


KNOWN = {"label_column": "class"}


def plain(name, **options):
    def write(folder, table):
        path = folder / name
        path.write_bytes(text(table, **options).encode())
        said = KNOWN if options.get("classes", True) else {}
        return path, dict(said)

    return write


def packed(name, pack):
    def write(folder, table):
        path = folder / name
        path.write_bytes(pack(text(table).encode()))
        return path, dict(KNOWN)

    return write


def zipped(content):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside.csv", content)
    return out.getvalue()


def changed(name, change, **options):
    def write(folder, table):
        path = folder / name
        path.write_bytes(change(text(table, **options)).encode())
        return path, dict(KNOWN)

    return write


def headless(folder, table):
    path = folder / "headless.csv"
    path.write_text(text(table, header=False))
    return path, {"label_column": str(table[0].shape[1] + 2)}


def genes_in_rows(folder, table):
    path = folder / "genes.tsv"
    path.write_text(turned(table))
    return path, {**KNOWN, "transpose": True}


def frame(table, *, index):
    pandas = pytest.importorskip("pandas")
    X, y, samples, features = table
    made = pandas.DataFrame(X, index=samples, columns=features)
    made["class"] = y
    return made if index else made.reset_index(names="barcode")


def parquet(folder, table):
    pytest.importorskip("pyarrow")
    frame(table, index=True).to_parquet(folder / "a.parquet")
    return folder / "a.parquet", dict(KNOWN)


def parquet_ids(folder, table):
    pytest.importorskip("pyarrow")
    frame(table, index=False).to_parquet(folder / "b.parquet")
    return folder / "b.parquet", dict(KNOWN)


def feather(folder, table):
    pytest.importorskip("pyarrow")
    frame(table, index=False).to_feather(folder / "a.feather")
    return folder / "a.feather", dict(KNOWN)


def arrow_stream(folder, table):
    pyarrow = pytest.importorskip("pyarrow")
    whole = pyarrow.Table.from_pandas(frame(table, index=True))
    with (
        (folder / "a.arrow").open("wb") as sink,
        pyarrow.ipc.new_stream(sink, whole.schema) as writer,
    ):
        writer.write_table(whole, max_chunksize=7)
    return folder / "a.arrow", dict(KNOWN)


def pandas_csv(folder, table):
    frame(table, index=True).to_csv(folder / "pandas.csv")
    return folder / "pandas.csv", dict(KNOWN)


def xlsx(folder, table):
    openpyxl = pytest.importorskip("openpyxl")
    X, y, samples, features = table
    book = openpyxl.Workbook()
    book.active.append(["sample", *features, "class"])
    for name, row, known in zip(samples, X.tolist(), y, strict=True):
        book.active.append([name, *row, known])
    book.save(folder / "a.xlsx")
    return folder / "a.xlsx", dict(KNOWN)


def gct(version):
    def write(folder, table):
        X, y, samples, features = table
        beside = ["Description"]
        sizes = [X.shape[1], X.shape[0]]
        known = []
        if version == "1.3":
            sizes += [1, 1]
            known = ["\t".join(["class", "na", *y])]
        lines = [f"#{version}", "\t".join(map(str, sizes))]
        lines += ["\t".join(["Name", *beside, *samples]), *known]
        for name, column in zip(features, X.T.tolist(), strict=True):
            lines.append("\t".join([name, "na", *map(repr, column)]))
        path = folder / f"a{version[-1]}.gct"
        path.write_text("\n".join(lines) + "\n")
        return path, dict(KNOWN) if version == "1.3" else {}

    return write


def npz(folder, table):
    X, y, samples, features = table
    np.savez(folder / "a.npz", X=X, y=y, sample_names=samples, feature_names=features)
    return folder / "a.npz", {}


def npz_turned(folder, table):
    X, y, samples, features = table
    np.savez(folder / "t.npz", X=X.T, y=y, sample_names=samples, feature_names=features)
    return folder / "t.npz", {"transpose": True}


def npz_rows_named(folder, table):
    X, y, samples, features = table
    np.savez(folder / "r.npz", X=X.T, y=y, sample_names=features, feature_names=samples)
    return folder / "r.npz", {"transpose": True}


def npz_sparse(kind):
    def write(folder, table):
        path = folder / f"{kind}.npz"
        sparse.save_npz(path, sparse.csr_array(table[0]).asformat(kind))
        return path, {}

    return write


def mat(folder, table):
    X, y, samples, features = table
    cells = {
        "sample_names": np.array(samples, dtype=object)[:, None],
        "feature_names": np.array(features, dtype=object),
        "gnd": np.array(list(y), dtype=object)[:, None],
    }
    savemat(folder / "a.mat", {"fea": X, **cells}, do_compression=True)
    return folder / "a.mat", {}


def mat_sparse(folder, table):
    savemat(folder / "s.mat", {"X": sparse.csc_array(table[0])})
    return folder / "s.mat", {}


def npy(folder, table):
    np.save(folder / "a.npy", table[0])
    return folder / "a.npy", {}


def mtx(folder, table):
    X, _, samples, features = table
    inside = folder / "tenx"
    inside.mkdir()
    with gzip.open(inside / "matrix.mtx.gz", "wb") as file:
        mmwrite(file, sparse.coo_array(X.T), precision=17)
    with gzip.open(inside / "barcodes.tsv.gz", "wt") as file:
        file.write("".join(f"{name}\n" for name in samples))
    with gzip.open(inside / "features.tsv.gz", "wt") as file:
        lines = (f"E{i}\t{g}\tGene Expression\n" for i, g in enumerate(features))
        file.write("".join(lines))
    return inside / "matrix.mtx.gz", {}


def mtx_prefixed(folder, table):
    X, _, samples, features = table
    mmwrite(folder / "GSM1_matrix.mtx", sparse.coo_array(X), precision=17)
    (folder / "GSM1_barcodes.tsv").write_text("\n".join(samples) + "\n")
    (folder / "GSM1_genes.tsv").write_text("\n".join(features) + "\n")
    return folder / "GSM1_matrix.mtx", {}


def mtx_headed(folder, table):
    path, said = mtx_prefixed(folder, table)
    for name, head in (("barcodes", "cell"), ("genes", "symbol")):
        beside = folder / f"GSM1_{name}.tsv"
        beside.write_text(f"{head}\n{beside.read_text()}")
    return path, said


def h5ad(layout, place="X"):
    def write(folder, table):
        path = folder / f"{layout}-{place.replace('/', '-')}.h5ad"
        write_h5ad(path, table, layout, place)
        return path, {**KNOWN, **({} if place == "X" else {"variable": place})}

    return write


def write_h5ad(path, table, layout="dense", place="X"):
    """Write what AnnData would write, as far as readers need it."""
    h5py = pytest.importorskip("h5py")
    X, y, samples, features = table
    with h5py.File(path, "w") as file:
        if place != "X":
            file["X"] = np.zeros_like(X)
        if layout == "dense":
            file[place] = X
        else:
            matrix = sparse.csr_array(X).asformat(layout)
            group = file.create_group(place)
            group.attrs["shape"] = X.shape
            group.attrs["encoding-type"] = f"{layout}_matrix"
            for name in ("data", "indices", "indptr"):
                group[name] = getattr(matrix, name)
        for name, index in (("obs", samples), ("var", features)):
            group = file.create_group(name)
            group.attrs["_index"] = "_index"
            group["_index"] = list(index)
        names = sorted({each for each in y if each})
        known = file["obs"].create_group("class")
        known["categories"] = names
        known["codes"] = np.array(
            [names.index(each) if each else -1 for each in y], dtype=np.int8
        )


def comments(content):
    lines = content.splitlines()
    lines[3:3] = ["# half-way", ""]
    return "# made by hand\n#\n" + "\n".join(lines) + "\n"


def spaced(content):
    return "\n".join("   ".join(line.split(",")) for line in content.splitlines())


# What a format cannot hold is not compared: classes, or names too.
WRITERS = {
    "csv": plain("a.csv"),
    "tsv": plain("a.tsv", separator="\t"),
    "semicolons": plain("a.csv", separator=";"),
    "pipes": plain("a.txt", separator="|"),
    "spaces": changed("a.txt", spaced),
    "R": plain("a.txt", separator=" ", corner=None, quoting=csv.QUOTE_NONNUMERIC),
    "R tabs": plain("a.tab", separator="\t", corner=None),
    "decimal commas": plain("a.csv", separator=";", decimal=","),
    "decimal commas, tabs": plain("a.tsv", separator="\t", decimal=","),
    "all quoted": plain("a.csv", quoting=csv.QUOTE_ALL),
    "Windows": changed("a.csv", lambda c: "\ufeff" + c, end="\r\n"),
    "comments": changed("a.csv", comments),
    "marked names": changed("a.tsv", lambda c: "# x\n#" + c, separator="\t"),
    "empty rows": changed("a.csv", lambda c: c + ",,,,\n\n"),
    "gz": packed("a.csv.gz", gzip.compress),
    "bz2": packed("a.csv.bz2", bz2.compress),
    "xz": packed("a.tsv.xz", lzma.compress),
    "zip": packed("a.csv.zip", zipped),
    "pandas": pandas_csv,
    "no names of columns": headless,
    "genes in rows": genes_in_rows,
    "gct 1.2": gct("1.2"),
    "gct 1.3": gct("1.3"),
    "xlsx": xlsx,
    "parquet": parquet,
    "parquet, ids in a column": parquet_ids,
    "npz": npz,
    "npz, genes in rows": npz_turned,
    "npz, rows and columns named": npz_rows_named,
    "npz csr": npz_sparse("csr"),
    "npz coo": npz_sparse("coo"),
    "npy": npy,
    "mat": mat,
    "mat, sparse": mat_sparse,
    "feather": feather,
    "arrow stream": arrow_stream,
    "10x": mtx,
    "10x folder": lambda folder, table: (mtx(folder, table)[0].parent, {}),
    "mtx, names with heads": mtx_headed,
    "mtx": mtx_prefixed,
    "h5ad": h5ad("dense"),
    "h5ad csr": h5ad("csr"),
    "h5ad csc layer": h5ad("csc", "layers/counts"),
}
NO_CLASSES = {
    *("gct 1.2", "npz csr", "npz coo", "npy", "mat, sparse", "10x", "10x folder"),
    *("mtx", "mtx, names with heads"),
}
NO_NAMES = {"npz csr", "npz coo", "npy", "mat, sparse"}
NO_FEATURES = {*NO_NAMES, "no names of columns"}
