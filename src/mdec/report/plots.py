"""The figures of the report as matplotlib displays, for notebooks and papers.

Each display is made by ``from_estimator``, which computes, or from plain numbers, and
drawn by ``plot``, which does nothing else and leaves ``ax_`` and ``figure_``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mdec._support.arrays import Array, Labels
from mdec._support.optional import import_optional
from mdec.clustering import Clustering
from mdec.coassociation import locally_weighted_coassociation
from mdec.ensemble import Ensemble
from mdec.report.compute import consensus_tree, draw_page, sample_order
from mdec.report.layout import COLOURS, TSNE_SAMPLES, colour, plane
from mdec.report.solutions import HISTOGRAM_BINS, cut_halves, cut_page, tracking_order
from mdec.selection.rule import KSelection

__all__ = [
    "ConfidenceDisplay",
    "ConsensusCDFDisplay",
    "ConsensusMatrixDisplay",
    "KSelectionDisplay",
    "SampleMapDisplay",
    "TrackingDisplay",
]


class Display(ABC):
    """A figure that is computed first and then drawn."""

    ax_: Any
    figure_: Any

    @classmethod
    def from_estimator(cls, model: Any, *options: Any) -> Self:
        """Compute the figure of a fitted estimator.

        Parameters
        ----------
        model : MDEC or MultiViewMDEC
            A fitted estimator; figures over the number of clusters measure its criteria
            if the number was given.
        *options
            Parameters of the display that do not follow from the model.

        Returns
        -------
        Display
            Ready to plot.
        """
        return cls(*cls._compute(model.clustering_), *options)

    def plot(self, ax: Any = None, **settings: Any) -> Self:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **settings : dict
            Settings of the matplotlib function that draws.

        Returns
        -------
        Display
            Itself, with ``ax_`` and ``figure_``.
        """
        pyplot = import_optional(
            "matplotlib.pyplot", needed_for="plotting", install="mdec[report]"
        )
        self.ax_ = pyplot.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        self._draw(self.ax_, settings)
        return self

    @staticmethod
    def _compute(found: Clustering) -> tuple[Any, ...]:
        """Return what the figure shows of a clustering; the criteria if not said."""
        return (found.criteria,)

    @abstractmethod
    def _draw(self, axes: Any, settings: dict[str, Any]) -> None:
        """Draw that on axes."""


@dataclass(eq=False, repr=False)
class ConsensusMatrixDisplay(Display):
    """The consensus of all pairs, in the order of the dendrogram, by ``imshow``.

    Parameters
    ----------
    matrix : ndarray of shape (n_shown, n_shown)
        Share of random halves of the ensemble that put two samples together, in order,
        of 2000 samples or so at most.
    clusters : ndarray of shape (n_shown,)
        Cluster of each row.
    """

    matrix: Array
    clusters: Labels

    @staticmethod
    def _compute(found: Clustering) -> tuple[Any, ...]:
        rows, part = draw_page(found)
        labels = np.asarray(found.labels)[rows]
        tree = consensus_tree(locally_weighted_coassociation(*part), labels)
        order = sample_order(labels, tree["position"])
        cuts = cut_halves(*part, [found.n_clusters])[0][:, order]
        halves = Ensemble.from_labels(cuts.T)
        even = np.ones(halves.n_base_clusters)
        return locally_weighted_coassociation(halves, even), labels[order]

    def _draw(self, axes: Any, settings: dict[str, Any]) -> None:
        settings = {"cmap": "Blues", "vmin": 0.0, "vmax": 1.0} | settings
        image = axes.imshow(self.matrix, interpolation="nearest", **settings)
        for edge in np.flatnonzero(np.diff(self.clusters)) + 0.5:
            axes.axhline(edge, color="0.4", linewidth=0.6)
            axes.axvline(edge, color="0.4", linewidth=0.6)
        axes.set(xticks=[], yticks=[], title="consensus of pairs")
        self.figure_.colorbar(image, ax=axes, shrink=0.8)


@dataclass(eq=False, repr=False)
class ConsensusCDFDisplay(Display):
    """The distribution of the pairs' consensus for each number of clusters.

    Drawn by ``Axes.plot``.

    Parameters
    ----------
    selection : KSelection
        The criteria.
    """

    selection: KSelection

    def _draw(self, axes: Any, settings: dict[str, Any]) -> None:
        chosen = self.selection
        for k, line in zip(chosen.table["n_clusters"], chosen.cdf, strict=True):
            width = 3.0 if k == chosen.n_clusters else 1.0
            style = {"label": f"K = {k}", "linewidth": width} | settings
            axes.plot(chosen.levels, line, **style)
        axes.set(xlabel="consensus of a pair", ylabel="share of pairs")
        axes.legend(fontsize="small")


