"""Which functions each test calls, as found by running all tests once."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "src/mdec/"

CALLS = ROOT / "build" / "calls.json"


class Tracer:
    """A plugin of pytest that notes the functions of a source folder that tests call.

    What is called to set a test up may be set up once for all tests of its file, and
    counts for each of them. Tests that fail or skip are left out.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tests: dict[str, dict[str, Any]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._watch(item.nodeid.partition("::")[0]))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._watch(item.nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.tests.pop(report.nodeid, None)

    def _watch(self, name: str) -> Generator[None, Any, Any]:
        noted = self.tests.setdefault(name, {"seconds": 0.0, "calls": set()})
        prefix, seen = str(self.root / SOURCE), noted["calls"]

        def note(frame: Any, *_: object) -> None:
            code = frame.f_code
            if code.co_filename.startswith(prefix):
                seen.add((code.co_filename, code.co_qualname))

        start = time.process_time()
        sys.settrace(note)
        threading.settrace(note)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            noted["seconds"] += time.process_time() - start

    def write(self) -> None:
        """Write what these tests call, beside what others did in an earlier run."""
        for noted in self.tests.values():
            noted["seconds"] = round(noted["seconds"], 3)
            noted["calls"] = sorted(
                f"{Path(file).relative_to(self.root).as_posix()} {_scope(name)}"
                for file, name in noted["calls"]
            )
        CALLS.parent.mkdir(exist_ok=True)
        found = _read()
        for name, noted in self.tests.items():
            if "::" not in name and name in found:
                noted["calls"] = sorted({*noted["calls"], *found[name]["calls"]})
            found[name] = noted
        CALLS.write_text(json.dumps(found, indent=1))


def _read() -> dict[str, Any]:
    return json.loads(CALLS.read_text()) if CALLS.exists() else {}


def _scope(qualified: str) -> str:
    return "." + qualified.replace(".<locals>", "")


class Calls:
    """The tests that call a function, the quickest first."""

    def __init__(self) -> None:
        tests = _read()
        files = {name: row for name, row in tests.items() if "::" not in name}
        functions: dict[str, list[dict[str, Any]]] = {}
        for name, row in tests.items():
            if name not in files:
                # Parameters may have other names by now.
                functions.setdefault(name.partition("[")[0], []).append(row)
        for name, rows in functions.items():
            # What sets the file of a test up stands under the name of the file.
            if (file := name.partition("::")[0]) in files:
                rows.append(files[file])
        self.tests = sorted(
            (
                sum(row["seconds"] for row in rows),
                name,
                {each for row in rows for each in row["calls"]},
            )
            for name, rows in functions.items()
        )
        self.called = set[str]().union(*(calls for *_, calls in self.tests))

    def knows(self, file: str, scope: str) -> bool:
        """Tell whether any test is seen to call a function."""
        return f"{file} {scope}" in self.called

    def of(
        self, file: str, scope: str, seconds: float, *, narrow: bool = False
    ) -> list[str]:
        """Return tests that call a function, until they take so many seconds.

        The quickest come first, or those that call the fewest functions. A compiled
        function is not seen, nor what a module does when it is loaded: then all tests
        that call any function of the modules that import from it.
        """
        functions = {f"{file} {scope}"}
        if not self.knows(file, scope):
            files = importers(file)
            functions = {each for each in self.called if each.split()[0] in files}
        found: list[str] = []
        order = sorted(self.tests, key=lambda test: len(test[2]) if narrow else test[0])
        for needed, name, calls in order:
            if (ROOT / name.partition("::")[0]).exists() and functions & calls:
                seconds -= needed
                if seconds < 0.0:
                    break
                found.append(name)
        return found


def importers(file: str) -> set[str]:
    """Return a file, and those that import from it, through compiled ones too."""
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for path in (ROOT / SOURCE).rglob("*.py")
    }
    found, todo = {file}, [file]
    while todo:
        each = todo.pop()
        module = each.removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
        package, _, stem = module.replace("/", ".").rpartition(".")
        names = rf"from {re.escape(package)}(\.{stem} import|  *import .*\b{stem}\b)"
        for name, text in texts.items():
            if name not in found and re.search(names, text):
                found.add(name)
                if "@jit(" in text:
                    todo.append(name)
    return found
