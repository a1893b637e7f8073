"""The draws of a member: its features, its kernel and its number of clusters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.messages import refuse

# Features that a member needs for its kernel, if there are so many: the cosine of one
# is a sign, and so is the correlation of two.
LEAST_FEATURES = {"cosine": 2, "correlation": 3, "spearman": 3}
KERNELS = ("scaled_gaussian", "scaled_exponential", *LEAST_FEATURES)

# A member has as many landmarks as samples up to so many, which then are cut as in a
# graph. Tangled classes need that many to come apart, with any number of samples.
MAX_LANDMARKS = 10_000
MAX_LANDMARK_CLUSTERS = 100

# Names of kernels, sorted, each with its share of the members.
Shares = tuple[tuple[str, float], ...]

Kernel = str | Sequence[str] | Mapping[str, float]


def check_kernel(kernel: Kernel) -> str | Shares:
    """Return one kernel by its name, several as sorted names with their shares.

    Several names are drawn alike; given shares need not add up to one, and those that
    are returned do.

    Examples
    --------
    >>> check_kernel(["scaled_gaussian"])
    'scaled_gaussian'
    >>> check_kernel({"scaled_gaussian": 3, "cosine": 1})
    (('cosine', 0.25), ('scaled_gaussian', 0.75))
    """
    known, given = ", ".join(KERNELS), f"kernel={kernel!r}"
    several = isinstance(kernel, Mapping | list | tuple)
    refusals = {
        f"{given} is not a name, list of names or mapping of names to shares; the "
        f"names are {known}.": not several and not isinstance(kernel, str),
        f"{given} names no kernel; give one or more of {known}.": several
        and not kernel,
    }
    refuse(refusals)
    names: list[Any] = [kernel] if isinstance(kernel, str) else list(kernel)
    shares: dict[str, float] = {}
    for name in names:
        place = given if isinstance(kernel, str) else f"{name!r} in {given}"
        share = kernel[name] if isinstance(kernel, Mapping) else 1.0
        # A bool is a number to Python, and True no share.
        number = isinstance(share, Real) and not isinstance(share, bool)
        refusals = {
            f"{place} is not one of {known}.": name not in KERNELS,
            f"{given} names {name!r} twice; give shares instead, such as "
            f"{{{name!r}: 2, ...}}.": names.count(name) > 1,
            f"the share {share!r} of the kernel {name!r} must be a number above 0; "
            "leave out the kernels that no member is to draw.": not number
            or not 0.0 < share < math.inf,
        }
        refuse(refusals)
        shares[str(name)] = float(share)
    if len(shares) == 1:
        return next(iter(shares))
    # In units of the largest, so that no sum overflows.
    largest = max(shares.values())
    total = math.fsum(share / largest for share in shares.values())
    return tuple(sorted((n, share / largest / total) for n, share in shares.items()))


def subspace_size(n_features: int, max_features: float) -> int:
    r"""Return the number of features to draw, :math:`\lfloor \tau D + 1/2 \rfloor`."""
    return math.floor(max_features * n_features + 0.5)


def base_n_clusters_bounds(n_samples: int, base: str) -> tuple[int, int]:
    r"""Return the least and greatest number of clusters of a member.

    Notes
    -----
    :math:`K_m` is uniform on :math:`\{2, ..., \lceil\sqrt N\rceil\}`; with landmarks
    at most 100, as for 10,000 samples: a hundred landmarks for each cluster.

    Examples
    --------
    >>> base_n_clusters_bounds(50_000, "graph")
    (2, 224)
    >>> base_n_clusters_bounds(50_000, "landmark")
    (2, 100)
    """
    greatest = max(2, math.ceil(math.sqrt(n_samples)))
    return 2, min(greatest, MAX_LANDMARK_CLUSTERS) if base == "landmark" else greatest


def draw_subspace(
    n_features: int, max_features: float, rng: np.random.Generator, least: int = 0
) -> NDArray[np.int64]:
    r"""Draw the features of a member, without replacement.

    Parameters
    ----------
    n_features : int
        D.
    max_features : float
        :math:`\tau`, the share of the features to draw.
    rng : Generator
        Source of the draw.
    least : int, default=0
        Features that the member needs, if there are so many.

    Returns
    -------
    ndarray
        :math:`\lfloor \tau D + 1/2 \rfloor` sorted feature numbers.

    Examples
    --------
    >>> draw_subspace(5, 0.5, np.random.default_rng(0)).size
    3
    """
    size = max(subspace_size(n_features, max_features), min(least, n_features))
    return np.sort(rng.choice(n_features, size=size, replace=False))


def draw_kernel_params(
    n_samples: int,
    n_neighbors_range: tuple[int, int],
    mu_range: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[int, float]:
    r"""Draw the two parameters of a member's kernel, Eqs. 4 and 5.

    Parameters
    ----------
    n_samples : int
        Caps the number of neighbours at ``n_samples - 1``.
    n_neighbors_range : tuple of int
        Least and greatest k, both included.
    mu_range : tuple of float
        Interval of the kernel's width.
    rng : Generator
        Source of the draws.

    Returns
    -------
    k : int
        Number of neighbours.
    mu : float
        Width.

    Notes
    -----
    :math:`k` is uniform on :math:`\{k_{min}, ..., k_{max}\}` and :math:`\mu` on
    :math:`[\mu_{min}, \mu_{max}]`.
    """
    low, high = (min(k, n_samples - 1) for k in n_neighbors_range)
    n_neighbors = int(rng.integers(low, high, endpoint=True))
    return n_neighbors, float(rng.uniform(*mu_range))


def check_cluster_range(
    value: tuple[int, ...], n_samples: int, n_landmarks: int | None
) -> tuple[int, int]:
    """Return how many clusters members may have, if there are so many samples."""
    low, high = check_range("base_n_clusters_range", value, 2)
    asks = f"base_n_clusters_range={value} asks for more clusters than the"
    refusals = {
        f"{asks} {n_samples} samples; lower its end.": high > n_samples,
        f"{asks} {n_landmarks} landmarks; lower its end, or use base='graph'.": (
            n_landmarks is not None and high > n_landmarks
        ),
    }
    refuse(refusals)
    return low, high


def check_range(name: str, value: Any, least: int | None = None) -> tuple[Any, Any]:
    """Return (low, high) in plain whole numbers from `least` up; None: above 0."""
    real = Real, float, ""
    kind, plain, whole = real if least is None else (Integral, int, "whole ")
    if (
        len(value) != 2
        or not all(isinstance(end, kind) for end in value)
        or not (value[0] > 0 if least is None else value[0] >= least)
        or not value[0] <= value[1] < math.inf
    ):
        bound = "above 0" if least is None else f"{least} or more"
        raise ValueError(
            f"{name}={value} must be two {whole}numbers, the least and the greatest, "
            f"with the least {bound}."
        )
    return plain(value[0]), plain(value[1])
