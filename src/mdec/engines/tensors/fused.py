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


def inner_products(left: Tensor, right: Tensor) -> Tensor:
    """Return the products of vectors of blocks, (n_members, order, any), in float64.

    Products of numbers of float32 are exact there, so that whatever the order of their
    sums, these round to the same numbers of float32 as those of the CPU.
    """
    return left.to(torch.float64).mT @ right.to(torch.float64)


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
    _add_products[grid](*both, out, order, width, 4, wide, 4, **AS_WRITTEN)
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
    groups = min(1024, max(slots, triton.next_power_of_2(n_columns) // 4))
    values = block.new_empty((n_rows, slots))
    columns = torch.empty_like(values, dtype=torch.int32)
    out = torch.empty((n_rows, count), dtype=torch.int64, device=block.device)
    arrays = block.contiguous(), values, columns, out
    _smallest[(n_rows,)](*arrays, n_columns, count, groups, slots)
    return out


def choose_centers(
    points: Tensor, uniforms: Tensor, counts: Tensor, rounding: Tensor
) -> Tensor:
    """Return the rows that `mdec.engines.tensors.kmeans.kmeans_plus_plus` chooses.

    Of each problem as many as `counts` tells; what is up to `rounding` is no distance.
    """
    n_problems, n_samples, width = points.shape
    n_starts, most = uniforms.shape[1:]
    nearest = uniforms.new_empty((n_problems, n_starts, n_samples))
    chosen = torch.zeros(uniforms.shape, dtype=torch.int32, device=points.device)
    arrays = (each.contiguous() for each in (points, uniforms, counts, rounding))
    sizes = n_samples, width, n_starts, most
    grid = (n_problems * n_starts,)
    _choose_centers[grid](*arrays, nearest, chosen, *sizes, 256, 16, num_warps=8)
    return chosen


class Lloyd:
    """The state of Lloyd's iteration on many problems, on a GPU.

    As `mdec.engines.tensors.kmeans.Lloyd`, of rows up to length one. On tensor cores
    numbers are sums of two of eleven binary digits, which is as exact as float32.
    """

    def __init__(self, points: Tensor, centers: Tensor, counts: Tensor) -> None:
        self.points, self.counts = points.contiguous(), counts
        self.centers = self.before = centers.contiguous()
        shape = *centers.shape[:2], points.shape[1]
        self.labels = torch.full(shape, -1, dtype=torch.int32, device=points.device)
        self.changed = torch.ones_like(self.labels[..., 0])

    def step(self) -> tuple[Tensor, Tensor]:
        """Assign points and move centres; tell in which runs labels changed or lack."""
        n_problems, n_starts, n_centers, width = self.centers.shape
        n_samples, n_runs = self.points.shape[1], n_problems * n_starts
        sizes = n_samples, width, n_starts, n_centers
        tall = min(64, max(16, triton.next_power_of_2(n_centers)))
        blocks, active = (64, tall, min(32, tall)), self.changed
        half = 0.5 * self.centers.square().sum(dim=3)
        self.changed, empty = torch.zeros_like(active), torch.zeros_like(active)
        arrays = self.points, self.centers, half, self.counts, self.labels
        grid = n_runs, triton.cdiv(n_samples, 64)
        _assign[grid](*arrays, active, self.changed, *sizes, *blocks)
        # Enough sums side by side to keep the GPU busy, and not many more.
        n_parts = max(1, min(triton.cdiv(n_samples, 256), 2048 // n_runs))
        span = 64 * triton.cdiv(n_samples, 64 * n_parts)
        n_parts = triton.cdiv(n_samples, span)
        sums = self.points.new_empty((n_runs, n_parts, n_centers, width))
        held = self.points.new_empty((n_runs, n_parts, n_centers))
        across = triton.cdiv(n_centers, blocks[1]) * triton.cdiv(width, blocks[2])
        seen = self.points, self.labels, self.counts, active, sums, held
        _add_up[(n_runs, n_parts, across)](*seen, *sizes, span, *blocks)
        self.before, self.centers = self.centers, self.centers.clone()
        moved = sums, held, self.counts, active, self.centers, empty
        wide = triton.next_power_of_2(width)
        _move[(n_runs, n_centers)](*moved, n_parts, *sizes[1:], wide, num_warps=1)
        return self.changed, empty


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
        order,
        width,
        ROWS: tl.constexpr,
        WIDE: tl.constexpr,
        TERMS: tl.constexpr,
    ):
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

    @triton.jit
    def _smallest(
        block,
        values,
        columns,
        out,
        n_columns,
        count,
        GROUPS: tl.constexpr,
        SLOTS: tl.constexpr,
    ):
        row = tl.program_id(0).to(tl.int64)
        lane, slot = tl.arange(0, GROUPS), tl.arange(0, SLOTS)
        start_of = block + row * n_columns
        least = tl.full((GROUPS,), float("inf"), block.dtype.element_ty)
        for start in range(0, n_columns, GROUPS):
            column = start + lane
            near = tl.load(
                start_of + column, mask=column < n_columns, other=float("inf")
            )
            least = tl.minimum(least, near)
        # The groups with the smallest minima hold the smallest entries.
        first = tl.sort(least)
        limit = tl.max(tl.where(lane < count, first, -float("inf")))
        n_found = tl.sum((lane < 0).to(tl.int32))
        for start in range(0, n_columns, GROUPS):
            column = start + lane
            inside = column < n_columns
            near = tl.load(start_of + column, mask=inside, other=float("inf"))
            hit = (near <= limit) & inside
            place = n_found + tl.cumsum(hit.to(tl.int32)) - 1
            shown = hit & (place < SLOTS)
            tl.store(values + row * SLOTS + place, near, mask=shown)
            tl.store(columns + row * SLOTS + place, column, mask=shown)
            n_found += tl.sum(hit.to(tl.int32))
        tl.debug_barrier()
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

    @triton.jit
    def _choose_centers(
        points,
        uniforms,
        counts,
        rounding,
        nearest,
        chosen,
        n_samples,
        width,
        n_starts,
        most,
        ROWS: tl.constexpr,
        STEP: tl.constexpr,
    ):
        run = tl.program_id(0).to(tl.int64)
        problem = run // n_starts
        own, n_centers = points + problem * n_samples * width, tl.load(counts + problem)
        least = tl.load(rounding + problem)
        first = (tl.load(uniforms + run * most) * n_samples).to(tl.int32)
        last = tl.minimum(first, n_samples - 1)
        tl.store(chosen + run * most, last)
        for c in range(1, n_centers):
            total = tl.load(uniforms + run * most) * 0.0
            for start in range(0, n_samples, ROWS):
                row = start + tl.arange(0, ROWS)
                inside = row < n_samples
                distance = tl.zeros((ROWS,), tl.float64)
                for step in range(0, n_centers, STEP):
                    feature = step + tl.arange(0, STEP)
                    real = (feature < n_centers)[None, :]
                    place = own + row[:, None] * width + feature[None, :]
                    here = tl.load(place, mask=inside[:, None] & real, other=0.0)
                    place = own + last * width + feature[None, :]
                    there = tl.load(place, mask=real, other=0.0)
                    difference = here.to(tl.float64) - there.to(tl.float64)
                    distance += tl.sum(difference * difference, axis=1)
                distance = tl.where(distance > least, distance, 0.0)
                place = nearest + run * n_samples + row
                known = tl.load(place, mask=inside & (c > 1), other=float("inf"))
                distance = tl.minimum(known, distance)
                tl.store(place, distance, mask=inside)
                total += tl.sum(tl.where(inside, distance, 0.0))
            tl.debug_barrier()
            target = tl.load(uniforms + run * most + c) * total
            running, found = total * 0.0, n_samples
            for start in range(0, n_samples, ROWS):
                row = start + tl.arange(0, ROWS)
                place = nearest + run * n_samples + row
                distance = tl.load(place, mask=row < n_samples, other=0.0)
                beyond = running + tl.cumsum(distance) > target
                found = tl.minimum(found, tl.min(tl.where(beyond, row, n_samples)))
                running += tl.sum(distance)
            last = tl.minimum(found, n_samples - 1)
            tl.store(chosen + run * most + c, last)
            tl.debug_barrier()

    @triton.jit
    def _in_halves(numbers):
        first = numbers.to(tl.float16)
        return first, (numbers - first.to(tl.float32)).to(tl.float16)

    @triton.jit
    def _assign(
        points,
        centers,
        half_norms,
        counts,
        labels,
        active,
        changed,
        n_samples,
        width,
        n_starts,
        n_centers,
        ROWS: tl.constexpr,
        CENTERS: tl.constexpr,
        WIDE: tl.constexpr,
    ):
        run = tl.program_id(0).to(tl.int64)
        if tl.load(active + run) > 0:
            problem, row = run // n_starts, tl.program_id(1) * ROWS + tl.arange(0, ROWS)
            count, inside = tl.load(counts + problem), row < n_samples
            rows = points + (problem * n_samples + row)[:, None] * width
            label = tl.zeros((ROWS,), tl.int32)
            least = tl.full((ROWS,), float("inf"), tl.float32)
            for first in range(0, count, CENTERS):
                center = first + tl.arange(0, CENTERS)
                known = center < count
                place = run * n_centers + center
                half = tl.load(half_norms + place, mask=known, other=float("inf"))
                products = tl.zeros((ROWS, CENTERS), tl.float32)
                for step in range(0, count, WIDE):
                    feature = step + tl.arange(0, WIDE)
                    real = feature < count
                    here = tl.load(
                        rows + feature[None, :],
                        mask=inside[:, None] & real[None, :],
                        other=0.0,
                    )
                    own = tl.load(
                        centers + place[None, :] * width + feature[:, None],
                        mask=known[None, :] & real[:, None],
                        other=0.0,
                    )
                    here_1, here_2 = _in_halves(here)
                    own_1, own_2 = _in_halves(own)
                    # The product of both smaller halves is less than rounding.
                    products = tl.dot(here_2, own_1, products)
                    products = tl.dot(here_1, own_2, products)
                    products = tl.dot(here_1, own_1, products)
                scores = half[None, :] - products
                nearest = tl.min(scores, axis=1)
                label = tl.where(
                    nearest < least, first + tl.argmin(scores, axis=1), label
                )
                least = tl.minimum(least, nearest)
            place = labels + run * n_samples + row
            before = tl.load(place, mask=inside, other=0)
            tl.store(place, label, mask=inside)
            n_changed = tl.sum(((label != before) & inside).to(tl.int32))
            tl.atomic_add(changed + run, n_changed)

    @triton.jit
    def _add_up(
        points,
        labels,
        counts,
        active,
        sums,
        sizes,
        n_samples,
        width,
        n_starts,
        n_centers,
        span,
        ROWS: tl.constexpr,
        CENTERS: tl.constexpr,
        WIDE: tl.constexpr,
    ):
        run, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
        problem, n_across = run // n_starts, tl.cdiv(n_centers, CENTERS)
        count = tl.load(counts + problem)
        center = tl.program_id(2) % n_across * CENTERS + tl.arange(0, CENTERS)
        feature = tl.program_id(2) // n_across * WIDE + tl.arange(0, WIDE)
        if (tl.load(active + run) > 0) & (tl.min(center) < count):
            real = (feature < count)[None, :]
            total = tl.zeros((CENTERS, WIDE), tl.float32)
            size = tl.zeros((CENTERS,), tl.float32)
            first = part * span
            for start in range(first, tl.minimum(first + span, n_samples), ROWS):
                row = start + tl.arange(0, ROWS)
                inside = row < n_samples
                here = (problem * n_samples + row)[:, None] * width + feature[None, :]
                here = tl.load(points + here, mask=inside[:, None] & real, other=0.0)
                label = tl.load(labels + run * n_samples + row, mask=inside, other=-1)
                within = center[:, None] == label[None, :]
                size += tl.sum(within.to(tl.float32), axis=1)
                ones = within.to(tl.float16)
                here_1, here_2 = _in_halves(here)
                total = tl.dot(ones, here_2, total)
                total = tl.dot(ones, here_1, total)
            known = center < n_centers
            out = (run * tl.num_programs(1) + part) * n_centers + center
            tl.store(sizes + out, size, mask=known & (tl.min(feature) == 0))
            out = out[:, None] * width + feature[None, :]
            tl.store(sums + out, total, mask=known[:, None] & real)

    @triton.jit
    def _move(
        sums,
        sizes,
        counts,
        active,
        centers,
        empty,
        n_parts,
        width,
        n_starts,
        n_centers,
        WIDE: tl.constexpr,
    ):
        run, center = tl.program_id(0).to(tl.int64), tl.program_id(1)
        count = tl.load(counts + run // n_starts)
        if (tl.load(active + run) > 0) & (center < count):
            feature = tl.arange(0, WIDE)
            real = feature < count
            total, size = tl.zeros((WIDE,), tl.float64), 0.0
            for part in range(n_parts):
                place = (run * n_parts + part) * n_centers + center
                size += tl.load(sizes + place)
                place = sums + place * width + feature
                total += tl.load(place, mask=real, other=0.0).to(tl.float64)
            place = run * n_centers + center
            if size > 0.0:
                mean = (total / size).to(tl.float32)
                tl.store(centers + place * width + feature, mean, mask=real)
            else:
                tl.atomic_add(empty + run, 1)
