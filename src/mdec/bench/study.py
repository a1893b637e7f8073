"""Study files, and the runs that they ask for. Nothing here executes anything."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from mdec.bench.datasets import all_datasets, dataset_info, list_datasets
from mdec.bench.methods import GENERATORS, METHODS, Method
from mdec.bench.records import OK, Parameters, Record, StudyText

# The name of all thirty datasets in a study.
PAPER = "paper"
STUDY_FILES = resources.files("mdec.bench") / "studies"


class DatasetSpec(NamedTuple):
    """A dataset of a study.

    The name is what the records call it and part of every seed; the source is an id in
    the registry, or a path whose kind is "file" and whose classes are in column
    `target`.
    """

    name: str
    source: str
    kind: str
    target: str | None = None


@dataclass(frozen=True)
class Study:
    """A study file with its defaults filled in.

    Attributes
    ----------
    name, title : str
        The name is part of every seed.
    datasets : tuple of DatasetSpec
        What to cluster.
    methods : dict
        Name to `Method`, in the order of the tables.
    generators : dict
        Name to `Method` that makes ensembles of the data.
    repetitions : dict
        Counts: "default", and by dataset, kind of dataset or method.
    limits : dict
        Of time and memory, by name; see `run_study`.
    text : dict
        The parsed file.
    folder : str
        Folder of the study file, from which paths and modules are found.
    """

    name: str
    title: str
    datasets: tuple[DatasetSpec, ...]
    methods: dict[str, Method]
    generators: dict[str, Method]
    repetitions: dict[str, int]
    limits: dict[str, float]
    text: StudyText = field(repr=False)
    folder: str = ""


# What a study file may hold at each place: a type, a list of one kind, a table, or a
# choice of these. A "?" marks a key that may be left out, and "*" is any other key.
_AXIS = {"x": str, "label": str, "split?": str}
_METHOD = {"name": str, "function?": str, "method?": str, "generator?": str}
_LIMITS = ("seconds_per_run?", "seconds_total?", "memory_gb?")
_SWITCHES = ("times?", "published?", "critical_difference?")
_SCHEMA = {
    "name": str,
    "title?": object,
    "datasets": [(str, {"path": str, "name?": str, "target?": str})],
    "methods": [(str, {**_METHOD, "parameters?": {"*": object}})],
    "generators?": {"*": {"function?": str, "*": object}},
    "parameters?": {"generator?": {"*": [object]}, "method?": {"*": [object]}},
    "repetitions?": (int, {"*": int}),
    "limits?": dict.fromkeys(_LIMITS, (int, float)),
    "report?": dict.fromkeys(_SWITCHES, bool)
    | {"metrics?": [str], "curves?": _AXIS, "bars?": _AXIS},
}
_KINDS: dict[type, str] = {str: "text", int: "a whole number", float: "a number"}
_KINDS |= {bool: "true or false", list: "a list", dict: "a table"}


def _check(value: Any, schema: Any, where: str = "") -> None:
    """Raise unless a value of a study file is of the kind that its place needs.

    A table must have what it needs, and nothing that is unknown.
    """
    place = f"{where} of the study" if where else "the study"
    choices = schema if isinstance(schema, tuple) else (schema,)
    kinds: list[Any] = [
        each if isinstance(each, type) else type(each) for each in choices
    ]
    # A bool is an int to Python, and true is no number of repetitions.
    fits = [
        choice
        for choice, kind in zip(choices, kinds, strict=True)
        if isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    ]
    if not fits:
        raise ValueError(
            f"{place} must be {' or '.join(_KINDS[kind] for kind in kinds)}; it is "
            f"{repr(value)[:60]}."
        )
    if isinstance(fits[0], list):
        for number, item in enumerate(value, 1):
            _check(item, fits[0][0], f"{where}[{number}]")
    elif isinstance(fits[0], dict):
        known = {key.removesuffix("?"): kind for key, kind in fits[0].items()}
        for key in fits[0]:
            if not key.endswith(("?", "*")) and not value.get(key):
                raise ValueError(f"{place} needs {key}; add {key} = ... to it.")
        unknown = sorted(value.keys() - known.keys())
        if unknown and "*" not in known:
            raise ValueError(
                f"{place} has no {', '.join(unknown)}; it has {', '.join(known)}."
            )
        for key, item in value.items():
            _check(item, known.get(key, known.get("*")), f"{where}.{key}".lstrip("."))


def study_names() -> list[str]:
    """Return the names of the studies that come with the package.

    Returns
    -------
    list of str
        Names for `read_study`.
    """
    names = [item.name for item in STUDY_FILES.iterdir()]
    return sorted(n.removesuffix(".toml") for n in names if n.endswith(".toml"))


def read_study(source: str | os.PathLike[str]) -> Study:
    """Read a study file, or a study that comes with the package.

    Parameters
    ----------
    source : str or path-like
        A path that ends in .toml, or a name.

    Returns
    -------
    Study
        The study, with its defaults filled in.

    Examples
    --------
    >>> read_study("quick").repetitions["default"]
    3
    """
    path, folder = Path(source), Path.cwd()
    if path.suffix == ".toml":
        if not path.is_file():
            raise FileNotFoundError(f"there is no study file {path}; check the path.")
        folder = path.resolve().parent
    elif str(source) not in study_names():
        raise ValueError(
            f"there is no study {str(source)!r}; give a path that ends in .toml, or "
            f"one of {', '.join(study_names())}."
        )
    shipped = STUDY_FILES / f"{source}.toml"
    content = (path if path.suffix else shipped).read_text(encoding="utf-8")
    try:
        text = tomllib.loads(content)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"the study {source} is not valid TOML: {error}.") from error
    return make_study(text, folder)


def make_study(text: StudyText, folder: str | os.PathLike[str] = "") -> Study:
    """Check a parsed study file and return its study, with the defaults filled in.

    Its paths and modules are found from `folder`.
    """
    _check(text, _SCHEMA)
    # A dataset may be named twice, by its id and by its kind.
    datasets = tuple(dict.fromkeys(_find_datasets(text["datasets"], Path(folder))))
    tables = [{"name": e} if isinstance(e, str) else e for e in text["methods"]]
    of_datasets, of_methods = [d.name for d in datasets], [t["name"] for t in tables]
    for what, names in (("datasets", of_datasets), ("methods", of_methods)):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"the study has two {what} called {twice[0]!r}; give one another name."
            )
    methods = {table["name"]: _find("method", METHODS, table) for table in tables}
    generators = dict(GENERATORS)
    for name, given in text.get("generators", {}).items():
        table = {"name": name, "parameters": {**given}}
        if "function" in given:
            table["function"] = table["parameters"].pop("function")
        generators[name] = _find("generator", GENERATORS, table)
    for method in methods.values():
        if method.generator not in {None, *generators}:
            raise ValueError(
                f"there is no generator {method.generator!r}; describe it under "
                f"[generators.{method.generator}]."
            )
    counts = text.get("repetitions", {})
    counts = {"default": counts} if isinstance(counts, int) else counts
    return Study(
        name=text["name"],
        title=str(text.get("title", text["name"])),
        datasets=datasets,
        methods=methods,
        generators=generators,
        repetitions={"default": 1, **counts},
        limits=text.get("limits", {}),
        text=text,
        folder=str(folder),
    )


def narrow(
    study: Study,
    *,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    repetitions: int | None = None,
) -> Study:
    """Return a part of a study with unchanged seeds.

    Datasets are given by ids, names or kinds and methods by names, nothing for all;
    `repetitions` is the most of each, None for as many as the study says.
    """
    unknown = [name for name in methods if name not in study.methods]
    if unknown:
        raise ValueError(
            f"the study {study.name} has no method {unknown[0]!r}; it has "
            f"{', '.join(study.methods)}."
        )
    names = [spec.name for spec in study.datasets]
    others = [entry for entry in datasets if entry not in names]
    wanted = {spec.name for spec in _find_datasets(others, Path(study.folder))}
    wanted |= set(datasets or names)
    if wanted.isdisjoint(names):
        raise ValueError(
            f"the study {study.name} has none of {', '.join(datasets)}; it has "
            f"{', '.join(names)}."
        )
    counts = study.repetitions
    if repetitions is not None:
        counts = {name: min(repetitions, count) for name, count in counts.items()}
    return replace(
        study,
        datasets=tuple(spec for spec in study.datasets if spec.name in wanted),
        methods={k: m for k, m in study.methods.items() if not methods or k in methods},
        repetitions=counts,
    )


def _find_datasets(entries: Sequence[Any], folder: Path) -> Iterator[DatasetSpec]:
    kinds = {info.kind for info in all_datasets().values()}
    for entry in entries:
        if isinstance(entry, dict):
            path = folder / entry["path"]
            name = entry.get("name", path.stem)
            yield DatasetSpec(name, str(path), "file", entry.get("target"))
            continue
        if entry == PAPER or entry in kinds:
            found = list_datasets(None if entry == PAPER else entry)
        else:
            found = [dataset_info(entry)]
        yield from (DatasetSpec(info.id, info.id, info.kind) for info in found)


def _find(what: str, known: dict[str, Method], table: Parameters) -> Method:
    """Return the method or generator of a table, whose name may be a known one."""
    name = str(table.get("method", table["name"]))
    base = Method(table["function"]) if "function" in table else known.get(name)
    if base is None:
        raise ValueError(
            f"there is no {what} {name!r}; it is one of {', '.join(known)}, or has "
            'function = "module:function".'
        )
    given = {**base.parameters, **table.get("parameters", {})}
    return Method(base.function, table.get("generator", base.generator), given)


class Group(NamedTuple):
    """The runs that share an ensemble, or the data if there is no generator.

    The function, the parameters and the seed are those of the generator; the size of
    the ensemble is the largest that a run needs. Runs are records to be completed.
    """

    dataset: DatasetSpec
    function: str | None
    parameters: Parameters
    seed: int
    methods: dict[str, Method]
    runs: tuple[Record, ...]


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
    >>> groups = plan_groups(read_study("quick"))
    >>> sorted({run["generator"] or "data" for g in groups for run in g.runs})
    ['data', 'mdec']
    """
    counts = study.repetitions
    of_each = {
        spec: counts.get(spec.name, counts.get(spec.kind, counts["default"]))
        for spec in study.datasets
    }
    return [
        group
        for repetition in range(max(of_each.values()))
        for spec, count in of_each.items()
        if repetition < count
        for group in _group_runs(study, spec, repetition)
    ]


