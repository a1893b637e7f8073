"""What members may be drawn with, given the data; what does not fit is one sentence."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from mdec.ensemble.draws import subspace_size

# Features that a member needs for its kernel, if there are so many: the cosine of one
# is a sign, and so is the correlation of two.
LEAST_FEATURES = {"cosine": 2, "correlation": 3, "spearman": 3}

MAX_LANDMARKS = 10_000
MAX_LANDMARK_CLUSTERS = 100

# Fewer samples have no clusters to speak of.
MIN_CLUSTERED = 3


def landmark_count(n_samples: int) -> int:
    r"""Return the number of landmarks of a member.

    Notes
    -----
    All samples up to 10,000, which then are cut as in a graph. Tangled classes need
    that many to be told apart, with any number of samples.

    Examples
    --------
    >>> [landmark_count(n) for n in (400, 11_000, 1_000_000)]
    [400, 10000, 10000]
    """
    return min(n_samples, MAX_LANDMARKS)


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
    if base == "landmark":
        greatest = min(greatest, MAX_LANDMARK_CLUSTERS)
    return 2, greatest


def check_sampling_ratio(ratio: float, n_features: int) -> None:
    """Raise unless a share of the features is one feature or more."""
    if not 0.0 < ratio <= 1.0:
        raise ValueError(f"sampling_ratio={ratio} must be above 0 and at most 1.")
    if subspace_size(n_features, ratio) < 1:
        raise ValueError(
            f"sampling_ratio={ratio} selects none of the {n_features} features; raise "
            f"it to {0.5 / n_features:.3g} or more."
        )


def check_sample_ratio(ratio: float, n_samples: int, base: str, device: str) -> None:
    """Raise unless a share of the samples can be clustered, and with that base."""
    if not 0.0 < ratio <= 1.0:
        raise ValueError(f"sample_ratio={ratio} must be above 0 and at most 1.")
    if ratio == 1.0:
        return
    if base == "landmark" or device != "cpu":
        raise ValueError(
            f"sample_ratio={ratio} draws samples with base='graph' and device='cpu' "
            f"only, not with base={base!r} and device={device!r}; use those, or "
            "sample_ratio=1."
        )
    if subspace_size(n_samples, ratio) < MIN_CLUSTERED:
        enough = "1"
        if n_samples > MIN_CLUSTERED:
            enough = f"{MIN_CLUSTERED / n_samples:.3g} or more"
        raise ValueError(
            f"sample_ratio={ratio} draws {subspace_size(n_samples, ratio)} of the "
            f"{n_samples} samples for each base clustering, which needs "
            f"{MIN_CLUSTERED}; raise it to {enough}."
        )


def cluster_range(
    value: tuple[int, int], n_samples: int, n_landmarks: int | None
) -> tuple[int, int]:
    """Return how many clusters members may have, if there are so many samples."""
    low, high = whole_range("base_n_clusters_range", value, 2)
    if high > n_samples:
        raise ValueError(
            f"base_n_clusters_range={value} asks for more clusters than the "
            f"{n_samples} samples; lower its end."
        )
    if n_landmarks is not None and high > n_landmarks:
        raise ValueError(
            f"base_n_clusters_range={value} asks for more clusters than the "
            f"{n_landmarks} landmarks; lower its end, or use base='graph'."
        )
    return low, high


def whole_range(name: str, value: tuple[int, int], least: int) -> tuple[int, int]:
    """Return (low, high) in plain whole numbers from `least` up."""
    if not _is_range(value, Integral) or value[0] < least:
        raise ValueError(
            f"{name}={value} must be two whole numbers, the least and the greatest, "
            f"with the least {least} or more."
        )
    return int(value[0]), int(value[1])


def real_range(name: str, value: tuple[float, float]) -> tuple[float, float]:
    """Return (low, high) in plain numbers above 0."""
    if not _is_range(value, Real) or value[0] <= 0 or not math.isfinite(value[1]):
        raise ValueError(
            f"{name}={value} must be two numbers, the least and the greatest, with the "
            "least above 0."
        )
    return float(value[0]), float(value[1])


def _is_range(value: tuple[Any, ...], kind: type) -> bool:
    return (
        len(value) == 2
        and all(isinstance(end, kind) for end in value)
        and bool(value[0] <= value[1])
    )
