"""One seed gives the same labels whatever the processor, as far as it can be imitated.

OpenBLAS takes the kernels of another processor if it is told to, and numba compiles for
any x86-64.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import mdec

CODE = """
import sys
import numpy as np
from sklearn.datasets import load_digits
from mdec import MDEC, generate_ensemble
from mdec.consensus import CONSENSUS

X, n_members = load_digits().data[: int(sys.argv[1])], int(sys.argv[2])
model = MDEC(10, ensemble_size=n_members, random_state=0).fit(X)
columns = [model.recluster(consensus=name) for name in CONSENSUS]
for rows in (X, X > 8):
    settings = {"base": "landmark", "ensemble_size": n_members, "random_state": 0}
    columns += [*generate_ensemble(rows, **settings).labels.T]
np.save(sys.argv[3], np.column_stack([model.ensemble_.labels, *columns]))
"""


def labels_under(
    setting: dict[str, str], n_samples: int, n_members: int, folder: Path
) -> np.ndarray:
    """Return the labels of members and consensus functions, from another process."""
    path = folder / f"{'-'.join(setting.values())}.npy"
    source = str(Path(mdec.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"} | setting
    if "NUMBA_CPU_NAME" in setting:
        environment["NUMBA_CACHE_DIR"] = str(folder / "numba")
    arguments = [str(n_samples), str(n_members), str(path)]
    command = [sys.executable, "-c", CODE, *arguments]
    subprocess.run(command, check=True, env=environment)
    return np.load(path)


def require_openblas() -> None:
    libraries = {each["internal_api"] for each in threadpool_info()}
    if "openblas" not in libraries or platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("only OpenBLAS on x86-64 can imitate other processors")


def cores(*names: str) -> list[dict[str, str]]:
    return [{"OPENBLAS_CORETYPE": name} for name in names]


def test_two_processors_give_the_same_labels(tmp_path: Path) -> None:
    require_openblas()
    first, second = (
        labels_under(setting, 900, 12, tmp_path)
        for setting in cores("Nehalem", "Haswell")
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.slow
def test_six_processors_give_the_same_labels(tmp_path: Path) -> None:
    require_openblas()
    known = cores("Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX")
    settings = [*known, {"NUMBA_CPU_NAME": "generic"}]
    first, *others = (labels_under(each, 1797, 20, tmp_path) for each in settings)
    for other in others:
        np.testing.assert_array_equal(first, other)
