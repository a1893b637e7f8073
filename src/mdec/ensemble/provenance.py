"""Where members come from: those that failed, and the views they were made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


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

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only view cannot be pickled.
        parameters = dict(self.parameters)
        rest = self.failures, self.features
        return type(self), (self.name, self.share, parameters, *rest)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return the view that `to_json` wrote; raise if it is none.

        Parameters
        ----------
        content : dict
            What was written.

        Returns
        -------
        View
            The same view.
        """
        failures = tuple(Failure(**each) for each in content["failures"])
        features = tuple(content["features"])
        view = cls(**{**content, "failures": failures, "features": features})
        texts = all(isinstance(text, str) for text in (view.name, *features))
        if not texts or not (view.share is None or 0.0 < view.share <= 1.0):
            raise ValueError("this is no view")
        return view

    def to_json(self) -> dict[str, Any]:
        """Return what can be written.

        Returns
        -------
        dict
            As JSON can hold it.
        """
        return {
            "name": self.name,
            "share": self.share,
            "parameters": dict(self.parameters),
            "failures": [asdict(failure) for failure in self.failures],
            "features": self.features,
        }


def read_only(values: Mapping[str, Any]) -> Mapping[str, Any]:
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
            raise ValueError(
                f"weights are of {_listed(weights)}, the views are {_listed(names)}; "
                "give one for each view."
            )
        given = [float(weights[name]) for name in names]
    else:
        given = [float(weight) for weight in weights]
    if len(given) != len(names) or not all(0.0 < each < np.inf for each in given):
        raise ValueError(
            f"weights={weights!r} must hold one number above 0 for each of the "
            f"{len(names)} views."
        )
    return [each / sum(given) for each in given]


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in names)


def member_weights(
    shares: Sequence[float], origins: Sequence[int]
) -> NDArray[np.float64]:
    r"""Return how much each member counts, so that views have their shares.

    Notes
    -----
    :math:`g_m = s_v M / M_v` for the members of a view v with the share :math:`s_v`,
    :math:`M_v` of the M members. The co-association is then
    :math:`\sum_v s_v A_v`, with :math:`A_v` that of the members of v alone.

    Examples
    --------
    >>> member_weights([0.5, 0.5], [0, 0, 0, 1])
    array([0.66666667, 0.66666667, 0.66666667, 2.        ])
    """
    sizes = np.bincount(origins, minlength=len(shares))
    factors = np.asarray(shares) * len(origins) / np.maximum(sizes, 1)
    return factors[np.asarray(origins)]


def joined_names(
    names: Sequence[Mapping[str, tuple[str, ...]]],
) -> dict[str, tuple[str, ...]]:
    """Return the names and classes of the samples, or raise if views differ in them."""
    found: dict[str, tuple[str, ...]] = {}
    for part, given in enumerate(names):
        samples = given.get("samples")
        if samples is not None and samples != found.setdefault("samples", samples):
            first = found["samples"]
            row = next(
                i
                for i, pair in enumerate(zip(first, samples, strict=True))
                if pair[0] != pair[1]
            )
            raise ValueError(
                f"sample {row} is {first[row]!r} in one ensemble and {samples[row]!r} "
                f"in ensemble {part}; put the rows of all tables in one order."
            )
        if "classes" in given:
            found.setdefault("classes", given["classes"])
    return found


def joined_views(
    views: Sequence[tuple[View, ...]],
    origins: Sequence[tuple[int, ...]],
    shares: Sequence[float] | None,
) -> tuple[tuple[View, ...], tuple[int, ...]]:
    """Return the views of joined ensembles, and the view of each of their members.

    Parameters
    ----------
    views : sequence of tuple of View
        Those of each ensemble.
    origins : sequence of tuple of int
        Which of them each of its members is of.
    shares : sequence of float or None
        How much each ensemble counts, which its views divide; None if every member
        counts alike.

    Returns
    -------
    views : tuple of View
        Those of all ensembles.
    origins : tuple of int
        Which of these each member is of.
    """
    found: list[View] = []
    places: list[int] = []
    for i, (inner, own) in enumerate(zip(views, origins, strict=True)):
        places += [len(found) + v for v in own]
        if shares is not None:
            inner = tuple(
                replace(view, share=shares[i] * _share(view, own.count(v), own))
                for v, view in enumerate(inner)
            )
        found += inner
    return tuple(found), tuple(places)


def _share(view: View, n_members: int, origins: tuple[int, ...]) -> float:
    return n_members / len(origins) if view.share is None else view.share


def check_origins(origins: tuple[int, ...], n_members: int, n_views: int) -> None:
    """Raise unless every member is of one of the views, if there are any."""
    if len(origins) != (n_members if n_views else 0) or any(
        origin not in range(n_views) for origin in origins
    ):
        raise ValueError("views and labels do not fit each other")


def check_names(
    names: Mapping[str, tuple[str, ...]], n_samples: int, n_features: int | None
) -> None:
    """Raise unless names are texts, one for each sample or feature."""
    numbers = {"samples": n_samples, "classes": n_samples}
    for name, texts in names.items():
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("names are no text")
        if len(texts) != numbers.get(name, n_features or len(texts)):
            raise ValueError("names and labels do not fit each other")
