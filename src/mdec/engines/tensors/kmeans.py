"""k-means of many embeddings at once, several starts of each."""

from __future__ import annotations

import torch
from torch import Tensor


def kmeans_plus_plus(points: Tensor, uniforms: Tensor) -> Tensor:
    """Choose starting centres, each with chance proportional to its squared distance.

    The points are (n_problems, n_samples, n_features). `uniforms`, in float64, has one
    number in [0, 1) for each centre, (n_problems, n_starts, n_centers); the result has
    these axes and the features.
    """
    n_problems, n_samples, _ = points.shape
    n_starts, n_centers = uniforms.shape[1:]
    wide = points.to(torch.float64)
    norms = wide.square().sum(dim=2)[:, None]
    problem = torch.arange(n_problems, device=points.device)[:, None]
    chosen = (uniforms[..., 0] * n_samples).long().clamp(max=n_samples - 1)
    nearest = torch.full((n_problems, n_starts, n_samples), torch.inf).to(norms)
    picked = [chosen]
    for c in range(1, n_centers):
        center = wide[problem, chosen]
        products = center @ wide.mT
        distance = norms + norms[:, 0].gather(1, chosen)[..., None] - 2.0 * products
        nearest = torch.minimum(nearest, distance.clamp_(min=0.0))
        # A point is at no distance from itself, whatever rounding says.
        nearest.scatter_(2, chosen[..., None], 0.0)
        running = nearest.cumsum(dim=2)
        target = uniforms[..., c, None] * running[..., -1:]
        chosen = torch.searchsorted(running, target, right=True)[..., 0]
        chosen = chosen.clamp(max=n_samples - 1)
        picked.append(chosen)
    return points[problem[..., None], torch.stack(picked, dim=2)]


def lloyd(
    points: Tensor, centers: Tensor, counts: list[int], max_iter: int
) -> tuple[Tensor, Tensor]:
    """Run Lloyd's iteration to its fixed point.

    Points and centres are those of `kmeans_plus_plus`; each problem uses the first
    `counts` centres. Returns the nearest centres, (n_problems, n_starts, n_samples),
    and the sums of squared distances to them, (n_problems, n_starts).

    An empty cluster restarts at the sample farthest from its centre. A problem leaves
    the batch when all its starts have settled.
    """
    n_problems, n_starts, n_centers, _ = centers.shape
    n_samples = points.shape[1]
    labels = torch.full((n_problems, n_starts, n_samples), -1, device=points.device)
    inertia = torch.zeros((n_problems, n_starts), dtype=torch.float64).to(points.device)
    place = torch.arange(n_centers, device=points.device)
    used = place < torch.tensor(counts, device=points.device)[:, None]
    state = points, centers, used[:, None].expand(-1, n_starts, -1)
    left = list(range(n_problems))
    current = labels
    for iteration in range(1, max_iter + 1):
        before = current
        current, moved, changed = _iteration(*state, before)
        settled = [not any(starts) for starts in changed.tolist()]
        finished = iteration == max_iter or all(settled)
        if finished or 4 * sum(settled) > len(left):
            out = [i for i, ready in enumerate(settled) if ready or finished]
            members = [left[i] for i in out]
            labels[members] = current[out]
            inertia[members] = _inertia(state[0][out], state[1][out], current[out])
        if finished:
            break
        state = state[0], moved, state[2]
        if 4 * sum(settled) > len(left):
            going = [i for i, ready in enumerate(settled) if not ready]
            left = [left[i] for i in going]
            state = state[0][going], state[1][going], state[2][going]
            current = current[going]
    return labels, inertia


def _iteration(
    points: Tensor, centers: Tensor, used: Tensor, before: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Assign the points and move the centres; tell which starts changed."""
    n_starts, n_centers = centers.shape[1:3]
    flat = centers.flatten(1, 2)
    half_norms = torch.where(used, 0.5 * centers.square().sum(dim=3), torch.inf)
    scores = torch.baddbmm(
        half_norms.flatten(1)[:, None], points, flat.mT, alpha=-1.0
    ).reshape(*points.shape[:2], n_starts, n_centers)
    labels = scores.argmin(dim=3)
    members = torch.zeros_like(scores).scatter_(3, labels[..., None], 1.0)
    members = members.flatten(2)
    sizes = members.sum(dim=1).reshape(used.shape)
    labels = labels.mT.contiguous()
    empty = used & (sizes == 0.0)
    if bool(empty.any()):
        _restart_empty(points, centers, labels, sizes, empty)
        members = torch.zeros_like(scores).scatter_(3, labels.mT[..., None], 1.0)
        members = members.flatten(2)
    sums = (members.mT @ points).reshape(centers.shape)
    moved = torch.where(
        sizes[..., None] > 0.0, sums / sizes.clamp(min=1.0)[..., None], centers
    )
    return labels, moved, (labels != before).any(dim=2)


def _restart_empty(
    points: Tensor, centers: Tensor, labels: Tensor, sizes: Tensor, empty: Tensor
) -> None:
    """Give each empty cluster the sample farthest from its centre, in place."""
    scale = torch.finfo(points.dtype).eps * points.abs().amax(dim=(1, 2))
    # Copies of a point are this far from their mean by rounding alone.
    rounding = points.shape[2] * (4.0 * scale) ** 2
    for problem, start, cluster in empty.nonzero().tolist():
        own = labels[problem, start]
        difference = points[problem] - centers[problem, start][own]
        distance = difference.square().sum(dim=1)
        distance[sizes[problem, start][own] <= 1.0] = 0.0
        farthest = distance.argmax()
        if bool(distance[farthest] > rounding[problem]):
            sizes[problem, start, own[farthest]] -= 1.0
            sizes[problem, start, cluster] = 1.0
            labels[problem, start, farthest] = cluster


def _inertia(points: Tensor, centers: Tensor, labels: Tensor) -> Tensor:
    """Return the sum of squared distances of each start."""
    totals = []
    for start in range(centers.shape[1]):
        place = labels[:, start, :, None].expand_as(points)
        difference = points - centers[:, start].gather(1, place)
        totals.append(difference.square_().sum(dim=(1, 2), dtype=torch.float64))
    return torch.stack(totals, dim=1)
