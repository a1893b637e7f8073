"""Distances or similarities that are given: as a matrix, or by a function of rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mdec.base.graphs import graph_from_distances
from mdec.numerics.magnitude import at_safe_scale
from mdec.numerics.nearest import at_common_scale

Array = NDArray[np.floating]

# From the rows of a subspace, (n, d), to all their distances or similarities, (n, n).
Metric = Callable[[Array], ArrayLike]

PRECOMPUTED = "precomputed"

# Entries of a matrix that are looked at together.
_ENTRIES = 2**22


@dataclass(frozen=True, eq=False)
class Given:
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
    def of(cls, matrix: Any, source: str) -> Given:
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
        Given
            With small asymmetries taken to their mean.

        Examples
        --------
        >>> Given.of([[0.0, 2.0], [2.0, 0.0]], "metric").values
        array([[0., 4.],
               [4., 0.]])
        >>> Given.of([[2.0, 1.0], [1.0, 2.0]], "metric").values
        array([[1. , 0.5],
               [0.5, 1. ]])
        """
        values, similar = _checked(matrix, source)
        return cls(values if similar else at_safe_scale(values) ** 2, similar)

    def among(self, samples: NDArray[np.int64] | None) -> Given:
        """Return the pairs of some samples; None for all."""
        if samples is None:
            return self
        return Given(self.values[np.ix_(samples, samples)], self.similar)

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
        from mdec.numerics import loops

        n_samples = len(self.values)
        near, _, _ = loops.upper_triangle(self.values, np.empty(n_samples))
        indptr, indices, data = loops.largest_both_ways(
            near, near.clip(0.0), n_samples, n_neighbors
        )
        return sparse.csr_array((data, indices, indptr), shape=self.values.shape)


class GivenRows:
    """Training rows that are known by their pairs alone, searched as rows are.

    Parameters
    ----------
    values : ndarray of shape (n_old, n_old)
        Squared distances, or similarities below zero: what is near is small.
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


def given_new_rows(known: Array, new: Array) -> tuple[Array, Array, bool]:
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
    values, similar = _checked(known, "the model's matrix")
    new = new.astype(np.float64)
    if similar:
        return -values, -new / float(known[0, 0]), True
    slack = _slack(new, _largest(new))
    row, column = _first_pair(new.shape, lambda part: new[part] < -slack)
    if row >= 0:
        raise ValueError(
            f"the distance of new row {row} to training row {column} is "
            f"{new[row, column]:.6g}; a distance is never negative."
        )
    old, new = at_common_scale(values, np.maximum(new, 0.0))
    return old**2, new**2, False


def _checked(matrix: Any, source: str) -> tuple[Array, bool]:
    """Return distances, or similarities with ones on the diagonal, and which they are.

    The matrix is symmetric then.
    """
    given = np.asarray(matrix)
    if given.dtype != np.float64:
        given = _in_numbers(given, source)
    shape = given.shape
    if given.ndim != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"{source} needs a square matrix of all pairs of samples, distances or "
            f"similarities, and not one of shape {shape}; leave metric out for rows of "
            "features."
        )
    i, j = _first_pair(shape, lambda part: ~np.isfinite(given[part]))
    if i >= 0:
        raise ValueError(f"{source}: samples {i} and {j} have {given[i, j]}; fill it.")
    own, largest = given.diagonal(), _largest(given)
    slack = _slack(np.asarray(matrix), largest)
    similar = bool((np.abs(own) > slack).any())
    if similar:
        other = int(np.argmax((own <= slack) | (np.abs(own - own[0]) > slack)))
        if other or own[0] <= slack:
            first = 0 if other else int(np.argmax(np.abs(own - own[0]) > slack))
            raise ValueError(
                f"{source}: the diagonal must be zero, for distances, or one positive "
                f"number, for similarities; samples {first} and {first} have "
                f"{own[first]:.6g}, samples {other} and {other} {own[other]:.6g}."
            )
    i, j = _first_pair(shape, lambda part: np.abs(given[part] - given.T[part]) > slack)
    if i >= 0:
        raise ValueError(
            f"{source}: the matrix must be symmetric; samples {i} and {j} have "
            f"{given[i, j]:.6g}, samples {j} and {i} {given[j, i]:.6g}."
        )
    if similar:
        i, j = _first_pair(shape, lambda part: given[part] > own[0] + slack)
        if i >= 0:
            raise ValueError(
                f"{source}: no similarity exceeds that of a sample with itself; "
                f"samples {i} and {j} have {given[i, j]:.6g}, the diagonal "
                f"{own[0]:.6g}."
            )
        return np.minimum(_symmetric(given) / own[0], 1.0), True
    i, j = _first_pair(shape, lambda part: given[part] < -slack)
    if i >= 0:
        raise ValueError(
            f"{source}: zeros on the diagonal are those of distances, which are never "
            f"negative; samples {i} and {j} have {given[i, j]:.6g}."
        )
    values = np.maximum(_symmetric(given), 0.0)
    np.fill_diagonal(values, 0.0)
    return values, False


def _in_numbers(given: NDArray[Any], source: str) -> Array:
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{source} needs a matrix of numbers, and not {type(given).__name__} of "
            f"{given.dtype}; make it dense, with a number for each pair."
        ) from error


def _largest(values: Array) -> float:
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def _slack(given: NDArray[Any], largest: float) -> float:
    """Return what rounding may do: distances are roots of rounded squares."""
    kind = given.dtype if given.dtype.kind == "f" else np.dtype(np.float64)
    return math.sqrt(float(np.finfo(kind).eps)) * largest


def _symmetric(given: Array) -> Array:
    if np.array_equal(given, given.T):
        return given
    return 0.5 * given + 0.5 * given.T


def _first_pair(
    shape: tuple[int, ...], bad: Callable[[slice], NDArray[np.bool_]]
) -> tuple[int, int]:
    """Return the first pair that is bad, row by row, or (-1, -1)."""
    height = max(1, _ENTRIES // max(1, shape[1]))
    for start in range(0, shape[0], height):
        found = bad(slice(start, start + height))
        if found.any():
            row, column = np.unravel_index(int(found.argmax()), found.shape)
            return start + int(row), int(column)
    return -1, -1
