"""Base clusterings of many members at once, Eqs. 8 to 13."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from mdec.base.graphs import DENSE_SAMPLES
from mdec.base.kernels import ANGULAR, angular_coordinates
from mdec.base.members import DrawnRows
from mdec.engines.tensors import graphs
from mdec.engines.tensors.device import (
    full_precision,
    has_fast_tensor_cores,
    on_host,
    staging,
    to_host,
)
from mdec.engines.tensors.neighbors import Neighbors, list_neighbors, split_digits
from mdec.ensemble.plan import Member, Plan
from mdec.numerics.affinity import TOLERANCE, component_roots, mix_roots, unit_rows
from mdec.numerics.eigen import block_width
from mdec.numerics.kmeans import MAX_ITER, N_INIT
from mdec.numerics.magnitude import at_safe_scale
from mdec.preparation.recipes import Versions

# Blocks of vectors are widened to a multiple of this, which moves them in whole words.
LANES = 16

# Numbers whose drawing keeps a thread of the host busy for a millisecond.
_THREAD_WORTH = 100_000

# From this many rows on the work of k-means takes longer than its launches.
MANY_ROWS = 20_000


@dataclass(frozen=True)
class Data:
    """What members draw from: here, and each version on the device at a safe scale."""

    here: Versions
    there: dict[int, Tensor]

    @classmethod
    def on(cls, versions: Versions, device: torch.device) -> Data:
        """Copy the versions to a device, at a scale whose squares fit float64."""
        arrays = list(versions.made.values()) or [versions.plain]
        try:
            there = {
                id(X): torch.from_numpy(np.ascontiguousarray(at_safe_scale(X))).to(
                    device
                )
                for X in arrays
            }
        except torch.OutOfMemoryError as error:
            n_bytes = sum(X.nbytes for X in arrays)
            raise MemoryError(
                f"the data of {n_bytes / 1e9:.1f} GB does not fit the GPU; free it, "
                "cluster fewer samples or features, or use device='cpu'."
            ) from error
        return cls(versions, there)

    def coordinates(self, drawn: Sequence[DrawnRows], kernel: str) -> Tensor:
        """Return what members look at, as their kernel takes it.

        The result is (n_members, n_samples, most), zeros beyond a member's own.
        """
        device = next(iter(self.there.values())).device
        if kernel in ANGULAR:
            own = [
                torch.from_numpy(angular_coordinates(each.take(), kernel))
                for each in drawn
            ]
        else:
            lengths = [each.features.size for each in drawn]
            features = np.concatenate([each.features for each in drawn])
            columns = torch.split(torch.from_numpy(features).to(device), lengths)
            own = [
                self.there[id(each.rows)].index_select(1, some)
                for each, some in zip(drawn, columns, strict=True)
            ]
            own = [
                rows
                if each.samples is None
                else rows[torch.from_numpy(each.samples).to(device)]
                for each, rows in zip(drawn, own, strict=True)
            ]
        shape = len(own), len(own[0]), max(each.shape[1] for each in own)
        rows = torch.zeros(shape, dtype=own[0].dtype, device=device)
        for target, each in zip(rows, own, strict=True):
            target[:, : each.shape[1]] = each
        return rows


def member_bytes(plan: Plan, n_clusters: int) -> int:
    """Estimate what one member holds on the device between its graph and its labels."""
    vectors = n_clusters + n_clusters // 8 + 16
    n_vertices = plan.n_landmarks or plan.n_clustered
    return n_vertices * (100 * vectors + 1500)


def cluster_batch(
    data: Data,
    drawn: Mapping[int, DrawnRows],
    plan: Plan,
    members: Sequence[Member],
    member_bytes: int,
    n_bytes: int,
) -> list[NDArray[np.int32] | Exception]:
    """Return the labels of members of one kernel, Eqs. 8 to 13, or why one has none.

    What each looks at is `drawn` by its index. They are made in parts where all of them
    would take more than `n_bytes`; members with like numbers of clusters waste least.
    """
    n_members = min(len(members), max(1, n_bytes // member_bytes))
    labels: list[NDArray[np.int32] | Exception] = []
    for start in range(0, len(members), n_members):
        part = members[start : start + n_members]
        own_rows = [drawn[member.index] for member in part]
        lists = neighbor_lists(data, own_rows, plan, part, n_bytes // 4)
        graph = graphs.join_graph(lists, plan.n_clustered)
        whys = [each.errors.get(i) for each in lists for i in range(len(each.columns))]
        able = [number for number, why in enumerate(whys) if why is None]
        made: Iterator[NDArray[np.int32]] = iter(())
        if able:
            graph = graph.members(able) if any(whys) else graph
            own = [part[number] for number in able]
            embeddings = unit_rows(leading_vectors(graph, plan, own))
            made = iter(best_labels(embeddings, plan, own).int().cpu().numpy())
        labels += [why or next(made) for why in whys]
    return labels


def neighbor_lists(
    data: Data,
    drawn: Sequence[DrawnRows],
    plan: Plan,
    members: Sequence[Member],
    n_bytes: int,
) -> list[Neighbors]:
    """List the neighbours of members of one kernel, as many at a time as fit."""
    n_samples, kernel = plan.n_clustered, plan.kernel_of(members[0])
    dtype = torch.float64 if n_samples <= DENSE_SAMPLES else torch.float32
    # The distances, what they become, and what is smallest in groups.
    row_bytes = 3 * dtype.itemsize * n_samples
    # The subspace, centred, and both factors, as tensor cores take them.
    most = max(each.features.size for each in drawn)
    member_bytes = n_samples * (row_bytes + 72 * most)
    together = max(1, n_bytes // member_bytes)
    lists: list[Neighbors] = []
    for start in range(0, len(members), together):
        part = slice(start, start + together)
        some = members[part]
        found = list_neighbors(
            data.coordinates(drawn[part], kernel),
            kernel,
            some,
            dtype=dtype,
            tile=max(1, n_bytes // (len(some) * row_bytes)),
            limit=n_bytes // 16,
        )
        lists.append(found)
    return lists


def leading_vectors(
    graph: graphs.BatchGraph,
    plan: Plan,
    members: Sequence[Member],
    orders: Sequence[int] | None = None,
) -> Tensor:
    """Return leading eigenvectors of normalised graphs, zeros beyond a member's own.

    Where `orders` are given, only so many rows of each member's are vertices. The
    eigenvectors of the components are known. Of more components than vectors wanted
    only as many come out, mixed, and there is nothing to solve.
    """
    device, order = graph.data.device, graph.order
    orders = [order] * len(members) if orders is None else orders
    degrees, components = to_host(graph.degrees()), to_host(graph.components())
    ends = [member.n_clusters for member in members]
    # A component has the number of its first row.
    is_first = components == np.arange(components.size).reshape(components.shape)
    found = [int(own[:n].sum()) for own, n in zip(is_first, orders, strict=True)]
    widths = [
        block_width(end - n_known, n - n_known) if n_known < end else 0
        for end, n_known, n in zip(ends, found, orders, strict=True)
    ]
    places = [i for i, width in enumerate(widths) if width]
    n_known = [min(each) for each in zip(found, ends, strict=True)]
    known = staging((len(members), order, max(n_known)), torch.float32, device)
    lanes = -(-max(widths) // LANES) * LANES
    blocks = staging((len(places), order, lanes), torch.float32, device)

    def start(number: int) -> None:
        """Write what is known of a member, and the solver's starting vectors."""
        own, n, width = known.numpy()[number], orders[number], widths[number]
        solver = plan.stream(members[number], "solver")
        numbers, roots = component_roots(degrees[number, :n], components[number, :n])
        own[:] = 0.0
        if not width:
            own[:n, : ends[number]] = mix_roots(numbers, roots, ends[number], solver)
            return
        own[np.arange(n), numbers] = roots
        block = blocks.numpy()[places.index(number)]
        block[:n, :width] = solver.standard_normal((n, width))
        block[n:], block[:, width:] = 0.0, 0.0

    n_threads = 1 + blocks.numel() // _THREAD_WORTH
    on_host(start, range(len(members)), n_threads=n_threads)
    there = known.to(device, non_blocking=True)
    vectors = torch.nn.functional.pad(there, (0, max(ends) - known.shape[2]))
    if places:
        affinity = graphs.normalized_graph(graph).members(places)
        wanted = [ends[i] - n_known[i] for i in places]
        solved = graphs.iterated_leading(
            replace(affinity, data=affinity.data.to(known.dtype)),
            blocks.to(device, non_blocking=True),
            there[places],
            [widths[i] for i in places],
            wanted,
            TOLERANCE,
        )
        for i, width, new in zip(places, wanted, solved, strict=True):
            vectors[i, :, n_known[i] : ends[i]] = new[:, :width]
    return vectors


