"""Docstrings that say each thing once: taken apart by headings, put together again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from inspect import cleandoc, signature
from typing import Any

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


def completed(function: Callable[..., Any], shared: str | None) -> str:
    """Return a function's docstring with what it leaves unsaid taken from a shared one.

    That is each parameter that it does not describe, and each section it does not have.
    """
    own, common = sections(function.__doc__), sections(shared)
    texts = entries(common["Parameters"]) | entries(own["Parameters"])
    own["Parameters"] = listed(texts, signature(function).parameters)
    return joined({heading: own[heading] or common[heading] for heading in _ORDER})
