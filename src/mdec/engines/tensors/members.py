"""Base clusterings of many members at once, Eqs. 8 to 13."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mdec.base.graphs import DENSE_SAMPLES
from mdec.base.kernels import ANGULAR, angular_coordinates
from mdec.engines.tensors.device import full_precision, host_pool
from mdec.engines.tensors.eigen import dense_leading, iterated_leading, normalized_graph
from mdec.engines.tensors.graphs import (
    BatchGraph,
    Drawn,
    Listed,
    joined_graph,
    listed_neighbors,
)
from mdec.engines.tensors.kmeans import kmeans_plus_plus, lloyd
from mdec.numerics.affinity import TOLERANCE, component_roots, mixed_roots, unit_rows
from mdec.numerics.eigen import block_width, is_dense
from mdec.numerics.kmeans import MAX_ITER, N_INIT
from mdec.numerics.magnitude import at_safe_scale

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Task:
    """What one base clustering is made with: its draws, and streams of both solvers."""

    features: NDArray[np.int64]
    n_neighbors: int
    mu: float
    n_clusters: int
    solver: np.random.Generator
    assign: np.random.Generator


@dataclass(frozen=True)
class Data:
    """The samples, here as given and on the device up to a power of two."""

    here: Array
    there: Tensor

    @classmethod
    def on(cls, X: Array, device: torch.device) -> Data:
        """Copy the samples to a device, at a scale whose squares fit float64."""
        safe = np.ascontiguousarray(at_safe_scale(X))
        try:
            return cls(X, torch.from_numpy(safe).to(device))
        except torch.OutOfMemoryError as error:
            raise MemoryError(
                f"the data of {X.nbytes / 1e9:.1f} GB does not fit the card; free it, "
                "cluster fewer samples or features, or use device='cpu'."
            ) from error

    def subspaces(self, features: NDArray[np.int64], kernel: str) -> Tensor:
        """Return the samples' coordinates in subspaces, as the kernel takes them.

        From the features of members, (n_members, n_drawn); the result is (n_members,
        n_samples, n_drawn), of angular kernels with one column more where some samples
        have no direction.
        """
        if kernel in ANGULAR:
            own = [angular_coordinates(self.here[:, each], kernel) for each in features]
            width = max(each.shape[1] for each in own)
            rows = np.zeros((len(own), len(self.here), width))
            for member, each in enumerate(own):
                rows[member, :, : each.shape[1]] = each
            return torch.from_numpy(rows).to(self.there.device)
        chosen = torch.from_numpy(features.ravel()).to(self.there.device)
        drawn = self.there.index_select(1, chosen)
        return drawn.reshape(len(drawn), *features.shape).transpose(0, 1).contiguous()


def member_bytes(n_samples: int, n_clusters: int) -> int:
    """Estimate what one member holds on the device between its graph and its labels."""
    vectors = n_clusters + n_clusters // 8 + 16
    return n_samples * (100 * vectors + 1500)


@full_precision()
def base_labels(
    data: Data, kernel: str, tasks: list[Task], n_bytes: int
) -> list[NDArray[np.int32] | ValueError]:
    """Return the labels of base clusterings, or why one could not be made.

    There is one result for each task; members with like numbers of clusters waste
    least. A tile of distances may take `n_bytes`.
    """
    listed = _neighbors(data, kernel, tasks, n_bytes)
    made = [
        (task, each)
        for task, each in zip(tasks, listed, strict=True)
        if not isinstance(each, ValueError)
    ]
    labels: Iterator[NDArray[np.int32]] = iter(())
    if made:
        graph = joined_graph([each for _, each in made], len(data.here))
        able = [task for task, _ in made]
        labels = iter(_discretised(_embeddings(graph, able), able))
    return [each if isinstance(each, ValueError) else next(labels) for each in listed]


def _neighbors(
    data: Data, kernel: str, tasks: list[Task], n_bytes: int
) -> list[Listed]:
    """List the neighbours of members, as many members at a time as fit."""
    n_samples = len(data.here)
    dtype = torch.float64 if n_samples <= DENSE_SAMPLES else torch.float32
    # The distances, what they become, and what is smallest in groups.
    row_bytes = 3 * dtype.itemsize * n_samples
    # The subspace, centred, and both factors.
    member_bytes = n_samples * (row_bytes + 32 * len(tasks[0].features))
    together = max(1, n_bytes // member_bytes)
    listed: list[Listed] = []
    for start in range(0, len(tasks), together):
        some = tasks[start : start + together]
        listed += listed_neighbors(
            data.subspaces(np.stack([each.features for each in some]), kernel),
            kernel,
            Drawn([each.n_neighbors for each in some], [each.mu for each in some]),
            dtype=dtype,
            tile=max(1, n_bytes // (len(some) * row_bytes)),
            limit=n_bytes // 16,
        )
    return listed


@dataclass(frozen=True)
class _Start:
    """What the host prepares for one member's eigenvectors."""

    component: NDArray[np.intp]
    roots: Array
    n_known: int
    n_wanted: int
    vectors: Array


