"""The figures of the report as matplotlib displays, for notebooks and papers.

Each display is made by ``from_estimator``, which computes, or from plain numbers, and
drawn by ``plot``, which does nothing else and leaves ``ax_`` and ``figure_``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mdec._support.optional import import_optional
from mdec._support.random import member_stream
from mdec.coassociation import coassociation_factor, coassociation_of
from mdec.report.clustering.compute import (
    HEATMAP_SAMPLES,
    TRACKED_SAMPLES,
    consensus_heatmap,
    drawn_in_clusters,
    sample_order,
)
from mdec.report.clustering.described import Array, Labels
from mdec.report.clustering.layout import TSNE_SAMPLES, plane
from mdec.report.clustering.svg import COLOURS, colour
from mdec.report.clustering.views import matched_numbers
from mdec.selection.rule import KSelection

__all__ = [
    "ConfidenceDisplay",
    "ConsensusCDFDisplay",
    "ConsensusMatrixDisplay",
    "KSelectionDisplay",
    "SampleMapDisplay",
    "TrackingDisplay",
]


class _Display:
    """Finds the axes to draw on and remembers them."""

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any) -> Any:
        pyplot = import_optional(
            "matplotlib.pyplot", needed_for="plotting", install="mdec[report]"
        )
        self.ax_ = pyplot.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_


@dataclass(eq=False, repr=False)
class ConsensusMatrixDisplay(_Display):
    """The consensus of all pairs, in the order of the dendrogram.

    Parameters
    ----------
    matrix : ndarray of shape (n_shown, n_shown)
        Ordered consensus.
    clusters : ndarray of shape (n_shown,)
        Cluster of each row.
    """

    matrix: Array
    clusters: Labels

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Take the consensus of a fitted `MDEC`, of 400 samples at most.

        Parameters
        ----------
        model : MDEC
            A fitted estimator.

        Returns
        -------
        ConsensusMatrixDisplay
            Ready to plot.
        """
        rng = member_stream(0, 0, "selection")
        rows = drawn_in_clusters(model.consensus_labels_, HEATMAP_SAMPLES, rng)
        factor = coassociation_factor(model.ensemble_, model.cluster_weights_)
        labels = model.consensus_labels_[rows]
        matrix = coassociation_of(factor[rows], model.ensemble_.labels[rows])
        found = consensus_heatmap(matrix, labels, rng)
        order = sample_order(labels, found)
        shown = found["rows"][order]
        return cls(found["matrix"][np.ix_(order, order)], labels[shown])

    def plot(self, ax: Any = None, **settings: Any) -> Self:
        """Draw; settings go to ``imshow``.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **settings : dict
            Settings of the drawing.

        Returns
        -------
        ConsensusMatrixDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        axes = self._axes(ax)
        pairs = self.matrix[~np.eye(len(self.matrix), dtype=bool)]
        settings = {"cmap": "Blues", "vmin": 0.0, "vmax": pairs.max()} | settings
        image = axes.imshow(self.matrix, interpolation="nearest", **settings)
        for edge in np.flatnonzero(np.diff(self.clusters)) + 0.5:
            axes.axhline(edge, color="0.4", linewidth=0.6)
            axes.axvline(edge, color="0.4", linewidth=0.6)
        axes.set(xticks=[], yticks=[], title="consensus of pairs")
        self.figure_.colorbar(image, ax=axes, shrink=0.8)
        return self


@dataclass(eq=False, repr=False)
class ConsensusCDFDisplay(_Display):
    """The distribution of the pairs' consensus for each number of clusters.

    Parameters
    ----------
    selection : KSelection
        The criteria.
    """

    selection: KSelection

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Take the selection of an `MDEC` fitted with ``n_clusters="auto"``.

        Parameters
        ----------
        model : MDEC
            Fitted with ``n_clusters="auto"``.

        Returns
        -------
        ConsensusCDFDisplay
            Ready to plot.
        """
        return cls(model.k_selection_)

    def plot(self, ax: Any = None, **settings: Any) -> Self:
        """Draw; settings go to ``plot``.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **settings : dict
            Settings of the drawing.

        Returns
        -------
        ConsensusCDFDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        axes = self._axes(ax)
        chosen = self.selection
        for k, line in zip(chosen.table["n_clusters"], chosen.cdf, strict=True):
            width = 3.0 if k == chosen.n_clusters else 1.0
            settings_k = {"label": f"K = {k}", "linewidth": width} | settings
            axes.plot(chosen.levels, line, **settings_k)
        axes.set(xlabel="consensus of a pair", ylabel="share of pairs")
        axes.legend(fontsize="small")
        return self


@dataclass(eq=False, repr=False)
class KSelectionDisplay(_Display):
    """One criterion over the number of clusters.

    Parameters
    ----------
    selection : KSelection
        The criteria.
    criterion : str
        Column of ``selection.table``: "pac", "area", "delta_area", "eigengap",
        "agreement" or "silhouette".
    """

    selection: KSelection
    criterion: str = "eigengap"

    @classmethod
    def from_estimator(cls, model: Any, criterion: str = "eigengap") -> Self:
        """Take the selection of an `MDEC` fitted with ``n_clusters="auto"``.

        Parameters
        ----------
        model : MDEC
            Fitted with ``n_clusters="auto"``.
        criterion : str, default="eigengap"
            Column of the table of criteria.

        Returns
        -------
        KSelectionDisplay
            Ready to plot.
        """
        return cls(model.k_selection_, criterion)

    def plot(self, ax: Any = None, **settings: Any) -> Self:
        """Draw; settings go to ``plot``.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **settings : dict
            Settings of the drawing.

        Returns
        -------
        KSelectionDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        axes = self._axes(ax)
        table = self.selection.table
        if self.criterion not in table or self.criterion == "n_clusters":
            names = ", ".join(name for name in table if name != "n_clusters")
            raise ValueError(f"criterion={self.criterion!r} is not one of {names}.")
        numbers, values = table["n_clusters"], table[self.criterion]
        axes.plot(numbers, values, **({"marker": "o", "color": COLOURS[0]} | settings))
        chosen = numbers == self.selection.n_clusters
        axes.plot(numbers[chosen], values[chosen], "o", color=COLOURS[5], markersize=10)
        null = self.selection.null
        if self.criterion == "silhouette" and null is not None:
            compared = numbers[: null.draws.shape[1]]
            low, high = null.draws.min(axis=0), null.draws.max(axis=0)
            axes.fill_between(compared, low, high, color="0.8", label="one cluster")
            axes.legend()
        axes.set(xlabel="number of clusters K", ylabel=self.criterion.replace("_", " "))
        return self


