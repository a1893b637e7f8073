"""Finished members in a folder, so that a long run survives being stopped."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from mdec._support.files import atomic_file, write_atomically
from mdec.ensemble import Failure, Member

Made = tuple[Member, NDArray[np.int32]] | Failure

_FORMAT = 1
_HEADER = "checkpoint.json"
_DAMAGED = (KeyError, TypeError, ValueError, EOFError, AttributeError, BadZipFile)


def fingerprint(X: NDArray[Any]) -> str:
    """Return a digest of the data: its shape, its precision and every value.

    Examples
    --------
    >>> fingerprint(np.zeros((3, 2))) == fingerprint(np.zeros((2, 3)))
    False
    """
    digest = hashlib.sha256(f"{X.shape} {X.dtype.str}".encode())
    digest.update(np.ascontiguousarray(X).data)
    return digest.hexdigest()


class Checkpoint:
    """A folder of finished members of one ensemble.

    Each member is one file, written under a temporary name and renamed, so a process
    that is killed leaves whole members only. The folder knows the data and the
    parameters it belongs to and is refused for others; the number of members is not
    among them, because it changes no member.

    Parameters
    ----------
    folder : path-like
        Made if it does not exist.
    X : ndarray of shape (n_samples, n_features) or str
        The data that the members cluster, or a digest of them.
    spec : dict
        What all members share, ``ensemble.parameters``.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        X: NDArray[Any] | str,
        spec: dict[str, Any],
    ) -> None:
        self.folder = Path(folder)
        digest = X if isinstance(X, str) else fingerprint(X)
        wanted = {"format": _FORMAT, "data": digest, **spec}
        wanted = json.loads(json.dumps(wanted))
        header = self.folder / _HEADER
        if header.exists():
            _check_header(header, wanted)
        else:
            _refuse_foreign(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(header, json.dumps(wanted, indent=1).encode())

    def _path(self, index: int) -> Path:
        return self.folder / f"member-{index:06d}.npz"

    def load(self, index: int) -> Made | None:
        """Return a finished member, or None if it has to be made.

        A file that cannot be read is treated as absent: making a member again gives
        the same member.
        """
        try:
            with (
                self._path(index).open("rb") as file,
                np.load(file, allow_pickle=False) as archive,
            ):
                provenance = json.loads(str(archive["provenance"]))
                if "reason" in provenance:
                    return Failure(**provenance)
                return Member(**provenance), archive["labels"].astype(np.int32)
        except (FileNotFoundError, *_DAMAGED):
            return None

    def save(self, index: int, made: Made) -> None:
        """Keep a member, or the reason why it failed."""
        arrays: dict[str, Any]
        if isinstance(made, Failure):
            arrays = {"provenance": np.array(json.dumps(asdict(made)))}
        else:
            member, labels = made
            arrays = {
                "provenance": np.array(json.dumps(asdict(member))),
                "labels": labels,
            }
        with atomic_file(self._path(index)) as file:
            np.savez_compressed(file, **arrays)

    def __len__(self) -> int:
        return sum(1 for _ in self.folder.glob("member-*.npz"))


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
