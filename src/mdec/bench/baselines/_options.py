"""What all consensus functions share: checked options and completed docstrings.

A consensus function describes what is its own; `consensus_function` adds the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import cleandoc, signature
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from mdec.consensus import spectral
from mdec.consensus.partitions import trivial_partition
from mdec.ensemble import Ensemble

Labels = NDArray[np.int32]
Consensus = Callable[..., Labels]
Function = TypeVar("Function", bound=Callable[..., Any])

# What an option may be, by its name, or by that of the function too where they differ.
NATURAL = Interval(Integral, 1, None, closed="left")
_SEED = Interval(Integral, 0, None, closed="left")
_OPTIONS: dict[str, list[Any]] = {
    "n_clusters": [NATURAL],
    "ensemble_size": [NATURAL],
    "base_n_clusters_range": [tuple, list, None],
    "max_features": [Interval(Real, 0, 1, closed="right")],
    "n_strata": [NATURAL, None],
    "n_jobs": [Integral, None],
    "random_state": [_SEED, np.random.RandomState, np.random.Generator, None],
    "partitioner": [StrOptions({"metis", "spectral"})],
    "hgpa.partitioner": [StrOptions({"mtkahypar", "spectral"})],
    "theta": [Interval(Real, 0, None, closed="neither")],
    "linkage": [StrOptions({"average", "complete", "single"})],
    "n_elite": [NATURAL, None],
    "n_steps": [NATURAL, None],
    "utility": [StrOptions({"U_H", "U_c", "U_cos", "U_Lp"})],
    "p": [Interval(Real, 1, None, closed="neither")],
    "normalized": ["boolean"],
    "n_init": [NATURAL],
    "max_iterations": [NATURAL],
    "threshold": [Interval(Real, 0, 1, closed="both")],
}

_HEADINGS = (
    *("", "Parameters", "Attributes", "Returns", "See Also", "Notes"),
    *("References", "Examples"),
)

_EXAMPLE = """\
>>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1]])
>>> NAME(ensemble, 2, OPTIONS)
array([0, 0, 1, 1], dtype=int32)"""


def constraints(function: Callable[..., Any]) -> dict[str, list[Any]]:
    """Return what scikit-learn checks of the options of a function, its keywords."""
    given, own = signature(function).parameters.items(), function.__name__
    names = [name for name, each in given if each.kind is each.KEYWORD_ONLY]
    return {name: _OPTIONS.get(f"{own}.{name}", _OPTIONS[name]) for name in names}


def check_options(function: Function) -> Function:
    """Let scikit-learn check the options of every call."""
    validate = validate_params(
        constraints(function), prefer_skip_nested_validation=True
    )
    return validate(function)


def consensus_function(
    like: Consensus = spectral, *, example: str = "random_state=0"
) -> Callable[[Function], Function]:
    """Answer what is trivial, check the options, and complete the docstring.

    Parameters that the function does not describe, its result and its references are
    those of the function `like`. The options in its example are `example`.
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def consensus(ensemble: Ensemble, n_clusters: int, **options: Any) -> Any:
            trivial = trivial_partition(ensemble.n_samples, n_clusters)
            if trivial is not None:
                return trivial
            return function(ensemble, n_clusters, **options)

        related = read_sections(like.__doc__)
        taken = related.keys() & {"Parameters", "Returns", "References"}
        shown = _EXAMPLE.replace("OPTIONS", example)
        shown = shown.replace("NAME", function.__name__)
        consensus.__doc__ = write_docstring(
            signature(function).parameters,
            {heading: related[heading] for heading in taken} | {"Examples": shown},
            read_sections(function.__doc__),
        )
        checked: Any = check_options(consensus)
        return checked

    return decorate


def read_sections(docstring: str | None) -> dict[str, str]:
    """Return the text under each heading of a docstring; the opening has none."""
    # Docstrings are None where Python drops them (-OO).
    text = cleandoc(docstring or "")
    opening, *rest = re.split(r"\n*^([A-Z][A-Za-z ]+)\n-{3,}\n", text, flags=re.M)
    return {"": opening, **dict(zip(rest[::2], rest[1::2], strict=True))}


def write_docstring(names: Iterable[str], *sources: dict[str, str]) -> str:
    """Write a docstring with the sections of others, the later before the earlier.

    What is said of parameters is taken one by one, for these names in their order.
    """
    parts: dict[str, str] = {}
    texts: dict[str, str] = {}
    for sections in sources:
        parts |= sections
        _, *rest = re.split(r"^(\w+) : ", sections.get("Parameters", ""), flags=re.M)
        texts |= zip(rest[::2], map(str.rstrip, rest[1::2]), strict=True)
    entries = [f"{name} : {texts[name]}" for name in names if name in texts]
    parts["Parameters"] = "\n".join(entries)
    return "\n\n".join(
        f"{heading}\n{'-' * len(heading)}\n{parts[heading]}".lstrip()
        for heading in _HEADINGS
        if parts.get(heading)
    )
