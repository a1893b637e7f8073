"""What the mutation run changes, and that it changes one thing at a time."""

from __future__ import annotations

import ast
import importlib.util
import sys
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
    paths = mutations.modules()
    assert len(paths) > 40
    small, large = (mutations.drawn(paths, size, 0) for size in (80, 200))
    assert len({each.file for each in small}) == len(paths)
    assert set(small) < set(large)
    for each in large:
        near, more = mutations.tests_of(each.file)
        assert len(near) > 1
        assert all(mutations.exists(test) for test in near + more)
