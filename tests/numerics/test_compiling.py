"""What people wait for, and are told, when the loops are compiled."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core import event
from numba.core.errors import TypingError

import mdec
from mdec.numerics.loops import dense
from mdec.numerics.loops.jit import COMPILING, inner, jit, report_compiling

# What array expressions and allocations inside a loop would bring along.
WORDY = ("unicode", "raise_with_shape_context", "np_empty", "np_zeros", "np_full")

FIT = """
import json, sys
import numpy as np
from numba.core import event
names = []
class Listener(event.Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        names.append(function.__module__ + "." + function.__qualname__)
    def on_end(self, event):
        pass
event.register("numba:compile", Listener())
import mdec
X = np.random.default_rng(0).normal(size=(300, 50))
mdec.MDEC(n_clusters=4, ensemble_size=3, random_state=0, verbose=1).fit(X)
print(json.dumps(names))
"""


def fitted_in_a_new_process(cache: Path) -> tuple[list[str], str]:
    """Return the functions that were compiled, and what was written to stderr."""
    done = subprocess.run(
        [sys.executable, "-c", FIT],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout), done.stderr


@pytest.mark.slow
def test_a_small_fit_compiles_few_functions_and_only_once(tmp_path: Path) -> None:
    names, said = fitted_in_a_new_process(tmp_path)
    assert len(names) <= 30
    assert not [name for name in names if any(word in name for word in WORDY)]
    assert said.count(COMPILING) == 1
    again, said = fitted_in_a_new_process(tmp_path)
    assert again == []
    assert COMPILING not in said


def test_compiling_is_told_once_and_only_inside() -> None:
    @inner()
    def doubled(x: float) -> float:
        return 2.0 * x

    @jit()
    def more(x: float) -> float:
        return doubled(x) + 1.0

    told: list[str] = []
    with report_compiling(told.append):
        assert more(3.0) == 7.0
        assert more(np.float32(3.0)) == 7.0
    assert told == []  # these are no loops of the package

    more.py_func.__module__ = doubled.py_func.__module__ = "mdec.numerics.made_up"
    with report_compiling(told.append):
        assert more(3) == 7.0
        assert more(np.int32(3)) == 7.0
    assert told == [COMPILING]
    assert more(np.int16(3)) == 7.0
    assert told == [COMPILING]


def test_the_collector_runs_again_after_compiling() -> None:
    while_compiling = []

    class Listener(event.Listener):
        def on_start(self, event: event.Event) -> None:  # noqa: ARG002
            while_compiling.append(gc.isenabled())

        def on_end(self, event: event.Event) -> None:
            pass

    listener = Listener()
    event.register("numba:compile", listener)

    @jit()
    def refused(x: str) -> float:
        return x.no_such_attribute

    try:
        with pytest.raises(TypingError):
            refused("")
    finally:
        event.unregister("numba:compile", listener)
    assert while_compiling == [False]
    assert gc.isenabled()


def test_what_is_compiled_is_not_told() -> None:
    X = np.arange(12.0).reshape(4, 3)
    dense.pair_distances(X, np.array([0]), np.array([1]))
    told: list[str] = []
    with report_compiling(told.append):
        assert dense.pair_distances(X, np.array([0]), np.array([1])) == [27.0]
    assert told == []


LOOP = """
import warnings
import numpy as np
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from mdec.numerics.loops import dense
    X = np.arange(12.0).reshape(4, 3)
    assert dense.pair_distances(X, np.array([0]), np.array([1])) == [27.0]
    assert dense.pair_distances(X.astype("f"), np.array([0]), np.array([1])) == [27.0]
print(*(each.message for each in caught), sep="\\n")
"""


COUNTED = """
import numpy as np
from numba.core import event
from mdec.numerics.loops import dense
with event.install_recorder("numba:compile") as recorder:
    dense.pair_distances(np.arange(12.0).reshape(4, 3), np.array([0]), np.array([1]))
print(len(recorder.buffer))
"""


def warned_in_a_new_process(cache: Path, before: str = "") -> list[str]:
    """Return the warnings of a process that calls a loop with two types of numbers."""
    done = subprocess.run(
        [sys.executable, "-c", before + LOOP],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


@pytest.mark.parametrize("ending", ["*.nbi", "*.nbc"])
def test_a_damaged_cache_costs_a_compilation_and_one_warning(
    tmp_path: Path, ending: str
) -> None:
    assert warned_in_a_new_process(tmp_path) == []
    damaged = list(tmp_path.rglob(ending))
    assert damaged
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-20])
    (warning,) = warned_in_a_new_process(tmp_path)
    assert "could not be read" in warning
    assert "NUMBA_CACHE_DIR" in warning
    assert warned_in_a_new_process(tmp_path) == []  # and is whole again


def test_a_full_disk_under_the_cache_costs_one_warning(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    (warning,) = warned_in_a_new_process(tmp_path, full)
    assert "could not be written" in warning
    assert list(tmp_path.rglob("*.nb?")) == []


def test_loops_are_compiled_again_when_another_file_of_theirs_changes(
    tmp_path: Path,
) -> None:
    """Loops hold those that they call, of which numba's cache does not know."""
    package = tmp_path / "mdec"
    shutil.copytree(
        Path(mdec.__file__).parent,
        package,
        ignore=shutil.ignore_patterns("__pycache__"),
    )

    def n_compiled() -> int:
        done = subprocess.run(
            [sys.executable, "-c", COUNTED],
            env={
                **os.environ,
                "PYTHONPATH": str(tmp_path),
                "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
            },
            check=True,
            capture_output=True,
            text=True,
        )
        return int(done.stdout)

    assert n_compiled() > 0
    assert n_compiled() == 0
    with (package / "numerics" / "loops" / "lanes.py").open("a") as file:
        file.write("\n")
    assert n_compiled() > 0


def test_listeners_are_taken_away() -> None:
    before = [list(each) for each in event._registered.values()]
    with pytest.raises(KeyError), report_compiling(print):
        raise KeyError
    assert [list(each) for each in event._registered.values()] == before
