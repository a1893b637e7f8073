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

# The columns are a multiple of this.
LANES = 16

# The QL iteration takes two or three turns for an eigenvalue, and never this many.
MAX_TURNS = 60

# How often vectors that are nearly dependent are made orthonormal.
MAX_PASSES = 3

_NO_END = "The eigenvalues of a small matrix do not converge"

# A square below this share of the vector's own is rounding alone.
_ROUNDING = 1e-14

# A basis of vectors whose squares stay above this share is orthonormal in float32.
_SOUND = 1e-8


def pad_columns(block: Any) -> Any:
    """Return a block with columns of zeros up to a multiple of the lanes."""
    n, width = block.shape
    out = np.zeros((n, -(-width // LANES) * LANES), dtype=block.dtype)
    out[:, :width] = block
    return out


def leave_out(block: Any, known: Any) -> None:
    """Make a block orthogonal to known vectors, most of whose entries are zeros."""
    sums = np.zeros((known.shape[1], block.shape[1]))
    _leave_out(block, known, sums, np.empty(block.shape[1], dtype=block.dtype))


@jit()
def _leave_out(block: Any, known: Any, sums: Any, row: Any) -> None:
    n, width = block.shape
    for i in range(n):
        own = block[i]
        for a in range(known.shape[1]):
            weight, total = np.float64(known[i, a]), sums[a]
            if weight != 0.0:
                for c in range(width):
                    total[c] += weight * own[c]
    for a in range(known.shape[1]):
        total = sums[a]
        for c in range(width):
            row[c] = total[c]
        for i in range(n):
            weight, own = known[i, a], block[i]
            if weight != 0.0:
                for c in range(width):
                    own[c] -= weight * row[c]


def orthonormalize(block: Any, width: int) -> None:
    """Replace the first vectors of a block by an orthonormal basis of their span.

    By the Cholesky factor of their products in float64, once more where they were
    nearly dependent.
    """
    row, scale = np.empty(block.shape[1]), np.empty(width)
    for _ in range(MAX_PASSES):
        products = inner_products(block, block)
        inverse = np.zeros_like(products)
        sound = _invert_factor(products, scale, inverse)
        _multiply_by_triangle(block, inverse, row)
        if sound:
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
    most = scale.size
    for m in range(done.size):
        for a in range(most):
            for b in range(most):
                inverse[m, a, b] = 1.0 if done[m] and a == b else 0.0
        if not done[m]:
            done[m] = _invert_factor(products[m], scale[: widths[m]], inverse[m])


@jit()
def _invert_factor(products: Any, scale: Any, inverse: Any) -> bool:
    """Write the inverse of R, where R'R are the products; tell whether it is sound."""
    width = scale.size
    for a in range(width):
        scale[a] = 0.0
        if products[a, a] > 0.0:
            scale[a] = 1.0 / math.sqrt(products[a, a])
    for a in range(width):
        row = products[a]
        for b in range(a, width):
            row[b] *= scale[a] * scale[b]
    least = 1.0
    for j in range(width):
        row = products[j]
        least = row[j] if row[j] < least else least
        factor = 1.0 / math.sqrt(row[j] if row[j] > _ROUNDING else _ROUNDING)
        for b in range(j, width):
            row[b] *= factor
        for a in range(j + 1, width):
            weight, target = row[a], products[a]
            for b in range(a, width):
                target[b] -= weight * row[b]
        row[j] = 1.0 / factor
    for j in range(width - 1, -1, -1):
        row, target = products[j], inverse[j]
        target[j] = 1.0
        for a in range(j + 1, width):
            weight, other = row[a], inverse[a]
            for b in range(a, width):
                target[b] -= weight * other[b]
        for b in range(j, width):
            target[b] /= row[j]
    for a in range(width):
        target = inverse[a]
        for b in range(a, width):
            target[b] *= scale[a]
    return least > _SOUND


def inner_products(left: Any, right: Any) -> Any:
    """Return the products of all vectors of two blocks, on and above the diagonal."""
    width = left.shape[1]
    out = np.zeros((width, width))
    _inner_products(left, right, np.empty((4, width)), out)
    for i in range(len(left) // 4 * 4, len(left)):
        out += np.multiply.outer(left[i].astype(np.float64), right[i])
    return out


@jit()
def _inner_products(left: Any, right: Any, rows: Any, out: Any) -> None:
    """Add up the products of four rows at a time."""
    n, width = left.shape
    for i in range(0, n - 3, 4):
        for r in range(4):
            target, own = rows[r], right[i + r]
            for c in range(width):
                target[c] = own[c]
        for a in range(width):
            w0, w1 = np.float64(left[i, a]), np.float64(left[i + 1, a])
            w2, w3 = np.float64(left[i + 2, a]), np.float64(left[i + 3, a])
            first = a // LANES * LANES
            x0, x1 = rows[0, first:], rows[1, first:]
            x2, x3 = rows[2, first:], rows[3, first:]
            target = out[a, first:]
            for b in range(target.size):
                total = target[b] + w0 * x0[b]
                total += w1 * x1[b]
                total += w2 * x2[b]
                target[b] = total + w3 * x3[b]


@jit()
def _multiply_by_triangle(block: Any, triangle: Any, row: Any) -> None:
    """Replace a block by its product with an upper triangle, in float64."""
    n, width = block.shape
    for i in range(n):
        own = block[i]
        for c in range(width):
            row[c] = 0.0
        for a in range(0, width, 4):
            w0, w1 = np.float64(own[a]), np.float64(own[a + 1])
            w2, w3 = np.float64(own[a + 2]), np.float64(own[a + 3])
            first = a // LANES * LANES
            x0, x1 = triangle[a, first:], triangle[a + 1, first:]
            x2, x3 = triangle[a + 2, first:], triangle[a + 3, first:]
            target = row[first:]
            for c in range(target.size):
                total = target[c] + w0 * x0[c]
                total += w1 * x1[c]
                total += w2 * x2[c]
                target[c] = total + w3 * x3[c]
        for c in range(width):
            own[c] = row[c]


def multiply(block: Any, matrix: Any) -> Any:
    """Return the product of a block and a small matrix."""
    padded = np.zeros((block.shape[1], block.shape[1]), dtype=block.dtype)
    padded[: len(matrix), : len(matrix)] = matrix
    out = np.zeros_like(block)
    _multiply(block, padded, out)
    return out


@jit()
def _multiply(block: Any, matrix: Any, out: Any) -> None:
    for i in range(len(block)):
        own, row = block[i], out[i]
        for a in range(0, len(matrix), 4):
            w0, w1, w2, w3 = own[a], own[a + 1], own[a + 2], own[a + 3]
            x0, x1, x2, x3 = matrix[a], matrix[a + 1], matrix[a + 2], matrix[a + 3]
            for c in range(row.size):
                total = row[c] + w0 * x0[c]
                total += w1 * x1[c]
                total += w2 * x2[c]
                row[c] = total + w3 * x3[c]


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
    width = len(matrix)
    square, vectors = np.array(matrix, order="C"), np.eye(width)
    values, beside, scales, scratch = np.zeros((4, width))
    _tridiagonalize(square, vectors, values, beside, scales, scratch)
    vectors = np.ascontiguousarray(vectors.T)
    # Beside the largest values, not its neighbours: where many eigenvalues are zero,
    # these are rounding themselves.
    vanishing = 2.0**-52 * np.max(np.abs(values) + np.abs(beside), initial=0.0)
    if not _diagonalize(values, beside, vectors, vanishing):
        raise np.linalg.LinAlgError(_NO_END)
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
    most = matrices.shape[1]
    values = np.empty(matrices.shape[:2])
    arrays = matrices, widths, values, vectors

    def solve(part: slice) -> bool:
        squares, scratch = np.empty((2, most * most)), np.empty((4, most))
        own = (each[part] for each in arrays)
        found: bool = _solve_each(*own, squares[0], squares[1], scratch)
        return found

    if not all(in_parts(solve, widths)):
        raise np.linalg.LinAlgError(_NO_END)
    return values


@jit()
def _solve_each(
    matrices: Any,
    widths: Any,
    values: Any,
    vectors: Any,
    square: Any,
    turned: Any,
    scratch: Any,
) -> bool:
    for m in range(widths.size):
        n, most = widths[m], values.shape[1]
        own, other = square[: n * n].reshape(n, n), turned[: n * n].reshape(n, n)
        for i in range(n):
            for j in range(n):
                own[i, j] = matrices[m, i, j]
                other[i, j] = 1.0 if i == j else 0.0
        found, beside, scales = scratch[0, :n], scratch[1, :n], scratch[2, :n]
        for i in range(n):
            found[i] = beside[i] = scales[i] = scratch[3, i] = 0.0
        _tridiagonalize(own, other, found, beside, scales, scratch[3, :n])
        largest = 0.0
        for i in range(n):
            size = abs(found[i]) + abs(beside[i])
            largest = size if not size <= largest else largest
            for j in range(n):
                own[i, j] = other[j, i]
        if not _diagonalize(found, beside, own, 2.0**-52 * largest):
            return False
        for i in range(most):
            values[m, i] = -np.inf
            for j in range(most):
                vectors[m, i, j] = 0.0
        for i in range(n):
            # Largest first, the first of equals before the others.
            place = 0
            for j in range(n):
                if found[j] > found[i] or (found[j] == found[i] and j < i):
                    place += 1
            values[m, place] = found[i]
            for j in range(n):
                vectors[m, j, place] = own[i, j]
    return True


@inner()
def _dot(a: Any, b: Any) -> Any:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@jit()
def _tridiagonalize(
    square: Any, vectors: Any, values: Any, beside: Any, scales: Any, scratch: Any
) -> None:
    """Write the diagonal, what is beside it and the vectors that lead there."""
    n = values.size
    for i in range(n):
        for j in range(i):
            square[i, j] = square[j, i]
    # What is left of a matrix of low rank is rounding, of low rank again, and so on
    # down to numbers whose squares vanish.
    rounding = 2.0**-60 * math.sqrt(_dot(square.reshape(-1), square.reshape(-1)))
    for k in range(n - 2):
        # Of row k only what is right of the diagonal is left: the reflection.
        v, p = square[k, k + 1 :], scratch[k + 1 :]
        norm = math.sqrt(_dot(v, v))
        if norm <= rounding:
            continue
        beside[k] = -norm if v[0] > 0.0 else norm
        v[0] -= beside[k]
        scales[k] = -1.0 / (beside[k] * v[0])
        for i in range(p.size):
            p[i] = 0.0
        for j in range(v.size):
            weight, row = scales[k] * v[j], square[k + 1 + j, k + 1 :]
            for i in range(p.size):
                p[i] += weight * row[i]
        half = 0.5 * scales[k] * _dot(v, p)
        for i in range(p.size):
            p[i] -= half * v[i]
        for j in range(v.size):
            a, b, row = v[j], p[j], square[k + 1 + j, k + 1 :]
            for i in range(p.size):
                row[i] -= a * p[i] + b * v[i]
    for k in range(n):
        values[k] = square[k, k]
    if n > 1:
        beside[n - 2] = square[n - 2, n - 1]
    for k in range(n - 3, -1, -1):
        if scales[k] == 0.0:
            continue
        v, p = square[k, k + 1 :], scratch[k + 1 :]
        for i in range(p.size):
            p[i] = 0.0
        for j in range(v.size):
            weight, row = scales[k] * v[j], vectors[k + 1 + j, k + 1 :]
            for i in range(p.size):
                p[i] += weight * row[i]
        for j in range(v.size):
            weight, row = v[j], vectors[k + 1 + j, k + 1 :]
            for i in range(p.size):
                row[i] -= weight * p[i]


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
