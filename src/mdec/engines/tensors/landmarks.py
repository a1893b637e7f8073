"""Base clusterings by ties to landmarks, by the rules of `mdec.base.landmarks`.

The random draws are those of the CPU, and so are the choices: products find candidates,
and differences decide wherever rounding could have hidden the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag, pad

from mdec._support.arrays import Array
from mdec.base import kernels
from mdec.base.copies import CopiesError
from mdec.base.landmarks import (
    FARTHEST,
    MAX_HIDDEN_SHARE,
    coordinates,
    draw_candidates,
    tie_count,
)
from mdec.base.members import MEMBER_ERRORS
from mdec.engines.tensors import graphs
from mdec.engines.tensors.device import full_precision
from mdec.engines.tensors.kmeans import best_labels, group_means, order_by_group
from mdec.engines.tensors.members import Starts, leading_vectors
from mdec.engines.tensors.members import member_bytes as vector_bytes
from mdec.engines.tensors.neighbors import SPARE, pair_squares, smallest_in_rows
from mdec.ensemble.plan import Member, Plan
from mdec.numerics.affinity import unit_rows
from mdec.numerics.landmark_search import (
    AROUND_CELL,
    N_CELLS,
    REFINEMENTS,
    SEARCHED_WHOLE,
)
from mdec.rows.work import rows_of

# Rows of one cell whose scores are made together.
TILE = 64


def landmark_bytes(plan: Plan, n_clusters: int) -> int:
    """Estimate what one member holds on the device between its ties and its labels."""
    assert plan.n_landmarks is not None
    n_samples, n_landmarks = plan.n_samples, plan.n_landmarks
    ties = tie_count(plan.n_neighbors_range[1], n_samples, n_landmarks)
    # The ties, what pairs of them share, and the eigenvectors of the landmarks.
    return n_samples * (8 * ties + 16) + vector_bytes(plan, n_clusters)


@dataclass(frozen=True)
class Index:
    """Landmarks, (n_landmarks, n_coordinates), centred and prepared for a search.

    The rows of each cell, by its centre, look at the landmarks `around`, (n_cells,
    widest), in ascending order, then `n_landmarks` for none. Without centres of cells
    all rows look at all landmarks.
    """

    points: Tensor
    centers: Tensor
    around: Tensor

    @classmethod
    def of(cls, points: Tensor, rng: np.random.Generator, limit: int) -> Index:
        """Lay cells around centres that `rng` chooses, if the landmarks are many."""
        n_landmarks = len(points)
        every = torch.arange(n_landmarks, device=points.device)
        if n_landmarks <= SEARCHED_WHOLE:
            return cls(points, points[:0], every[None])
        centers = refine_landmarks(points, N_CELLS, rng, limit)[1]
        with full_precision():
            scores = 0.5 * points.square().sum(dim=1) - centers @ points.mT
        near = torch.topk(scores, AROUND_CELL, largest=False, sorted=False).indices
        inside = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, near, True)
        inside[nearest_centers(points, centers, limit), every] = True
        around = torch.where(inside, every, n_landmarks).sort(dim=1).values
        return cls(points, centers, around[:, : int(inside.sum(dim=1).max())])

    def nearest(self, rows: Tensor, count: int, limit: int) -> tuple[Tensor, Tensor]:
        """Return the nearest landmarks of rows and their squared distances.

        Both results are (n_rows, count), by ascending distance, of equal ones the first
        landmark; about `limit` numbers are stored at a time.
        """
        # One more for the places of tiles that are no row, which are -1.
        nearest = rows.new_empty((len(rows) + 1, count), dtype=torch.int32)
        distances = rows.new_empty((len(rows) + 1, count))
        around = self.around
        if len(self.centers) and count > AROUND_CELL:
            around = torch.arange(len(self.points), device=rows.device)[None]
        compared = around.shape[1] + 2 * (count + SPARE) * rows.shape[1]
        if len(around) == 1:
            height = max(1, limit // compared)
            every = torch.arange(len(rows), device=rows.device)
            tiles = [(each[None], around) for each in torch.split(every, height)]
        else:
            cell = nearest_centers(rows, self.centers, limit)
            places, cells = _tiles(cell, len(around))
            step = max(1, limit // (TILE * compared + around.shape[1] * rows.shape[1]))
            both = torch.split(places, step), torch.split(around[cells], step)
            tiles = list(zip(*both, strict=True))
        for places, columns in tiles:
            found = self._search(rows[places.clamp(min=0)], columns, count, limit)
            nearest[places], distances[places] = found[0].int(), found[1]
        return nearest[:-1], distances[:-1]

    def _search(
        self, rows: Tensor, around: Tensor, count: int, limit: int
    ) -> tuple[Tensor, Tensor]:
        """Search the landmarks around tiles of rows, (n_tiles, height, ...)."""
        points, width = pad(self.points, (0, 0, 0, 1)), around.shape[1]
        none = len(self.points)
        halves = 0.5 * points.square().sum(dim=1)
        halves[none] = torch.inf
        others = points[around].mT
        with full_precision():
            scores = torch.baddbmm(halves[around][:, None], rows, others, alpha=-1.0)
        wide = min(count + SPARE, width)
        places = smallest_in_rows(scores.flatten(0, 1), wide)
        places = places.reshape(*rows.shape[:2], wide).sort(dim=2).values
        kept = scores.gather(2, places)
        columns = around[:, None].expand(-1, rows.shape[1], -1).gather(2, places)
        exact = _distances(rows.flatten(0, 1), points, columns.flatten(0, 1), limit)
        exact = exact.reshape(columns.shape)
        exact, order = exact.sort(dim=2, stable=True)
        nearest, exact = columns.gather(2, order)[..., :count], exact[..., :count]
        if wide == width:
            return nearest, exact
        own = 0.5 * rows.square().sum(dim=2) + halves[:none].max()
        last = kept.sort(dim=2).values[..., count - 1]
        doubt = last + 4.0 * _rounding_share(rows) * own >= kept.amax(dim=2)
        height = max(1, limit // (2 * width * rows.shape[2]))
        for tile, row in (each.T for each in torch.split(doubt.nonzero(), height)):
            others = around[tile]
            far = _distances(rows[tile, row], points, others, limit)
            far, order = far.sort(dim=1, stable=True)
            nearest[tile, row] = others.gather(1, order)[:, :count]
            exact[tile, row] = far[:, :count]
        return nearest, exact


def _distances(rows: Tensor, points: Tensor, columns: Tensor, limit: int) -> Tensor:
    """Return squared distances to listed points, infinity to the last, that is none."""
    squared = pair_squares(rows, points, columns, limit).to(rows.dtype)
    return squared.masked_fill_(columns == len(points) - 1, torch.inf)


def _rounding_share(rows: Tensor) -> float:
    """Return how far rounding moves scores, as a share of the halves of both norms.

    As for graphs, several times what errors of random signs add up to.
    """
    eps = float(torch.finfo(rows.dtype).eps)
    return (2.0 * float(rows.shape[-1]) ** 0.5 + 8.0) * 0.5 * eps


def _tiles(cell: Tensor, n_cells: int) -> tuple[Tensor, Tensor]:
    """Put rows of one cell into tiles of equal height, and tell the cell of each.

    The tiles hold the places of rows, (n_tiles, TILE), -1 for none.
    """
    order, starts, counts = order_by_group(cell, n_cells)
    n_tiles = (counts + TILE - 1) // TILE
    cells = torch.repeat_interleave(n_tiles)
    first_tile, ordered = n_tiles.cumsum(0) - n_tiles, cell[order]
    within = torch.arange(len(cell), device=cell.device) - starts[ordered]
    places = torch.full((len(cells) * TILE,), -1, device=cell.device)
    places[first_tile[ordered] * TILE + within] = order
    return places.reshape(-1, TILE), cells


def nearest_centers(points: Tensor, centers: Tensor, limit: int) -> Tensor:
    """Return the nearest centre of each point, the first of equals."""
    halves, share = 0.5 * centers.square().sum(dim=1), _rounding_share(points)
    labels, every = [], torch.arange(len(centers), device=centers.device)
    height = max(1, limit // (len(centers) + points.shape[1]))
    for part in torch.split(points, height):
        with full_precision():
            scores = torch.addmm(halves, part, centers.mT, alpha=-1.0)
        least, best = scores.min(dim=1)
        greatest = least + 2.0 * share * (0.5 * part.square().sum(dim=1) + halves.max())
        close = scores <= greatest[:, None]
        doubt = (close.sum(dim=1) > 1).nonzero()[:, 0]
        for some in torch.split(doubt, max(1, limit // (2 * centers.numel()))):
            exact = pair_squares(
                part[some], centers, every.expand(len(some), -1), limit
            )
            best[some] = exact.masked_fill_(~close[some], torch.inf).argmin(dim=1)
        labels.append(best)
    return torch.cat(labels)


def refine_landmarks(
    candidates: Tensor, n_landmarks: int, rng: np.random.Generator, limit: int
) -> tuple[NDArray[np.intp], Tensor]:
    """Choose landmarks among candidates and move them to the middle of their rows.

    Returns the candidates from which the landmarks started, and the landmarks.
    """
    chosen = np.sort(rng.choice(len(candidates), n_landmarks, replace=False))
    points = candidates[torch.from_numpy(chosen).to(candidates.device)]
    if n_landmarks == len(candidates):
        return chosen, points
    for _ in range(REFINEMENTS):
        index = Index.of(points, rng, limit)
        if len(index.centers):
            labels = index.nearest(candidates, 1, limit)[0][:, 0]
        else:
            labels = nearest_centers(candidates, points, limit)
        points = group_means(candidates, labels.long(), points)
    return chosen, points


@dataclass(frozen=True)
class Landmarks:
    r"""What ties the rows of one member to its landmarks.

    The attributes are those of `mdec.base.landmarks.Landmarks`, but :math:`\rho` is in
    units of its median, and the rows from which the landmarks started, (n_landmarks,
    n_coordinates), are there too, centred, with the `origin` of each in the pool.
    """

    features: NDArray[np.int64]
    kernel: str
    n_ties: int
    mu: float
    center: Tensor
    scale: float
    index: Index
    rho: Tensor
    unit: float
    started: Tensor
    origin: NDArray[np.int64]

    @classmethod
    def of(
        cls, pool: Any, member: Member, plan: Plan, device: torch.device, limit: int
    ) -> Landmarks:
        """Choose the landmarks of a member, or raise if copies are among them."""
        rng, kernel = plan.stream(member, "landmarks"), plan.kernel_of(member)
        assert plan.n_landmarks is not None
        drawn = draw_candidates(pool, member, plan, rng)
        rows, center = (
            torch.from_numpy(np.ascontiguousarray(each)).to(device)
            for each in (drawn.rows, drawn.center)
        )
        for dtype in (torch.float32, torch.float64):
            centred = _center(rows, center, drawn.scale, dtype)
            chosen, points = refine_landmarks(centred, plan.n_landmarks, rng, limit)
            if kernel in kernels.ANGULAR:
                points = unit_rows(points)
            index = Index.of(points, rng, limit)
            between = index.nearest(points, drawn.n_ties + 1, limit)[1][:, 1:]
            farthest = between.amax(dim=1)
            rounding = torch.finfo(dtype).eps * points.square().sum(dim=1)
            hidden = (farthest > 0.0) & (farthest < 64.0 * rounding)
            if float(hidden.double().mean()) <= MAX_HIDDEN_SHARE:
                break
        if float(between.min()) == 0.0:
            raise CopiesError("there are copies among the landmarks.")
        rho, unit = torch.zeros_like(points[:, 0]), 1.0
        if kernel not in kernels.ANGULAR:
            means = kernels.as_kernel_takes_them(between, kernel).mean(dim=1)
            rho = kernels.mean_neighbor_distance(means.double()).to(dtype)
            unit = float(np.median(rho.cpu().numpy()))
        shape = plan.features(member), kernel, drawn.n_ties, member.mu, center
        started = centred[torch.from_numpy(chosen).to(device)]
        found = index, rho / unit, unit, started, drawn.drawn[chosen]
        return cls(*shape, drawn.scale, *found)

    def coordinates(self, here: Array, there: Tensor) -> Tensor:
        """Return a block of rows, on both sides, in the member's centred coordinates.

        The angular kernels look at theirs on the host.
        """
        if self.kernel in kernels.ANGULAR:
            own = coordinates(here, self.features, self.kernel)
            rows = torch.from_numpy(own).to(there.device)
        else:
            chosen = torch.from_numpy(self.features).to(there.device)
            rows = there.index_select(1, chosen)
        return _center(rows, self.center, self.scale, self.index.points.dtype)

    def tie(self, rows: Tensor, limit: int) -> tuple[Tensor, Tensor]:
        """Return the nearest landmarks of centred rows and their similarities."""
        nearest, squared = self.index.nearest(rows, self.n_ties, limit)
        if self.kernel in kernels.ANGULAR:
            return nearest, kernels.angular_similarity(squared).float()
        distance = kernels.as_kernel_takes_them(squared, self.kernel) / self.unit
        floor = self.rho.min().clamp(max=kernels.RELATIVE_FLOOR)
        rho = distance.mean(dim=1, keepdim=True)
        both = torch.where(rho > 0.0, rho, floor), self.rho[nearest]
        weights = kernels.scaled_similarity(self.kernel, distance, *both, self.mu)
        return nearest, weights.float()


def _center(rows: Tensor, center: Tensor, scale: float, dtype: torch.dtype) -> Tensor:
    """Return rows about the centre; those out of all bounds are brought to them."""
    if scale != 1.0:
        rows = rows.double() * scale
    return (rows - center.to(rows.dtype)).to(dtype).clamp_(-FARTHEST, FARTHEST)


# Landmarks of some rows and the similarities to them, (n_rows, n_ties).
Ties = tuple[Tensor, Tensor]


def shared_weights(ties: Sequence[Ties], n_landmarks: int) -> tuple[Tensor, Tensor]:
    r"""Return what every two landmarks share, :math:`B^T D_X^{-1} B`, upper half.

    B are the ties, block by block; the result has places
    :math:`i n_{landmarks} + j`, where i is at most j, and their weights in float64.
    """
    found = []
    for nearest, weights in ties:
        wide = weights.double()
        totals = wide.sum(dim=1, keepdim=True)
        shares = torch.where(totals > 0.0, wide / totals, 0.0)
        one, other = torch.triu_indices(*[nearest.shape[1]] * 2, device=nearest.device)
        a, b = nearest[:, one].long(), nearest[:, other].long()
        places = torch.minimum(a, b) * n_landmarks + torch.maximum(a, b)
        values = shares[:, one] * wide[:, other]
        found.append(_sum_by_place(places.flatten(), values.flatten()))
    places, values = (torch.cat(each) for each in zip(*found, strict=True))
    return _sum_by_place(places, values)


def _sum_by_place(places: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Add up values of equal places, in their order."""
    places, order = places.sort(stable=True)
    fresh = torch.ones_like(places, dtype=torch.bool)
    fresh[1:] = places[1:] != places[:-1]
    starts = fresh.nonzero()[:, 0]
    sums = embedding_bag(order, values[:, None], starts, mode="sum")
    return places[starts], sums[:, 0]


