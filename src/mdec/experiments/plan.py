"""From a study to the runs it asks for. Nothing here executes anything."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from mdec.experiments.methods import Method
from mdec.experiments.study import DatasetSpec, Parameters, Study

# Ensembles of different sizes are the first members of one.
_SHARED_PARAMETER = "ensemble_size"


@dataclass(frozen=True)
class Run:
    """One method on one dataset, once.

    Attributes
    ----------
    method : str
        Its name.
    generator_parameters, parameters : dict
        Arguments of the generator and of the method.
    seed : int
        From the names of study, dataset, repetition and method.
    """

    method: str
    generator_parameters: Parameters
    parameters: Parameters
    seed: int


@dataclass(frozen=True)
class Group:
    """The runs that one ensemble, or one look at the data, serves.

    Attributes
    ----------
    dataset : DatasetSpec
        What to cluster.
    repetition : int
        From 0.
    generator : str or None
        Maker of the ensemble.
    parameters : dict
        Its arguments, the size of the ensemble being the largest that a run needs.
    seed : int
        From the names of study, dataset, repetition and generator.
    runs : tuple of Run
        In the order of the study.
    """

    dataset: DatasetSpec
    repetition: int
    generator: str | None
    parameters: Parameters
    seed: int
    runs: tuple[Run, ...]


def seed_from_names(*names: object) -> int:
    """Return a seed that depends on the names alone.

    Examples
    --------
    >>> seed_from_names("tables", "DS-1", 0, "mdec")
    1840779964
    """
    text = json.dumps([str(name) for name in names])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def plan_groups(study: Study) -> list[Group]:
    """Return the runs of a study, grouped by what they share.

    Parameters
    ----------
    study : Study
        The study.

    Returns
    -------
    list of Group
        First repetitions first, so that an unfinished study covers every dataset.

    Examples
    --------
    >>> from mdec.experiments.study import read_study
    >>> groups = plan_groups(read_study("quick"))
    >>> sorted({group.generator or "data" for group in groups})
    ['data', 'mdec']
    """
    counts = [_count(study, spec) for spec in study.datasets]
    return [
        group
        for repetition in range(max(counts))
        for spec, count in zip(study.datasets, counts, strict=True)
        if repetition < count
        for group in _groups(study, spec, repetition)
    ]


def _count(study: Study, spec: DatasetSpec) -> int:
    counts = study.repetitions
    return counts.get(spec.name, counts.get(spec.kind, counts["default"]))


def _groups(study: Study, spec: DatasetSpec, repetition: int) -> Iterator[Group]:
    found: dict[tuple[str | None, str], list[Run]] = {}
    for name, method in study.methods.items():
        if repetition >= study.repetitions.get(name, repetition + 1):
            continue
        seed = seed_from_names(study.name, spec.name, repetition, name)
        for made_with in _generator_points(study, method):
            shared = {k: v for k, v in made_with.items() if k != _SHARED_PARAMETER}
            key = method.generator, json.dumps(shared, sort_keys=True)
            for point in _points(study.grid["method"]):
                parameters = {**method.parameters, **point}
                run = Run(name, made_with, parameters, seed)
                found.setdefault(key, []).append(run)
    for (generator, shared_text), runs in found.items():
        parameters = json.loads(shared_text)
        sizes = [r.generator_parameters.get(_SHARED_PARAMETER) for r in runs]
        if any(sizes):
            parameters[_SHARED_PARAMETER] = max(size for size in sizes if size)
        seed = seed_from_names(study.name, spec.name, repetition, generator)
        yield Group(spec, repetition, generator, parameters, seed, tuple(runs))


def _generator_points(study: Study, method: Method) -> Iterator[Parameters]:
    if method.generator is None:
        yield {}
        return
    if method.generator not in study.generators:
        raise ValueError(
            f"there is no generator {method.generator!r}; describe it under "
            f"[generators.{method.generator}]."
        )
    given = study.generators[method.generator][1]
    for point in _points(study.grid["generator"]):
        yield {**given, **point}


def _points(grid: dict[str, list[Any]]) -> Iterator[Parameters]:
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))
