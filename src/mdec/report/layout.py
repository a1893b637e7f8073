"""Samples in the plane, by their consensus and by the data, and their colours."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.spatial import cKDTree

from mdec._support.arrays import Array, Labels
from mdec._support.parallel import single_threaded_blas

SIZE = (600, 460)
_PAD = 16.0

# A t-SNE is made of at most this many samples; the others are put beside them.
TSNE_SAMPLES = 1200
_BESIDE = 5

# The colour-blind safe set of Okabe and Ito, then darker and lighter relatives.
COLOURS = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"),
    *("#d55e00", "#b8a800", "#7a5195", "#8c6d31", "#5c5c5c"),
    *("#1b4f72", "#f4a582", "#66c2a4", "#92275f", "#a6bddb"),
    *("#7f2704", "#6b8e23", "#b39ddb", "#d2b48c", "#a9a9a9"),
)

_GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))


def colour(cluster: int) -> str:
    """Return the colour of a cluster; it repeats after twenty."""
    return COLOURS[cluster % len(COLOURS)]


def radius(n_samples: int) -> float:
    """Return the radius of a dot in a figure of `SIZE`."""
    return 5.5 if n_samples < 200 else 4.0 if n_samples < 700 else 3.0


def consensus_map(matrix: Array, mapped: Labels) -> dict[str, Any]:
    """Return the samples by their consensus: t-SNE of 1 - A for those in `mapped`.

    Each of the others lies at the mean of the five mapped samples with which it has
    the highest consensus.
    """
    places = np.empty((len(matrix), 2))
    places[mapped] = plane(matrix[np.ix_(mapped, mapped)])
    others = np.setdiff1d(np.arange(len(matrix)), mapped)
    if others.size:
        nearest = np.argsort(-matrix[np.ix_(others, mapped)], axis=1, kind="stable")
        places[others] = places[mapped[nearest[:, :_BESIDE]]].mean(axis=1)
    return _in_figure(places, None)


def data_map(values: Array) -> dict[str, Any] | None:
    """Return the first two principal components of the data, None if there is one.

    The values may be overwritten.
    """
    from sklearn.decomposition import PCA

    if min(values.shape) < 2 or not np.ptp(values, axis=0).any():
        return None
    model = PCA(2, copy=False, random_state=0)
    places = model.fit_transform(values.astype(np.float64, copy=False))
    first, second = model.explained_variance_ratio_
    return _in_figure(places, (f"PC 1 ({first:.0%})", f"PC 2 ({second:.0%})"))


def plane(matrix: Array) -> Array:
    """Lay samples out in the plane so that those of high consensus lie together."""
    from sklearn.manifold import TSNE

    scale = 1.0 / np.sqrt(matrix.sum(axis=1))
    scaled = matrix * scale[:, None]
    scaled *= scale
    last = max(0, len(matrix) - 3), len(matrix) - 1
    vectors = eigh(scaled, subset_by_index=last, overwrite_a=True)[1]
    del scaled
    # Signs of eigenvectors are arbitrary; the largest entry is made positive.
    start = vectors[:, [-2, -3]] if len(matrix) > 2 else vectors
    start = start * np.sign(start[np.abs(start).argmax(axis=0), [0, 1]])
    if len(matrix) < 8:
        return start
    layout = TSNE(
        metric="precomputed",
        init=(1e-4 * start / start.std(axis=0)).astype(np.float32),
        perplexity=min(30.0, (len(matrix) - 1) / 3.0),
        random_state=0,
    )
    # Its threads wait for each other at every step, and where other work holds a core
    # that takes ten times as long as one thread alone.
    with single_threaded_blas():
        places: Array = layout.fit_transform(1.0 - matrix).astype(np.float64)
    return places


def _in_figure(places: Array, axes: tuple[str, str] | None) -> dict[str, Any]:
    """Scale places to a figure of `SIZE`, the second axis upwards; spread the dots."""
    low, span = places.min(axis=0), np.ptp(places, axis=0)
    share = (places - low) / np.where(span > 0.0, span, 1.0)
    share[:, span == 0.0] = 0.5
    share[:, 1] = 1.0 - share[:, 1]
    room = np.array(SIZE) - 2.0 * _PAD
    moved = spread(_PAD + share * room, 1.6 * radius(len(places)))
    inside = np.clip(moved, _PAD / 2, np.array(SIZE) - _PAD / 2)
    return {"places": inside, "axes": axes}


def spread(places: Array, least: float, n_rounds: int = 60) -> Array:
    """Push points apart that lie nearer to each other than `least`.

    Points at the same place are first moved a little, each in its own direction, so
    that the result is the same every time.

    Examples
    --------
    >>> moved = spread(np.zeros((2, 2)), 4.0)
    >>> bool(np.hypot(*(moved[0] - moved[1])) > 3.9)
    True
    """
    turns = _GOLDEN_ANGLE * np.arange(len(places))
    moved = places + 0.01 * least * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    for _ in range(n_rounds):
        pairs = cKDTree(moved).query_pairs(0.99 * least, output_type="ndarray")
        if not len(pairs):
            break
        first, second = pairs[np.lexsort(pairs.T[::-1])].T
        apart = moved[first] - moved[second]
        distance = np.maximum(np.hypot(*apart.T), 1e-9)
        push = (0.4 * (least - distance) / distance)[:, None] * apart
        np.add.at(moved, first, push)
        np.add.at(moved, second, -push)
    return moved
