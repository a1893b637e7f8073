"""k-means on a GPU, in kernels of our own: its launches took most of its time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mdec.numerics.loops import kmeans as loops

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
    numbers are sums of two of eleven binary digits; what these cannot tell apart is
    decided in float64.

    A step is two kernels, which take no time for runs whose labels have settled: one
    assigns rows to centres, and takes those that move from one sum to another; one
    moves the centres. Sums are whole numbers, so that their order does not matter.

    Parameters
    ----------
    points : Tensor of shape (n_problems, n_samples, n_features)
        What is clustered.
    centers : Tensor of shape (n_problems, n_starts, n_centers, n_features)
        Where the centres of each run begin.
    counts : Tensor of shape (n_problems,)
        Centres and features of each problem; beyond them stand zeros.
    rounding : Tensor of shape (n_problems,)
        Squared distances that differ by no more are equal.
    """

    def __init__(
        self, points: Tensor, centers: Tensor, counts: Tensor, rounding: Tensor
    ) -> None:
        (n_problems, n_samples, width), device = points.shape, points.device
        n_starts, n_centers = centers.shape[1:3]
        self.points, self.centers = points.contiguous(), centers.contiguous()
        self.counts, self.rounding, self.before = counts, rounding, self.centers
        tall = min(64, max(16, triton.next_power_of_2(n_centers)))
        # Padded, so that kernels need not ask where rows end.
        self.blocks, wide = (tall, min(32, tall)), -(-width // tall) * tall
        self.rows = _in_halves(points, n_samples, wide)
        n_padded = -(-n_centers // tall) * tall
        self.own = _in_halves(self.centers.flatten(0, 1), n_padded, wide)
        self.half = torch.full((self.own.shape[1], n_padded), torch.inf, device=device)
        self.half[:, :n_centers] = 0.5 * self.centers.flatten(0, 1).square().sum(dim=2)
        self.sums = torch.zeros(centers.shape, dtype=torch.int64, device=device)
        self.sizes = torch.zeros(centers.shape[:3], dtype=torch.int32, device=device)
        shape = n_problems, n_starts, n_samples
        self.labels = torch.full(shape, -1, dtype=torch.int32, device=device)
        self.changed = torch.ones_like(self.labels[..., 0])

    def step(self) -> Tensor:
        """Assign points and move centres; tell in which runs labels changed or lack."""
        n_runs, n_padded = self.half.shape
        (n_starts, n_samples), active = self.labels.shape[1:], self.changed
        (n_centers, width), wide = self.centers.shape[2:], self.rows.shape[3]
        flags = torch.zeros((2, *active.shape), dtype=torch.int32, device=active.device)
        self.changed = flags[0]
        arrays: tuple[Any, ...] = self.rows, self.own, self.half, self.counts
        arrays += self.points, self.centers, self.rounding, self.sums, self.sizes
        sizes = n_samples, wide, n_starts, n_padded, width, n_centers
        most = triton.next_power_of_2(n_centers)
        blocks = *self.blocks, most, max(4, 1024 // most)
        grid = n_runs, triton.cdiv(n_samples, 64)
        _assign[grid](*arrays, self.labels, active, flags[0], *sizes, *blocks)
        self.before, self.centers = self.centers, self.centers.clone()
        arrays = self.sums, self.sizes, self.counts, active, self.centers, self.own
        more = *sizes[1:], triton.next_power_of_2(wide)
        grid = n_runs, n_centers
        _move[grid](*arrays, self.half, flags[1], *more, num_warps=1)
        return flags

    def put(self, problem: int, start: int, centers: Tensor) -> None:
        """Give the centres of one run other places, and count its labels again."""
        (n_centers, width), run = centers.shape, problem * self.labels.shape[1] + start
        self.centers[problem, start] = centers
        halves = _in_halves(centers[None], n_centers, width)[:, 0]
        self.own[:, run, :n_centers, :width] = halves
        self.half[run, :n_centers] = 0.5 * centers.square().sum(dim=1)
        labels, rows = self.labels[problem, start], self.points[problem].double()
        whole = (rows * 2.0**40).long()
        self.sums[problem, start] = 0
        self.sums[problem, start].index_add_(0, labels, whole)
        self.sizes[problem, start] = torch.bincount(labels, minlength=n_centers)


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
    # Sums count in these; even ten million rows of length one do not overflow.
    UNIT, ULP, TIE = map(tl.constexpr, (2.0**40, 2.0**-23, loops.TIE))

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
        exact_rows,
        exact_centers,
        rounding,
        sums,
        sizes,
        labels,
        active,
        changed,
        n_samples,
        width,
        n_starts,
        n_padded,
        n_features,
        n_centers,
        CENTERS: tl.constexpr,
        WIDE: tl.constexpr,
        MOST: tl.constexpr,
        PART: tl.constexpr,
    ):
        """Find the nearest centres of some rows of one run, and add up the new ones.

        The score of a centre is half its squared norm less its product with a row: half
        the squared distance, up to a constant of the row. Factors are halves of
        numbers, whose products are exact in float32. What rounding hides is decided by
        differences in float64, and the first of equals is taken, as on the CPU.
        """
        run = tl.program_id(0).to(tl.int64)
        if tl.load(active + run) > 0:
            lane = tl.arange(0, ROWS)
            problem, row = run // n_starts, tl.program_id(1) * ROWS + lane
            count, inside = tl.load(counts + problem), row < n_samples
            n_problems = tl.num_programs(0).to(tl.int64) // n_starts
            small_rows = rows + n_problems * n_samples * width
            small_centers = centers + tl.num_programs(0) * n_padded * width
            # Beyond the last row stand copies of it, which are not written.
            place = problem * n_samples + tl.minimum(row, n_samples - 1)
            here = place[:, None] * width + tl.arange(0, WIDE)[None, :]
            label = tl.zeros((ROWS,), tl.int32)
            least = tl.full((ROWS,), float("inf"), tl.float32)
            second = least
            for first in range(0, count, CENTERS):
                number = first + tl.arange(0, CENTERS)
                center = run * n_padded + number
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
                known = (number < count)[None, :]
                scores = tl.where(known, half[None, :] - scores, float("inf"))
                nearest = tl.min(scores, axis=1)
                found = first + tl.argmin(scores, axis=1)
                others = number[None, :] != found[:, None]
                others = tl.min(tl.where(others, scores, float("inf")), axis=1)
                second = tl.minimum(tl.maximum(least, nearest), second)
                second = tl.minimum(second, others)
                label = tl.where(nearest < least, found, label)
                least = tl.minimum(least, nearest)
            # Three sums of products that are one at most together, each cut off at an
            # ulp, more for the blocks that hardware adds up, and the halves' own.
            error = (4.0 * count + 16.0) * ULP
            close = inside & (second - least <= 2.0 * error)
            number, part = tl.arange(0, MOST), tl.arange(0, PART)
            for _ in range(tl.sum(close.to(tl.int32))):
                chosen = tl.min(tl.where(close, lane, ROWS))
                close = close & (lane != chosen)
                own = problem * n_samples + tl.program_id(1) * ROWS + chosen
                distance = tl.zeros((MOST,), tl.float64)
                for step in range(0, count, PART):
                    real = (step + part < count)[None, :]
                    spot = exact_rows + own * n_features + step + part[None, :]
                    one = tl.load(spot, mask=real, other=0.0)
                    both = real & (number < count)[:, None]
                    spots = (run * n_centers + number)[:, None] * n_features + step
                    spots = exact_centers + spots + part[None, :]
                    other = tl.load(spots, mask=both, other=0.0)
                    difference = one.to(tl.float64) - other.to(tl.float64)
                    distance += tl.sum(difference * difference, axis=1)
                distance = tl.where(number < count, distance, float("inf"))
                limit = tl.min(distance) * (1.0 + TIE) + tl.load(rounding + problem)
                found = tl.min(tl.where(distance <= limit, number, MOST))
                label = tl.where(lane == chosen, found, label)
            labels += run * n_samples
            before = tl.load(labels + row, mask=inside, other=0)
            tl.store(labels + row, label, mask=inside)
            moved = inside & (label != before)
            n_moved = tl.sum(moved.to(tl.int32))
            if n_moved > 0:
                tl.atomic_add(changed + run, n_moved)
                ones, left = lane * 0 + 1, moved & (before >= 0)
                new, old = run * n_centers + label, run * n_centers + before
                tl.atomic_add(sizes + new, ones, mask=moved, sem="relaxed")
                tl.atomic_add(sizes + old, -ones, mask=left, sem="relaxed")
                for step in range(0, count, WIDE):
                    feature = step + tl.arange(0, WIDE)[None, :]
                    come = moved[:, None] & (feature < count)
                    go = left[:, None] & (feature < count)
                    own = exact_rows + place[:, None] * n_features + feature
                    value = tl.load(own, mask=come, other=0.0).to(tl.float64)
                    whole = (value * UNIT).to(tl.int64)
                    into = sums + new[:, None] * n_features + feature
                    tl.atomic_add(into, whole, mask=come, sem="relaxed")
                    out = sums + old[:, None] * n_features + feature
                    tl.atomic_add(out, -whole, mask=go, sem="relaxed")

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
            size = tl.load(sizes + run * n_centers + center)
            if size > 0:
                place = (run * n_centers + center) * n_features + feature
                total = tl.load(sums + place, mask=real, other=0).to(tl.float64) / UNIT
                mean = (total / size.to(tl.float64)).to(tl.float32)
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