def best_labels(embeddings: Tensor, plan: Plan, members: Sequence[Member]) -> Tensor:
    """Return the labels of the best k-means run of each embedding, Eq. 13."""
    counts = [member.n_clusters for member in members]
    uniforms = np.zeros((len(members), N_INIT, max(counts)))
    for place, (member, count) in enumerate(zip(members, counts, strict=True)):
        rng = plan.stream(member, "kmeans")
        uniforms[place, :, :count] = rng.random((N_INIT, count))
    draws = torch.from_numpy(uniforms).to(embeddings.device)
    centers = kmeans_plus_plus(embeddings, draws)
    labels, inertia = lloyd(embeddings, centers, counts, MAX_ITER)
    best = inertia.argmin(dim=1)
    return labels[torch.arange(len(members), device=best.device), best]


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
    n_samples, seen = points.shape[1], points
    if n_samples >= MANY_ROWS and has_fast_tensor_cores(points.device):
        seen = split_digits(points, is_left=True)
        # Tensor cores are slow where the scores of a row are no whole words.
        centers = torch.nn.functional.pad(centers, (0, 0, 0, -centers.shape[2] % 4))
    n_problems, n_starts, n_centers, _ = centers.shape
    labels = torch.full((n_problems, n_starts, n_samples), -1, device=points.device)
    inertia = torch.zeros((n_problems, n_starts), dtype=torch.float64).to(points.device)
    place = torch.arange(n_centers, device=points.device)
    used = place < torch.tensor(counts, device=points.device)[:, None]
    used = used[:, None].expand(-1, n_starts, -1)
    left, current = torch.arange(n_problems, device=points.device), labels
    for iteration in range(1, max_iter + 1):
        before = current
        current, moved, changed = _iteration(points, seen, centers, used, before)
        finished = iteration == max_iter or not any(changed)
        stay = [i for i, moves in enumerate(changed) if moves and not finished]
        if finished or 8 * (len(left) - len(stay)) > len(left):
            still = set(stay)
            out, going = (
                torch.tensor(each, dtype=torch.int64, device=points.device)
                for each in ([i for i in range(len(left)) if i not in still], stay)
            )
            labels[left[out]] = current[out]
            inertia[left[out]] = _inertia(points[out], centers[out], current[out])
            if finished:
                break
            left, moved, used, current = (
                each[going] for each in (left, moved, used, current)
            )
            seen, rest = seen[going], points[going]
            points, seen = rest, rest if seen.shape == rest.shape else seen
        centers = moved
    return labels, inertia


