"""Distances or similarities that are given: as a matrix, or by a function of rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mdec._support.arrays import Array
from mdec.base.graphs import graph_from_distances, graph_of_pairs, largest_pairs
from mdec.numerics.magnitude import at_safe_scale
from mdec.numerics.nearest import at_common_scale

# From the rows of a subspace, (n, d), to all their distances or similarities, (n, n).
Metric = Callable[[Array], ArrayLike]

PRECOMPUTED = "precomputed"

# Entries of a matrix that are looked at together.
_ENTRIES = 2**22


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of samples, as members take them.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_samples)
        Squared distances at a scale whose squares fit float64, or similarities with
        ones on the diagonal; symmetric.
    similar : bool
        Whether they are similarities.
    """

    values: Array
    similar: bool

    @classmethod
    def of(cls, matrix: Any, source: str) -> Pairs:
        """Check a matrix and decide by its diagonal what it holds.

        Parameters
        ----------
        matrix : array-like of shape (n_samples, n_samples)
            Distances: none negative, zeros on the diagonal. Or similarities: one
            positive number on the diagonal, which nothing exceeds. Symmetric, all up
            to rounding.
        source : str
            Where it comes from, for the sentence that refuses it.

        Returns
        -------
        Pairs
            With small asymmetries taken to their mean.

        Examples
        --------
        >>> Pairs.of([[0.0, 2.0], [2.0, 0.0]], "metric").values
        array([[0., 4.],
               [4., 0.]])
        >>> Pairs.of([[2.0, 1.0], [1.0, 2.0]], "metric").values
        array([[1. , 0.5],
               [0.5, 1. ]])
        """
        values, similar = _check_pairs(matrix, source)
        return cls(values if similar else at_safe_scale(values) ** 2, similar)

    def among(self, samples: NDArray[np.int64] | None) -> Pairs:
        """Return the pairs of some samples; None for all."""
        if samples is None:
            return self
        return Pairs(self.values[np.ix_(samples, samples)], self.similar)

    def graph(self, kernel: str, n_neighbors: int, mu: float) -> sparse.csr_array:
        """Return the similarity graph of one member.

        Parameters
        ----------
        kernel : str
            What makes similarities of distances; given similarities need none.
        n_neighbors : int
            Similarities kept per sample.
        mu : float
            Width of the kernel.

        Returns
        -------
        csr_array of shape (n_samples, n_samples)
            Symmetric, non-negative, no self-loops.
        """
        if not self.similar:
            return graph_from_distances(self.values, kernel, n_neighbors, mu)
        rows, columns = largest_pairs(self.values.copy(), n_neighbors)
        data = self.values[rows, columns].clip(0.0)
        return graph_of_pairs(rows, columns, data, len(self.values))


class PairwiseRows:
    """Training rows that are known by their pairs alone, searched as rows are.

    The values, (n_old, n_old), are squared distances, or similarities below zero: what
    is near is small.
    """

    def __init__(self, values: Array) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, chosen: NDArray[np.integer]) -> Array:
        """Return some of the old rows."""
        return self.values[chosen]

    def nearest(self, new: Array, k: int) -> tuple[NDArray[np.int64], Array]:
        """Return the k nearest old rows of new ones, the first of equals first."""
        index = np.argsort(new, axis=1, kind="stable")[:, :k]
        return index, np.take_along_axis(new, index, axis=1)


def compare_new_pairs(known: Array, new: Array) -> tuple[Array, Array, bool]:
    """Return training pairs and those of new rows, ready to be searched.

    Parameters
    ----------
    known : ndarray of shape (n_old, n_old)
        What the model was fitted to.
    new : ndarray of shape (n_new, n_old)
        The same from new rows to the training rows.

    Returns
    -------
    old : ndarray of shape (n_old, n_old)
        Squared distances, or similarities below zero.
    new : ndarray of shape (n_new, n_old)
        The same.
    similar : bool
        Whether they are similarities.
    """
    values, similar = _check_pairs(known, "the model's matrix")
    new = new.astype(np.float64)
    if similar:
        return -values, -new / float(known[0, 0]), True
    slack = _slack(new, new)
    refuse_pairs(
        new,
        lambda part: new[part] < -slack,
        "the distance of new row {i} to training row {j} is {value:.6g}; a distance is "
        "never negative.",
    )
    old, new = at_common_scale(values, np.maximum(new, 0.0))
    return old**2, new**2, False


def _check_pairs(matrix: Any, source: str) -> tuple[Array, bool]:
    """Return distances, or similarities with ones on the diagonal, and which they are.

    The matrix is symmetric then.
    """
    given = np.asarray(matrix)
    try:
        values = given.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{source} needs a matrix of numbers, and not {type(given).__name__} of "
            f"{given.dtype}; make it dense, with a number for each pair."
        ) from error
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(
            f"{source} needs a square matrix of all pairs of samples, distances or "
            f"similarities, and not one of shape {values.shape}; leave metric out for "
            "rows of features."
        )

    def refuse(bad: Callable[[slice], NDArray[np.bool_]], sentence: str) -> None:
        refuse_pairs(values, bad, f"{source}: {sentence}")

    pair = "samples {i} and {j} have {value:.6g}"
    refuse(lambda part: ~np.isfinite(values[part]), f"{pair}; fill it.")
    own, slack = values.diagonal(), _slack(given, values)
    similar = bool((np.abs(own) > slack).any())
    if similar:
        unequal = np.abs(own - own[0]) > slack
        other = int(np.argmax((own <= slack) | unequal))
        if other or own[0] <= slack:
            first = 0 if other else int(np.argmax(unequal))
            raise ValueError(
                f"{source}: the diagonal must be zero, for distances, or one positive "
                f"number, for similarities; samples {first} and {first} have "
                f"{own[first]:.6g}, samples {other} and {other} {own[other]:.6g}."
            )
    refuse(
        lambda part: np.abs(values[part] - values.T[part]) > slack,
        f"the matrix must be symmetric; {pair}, samples {{j}} and {{i}} {{other:.6g}}.",
    )
    # Small asymmetries are taken to their mean.
    same = np.array_equal(values, values.T)
    even = values if same else 0.5 * values + 0.5 * values.T
    if similar:
        refuse(
            lambda part: values[part] > own[0] + slack,
            f"no similarity exceeds that of a sample with itself; {pair}, the diagonal "
            f"{own[0]:.6g}.",
        )
        return np.minimum(even / own[0], 1.0), True
    refuse(
        lambda part: values[part] < -slack,
        "zeros on the diagonal are those of distances, which are never negative; "
        f"{pair}.",
    )
    distances = np.maximum(even, 0.0)
    np.fill_diagonal(distances, 0.0)
    return distances, False


def _slack(given: NDArray[Any], values: Array) -> float:
    """Return what rounding may do: distances are roots of rounded squares."""
    kind = given.dtype if given.dtype.kind == "f" else np.dtype(np.float64)
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    return math.sqrt(float(np.finfo(kind).eps)) * largest


def refuse_pairs(
    values: Array, bad: Callable[[slice], NDArray[np.bool_]], sentence: str
) -> None:
    """Raise for the first pair that is bad, row by row, which the sentence names."""
    height = max(1, _ENTRIES // max(1, values.shape[1]))
    for start in range(0, len(values), height):
        found = bad(slice(start, start + height))
        if found.any():
            row, j = np.unravel_index(int(found.argmax()), found.shape)
            i = start + int(row)
            other = values[j, i] if j < len(values) else np.nan
            numbers = {"value": values[i, j], "other": other}
            raise ValueError(sentence.format(i=i, j=j, **numbers))
