"""Files of records: what is ours is kept and repaired, what is not is left alone."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdec.bench import worker
from mdec.bench.records import (
    decode_labels,
    encode_labels,
    open_journal,
    read_records,
)
from mdec.bench.run import run_study
from mdec.bench.study import make_study

STUDY: Any = {"record": "study", "study": {"name": "toy"}}
FIRST: Any = {"record": "dataset", "dataset": "a"}
SECOND: Any = {"record": "dataset", "dataset": "b"}


def packed(*records: Any) -> bytes:
    return b"".join(
        json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records
    )


def begin(path: Path) -> None:
    with open_journal(path):
        pass


def append(path: Path, record: Any) -> None:
    with open_journal(path) as (_, write):
        write(record)


FOREIGN = {
    "one line without an end": b"my only copy",
    "one line": b"my only copy\n",
    "a table": b"sample,cluster\ns1,0\ns2,1\n",
    "someone's JSON": b'{"record": "Abbey Road", "year": 1969}',
    "someone's lines of JSON": b'{"name": "speed", "seconds": 1.5}\n{"name": "x"}\n',
    "a list": b"[1, 2]\n",
    "an odd kind": b'{"record": ["run"]}\n',
    "a run that says nothing": b'{"record": "run"}\n',
    "our beginning after other lines": b'my notes\n{"record":"study","stu',
    "bytes": bytes(range(256)),
    "zeros": bytes(100),
    "deep nesting": b"[" * 100_000,
    "another encoding": json.dumps(STUDY).encode("utf-16"),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_what_is_not_ours_is_refused_and_left_alone(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    for attempt in (read_records, begin):
        with pytest.raises(ValueError, match=r"is not a file of records .* another"):
            attempt(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["r.jsonl.gz", "r.JSONL.GZ", "r.jsonl"])
def test_archives_are_read_and_not_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    content = gzip.compress(packed(STUDY, FIRST)) + gzip.compress(packed(SECOND))
    path.write_bytes(content)
    assert list(read_records(path).datasets) == ["a", "b"]
    study = make_study({"name": "toy", "datasets": ["wine"], "methods": ["k-means"]})
    with pytest.raises(ValueError, match=r"is an archive, .* give a file that is not"):
        run_study(study, path)
    assert path.read_bytes() == content


def test_no_archive_is_begun(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is an archive"):
        begin(tmp_path / "new" / "r.jsonl.gz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [3, 25, -1])
def test_a_damaged_archive_is_one_sentence(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(gzip.compress(packed(STUDY, FIRST))[:cut])
    with pytest.raises(ValueError, match=r"the archive .* is damaged .*; get it again"):
        read_records(path)


def test_an_archive_that_unpacks_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdec.bench.records.MAX_BYTES", 100)
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(gzip.compress(packed(*[FIRST] * 100)))
    with pytest.raises(ValueError, match=r"unpacks to more than .*; unpack it"):
        read_records(path)


WHOLE = packed(STUDY, FIRST)


@pytest.mark.parametrize("length", range(len(packed(SECOND))))
def test_a_torn_last_line_is_cut_off(tmp_path: Path, length: int) -> None:
    """Wherever it was torn; without its line break alone it is whole."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(WHOLE + packed(SECOND)[:length])
    kept = ["a", "b"] if length == len(packed(SECOND)) - 1 else ["a"]
    assert list(read_records(path).datasets) == kept
    append(path, {"record": "dataset", "dataset": "c"})
    assert list(read_records(path).datasets) == [*kept, "c"]
    assert path.read_bytes().startswith(WHOLE)


@pytest.mark.parametrize("packed", ["|u1:eJxj", "|u1:!", "text:eJxjZGIAAAAMAAM="])
def test_damaged_labels_are_one_sentence(packed: str) -> None:
    with pytest.raises(ValueError, match=r"labels of a record are damaged.*again\.$"):
        decode_labels(packed)


def test_a_torn_first_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(packed(STUDY)[:25])
    append(path, FIRST)
    assert path.read_bytes() == packed(FIRST)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_damaged_line_that_is_not_torn_is_named(tmp_path: Path, place: int) -> None:
    lines = [packed(STUDY), packed(FIRST)]
    lines.insert(place, b"{broken\n")
    path = tmp_path / "r.jsonl"
    for end in (b"", b'{"record":"da'):
        content = b"".join(lines) + end
        path.write_bytes(content)
        for attempt in (read_records, begin):
            sentence = f"line {place + 1} of .* is damaged; delete that line"
            with pytest.raises(ValueError, match=sentence):
                attempt(path)
        assert path.read_bytes() == content


