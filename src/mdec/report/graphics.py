"""Colours, axes and paths: what the template draws its figures with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mdec.report.signatures import Markers
from mdec.selection.rule import KSelection

# The colour-blind safe set of Okabe and Ito, then darker and lighter relatives.
COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"),
    *("#d55e00", "#b8a800", "#7a5195", "#8c6d31", "#5c5c5c"),
    *("#1b4f72", "#f4a582", "#66c2a4", "#92275f", "#a6bddb"),
    *("#7f2704", "#6b8e23", "#b39ddb", "#d2b48c", "#a9a9a9"),
)

# From two and a half standard deviations below the mean to as many above it, by the
# levels of `contrast_levels`.
FARTHEST = 2.5
_BELOW, _MIDDLE, _ABOVE = (33, 102, 172), (247, 247, 247), (178, 24, 43)
_UP = np.linspace(_BELOW, _MIDDLE, 128)[:-1], np.linspace(_MIDDLE, _ABOVE, 128)
CONTRASTS = np.concatenate(_UP).round().astype(np.uint8)


def colour(cluster: int) -> str:
    """Return the colour of a cluster; it repeats after twenty."""
    return COLOURS[cluster % len(COLOURS)]


def contrast_levels(scores: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Map standard deviations from the mean to the levels of `CONTRASTS`.

    Examples
    --------
    >>> contrast_levels(np.array([-9.0, 0.0, 2.5]))
    array([  0, 127, 254], dtype=uint8)
    """
    share = np.clip(scores / FARTHEST, -1.0, 1.0)
    return np.rint(127.0 * (share + 1.0)).astype(np.uint8)


def coordinate(value: float) -> str:
    """Write a coordinate with as few digits as the eye can see.

    Examples
    --------
    >>> coordinate(12.04), coordinate(0.25)
    ('12', '0.2')
    """
    return f"{value:.1f}".rstrip("0").rstrip(".")


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers that cover a range.

    Examples
    --------
    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    span = (high - low) or 1.0
    power = 10.0 ** np.floor(np.log10(span / about))
    step = next(m * power for m in (1, 2, 5, 10) if span / (m * power) <= about + 0.5)
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    # Zero is added for zero without a sign.
    return [round(float(i * step), 10) + 0.0 for i in np.arange(first, last + 1)]


class Axes:
    """Two scales in a rectangle of a figure, with ticks.

    The ranges are what the axes span, `size` is that of the whole figure, and the
    margins are left, top, right and bottom.
    """

    def __init__(
        self,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        x_ticks: Sequence[float] | None = None,
        n_ticks: int = 5,
        size: tuple[int, int] = (420, 180),
        margin: tuple[int, int, int, int] = (54, 12, 12, 40),
    ) -> None:
        self.width, self.height = size
        self.left, self.top = margin[:2]
        self.right, self.bottom = size[0] - margin[2], size[1] - margin[3]
        self.x_range, self.y_range = x_range, y_range
        self.x_ticks = ticks(*x_range) if x_ticks is None else x_ticks
        self.y_ticks = ticks(*y_range, n_ticks)

    def x(self, value: float) -> float:
        """Return the horizontal place of a value."""
        low, high = self.x_range
        share = (value - low) / ((high - low) or 1.0)
        return self.left + share * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return the vertical place of a value."""
        low, high = self.y_range
        share = (value - low) / ((high - low) or 1.0)
        return self.bottom - share * (self.bottom - self.top)

    def path(self, xs: Iterable[float], ys: Iterable[float]) -> str:
        """Return the points of a line."""
        return " ".join(
            f"{coordinate(self.x(a))},{coordinate(self.y(b))}"
            for a, b in zip(xs, ys, strict=True)
        )

    def bar(self, left: float, width: float, value: float) -> dict[str, str]:
        """Return the place of a bar from the bottom up to a value."""
        top, sizes = self.y(value), {"x": left, "width": width}
        sizes |= {"y": top, "height": self.bottom - top}
        return {name: coordinate(size) for name, size in sizes.items()}


def criterion_axes(selection: KSelection, name: str) -> Axes:
    """Return the axes of a criterion over K."""
    ks, values = selection.table["n_clusters"], selection.table[name]
    low, high = values.min(initial=0.0), 1.08 * values.max(initial=0.01)
    rise = low - 0.04 * (high - low), high
    size = (480, 300 if name == "score" else 260)
    shown = ks[:: max(1, len(ks) // 10)].tolist()
    return Axes((ks[0] - 0.3, ks[-1] + 0.3), rise, shown, 4, size)


def dot_paths(dots: Markers, left: float, step: float) -> list[tuple[str, float, str]]:
    """Return colour, width and path of the dots of each colour and size.

    A dot is a line of no length with round ends; its size is the share of the samples
    with high values, its colour the effect.
    """
    levels = np.rint(contrast_levels(dots["effects"]) / 254.0 * 6.0).astype(int)
    sizes = np.rint(dots["shares"] * 6.0).astype(int)
    found: dict[tuple[int, int], str] = {}
    for (row, column), level in np.ndenumerate(levels):
        key = int(level), int(sizes[row, column])
        place = f"M{coordinate(left + step * column)} {33 + 18 * row}h0"
        found[key] = found.get(key, "") + place
    palette = CONTRASTS[np.linspace(0, 254, 7).astype(int)]
    return [
        (f"#{palette[level].tobytes().hex()}", 2.0 + 2.2 * size, path)
        for (level, size), path in sorted(found.items())
    ]
