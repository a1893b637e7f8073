"""Study files: read, checked and completed."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from mdec.datasets import dataset_info, list_datasets
from mdec.experiments.methods import GENERATORS, METHODS, Method
from mdec.experiments.records import Parameters, StudyText

# The name of all thirty datasets in a study.
PAPER = "paper"


@dataclass(frozen=True)
class DatasetSpec:
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
class Generator:
    """A maker of ensembles: "module:function", and the arguments of every call."""

    function: str
    parameters: Parameters


@dataclass(frozen=True)
class Limits:
    """What a study may take; see `run_study`."""

    seconds_per_run: float | None = None
    seconds_total: float | None = None
    memory_gb: float | None = None


@dataclass(frozen=True)
class Axis:
    """A varied parameter, what to call it, and a second one that splits the panels."""

    x: str
    label: str
    split: str | None = None


@dataclass(frozen=True)
class Shown:
    """What the report of a study shows.

    Scores; whether to show seconds, the paper's numbers and the diagram of ranks; and
    figures of scores against a parameter.
    """

    metrics: Sequence[str] = ("nmi_max", "ari")
    times: bool = False
    published: bool = False
    critical_difference: bool = False
    curves: Axis | None = None
    bars: Axis | None = None


def shown_in_report(text: StudyText) -> Shown:
    """Return what the report of a study shows, from the content of its file."""
    asked = dict(text.get("report", {}))
    for name in ("curves", "bars"):
        if name in asked:
            asked[name] = Axis(**asked[name])
    return Shown(**asked)


@dataclass(frozen=True)
class Study:
    """A study file, read and completed.

    Attributes
    ----------
    name, title : str
        The name is part of every seed.
    datasets : tuple of DatasetSpec
        What to cluster.
    methods : dict
        Name to `Method`, in the order of the tables.
    generators : dict
        Name to `Generator`.
    generator_grid, method_grid : dict
        Name of a parameter to the values it takes.
    repetitions : dict
        Counts: "default", and by dataset, kind of dataset or method.
    limits : Limits
        Of time and memory.
    text : dict
        The file as it was read.
    folder : str
        Folder of the study file, from which paths and modules are found.
    """

    name: str
    title: str
    datasets: tuple[DatasetSpec, ...]
    methods: dict[str, Method]
    generators: dict[str, Generator]
    generator_grid: dict[str, list[Any]]
    method_grid: dict[str, list[Any]]
    repetitions: dict[str, int]
    limits: Limits
    text: StudyText = field(repr=False)
    folder: str = ""


_FILES = resources.files("mdec.experiments.studies")


def study_names() -> list[str]:
    """Return the names of the studies that come with the package, for `read_study`.

    Returns
    -------
    list of str
        Names for `read_study`.
    """
    names = [item.name for item in _FILES.iterdir()]
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
        Checked and completed.

    Examples
    --------
    >>> read_study("quick").repetitions["default"]
    3
    """
    path = Path(source)
    if path.suffix == ".toml":
        if not path.is_file():
            raise FileNotFoundError(f"there is no study file {path}; check the path.")
        content, folder = path.read_text(encoding="utf-8"), path.resolve().parent
    elif str(source) in study_names():
        content = (_FILES / f"{source}.toml").read_text(encoding="utf-8")
        folder = Path.cwd()
    else:
        raise ValueError(
            f"there is no study {str(source)!r}; give a path that ends in .toml, or "
            f"one of {', '.join(study_names())}."
        )
    try:
        text = tomllib.loads(content)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"the study {source} is not valid TOML: {error}.") from error
    return make_study(text, folder)


_PARTS = "name title datasets methods generators parameters repetitions limits report"
_KEYS = {
    "": _PARTS.split(),
    "parameters": ["generator", "method"],
    "limits": [each.name for each in fields(Limits)],
    "report": [each.name for each in fields(Shown)],
}


