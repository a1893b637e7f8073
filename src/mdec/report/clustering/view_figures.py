"""The figures of the clusters, drawn for one number of clusters.

The script of the page draws some of them again for the others: what it needs are the
classes and attributes given here.
"""

from __future__ import annotations

import numpy as np

from mdec.report.clustering.compute import sample_order
from mdec.report.clustering.described import (
    Array,
    ClusterRow,
    Description,
    Labels,
    SampleMap,
    SignatureValues,
    View,
)
from mdec.report.clustering.layout import radius
from mdec.report.clustering.svg import (
    Axes,
    axis_names,
    bitmap,
    colour_class,
    contrasts,
    figure,
    image,
    painted,
    png,
    shades,
    tag,
    text,
    ticks,
)

# Side and place of the heatmap, rows of the others; the script reads them from data-.
HEAT = {"left": 6, "top": 20, "side": 440}
BAND = {"left": 150, "top": 26, "width": 790, "row": 15}
TRACK = {"left": 46, "top": 6, "width": 900, "row": 22}

NAME_LENGTH = 20


def sample_figures(described: Description) -> dict[str, str]:
    """Return the figures whose samples keep their places as K changes."""
    shown = described["views"][described["chosen"]]
    drawn = {
        "map": map_figure(described["map"], shown, "Map of the samples by consensus"),
        "heatmap": heatmap_figure(described, shown),
        "tracking": tracking_figure(described),
        "item_consensus": items_figure(described, shown),
    }
    if described["pca"] is not None:
        label = "The samples by the first two principal components of the data"
        drawn["pca"] = map_figure(described["pca"], shown, label)
    if described["signature_values"] is not None:
        drawn["signatures"] = signatures_figure(
            described, described["signature_values"], shown
        )
    return drawn


def heatmap_figure(described: Description, shown: View) -> str:
    """Return the consensus matrix with the clusters framed."""
    heatmap = described["heatmap"]
    order = sample_order(shown["labels"], heatmap)
    matrix, full = heatmap["matrix"][np.ix_(order, order)], heatmap["full"]
    left, top, side = HEAT["left"], HEAT["top"], HEAT["side"]
    levels = np.clip(255.0 * matrix / full, 0.0, 255.0).round().astype(np.uint8)
    picture = bitmap(levels, shades(np.linspace(0.0, 1.0, 256)))
    parts = [image(picture, (left, top), (side, side), "shade matrix")]
    parts.append(tag("g", "".join(blocks(shown, described, order)), class_="blocks"))
    parts += _scale(left + side + 14, top, side, full)
    size = left + side + 66, top + side + 6
    return figure(*size, parts, "Consensus of all pairs of samples", **_data(HEAT))


def blocks(shown: View, described: Description, order: Labels) -> list[str]:
    """Return a frame and a number for each cluster along the diagonal."""
    clusters = shown["labels"][described["heatmap"]["rows"]][order]
    step = HEAT["side"] / len(order)
    parts = []
    for k in shown["cluster_order"]:
        inside = np.flatnonzero(clusters == k)
        if not inside.size:
            continue
        away, size = inside[0] * step, inside.size * step
        place = {"x": HEAT["left"] + away, "y": HEAT["top"] + away}
        number = int(shown["numbers"][k])
        tip = f"cluster {number}, {inside.size} samples"
        extent = {"width": size, "height": size}
        parts.append(tag("rect", **place, **extent, class_="block", data_tip=tip))
        if size > 11:
            middle = HEAT["left"] + away + size / 2
            style = {"text_anchor": "middle", "class_": "small"}
            parts.append(text(middle, HEAT["top"] - 6, number, **style))
    return parts


def _data(numbers: dict[str, int]) -> dict[str, int]:
    return {f"data_{name}": value for name, value in numbers.items()}


def _scale(x: float, y: float, height: float, full: float) -> list[str]:
    steps = shades(np.linspace(1.0, 0.0, 64)[:, None])
    parts = [image(png(steps), (x, y), (12, height), "shade")]
    for share in (0.0, 0.5, 1.0):
        place = y + height * (1.0 - share) + 4
        parts.append(text(x + 17, place, f"{share * full:.2f}"))
    return parts


def map_figure(plane: SampleMap, shown: View, label: str) -> str:
    """Return the samples in the plane, coloured and numbered by cluster."""
    places, (width, height) = plane["places"], plane["size"]
    numbers = shown["numbers"][shown["labels"]]
    size = radius(len(places))
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:g}" class="{colour_class(k)}" '
        f'opacity="{0.35 + 0.6 * sure:.2f}"/>'
        for (x, y), k, sure in zip(places, numbers, shown["confidence"], strict=True)
    )
    parts = [tag("g", dots, class_="samples")]
    parts.append(tag("g", "".join(_middles(places, numbers, size)), class_="middles"))
    if plane["axes"] is not None:
        across, up = plane["axes"]
        parts += axis_names((width / 2, height + 14, across), (height / 2, up))
    below = 0 if plane["axes"] is None else 20
    return figure(width, height + below, parts, label)


def _middles(places: Array, numbers: Labels, size: float) -> list[str]:
    """Number each cluster above the sample that is nearest to its middle."""
    parts = []
    for k in np.unique(numbers):
        inside = places[numbers == k]
        middle = np.median(inside, axis=0)
        x, y = inside[np.abs(inside - middle).sum(axis=1).argmin()]
        style = {"text_anchor": "middle", "class_": "halo"}
        parts.append(text(float(x), float(y) - size - 3, int(k), **style))
    return parts


