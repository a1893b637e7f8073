"""Kernels of our own, for what takes PyTorch several passes over the memory of a GPU.

Triton, which comes with PyTorch for NVIDIA GPUs, compiles them on first use. Elsewhere
functions of PyTorch do the same, up to rounding.
"""

from __future__ import annotations

import warnings
from functools import cache
from subprocess import CalledProcessError

import torch
from torch import Tensor

from mdec.engines.tensors.device import full_precision

# Products are not fused with sums, whose digits would be others; but those of numbers
# of float32 have no more digits than float64.
AS_WRITTEN = {"enable_fp_fusion": False, "num_warps": 1}
EXACT = {"enable_fp_fusion": True, "num_warps": 1}

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None


def has_kernels(tensor: Tensor) -> bool:
    """Tell whether there are kernels for where a tensor is."""
    return tensor.is_cuda and triton is not None and compiles(tensor.device)


@cache
def compiles(device: torch.device) -> bool:
    """Tell whether kernels can be compiled, which takes a C compiler; warn if not."""
    one = torch.ones((1, 1), device=device)
    try:
        pair_squares(one, one, torch.zeros_like(one, dtype=torch.int64))
    except (RuntimeError, OSError, CalledProcessError) as error:
        warnings.warn(
            f"Triton cannot compile kernels, so the GPU is slower; install a C "
            f"compiler and the headers of Python. It says: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


def pair_squares(rows: Tensor, others: Tensor, columns: Tensor) -> Tensor:
    """Return what `mdec.engines.tensors.neighbors.pair_squares` does."""
    count, n_features = columns.shape[1], rows.shape[1]
    out = torch.empty(columns.shape, dtype=torch.float64, device=rows.device)
    contiguous = [each.contiguous() for each in (rows, others, columns)]
    wide = triton.next_power_of_2(count)
    step = min(triton.next_power_of_2(n_features), max(16, 4096 // wide))
    _pair_squares[(len(rows),)](*contiguous, out, count, n_features, wide, step)
    return out


def graph_step(
    arrays: tuple[Tensor, Tensor, Tensor],
    block: Tensor,
    scale: Tensor,
    shift: Tensor,
    before: Tensor,
) -> Tensor:
    """Return what `mdec.engines.tensors.graphs.BatchGraph.step` does.

    Sums are those of `mdec.numerics.loops.csr`, to the last digit.
    """
    n_members, order, width = block.shape
    out, wide = torch.empty_like(block), min(triton.next_power_of_2(width), 128)
    factors = (each.contiguous() for each in (block, before, scale, shift))
    grid = n_members * order, triton.cdiv(width, wide)
    _graph_step[grid](*arrays, *factors, out, order, width, wide, 8, **AS_WRITTEN)
    return out


def inner_products(left: Tensor, right: Tensor, *, upper: bool = False) -> Tensor:
    """Return the products of vectors of blocks, (n_members, order, any), in float64.

    Sums are those of `mdec.numerics.loops.vectors`, row by row. If only the `upper`
    half is wanted, most of what is below the diagonal is left as it is.
    """
    if not has_kernels(left):
        return left.to(torch.float64).mT @ right.to(torch.float64)
    n_members, order, n_left = left.shape
    shape, strides = (n_members, n_left, right.shape[2]), (order * n_left, n_left, 1)
    out = torch.empty(shape, dtype=torch.float64, device=left.device)
    grid = n_members * triton.cdiv(n_left, 8), triton.cdiv(shape[2], 64)
    both, sizes = (left.contiguous(), right.contiguous()), (n_left, order, shape[2])
    how = upper, False, True, 8, 64, 8
    _add_products[grid](*both, out, *sizes, *strides, *how, **EXACT)
    return out


def multiply(block: Tensor, matrix: Tensor) -> Tensor:
    """Return the products of blocks, (n_members, order, width), and square matrices.

    Sums are those of `mdec.numerics.loops.vectors`, in the precision of the matrices.
    Those in float64 are upper triangles.
    """
    if not has_kernels(block):
        with full_precision():
            return (block.to(matrix.dtype) @ matrix).to(block.dtype)
    n_members, order, width = block.shape
    out, wide = torch.empty_like(block), min(triton.next_power_of_2(width), 128)
    grid = n_members * triton.cdiv(order, 4), triton.cdiv(width, wide)
    both, strides = (block.contiguous(), matrix.contiguous()), (order * width, 1, width)
    in_float64, sizes = matrix.dtype == torch.float64, (order, width, width)
    how = False, in_float64, in_float64, 4, wide, 4
    _add_products[grid](*both, out, *sizes, *strides, *how, **AS_WRITTEN)
    return out


def gaussian_unlikeness(
    distance: Tensor, rho_i: Tensor, rho_j: Tensor, width: Tensor
) -> Tensor:
    r"""Write :math:`\log s + (D / s)^2`, :math:`s = w (D + \rho_i + \rho_j)`, over D.

    Distances are (n_members, n_rows, n_columns); the others have one number for each
    row, each column and each member.
    """
    n_members, n_rows, n_columns = distance.shape
    factors = (each.contiguous() for each in (rho_i, rho_j, width))
    grid = n_members * n_rows, triton.cdiv(n_columns, 1024)
    _gaussian_unlikeness[grid](distance, *factors, n_rows, n_columns, 1024)
    return distance


if triton is not None:
    # Triton reads annotations, so that there are none but its own.

    @triton.jit
    def _pair_squares(
        rows,
        others,
        columns,
        out,
        count,
        n_features,
        WIDE: tl.constexpr,
        STEP: tl.constexpr,
    ):
        row = tl.program_id(0).to(tl.int64)
        place = tl.arange(0, WIDE)
        inside = place < count
        column = tl.load(columns + row * count + place, mask=inside, other=0)
        start_of = column.to(tl.int64) * n_features
        total = tl.zeros((WIDE,), tl.float64)
        for start in range(0, n_features, STEP):
            feature = start + tl.arange(0, STEP)
            real = feature < n_features
            own = tl.load(rows + row * n_features + feature, mask=real, other=0.0)
            other = tl.load(
                others + start_of[:, None] + feature[None, :],
                mask=inside[:, None] & real[None, :],
                other=0.0,
            )
            difference = other.to(tl.float64) - own.to(tl.float64)[None, :]
            total += tl.sum(difference * difference, axis=1)
        tl.store(out + row * count + place, total, mask=inside)

    @triton.jit
    def _graph_step(
        indptr,
        indices,
        data,
        block,
        before,
        scale,
        shift,
        out,
        order,
        width,
        WIDE: tl.constexpr,
        ENTRIES: tl.constexpr,
    ):
        row = tl.program_id(0).to(tl.int64)
        column = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
        inside = column < width
        stop = tl.load(indptr + row + 1)
        member, place = row // order, row * width + column
        own = tl.load(block + place, mask=inside, other=0.0)
        factor, total = tl.load(scale + member), tl.load(shift + member) * own
        total -= tl.load(before + place, mask=inside, other=0.0)
        for start in range(tl.load(indptr + row), stop, ENTRIES):
            for entry in tl.static_range(ENTRIES):
                real = start + entry < stop
                other = tl.load(indices + start + entry, mask=real, other=0)
                weight = tl.load(data + start + entry, mask=real, other=0.0)
                values = tl.load(
                    block + other.to(tl.int64) * width + column,
                    mask=real & inside,
                    other=0.0,
                )
                total += (factor * weight) * values
        tl.store(out + place, total, mask=inside)

    @triton.jit
    def _add_products(
        left,
        right,
        out,
        n_rows,
        n_terms,
        n_columns,
        member_stride,
        term_stride,
        row_stride,
        UPPER: tl.constexpr,
        TRIANGLE: tl.constexpr,
        IN_FLOAT64: tl.constexpr,
        ROWS: tl.constexpr,
        WIDE: tl.constexpr,
        TERMS: tl.constexpr,
    ):
        n_groups = tl.cdiv(n_rows, ROWS)
        member = (tl.program_id(0) // n_groups).to(tl.int64)
        first = (tl.program_id(0) % n_groups) * ROWS
        row = first + tl.arange(0, ROWS)[:, None]
        column = tl.program_id(1) * WIDE + tl.arange(0, WIDE)[None, :]
        below, inside = row < n_rows, column < n_columns
        dtype: tl.constexpr = tl.float64 if IN_FLOAT64 else tl.float32
        own = left + member * member_stride + row * row_stride
        other = right + member * n_terms * n_columns + column
        total = tl.zeros((ROWS, WIDE), dtype)
        stop, end = n_terms, (tl.program_id(1) + 1) * WIDE
        if UPPER:
            stop = tl.where(first < end, n_terms, 0)
        if TRIANGLE:
            stop = tl.minimum(n_terms, end)
        # The loads of several terms are on their way together.
        whole = stop - stop % TERMS
        for start in range(0, whole, TERMS):
            for step in tl.static_range(TERMS):
                term = start + step
                weights = tl.load(own + term * term_stride, mask=below, other=0.0)
                values = tl.load(other + term * n_columns, mask=inside, other=0.0)
                total += weights.to(dtype) * values.to(dtype)
        for term in range(whole, stop):
            weights = tl.load(own + term * term_stride, mask=below, other=0.0)
            values = tl.load(other + term * n_columns, mask=inside, other=0.0)
            total += weights.to(dtype) * values.to(dtype)
        place = (member * n_rows + row) * n_columns + column
        tl.store(out + place, total, mask=below & inside)

    @triton.jit
    def _gaussian_unlikeness(
        distance,
        rho_i,
        rho_j,
        width,
        n_rows,
        n_columns,
        WIDE: tl.constexpr,
    ):
        row = tl.program_id(0).to(tl.int64)
        column = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
        inside = column < n_columns
        member = row // n_rows
        place = distance + row * n_columns + column
        value = tl.load(place, mask=inside, other=0.0)
        both = tl.load(rho_i + row) + value
        both += tl.load(rho_j + member * n_columns + column, mask=inside, other=1.0)
        scale = tl.load(width + member) * both
        share = value / scale
        tl.store(place, tl.log(scale) + share * share, mask=inside)
