"""Options of the commands, in groups: one name, one sentence, one meaning."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import Field, asdict, dataclass, field, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer
from joblib import cpu_count
from rich.console import Console, RenderableType
from rich.text import Text

from mdec._support.memory import MAX_BYTES
from mdec.base.kernels import KERNELS
from mdec.cli.output import Summary
from mdec.clustering import NumberOfClusters, check_n_clusters
from mdec.consensus import CONSENSUS
from mdec.estimator import MDEC
from mdec.results import claim_result
from mdec.results.tables import EXTRA_TABLES
from mdec.tables import Table, read_table
from mdec.tables.reading import IMPUTATIONS
from mdec.tables.roles import CATEGORIES, DATES
from mdec.tables.steps import TRANSFORMS
from mdec.weights import WEIGHTINGS


def parse_path(words: str) -> Path:
    """Return the path of what is written; an empty one would be the current folder."""
    if not words:
        raise FileNotFoundError(
            "the path of a result is empty; give a name, or . for the current folder."
        )
    return Path(words)


PATH: dict[str, Any] = {"parser": parse_path, "metavar": "PATH"}

# What help shows for a value of a type; nothing for a switch.
VALUES = {"bool": "", "str": "TEXT", "int": "N", "float": "X", "Path": "PATH"}

# Help shows the options of a group together, under these words.
READING, CLUSTERS, METHOD, OUTPUT = "Reading", "Clusters", "Method", "Output"

_TEXT = r"'(?:[^'\\]|\\.)*'" r'|"(?:[^"\\]|\\.)*"'
_PARAMETER = re.compile(
    r"\b(label_column|id_column|drop|features|header|index|transpose|variable|missing|"
    r"impute|max_bytes|overwrite|prepare|transform|n_clusters|categories|category_columns|"
    r"dates|n_top_genes)="
    rf"(?:(True|False)|\.\.\.|\[?({_TEXT}|\d+)\]?)"
)


def option(
    words: str,
    default: Any = None,
    *flags: str,
    choices: Iterable[str] = (),
    **limits: Any,
) -> Any:
    """Return a field of a group that is an option of commands.

    Choices are named after the words, and no other value is taken.
    """
    listed = ", ".join(choices)
    words = f"{words} {listed}.".lstrip() if listed else words
    known = {"words": words, "flags": flags, "choices": choices, "limits": limits}
    return field(default=default, metadata=known)


def out_option(default: str | None, words: str = "Folder of the results.") -> Any:
    """Return the field of the option that says where a result goes."""
    path = None if default is None else Path(default)
    return option(words, path, "--out", "-o", **PATH)


def with_groups(function: Callable[..., None]) -> Callable[..., None]:
    """Let a command take groups of options: dataclasses, each field an option."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {
        n: each for n, each in hints.items() if is_dataclass(each)
    }
    parameters = []
    for name, own in inspect.signature(function).parameters.items():
        if name not in groups:
            parameters.append(own.replace(annotation=hints[name]))
            continue
        types = get_type_hints(groups[name])
        for each in fields(groups[name]):
            info = _describe(each, str(types[each.name]), groups[name].PANEL)
            taken: Any = Annotated[types[each.name], info]
            more = {"name": each.name, "default": each.default, "annotation": taken}
            parameters.append(own.replace(**more))

    @wraps(function)
    def run(**given: Any) -> None:
        grouped = {name: make_group(group, given) for name, group in groups.items()}
        function(**grouped, **given)

    ordered = sorted(parameters, key=lambda each: each.default is not each.empty)
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _describe(each: Field[Any], kind: str, panel: str) -> Any:
    """Return an option that says what values its type takes, and how often."""
    known, words = each.metadata, each.metadata["words"]
    if kind == "bool | None":
        words = f"{words.rstrip('.')}; detected if absent, or auto."
    elif kind.startswith("list["):
        words = f"{words.rstrip('.')}; may be repeated."
    value = next(value for name, value in VALUES.items() if name in kind)
    more = {"metavar": value, **known["limits"]}
    return typer.Option(*known["flags"], help=words, rich_help_panel=panel, **more)


