"""Finished members in a folder, so that a long run survives being stopped."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.files import write_atomically
from mdec._support.sealed import DAMAGED, DamagedFileError, read_sealed, write_sealed
from mdec.ensemble import Failure
from mdec.ensemble.plan import Member, Plan
from mdec.rows.work import Here, Worker

Labels = NDArray[np.int32]

# A member with its labels in row blocks, which may be a worker's handles; or why not.
Made = tuple[Member, list[Any]] | Failure

_FORMAT = 1
_HEADER = "checkpoint.json"


class Store:
    """A folder of finished members of one ensemble, made if it does not exist.

    Each member is one file, written under a temporary name and renamed, so a process
    that is killed leaves whole members only; the workers of a cluster, which must see
    the folder, write one more file for each row block. The folder knows the digest of
    the data and the plan it belongs to and is refused for others; the number of members
    is not among them, because it changes no member.
    """

    def __init__(self, folder: str | os.PathLike[str], digest: str, plan: Plan) -> None:
        self.folder, self.plan = Path(folder), plan
        wanted = {"format": _FORMAT, "data": digest, **plan.to_json()}
        wanted = json.loads(json.dumps(wanted))
        header = self.folder / _HEADER
        if header.exists():
            _check_header(header, wanted)
        else:
            _refuse_foreign(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(header, json.dumps(wanted, indent=1).encode())

    def _path(self, index: int, ending: str = "npz") -> Path:
        return self.folder / f"member-{index:06d}.{ending}"

    def load(self, index: int, worker: Worker) -> Made | None:
        """Return a finished member, or None if it has to be made.

        A file that is damaged, or that belongs to another member, is treated as
        absent: making a member again gives the same member.
        """
        try:
            provenance, arrays = self._read(index)
            if "reason" in provenance:
                failure = Failure(**provenance)
                return failure if failure.index == index else None
            member = Member.from_json(provenance.get("member", provenance))
            if member != self.plan.member(index, member.attempt):
                return None
            if "labels" in arrays:
                _check_labels(arrays["labels"], self.plan.n_samples, member, self.plan)
                return member, [arrays["labels"]]
            return self._load_parts(member, worker)
        except (FileNotFoundError, *DAMAGED):
            return None

    def _read(self, index: int) -> tuple[dict[str, Any], dict[str, Any]]:
        old = self._path(index, ending="json")
        if old.exists():
            return json.loads(old.read_text(encoding="utf-8")), {}
        return read_sealed(self._path(index), _enough(self.plan.n_samples))

    def _load_parts(self, member: Member, worker: Worker) -> Made | None:
        """Return a member whose labels the workers have written, if they are whole."""
        lengths = [stop - start for start, stop in self.plan.bounds]
        pieces = [
            (os.fspath(self.folder), part, length, member)
            for part, length in enumerate(lengths)
        ]
        checked = [worker.call(_is_whole, *piece) for piece in pieces]
        if not all(worker.value(each) for each in checked):
            return None
        return member, [worker.call(_load_part, *piece) for piece in pieces]

    def save(self, made: Made, worker: Worker) -> None:
        """Keep a member, or the reason why it failed."""
        if isinstance(made, Failure):
            write_sealed(self._path(made.index), asdict(made), {})
            return
        member, parts = made
        arrays: dict[str, Labels] = {}
        if isinstance(worker, Here):
            arrays["labels"] = np.concatenate(parts)
        else:
            folder = os.fspath(self.folder)
            saved = [
                worker.call(_save_part, folder, part, member, labels)
                for part, labels in enumerate(parts)
            ]
            for each in saved:
                worker.value(each)
        write_sealed(self._path(member.index), {"member": member.to_json()}, arrays)

    def __len__(self) -> int:
        return len(list(self.folder.glob("member-??????.npz")))


def _enough(n_rows: int) -> int:
    """Return the bytes that the labels of so many rows need, and some to spare."""
    return 8 * n_rows + 2**20


def _check_labels(
    labels: Labels, n_rows: int, member: Member, plan: Plan | None = None
) -> None:
    """Raise unless these can be the labels of so many rows in a member.

    With a plan, the rows that the member leaves out are those that it draws not; a
    user's own base clustering may leave out more, and make any number of clusters.
    """
    fits = labels.shape == (n_rows,) and labels.dtype == np.int32
    drawn = None if plan is None else plan.samples(member)
    if fits and drawn is not None:
        fits = bool((np.delete(labels, drawn) == -1).all())
        labels = labels[drawn]
    own = plan is not None and plan.has_own_base
    least, most = (-1, n_rows) if own else (0, member.n_clusters)
    if not fits or labels.min() < least or not 0 <= labels.max() < most:
        raise DamagedFileError("these are not the labels of that member")


def _part_path(folder: str, part: int, member: Member, ending: str) -> Path:
    return Path(folder) / f"member-{member.index:06d}-part-{part:06d}.{ending}"


def _save_part(folder: str, part: int, member: Member, labels: Labels) -> None:
    provenance = {"member": member.to_json(), "part": part}
    path = _part_path(folder, part, member, "npz")
    write_sealed(path, provenance, {"labels": labels})


def _load_part(folder: str, part: int, n_rows: int, member: Member) -> Labels:
    """Return one block of labels; raise if it is not whole or not the right one."""
    old = _part_path(folder, part, member, "npy")
    if old.exists():
        labels: Labels = np.load(old, allow_pickle=False)
    else:
        path = _part_path(folder, part, member, "npz")
        provenance, arrays = read_sealed(path, _enough(n_rows))
        if provenance != {"member": member.to_json(), "part": part}:
            raise DamagedFileError(f"{os.fspath(path)!r} belongs elsewhere.")
        labels = arrays["labels"]
    _check_labels(labels, n_rows, member)
    return labels


def _is_whole(folder: str, part: int, n_rows: int, member: Member) -> bool:
    try:
        _load_part(folder, part, n_rows, member)
    except (FileNotFoundError, *DAMAGED):
        return False
    return True


def _refuse_foreign(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.glob("[!.]*"))):
        raise ValueError(
            f"{os.fspath(folder)!r} is not empty and holds no checkpoint; give an "
            "empty or a new folder."
        )


def _check_header(header: Path, wanted: dict[str, Any]) -> None:
    """Raise if a folder belongs to other data or other parameters."""
    try:
        found = json.loads(header.read_text(encoding="utf-8"))
        differing = [
            name for name in {**wanted, **found} if found.get(name) != wanted.get(name)
        ]
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{os.fspath(header)!r} is damaged; remove the folder and start again."
        ) from error
    if differing:
        names = ", ".join("the seed" if n == "entropy" else n for n in differing)
        raise ValueError(
            f"the checkpoint {os.fspath(header.parent)!r} was made with other settings "
            f"({names} differ); use the same ones, or another folder."
        )
