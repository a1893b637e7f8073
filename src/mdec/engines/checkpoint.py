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
        settings = {"format": _FORMAT, "data": digest, **plan.to_json()}
        wanted = json.loads(json.dumps(settings))
        header = self.folder / HEADER
        if header.exists():
            _check_header(header, wanted)
            return
        empty = self.folder.is_dir() and not any(self.folder.glob("[!.]*"))
        if self.folder.exists() and not empty:
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
        plan, folder, call = self.plan, os.fspath(self.folder), self.executor.call
        try:
            provenance, labels = _read(folder, index, None, plan.n_samples)
            if "reason" in provenance:
                failure = Failure(**provenance)
                return failure if failure.index == index else None
            member = Member.from_json(provenance.get("member", provenance))
            if member != plan.member(index, member.attempt):
                return None
            if labels is not None:
                _check_labels(labels, plan.n_samples, member, plan)
                return member, [labels]
        except (FileNotFoundError, *DAMAGED):
            return None
        # Dask workers have written the labels; they are there if all blocks are whole.
        parts = [
            call(_load_part, folder, part, stop - start, member, plan)
            for part, (start, stop) in enumerate(plan.bounds)
        ]
        whole = self.executor.values([call(is_not, each, None) for each in parts])
        return (member, parts) if all(whole) else None

    def save(self, outcome: Outcome) -> None:
        """Keep a member, or the reason why it failed."""
        folder, call = os.fspath(self.folder), self.executor.call
        if isinstance(outcome, Failure):
            write_sealed(_member_path(folder, outcome.index), asdict(outcome), {})
            return
        member, parts = outcome
        if isinstance(self.executor, LocalExecutor):
            _save(folder, member, None, np.concatenate(parts))
            return
        written = [call(_save, folder, member, *each) for each in enumerate(parts)]
        self.executor.values(written)
        _save(folder, member, None, None)


def _member_path(folder: str, index: int, part: int | None = None) -> Path:
    ending = "" if part is None else f"-part-{part:06d}"
    return Path(folder) / f"member-{index:06d}{ending}.npz"


def _save(folder: str, member: Member, part: int | None, labels: Labels | None) -> None:
    """Write a member, or one of its blocks of labels; none if workers have them."""
    provenance = {"member": member.to_json()} | ({} if part is None else {"part": part})
    arrays = {} if labels is None else {"labels": labels}
    write_sealed(_member_path(folder, member.index, part), provenance, arrays)


def _read(
    folder: str, index: int, part: int | None, n_rows: int
) -> tuple[dict[str, Any], Labels | None]:
    """Return what `_save` wrote; parts of version 0.1 have labels alone."""
    path = _member_path(folder, index, part)
    old = path.with_suffix(".json" if part is None else ".npy")  # of version 0.1
    if not old.exists():
        # As many bytes as the labels of the rows need, and some to spare.
        provenance, arrays = read_sealed(path, 8 * n_rows + 2**20)
        return provenance, arrays.get("labels")
    if part is None:
        return json.loads(old.read_text(encoding="utf-8")), None
    return {}, np.load(old, allow_pickle=False)


def _load_part(
    folder: str, part: int, n_rows: int, member: Member, plan: Plan
) -> Labels | None:
    """Return one block of labels; None if it is not whole or not the right one."""
    try:
        provenance, labels = _read(folder, member.index, part, n_rows)
        if provenance in ({}, {"member": member.to_json(), "part": part}):
            _check_labels(labels, n_rows, member, plan)
            return labels
    except (FileNotFoundError, *DAMAGED):
        pass
    return None


def _check_labels(labels: Any, n_rows: int, member: Member, plan: Plan) -> None:
    """Raise unless these can be the labels of so many rows in a member.

    Rows may be left out that the member does not draw; a user's own base clustering may
    leave out more, and make any number of clusters.
    """
    least, most = (-1, n_rows) if plan.has_own_base else (0, member.n_clusters)
    drawn = plan.samples(member)
    if (
        labels.shape != (n_rows,)
        or labels.dtype != np.int32
        or labels.min() < -1
        or labels[slice(None) if drawn is None else drawn].min() < least
        or not 0 <= labels.max() < most
    ):
        raise DamagedFileError("these are not the labels of that member")


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
