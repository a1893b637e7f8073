"""Colours, pictures, axes and orders: what the template draws its figures with."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array, Labels
from mdec.confidence import AMBIGUOUS
from mdec.report.compute import Column, SignatureValues
from mdec.report.layout import SIZE as SIZE
from mdec.report.layout import SampleMap, radius
from mdec.report.signatures import Markers
from mdec.report.solutions import Solution, pair_consensus
from mdec.selection.rule import KSelection

NAME_LENGTH = 20

# The colour-blind safe set of Okabe and Ito, then darker and lighter relatives.
COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"),
    *("#d55e00", "#b8a800", "#7a5195", "#8c6d31", "#5c5c5c"),
    *("#1b4f72", "#f4a582", "#66c2a4", "#92275f", "#a6bddb"),
    *("#7f2704", "#6b8e23", "#b39ddb", "#d2b48c", "#a9a9a9"),
)

# Known classes are no clusters, and have none of their colours (after Tol).
CLASS_COLOURS = (
    *("#332288", "#88ccee", "#117733", "#ddcc77", "#cc6677", "#882255"),
    *("#44aa99", "#999933", "#aa4499", "#ee8866", "#bbcc33", "#ffaabb"),
)
MISSING = "#8d97a3"

# Numbers, from the lowest to the highest.
RAMP = ("#5b2a86", "#3f6fb0", "#2a9d8f", "#8cc152", "#e0b000")
_RAMP_LEVELS = 64

# From no consensus to full consensus, in 256 levels.
SHADES = np.linspace((247, 249, 252), (8, 48, 107), 256).round().astype(np.uint8)

# Points of a side of the heatmap, at most.
MOST_POINTS = 700

# Columns of the table beside the heatmap.
MAX_TRACKS = 4

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


def picture(levels: NDArray[np.integer], palette: NDArray[np.integer]) -> str:
    """Return levels as a PNG picture in a data address.

    `palette` of shape (n_levels, 3) has the colour of each level, 256 at most.
    """
    height, width = levels.shape
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # each begins with a filter
    rows[:, 1:] = levels
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0),
        b"PLTE": np.asarray(palette, dtype=np.uint8).tobytes(),
        b"IDAT": zlib.compress(rows.tobytes(), 9),
        b"IEND": b"",
    }
    content = b"\x89PNG\r\n\x1a\n"
    for name, part in parts.items():
        check = struct.pack(">I", zlib.crc32(name + part))
        content += struct.pack(">I", len(part)) + name + part + check
    return "data:image/png;base64," + base64.b64encode(content).decode()


def rgb(colours: Sequence[str]) -> NDArray[np.int64]:
    """Return colours such as "#0072b2" as numbers, of shape (n_colours, 3)."""
    return np.array([[int(each[i : i + 2], 16) for i in (1, 3, 5)] for each in colours])


def cluster_strip(clusters: NDArray[np.integer]) -> str:
    """Return the colours of clusters side by side, as a picture one pixel high."""
    return picture(clusters[None, :] % len(COLOURS), rgb(COLOURS))


def column_strip(column: Column, samples: Labels) -> str:
    """Return a column of the table as colours side by side, as `cluster_strip`."""
    if column["kind"] == "numbers":
        values = column["values"]
        there = values[np.isfinite(values)]
        low, span = there.min(), np.ptp(there) or 1.0
        known = np.where(np.isfinite(values), values, low) - low
        codes = np.rint(known / span * (_RAMP_LEVELS - 1)).astype(int)
        codes[~np.isfinite(values)] = _RAMP_LEVELS
        steps = np.linspace(0, len(RAMP) - 1, _RAMP_LEVELS)
        columns = [np.interp(steps, range(len(RAMP)), c) for c in rgb(RAMP).T]
        palette = np.stack(columns, axis=1).round()
    else:
        places = np.cumsum([level != "" for level in column["levels"]]) - 1
        empty = np.array([level == "" for level in column["levels"]])
        codes = np.where(empty, len(CLASS_COLOURS), places % len(CLASS_COLOURS))
        codes, palette = codes[column["codes"]], rgb(CLASS_COLOURS)
    return picture(codes[samples][None, :], np.vstack([palette, rgb([MISSING])]))


def tracked_columns(columns: Sequence[Column]) -> list[Column]:
    """Return the columns that are drawn beside the heatmap."""
    return [each for each in columns if each["kind"] != "words"][:MAX_TRACKS]


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
    first = np.ceil(low / step - 1e-9) * step
    count = int(np.floor((high - first) / step + 1e-9)) + 1
    # Zero is added for zero without a sign.
    return [round(float(first + i * step), 10) + 0.0 for i in range(count)]


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


def matrix_picture(shown: Solution, order: Labels) -> str:
    """Return the consensus of the pairs, cluster by cluster, as a picture."""
    levels = 255.0 * shrink(pair_consensus(shown["halves"][:, order]))
    return picture(np.rint(levels).astype(np.uint8), SHADES)


def shrink(matrix: Array, n_most: int = MOST_POINTS) -> Array:
    """Return the means of square blocks, as few as leave at most `n_most` a side.

    Examples
    --------
    >>> shrink(np.array([[1.0, 0.0, 4.0], [0.0, 1.0, 6.0], [4.0, 6.0, 9.0]]), 2)
    array([[0.5, 5. ],
           [5. , 9. ]])
    """
    size = len(matrix)
    starts = np.arange(0, size, -(-size // n_most))
    sums = np.add.reduceat(np.add.reduceat(matrix, starts), starts, axis=1)
    sizes = np.diff(starts, append=size)
    means: Array = sums / np.outer(sizes, sizes)
    return means


def scale_picture() -> str:
    """Return the scale beside the heatmap as a picture."""
    return picture(np.linspace(255.0, 0.0, 64).round().astype(int)[:, None], SHADES)


def cluster_blocks(shown: Solution, order: Labels) -> list[tuple[int, int, int]]:
    """Return number, first row and size of each cluster in the heatmap."""
    clusters = shown["numbers"][shown["labels"][order]]
    starts = np.flatnonzero(np.diff(clusters, prepend=-1))
    sizes = np.diff(starts, append=len(clusters))
    blocks = np.stack([clusters[starts], starts, sizes])
    return [(k, start, size) for k, start, size in blocks.T.tolist()]


def map_dots(plane: SampleMap, shown: Solution) -> str:
    """Return the samples in the plane as circles in the colours of their clusters.

    Samples that no cluster holds firmly are rings.
    """
    size, unsure = radius(len(plane["places"])), ' class="unsure"'
    colours = [colour(k) for k in shown["numbers"]]
    samples = zip(plane["places"], shown["labels"], shown["confidence"], strict=True)
    return "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:g}" color="{colours[k]}" '
        f'opacity="{0.35 + 0.6 * sure:.2f}"{unsure if sure < AMBIGUOUS else ""}/>'
        for (x, y), k, sure in samples
    )


def cluster_middles(places: Array, shown: Solution) -> list[tuple[int, float, float]]:
    """Return the number of each cluster, with a place above its middle sample."""
    found = []
    for k, number in enumerate(shown["numbers"]):
        inside = places[shown["labels"] == k]
        away = np.abs(inside - np.median(inside, axis=0)).sum(axis=1)
        x, y = inside[away.argmin()]
        found.append((int(number), x, y - radius(len(places)) - 3))
    return found


def bar_order(shown: Solution, rows: Labels) -> NDArray[np.integer]:
    """Return samples by cluster and falling consensus with it."""
    numbers = shown["numbers"][shown["labels"][rows]]
    return rows[np.lexsort([-shown["own"][rows], numbers])]


def signature_rows(shown: Solution, values: SignatureValues) -> list[int]:
    """Return which rows of the values are drawn for this number of clusters."""
    used, markers = values["features"], shown["markers"]
    wanted = [] if markers is None else markers["features"].tolist()
    place = {feature: row for row, feature in enumerate(used.tolist())}
    return [place[feature] for feature in wanted if feature in place]


def signature_picture(shown: Solution, values: SignatureValues, order: Labels) -> str:
    """Return the signature features over ordered samples, as a picture."""
    # With one cluster there is no row, but the script needs a picture to fill.
    rows = np.array(signature_rows(shown, values) or [0])
    return picture(contrast_levels(values["scores"][np.ix_(rows, order)]), CONTRASTS)


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


def shorten(name: str) -> str:
    """Return a name that fits beside a row.

    Examples
    --------
    >>> shorten("a" * 30)
    'aaaaaaaaaaaaaaaaaaa…'
    """
    return name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"
