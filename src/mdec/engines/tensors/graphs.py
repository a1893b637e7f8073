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


def listed_neighbors(
    rows: Tensor,
    kernel: str,
    n_neighbors: int,
    mu: float,
    *,
    dtype: torch.dtype,
    tile: int,
    limit: int,
) -> tuple[Tensor, Tensor]:
    """Return the neighbours that each row keeps, Eqs. 8 and 9, and their similarities.

    The rows are the samples in a member's subspace, of unit length for angular kernels.
    Both results have shape (n_samples, n_neighbors), the similarities in float64.

    All pairs are looked at in `dtype`, `tile` rows at a time, or in float64 where that
    leaves many rows open; somewhat more than k are kept, and their distances are
    computed from differences, `limit` numbers at a time. Where rounding or ties could
    have hidden one of the k best, all distances of the row are computed so. The k best
    stay, the first of equals.
    """
    count = min(n_neighbors + SPARE, len(rows) - 1)
    if rows.shape[1] > FLOAT32_FEATURES:
        dtype, tile = torch.float64, max(1, tile // 2)
    distances = TiledDistances.of(rows, dtype, tile)
    columns, exact = _in_order(rows, distances.smallest(count), limit)
    unsettled = _unsettled(exact, distances, n_neighbors)
    if dtype != torch.float64 and unsettled.sum() > MAX_OPEN_SHARE * len(rows):
        distances = TiledDistances.of(rows, torch.float64, max(1, tile // 2))
        columns, exact = _in_order(rows, distances.smallest(count), limit)
        unsettled = _unsettled(exact, distances, n_neighbors)
    found = columns, exact
    columns, exact = _settled(rows, found, unsettled, lambda near, _: near, limit)
    if kernel in ANGULAR:
        nearest, similarity = _best(columns, -exact, n_neighbors)
        return nearest, angular_similarity(-similarity)
    if kernel == "scaled_exponential":
        exact = exact.sqrt()
    ordered = exact.sort(dim=1).values[:, :n_neighbors]
    rho = mean_neighbor_distance(ordered.mean(dim=1))
    if kernel == "scaled_exponential":
        nearest, negative = _best(columns, -exact, n_neighbors)
        scale = scaling_term(-negative, rho[:, None], rho[nearest])
        return nearest, SIMILARITY[kernel](-negative, scale, mu)
    short = (rho * distances.scale).to(distances.left.dtype)

    def unlikeness(block: Tensor, near: slice) -> Tensor:
        return _gaussian_unlikeness(block, short[near], short, mu)

    def similarity_of(near: Tensor, own: Tensor, others: Tensor) -> Tensor:
        return SIMILARITY[kernel](near, scaling_term(near, own, others), mu)

    found = _in_order(rows, distances.smallest(count, unlikeness), limit)
    unsettled = _unsettled_gaussian(*found, distances, rho, n_neighbors, mu)
    columns, exact = _settled(
        rows,
        found,
        unsettled,
        lambda near, chosen: -similarity_of(near, rho[chosen, None], rho),
        limit,
    )
    return _best(columns, similarity_of(exact, rho[:, None], rho[columns]), n_neighbors)


def _unsettled(exact: Tensor, distances: TiledDistances, n_neighbors: int) -> Tensor:
    """Tell which rows' nearest others rounding or ties could have hidden."""
    kth = exact.kthvalue(n_neighbors, dim=1).values
    return kth >= distances.unseen(exact)


def _unsettled_gaussian(
    columns: Tensor,
    exact: Tensor,
    distances: TiledDistances,
    rho: Tensor,
    n_neighbors: int,
    mu: float,
) -> Tensor:
    r"""Tell which rows' most similar others rounding or ties could have hidden.

    Notes
    -----
    With :math:`s = D + \rho_i + \rho_j` the unlikeness changes with the distance by
    at most :math:`(1 + 2.25 / \mu^2) / s`; rounding moves a distance by `slack` and a
    share of itself, and its own terms by some units of the last place.
    """
    if exact.shape[1] == len(rho) - 1:
        return torch.zeros_like(rho, dtype=torch.bool)
    unlike = _gaussian_unlikeness(
        exact * distances.scale,
        rho * distances.scale,
        rho[columns] * distances.scale,
        mu,
    )
    kth = unlike.kthvalue(n_neighbors, dim=1).values
    steep = 1.0 + 2.25 / mu**2
    moved = steep * (distances.slack / rho + 2.0 * distances.share)
    place = torch.finfo(distances.left.dtype).eps
    own = 8.0 * place * (unlike.abs().amax(dim=1) + 4.5 / mu**2)
    return kth >= unlike.amax(dim=1) - 2.0 * (moved + own)


def _settled(
    rows: Tensor,
    found: tuple[Tensor, Tensor],
    unsettled: Tensor,
    order: Callable[[Tensor, Tensor], Tensor],
    limit: int,
) -> tuple[Tensor, Tensor]:
    """Choose the columns of unsettled rows from all, by true distances, in place.

    `order` maps the distances of chosen rows to what is to be small; the first of
    equals are taken.
    """
    columns, exact = found
    chosen, done = unsettled.nonzero()[:, 0], 0
    for near in distances_to_all(rows, chosen, limit):
        some = chosen[done : done + len(near)]
        own = torch.arange(len(some), device=some.device)
        ranked = order(near, some).index_put_(
            (own, some), torch.full_like(near[:, 0], torch.inf)
        )
        first = ranked.sort(dim=1, stable=True).indices[:, : columns.shape[1]]
        columns[some] = first.sort(dim=1).values
        exact[some] = near.gather(1, columns[some])
        done += len(near)
    return columns, exact


def _gaussian_unlikeness(
    distance: Tensor, rho_i: Tensor, rho_j: Tensor, mu: float
) -> Tensor:
    r"""Return what orders pairs as the scaled Gaussian similarity does, reversed.

    Writes over the distances, since tiles are large and this is most of their traffic.

    Notes
    -----
    With :math:`s = 3 \varepsilon_{ij}` the similarity is, up to a factor,
    :math:`\exp(-\frac{9}{2 \mu^2} (D/s)^2) / s`, and this is minus its logarithm.
    """
    scale = distance + rho_j
    scale += rho_i[:, None]
    distance /= scale
    return scale.log_().addcmul_(distance, distance, value=4.5 / mu**2)


def _in_order(rows: Tensor, columns: Tensor, limit: int) -> tuple[Tensor, Tensor]:
    """Sort listed columns, so that the first of equals wins, and add distances."""
    columns = columns.sort(dim=1).values
    return columns, pair_distances(rows, columns, limit)


def _best(columns: Tensor, order: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Keep the columns with the largest order, the first of equals."""
    ordered = order.sort(dim=1, descending=True, stable=True)
    kept = ordered.indices[:, :count]
    return columns.gather(1, kept), ordered.values[:, :count]


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
