"""How the functions of the baselines are declared: checked options and docstrings.

The type hint of an option says what scikit-learn checks of it. A consensus function
describes what is its own, and `consensus_function` adds what all share.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import cleandoc, signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, validate_params

from mdec._support.random import RandomState
from mdec.consensus import spectral
from mdec.consensus.partitions import trivial_partition
from mdec.ensemble import Ensemble

Labels = NDArray[np.int32]
Consensus = Callable[..., Labels]
Function = TypeVar("Function", bound=Callable[..., Any])

NATURAL = Interval(Integral, 1, None, closed="left")
Count = Annotated[int, NATURAL]
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
Bounds = Annotated[tuple[int, int], tuple, list]
Seed = Annotated[
    RandomState,
    *(Interval(Integral, 0, None, closed="left"), np.random.RandomState),
    *(np.random.Generator, None),
]

_HEADINGS = (
    *("", "Parameters", "Attributes", "Returns", "See Also", "Notes"),
    *("References", "Examples"),
)

_EXAMPLE = """\
>>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1]])
>>> NAME(ensemble, 2, OPTIONS)
array([0, 0, 1, 1], dtype=int32)"""


def option_constraints(function: Callable[..., Any]) -> dict[str, list[Any]]:
    """Return what scikit-learn checks of a function's options, from their hints.

    Examples
    --------
    >>> def walk(X, *, steps: Count | None = None, lazy: bool = False): ...
    >>> option_constraints(walk)["lazy"]
    ['boolean']
    """
    hints = typing.get_type_hints(function, include_extras=True)
    return {
        name: _constraints(hints[name])
        for name, each in signature(function).parameters.items()
        if each.kind is each.KEYWORD_ONLY
    }


def _constraints(hint: Any) -> list[Any]:
    if typing.get_origin(hint) is Annotated:
        return list(hint.__metadata__)
    if typing.get_origin(hint) in (typing.Union, UnionType):
        return [each for part in typing.get_args(hint) for each in _constraints(part)]
    return [{bool: "boolean", int: Integral, NoneType: None}.get(hint, hint)]


def validate_options(function: Function) -> Function:
    """Let scikit-learn check the options of every call."""
    validate = validate_params(
        option_constraints(function), prefer_skip_nested_validation=True
    )
    return typing.cast(Function, validate(function))


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
            trivial = trivial_partition(ensemble, n_clusters)
            if trivial is not None:
                return trivial
            return function(ensemble, n_clusters, **options)

        related = read_sections(like.__doc__)
        taken = related.keys() & {"Parameters", "Returns", "References"}
        shown = _EXAMPLE.replace("OPTIONS", example).replace("NAME", function.__name__)
        consensus.__doc__ = write_docstring(
            signature(function).parameters,
            {heading: related[heading] for heading in taken} | {"Examples": shown},
            read_sections(function.__doc__),
        )
        return validate_options(typing.cast(Function, consensus))

    return decorate


def read_sections(docstring: str | None) -> dict[str, str]:
    """Return the text under each heading of a docstring; the opening has none.

    Examples
    --------
    >>> read_sections("Add numbers.\\n\\n    Notes\\n    -----\\n    Slowly.")
    {'': 'Add numbers.', 'Notes': 'Slowly.'}
    """
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
