"""Probability trajectories: the similarity of random walks on microclusters."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.memory import require_memory
from mdec.baselines._starts import agreement_blocks

Array = NDArray[np.floating]

# The authors' code caps the elite neighbours and the steps of the walk at 20.
GREATEST_LENGTH = 20

# Similarity of a microcluster without any neighbour, from the authors' code.
_ISOLATED = 1e-20

# Above this many microclusters the dense matrices are kept in float32.
DOUBLE_PRECISION_ROWS = 4000

BLOCK = 128


def trajectory_similarity(
    labels: NDArray[np.int32],
    sizes: NDArray[np.int64],
    n_elite: int | None = None,
    n_steps: int | None = None,
) -> Array:
    r"""Return the similarity of the random walks from each pair of microclusters.

    The trajectory of i, T = `n_steps` long, stacks the rows i of
    :math:`P, P^2, ..., P^T`; the similarity is the cosine
    :math:`PTS_{ij} = G_{ij} / \sqrt{G_{ii} G_{jj}}` with
    :math:`G = \sum_{t=1}^T P^t (P^t)^T`. It is symmetric and in [0, 1], float32 above
    4000 microclusters. A microcluster without neighbours has 1e-20 with all, as in the
    authors' code.
    """
    length = max(1, min(GREATEST_LENGTH, math.isqrt(sizes.size) // 2))
    transition = transition_matrix(labels, sizes, n_elite or length)
    gram = trajectory_gram(transition, n_steps or length)
    norms = np.sqrt(np.diagonal(gram).copy())
    isolated = norms == 0.0
    scale = 1.0 / np.where(isolated, 1.0, norms)
    for first in range(0, sizes.size, BLOCK):
        block = slice(first, first + BLOCK)
        gram[block] *= np.multiply.outer(scale[block], scale)
    gram[isolated] = _ISOLATED
    gram[:, isolated] = _ISOLATED
    return gram


def transition_matrix(
    labels: NDArray[np.int32], sizes: NDArray[np.int64], n_elite: int
) -> sparse.csr_array:
    r"""Return the transition probabilities between elite neighbours.

    :math:`P_{ij} = n_j W_{ij} / \sum_k n_k W_{ik}`, where W holds the share of members
    that join i and j if either is among the other's `n_elite` neighbours; ties with the
    last are kept too. Rows of zeros for microclusters that are joined with no other.
    """
    kth = max(sizes.size - n_elite, 0)
    blocks = []
    for counts in agreement_blocks(labels, BLOCK):
        threshold = np.partition(counts, kth, axis=1)[:, [kth]]
        blocks.append(sparse.csr_array(np.where(counts >= threshold, counts, 0)))
    elite = sparse.csr_array(sparse.vstack(blocks))
    joined = sparse.csr_array(elite.maximum(elite.T.tocsr()).astype(np.float64))
    joined.data *= sizes[joined.indices]
    totals = np.asarray(joined.sum(axis=1)).ravel()
    joined.data /= np.repeat(totals, np.diff(joined.indptr))
    return joined


def trajectory_gram(transition: sparse.csr_array, n_steps: int) -> Array:
    r"""Return :math:`G = \sum_{t=1}^T P^t (P^t)^T`.

    Symmetric; float32 above 4000 rows. The powers of P are dense, P is not. As
    :math:`G_{t+1} = P (I + G_t) P^T`, each step takes two products of the sparse P with
    a dense matrix, in blocks of columns, instead of a dense product:
    :math:`O(T N_t\,nnz(P))` in place of :math:`O(T N_t^3)`.

    Examples
    --------
    >>> P = sparse.csr_array([[0.5, 0.5], [0.0, 1.0]])
    >>> trajectory_gram(P, 2)
    array([[1.125, 1.25 ],
           [1.25 , 2.   ]])
    """
    n_rows = transition.shape[0]
    dtype = np.float64 if n_rows <= DOUBLE_PRECISION_ROWS else np.float32
    require_memory(
        3 * n_rows**2 * np.dtype(dtype).itemsize,
        f"comparing the random walks from {n_rows} microclusters",
        "use LWGP, or an ensemble of fewer members or larger clusters",
    )
    step = transition.astype(dtype)
    gram: Array = (step @ step.T.tocsr()).toarray()
    half = np.empty_like(gram)
    for _ in range(n_steps - 1):
        gram[np.diag_indices(n_rows)] += 1.0
        for first in range(0, n_rows, BLOCK):
            block = slice(first, first + BLOCK)
            half[:, block] = step @ np.ascontiguousarray(gram[:, block])
        for first in range(0, n_rows, BLOCK):
            block = slice(first, first + BLOCK)
            gram[:, block] = step @ np.ascontiguousarray(half[block].T)
    np.add(gram, gram.T, out=half)
    half *= 0.5
    return half
