"""Several kernels in one ensemble: what is asked for, as names with shares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from mdec.base.kernels import KERNELS
from mdec.ensemble.draws import Shares

Kernel = str | Sequence[str] | Mapping[str, float]


def checked_kernel(kernel: Kernel) -> str | Shares:
    """Return one kernel by its name, several as sorted names with their shares.

    Parameters
    ----------
    kernel : str, sequence of str or mapping of str to float
        One name; several, drawn alike; or names with positive shares, which need not
        add up to one.

    Returns
    -------
    str or tuple of (str, float)
        The shares add up to one. The order in which names are given does not matter.

    Examples
    --------
    >>> checked_kernel(["scaled_gaussian"])
    'scaled_gaussian'
    >>> checked_kernel({"scaled_gaussian": 3, "cosine": 1})
    (('cosine', 0.25), ('scaled_gaussian', 0.75))
    """
    if isinstance(kernel, str):
        return _checked_name(kernel, kernel)
    if isinstance(kernel, Mapping):
        given = [(name, _checked_share(name, kernel[name])) for name in kernel]
    elif isinstance(kernel, list | tuple):
        given = [(name, 1.0) for name in kernel]
    else:
        raise ValueError(
            f"kernel={kernel!r} is no name, list of names or mapping of names to "
            f"shares; the names are {', '.join(KERNELS)}."
        )
    names = [_checked_name(name, kernel) for name, _ in given]
    if not names:
        raise ValueError(
            f"kernel={kernel!r} names no kernel; give one or more of "
            f"{', '.join(KERNELS)}."
        )
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(
            f"kernel={kernel!r} names {twice[0]!r} twice; give shares instead, such as "
            f"{{{twice[0]!r}: 2, ...}}."
        )
    if len(names) == 1:
        return names[0]
    # In units of the largest, so that no sum overflows.
    largest = max(share for _, share in given)
    shares = [share / largest for _, share in given]
    total = math.fsum(shares)
    pairs = zip(names, shares, strict=True)
    return tuple(sorted((name, share / total) for name, share in pairs))


def _checked_name(name: Any, kernel: Any) -> str:
    if not isinstance(name, str) or name not in KERNELS:
        beside = "" if name is kernel else f" in kernel={kernel!r}"
        called = f"kernel={name!r}" if name is kernel else repr(name)
        raise ValueError(f"{called}{beside} is not one of {', '.join(KERNELS)}.")
    return str(name)


def _checked_share(name: Any, share: Any) -> float:
    # A bool is a number to Python, and True no share.
    number = isinstance(share, Real) and not isinstance(share, bool)
    if not number or not 0.0 < share < math.inf:
        raise ValueError(
            f"the share {share!r} of the kernel {name!r} must be a number above 0; "
            "leave out the kernels that no member is to draw."
        )
    return float(share)
