"""What sets a cluster apart: standardised mean differences, never p-values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mdec._support.arrays import Array, Labels
from mdec.confidence import cluster_indicator

# What is shown of one thing, by name.
Record = dict[str, Any]

# Features are looked at in blocks of this many, to save memory.
_COLUMNS = 256

# The spread that a difference is divided by is at least this share of the feature's
# own: without it a feature that is constant in every cluster would be infinitely far.
_LEAST_SPREAD = 0.01

# Features of a cluster in signatures.csv; of all, of one and in figures on the page.
WRITTEN_SIGNATURES = 20
LISTED_FEATURES = 20
LISTED_SIGNATURES = 5
MARKERS = 30


class Moments(NamedTuple):
    """Sizes of groups, with sums and sums of squares of the centred features.

    `centre` has the means of all samples; the sums are of shape (n_groups, n_features).
    `high` counts values above zero of features whose lowest value is zero, as expressed
    genes have, and of others values above the mean.
    """

    centre: Array
    sizes: Array
    sums: Array
    squares: Array
    high: Array

    def merge(self, into: Labels) -> Moments:
        """Return the moments of unions of the groups; group i is in union `into[i]`."""
        join = np.eye(int(into.max()) + 1)[into].T
        return Moments(self.centre, *(join @ each for each in self[1:]))

    def means(self, sums: Array) -> tuple[Array, Array]:
        """Return the means of what was summed inside each group and outside."""
        sizes = self.sizes[:, None]
        rest = np.maximum(self.sizes.sum() - sizes, 1.0)
        return sums / np.maximum(sizes, 1.0), (sums.sum(axis=0) - sums) / rest


def moments(values: Array, labels: Labels, n_groups: int | None = None) -> Moments:
    """Sum the features over groups of samples; None for as many as there are labels."""
    n_groups, n_features = n_groups or int(labels.max()) + 1, values.shape[1]
    membership = cluster_indicator(labels, n_groups)
    centre = np.empty(n_features)
    sums, squares, high = np.empty((3, n_groups, n_features))
    for start in range(0, n_features, _COLUMNS):
        block = slice(start, start + _COLUMNS)
        data = values[:, block].astype(np.float64)
        centre[block] = data.mean(axis=0)
        level = np.where(data.min(axis=0) == 0.0, 0.0, centre[block])
        high[:, block] = membership @ (data > level)
        data -= centre[block]
        sums[:, block] = membership @ data
        squares[:, block] = membership @ data**2
    sizes = np.bincount(labels, minlength=n_groups).astype(np.float64)
    return Moments(centre, sizes, sums, squares, high)


def effect_sizes(groups: Moments) -> Array:
    r"""Return how far each group lies from the rest, in pooled standard deviations.

    Notes
    -----
    Cohen's :math:`d = (\bar x_k - \bar x_{rest}) / s` with :math:`s^2` the squares
    about both means over :math:`n - 2`, of shape (n_groups, n_features). The spread s
    is at least a hundredth of the feature's own. Constant features have 0, and so have
    groups without samples and groups of all samples.
    """
    sizes = groups.sizes[:, None]
    rest = groups.sizes.sum() - sizes
    total = groups.squares.sum(axis=0)
    inside, outside = groups.means(groups.sums)
    within = total - sizes * inside**2 - rest * outside**2
    count = max(float(groups.sizes.sum()) - 2.0, 1.0)
    least = _LEAST_SPREAD * np.sqrt(total / count)
    spread = np.maximum(np.sqrt(np.maximum(within, 0.0) / count), least)
    varies = (spread > 1e-12 * np.abs(groups.centre)) & (sizes > 0.0) & (rest > 0.0)
    return np.where(varies, inside - outside, 0.0) / np.where(varies, spread, 1.0)


def describe_features(
    groups: Moments, numbers: Labels, order: Labels, names: Sequence[str]
) -> Record:
    """Return what the page shows of the features of clusters.

    The signatures of each cluster, the features that separate all of them, and those
    that mark them. `numbers` are the names of the clusters, and `order` is that in
    which the figures show them.
    """
    listed = LISTED_SIGNATURES * (2 if len(numbers) == 2 else 1)
    return {
        "cluster_order": order,
        "signatures": signatures(groups, numbers, names, listed),
        "features": separating_features(groups, numbers, names),
        "markers": markers(groups, order, names),
    }


def signatures(
    groups: Moments, numbers: Labels, names: Sequence[str], n_most: int
) -> list[Record]:
    """Return the features that set each cluster apart most, cluster by cluster.

    Of each its means inside and outside, their standardised difference (effect), and
    the shares of the samples with a high value. Of two clusters only the first is
    listed: the second differs from it by the same features with the opposite signs.
    Features without an effect are left out.
    """
    effects = effect_sizes(groups)
    inside, outside = (groups.centre + each for each in groups.means(groups.sums))
    high, high_outside = groups.means(groups.high)
    found: list[Record] = []
    for k in range(1 if len(effects) == 2 else len(effects)):
        order = np.argsort(-np.abs(effects[k]), kind="stable")[:n_most]
        found += [
            {
                "cluster": int(numbers[k]),
                "feature": int(j),
                "name": names[j],
                "effect": float(effects[k, j]),
                "inside": float(inside[k, j]),
                "outside": float(outside[k, j]),
                "high": float(high[k, j]),
                "high_outside": float(high_outside[k, j]),
            }
            for j in order[effects[k, order] != 0.0]
        ]
    return found


def separating_features(
    groups: Moments, numbers: Labels, names: Sequence[str]
) -> list[Record]:
    r"""Return the features that differ most between all clusters.

    Notes
    -----
    By :math:`\eta^2`, the share of a feature's variance that lies between the clusters.
    Beside it stands the cluster that lies farthest from the rest, as in `effect_sizes`.
    """
    if len(numbers) < 2:
        return []
    total = groups.squares.sum(axis=0)
    between = (groups.sums**2 / np.maximum(groups.sizes[:, None], 1.0)).sum(axis=0)
    share = between / np.where(total > 0.0, total, 1.0)
    effects = effect_sizes(groups)
    farthest = np.abs(effects).argmax(axis=0)
    return [
        {
            "name": names[j],
            "share": float(share[j]),
            "cluster": int(numbers[farthest[j]]),
            "effect": float(effects[farthest[j], j]),
        }
        for j in np.argsort(-share, kind="stable")[:LISTED_FEATURES]
    ]


def markers(
    groups: Moments, order: Labels, names: Sequence[str], n_most: int = MARKERS
) -> Record:
    """Return the features with the largest positive effects in each cluster.

    At most `n_most` in all, as many for each cluster, in the order of the clusters,
    which are also those of the columns of their effects and shares of high values.
    """
    effects, shares = effect_sizes(groups), groups.means(groups.high)[0]
    best: dict[int, None] = {}
    for k in order:
        largest = np.argsort(-effects[k], kind="stable")[: max(1, n_most // len(order))]
        best |= dict.fromkeys(largest[effects[k, largest] > 0.0].tolist())
    chosen = np.array(list(best)[:n_most], dtype=np.int64)
    return {
        "features": chosen,
        "names": [names[j] for j in chosen],
        "effects": effects[np.ix_(order, chosen)].T,
        "shares": shares[np.ix_(order, chosen)].T,
    }
