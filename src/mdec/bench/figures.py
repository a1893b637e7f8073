"""Figures of a study, drawn by matplotlib from tables and sweeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mdec._support.arrays import Array
from mdec._support.optional import import_optional
from mdec.bench.records import Parameters, Records
from mdec.bench.summary import (
    METRIC_TITLES,
    ScoreTable,
    Sweep,
    format_value,
    method_of,
    rank_test,
    short_title,
    sweep,
)

# MDEC stands out; the others differ by shade, dash and marker.
MDEC_COLORS = {"MDEC-HC": "#c0392b", "MDEC-SC": "#1f6fb2", "MDEC-BG": "#2a8c4a"}
_MUTED = ("#8c6d31", "#7b4173", "#5254a3", "#637939", "#843c39", "#3f8f8f", "#777777")
_DASHES = ("--", ":", "-.")
_MARKERS = "os^Dv<>ph*X"
_SHADES = ("#c0392b", "#6c7a89", "#a3adb5", "#cfd5d9", "#8c6d31", "#3f8f8f")
_LEGEND = {"frameon": False, "fontsize": 8}
_STAR = {"ls": "", "marker": "*", "ms": 8, "mec": "black", "mew": 0.5, "zorder": 4}
_DIAMOND = {"color": "white", "mec": "black", "ms": 5, "zorder": 4}


def _matplotlib(module: str) -> Any:
    return import_optional(module, needed_for="figures", install="mdec[report]")


def _new_figure(width: float, height: float) -> Any:
    """Return an empty figure that needs no display."""
    figure = _matplotlib("matplotlib.figure")
    return figure.Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: Path) -> list[Path]:
    """Write a figure as SVG and PNG; the same figure gives the same bytes."""
    path.parent.mkdir(exist_ok=True)
    paths = [path.with_suffix(".svg"), path.with_suffix(".png")]
    settings = {"svg.hashsalt": "mdec", "svg.fonttype": "none"}
    with _matplotlib("matplotlib").rc_context(settings):
        figure.savefig(paths[0], metadata={"Date": None})
    figure.savefig(paths[1], dpi=150, metadata={"Software": None})
    return paths


def _line_style(method: str, index: int) -> dict[str, Any]:
    if method in MDEC_COLORS:
        line = {"color": MDEC_COLORS[method], "lw": 1.8, "zorder": 3}
        return line | {"marker": "o", "ms": 3.5}
    line = {"color": _MUTED[index % len(_MUTED)], "lw": 1.1}
    line["ls"] = _DASHES[index % len(_DASHES)]
    return line | {"marker": _MARKERS[index % len(_MARKERS)], "ms": 3}


def _clean_axes(ax: Any, **labels: str) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", lw=0.6)
    ax.set_axisbelow(True)
    ax.set(**labels)


def _short_name(column: str) -> str:
    """Return the name of a column with the values of its parameters alone."""
    return ", ".join(part.split("=")[-1] for part in column.split(", "))


def _draw_curves(
    ax: Any, scores: Sweep, published: Mapping[str, Array], methods: Sequence[str]
) -> None:
    """Draw mean scores of some methods against a parameter.

    Bands show the standard errors and stars the paper's numbers.
    """
    seen: set[str] = set()
    for index, name in enumerate(scores.columns):
        method = method_of(name)
        style, first = _line_style(method, index), method not in seen
        if not first:  # a further value of the parameter that splits
            style |= {"ls": (0, (3, 1.5)), "marker": "s", "mfc": "white"}
        seen.add(method)
        mean, error = scores.mean[:, index], scores.error[:, index]
        if method not in methods or np.isnan(mean).all():
            continue
        ax.plot(scores.values, mean, label=_short_name(name), **style)
        if method in MDEC_COLORS:
            band = {"color": style["color"], "alpha": 0.13, "lw": 0}
            ax.fill_between(scores.values, mean - error, mean + error, **band)
        if first and method in published:
            ax.plot(scores.values, published[method], color=style["color"], **_STAR)
    _clean_axes(ax)


def curves_figure(
    scores: Sweep, axis: Parameters, published: Mapping[str, Array]
) -> Any:
    """Return the mean curves: one panel, or one for each method if curves are split."""
    methods, split = (
        list(dict.fromkeys(map(method_of, scores.columns))),
        "split" in axis,
    )
    shown = [[method] for method in methods] if split else [methods]
    figure = _new_figure(*((3.0 * len(shown) + 0.4, 3.2) if split else (7.2, 4.2)))
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for ax, some in zip(panels, shown, strict=True):
        _draw_curves(ax, scores, published, some)
        ax.set(xlabel=axis["label"], ylabel=f"{short_title(scores.table.metric)} (%)")
        lines, names = ax.get_legend_handles_labels()
        if not split:
            figure.legend(lines, names, loc="outside right center", **_LEGEND)
            return figure
        values = [name.split(", ")[-1] for name in names]
        title = {"title": axis["split"], "title_fontsize": 8}
        place = {"loc": "upper center", "ncols": len(values)}
        ax.legend(lines, values, **title, **place, **_LEGEND)
        ax.set_title(some[0], fontsize=10)
        ax.label_outer()
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(low, high + 0.25 * (high - low))  # room for the legends
    return figure


def grid_figure(table: ScoreTable, axis: Parameters, values: list[Any]) -> Any:
    """Return small panels of curves, one for each dataset."""
    n_columns = min(4, len(table.datasets))
    n_rows = -(-len(table.datasets) // n_columns)
    figure = _new_figure(2.3 * n_columns, 1.8 * n_rows + 0.7)
    methods = list(map(method_of, table.methods))
    for row, name in enumerate(table.datasets):
        ax = figure.add_subplot(n_rows, n_columns, row + 1)
        _draw_curves(ax, sweep(table.take([row]), axis["x"], values), {}, methods)
        low, high = ax.get_ylim()
        if high - low < 4.0:  # rounding must not look like a trend
            ax.set_ylim((low + high) / 2 - 2.0, (low + high) / 2 + 2.0)
        ax.set_title(name, fontsize=9, pad=3)
        ax.tick_params(labelsize=7)
    figure.supxlabel(axis["label"], fontsize=10)
    figure.supylabel(f"{short_title(table.metric)} (%)", fontsize=10)
    legends = [ax.get_legend_handles_labels() for ax in figure.axes]
    handles, names = max(legends, key=lambda legend: len(legend[1]))
    n_columns = min(6, -(-len(names) // 2)) if len(names) > 3 else len(names)
    legend = {"loc": "outside upper center", "ncols": n_columns}
    figure.legend(handles, names, **legend, **_LEGEND)
    return figure


def bars_figure(scores: Sweep, axis: Parameters, published: Mapping[str, Array]) -> Any:
    """Return a group of bars for each method, one for each value of a parameter.

    Whiskers show the standard errors and diamonds the paper's numbers.
    """
    figure = _new_figure(7.2, 3.6)
    ax = figure.add_subplot()
    n_values, n_methods = scores.mean.shape
    width = 0.84 / n_values
    close = 0.05 * np.nan_to_num(scores.mean).max()
    whiskers = {"lw": 0.8, "ecolor": "#333333"}
    number = {"ha": "center", "va": "bottom", "fontsize": 7}
    for index, value in enumerate(scores.values):
        places = np.arange(n_methods) + (index - (n_values - 1) / 2) * width
        means, errors = scores.mean[index], scores.error[index]
        look = {"color": _SHADES[index % len(_SHADES)], "error_kw": whiskers}
        label = format_value(value).replace("_", " ")
        ax.bar(places, means, 0.92 * width, yerr=errors, label=label, **look)
        for name, x, mean in zip(scores.columns, places, means, strict=True):
            top = mean
            if name in published:
                point = published[name][index]
                ax.plot(x, point, "D", label="" if index else "paper", **_DIAMOND)
                # A diamond at the end of a bar would hide the number.
                top = point + 0.4 * close if abs(point - mean) < close else mean
            text = "" if np.isnan(mean) else f"{mean:.1f}"
            ax.annotate(text, (x, top), (0, 2), textcoords="offset points", **number)
    ax.set_xticks(np.arange(n_methods), list(map(_short_name, scores.columns)))
    _clean_axes(ax, ylabel=f"{short_title(scores.table.metric)} (%)")
    beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    ax.legend(title=axis["label"], title_fontsize=8, **beside, **_LEGEND)
    return figure


def growth_figure(records: Records, table: ScoreTable) -> Any:
    """Return two panels of costs, against the samples and the features of datasets."""
    figure = _new_figure(9.0, 4.2)
    panels = figure.subplots(1, 2, sharey=True)
    sizes = {"samples N": "n_samples", "features D": "n_features"}
    for ax, (label, size) in zip(panels, sizes.items(), strict=True):
        numbers = [records.datasets[name][size] for name in table.datasets]
        for index, method in enumerate(table.methods):
            style = _line_style(method_of(method), index) | {"ls": "", "label": method}
            ax.plot(numbers, table.mean[:, index], **style)
        _clean_axes(ax, xscale="log", yscale="log", xlabel=label)
        ax.xaxis.set_minor_formatter(_matplotlib("matplotlib.ticker").NullFormatter())
    panels[0].set_ylabel(METRIC_TITLES[table.metric].split(",")[0])
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside right center", **_LEGEND)
    return figure


def rank_figure(table: ScoreTable) -> Any:
    """Return the critical-difference diagram of three or more methods.

    Mean ranks lie on a line, and bars join indistinguishable methods.
    """
    test = rank_test(table)
    n_methods, groups = len(table.methods), test.groups()
    half = -(-n_methods // 2)
    below = 0.4 * len(groups) + 0.7
    depth = below + 0.7 * half
    figure = _new_figure(7.2, 0.36 * depth + 0.9)
    ax = figure.add_subplot()
    ax.hlines(0, 1, n_methods, color="black", lw=1.2)
    for tick in range(1, n_methods + 1):
        ax.vlines(tick, 0, 0.18, color="black", lw=1.0)
        ax.text(tick, 0.28, str(tick), ha="center", va="bottom", fontsize=8)
    for index, j in enumerate(test.order()):
        method, rank = table.methods[j], test.mean_ranks[j]
        left = index < half
        level = -(below + 0.7 * (index if left else n_methods - 1 - index))
        edge, away = (0.75, -0.12) if left else (n_methods + 0.25, 0.12)
        color = MDEC_COLORS.get(method, "#444444")
        ax.plot([rank, rank, edge], [0, level, level], color=color, lw=1.0)
        text = f"{method}  {rank:.2f}" if left else f"{rank:.2f}  {method}"
        style = {"color": color, "va": "center", "fontsize": 9}
        ax.text(edge + away, level, text, ha="right" if left else "left", **style)
    sorted_ranks = np.sort(test.mean_ranks)
    for index, (first, last) in enumerate(groups):
        level = -(0.45 + 0.4 * index)
        start, end = sorted_ranks[first] - 0.06, sorted_ranks[last] + 0.06
        ax.hlines(level, start, end, color="#333333", lw=4, capstyle="round")
    end = 1 + test.critical_difference
    ax.hlines(1.2, 1, end, color="black", lw=1.4)
    ax.vlines([1, end], 1.05, 1.35, color="black", lw=1.4)
    difference = f"critical difference {test.critical_difference:.2f}"
    text = f"{difference}, {short_title(table.metric)}"
    ax.text(1, 1.45, text, fontsize=8, va="bottom")
    # Room for the names, which the axes do not know of.
    longest = max(len(method) for method in table.methods)
    margin = (0.05 + 0.018 * longest) * (n_methods - 1) + 0.6
    ax.set(xlim=(1 - margin, n_methods + margin), ylim=(-depth + 0.3, 2.4))
    ax.axis("off")
    return figure