def join_landmarks(
    shared: Sequence[tuple[Tensor, Tensor]], n_landmarks: int
) -> tuple[graphs.BatchGraph, list[Tensor]]:
    """Return the graphs of landmarks side by side, and which of them are tied to rows.

    Those come first, in their order. The diagonal is left out, but for landmarks that
    share rows with no other.
    """
    rows, columns, data, tied = [], [], [], []
    for number, (places, values) in enumerate(shared):
        one, other = places // n_landmarks, places % n_landmarks
        joins = (values > 0.0) & (one != other)
        ends = torch.cat([one[joins], other[joins]])
        n_others = torch.bincount(ends, minlength=n_landmarks)
        kept = (values > 0.0) & ((one != other) | (n_others[one] == 0))
        has = n_others > 0
        has[one[kept]] = True
        place = number * n_landmarks + has.cumsum(0) - 1
        rows.append(place[one[kept]])
        columns.append(place[other[kept]])
        data.append(values[kept])
        tied.append(has.nonzero()[:, 0])
    first, second, values = (torch.cat(each) for each in (rows, columns, data))
    return graphs.mirror_entries(first, second, values, len(shared), n_landmarks), tied


def embed_rows(ties: Ties, vectors: Tensor) -> Tensor:
    """Return unit rows of the ties times vectors, (n_landmarks, n_vectors)."""
    embedded = embedding_bag(
        ties[0].long(), vectors, per_sample_weights=ties[1], mode="sum"
    )
    unit: Tensor = unit_rows(embedded)
    return unit