@dataclass(eq=False, repr=False)
class TrackingDisplay(_Display):
    """The cluster of each sample for each number of clusters.

    Parameters
    ----------
    colours : ndarray of shape (n_numbers, n_shown)
        Number of the colour of each sample.
    n_clusters : ndarray of shape (n_numbers,)
        The numbers of clusters.
    """

    colours: Labels
    n_clusters: Labels

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Take the selection of an `MDEC` fitted with ``n_clusters="auto"``.

        Parameters
        ----------
        model : MDEC
            Fitted with ``n_clusters="auto"``.

        Returns
        -------
        TrackingDisplay
            Ready to plot.
        """
        found = model.k_selection_
        ks, own = found.table["n_clusters"], model.consensus_labels_[found.samples]
        # The row of the model's own number follows the model's own clusters.
        start = int(np.abs(ks - model.n_clusters_).argmin())
        parts = [*found.partitions[:start], own, *found.partitions[start:]]
        numbers = matched_numbers(parts, start)
        colours = np.stack([numbers[i][part] for i, part in enumerate(parts)])
        colours = np.delete(colours, start, axis=0)
        order = np.lexsort([*colours[::-1], own])
        step = max(1, -(-order.size // TRACKED_SAMPLES))
        return cls(colours[:, order[::step]], ks)

    def plot(self, ax: Any = None, **settings: Any) -> Self:
        """Draw; settings go to ``imshow``.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **settings : dict
            Settings of the drawing.

        Returns
        -------
        TrackingDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        from matplotlib.colors import ListedColormap

        axes = self._axes(ax)
        settings = {"aspect": "auto", "cmap": ListedColormap(COLOURS)} | settings
        shown = self.colours % len(COLOURS)
        span = {"vmin": 0, "vmax": len(COLOURS) - 1, "interpolation": "nearest"}
        axes.imshow(shown, **span, **settings)
        axes.set_yticks(range(len(self.n_clusters)), self.n_clusters)
        axes.set(xticks=[], xlabel="samples", ylabel="K")
        return self


@dataclass(eq=False, repr=False)
class SampleMapDisplay(_Display):
    """The samples in the plane, near where the ensemble puts them together.

    Parameters
    ----------
    places : ndarray of shape (n_shown, 2)
        Coordinates.
    clusters : ndarray of shape (n_shown,)
        Cluster of each sample.
    """

    places: Array
    clusters: Labels

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Lay out the samples of a fitted `MDEC`, 1200 at most.

        Parameters
        ----------
        model : MDEC
            A fitted estimator.

        Returns
        -------
        SampleMapDisplay
            Ready to plot.
        """
        rng = member_stream(0, 0, "selection")
        rows = drawn_in_clusters(model.consensus_labels_, TSNE_SAMPLES, rng)
        factor = coassociation_factor(model.ensemble_, model.cluster_weights_)
        matrix = coassociation_of(factor[rows], model.ensemble_.labels[rows])
        return cls(plane(matrix), model.consensus_labels_[rows])

    def plot(self, ax: Any = None, **settings: Any) -> Self:
        """Draw; settings go to ``scatter``.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **settings : dict
            Settings of the drawing.

        Returns
        -------
        SampleMapDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        axes = self._axes(ax)
        for k in np.unique(self.clusters):
            inside = self.places[self.clusters == k]
            drawn = {"s": 14, "color": colour(k), "label": f"{k}"} | settings
            axes.scatter(*inside.T, **drawn)
        axes.set(xticks=[], yticks=[])
        axes.legend(title="cluster", fontsize="small")
        return self


@dataclass(eq=False, repr=False)
class ConfidenceDisplay(_Display):
    """How many samples have which confidence.

    Parameters
    ----------
    confidence : ndarray of shape (n_samples,)
        In [0, 1].
    """

    confidence: Array

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Take the confidence of a fitted `MDEC`.

        Parameters
        ----------
        model : MDEC
            A fitted estimator.

        Returns
        -------
        ConfidenceDisplay
            Ready to plot.
        """
        return cls(model.confidence_)

    def plot(self, ax: Any = None, **settings: Any) -> Self:
        """Draw; settings go to ``hist``.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **settings : dict
            Settings of the drawing.

        Returns
        -------
        ConfidenceDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        axes = self._axes(ax)
        settings = {"bins": 20, "range": (0.0, 1.0), "color": COLOURS[0]} | settings
        axes.hist(self.confidence, **settings)
        axes.set(xlabel="confidence", ylabel="samples")
        return self
