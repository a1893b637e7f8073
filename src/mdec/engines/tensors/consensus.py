"""What consensus functions do on the GPU: products, linkage, overlaps of clusters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn.functional import embedding_bag

from mdec.engines.tensors.device import full_precision
from mdec.engines.tensors.landmarks import embed_rows, nearest_centers

# Rows copied at a time when the matrix is made smaller.
_STRIP = 1024

# Pairs of base clusters of some rows that are added up together.
_PAIRS = 2**26


class GramOperator:
    r"""A matrix times its transpose as an operator, :math:`P P^T + diag(d)`.

    The matrix is sparse and kept in full: the GPU reads it faster than it could look
    up the places of its entries.
    """

    def __init__(
        self,
        matrix: sparse.csr_array,
        diagonal: NDArray[np.floating] | None = None,
        *,
        device: torch.device,
    ) -> None:
        self.device = device
        row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        place = self.there(row * matrix.shape[1] + matrix.indices)
        self.matrix = torch.zeros(matrix.shape, dtype=torch.float64, device=device)
        self.matrix.view(-1)[place] = self.there(matrix.data.astype(np.float64))
        self.diagonal = None if diagonal is None else self.there(diagonal)[:, None]
        self.steps = (lambda block: torch.linalg.qr(block).Q), _largest_first

    def __call__(self, block: Tensor) -> Tensor:
        """Return the operator times the block."""
        image = self.matrix @ (self.matrix.mT @ block)
        return image if self.diagonal is None else image + self.diagonal * block

    def there(self, array: NDArray[np.floating]) -> Tensor:
        """Copy an array to the device."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def here(self, tensor: Tensor) -> NDArray[np.floating]:
        """Copy a tensor from the device."""
        array: NDArray[np.floating] = tensor.cpu().numpy()
        return array


def _largest_first(matrix: Tensor) -> tuple[Tensor, Tensor]:
    values, vectors = torch.linalg.eigh(matrix)
    return values.flip(-1), vectors.flip(-1)


@full_precision()
def average_linkage(
    factor: sparse.csr_array,
    sizes: NDArray[np.intp],
    dtype: type[np.floating],
    device: torch.device,
    shift: float,
) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
    """Merge the rows of a factor by the mean of their products.

    F is the factor of the similarities :math:`F F^T`, and `sizes` are the samples that
    each row stands for; `shift` rounds similarities when it is added to them and taken
    away. Returns pairs of rows, (n_rows - 1, 2), the lowest of the two regions that
    merge, and the means of the two regions.

    All pairs of regions that are each other's nearest merge at once: average linkage is
    reducible, so a merge elsewhere cannot part them. The first of equals counts as the
    nearest, hence the first among the most similar pairs always merges. A region stays
    at the place of its lowest row.
    """
    similarity = _products(factor.astype(dtype), device)
    size = torch.from_numpy(sizes).to(similarity)
    region = torch.arange(len(size), device=device)
    pairs, heights = [], []
    alive = torch.ones_like(region, dtype=torch.bool)
    n_alive = len(size)
    while n_alive > 1:
        rounded = similarity if shift == 0.0 else (similarity + shift) - shift
        near = rounded.argmax(dim=1)
        place = torch.arange(len(near), device=device)
        a = torch.nonzero((near[near] == place) & (place < near) & alive)[:, 0]
        b = near[a]
        pairs.append(torch.stack([region[a], region[b]], dim=1))
        heights.append(similarity[a, b])
        _merge(similarity, size, b, a)
        alive[b] = False
        n_alive -= len(a)
        if n_alive < 0.75 * len(alive):
            kept = torch.nonzero(alive)[:, 0]
            similarity = _shrunk(similarity, kept)
            size, region, alive = size[kept], region[kept], alive[kept]
    return torch.cat(pairs).cpu().numpy(), torch.cat(heights).double().cpu().numpy()


def _products(factor: sparse.csr_array, device: torch.device) -> Tensor:
    """Return the products of all pairs of rows, minus infinity on the diagonal."""
    dense = torch.from_numpy(factor.toarray()).to(device)
    products = dense @ dense.T
    return products.fill_diagonal_(-torch.inf)


