"""Runs that are killed go on where they were, with the same result."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mdec import MDEC, Ensemble, generate_ensemble
from mdec.engines.checkpoint import Checkpoint
from mdec.ensemble.plan import Plan
from mdec.rows import blocks
from mdec.rows.work import Executor, LocalExecutor

SCRIPT = """
import os, signal, sys
import numpy as np
from mdec import generation
from mdec.engines import threads

cluster = threads.base_clustering
def watched(X, member, plan, *functions):
    if member.index == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    print(member.index, flush=True)
    return cluster(X, member, plan, *functions)
threads.base_clustering = watched
X = np.random.default_rng(0).normal(size=(60, 8))
ensemble = generation.generate_ensemble(
    X, ensemble_size=30, random_state=5, checkpoint=sys.argv[1]
)
np.save(sys.argv[2], ensemble.labels)
"""


@pytest.fixture
def data():
    return np.random.default_rng(0).normal(size=(60, 8))


def run(folder, result, killed_at=-1):
    """Return the members that a process made before it ended or was killed."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), str(result), str(killed_at)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == (0 if killed_at < 0 else -signal.SIGKILL)
    return {int(word) for word in done.stdout.split()}


def test_a_killed_run_goes_on_with_the_same_result(tmp_path, data):
    folder, result = tmp_path / "members", tmp_path / "labels.npy"
    assert run(folder, result, killed_at=8) == set(range(8))
    kept = {int(path.stem.split("-")[1]) for path in folder.glob("member-*.npz")}
    assert kept == set(range(8))
    assert not result.exists()
    assert run(folder, result) == set(range(30)) - kept
    plain = generate_ensemble(data, ensemble_size=30, random_state=5)
    assert (np.load(result) == plain.labels).all()


def test_finished_members_are_not_made_again(tmp_path, data, monkeypatch):
    first = generate_ensemble(
        data, ensemble_size=6, random_state=0, checkpoint=tmp_path / "c"
    )
    monkeypatch.setattr(
        "mdec.engines.threads.base_clustering",
        lambda *_: pytest.fail("a finished member was made again"),
    )
    again = generate_ensemble(
        data, ensemble_size=6, random_state=0, checkpoint=tmp_path / "c"
    )
    assert (again.labels == first.labels).all()
    assert again.members == first.members


def test_a_checkpoint_can_be_extended(tmp_path, data):
    for size in (4, 9):
        ensemble = generate_ensemble(
            data, ensemble_size=size, random_state=0, checkpoint=tmp_path / "c"
        )
    plain = generate_ensemble(data, ensemble_size=9, random_state=0)
    assert (ensemble.labels == plain.labels).all()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"random_state": 1}, "the seed"),
        ({"max_features": 0.6}, "max_features"),
        ({"kernel": "cosine"}, "kernel"),
    ],
)
def test_other_parameters_are_refused(tmp_path, data, change, named):
    settings = {"ensemble_size": 3, "random_state": 0, "checkpoint": tmp_path / "c"}
    generate_ensemble(data, **settings)
    with pytest.raises(ValueError, match=named):
        generate_ensemble(data, **(settings | change))


def test_other_data_are_refused(tmp_path, data):
    settings = {"ensemble_size": 3, "random_state": 0, "checkpoint": tmp_path / "c"}
    generate_ensemble(data, **settings)
    data[3, 3] += 1e-9
    with pytest.raises(ValueError, match="data differ"):
        generate_ensemble(data, **settings)