def _start(task: Task, degrees: Array, component: NDArray[np.int64]) -> _Start:
    """Number the components and draw the starting vectors.

    With more components than vectors wanted, the vectors are final. They are none
    where a full factorisation needs no start.
    """
    order = degrees.size
    numbered, roots = component_roots(degrees, component)
    n_known = int(numbered.max()) + 1
    n_wanted = task.n_clusters - n_known
    if n_wanted <= 0:
        vectors = mixed_roots(numbered, roots, task.n_clusters, task.solver)
    elif is_dense(order, n_wanted):
        vectors = np.empty((order, 0))
    else:
        shape = order, block_width(n_wanted, order - n_known)
        vectors = task.solver.standard_normal(shape).astype(np.float32)
    return _Start(numbered, roots, n_known, n_wanted, vectors)


def _embeddings(graph: BatchGraph, tasks: list[Task]) -> Tensor:
    """Return unit rows of leading eigenvectors, zeros beyond a member's own."""
    degrees, components = graph.degrees().cpu().numpy(), graph.components().cpu()
    starts = list(host_pool().map(_start, tasks, degrees, components.numpy()))
    affinity = normalized_graph(graph)
    n_columns = max(task.n_clusters for task in tasks)
    dtype = torch.float64 if is_dense(graph.order, 0) else torch.float32
    shape = graph.n_members, graph.order, n_columns
    vectors = torch.zeros(shape, dtype=dtype, device=graph.data.device)
    dense: list[int] = []
    iterated: list[int] = []
    for member, start in enumerate(starts):
        if start.n_wanted <= 0:
            mixed = torch.from_numpy(start.vectors).to(vectors)
            vectors[member, :, : mixed.shape[1]] = mixed
        elif is_dense(graph.order, start.n_wanted):
            dense.append(member)
        else:
            iterated.append(member)
    for members, solve in ((dense, _solve_dense), (iterated, _solve_iterated)):
        if members:
            some = [starts[member] for member in members]
            known = _known_vectors(some, vectors)
            found = solve(affinity.members(members), known, some)
            solved = zip(members, some, known, found, strict=True)
            for member, start, old, new in solved:
                first, last = start.n_known, start.n_known + start.n_wanted
                vectors[member, :, :first] = old[:, :first]
                vectors[member, :, first:last] = new[:, : start.n_wanted]
    return unit_rows(vectors)


def _known_vectors(starts: list[_Start], like: Tensor) -> Tensor:
    """Return the components' eigenvectors, zeros beyond a member's own."""
    component = torch.from_numpy(np.stack([s.component for s in starts]))
    roots = torch.from_numpy(np.stack([s.roots for s in starts]))
    n_known = max(s.n_known for s in starts)
    known = like.new_zeros((*component.shape, n_known))
    place = component.to(like.device)[..., None]
    return known.scatter_(2, place, roots.to(known)[..., None])


def _solve_dense(affinity: BatchGraph, known: Tensor, starts: list[_Start]) -> Tensor:
    most = max(start.n_wanted for start in starts)
    return dense_leading(affinity, known.double(), most).to(known)


def _solve_iterated(
    affinity: BatchGraph, known: Tensor, starts: list[_Start]
) -> Tensor:
    widths = [start.vectors.shape[1] for start in starts]
    block = known.new_zeros((len(starts), affinity.order, max(widths)))
    for member, start in enumerate(starts):
        own = torch.from_numpy(start.vectors)
        block[member, :, : widths[member]] = own.to(known.device)
    single = affinity.with_data(affinity.data.to(known.dtype))
    n_wanted = [start.n_wanted for start in starts]
    return iterated_leading(single, block, known, widths, n_wanted, TOLERANCE)


def _discretised(embeddings: Tensor, tasks: list[Task]) -> NDArray[np.int32]:
    """Return the labels of the best k-means run of each embedding, Eq. 13."""
    counts = [task.n_clusters for task in tasks]
    uniforms = np.zeros((len(tasks), N_INIT, max(counts)))
    for member, (task, count) in enumerate(zip(tasks, counts, strict=True)):
        for start in range(N_INIT):
            uniforms[member, start, :count] = task.assign.random(count)
    draws = torch.from_numpy(uniforms).to(embeddings.device)
    centers = kmeans_plus_plus(embeddings, draws)
    labels, inertia = lloyd(embeddings, centers, counts, MAX_ITER)
    best = inertia.argmin(dim=1)
    chosen = labels[torch.arange(len(tasks), device=best.device), best]
    return chosen.int().cpu().numpy()
