"""The neighbours of the rows of many members, one tile of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from mdec.base import kernels
from mdec.base.graphs import DENSE_SAMPLES, MAX_OPEN_SHARE
from mdec.engines.tensors import fused
from mdec.engines.tensors.device import full_precision, has_fast_tensor_cores
from mdec.ensemble.plan import Member
from mdec.numerics.digits import nine_digits
from mdec.numerics.magnitude import to_power
from mdec.numerics.neighbors import TOP, distance_factors

# Above this many features errors of one sign may add up, as with few distinct values,
# so that float32 is of no use.
FLOAT32_FEATURES = 8192

# From this many samples on it pays to try tensor cores first.
TENSOR_CORE_SAMPLES = 4000

# Rounding may put a neighbour this many places too late; the places are settled again
# by exact distances.
SPARE = 8

# Kernels of a GPU select no more entries of a row than this.
MOST_SELECTED = 64


@dataclass(frozen=True)
class TiledDistances:
    """Rounded squared distances of the rows of many members, some rows at a time.

    The distances are the products of `left` and `right`, (n_members, n_samples,
    n_features + 2), over `scale`, a power of two for each member. Rounding may add to
    or take from a distance the `share` of both norms; `slack`, (n_members, n_samples),
    is the row's own part of that. `tile` rows of each member are looked at together.
    """

    left: Tensor
    right: Tensor
    scale: Tensor
    share: float
    slack: Tensor
    tile: int
    precision: str

    @classmethod
    def of(
        cls, rows: Tensor, dtype: torch.dtype, tile: int, precision: str
    ) -> TiledDistances:
        """Centre each member's rows, bring them to one scale and round to `dtype`.

        Products of float32 are made in a `precision` of PyTorch: "high" takes tensor
        cores, which see eleven digits of each number, so factors are split in two.
        """
        centred = rows - rows.mean(dim=1, keepdim=True, dtype=torch.float64)
        norms = centred.square().sum(dim=2)
        factors = [to_power(each, TOP) for each in norms.amax(dim=1).sqrt().tolist()]
        factor = torch.tensor(factors, dtype=torch.float64, device=rows.device)
        scale = factor * factor
        left, right = distance_factors(
            (centred * factor[:, None, None]).to(dtype),
            (norms * scale[:, None]).to(dtype),
        )
        limits = torch.finfo(dtype)
        # Not the worst case, in which all errors have one sign, but several times what
        # errors of random signs add up to.
        n_features = rows.shape[2]
        share = (2.0 * n_features**0.5 + 8.0) * 0.5 * limits.eps
        if precision == "high":
            left = split_digits(left, is_left=True)
            right = split_digits(right, is_left=False)
            # Tensor cores cut sums off, after each eight products.
            share += (0.125 * left.shape[2] + 16.0) * limits.eps
        slack = 3.0 * share * norms + n_features * limits.tiny / scale[:, None]
        return cls(left, right, scale, share, slack, tile, precision)

    def unseen(self, exact: Tensor) -> Tensor:
        """Return what rows not among the smallest are away at least; infinity if none.

        From the true distances of the columns that `smallest` returned, (n_members,
        n_samples, count). The bounds are those of `BlockedDistances` on the CPU.
        """
        last = exact.amax(dim=2)
        if exact.shape[2] == last.shape[1] - 1:
            return torch.full_like(last, torch.inf)
        rounded = last * (1.0 - 2.0 * self.share) - self.slack
        return ((rounded - self.slack) / (1.0 + 2.0 * self.share)).clamp_(min=0.0)

    @cached_property
    def _whole(self) -> Tensor:
        return self._products(slice(None))

    def _products(self, rows: slice) -> Tensor:
        with full_precision(self.precision):
            return self.left[:, rows] @ self.right.mT

    def smallest(
        self,
        count: int,
        transform: Callable[[Tensor, slice], Tensor] = lambda distances, _: distances,
    ) -> Tensor:
        """Return the columns of each row with the smallest transformed distances.

        The result is (n_members, n_samples, count); the columns are in no order, and
        none is the row itself. `transform` maps a tile of distances and its rows to
        what is to be small; it may write over the distances, if nothing is asked of
        them afterwards.
        """
        n_members, n_samples = self.slack.shape
        columns = []
        for start in range(0, n_samples, self.tile):
            rows = slice(start, min(start + self.tile, n_samples))
            # All of them are kept for a second use.
            all_at_once = self.tile >= n_samples
            distances = self._whole if all_at_once else self._products(rows)
            block = transform(distances, rows)
            own = torch.arange(start, rows.stop, device=block.device)
            block[:, own - start, own] = torch.inf
            found = smallest_in_rows(block.flatten(0, 1), count)
            columns.append(found.reshape(n_members, -1, count))
        return torch.cat(columns, dim=1)


def split_digits(factor: Tensor, *, is_left: bool) -> Tensor:
    """Return a longer factor of the same products, in numbers of eleven binary digits.

    Each number of float32 is a sum of two such; the products of the two smaller ones
    are left out.
    """
    # Rounded, so that the last 13 of 24 digits are zeros.
    high = (factor.view(torch.int32) + 2**12 & -(2**13)).view(torch.float32)
    low = factor - high
    parts = [high, high, low] if is_left else [high, low, high]
    return pad(torch.cat(parts, dim=-1), (0, -3 * factor.shape[-1] % 8))


def smallest_in_rows(block: Tensor, count: int) -> Tensor:
    """Return the columns of the smallest entries of each row, in no order."""
    if count <= MOST_SELECTED and fused.has_kernels(block):
        return fused.smallest(block, count)
    return torch.topk(block, count, largest=False, sorted=False).indices


def pair_distances(rows: Tensor, columns: Tensor, limit: int) -> Tensor:
    """Return squared distances between rows and listed others, by differences.

    Each row of a member, (n_members, n_samples, n_features), is compared with the rows
    of its `columns`, (n_members, n_samples, count); `limit` numbers are stored at a
    time. The result is in float64.
    """
    flat, listed = rows.flatten(0, 1), across_members(columns).flatten(0, 1)
    squares = pair_squares(flat, flat, listed, limit, narrow=_is_narrow(rows))
    distances: Tensor = nine_digits(squares.reshape(columns.shape))
    return distances


def _is_narrow(rows: Tensor) -> bool:
    """Tell whether the CPU subtracts such rows as they are, and not in float64."""
    return rows.is_floating_point() and rows.shape[1] > DENSE_SAMPLES


def pair_squares(
    rows: Tensor, others: Tensor, columns: Tensor, limit: int, *, narrow: bool = False
) -> Tensor:
    """Return the squared distances of rows to listed others, as they are, in float64.

    Rows are (n_rows, n_features), the others (n_others, n_features), and the columns,
    (n_rows, count), places among the others. If `narrow`, their differences have the
    precision of the rows.
    """
    if fused.has_kernels(rows) and len(rows):
        return fused.pair_squares(rows, others, columns, narrow=narrow)
    squares = torch.empty(columns.shape, dtype=torch.float64, device=rows.device)
    height = max(1, limit // (columns.shape[1] * rows.shape[1]))
    for start in range(0, len(rows), height):
        near = slice(start, start + height)
        difference = others[columns[near]]
        difference = difference if narrow else difference.to(torch.float64)
        difference -= rows[near, None]
        squares[near] = difference.to(torch.float64).square_().sum(dim=2)
    return squares


def across_members(columns: Tensor) -> Tensor:
    """Return the places of columns, (n_members, n_samples, count), in all rows."""
    n_members, n_samples, _ = columns.shape
    first = n_samples * torch.arange(n_members, device=columns.device)
    return columns + first[:, None, None]


def distances_to_all(rows: Tensor, chosen: Tensor, limit: int) -> Iterator[Tensor]:
    """Yield squared distances of chosen rows to their member's, by differences.

    The rows are (n_members, n_samples, n_features); `chosen`, (n_chosen, 2), are
    members and rows; `limit` numbers are stored at a time. The distances come in the
    order of `chosen`, (some, n_samples), in float64.
    """
    height, narrow = max(1, limit // rows[0].numel()), _is_narrow(rows)
    for start in range(0, len(chosen), height):
        member, row = chosen[start : start + height].T
        difference = rows[member]
        difference = difference if narrow else difference.to(torch.float64)
        difference -= rows[member, row, None]
        yield nine_digits(difference.to(torch.float64).square_().sum(dim=2))


@dataclass(frozen=True)
class Neighbors:
    """The neighbours that rows of several members keep, and their similarities.

    Both are (n_members, n_samples, most); the similarities, in float64, are zero beyond
    the number of a member's own neighbours, and everywhere for members that have no
    graph, for which `errors` tells why.
    """

    columns: Tensor
    similarity: Tensor
    errors: dict[int, ValueError]


def list_neighbors(
    rows: Tensor,
    kernel: str,
    members: Sequence[Member],
    *,
    dtype: torch.dtype,
    tile: int,
    limit: int,
    precision: str = "high",
) -> Neighbors:
    """Return the neighbours that each row keeps, Eqs. 8 and 9, and their similarities.

    The rows, (n_members, n_samples, n_features), are the samples in the members'
    subspaces, of unit length for angular kernels.

    All pairs are looked at in `dtype`, `tile` rows at a time, first by tensor cores
    where they are fast; without them where that leaves many rows open, and then in
    float64.
    Somewhat more than k are kept, and their distances are computed from differences,
    `limit` numbers at a time. Where rounding or ties could have hidden one of the k
    best, all distances of the row are computed so. The k best stay, the first of
    equals.
    """
    if rows.shape[2] > FLOAT32_FEATURES and dtype == torch.float32:
        dtype, tile = torch.float64, max(1, tile // 2)
    few = rows.shape[1] < TENSOR_CORE_SAMPLES
    if dtype == torch.float64 or few or not has_fast_tensor_cores(rows.device):
        precision = "highest"
    distances = TiledDistances.of(rows, dtype, tile, precision)
    search = _Search(rows, members, distances, limit)
    columns, exact = search.candidates()
    unsettled = search.kth(exact) >= search.distances.unseen(exact)
    many = unsettled.sum(dim=1) > MAX_OPEN_SHARE * rows.shape[1]
    if dtype == torch.float32 and bool(many.any()):
        if precision == "highest":
            dtype, tile = torch.float64, max(1, tile // 2)
        how = partial(list_neighbors, dtype=dtype, tile=tile, limit=limit)
        return how(rows, kernel, members, precision="highest")
    columns, exact = search.settle(columns, exact, unsettled, lambda near, *_: near)
    if kernel in kernels.ANGULAR:
        nearest, negative = search.best(columns, -exact)
        return search.cut(nearest, kernels.angular_similarity(-negative))
    return _scaled_neighbors(search, kernel, columns, exact)


def _scaled_neighbors(
    search: _Search, kernel: str, columns: Tensor, exact: Tensor
) -> Neighbors:
    """Keep the most similar by a scaled kernel, given the nearest by exact distances.

    These are the nearest themselves for Eq. 1; the Gaussian's are searched again.
    """
    distances, mu = search.distances, search.mu
    exact = kernels.as_kernel_takes_them(exact, kernel)
    rho = search.neighbor_distances(exact)
    similarity = partial(kernels.scaled_similarity, kernel)

    def of_columns(columns: Tensor, near: Tensor) -> Tensor:
        others = rho.flatten()[across_members(columns)]
        return similarity(near, rho[..., None], others, mu[..., None])

    if kernel == "scaled_exponential":
        nearest, negative = search.best(columns, -exact)
        return search.cut(nearest, of_columns(nearest, -negative))
    dtype = distances.left.dtype
    short = (rho * distances.scale[:, None]).to(dtype)
    narrow = mu.to(dtype)[..., None]

    def unlikeness(block: Tensor, near: slice) -> Tensor:
        factors = short[:, near, None], short[:, None], narrow
        if fused.has_kernels(block):
            return fused.gaussian_unlikeness(block, *factors[:2], _width(narrow))
        return _gaussian_unlikeness(block, *factors)

    def unlike(near: Tensor, member: Tensor, row: Tensor) -> Tensor:
        return -similarity(near, rho[member, row, None], rho[member], mu[member])

    columns, exact = search.candidates(unlikeness)
    unsettled = search.unsettled_gaussian(columns, exact, rho)
    columns, exact = search.settle(columns, exact, unsettled, unlike)
    return search.cut(*search.best(columns, of_columns(columns, exact)))


class _Search:
    """The rows of several members, and what their neighbours are searched by."""

    def __init__(
        self,
        rows: Tensor,
        members: Sequence[Member],
        distances: TiledDistances,
        limit: int,
    ) -> None:
        self.rows, self.distances, self.limit = rows, distances, limit
        self.errors: dict[int, ValueError] = {}
        self.counts = [each.n_neighbors for each in members]
        self.k = torch.tensor(self.counts, device=rows.device)[:, None]
        widths = [each.mu for each in members]
        self.mu = torch.tensor(widths, dtype=torch.float64, device=rows.device)[:, None]

    def candidates(self, *transform: Callable[..., Tensor]) -> tuple[Tensor, Tensor]:
        """Return somewhat more columns than k, in order, and their exact distances."""
        count = min(max(self.counts) + SPARE, self.rows.shape[1] - 1)
        # In order, so that the first of equals wins.
        columns = self.distances.smallest(count, *transform).sort(dim=2).values
        return columns, pair_distances(self.rows, columns, self.limit)

    def kth(self, values: Tensor) -> Tensor:
        """Return each row's k-th smallest entry, (n_members, n_samples)."""
        place = (self.k - 1)[..., None].expand(-1, values.shape[1], 1)
        return values.sort(dim=2).values.gather(2, place)[..., 0]

    def neighbor_distances(self, exact: Tensor) -> Tensor:
        """Return the neighbour distances of each member, Eq. 2; 1 where it has none."""
        nearest = torch.arange(exact.shape[2], device=exact.device) < self.k[..., None]
        means = torch.where(nearest, exact.sort(dim=2).values, 0.0).sum(dim=2) / self.k
        for member, zeros in enumerate((means == 0.0).any(dim=1).tolist()):
            # Without copies among the samples there is nothing to put a floor under.
            if zeros:
                try:
                    means[member] = kernels.mean_neighbor_distance(means[member])
                except ValueError as error:
                    means[member], self.errors[member] = 1.0, error
        return means

    def unsettled_gaussian(self, columns: Tensor, exact: Tensor, rho: Tensor) -> Tensor:
        r"""Tell which rows' most similar others rounding or ties could have hidden.

        With :math:`s = D + \rho_i + \rho_j` the unlikeness changes with the distance
        by at most :math:`(1 + 2.25 / \mu^2) / s`; rounding moves a distance by `slack`
        and a share of itself, and its own terms by some units of the last place.
        """
        if exact.shape[2] == rho.shape[1] - 1:
            return torch.zeros_like(rho, dtype=torch.bool)
        distances, mu = self.distances, self.mu
        scale = distances.scale[:, None, None]
        others = rho.flatten()[across_members(columns)]
        unlike = _gaussian_unlikeness(
            exact * scale, rho[..., None] * scale, others * scale, mu[..., None]
        )
        steep = 1.0 + 2.25 / mu**2
        moved = steep * (distances.slack / rho + 2.0 * distances.share)
        place = torch.finfo(distances.left.dtype).eps
        own = 8.0 * place * (unlike.abs().amax(dim=2) + 4.5 / mu**2)
        return self.kth(unlike) >= unlike.amax(dim=2) - 2.0 * (moved + own)

    def settle(
        self,
        columns: Tensor,
        exact: Tensor,
        unsettled: Tensor,
        order: Callable[[Tensor, Tensor, Tensor], Tensor],
    ) -> tuple[Tensor, Tensor]:
        """Choose the columns of unsettled rows from all, by true distances, in place.

        `order` maps the distances of chosen rows, with their members and places, to
        what is to be small; the first of equals are taken.
        """
        chosen, done = unsettled.nonzero(), 0
        for near in distances_to_all(self.rows, chosen, self.limit):
            member, row = chosen[done : done + len(near)].T
            own = torch.arange(len(near), device=near.device)
            ranks = order(near, member, row).index_put_(
                (own, row), torch.full_like(near[:, 0], torch.inf)
            )
            first = ranks.sort(dim=1, stable=True).indices[:, : columns.shape[2]]
            columns[member, row] = first.sort(dim=1).values
            exact[member, row] = near.gather(1, columns[member, row])
            done += len(near)
        return columns, exact

    def best(self, columns: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        """Keep the columns with the largest order, the first of equals."""
        values, places = order.sort(dim=2, descending=True, stable=True)
        most = max(self.counts)
        return columns.gather(2, places[..., :most]), values[..., :most]

    def cut(self, nearest: Tensor, similarity: Tensor) -> Neighbors:
        """Leave each member its own number of neighbours, if it can have any."""
        counts = [0 if i in self.errors else k for i, k in enumerate(self.counts)]
        place = torch.arange(nearest.shape[2], device=nearest.device)
        own = place < torch.tensor(counts, device=nearest.device)[:, None, None]
        return Neighbors(nearest, torch.where(own, similarity, 0.0), self.errors)


def _gaussian_unlikeness(
    distance: Tensor, rho_i: Tensor, rho_j: Tensor, mu: Tensor
) -> Tensor:
    r"""Return what orders pairs as the scaled Gaussian similarity does, reversed.

    Writes over the distances, since tiles are large and this is most of their traffic.
    With the width :math:`s = \frac{\sqrt 2}{3} \mu (D + \rho_i + \rho_j)` the
    similarity is, up to a factor, :math:`\exp(-(D/s)^2) / s`, and this is minus its
    logarithm.
    """
    width = _width(mu)
    scale = torch.addcmul(width * rho_j, distance, width)
    scale += width * rho_i
    distance /= scale
    return scale.log_().addcmul_(distance, distance)


def _width(mu: Tensor) -> Tensor:
    return 2.0**0.5 / 3.0 * mu
