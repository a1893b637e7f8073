"""From a study to the runs it asks for. Nothing here executes anything."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Self

from mdec.experiments.methods import Method
from mdec.experiments.records import OK, Parameters, RunRecord
from mdec.experiments.study import DatasetSpec, Study

# Ensembles of different sizes are the first members of one.
_SHARED_PARAMETER = "ensemble_size"


@dataclass(frozen=True)
class Run:
    """One method on one dataset, once, with the arguments of its generator and its own.

    The seed comes from the names of study, dataset, repetition and method.
    """

    method: str
    function: str
    generator_parameters: Parameters
    parameters: Parameters
    seed: int


@dataclass(frozen=True)
class Group:
    """The runs that one ensemble, or one look at the data, serves.

    `parameters` are those of the generator, which is None for the data as they are; the
    size of the ensemble is the largest that a run needs. Repetitions count from 0, and
    the seed comes from the names of study, dataset, repetition and generator.
    """

    study: str
    dataset: DatasetSpec
    repetition: int
    generator: str | None
    function: str | None
    parameters: Parameters
    seed: int
    runs: tuple[Run, ...]

    def to_json(self) -> str:
        """Return the group as one line, for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Return the group that `to_json` wrote."""
        read = json.loads(line)
        runs = tuple(Run(**run) for run in read.pop("runs"))
        return cls(dataset=DatasetSpec(**read.pop("dataset")), runs=runs, **read)

    def record(self, run: Run, status: str = OK, message: str = "") -> RunRecord:
        """Return the record of a run, less what only the run itself can tell."""
        return {
            "record": "run",
            "study": self.study,
            "dataset": self.dataset.name,
            "method": run.method,
            "generator": self.generator,
            "generator_parameters": run.generator_parameters,
            "parameters": run.parameters,
            "repetition": self.repetition,
            "generator_seed": self.seed,
            "seed": run.seed,
            "status": status,
            "message": message,
        }


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

    First repetitions come first, so that an unfinished study covers every dataset.

    Parameters
    ----------
    study : Study
        What to run.

    Returns
    -------
    list
        Groups of runs that share an ensemble.

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
            for point in _points(study.method_grid):
                parameters = {**method.parameters, **point}
                run = Run(name, method.function, made_with, parameters, seed)
                found.setdefault(key, []).append(run)
    for (generator, shared_text), runs in found.items():
        parameters = json.loads(shared_text)
        sizes = [r.generator_parameters.get(_SHARED_PARAMETER) for r in runs]
        if any(sizes):
            parameters[_SHARED_PARAMETER] = max(size for size in sizes if size)
        yield Group(
            study.name,
            spec,
            repetition,
            generator,
            None if generator is None else study.generators[generator].function,
            parameters,
            seed_from_names(study.name, spec.name, repetition, generator),
            tuple(runs),
        )


def _generator_points(study: Study, method: Method) -> Iterator[Parameters]:
    if method.generator is None:
        yield {}
        return
    if method.generator not in study.generators:
        raise ValueError(
            f"there is no generator {method.generator!r}; describe it under "
            f"[generators.{method.generator}]."
        )
    given = study.generators[method.generator].parameters
    for point in _points(study.generator_grid):
        yield {**given, **point}


def _points(grid: dict[str, list[Any]]) -> Iterator[Parameters]:
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))
