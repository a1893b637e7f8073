"""Similarity graphs of many members, side by side in one sparse matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mdec.base.graphs import MAX_OPEN_SHARE
from mdec.base.kernels import (
    ANGULAR,
    SIMILARITY,
    angular_similarity,
    mean_neighbor_distance,
    scaling_term,
)
from mdec.engines.tensors.neighbors import (
    FLOAT32_FEATURES,
    SPARE,
    TiledDistances,
    across_members,
    distances_to_all,
    pair_distances,
)


@dataclass(frozen=True)
class BatchGraph:
    """Sparse symmetric matrices of equal order, in the blocks of a diagonal.

    The CSR arrays are those of the whole matrix of `n_members` blocks of `order` rows.
    """

    indptr: Tensor
    indices: Tensor
    data: Tensor
    n_members: int
    order: int

    def rows(self) -> Tensor:
        """Return the row of every entry."""
        counts = self.indptr.diff()
        return torch.repeat_interleave(counts, output_size=self.indices.numel())

    def with_data(self, data: Tensor) -> BatchGraph:
        """Return the same pattern with other entries."""
        return BatchGraph(self.indptr, self.indices, data, self.n_members, self.order)

    def members(self, chosen: list[int]) -> BatchGraph:
        """Return some of the blocks."""
        ends = self.indptr[:: self.order].tolist()
        pointers, indices, data = [self.indptr[:1]], [], []
        n_entries = 0
        for position, member in enumerate(chosen):
            start, stop = ends[member], ends[member + 1]
            first = member * self.order
            within = self.indptr[first + 1 : first + self.order + 1]
            pointers.append(within - start + n_entries)
            indices.append(self.indices[start:stop] + (position - member) * self.order)
            data.append(self.data[start:stop])
            n_entries += stop - start
        arrays = torch.cat(pointers), torch.cat(indices), torch.cat(data)
        return BatchGraph(*arrays, len(chosen), self.order)

    def __call__(self, block: Tensor) -> Tensor:
        """Return the matrices times blocks of vectors, (n_members, order, width)."""
        # A sum over bags adds in the order of the entries, every time; products with
        # PyTorch's own sparse matrices do not on a card.
        flat = torch.nn.functional.embedding_bag(
            self.indices,
            block.reshape(self.n_members * self.order, -1),
            self.indptr,
            mode="sum",
            per_sample_weights=self.data,
            include_last_offset=True,
        )
        return flat.reshape(self.n_members, self.order, -1)

    def step(
        self, block: Tensor, scale: Tensor, shift: Tensor, before: Tensor
    ) -> Tensor:
        """Return ``scale * (A @ block) + shift * block - before``."""
        image = self(block)
        image *= scale
        image.addcmul_(block, shift.expand_as(block))
        image -= before
        return image

    def degrees(self) -> Tensor:
        """Return the sums of rows, (n_members, order)."""
        ones = self.data.new_ones((self.n_members, self.order, 1))
        return self(ones)[..., 0]

    def components(self) -> Tensor:
        """Return a number for each row, (n_members, order), equal in a component.

        Each row takes the least number among its neighbours, then that number's own,
        until nothing changes.
        """
        rows, columns = self.rows(), self.indices.long()
        label = torch.arange(self.n_members * self.order, device=rows.device)
        while True:
            lower = label.scatter_reduce(0, rows, label[columns], "amin")
            lower = lower[lower]
            if torch.equal(lower, label):
                return label.reshape(self.n_members, self.order)
            label = lower


@dataclass(frozen=True)
class Drawn:
    """What members draw for their graphs: k, (n_members,), and the kernel's width."""

    n_neighbors: list[int]
    mu: list[float]

    def some(self, members: list[int]) -> Drawn:
        """Return what some members draw."""
        return Drawn(
            [self.n_neighbors[each] for each in members],
            [self.mu[each] for each in members],
        )


Listed = tuple[Tensor, Tensor] | ValueError


