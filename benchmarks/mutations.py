"""Change the science in small ways and count the changes that the tests notice.

    python benchmarks/mutations.py [--sample 200] [--seed 0] [--jobs 2]
                                   [--module PATTERN ...] [--line PATTERN] [--again]
    python benchmarks/mutations.py --trace [TESTS ...]
    python benchmarks/mutations.py --summary [--record]

A mutation is one small change of the source: a comparison turned, a sign or a sum
swapped, a number off by one, a statement left out. A seeded sample, the same number
from each module, is tried one by one on a copy of the checkout, never on the checkout
itself, against the tests that call its function, first the quickest, then a minute
of those that call few others, and those of the test file of the module's name. Which
they are ``--trace`` finds, by running the suite once, or tests that are new since then.
Where none is seen to call it, as in compiled code, these are asked: tests nearest to
the module, those of its folder and of the whole fit, and those of all that import it.
A mutation that no test notices has survived.

Each run appends a line of JSON for each mutation to benchmarks/results/mutations.jsonl,
with the commit that it was made from, and the last line on a mutation counts. A
mutation is known by its text: it stays on record while its line and the name of its
function stay, also in another file. What was killed is not tried again, survivors are;
``--again`` tries all. Those in mutations-equivalent.toml change nothing that anyone
could see, for the reason given there, and are not drawn.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import fnmatch
import hashlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from calls import Calls, Tracer
from records import append_lines, commit_of_source, read_lines

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = ROOT / "benchmarks" / "mutations-equivalent.toml"
COPIES = ROOT / "build" / "mutations"
SOURCE = "src/mdec/"

# A fit from end to end, for whatever the tests of a module did not notice.
WHOLE = "test_reproducibility.py::test_digits_labels_stay"

# Modules, the tests nearest to them, and those that are asked next, all below tests/.
# The test file of a module's own name is always among the nearest; the first row that
# fits a module holds, so that a module that moves is still met by its folder's row.
MAP: list[tuple[str, str, str]] = [
    ("_support/arrays.py", "base/test_kernels.py", "engines/test_gpu.py"),
    ("_support/files.py", "_support/test_folders.py", ""),
    ("_support/optional.py", "", ""),
    ("_support/progress.py", "", "rows/test_blocks.py"),
    ("_support/random.py", "", "test_generation.py"),
    ("_support/*", "", "test_generation.py"),
    ("app/explore.py", "app/test_explore.py app/test_folder.py", ""),
    ("app/server.py", "app/test_guard.py app/test_folder.py app/test_explore.py", ""),
    ("app/*", "", "app/test_folder.py"),
    ("base/copies.py", "", ""),
    ("base/landmarks.py", "", ""),
    (
        "base/members.py",
        "base/test_spectral.py test_generation.py",
        "base/test_sparse.py base/test_mixes.py",
    ),
    ("base/kernels.py", "", "base/test_graphs.py"),
    ("base/*", "", ""),
    (
        "bench/baselines/_generation.py",
        "bench/baselines/test_generation.py bench/baselines/test_new_rows.py",
        "",
    ),
    (
        "bench/baselines/_options.py",
        "bench/baselines/test_estimators.py",
        "bench/baselines/test_partitioning.py",
    ),
    (
        "bench/baselines/_estimators.py",
        "bench/baselines/test_estimators.py",
        "bench/baselines/test_new_rows.py",
    ),
    (
        "bench/baselines/_graphs.py",
        "bench/baselines/test_local_weights.py",
        "bench/baselines/test_trajectories.py",
    ),
    (
        "bench/baselines/_label_kmeans.py",
        "bench/baselines/test_label_kmeans.py",
        "bench/baselines/test_objectives.py",
    ),
    ("bench/baselines/_partitioning.py", "bench/baselines/test_partitioning.py", ""),
    ("bench/baselines/_spce.py", "bench/baselines/test_spce.py", ""),
    ("bench/datasets.py", "", ""),
    ("bench/evaluation.py", "bench/test_studies.py bench/test_summary.py", ""),
    ("bench/summary.py", "", "bench/test_studies.py"),
    ("bench/*", "bench/test_studies.py", ""),
    ("cli/consensus.py", "cli/test_matrix.py cli/test_user_files.py", ""),
    ("cli/fit.py", "cli/test_cli.py cli/test_views.py cli/test_prepare.py", ""),
    ("cli/options.py", "cli/test_usage.py cli/test_cli.py", ""),
    ("cli/*", "cli/test_usage.py cli/test_cli.py", ""),
    ("consensus/*", "consensus/test_consensus.py", "consensus/test_memory.py"),
    ("engines/tensors/*", "engines/test_gpu.py", ""),
    ("engines/*", "", "test_generation.py"),
    ("ensemble/draws.py", "test_generation.py", "ensemble/test_drawn_samples.py"),
    ("ensemble/numbering.py", "ensemble test_generation.py", "base/test_mixes.py"),
    ("ensemble/plan.py", "test_generation.py", "base/test_mixes.py"),
    ("ensemble/__init__.py", "engines/test_dask.py", "ensemble/test_ensemble.py"),
    ("ensemble/*", "ensemble/test_ensemble.py", "ensemble/test_views.py"),
    ("estimator/base.py", "estimator/test_estimator.py", "estimator/test_new_rows.py"),
    ("estimator/*", "estimator/test_estimator.py", "estimator/test_persistence.py"),
    ("numerics/affinity.py", "base/test_spectral.py", "consensus/test_consensus.py"),
    ("numerics/digits.py", "test_generation.py", "consensus/test_consensus.py"),
    ("numerics/eigen.py", "base/test_spectral.py", "consensus/test_consensus.py"),
    ("numerics/landmark_search.py", "base/test_landmarks.py", "base/test_scales.py"),
    ("numerics/magnitude.py", "base/test_scales.py", "numerics/test_nearest.py"),
    ("numerics/nearest.py", "", "base/test_custom.py"),
    (
        "numerics/neighbors.py",
        "numerics/test_nearest.py base/test_graphs.py",
        "base/test_scales.py",
    ),
    ("numerics/novelty.py", "estimator/test_new_rows.py", ""),
    ("numerics/sparse_rows.py", "base/test_sparse.py", "numerics/test_nearest.py"),
    ("numerics/transfer.py", "consensus/test_consensus.py", "base/test_landmarks.py"),
    ("numerics/loops/csr.py", "base/test_spectral.py", "base/test_graphs.py"),
    ("numerics/loops/dense.py", "base/test_graphs.py", "numerics/test_neighbors.py"),
    ("numerics/loops/landmarks.py", "base/test_landmarks.py", "base/test_scales.py"),
    (
        "numerics/loops/linkage.py",
        "numerics/test_linkage.py",
        "consensus/test_consensus.py",
    ),
    (
        "numerics/loops/selection.py",
        "numerics/test_neighbors.py base/test_graphs.py",
        "",
    ),
    ("numerics/loops/vectors.py", "numerics/test_vectors.py base/test_spectral.py", ""),
    ("numerics/loops/*", "numerics/test_kmeans.py", "consensus/test_consensus.py"),
    ("numerics/*", "numerics", "consensus/test_consensus.py"),
    ("prediction/*", "prediction/test_prediction.py", "prediction/test_memory.py"),
    (
        "preparation/kinds.py",
        "preparation/test_units.py preparation/test_preparation.py",
        "cli/test_prepare.py",
    ),
    ("preparation/units.py", "preparation/test_units.py", "cli/test_prepare.py"),
    (
        "preparation/*",
        "preparation/test_preparation.py",
        "preparation/test_diversified.py",
    ),
    ("report/solutions.py", "report/test_solutions.py", "report/test_report.py"),
    ("report/*", "report/test_report.py report/test_solutions.py", ""),
    (
        "results/*",
        "results cli/test_results.py",
        "cli/test_matrix.py cli/test_user_files.py",
    ),
    ("rows/*", "rows", ""),
    ("selection/*", "selection", ""),
    ("tables/budget.py", "tables/test_budget.py", ""),
    (
        "tables/clusterings.py",
        "cli/test_matrix.py cli/test_compare.py",
        "tables/test_edges.py",
    ),
    (
        "tables/columns.py",
        "tables/test_reading.py tables/test_roles.py",
        "tables/test_corpus.py",
    ),
    (
        "tables/hdf5.py",
        "tables/test_budget.py tables/test_reading.py",
        "tables/test_edges.py",
    ),
    ("tables/orientation.py", "tables/test_orientation.py", "tables/test_corpus.py"),
    ("tables/roles.py", "tables/test_roles.py", "tables/test_corpus.py"),
    (
        "tables/steps.py",
        "cli/test_prepare.py cli/test_predict.py",
        "tables/test_roles.py",
    ),
    (
        "tables/*",
        "tables/test_reading.py tables/test_edges.py",
        "tables/test_corpus.py",
    ),
    ("clustering.py", "", "estimator/test_estimator.py"),
    ("coassociation.py", "", "consensus/test_consensus.py"),
    ("confidence.py", "confidence", "prediction/test_prediction.py"),
    ("generation.py", "", "base/test_mixes.py"),
    ("weights.py", "", "test_coassociation.py"),
]
# Pages, pictures and words, and what needs a package or a GPU that may not be there.
NOT_DRAWN = (
    *("numerics/loops/jit.py", "app/jobs.py"),
    "engines/tensors/fused.py",
    *("bench/pages.py", "bench/figures.py", "bench/commands.py", "cli/demo.py"),
    *("report/layout.py", "report/page.py", "report/plots.py"),
    "anndata.py",
)

# How much memory to ask for is an estimate, and tested as one.
ESTIMATES = re.compile(r"(.*_memory|.*_bytes|_enough|budget\.take|tensors\.fits)")

# Arguments that guard, or say how and not what.
PLUMBING = ("strict", "encoding", "copy", "check_finite", "overwrite_a", "exist_ok")

# They compare seconds, which says nothing about a mutation on a busy machine.
TIMED = [
    "tests/selection/test_selection.py::test_scanning_k_is_fast",
    "tests/package/test_public_api.py",
]

# Seconds of the processor, and by the clock, for the tests of one mutation; seconds of
# those that call its function, first and at last.
CPU_LIMIT, CLOCK_LIMIT, CALLING_LIMITS = 100, 900, (5, 60)
MEMORY_LIMIT = 12 * 2**30

# Exit code of a child that ran no tests, or those of another checkout.
_BROKEN = 99

# That of pytest for a module without doctests.
_NO_TESTS = 5


@dataclass(frozen=True)
class Mutation:
    """A change of one place in one file."""

    file: str
    line: int
    operator: str
    before: str
    after: str
    # Where it stands, in words that outlive changes of other lines.
    context: str
    start: int
    end: int

    @property
    def key(self) -> str:
        """Return a digest of its text, which a move to another file leaves alone."""
        parts = self.operator, self.context, self.before, self.after
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
}
PAIRS = ("min", "max"), ("argmin", "argmax"), ("minimum", "maximum"), ("any", "all")
PAIRS += ("sum", "mean"), ("ceil", "floor"), ("zeros", "ones")
SWAPS = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])}


def replaced(node: Any, **changes: Any) -> Any:
    fields = {name: getattr(node, name, None) for name in node._fields}
    return type(node)(**{**fields, **changes})


def changed_expressions(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names and results of the operators that apply to an expression."""
    match node:
        case ast.Compare(ops=[op, *rest]) if type(op) in COMPARISONS:
            yield "comparison", replaced(node, ops=[COMPARISONS[type(op)](), *rest])
        case ast.BinOp(op=op) if type(op) in ARITHMETIC:
            yield "arithmetic", replaced(node, op=ARITHMETIC[type(op)]())
        case ast.BoolOp(op=op):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and/or", replaced(node, op=other)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield "dropped sign or not", operand
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield "constant", ast.Constant(2.0 * value if value else 1.0)
        case ast.IfExp(body=body, orelse=orelse):
            yield "branch", replaced(node, body=orelse, orelse=body)
        case ast.Call(func=func):
            yield from changed_calls(node, func)