_KINDS: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "datasets": (list,),
    "methods": (list,),
    "generators": (dict,),
    "parameters": (dict,),
    "repetitions": (int, dict),
    "limits": (dict,),
    "report": (dict,),
}
_CALLED = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
_CALLED |= {list: "a list", dict: "a table"}


def _require(value: Any, kinds: tuple[type, ...], where: str) -> None:
    # A bool is an int to Python, and true is no number of repetitions.
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join(_CALLED[kind] for kind in kinds)
        raise ValueError(
            f"{where} of the study must be {wanted}; it is {repr(value)[:60]}."
        )


def _check_kinds(text: StudyText) -> None:
    """Raise unless everything in a study file is of the kind that is needed there."""
    for key, kinds in _KINDS.items():
        if key in text:
            _require(text[key], kinds, key)
    for key, grid in text.get("parameters", {}).items():
        _require(grid, (dict,), f"parameters.{key}")
        for name, values in grid.items():
            _require(values, (list,), f"parameters.{key}.{name}")
    for name, table in text.get("generators", {}).items():
        _require(table, (dict,), f"generators.{name}")
        _require(table.get("function", ""), (str,), f"generators.{name}.function")
    _check_entries(text.get("datasets", []), "datasets", "path", ("name", "target"))
    named = "function", "generator", "method"
    _check_entries(text.get("methods", []), "methods", "name", named)
    for entry in text.get("methods", []):
        if isinstance(entry, dict):
            _require(entry.get("parameters", {}), (dict,), "parameters of methods")
    counts = text.get("repetitions", {})
    for name, count in counts.items() if isinstance(counts, dict) else ():
        _require(count, (int,), f"repetitions.{name}")
    for name, limit in text.get("limits", {}).items():
        _require(limit, (int, float), f"limits.{name}")
    _check_report(text.get("report", {}))


def _check_entries(
    entries: list[Any], where: str, needed: str, allowed: tuple[str, ...]
) -> None:
    for entry in entries:
        _require(entry, (str, dict), f"each of {where}")
        if isinstance(entry, dict):
            if needed not in entry:
                raise ValueError(f"a table in {where} needs {needed} = ...; add it.")
            for key in {needed, *allowed} & entry.keys():
                _require(entry[key], (str,), f"{key} of {where}")


def _check_report(report: dict[str, Any]) -> None:
    for name, value in report.items():
        if name == "metrics":
            _require(value, (list,), "report.metrics")
            for each in value:
                _require(each, (str,), "each of report.metrics")
        elif name in ("curves", "bars"):
            _require(value, (dict,), f"report.{name}")
            axis = {each.name for each in fields(Axis)}
            if not {"x", "label"} <= value.keys() <= axis:
                raise ValueError(f"report.{name} of the study needs x and label.")
            for each in value.values():
                _require(each, (str,), f"report.{name}")
        elif name in _KEYS["report"]:
            _require(value, (bool,), f"report.{name}")


def _check_keys(text: StudyText) -> None:
    for part, allowed in _KEYS.items():
        table = text.get(part, {}) if part else text
        unknown = sorted(set(table) - set(allowed))
        if unknown:
            where = f"[{part}] of a study" if part else "a study"
            raise ValueError(
                f"{where} has no {', '.join(unknown)}; it has {', '.join(allowed)}."
            )
    for key in ("name", "datasets", "methods"):
        if not text.get(key):
            raise ValueError(f"the study names no {key}; add {key} = ... to it.")


def _distinct(names: Sequence[str], what: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"the study has two {what} called {twice[0]!r}; give one another name."
        )