def listed_neighbors(
    rows: Tensor,
    kernel: str,
    drawn: Drawn,
    *,
    dtype: torch.dtype,
    tile: int,
    limit: int,
) -> list[Listed]:
    """Return the neighbours that each row keeps, Eqs. 8 and 9, and their similarities.

    The rows, (n_members, n_samples, n_features), are the samples in the members'
    subspaces, of unit length for angular kernels. Both results of a member have shape
    (n_samples, n_neighbors), the similarities in float64; an error stands for a member
    that has no graph.

    All pairs are looked at in `dtype`, `tile` rows at a time, or in float64 where that
    leaves many rows open; somewhat more than k are kept, and their distances are
    computed from differences, `limit` numbers at a time. Where rounding or ties could
    have hidden one of the k best, all distances of the row are computed so. The k best
    stay, the first of equals.
    """
    if rows.shape[2] > FLOAT32_FEATURES and dtype != torch.float64:
        dtype, tile = torch.float64, max(1, tile // 2)
    n_members, n_samples, _ = rows.shape
    most = max(drawn.n_neighbors)
    count = min(most + SPARE, n_samples - 1)
    distances = TiledDistances.of(rows, dtype, tile)
    columns, exact = _in_order(rows, distances.smallest(count), limit)
    unsettled = _kth(exact, drawn) >= distances.unseen(exact)
    if dtype != torch.float64:
        n_open = unsettled.sum(dim=1).tolist()
        many = [i for i, each in enumerate(n_open) if each > MAX_OPEN_SHARE * n_samples]
        if many:
            few = [i for i in range(n_members) if i not in many]
            return _in_two(rows, kernel, drawn, (few, many), dtype, tile, limit)
    columns, exact = _settled(
        rows, (columns, exact), unsettled, lambda near, *_: near, limit
    )
    if kernel in ANGULAR:
        found = _best(columns, -exact, most)
        return _cut(found[0], angular_similarity(-found[1]), drawn)
    if kernel == "scaled_exponential":
        exact = exact.sqrt()
    rho, errors = _neighbor_distances(exact, drawn)
    mu = torch.tensor(drawn.mu, dtype=torch.float64, device=rows.device)[:, None]

    def similarity_of(near: Tensor, own: Tensor, others: Tensor, mu: Tensor) -> Tensor:
        return SIMILARITY[kernel](near, scaling_term(near, own, others), mu)

    def of_columns(columns: Tensor, near: Tensor) -> Tensor:
        others = rho.flatten()[across_members(columns)]
        return similarity_of(near, rho[..., None], others, mu[..., None])

    if kernel == "scaled_exponential":
        nearest, negative = _best(columns, -exact, most)
        return _cut(nearest, of_columns(nearest, -negative), drawn, errors)
    short = (rho * distances.scale[:, None]).to(dtype)
    narrow = mu.to(dtype)[..., None]

    def unlikeness(block: Tensor, near: slice) -> Tensor:
        return _gaussian_unlikeness(block, short[:, near, None], short[:, None], narrow)

    def unlike(near: Tensor, member: Tensor, row: Tensor) -> Tensor:
        return -similarity_of(near, rho[member, row, None], rho[member], mu[member])

    columns, exact = _in_order(rows, distances.smallest(count, unlikeness), limit)
    unsettled = _unsettled_gaussian(columns, exact, distances, rho, drawn, mu)
    columns, exact = _settled(rows, (columns, exact), unsettled, unlike, limit)
    return _cut(*_best(columns, of_columns(columns, exact), most), drawn, errors)


def _in_two(
    rows: Tensor,
    kernel: str,
    drawn: Drawn,
    parts: tuple[list[int], list[int]],
    dtype: torch.dtype,
    tile: int,
    limit: int,
) -> list[Listed]:
    """List the neighbours of some members again, of the last ones in float64."""
    found: dict[int, Listed] = {}
    precisions = (dtype, tile), (torch.float64, max(1, tile // 2))
    for members, (kind, height) in zip(parts, precisions, strict=True):
        if members:
            listed = listed_neighbors(
                rows[members],
                kernel,
                drawn.some(members),
                dtype=kind,
                tile=height,
                limit=limit,
            )
            found |= zip(members, listed, strict=True)
    return [found[member] for member in range(len(rows))]


def _kth(ordered: Tensor, drawn: Drawn) -> Tensor:
    """Return each row's k-th smallest entry, (n_members, n_samples)."""
    ordered = ordered.sort(dim=2).values
    last = torch.tensor(drawn.n_neighbors, device=ordered.device) - 1
    place = last[:, None, None].expand(-1, ordered.shape[1], 1)
    return ordered.gather(2, place)[..., 0]


def _neighbor_distances(
    exact: Tensor, drawn: Drawn
) -> tuple[Tensor, dict[int, ValueError]]:
    """Return the neighbour distances of each member, Eq. 2, or why it has none."""
    counts = torch.tensor(drawn.n_neighbors, device=exact.device)[:, None]
    nearest = torch.arange(exact.shape[2], device=exact.device) < counts[..., None]
    means = torch.where(nearest, exact.sort(dim=2).values, 0.0).sum(dim=2) / counts
    errors = {}
    for member, zeros in enumerate((means == 0.0).any(dim=1).tolist()):
        # Without copies among the samples there is nothing to put a floor under.
        if zeros:
            try:
                means[member] = mean_neighbor_distance(means[member])
            except ValueError as error:
                means[member], errors[member] = 1.0, error
    return means, errors


def _cut(
    nearest: Tensor,
    similarity: Tensor,
    drawn: Drawn,
    errors: dict[int, ValueError] | None = None,
) -> list[Listed]:
    """Leave each member its own number of neighbours."""
    errors = errors or {}
    return [
        errors.get(member) or (nearest[member, :, :k], similarity[member, :, :k])
        for member, k in enumerate(drawn.n_neighbors)
    ]


def _unsettled_gaussian(
    columns: Tensor,
    exact: Tensor,
    distances: TiledDistances,
    rho: Tensor,
    drawn: Drawn,
    mu: Tensor,
) -> Tensor:
    r"""Tell which rows' most similar others rounding or ties could have hidden.

    Notes
    -----
    With :math:`s = D + \rho_i + \rho_j` the unlikeness changes with the distance by
    at most :math:`(1 + 2.25 / \mu^2) / s`; rounding moves a distance by `slack` and a
    share of itself, and its own terms by some units of the last place.
    """
    if exact.shape[2] == rho.shape[1] - 1:
        return torch.zeros_like(rho, dtype=torch.bool)
    scale = distances.scale[:, None, None]
    unlike = _gaussian_unlikeness(
        exact * scale,
        rho[..., None] * scale,
        rho.flatten()[across_members(columns)] * scale,
        mu[..., None],
    )
    steep = 1.0 + 2.25 / mu**2
    moved = steep * (distances.slack / rho + 2.0 * distances.share)
    place = torch.finfo(distances.left.dtype).eps
    own = 8.0 * place * (unlike.abs().amax(dim=2) + 4.5 / mu**2)
    return _kth(unlike, drawn) >= unlike.amax(dim=2) - 2.0 * (moved + own)


def _settled(
    rows: Tensor,
    found: tuple[Tensor, Tensor],
    unsettled: Tensor,
    order: Callable[[Tensor, Tensor, Tensor], Tensor],
    limit: int,
) -> tuple[Tensor, Tensor]:
    """Choose the columns of unsettled rows from all, by true distances, in place.

    `order` maps the distances of chosen rows, with their members and places, to what
    is to be small; the first of equals are taken.
    """
    columns, exact = found
    chosen, done = unsettled.nonzero(), 0
    for near in distances_to_all(rows, chosen, limit):
        member, row = chosen[done : done + len(near)].T
        own = torch.arange(len(near), device=near.device)
        ranked = order(near, member, row).index_put_(
            (own, row), torch.full_like(near[:, 0], torch.inf)
        )
        first = ranked.sort(dim=1, stable=True).indices[:, : columns.shape[2]]
        columns[member, row] = first.sort(dim=1).values
        exact[member, row] = near.gather(1, columns[member, row])
        done += len(near)
    return columns, exact


def _gaussian_unlikeness(
    distance: Tensor, rho_i: Tensor, rho_j: Tensor, mu: Tensor
) -> Tensor:
    r"""Return what orders pairs as the scaled Gaussian similarity does, reversed.

    Writes over the distances, since tiles are large and this is most of their traffic.

    Notes
    -----
    With the width :math:`s = \frac{\sqrt 2}{3} \mu (D + \rho_i + \rho_j)` the
    similarity is, up to a factor, :math:`\exp(-(D/s)^2) / s`, and this is minus its
    logarithm.
    """
    width = 2.0**0.5 / 3.0 * mu
    scale = torch.addcmul(width * rho_j, distance, width)
    scale += width * rho_i
    distance /= scale
    return scale.log_().addcmul_(distance, distance)


def _in_order(rows: Tensor, columns: Tensor, limit: int) -> tuple[Tensor, Tensor]:
    """Sort listed columns, so that the first of equals wins, and add distances."""
    columns = columns.sort(dim=2).values
    return columns, pair_distances(rows, columns, limit)


def _best(columns: Tensor, order: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Keep the columns with the largest order, the first of equals."""
    ordered = order.sort(dim=2, descending=True, stable=True)
    kept = ordered.indices[..., :count]
    return columns.gather(2, kept), ordered.values[..., :count]


def joined_graph(listed: list[tuple[Tensor, Tensor]], order: int) -> BatchGraph:
    """Put members' neighbour lists side by side, an edge if either end lists it.

    Both ends of an edge have computed the same similarity, so it does not matter whose
    is kept.
    """
    rows, columns, data = [], [], []
    for member, (near, similarity) in enumerate(listed):
        own = torch.arange(order, device=near.device) + member * order
        rows.append(own.repeat_interleave(near.shape[1]))
        columns.append(near.flatten() + member * order)
        data.append(similarity.flatten())
    first, second = torch.cat(rows), torch.cat(columns)
    side = len(listed) * order
    keys = torch.cat([first * side + second, second * side + first])
    keys, origin = keys.sort()
    fresh = torch.ones_like(keys, dtype=torch.bool)
    fresh[1:] = keys[1:] != keys[:-1]
    keys = keys[fresh]
    values = torch.cat(data + data)[origin[fresh]]
    starts = torch.arange(side + 1, device=keys.device) * side
    pointers = torch.searchsorted(keys, starts)
    return BatchGraph(pointers.int(), (keys % side).int(), values, len(listed), order)
