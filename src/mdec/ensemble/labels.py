"""The ensemble: base clusterings side by side, and where they came from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mdec._support.memory import MAX_BYTES
from mdec._support.sealed import DAMAGED, DamagedFileError, read_sealed, write_sealed
from mdec.ensemble.plan import Member, Plan
from mdec.rows.blocks import block_bounds, block_height
from mdec.rows.work import Here, Worker

# Files of format 1 have no digests; they are read, but no longer written.
_FORMAT = 2

# What NumPy makes of -1, NaN and None in an array of strings.
_ABSENT_WORDS = ("-1", "-1.0", "nan", "None", "<NA>", "")

# Rows that are looked at together where all at once would take much memory.
_ROWS = 2**16


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


class LabelBlocks(Protocol):
    """What every ensemble offers, whether its labels are here or on a cluster."""

    @property
    def worker(self) -> Worker:
        """Who works on the parts."""

    @property
    def parts(self) -> list[Any]:
        """The worker's handles of the labels of each row block."""

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """First row of each part and the one after its last."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """First base cluster of each member, and the number of all at the end."""

    @property
    def n_samples(self) -> int:
        """Number of samples."""

    @property
    def n_base_clusters(self) -> int:
        """Number of clusters in all members together."""

    def __len__(self) -> int: ...

    def split(self, rows: NDArray[Any]) -> list[Any]:
        """Cut an array with one row for each sample into the parts' blocks."""

    def joined(self, parts: list[Any]) -> Any:
        """Put blocks with one row for each sample together again."""

    def gather(self) -> Ensemble:
        """Bring the labels here."""


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
    parameters : mapping
        What all members share: the seed, the kernel, the shape of the data. It cannot
        be changed; empty for a user's own labels.
    names : mapping of tuple of str
        Names that belong to the data: "samples", "features" and "classes", the known
        class of each sample, "" for none. Those that are not known are absent.

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
    parameters: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for attribute in ("parameters", "names"):
            given = getattr(self, attribute).items()
            plain = {name: _plain(value) for name, value in given}
            object.__setattr__(self, attribute, MappingProxyType(plain))

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only view cannot be pickled.
        views = dict(self.parameters), dict(self.names)
        return type(self), (self.labels, self.members, self.failures, *views)

    @classmethod
    def from_labels(cls, labels: ArrayLike) -> Ensemble:
        """Make an ensemble of a user's own base clusterings.

        Parameters
        ----------
        labels : array-like of shape (n_samples, n_members)
            One clustering per column, of whole numbers or strings. -1, NaN, None and
            pd.NA mark samples that a member does not cluster; in an array of strings
            "-1", "nan", "None" and "" do, which NumPy makes of them beside words.

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
    def plan(self) -> Plan:
        """The plan that `generate_ensemble` made the members by."""
        return Plan.from_json(self.parameters)

    @property
    def worker(self) -> Here:
        """Who works on the parts: this process."""
        return Here()

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """First row of each part and the one after its last, as in the data."""
        height = block_height(self.parameters.get("n_features", 1))
        return block_bounds(self.n_samples, height)

    @property
    def parts(self) -> list[NDArray[np.int32]]:
        """The labels in row blocks, not copied."""
        return self.split(self.labels)

    def split(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Cut an array with one row for each sample into the parts' blocks.

        Parameters
        ----------
        rows : ndarray of shape (n_samples,)
            One entry for each sample.

        Returns
        -------
        list
            One part for each block of rows.
        """
        return [rows[start:stop] for start, stop in self.bounds]

    def joined(self, parts: list[NDArray[Any]]) -> NDArray[Any]:
        """Put blocks with one row for each sample together again.

        Parameters
        ----------
        parts : list
            One array for each block of rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Their rows, one after the other.
        """
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def gather(self) -> Ensemble:
        """Return the ensemble itself: its labels are here.

        Returns
        -------
        Ensemble
            With all labels in this process.
        """
        return self

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
        provenance = {"format": _FORMAT, **self.to_json()}
        write_sealed(path, provenance, {"labels": self.labels})

    def to_json(self) -> dict[str, Any]:
        """Return all but the labels, ready to be written.

        Returns
        -------
        dict
            What JSON can hold.
        """
        return {
            "members": [member.to_json() for member in self.members],
            "failures": [asdict(failure) for failure in self.failures],
            "parameters": dict(self.parameters),
            "names": dict(self.names),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any], labels: NDArray[Any]) -> Ensemble:
        """Return the ensemble of labels and what `to_json` wrote; raise if it is none.

        Parameters
        ----------
        content : mapping
            What JSON made of it; names may be absent.
        labels : ndarray of shape (n_samples, n_members)
            The labels.

        Returns
        -------
        Ensemble
            Equal to the one written.
        """
        ensemble = cls(
            labels.astype(np.int32, casting="same_kind"),
            tuple(Member.from_json(member) for member in content["members"]),
            tuple(Failure(**failure) for failure in content["failures"]),
            content["parameters"],
            content.get("names", {}),
        )
        _check_numbered(ensemble.labels)
        if len(ensemble.members) not in (0, len(ensemble)):
            raise ValueError("members and labels do not fit each other")
        _check_names(ensemble)
        return ensemble

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES
    ) -> Ensemble:
        """Read an ensemble that `save` wrote; nothing in the file is executed.

        Parameters
        ----------
        path : path-like
            The file.
        max_bytes : int, default=4 GiB
            A file that claims to unpack to more is refused before it is.

        Returns
        -------
        Ensemble
            Equal to the saved one.
        """
        provenance, arrays = read_sealed(path, max_bytes)
        if provenance.get("format") not in (1, _FORMAT):
            raise ValueError(
                f"{os.fspath(path)!r} has ensemble format {provenance.get('format')}, "
                f"this version reads {_FORMAT}; save it again with this version."
            )
        try:
            return cls.from_json(provenance, arrays["labels"])
        except DAMAGED as error:
            raise DamagedFileError(
                f"{os.fspath(path)!r} is not an ensemble saved by mdec; write it with "
                "Ensemble.save."
            ) from error


