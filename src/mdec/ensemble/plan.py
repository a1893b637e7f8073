"""What members are drawn with: their features, kernels and numbers of clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mdec._support.random import member_stream
from mdec.ensemble.draws import (
    Shares,
    draw_kernel,
    draw_kernel_params,
    draw_subspace,
    subspace_size,
)
from mdec.ensemble.limits import (
    LEAST_FEATURES,
    base_n_clusters_bounds,
    check_sample_ratio,
    check_sampling_ratio,
    cluster_range,
    landmark_count,
    real_range,
    whole_range,
)
from mdec.preparation.recipes import Draw, draw_preparation
from mdec.rows.blocks import block_bounds, block_height


@dataclass(frozen=True)
class Member:
    """What one base clustering was made with; its features follow from the seed.

    Attributes
    ----------
    index : int
        Position in the drawn ensemble, part of the member's seed.
    attempt : int
        0, or 1 if the first attempt failed.
    n_neighbors : int
        k of its similarity graph.
    mu : float
        Width of its kernel.
    n_clusters : int
        Number of clusters asked for.
    preparation : Draw or None
        How the values are prepared; None takes them as they are.
    kernel : str or None
        The kernel it drew; None where all members have the same.
    """

    index: int
    attempt: int
    n_neighbors: int
    mu: float
    n_clusters: int
    preparation: Draw | None = None
    kernel: str | None = None

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return the member that `to_json` wrote; raise if it is none.

        Parameters
        ----------
        content : dict
            What `to_json` gave.

        Returns
        -------
        Member
            The same member.
        """
        drawn = content.get("preparation")
        return cls(**{**content, "preparation": Draw(**drawn) if drawn else None})

    def to_json(self) -> dict[str, Any]:
        """Return plain numbers, without what was not drawn.

        Returns
        -------
        dict
            What JSON can hold.
        """
        absent = {"preparation": self.preparation, "kernel": self.kernel}
        dropped = {name for name, value in absent.items() if value is None}
        return {k: v for k, v in asdict(self).items() if k not in dropped}


