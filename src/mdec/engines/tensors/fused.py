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
    """Return the squared distances of rows to listed others, by differences in float64.

    Rows are (n_rows, n_features), the others (n_others, n_features), and the columns,
    (n_rows, count), places among the others.
    """
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
    """Return ``scale * (A @ block) + shift * block - before``.

    A is a matrix of as many diagonal blocks as there are blocks of vectors, (n_members,
    order, width), by its CSR arrays; scale and shift have one number for each.
    """
    n_members, order, width = block.shape
    out, wide = torch.empty_like(block), min(triton.next_power_of_2(width), 128)
    factors = (each.contiguous() for each in (block, before, scale, shift))
    grid = n_members * order, triton.cdiv(width, wide)
    _graph_step[grid](*arrays, *factors, out, order, width, wide, 8)
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
        total = tl.zeros((WIDE,), tl.float32)
        for start in range(tl.load(indptr + row), stop, ENTRIES):
            entry = start + tl.arange(0, ENTRIES)
            real = entry < stop
            other = tl.load(indices + entry, mask=real, other=0).to(tl.int64)
            weight = tl.load(data + entry, mask=real, other=0.0)
            values = tl.load(
                block + (other * width)[:, None] + column[None, :],
                mask=real[:, None] & inside[None, :],
                other=0.0,
            )
            total += tl.sum(weight[:, None] * values, axis=0)
        member, place = row // order, row * width + column
        own = tl.load(block + place, mask=inside, other=0.0)
        total = tl.load(scale + member) * total + tl.load(shift + member) * own
        total -= tl.load(before + place, mask=inside, other=0.0)
        tl.store(out + place, total, mask=inside)

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
