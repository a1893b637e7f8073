"""Parts of a user's own: a base clustering or a metric, as functions of rows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from mdec._support.memory import require_memory
from mdec.base.given import PRECOMPUTED, Given, Metric
from mdec.base.kernels import SIMILARITY
from mdec.ensemble import Ensemble
from mdec.ensemble.draws import Shares
from mdec.preparation.recipes import Versions
from mdec.rows.blocks import Rows

Array = NDArray[np.floating]

# From the rows of a subspace, a number of clusters and a stream to labels.
Base = Callable[[Array, int, np.random.Generator], ArrayLike]


@dataclass(frozen=True, eq=False)
class OwnParts:
    """The data as members see them, and the functions that stand in for ours.

    Attributes
    ----------
    versions : Versions
        The data.
    base : callable or None
        Clusters the rows of a subspace.
    metric : callable or None
        Measures them.
    """

    versions: Versions
    base: Base | None = None
    metric: Metric | None = None

    def labels(
        self, rows: Array, n_clusters: int, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Return the labels of a user's own base clustering, numbered from 0.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_drawn)
            The rows of a subspace.
        n_clusters : int
            What the member drew; the function may ignore it.
        rng : Generator
            The member's stream.

        Returns
        -------
        ndarray of shape (n_rows,)
            -1 for rows that it leaves out.
        """
        assert self.base is not None
        name, found = name_of(self.base), np.asarray(self.base(rows, n_clusters, rng))
        if found.shape != (len(rows),):
            raise TypeError(
                f"base={name} must return one label for each of the {len(rows)} rows "
                f"and returned shape {found.shape}."
            )
        try:
            return Ensemble.from_labels(found[:, None]).labels[:, 0]
        except ValueError as error:
            raise ValueError(f"base={name} returned no labels: {error}") from error

    def measured(self, rows: Array) -> Given:
        """Return all pairs of rows as a user's own metric measures them."""
        assert self.metric is not None
        name, found = name_of(self.metric), self.metric(rows)
        if np.shape(found) != (len(rows), len(rows)):
            raise TypeError(
                f"metric={name} must return a matrix of all pairs of the {len(rows)} "
                f"rows and returned shape {np.shape(found)}."
            )
        return Given.of(found, f"metric={name}")


@dataclass(frozen=True)
class FromEstimator:
    """A scikit-learn clusterer as a base clustering; see `from_estimator`."""

    estimator: Any

    def __call__(
        self, rows: Array, n_clusters: int, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Fit a copy of the clusterer to the rows of a subspace."""
        known = self.estimator.get_params()
        wanted = {n: n_clusters for n in known if _is_called(n, "n_clusters")}
        if not wanted and "n_components" in known:
            wanted = {"n_components": n_clusters}
        for name in sorted(n for n in known if _is_called(n, "random_state")):
            wanted[name] = int(rng.integers(2**31))
        labels: NDArray[Any] = (
            clone(self.estimator).set_params(**wanted).fit_predict(rows)
        )
        return labels

    @property
    def name(self) -> str:
        """The clusterer with its parameters, which tell it from another."""
        kind, known = type(self.estimator), self.estimator.get_params()
        words = [f"{n}={known[n]!r}" for n in sorted(known)]
        return f"{kind.__module__}:{kind.__qualname__}({', '.join(words)})"


def _is_called(parameter: str, name: str) -> bool:
    return parameter == name or parameter.endswith(f"__{name}")


def from_estimator(estimator: Any) -> FromEstimator:
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
    return FromEstimator(estimator)


def name_of(function: str | Callable[..., Any]) -> str:
    """Return what a function is called, as module:name; names are their own.

    Examples
    --------
    >>> name_of(np.linalg.norm), name_of("graph")
    ('numpy.linalg:norm', 'graph')
    """
    if isinstance(function, str):
        return str(function)
    if isinstance(function, FromEstimator):
        return function.name
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def check_findable(parameter: str, function: Callable[..., Any]) -> None:
    """Raise unless another run can tell by its name that a function is the same."""
    if isinstance(function, FromEstimator):
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


def own_places(
    base: str | Base, metric: str | Metric | None, device: str, rows: Rows
) -> tuple[str, str]:
    """Return how and where members cluster with a part of a user's own, or raise.

    Parameters
    ----------
    base : str or callable
        How.
    metric : str, callable or None
        How their distances are measured.
    device : str
        Where; the CPU is the only place.
    rows : Rows
        The data, which must be in memory.

    Returns
    -------
    base : str
        "graph", or the name of the function.
    device : str
        "cpu".
    """
    part = f"base={name_of(base)}" if metric is None else f"metric={name_of(metric)}"
    if metric is not None and callable(base):
        raise ValueError(
            "a base clustering of your own measures its rows itself; leave out metric, "
            "or base."
        )
    if metric is not None and base not in ("graph", "auto"):
        raise ValueError(
            f"{part} needs base='graph' and not {name_of(base)!r}; landmarks measure "
            "their own distances."
        )
    if rows.array is None:
        raise ValueError(
            f"{part} needs all rows in memory and not sparse; load or fill them, or "
            "leave it out."
        )
    if device not in ("cpu", "auto"):
        raise ValueError(
            f"{part} works on the CPU; use device='cpu' instead of {device!r}."
        )
    return (name_of(base) if callable(base) else "graph"), "cpu"


def refuse_unmeasured(
    metric: str | Metric, kernel: str | Shares, preparation: str | None, rows: Rows
) -> None:
    """Raise if a metric is none, or does not fit the kernel or the data."""
    if not callable(metric) and metric != PRECOMPUTED:
        raise ValueError(
            f"metric={metric!r} is not None, {PRECOMPUTED!r} or a function of rows; "
            "the kernels measure distances of their own."
        )
    names = [kernel] if isinstance(kernel, str) else [name for name, _ in kernel]
    for name in names:
        if name not in SIMILARITY:
            raise ValueError(
                f"kernel={name!r} measures directions itself and takes none from "
                f"metric={name_of(metric)}; use {' or '.join(SIMILARITY)}."
            )
    if callable(metric):
        return
    if preparation is not None:
        raise ValueError(
            f"preparation={preparation!r} prepares features, and a precomputed matrix "
            "has none; prepare them before their distances are computed."
        )
    n_samples, n_columns = rows.shape
    if n_samples != n_columns:
        raise ValueError(
            "metric='precomputed' needs a square matrix of all pairs of samples, and X "
            f"is {n_samples} x {n_columns}; leave metric out for rows of features."
        )
    require_memory(
        3 * 8 * n_samples**2,
        f"checking all pairs of {n_samples} samples",
        "cluster fewer samples, or give features instead of pairs",
    )