def _group_runs(study: Study, spec: DatasetSpec, repetition: int) -> Iterator[Group]:
    """Yield the runs of one repetition on a dataset, by generator and its parameters.

    Seeds come from the names of study, dataset, repetition and generator or method.
    """
    seeds = {
        name: seed_from_names(study.name, spec.name, repetition, name)
        for name in (None, *study.generators, *study.methods)
    }
    varied = study.text.get("parameters", {})
    of_generator, of_method = (
        [dict(zip(grid, point, strict=True)) for point in product(*grid.values())]
        for grid in (varied.get("generator", {}), varied.get("method", {}))
    )
    found: dict[tuple[str | None, str], list[Record]] = {}
    for name, method in study.methods.items():
        if repetition >= study.repetitions.get(name, repetition + 1):
            continue
        generations: list[Parameters] = [{}]
        if method.generator:
            fixed = study.generators[method.generator].parameters
            generations = [{**fixed, **point} for point in of_generator]
        for generation, point in product(generations, of_method):
            record = {
                "record": "run",
                "study": study.name,
                "dataset": spec.name,
                "method": name,
                "generator": method.generator,
                "generator_parameters": generation,
                "parameters": {**method.parameters, **point},
                "repetition": repetition,
                "generator_seed": seeds[method.generator],
                "seed": seeds[name],
                "status": OK,
                "message": "",
            }
            # Ensembles of different sizes are the first members of one.
            shared = {**generation, "ensemble_size": None}
            key = method.generator, json.dumps(shared, sort_keys=True)
            found.setdefault(key, []).append(record)
    for (generator, _), runs in found.items():
        each = [run["generator_parameters"] for run in runs]
        parameters = max(each, key=lambda point: point.get("ensemble_size", 0))
        function = None if generator is None else study.generators[generator].function
        seed = seeds[generator]
        yield Group(spec, function, parameters, seed, study.methods, tuple(runs))
