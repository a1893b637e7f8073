"""How one member clusters; here the base clusterings and metrics of a user's own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from mdec._support.arrays import Array
from mdec._support.memory import require_memory
from mdec.base.kernels import SIMILARITY
from mdec.base.pairs import PRECOMPUTED, Metric, Pairs
from mdec.ensemble import Ensemble
from mdec.ensemble.draws import Shares
from mdec.rows.blocks import Rows

__all__ = ["from_estimator"]

# From the rows of a subspace, a number of clusters and a stream to labels.
Base = Callable[[Array, int, np.random.Generator], ArrayLike]


def cluster_by_function(
    base: Base, rows: Array, n_clusters: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Return the labels of a user's own base clustering, numbered from 0.

    The function may ignore the number of clusters that the member drew; -1 stands for
    rows that it leaves out.
    """
    name, found = name_of(base), np.asarray(base(rows, n_clusters, rng))
    if found.shape != (len(rows),):
        raise TypeError(
            f"base={name} must return one label for each of the {len(rows)} rows "
            f"and returned shape {found.shape}."
        )
    try:
        return Ensemble.from_labels(found[:, None]).labels[:, 0]
    except ValueError as error:
        raise ValueError(f"base={name} returned no labels: {error}") from error


def measure_pairs(metric: Metric, rows: Array) -> Pairs:
    """Return all pairs of rows as a user's own metric measures them."""
    name, found = name_of(metric), metric(rows)
    if np.shape(found) != (len(rows), len(rows)):
        raise TypeError(
            f"metric={name} must return a matrix of all pairs of the {len(rows)} "
            f"rows and returned shape {np.shape(found)}."
        )
    return Pairs.of(found, f"metric={name}")


@dataclass(frozen=True)
class _FittedCopies:
    """A base clustering that fits copies of a clusterer."""

    estimator: Any

    def __call__(
        self, rows: Array, n_clusters: int, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Fit a copy to the rows of a subspace, and return its labels."""
        known = sorted(self.estimator.get_params())
        # Parts of a pipeline have names such as "kmeans__n_clusters".
        last = {name: name.rpartition("__")[2] for name in known}
        wanted = {name: n_clusters for name in known if last[name] == "n_clusters"}
        if not wanted and "n_components" in known:
            wanted = {"n_components": n_clusters}
        for name in known:
            if last[name] == "random_state":
                wanted[name] = int(rng.integers(2**31))
        copy = clone(self.estimator).set_params(**wanted)
        labels: NDArray[Any] = copy.fit_predict(rows)
        return labels


def from_estimator(estimator: Any) -> Base:
    """Make a base clustering of a scikit-learn clusterer.

    Parameters
    ----------
    estimator : estimator
        Any with `fit_predict`, a pipeline too. Each member fits a copy; the number of
        clusters that it drew and a seed of its stream are set where there are such
        parameters (`n_clusters`, or `n_components` of a mixture, and `random_state`).

    Returns
    -------
    callable
        For ``MDEC(base=...)``.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> base = from_estimator(KMeans(n_init=1))
    >>> rows = np.array([[0.0], [0.1], [9.0]])
    >>> labels = base(rows, 2, np.random.default_rng(0))
    >>> bool(labels[0] == labels[1] != labels[2])
    True
    """
    if not hasattr(estimator, "fit_predict") or isinstance(estimator, type):
        raise TypeError(
            f"{estimator!r} has no fit_predict; give a clusterer of scikit-learn's "
            "kind, such as KMeans()."
        )
    return _FittedCopies(estimator)


def name_of(function: str | Callable[..., Any]) -> str:
    """Return what a function is called, as module:name; names are their own.

    Examples
    --------
    >>> name_of(np.linalg.norm), name_of("graph")
    ('numpy.linalg:norm', 'graph')
    """
    if isinstance(function, str):
        return str(function)
    if isinstance(function, _FittedCopies):
        # The clusterer with its parameters, which tell it from another.
        kind, known = type(function.estimator), function.estimator.get_params()
        words = [f"{n}={known[n]!r}" for n in sorted(known)]
        return f"{kind.__module__}:{kind.__qualname__}({', '.join(words)})"
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def check_findable(parameter: str, function: Callable[..., Any]) -> None:
    """Raise unless another run can tell by its name that a function is the same."""
    if isinstance(function, _FittedCopies):
        return
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for name in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    if found is not function:
        raise ValueError(
            f"a checkpoint knows functions by their names, and {parameter}="
            f"{name_of(function)} has none that another run could find; define it with "
            "def at the top of a module, or leave checkpoint out."
        )


def check_functions(
    base: str | Base,
    metric: str | Metric | None,
    kernel: str | Shares,
    preparation: str | None,
    device: str,
    rows: Rows,
) -> None:
    """Raise if a base clustering or a metric of a user's own does not fit the rest.

    Parameters
    ----------
    base : str or callable
        How members cluster.
    metric : str, callable or None
        How their distances are measured.
    kernel : str or tuple of (str, float)
        What makes similarities of these.
    preparation : str or None
        How members prepare features.
    device : str
        The CPU is the only place.
    rows : Rows
        The data, which must be in memory.
    """
    measure = f"metric={name_of(metric or '')}"
    part = f"base={name_of(base)}" if metric is None else measure
    names = [kernel] if isinstance(kernel, str) else [name for name, _ in kernel]
    angular = [name for name in names if name not in SIMILARITY and metric is not None]
    given = metric is not None and not callable(metric)
    n_samples, n_columns = rows.shape
    refusals = {
        "a base clustering of your own measures its rows itself; leave out metric, or "
        "base.": metric is not None and callable(base),
        f"{part} needs base='graph' and not {name_of(base)!r}; landmarks measure their "
        "own distances.": metric is not None and base not in ("graph", "auto"),
        f"{part} needs all rows in memory and not sparse; load or fill them, or leave "
        "it out.": rows.array is None,
        f"{part} works on the CPU; use device='cpu' instead of {device!r}.": device
        not in ("cpu", "auto"),
        f"metric={metric!r} is not None, {PRECOMPUTED!r} or a function of rows; the "
        "kernels measure distances of their own.": given and metric != PRECOMPUTED,
        f"kernel={(angular or names)[0]!r} measures directions itself and takes none "
        f"from {measure}; use {' or '.join(SIMILARITY)}.": bool(angular),
        f"preparation={preparation!r} prepares features, and a precomputed matrix has "
        "none; prepare them before their distances are computed.": given
        and preparation is not None,
        "metric='precomputed' needs a square matrix of all pairs of samples, and X is "
        f"{n_samples} x {n_columns}; leave metric out for rows of features.": given
        and n_samples != n_columns,
    }
    for sentence, refused in refusals.items():
        if refused:
            raise ValueError(sentence)
    if given:
        require_memory(
            3 * 8 * n_samples**2,
            f"checking all pairs of {n_samples} samples",
            "cluster fewer samples, or give features instead of pairs",
        )
