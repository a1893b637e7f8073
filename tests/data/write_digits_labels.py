"""Write the labels that later versions are held to.

Run ``python tests/data/write_digits_labels.py`` only when a change of the labels is
meant, and say so in the changelog.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import mdec
from mdec.consensus import CONSENSUS

TARGET = Path(__file__).parent / "digits_labels.npz"


def digits_labels() -> dict[str, np.ndarray]:
    """Return the labels of each consensus function from one ensemble of the digits."""
    X, _ = load_digits(return_X_y=True)
    model = mdec.MDEC(n_clusters=10, ensemble_size=30, random_state=0).fit(X)
    return {name: model.recluster(consensus=name).astype(np.int8) for name in CONSENSUS}


if __name__ == "__main__":
    np.savez_compressed(TARGET, version=np.array(mdec.__version__), **digits_labels())