def cluster_by_landmarks(
    blocks: Sequence[Any],
    pool: Any,
    device: torch.device,
    plan: Plan,
    members: Sequence[Member],
    member_bytes: int,
    n_bytes: int,
) -> list[NDArray[np.int32] | Exception]:
    """Return the labels of members, or why one has none.

    The row blocks go to the device one at a time. The members are made in parts where
    all of them would take more than `n_bytes`.
    """
    n_members = min(len(members), max(1, n_bytes // 2 // member_bytes))
    labels: list[NDArray[np.int32] | Exception] = []
    for start in range(0, len(members), n_members):
        part = members[start : start + n_members]
        fitted: dict[int, Landmarks | Exception] = {}
        for number, member in enumerate(part):
            try:
                fitted[number] = Landmarks.of(pool, member, plan, device, n_bytes // 32)
            except MEMBER_ERRORS as error:
                fitted[number] = error
        able = {n: e for n, e in fitted.items() if isinstance(e, Landmarks)}
        own = [part[number] for number in able]
        made = _cut(blocks, list(able.values()), plan, own, device, n_bytes // 32)
        labels += [
            next(made) if isinstance(each, Landmarks) else each
            for each in fitted.values()
        ]
    return labels


def _cut(
    blocks: Sequence[Any],
    fitted: Sequence[Landmarks],
    plan: Plan,
    members: Sequence[Member],
    device: torch.device,
    limit: int,
) -> Iterator[NDArray[np.int32]]:
    """Yield the labels of members whose landmarks are known, about a limit of numbers.

    The transfer cut: eigenvectors of the landmarks, k-means of the rows from which they
    started, and all rows to the nearest centre.
    """
    if not fitted:
        return
    ties: list[list[Ties]] = [[] for _ in fitted]
    assert plan.n_landmarks is not None
    starts = Starts(plan, members, plan.n_landmarks, device)
    for block in blocks:
        here = rows_of(block)
        there = torch.from_numpy(np.ascontiguousarray(here)).to(device)
        for each, own in zip(fitted, ties, strict=True):
            own.append(each.tie(each.coordinates(here, there), limit))
    graph, tied = join_landmarks(
        [shared_weights(own, plan.n_landmarks) for own in ties], plan.n_landmarks
    )
    members = [
        replace(each, n_clusters=min(each.n_clusters, len(own)))
        for each, own in zip(members, tied, strict=True)
    ]
    roots = graph.degrees().clamp(min=torch.finfo(torch.float64).tiny).rsqrt()
    vectors = leading_vectors(graph, plan, members, starts, [len(own) for own in tied])
    vectors = vectors * torch.where(graph.degrees() > 0.0, roots, 0.0)[..., None]
    spread = []
    for places, found in zip(tied, vectors, strict=True):
        placed = torch.zeros_like(found).index_copy_(0, places, found[: len(places)])
        spread.append((placed / placed.abs().max()).float())
    started = [
        embed_rows(each.tie(each.started, limit), found)
        for each, found in zip(fitted, spread, strict=True)
    ]
    nearest = best_labels(torch.stack(started), plan, members)
    for number, (own, found) in enumerate(zip(ties, spread, strict=True)):
        centers = group_means(
            started[number],
            nearest[number].long(),
            started[number].new_full((members[number].n_clusters, found.shape[1]), 0.0),
        )
        used = torch.bincount(nearest[number], minlength=len(centers)) > 0
        width = members[number].n_clusters
        centers, found = centers[used, :width].contiguous(), found[:, :width]
        labels = [
            nearest_centers(embed_rows(each, found.contiguous()), centers, limit)
            for each in own
        ]
        yield torch.cat(labels).int().cpu().numpy()
