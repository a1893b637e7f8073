"""What finds the base clusters of new rows, on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from mdec._support.arrays import Array
from mdec.engines.tensors.device import budget, with_less_memory
from mdec.engines.tensors.landmarks import Index, Landmarks
from mdec.ensemble.plan import Member, Plan

T = TypeVar("T")


def _placed(work: Callable[[int], T], n_rows: int, device: torch.device) -> T:
    """Do work within the bytes that a device has, or within fewer."""
    return with_less_memory(work, budget(device), f"placing {n_rows} new rows")


def _there(array: NDArray[Any], device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


class RowSearch:
    """Makes of old rows what finds the nearest of them, and copies them once.

    It is called as `mdec.numerics.nearest.NearestRows` is.
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self.whole = device, dict[int, Tensor]()

    def __call__(
        self, old: Any, features: NDArray[np.integer] | None = None
    ) -> NearestRows:
        """Return what searches old rows, or a subspace of an index of them."""
        if features is None:
            return NearestRows(_there(old, self.device))
        if id(old) not in self.whole:
            self.whole[id(old)] = _there(old.rows, self.device)
        columns = _there(features, self.device)
        return NearestRows(self.whole[id(old)].index_select(1, columns))


class NearestRows:
    """Finds the nearest of old rows, as `mdec.numerics.nearest.NearestRows` does.

    Products in float64 choose candidates, and differences decide.
    """

    def __init__(self, old: Tensor) -> None:
        every = torch.arange(len(old), device=old.device)
        self.index = Index(old, old[:0], every[None])

    def __len__(self) -> int:
        return len(self.index.points)

    def rows(self, chosen: NDArray[np.integer]) -> Array:
        """Return some of the old rows."""
        points = self.index.points
        found: Array = points[_there(chosen, points.device)].cpu().numpy()
        return found

    def nearest(self, new: Array, k: int) -> tuple[NDArray[np.int64], Array]:
        """Return the k nearest old rows of each new row, and their squared distances.

        The first of equals first.
        """
        device = self.index.points.device
        rows = _there(new, device)
        found = _placed(
            lambda n_bytes: self.index.nearest(rows, k, n_bytes // 32), len(new), device
        )
        return found[0].long().cpu().numpy(), found[1].cpu().numpy()


@dataclass(frozen=True)
class VotingLandmarks:
    """A member's landmarks, and the shares of its clusters at each, in float64."""

    landmarks: Landmarks
    votes: Tensor

    @classmethod
    def of(
        cls,
        pool: Any,
        member: Member,
        plan: Plan,
        share: Callable[..., Array],
        device: torch.device,
    ) -> VotingLandmarks:
        """Derive a member's landmarks again.

        `share` maps the rows of the pool that they started from, their ties and the
        number of landmarks to the votes.
        """

        def fit(n_bytes: int) -> tuple[Landmarks, tuple[Tensor, Tensor]]:
            found = Landmarks.of(pool, member, plan, device, n_bytes // 32)
            return found, found.tie(found.started, n_bytes // 32)

        landmarks, ties = _placed(fit, len(pool), device)
        here = (each.cpu().numpy() for each in ties)
        votes = share(landmarks.origin, *here, len(landmarks.rho))
        return cls(landmarks, _there(votes, device))

    def ask(self, X_new: Array) -> NDArray[np.int32]:
        """Return the cluster of most votes of each new row."""
        device = self.votes.device

        def vote(n_bytes: int) -> Tensor:
            height, winners = max(1, n_bytes // (64 * X_new.shape[1])), []
            for start in range(0, len(X_new), height):
                here = X_new[start : start + height]
                rows = self.landmarks.coordinates(here, _there(here, device))
                nearest, weights = self.landmarks.tie(rows, n_bytes // 32)
                votes = embedding_bag(
                    nearest.long(),
                    self.votes,
                    per_sample_weights=weights.double(),
                    mode="sum",
                )
                most, winner = votes.max(dim=1)
                winners.append(torch.where(most > 0.0, winner, -1))
            return torch.cat(winners)

        found: NDArray[np.int32] = _placed(vote, len(X_new), device).int().cpu().numpy()
        return found
