"""Leading eigenvectors of many graphs at once."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from mdec._support.parallel import single_threaded_blas
from mdec.engines.tensors.device import host_pool
from mdec.engines.tensors.graphs import BatchGraph
from mdec.numerics.eigen import FIRST_CUT, LAST_CUT, MAX_ROUNDS, filtered_round

# Symmetric matrices up to this order are solved in one batch on a card.
_TOGETHER = 32

# Below any eigenvalue of a normalised affinity: where unused columns sort to.
_BELOW = -2.0


def normalized_graph(graph: BatchGraph) -> BatchGraph:
    r"""Return the affinities scaled by degrees, :math:`D^{-1/2} W D^{-1/2}`, Eq. 12."""
    tiny = torch.finfo(graph.data.dtype).tiny
    scale = graph.degrees().flatten().clamp(min=tiny).rsqrt()
    by_row, by_column = scale[graph.rows()], scale[graph.indices.long()]
    return graph.with_data(graph.data * by_row * by_column)


class GramOperator:
    r"""A matrix times its transpose as an operator, :math:`P P^T + diag(d)`.

    The matrix is sparse and kept in full: the card reads it faster than it could look
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
        self.matrix = self._full(matrix)
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

    def _full(self, matrix: sparse.csr_array) -> Tensor:
        row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        place = self.there(row * matrix.shape[1] + matrix.indices)
        full = torch.zeros(matrix.shape, dtype=torch.float64, device=self.device)
        full.view(-1)[place] = self.there(matrix.data.astype(np.float64))
        return full


def _largest_first(matrix: Tensor) -> tuple[Tensor, Tensor]:
    values, vectors = torch.linalg.eigh(matrix)
    return values.flip(-1), vectors.flip(-1)


def dense_leading(graph: BatchGraph, known: Tensor, n_vectors: int) -> Tensor:
    """Return leading eigenvectors by a full factorisation, for small orders.

    The graph holds normalised affinities; `known`, (n_members, order, n_known), are
    orthonormal eigenvectors to leave out, columns of zeros standing for none. The
    result, (n_members, order, n_vectors), has the largest eigenvalue first.
    """
    identity = torch.eye(graph.order, dtype=graph.data.dtype, device=known.device)
    dense = graph(identity.repeat(graph.n_members, 1, 1))
    dense -= 3.0 * (known @ known.mT)
    vectors = torch.linalg.eigh(dense).eigenvectors
    return vectors.flip(-1)[..., :n_vectors]


def iterated_leading(
    graph: BatchGraph,
    block: Tensor,
    known: Tensor,
    widths: list[int],
    n_wanted: list[int],
    tol: float,
) -> Tensor:
    """Return leading eigenvectors by filtered subspace iteration.

    As `dense_leading`, from starting vectors `block`, (n_members, order, width), whose
    columns are zeros from each member's own of `widths` on. Of each member its
    `n_wanted` vectors come out, with residual norms up to `tol`, then zeros.

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
        values, block, residuals = filtered_round(graph, block, known, cut, *steps)
        worst = torch.where(wanted, residuals, 0.0).amax(dim=1)
        done = ((worst <= tol) | last).tolist()
        for position, member in enumerate(left):
            if done[position]:
                kept = wanted[position]
                settled[member] = torch.where(kept, block[position], 0.0)
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
