"""Runs that are killed go on where they were, with the same result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mdec import MDEC, generate_ensemble
from mdec.engines.store import Store
from mdec.plan import Plan
from mdec.rows.work import Here

SCRIPT = """
import sys, time
import numpy as np
from mdec import generation
from mdec.engines import here

cluster = here.base_clustering
def slow(X, member, plan):
    time.sleep(0.05)
    print(member.index, flush=True)
    return cluster(X, member, plan)
here.base_clustering = slow
X = np.random.default_rng(0).normal(size=(60, 8))
ensemble = generation.generate_ensemble(
    X, ensemble_size=30, random_state=5, checkpoint=sys.argv[1]
)
np.save(sys.argv[2], ensemble.labels)
"""


@pytest.fixture
def data():
    return np.random.default_rng(0).normal(size=(60, 8))


def run(folder, result):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), str(result)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_killed_run_goes_on_with_the_same_result(tmp_path, data):
    folder, result = tmp_path / "members", tmp_path / "labels.npy"
    first = run(folder, result)
    for _ in range(8):
        first.stdout.readline()
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    first.stdout.close()
    kept = {int(path.stem.split("-")[1]) for path in folder.glob("member-*.npz")}
    assert 5 <= len(kept) < 30
    assert not result.exists()
    second = run(folder, result)
    again = {int(word) for word in second.communicate(timeout=60)[0].split()}
    assert again == set(range(30)) - kept
    plain = generate_ensemble(data, ensemble_size=30, random_state=5)
    assert (np.load(result) == plain.labels).all()


def test_finished_members_are_not_made_again(tmp_path, data, monkeypatch):
    first = generate_ensemble(
        data, ensemble_size=6, random_state=0, checkpoint=tmp_path / "c"
    )
    monkeypatch.setattr(
        "mdec.engines.here.base_clustering",
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
        ({"sampling_ratio": 0.6}, "sampling_ratio"),
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

    store = Store(tmp_path / "c", "digest", Plan.checked(*data.shape, entropy=0))
    store.save(Failure(4, "no reason"), Here())
    assert store.load(4, Here()) == Failure(4, "no reason")
    assert store.load(5, Here()) is None
    assert len(store) == 1


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