def test_a_folder_with_other_files_is_refused(tmp_path, data):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(ValueError, match="holds no checkpoint"):
        generate_ensemble(data, ensemble_size=2, random_state=0, checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_checkpoint_needs_a_seed(tmp_path, data):
    with pytest.raises(ValueError, match="integer random_state"):
        MDEC(2, ensemble_size=2, checkpoint=tmp_path / "c").fit(data)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not a zip"])
def test_a_damaged_member_is_made_again(tmp_path, data, content):
    settings = {"ensemble_size": 3, "random_state": 0, "checkpoint": tmp_path / "c"}
    first = generate_ensemble(data, **settings)
    (tmp_path / "c" / "member-000001.npz").write_bytes(content)
    assert (generate_ensemble(data, **settings).labels == first.labels).all()


def test_a_damaged_header_is_refused(tmp_path, data):
    settings = {"ensemble_size": 3, "random_state": 0, "checkpoint": tmp_path / "c"}
    generate_ensemble(data, **settings)
    (tmp_path / "c" / "checkpoint.json").write_text("[")
    with pytest.raises(ValueError, match="damaged"):
        generate_ensemble(data, **settings)


def test_failures_are_kept(tmp_path, data):
    from mdec.ensemble import Failure

    checkpoint = Checkpoint(
        tmp_path / "c", "digest", Plan(*data.shape, entropy=0), LocalExecutor()
    )
    checkpoint.save(Failure(4, "no reason"))
    assert checkpoint.load(4) == Failure(4, "no reason")
    assert checkpoint.load(5) is None
    assert len(list((tmp_path / "c").glob("member-*.npz"))) == 1


def test_progress_counts_every_member(data):
    seen = []
    generate_ensemble(
        data,
        ensemble_size=5,
        random_state=0,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(i, 5) for i in range(1, 6)]


def test_scikit_learn_callbacks_hear_of_every_member(data):
    pytest.importorskip("sklearn.callback")

    class Counter:
        begun = ended = 0

        def setup(self, estimator, context):  # noqa: ARG002
            self.started = time.perf_counter()

        def teardown(self, estimator, context):  # noqa: ARG002
            self.seconds = time.perf_counter() - self.started

        def on_fit_task_begin(self, estimator, context):  # noqa: ARG002
            self.begun += 1

        def on_fit_task_end(self, estimator, context):  # noqa: ARG002
            self.ended += 1

    counter = Counter()
    model = MDEC(2, ensemble_size=7, random_state=0)
    model.set_callbacks(counter)
    model.fit(data)
    assert counter.begun == counter.ended == 8
    assert counter.seconds > 0.0


# ------------------------------------------------------------------ what was kept


OLD = Path(__file__).parents[1] / "data" / "version-0.1"
OLD_SETTINGS = {"ensemble_size": 3, "random_state": 11}


@pytest.fixture
def old_data():
    """The data from which version 0.1 made what lies in the folder of its name."""
    X = np.random.default_rng(7).normal(size=(40, 6))
    X[:20] += 2.5
    return X


def no_member(*_):
    pytest.fail("a finished member was made again")


def same_partitions(one, other):
    """Whether members agree up to numbering, which rounding decides between ties."""
    pairs = zip(one.labels.T, other.labels.T, strict=True)
    return all(adjusted_rand_score(a, b) == 1.0 for a, b in pairs)


def test_a_checkpoint_of_version_0_1_is_taken(tmp_path, old_data, monkeypatch):
    fresh = generate_ensemble(old_data, **OLD_SETTINGS)
    folder = shutil.copytree(OLD / "checkpoint", tmp_path / "c")
    monkeypatch.setattr("mdec.engines.threads.base_clustering", no_member)
    kept = generate_ensemble(old_data, checkpoint=folder, **OLD_SETTINGS)
    np.testing.assert_array_equal(kept.labels, fresh.labels)
    assert kept.members == fresh.members
    old = Ensemble.load(OLD / "ensemble.npz")
    assert same_partitions(old, fresh)
    assert old.parameters == fresh.parameters
    assert old.plan == fresh.plan


def test_every_flipped_byte_of_a_member_is_noticed(tmp_path, data):
    settings = {"ensemble_size": 1, "random_state": 0, "checkpoint": tmp_path / "c"}
    first = generate_ensemble(data, **settings)
    path = tmp_path / "c" / "member-000000.npz"
    content = path.read_bytes()
    checkpoint = Checkpoint(tmp_path / "d", "digest", first.plan, LocalExecutor())
    damaged = tmp_path / "d" / "member-000000.npz"
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 0x55
        damaged.write_bytes(flipped)
        found = checkpoint.load(0)
        assert found is None or (found[1][0] == first.labels[:, 0]).all()
    for length in range(0, len(content), 7):
        damaged.write_bytes(content[:length])
        assert checkpoint.load(0) is None


def test_a_member_in_the_place_of_another_is_made_again(tmp_path, data):
    settings = {"ensemble_size": 3, "random_state": 0, "checkpoint": tmp_path / "c"}
    first = generate_ensemble(data, **settings)
    shutil.copy(tmp_path / "c/member-000001.npz", tmp_path / "c/member-000000.npz")
    again = generate_ensemble(data, **settings)
    assert (again.labels == first.labels).all()
    assert again.members == first.members


def test_the_members_of_fewer_samples_are_not_taken(tmp_path, data):
    first = generate_ensemble(data, ensemble_size=1, random_state=0)
    checkpoint = Checkpoint(tmp_path / "c", "digest", first.plan, LocalExecutor())
    checkpoint.save((first.members[0], [first.labels[:-1, 0]]))
    assert checkpoint.load(0) is None


class Elsewhere(Executor):
    """An executor that is not this process, as far as the checkpoint can tell."""

    def call(self, func, *args):
        return func(*args)

    def value(self, handle):
        return handle


@pytest.fixture
def in_parts(tmp_path, monkeypatch):
    """A checkpoint with a member in three parts."""
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 128)
    plan = Plan(300, 4, entropy=0, base="landmark")
    member = plan.member(2)
    labels = np.random.default_rng(0).integers(2, size=300).astype(np.int32)
    parts = [labels[start:stop] for start, stop in plan.bounds]
    assert len(parts) == 3
    checkpoint = Checkpoint(tmp_path / "c", "digest", plan, Elsewhere())
    checkpoint.save((member, parts))
    found, kept = checkpoint.load(2)
    assert found == member
    assert (np.concatenate(kept) == labels).all()
    return checkpoint