def changed_calls(node: ast.Call, func: ast.expr) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(func, ast.Name) and func.id in SWAPS:
        yield "function", replaced(node, func=ast.Name(SWAPS[func.id]))
    if isinstance(func, ast.Attribute) and func.attr in SWAPS:
        other = replaced(func, attr=SWAPS[func.attr])
        yield "function", replaced(node, func=other)
    for i, keyword in enumerate(node.keywords):
        match keyword:
            case ast.keyword(arg="axis", value=ast.Constant(value=0 | 1 as axis)):
                other = ast.keyword("axis", ast.Constant(1 - axis))
                changed = [*node.keywords[:i], other, *node.keywords[i + 1 :]]
                yield "axis", replaced(node, keywords=changed)
            case ast.keyword(arg=str(name), value=ast.Constant(value=str() | bool())):
                if name in PLUMBING:
                    continue
                fewer = [*node.keywords[:i], *node.keywords[i + 1 :]]
                yield "keyword dropped", replaced(node, keywords=fewer)


def changed_statements(node: ast.AST, first: str | None) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield "statement dropped", "pass"
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield "statement dropped", "pass"
        case ast.Return(value=ast.Call()) if first is not None:
            yield "first argument returned", f"return {first}"
        case ast.Break():
            yield "statement dropped", "pass"
        case ast.Continue():
            yield "statement dropped", "pass"


