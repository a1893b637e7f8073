"""Run tests as other machines would: other processors, threads, users and folders.

    python benchmarks/machines.py [--setting NAME ...] [--jobs 2] [--whole] [--record]

OpenBLAS and Numba are told to write for another processor, more or fewer threads are
allowed, the home folder and the caches are read-only, the checkout lies in a folder
with spaces and umlauts, nobody is root, and there is no /proc. Settings of numbers run
the tests of numbers, and settings of the system those of files, processes and the
command line, so that all of it takes less than 15 minutes on two cores; `--whole` runs
all tests in each setting. Prints a table of settings and tests, and what failed. A
setting that cannot be made on this machine is skipped with its reason. Other versions
of Python are taken from .venv-3.12 and so on, which hold what `make test` installs.
`--record` appends the counts to benchmarks/results/machines.jsonl.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from processors import SETTINGS, THIS_MACHINE
from records import append_lines, commit_of_source

ROOT = Path(__file__).resolve().parents[1]

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")

# The tests whose numbers depend on a processor, and those that meet the system.
NUMBERS = (
    *("tests/base", "tests/consensus", "tests/numerics", "tests/prediction"),
    *("tests/selection", "tests/test_golden.py", "tests/test_reproducibility.py"),
)
SYSTEM = ("tests/_support", "tests/results", "tests/rows", "tests/cli/test_cli.py")
VERSIONS = (*SYSTEM, "tests/test_golden.py", "tests/test_reproducibility.py")
# Where nothing can be cached every process compiles anew.
FEW = ("tests/numerics/test_kmeans.py", "tests/_support/test_files.py")

# Tests start the interpreter again, which not every user may.
PROBE = """
import subprocess, sys, numba, pytest, sklearn
subprocess.run([sys.executable, "-c", ""], check=True)
"""

NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
WITHOUT_PROC = ("unshare", "--mount", "sh", "-c")
HIDE_PROC = 'mount -t tmpfs none /proc && exec "$@"'
LEFT_OUT = (".git", ".venv*", "__pycache__", "build", "dist", "_build", "generated")


@dataclass(frozen=True)
class Setting:
    """How a machine differs: environment, interpreter, folder, user."""

    name: str
    tests: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    python: str = sys.executable
    packages: str = ""
    folder: str = ""
    prefix: tuple[str, ...] = ()
    read_only: bool = False


@dataclass(frozen=True)
class Outcome:
    """How many tests passed, failed and were skipped, in what processor time.

    The text says what failed, or why the setting was skipped.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    text: str = ""


def list_settings() -> list[Setting]:
    """Return all settings, whether or not this machine can make them."""
    as_nobody = _python_of_nobody() if os.geteuid() == 0 else {}
    found = [
        Setting(name, NUMBERS, changes)
        for name, changes in SETTINGS.items()
        if name != THIS_MACHINE
    ]
    found += [
        Setting(f"{n} threads", NUMBERS, dict.fromkeys(THREADS, str(n))) for n in (1, 8)
    ]
    proc = (*WITHOUT_PROC, HIDE_PROC, "sh")
    found += [
        Setting("a path with spaces and umlauts", SYSTEM, folder="Größe, Maß und Öl"),
        Setting("an ordinary user", SYSTEM, folder="user", **as_nobody),
        Setting("read-only", FEW, folder="still", read_only=True, **as_nobody),
        Setting("without /proc", SYSTEM, prefix=proc),
    ]
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    for version in PYTHONS:
        if version != running:
            own = ROOT / f".venv-{version}" / "bin" / "python"
            python = str(own) if own.exists() else shutil.which(f"python{version}")
            found.append(Setting(f"Python {version}", VERSIONS, python=python or ""))
    return found


def _python_of_nobody() -> dict[str, Any]:
    """Return how an ordinary user starts Python, where root has one of its own."""
    own = Path(sys.executable).resolve()
    if all(parent.stat().st_mode & 0o001 for parent in own.parents):
        return {"prefix": AS_NOBODY}
    system = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    packages = sysconfig.get_path("purelib")
    return {"prefix": AS_NOBODY, "python": system, "packages": packages}


def find_obstacle(setting: Setting) -> str:
    """Return why a setting cannot be made on this machine, or nothing."""
    if not setting.python:
        return "no such interpreter"
    if setting.prefix and shutil.which(setting.prefix[0]) is None:
        return f"{setting.prefix[0]} is not installed"
    probe = [*setting.prefix, setting.python, "-c", PROBE]
    environment = {**os.environ, "PYTHONPATH": setting.packages}
    tried = subprocess.run(
        probe, env=environment, capture_output=True, text=True, check=False
    )
    if not tried.returncode:
        return ""
    # An interpreter that lacks a package says so at the end, other programs at once.
    lines = tried.stderr.strip().splitlines() or [f"ended with {tried.returncode}"]
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]


