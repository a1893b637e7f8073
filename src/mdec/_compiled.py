"""Loops that NumPy cannot express, compiled on first use and cached on disk.

Every function works on plain contiguous arrays, releases the interpreter lock and
knows nothing of clustering ensembles. The module is imported where it is used, so
that ``import mdec`` neither loads nor runs the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

Function = Callable[..., Any]


def _compile(**options: Any) -> Callable[[Function], Function]:
    def decorate(function: Function) -> Function:
        try:
            return numba.njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # no folder to cache in: compile in each process
            return numba.njit(nogil=True, **options)(function)

    return decorate


# Reassociation lets a sum use vector registers; the order is fixed by the compiler,
# not by the data, so results stay repeatable.
_REASSOCIATE = {"reassoc", "contract", "nsz"}

# How many entries of a row are tested together before looking at any one of them.
_CHUNK = 16


# ------------------------------------------------------------------ selection


@_compile()
def _select_smallest(values: Any, index: Any, n: int, k: int) -> Any:
    """Move the k smallest of values[:n] to the front; return the largest of them."""
    low, high = 0, n - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                index[i], index[j] = index[j], index[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    largest = values[0]
    for i in range(1, k):
        largest = max(largest, values[i])
    return largest


@_compile()
def _push(
    values: Any, index: Any, count: Any, bound: Any, i: int, value: Any, j: int, k: int
) -> None:
    n = count[i]
    values[i, n] = value
    index[i, n] = j
    n += 1
    if n == values.shape[1]:
        bound[i] = _select_smallest(values[i], index[i], n, k)
        n = k
    count[i] = n


@_compile()
def scan_tile(
    tile: Any,
    first_row: int,
    first_column: int,
    values: Any,
    index: Any,
    count: Any,
    bound: Any,
    k: int,
) -> None:
    """Offer a tile of a symmetric matrix to the k smallest of its rows and columns.

    `values` and `index` buffer more than k entries per row of the whole matrix;
    `bound` holds what an entry must stay below to be of interest. Tiles on the
    diagonal come before all others.
    """
    n_rows, n_columns = tile.shape
    if first_row == first_column:
        _start_rows(tile, first_row, values, index, count, bound, k)
        return
    column_bound = bound[first_column : first_column + n_columns].copy()
    for r in range(n_rows):
        i = first_row + r
        row = tile[r]
        row_bound = bound[i]
        for start in range(0, n_columns, _CHUNK):
            stop = min(start + _CHUNK, n_columns)
            hits = np.int32(0)
            if stop - start == _CHUNK:
                for c in range(_CHUNK):
                    entry = row[start + c]
                    hits += np.int32(entry < max(row_bound, column_bound[start + c]))
            else:
                hits = np.int32(1)
            if hits == 0:
                continue
            for c in range(start, stop):
                entry = row[c]
                j = first_column + c
                if entry < row_bound:
                    _push(values, index, count, bound, i, entry, j, k)
                    row_bound = bound[i]
                if entry < column_bound[c]:
                    _push(values, index, count, bound, j, entry, i, k)
                    column_bound[c] = bound[j]


@_compile()
def _start_rows(
    tile: Any, first: int, values: Any, index: Any, count: Any, bound: Any, k: int
) -> None:
    """Fill the buffers from a tile on the diagonal, leaving the diagonal out."""
    n = tile.shape[0]
    kept = min(k, n - 1)
    others = np.empty(n - 1, dtype=tile.dtype)
    columns = np.empty(n - 1, dtype=index.dtype)
    for r in range(n):
        i = first + r
        for c in range(n - 1):
            columns[c] = first + c + (c >= r)
            others[c] = tile[r, c + (c >= r)]
        if kept > 0:
            largest = _select_smallest(others, columns, n - 1, kept)
            values[i, :kept] = others[:kept]
            index[i, :kept] = columns[:kept]
            if kept == k:
                bound[i] = largest
        count[i] = kept


@_compile()
def finish_scan(values: Any, index: Any, count: Any, bound: Any, k: int) -> None:
    """Leave exactly the k smallest of each row in front, and their largest in bound."""
    for i in range(values.shape[0]):
        bound[i] = _select_smallest(values[i], index[i], count[i], k)


@_compile()
def _smallest_in_order(values: Any, sign: int, kept: Any) -> None:
    """Fill `kept` with the smallest of sign * values, in ascending order."""
    last = kept.size - 1
    kept[:] = np.inf
    for e in range(values.size):
        value = sign * values[e]
        if value < kept[last]:
            position = last
            while position > 0 and kept[position - 1] > value:
                kept[position] = kept[position - 1]
                position -= 1
            kept[position] = value


@_compile()
def keep_largest(indptr: Any, data: Any, k: int) -> Any:
    """Mark the k largest entries of each CSR row; equal ones go to the first."""
    marked = np.zeros(data.size, dtype=np.bool_)
    ordered = np.empty(k, dtype=data.dtype)
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        if stop - start <= k:
            marked[start:stop] = True
            continue
        _smallest_in_order(data[start:stop], -1, ordered)
        threshold = -ordered[k - 1]
        n_equal = 0
        for t in range(k):
            n_equal += -ordered[t] == threshold
        for e in range(start, stop):
            if data[e] > threshold:
                marked[e] = True
            elif data[e] == threshold and n_equal > 0:
                marked[e] = True
                n_equal -= 1
    return marked


@_compile()
def mean_of_smallest(indptr: Any, data: Any, k: int) -> Any:
    """Return the mean of the k smallest entries of each CSR row, added in order."""
    means = np.empty(indptr.size - 1)
    ordered = np.empty(k, dtype=data.dtype)
    for i in range(means.size):
        _smallest_in_order(data[indptr[i] : indptr[i + 1]], 1, ordered)
        means[i] = np.sum(ordered) / k
    return means


# ------------------------------------------------------------------ distances


@_compile(fastmath=_REASSOCIATE)
def pair_distances(X: Any, rows: Any, columns: Any) -> Any:
    """Return the squared distance of each listed pair, by differences."""
    out = np.empty(rows.size)
    for e in range(rows.size):
        a, b = X[rows[e]], X[columns[e]]
        total = 0.0
        for f in range(X.shape[1]):
            difference = np.float64(a[f] - b[f])
            total += difference * difference
        out[e] = total
    return out


@_compile()
def mirror_pairs(low: Any, high: Any, values: Any, n: int) -> Any:
    """Return the CSR arrays that hold sorted pairs, low < high, both ways."""
    indptr = np.zeros(n + 1, dtype=np.int64)
    for e in range(low.size):
        indptr[low[e] + 1] += 1
        indptr[high[e] + 1] += 1
    for i in range(n):
        indptr[i + 1] += indptr[i]
    indices = np.empty(2 * low.size, dtype=np.int32)
    data = np.empty(2 * low.size, dtype=values.dtype)
    fill = indptr[:-1].copy()
    # In two passes, so that every row is sorted: its lower partners come first.
    for e in range(low.size):
        position = fill[high[e]]
        indices[position], data[position] = low[e], values[e]
        fill[high[e]] += 1
    for e in range(low.size):
        position = fill[low[e]]
        indices[position], data[position] = high[e], values[e]
        fill[low[e]] += 1
    return indptr, indices, data


# ------------------------------------------------------------------ sparse times dense


@_compile(fastmath=_REASSOCIATE)
def csr_step(
    indptr: Any,
    indices: Any,
    data: Any,
    block: Any,
    scale: Any,
    shift: Any,
    before: Any,
    out: Any,
) -> None:
    """Write ``scale * (A @ block) + shift * block - before`` to `out`, A in CSR."""
    width = block.shape[1]
    for i in range(out.shape[0]):
        target, own, old = out[i], block[i], before[i]
        for c in range(width):
            target[c] = shift * own[c] - old[c]
        for e in range(indptr[i], indptr[i + 1]):
            weight = scale * data[e]
            source = block[indices[e]]
            for c in range(width):
                target[c] += weight * source[c]


# ------------------------------------------------------------------ k-means


@_compile(fastmath=_REASSOCIATE)
def _squared_distance(a: Any, b: Any) -> Any:
    total = a.dtype.type(0)
    for f in range(a.size):
        difference = a[f] - b[f]
        total += difference * difference
    return total


@_compile()
def kmeans_plus_plus(X: Any, uniforms: Any) -> Any:
    """Choose one centre per uniform number, each with chance prop. to D squared."""
    n_samples = X.shape[0]
    centers = np.empty((uniforms.size, X.shape[1]), dtype=X.dtype)
    chosen = min(int(uniforms[0] * n_samples), n_samples - 1)
    centers[0] = X[chosen]
    nearest = np.full(n_samples, np.inf)
    for c in range(1, uniforms.size):
        total = 0.0
        for i in range(n_samples):
            nearest[i] = min(nearest[i], _squared_distance(X[i], centers[c - 1]))
            total += nearest[i]
        target = uniforms[c] * total
        chosen = n_samples - 1
        running = 0.0
        for i in range(n_samples):
            running += nearest[i]
            if running > target:
                chosen = i
                break
        centers[c] = X[chosen]
    return centers


@_compile(fastmath=_REASSOCIATE)
def _two_nearest(x: Any, transposed: Any, half_norms: Any, scores: Any) -> Any:
    """Return the nearest centre and the score of the second nearest.

    The score of a centre is half its squared norm less its product with x: half the
    squared distance, up to a constant of x.
    """
    n_centers = half_norms.size
    scores[:] = half_norms
    for f in range(x.size):
        value = x[f]
        for c in range(n_centers):
            scores[c] -= value * transposed[f, c]
    best, first, second = 0, scores[0], scores.dtype.type(np.inf)
    for c in range(1, n_centers):
        score = scores[c]
        if score < first:
            best, first, second = c, score, first
        elif score < second:
            second = score
    return best, second


@_compile()
def lloyd(X: Any, centers: Any, max_iter: int) -> Any:
    """Run Lloyd's iteration to its fixed point; return labels and inertia.

    Hamerly's bounds skip samples that cannot change their centre, so the labels are
    those of the plain iteration. An empty cluster restarts at the sample farthest
    from its centre.
    """
    n_samples, n_features = X.shape
    n_centers = centers.shape[0]
    labels = np.full(n_samples, -1, dtype=np.int32)
    upper = np.full(n_samples, np.inf)
    lower = np.zeros(n_samples)
    sums = np.zeros((n_centers, n_features))
    counts = np.zeros(n_centers, dtype=np.int64)
    scores = np.empty(n_centers, dtype=X.dtype)
    half_norms = np.empty(n_centers, dtype=X.dtype)
    transposed = np.empty((n_features, n_centers), dtype=X.dtype)
    moved = np.zeros(n_centers)
    gap = np.zeros(n_centers)
    # Copies of a point are this far from their mean by rounding alone.
    rounding = n_features * (4.0 * np.finfo(X.dtype).eps * np.max(np.abs(X))) ** 2
    for _ in range(max_iter):
        for c in range(n_centers):
            half_norms[c] = 0.5 * np.sum(centers[c] * centers[c])
            transposed[:, c] = centers[c]
            gap[c] = np.inf
        for c in range(n_centers):
            for other in range(c):
                half = 0.5 * np.sqrt(_squared_distance(centers[c], centers[other]))
                gap[c] = min(gap[c], half)
                gap[other] = min(gap[other], half)
        n_changed = 0
        for i in range(n_samples):
            label = labels[i]
            if label >= 0:
                safe = max(lower[i], gap[label])
                if upper[i] < safe:
                    continue
                upper[i] = np.sqrt(_squared_distance(X[i], centers[label]))
                if upper[i] < safe:
                    continue
            best, second = _two_nearest(X[i], transposed, half_norms, scores)
            half_norm = 0.5 * np.sum(X[i] * X[i])
            upper[i] = np.sqrt(_squared_distance(X[i], centers[best]))
            lower[i] = np.sqrt(max(2.0 * (half_norm + second), 0.0))
            if best != label:
                n_changed += 1
                if label >= 0:
                    counts[label] -= 1
                    sums[label] -= X[i]
                counts[best] += 1
                sums[best] += X[i]
                labels[i] = best
        for c in range(n_centers):
            if counts[c] == 0:
                farthest, distance = -1, rounding
                for i in range(n_samples):
                    if counts[labels[i]] > 1:
                        value = _squared_distance(X[i], centers[labels[i]])
                        if value > distance:
                            farthest, distance = i, value
                if farthest >= 0:
                    counts[labels[farthest]] -= 1
                    sums[labels[farthest]] -= X[farthest]
                    labels[farthest] = c
                    upper[farthest] = np.inf
                    counts[c] = 1
                    sums[c] = X[farthest]
                    n_changed += 1
        if n_changed == 0:
            break
        largest = 0.0
        for c in range(n_centers):
            moved[c] = 0.0
            if counts[c] > 0:
                for f in range(n_features):
                    value = X.dtype.type(sums[c, f] / counts[c])
                    moved[c] += (value - centers[c, f]) ** 2
                    centers[c, f] = value
                moved[c] = np.sqrt(moved[c])
            largest = max(largest, moved[c])
        for i in range(n_samples):
            upper[i] += moved[labels[i]]
            lower[i] -= largest
    inertia = 0.0
    for i in range(n_samples):
        inertia += _squared_distance(X[i], centers[labels[i]])
    return labels, inertia


# ------------------------------------------------------------------ ensembles


@_compile()
def count_overlaps(labels: Any, member: int, offsets: Any) -> Any:
    """Count the samples that each cluster of one member shares with every cluster."""
    n_samples, n_members = labels.shape
    n_own = offsets[member + 1] - offsets[member]
    counts = np.zeros((n_own, offsets[n_members]), dtype=np.int64)
    for i in range(n_samples):
        own = labels[i, member]
        if own >= 0:
            for m in range(n_members):
                if labels[i, m] >= 0:
                    counts[own, offsets[m] + labels[i, m]] += 1
    return counts


@_compile()
def _by_column(indptr: Any, indices: Any, data: Any, n_columns: int) -> Any:
    """Return the CSC arrays of a CSR matrix."""
    start = np.zeros(n_columns + 1, dtype=np.int64)
    for e in range(indices.size):
        start[indices[e] + 1] += 1
    for c in range(n_columns):
        start[c + 1] += start[c]
    fill = start[:-1].copy()
    rows = np.empty(indices.size, dtype=np.int32)
    values = np.empty(indices.size, dtype=data.dtype)
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            position = fill[indices[e]]
            rows[position], values[position] = i, data[e]
            fill[indices[e]] += 1
    return start, rows, values


@_compile()
def condensed_products(
    indptr: Any, indices: Any, data: Any, n_columns: int, out: Any
) -> None:
    """Write the products of all pairs of CSR rows to a condensed triangle."""
    n_rows = indptr.size - 1
    start, rows, values = _by_column(indptr, indices, data, n_columns)
    # Rows of a column up to the row at hand are passed; they are in ascending order.
    passed = start[:-1].copy()
    position = 0
    for i in range(n_rows - 1):
        row = out[position : position + n_rows - 1 - i]
        row[:] = 0
        for e in range(indptr[i], indptr[i + 1]):
            c = indices[e]
            passed[c] += 1
            weight = data[e]
            for entry in range(passed[c], start[c + 1]):
                row[rows[entry] - i - 1] += weight * values[entry]
        position += n_rows - 1 - i


@_compile()
def _condensed_index(n: int, i: int, j: int) -> int:
    if i > j:
        i, j = j, i
    return n * i - i * (i + 1) // 2 + j - i - 1


@_compile()
def average_linkage(similarity: Any, sizes: Any) -> Any:
    """Merge by largest mean similarity along nearest-neighbour chains.

    Takes a condensed triangle, which it overwrites, and the weights of its rows;
    returns the merged pairs, each named by one of its rows, and their similarities.
    """
    n = sizes.size
    size = sizes.astype(np.float64)
    pairs = np.empty((n - 1, 2), dtype=np.int64)
    heights = np.empty(n - 1)
    chain = np.empty(n, dtype=np.int64)
    length = 0
    for step in range(n - 1):
        if length == 0:
            for i in range(n):
                if size[i] > 0:
                    chain[0] = i
                    length = 1
                    break
        while True:
            tip = chain[length - 1]
            # The predecessor wins ties, so that a chain cannot run in circles.
            if length > 1:
                nearest = chain[length - 2]
                best = similarity[_condensed_index(n, tip, nearest)]
            else:
                nearest, best = -1, similarity.dtype.type(-np.inf)
            for i in range(tip):
                if size[i] > 0:
                    value = similarity[_condensed_index(n, i, tip)]
                    if value > best:
                        best, nearest = value, i
            base = _condensed_index(n, tip, tip + 1) - tip - 1
            for i in range(tip + 1, n):
                if size[i] > 0:
                    value = similarity[base + i]
                    if value > best:
                        best, nearest = value, i
            if length > 1 and nearest == chain[length - 2]:
                break
            chain[length] = nearest
            length += 1
        length -= 2
        a, b = min(tip, nearest), max(tip, nearest)
        pairs[step, 0], pairs[step, 1] = a, b
        heights[step] = best
        share_a = size[a] / (size[a] + size[b])
        share_b = size[b] / (size[a] + size[b])
        for i in range(n):
            if size[i] > 0 and i != a and i != b:
                ib = _condensed_index(n, i, b)
                ia = _condensed_index(n, i, a)
                similarity[ib] = share_a * similarity[ia] + share_b * similarity[ib]
        size[b] += size[a]
        size[a] = 0
    return pairs, heights


@_compile()
def _region_totals(
    indptr: Any, indices: Any, data: Any, head: int, following: Any, totals: Any
) -> int:
    """Add up the rows of one region; return how many columns it touches."""
    n_touched = 0
    row = head
    while row >= 0:
        for e in range(indptr[row], indptr[row + 1]):
            if totals[indices[e]] == 0:
                n_touched += 1
            totals[indices[e]] += data[e]
        row = following[row]
    return n_touched


@_compile()
def _gathered(
    indptr: Any, indices: Any, data: Any, head: Any, following: Any, n_columns: int
) -> Any:
    """Return the CSR arrays of the regions, each the sum of its rows."""
    n = head.size
    totals = np.zeros(n_columns)
    counts = np.zeros(n + 1, dtype=np.int64)
    for r in range(n):
        counts[r + 1] = counts[r]
        if head[r] >= 0:
            counts[r + 1] += _region_totals(
                indptr, indices, data, head[r], following, totals
            )
            _clear_region(indptr, indices, head[r], following, totals)
    new_indices = np.empty(counts[n], dtype=np.int32)
    new_data = np.empty(counts[n])
    for r in range(n):
        if head[r] < 0:
            continue
        _region_totals(indptr, indices, data, head[r], following, totals)
        position = counts[r]
        row = head[r]
        while row >= 0:
            for e in range(indptr[row], indptr[row + 1]):
                if totals[indices[e]] != 0:
                    new_indices[position] = indices[e]
                    new_data[position] = totals[indices[e]]
                    totals[indices[e]] = 0
                    position += 1
            row = following[row]
    return counts, new_indices, new_data


@_compile()
def _clear_region(
    indptr: Any, indices: Any, head: int, following: Any, totals: Any
) -> None:
    row = head
    while row >= 0:
        for e in range(indptr[row], indptr[row + 1]):
            totals[indices[e]] = 0
        row = following[row]


@_compile()
def factored_linkage(
    indptr: Any, indices: Any, data: Any, n_columns: int, sizes: Any
) -> Any:
    """Average linkage of the products of CSR rows, without their N x N products.

    A region is the list of its rows. Its similarity to all others comes from the
    columns that it touches; regions are gathered into fewer rows whenever their number
    has halved, so columns shorten as regions merge.
    """
    n = sizes.size
    size = sizes.astype(np.float64)
    data = data * np.repeat(size, np.diff(indptr))
    head = np.arange(n)
    tail = np.arange(n)
    following = np.full(n, -1)
    owner = np.arange(n)
    start, rows, values = _by_column(indptr, indices, data, n_columns)
    totals = np.zeros(n_columns)
    similarity = np.zeros(n)
    pairs = np.empty((n - 1, 2), dtype=np.int64)
    heights = np.empty(n - 1)
    chain = np.empty(n, dtype=np.int64)
    length = 0
    gather_at = n // 2
    for step in range(n - 1):
        n_active = n - step
        if n_active <= gather_at:
            indptr, indices, data = _gathered(
                indptr, indices, data, head, following, n_columns
            )
            start, rows, values = _by_column(indptr, indices, data, n_columns)
            for r in range(n):
                owner[r] = r
                following[r] = -1
                if head[r] >= 0:
                    head[r] = r
                    tail[r] = r
            gather_at = n_active // 2
        if length == 0:
            for i in range(n):
                if size[i] > 0:
                    chain[0] = i
                    length = 1
                    break
        while True:
            tip = chain[length - 1]
            _region_totals(indptr, indices, data, head[tip], following, totals)
            row = head[tip]
            similarity[:] = 0
            while row >= 0:
                for e in range(indptr[row], indptr[row + 1]):
                    c = indices[e]
                    total = totals[c]
                    if total != 0:
                        totals[c] = 0
                        for entry in range(start[c], start[c + 1]):
                            similarity[owner[rows[entry]]] += total * values[entry]
                row = following[row]
            nearest, best = -1, -np.inf
            # The predecessor wins ties, so that a chain cannot run in circles.
            if length > 1:
                nearest = chain[length - 2]
                best = similarity[nearest] / (size[tip] * size[nearest])
            for i in range(n):
                if size[i] > 0 and i != tip:
                    value = similarity[i] / (size[tip] * size[i])
                    if value > best:
                        best, nearest = value, i
            if length > 1 and nearest == chain[length - 2]:
                break
            chain[length] = nearest
            length += 1
        length -= 2
        a, b = min(tip, nearest), max(tip, nearest)
        pairs[step, 0], pairs[step, 1] = a, b
        heights[step] = best
        row = head[a]
        while row >= 0:
            owner[row] = b
            row = following[row]
        following[tail[b]] = head[a]
        tail[b] = tail[a]
        head[a] = -1
        size[b] += size[a]
        size[a] = 0
    return pairs, heights
