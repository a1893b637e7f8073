"""Colours, pictures, axes and orders: what the template draws its figures with."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array, Labels
from mdec.report.compute import Heatmap, SignatureValues, sample_order
from mdec.report.layout import SIZE as SIZE
from mdec.report.layout import SampleMap, radius
from mdec.report.solutions import Solution
from mdec.selection.rule import KSelection

NAME_LENGTH = 20

# The colour-blind safe set of Okabe and Ito, then darker and lighter relatives.
COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"),
    *("#d55e00", "#b8a800", "#7a5195", "#8c6d31", "#5c5c5c"),
    *("#1b4f72", "#f4a582", "#66c2a4", "#92275f", "#a6bddb"),
    *("#7f2704", "#6b8e23", "#b39ddb", "#d2b48c", "#a9a9a9"),
)

# From no consensus to full consensus, in 256 levels.
SHADES = np.linspace((247, 249, 252), (8, 48, 107), 256).round().astype(np.uint8)

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


def bitmap(levels: NDArray[np.integer], palette: NDArray[np.integer]) -> str:
    """Return levels as a bitmap in a data address, which the script can read again.

    `palette` of shape (n_levels, 3) has the colour of each level, 256 at most.
    """
    height, width = levels.shape
    rows = np.zeros((height, -(-width // 4) * 4), dtype=np.uint8)
    rows[:, :width] = levels[::-1]
    colours = np.zeros((len(palette), 4), dtype=np.uint8)
    colours[:, :3] = palette[:, ::-1]
    start = 54 + colours.nbytes
    header = struct.pack("<2sIII", b"BM", start + rows.nbytes, 0, start)
    header += struct.pack(
        "<IiiHHIIiiII", 40, width, height, 1, 8, 0, 0, 0, 0, len(palette), 0
    )
    content = header + colours.tobytes() + rows.tobytes()
    return "data:image/bmp;base64," + base64.b64encode(content).decode()


def cluster_strip(clusters: NDArray[np.integer]) -> str:
    """Return the colours of clusters side by side, as a bitmap one pixel high."""
    palette = [[int(each[i : i + 2], 16) for i in (1, 3, 5)] for each in COLOURS]
    return bitmap(clusters[None, :] % len(COLOURS), np.array(palette))


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
    """Return the axes of a criterion over K, with room for the null draws."""
    ks, values = selection.table["n_clusters"], selection.table[name]
    if name == "silhouette" and selection.null is not None:
        values = np.append(values, selection.null.beside(ks)[1])
    low, high = values.min(initial=0.0), 1.08 * values.max(initial=0.01)
    rise = low - 0.04 * (high - low), high
    size = (480, 300 if name == "score" else 260)
    shown = ks[:: max(1, len(ks) // 10)].tolist()
    return Axes((ks[0] - 0.3, ks[-1] + 0.3), rise, shown, 4, size)


def matrix_picture(shown: Solution, heatmap: Heatmap) -> str:
    """Return the consensus of the pairs, cluster by cluster, as a bitmap."""
    order = sample_order(shown["labels"], heatmap)
    levels = 255.0 * heatmap["matrix"][np.ix_(order, order)] / heatmap["full"]
    return bitmap(np.clip(levels, 0.0, 255.0).round().astype(np.uint8), SHADES)


def scale_picture() -> str:
    """Return the scale beside the heatmap as a bitmap."""
    return bitmap(np.linspace(255.0, 0.0, 64).round().astype(int)[:, None], SHADES)


def cluster_blocks(shown: Solution, heatmap: Heatmap) -> list[tuple[int, int, int]]:
    """Return number, first row and size of each cluster in the heatmap."""
    order = shown["cluster_order"]
    part = shown["labels"][heatmap["rows"]]
    sizes = np.bincount(part, minlength=shown["n_clusters"])[order]
    blocks = np.stack([shown["numbers"][order], np.cumsum(sizes) - sizes, sizes])
    return [(k, start, size) for k, start, size in blocks.T.tolist() if size]


def map_dots(plane: SampleMap, shown: Solution) -> str:
    """Return the samples in the plane as circles in the colours of their clusters."""
    size = radius(len(plane["places"]))
    colours = [colour(k) for k in shown["numbers"]]
    samples = zip(plane["places"], shown["labels"], shown["confidence"], strict=True)
    return "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:g}" fill="{colours[k]}" '
        f'opacity="{0.35 + 0.6 * sure:.2f}"/>'
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


def bar_axes(shown: Solution, rows: Labels) -> Axes:
    """Return the axes of the samples' consensus with their clusters."""
    # Of other numbers of clusters the script cuts what is higher, single samples first.
    most = float(max(shown["own"].max(), shown["other"].max(), 0.05))
    return Axes((0, len(rows)), (0.0, min(1.0, 1.1 * most)), [], 4, (960, 260))


def signature_rows(shown: Solution, values: SignatureValues) -> list[int]:
    """Return which rows of the values are drawn for this number of clusters."""
    found = np.searchsorted(values["features"], shown["heatmap_features"])
    return list(map(int, found))


def heatmap_strip(shown: Solution, heatmap: Heatmap) -> str:
    """Return the clusters of the samples of the heatmap, as a bitmap."""
    samples = heatmap["rows"][sample_order(shown["labels"], heatmap)]
    return cluster_strip(shown["numbers"][shown["labels"][samples]])


def signature_picture(
    shown: Solution, values: SignatureValues, heatmap: Heatmap
) -> str:
    """Return the signature features over the samples of the heatmap, as a bitmap."""
    # With one cluster there is no row, but the script needs a picture to fill.
    rows = np.array(signature_rows(shown, values) or [0])
    order = sample_order(shown["labels"], heatmap)
    return bitmap(contrast_levels(values["scores"][np.ix_(rows, order)]), CONTRASTS)


def shorten(name: str) -> str:
    """Return a name that fits beside a row.

    Examples
    --------
    >>> shorten("a" * 30)
    'aaaaaaaaaaaaaaaaaaa…'
    """
    return name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"
