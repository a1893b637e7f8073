"""Figures of a study: displays made from records or tables, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._optional import import_optional
from mdec.experiments.ranking import average_score
from mdec.experiments.records import Record, Store
from mdec.experiments.summary import METRIC_TITLES, score_table

Array = NDArray[np.floating]

# MDEC stands out; the rest are told apart by shade, dash and marker.
MDEC_COLORS = {"MDEC-HC": "#c0392b", "MDEC-SC": "#1f6fb2", "MDEC-BG": "#2a8c4a"}
_MUTED = ("#8c6d31", "#7b4173", "#5254a3", "#637939", "#843c39", "#3f8f8f", "#777777")
_DASHES = ("--", ":", "-.")
_MARKERS = "os^Dv<>ph*X"


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure that needs no display."""
    figure = import_optional(
        "matplotlib.figure", needed_for="figures", install="mdec[report]"
    )
    return figure.Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: Path) -> list[Path]:
    """Write a figure as SVG and PNG; the same figure gives the same bytes."""
    matplotlib = import_optional(
        "matplotlib", needed_for="figures", install="mdec[report]"
    )
    paths = [path.with_suffix(".svg"), path.with_suffix(".png")]
    with matplotlib.rc_context({"svg.hashsalt": "mdec", "svg.fonttype": "none"}):
        figure.savefig(paths[0], metadata={"Date": None})
    figure.savefig(paths[1], dpi=150, metadata={"Software": None})
    return paths


