"""The ensemble: base clusterings side by side, and where they came from."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mdec._support.files import atomic_file

_FORMAT = 1

# What NumPy makes of -1, NaN and None in an array of strings.
_ABSENT_WORDS = ("-1", "-1.0", "nan", "None", "<NA>", "")

# Rows that are looked at together where all at once would take much memory.
_ROWS = 2**16


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
    """

    index: int
    attempt: int
    n_neighbors: int
    mu: float
    n_clusters: int


@dataclass(frozen=True)
class Failure:
    """A member that was dropped, and why.

    Attributes
    ----------
    index : int
        Position in the drawn ensemble.
    reason : str
        Message of the last attempt.
    """

    index: int
    reason: str


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Base clusterings of the same samples.

    Use `generate_ensemble` or `from_labels`; the constructor trusts its arguments.

    Attributes
    ----------
    labels : ndarray of shape (n_samples, n_members), int32
        Column m numbers the clusters of member m from 0; -1 marks a sample that the
        member does not cluster.
    members : tuple of Member
        How each column was made; empty for a user's own labels.
    failures : tuple of Failure
        Members that were drawn and dropped.
    parameters : dict
        What all members share: the seed, the kernel, the shape of the data.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 1], [0, 0], [1, 0]])
    >>> len(ensemble), ensemble.n_samples, ensemble.n_base_clusters
    (2, 3, 4)
    >>> len(ensemble[:1])
    1
    """

    labels: NDArray[np.int32]
    members: tuple[Member, ...] = ()
    failures: tuple[Failure, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_labels(cls, labels: ArrayLike) -> Ensemble:
        """Make an ensemble of a user's own base clusterings.

        Parameters
        ----------
        labels : array-like of shape (n_samples, n_members)
            One clustering per column, of numbers or strings. -1, NaN, None and pd.NA
            mark samples that a member does not cluster; in an array of strings "-1",
            "nan", "None" and "" do, which NumPy makes of them beside words.

        Returns
        -------
        Ensemble
            Its clusters are numbered anew, from 0 in each column.

        Examples
        --------
        >>> Ensemble.from_labels([["a", 7], ["b", -1], ["b", 9]]).labels
        array([[ 0,  0],
               [ 1, -1],
               [ 1,  1]], dtype=int32)
        """
        table: NDArray[Any]
        if hasattr(labels, "to_numpy"):
            table = labels.to_numpy()
        elif isinstance(labels, np.ndarray):
            table = labels
        else:  # keeps numbers and strings of one list apart
            table = np.array(labels, dtype=object)
        if table.ndim != 2 or 0 in table.shape:
            raise ValueError(
                "labels must be a table of samples by base clusterings, got shape "
                f"{table.shape}; put one clustering in each column."
            )
        columns = [_numbered(table[:, m], m) for m in range(table.shape[1])]
        return cls(np.stack(columns, axis=1))

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.labels.shape[0]

    @cached_property
    def cluster_counts(self) -> NDArray[np.int64]:
        """Number of clusters in each member."""
        return self.labels.max(axis=0).astype(np.int64) + 1

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """First base cluster of each member, and the number of all at the end."""
        return np.concatenate([[0], np.cumsum(self.cluster_counts)])

    @property
    def n_base_clusters(self) -> int:
        """Number of clusters in all members together, Eq. 15."""
        return int(self.offsets[-1])

    @cached_property
    def cluster_sizes(self) -> NDArray[np.int64]:
        """Number of samples in each base cluster."""
        columns = self.labels + self.offsets[:-1]
        return np.bincount(
            columns[self.labels >= 0], minlength=self.n_base_clusters
        ).astype(np.int64)

    @cached_property
    def microclusters(
        self,
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Groups of samples with the same label in every member.

        First sample of each group, group of each sample, and size of each group.
        """
        # Rows are told apart by a 64-bit product with fixed random numbers.
        factors = np.random.default_rng(0).integers(2**62, size=len(self))
        keys = np.empty(self.n_samples, dtype=np.int64)
        for start in range(0, self.n_samples, _ROWS):
            part = slice(start, start + _ROWS)
            keys[part] = self.labels[part].astype(np.int64) @ factors
        _, first, group, sizes = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        return first, group, sizes

    def indicator(self) -> sparse.csr_array:
        """Return the samples' membership in the base clusters.

        Returns
        -------
        csr_array of shape (n_samples, n_base_clusters)
            Ones where a sample lies in a base cluster.

        Examples
        --------
        >>> Ensemble.from_labels([[0, 1], [0, 0]]).indicator().toarray()
        array([[1., 0., 1.],
               [1., 1., 0.]])
        """
        return membership(self.labels, self.offsets)

    def __len__(self) -> int:
        return self.labels.shape[1]

    def __getitem__(self, key: int | slice | Sequence[int]) -> Ensemble:
        """Return some of the members as an ensemble."""
        chosen = np.atleast_1d(np.arange(len(self))[key])
        if chosen.size == 0:
            raise IndexError("an ensemble needs at least one member.")
        members = tuple(self.members[m] for m in chosen) if self.members else ()
        labels = np.ascontiguousarray(self.labels[:, chosen])
        return replace(self, labels=labels, members=members)

    def __repr__(self) -> str:
        return (
            f"Ensemble({len(self)} members, {self.n_samples} samples, "
            f"{self.n_base_clusters} base clusters)"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ensemble to an .npz file, all or nothing.

        Parameters
        ----------
        path : path-like
            The file; an old one is replaced at the end.
        """
        provenance = {
            "format": _FORMAT,
            "members": [asdict(member) for member in self.members],
            "failures": [asdict(failure) for failure in self.failures],
            "parameters": self.parameters,
        }
        with atomic_file(path) as file:
            np.savez_compressed(
                file, labels=self.labels, provenance=np.array(json.dumps(provenance))
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ensemble:
        """Read an ensemble that `save` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        Ensemble
            Equal to the saved one.
        """
        try:
            with (
                Path(path).open("rb") as file,
                np.load(file, allow_pickle=False) as archive,
            ):
                labels = archive["labels"]
                provenance = json.loads(str(archive["provenance"]))
        except (KeyError, TypeError, ValueError, EOFError, BadZipFile) as error:
            raise ValueError(
                f"{os.fspath(path)!r} is not an ensemble saved by mdec; write it with "
                "Ensemble.save."
            ) from error
        if provenance.get("format") != _FORMAT:
            raise ValueError(
                f"{os.fspath(path)!r} has ensemble format {provenance.get('format')}, "
                f"this version reads {_FORMAT}; save it again with this version."
            )
        return cls(
            labels.astype(np.int32),
            tuple(Member(**member) for member in provenance["members"]),
            tuple(Failure(**failure) for failure in provenance["failures"]),
            provenance["parameters"],
        )


def membership(
    labels: NDArray[np.int32], offsets: NDArray[np.int64]
) -> sparse.csr_array:
    """Return the membership of some samples in the base clusters.

    Parameters
    ----------
    labels : ndarray of shape (n_rows, n_members)
        The samples' base clusters, -1 where a member leaves a sample out.
    offsets : ndarray of shape (n_members + 1,)
        Number of the first cluster of each member, and of all clusters.

    Returns
    -------
    csr_array of shape (n_rows, n_base_clusters)
        Ones where a sample lies in a base cluster.
    """
    present = labels >= 0
    columns = (labels + offsets[:-1])[present].astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    shape = (len(labels), int(offsets[-1]))
    return sparse.csr_array((np.ones(columns.size), columns, indptr), shape=shape)


def _numbered(column: NDArray[Any], index: int) -> NDArray[np.int32]:
    """Number the clusters of one column from 0, absent samples as -1."""
    if column.dtype.kind in "SU":
        absent = np.isin(np.char.strip(column.astype(str)), _ABSENT_WORDS)
    elif column.dtype == object:
        absent = np.array([_is_absent(value) for value in column], dtype=bool)
    else:
        absent = (column != column) | (column == -1)
    if absent.all():
        raise ValueError(
            f"base clustering {index} clusters no sample; remove that column."
        )
    present = column[~absent]
    if present.dtype == object:
        # Numbers and strings have no common order.
        present = np.array([f"{type(value).__name__} {value}" for value in present])
    labels = np.full(column.shape, -1, dtype=np.int32)
    labels[~absent] = np.unique(present, return_inverse=True)[1]
    return labels


def _is_absent(value: Any) -> bool:
    # pd.NA answers no comparison; NaN is the only value that differs from itself.
    if value is None or type(value).__name__ == "NAType":
        return True
    return bool(value != value or value == -1)
