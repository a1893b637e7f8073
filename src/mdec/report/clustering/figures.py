"""The figures about the number of clusters and the values, which K does not change."""

from __future__ import annotations

import numpy as np

from mdec.report.clustering.described import (
    Description,
    Histogram,
    NullBand,
    Selection,
)
from mdec.report.clustering.svg import Axes, figure, tag, text, ticks

CRITERIA = {
    "pac": "PAC (low is clear)",
    "eigengap": "eigengap",
    "agreement": "split-half agreement (ARI)",
    "silhouette": "silhouette on 1 - A",
}


def criteria_figures(selection: Selection) -> dict[str, str]:
    """Return the figures about the number of clusters by name."""
    return {
        "cdf": cdf_figure(selection),
        "delta_area": criterion_figure(
            selection, "delta_area", "delta area (relative growth)", 300
        ),
        **{
            name: criterion_figure(selection, name, CRITERIA[name]) for name in CRITERIA
        },
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
