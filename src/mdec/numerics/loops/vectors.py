"""Blocks of vectors, in columns: products, bases, eigenvectors of small matrices.

The compiler may neither reorder the sums of these loops nor fuse their products with
them, so that every processor rounds them alike; libraries of linear algebra do as suits
the processor. Vectors are padded by columns of zeros to fill its registers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mdec.numerics.loops.jit import inner, jit
from mdec.numerics.loops.lanes import (
    LANES,
    add_product,
    column_groups,
    load,
    store,
    zeros,
)

# Rows whose products are added up together stay in the cache.
_ROWS = 256

# The QL iteration takes two or three turns for an eigenvalue, and never this many.
MAX_TURNS = 60

# How often vectors that are nearly dependent are made orthonormal.
MAX_PASSES = 3

# A square below this share of the vector's own is rounding alone.
_ROUNDING = 1e-14

# A basis of vectors whose squares stay above this share is orthonormal in float32.
_SOUND = 1e-8


def leave_out(block: Any, known: Any) -> None:
    """Make a block orthogonal to known vectors."""
    n, n_known = known.shape
    weights = np.zeros((n, -(-n_known // 4) * 4), dtype=block.dtype)
    np.negative(known, out=weights[:, :n_known])
    sums = np.zeros((weights.shape[1], block.shape[1]), dtype=block.dtype)
    for first in range(0, n_known, LANES):
        some = np.ascontiguousarray(known[:, first : first + LANES])
        sums[first : first + some.shape[1]] = inner_products(some, block)
    for columns in column_groups(block.shape[1]):
        stop = len(sums)
        _add_products(weights, sums.ravel(), block.ravel(), stop, True, *columns)


def orthonormalize(block: Any, width: int) -> None:
    """Replace the first vectors of a block by an orthonormal basis of their span.

    By the Cholesky factor of their products in float64, once more where they were
    nearly dependent.
    """
    row, inverse = np.empty(block.shape[1]), np.empty((1, *block.shape[1:] * 2))
    widths, sound = np.array([width]), np.zeros(1, dtype=bool)
    for _ in range(MAX_PASSES):
        products = inner_products(block, block)
        _invert_factors(products[None], widths, inverse, sound, row)
        # Of a triangle the last columns come from all, and so are made first.
        for first, group in [*column_groups(block.shape[1])][::-1]:
            stop = first + LANES * len(group)
            arrays = block, inverse.ravel(), block.ravel()
            _add_products(*arrays, stop, False, first, group)
        if sound[0]:
            break


def orthonormalizers(
    products: Any, widths: Any, done: Any, inverse: Any, in_parts: Any
) -> Any:
    """Write what `orthonormalize` multiplies blocks with in one pass; tell it is done.

    The products of the vectors of each block, (n_blocks, most, most), are overwritten;
    each has its own width. The `inverse` of blocks that were done is the identity.
    `in_parts` does the work on slices of them.
    """
    arrays = products, widths, inverse, done.copy()

    def invert(part: slice) -> None:
        _invert_factors(*(each[part] for each in arrays), np.empty(products.shape[1]))

    in_parts(invert, widths)
    return arrays[3]


@jit()
def _invert_factors(
    products: Any, widths: Any, inverse: Any, done: Any, scale: Any
) -> None:
    """Write the inverse of R, where R'R are the products; tell whether it is sound.

    Below the diagonal of the products, what eliminates R' becomes the inverse of it.
    """
    most = inverse.shape[1]
    for m in range(done.size):
        own, width, least = products[m], 0 if done[m] else widths[m], 1.0
        for a in range(width):
            scale[a] = 1.0 / math.sqrt(own[a, a]) if own[a, a] > 0.0 else 0.0
        for a in range(width):
            for b in range(width):
                own[a, b] *= scale[a] * scale[b]
        for j in range(width):
            pivot = own[j, j]
            least = pivot if pivot < least else least
            factor = 1.0 / math.sqrt(pivot if pivot > _ROUNDING else _ROUNDING)
            own[j, j] = 1.0
            for b in range(width):
                own[j, b] *= factor
            for a in range(j + 1, width):
                weight = own[j, a]
                own[a, j] = 0.0
                for b in range(width):
                    own[a, b] -= weight * own[j, b]
        for a in range(most):
            for b in range(most):
                inverse[m, a, b] = 1.0 if done[m] and a == b else 0.0
            for b in range(a, width):
                inverse[m, a, b] = scale[a] * own[b, a]
        done[m] |= least > _SOUND


def inner_products(left: Any, right: Any) -> Any:
    """Return the products of all vectors of two blocks, on and above the diagonal."""
    out = np.zeros((left.shape[1], right.shape[1]))
    for columns in column_groups(right.shape[1]):
        _inner_products(left, right.ravel(), out.ravel(), right.shape[1], *columns)
    return out


@jit()
def _inner_products(
    left: Any, right: Any, out: Any, width: int, first: int, group: Any
) -> None:
    n, n_left = left.shape
    for start in range(0, n, _ROWS):
        for a in range(0, min(n_left, first + LANES * len(group)), 2):
            b = min(a + 1, n_left - 1)
            none = zeros(group, out[0])
            one = load(out, a * width + first, none)
            other = load(out, b * width + first, none)
            for i in range(start, min(n, start + _ROWS)):
                numbers = load(right, i * width + first, none)
                one = add_product(one, np.float64(left[i, a]), numbers)
                other = add_product(other, np.float64(left[i, b]), numbers)
            store(out, a * width + first, one)
            store(out, b * width + first, other)


def multiply(block: Any, matrix: Any) -> Any:
    """Return the product of a block and a small matrix."""
    width = block.shape[1]
    padded = np.zeros((width, width), dtype=block.dtype)
    padded[: len(matrix), : len(matrix)] = matrix
    out = np.empty_like(block)
    for columns in column_groups(width):
        _add_products(block, padded.ravel(), out.ravel(), width, False, *columns)
    return out


@jit()
def _add_products(
    weights: Any, rows: Any, out: Any, stop: int, more: bool, first: int, group: Any
) -> None:
    """Write some columns of the sums of weighted rows up to one, or add them, in order.

    Sums have the precision of the rows.
    """
    n, width = weights.shape[0], out.size // weights.shape[0]
    for i in range(n):
        sums = zeros(group, rows[0])
        if more:
            sums = load(out, i * width + first, sums)
        for a in range(stop):
            weight = rows.dtype.type(weights[i, a])
            sums = add_product(sums, weight, load(rows, a * width + first, sums))
        store(out, i * width + first, sums)


def residual_norms(block: Any, image: Any, values: Any) -> Any:
    """Return the norms of the image less the values times the vectors."""
    wanted = slice(values.size)
    left = image[:, wanted] - values.astype(block.dtype) * block[:, wanted]
    return np.sqrt(np.square(left, dtype=np.float64).sum(axis=0))


def symmetric_eigenvectors(matrix: Any) -> tuple[Any, Any]:
    """Return the eigenvalues, largest first, and eigenvectors of a small matrix.

    It is given on and above the diagonal. Householder's reflections make it
    tridiagonal, and the QL iteration with implicit shifts diagonal.
    """
    n = len(matrix)
    # Turned around, so that what is left of it begins at zero, which is faster.
    square = np.tril(matrix[::-1, ::-1])
    square += np.tril(square, -1).T
    turned, (beside, scales, scratch) = np.eye(n), np.zeros((3, n))
    _tridiagonalize(square, np.square(square).sum(), turned, beside, scales, scratch)
    values = square.diagonal()[::-1].copy()
    vectors = np.ascontiguousarray(turned[::-1, ::-1].T)
    # Beside the largest values, not its neighbours: where many eigenvalues are zero,
    # these are rounding themselves.
    vanishing = 2.0**-52 * np.max(np.abs(values) + np.abs(beside), initial=0.0)
    if not _diagonalize(values, beside, vectors, vanishing):
        raise np.linalg.LinAlgError("The eigenvalues of a small matrix do not converge")
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[order].T


def eigenvectors_of_each(
    matrices: Any, widths: Any, vectors: Any, in_parts: Any
) -> Any:
    """Write and return what `symmetric_eigenvectors` does, of unequal widths.

    The matrices are padded to one size, (n_matrices, most, most), and so are the
    results: the `vectors` by zeros, the values by minus infinity. `in_parts` does the
    work on slices of them.
    """
    values = np.full(matrices.shape[:2], -np.inf)
    vectors[:] = 0.0

    def solve(part: slice) -> None:
        for m in range(*part.indices(len(widths))):
            own = slice(widths[m])
            found = symmetric_eigenvectors(matrices[m, own, own])
            values[m, own], vectors[m, own, own] = found

    in_parts(solve, widths)
    return values


@inner()
def _add_rows(square: Any, k: int, scale: float, rows: Any, out: Any) -> None:
    """Write the sum of k rows weighted by row k of a square and a scale."""
    for i in range(k):
        out[i] = 0.0
    for j in range(k - 1, -1, -1):
        weight = scale * square[k, j]
        for i in range(k):
            out[i] += weight * rows[j, i]


@jit()
def _tridiagonalize(
    square: Any, size: float, turned: Any, beside: Any, scales: Any, scratch: Any
) -> None:
    """Make a symmetric matrix tridiagonal, and write the vectors that lead there.

    `size` is the sum of its squares; `turned` is the identity before.
    """
    # What is left of a matrix of low rank is rounding, of low rank again, and so on
    # down to numbers whose squares vanish.
    n, rounding = scales.size, 2.0**-60 * math.sqrt(size)
    for k in range(n - 1, 1, -1):
        # Of row k only what is left of the diagonal is left: the reflection.
        total = 0.0
        for i in range(k - 1, -1, -1):
            total += square[k, i] * square[k, i]
        norm = math.sqrt(total)
        if norm <= rounding:
            continue
        norm = -norm if square[k, k - 1] > 0.0 else norm
        beside[n - 1 - k] = norm
        square[k, k - 1] -= norm
        scales[k] = scale = -1.0 / (norm * square[k, k - 1])
        _add_rows(square, k, scale, square, scratch)
        total = 0.0
        for i in range(k - 1, -1, -1):
            total += square[k, i] * scratch[i]
        half = 0.5 * scale * total
        for i in range(k):
            scratch[i] -= half * square[k, i]
        for j in range(k):
            a, b = square[k, j], scratch[j]
            for i in range(k):
                square[j, i] -= a * scratch[i] + b * square[k, i]
    if n > 1:
        beside[n - 2] = square[1, 0]
    for k in range(2, n):
        if scales[k] != 0.0:
            _add_rows(square, k, scales[k], turned, scratch)
            for j in range(k):
                weight = square[k, j]
                for i in range(k):
                    turned[j, i] -= weight * scratch[i]


@jit()
def _diagonalize(values: Any, beside: Any, vectors: Any, vanishing: float) -> bool:
    """Turn rows of vectors until what is beside the diagonal vanishes, if it does."""
    n = values.size
    for first in range(n):
        for turns in range(MAX_TURNS + 1):
            last = first
            while last < n - 1 and not abs(beside[last]) <= vanishing:
                last += 1
            if last == first:
                break
            if turns == MAX_TURNS:
                return False
            # Wilkinson's shift, of the two by two matrix at the first place.
            ratio = (values[first + 1] - values[first]) / (2.0 * beside[first])
            root = math.sqrt(ratio * ratio + 1.0)
            ratio += root if ratio >= 0.0 else -root
            bulge = values[last] - values[first] + beside[first] / ratio
            sine, cosine, moved = 1.0, 1.0, 0.0
            i = last - 1
            while i >= first:
                over, along = sine * beside[i], cosine * beside[i]
                root = math.sqrt(over * over + bulge * bulge)
                beside[i + 1] = root
                if root == 0.0:
                    values[i + 1] -= moved
                    break
                sine, cosine = over / root, bulge / root
                kept = values[i + 1] - moved
                turned = (values[i] - kept) * sine + 2.0 * cosine * along
                moved = sine * turned
                values[i + 1] = kept + moved
                bulge = cosine * turned - along
                low, high = vectors[i], vectors[i + 1]
                for c in range(n):
                    a, b = low[c], high[c]
                    high[c] = sine * a + cosine * b
                    low[c] = cosine * a - sine * b
                i -= 1
            if i < first:
                values[first] -= moved
                beside[first] = bulge
            beside[last] = 0.0
    return True