def make_group(group: type, given: dict[str, Any]) -> Any:
    """Take the options of a group out of those that are given, which it changes."""
    for each in fields(group):
        choices, value = each.metadata["choices"], given[each.name]
        if choices and value is not None and value not in choices:
            flag = f"--{each.name.replace('_', '-')}"
            raise ValueError(f"{flag} {value} is not one of {', '.join(choices)}.")
    return group(**{each.name: given.pop(each.name) for each in fields(group)})


@dataclass(frozen=True)
class FileOptions:
    """What holds for every file of samples."""

    PANEL: ClassVar[str] = READING

    id_column: str | None = option("Column of sample names.")
    variable: str | None = option(
        "Sheet of an xlsx, array of an npz or mat file; layer or embedding of an h5ad, "
        "such as counts, X_pca or raw.",
        None,
        "--variable",
        "--sheet",
    )
    max_gb: float = option("Most GB that a file may unpack to.", MAX_BYTES / 2**30)

    @property
    def max_bytes(self) -> int:
        """Bytes that a file may unpack to."""
        if not self.max_gb > 0.0:
            raise ValueError(
                f"--max-gb {self.max_gb:g} is not a limit; give a number above 0."
            )
        return int(min(self.max_gb, 2.0**32) * 2**30)

    def parameters(self, of: Callable[..., Any]) -> dict[str, Any]:
        """Return the options that are given, as parameters of a function that reads."""
        given = asdict(self) | {"max_bytes": self.max_bytes}
        names = inspect.signature(of).parameters
        return {name: given[name] for name in names if given.get(name) is not None}


@dataclass(frozen=True)
class LayoutOptions(FileOptions):
    """How a file of samples is laid out."""

    drop: list[str] | None = option("Column to leave out, a name or pattern.")
    header: bool | None = option("Whether the first row contains names.")
    index: bool | None = option("Whether the first column contains names.")


@dataclass(frozen=True)
class ReadOptions(LayoutOptions):
    """How a table is read; the parameters of `mdec.tables.read_table`."""

    transpose: bool | None = option("Whether the file has features in rows.")
    missing: list[str] | None = option("Mark of missing values, such as -999.")
    impute: str | None = option("Fill in missing values:", choices=IMPUTATIONS)

    def read(self, file: Path, **more: Any) -> Table:
        """Return the table of a file."""
        return read_table(file, **(self.parameters(read_table) | more))


@dataclass(frozen=True)
class InputOptions(ReadOptions):
    """How the tables of a clustering are read, and what is done to their values."""

    label_column: str | None = option("Column of known classes, to compare with.")
    features: list[str] | None = option("Column to cluster, a name or pattern.")
    categories: str | None = option(
        "Columns of a few words: encode makes a feature of each word, annotate sets "
        "them aside to colour the map:",
        choices=CATEGORIES,
    )
    category_columns: list[str] | None = option(
        "Column of numbers that are codes, not amounts.", None, "--category"
    )
    dates: str | None = option(
        "Columns of dates: days since 1970, or set aside to colour the map:",
        choices=DATES,
    )
    view: list[Path] | None = option(
        "Further table of the same samples, matched by name."
    )
    annotate: list[str] | None = option(
        "Column to colour samples by and not to cluster."
    )
    transform: str = option(
        "",
        "none",
        choices=TRANSFORMS,
        parser=lambda word: word.replace("standardize", "standardise"),
    )
    prepare: str = option(
        "Recognise the values; prepare expression data, and put measurements in "
        "different units on one scale:",
        "auto",
        choices=("auto", "none", "expression", "diversified"),
    )
    n_top_genes: int | None = option(
        "How many of the most variable genes to cluster; 2000 for counts and "
        "abundances if absent.",
        min=1,
    )

    def parameters(self, of: Callable[..., Any]) -> dict[str, Any]:
        """Return the options that are given; columns to colour by are dropped."""
        apart = [*(self.drop or ()), *(self.annotate or ())]
        return super().parameters(of) | ({"drop": apart} if apart else {})


