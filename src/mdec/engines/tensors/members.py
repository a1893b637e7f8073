"""Base clusterings of many members at once, Eqs. 8 to 13."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mdec._support.arrays import Array
from mdec.base.graphs import DENSE_SAMPLES
from mdec.base.kernels import ANGULAR, angular_coordinates
from mdec.engines.tensors.device import full_precision, host_pool
from mdec.engines.tensors.graphs import (
    BatchGraph,
    dense_leading,
    iterated_leading,
    join_graph,
    normalized_graph,
)
from mdec.engines.tensors.neighbors import Neighbors, list_neighbors
from mdec.ensemble.plan import Member, Plan
from mdec.numerics.affinity import TOLERANCE, component_roots, mix_roots, unit_rows
from mdec.numerics.eigen import block_width, is_dense
from mdec.numerics.kmeans import MAX_ITER, N_INIT
from mdec.numerics.magnitude import at_safe_scale


@dataclass(frozen=True)
class Data:
    """The samples, here as given and on the device up to a power of two."""

    here: Array
    there: Tensor

    @classmethod
    def on(cls, X: Array, device: torch.device) -> Data:
        """Copy the samples to a device, at a scale whose squares fit float64."""
        safe = np.ascontiguousarray(at_safe_scale(X))
        try:
            return cls(X, torch.from_numpy(safe).to(device))
        except torch.OutOfMemoryError as error:
            raise MemoryError(
                f"the data of {X.nbytes / 1e9:.1f} GB does not fit the GPU; free it, "
                "cluster fewer samples or features, or use device='cpu'."
            ) from error

    def subspaces(self, features: NDArray[np.int64], kernel: str) -> Tensor:
        """Return the samples' coordinates in subspaces, as the kernel takes them.

        From the features of members, (n_members, n_drawn); the result is (n_members,
        n_samples, n_drawn), of angular kernels with one column more where some samples
        have no direction.
        """
        if kernel in ANGULAR:
            own = [angular_coordinates(self.here[:, each], kernel) for each in features]
            width = max(each.shape[1] for each in own)
            rows = np.zeros((len(own), len(self.here), width))
            for member, each in enumerate(own):
                rows[member, :, : each.shape[1]] = each
            return torch.from_numpy(rows).to(self.there.device)
        chosen = torch.from_numpy(features.ravel()).to(self.there.device)
        drawn = self.there.index_select(1, chosen)
        return drawn.reshape(len(drawn), *features.shape).transpose(0, 1).contiguous()


def member_bytes(n_samples: int, n_clusters: int) -> int:
    """Estimate what one member holds on the device between its graph and its labels."""
    vectors = n_clusters + n_clusters // 8 + 16
    return n_samples * (100 * vectors + 1500)


def cluster_batch(
    data: Data, plan: Plan, members: Sequence[Member], member_bytes: int, n_bytes: int
) -> list[NDArray[np.int32] | ValueError]:
    """Return the labels of base clusterings of one kernel, or why one has none.

    They are made in parts where all of them would take more than `n_bytes`; members
    with like numbers of clusters waste least.
    """
    n_members = min(len(members), max(1, n_bytes // member_bytes))
    labels: list[NDArray[np.int32] | ValueError] = []
    for start in range(0, len(members), n_members):
        part = members[start : start + n_members]
        labels += _base_labels(data, plan, part, n_bytes // 4)
    return labels


@full_precision()
def _base_labels(
    data: Data, plan: Plan, members: Sequence[Member], n_bytes: int
) -> list[NDArray[np.int32] | ValueError]:
    """Return the labels of members, Eqs. 8 to 13; distances may take `n_bytes`."""
    lists = neighbor_lists(data, plan, members, n_bytes)
    found = [
        (member, each)
        for member, each in zip(members, lists, strict=True)
        if not isinstance(each, ValueError)
    ]
    labels: Iterator[NDArray[np.int32]] = iter(())
    if found:
        able = [member for member, _ in found]
        graph = join_graph([each for _, each in found], len(data.here))
        labels = iter(_discretize(_embeddings(graph, plan, able), plan, able))
    return [each if isinstance(each, ValueError) else next(labels) for each in lists]


def neighbor_lists(
    data: Data, plan: Plan, members: Sequence[Member], n_bytes: int
) -> list[Neighbors]:
    """List the neighbours of members of one kernel, as many at a time as fit."""
    n_samples, kernel = len(data.here), plan.kernel_of(members[0])
    dtype = torch.float64 if n_samples <= DENSE_SAMPLES else torch.float32
    features = [plan.features(each) for each in members]
    # The distances, what they become, and what is smallest in groups.
    row_bytes = 3 * dtype.itemsize * n_samples
    # The subspace, centred, and both factors.
    member_bytes = n_samples * (row_bytes + 32 * len(features[0]))
    together = max(1, n_bytes // member_bytes)
    lists: list[Neighbors] = []
    for start in range(0, len(members), together):
        part = slice(start, start + together)
        some = members[part]
        lists += list_neighbors(
            data.subspaces(np.stack(features[part]), kernel),
            kernel,
            some,
            dtype=dtype,
            tile=max(1, n_bytes // (len(some) * row_bytes)),
            limit=n_bytes // 16,
        )
    return lists


@dataclass(frozen=True)
class _Start:
    """What the host prepares for one member's eigenvectors."""

    component: NDArray[np.intp]
    roots: Array
    n_known: int
    n_wanted: int
    vectors: Array


