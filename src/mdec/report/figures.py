"""Figures of a study: displays made from records or tables, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.optional import import_optional
from mdec.experiments.records import RunRecord, Store
from mdec.experiments.study import Axis
from mdec.experiments.summary import METRIC_TITLES, ScoreTable, score_table, spoken
from mdec.experiments.sweep import Sweep, sweep

Array = NDArray[np.floating]

# MDEC stands out; the rest are told apart by shade, dash and marker.
MDEC_COLORS = {"MDEC-HC": "#c0392b", "MDEC-SC": "#1f6fb2", "MDEC-BG": "#2a8c4a"}
_MUTED = ("#8c6d31", "#7b4173", "#5254a3", "#637939", "#843c39", "#3f8f8f", "#777777")
_DASHES = ("--", ":", "-.")
_MARKERS = "os^Dv<>ph*X"
_LEGEND = {"frameon": False, "fontsize": 8}
_STAR = {"mec": "black", "mew": 0.5, "ms": 8, "zorder": 4}
_DIAMOND = {"color": "white", "mec": "black", "ms": 5, "zorder": 4}


def _matplotlib(module: str) -> Any:
    return import_optional(module, needed_for="figures", install="mdec[report]")


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure that needs no display."""
    figure = _matplotlib("matplotlib.figure")
    return figure.Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: Path) -> list[Path]:
    """Write a figure as SVG and PNG; the same figure gives the same bytes."""
    paths = [path.with_suffix(".svg"), path.with_suffix(".png")]
    settings = {"svg.hashsalt": "mdec", "svg.fonttype": "none"}
    with _matplotlib("matplotlib").rc_context(settings):
        figure.savefig(paths[0], metadata={"Date": None})
    figure.savefig(paths[1], dpi=150, metadata={"Software": None})
    return paths


def _style(method: str, index: int) -> dict[str, Any]:
    base = method.split(",")[0]
    if base in MDEC_COLORS:
        line = {"color": MDEC_COLORS[base], "lw": 1.8, "zorder": 3}
        return line | {"marker": "o", "ms": 3.5}
    line = {"color": _MUTED[index % len(_MUTED)], "lw": 1.1}
    line["ls"] = _DASHES[index % len(_DASHES)]
    return line | {"marker": _MARKERS[index % len(_MARKERS)], "ms": 3}


def new_axes(ax: Any, width: float = 6.0, height: float = 4.0) -> Any:
    """Return the given axes, or those of a new figure."""
    return new_figure(width, height).add_subplot() if ax is None else ax


