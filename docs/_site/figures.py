"""How the gallery's figures look, and that each has a caption and a description.

The caption of a figure is the name it is made under, ``plt.subplots(num="...")``, which
is also the title of its window where a person runs the example. The description is put
together from what stands in the figure.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from cycler import cycler

from mdec.report.layout import COLOURS

# Read on white and on near-black alike: contrast 4.5 and 3.9.
INK = "#767676"

STYLE = {
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": "medium",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "savefig.dpi": 160,
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "grid.color": INK,
    "grid.alpha": 0.25,
    "image.cmap": "cividis",
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "legend.fontsize": "small",
    "lines.linewidth": 1.8,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


# Words in the names of tutorials, in the order in which they are listed.
READERS = ("biologist", "cells", "analyst", "researcher")


class ReadingOrder:
    """Sort key of examples: tutorials by their readers, the gallery by name."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, name: str) -> tuple[int, str]:
        """Return the place of a file."""
        found = [place for place, word in enumerate(READERS) if word in name]
        return min(found, default=len(READERS)), name

    def __repr__(self) -> str:
        """Return a text that stays, by which Sphinx compares settings."""
        return "ReadingOrder"


def report_style(gallery_conf: dict[str, Any], name: str) -> None:  # noqa: ARG001
    """Give the example that comes next the colours of the report."""
    plt.rcParams.update(STYLE)


def captioned(
    block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]
) -> str:
    """Return the figures of a block with captions; one without stops the build."""
    found = []
    for number, path in zip(
        plt.get_fignums(), block_vars["image_path_iterator"], strict=False
    ):
        figure = plt.figure(number)
        caption = figure.get_label()
        if not caption:
            raise ValueError(
                f"line {block[2]} of {block_vars['src_file']} leaves a figure without "
                'a caption; make it with plt.subplots(num="...").'
            )
        figure.savefig(path)
        place = Path(os.path.relpath(path, gallery_conf["src_dir"])).as_posix()
        found.append(
            f".. figure:: /{place}\n   :alt: {described(figure)}\n"
            f"   :class: sphx-glr-single-img dark-light\n\n   {caption}\n"
        )
    plt.close("all")
    return "\n\n".join(found)


def described(figure: Any) -> str:
    """Say in words what a figure holds: its caption, panels, axes and legends."""
    parts = [figure.get_label().rstrip(".")]
    for ax in figure.axes:
        words = []
        if ax.get_title():
            words.append(ax.get_title())
        if ax.get_xlabel() and ax.get_ylabel():
            words.append(f"{ax.get_ylabel()} over {ax.get_xlabel()}")
        if ax.get_legend():
            names = [text.get_text() for text in ax.get_legend().get_texts()]
            words.append("shown are " + ", ".join(names))
        if words:
            parts.append("panel: " + ", ".join(words))
    return ". ".join(parts).replace("\n", " ") + "."
