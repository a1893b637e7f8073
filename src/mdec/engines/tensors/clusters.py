"""k-means on a GPU, in kernels of our own: its launches took most of its time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None


def choose_centers(
    points: Tensor, uniforms: Tensor, counts: Tensor, rounding: Tensor
) -> Tensor:
    """Return the rows that `mdec.engines.tensors.kmeans.kmeans_plus_plus` chooses.

    Parameters
    ----------
    points : Tensor of shape (n_problems, n_samples, n_features)
        Rows to choose from.
    uniforms : Tensor of shape (n_problems, n_starts, n_centers)
        A number in [0, 1) for each centre, in float64.
    counts : Tensor of shape (n_problems,)
        Centres and features of each problem.
    rounding : Tensor of shape (n_problems,)
        What is up to this is no squared distance.

    Returns
    -------
    Tensor of shape (n_problems, n_starts, n_centers)
        Places of the chosen rows, zeros beyond the count.
    """
    n_problems, n_samples, width = points.shape
    n_starts, most = uniforms.shape[1:]
    nearest = uniforms.new_empty((n_problems, n_starts, n_samples))
    chosen = torch.zeros(uniforms.shape, dtype=torch.int32, device=points.device)
    arrays = (each.contiguous() for each in (points, uniforms, counts, rounding))
    sizes = n_samples, width, n_starts, most
    grid = (n_problems * n_starts,)
    _choose_centers[grid](*arrays, nearest, chosen, *sizes, num_warps=8)
    return chosen


class Lloyd:
    """The state of Lloyd's iteration on many problems, on a GPU.

    As `mdec.engines.tensors.kmeans.Lloyd`, of rows up to length one. On tensor cores
    numbers are sums of two of eleven binary digits, which is as exact as float32.

    A step is three kernels, which take no time for runs whose labels have settled: one
    assigns rows to centres, one adds rows up in parts, and one adds up the parts and
    moves the centres. All sums have one order.

    Parameters
    ----------
    points : Tensor of shape (n_problems, n_samples, n_features)
        What is clustered.
    centers : Tensor of shape (n_problems, n_starts, n_centers, n_features)
        Where the centres of each run begin.
    counts : Tensor of shape (n_problems,)
        Centres and features of each problem; beyond them stand zeros.
    """

    def __init__(self, points: Tensor, centers: Tensor, counts: Tensor) -> None:
        (n_problems, n_samples, width), device = points.shape, points.device
        n_starts, n_centers = centers.shape[1:3]
        self.points, self.counts, self.centers = points, counts, centers.contiguous()
        self.before = self.centers
        tall = min(64, max(16, triton.next_power_of_2(n_centers)))
        # Padded, so that kernels need not ask where rows end.
        self.blocks, wide = (tall, min(32, tall)), -(-width // tall) * tall
        self.rows = _in_halves(points, n_samples, wide)
        n_padded = -(-n_centers // tall) * tall
        self.own = _in_halves(self.centers.flatten(0, 1), n_padded, wide)
        self.half = torch.full((self.own.shape[1], n_padded), torch.inf, device=device)
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
        arrays: tuple[Any, ...] = self.rows, self.own, self.half, self.counts
        grid: tuple[int, ...] = n_runs, triton.cdiv(n_samples, 64)
        _assign[grid](*arrays, self.labels, active, flags[0], *sizes, tall, step)
        arrays = self.rows, self.labels, self.counts, active, self.sums, self.sizes
        grid = n_runs, n_parts, n_padded * wide // tall**2
        _add_up[grid](*arrays, *sizes, self.span, tall, num_stages=2)
        self.before, self.centers = self.centers, self.centers.clone()
        arrays = self.sums, self.sizes, self.counts, active, self.centers, self.own
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
        halves = _in_halves(centers[None], n_centers, width)[:, 0]
        self.own[:, run, :n_centers, :width] = halves
        self.half[run, :n_centers] = 0.5 * centers.square().sum(dim=1)


def _in_halves(rows: Tensor, height: int, width: int) -> Tensor:
    """Return two numbers of eleven digits that add up to each, zeros beyond.

    Of rows, (n_blocks, n_rows, n_features), the result is (2, n_blocks, height, width).
    """
    more = 0, width - rows.shape[2], 0, height - rows.shape[1]
    padded = torch.nn.functional.pad(rows, more)
    first = padded.half()
    return torch.stack([first, (padded - first).half()])


if triton is not None:
    # Triton reads annotations, so that there are none but its own.
    LISTED, FEATURES, ROWS = map(tl.constexpr, (256, 16, 64))

    @triton.jit
    def _choose_centers(
        points,
        uniforms,
        counts,
        blur,
        nearest,
        chosen,
        n_samples,
        width,
        n_starts,
        most,
    ):
        """Choose the centres of one start, one after another.

        Of each row the squared distance to the nearest centre so far is kept, from
        differences in float64. The next centre is the first row at which these, added
        up, exceed a share of the whole that the uniform number tells.
        """
        run = tl.program_id(0).to(tl.int64)
        problem = run // n_starts
        own, n_centers = points + problem * n_samples * width, tl.load(counts + problem)
        least = tl.load(blur + problem)
        first = (tl.load(uniforms + run * most) * n_samples).to(tl.int32)
        last = tl.minimum(first, n_samples - 1)
        tl.store(chosen + run * most, last)
        for c in range(1, n_centers):
            total = tl.load(uniforms + run * most) * 0.0
            for start in range(0, n_samples, LISTED):
                row = start + tl.arange(0, LISTED)
                inside = row < n_samples
                distance = tl.zeros((LISTED,), tl.float64)
                for step in range(0, n_centers, FEATURES):
                    feature = step + tl.arange(0, FEATURES)
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
            for start in range(0, n_samples, LISTED):
                row = start + tl.arange(0, LISTED)
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
        CENTERS: tl.constexpr,
        WIDE: tl.constexpr,
    ):
        """Find the nearest centres of some rows of one run, and count the new ones.

        The score of a centre is half its squared norm less its product with a row: half
        the squared distance, up to a constant of the row. Factors are halves of
        numbers, whose products are exact in float32.
        """
        run = tl.program_id(0).to(tl.int64)
        if tl.load(active + run) > 0:
            problem, row = run // n_starts, tl.program_id(1) * ROWS + tl.arange(0, ROWS)
            count, inside = tl.load(counts + problem), row < n_samples
            n_problems = tl.num_programs(0).to(tl.int64) // n_starts
            small_rows = rows + n_problems * n_samples * width
            small_centers = centers + tl.num_programs(0) * n_centers * width
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
        TALL: tl.constexpr,
    ):
        """Add up some features of the rows of some clusters, among a part of the rows.

        By products with memberships, which are ones, so that only sums round.
        """
        run, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
        problem, n_across = run // n_starts, width // TALL
        center = tl.program_id(2) // n_across * TALL + tl.arange(0, TALL)
        feature = tl.program_id(2) % n_across * TALL + tl.arange(0, TALL)
        count = tl.load(counts + problem)
        wanted = (tl.min(center) < count) & (tl.min(feature) < count)
        if (tl.load(active + run) > 0) & wanted:
            total = tl.zeros((TALL, TALL), tl.float32)
            size = tl.zeros((TALL,), tl.float32)
            n_problems = tl.num_programs(0).to(tl.int64) // n_starts
            small_rows = rows + n_problems * n_samples * width
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
        """Bring one centre to the mean of its rows, or note that it has none."""
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
                place += tl.num_programs(0) * n_padded * width
                tl.store(own + place, rest.to(tl.float16), mask=real)
            else:
                tl.atomic_add(empty + run, 1)
