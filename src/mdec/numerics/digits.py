"""Numbers with fewer digits than those in which processors differ."""

from __future__ import annotations

from typing import Any

# Multiplied and taken away again, it leaves 30 of 53 binary digits.
_SPLIT = 2.0**23 + 1.0

# What rounding to nine digits changes at most, as a share.
NINE_DIGITS = 2.0**-30


def nine_digits(values: Any) -> Any:
    """Round numbers, or arrays of NumPy or PyTorch, to about nine digits.

    Sums of the same numbers in another order differ in the last of sixteen digits;
    rounded they are equal, and ties between them are seen.

    Examples
    --------
    >>> 0.1 + 0.2 == 0.3, nine_digits(0.1 + 0.2) == nine_digits(0.3)
    (False, True)
    """
    wide = values * _SPLIT
    return wide - (wide - values)
