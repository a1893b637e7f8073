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

# Products are not fused with sums, whose digits would be others.
AS_WRITTEN = {"enable_fp_fusion": False, "num_warps": 1}

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


def pair_squares(
    rows: Tensor, others: Tensor, columns: Tensor, *, narrow: bool = False
) -> Tensor:
    """Return what `mdec.engines.tensors.neighbors.pair_squares` does."""
    count, n_features = columns.shape[1], rows.shape[1]
    out = torch.empty(columns.shape, dtype=torch.float64, device=rows.device)
    contiguous = [each.contiguous() for each in (rows, others, columns)]
    wide = triton.next_power_of_2(count)
    step = min(triton.next_power_of_2(n_features), max(16, 4096 // wide))
    sizes = count, n_features, wide, step, narrow
    _pair_squares[(len(rows),)](*contiguous, out, *sizes)
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
    _graph_step[grid](*arrays, *factors, out, order, width, wide, **AS_WRITTEN)
    return out


def inner_products(left: Tensor, right: Tensor) -> Tensor:
    """Return the products of vectors of blocks, (n_members, order, any), in float64.

    Products of numbers of float32 are exact there, so that whatever the order of their
    sums, these round to the same numbers of float32 as those of the CPU.
    """
    wide = left.to(torch.float64)
    return wide.mT @ (wide if right is left else right.to(torch.float64))


def multiply(block: Tensor, matrix: Tensor) -> Tensor:
    """Return the products of blocks, (n_members, order, width), and square matrices.

    Sums have the precision of the matrices; in float32 they are those of
    `mdec.numerics.loops.vectors`, to the last digit.
    """
    if matrix.dtype == torch.float64 or not has_kernels(block):
        with full_precision():
            return (block.to(matrix.dtype) @ matrix).to(block.dtype)
    n_members, order, width = block.shape
    out, wide = torch.empty_like(block), min(triton.next_power_of_2(width), 128)
    grid = n_members * triton.cdiv(order, 4), triton.cdiv(width, wide)
    both = block.contiguous(), matrix.contiguous()
    _add_products[grid](*both, out, order, width, wide, **AS_WRITTEN)
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


def smallest(block: Tensor, count: int) -> Tensor:
    """Return what `mdec.engines.tensors.neighbors.smallest_in_rows` does."""
    n_rows, n_columns = block.shape
    slots = 2 * triton.next_power_of_2(count)
    values = block.new_empty((n_rows, slots))
    columns = torch.empty_like(values, dtype=torch.int32)
    n_found = torch.zeros_like(columns[:, 0])
    out = torch.empty((n_rows, count), dtype=torch.int64, device=block.device)
    arrays = block.contiguous(), values, columns, n_found, out
    _smallest[(n_rows,)](*arrays, n_columns, count, slots)
    return out


if triton is not None:
    # Triton reads annotations, so that there are none but its own.
    ENTRIES, ROWS, TERMS = map(tl.constexpr, (8, 4, 4))
    GROUPS, TALL = map(tl.constexpr, (512, 4))

    @triton.jit
    def _pair_squares(
        rows,
        others,
        columns,
        out,
        count,
        width,
        WIDE: tl.constexpr,
        STEP: tl.constexpr,
        NARROW: tl.constexpr,
    ):
        """Compare one row with all that it lists, some features at a time.

        Squares are in float64, and unless narrow the differences.
        """
        row = tl.program_id(0).to(tl.int64)
        place = tl.arange(0, WIDE)
        inside = place < count
        column = tl.load(columns + row * count + place, mask=inside, other=0)
        start_of = column.to(tl.int64) * width
        total = tl.zeros((WIDE,), tl.float64)
        for start in range(0, width, STEP):
            feature = start + tl.arange(0, STEP)
            real = feature < width
            own = tl.load(rows + row * width + feature, mask=real, other=0.0)
            other = tl.load(
                others + start_of[:, None] + feature[None, :],
                mask=inside[:, None] & real[None, :],
                other=0.0,
            )
            if NARROW:
                difference = (other - own[None, :]).to(tl.float64)
            else:
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
    ):
        """Make some columns of a row of ``scale * A @ block + shift * block - before``.

        Each entry of the graph is scaled before it is multiplied, and all are added to
        the other terms in their order, as the loops of the CPU do.
        """
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
    def _add_products(left, right, out, order, width, WIDE: tl.constexpr):
        """Multiply some rows of a block with a matrix, adding up in order."""
        n_groups = tl.cdiv(order, ROWS)
        member = (tl.program_id(0) // n_groups).to(tl.int64)
        row = tl.program_id(0) % n_groups * ROWS + tl.arange(0, ROWS)[:, None]
        column = tl.program_id(1) * WIDE + tl.arange(0, WIDE)[None, :]
        below, inside = row < order, column < width
        place = (member * order + row) * width
        own, other = left + place, right + member * width * width + column
        total = tl.zeros((ROWS, WIDE), tl.float32)
        # The loads of several terms are on their way together.
        for start in range(0, width, TERMS):
            for step in tl.static_range(TERMS):
                term = start + step
                real = term < width
                weights = tl.load(own + term, mask=below & real, other=0.0)
                values = tl.load(other + term * width, mask=inside & real, other=0.0)
                total += weights * values
        tl.store(out + place + column, total, mask=below & inside)

    @triton.jit
    def _gaussian_unlikeness(
        distance, rho_i, rho_j, width, n_rows, n_columns, WIDE: tl.constexpr
    ):
        """Write the unlikeness of some pairs of one row over their distances."""
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

    @triton.jit
    def _smallest(
        block, values, columns, counters, out, n_columns, count, SLOTS: tl.constexpr
    ):
        """Find the smallest entries of one row, the first of equals.

        One pass over the row finds the least of each of many groups of columns. The
        groups with the smallest of these hold all that is wanted, so that a second pass
        keeps what is no larger than the last of them, seldom more than is wanted. These
        are ranked among themselves. Where ties make them too many, the entries are
        looked for one after another.
        """
        row = tl.program_id(0).to(tl.int64)
        lane, slot = tl.arange(0, GROUPS), tl.arange(0, SLOTS)
        start_of = block + row * n_columns
        least = tl.full((GROUPS,), float("inf"), block.dtype.element_ty)
        for start in range(0, n_columns, TALL * GROUPS):
            for step in tl.static_range(TALL):
                column = start + step * GROUPS + lane
                inside = column < n_columns
                near = tl.load(start_of + column, mask=inside, other=float("inf"))
                least = tl.minimum(least, near)
        # The groups with the smallest minima hold the smallest entries.
        limit = tl.max(tl.where(lane < count, tl.sort(least), -float("inf")))
        counter = counters + row
        for start in range(0, n_columns, TALL * GROUPS):
            for step in tl.static_range(TALL):
                column = start + step * GROUPS + lane
                inside = column < n_columns
                near = tl.load(start_of + column, mask=inside, other=float("inf"))
                hit = (near <= limit) & inside
                # In any order, because they are put in order afterwards.
                place = tl.atomic_add(counter + lane * 0, 1, mask=hit, sem="relaxed")
                shown = hit & (place < SLOTS)
                tl.store(values + row * SLOTS + place, near, mask=shown)
                tl.store(columns + row * SLOTS + place, column, mask=shown)
        tl.debug_barrier()
        n_found = tl.atomic_add(counter, 0)
        if n_found <= SLOTS:
            real = slot < n_found
            near = tl.load(values + row * SLOTS + slot, mask=real, other=float("inf"))
            column = tl.load(columns + row * SLOTS + slot, mask=real, other=n_columns)
            before = near[None, :] < near[:, None]
            same = near[None, :] == near[:, None]
            before |= same & (column[None, :] < column[:, None])
            rank = tl.sum(before.to(tl.int32), axis=1)
            tl.store(out + row * count + rank, column, mask=real & (rank < count))
        else:
            # So many are equal that they are taken one after another.
            last = tl.full((), -float("inf"), block.dtype.element_ty)
            taken = -1
            for place in range(count):
                best = tl.full((GROUPS,), float("inf"), block.dtype.element_ty)
                where = tl.full((GROUPS,), n_columns, tl.int32)
                for start in range(0, n_columns, GROUPS):
                    column = start + lane
                    inside = column < n_columns
                    near = tl.load(start_of + column, mask=inside, other=float("inf"))
                    left = (near > last) | ((near == last) & (column > taken))
                    nearer = inside & left & ((near < best) | (where == n_columns))
                    best = tl.where(nearer, near, best)
                    where = tl.where(nearer, column, where)
                last = tl.min(best)
                taken = tl.min(tl.where(best == last, where, n_columns))
                tl.store(out + row * count + place, taken)
