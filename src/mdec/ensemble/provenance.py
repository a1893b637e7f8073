"""Where members come from: those that failed, and the views they were made of."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from mdec.ensemble.plan import current_names


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


@dataclass(frozen=True)
class View:
    """One of several ensembles of the same samples that were joined.

    Attributes
    ----------
    name : str
        What it is called.
    share : float or None
        Its share of the co-association; those of all views add up to one. None if
        every member counts alike.
    parameters : mapping
        What its members share.
    failures : tuple of Failure
        Its members that were drawn and dropped.
    features : tuple of str
        Names of its features; empty if they are not known.
    """

    name: str
    share: float | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", read_only(self.parameters))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return the view that `to_json` wrote; raise if it is none."""
        failures = tuple(Failure(**each) for each in content["failures"])
        features = tuple(content["features"])
        parameters = current_names(content["parameters"])
        found = {"failures": failures, "features": features, "parameters": parameters}
        view = cls(**{**content, **found})
        texts = all(isinstance(text, str) for text in (view.name, *features))
        if not texts or not (view.share is None or 0.0 < view.share <= 1.0):
            raise ValueError("this is no view")
        return view

    def to_json(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        parameters, failures = dict(self.parameters), map(asdict, self.failures)
        return {**vars(self), "parameters": parameters, "failures": list(failures)}


# Python itself does not pickle or copy read-only mappings.
copyreg.pickle(MappingProxyType, lambda values: (read_only, (dict(values),)))


def read_only(values: Mapping[str, Any]) -> MappingProxyType[str, Any]:
    """Return parameters that cannot be changed, in Python's own numbers and tuples."""
    return MappingProxyType({name: _plain(value) for name, value in values.items()})


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return tuple(_plain(each) for each in value)
    return value


def view_shares(
    weights: Mapping[str, float] | Sequence[float], names: Sequence[str]
) -> list[float]:
    """Return the share of each view; they add up to one.

    Examples
    --------
    >>> view_shares({"b": 1, "a": 3}, ["a", "b"])
    [0.75, 0.25]
    """
    if isinstance(weights, Mapping):
        if set(weights) != set(names):
            given, wanted = (", ".join(map(repr, each)) for each in (weights, names))
            raise ValueError(
                f"weights are of {given}, the views are {wanted}; give one for each "
                "view."
            )
        weights = [weights[name] for name in names]
    numbers = [float(weight) for weight in weights]
    if len(numbers) != len(names) or not all(0.0 < each < np.inf for each in numbers):
        raise ValueError(
            f"weights={weights!r} must hold one number above 0 for each of the "
            f"{len(names)} views."
        )
    return [each / sum(numbers) for each in numbers]


def join_names(
    names: Sequence[Mapping[str, tuple[str, ...]]],
) -> dict[str, tuple[str, ...]]:
    """Return the names and classes of the samples, or raise if views differ in them."""
    found: dict[str, tuple[str, ...]] = {}
    for part, own in enumerate(names):
        samples = own.get("samples")
        if samples is not None and samples != found.setdefault("samples", samples):
            pairs = enumerate(zip(found["samples"], samples, strict=True))
            row, (first, other) = next(each for each in pairs if len(set(each[1])) > 1)
            raise ValueError(
                f"sample {row} is {first!r} in one ensemble and {other!r} in ensemble "
                f"{part}; put the rows of all tables in one order."
            )
        if "classes" in own:
            found.setdefault("classes", own["classes"])
    return found