@dataclass(eq=False, repr=False)
class KSelectionDisplay(Display):
    """One criterion over the number of clusters, by ``Axes.plot``.

    Parameters
    ----------
    selection : KSelection
        The criteria.
    criterion : str
        Column of ``selection.table``: "score", "pac", "delta_area",
        "eigengap", "merge_gap", "agreement" or "silhouette".
    """

    selection: KSelection
    criterion: str = "score"

    def _draw(self, axes: Any, settings: dict[str, Any]) -> None:
        table, name = self.selection.table, self.criterion
        known = [each for each in table if each != "n_clusters"]
        if name not in known:
            raise ValueError(f"criterion={name!r} is not one of {', '.join(known)}.")
        numbers, values = table["n_clusters"], table[name]
        axes.plot(numbers, values, **({"marker": "o", "color": COLOURS[0]} | settings))
        chosen = numbers == self.selection.n_clusters
        axes.plot(numbers[chosen], values[chosen], "o", color=COLOURS[5], markersize=10)
        axes.set(xlabel="number of clusters K", ylabel=name.replace("_", " "))


@dataclass(eq=False, repr=False)
class TrackingDisplay(Display):
    """The cluster of each sample for each number of clusters, by ``imshow``.

    Parameters
    ----------
    colours : ndarray of shape (n_numbers, n_shown)
        Number of the colour of each sample.
    n_clusters : ndarray of shape (n_numbers,)
        The numbers of clusters.
    """

    colours: Labels
    n_clusters: Labels

    @staticmethod
    def _compute(found: Clustering) -> tuple[Any, ...]:
        rows, part = draw_page(found)
        ks, chosen, parts, numbers = cut_page(found, rows, *part)
        tracks = [names[cut] for names, cut in zip(numbers, parts, strict=True)]
        order = tracking_order(tracks, tracks[chosen])
        return np.stack(tracks)[:, order], np.array(ks)

    def _draw(self, axes: Any, settings: dict[str, Any]) -> None:
        from matplotlib.colors import ListedColormap

        settings = {"aspect": "auto", "cmap": ListedColormap(COLOURS)} | settings
        span = {"vmin": 0, "vmax": len(COLOURS) - 1, "interpolation": "nearest"}
        axes.imshow(self.colours % len(COLOURS), **span, **settings)
        axes.set_yticks(range(len(self.n_clusters)), self.n_clusters)
        axes.set(xticks=[], xlabel="samples", ylabel="K")


@dataclass(eq=False, repr=False)
class SampleMapDisplay(Display):
    """The samples in the plane, near where the ensemble puts them together.

    Drawn by ``scatter``.

    Parameters
    ----------
    places : ndarray of shape (n_shown, 2)
        Coordinates, of 1200 samples or so at most.
    clusters : ndarray of shape (n_shown,)
        Cluster of each sample.
    """

    places: Array
    clusters: Labels

    @staticmethod
    def _compute(found: Clustering) -> tuple[Any, ...]:
        rows, part = draw_page(found, TSNE_SAMPLES)
        return plane(locally_weighted_coassociation(*part)), found.labels[rows]

    def _draw(self, axes: Any, settings: dict[str, Any]) -> None:
        for k in np.unique(self.clusters):
            style = {"s": 14, "color": colour(k), "label": f"{k}"} | settings
            axes.scatter(*self.places[self.clusters == k].T, **style)
        axes.set(xticks=[], yticks=[])
        axes.legend(title="cluster", fontsize="small")


@dataclass(eq=False, repr=False)
class ConfidenceDisplay(Display):
    """How many samples have which confidence, by ``hist``.

    Parameters
    ----------
    confidence : ndarray of shape (n_samples,)
        In [0, 1].
    """

    confidence: Array

    @staticmethod
    def _compute(found: Clustering) -> tuple[Any, ...]:
        return (found.confidence,)

    def _draw(self, axes: Any, settings: dict[str, Any]) -> None:
        bins = {"bins": HISTOGRAM_BINS, "range": (0.0, 1.0)}
        axes.hist(self.confidence, **(bins | {"color": COLOURS[0]} | settings))
        axes.set(xlabel="confidence", ylabel="samples")
