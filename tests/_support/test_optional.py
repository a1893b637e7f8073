"""A missing package is named with what to install, and no other error is hidden."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from mdec._support.optional import MissingPackageError, import_optional, versions


@pytest.mark.parametrize(
    ("name", "install", "named"),
    [
        ("no_such.part", "mdec[report]", "no_such"),
        ("no_such", "no-such", "no-such"),
    ],
)
def test_what_is_missing_is_named(name: str, install: str, named: str) -> None:
    words = (
        f"pictures needs the package 'no_such'; install it with pip install '{named}'"
    )
    with pytest.raises(MissingPackageError, match=words):
        import_optional(name, needed_for="pictures", install=install)


def test_a_package_may_have_another_name_than_its_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(MissingPackageError, match="pip install 'pillow'"):
        import_optional("PIL.Image", needed_for="pictures", install="mdec[report]")


def test_a_package_that_lacks_another_is_not_the_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lame_package.py").write_text("import a_limb\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_limb") as caught:
        import_optional("lame_package", needed_for="walking", install="lame-package")
    assert not isinstance(caught.value, MissingPackageError)


def test_versions_are_those_of_the_packages() -> None:
    import numpy

    found = versions("numpy", "no-such-package")
    assert found == {
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "no-such-package": "unknown",
    }
