"""The ensemble as a container: labels in, parts out, to disk and back."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mdec import Ensemble, generate_ensemble
from mdec._support.archives import read_sealed, write_sealed
from mdec.ensemble import Failure

LABELS = np.array([[5, 1], [5, 0], [2, 0], [9, 1]])


@pytest.fixture(scope="module")
def generated() -> Ensemble:
    X = np.random.default_rng(0).normal(size=(40, 6))
    return generate_ensemble(X, ensemble_size=6, random_state=3)


def test_labels_are_numbered_from_zero() -> None:
    ensemble = Ensemble.from_labels(LABELS)
    np.testing.assert_array_equal(ensemble.labels, [[1, 1], [1, 0], [0, 0], [2, 1]])
    assert ensemble.labels.dtype == np.int32


def test_sizes() -> None:
    ensemble = Ensemble.from_labels(LABELS)
    assert len(ensemble) == 2
    assert ensemble.n_samples == 4
    assert ensemble.n_base_clusters == 5
    np.testing.assert_array_equal(ensemble.cluster_counts, [3, 2])
    np.testing.assert_array_equal(ensemble.offsets, [0, 3, 5])
    np.testing.assert_array_equal(ensemble.cluster_sizes, [1, 2, 1, 2, 2])


def test_indicator_by_double_loop() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(-1, 4, (30, 5))
    ensemble = Ensemble.from_labels(labels)
    Z = ensemble.indicator().toarray()
    column = 0
    for m in range(5):
        for name in sorted(set(labels[:, m]) - {-1}):
            for i in range(30):
                assert Z[i, column] == (labels[i, m] == name)
            column += 1
    assert Z.shape == (30, column)
    np.testing.assert_array_equal(Z.sum(axis=0), ensemble.cluster_sizes)


@pytest.mark.parametrize(
    "labels",
    [
        [["a", "x"], ["b", "x"], ["b", "y"]],
        [["a", 1], ["b", 1], ["b", 2]],
        np.array([["a", "x"], ["b", "x"], ["b", "y"]]),
        np.array([["a", 1], ["b", 1], ["b", 2]], dtype=object),
        pd.DataFrame({"p": ["a", "b", "b"], "q": [1, 1, 2]}),
        np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 2.0]]),
        np.array([[0, 1], [1, 1], [1, 2]], dtype=np.uint8),
        np.array([[False, False], [True, False], [True, True]]),
    ],
)
def test_kinds_of_labels(labels: object) -> None:
    ensemble = Ensemble.from_labels(labels)
    np.testing.assert_array_equal(ensemble.labels, [[0, 0], [1, 0], [1, 1]])


@pytest.mark.parametrize(
    "labels",
    [
        [["a", 0], [None, 0], ["b", -1]],
        np.array([[1.0, 0.0], [np.nan, 0.0], [2.0, -1.0]]),
        pd.DataFrame({"p": ["a", None, "b"], "q": [0, 0, -1]}),
        pd.DataFrame({"p": [1.0, np.nan, 2.0], "q": [0.0, 0.0, np.nan]}),
        np.array([[1, 0], [-1, 0], [2, -1]]),
    ],
)
def test_samples_that_a_member_does_not_cluster(labels: object) -> None:
    ensemble = Ensemble.from_labels(labels)
    np.testing.assert_array_equal(ensemble.labels, [[0, 0], [-1, 0], [1, -1]])
    assert ensemble.n_base_clusters == 3


@pytest.mark.parametrize("labels", [[0, 1, 1], [[[0]]], np.zeros((0, 2)), [[], []]])
def test_what_is_no_table(labels: object) -> None:
    with pytest.raises(ValueError, match="one clustering in each column"):
        Ensemble.from_labels(labels)


def test_an_empty_member() -> None:
    with pytest.raises(ValueError, match="base clustering 1 clusters no sample"):
        Ensemble.from_labels([[0, -1], [1, -1]])


def test_input_is_left_alone() -> None:
    labels = LABELS.copy()
    Ensemble.from_labels(labels)
    np.testing.assert_array_equal(labels, LABELS)


def test_slices(generated: Ensemble) -> None:
    first = generated[:4]
    assert len(first) == 4
    np.testing.assert_array_equal(first.labels, generated.labels[:, :4])
    assert first.members == generated.members[:4]
    chosen = generated[[4, 1]]
    np.testing.assert_array_equal(chosen.labels, generated.labels[:, [4, 1]])
    assert [member.index for member in chosen.members] == [4, 1]
    single = generated[-1]
    assert len(single) == 1
    np.testing.assert_array_equal(single.labels[:, 0], generated.labels[:, 5])


def test_a_slice_knows_its_own_sizes(generated: Ensemble) -> None:
    assert generated.n_base_clusters > 0  # computed and kept before slicing
    first = generated[:2]
    assert first.n_base_clusters == int(generated.cluster_counts[:2].sum())
    assert first.indicator().shape == (40, first.n_base_clusters)


def test_an_ensemble_of_nothing(generated: Ensemble) -> None:
    with pytest.raises(IndexError, match="at least one member"):
        generated[3:3]
    with pytest.raises(IndexError):
        generated[6]


def test_iteration_ends() -> None:
    assert len(list(Ensemble.from_labels(LABELS))) == 2


def test_save_and_load(generated: Ensemble, tmp_path: Path) -> None:
    path = tmp_path / "e.npz"
    generated.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["e.npz"]
    loaded = Ensemble.load(path)
    np.testing.assert_array_equal(loaded.labels, generated.labels)
    assert loaded.labels.dtype == np.int32
    assert loaded.members == generated.members
    assert loaded.failures == generated.failures
    assert loaded.parameters["entropy"] == generated.parameters["entropy"]
    assert set(loaded.parameters) == set(generated.parameters)
    for name, value in generated.parameters.items():
        read = loaded.parameters[name]
        assert read == value or read == list(value)


def test_failures_are_saved(tmp_path: Path) -> None:
    labels = np.array([[0], [1]], dtype=np.int32)
    failures = (Failure(3, 'a "reason" with ünicode'),)
    Ensemble(labels, failures=failures).save(tmp_path / "e.npz")
    assert Ensemble.load(tmp_path / "e.npz").failures == failures


def test_seed_of_the_operating_system_survives_a_file(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(12, 4))
    ensemble = generate_ensemble(X, ensemble_size=2)
    ensemble.save(tmp_path / "e.npz")
    loaded = Ensemble.load(tmp_path / "e.npz")
    assert loaded.parameters["entropy"] == ensemble.parameters["entropy"]


def test_own_labels_survive_a_file(tmp_path: Path) -> None:
    ensemble = Ensemble.from_labels([["a", 0], [None, 1], ["b", 1]])
    ensemble.save(str(tmp_path / "named without suffix"))
    loaded = Ensemble.load(str(tmp_path / "named without suffix"))
    np.testing.assert_array_equal(loaded.labels, ensemble.labels)


def test_a_failed_save_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "e.npz"
    Ensemble.from_labels(LABELS).save(path)
    before = path.read_bytes()

    def broken(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", broken)
    with pytest.raises(OSError, match="disk full"):
        Ensemble.from_labels(LABELS[:2]).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["e.npz"]


def test_what_is_no_ensemble_file(tmp_path: Path) -> None:
    text = tmp_path / "text.npz"
    text.write_text("not an archive")
    other = tmp_path / "other.npz"
    np.savez(other, numbers=np.arange(3))
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, labels=np.array([{}], dtype=object), provenance=np.array("{}"))
    empty = tmp_path / "empty.npz"
    empty.touch()
    array = tmp_path / "array.npy"
    np.save(array, np.arange(3))
    truncated = tmp_path / "truncated.npz"
    Ensemble.from_labels(LABELS).save(truncated)
    truncated.write_bytes(truncated.read_bytes()[:-40])
    for path in (text, other, pickled, empty, array, truncated):
        with pytest.raises(ValueError, match=r"(saved|written) by mdec"):
            Ensemble.load(path)


def test_a_file_of_another_format(tmp_path: Path) -> None:
    path = tmp_path / "e.npz"
    np.savez(path, labels=LABELS, provenance=np.array('{"format": 99}'))
    with pytest.raises(ValueError, match="format 99"):
        Ensemble.load(path)


@pytest.mark.parametrize("value", [-2, len(LABELS), 2**31 - 1])
def test_numbers_that_no_cluster_has_are_refused(tmp_path: Path, value: int) -> None:
    path = tmp_path / "e.npz"
    Ensemble.from_labels(LABELS).save(path)
    content, arrays = read_sealed(path, 2**20)
    arrays["labels"][1, 0] = value
    write_sealed(path, content, arrays)
    with pytest.raises(ValueError, match=r"e\.npz"):
        Ensemble.load(path)


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "e.npz"
    ensemble = Ensemble.from_labels(LABELS)
    ensemble.save(path)
    content = path.read_bytes()
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 0x5A
        path.write_bytes(flipped)
        try:
            loaded = Ensemble.load(path)
        except (ValueError, MemoryError):  # or it claims more than is free
            continue
        np.testing.assert_array_equal(loaded.labels, ensemble.labels)


def test_a_symmetric_square_of_labels_is_no_consensus_matrix() -> None:
    labels = np.array([[1, 2, 1], [2, 1, 2], [1, 2, 1]])
    numbered = Ensemble.from_labels(labels).labels
    np.testing.assert_array_equal(numbered, labels - 1)
    with pytest.raises(ValueError, match="this is a consensus matrix of 3 samples"):
        Ensemble.from_labels(labels % 2)


@pytest.mark.parametrize(
    ("labels", "provenance"),
    [
        (np.full((4, 2), -5), {}),
        (np.array([[0, 1], [10**9, 0], [1, 1], [0, 0]]), {}),
        (np.array([[0, -1], [1, -1], [0, -1]]), {}),
        (np.zeros((3, 0), dtype=int), {}),
        (np.zeros(3, dtype=int), {}),
        (np.zeros((3, 2)), {}),
        (np.zeros((3, 2), dtype=int), {"members": [{"index": 0}]}),
        (np.zeros((3, 2), dtype=int), {"members": 7}),
        (np.zeros((3, 2), dtype=int), {"failures": [[]]}),
        (np.zeros((3, 2), dtype=int), {"parameters": 3}),
    ],
)
def test_files_made_up(tmp_path: Path, labels: np.ndarray, provenance: dict) -> None:
    path = tmp_path / "e.npz"
    sound = {"format": 1, "members": [], "failures": [], "parameters": {}}
    text = np.array(json.dumps({**sound, **provenance}))
    np.savez(path, labels=labels, provenance=text)
    with pytest.raises(ValueError, match="not an ensemble saved by mdec"):
        Ensemble.load(path)


def test_a_file_that_unpacks_to_much_more_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    text = np.array(json.dumps({"format": 1}))
    labels = np.zeros((2**20, 8), dtype=np.int32)
    np.savez_compressed(path, labels=labels, provenance=text)
    assert path.stat().st_size < 10**5
    with pytest.raises(ValueError, match=r"unpacks to 0\.0 GB, more than the limit"):
        Ensemble.load(path, max_bytes=10**7)


def test_a_header_that_claims_more_than_there_is(tmp_path: Path) -> None:
    header = io.BytesIO()
    claim = {"descr": "<i4", "fortran_order": False, "shape": (10**12, 4)}
    np.lib.format.write_array_header_1_0(header, claim)
    path = tmp_path / "liar.npz"
    np.savez(path, provenance=np.array("{}"))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("labels.npy", header.getvalue())
    with pytest.raises(ValueError, match="by mdec"):
        Ensemble.load(path)


def test_parameters_cannot_be_changed() -> None:
    ensemble = Ensemble(np.zeros((3, 1), dtype=np.int32), parameters={"entropy": 1})
    with pytest.raises(TypeError):
        ensemble.parameters["entropy"] = 2
    assert pickle.loads(pickle.dumps(ensemble)).parameters == {"entropy": 1}


def test_a_plan_is_that_of_generated_members_only() -> None:
    with pytest.raises(ValueError, match="generate_ensemble made"):
        _ = Ensemble.from_labels(LABELS).plan


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Ensemble.load(tmp_path / "nothing.npz")


def test_repr() -> None:
    assert repr(Ensemble.from_labels(LABELS)) == (
        "Ensemble(2 members, 4 samples, 5 base clusters)"
    )


def test_labels_of_strings_and_of_pandas():
    rows = [["a", 0], ["b", -1], ["b", 9]]
    expected = [[0, 0], [1, -1], [1, 1]]
    assert Ensemble.from_labels(np.array(rows)).labels.tolist() == expected
    assert Ensemble.from_labels(np.array(rows, dtype="S3")).labels.tolist() == expected
    gaps = np.array([["a", np.nan], ["", 1.0], ["b", "c"]])
    assert Ensemble.from_labels(gaps).labels.tolist() == [[0, -1], [-1, 0], [1, 1]]
    pandas = pytest.importorskip("pandas")
    for dtype, values in (("Int64", [4, None, 7]), ("string", ["x", None, "y"])):
        frame = pandas.DataFrame({"a": pandas.array(values, dtype=dtype)})
        assert Ensemble.from_labels(frame).labels.ravel().tolist() == [0, -1, 1]
    mixed = np.array([["a"], [pandas.NA], ["b"]], dtype=object)
    assert Ensemble.from_labels(mixed).labels.ravel().tolist() == [0, -1, 1]


def test_microclusters_do_not_rest_on_a_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's file may hold rows that the hash does not tell apart."""

    class Zeros:
        def integers(self, _: int, size: int) -> np.ndarray:
            return np.zeros(size, dtype=np.int64)

    labels = np.array([[0, 1], [1, 0], [0, 1], [1, 1], [0, 0]])
    ensemble = Ensemble.from_labels(labels)
    monkeypatch.setattr(np.random, "default_rng", lambda _: Zeros())
    first, group, sizes = ensemble.microclusters
    assert sorted(sizes.tolist()) == [1, 1, 1, 2]
    np.testing.assert_array_equal(ensemble.labels[first[group]], ensemble.labels)
    assert group[0] == group[2]