def _style(method: str, index: int) -> dict[str, Any]:
    base = method.split(",")[0]
    if base in MDEC_COLORS:
        return {
            "color": MDEC_COLORS[base],
            "lw": 2.2,
            "marker": "o",
            "ms": 4,
            "zorder": 3,
        }
    return {
        "color": _MUTED[index % len(_MUTED)],
        "ls": _DASHES[index % len(_DASHES)],
        "marker": _MARKERS[index % len(_MARKERS)],
        "lw": 1.1,
        "ms": 3,
    }


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

    Attributes
    ----------
    metric, label : str
        What the axes show.
    x : ndarray of shape (n_values,)
        Values of the parameter.
    curves : dict
        Name to scores of shape (n_values,).
    """

    metric: str
    label: str
    x: Array
    curves: dict[str, Array]

    @classmethod
    def from_store(
        cls,
        store: Store,
        metric: str,
        *,
        x: str,
        label: str,
        split: str | None = None,
        dataset: str | None = None,
    ) -> CurvesDisplay:
        """Make the curves from records.

        Parameters
        ----------
        store : Store
            From `read_records`.
        metric : str
            The score.
        x, label : str
            The swept parameter and what to call it.
        split : str, default=None
            A second parameter, each of whose values gives a curve of its own.
        dataset : str, default=None
            One dataset; None for the mean over all.

        Returns
        -------
        CurvesDisplay
            The curves.
        """
        values = _swept(store, x)
        curves: dict[str, Array] = {}
        for place, value in enumerate(values):
            chosen = score_table(store, metric, _having(x, value, dataset))
            for name, score in zip(chosen.methods, average_score(chosen), strict=True):
                key = _curve_name(name, split)
                curve = curves.setdefault(key, np.full(len(values), np.nan))
                curve[place] = score
        return cls(metric, label, np.array(values, dtype=float), curves)

    def plot(self, ax: Any = None, *, methods: Sequence[str] = ()) -> Any:
        """Draw the curves, of some methods or of all; return the axes."""
        ax = new_axes(ax)
        seen: set[str] = set()
        for index, (name, scores) in enumerate(self.curves.items()):
            method = name.split(",")[0]
            style = _style(name, index)
            if method in seen:  # a further value of the parameter that splits
                style |= {"ls": "--", "marker": "s", "alpha": 0.75}
            seen.add(method)
            if not methods or method in methods:
                ax.plot(self.x, scores, label=name, **style)
        ax.set(xlabel=self.label, ylabel=short_title(self.metric))
        _plain(ax)
        return ax


def _swept(store: Store, name: str) -> list[Any]:
    grid = store.study.get("parameters", {})
    for part in ("generator", "method"):
        if name in grid.get(part, {}):
            return list(grid[part][name])
    raise ValueError(f"the study does not vary {name!r}; name a swept parameter.")


def _having(name: str, value: Any, dataset: str | None) -> Any:
    def chosen(record: Record) -> bool:
        given = {**record["generator_parameters"], **record["parameters"]}
        return given.get(name, value) == value and dataset in (None, record["dataset"])

    return chosen


def _curve_name(column: str, split: str | None) -> str:
    method, *parts = column.split(", ")
    kept = [part for part in parts if split and part.startswith(f"{split}=")]
    return ", ".join([method, *kept])


def curves_figure(display: CurvesDisplay, *, split: str | None) -> Any:
    """Return the mean curves: one panel, or one for each method if curves are split."""
    if split is None:
        figure = new_figure(7.2, 4.2)
        ax = display.plot(figure.add_subplot())
        handles = ax.get_legend_handles_labels()
        place = "outside right center"
        figure.legend(*handles, loc=place, frameon=False, fontsize=8)
        return figure
    methods = list(dict.fromkeys(name.split(",")[0] for name in display.curves))
    figure = new_figure(3.0 * len(methods) + 0.4, 3.2)
    panels = figure.subplots(1, len(methods), sharey=True, squeeze=False)[0]
    for ax, method in zip(panels, methods, strict=True):
        display.plot(ax, methods=[method])
        ax.set_title(method, fontsize=10)
        lines, names = ax.get_legend_handles_labels()
        values = [name.split("=")[-1] for name in names]
        ax.legend(lines, values, title=split, frameon=False, fontsize=8)
        ax.label_outer()
    return figure


def grid_figure(store: Store, metric: str, options: dict[str, Any]) -> Any:
    """Return small panels of curves, one for each dataset."""
    datasets = score_table(store, metric).datasets
    n_columns = min(6, len(datasets))
    n_rows = -(-len(datasets) // n_columns)
    figure = new_figure(2.0 * n_columns, 1.7 * n_rows + 0.6)
    ax = None
    for index, dataset in enumerate(datasets):
        display = CurvesDisplay.from_store(store, metric, dataset=dataset, **options)
        ax = display.plot(figure.add_subplot(n_rows, n_columns, index + 1))
        ax.set(xlabel="", ylabel="")
        ax.set_title(dataset, fontsize=8, pad=3)
        ax.tick_params(labelsize=6)
    if ax is not None:
        figure.supxlabel(options["label"], fontsize=9)
        figure.supylabel(short_title(metric), fontsize=9)
        figure.legend(
            *ax.get_legend_handles_labels(),
            loc="outside upper center",
            ncols=max(1, int(n_columns * 2.0 // 2.4)),
            frameon=False,
            fontsize=7,
        )
    return figure


@dataclass(frozen=True, eq=False)
class BarsDisplay:
    """Mean score over datasets for each method and value of a parameter.

    Attributes
    ----------
    metric, label : str
        What the axes show.
    values : list of str
        Values of the parameter.
    bars : dict
        Method to scores of shape (n_values,).
    """

    metric: str
    label: str
    values: list[str]
    bars: dict[str, Array]

    @classmethod
    def from_store(
        cls, store: Store, metric: str, *, x: str, label: str
    ) -> BarsDisplay:
        """Make the bars from records.

        Parameters
        ----------
        store : Store
            From `read_records`.
        metric : str
            The score.
        x, label : str
            The swept parameter and what to call it.

        Returns
        -------
        BarsDisplay
            The bars.
        """
        made = {
            value: score_table(store, metric, _having(x, value, None))
            for value in _swept(store, x)
        }
        bars: dict[str, list[float]] = {}
        for table in made.values():
            for name, score in zip(table.methods, average_score(table), strict=True):
                bars.setdefault(name.split(",")[0], []).append(float(score))
        arrays = {name: np.array(scores) for name, scores in bars.items()}
        return cls(metric, label, [str(value) for value in made], arrays)

    def plot(self, ax: Any = None) -> Any:
        """Draw a group of bars for each method; return the axes."""
        ax = new_axes(ax, 6.4, 3.6)
        width = 0.8 / len(self.values)
        shades = ("#c0392b", "#6c7a89", "#a3adb5", "#cfd5d9", "#8c6d31", "#3f8f8f")
        for index, value in enumerate(self.values):
            scores = [bars[index] for bars in self.bars.values()]
            places = (
                np.arange(len(scores)) + (index - (len(self.values) - 1) / 2) * width
            )
            drawn = ax.bar(
                places,
                scores,
                0.92 * width,
                color=shades[index % 6],
                label=value.replace("_", " "),
            )
            ax.bar_label(drawn, fmt="%.1f", fontsize=7, padding=1)
        ax.set_xticks(np.arange(len(self.bars)), list(self.bars))
        ax.set(ylabel=short_title(self.metric))
        _plain(ax)
        ax.legend(
            title=self.label,
            frameon=False,
            fontsize=8,
            title_fontsize=8,
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
        )
        return ax