def tracking_figure(described: Description) -> str:
    """Return the cluster of each sample for each number of clusters."""
    views, suggested = described["views"], described["selection"]["suggested"]
    left, top, width, row = TRACK["left"], TRACK["top"], TRACK["width"], TRACK["row"]
    parts = []
    for i, each in enumerate(views):
        y, k = top + row * i, each["n_clusters"]
        weight = "bold" if k == suggested else "normal"
        parts.append(text(left - 8, y + 15, k, text_anchor="end", font_weight=weight))
        strip = painted(each["numbers"][each["labels"]][described["tracked"]])[None, :]
        parts.append(image(png(strip), (left, y), (width, row - 3), "crisp track"))
    y = top + row * described["chosen"] - 1
    place = {"x": left - 1, "y": y, "width": width + 2, "height": row - 1}
    parts.append(tag("rect", **place, class_="current"))
    height = top + row * len(views) + 24
    across = (left + width / 2, height - 6, "samples")
    parts += axis_names(across, ((height - 20) / 2, "K"))
    label = "Cluster of each sample as K grows"
    return figure(960, height, parts, label, **_data(TRACK))


def items_figure(described: Description, shown: View) -> str:
    """Return each sample's consensus with its own cluster, and with its best rival."""
    rows = described["bars"]
    # Of other numbers of clusters the script cuts what is higher, single samples first.
    most = float(max(shown["own"].max(), shown["rival"].max()))
    high = min(1.0, 1.1 * max(most, 0.05))
    axes = Axes((0.0, len(rows)), (0.0, high), (960, 260))
    name = "samples, by cluster and falling consensus"
    parts = axes.frame([], ticks(0, high, 4), name, "item consensus")
    numbers = shown["numbers"][shown["labels"]][rows]
    order = rows[np.lexsort([-shown["own"][rows], numbers])]
    width = f"{max((axes.right - axes.left) / len(rows) * 0.92, 0.6):.2f}"
    bars = [
        axes.bar(
            axes.x(i),
            width,
            shown["own"][sample],
            class_=colour_class(int(shown["numbers"][shown["labels"][sample]])),
        )
        for i, sample in enumerate(order)
    ]
    parts.append(tag("g", "".join(bars), class_="items"))
    middles = np.arange(len(rows)) + 0.5
    parts.append(axes.line(middles, shown["rival"][order], class_="rival"))
    place = {"left": axes.left, "right": axes.right}
    place |= {"top": axes.top, "bottom": axes.bottom}
    data: dict[str, object] = {**_data(place), "data_high": repr(high)}
    label = "Consensus of each sample with its own cluster"
    return figure(960, 260, parts, label, **data)


def signatures_figure(
    described: Description, drawn: SignatureValues, shown: View
) -> str:
    """Return the signature features over the samples of the heatmap."""
    order = sample_order(shown["labels"], described["heatmap"])
    clusters = shown["labels"][described["heatmap"]["rows"]][order]
    place = {int(j): i for i, j in enumerate(drawn["features"])}
    rows = np.array([place[int(j)] for j in shown["drawn_features"]], dtype=np.int64)
    left, top, width, row = BAND["left"], BAND["top"], BAND["width"], BAND["row"]
    strip = painted(shown["numbers"][clusters])[None, :]
    parts = [image(png(strip), (left, top - 12), (width, 9), "crisp strip")]
    if rows.size:
        pixels = contrasts(drawn["scores"][np.ix_(rows, order)])
        extent = (width, row * len(rows))
        parts.append(image(png(pixels), (left, top), extent, "crisp contrast values"))
    names = [
        text(left - 6, top + row * i + 11.5, shortened(drawn["names"][j]))
        for i, j in enumerate(rows)
    ]
    parts.append(tag("g", "".join(names), class_="names", text_anchor="end"))
    label = "Signature features over the samples, cluster by cluster"
    return figure(960, top + row * len(rows) + 6, parts, label, **_data(BAND))


def shortened(name: str) -> str:
    """Return a name that fits beside a row.

    Examples
    --------
    >>> shortened("a" * 30)
    'aaaaaaaaaaaaaaaaaaa…'
    """
    return name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"


def cluster_figure(clusters: list[ClusterRow]) -> str:
    """Return the mean consensus inside each cluster."""
    high = min(1.0, 1.1 * max(row["consensus"] for row in clusters) + 0.02)
    axes = Axes((-0.6, len(clusters) - 0.4), (0.0, high), (420, 180))
    parts = axes.frame([], ticks(0, high), "cluster", "cluster consensus")
    width = 0.7 * (axes.x(1) - axes.x(0))
    step = max(1, len(clusters) // 12)
    for i, row in enumerate(clusters):
        value, name = row["consensus"], row["cluster"]
        tip = f"cluster {name}: {value:.2f}, {row['size']} samples"
        style = {"class_": colour_class(name), "data_tip": tip}
        parts.append(axes.bar(axes.x(i) - width / 2, width, value, **style))
        if i % step == 0:
            below = axes.bottom + 16
            parts.append(text(axes.x(i), below, name, text_anchor="middle"))
    return figure(420, 180, parts, "Mean consensus inside each cluster")


def histogram_figure(counts: Labels, below: float) -> str:
    """Return how many samples have which confidence."""
    high = float(max(counts.max(), 1)) * 1.08
    axes = Axes((0.0, 1.0), (0.0, high), (420, 180))
    parts = axes.frame(ticks(0, 1), ticks(0, high, 4), "confidence", "samples")
    for i, count in enumerate(counts):
        if not count:
            continue
        start, end = i / len(counts), (i + 1) / len(counts)
        left, width = axes.x(start) + 0.5, axes.x(end) - axes.x(start) - 1
        kind = "low" if end <= below + 1e-9 else "bar"
        tip = f"{start:.2f} to {end:.2f}: {count} samples"
        parts.append(axes.bar(left, width, count, class_=kind, data_tip=tip))
    return figure(420, 180, parts, "Histogram of the samples' confidence")
