"""What `import mdec` gives, what it loads and how long it takes."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import mdec

HEAVY = ("numba", "torch", "matplotlib", "dask", "typer")


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def in_order(names: list[str]) -> list[str]:
    """Sort as linters do: constants, classes, then everything else."""
    return sorted(names, key=lambda n: (not n.isupper(), not n[0].isupper(), n))


def test_all_is_sorted_and_complete() -> None:
    assert mdec.__all__ == in_order(mdec.__all__)
    public = {
        name
        for name in dir(mdec)
        if not name.startswith("_") and not inspect.ismodule(getattr(mdec, name))
    }
    assert public | {"__version__"} == set(mdec.__all__)


def test_names_load_when_asked_for() -> None:
    code = (
        "import sys, mdec; print('sklearn' in sys.modules); "
        "from mdec import MDEC; print(MDEC is mdec.MDEC, 'sklearn' in sys.modules)"
    )
    assert run(code).split() == ["False", "True", "True"]


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="'mdec' has no attribute 'MDCE'"):
        _ = mdec.MDCE


def test_public_names_of_the_consensus() -> None:
    module = importlib.import_module("mdec.consensus")
    assert module.__all__ == in_order(module.__all__)
    assert {"hierarchical", "spectral", "bipartite"} <= set(module.__all__)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("mdec", "MDEC"),
        ("mdec", "Ensemble"),
        ("mdec", "generate_ensemble"),
        ("mdec.consensus", "hierarchical"),
        ("mdec.consensus", "spectral"),
        ("mdec.consensus", "bipartite"),
        ("mdec.weights", "ensemble_driven_cluster_index"),
        ("mdec.coassociation", "locally_weighted_coassociation"),
    ],
)
def test_promised_names(module: str, name: str) -> None:
    assert callable(getattr(importlib.import_module(module), name))


def test_version() -> None:
    assert mdec.__version__.count(".") == 2


def test_import_loads_nothing_heavy() -> None:
    code = f"import sys, mdec; print([n for n in {HEAVY} if n in sys.modules])"
    assert run(code) == "[]"


def test_import_is_fast() -> None:
    code = (
        "import time; start = time.process_time(); import mdec; "
        "ready = time.process_time(); import sklearn.base; "
        "theirs = time.process_time(); mdec.MDEC(); end = time.process_time(); "
        "print(ready - start, end - theirs)"
    )
    # In processor time, and the best of up to five: other work on the machine only
    # adds.
    for _ in range(5):
        package, estimator = map(float, run(code).split())
        if package < 1.0 and estimator < 1.0:
            break
    assert package < 1.0
    assert estimator < 1.0


def test_types_are_shipped() -> None:
    assert (Path(mdec.__file__).parent / "py.typed").is_file()
