"""Packages that only some features need, imported where they are used."""

from __future__ import annotations

from importlib import import_module
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
        What to give to ``pip install``.

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
        raise MissingPackageError(
            f"{needed_for} needs the package {name.split('.')[0]!r}; install it with "
            f"pip install '{install}'."
        ) from error
