"""The colours of clusters, and the levels of those of values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# The colour-blind safe set of Okabe and Ito, then darker and lighter relatives.
COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"),
    *("#d55e00", "#b8a800", "#7a5195", "#8c6d31", "#5c5c5c"),
    *("#1b4f72", "#f4a582", "#66c2a4", "#92275f", "#a6bddb"),
    *("#7f2704", "#6b8e23", "#b39ddb", "#d2b48c", "#a9a9a9"),
)

# Standard deviations from the mean that have the darkest colours.
FARTHEST = 2.5


def colour(cluster: int) -> str:
    """Return the colour of a cluster; it repeats after twenty."""
    return COLOURS[cluster % len(COLOURS)]


def contrast_levels(scores: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Map standard deviations from the mean to 255 levels of colour.

    Examples
    --------
    >>> contrast_levels(np.array([-9.0, 0.0, 2.5]))
    array([  0, 127, 254], dtype=uint8)
    """
    share = np.clip(scores / FARTHEST, -1.0, 1.0)
    return np.rint(127.0 * (share + 1.0)).astype(np.uint8)