def _merge(similarity: Tensor, size: Tensor, a: Tensor, b: Tensor) -> None:
    """Put the mean of rows a and b at b, weighted by their sizes, in place."""
    total = size[a] + size[b]
    share_a, share_b = (size[a] / total)[:, None], (size[b] / total)[:, None]
    merged = share_a * similarity[a] + share_b * similarity[b]
    inner = share_a.T * merged[:, a] + share_b.T * merged[:, b]
    # Both halves are the same numbers, or two regions might never be each other's
    # nearest.
    inner = torch.triu(inner, 1)
    merged[:, b] = inner + inner.T
    similarity[b] = merged
    similarity[:, b] = merged.T
    similarity[a] = -torch.inf
    similarity[:, a] = -torch.inf
    similarity[b, b] = -torch.inf
    size[b] = total


def _shrunk(similarity: Tensor, kept: Tensor) -> Tensor:
    """Move the kept rows and columns to the front, in strips, and return them."""
    for start in range(0, len(kept), _STRIP):
        rows = kept[start : start + _STRIP]
        similarity[start : start + len(rows), : len(kept)] = similarity[rows][:, kept]
    return similarity[: len(kept), : len(kept)]


def count_overlaps(
    labels: NDArray[np.int32], offsets: NDArray[np.int64], device: torch.device
) -> Tensor:
    """Count the samples that every two base clusters share.

    Labels, (n_samples, n_members), start from 0 in each column, -1 where a member has
    none; `offsets` has the number of the first cluster of each member. The counts are
    whole numbers in float64.
    """
    rows = LabelRows(labels, offsets, np.ones(int(offsets[-1])), device)
    return rows.shared(lambda clusters, _: torch.ones_like(clusters[:, 0])).double()


