"""The model of a result: what is done to a new table, and what then places its rows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mdec._support.memory import MAX_BYTES
from mdec._support.sealed import parts_that_fit
from mdec.ensemble import Ensemble
from mdec.estimator import MDEC
from mdec.estimator.kept import read_model, write_model
from mdec.estimator.settled import assembled
from mdec.preparation import ExpressionPreparation, Preparation, prepared
from mdec.tables import Table
from mdec.tables.values import TRANSFORMS, feature_scales, transformed

Array = NDArray[np.floating]

MODEL = "model.npz"

# Training rows that are more are not kept: the file would take long to write and read.
MOST_BYTES = 500_000_000


@dataclass(frozen=True, eq=False)
class Steps:
    """What is done to the values of a table before a model sees them.

    Attributes
    ----------
    n_features : int
        Features of the table.
    names : tuple of str or None
        Their names; None if the table has none, or some twice.
    transform : str
        One of `mdec.tables.values.TRANSFORMS`.
    told : str
        What is done, in words; "" for nothing.
    arrays : dict of ndarray
        What was learnt from the training table: means and spreads of its features,
        the order of the prepared ones and those kept; and the least and greatest mean
        of its samples that are not odd, where preparing takes their means away.
    preparation : dict or None
        The rest of a `Preparation`.
    """

    n_features: int
    names: tuple[str, ...] | None
    transform: str = "none"
    told: str = ""
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    preparation: dict[str, Any] | None = None

    @classmethod
    def of(
        cls,
        table: Table,
        transform: str,
        fitted: ExpressionPreparation | None,
        told: str | None,
    ) -> Self:
        """Collect what a fit does to its table.

        Parameters
        ----------
        table : Table
            What was read.
        transform : str
            What was asked for.
        fitted : ExpressionPreparation or None
            How the values were prepared then.
        told : str or None
            The same in words.

        Returns
        -------
        Steps
            For new tables.
        """
        arrays: dict[str, NDArray[Any]] = {}
        if transform == "standardise":
            arrays["means"], arrays["spreads"] = feature_scales(table.values)
        rest = None
        if fitted is not None:
            learnt = fitted.preparation_
            arrays |= {"order": learnt.order, "features": fitted.features_}
            rest = {n: getattr(learnt, n) for n in ("power", "total", "center")}
            if learnt.center:
                arrays["levels"] = _usual_levels(transformed(table.values, transform))
        done = [] if transform == "none" else [f"--transform {transform}"]
        done += [told] if fitted is not None and told else []
        named = bool(table.reading.get("names_of_columns"))
        different = len(set(table.feature_names)) == len(table.feature_names)
        return cls(
            len(table.feature_names),
            tuple(table.feature_names) if named and different else None,
            transform,
            "; ".join(done),
            arrays,
            rest,
        )

    def apply(self, values: Array) -> Array:
        """Return the values of a new table as the model takes them."""
        if self.transform == "standardise":
            values = (values - self.arrays["means"]) / self.arrays["spreads"]
        else:
            values = transformed(values, self.transform)
        if self.preparation is None:
            return values
        learnt = Preparation(**self.preparation, order=self.arrays["order"])
        return prepared(values, learnt, self.arrays["features"])

    def off_level(self, values: Array) -> NDArray[np.bool_]:
        """Tell which samples of a new table lose a mean that no training sample has.

        Parameters
        ----------
        values : ndarray of shape (n_samples, n_features)
            The table, before anything is done to it.

        Returns
        -------
        ndarray of shape (n_samples,)
            True where a prepared sample may look familiar and is not.
        """
        if "levels" not in self.arrays:
            return np.zeros(len(values), dtype=bool)
        means = transformed(values, self.transform).mean(axis=1, dtype=np.float64)
        low, high = self.arrays["levels"]
        return (means < low) | (means > high)

    def to_json(self) -> dict[str, Any]:
        """Return all but the arrays."""
        return {
            "n_features": self.n_features,
            "names": self.names,
            "transform": self.transform,
            "told": self.told,
            "preparation": self.preparation,
        }

    @classmethod
    def from_json(
        cls, content: Mapping[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        """Return what `to_json` and the arrays were written from, or raise."""
        names = content["names"]
        known = None if names is None else tuple(names)
        steps = cls(**{**content, "names": known}, arrays=arrays)
        if steps.transform not in TRANSFORMS:
            raise ValueError("there is no such transform")
        if known is not None and len(known) != steps.n_features:
            raise ValueError("names and features do not fit each other")
        steps.off_level(np.ones((1, steps.n_features)))
        steps.apply(np.ones((1, steps.n_features)))
        return steps


def _usual_levels(values: Array) -> Array:
    """Return bounds of the samples' means: theirs, and as much again as they span.

    Samples of equal means are given the room of a typical sample's spread.
    """
    means = values.mean(axis=1, dtype=np.float64)
    low, high = means.min(), means.max()
    room = max(high - low, float(np.median(values.std(axis=1, dtype=np.float64))))
    return np.array([low - room, high + room])


@dataclass(frozen=True, eq=False)
class Kept:
    """What a command needs to write a model.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features)
        What the ensemble was made of.
    steps : Steps
        What was done to the table before.
    parameters : dict
        Parameters of `MDEC`, but those that the command decides at its end.
    """

    values: Array
    steps: Steps
    parameters: dict[str, Any]

    @property
    def min_confidence(self) -> float | None:
        """What samples must be held by to be clustered, if that was asked for."""
        least: float | None = self.parameters.get("min_confidence")
        return least

    def too_large(self) -> str | None:
        """Say why the model is left out, or return None."""
        if self.values.nbytes <= MOST_BYTES:
            return None
        return (
            f"its training rows take {self.values.nbytes / 1e6:.0f} MB, more than the "
            f"{MOST_BYTES / 1e6:.0f} MB that are kept; use MDEC.save in Python"
        )

    def write(
        self,
        path: Path,
        ensemble: Ensemble,
        labels: NDArray[np.int32],
        weights: Array,
        **decided: Any,
    ) -> int:
        """Write the model and return the bytes of its file.

        Parameters
        ----------
        path : Path
            The file.
        ensemble : Ensemble
            The base clusterings.
        labels : ndarray of shape (n_samples,)
            The clusters.
        weights : ndarray of shape (n_base_clusters,)
            Weight of each base cluster.
        **decided
            Further parameters of `MDEC`.

        Returns
        -------
        int
            Its size.
        """
        model = MDEC(**{**self.parameters, **decided})
        assembled(model, self.values, ensemble, labels, weights)
        write_model(path, model, self.steps.to_json(), self.steps.arrays)
        return path.stat().st_size


def read_kept(path: Path, max_bytes: int = MAX_BYTES) -> tuple[MDEC, Steps]:
    """Read a model and what is done to tables before it.

    Parameters
    ----------
    path : Path
        The file, written by a command or by `MDEC.save`.
    max_bytes : int
        A file that claims to unpack to more is refused.

    Returns
    -------
    model : MDEC
        The model.
    steps : Steps
        For new tables; nothing is done for a model that `MDEC.save` wrote.
    """
    if not path.is_file():
        raise ValueError(f"{os.fspath(path)!r} is not a file; check its name.")
    model, content, arrays = read_model(path, MDEC, max_bytes)
    if not content:
        names = getattr(model, "feature_names_in_", None)
        return model, Steps(
            model.n_features_in_, None if names is None else tuple(names)
        )
    with parts_that_fit(path):
        return model, Steps.from_json(content, arrays)
