"""Similarity graphs of many members in one matrix, and their leading eigenvectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from mdec._support.parallel import single_threaded_blas
from mdec.engines.tensors import fused
from mdec.engines.tensors.device import host_pool
from mdec.engines.tensors.neighbors import Neighbors, across_members
from mdec.numerics.eigen import FIRST_CUT, LAST_CUT, MAX_ROUNDS, filter_block

# Symmetric matrices up to this order are solved in one batch on a GPU.
_TOGETHER = 32

# Below any eigenvalue of a normalised affinity: where unused columns sort to.
_BELOW = -2.0


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
    return graph.with_data(graph.data * by_row * by_column)


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
    n_members, _, width = block.shape
    place = torch.arange(width, device=block.device)
    counts = torch.tensor([widths, n_wanted], device=block.device)
    unused = place >= counts[0, :, None]
    wanted = place < counts[1, :, None]
    settled = torch.zeros_like(block)
    cut = block.new_full((n_members, 1, 1), FIRST_CUT)
    left = list(range(n_members))
    for last in [False] * (MAX_ROUNDS - 1) + [True]:
        steps = partial(orthonormal, unused=unused), partial(rotation, unused=unused)
        values, block, residuals = filter_block(graph, block, known, cut, *steps)
        worst = torch.where(wanted, residuals, 0.0).amax(dim=1)
        done = ((worst <= tol) | last).tolist()
        out = [position for position, ready in enumerate(done) if ready]
        settled[[left[position] for position in out]] = torch.where(
            wanted[out][:, None], block[out], 0.0
        )
        going = [position for position, ready in enumerate(done) if not ready]
        if not going:
            break
        least = values.gather(1, counts[0, left, None] - 1)
        cut = least[:, :, None].clamp(max=LAST_CUT)
        if len(going) < len(left):
            graph = graph.members(going)
            left = [left[position] for position in going]
            block, known, cut = block[going], known[going], cut[going]
            unused, wanted = unused[going], wanted[going]
    return settled


def orthonormal(block: Tensor, unused: Tensor) -> Tensor:
    """Return orthonormal bases of blocks; unused columns of zeros stay zeros.

    Two Cholesky factorisations of the Gram matrices do in few launches what a QR
    factorisation does in many; the first is in float64, because filtered vectors are
    nearly dependent.
    """
    gap = unused.to(torch.float64).diag_embed()
    for dtype in (torch.float64, block.dtype):
        wide = block.to(dtype)
        norms = torch.linalg.norm(wide, axis=-2, keepdims=True)
        wide = wide / norms.clamp(min=torch.finfo(dtype).tiny)
        factor, failed = torch.linalg.cholesky_ex(wide.mT @ wide + gap.to(dtype))
        if bool(failed.any()):
            wide = torch.linalg.qr(wide).Q
            block = torch.where(unused[:, None, :], 0.0, wide).to(block.dtype)
            continue
        identity = torch.eye(wide.shape[-1], dtype=dtype, device=wide.device)
        inverse = torch.linalg.solve_triangular(factor.mT, identity, upper=True)
        block = (wide @ inverse).to(block.dtype)
    return block


def rotation(matrix: Tensor, unused: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues, largest first, and eigenvectors; unused places come last.

    Small matrices are solved on the device together. It solves larger ones one after
    the other, and several of the host's cores are faster.
    """
    matrix = matrix.to(torch.float64) + _BELOW * unused.to(torch.float64).diag_embed()
    if matrix.shape[-1] <= _TOGETHER:
        values, vectors = torch.linalg.eigh(matrix)
    else:
        with single_threaded_blas():
            solved = list(host_pool().map(np.linalg.eigh, matrix.cpu().numpy()))
        values, vectors = (
            torch.from_numpy(np.stack(each)).to(matrix.device)
            for each in zip(*solved, strict=True)
        )
    single = torch.float32
    return values.flip(-1).to(single), vectors.flip(-1).to(single)