@dataclass(frozen=True)
class Plan:
    """What all members of an ensemble share, and the draws that follow from it.

    Attributes
    ----------
    entropy : int
        Root of every random stream.
    n_samples, n_features : int
        Shape of the data.
    base : str
        How a member clusters: "graph", "landmark", or a user's own function by its
        name.
    device : {"cpu", "cuda", "torch"}
        Where it does.
    sampling_ratio : float
        Share of the features that a member looks at.
    kernel : str or tuple of (str, float)
        Similarity of the samples; several names with shares where each member draws
        its own.
    mu_range : tuple of float
        Interval of the kernel's width.
    n_neighbors_range : tuple of int
        Interval of the number of neighbours.
    base_n_clusters_range : tuple of int
        Interval of a member's number of clusters.
    n_landmarks : int or None
        Landmarks of a member; None with graphs.
    preparation : str or None
        The kind of the values where members draw their own preparation, one of
        `mdec.preparation.KINDS`; None takes the values as they are.
    sample_ratio : float
        Share of the samples that a member clusters.
    metric : str or None
        "precomputed" where the data are all pairs of samples, or the name of the
        function that measures them; None for the distances of the kernel.

    Examples
    --------
    >>> plan = Plan.checked(100, 8, entropy=0)
    >>> plan.member(3).n_neighbors, plan.member(3).n_clusters
    (7, 9)
    >>> plan.features(plan.member(3))
    array([0, 1, 6, 7])
    >>> Plan.from_json(plan.to_json()) == plan
    True
    """

    entropy: int
    n_samples: int
    n_features: int
    base: str
    device: str
    sampling_ratio: float
    kernel: str | Shares
    mu_range: tuple[float, float]
    n_neighbors_range: tuple[int, int]
    base_n_clusters_range: tuple[int, int]
    n_landmarks: int | None = None
    preparation: str | None = None
    sample_ratio: float = 1.0
    metric: str | None = None

    @classmethod
    def checked(
        cls,
        n_samples: int,
        n_features: int,
        *,
        entropy: int,
        base: str = "graph",
        device: str = "cpu",
        sampling_ratio: float = 0.5,
        kernel: str | Shares = "scaled_gaussian",
        mu_range: tuple[float, float] = (0.2, 0.8),
        n_neighbors_range: tuple[int, int] = (5, 20),
        base_n_clusters_range: tuple[int, int] | None = None,
        preparation: str | None = None,
        sample_ratio: float = 1.0,
        metric: str | None = None,
    ) -> Self:
        """Return a plan, or raise one sentence for what does not fit.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of the data.
        entropy : int
            Root of every random stream.
        base : str
            How a member clusters.
        device : {"cpu", "cuda", "torch"}
            Where it does.
        sampling_ratio, mu_range, n_neighbors_range : object
            As in `mdec.generate_ensemble`.
        kernel : str or tuple of (str, float)
            As `mdec.base.mixes.checked_kernel` returns it.
        base_n_clusters_range : object
            As in `mdec.generate_ensemble`; NumPy's numbers are as good as Python's.
        preparation : str or None
            The kind of the values, if members draw their own preparation.
        sample_ratio : float, default=1.0
            Share of the samples that a member clusters.
        metric : str or None
            How its distances are measured, if not by the kernel.

        Returns
        -------
        Plan
            In plain numbers.
        """
        check_sampling_ratio(sampling_ratio, n_features)
        n_landmarks = landmark_count(n_samples) if base == "landmark" else None
        check_sample_ratio(sample_ratio, n_samples, base, device)
        n_clustered = subspace_size(n_samples, sample_ratio)
        if base_n_clusters_range is None:
            base_n_clusters_range = base_n_clusters_bounds(n_clustered, base)
        return cls(
            entropy=entropy,
            n_samples=n_samples,
            n_features=n_features,
            base=base,
            device=device,
            sampling_ratio=float(sampling_ratio),
            kernel=kernel,
            mu_range=real_range("mu_range", mu_range),
            n_neighbors_range=whole_range("n_neighbors_range", n_neighbors_range, 1),
            base_n_clusters_range=cluster_range(
                base_n_clusters_range, n_clustered, n_landmarks
            ),
            n_landmarks=n_landmarks,
            preparation=preparation,
            sample_ratio=float(sample_ratio),
            metric=metric,
        )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return the plan that `to_json` wrote; raise if it is none.

        Parameters
        ----------
        content : mapping
            ``ensemble.parameters``, or what JSON made of them.

        Returns
        -------
        Plan
            Equal to the one written.
        """
        names = {field.name for field in fields(cls)}
        optional = {"n_landmarks", "preparation", "sample_ratio", "metric"}
        if not names - optional <= set(content) <= names:
            raise ValueError(
                "these are not the parameters of an ensemble that generate_ensemble "
                "made; make one from the data."
            )
        ranged = {name: content[name] for name in names if name.endswith("_range")}
        tuples = {name: tuple(value) for name, value in ranged.items()}
        kernel = content["kernel"]
        if not isinstance(kernel, str):
            kernel = tuple((str(name), float(share)) for name, share in kernel)
        return cls(**{**content, **tuples, "kernel": kernel})

    def to_json(self) -> dict[str, Any]:
        """Return plain numbers, strings and tuples of them, ready to be written.

        Returns
        -------
        dict
            What JSON can hold.
        """
        absent = {"n_landmarks": self.n_landmarks, "preparation": self.preparation}
        absent |= {"metric": self.metric}
        dropped = {name for name, value in absent.items() if value is None}
        if self.sample_ratio == 1.0:
            dropped.add("sample_ratio")
        return {k: v for k, v in asdict(self).items() if k not in dropped}

    @property
    def has_own_base(self) -> bool:
        """Whether members cluster by a user's own function."""
        return self.base not in ("graph", "landmark")

    @property
    def n_drawn(self) -> int:
        """Number of features that a member looks at; of several kernels the most."""
        least = max(LEAST_FEATURES.get(name, 1) for name in self.kernel_shares)
        drawn = subspace_size(self.n_features, self.sampling_ratio)
        return max(drawn, min(least, self.n_features))

    @property
    def n_clustered(self) -> int:
        """Number of samples that a member clusters."""
        return subspace_size(self.n_samples, self.sample_ratio)

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """First row of each row block and the one after its last."""
        return block_bounds(self.n_samples, block_height(self.n_features))

    def member(self, index: int, attempt: int = 0) -> Member:
        """Draw the parameters of one member, Eqs. 4 to 7.

        Parameters
        ----------
        index : int
            Position in the ensemble.
        attempt : int, default=0
            1 for the second attempt, with streams of its own.

        Returns
        -------
        Member
            The same for any number of members.
        """
        n_neighbors, mu = draw_kernel_params(
            self.n_clustered,
            self.n_neighbors_range,
            self.mu_range,
            member_stream(self.entropy, index, "kernel", attempt),
        )
        count_rng = member_stream(self.entropy, index, "n_clusters", attempt)
        low, high = self.base_n_clusters_range
        n_clusters = int(count_rng.integers(low, high, endpoint=True))
        preparation = None
        if self.preparation is not None:
            rng = member_stream(self.entropy, index, "preparation", attempt)
            preparation = draw_preparation(self.preparation, rng)
        kernel = None
        if not isinstance(self.kernel, str):
            rng = member_stream(self.entropy, index, "which_kernel", attempt)
            kernel = draw_kernel(self.kernel, rng)
        return Member(index, attempt, n_neighbors, mu, n_clusters, preparation, kernel)

    @property
    def kernel_shares(self) -> dict[str, float]:
        """The kernels that members may have, with their shares."""
        return dict(
            [(self.kernel, 1.0)] if isinstance(self.kernel, str) else self.kernel
        )

    def kernel_of(self, member: Member) -> str:
        """Return the kernel of a member: its own, or that of all.

        Parameters
        ----------
        member : Member
            Who asks.

        Returns
        -------
        str
            Name of the kernel.
        """
        kernel = self.kernel if member.kernel is None else member.kernel
        if kernel not in self.kernel_shares:
            raise ValueError("this member belongs to another plan.")
        return str(kernel)

    def stream(self, member: Member, name: str) -> np.random.Generator:
        """Return the generator of one purpose inside one member.

        Parameters
        ----------
        member : Member
            Who draws.
        name : str
            What is drawn, one of the names of the random streams.

        Returns
        -------
        Generator
            The same for the same plan, member, attempt and name.
        """
        return member_stream(self.entropy, member.index, name, member.attempt)

    def samples(self, member: Member) -> NDArray[np.int64] | None:
        """Return the sorted samples of a member, drawn again; None for all.

        Parameters
        ----------
        member : Member
            Who draws.

        Returns
        -------
        ndarray of int, or None
            Rows of the samples.
        """
        if self.sample_ratio == 1.0:
            return None
        rng = self.stream(member, "samples")
        return draw_subspace(self.n_samples, self.sample_ratio, rng)

    def features(
        self, member: Member, among: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """Return the sorted features of a member, drawn again from its seed.

        Parameters
        ----------
        member : Member
            Whose features.
        among : ndarray, optional
            Sorted features to draw from; None for all.

        Returns
        -------
        ndarray
            At least one, and as many as its kernel needs.
        """
        rng = self.stream(member, "subspace")
        n_features = self.n_features if among is None else among.size
        least = min(LEAST_FEATURES.get(self.kernel_of(member), 1), n_features)
        ratio = self.sampling_ratio
        if subspace_size(n_features, ratio) < least:
            ratio = least / n_features
        drawn = draw_subspace(n_features, ratio, rng)
        return drawn if among is None else among[drawn]