def copy_checkout(folder: Path) -> None:
    """Copy the checkout to a folder, without what is built or installed in it."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))


def change_modes(folder: Path, change: Callable[[int], int]) -> None:
    """Change the modes of a folder and of all that it holds."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(change(path.stat().st_mode & 0o777))


def run_setting(setting: Setting, place: Path, n_jobs: int, whole: bool) -> Outcome:
    """Run the tests of a setting; `place` is a folder of its own."""
    if obstacle := find_obstacle(setting):
        return Outcome(text=f"skipped: {obstacle}")
    root, home, results = ROOT, place / "home", place / "results"
    home.mkdir(parents=True)
    results.mkdir()
    if setting.folder:
        root = place / setting.folder / "mdec"
        copy_checkout(root)
    environment = {
        **os.environ,
        **setting.environment,
        "PYTHONPATH": os.pathsep.join([str(root / "src"), setting.packages]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(results),
    }
    # Reference data lie beside the checkout, and not beside a copy.
    environment.setdefault("MDEC_SHARED", str(ROOT.parent / "shared"))
    if setting.folder:
        environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
        environment.pop("NUMBA_CACHE_DIR", None)
    if setting.prefix[:1] == AS_NOBODY[:1]:
        for path in (place, *place.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    if setting.read_only:
        for folder in (root, home):
            change_modes(folder, lambda mode: mode & 0o555)
    junit = results / "junit.xml"
    # A process that cannot cache what it compiles had better be the only one.
    jobs = [] if setting.read_only or n_jobs < 2 else ["-n", str(n_jobs)]
    tests = [] if whole else [test for test in setting.tests if (root / test).exists()]
    options = ["-q", "-p", "no:cacheprovider", f"--junitxml={junit}", *jobs]
    before = _children_seconds()
    try:
        done = subprocess.run(
            [*setting.prefix, setting.python, "-m", "pytest", *options, *tests],
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        if setting.read_only:
            for folder in (root, home):
                change_modes(folder, lambda mode: mode | 0o200)
    seconds = _children_seconds() - before
    return read_outcome(junit, done.stdout + done.stderr, seconds)


def _children_seconds() -> float:
    """Return the processor seconds of all processes that have ended before."""
    used = os.times()
    return used.children_user + used.children_system


def read_outcome(junit: Path, output: str, seconds: float) -> Outcome:
    """Return the counts of a run, and what it says of failures."""
    if not junit.exists():
        return Outcome(failed=1, seconds=seconds, text=output[-2000:])
    suite = ElementTree.parse(junit).getroot().find("testsuite")
    assert suite is not None
    names = ("tests", "failures", "errors", "skipped")
    total, failures, errors, skipped = (int(suite.get(name, 0)) for name in names)
    failed = failures + errors
    lines = [
        line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))
    ]
    passed = total - failed - skipped
    return Outcome(passed, failed, skipped, seconds, "\n".join(lines))


def line_of(name: str, found: Outcome, whole: bool) -> dict[str, Any]:
    """Return the line of a setting for the record, without what failed tests said."""
    made = {"what": "tests", "commit": commit_of_source(), "setting": name}
    reason = found.text if found.text.startswith("skipped: ") else ""
    seconds = round(found.seconds, 1)
    return {**made, "whole": whole, **asdict(found), "seconds": seconds, "text": reason}


def format_table(outcomes: dict[str, Outcome]) -> str:
    """Return settings and counts as a table in Markdown."""
    rows = [
        "| setting | passed | failed | skipped | CPU seconds |",
        "|---|---|---|---|---|",
    ]
    for name, each in outcomes.items():
        if each.text.startswith("skipped: "):
            rows.append(f"| {name} | {each.text} | | | |")
        else:
            counts = f"{each.passed} | {each.failed} | {each.skipped}"
            rows.append(f"| {name} | {counts} | {each.seconds:.0f} |")
    return "\n".join(rows)


def main() -> None:
    settings = list_settings()
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--setting", nargs="+", default=[each.name for each in settings]
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    outcomes: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory(prefix="mdec-machines-") as temporary:
        Path(temporary).chmod(0o755)
        for number, setting in enumerate(settings):
            if setting.name not in options.setting:
                continue
            place = Path(temporary) / str(number)
            found = run_setting(setting, place, options.jobs, options.whole)
            outcomes[setting.name] = found
            print(f"{setting.name}: {found.passed} passed, {found.failed} failed")
            if found.failed:
                print(found.text)
            sys.stdout.flush()
            if options.record:
                append_lines("machines", [line_of(setting.name, found, options.whole)])
    print(format_table(outcomes))
    raise SystemExit(any(each.failed for each in outcomes.values()))


if __name__ == "__main__":
    main()