def _plain(value: Any) -> Any:
    """Return a parameter in Python's own numbers, and lists as tuples."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return tuple(_plain(each) for each in value)
    return value


def _check_numbered(labels: NDArray[np.int32]) -> None:
    """Raise unless every column numbers its clusters as samples can fill them."""
    if labels.ndim != 2 or 0 in labels.shape:
        raise ValueError("labels are no table")
    greatest = labels.max(axis=0)
    if labels.min() < -1 or greatest.min() < 0 or greatest.max() >= len(labels):
        raise ValueError("labels are no cluster numbers")


def _check_names(ensemble: Ensemble) -> None:
    """Raise unless names are texts, one for each sample or feature."""
    n_features = ensemble.parameters.get("n_features")
    numbers = {"samples": ensemble.n_samples, "classes": ensemble.n_samples}
    for name, texts in ensemble.names.items():
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("names are no text")
        if len(texts) != numbers.get(name, n_features or len(texts)):
            raise ValueError("names and labels do not fit each other")


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
    _check_whole(column[~absent], index)
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


def _check_whole(present: NDArray[Any], index: int) -> None:
    """Raise if a column holds measurements: no clustering has cluster 0.37."""
    measured: Iterable[Any] = ()
    if present.dtype.kind == "f":
        measured = present[present != np.rint(present)][:1]
    elif present.dtype == object:
        fractions = (each for each in present if isinstance(each, float))
        measured = (each for each in fractions if not each.is_integer())
    for value in measured:
        raise ValueError(
            f"base clustering {index} holds {value:.4g} and no labels; give whole "
            "numbers or strings, or cluster a table of measurements with mdec.MDEC."
        )


def _is_absent(value: Any) -> bool:
    # pd.NA answers no comparison; NaN is the only value that differs from itself.
    if value is None or type(value).__name__ == "NAType":
        return True
    return bool(value != value or value == -1)