def _plain(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", lw=0.6)
    ax.set_axisbelow(True)


def short_title(metric: str) -> str:
    """Return the label of an axis of scores."""
    name = METRIC_TITLES[metric].split(" (")[0]
    return f"{name} (%)"


@dataclass(frozen=True, eq=False)
class CurvesDisplay:
    """Mean score over datasets against a parameter, one curve for each method.

    Bands show the standard errors and stars the paper's numbers, by method; `label` is
    what to call the parameter.
    """

    sweep: Sweep
    label: str
    published: Mapping[str, Array] = field(default_factory=dict)

    def plot(self, ax: Any = None, *, methods: Sequence[str] = ()) -> Any:
        """Draw the curves, of some methods or of all; return the axes."""
        ax = new_axes(ax)
        seen: set[str] = set()
        for index, name in enumerate(self.sweep.columns):
            method = name.split(",")[0]
            style = _style(name, index)
            first = method not in seen
            if not first:  # a further value of the parameter that splits
                style |= {"ls": (0, (3, 1.5)), "marker": "s", "mfc": "white"}
            seen.add(method)
            if methods and method not in methods:
                continue
            mean, error = self.sweep.mean[:, index], self.sweep.error[:, index]
            ax.plot(self.sweep.values, mean, label=_spoken(name), **style)
            if method in MDEC_COLORS:
                band = {"color": style["color"], "alpha": 0.13, "lw": 0}
                ax.fill_between(self.sweep.values, mean - error, mean + error, **band)
            if first and method in self.published:
                star = {
                    "color": style["color"],
                    "mec": "black",
                    "mew": 0.5,
                    "zorder": 4,
                }
                ax.plot(self.sweep.values, self.published[method], "*", ms=8, **star)
        ax.set(xlabel=self.label, ylabel=short_title(self.sweep.metric))
        _plain(ax)
        return ax


def _spoken(column: str) -> str:
    """Return the name of a column with the values of its parameters alone."""
    return ", ".join(part.split("=")[-1] for part in column.split(", "))


def _at_least(ax: Any, span: float) -> None:
    """Widen the axis of scores, so that rounding does not look like a trend."""
    low, high = ax.get_ylim()
    if high - low < span:
        middle = (low + high) / 2
        ax.set_ylim(middle - span / 2, middle + span / 2)


def curves_figure(display: CurvesDisplay, *, split: str | None) -> Any:
    """Return the mean curves: one panel, or one for each method if curves are split."""
    if split is None:
        figure = new_figure(7.2, 4.2)
        ax = display.plot(figure.add_subplot())
        handles = ax.get_legend_handles_labels()
        figure.legend(*handles, loc="outside right center", **_LEGEND)
        return figure
    methods = list(dict.fromkeys(name.split(",")[0] for name in display.sweep.columns))
    figure = new_figure(3.0 * len(methods) + 0.4, 3.2)
    panels = figure.subplots(1, len(methods), sharey=True, squeeze=False)[0]
    for ax, method in zip(panels, methods, strict=True):
        display.plot(ax, methods=[method])
        ax.set_title(method, fontsize=10)
        lines, names = ax.get_legend_handles_labels()
        values = [name.split(", ")[-1] for name in names]
        title = {"title": split, "title_fontsize": 8}
        place = {"loc": "upper center", "ncols": len(values)}
        ax.legend(lines, values, **title, **place, **_LEGEND)
        ax.label_outer()
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(low, high + 0.25 * (high - low))  # room for the legends
    return figure


def _is_of(dataset: str, record: RunRecord) -> bool:
    return record["dataset"] == dataset


def grid_figure(store: Store, metric: str, axis: Axis) -> Any:
    """Return small panels of curves, one for each dataset."""
    datasets = score_table(store, metric).datasets
    n_columns = min(4, len(datasets))
    n_rows = -(-len(datasets) // n_columns)
    figure = new_figure(2.3 * n_columns, 1.8 * n_rows + 0.7)
    most: tuple[list[Any], list[str]] = [], []
    for index, dataset in enumerate(datasets):
        scores = sweep(store, metric, axis.x, partial(_is_of, dataset))
        panel = figure.add_subplot(n_rows, n_columns, index + 1)
        ax = CurvesDisplay(scores, axis.label).plot(panel)
        ax.set(xlabel="", ylabel="")
        _at_least(ax, 4.0)
        ax.set_title(dataset, fontsize=9, pad=3)
        ax.tick_params(labelsize=7)
        most = max(most, ax.get_legend_handles_labels(), key=lambda each: len(each[1]))
    figure.supxlabel(axis.label, fontsize=10)
    figure.supylabel(short_title(metric), fontsize=10)
    n_names = len(most[1])
    n_columns = min(6, -(-n_names // 2)) if n_names > 3 else n_names
    figure.legend(*most, loc="outside upper center", ncols=n_columns, **_LEGEND)
    return figure


@dataclass(frozen=True, eq=False)
class BarsDisplay:
    """Mean score over datasets for each method and value of a parameter.

    Whiskers show the standard errors and diamonds the paper's numbers, by method;
    `label` is what to call the parameter.
    """

    sweep: Sweep
    label: str
    published: Mapping[str, Array] = field(default_factory=dict)

    def plot(self, ax: Any = None) -> Any:
        """Draw a group of bars for each method; return the axes."""
        ax = new_axes(ax, 7.2, 3.6)
        n_values, n_methods = self.sweep.mean.shape
        width = 0.84 / n_values
        shades = ("#c0392b", "#6c7a89", "#a3adb5", "#cfd5d9", "#8c6d31", "#3f8f8f")
        close = 0.05 * np.nan_to_num(self.sweep.mean).max()
        for index, value in enumerate(self.sweep.values):
            places = np.arange(n_methods) + (index - (n_values - 1) / 2) * width
            ax.bar(
                places,
                self.sweep.mean[index],
                0.92 * width,
                yerr=self.sweep.error[index],
                error_kw={"lw": 0.8, "ecolor": "#333333"},
                color=shades[index % 6],
                label=spoken(value).replace("_", " "),
            )
            for name, at, mean in zip(
                self.sweep.columns, places, self.sweep.mean[index], strict=True
            ):
                top = mean
                if name in self.published:
                    point = self.published[name][index]
                    (drawn,) = ax.plot(at, point, "D", **_DIAMOND)
                    drawn.set_label("" if index else "paper")
                    # A diamond at the end of a bar would hide the number.
                    top = point + 0.4 * close if abs(point - mean) < close else mean
                ax.annotate(
                    "" if np.isnan(mean) else f"{mean:.1f}",
                    (at, top),
                    (0, 2),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    fontsize=7,
                )
        ax.set_xticks(np.arange(n_methods), list(map(_spoken, self.sweep.columns)))
        ax.set(ylabel=short_title(self.sweep.metric))
        _plain(ax)
        beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        ax.legend(title=self.label, title_fontsize=8, **beside, **_LEGEND)
        return ax


def growth_figure(store: Store, table: ScoreTable) -> Any:
    """Return two panels of costs, against the samples and the features of datasets."""
    figure = new_figure(9.0, 4.2)
    panels = figure.subplots(1, 2, sharey=True)
    sizes = [store.datasets[name] for name in table.datasets]
    for ax, label, numbers in (
        (panels[0], "samples N", [size["n_samples"] for size in sizes]),
        (panels[1], "features D", [size["n_features"] for size in sizes]),
    ):
        for index, method in enumerate(table.methods):
            style = _style(method, index) | {"ls": "", "label": method}
            ax.plot(numbers, table.mean[:, index], **style)
        ax.set(xscale="log", yscale="log", xlabel=label)
        ax.xaxis.set_minor_formatter(_matplotlib("matplotlib.ticker").NullFormatter())
        _plain(ax)
    panels[0].set_ylabel(METRIC_TITLES[table.metric].split(",")[0])
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside right center", **_LEGEND)
    return figure
