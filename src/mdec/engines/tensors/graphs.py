"""Similarity graphs of many members in one matrix, and their leading eigenvectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mdec._support.arrays import Array
from mdec.engines.tensors import fused
from mdec.engines.tensors.device import full_precision, on_host, staging, to_host
from mdec.engines.tensors.neighbors import Neighbors, across_members
from mdec.numerics.eigen import (
    DEGREE,
    FIRST_CUT,
    LAST_CUT,
    MAX_ROUNDS,
    chebyshev_filter,
)

T = TypeVar("T")

# Cubes of widths, added up, that keep a thread of the host busy for a millisecond.
_THREAD_WORTH = 2_000_000


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

    def members(self, chosen: list[int]) -> BatchGraph:
        """Return some of the blocks."""
        blocks = torch.tensor(chosen, device=self.indptr.device)[:, None]
        places = torch.arange(len(chosen), device=self.indptr.device)[:, None]
        rows = (blocks * self.order + torch.arange(self.order).to(blocks)).flatten()
        counts = self.indptr.diff()[rows]
        pointers = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
        moved = ((places - blocks) * self.order).expand(-1, self.order).flatten()
        both = torch.stack([self.indptr[rows] - pointers[:-1], moved])
        from_start, shift = both.repeat_interleave(counts, dim=1)
        entries = from_start + torch.arange(len(shift), device=shift.device)
        indices = (self.indices[entries] + shift).int()
        arrays = pointers.int(), indices, self.data[entries]
        return BatchGraph(*arrays, len(chosen), self.order)

    def __call__(self, block: Tensor) -> Tensor:
        """Return the matrices times blocks of vectors, (n_members, order, width)."""
        # A sum over bags adds in the order of the entries, every time; products with
        # PyTorch's own sparse matrices do not on a GPU.
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
        scale, shift = scale.to(block.dtype), shift.to(block.dtype)
        if fused.has_kernels(block):
            arrays = self.indptr, self.indices, self.data
            return fused.graph_step(arrays, block, scale, shift, before)
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


def join_graph(listed: list[Neighbors], order: int) -> BatchGraph:
    """Put members' neighbour lists side by side, an edge if either end lists it.

    Both ends of an edge have computed the same similarity, so it does not matter whose
    is kept. One of zero is none.
    """
    rows, columns, data, first = [], [], [], 0
    for each in listed:
        shown = (each.similarity > 0.0).flatten().nonzero()[:, 0]
        rows.append(shown // each.columns.shape[2] + first)
        columns.append(across_members(each.columns).flatten()[shown] + first)
        data.append(each.similarity.flatten()[shown])
        first += len(each.columns) * order
    edges = torch.cat(rows), torch.cat(columns), torch.cat(data)
    return mirror_entries(*edges, first // order, order)


def mirror_entries(
    first: Tensor, second: Tensor, data: Tensor, n_members: int, order: int
) -> BatchGraph:
    """Return the graph of edges listed once or twice, with their rows and columns."""
    side = n_members * order
    keys = torch.cat([first * side + second, second * side + first])
    keys, origin = keys.sort()
    fresh = torch.ones_like(keys, dtype=torch.bool)
    fresh[1:] = keys[1:] != keys[:-1]
    values = torch.cat([data, data])[origin]
    fresh &= values > 0.0
    keys, values = keys[fresh], values[fresh]
    starts = torch.arange(side + 1, device=keys.device) * side
    pointers = torch.searchsorted(keys, starts)
    return BatchGraph(pointers.int(), (keys % side).int(), values, n_members, order)


def normalized_graph(graph: BatchGraph) -> BatchGraph:
    r"""Return the affinities scaled by degrees, :math:`D^{-1/2} W D^{-1/2}`, Eq. 12."""
    tiny = torch.finfo(graph.data.dtype).tiny
    scale = graph.degrees().flatten().clamp(min=tiny).rsqrt()
    by_row, by_column = scale[graph.rows()], scale[graph.indices.long()]
    return replace(graph, data=graph.data * by_row * by_column)


def iterated_leading(
    graph: BatchGraph,
    block: Tensor,
    known: Tensor,
    widths: list[int],
    n_wanted: list[int],
    tol: float,
) -> Tensor:
    """Return leading eigenvectors by filtered subspace iteration.

    The graph holds normalised affinities; `known`, (n_members, order, n_known), are
    orthonormal eigenvectors to leave out, columns of zeros standing for none. The
    starting vectors `block`, (n_members, order, width), are zeros from each member's
    own of `widths` on. Of each member its `n_wanted` vectors come out, (n_members,
    order, width), largest eigenvalue first, with residual norms up to `tol`, then
    zeros.

    A member takes the same rounds as it would alone: its columns of zeros stay zeros,
    and it leaves the batch when it has settled.
    """
    place = torch.arange(block.shape[2], device=block.device)
    wanted = place < torch.tensor(n_wanted, device=block.device)[:, None]
    settled = torch.zeros_like(block)
    own, left = np.array(widths), np.arange(len(widths))
    cut = np.full(len(own), FIRST_CUT)
    for last in [False] * (MAX_ROUNDS - 1) + [True]:
        values, block, residuals = _filter_blocks(graph, block, known, cut, own)
        worst = torch.where(wanted, residuals, 0.0).amax(dim=1).cpu().numpy()
        done = (worst <= tol) | last
        out = np.flatnonzero(done)
        settled[left[out]] = torch.where(wanted[out][:, None], block[out], 0.0)
        if done.all():
            break
        cut = np.minimum(values[np.arange(len(own)), own - 1], LAST_CUT)
        if len(out):
            going = np.flatnonzero(~done)
            graph = graph.members(going.tolist())
            left, own, cut = left[going], own[going], cut[going]
            block, known, wanted = block[going], known[going], wanted[going]
    return settled


def _filter_blocks(
    graph: BatchGraph, block: Tensor, known: Tensor, cut: Array, widths: NDArray[Any]
) -> tuple[Array, Tensor, Tensor]:
    """Filter blocks of vectors once and rotate them to approximate eigenvectors.

    As `mdec.numerics.eigen.SparseOperator.filter_block` does, and where there are
    kernels with the same sums in the same order: the first rounds leave a hundredth of
    the weakest vectors to rounding, which the last rounds do not forget.
    """
    from mdec.numerics.loops import vectors as loops

    cuts = torch.from_numpy(cut).to(block.device)[:, None, None]
    block = chebyshev_filter(graph, block, DEGREE, cuts, -1.0)
    shares = fused.inner_products(known, block).to(block.dtype)
    with full_precision():
        block -= known @ shares
    block = orthonormal(block, widths)
    nothing = torch.zeros_like(cuts)
    image = graph.step(block, nothing + 1.0, nothing, torch.zeros_like(block))
    products = to_host(fused.inner_products(block, image))
    turn = staging(products.shape, block.dtype, block.device)
    values = loops.eigenvectors_of_each(products, widths, turn.numpy(), _in_threads)
    turn = turn.to(block.device, non_blocking=True)
    block, image = fused.multiply(block, turn), fused.multiply(image, turn)
    sizes = torch.from_numpy(np.maximum(values, -2.0)).to(block)
    image -= sizes[:, None] * block
    return values, block, torch.linalg.norm(image.to(torch.float64), dim=-2)


def orthonormal(block: Tensor, widths: NDArray[Any]) -> Tensor:
    """Return orthonormal bases of the spans of blocks of vectors, each of its width."""
    from mdec.numerics.loops import vectors as loops

    done = np.zeros(len(widths), dtype=bool)
    for _ in range(loops.MAX_PASSES):
        products = to_host(fused.inner_products(block, block))
        turn = staging(products.shape, torch.float64, block.device)
        own = products, widths, done, turn.numpy()
        done = loops.orthonormalizers(*own, _in_threads)
        block = fused.multiply(block, turn.to(block.device, non_blocking=True))
        if done.all():
            break
    return block


def _in_threads(work: Callable[[slice], T], widths: NDArray[Any]) -> list[T]:
    """Do work on slices of small matrices in threads of the host, or in one."""
    cost = np.cumsum(widths.astype(float) ** 3)
    n_parts = min(16, 1 + int(cost[-1] / _THREAD_WORTH))
    # As much work for each, though the widest come first.
    ends = np.searchsorted(cost, np.linspace(0.0, cost[-1], n_parts + 1)[1:]) + 1
    return on_host(work, map(slice, [0, *ends[:-1]], ends))