def _start(
    plan: Plan, member: Member, degrees: Array, component: NDArray[np.int64]
) -> _Start:
    """Number the components and draw the starting vectors.

    With more components than vectors wanted, the vectors are final. They are none
    where a full factorisation needs no start.
    """
    order, solver = degrees.size, plan.stream(member, "solver")
    numbers, roots = component_roots(degrees, component)
    n_known = int(numbers.max()) + 1
    n_wanted = member.n_clusters - n_known
    if n_wanted <= 0:
        vectors = mix_roots(numbers, roots, member.n_clusters, solver)
    elif is_dense(order, n_wanted):
        vectors = np.empty((order, 0))
    else:
        shape = order, block_width(n_wanted, order - n_known)
        vectors = solver.standard_normal(shape).astype(np.float32)
    return _Start(numbers, roots, n_known, n_wanted, vectors)


def _embeddings(graph: BatchGraph, plan: Plan, members: Sequence[Member]) -> Tensor:
    """Return unit rows of leading eigenvectors, zeros beyond a member's own."""
    degrees, components = graph.degrees().cpu().numpy(), graph.components().cpu()
    prepare = partial(_start, plan)
    starts = list(host_pool().map(prepare, members, degrees, components.numpy()))
    affinity = normalized_graph(graph)
    n_columns = max(member.n_clusters for member in members)
    dtype = torch.float64 if is_dense(graph.order, 0) else torch.float32
    shape = graph.n_members, graph.order, n_columns
    vectors = torch.zeros(shape, dtype=dtype, device=graph.data.device)
    solvable: dict[bool, list[int]] = {True: [], False: []}
    for place, start in enumerate(starts):
        if start.n_wanted <= 0:
            mixed = torch.from_numpy(start.vectors).to(vectors)
            vectors[place, :, : mixed.shape[1]] = mixed
        else:
            solvable[is_dense(graph.order, start.n_wanted)].append(place)
    for dense, places in solvable.items():
        if places:
            some = [starts[place] for place in places]
            known = _known_vectors(some, vectors)
            solve = _solve_dense if dense else _solve_iterated
            found = solve(affinity.members(places), known, some)
            for place, start, old, new in zip(places, some, known, found, strict=True):
                first, last = start.n_known, start.n_known + start.n_wanted
                vectors[place, :, :first] = old[:, :first]
                vectors[place, :, first:last] = new[:, : start.n_wanted]
    return unit_rows(vectors)


def _known_vectors(starts: list[_Start], like: Tensor) -> Tensor:
    """Return the components' eigenvectors, zeros beyond a member's own."""
    component = torch.from_numpy(np.stack([s.component for s in starts]))
    roots = torch.from_numpy(np.stack([s.roots for s in starts]))
    n_known = max(s.n_known for s in starts)
    known = like.new_zeros((*component.shape, n_known))
    place = component.to(like.device)[..., None]
    return known.scatter_(2, place, roots.to(known)[..., None])


def _solve_dense(affinity: BatchGraph, known: Tensor, starts: list[_Start]) -> Tensor:
    most = max(start.n_wanted for start in starts)
    return dense_leading(affinity, known.double(), most).to(known)


def _solve_iterated(
    affinity: BatchGraph, known: Tensor, starts: list[_Start]
) -> Tensor:
    widths = [start.vectors.shape[1] for start in starts]
    block = known.new_zeros((len(starts), affinity.order, max(widths)))
    for member, start in enumerate(starts):
        own = torch.from_numpy(start.vectors)
        block[member, :, : widths[member]] = own.to(known.device)
    single = affinity.with_data(affinity.data.to(known.dtype))
    n_wanted = [start.n_wanted for start in starts]
    return iterated_leading(single, block, known, widths, n_wanted, TOLERANCE)


def _discretize(
    embeddings: Tensor, plan: Plan, members: Sequence[Member]
) -> NDArray[np.int32]:
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
    chosen = labels[torch.arange(len(members), device=best.device), best]
    return chosen.int().cpu().numpy()


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
