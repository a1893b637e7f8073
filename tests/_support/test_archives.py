"""Sealed files come back as they were written, or not at all."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

from mdec._support.archives import DamagedFileError, read_sealed, write_sealed

ARRAYS = {
    "labels": np.arange(12, dtype=np.int32).reshape(4, 3),
    "turned": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "empty": np.zeros((0, 2)),
    "one": np.array(3.5),
}
PROVENANCE = {"format": 2, "names": ["é", None, [1.5]]}


@pytest.fixture
def path(tmp_path):
    write_sealed(tmp_path / "a.npz", PROVENANCE, ARRAYS)
    return tmp_path / "a.npz"


def test_what_was_written_comes_back(path):
    provenance, arrays = read_sealed(path)
    assert provenance == PROVENANCE
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array, strict=True)


def read_or_refused(path):
    try:
        return read_sealed(path)
    except DamagedFileError:
        return None


def test_every_changed_byte_is_noticed_or_changes_nothing(path):
    content = path.read_bytes()
    places = range(0, len(content), 3)
    refused = 0
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 0x41
        path.write_bytes(bytes(changed))
        found = read_or_refused(path)
        if found is None:
            refused += 1
            continue
        assert found[0] == PROVENANCE
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(found[1][name], array, strict=True)
    assert refused > 0.5 * len(places)


def packed_again(path, **changes):
    """Put other arrays in the archive, with the seals of the first ones."""
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files}
    np.savez(path, **(arrays | changes))


@pytest.mark.parametrize(
    "labels",
    [
        ARRAYS["labels"] + 1,
        ARRAYS["labels"].astype(np.int64),
        ARRAYS["labels"].reshape(3, 4),
    ],
    ids=["values", "type", "shape"],
)
def test_another_array_under_the_same_name_is_refused(path, labels):
    packed_again(path, labels=labels)
    with pytest.raises(DamagedFileError, match="its content was changed"):
        read_sealed(path)


def test_one_array_more_or_less_is_refused(path):
    packed_again(path, more=np.ones(2))
    with pytest.raises(DamagedFileError, match="its content was changed"):
        read_sealed(path)


def test_the_first_version_had_no_seals(path):
    packed_again(path, provenance=np.array(json.dumps(PROVENANCE)), labels=np.ones(2))
    provenance, arrays = read_sealed(path)
    assert provenance == PROVENANCE
    assert arrays["labels"].tolist() == [1.0, 1.0]


def test_the_limit_is_what_the_archive_unpacks_to(path):
    with zipfile.ZipFile(path) as archive:
        claimed = sum(each.file_size for each in archive.infolist())
    assert read_sealed(path, claimed)[0] == PROVENANCE
    with pytest.raises(DamagedFileError, match="raise the limit if you trust"):
        read_sealed(path, claimed - 1)


def test_objects_are_refused_and_never_run(path):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("a pickle was loaded",)

    packed_again(path, labels=np.array([Trap()], dtype=object))
    with pytest.raises(DamagedFileError, match="damaged"):
        read_sealed(path)


def test_a_header_that_claims_more_than_there_is_is_refused(path):
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["labels.npy"] = parts["labels.npy"].replace(b"(4, 3)", b"(9, 9)")
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    with pytest.raises(DamagedFileError, match="damaged"):
        read_sealed(path)


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_sealed(tmp_path / "a.npz")


@pytest.mark.parametrize(("point", "whole"), [(0x10FFFF, True), (0x110000, False)])
def test_text_that_is_no_text_is_refused(path, point, whole):
    words = np.array(json.dumps({"name": "abc"}))
    words.reshape(1).view(np.uint32)[str(words).index("b")] = point
    packed_again(path, provenance=words)
    found = read_or_refused(path)
    assert (found is not None) == whole
    if whole:
        assert found[0] == {"name": f"a{chr(point)}c"}


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_both_headers_of_arrays_are_read(path, version):
    with zipfile.ZipFile(path, "a") as archive, archive.open("more.npy", "w") as file:
        np.lib.format.write_array(file, np.arange(5), version=version)
    # TableError for the array that was not sealed, so it was read.
    with pytest.raises(DamagedFileError, match="its content was changed"):
        read_sealed(path)
