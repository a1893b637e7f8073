"""Multidiversified ensemble clustering of high-dimensional data."""

import importlib
import typing

if typing.TYPE_CHECKING:
    from mdec.ensemble import Ensemble
    from mdec.estimator import MDEC, MultiViewMDEC
    from mdec.generation import generate_ensemble

__all__ = ["MDEC", "Ensemble", "MultiViewMDEC", "__version__", "generate_ensemble"]

__version__ = "0.1.0"

_HOMES = {
    "MDEC": "mdec.estimator",
    "Ensemble": "mdec.ensemble",
    "MultiViewMDEC": "mdec.estimator",
    "generate_ensemble": "mdec.generation",
}

if not typing.TYPE_CHECKING:
    # Names load when they are first asked for, because scikit-learn's own import
    # takes most of a second.

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