def make_study(text: StudyText, folder: str | os.PathLike[str] = "") -> Study:
    """Return the study that a parsed study file describes, checked and completed.

    Its paths and modules are found from `folder`.
    """
    _check_kinds(text)
    _check_keys(text)
    # A dataset may be named twice, by its id and by its kind.
    datasets = tuple(dict.fromkeys(_datasets(text["datasets"], Path(folder))))
    methods = [_method(entry) for entry in text["methods"]]
    _distinct([spec.name for spec in datasets], "datasets")
    _distinct([name for name, _ in methods], "methods")
    grid = text.get("parameters", {})
    repetitions = text.get("repetitions", 1)
    return Study(
        name=text["name"],
        title=str(text.get("title", text["name"])),
        datasets=datasets,
        methods=dict(methods),
        generators=_generators(text.get("generators", {})),
        generator_grid=dict(grid.get("generator", {})),
        method_grid=dict(grid.get("method", {})),
        repetitions=(
            {"default": repetitions}
            if isinstance(repetitions, int)
            else {"default": 1, **repetitions}
        ),
        limits=Limits(**text.get("limits", {})),
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
    """Return a part of a study; what is left keeps its seeds.

    Datasets are given by ids, names or kinds and methods by names, nothing for all;
    `repetitions` is the most of each, None for as many as the study says.
    """
    unknown = [name for name in methods if name not in study.methods]
    if unknown:
        raise ValueError(
            f"the study {study.name} has no method {unknown[0]!r}; it has "
            f"{', '.join(study.methods)}."
        )
    named = [spec.name for spec in study.datasets]
    wanted: set[str] = set()
    for entry in datasets:
        if entry in named:
            wanted.add(entry)
        else:
            found = _datasets([entry], Path(study.folder))
            wanted.update(spec.name for spec in found)
    chosen = [spec for spec in study.datasets if not datasets or spec.name in wanted]
    if not chosen:
        raise ValueError(
            f"the study {study.name} has none of {', '.join(datasets)}; it has "
            f"{', '.join(named)}."
        )
    counts = study.repetitions
    if repetitions is not None:
        counts = {name: min(repetitions, count) for name, count in counts.items()}
    return replace(
        study,
        datasets=tuple(chosen),
        methods={k: m for k, m in study.methods.items() if not methods or k in methods},
        repetitions=counts,
    )


def _datasets(entries: list[Any], folder: Path) -> Iterator[DatasetSpec]:
    kinds = {info.kind for info in list_datasets()} | {"built-in"}
    for entry in entries:
        if isinstance(entry, dict):
            path = folder / entry["path"]
            name = entry.get("name", path.stem)
            yield DatasetSpec(name, str(path), "file", entry.get("target"))
        elif entry == PAPER or entry in kinds:
            chosen = list_datasets(None if entry == PAPER else entry)
            yield from (DatasetSpec(info.id, info.id, info.kind) for info in chosen)
        else:
            info = dataset_info(entry)
            yield DatasetSpec(info.id, info.id, info.kind)


def _method(entry: Any) -> tuple[str, Method]:
    if isinstance(entry, str):
        if entry not in METHODS:
            raise ValueError(
                f"there is no method {entry!r}; it is one of {', '.join(METHODS)}, or "
                'a table with name and function = "module:function".'
            )
        return entry, METHODS[entry]
    if "function" in entry:
        base = Method(entry["function"], entry.get("generator"), {})
    elif entry.get("method", entry.get("name")) in METHODS:
        base = METHODS[entry.get("method", entry["name"])]
    else:
        raise ValueError(
            f'the method {entry.get("name")!r} needs function = "module:function".'
        )
    generator = entry.get("generator", base.generator)
    parameters = {**base.parameters, **entry.get("parameters", {})}
    return entry["name"], Method(base.function, generator, parameters)


def _generators(tables: dict[str, Parameters]) -> dict[str, Generator]:
    made = {name: Generator(function, {}) for name, function in GENERATORS.items()}
    for name, table in tables.items():
        parameters = dict(table)
        function = parameters.pop("function", GENERATORS.get(name))
        if function is None:
            raise ValueError(
                f'the generator {name!r} needs function = "module:function".'
            )
        made[name] = Generator(function, parameters)
    return made
