"""The figures of a clustering report, each from its part of the described dict."""

from __future__ import annotations

import numpy as np

from mdec.report.clustering.described import (
    Bars,
    ClusterRow,
    Description,
    Heatmap,
    Histogram,
    NullBand,
    SampleMap,
    Selection,
    Tracking,
)
from mdec.report.clustering.svg import (
    Axes,
    axis_names,
    colour,
    figure,
    image,
    painted,
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


def all_figures(described: Description) -> dict[str, str]:
    """Return the SVG of every figure by its name."""
    selection = described["selection"]
    return {
        "cdf": cdf_figure(selection),
        "delta_area": criterion_figure(
            selection, "delta_area", "delta area (relative growth)", 300
        ),
        **{
            name: criterion_figure(selection, name, CRITERIA[name]) for name in CRITERIA
        },
        "heatmap": heatmap_figure(described["heatmap"]),
        "map": map_figure(described["map"]),
        "tracking": tracking_figure(described["tracking"], selection["suggested"]),
        "item_consensus": items_figure(described["bars"]),
        "cluster_consensus": cluster_figure(described["clusters"]),
        "histogram": histogram_figure(described),
        **value_figures(described),
    }


def value_figures(described: Description) -> dict[str, str]:
    """Return the values before and after they were prepared, if they were."""
    preparation = described["preparation"]
    if preparation is None:
        return {}
    parts = {"before": preparation["before"], "after": preparation["after"]}
    return {
        name: value_figure(histogram, f"Histogram of the values {name} preparation")
        for name, histogram in parts.items()
        if histogram is not None
    }


def value_figure(histogram: Histogram, label: str) -> str:
    """Return which share of the values lies where."""
    edges, shares = histogram["edges"], histogram["shares"]
    low, high = float(edges[0]), float(edges[-1])
    top = 1.08 * float(shares.max())
    axes = Axes((low, high), (0.0, top), (480, 180))
    parts = axes.frame(ticks(low, high, 4), ticks(0, top, 3), "value", "share")
    for start, end, share in zip(edges, edges[1:], shares, strict=False):
        left, width = axes.x(start) + 0.5, axes.x(end) - axes.x(start) - 1
        tip = f"{start:.4g} to {end:.4g}: {share:.2%} of the values"
        parts.append(axes.bar(left, width, share, class_="bar", data_tip=tip))
    return figure(480, 180, parts, label)


def cdf_figure(selection: Selection) -> str:
    """Return the distribution of the pairs' consensus, one line for each K."""
    axes = Axes((0.0, 1.0), (0.0, 1.0), (480, 300), (54, 12, 74, 40))
    parts = axes.frame(
        ticks(0, 1), ticks(0, 1), "consensus of a pair", "share of pairs"
    )
    parts.append(text(axes.right + 12, 20, "K", class_="name"))
    numbers = [row["n_clusters"] for row in selection["rows"]]
    for i, k in enumerate(numbers):
        hue = f"hsl({250 - 210 * i / max(len(numbers) - 1, 1):.0f} 65% 48%)"
        chosen = k == selection["suggested"]
        style = {"stroke": hue, "stroke_width": 3.5 if chosen else 1.4}
        xs, ys = selection["levels"], selection["cdf"][i]
        parts.append(axes.line(xs, ys, **style, data_tip=f"K = {k}"))
        x, y = axes.right + 26 + 30 * (i // 14), 38 + 16 * (i % 14)
        parts.append(tag("rect", x=x - 14, y=y - 8, width=10, height=8, fill=hue))
        weight = "bold" if chosen else "normal"
        parts.append(text(x, y, k, font_weight=weight, class_="small"))
    return figure(480, 300, parts, "Distribution of the consensus of pairs for each K")


def criterion_figure(
    selection: Selection, name: str, y_name: str, height: int = 260
) -> str:
    """Return one criterion over K, with the null draws beside the silhouette."""
    rows = selection["rows"]
    ks = [row["n_clusters"] for row in rows]
    values = [row[name] for row in rows]
    null = selection["null"] if name == "silhouette" else None
    high = max([*values, 0.01, *([] if null is None else null["high"])]) * 1.08
    low = min([*values, 0.0, *([] if null is None else null["low"])])
    room = 0.04 * (high - low)
    axes = Axes((min(ks) - 0.3, max(ks) + 0.3), (low - room, high), (480, height))
    step = max(1, len(ks) // 10)
    parts = axes.frame(ks[::step], ticks(low, high, 4), "number of clusters K", y_name)
    if null is not None:
        parts += _null_band(axes, ks, null)
    suggested = selection["suggested"]
    parts.append(axes.line(ks, values, class_="line"))
    for k, value in zip(ks, values, strict=True):
        radius, kind = (6, "dot chosen") if k == suggested else (3.5, "dot")
        tip = f"K = {k}: {value:.3f}"
        parts.append(axes.dot(k, value, r=radius, class_=kind, data_tip=tip))
    return figure(480, height, parts, f"{y_name} for each number of clusters")


def _null_band(axes: Axes, ks: list[float], null: NullBand) -> list[str]:
    shown = ks[: len(null["mean"])]
    edge = axes.path(
        [*shown, *shown[::-1]], [*null["high"], *np.asarray(null["low"])[::-1]]
    )
    words, above = "samples rotated: no groups", axes.y(float(null["high"][-1])) - 6
    return [
        tag("polygon", points=edge, class_="band"),
        axes.line(shown, null["mean"], class_="null"),
        text(axes.right - 4, above, words, text_anchor="end", class_="small"),
    ]


def heatmap_figure(heatmap: Heatmap) -> str:
    """Return the ordered consensus matrix with a strip of cluster colours."""
    matrix, clusters, full = heatmap["matrix"], heatmap["clusters"], heatmap["full"]
    side, left, top = 460, 26, 26
    strip = painted(clusters)
    parts = [
        image(shades(matrix / full), (left, top), (side, side), "crisp shade"),
        image(strip[None, :], (left, top - 14), (side, 10), "crisp"),
        image(strip[:, None], (left - 14, top), (10, side), "crisp"),
    ]
    unit = side / len(clusters)
    starts = np.flatnonzero(np.diff(clusters, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(clusters)], strict=True):
        k, away, size = int(clusters[start]), start * unit, (end - start) * unit
        place = {"x": left + away, "y": top + away, "width": size, "height": size}
        tip = f"cluster {k}: {end - start} samples shown"
        parts.append(tag("rect", **place, class_="block", data_tip=tip))
        if size > 11:
            middle = left + away + size / 2
            parts.append(text(middle, 9, k, text_anchor="middle", class_="small"))
    parts += _scale(left + side + 14, top, side, full)
    return figure(
        left + side + 66, top + side + 6, parts, "Consensus of all pairs of samples"
    )


def _scale(x: float, y: float, height: float, full: float) -> list[str]:
    steps = shades(np.linspace(1.0, 0.0, 64)[:, None])
    parts = [image(steps, (x, y), (12, height), "shade")]
    for share in (0.0, 0.5, 1.0):
        place = y + height * (1.0 - share) + 4
        parts.append(text(x + 17, place, f"{share * full:.2f}"))
    return parts


def map_figure(plane: SampleMap) -> str:
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
        opacity = f"{0.35 + 0.6 * float(plane['confidence'][i]):.2f}"
        style = {"fill": colour(k), "fill_opacity": opacity, "class_": "sample"}
        parts.append(axes.dot(x, y, r=radius, **style, data_tip=tip))
    for k in np.unique(plane["clusters"]):
        inside = places[plane["clusters"] == k]
        middle = np.median(inside, axis=0)
        x, y = inside[np.abs(inside - middle).sum(axis=1).argmin()]
        # Above the sample, so that a tight cluster is not hidden by its own number.
        top = axes.y(y) - radius - 3
        parts.append(text(axes.x(x), top, k, text_anchor="middle", class_="halo"))
    return figure(960, 560, parts, "Map of the samples by their consensus")


def tracking_figure(tracked: Tracking, suggested: int) -> str:
    """Return the cluster of each sample for each number of clusters."""
    colours, ks = tracked["colours"], tracked["n_clusters"]
    row, left, width = 22, 46, 900
    parts = []
    for i, k in enumerate(ks):
        y = 6 + row * i
        weight = "bold" if k == suggested else "normal"
        parts.append(text(left - 8, y + 15, k, text_anchor="end", font_weight=weight))
        strip = painted(colours[i])[None, :]
        parts.append(image(strip, (left, y), (width, row - 3), "crisp"))
    height = 6 + row * len(ks) + 24
    across = (left + width / 2, height - 6, "samples")
    parts += axis_names(across, ((height - 20) / 2, "K"))
    return figure(960, height, parts, "Cluster of each sample as K grows")


def items_figure(bars: Bars) -> str:
    """Return each sample's consensus with its own cluster, and with its best rival."""
    own = bars["own"]
    high = min(1.0, 1.1 * float(max(own.max(), bars["rival"].max(), 0.05)))
    axes = Axes((0.0, len(own)), (0.0, high), (960, 260))
    name = "samples, by cluster and falling consensus"
    parts = axes.frame([], ticks(0, high, 4), name, "item consensus")
    width = f"{max((axes.right - axes.left) / len(own) * 0.92, 0.6):.2f}"
    for i, value in enumerate(own):
        k, rival = int(bars["clusters"][i]), bars["rival"][i]
        tip = f"{bars['names'][i]}\ncluster {k}: {value:.2f}, best rival {rival:.2f}"
        parts.append(axes.bar(axes.x(i), width, value, fill=colour(k), data_tip=tip))
    middles = np.arange(len(own)) + 0.5
    parts.append(axes.line(middles, bars["rival"], class_="rival"))
    return figure(960, 260, parts, "Consensus of each sample with its own cluster")


def cluster_figure(clusters: list[ClusterRow]) -> str:
    """Return the mean consensus inside each cluster."""
    high = min(1.0, 1.1 * max(row["consensus"] for row in clusters) + 0.02)
    axes = Axes((-0.6, len(clusters) - 0.4), (0.0, high), (420, 240))
    shown = range(0, len(clusters), max(1, len(clusters) // 12))
    parts = axes.frame(list(shown), ticks(0, high), "cluster", "cluster consensus")
    width = 0.7 * (axes.x(1) - axes.x(0))
    for row in clusters:
        k, value = row["cluster"], row["consensus"]
        left = axes.x(k) - width / 2
        tip = f"cluster {k}: {value:.2f}, {row['size']} samples"
        parts.append(axes.bar(left, width, value, fill=colour(k), data_tip=tip))
    return figure(420, 240, parts, "Mean consensus inside each cluster")


def histogram_figure(described: Description) -> str:
    """Return how many samples have which confidence."""
    counts = described["histogram"]
    high = float(max(counts.max(), 1)) * 1.08
    axes = Axes((0.0, 1.0), (0.0, high), (420, 240))
    parts = axes.frame(ticks(0, 1), ticks(0, high, 4), "confidence", "samples")
    below = described["ambiguous_below"]
    for i, count in enumerate(counts):
        start, end = i / len(counts), (i + 1) / len(counts)
        left, width = axes.x(start) + 0.5, axes.x(end) - axes.x(start) - 1
        kind = "low" if end <= below + 1e-9 else "bar"
        tip = f"{start:.2f} to {end:.2f}: {count} samples"
        parts.append(axes.bar(left, width, count, class_=kind, data_tip=tip))
    return figure(420, 240, parts, "Histogram of the samples' confidence")
