"""Docstrings of functions that share parameters, each of which is described once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])


def describe_as(source: Callable[..., Any]) -> Callable[[T], T]:
    """Add to a docstring what that of another function says of their parameters.

    Parameters that the docstring leaves out are described as in the source, in the
    order of the signature; so is what is returned.

    Examples
    --------
    >>> def root(x):
    ...     '''Return the root.
    ...
    ...     Parameters
    ...     ----------
    ...     x : float
    ...         Any number that is not negative.
    ...     '''
    >>> @describe_as(root)
    ... def logarithm(x):
    ...     '''Return the logarithm.'''
    >>> print(logarithm.__doc__.splitlines()[-1].strip())
    Any number that is not negative.
    """

    def complete(function: T) -> T:
        if not (function.__doc__ and source.__doc__):  # as under python -OO
            return function
        own, known = _sections(function.__doc__), _sections(source.__doc__)
        entries = _entries(known.get("Parameters", ""))
        entries |= _entries(own.pop("Parameters", ""))
        names = inspect.signature(function).parameters
        described = dict.fromkeys(entries[name] for name in names if name in entries)
        sections = {
            "": own.pop(""),
            "Parameters": "\n".join(described),
            "Returns": "" if inspect.isclass(function) else known.get("Returns", ""),
            **own,
        }
        function.__doc__ = "\n\n".join(
            f"{title}\n{'-' * len(title)}\n{text}" if title else text
            for title, text in sections.items()
            if text
        )
        return function

    return complete


def _sections(docstring: str) -> dict[str, str]:
    """Return the sections of a docstring by their titles; the first has none."""
    text = inspect.cleandoc(docstring)
    first, *others = re.split(r"^(\w[\w ]*)\n-+\n", text, flags=re.MULTILINE)
    texts = [first, *others[1::2]]
    titles = ["", *others[::2]]
    return {t: text.strip() for t, text in zip(titles, texts, strict=True)}


def _entries(section: str) -> dict[str, str]:
    """Return the descriptions of parameters by their names, several sharing one."""
    return {
        name: entry.strip()
        for entry in re.split(r"^(?=\S)", section, flags=re.MULTILINE)
        for name in entry.partition(" : ")[0].split(", ")
    }
