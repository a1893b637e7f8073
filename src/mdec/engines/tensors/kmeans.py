"""k-means of many members at once: starts, Lloyd's iteration, means of groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from mdec.engines.tensors import clusters, fused
from mdec.ensemble.plan import Member, Plan
from mdec.numerics.kmeans import MAX_ITER, N_INIT
from mdec.numerics.loops.kmeans import TIE

# Up to this many rows one processor of a GPU chooses all centres of a start.
FEW_ROWS = 4096


def best_labels(embeddings: Tensor, plan: Plan, members: Sequence[Member]) -> Tensor:
    """Return the labels of the best k-means run of each embedding, Eq. 13."""
    counts = [member.n_clusters for member in members]
    uniforms = np.zeros((len(members), N_INIT, max(counts)))
    for place, (member, count) in enumerate(zip(members, counts, strict=True)):
        rng = plan.stream(member, "kmeans")
        uniforms[place, :, :count] = rng.random((N_INIT, count))
    draws = torch.from_numpy(uniforms).to(embeddings.device)
    centers = kmeans_plus_plus(embeddings, draws, counts)
    labels, inertia = lloyd(embeddings, centers, counts, MAX_ITER)
    rounding = _rounding(embeddings, torch.tensor(counts, device=inertia.device))
    best, least = torch.zeros_like(inertia[:, 0], dtype=torch.int64), inertia[:, 0]
    for start in range(1, N_INIT):
        limit = (1.0 - TIE) * least - embeddings.shape[1] * rounding
        better = inertia[:, start] < limit
        best = torch.where(better, start, best)
        least = torch.where(better, inertia[:, start], least)
    return labels[torch.arange(len(members), device=best.device), best]


def kmeans_plus_plus(points: Tensor, uniforms: Tensor, counts: Sequence[int]) -> Tensor:
    """Choose starting centres, each with chance proportional to its squared distance.

    The points are (n_problems, n_samples, n_features). `uniforms`, in float64, has one
    number in [0, 1) for each centre, (n_problems, n_starts, n_centers), of which each
    problem uses the first of its `counts`; the result has these axes and the features.
    """
    n_samples, (n_starts, n_centers) = points.shape[1], uniforms.shape[1:]
    problem = torch.arange(len(points), device=points.device)[:, None]
    numbers = torch.tensor(counts, dtype=torch.int32, device=points.device)
    rounding = _rounding(points, numbers)
    if fused.has_kernels(points) and n_samples <= FEW_ROWS:
        chosen = clusters.choose_centers(points, uniforms, numbers, rounding)
        return points[problem[..., None], chosen.long()]
    wide = points.to(torch.float64)
    norms = wide.square().sum(dim=2)[:, None]
    last = (uniforms[..., 0] * n_samples).long().clamp(max=n_samples - 1)
    shape = len(points), n_starts, n_samples
    nearest, picked = torch.full(shape, torch.inf).to(norms), [last]
    for c in range(1, n_centers):
        products = wide[problem, last] @ wide.mT
        distance = norms + norms[:, 0].gather(1, last)[..., None] - 2.0 * products
        # Copies of a centre have no chance at all.
        distance.masked_fill_(distance <= rounding[:, None, None], 0.0)
        nearest = torch.minimum(nearest, distance)
        running = nearest.cumsum(dim=2)
        target = uniforms[..., c, None] * running[..., -1:]
        last = torch.searchsorted(running, target, right=True)[..., 0]
        last = last.clamp(max=n_samples - 1)
        picked.append(last)
    return points[problem[..., None], torch.stack(picked, dim=2)]


def _rounding(points: Tensor, counts: Tensor) -> Tensor:
    """Return the `mdec.numerics.loops.kmeans.rounding_square` of each problem."""
    largest = points.abs().amax(dim=(1, 2)).double()
    return counts * (4.0 * torch.finfo(points.dtype).eps * largest) ** 2


class Lloyd:
    """The state of Lloyd's iteration on many problems.

    Points and centres are those of `kmeans_plus_plus`; each problem uses the first of
    its `counts` of centres. `before` are the centres to which the labels, (n_problems,
    n_starts, n_samples), are nearest; the first of equals, and squared distances within
    a billionth of each other or within `rounding` of the problem are equal.
    """

    def __init__(
        self, points: Tensor, centers: Tensor, counts: Tensor, rounding: Tensor
    ) -> None:
        self.points, self.centers, self.before = points, centers, centers
        self.rounding = rounding
        shape = *centers.shape[:2], points.shape[1]
        self.labels = torch.full(shape, -1, dtype=torch.int32, device=points.device)
        place = torch.arange(centers.shape[2], device=points.device)
        self.used = (place < counts[:, None])[:, None]

    def step(self) -> Tensor:
        """Assign points and move centres; tell in which runs labels changed or lack."""
        points, (n_problems, n_starts, n_centers, _) = self.points, self.centers.shape
        exact, wide = self.centers.to(torch.float64), points.to(torch.float64)
        norms = torch.where(self.used, exact.square().sum(dim=3), torch.inf)
        norms, flat = norms.flatten(1)[:, None], exact.flatten(1, 2)
        norms = norms + wide.square().sum(dim=2, keepdim=True)
        distance = torch.baddbmm(norms, wide, flat.mT, alpha=-2.0)
        distance = distance.view(*distance.shape[:2], n_starts, n_centers)
        least = distance.amin(dim=3, keepdim=True)
        equal = distance <= least * (1.0 + TIE) + self.rounding[:, None, None, None]
        labels = equal.byte().argmax(dim=3).mT.int().contiguous()
        changed = (labels != self.labels).any(dim=2)
        run = torch.arange(n_problems * n_starts, device=points.device)
        groups = (labels.flatten(0, 1) + n_centers * run[:, None]).flatten()
        rows = points.repeat_interleave(n_starts, dim=0).flatten(0, 1)
        means = group_means(rows, groups, self.centers.flatten(0, 2))
        sizes = torch.bincount(groups, minlength=len(means))
        empty = self.used & (sizes.view(n_problems, n_starts, n_centers) == 0)
        self.labels, self.before = labels, self.centers
        self.centers = means.view_as(self.centers)
        return torch.stack([changed, empty.any(dim=2)])

    def put(self, problem: int, start: int, centers: Tensor) -> None:
        """Give the centres of one run other places."""
        self.centers[problem, start] = centers


def lloyd(
    points: Tensor, centers: Tensor, counts: Sequence[int], max_iter: int
) -> tuple[Tensor, Tensor]:
    """Run Lloyd's iteration to its fixed point.

    Points and centres are those of `kmeans_plus_plus`. Returns the nearest centres,
    (n_problems, n_starts, n_samples), and the sums of squared distances to them,
    (n_problems, n_starts). An empty cluster restarts at the sample farthest from its
    centre.
    """
    numbers = torch.tensor(counts, dtype=torch.int32, device=points.device)
    runs = (clusters.Lloyd if fused.has_kernels(points) else Lloyd)(
        points, centers, numbers, _rounding(points, numbers)
    )
    for _ in range(max_iter):
        changed, empty = runs.step().tolist()
        if not any(map(any, changed)):
            break
        for problem, count in enumerate(counts):
            for start in range(centers.shape[1]):
                if changed[problem][start] and empty[problem][start]:
                    _restart_empty(runs, problem, start, count)
    return runs.labels, _inertia(points, runs.before, runs.labels)


def _restart_empty(
    runs: Lloyd | clusters.Lloyd, problem: int, start: int, n: int
) -> None:
    """Give each empty cluster of a run the sample farthest from its centre."""
    points, labels = runs.points[problem], runs.labels[problem, start]
    # Copies of a point are this far from their mean by rounding alone.
    rounding, before = float(runs.rounding[problem]), runs.before[problem, start]
    sizes = torch.bincount(labels, minlength=n)
    for cluster in (sizes == 0).nonzero()[:, 0].tolist():
        difference = points.to(torch.float64) - before[labels.long()]
        distance = difference.square().sum(dim=1)
        distance[sizes[labels.long()] <= 1] = 0.0
        farthest = (distance >= (1.0 - TIE) * distance.max()).byte().argmax()
        if float(distance[farthest]) > rounding:
            sizes[labels[farthest].long()] -= 1
            sizes[cluster] = 1
            labels[farthest] = cluster
    runs.put(problem, start, group_means(points, labels.long(), before))


def _inertia(points: Tensor, centers: Tensor, labels: Tensor) -> Tensor:
    """Return the sum of squared distances of each start."""
    totals = []
    for start in range(centers.shape[1]):
        place = labels[:, start, :, None].long().expand_as(points)
        difference = points - centers[:, start].gather(1, place)
        totals.append(difference.square_().sum(dim=(1, 2), dtype=torch.float64))
    return torch.stack(totals, dim=1)


def order_by_group(labels: Tensor, n_groups: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return an order of rows by groups, where each group starts, and its size."""
    ordered, order = labels.sort(stable=True)
    groups = torch.arange(n_groups + 1, device=labels.device, dtype=labels.dtype)
    ends = torch.searchsorted(ordered, groups)
    return order, ends[:-1], ends.diff()


def group_means(rows: Tensor, labels: Tensor, points: Tensor) -> Tensor:
    """Return the mean of the rows of each group; a group without rows keeps its point.

    Sums are made in the order of the rows, every time.
    """
    order, starts, counts = order_by_group(labels, len(points))
    sums = embedding_bag(order, rows.to(torch.float64), starts, mode="sum")
    means = (sums / counts.clamp(min=1)[:, None]).to(points.dtype)
    return torch.where(counts[:, None] > 0, means, points)
