"""Packages: those that only some features need, and the versions of all."""

from __future__ import annotations

import platform
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any


class MissingPackageError(ImportError):
    """A feature needs a package that is not installed; the message says which."""


def import_optional(name: str, *, needed_for: str, install: str) -> Any:
    """Return a module, or raise one sentence that says how to install it.

    Parameters
    ----------
    name : str
        Module to import.
    needed_for : str
        What the user asked for.
    install : str
        What to give to ``pip install``; for an extra of mdec, which need not be in any
        index, the package itself is named.

    Returns
    -------
    module
        The imported module.

    Examples
    --------
    >>> import_optional("json", needed_for="records", install="json").dumps([1])
    '[1]'
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or name.split(".")[0] != error.name.split(".")[0]:
            raise
        package = name.split(".")[0]
        if install.startswith("mdec["):
            install = {"PIL": "pillow"}.get(package, package)
        raise MissingPackageError(
            f"{needed_for} needs the package {package!r}; install it with "
            f"pip install '{install}'."
        ) from error


@cache
def versions(*packages: str) -> dict[str, str]:
    """Return the versions of Python and of some packages.

    Examples
    --------
    >>> list(versions("numpy", "no such package").items())[-1]
    ('no such package', 'unknown')
    """
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