def mutations(path: Path, root: Path = ROOT) -> list[Mutation]:
    """Return all mutations of a file, in the order of its text."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    found: list[Mutation] = []

    def note(node: Any, operator: str, after: str, scope: str) -> None:
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = text.encode()[start:end].decode()
        context = f"{scope}: {lines[node.lineno - 1].strip()}"
        name = path.relative_to(root).as_posix()
        found.append(
            Mutation(name, node.lineno, operator, before, after, context, start, end)
        )

    def walk(node: ast.AST, scope: str, first: str | None) -> None:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
            return  # the words of messages are not science
        if isinstance(node, ast.FunctionDef) and ESTIMATES.fullmatch(node.name):
            return
        if isinstance(node, ast.keyword) and node.arg in PLUMBING:
            return
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "n_bytes":
            return
        if scope == "" and isinstance(node, ast.Assign | ast.AnnAssign):
            return  # settings, such as the sizes of blocks
        if isinstance(node, ast.ClassDef):
            for each in node.body:
                walk(each, f"{scope}.{node.name}", first)
            return
        if isinstance(node, ast.FunctionDef):
            names = [a.arg for a in node.args.args if a.arg not in ("self", "cls")]
            scope, first = f"{scope}.{node.name}", (names or [None])[0]
            for each in [*node.body, *node.args.defaults, *node.args.kw_defaults]:
                if each is not None:
                    walk(each, scope, first)
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                walk(node.value, scope, first)
            return
        for operator, after in changed_statements(node, first):
            note(node, operator, after, scope)
        if isinstance(node, ast.Call) and ESTIMATES.fullmatch(ast.unparse(node.func)):
            return
        for operator, changed in changed_expressions(node):
            # Brackets, because the surroundings may bind more tightly.
            note(node, operator, f"({ast.unparse(changed)})", scope)
        for child in ast.iter_child_nodes(node):
            walk(child, scope, first)

    for each in ast.parse(text).body:
        walk(each, "", None)
    unique = {each.key: each for each in found}
    return list(unique.values())


def modules() -> list[Path]:
    """Return the files of the modules that are changed."""
    names = {
        path.relative_to(ROOT / SOURCE).as_posix(): path
        for path in sorted((ROOT / SOURCE).rglob("*.py"))
    }
    patterns = [row[0] for row in MAP]
    return [
        path
        for name, path in names.items()
        if name not in NOT_DRAWN
        and any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
    ]


def tests_of(file: str) -> tuple[list[str], list[str]]:
    """Return the tests nearest to a module, its examples last, and those asked next."""
    name = PurePosixPath(file.removeprefix(SOURCE))
    words = next(row[1:] for row in MAP if fnmatch.fnmatch(str(name), row[0]))
    near, more = ([f"tests/{word}" for word in part.split()] for part in words)
    near.insert(0, f"tests/{name.with_name(f'test_{name.stem}.py')}")
    found = [each for each in dict.fromkeys(near) if (ROOT / each).exists()]
    found = found or [f"tests/{name.parent}"]
    more = [e for e in more if (ROOT / e).exists() and e not in found]
    # Asked for first, a module of a package would be loaded twice.
    return [*found, file], [*more, f"tests/{WHOLE}"]


def visible(found: list[Mutation]) -> list[Mutation]:
    """Leave out the mutations that are known to change nothing, wherever they stand."""
    reasons = tomllib.loads(EQUIVALENT.read_text())["equivalent"]
    same = {(each["line"], each["before"], each["after"]) for each in reasons}
    return [e for e in found if (e.context, e.before, e.after) not in same]


def drawn(paths: list[Path], size: int, seed: int, line: str = "") -> list[Mutation]:
    """Draw mutations in turn from each module; a larger sample holds a smaller one.

    With a pattern, only those of lines that have it.
    """
    queues = []
    for path in paths:
        own = mutations(path)
        random.Random(f"{seed} {path.relative_to(ROOT)}").shuffle(own)
        queues.append([each for each in visible(own) if re.search(line, each.context)])
    sample: list[Mutation] = []
    for turn in range(max(map(len, queues), default=0)):
        sample += [queue[turn] for queue in queues if turn < len(queue)]
    return sample[:size]


class Copy:
    """A checkout of our own, with the caches of compiled code that belong to it.

    Code is compiled anew where the source has changed since the folder was last used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder / "checkout", folder / "numba"
        shutil.rmtree(folder / "numba-mutated", ignore_errors=True)
        # Tests that are known to pass on the unchanged source.
        self.passed = set[str]()
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()
        for name in listed:
            if (ROOT / name).is_file() and not name.startswith("docs/results"):
                target = self.folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                content = (ROOT / name).read_bytes()
                if target.exists() and target.read_bytes() == content:
                    continue
                shutil.copy2(ROOT / name, target)
                if name.startswith(SOURCE) and b"@jit(" in content:
                    shutil.rmtree(self.cache, ignore_errors=True)
        known = {self.folder / name for name in listed}
        for path in (*self.folder.glob("tests/**/*.py"), *self.folder.glob("src/**/*")):
            if path.suffix == ".py" and path not in known:
                path.unlink()

    @contextlib.contextmanager
    def mutated(self, mutation: Mutation) -> Iterator[Path]:
        """Write a mutation, and give the folder of compiled code that still holds."""
        path = self.folder / mutation.file
        content, times = path.read_bytes(), path.stat()
        changed = content[: mutation.start] + mutation.after.encode()
        path.write_bytes(changed + content[mutation.end :])
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            stale.unlink()
        # Compiled loops of the unchanged source are of no use if any of them changes.
        cache = self.cache
        if path.parent.name == "loops":
            cache = self.cache.with_name("numba-mutated")
        try:
            yield cache
        finally:
            path.write_bytes(content)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            if cache != self.cache:
                shutil.rmtree(cache, ignore_errors=True)

    def trace(self, tests: list[str]) -> None:
        """Run tests, all if none are named, and note which functions each calls."""
        child = os.fork()
        if child == 0:
            tracer = Tracer(self.folder)
            self._test(tests or ["tests", "src"], self.cache, ["--tb=no"], [tracer])
            tracer.write()
            os._exit(0)
        os.waitpid(child, 0)

    def run(
        self, tests: list[str], cache: Path, *, keep_bytecode: bool
    ) -> tuple[str, str]:
        """Run tests in a child of this process, which has loaded the slow packages."""
        log = self.folder.parent / "log"
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            code = _BROKEN
            try:
                code = self._child(tests, cache, log, keep_bytecode=keep_bytecode)
            except BaseException:  # noqa: BLE001 - a forked child must not return
                log.write_text(traceback.format_exc())
            os._exit(code)
        end = time.monotonic() + CLOCK_LIMIT
        done = 0
        while not done and time.monotonic() < end:
            done, status, _ = os.wait4(child, os.WNOHANG)
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if not done:
            os.waitpid(child, 0)
            return "timeout", ""
        text = log.read_text(errors="replace")
        code = os.waitstatus_to_exitcode(status)
        if code == _BROKEN:
            raise RuntimeError(f"the tests could not be run\n{text}")
        if code in (0, _NO_TESTS):
            return "survived", ""
        if code == -signal.SIGXCPU:
            return "timeout", ""
        if code < 0:
            return "crash", ""
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", text, re.MULTILINE)
        if failed is None:
            raise RuntimeError(f"the tests ended with {code}\n{text}")
        return "killed", failed[1]

    def _child(
        self, tests: list[str], cache: Path, log: Path, *, keep_bytecode: bool
    ) -> int:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.dont_write_bytecode = not keep_bytecode
        if not keep_bytecode:
            os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT + 10))
        code = self._test(tests, cache, ["-x", "--tb=line"], [])
        sys.stdout.flush()
        found = getattr(sys.modules.get("mdec"), "__file__", None)
        if found is not None and not Path(found).is_relative_to(self.folder):
            return _BROKEN
        return code

    def _test(
        self, tests: list[str], cache: Path, options: list[str], plugins: list[Any]
    ) -> int:
        import numba
        import pytest

        os.chdir(self.folder)
        numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = str(cache)
        os.environ["PYTHONPATH"] = str(self.folder / "src")
        # Workers of process pools look for the tests where `python -m pytest` does.
        sys.path[:0] = [str(self.folder / "src"), str(self.folder)]
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
        options = [*options, "-q", "--no-header", "-p", "no:cacheprovider"]
        options += ["-p", "no:xdist", "--hypothesis-seed=0"]
        # Hypothesis is loaded already.
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        options += [f"--deselect={each}" for each in TIMED]
        return int(pytest.main([*options, *tests], plugins))