@dataclass(frozen=True)
class ClusterOptions:
    """How base clusterings become one clustering."""

    PANEL: ClassVar[str] = CLUSTERS

    k: str = option("Number of clusters: 5, auto, or a range 2:12.", "auto")
    consensus: str | None = option(
        "hierarchical if absent, spectral for counts and abundances that are prepared; "
        "one of",
        choices=CONSENSUS,
    )
    weighting: str = option("Weights of clusters:", "entropy", choices=WEIGHTINGS)
    test: bool = option("Whether to test if there are groups at all.", True)
    seed: int = option("The same seed, the same result.", 0, min=0, max=2**32 - 1)

    @property
    def consensus_function(self) -> str:
        """The consensus function, where nothing of the data asks for another."""
        return self.consensus or "hierarchical"


@dataclass(frozen=True)
class WorkOptions:
    """How the work is done, which changes no result."""

    PANEL: ClassVar[str] = METHOD

    jobs: int | None = option("Processor cores to use; -1 for all of them.")

    @property
    def n_jobs(self) -> int | None:
        """The parameter of `MDEC`; more than there are cores would gain nothing."""
        if self.jobs == 0:
            raise ValueError("--jobs 0 does no work; give 1 or more, or -1 for all.")
        return None if self.jobs is None else min(self.jobs, cpu_count())


@dataclass(frozen=True)
class MethodOptions(WorkOptions):
    """How base clusterings are made; the other parameters of `MDEC`."""

    ensemble_size: int = option("Base clusterings.", 100)
    max_features: float = option("Share of the features in each base clustering.", 0.5)
    kernel: str = option(
        f"{', '.join(KERNELS)}; if several are given, joined by commas, each base "
        "clustering picks one at random.",
        "scaled_gaussian",
    )
    mu_range: str = option("Range of kernel widths.", "0.2:0.8", metavar="A:B")
    n_neighbors_range: str = option("Range of neighbours.", "5:20", metavar="A:B")
    base_n_clusters_range: str | None = option(
        "Range of clusters per base clustering, such as 2:14.", metavar="A:B"
    )
    base: str = option("Base clusterings by graph, by landmark, or auto.", "graph")
    max_samples: float = option("Share of the samples in each base clustering.", 1.0)
    min_confidence: float | None = option(
        "Samples with less confidence get cluster -1.", min=0.0, max=1.0
    )
    device: str = option("Where to compute: cpu, cuda or auto.", "cpu")

    def estimator(self, clusters: ClusterOptions) -> MDEC:
        """Return the estimator, but for what follows from the table."""
        given = asdict(self) | {"n_jobs": self.n_jobs, "random_state": clusters.seed}
        del given["jobs"]
        kinds = {"mu": float, "n_neighbors": int, "base_n_clusters": int}
        for name, kind in kinds.items():
            given[f"{name}_range"] = parse_pair(given[f"{name}_range"], name, kind)
        if "," in self.kernel:
            given["kernel"] = self.kernel.split(",")
        consensus, weighting = clusters.consensus_function, clusters.weighting
        return MDEC(consensus=consensus, weighting=weighting, **given)


@dataclass(frozen=True)
class PrintOptions:
    """What is printed of a result."""

    PANEL: ClassVar[str] = OUTPUT

    quiet: bool = option("Print errors only.", False, "--quiet", "-q")
    as_json: bool = option("Print the summary as JSON.", False, "--json")

    @property
    def silent(self) -> bool:
        """Whether nothing but the result is printed."""
        return self.quiet or self.as_json

    def tell(self, *lines: str) -> None:
        """Print lines that accompany the work."""
        for line in () if self.silent else lines:
            typer.echo(line)

    def show(
        self, summary: Summary, parts: Callable[[Summary], Iterable[RenderableType]]
    ) -> None:
        """Print a summary: nothing, JSON, or line by line its parts for people."""
        console = Console(highlight=False, markup=False, emoji=False)
        if self.as_json:
            console.out(json.dumps(summary, indent=1))
        elif not self.quiet:
            for part in parts(summary):
                # Paths and the like stay on one line, whatever their length.
                console.print(part, soft_wrap=isinstance(part, Text))


