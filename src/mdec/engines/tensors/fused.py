"""Kernels of our own, for what takes PyTorch several passes over the memory of a GPU.

Triton, which comes with PyTorch for NVIDIA GPUs, compiles them on first use. Elsewhere
functions of PyTorch do the same, up to rounding.
"""

from __future__ import annotations

import warnings
from functools import cache
from subprocess import CalledProcessError
from typing import Any

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
    values = block.new_empty((n_rows, slots))
    columns = torch.empty_like(values, dtype=torch.int32)
    n_found = torch.zeros_like(columns[:, 0])
    out = torch.empty((n_rows, count), dtype=torch.int64, device=block.device)
    arrays = block.contiguous(), values, columns, n_found, out
    _smallest[(n_rows,)](*arrays, n_columns, count, max(512, slots), 4, slots)
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
        (n_problems, n_samples, width), device = points.shape, points.device
        n_starts, n_centers = centers.shape[1:3]
        self.points, self.counts, self.centers = points, counts, centers.contiguous()
        self.before = self.centers
        tall = min(64, max(16, triton.next_power_of_2(n_centers)))
        # Padded, so that kernels need not ask where rows end.
        self.blocks, wide = (tall, min(32, tall)), -(-width // tall) * tall
        self.rows = _in_halves_of(points, n_samples, wide)
        n_padded = -(-n_centers // tall) * tall
        self.own = _in_halves_of(self.centers.flatten(0, 1), n_padded, wide)
        self.half = torch.full((len(self.own[0]), n_padded), torch.inf, device=device)
        self.half[:, :n_centers] = 0.5 * self.centers.flatten(0, 1).square().sum(dim=2)
        n_runs, across = len(self.half), n_padded * wide // tall**2
        n_parts = max(1, min(n_samples // 256, 4096 // (n_runs * across)))
        self.span = 64 * triton.cdiv(n_samples, 64 * n_parts)
        n_parts = triton.cdiv(n_samples, self.span)
        self.sums = points.new_empty((n_runs, n_parts, n_padded, wide))
        self.sizes = points.new_empty(self.sums.shape[:3])
        shape = n_problems, n_starts, n_samples
        self.labels = torch.full(shape, -1, dtype=torch.int32, device=device)
        self.changed = torch.ones_like(self.labels[..., 0])

    def step(self) -> Tensor:
        """Assign points and move centres; tell in which runs labels changed or lack."""
        n_runs, n_parts, n_padded, wide = self.sums.shape
        (n_starts, n_samples), active = self.labels.shape[1:], self.changed
        flags = torch.zeros((2, *active.shape), dtype=torch.int32, device=active.device)
        self.changed, (tall, step) = flags[0], self.blocks
        sizes = n_samples, wide, n_starts, n_padded
        arrays: tuple[Any, ...] = *self.rows, *self.own, self.half, self.counts
        grid: tuple[int, ...] = n_runs, triton.cdiv(n_samples, 64)
        arrays = *arrays, self.labels, active, flags[0]
        _assign[grid](*arrays, *sizes, 64, tall, step)
        arrays = *self.rows, self.labels, self.counts, active, self.sums, self.sizes
        grid = n_runs, n_parts, n_padded * wide // tall**2
        _add_up[grid](*arrays, *sizes, self.span, 64, tall, num_stages=2)
        self.before, self.centers = self.centers, self.centers.clone()
        arrays = self.sums, self.sizes, self.counts, active, self.centers, *self.own
        n_centers, width = self.centers.shape[2:]
        sizes = n_parts, wide, n_starts, n_padded
        more = width, n_centers, triton.next_power_of_2(wide)
        grid = n_runs, n_centers
        _move[grid](*arrays, self.half, flags[1], *sizes, *more, num_warps=1)
        return flags

    def put(self, problem: int, start: int, centers: Tensor) -> None:
        """Give the centres of one run other places."""
        (n_centers, width), run = centers.shape, problem * self.labels.shape[1] + start
        self.centers[problem, start] = centers
        halves = _in_halves_of(centers[None], n_centers, width)
        for own, half in zip(self.own, halves, strict=True):
            own[run, :n_centers, :width] = half[0]
        self.half[run, :n_centers] = 0.5 * centers.square().sum(dim=1)


def _in_halves_of(rows: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Return two numbers of eleven digits that add up to each, zeros beyond."""
    more = 0, width - rows.shape[2], 0, height - rows.shape[1]
    padded = torch.nn.functional.pad(rows, more)
    first = padded.half()
    return first, (padded - first).half()


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
        counters,
        out,
        n_columns,
        count,
        GROUPS: tl.constexpr,
        TALL: tl.constexpr,
        SLOTS: tl.constexpr,
    ):
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
    def _assign(
        rows,
        small_rows,
        centers,
        small_centers,
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
            # Beyond the last row stand copies of it, which are not written.
            place = problem * n_samples + tl.minimum(row, n_samples - 1)
            here = place[:, None] * width + tl.arange(0, WIDE)[None, :]
            label = tl.zeros((ROWS,), tl.int32)
            least = tl.full((ROWS,), float("inf"), tl.float32)
            for first in range(0, count, CENTERS):
                center = run * n_centers + first + tl.arange(0, CENTERS)
                half = tl.load(half_norms + center)
                there = center[None, :] * width + tl.arange(0, WIDE)[:, None]
                scores = tl.zeros((ROWS, CENTERS), tl.float32)
                for step in range(0, count, WIDE):
                    one = tl.load(rows + here + step)
                    other = tl.load(centers + there + step)
                    # The product of both smaller halves is less than rounding.
                    scores = tl.dot(tl.load(small_rows + here + step), other, scores)
                    scores = tl.dot(one, tl.load(small_centers + there + step), scores)
                    scores = tl.dot(one, other, scores)
                known = (first + tl.arange(0, CENTERS) < count)[None, :]
                scores = tl.where(known, half[None, :] - scores, float("inf"))
                nearest = tl.min(scores, axis=1)
                found = first + tl.argmin(scores, axis=1)
                label = tl.where(nearest < least, found, label)
                least = tl.minimum(least, nearest)
            spot = labels + run * n_samples + row
            before = tl.load(spot, mask=inside, other=0)
            tl.store(spot, label, mask=inside)
            n_changed = tl.sum(((label != before) & inside).to(tl.int32))
            tl.atomic_add(changed + run, n_changed)

    @triton.jit
    def _add_up(
        rows,
        small_rows,
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
        TALL: tl.constexpr,
    ):
        run, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
        problem, n_across = run // n_starts, width // TALL
        center = tl.program_id(2) // n_across * TALL + tl.arange(0, TALL)
        feature = tl.program_id(2) % n_across * TALL + tl.arange(0, TALL)
        count = tl.load(counts + problem)
        wanted = (tl.min(center) < count) & (tl.min(feature) < count)
        if (tl.load(active + run) > 0) & wanted:
            total = tl.zeros((TALL, TALL), tl.float32)
            size = tl.zeros((TALL,), tl.float32)
            first = part * span
            for start in range(first, tl.minimum(first + span, n_samples), ROWS):
                row = start + tl.arange(0, ROWS)
                inside = row < n_samples
                place = problem * n_samples + tl.minimum(row, n_samples - 1)
                here = place[:, None] * width + feature[None, :]
                label = tl.load(labels + run * n_samples + row, mask=inside, other=-1)
                within = center[:, None] == label[None, :]
                size += tl.sum(within.to(tl.float32), axis=1)
                ones = within.to(tl.float16)
                total = tl.dot(ones, tl.load(small_rows + here), total)
                total = tl.dot(ones, tl.load(rows + here), total)
            out = (run * tl.num_programs(1) + part) * n_centers + center
            # All of these write the same.
            tl.store(sizes + out, size)
            tl.store(sums + out[:, None] * width + feature[None, :], total)

    @triton.jit
    def _move(
        sums,
        sizes,
        counts,
        active,
        centers,
        own,
        small_own,
        half_norms,
        empty,
        n_parts,
        width,
        n_starts,
        n_padded,
        n_features,
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
                place = (run * n_parts + part) * n_padded + center
                size += tl.load(sizes + place)
                place = sums + place * width + feature
                total += tl.load(place, mask=real, other=0.0).to(tl.float64)
            if size > 0.0:
                mean = (total / size).to(tl.float32)
                place = (run * n_centers + center) * n_features + feature
                tl.store(centers + place, mean, mask=real)
                place = run * n_padded + center
                tl.store(half_norms + place, 0.5 * tl.sum(mean * mean))
                place = place * width + feature
                tl.store(own + place, mean.to(tl.float16), mask=real)
                rest = mean - mean.to(tl.float16).to(tl.float32)
                tl.store(small_own + place, rest.to(tl.float16), mask=real)
            else:
                tl.atomic_add(empty + run, 1)
