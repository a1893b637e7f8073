"""What members are drawn with: their features, kernels and numbers of clusters."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.random import RandomState, member_stream
from mdec.base.kernels import KERNELS, draw_kernel_params
from mdec.base.landmarks import (
    AUTO_SAMPLES,
    AUTO_SAMPLES_ON_CARD,
    landmark_cluster_bounds,
    landmark_count,
)
from mdec.engines.card import resolve_device
from mdec.ensemble import Member
from mdec.rows.blocks import block_bounds, block_height

BASES = ("graph", "landmark", "auto")


def draw_subspace(
    n_features: int, sampling_ratio: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    r"""Draw the features of a member, without replacement.

    Parameters
    ----------
    n_features : int
        D.
    sampling_ratio : float
        :math:`\tau`, the share of the features to draw.
    rng : Generator
        Source of the draw.

    Returns
    -------
    ndarray
        :math:`\lfloor \tau D + 1/2 \rfloor` sorted feature numbers.

    Examples
    --------
    >>> draw_subspace(5, 0.5, np.random.default_rng(0)).size
    3
    """
    size = math.floor(sampling_ratio * n_features + 0.5)
    return np.sort(rng.choice(n_features, size=size, replace=False))


def base_n_clusters_bounds(
    n_samples: int, base_n_clusters_range: tuple[int, int] | None
) -> tuple[int, int]:
    r"""Return the least and greatest number of clusters of a member.

    Notes
    -----
    By default :math:`K_m` is uniform on :math:`\{2, ..., \lceil\sqrt N\rceil\}`.
    """
    if base_n_clusters_range is None:
        return 2, max(2, math.ceil(math.sqrt(n_samples)))
    return base_n_clusters_range


def draw_member(entropy: int, index: int, attempt: int, spec: dict[str, Any]) -> Member:
    """Draw the parameters of one member, Eqs. 4 to 7."""
    kernel_rng = member_stream(entropy, index, "kernel", attempt)
    n_neighbors, mu = draw_kernel_params(
        spec["n_samples"], spec["n_neighbors_range"], spec["mu_range"], kernel_rng
    )
    count_rng = member_stream(entropy, index, "n_clusters", attempt)
    low, high = spec["base_n_clusters_range"]
    n_clusters = int(count_rng.integers(low, high, endpoint=True))
    return Member(index, attempt, n_neighbors, mu, n_clusters)


def member_features(member: Member, spec: dict[str, Any]) -> NDArray[np.int64]:
    """Return the features that a member looks at, drawn again from its seed.

    Parameters
    ----------
    member : Member
        One of ``ensemble.members``.
    spec : dict
        ``ensemble.parameters``.

    Returns
    -------
    ndarray
        Sorted feature numbers.
    """
    rng = member_stream(spec["entropy"], member.index, "subspace", member.attempt)
    return draw_subspace(spec["n_features"], spec["sampling_ratio"], rng)


def resolved_base(
    base: str, device: str, n_samples: int, *, rows_in_memory: bool = True
) -> tuple[str, str]:
    """Return how and where members cluster: what was asked for, or what "auto" takes.

    Examples
    --------
    >>> resolved_base("auto", "cpu", 1000)
    ('graph', 'cpu')
    >>> resolved_base("auto", "cpu", 1_000_000)
    ('landmark', 'cpu')
    """
    if base not in BASES:
        raise ValueError(f"base={base!r} is not one of {', '.join(BASES)}.")
    if base == "graph" and not rows_in_memory:
        raise ValueError(
            "base='graph' needs all rows in memory; use base='landmark' or 'auto' for "
            "rows that are read in blocks, or load them."
        )
    place = resolve_device(device)
    if base == "auto":
        most = AUTO_SAMPLES if place == "cpu" else AUTO_SAMPLES_ON_CARD
        base = "graph" if n_samples <= most and rows_in_memory else "landmark"
    if base == "landmark" and device not in ("cpu", "auto"):
        raise ValueError(
            f"landmarks are not computed on a card; use device='cpu' instead of "
            f"{device!r}, or base='graph'."
        )
    return base, place if base == "graph" else "cpu"


def generation_spec(
    shape: tuple[int, ...],
    *,
    base: str,
    device: str,
    base_n_clusters_range: tuple[int, int] | None,
    entropy: int,
    **drawn: Any,
) -> dict[str, Any]:
    """Return what all members share, ``ensemble.parameters``."""
    spec = {
        "entropy": entropy,
        "n_samples": shape[0],
        "n_features": shape[1],
        "base": base,
        "device": device,
        **drawn,
    }
    if base == "landmark":
        spec["n_landmarks"] = landmark_count(shape[0])
        if base_n_clusters_range is None:
            base_n_clusters_range = landmark_cluster_bounds(shape[0])
    spec["base_n_clusters_range"] = base_n_clusters_bounds(
        shape[0], base_n_clusters_range
    )
    return spec


def row_bounds(spec: dict[str, Any]) -> list[tuple[int, int]]:
    """Return the first row of each block and the one after its last."""
    return block_bounds(spec["n_samples"], block_height(spec["n_features"]))


def check_resumable(random_state: RandomState) -> None:
    """Raise if a checkpoint would not find the same members again."""
    if not isinstance(random_state, (int, np.integer)):
        raise ValueError(
            "a checkpoint needs an integer random_state; without one the next run "
            "would make other members."
        )


def refuse_equal_rows(constant: bool, spec: dict[str, Any]) -> None:
    """Raise if there is nothing to tell samples apart."""
    if constant:
        raise ValueError(
            f"all {spec['n_samples']} samples are equal, so there is nothing to "
            "cluster; check how X was read or scaled."
        )


def check_parameters(ensemble_size: int, spec: dict[str, Any]) -> None:
    """Raise one sentence for parameters that do not fit each other or the shape."""
    n_samples, n_features = spec["n_samples"], spec["n_features"]
    ratio = spec["sampling_ratio"]
    if ensemble_size < 1:
        raise ValueError(
            f"ensemble_size={ensemble_size} makes no member; use 1 or more."
        )
    if spec["kernel"] not in KERNELS:
        raise ValueError(
            f"kernel={spec['kernel']!r} is not one of {', '.join(KERNELS)}."
        )
    if not 0.0 < ratio <= 1.0:
        raise ValueError(f"sampling_ratio={ratio} must be above 0 and at most 1.")
    if math.floor(ratio * n_features + 0.5) < 1:
        raise ValueError(
            f"sampling_ratio={ratio} selects none of the {n_features} features; raise "
            f"it to {0.5 / n_features:.3g} or more."
        )
    for name, least in (
        ("mu_range", None),
        ("n_neighbors_range", 1),
        ("base_n_clusters_range", 2),
    ):
        _check_range(name, spec[name], least)
    if spec["base_n_clusters_range"][1] > n_samples:
        raise ValueError(
            f"base_n_clusters_range={spec['base_n_clusters_range']} asks for more "
            f"clusters than the {n_samples} samples; lower its end."
        )
    if spec["base_n_clusters_range"][1] > spec.get("n_landmarks", n_samples):
        raise ValueError(
            f"base_n_clusters_range={spec['base_n_clusters_range']} asks for more "
            f"clusters than the {spec['n_landmarks']} landmarks; lower its end, or use "
            "base='graph'."
        )


def _check_range(name: str, value: tuple[float, ...], least: int | None) -> None:
    """Raise unless the value is (low, high), whole numbers where `least` is given."""
    kind, bound = ("numbers", "above 0") if least is None else ("whole numbers", least)
    wanted: type = Real if least is None else Integral
    right = (
        len(value) == 2
        and all(isinstance(end, wanted) for end in value)
        and value[0] <= value[1]
        and (value[0] > 0 if least is None else value[0] >= least)
    )
    if not right:
        raise ValueError(
            f"{name}={value} must be two {kind}, the least and the greatest, with the "
            f"least {bound}{' or more' if least else ''}."
        )
