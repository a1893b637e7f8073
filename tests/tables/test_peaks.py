"""What reading takes of memory, measured: never more than was asked for before."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mdec._support.archives import write_sealed
from mdec.tables.reading import read_table

# What a process takes beside the table itself; Arrow has pools of its own.
SLACK = {".parquet": 20e6}
LEAST = 9e6

# Reads each file in a process of its own, and notes by how much memory ever exceeded
# what had been asked for until then, on top of what was in memory at that time.
CHILD = """
import json, os, re, sys
from pathlib import Path
import h5py, openpyxl, pandas, pyarrow.parquet, scipy.io
from mdec import Ensemble
from mdec._support import archives
from mdec.tables import budget, clusterings, reading

READERS = {
    "table": reading.read_table,
    "labels": clusterings.read_base_clusterings,
    "matrix": clusterings.read_consensus_matrix,
    "ensemble": Ensemble.load,
}

def memory(kind):
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(kind + r":\\s+(\\d+)", status)[1])

def measure(kind, path):
    start = memory("VmRSS")
    notes = {"asked": 0, "over": 0}
    def look():
        notes["over"] = max(notes["over"], memory("VmHWM") - start - notes["asked"])
    require = budget.require_memory
    def ask(n_bytes, *words):
        look()
        notes["asked"] = max(notes["asked"], n_bytes + memory("VmRSS") - start)
        require(n_bytes, *words)
    budget.require_memory = archives.require_memory = ask
    Path("/proc/self/clear_refs").write_text("5")
    try:
        READERS[kind](path)
    except ValueError:
        pass
    look()
    return notes["asked"], memory("VmHWM") - start, notes["over"]

for path in sys.argv[2:]:
    kind = Path(path).name.partition("-")[0]
    if os.fork() == 0:
        print(json.dumps([Path(path).name, *measure(kind, path)]), flush=True)
        os._exit(0)
    os.wait()
