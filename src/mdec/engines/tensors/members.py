"""Base clusterings of many members at once, Eqs. 8 to 13."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mdec.base.graphs import DENSE_SAMPLES
from mdec.base.kernels import ANGULAR, angular_coordinates
from mdec.base.members import DrawnRows
from mdec.engines.tensors import graphs
from mdec.engines.tensors.device import (
    begin_on_host,
    on_host,
    staging,
    to_host,
)
from mdec.engines.tensors.kmeans import best_labels
from mdec.engines.tensors.neighbors import Neighbors, list_neighbors
from mdec.ensemble.plan import Member, Plan
from mdec.numerics.affinity import TOLERANCE, component_roots, mix_roots, unit_rows
from mdec.numerics.eigen import block_width
from mdec.numerics.magnitude import at_safe_scale
from mdec.preparation.recipes import Versions

# Blocks of vectors are widened to a multiple of this, which moves them in whole words.
LANES = 16

# Numbers whose drawing keeps a thread of the host busy for some milliseconds; threads
# that do less get into the way of each other and of launches.
_THREAD_WORTH = 1_000_000


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
        device = next(iter(data.there.values())).device
        starts = Starts(plan, part, plan.n_clustered, device)
        lists = neighbor_lists(data, own_rows, plan, part, n_bytes // 4)
        graph = graphs.join_graph(lists, plan.n_clustered)
        whys = [each.errors.get(i) for each in lists for i in range(len(each.columns))]
        able = [number for number, why in enumerate(whys) if why is None]
        made: Iterator[NDArray[np.int32]] = iter(())
        if able:
            graph = graph.members(able) if any(whys) else graph
            own = [part[number] for number in able]
            embeddings = unit_rows(leading_vectors(graph, plan, own, starts))
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


class Starts:
    """What the solver starts from, drawn on the host while the device does something.

    The numbers depend on the vectors that are iterated, and so on the components of a
    graph, which are not known yet: they are drawn for graphs in one piece, and once
    more for the others.

    Parameters
    ----------
    plan : Plan
        What members share.
    members : sequence of Member
        Whose solvers start.
    order : int
        Vertices of each graph.
    device : torch.device
        Where the numbers go.
    """

    def __init__(
        self, plan: Plan, members: Sequence[Member], order: int, device: torch.device
    ) -> None:
        self.plan, self.order, self.device = plan, order, device
        self.rows = {member.index: row for row, member in enumerate(members)}
        self.widths = [block_width(each.n_clusters - 1, order - 1) for each in members]
        lanes = -(-max(self.widths) // LANES) * LANES
        self.blocks = staging((len(members), order, lanes), torch.float32, device)
        sizes = [order] * len(members)
        self.wait = self._begin(members, self.widths, sizes)

    def _begin(
        self, members: Sequence[Member], widths: Sequence[int], orders: Sequence[int]
    ) -> Callable[[], object]:
        def draw(number: int) -> None:
            block = self.blocks.numpy()[self.rows[members[number].index]]
            n, width = orders[number], widths[number]
            solver = self.plan.stream(members[number], "solver")
            block[:n, :width] = solver.standard_normal((n, width))
            block[n:], block[:, width:] = 0.0, 0.0

        n_numbers = len(members) * self.blocks[0].numel()
        n_threads = 1 + n_numbers // _THREAD_WORTH
        return begin_on_host(draw, range(len(members)), n_threads)

    def take(
        self, members: Sequence[Member], widths: Sequence[int], orders: Sequence[int]
    ) -> Tensor:
        """Return blocks of vectors of some members' own widths and orders."""
        self.wait()
        rows = [self.rows[member.index] for member in members]
        drawn = [(self.widths[row], self.order) for row in rows]
        own = zip(members, widths, orders, strict=True)
        again = [
            each for each, known in zip(own, drawn, strict=True) if each[1:] != known
        ]
        if again:
            self._begin(*zip(*again, strict=True))()
        there = self.blocks.to(self.device, non_blocking=True)
        return there if rows == list(range(len(there))) else there[rows]


def leading_vectors(
    graph: graphs.BatchGraph,
    plan: Plan,
    members: Sequence[Member],
    starts: Starts,
    orders: Sequence[int] | None = None,
) -> Tensor:
    """Return leading eigenvectors of normalised graphs, zeros beyond a member's own.

    Parameters
    ----------
    graph : BatchGraph
        The similarities of all members.
    plan : Plan
        What they share.
    members : sequence of Member
        Each wants as many vectors as it has clusters.
    starts : Starts
        What the solver starts from.
    orders : sequence of int, optional
        Only so many rows of each member's are vertices; None for all.

    Returns
    -------
    Tensor of shape (n_members, n_vertices, most)
        The eigenvectors of the components, which are known, and then those that are
        solved for. Of more components than vectors wanted only as many come out, mixed,
        and there is nothing to solve.
    """
    device, order = graph.data.device, graph.order
    sizes = [order] * len(members) if orders is None else list(orders)
    degrees, components = graph.degrees(), graph.components()
    row = torch.arange(components.numel(), device=device).view_as(components)
    real = row % order < torch.tensor(sizes, device=device)[:, None]
    ends = [member.n_clusters for member in members]
    # A component has the number of its first row.
    found = to_host(((components == row) & real).sum(dim=1)).tolist()
    widths = [
        block_width(end - n_known, n - n_known) if n_known < end else 0
        for end, n_known, n in zip(ends, found, sizes, strict=True)
    ]
    n_known = [min(each) for each in zip(found, ends, strict=True)]
    vectors = torch.zeros((len(members), order, max(ends)), device=device)
    roots = torch.where(degrees > 0.0, degrees, 1.0).sqrt() * real
    vectors[..., 0] = roots / torch.linalg.norm(roots, dim=1, keepdim=True)
    several = [i for i, n in enumerate(found) if n > 1]
    if several:
        here = to_host(degrees[several]), to_host(components[several])
        shape = len(several), order, max(n_known)
        known = staging(shape, torch.float32, device)

        def fill(place: int) -> None:
            i, own = several[place], known.numpy()[place]
            n, solver = sizes[i], plan.stream(members[i], "solver")
            numbers, roots = component_roots(*(each[place, :n] for each in here))
            own[:] = 0.0
            if widths[i]:
                own[np.arange(n), numbers] = roots
            else:
                own[:n, : ends[i]] = mix_roots(numbers, roots, ends[i], solver)

        on_host(fill, range(len(several)), 1 + known.numel() // _THREAD_WORTH)
        there = known.to(device, non_blocking=True)
        vectors[several, :, : known.shape[2]] = there
    places = [i for i, width in enumerate(widths) if width]
    if places:
        affinity = graphs.normalized_graph(graph).members(places)
        wanted = [ends[i] - n_known[i] for i in places]
        widths, sizes = ([each[i] for i in places] for each in (widths, sizes))
        solved = graphs.iterated_leading(
            replace(affinity, data=affinity.data.to(vectors.dtype)),
            starts.take([members[i] for i in places], widths, sizes),
            vectors[places, :, : max(n_known[i] for i in places)],
            widths,
            wanted,
            TOLERANCE,
        )
        for i, width, new in zip(places, wanted, solved, strict=True):
            vectors[i, :, n_known[i] : ends[i]] = new[:, :width]
    return vectors