def _iteration(
    points: Tensor, seen: Tensor, centers: Tensor, used: Tensor, before: Tensor
) -> tuple[Tensor, Tensor, list[bool]]:
    """Assign the points and move the centres; tell which problems changed.

    What tensor cores see of the points may be split from them.
    """
    flat, precision = centers.flatten(1, 2), "highest"
    half_norms = torch.where(used, 0.5 * centers.square().sum(dim=3), torch.inf)
    if seen is not points:
        flat, precision = split_digits(flat, is_left=False), "high"
    with full_precision(precision):
        scores = torch.baddbmm(
            half_norms.flatten(1)[:, None], seen, flat.mT, alpha=-1.0
        )
    scores = scores.reshape(*points.shape[:2], *centers.shape[1:3])
    labels = scores.argmin(dim=3).mT.contiguous()
    sums, sizes = _sums_of_clusters(points, labels, centers.shape[2])
    empty = used & (sizes == 0)
    flags = torch.stack([(labels != before).any(dim=2), empty.any(dim=2)])
    changed, lost = flags.any(dim=2).tolist()
    if any(lost):
        _restart_empty(points, centers, labels, sizes, empty)
        sums, sizes = _sums_of_clusters(points, labels, centers.shape[2])
        changed = (labels != before).flatten(1).any(dim=1).tolist()
    means = sums / sizes.clamp(min=1)[..., None]
    return labels, torch.where(sizes[..., None] > 0, means, centers), changed


def _sums_of_clusters(
    points: Tensor, labels: Tensor, n_centers: int
) -> tuple[Tensor, Tensor]:
    """Return the sums of the points of each cluster, and how many these are.

    Few points are multiplied with memberships, in few launches. Of many, those of a
    cluster are added up in order, in blocks of some hundreds, and then the blocks.
    """
    n_problems, n_starts, n_samples = labels.shape
    if n_samples < MANY_ROWS:
        inside = points.new_zeros((n_problems, n_samples, n_starts, n_centers))
        inside = inside.scatter_(3, labels.mT[..., None], 1.0).flatten(2)
        with full_precision():
            sums = inside.mT @ points
        sizes = points.new_zeros((n_problems, n_starts, n_centers))
        sizes.scatter_add_(2, labels, points.new_ones(()).expand(labels.shape))
        return sums.reshape(*sizes.shape, -1), sizes
    count = partial(torch.arange, device=points.device)
    height = 256 * n_centers
    n_blocks = (n_samples - 1) // height + 1
    run = count(n_problems * n_starts).reshape(n_problems, n_starts, 1) * n_blocks
    keys = (run + count(n_samples) // height) * n_centers + labels
    keys, order = keys.flatten().sort(stable=True)
    ends = torch.searchsorted(keys, count(run.numel() * n_blocks * n_centers + 1))
    rows = order // (n_starts * n_samples) * n_samples + order % n_samples
    sums = embedding_bag(
        rows, points.flatten(0, 1), ends, mode="sum", include_last_offset=True
    )
    parts = n_problems, n_starts, n_blocks, n_centers
    sums = sums.reshape(*parts, -1).sum(dim=2, dtype=torch.float64)
    return sums.to(points.dtype), ends.diff().reshape(parts).sum(dim=2)


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
        distance[sizes[problem, start][own] <= 1] = 0.0
        farthest = distance.argmax()
        if bool(distance[farthest] > rounding[problem]):
            sizes[problem, start, own[farthest]] -= 1
            sizes[problem, start, cluster] = 1
            labels[problem, start, farthest] = cluster


def _inertia(points: Tensor, centers: Tensor, labels: Tensor) -> Tensor:
    """Return the sum of squared distances of each start."""
    totals = []
    for start in range(centers.shape[1]):
        place = labels[:, start, :, None].expand_as(points)
        difference = points - centers[:, start].gather(1, place)
        totals.append(difference.square_().sum(dim=(1, 2), dtype=torch.float64))
    return torch.stack(totals, dim=1)