def load_slow_packages() -> None:
    """Import what all tests need and no mutation changes."""
    for name in [
        "hypothesis.extra.numpy",
        "pandas",
        "pyarrow.parquet",
        "h5py",
        "numba",
        "scipy.sparse.csgraph",
        "scipy.io",
        "scipy.cluster.hierarchy",
        "scipy.stats",
        "sklearn.cluster",
        "sklearn.datasets",
        "sklearn.metrics",
        "sklearn.neighbors",
        "joblib",
        "typer",
        "rich",
        "jinja2",
        "dask.array",
        "_pytest.doctest",
    ]:
        with contextlib.suppress(ImportError):
            __import__(name)
    if any(name.split(".")[0] == "mdec" for name in sys.modules):
        raise RuntimeError("mdec must not be loaded before it is changed")


def show(copy: Copy, mutation: Mutation, tests: list[str]) -> tuple[str, str]:
    """Return what a mutation comes to under tests, and the one that noticed it.

    Whatever notices it has to pass on the unchanged source.
    """
    with copy.mutated(mutation) as cache:
        outcome, which = copy.run(tests, cache, keep_bytecode=False)
    noticed = [which] if outcome == "killed" else tests
    if outcome != "survived" and not copy.passed.issuperset(noticed):
        again, _ = copy.run(noticed, copy.cache, keep_bytecode=True)
        if again != "survived":
            log = (copy.folder.parent / "log").read_text(errors="replace")
            raise RuntimeError(f"{noticed}, {again} on the unchanged source\n{log}")
        copy.passed.update(noticed)
    return outcome, which