class LabelRows:
    """Samples as rows of base clusters, some at a time, on a device.

    Labels and offsets are those of `count_overlaps`; `columns` are the weights of the
    base clusters, in the precision of all sums.
    """

    def __init__(
        self,
        labels: NDArray[np.int32],
        offsets: NDArray[np.int64],
        columns: NDArray[np.floating],
        device: torch.device,
    ) -> None:
        self.labels, self.device = labels, device
        self.height = max(1, _PAIRS // labels.shape[1] ** 2)
        self.first = torch.from_numpy(np.ascontiguousarray(offsets[:-1])).to(device)
        # One more takes what a member does not cluster.
        self.columns = torch.from_numpy(np.append(columns, 0.0 * columns[:1]))
        self.columns = self.columns.to(device)

    def parts(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the base clusters of some rows, and how many members cluster each."""
        none = len(self.columns) - 1
        for start in range(0, len(self.labels), self.height):
            part = torch.from_numpy(self.labels[start : start + self.height])
            part = part.to(self.device)
            present = part >= 0
            yield torch.where(present, part + self.first, none), present.sum(1)

    def shared(self, share: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Add up what the rows have a share of in every two of their base clusters.

        `share` maps the rows' base clusters, and the numbers of members that cluster
        each, to whole numbers, whose sums do not depend on the order.
        """
        side = len(self.columns)
        total = torch.zeros(side * side, dtype=torch.int64, device=self.device)
        for clusters, present in self.parts():
            pairs = clusters[:, :, None] * side + clusters[:, None, :]
            shares = share(clusters, present)[:, None, None].expand_as(pairs)
            total.scatter_add_(0, pairs.flatten(), shares.flatten())
        return total.view(side, side)[:-1, :-1]

    def _in_units(
        self, share: Callable[[Tensor, Tensor], Tensor]
    ) -> tuple[Callable[[Tensor, Tensor], Tensor], int]:
        """Return a share as whole numbers, and the digits that their unit is behind.

        It is so small that the sums of all rows fill 62 binary digits.
        """
        largest = max(float(share(*part).max()) for part in self.parts())
        digits = min(62 - math.frexp(len(self.labels) * largest)[1], 1000)

        def whole(clusters: Tensor, present: Tensor) -> Tensor:
            return (share(clusters, present) * 2.0**digits).round().long()

        return whole, digits

    def halves(self, *, of_samples: bool) -> NDArray[np.floating]:
        """Return what `mdec.consensus.graph_cuts.halves_of_labels` adds up to."""

        def share(clusters: Tensor, present: Tensor) -> Tensor:
            degrees = self.columns[clusters].sum(1)
            factors = present.double().rsqrt() if of_samples else 1.0
            return torch.where(degrees > 0.0, factors / degrees, 0.0)

        whole, digits = self._in_units(share)
        sums = self.shared(whole).double().cpu().numpy()
        half: NDArray[np.floating] = np.ldexp(sums, -digits - 1)
        return half

    def add_up(
        self,
        groups: NDArray[np.integer],
        n_groups: int,
        totals: NDArray[np.floating] | None,
    ) -> NDArray[np.floating]:
        """Add up unit rows of memberships over groups of samples, by base clusters.

        Parameters
        ----------
        groups : ndarray of shape (n_samples,)
            Group of each sample.
        n_groups : int
            How many there are.
        totals : ndarray of shape (n_base_clusters,) or None
            With these sums of the factor over all samples, rows are divided by the
            roots of their degrees.

        Returns
        -------
        ndarray of shape (n_groups, n_base_clusters)
            Times the columns, which are the roots of weights, the sums of the factor.
        """
        degree = self.columns
        if totals is not None:
            degree = degree * torch.from_numpy(np.append(totals, 0.0)).to(self.device)

        def share(clusters: Tensor, present: Tensor) -> Tensor:
            root = present.double().rsqrt()
            if totals is not None:
                root = root * (root * degree[clusters].sum(1)).rsqrt()
            return torch.where(present > 0, root, 0.0)

        whole, digits = self._in_units(share)
        side = len(self.columns)
        total = torch.zeros(n_groups * side, dtype=torch.int64, device=self.device)
        own = torch.from_numpy(groups).to(self.device).long()
        for group, (clusters, present) in zip(
            self._cut(own), self.parts(), strict=True
        ):
            places = group[:, None] * side + clusters
            shares = whole(clusters, present)[:, None].expand_as(places)
            total.scatter_add_(0, places.flatten(), shares.flatten())
        sums = total.view(n_groups, side)[:, :-1].double().cpu().numpy()
        return np.ldexp(sums, -digits)

    def share_with(
        self,
        groups: NDArray[np.integer],
        profiles: NDArray[np.floating],
        present: NDArray[np.floating],
        sizes: NDArray[np.floating],
        use: Callable[..., Tensor],
    ) -> NDArray[np.floating]:
        """Return what `use` makes of what the factor's rows share with groups.

        As the blocks of `mdec.confidence.Profiles` do, where the columns are the roots
        of weights.

        Parameters
        ----------
        groups : ndarray of shape (n_samples,)
            Group of each sample.
        profiles, present : ndarray of shape (n_groups, n_columns)
            Sums of the factor and of presence over groups.
        sizes : ndarray of shape (n_groups,)
            Samples of each group.
        use : callable
            Takes the products of some rows with both, the squared lengths of the rows,
            their groups and the sizes.

        Returns
        -------
        ndarray of shape (n_samples, ...)
            What it returns, for all rows.
        """
        roots = self.columns.cpu().numpy()[:-1]
        counts, found = torch.from_numpy(sizes).to(self.device), []
        if drawn := present.shape[1] > 1:
            stops = np.append(self.first.cpu().numpy(), len(roots))
            present = np.repeat(present, np.diff(stops), axis=1)
        sums, draws = (
            torch.from_numpy(np.pad(each.T, ((0, 1), (0, 0)))).to(self.device)
            for each in (profiles * roots, present)
        )
        own = torch.from_numpy(groups).to(self.device).long()
        for group, (clusters, n) in zip(self._cut(own), self.parts(), strict=True):
            root = n.clamp(min=1).double().rsqrt()[:, None]
            shares = [root * embedding_bag(clusters, sums, mode="sum")]
            if drawn:
                shares.append(root * embedding_bag(clusters, draws, mode="sum"))
            else:
                shares.append(draws[:1].repeat(len(group), 1))
            squares = (root * root)[:, 0] * self.columns[clusters].square().sum(1)
            found.append(use(*shares, squares, group, counts))
        array: NDArray[np.floating] = torch.cat(found).cpu().numpy()
        return array

    def _cut(self, rows: Tensor) -> tuple[Tensor, ...]:
        return torch.split(rows, self.height)

    def assign(
        self, vectors: NDArray[np.floating], centers: NDArray[np.floating]
    ) -> NDArray[np.int32]:
        """Return what `mdec.numerics.transfer.assign_rows` does, of all rows."""
        wide, places = (
            torch.from_numpy(np.ascontiguousarray(each)).to(self.device)
            for each in (vectors, centers)
        )
        wide = torch.nn.functional.pad(wide, (0, 0, 0, 1))
        weights = self.columns.to(wide.dtype)
        labels = []
        for clusters, _ in self.parts():
            points = embed_rows((clusters, weights[clusters]), wide)
            labels.append(nearest_centers(points, places, 2**28))
        found: NDArray[np.int32] = torch.cat(labels).int().cpu().numpy()
        return found