@pytest.mark.parametrize("part", range(3))
def test_a_member_with_a_missing_part_is_made_again(in_parts, part):
    (in_parts.folder / f"member-000002-part-{part:06d}.npz").unlink()
    assert in_parts.load(2) is None


def test_a_part_in_the_place_of_another_is_noticed(in_parts):
    first, second = (
        in_parts.folder / f"member-000002-part-{part:06d}.npz" for part in (0, 1)
    )
    shutil.copy(first, second)
    assert in_parts.load(2) is None


def test_a_damaged_part_is_noticed(in_parts):
    path = in_parts.folder / "member-000002-part-000001.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(content)
    assert in_parts.load(2) is None


@pytest.mark.parametrize("wrong", ["numbers", "rows", "type"])
def test_a_part_with_labels_of_another_member_is_noticed(in_parts, wrong):
    member, parts = in_parts.load(2)
    labels = parts[1].copy()
    if wrong == "numbers":
        labels[7] = member.n_clusters
    elif wrong == "rows":
        labels = labels[1:]
    else:
        labels = labels.astype(np.int64)
    in_parts.save((member, [parts[0], labels, parts[2]]))
    assert in_parts.load(2) is None


def test_a_part_of_objects_is_not_loaded(in_parts):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("a pickle was loaded",)

    labels = np.full(128, Trap(), dtype=object)
    # Version 0.1 kept parts as plain arrays.
    np.save(in_parts.folder / "member-000002-part-000000.npy", labels)
    assert in_parts.load(2) is None


@pytest.mark.parametrize("value", [-1, 10**6])
def test_labels_outside_of_the_members_clusters_are_not_taken(tmp_path, value):
    plan = Plan(60, 8, entropy=0)
    member = plan.member(0)
    labels = np.zeros(60, dtype=np.int32)
    checkpoint = Checkpoint(tmp_path / "c", "digest", plan, LocalExecutor())
    checkpoint.save((member, [labels]))
    assert checkpoint.load(0) is not None
    labels[7] = value
    checkpoint.save((member, [labels]))
    assert checkpoint.load(0) is None


def test_numbers_of_numpy_are_kept(tmp_path, data):
    settings = {
        "ensemble_size": np.int64(3),
        "mu_range": (np.float32(0.25), np.float64(0.75)),
        "n_neighbors_range": (np.int8(4), np.uint16(9)),
        "base_n_clusters_range": np.array([2, 5]),
        "max_features": np.float32(0.5),
        "random_state": np.int64(4),
    }
    first = generate_ensemble(data, checkpoint=tmp_path / "c", **settings)
    again = generate_ensemble(data, checkpoint=tmp_path / "c", **settings)
    assert (first.labels == again.labels).all()
    first.save(tmp_path / "e.npz")
    loaded = Ensemble.load(tmp_path / "e.npz")
    assert loaded.parameters == first.parameters
    assert loaded.members == first.members
    assert loaded.plan == first.plan