def tried(copy: Copy, mutation: Mutation, commit: str, calls: Calls) -> dict[str, Any]:
    """Show a mutation to the tests; return its line of the record."""
    start = time.perf_counter()
    place = mutation.file, mutation.context.partition(":")[0]
    quick = calls.of(*place, CALLING_LIMITS[0])
    narrow = calls.of(*place, CALLING_LIMITS[1], narrow=True)
    stages = [quick, [each for each in narrow if each not in quick]]
    near, more = tests_of(mutation.file)
    if not calls.knows(*place):
        stages[1:1] = near, more
    elif PurePosixPath(near[0]).stem == f"test_{PurePosixPath(mutation.file).stem}":
        # It may call the function in other processes.
        stages.append(near[:1])
    for tests in filter(None, stages):
        outcome, which = show(copy, mutation, tests)
        if outcome != "survived":
            break
    row = {k: v for k, v in asdict(mutation).items() if k not in ("start", "end")}
    result = {"outcome": outcome, "by": which, "commit": commit}
    seconds = round(time.perf_counter() - start, 1)
    return {"key": mutation.key, **row, **result, "seconds": seconds}


def work(todo: list[Mutation], commit: str, folder: Path) -> int:
    """Try mutations one after the other, in a checkout of this process."""
    failed, calls, copy = 0, Calls(), Copy(folder)
    for mutation in todo:
        place = f"{mutation.file}:{mutation.line}"
        try:
            row = tried(copy, mutation, commit, calls)
        except Exception:  # noqa: BLE001 - the others can still be tried
            traceback.print_exc()
            print("not tried", place, flush=True)
            failed = 1
            continue
        append_lines("mutations", [row])
        change = row["before"], "->", row["after"]
        print(row["outcome"], row["seconds"], place, *change, flush=True)
    return failed


