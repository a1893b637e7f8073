"""What the mutation run changes, and that it changes one thing at a time."""

from __future__ import annotations

import ast
import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

SOURCE = '''"""Text with a < b."""

SIZE = 8 + 1


def f(a, b, n=2):
    """Text with a < b."""
    if a < b and not n:
        raise ValueError(a + b)
    require_memory(3 * n, "x", "y")
    a[0] = max(a, axis=1)
    return np.argsort(a, kind="stable")
'''


@pytest.fixture(scope="module")
def mutations():
    path = BENCHMARKS / "mutations.py"
    spec = importlib.util.spec_from_file_location("mutations", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutations"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutations"]


def test_each_mutation_changes_one_thing(mutations, tmp_path):
    path = tmp_path / "m.py"
    path.write_text(SOURCE)
    found = mutations.mutations(path, tmp_path)
    assert {(each.before, each.after) for each in found} == {
        ("2", "(3)"),
        ("a < b", "(a <= b)"),
        ("a < b and not n", "(a < b or not n)"),
        ("not n", "(n)"),
        ('require_memory(3 * n, "x", "y")', "pass"),
        ("a[0] = max(a, axis=1)", "pass"),
        ("0", "(1)"),
        ("max(a, axis=1)", "(min(a, axis=1))"),
        ("max(a, axis=1)", "(max(a, axis=0))"),
        ("1", "(2)"),
        ('return np.argsort(a, kind="stable")', "return a"),
        ('np.argsort(a, kind="stable")', "(np.argsort(a))"),
    }
    content = SOURCE.encode()
    for each in found:
        changed = content[: each.start] + each.after.encode() + content[each.end :]
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(SOURCE))


def test_a_larger_sample_holds_a_smaller_one(mutations):
    assert len(mutations.modules()) > 100
    paths = [path for path in mutations.modules() if path.parent.name == "consensus"]
    small, large = (mutations.drawn(paths, size, 0) for size in (8, 20))
    assert len({each.file for each in small}) == len(paths)
    assert set(small) < set(large)


def test_every_module_has_tests_that_exist(mutations):
    root = mutations.ROOT
    for path in mutations.modules():
        file = path.relative_to(root).as_posix()
        near, more = mutations.tests_of(file)
        assert near[-1] == file
        assert len(near) > 1, file
        for test in near + more:
            assert (root / test.partition("::")[0]).exists(), test


def test_every_row_of_the_map_has_modules(mutations):
    folder = mutations.ROOT / mutations.SOURCE
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")}
    assert names.issuperset(mutations.NOT_DRAWN)
    for pattern, *_ in mutations.MAP:
        own = {name for name in names if mutations.fnmatch.fnmatch(name, pattern)}
        assert own, pattern
        names -= own


def test_a_mutation_is_known_by_its_text(mutations, tmp_path):
    old, new, twin = (tmp_path / f"{name}.py" for name in ("old", "new", "twin"))
    new.write_text(f"import numpy\n{SOURCE}")
    old.write_text(SOURCE)
    before = mutations.mutations(old, tmp_path)
    record = [
        {"key": each.key, "file": each.file, "outcome": str(number)}
        for number, each in enumerate(before)
    ]
    record += [{**row, "outcome": f"{row['outcome']} again"} for row in record[:3]]
    old.unlink()
    moved = mutations.mutations(new, tmp_path)
    found = mutations.find_rows(moved, record)
    outcomes = [found[each]["outcome"] for each in moved]
    assert outcomes[:4] == ["0 again", "1 again", "2 again", "3"]
    assert len(set(outcomes)) == len(moved)
    # Of two places with one text neither is known to have been tried.
    twin.write_text(SOURCE)
    both = [*moved, *mutations.mutations(twin, tmp_path)]
    assert not mutations.find_rows(both, record)
    # Where the text stays, that of another place says nothing of it.
    assert set(mutations.find_rows([*before, *moved], record)) == set(before)


def test_equivalent_mutations_are_left_out_wherever_they_stand(mutations):
    text = mutations.EQUIVALENT.read_text()
    first = mutations.tomllib.loads(text)["equivalent"][0]
    each = mutations.Mutation(
        "elsewhere.py",
        1,
        "constant",
        first["before"],
        first["after"],
        first["line"],
        0,
        1,
    )
    assert mutations.visible([each]) == []
    other = replace(each, after="(77)")
    assert mutations.visible([other]) == [other]


def test_tests_are_known_by_what_they_call(mutations, tmp_path, monkeypatch):
    module = sys.modules["calls"]
    content = {
        "tests/a.py": {"seconds": 1.0, "calls": ["src/mdec/m.py .shared"]},
        "tests/a.py::slow": {"seconds": 9.0, "calls": ["src/mdec/m.py .f"]},
        "tests/a.py::quick": {"seconds": 2.0, "calls": []},
        "tests/gone.py::test": {"seconds": 0.1, "calls": ["src/mdec/m.py .f"]},
        "tests/b.py::test": {"seconds": 0.5, "calls": ["src/mdec/m.py .C.f"]},
    }
    monkeypatch.setattr(module, "CALLS", tmp_path / "calls.json")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    assert mutations.Calls().of("src/mdec/m.py", ".f", 60.0) == []
    (tmp_path / "calls.json").write_text(module.json.dumps(content))
    (tmp_path / "tests").mkdir()
    for name in ("a", "b"):
        (tmp_path / "tests" / f"{name}.py").touch()
    calls = mutations.Calls()
    assert calls.of("src/mdec/m.py", ".f", 60.0) == ["tests/a.py::slow"]
    assert calls.of("src/mdec/m.py", ".f", 9.5) == []
    both = ["tests/a.py::quick", "tests/a.py::slow"]
    assert calls.of("src/mdec/m.py", ".shared", 60.0) == both
    assert calls.of("src/mdec/m.py", ".shared", 5.0) == both[:1]
    # What is not seen to be called may be compiled.
    (tmp_path / "src" / "mdec").mkdir(parents=True)
    assert calls.of("src/mdec/m.py", ".unseen", 60.0) == ["tests/b.py::test", *both]


@pytest.mark.usefixtures("mutations")
def test_calls_are_traced(tmp_path, monkeypatch):
    module = sys.modules["calls"]
    monkeypatch.setattr(module, "CALLS", tmp_path / "build" / "calls.json")
    source = tmp_path / "src" / "mdec"
    source.mkdir(parents=True)
    (source / "m.py").write_text("class C:\n    def f(self):\n        return 1\n")
    spec = importlib.util.spec_from_file_location("m", source / "m.py")
    traced = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(traced)
    tracer = module.Tracer(tmp_path)
    watching = tracer._watch("tests/a.py::test")
    next(watching)
    traced.C().f()
    with pytest.raises(StopIteration):
        watching.send(None)
    traced.C().f()
    tracer.write()
    found = module.json.loads((tmp_path / "build" / "calls.json").read_text())
    assert found["tests/a.py::test"]["calls"] == ["src/mdec/m.py .C.f"]
