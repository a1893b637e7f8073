"""Small charts as SVG text; every string from outside is escaped here."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

# The colour-blind safe set of Okabe and Ito, then darker and lighter relatives.
COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"),
    *("#d55e00", "#b8a800", "#7a5195", "#8c6d31", "#5c5c5c"),
    *("#1b4f72", "#f4a582", "#66c2a4", "#92275f", "#a6bddb"),
    *("#7f2704", "#6b8e23", "#b39ddb", "#d2b48c", "#a9a9a9"),
)

# Ends of the map from no consensus to full consensus.
PALE, DEEP = (247, 249, 252), (8, 48, 107)

# From two and a half standard deviations below the mean to as many above it.
BELOW, MIDDLE, ABOVE = (33, 102, 172), (247, 247, 247), (178, 24, 43)
FARTHEST = 2.5


def colour(cluster: int) -> str:
    """Return the colour of a cluster; it repeats after twenty."""
    return COLOURS[cluster % len(COLOURS)]


def colour_class(cluster: int) -> str:
    """Return the class that fills with the colour of a cluster."""
    return f"c{cluster % len(COLOURS)}"


def number(value: float) -> str:
    """Write a coordinate with as few digits as the eye can see."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def tag(name: str, content: str = "", /, **attributes: object) -> str:
    """Return an element; attribute values are escaped, `_` in names becomes `-`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>"


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def text(x: float, y: float, words: object, **attributes: object) -> str:
    """Return a piece of text at a place."""
    return tag("text", escape(str(words)), x=x, y=y, **attributes)


def axis_names(x: tuple[float, float, str], y: tuple[float, str]) -> list[str]:
    """Return the name below a chart and the one that climbs along its left edge."""
    (across, below, x_name), (middle, y_name) = x, y
    turned = f"rotate(-90 12 {number(middle)})"
    styled = {"text_anchor": "middle", "class_": "name"}
    return [
        text(across, below, x_name, **styled),
        text(12, middle, y_name, transform=turned, **styled),
    ]


def image(
    address: str,
    corner: tuple[float, float],
    size: tuple[float, float],
    class_: str,
) -> str:
    """Return a picture, by its data address, stretched over a rectangle."""
    (x, y), (width, height) = corner, size
    place = {"x": x, "y": y, "width": width, "height": height}
    kind = {"preserveAspectRatio": "none", "class_": class_}
    return tag("image", href=address, **place, **kind)


def figure(
    width: int, height: int, parts: Iterable[str], label: str, **attributes: object
) -> str:
    """Return a chart that scales with the page; the label is read to the blind."""
    box = f"0 0 {width} {height}"
    named = {"viewBox": box, "role": "img", "aria_label": label}
    return tag("svg", "".join(parts), **named, **attributes)


class Axes:
    """A rectangle with scales, ticks and names of the axes.

    The ranges are what the axes span, `size` is that of the whole chart, and the
    margins are left, top, right and bottom.
    """

    def __init__(
        self,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        size: tuple[int, int] = (420, 260),
        margin: tuple[int, int, int, int] = (54, 12, 12, 40),
    ) -> None:
        self.size = size
        self.left, self.top = margin[0], margin[1]
        self.right, self.bottom = size[0] - margin[2], size[1] - margin[3]
        self.x_range, self.y_range = x_range, y_range

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
        points = zip(xs, ys, strict=True)
        return " ".join(f"{number(self.x(a))},{number(self.y(b))}" for a, b in points)

    def line(
        self, xs: Iterable[float], ys: Iterable[float], **attributes: object
    ) -> str:
        """Return a line through points."""
        return tag("polyline", points=self.path(xs, ys), fill="none", **attributes)

    def dot(self, x: float, y: float, **attributes: object) -> str:
        """Return a point."""
        return tag("circle", cx=self.x(x), cy=self.y(y), **attributes)

    def frame(
        self,
        x_ticks: Sequence[float],
        y_ticks: Sequence[float],
        x_name: str,
        y_name: str,
    ) -> list[str]:
        """Return grid lines, ticks and names."""
        parts = []
        for value in y_ticks:
            y = self.y(value)
            ends = {"x1": self.left, "x2": self.right, "y1": y, "y2": y}
            parts.append(tag("line", **ends, class_="grid"))
            parts.append(text(self.left - 6, y + 4, f"{value:g}", text_anchor="end"))
        for value in x_ticks:
            words, below = f"{value:g}", self.bottom + 16
            parts.append(text(self.x(value), below, words, text_anchor="middle"))
        middle = (self.left + self.right) / 2
        across = (middle, self.size[1] - 6, x_name)
        return parts + axis_names(across, ((self.top + self.bottom) / 2, y_name))

    def bar(
        self, left: float, width: float | str, value: float, **attributes: object
    ) -> str:
        """Return a bar from the bottom up to a value, at a place of the chart."""
        top = self.y(value)
        place = {"x": left, "y": top, "width": width, "height": self.bottom - top}
        return tag("rect", **place, **attributes)


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
    return [round(float(first + i * step), 10) for i in range(count)]


def png(pixels: NDArray[np.uint8]) -> str:
    """Return an array of shape (height, width, 3) as a PNG in a data address."""
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    content = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
        + chunk(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(content).decode()


def bitmap(levels: NDArray[np.uint8], palette: NDArray[np.uint8]) -> str:
    """Return levels as a bitmap in a data address, which the script can read again.

    `palette` of shape (256, 3) has the colour of each level.
    """
    height, width = levels.shape
    rows = np.zeros((height, -(-width // 4) * 4), dtype=np.uint8)
    rows[:, :width] = levels[::-1]
    colours = np.zeros((256, 4), dtype=np.uint8)
    colours[:, :3] = palette[:, ::-1]
    start = 54 + colours.nbytes
    header = struct.pack("<2sIII", b"BM", start + rows.nbytes, 0, start)
    header += struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 0, 0, 0, 0, 256, 0)
    content = header + colours.tobytes() + rows.tobytes()
    return "data:image/bmp;base64," + base64.b64encode(content).decode()


def shades(matrix: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Map [0, 1] to colours from pale to deep; the last axis is red, green, blue."""
    pale, deep = np.array(PALE, dtype=float), np.array(DEEP, dtype=float)
    mixed = pale + np.clip(matrix, 0.0, 1.0)[..., None] * (deep - pale)
    return mixed.round().astype(np.uint8)


def contrasts(scores: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Map standard deviations from the mean to colours from blue over white to red."""
    share = np.clip(scores / FARTHEST, -1.0, 1.0)[..., None]
    middle = np.array(MIDDLE, dtype=float)
    end = np.where(share < 0.0, np.array(BELOW, dtype=float), np.array(ABOVE, float))
    mixed = middle + np.abs(share) * (end - middle)
    return mixed.round().astype(np.uint8)


def painted(clusters: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Map cluster numbers to their colours."""
    table = [[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in COLOURS]
    return np.array(table, dtype=np.uint8)[clusters % len(COLOURS)]