def find_rows(
    found: list[Mutation], record: list[dict[str, Any]]
) -> dict[Mutation, dict[str, Any]]:
    """Return the last line on each of all mutations that is on record.

    The line on a text that has moved to another file is found by the text, where it is
    the only one of its kind.
    """
    newest = {(row["key"], row["file"]): row for row in record}
    present = {(each.key, each.file) for each in found}
    moved: dict[str, list[dict[str, Any]]] = {}
    for (key, file), row in newest.items():
        if (key, file) not in present:
            moved.setdefault(key, []).append(row)
    places = Counter(key for key, _ in present)
    rows: dict[Mutation, dict[str, Any]] = {}
    for each in found:
        if (each.key, each.file) in newest:
            rows[each] = newest[each.key, each.file]
        elif places[each.key] == 1 and len(moved.get(each.key, ())) == 1:
            rows[each] = moved[each.key][0]
    return rows


def summarise(
    paths: list[Path], rows: dict[Mutation, dict[str, Any]]
) -> dict[str, int]:
    """Print how many mutations of each module were tried and killed; return sums."""
    total = [0, 0]
    living: list[Mutation] = []
    # What only gathers the names of others has nothing to change.
    changed = {path: own for path in paths if (own := visible(mutations(path)))}
    for path, own in changed.items():
        on_record = [each for each in own if each in rows]
        alive = [each for each in on_record if rows[each]["outcome"] == "survived"]
        living += alive
        dead, tries = len(on_record) - len(alive), len(on_record)
        name = path.relative_to(ROOT / SOURCE)
        print(f"{dead:4d} of {tries:3d} killed, of {len(own):4d}  {name}")
        total = [total[0] + dead, total[1] + tries]
    commits = Counter(row["commit"] for row in rows.values())
    print("made from", ", ".join(f"{name} ({n})" for name, n in commits.items()))
    n_tried = sum(any(each in rows for each in own) for own in changed.values())
    print(f"{n_tried} of {len(changed)} modules have mutations on record")
    share = 100 * total[0] / max(total[1], 1)
    print(f"{total[0]} of {total[1]} killed ({share:.1f} %)")
    for each in living:
        print(f"survived {each.file}:{each.line} {each.operator}")
        print(f"    {each.context}\n    {each.before}  ->  {each.after}")
    modules = {"modules": len(changed), "modules_tried": n_tried}
    return {"killed": total[0], "tried": total[1], **modules}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--module", nargs="+", default=["*"])
    parser.add_argument("--line", default="", help="a pattern of lines to change")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--trace", nargs="*")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--record", action="store_true", help="append the sums")
    options = parser.parse_args()
    paths = [
        path
        for path in modules()
        if any(
            fnmatch.fnmatch(str(path.relative_to(ROOT)), f"*{each}*")
            for each in options.module
        )
    ]
    every = [mutation for path in modules() for mutation in mutations(path)]
    known = find_rows(every, read_lines("mutations"))
    if options.summary:
        found = summarise(paths, known)
        if options.record:
            append_lines("mutation-counts", [found | {"commit": commit_of_source()}])
        return
    # A cap from outside would hide that of the package.
    os.environ.pop("OMP_NUM_THREADS", None)
    if options.trace is not None:
        Copy(COPIES / "0").trace(options.trace)
        return
    sample = drawn(paths, options.sample, options.seed, options.line)
    todo = [each for each in sample if options.again or each not in known]
    # What has survived is tried again, also what another sample held.
    files = {path.relative_to(ROOT).as_posix() for path in paths}
    todo += [
        each
        for each in visible([each for each in known if each.file in files])
        if known[each]["outcome"] == "survived" and each not in todo
    ]
    print(f"{len(sample)} mutations of {len(paths)} modules, {len(todo)} to try")
    load_slow_packages()
    commit = commit_of_source()
    children = []
    for job in range(options.jobs):
        child = os.fork()
        if child == 0:
            os._exit(work(todo[job :: options.jobs], commit, COPIES / str(job)))
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in children]
    summarise(paths, find_rows(every, read_lines("mutations")))
    if any(codes):
        raise SystemExit("some mutations could not be tried; see above")


if __name__ == "__main__":
    main()
