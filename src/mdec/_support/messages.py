"""Sentences that name a cause and a cure, in place of a result."""

from __future__ import annotations

from collections.abc import Mapping


def refuse(sentences: Mapping[str, object]) -> None:
    """Raise a ValueError of the first sentence that holds.

    Examples
    --------
    >>> refuse({"there are no rows.": False})
    """
    for sentence, holds in sentences.items():
        if holds:
            raise ValueError(sentence)
