"""What members are made with: the plan that they share, and their own draws."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

from mdec._support.messages import refuse
from mdec._support.random import member_stream
from mdec.ensemble import draws
from mdec.preparation.recipes import RECIPES, Draw, draw_preparation
from mdec.rows.blocks import block_bounds

# Names that parameters had in files of version 0.1.
OLD_NAMES = {"sampling_ratio": "max_features", "sample_ratio": "max_samples"}

# Where members are made.
PLACES = ("cpu", "cuda", "torch")

# Fewer samples have no clusters to speak of.
MIN_CLUSTERED = 3


def current_names(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters by their names of today; files of version 0.1 have older ones.

    Examples
    --------
    >>> current_names({"sampling_ratio": 0.5, "base": "graph"})
    {'max_features': 0.5, 'base': 'graph'}
    """
    return {OLD_NAMES.get(name, name): value for name, value in parameters.items()}


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
        """Return the member that `to_json` wrote; raise if it is none."""
        drawn = content.get("preparation")
        return cls(**{**content, "preparation": Draw(**drawn) if drawn else None})

    def to_json(self) -> dict[str, Any]:
        """Return plain numbers that JSON can hold, without what was not drawn."""
        return {k: v for k, v in asdict(self).items() if v is not None}


@dataclass(frozen=True)
class Plan:
    """What all members of an ensemble share, and the draws that follow from it.

    A plan that does not fit the shape of the data is refused with one sentence.

    Attributes
    ----------
    n_samples, n_features : int
        Shape of the data.
    entropy : int
        Root of every random stream.
    base : str
        How a member clusters: "graph", "landmark", or a user's own function by its
        name.
    device : {"cpu", "cuda", "torch"}
        Where it does.
    max_features, max_samples : float
        As in `mdec.generate_ensemble`.
    kernel : str or tuple of (str, float)
        Similarity of the samples; several names with shares where each member draws
        its own, as `check_kernel` returns them.
    mu_range, n_neighbors_range : tuple
        As in `mdec.generate_ensemble`.
    base_n_clusters_range : tuple of int
        Interval of a member's number of clusters, filled in where it is empty.
    n_landmarks : int or None
        Landmarks of a member, filled in where it is None; None with graphs.
    preparation : str or None
        The kind of the values where members draw their own preparation, one of
        `mdec.preparation.recipes.KINDS`; None takes the values as they are.
    metric : str or None
        "precomputed" where the data are all pairs of samples, or the name of the
        function that measures them; None for the distances of the kernel.

    Examples
    --------
    >>> plan = Plan(100, 8, entropy=0)
    >>> plan.member(3).n_neighbors, plan.member(3).n_clusters
    (7, 9)
    >>> plan.features(plan.member(3))
    array([0, 1, 6, 7])
    >>> Plan.from_json(plan.to_json()) == plan
    True
    """

    n_samples: int
    n_features: int
    entropy: int
    base: str = "graph"
    device: str = "cpu"
    max_features: float = 0.5
    kernel: str | draws.Shares = "scaled_gaussian"
    mu_range: tuple[float, float] = (0.2, 0.8)
    n_neighbors_range: tuple[int, int] = (5, 20)
    base_n_clusters_range: tuple[int, ...] = ()
    n_landmarks: int | None = None
    preparation: str | None = None
    max_samples: float = 1.0
    metric: str | None = None

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in _CONSTRAINTS}
        validate_parameter_constraints(_CONSTRAINTS, given, "generate_ensemble")
        self._check_together()
        n_landmarks, clusters = self.n_landmarks, self.base_n_clusters_range
        if n_landmarks is None and self.base == "landmark":
            n_landmarks = min(self.n_samples, draws.MAX_LANDMARKS)
        if len(clusters) == 0:
            clusters = draws.base_n_clusters_bounds(self.n_clustered, self.base)
        k_range = draws.check_range("n_neighbors_range", self.n_neighbors_range, 1)
        clusters = draws.check_cluster_range(clusters, self.n_clustered, n_landmarks)
        # NumPy's numbers become Python's, which JSON can hold.
        plain = {
            "max_features": float(self.max_features),
            "max_samples": float(self.max_samples),
            "mu_range": draws.check_range("mu_range", self.mu_range),
            "n_neighbors_range": k_range,
            "base_n_clusters_range": clusters,
            "n_landmarks": n_landmarks,
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)

    def _check_together(self) -> None:
        """Raise for parts that do not go together, or leave nothing to cluster."""
        shares, samples = self.kernel_shares, self.max_samples
        features = self.max_features
        draws.check_kernel(self.kernel if isinstance(self.kernel, str) else shares)
        landmark, n_landmarks = self.base == "landmark", self.n_landmarks
        here_only = self.has_own_base or self.metric
        scaled = not set(shares) & set(draws.LEAST_FEATURES)
        square = not self.preparation and self.n_features == self.n_samples
        go_together = (
            # A bool is a number to Python, and True no number of features.
            self.base and not isinstance(self.n_features, bool),
            abs(math.fsum(shares.values()) - 1.0) <= 1e-9,
            not here_only or self.device == "cpu",
            not self.metric or (self.base == "graph" and scaled),
            self.metric != "precomputed" or square,
            not (self.preparation and landmark),
            n_landmarks is None or (landmark and n_landmarks <= self.n_samples),
        )
        more = self.n_samples > MIN_CLUSTERED
        enough = f"{MIN_CLUSTERED / self.n_samples:.3g} or more" if more else "1"
        refusals = {
            "base, metric, kernel, preparation, device and landmarks do not go "
            "together; make the ensemble with generate_ensemble.": not all(go_together),
            f"max_features={features} selects none of the {self.n_features} features; "
            f"raise it to {0.5 / self.n_features:.3g} or more.": draws.subspace_size(
                self.n_features, features
            )
            < 1,
            f"max_samples={samples} draws samples with base='graph' only, not with "
            "base='landmark'; use that, or max_samples=1.": landmark and samples != 1.0,
            f"max_samples={samples} draws {self.n_clustered} of the {self.n_samples} "
            "samples for each base clustering, which needs "
            f"{MIN_CLUSTERED}; raise it to {enough}.": samples != 1.0
            and self.n_clustered < MIN_CLUSTERED,
        }
        refuse(refusals)

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
        content = current_names(content)
        names = {field.name for field in fields(cls)}
        optional = {"n_landmarks", "preparation", "max_samples", "metric"}
        if not names - optional <= set(content) <= names:
            raise ValueError(
                "these are not the parameters of an ensemble that generate_ensemble "
                "made; make one from the data."
            )
        kernel = content["kernel"]
        if not isinstance(kernel, str):
            kernel = tuple((str(name), float(share)) for name, share in kernel)
        return cls(**{**content, "kernel": kernel})

    def to_json(self) -> dict[str, Any]:
        """Return plain numbers, strings and tuples of them, without what is not set."""
        unset = {"max_samples": 1.0}
        found = asdict(self).items()
        return {k: v for k, v in found if v is not None and unset.get(k) != v}

    @property
    def has_own_base(self) -> bool:
        """Whether members cluster by a user's own function."""
        return self.base not in ("graph", "landmark")

    @property
    def kernel_shares(self) -> dict[str, float]:
        """The kernels that members may have, with their shares."""
        return {self.kernel: 1.0} if isinstance(self.kernel, str) else dict(self.kernel)

    @property
    def n_drawn(self) -> int:
        """Number of features that a member looks at; of several kernels the most."""
        least = max(draws.LEAST_FEATURES.get(name, 1) for name in self.kernel_shares)
        drawn = draws.subspace_size(self.n_features, self.max_features)
        return max(drawn, min(least, self.n_features))

    @property
    def n_clustered(self) -> int:
        """Number of samples that a member clusters."""
        return draws.subspace_size(self.n_samples, self.max_samples)

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """First row of each row block and the one after its last."""
        return block_bounds(self.n_samples, self.n_features)

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

        def stream(name: str) -> np.random.Generator:
            return member_stream(self.entropy, index, name, attempt)

        drawn = self.n_clustered, self.n_neighbors_range, self.mu_range
        k, mu = draws.draw_kernel_params(*drawn, stream("kernel"))
        low, high = self.base_n_clusters_range
        n_clusters = int(stream("n_clusters").integers(low, high, endpoint=True))
        preparation = kernel = None
        if self.preparation is not None:
            preparation = draw_preparation(self.preparation, stream("preparation"))
        if not isinstance(self.kernel, str):
            names, shares = zip(*self.kernel, strict=True)
            kernel = str(stream("which_kernel").choice(names, p=shares))
        return Member(index, attempt, k, mu, n_clusters, preparation, kernel)

    def refuse_foreign(self, member: Member) -> None:
        """Raise for a member that cannot be drawn with this plan, as from a file."""
        ends = [min(k, self.n_clustered - 1) for k in self.n_neighbors_range]
        low, high = self.base_n_clusters_range
        draw, mixed = member.preparation, not isinstance(self.kernel, str)
        powers = RECIPES[self.preparation].drawn_powers if self.preparation else ()
        if not (
            is_count(member.index, 0)
            and member.attempt in (0, 1)
            and is_count(member.n_neighbors, ends[0])
            and is_count(member.n_clusters, low)
            and member.n_neighbors <= ends[1]
            and member.n_clusters <= high
            and self.mu_range[0] <= member.mu <= self.mu_range[1]
            and (member.kernel in self.kernel_shares if mixed else not member.kernel)
            and (draw is None) == (self.preparation is None)
            and (draw is None or (draw.power in powers and 0.0 < draw.share <= 1.0))
        ):
            raise ValueError("this member belongs to another plan.")

    def kernel_of(self, member: Member) -> str:
        """Return the kernel of a member: its own, or that of all."""
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
        """Return the sorted samples of a member, drawn again; None for all."""
        if self.max_samples == 1.0:
            return None
        rng = self.stream(member, "samples")
        return draws.draw_subspace(self.n_samples, self.max_samples, rng)

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
        least = draws.LEAST_FEATURES.get(self.kernel_of(member), 1)
        drawn = draws.draw_subspace(n_features, self.max_features, rng, least)
        return drawn if among is None else among[drawn]


def is_count(value: Any, least: int) -> bool:
    """Tell whether a value is a whole number from `least` up, and no truth value."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and bool(value >= least)


_COUNT = [Interval(Integral, 1, None, closed="left")]
_SHARE = [Interval(Real, 0.0, 1.0, closed="right")]

# What the parts of a plan can be, each by itself.
_CONSTRAINTS = {
    "n_samples": _COUNT,
    "n_features": _COUNT,
    "entropy": [Interval(Integral, 0, None, closed="left")],
    "base": [str],
    "metric": [str, None],
    "device": [StrOptions(set(PLACES))],
    "preparation": [StrOptions(set(RECIPES)), None],
    "n_landmarks": [*_COUNT, None],
    "max_features": _SHARE,
    "max_samples": _SHARE,
}
