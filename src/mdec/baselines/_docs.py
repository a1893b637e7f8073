"""Docstrings that say each thing once: taken apart by headings, put together again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from inspect import cleandoc, signature
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_ORDER = (
    *("", "Parameters", "Attributes", "Returns", "See Also", "Notes"),
    *("References", "Examples"),
)


def sections(docstring: str | None) -> dict[str, str]:
    """Return the text under each heading of a docstring; the opening has none.

    Examples
    --------
    >>> found = sections("Add numbers.\\n\\n    Notes\\n    -----\\n    Slowly.")
    >>> found[""], found["Notes"], found["References"]
    ('Add numbers.', 'Slowly.', '')
    """
    # Docstrings are None where Python is told to drop them (-OO).
    text = cleandoc(docstring or "")
    opening, *rest = re.split(r"\n*^([A-Z][A-Za-z ]+)\n-{3,}\n", text, flags=re.M)
    found = dict(zip(rest[::2], rest[1::2], strict=True))
    return dict.fromkeys(_ORDER, "") | {"": opening} | found


def entries(section: str) -> dict[str, str]:
    """Return what a section says of each name: the type, then indented lines.

    Examples
    --------
    >>> entries("p : float\\n    Exponent.\\nq : int\\n    Order.")
    {'p': 'float\\n    Exponent.', 'q': 'int\\n    Order.'}
    """
    _, *rest = re.split(r"^(\w+) : ", section, flags=re.M)
    return dict(zip(rest[::2], map(str.rstrip, rest[1::2]), strict=True))


def listed(texts: dict[str, str], names: Iterable[str]) -> str:
    """Write the entries of some names, in that order."""
    return "\n".join(f"{name} : {texts[name]}" for name in names if name in texts)


def joined(parts: dict[str, str]) -> str:
    """Write a docstring of sections, in the order of numpydoc, without empty ones."""
    return "\n\n".join(
        f"{heading}\n{'-' * len(heading)}\n{parts[heading]}".lstrip()
        for heading in _ORDER
        if parts[heading]
    )


def completed_by(shared: dict[str, str]) -> Callable[[Function], Function]:
    """Complete a function's docstring by shared sections; it stays what it is.

    They give each parameter that it does not describe and each section that it does not
    have; NAME stands for its name.
    """

    def decorate(function: Function) -> Function:
        own = sections(function.__doc__)
        texts = entries(shared["Parameters"]) | entries(own["Parameters"])
        own["Parameters"] = listed(texts, signature(function).parameters)
        whole = joined({each: own[each] or shared[each] for each in _ORDER})
        function.__doc__ = whole.replace("NAME", function.__name__)
        return function

    return decorate
