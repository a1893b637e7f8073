"""The ensemble: base clusterings side by side, and where they came from."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mdec._support.archives import DAMAGED, DamagedFileError, read_sealed, write_sealed
from mdec._support.memory import MAX_BYTES
from mdec.ensemble.numbering import number_columns, renumber_columns
from mdec.ensemble.plan import Member, Plan, current_names, is_count
from mdec.ensemble.provenance import (
    Failure,
    View,
    join_names,
    read_only,
    view_shares,
)
from mdec.rows.blocks import block_bounds
from mdec.rows.work import Executor, LocalExecutor

# Files of format 1 have no digests; they are read, but no longer written.
_FORMAT = 2


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
    views : tuple of View
        What `concatenate` joined; empty for an ensemble of one table.
    origins : tuple of int
        The view of each member, if there are views.

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
    views: tuple[View, ...] = ()
    origins: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for attribute in ("parameters", "names"):
            object.__setattr__(self, attribute, read_only(getattr(self, attribute)))

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
        return cls(number_columns(labels))

    @classmethod
    def concatenate(
        cls,
        ensembles: Mapping[str, Ensemble] | Sequence[Ensemble],
        *,
        weights: Mapping[str, float] | Sequence[float] | None = None,
    ) -> Ensemble:
        r"""Join ensembles of the same samples: their members side by side.

        Parameters
        ----------
        ensembles : mapping of str to Ensemble, or sequence of Ensemble
            Of the same samples in the same order, made of other tables (views) of
            them or in other ways. Names of a sequence are "view 1", "view 2" and on.
            The views of one that is joined itself are joined each.
        weights : mapping of str to float, or sequence of float, default=None
            How much each of them counts, whatever the number of its members; None
            lets every member count alike.

        Returns
        -------
        Ensemble
            ``views`` tells what was joined, ``view(number)`` gives it back.

        Notes
        -----
        With the weights divided by their sum, :math:`s_v`, the weight of every cluster
        of a member of v is multiplied by :math:`s_v M / M_v`, where :math:`M_v` of the
        M members are of v. The co-association is then :math:`\sum_v s_v A_v`.

        Examples
        --------
        >>> one = Ensemble.from_labels([[0, 1], [0, 0], [1, 0]])
        >>> joined = Ensemble.concatenate({"a": one, "b": one[:1]})
        >>> len(joined), [view.name for view in joined.views], joined.origins
        (3, ['a', 'b'], (0, 0, 1))
        """
        if not isinstance(ensembles, Mapping):
            ensembles = {f"view {i + 1}": each for i, each in enumerate(ensembles)}
        names, parts = list(ensembles), list(ensembles.values())
        if len({each.n_samples for each in parts}) != 1:
            sizes = [f"{n!r}: {each.n_samples}" for n, each in ensembles.items()]
            raise ValueError(
                "ensembles must be of the same samples, at least one; their numbers "
                f"of samples are {', '.join(sizes) or 'none'}."
            )
        if weights is None and any(each.member_weights is not None for each in parts):
            weights = [len(each) for each in parts]
        shares = None if weights is None else view_shares(weights, names)
        views: list[View] = []
        origins: list[int] = []
        for i, (name, part) in enumerate(ensembles.items()):
            own, features = part.origins or (0,) * len(part), part.names.get("features")
            whole = View(name, None, part.parameters, part.failures, features or ())
            origins += [len(views) + v for v in own]
            for v, view in enumerate(part.views or [whole]):
                # The share of an ensemble is divided by those of its views.
                inner = own.count(v) / len(own) if view.share is None else view.share
                share = None if shares is None else shares[i] * inner
                views.append(replace(view, share=share))
        all_known = all(each.members for each in parts)
        return cls(
            np.concatenate([each.labels for each in parts], axis=1),
            tuple(m for each in parts for m in each.members) if all_known else (),
            tuple(failure for each in parts for failure in each.failures),
            names=join_names([each.names for each in parts]),
            views=tuple(views),
            origins=tuple(origins),
        )

    def view(self, number: int) -> Ensemble:
        """Return the members of one view, as they were before they were joined.

        Parameters
        ----------
        number : int
            Position in ``views``.

        Returns
        -------
        Ensemble
            With the view's own parameters, failures and names.
        """
        view, number = self.views[number], range(len(self.views))[number]
        some = self[[m for m, origin in enumerate(self.origins) if origin == number]]
        known = {"features": view.features} if view.features else {}
        own = view.failures, view.parameters, {**self.names, **known}
        return Ensemble(some.labels, some.members, *own)

    def among(self, samples: NDArray[np.integer]) -> Ensemble:
        """Return the ensemble of some samples, with clusters numbered anew.

        Parameters
        ----------
        samples : ndarray
            Their rows.

        Returns
        -------
        Ensemble
            Of the members that cluster any of them; how these were made is left out.
        """
        labels = self.gather().labels[samples]
        clustering = np.flatnonzero((labels >= 0).any(axis=0))
        origins = tuple(self.origins[m] for m in clustering) if self.origins else ()
        labels = renumber_columns(labels[:, clustering])
        return Ensemble(labels, views=self.views, origins=origins)

    @cached_property
    def member_weights(self) -> NDArray[np.float64] | None:
        r"""How much each member counts, if views have shares of their own.

        :math:`g_m = s_v M / M_v` for the members of a view v with the share
        :math:`s_v`, :math:`M_v` of the M members. The co-association is then
        :math:`\sum_v s_v A_v`, with :math:`A_v` that of the members of v alone.

        Examples
        --------
        >>> one = Ensemble.from_labels([[0, 1], [0, 0], [1, 0]])
        >>> views = {"a": one, "b": one[:1]}
        >>> Ensemble.concatenate(views, weights=[1, 1]).member_weights
        array([0.75, 0.75, 1.5 ])
        """
        shares = [view.share for view in self.views if view.share is not None]
        if not shares:
            return None
        sizes = np.bincount(self.origins, minlength=len(shares))
        factors = np.asarray(shares) * len(self) / np.maximum(sizes, 1)
        return factors[np.array(self.origins)]

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.labels.shape[0]

    @cached_property
    def plan(self) -> Plan:
        """The plan that `generate_ensemble` made the members by."""
        return Plan.from_json(self.parameters)

    @property
    def executor(self) -> Executor:
        """Who works on the parts: this process."""
        return LocalExecutor()

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """First row of each part and the one after its last, as in the data."""
        return block_bounds(self.n_samples, self.parameters.get("n_features", 1))

    @property
    def parts(self) -> list[NDArray[np.int32]]:
        """The labels in row blocks, not copied."""
        return self.split(self.labels)

    def split(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Cut an array with one row for each sample into the parts' blocks."""
        return [rows[start:stop] for start, stop in self.bounds]

    def join(self, parts: list[NDArray[Any]]) -> NDArray[Any]:
        """Put blocks with one row for each sample together again."""
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def gather(self) -> Ensemble:
        """Return the ensemble itself: its labels are in this process."""
        return self

    @cached_property
    def cluster_counts(self) -> NDArray[np.int64]:
        """Number of clusters in each member."""
        greatest = self.executor.values(self.executor.map(np.max, self.parts, 0))
        return np.max(greatest, axis=0).astype(np.int64) + 1

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """First base cluster of each member, and the number of all at the end."""
        return np.concatenate([[0], np.cumsum(self.cluster_counts)])

    @property
    def n_base_clusters(self) -> int:
        """Number of clusters in all members together, Eq. 15."""
        return int(self.offsets[-1])

    @cached_property
    def is_complete(self) -> bool:
        """Whether every member clusters every sample."""
        return bool(self.labels.min() >= 0)

    @cached_property
    def cluster_sizes(self) -> NDArray[np.int64]:
        """Number of samples in each base cluster."""
        counts = np.bincount(self.indicator().indices, minlength=self.n_base_clusters)
        return counts.astype(np.int64)

    @cached_property
    def microclusters(
        self,
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Groups of samples with the same label in every member.

        First sample of each group, group of each sample, and size of each group.
        """
        # Rows are distinguished by a 64-bit product with fixed random numbers, and then
        # compared: in a file that someone else wrote other rows may have the same.
        factors = np.random.default_rng(0).integers(2**62, size=len(self))
        keys = self.join([part.astype(np.int64) @ factors for part in self.parts])
        found = partial(
            np.unique, return_index=True, return_inverse=True, return_counts=True
        )
        _, first, group, sizes = found(keys)
        pairs = zip(self.parts, self.split(first[group]), strict=True)
        if not all(np.array_equal(own, self.labels[rows]) for own, rows in pairs):
            _, first, group, sizes = found(self.labels, axis=0)
        return first, group.ravel(), sizes

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
        return membership(self.gather().labels, self.offsets)

    def __len__(self) -> int:
        return self.labels.shape[1]

    def __getitem__(self, key: int | slice | Sequence[int]) -> Ensemble:
        """Return some of the members as an ensemble."""
        chosen = np.atleast_1d(np.arange(len(self))[key])
        if chosen.size == 0:
            raise IndexError("an ensemble needs at least one member.")
        whole = self.gather()
        members = tuple(self.members[m] for m in chosen) if self.members else ()
        labels = np.ascontiguousarray(whole.labels[:, chosen])
        origins = tuple(self.origins[m] for m in chosen) if self.origins else ()
        return replace(whole, labels=labels, members=members, origins=origins)

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
        write_sealed(path, provenance, {"labels": self.gather().labels})

    def to_json(self) -> dict[str, Any]:
        """Return all but the labels, as JSON can hold it."""
        content: dict[str, Any] = {
            "members": [member.to_json() for member in self.members],
            "failures": [asdict(failure) for failure in self.failures],
            "parameters": dict(self.parameters),
            "names": dict(self.names),
        }
        if self.views:
            content["views"] = [view.to_json() for view in self.views]
            content["origins"] = list(self.origins)
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any], labels: NDArray[Any]) -> Ensemble:
        """Return the ensemble of labels and what `to_json` wrote; raise if it is none.

        From what JSON made of that; names may be absent.
        """
        ensemble = cls(
            labels.astype(np.int32, casting="same_kind"),
            tuple(Member.from_json(member) for member in content["members"]),
            tuple(Failure(**failure) for failure in content["failures"]),
            current_names(content["parameters"]),
            content.get("names", {}),
            tuple(View.from_json(view) for view in content.get("views", ())),
            tuple(content.get("origins", ())),
        )
        ensemble._check()
        return ensemble

    def _check(self) -> None:
        """Raise unless samples can fill the clusters, and what belongs to them fits.

        Plans can be, are of so many samples, and have such members.
        """
        labels, n_views, known = self.labels, len(self.views), self.parameters
        greatest = labels.max(axis=0)
        filled = greatest.min() >= 0 and greatest.max() < len(labels)
        if labels.ndim != 2 or labels.min() < -1 or not filled:
            raise ValueError("labels are no table of cluster numbers")
        numbers = {"samples": self.n_samples, "classes": self.n_samples}
        numbers |= {"features": known["n_features"]} if "n_features" in known else {}
        given = [view.parameters for view in self.views] or [known]
        plans = [Plan.from_json(each) for each in given if self.members]
        fits = (
            is_count(known.get("n_features", 1), 1),
            is_count(known.get("entropy", 0), 0),
            len(self.members) in (0, len(self)),
            len(self.origins) == (len(self) if n_views else 0),
            all(origin in range(n_views) for origin in self.origins),
            all(len(own) == numbers.get(n, len(own)) for n, own in self.names.items()),
            all(isinstance(text, str) for each in self.names.values() for text in each),
            all(plan.n_samples == self.n_samples for plan in plans),
        )
        if not all(fits):
            raise ValueError("members and labels do not fit each other")
        for member, origin in zip(self.members, self.origins or repeat(0)):  # noqa: B905
            plans[origin].refuse_foreign(member)

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


def membership(
    labels: NDArray[np.integer], offsets: NDArray[np.int64]
) -> sparse.csr_array:
    """Return the membership of some rows of labels in the base clusters.

    Ones where a sample lies in a base cluster; the offsets are the numbers of the first
    cluster of each member, and of all clusters.
    """
    present = labels >= 0
    columns = (labels + offsets[:-1])[present].astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    shape = (len(labels), int(offsets[-1]))
    return sparse.csr_array((np.ones(columns.size), columns, indptr), shape=shape)