@pytest.mark.parametrize(
    "before",
    [b"", b"\n", b"\xef\xbb\xbf" + WHOLE, WHOLE.replace(b"\n", b"\r\n"), WHOLE + b"\n"],
    ids=["empty", "blank", "byte order mark", "line ends of Windows", "blank end"],
)
def test_what_editors_leave_is_read_and_kept(tmp_path: Path, before: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(before)
    known = list(read_records(path).datasets)
    assert known == (["a"] if before.strip() else [])
    append(path, SECOND)
    assert path.read_bytes() == before + packed(SECOND)
    assert list(read_records(path).datasets) == [*known, "b"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "r.jsonl", tmp_path / "link.jsonl"
    path.write_bytes(WHOLE)
    link.symlink_to(path)
    append(link, SECOND)
    assert link.is_symlink()
    assert path.read_bytes() == WHOLE + packed(SECOND)


def test_folders_and_devices_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, Path(os.devnull)):
        with pytest.raises(ValueError, match=r"is a folder or a device; give a file"):
            begin(path)


def test_a_file_that_may_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(WHOLE)
    path.chmod(0o444)
    if os.access(path, os.W_OK):  # as the administrator

        def refuse(self: Path, mode: str = "r", **_: Any) -> Any:
            if "a" in mode:
                raise PermissionError(13, "Permission denied", str(self))
            return open(self, mode)  # noqa: PTH123

        monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError, match="may not be written to; allow it, or"):
        begin(path)


def test_a_record_is_on_the_disk_before_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sizes = tmp_path / "r.jsonl", []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        sizes.append(os.fstat(descriptor).st_size)

    with open_journal(path) as (_, write):
        monkeypatch.setattr(os, "fsync", noted)
        for record in (FIRST, SECOND):
            write(record)
            assert sizes[-1:] == [path.stat().st_size]
    assert sizes == [len(packed(FIRST)), len(packed(FIRST, SECOND))]


def write_table(path: Path, values: np.ndarray[Any, Any], classes: list[str]) -> None:
    rows = [f"{a},{b},{c}" for (a, b), c in zip(values, classes, strict=True)]
    path.write_text("\n".join(["a,b,kind", *rows]))


@pytest.fixture
def study(tmp_path: Path) -> Any:
    write_table(tmp_path / "cells.csv", VALUES, CLASSES)
    datasets = ["wine", {"path": str(tmp_path / "cells.csv"), "target": "kind"}]
    text = {"name": "toy", "datasets": datasets, "methods": ["k-means"]}
    return make_study(text, tmp_path)


VALUES = np.random.default_rng(0).normal(size=(20, 2)).round(3)
CLASSES = ["x", "y"] * 10


def rewritten(
    values: np.ndarray[Any, Any], classes: list[str]
) -> dict[str, tuple[np.ndarray[Any, Any], list[str]]]:
    nudged, other = values.copy(), [*classes]
    nudged[3, 1] += 0.001
    other[3] = "x"
    return {
        "a value": (nudged, classes),
        "a class": (values, other),
        "the order": (values[::-1], classes[::-1]),
        "the number": (values[:10], classes[:10]),
    }


def test_data_that_have_changed_end_the_study(tmp_path: Path, study: Any) -> None:
    path = tmp_path / "r.jsonl"
    assert run_study(study, path).n_done == 2
    before = path.read_bytes()
    for what, changed in rewritten(VALUES, CLASSES).items():
        write_table(tmp_path / "cells.csv", *changed)
        worker._load.cache_clear()  # as in a new process
        sentence = r"the data of cells have changed .* give another file of records"
        with pytest.raises(ValueError, match=sentence):
            run_study(study, path)
        assert path.read_bytes() == before, what
    write_table(tmp_path / "cells.csv", VALUES, CLASSES)
    worker._load.cache_clear()
    assert run_study(study, path).n_done == 2
    assert path.read_bytes() == before


def test_classes_packed_by_another_compressor_are_the_same(
    tmp_path: Path, study: Any
) -> None:
    import base64
    import zlib

    path = tmp_path / "r.jsonl"
    run_study(study, path)
    codes = np.tile([0, 1], 10)
    other = base64.b64encode(zlib.compress(codes.astype("<i2").tobytes(), 0)).decode()
    text = path.read_text()
    assert encode_labels(codes) in text
    path.write_text(text.replace(encode_labels(codes), f"<i2:{other}"))
    assert run_study(study, path).n_done == 2


def test_records_of_another_study_are_not_taken_for_ours(
    tmp_path: Path, study: Any
) -> None:
    """The name of a study is part of every seed."""
    path = tmp_path / "r.jsonl"
    run_study(study, path)
    before = path.read_bytes()
    other = make_study({**study.text, "name": "other"}, tmp_path)
    with pytest.raises(ValueError, match="holds records of the study 'toy', whose"):
        run_study(other, path)
    assert path.read_bytes() == before