@dataclass(frozen=True)
class OutputOptions(PrintOptions):
    """Where results go, and what is printed of them."""

    out: Path = out_option("mdec-result")
    overwrite: bool = option(
        "Replace files in it that mdec did not write.", False, "--overwrite"
    )

    def claim(
        self, names: Sequence[str], read: Sequence[Path]
    ) -> AbstractContextManager[None]:
        """Reserve the folder for files of these names, of which none is read."""
        return claim_result(self.out, names, read=read, overwrite=self.overwrite)


@dataclass(frozen=True)
class FitOutputOptions(OutputOptions):
    """What is written beside, and whether an earlier run goes on."""

    write: str | None = option(f"Additional tables, such as {','.join(EXTRA_TABLES)}.")
    write_h5ad: Path | None = option(
        "Copy of an .h5ad file, with the clusters in obs and obsm.", **PATH
    )
    model: bool = option("Whether to write model.npz, for mdec predict.", True)
    resume: bool = option("Continue a run that was stopped.", False, "--resume")
    dry_run: bool = option("Print how the table is read, and stop.", False, "--dry-run")

    @property
    def extra_tables(self) -> list[str]:
        """The further tables."""
        words = [] if self.write is None else self.write.split(",")
        return [name.strip() for name in words]


# Parameters whose flags have other names.
_FLAGS = {"max_bytes": "max-gb", "n_clusters": "k", "category_columns": "category"}


def flag_of(parameter: str) -> str:
    """Return the name of the flag for a parameter of the library."""
    return _FLAGS.get(parameter, parameter.replace("_", "-"))


def suggest_command(arguments: Sequence[str], cure: Mapping[str, Any]) -> str:
    """Return a command line that adds parameters of the library as flags.

    Examples
    --------
    >>> suggest_command(["fit", "a b.csv"], {"drop": ["x", "y"], "header": True})
    "mdec fit 'a b.csv' --drop x --drop y --header"
    """
    words = ["mdec", *arguments]
    for name, value in cure.items():
        for each in value if isinstance(value, list) else [value]:
            switch = isinstance(each, bool)
            flag = ("--" if each or not switch else "--no-") + flag_of(name)
            words += [flag] if switch else [flag, each]
    return shlex.join(words)


def command_line() -> str:
    """Return the command that runs."""
    return shlex.join(["mdec", *sys.argv[1:]])


def name_flags(words: str) -> str:
    """Return words of the library, with flags for its parameters.

    Examples
    --------
    >>> name_flags("leave it out with drop=['a b'], or say transpose=True.")
    "leave it out with --drop 'a b', or say --transpose."
    """

    def flag(match: re.Match[str]) -> str:
        name, switch, value = match.groups()
        prefix = "--no-" if switch == "False" else "--"
        return f"{prefix}{flag_of(name)}" + (f" {value}" if value else "")

    words = _PARAMETER.sub(flag, words)
    return words.replace("with mdec.consensus.from_matrix", "with --matrix and --k")


def parse_k(k: str, n_samples: int) -> NumberOfClusters:
    """Return the number of clusters, "auto", or the ends of a range.

    Examples
    --------
    >>> parse_k("5", 100), parse_k("2:4", 100), parse_k("auto", 100)
    (5, (2, 4), 'auto')
    """
    if k == "auto":
        return k
    found = re.fullmatch(r"([1-9]\d*)(?::(\d+))?", k, re.ASCII)
    if found is None:
        raise ValueError(f"--k {k} is not understood; give 5, auto or 2:12.")
    low, high = found.groups()
    number = int(low) if high is None else (max(int(low), 2), int(high))
    check_n_clusters(number, n_samples)
    return number


def parse_pair(words: str | None, name: str, kind: type) -> tuple[Any, Any] | None:
    """Return the two ends of an option such as 0.2:0.8, None if it is not given.

    Examples
    --------
    >>> parse_pair("5:20", "n_neighbors", int)
    (5, 20)
    """
    if words is None:
        return None
    try:
        low, high = (kind(word) for word in words.split(":"))
    except ValueError as error:
        raise ValueError(
            f"--{name.replace('_', '-')}-range {words} is not understood; give two "
            "numbers such as 5:20."
        ) from error
    return low, high
