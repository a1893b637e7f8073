"""The methods that studies know by name.

A method is ``function(data, n_clusters, *, random_state, **parameters) -> labels``,
where data is the ensemble if the method names a generator and X if it does not. Studies
name any such function as "module:function".
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.optional import MissingPackageError
from mdec.baselines import BASELINES, GENERATION
from mdec.consensus import CONSENSUS
from mdec.ensemble import Ensemble
from mdec.experiments.peers import PEERS
from mdec.experiments.records import Parameters
from mdec.generation import generate_ensemble
from mdec.preparation import DRAWN, ExpressionPreparation, kind_of_values
from mdec.weights import WEIGHTINGS

Labels = NDArray[np.integer]


@dataclass(frozen=True)
class Method:
    """How a method is called: "module:function", and the arguments of every call.

    `generator` names the maker of the ensemble it works on; None if it works on the
    data.
    """

    function: str
    generator: str | None
    parameters: Parameters


def resolve(function: str) -> Any:
    """Return the function that "module:function" names.

    Examples
    --------
    >>> resolve("math:sqrt")(9.0)
    3.0
    """
    module, _, name = function.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise MissingPackageError(
            f"{function!r} needs the module {error.name!r}, which is not installed; "
            "install it or start from the folder that holds it."
        ) from error
    except AttributeError as error:
        raise ValueError(
            f"{function!r} names no function; write it as module:function."
        ) from error


def mdec(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    consensus: str,
    weighting: str = "entropy",
    random_state: int,
) -> Labels:
    """Apply a consensus function of MDEC with the weights it asks for."""
    weights = WEIGHTINGS[weighting](ensemble)
    return CONSENSUS[consensus](
        ensemble, n_clusters, weights, random_state=random_state
    )


def baseline(
    ensemble: Ensemble, n_clusters: int, *, name: str, random_state: int, **options: Any
) -> Labels:
    """Apply a baseline's consensus function."""
    return BASELINES[name](ensemble, n_clusters, random_state=random_state, **options)


def prepared_ensemble(X: Any, *, random_state: int, **settings: Any) -> Ensemble:
    """Make MDEC's ensemble of values that are prepared as `mdec fit` does."""
    values = np.asarray(X, dtype=np.float64)
    if kind_of_values(values)[0] in DRAWN:
        settings["preparation"] = "diversified"
    else:
        values = ExpressionPreparation().fit_transform(values)
    made: Ensemble = generate_ensemble(values, random_state=random_state, **settings)
    return made


GENERATORS = {
    "mdec": "mdec.generation:generate_ensemble",
    "prepared": f"{__name__}:prepared_ensemble",
    "kmeans": "mdec.baselines:generate_kmeans_ensemble",
    "stratified": "mdec.baselines:generate_stratified_ensemble",
}

_MDEC = {"MDEC-HC": "hierarchical", "MDEC-SC": "spectral", "MDEC-BG": "bipartite"}

METHODS: dict[str, Method] = {
    **{
        name: Method(f"{__name__}:baseline", generator, {"name": name})
        for name, generator in GENERATION.items()
    },
    **{
        name: Method(f"{__name__}:mdec", "mdec", {"consensus": consensus})
        for name, consensus in _MDEC.items()
    },
    **{
        name: Method(f"{function.__module__}:{function.__name__}", None, {})
        for name, function in PEERS.items()
    },
}
