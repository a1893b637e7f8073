"""Finished members in a folder, so that a long run survives being stopped."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from operator import is_not
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.archives import DAMAGED, DamagedFileError, read_sealed, write_sealed
from mdec._support.files import write_atomically
from mdec.ensemble import Failure
from mdec.ensemble.plan import Member, Plan, current_names
from mdec.rows.work import Executor, LocalExecutor

Labels = NDArray[np.int32]

# A member with its labels in row blocks, as the executor's handles; or why not.
Outcome = tuple[Member, list[Any]] | Failure

_FORMAT = 1
HEADER = "checkpoint.json"


class Checkpoint:
    """A folder of finished members of one ensemble, made if it does not exist.

    Each member is one file, written under a temporary name and renamed, so a process
    that is killed leaves whole members only; Dask workers, which must see the folder,
    write one more file for each row block. The folder knows the digest of the data and
    the plan it belongs to and is refused for others; the number of members is not among
    them, because it changes no member.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        digest: str,
        plan: Plan,
        executor: Executor,
    ) -> None:
        self.folder, self.plan, self.executor = Path(folder), plan, executor
        text = json.dumps({"format": _FORMAT, "data": digest, **plan.to_json()})
        wanted = json.loads(text)
        header = self.folder / HEADER
        if header.exists():
            _check_header(header, wanted)
            return
        if self.folder.exists() and (
            not self.folder.is_dir() or any(self.folder.glob("[!.]*"))
        ):
            raise ValueError(
                f"{os.fspath(folder)!r} is not empty and holds no checkpoint; give an "
                "empty or a new folder."
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(header, json.dumps(wanted, indent=1).encode())

    def load(self, index: int) -> Outcome | None:
        """Return a finished member, or None if it has to be made.

        A file that is damaged, or that belongs to another member, is treated as
        absent: making a member again gives the same member.
        """
        path = _member_path(self.folder, index)
        old = path.with_suffix(".json")  # of version 0.1
        arrays: dict[str, Any] = {}
        try:
            if old.exists():
                provenance = json.loads(old.read_text(encoding="utf-8"))
            else:
                provenance, arrays = read_sealed(path, _max_bytes(self.plan.n_samples))
            if "reason" in provenance:
                failure = Failure(**provenance)
                return failure if failure.index == index else None
            member = Member.from_json(provenance.get("member", provenance))
            if member != self.plan.member(index, member.attempt):
                return None
            if "labels" in arrays:
                _check_labels(arrays["labels"], self.plan.n_samples, member, self.plan)
                return member, [arrays["labels"]]
        except (FileNotFoundError, *DAMAGED):
            return None
        # Dask workers have written the labels; they are there if all blocks are whole.
        call, folder = self.executor.call, os.fspath(self.folder)
        parts = [
            call(_load_part, folder, part, stop - start, member)
            for part, (start, stop) in enumerate(self.plan.bounds)
        ]
        whole = self.executor.values([call(is_not, each, None) for each in parts])
        return (member, parts) if all(whole) else None

    def save(self, outcome: Outcome) -> None:
        """Keep a member, or the reason why it failed."""
        if isinstance(outcome, Failure):
            path = _member_path(self.folder, outcome.index)
            write_sealed(path, asdict(outcome), {})
            return
        member, parts = outcome
        arrays: dict[str, Labels] = {}
        if isinstance(self.executor, LocalExecutor):
            arrays["labels"] = np.concatenate(parts)
        else:
            call, folder = self.executor.call, os.fspath(self.folder)
            written = [call(_save_part, folder, member, *e) for e in enumerate(parts)]
            self.executor.values(written)
        path = _member_path(self.folder, member.index)
        write_sealed(path, {"member": member.to_json()}, arrays)


def _member_path(folder: str | Path, index: int, part: int | None = None) -> Path:
    ending = "" if part is None else f"-part-{part:06d}"
    return Path(folder) / f"member-{index:06d}{ending}.npz"


def _max_bytes(n_rows: int) -> int:
    """Return the bytes that the labels of so many rows need, and some to spare."""
    return 8 * n_rows + 2**20


def _check_labels(
    labels: Labels, n_rows: int, member: Member, plan: Plan | None = None
) -> None:
    """Raise unless these can be the labels of so many rows in a member.

    With a plan, rows may be left out that the member does not draw; a user's own base
    clustering may leave out more, and make any number of clusters.
    """
    fits = labels.shape == (n_rows,) and labels.dtype == np.int32
    drawn = None if plan is None else plan.samples(member)
    own = plan is not None and plan.has_own_base
    least, most = (-1, n_rows) if own else (0, member.n_clusters)
    if fits and drawn is not None:
        fits = bool(labels.min() >= -1 and labels[drawn].min() >= least)
        least = -1
    if not fits or labels.min() < least or not 0 <= labels.max() < most:
        raise DamagedFileError("these are not the labels of that member")


def _save_part(folder: str, member: Member, part: int, labels: Labels) -> None:
    path = _member_path(folder, member.index, part)
    provenance = {"member": member.to_json(), "part": part}
    write_sealed(path, provenance, {"labels": labels})


def _load_part(folder: str, part: int, n_rows: int, member: Member) -> Labels | None:
    """Return one block of labels; None if it is not whole or not the right one."""
    path = _member_path(folder, member.index, part)
    old = path.with_suffix(".npy")  # of version 0.1
    try:
        if old.exists():
            labels: Labels = np.load(old, allow_pickle=False)
        else:
            provenance, arrays = read_sealed(path, _max_bytes(n_rows))
            if provenance != {"member": member.to_json(), "part": part}:
                return None
            labels = arrays["labels"]
        _check_labels(labels, n_rows, member)
    except (FileNotFoundError, *DAMAGED):
        return None
    return labels


def _check_header(header: Path, wanted: dict[str, Any]) -> None:
    """Raise if a folder belongs to other data or other parameters."""
    try:
        found = current_names(json.loads(header.read_text(encoding="utf-8")))
        names = [n for n in {**wanted, **found} if found.get(n) != wanted.get(n)]
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{os.fspath(header)!r} is damaged; remove the folder and start again."
        ) from error
    if names:
        differing = ", ".join("the seed" if n == "entropy" else n for n in names)
        raise ValueError(
            f"the checkpoint {os.fspath(header.parent)!r} was made with other settings "
            f"({differing} differ); use the same ones, or another folder."
        )
