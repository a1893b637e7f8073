"""Nearest neighbours of all rows, one tile of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from mdec.numerics.magnitude import to_power
from mdec.numerics.neighbors import TOP, distance_factors

# Above this many features errors of one sign may add up, as with few distinct values,
# so that float32 is of no use.
FLOAT32_FEATURES = 8192

# Rounding may put a neighbour this many places too late; the places are settled again
# by exact distances.
SPARE = 8

# Groups of columns with about as many members as there are groups to look into.
_GROUP_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


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

    @classmethod
    def of(cls, rows: Tensor, dtype: torch.dtype, tile: int) -> TiledDistances:
        """Centre each member's rows, bring them to one scale and round to `dtype`."""
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
        slack = 3.0 * share * norms + n_features * limits.tiny / scale[:, None]
        return cls(left, right, scale, share, slack, tile)

    def unseen(self, exact: Tensor) -> Tensor:
        """Return what rows not among the smallest are away at least.

        Parameters
        ----------
        exact : Tensor of shape (n_members, n_samples, count)
            True distances of the columns that `smallest` returned.

        Returns
        -------
        Tensor of shape (n_members, n_samples)
            Infinity if there are no others.

        Notes
        -----
        The bounds are those of `mdec.numerics.neighbors.BlockedDistances`.
        """
        last = exact.amax(dim=2)
        if exact.shape[2] == last.shape[1] - 1:
            return torch.full_like(last, torch.inf)
        rounded = last * (1.0 - 2.0 * self.share) - self.slack
        return ((rounded - self.slack) / (1.0 + 2.0 * self.share)).clamp_(min=0.0)

    @cached_property
    def _whole(self) -> Tensor:
        return self.left @ self.right.mT

    def _block(self, rows: slice) -> Tensor:
        """Return some rows of distances; all of them are kept for a second use."""
        if self.tile >= self.left.shape[1]:
            return self._whole
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
            block = transform(self._block(rows), rows)
            own = torch.arange(start, rows.stop, device=block.device)
            block[:, own - start, own] = torch.inf
            found = smallest_in_rows(block.flatten(0, 1), count)
            columns.append(found.reshape(n_members, -1, count))
        return torch.cat(columns, dim=1)


def smallest_in_rows(block: Tensor, count: int) -> Tensor:
    """Return the columns of the smallest entries of each row, in no order.

    Notes
    -----
    The columns are looked at in groups. The `count` groups with the smallest minima
    hold the `count` smallest entries: any other group has nothing below these minima.
    So one cheap pass over all entries is followed by two selections among few.
    """
    n_columns = block.shape[1]
    size = max(s for s in _GROUP_SIZES if s == 1 or s * s * count <= n_columns)
    if size == 1:
        return torch.topk(block, count, largest=False, sorted=False).indices
    n_groups = n_columns // size
    even = block[:, : n_groups * size].reshape(-1, size, n_groups)
    groups = torch.topk(even.amin(dim=1), count, largest=False, sorted=False).indices
    step = n_groups * torch.arange(size, device=block.device)
    columns = (groups[:, None, :] + step[None, :, None]).flatten(1)
    rest = torch.arange(n_groups * size, n_columns, device=block.device)
    columns = torch.cat([columns, rest.expand(len(block), -1)], dim=1)
    entries = block.gather(1, columns)
    found = torch.topk(entries, count, largest=False, sorted=False).indices
    return columns.gather(1, found)


def pair_distances(rows: Tensor, columns: Tensor, limit: int) -> Tensor:
    """Return squared distances between rows and listed others, by differences.

    Each row of a member, (n_members, n_samples, n_features), is compared with the rows
    of its `columns`, (n_members, n_samples, count); `limit` numbers may be held at a
    time. The result is in float64.
    """
    flat, listed = rows.flatten(0, 1), across_members(columns).flatten(0, 1)
    height = max(1, limit // (listed.shape[1] * flat.shape[1]))
    pieces = []
    for start in range(0, len(flat), height):
        near = slice(start, start + height)
        difference = flat[listed[near]]
        difference -= flat[near, None]
        pieces.append(difference.square_().sum(dim=2, dtype=torch.float64))
    return torch.cat(pieces).reshape(columns.shape)


def across_members(columns: Tensor) -> Tensor:
    """Return the places of columns, (n_members, n_samples, count), in all rows."""
    n_members, n_samples, _ = columns.shape
    first = n_samples * torch.arange(n_members, device=columns.device)
    return columns + first[:, None, None]


def distances_to_all(rows: Tensor, chosen: Tensor, limit: int) -> Iterator[Tensor]:
    """Yield squared distances of chosen rows to their member's, by differences.

    Parameters
    ----------
    rows : Tensor of shape (n_members, n_samples, n_features)
        The rows.
    chosen : Tensor of shape (n_chosen, 2)
        Members and rows.
    limit : int
        Numbers that may be held at a time.

    Yields
    ------
    Tensor of shape (some, n_samples)
        In the order of `chosen`, in float64.
    """
    height = max(1, limit // rows[0].numel())
    for start in range(0, len(chosen), height):
        member, row = chosen[start : start + height].T
        difference = rows[member]
        difference -= rows[member, row, None]
        yield difference.square_().sum(dim=2, dtype=torch.float64)
