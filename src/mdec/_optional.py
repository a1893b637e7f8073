"""Optional packages: absent until a function that needs one is called."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_optional(name: str, needed_for: str, extra: str) -> Any:
    """Import an optional package, or say which extra brings it.

    Parameters
    ----------
    name : str
        Name of the module.
    needed_for : str
        What the caller wants it for; begins the message.
    extra : str
        Extra of this package that installs it.

    Returns
    -------
    module
        The imported module.

    Examples
    --------
    >>> import_optional("json", "reading", "json").__name__
    'json'
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{needed_for} needs the package {name}; install it with "
            f'pip install "mdec[{extra}]".'
        ) from error
