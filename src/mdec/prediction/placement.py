"""What new rows are placed by: all that is kept of a fitted ensemble."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.memory import require_memory
from mdec.base.kernels import ANGULAR, KERNELS
from mdec.base.landmarks import coordinates, pool_rows
from mdec.confidence.profiles import Profiles, mean_profiles
from mdec.ensemble.plan import Member, Plan
from mdec.generation import training_rows
from mdec.numerics.familiar import FamiliarRows
from mdec.numerics.magnitude import has_safe_scale
from mdec.numerics.nearest import SearchedRows
from mdec.preparation.recipes import Preparation, Versions, prepared
from mdec.rows.blocks import Rows
from mdec.rows.sparse import canonical_rows
from mdec.rows.work import gathered_rows

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Placement:
    """What new rows are placed by.

    Attributes
    ----------
    rows : ndarray or csr_array of shape (n_rows, n_features)
        Training rows that new ones are compared with: all, or the landmarks' pool.
    learnt : dict of Preparation
        How members prepare them, by power; empty if they take them as they are.
    labels : ndarray of shape (n_rows, n_members)
        Their base clusters.
    offsets : ndarray of shape (n_members + 1,)
        Number of the first cluster of each member, and of all clusters.
    members : tuple of Member
        How each column was made.
    plan : Plan
        What the members share.
    means : ndarray of shape (n_clusters, n_base_clusters)
        Mean of the co-association's factor over each consensus cluster.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    plain_means : ndarray of shape (n_clusters, n_base_clusters)
        The means as confidences take them: of no consensus divided by degrees.
    """

    rows: Any
    learnt: dict[float, Preparation]
    labels: NDArray[np.int32]
    offsets: NDArray[np.int64]
    members: tuple[Member, ...]
    plan: Plan
    means: Array
    weights: Array
    plain_means: Array

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields; what is derived from them is made again when needed."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def versions(self) -> Versions:
        """The training rows as members see them."""
        if not self.learnt:
            return Versions(self.rows)
        return Versions.of(self.rows, self.plan.preparation, self.learnt)

    @cached_property
    def searched(self) -> dict[float | None, SearchedRows]:
        """The versions of the training rows, by power, made ready for all subspaces.

        None are there if a subspace must be brought to a scale of its own, or the rows
        of every member to length one, if members look at samples of their own, or if
        the rows are sparse.
        """
        if sparse.issparse(self.rows):
            return {}
        seen = self.versions.made if self.learnt else {None: self.rows}
        made: dict[float | None, Array] = {
            power: X.astype(np.float64, copy=False) for power, X in seen.items()
        }
        angular = set(self.plan.kernel_shares) <= set(ANGULAR)
        if angular or not all(map(has_safe_scale, made.values())):
            return {}
        if self.plan.sample_ratio < 1.0:
            return {}
        return {power: SearchedRows(X) for power, X in made.items()}

    @cached_property
    def spacing(self) -> Array:
        """Mean distance of training rows to their neighbours, by members.

        Not a number until a new row has it among its neighbours in that member.
        """
        return np.full(self.labels.shape, np.nan)

    @cached_property
    def familiar(self) -> FamiliarRows:
        """The training rows, to tell whether new ones are like them."""
        return FamiliarRows.of(self.as_compared(self.rows))

    def as_compared(self, X: Any) -> Any:
        """Return rows in the coordinates in which they are like or unlike others.

        These are all features, prepared as members do but for the samples' means, by
        which they may well differ; and directions for a kernel that looks at those. Of
        several kernels the one that loses least of a row decides.
        """
        everything = np.arange(X.shape[1])
        for learnt in self.learnt.values():
            X = prepared(X, replace(learnt, center=False), everything)
            break  # the first power stands for the others
        # They stand in the order of what they lose: nothing, lengths, means, values.
        kernel = next(each for each in KERNELS if each in self.plan.kernel_shares)
        return coordinates(X, everything, kernel)

    def alike(self, X_new: Any) -> Any:
        """Return new rows as the training rows are kept: sparse, or not.

        Parameters
        ----------
        X_new : ndarray or sparse of shape (n_new, n_features)
            New rows.

        Returns
        -------
        ndarray or csr_array of shape (n_new, n_features)
            The same numbers.
        """
        if sparse.issparse(self.rows):
            return canonical_rows(X_new)
        if not sparse.issparse(X_new):
            return X_new
        require_memory(
            X_new.shape[0] * X_new.shape[1] * X_new.dtype.itemsize,
            "filling the zeros of sparse new rows, as the model was fitted to dense",
            "give fewer rows at a time, or fit the model to sparse rows",
        )
        return X_new.toarray()

    @classmethod
    def of(
        cls,
        rows: Rows,
        ensemble: Any,
        clusters: list[Any],
        weights: Array,
        profiles: Profiles,
        *,
        by_degree: bool,
    ) -> Self:
        """Collect what new rows are placed by, from rows here or on a cluster.

        Parameters
        ----------
        rows : Rows
            The data.
        ensemble : Ensemble or DistributedEnsemble
            Made by `mdec.generate_ensemble` from them.
        clusters : list
            Handles of the consensus clusters of each row block.
        weights : ndarray of shape (n_base_clusters,)
            Weight of each base cluster.
        profiles : Profiles
            Sums over the clusters.
        by_degree : bool
            As in `mdec.confidence.mean_profiles`.

        Returns
        -------
        Placement
            In this process.
        """
        plan, worker = ensemble.plan, ensemble.worker
        if plan.base == "landmark":
            chosen = pool_rows(plan)
            labels = worker.value(
                gathered_rows(worker, ensemble.parts, ensemble.bounds, chosen)
            )
        else:
            labels = ensemble.labels
        means, plain_means = (
            mean_profiles(ensemble, clusters, weights, profiles, by_degree=each)
            for each in (by_degree, False)
        )
        known = training_rows(rows, plan)
        learnt = Versions.of(known, plan.preparation).learnt
        drawn = ensemble.offsets, ensemble.members, plan
        return cls(known, learnt, labels, *drawn, means, weights, plain_means)


@dataclass(frozen=True)
class JoinedPlacement:
    """What new rows are placed by that come in several views.

    Attributes
    ----------
    views : tuple of Placement
        What the base clusters of each view's members are found by, in the order of the
        ensemble's views.
    offsets, means, weights, plain_means
        As in `Placement`, of the members of all views.
    """

    views: tuple[Placement, ...]
    offsets: NDArray[np.int64]
    means: Array
    weights: Array
    plain_means: Array
