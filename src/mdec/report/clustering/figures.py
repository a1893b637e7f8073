"""The figures of a clustering report, each from its part of the described dict."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.report.clustering.svg import (
    Axes,
    colour,
    figure,
    number,
    painted,
    png,
    shades,
    tag,
    text,
    ticks,
)

CRITERIA = {
    "pac": "PAC (low is clear)",
    "eigengap": "eigengap",
    "agreement": "split-half agreement (ARI)",
    "silhouette": "silhouette on 1 - A",
}


def all_figures(described: dict[str, Any]) -> dict[str, str]:
    """Return the SVG of every figure by its name."""
    selection = described["selection"]
    return {
        "cdf": cdf_figure(selection),
        "delta_area": delta_area_figure(selection),
        **{name: criterion_figure(selection, name) for name in CRITERIA},
        "heatmap": heatmap_figure(described["heatmap"]),
        "map": map_figure(described["map"]),
        "tracking": tracking_figure(described["tracking"], selection["suggested"]),
        "item_consensus": items_figure(described["bars"]),
        "cluster_consensus": cluster_figure(described["clusters"]),
        "histogram": histogram_figure(described),
    }


def cdf_figure(selection: dict[str, Any]) -> str:
    """Return the distribution of the pairs' consensus, one line for each K."""
    axes = Axes((0.0, 1.0), (0.0, 1.0), (480, 300), (54, 12, 74, 40))
    parts = axes.frame(
        ticks(0, 1), ticks(0, 1), "consensus of a pair", "share of pairs"
    )
    parts.append(text(axes.right + 12, 20, "K", class_="name"))
    numbers = [row["n_clusters"] for row in selection["rows"]]
    for i, k in enumerate(numbers):
        hue = 250 - 210 * i / max(len(numbers) - 1, 1)
        chosen = k == selection["suggested"]
        parts.append(
            tag(
                "polyline",
                points=axes.path(selection["levels"], selection["cdf"][i]),
                fill="none",
                stroke=f"hsl({hue:.0f} 65% 48%)",
                stroke_width=3.5 if chosen else 1.4,
                data_tip=f"K = {k}",
            )
        )
        x, y = axes.right + 26 + 30 * (i // 14), 38 + 16 * (i % 14)
        swatch = f"hsl({hue:.0f} 65% 48%)"
        parts.append(tag("rect", x=x - 14, y=y - 8, width=10, height=8, fill=swatch))
        weight = "bold" if chosen else "normal"
        parts.append(text(x, y, k, font_weight=weight, class_="small"))
    return figure(480, 300, parts, "Distribution of the consensus of pairs for each K")


def delta_area_figure(selection: dict[str, Any]) -> str:
    """Return the relative growth of the area under the distribution."""
    return _line(selection, "delta_area", "delta area (relative growth)", (480, 300))


def criterion_figure(selection: dict[str, Any], name: str) -> str:
    """Return one criterion over K, with the null draws beside the silhouette."""
    return _line(selection, name, CRITERIA[name], (480, 260))


def _line(
    selection: dict[str, Any], name: str, y_name: str, size: tuple[int, int]
) -> str:
    rows = selection["rows"]
    ks = [row["n_clusters"] for row in rows]
    values = [row[name] for row in rows]
    null = selection["null"] if name == "silhouette" else None
    high = max([*values, 0.01, *([] if null is None else null["high"])]) * 1.08
    low = min([*values, 0.0, *([] if null is None else null["low"])])
    room = 0.04 * (high - low)
    axes = Axes((min(ks) - 0.3, max(ks) + 0.3), (low - room, high), size)
    step = max(1, len(ks) // 10)
    parts = axes.frame(ks[::step], ticks(low, high, 4), "number of clusters K", y_name)
    if null is not None:
        parts += _null_band(axes, ks, null)
    suggested = selection["suggested"]
    points = axes.path(ks, values)
    parts.append(tag("polyline", points=points, class_="line", fill="none"))
    for k, value in zip(ks, values, strict=True):
        parts.append(
            tag(
                "circle",
                cx=number(axes.x(k)),
                cy=number(axes.y(value)),
                r=6 if k == suggested else 3.5,
                class_="dot chosen" if k == suggested else "dot",
                data_tip=f"K = {k}: {value:.3f}",
            )
        )
    return figure(*size, parts, f"{y_name} for each number of clusters")


def _null_band(axes: Axes, ks: list[int], null: dict[str, Any]) -> list[str]:
    shown = ks[: len(null["mean"])]
    edge = axes.path(
        [*shown, *shown[::-1]], [*null["high"], *np.asarray(null["low"])[::-1]]
    )
    middle = axes.path(shown, null["mean"])
    return [
        tag("polygon", points=edge, class_="band"),
        tag("polyline", points=middle, class_="null", fill="none"),
        text(
            axes.right - 4,
            axes.y(float(null["high"][-1])) - 6,
            "samples rotated: no groups",
            text_anchor="end",
            class_="small",
        ),
    ]


def heatmap_figure(heatmap: dict[str, Any]) -> str:
    """Return the ordered consensus matrix with a strip of cluster colours."""
    matrix, clusters, full = heatmap["matrix"], heatmap["clusters"], heatmap["full"]
    side, left, top = 460, 26, 26
    place = {"x": left, "y": top, "width": side, "height": side}
    image = {"preserveAspectRatio": "none", "class_": "crisp"}
    parts = [
        tag(
            "image",
            href=png(shades(matrix / full)),
            **place,
            **{**image, "class_": "crisp shade"},
        ),
        tag(
            "image",
            href=png(painted(clusters)[None, :]),
            **{**place, "y": top - 14, "height": 10},
            **image,
        ),
        tag(
            "image",
            href=png(painted(clusters)[:, None]),
            **{**place, "x": left - 14, "width": 10},
            **image,
        ),
    ]
    unit = side / len(clusters)
    starts = np.flatnonzero(np.diff(clusters, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(clusters)], strict=True):
        k, size = int(clusters[start]), (end - start) * unit
        parts.append(
            tag(
                "rect",
                x=number(left + start * unit),
                y=number(top + start * unit),
                width=number(size),
                height=number(size),
                class_="block",
                data_tip=f"cluster {k}: {end - start} samples shown",
            )
        )
        if size > 11:
            middle = left + start * unit + size / 2
            parts.append(text(middle, 9, k, text_anchor="middle", class_="small"))
    parts += _scale(left + side + 14, top, side, full)
    return figure(
        left + side + 66, top + side + 6, parts, "Consensus of all pairs of samples"
    )


def _scale(x: float, y: float, height: float, full: float) -> list[str]:
    steps = shades(np.linspace(1.0, 0.0, 64)[:, None])
    place = {"x": x, "y": y, "width": 12, "height": height}
    image = {"preserveAspectRatio": "none", "class_": "shade"}
    parts = [tag("image", href=png(steps), **image, **place)]
    for share in (0.0, 0.5, 1.0):
        place_y = y + height * (1.0 - share) + 4
        parts.append(text(x + 17, place_y, f"{share * full:.2f}"))
    return parts


def map_figure(plane: dict[str, Any]) -> str:
    """Return the samples in the plane, coloured and numbered by cluster."""
    places = plane["places"]
    low, high = places.min(axis=0), places.max(axis=0)
    pad = 0.04 * (high - low)
    low, high = low - pad, high + pad
    axes = Axes((low[0], high[0]), (low[1], high[1]), (960, 560), (8, 8, 8, 8))
    radius = 5.5 if len(places) < 200 else 4.0 if len(places) < 700 else 3.0
    parts = []
    for i, (x, y) in enumerate(places):
        k, second = int(plane["clusters"][i]), int(plane["second"][i])
        tip = f"{plane['names'][i]}\ncluster {k}, confidence "
        tip += f"{plane['confidence'][i]:.2f}"
        tip += f"\nsecond choice {second}" if second >= 0 else ""
        parts.append(
            tag(
                "circle",
                cx=number(axes.x(x)),
                cy=number(axes.y(y)),
                r=radius,
                fill=colour(k),
                fill_opacity=f"{0.35 + 0.6 * float(plane['confidence'][i]):.2f}",
                class_="sample",
                data_tip=tip,
            )
        )
    for k in np.unique(plane["clusters"]):
        inside = places[plane["clusters"] == k]
        middle = np.median(inside, axis=0)
        x, y = inside[np.abs(inside - middle).sum(axis=1).argmin()]
        # Above the sample, so that a tight cluster is not hidden by its own number.
        top = axes.y(y) - radius - 3
        parts.append(text(axes.x(x), top, k, text_anchor="middle", class_="halo"))
    return figure(960, 560, parts, "Map of the samples by their consensus")


def tracking_figure(tracked: dict[str, Any], suggested: int) -> str:
    """Return the cluster of each sample for each number of clusters."""
    colours, ks = tracked["colours"], tracked["n_clusters"]
    row, left, width = 22, 46, 900
    parts = []
    for i, k in enumerate(ks):
        y = 6 + row * i
        weight = "bold" if k == suggested else "normal"
        parts.append(text(left - 8, y + 15, k, text_anchor="end", font_weight=weight))
        parts.append(
            tag(
                "image",
                href=png(painted(colours[i])[None, :]),
                x=left,
                y=y,
                width=width,
                height=row - 3,
                preserveAspectRatio="none",
                class_="crisp",
            )
        )
    height = 6 + row * len(ks) + 24
    parts.append(
        text(
            left + width / 2, height - 6, "samples", text_anchor="middle", class_="name"
        )
    )
    middle = (height - 20) / 2
    turned = f"rotate(-90 12 {number(middle)})"
    parts.append(
        text(12, middle, "K", text_anchor="middle", transform=turned, class_="name")
    )
    return figure(960, height, parts, "Cluster of each sample as K grows")


def items_figure(bars: dict[str, Any]) -> str:
    """Return each sample's consensus with its own cluster, and with its best rival."""
    own = bars["own"]
    high = min(1.0, 1.1 * float(max(own.max(), bars["rival"].max(), 0.05)))
    axes = Axes((0.0, len(own)), (0.0, high), (960, 260))
    name = "samples, by cluster and falling consensus"
    parts = axes.frame([], ticks(0, high, 4), name, "item consensus")
    unit = (axes.right - axes.left) / len(own)
    for i, value in enumerate(own):
        k = int(bars["clusters"][i])
        parts.append(
            tag(
                "rect",
                x=number(axes.x(i)),
                y=number(axes.y(value)),
                width=f"{max(unit * 0.92, 0.6):.2f}",
                height=number(axes.bottom - axes.y(value)),
                fill=colour(k),
                data_tip=f"{bars['names'][i]}\ncluster {k}: {value:.2f}, "
                f"best rival {bars['rival'][i]:.2f}",
            )
        )
    steps = axes.path(np.arange(len(own)) + 0.5, bars["rival"])
    parts.append(tag("polyline", points=steps, class_="rival", fill="none"))
    return figure(960, 260, parts, "Consensus of each sample with its own cluster")


def cluster_figure(clusters: list[dict[str, Any]]) -> str:
    """Return the mean consensus inside each cluster."""
    high = min(1.0, 1.1 * max(row["consensus"] for row in clusters) + 0.02)
    axes = Axes((-0.6, len(clusters) - 0.4), (0.0, high), (420, 240))
    shown = range(0, len(clusters), max(1, len(clusters) // 12))
    parts = axes.frame(list(shown), ticks(0, high), "cluster", "cluster consensus")
    width = 0.7 * (axes.x(1) - axes.x(0))
    for row in clusters:
        k, value = row["cluster"], row["consensus"]
        parts.append(
            tag(
                "rect",
                x=number(axes.x(k) - width / 2),
                y=number(axes.y(value)),
                width=number(width),
                height=number(axes.bottom - axes.y(value)),
                fill=colour(k),
                data_tip=f"cluster {k}: {value:.2f}, {row['size']} samples",
            )
        )
    return figure(420, 240, parts, "Mean consensus inside each cluster")


def histogram_figure(described: dict[str, Any]) -> str:
    """Return how many samples have which confidence."""
    counts = described["histogram"]
    high = float(max(counts.max(), 1)) * 1.08
    axes = Axes((0.0, 1.0), (0.0, high), (420, 240))
    parts = axes.frame(ticks(0, 1), ticks(0, high, 4), "confidence", "samples")
    below = described["ambiguous_below"]
    for i, count in enumerate(counts):
        start, end = i / len(counts), (i + 1) / len(counts)
        parts.append(
            tag(
                "rect",
                x=number(axes.x(start) + 0.5),
                y=number(axes.y(count)),
                width=number(axes.x(end) - axes.x(start) - 1),
                height=number(axes.bottom - axes.y(count)),
                class_="low" if end <= below + 1e-9 else "bar",
                data_tip=f"{start:.2f} to {end:.2f}: {count} samples",
            )
        )
    return figure(420, 240, parts, "Histogram of the samples' confidence")