"""


def two_letters(path: Path) -> None:
    path.write_bytes(b"ab\n" * 500_000)


def two_letters_in_two_columns(path: Path) -> None:
    path.write_bytes(b"a,bc\n" * 250_000)


def one_wide_letter(path: Path) -> None:
    path.write_bytes(b"a,b\n" + "\N{GRINNING FACE},1\n".encode() * 200_000)


def one_long_row(path: Path) -> None:
    path.write_bytes(b"ab," * 300_000)


def many_genes(path: Path) -> None:
    rows, samples = 20_000, 20
    head = b"#1.2\n%d\t%d\nN\tD" % (rows, samples) + b"\ts" * samples + b"\n"
    path.write_bytes(head + (b"g\td" + b"\t10" * samples + b"\n") * rows)


def coded_text(path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    codes = pyarrow.array(np.zeros(300_000, dtype=np.int32))
    text = pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(["x" * 50]))
    numbers = pyarrow.array(np.zeros(300_000))
    table = pyarrow.table({"a": text, "b": numbers, "c": numbers})
    parquet.write_table(table, path, compression="zstd")


def one_long_text(path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    table = {"a": pyarrow.array(["x" * 100_000] * 2000), "b": np.zeros(2000)}
    parquet.write_table(pyarrow.table(table), path, compression="zstd")


def lists(path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    table = {"a": pyarrow.array([[1.0] * 1000] * 5000), "b": np.zeros(5000)}
    parquet.write_table(pyarrow.table(table), path, compression="zstd")


def last_column(path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for row in range(1, 151):
        for column in (1, 2, 16384):
            book.active.cell(row, column, row / 2)
    book.save(path)


def last_row(path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for row in (1, 2, 1_048_576):
        book.active.append([])
        book.active.cell(row, 1, row / 2)
        book.active.cell(row, 2, row / 4)
    book.save(path)


def one_text_in_many_cells(path: Path) -> None:
    cells = '<c t="s"><v>0</v></c><c><v>1</v></c><c><v>2</v></c>'
    named = "<row><c t='s'><v>1</v></c><c t='s'><v>2</v></c><c t='s'><v>3</v></c></row>"
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        '<Override PartName="/xl/worksheets/sheet1.xml" '
        f'ContentType="{kind}.worksheet+xml"/>'
        '<Override PartName="/xl/sharedStrings.xml" '
        f'ContentType="{kind}.sharedStrings+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship '
        f'Id="r1" Type="{office}/officeDocument" Target="xl/workbook.xml"/>'
        "</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}/worksheet" '
        'Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="r2" Type="{office}/sharedStrings" '
        'Target="sharedStrings.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{named}'
        f"{f'<row>{cells}</row>' * 300}</sheetData></worksheet>",
        "xl/sharedStrings.xml": f'<sst xmlns="{main}"><si><t>{"x" * 200_000}</t></si>'
        "<si><t>id</t></si><si><t>a</t></si><si><t>b</t></si></sst>",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def small_numbers(path: Path) -> None:
    np.savez_compressed(path, X=np.zeros((3000, 1000), dtype=np.int8))


def short_names(path: Path) -> None:
    names = np.array([b"ab"] * 200_000)
    np.savez_compressed(path, X=np.zeros((200_000, 2)), sample_names=names)


def many_cells(path: Path) -> None:
    from scipy.io import savemat

    cells = np.full((60_000, 1), "ab", dtype=object)
    contents = {"X": np.zeros((100, 3)), "names": cells}
    savemat(path, contents, do_compression=True)


def small_texts_of_obs(path: Path) -> None:
    import h5py

    n = 100_000
    with h5py.File(path, "w") as file:
        file["X"] = np.zeros((n, 2))
        for group, size in (("obs", n), ("var", 2)):
            file.create_group(group).attrs["_index"] = "name"
            file[group]["name"] = np.array([str(i) for i in range(size)], dtype="S")
        for i in range(16):
            column = np.full(n, b"ab", dtype="S2")
            file["obs"].create_dataset(f"c{i}", data=column, compression="gzip")


def empty_lists(path: Path) -> None:
    provenance = {"format": 2, "names": [[]] * 600_000}
    write_sealed(path, provenance, {"labels": np.zeros((3, 1), dtype=np.int32)})


def short_texts(path: Path) -> None:
    provenance = {"format": 2, "names": [f"s{i}" for i in range(300_000)]}
    write_sealed(path, provenance, {"labels": np.zeros((3, 1), dtype=np.int32)})


def ones(path: Path) -> None:
    path.write_bytes((b"1," * 499 + b"1\n") * 500)


FILES = {
    "table-lines.csv": two_letters,
    "table-words.csv": two_letters_in_two_columns,
    "table-spaces.txt": lambda path: path.write_bytes(b"ab cd\n" * 200_000),
    "table-wide.csv": one_wide_letter,
    "table-row.csv": one_long_row,
    "table-genes.gct": many_genes,
    "table-coded.parquet": coded_text,
    "table-long.parquet": one_long_text,
    "table-lists.parquet": lists,
    "table-column.xlsx": last_column,
    "table-row.xlsx": last_row,
    "table-text.xlsx": one_text_in_many_cells,
    "table-numbers.npz": small_numbers,
    "table-names.npz": short_names,
    "table-cells.mat": many_cells,
    "table-obs.h5ad": small_texts_of_obs,
    "labels-lines.csv": two_letters,
    "labels-words.csv": two_letters_in_two_columns,
    "labels-coded.parquet": coded_text,
    "matrix-ones.csv": ones,
    "ensemble-lists.npz": empty_lists,
    "ensemble-texts.npz": short_texts,
}


@pytest.fixture(scope="module")
def peaks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    for package in ("pandas", "pyarrow", "openpyxl", "h5py"):
        pytest.importorskip(package)
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("only Linux says how much memory a process had")
    folder = tmp_path_factory.mktemp("peaks")
    for name, write in FILES.items():
        write(folder / name)
    command = [sys.executable, "-c", CHILD, "--", *(str(folder / n) for n in FILES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {name: numbers for name, *numbers in found}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_no_more_is_taken_than_was_asked_for(
    peaks: dict[str, list[int]], name: str
) -> None:
    asked, peak, over = (f"{each / 1e6:.0f} MB" for each in peaks[name])
    slack = SLACK.get(Path(name).suffix, LEAST)
    assert peaks[name][2] <= slack, f"asked {asked}, took {peak}, {over} too much"


@pytest.mark.parametrize(
    "name", ["table-coded.parquet", "table-column.xlsx", "table-text.xlsx"]
)
def test_small_files_with_much_inside_are_refused(tmp_path: Path, name: str) -> None:
    for package in ("pandas", "pyarrow", "openpyxl"):
        pytest.importorskip(package)
    path = tmp_path / name
    FILES[name](path)
    assert path.stat().st_size < 200_000
    with pytest.raises(ValueError, match="unpacks to"):
        read_table(path, max_bytes=10_000_000)


def test_a_text_of_shared_beginnings_is_counted_in_full(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    texts = ["x" * 20_000 + str(i) for i in range(2000)]
    table = pyarrow.table({"a": texts, "b": np.zeros(2000), "c": np.zeros(2000)})
    parquet.write_table(
        table,
        tmp_path / "a.parquet",
        use_dictionary=False,
        column_encoding={"a": "DELTA_BYTE_ARRAY", "b": "PLAIN", "c": "PLAIN"},
    )
    with pytest.raises(ValueError, match="unpacks to"):
        read_table(tmp_path / "a.parquet", max_bytes=10_000_000)


def test_columns_of_lists_can_be_left_out(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X = np.random.default_rng(0).normal(size=(6, 2))
    table = {"a": X[:, 0], "l": [[1.0]] * 6, "b": X[:, 1]}
    parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"holds no numbers but 'list<.*drop=\['l'\]"):
        read_table(tmp_path / "a.parquet")
    found = read_table(tmp_path / "a.parquet", drop=["l"])
    np.testing.assert_array_equal(found.values, X)


def test_a_zip_that_claims_little_is_believed_in_nothing(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", b"1,2\n" * 2_000_000)
    packed = content.getvalue()
    size = (8_000_000).to_bytes(4, "little")
    assert packed.count(size) == 2
    (tmp_path / "a.csv.zip").write_bytes(packed.replace(size, bytes([9, 0, 0, 0])))
    with pytest.raises(ValueError, match="damaged"):
        read_table(tmp_path / "a.csv.zip", max_bytes=1_000_000)
