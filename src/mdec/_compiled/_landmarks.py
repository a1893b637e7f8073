"""Nearest columns of rows, and the small sums of a sparse bipartite graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec._compiled._jit import REASSOCIATE, compiled
from mdec._compiled._kmeans import _squared_distance
from mdec._compiled._selection import _CHUNK, _push


@compiled()
def scan_rows(
    tile: Any,
    first_column: int,
    values: Any,
    index: Any,
    count: Any,
    bound: Any,
    k: int,
) -> None:
    """Offer a tile of columns to the k smallest entries of its rows.

    `values` and `index` buffer more than k entries per row of the tile; `bound` holds
    what an entry must stay below to be of interest.
    """
    n_rows, n_columns = tile.shape
    for i in range(n_rows):
        row = tile[i]
        limit = bound[i]
        for start in range(0, n_columns, _CHUNK):
            stop = min(start + _CHUNK, n_columns)
            hits = np.int32(1)
            if stop - start == _CHUNK:
                hits = np.int32(0)
                for c in range(_CHUNK):
                    hits += np.int32(row[start + c] < limit)
            if hits == 0:
                continue
            for c in range(start, stop):
                if row[c] < limit:
                    _push(values, index, count, bound, i, row[c], first_column + c, k)
                    limit = bound[i]


@compiled()
def order_by_distance(X: Any, points: Any, index: Any, distances: Any) -> None:
    """Sort each row's points by their squared distance, computed by differences.

    `index` holds points of each row of X in any order; equal distances go to the lower
    number.
    """
    n_rows, k = index.shape
    for i in range(n_rows):
        for t in range(k):
            j = index[i, t]
            value = _squared_distance(X[i], points[j])
            position = t
            while position > 0:
                before = distances[i, position - 1]
                if before < value:
                    break
                if before == value and index[i, position - 1] < j:
                    break
                distances[i, position] = before
                index[i, position] = index[i, position - 1]
                position -= 1
            distances[i, position] = value
            index[i, position] = j


@compiled()
def least_column(tile: Any, labels: Any) -> None:
    """Write the column of the smallest entry of each row; the first of equals."""
    for i in range(tile.shape[0]):
        row = tile[i]
        best, least = 0, row[0]
        for c in range(1, row.size):
            if row[c] < least:
                best, least = c, row[c]
        labels[i] = best


@compiled()
def group_sums(X: Any, labels: Any, sums: Any, counts: Any) -> None:
    """Add each row to the sum of its group, and one to the group's count."""
    for i in range(labels.size):
        label = labels[i]
        counts[label] += 1
        for f in range(X.shape[1]):
            sums[label, f] += X[i, f]


@compiled()
def reduced_affinity(index: Any, weights: Any, out: Any) -> None:
    """Add ``b b^T / sum(b)`` of each sparse row b to `out`, which is symmetric."""
    n_rows, k = index.shape
    for i in range(n_rows):
        total = 0.0
        for t in range(k):
            total += weights[i, t]
        if total > 0.0:
            for s in range(k):
                share = weights[i, s] / total
                row = out[index[i, s]]
                for t in range(k):
                    row[index[i, t]] += share * weights[i, t]


@compiled(fastmath=REASSOCIATE)
def embed_rows(index: Any, weights: Any, vectors: Any, out: Any) -> None:
    """Write the weighted sums of vectors to `out`, scaled to length one."""
    n_rows, k = index.shape
    width = vectors.shape[1]
    for i in range(n_rows):
        target = out[i]
        target[:] = 0
        for t in range(k):
            weight = weights[i, t]
            source = vectors[index[i, t]]
            for c in range(width):
                target[c] += weight * source[c]
        norm = 0.0
        for c in range(width):
            norm += target[c] * target[c]
        if norm > 0.0:
            scale = 1.0 / np.sqrt(norm)
            for c in range(width):
                target[c] *= scale
