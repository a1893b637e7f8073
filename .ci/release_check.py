"""Build what would be released, and try it as a stranger would.

``make release-check`` runs this. The wheel and the sdist are built, looked through and
installed into empty environments; the tests run from the unpacked sdist. Arguments are
handed to pytest. Any fault ends it with a sentence and exit code 1.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMITS = {".whl": 1_000_000, ".gz": 3_000_000}
KINDS = {".py", ".typed", ".css", ".js", ".html", ".md", ".toml", ".csv", ".ini"}
ADDED = {"PKG-INFO", ".gitignore"}  # by the builder


def run(*words: object, cwd: Path = ROOT, code: int = 0) -> str:
    """Run a command and return what it says; another exit code is a fault."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # A stranger has no checkout on the path.
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    if done.returncode != code:
        print(done.stdout)
        said = " ".join(map(str, words))
        sys.exit(f"release-check: {said} ended with {done.returncode}, not {code}.")
    return done.stdout


def require(condition: bool, sentence: str) -> None:
    """End with the sentence unless the condition holds."""
    if not condition:
        sys.exit(f"release-check: {sentence}")


def told(step: str, start: float) -> None:
    """Say that a step is done, and how long it took."""
    print(f"  {step}: {time.perf_counter() - start:.0f} s", flush=True)


def version_everywhere() -> str:
    """Return the version, the same wherever it is written."""
    text = (ROOT / "src/mdec/__init__.py").read_text("utf-8")
    version = re.search(r'^__version__ = "(.+)"$', text, re.M)[1]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)[1]
    require(cited == version, f"CITATION.cff has {cited}, mdec {version}.")
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    heads = re.findall(r"^## \[(.+?)\](?: - \d{4}-\d\d-\d\d)?$", changes, re.M)
    require(heads[:1] == ["Unreleased"], "CHANGELOG.md does not begin with Unreleased.")
    return version


def tracked() -> set[str]:
    """Return the files of the repository."""
    return set(run("git", "ls-files").split("\n"))


def look_through(wheel: Path, sdist: Path, version: str) -> None:
    """Hold the contents against what the repository has, and the sizes to limits."""
    for path in (wheel, sdist):
        size, limit = path.stat().st_size, LIMITS[path.suffix]
        require(size <= limit, f"{path.name} has {size} bytes, more than {limit}.")
        print(f"  {path.name}: {size / 1e6:.2f} MB")
    known = tracked()
    with zipfile.ZipFile(wheel) as archive:
        info = f"mdec-{version}.dist-info/"
        inside = {n for n in archive.namelist() if not n.startswith(info)}
        metadata = archive.read(f"{info}METADATA").decode()
    stray = {
        n for n in inside if f"src/{n}" not in known or Path(n).suffix not in KINDS
    }
    require(not stray, f"the wheel has stray files: {sorted(stray)}.")
    missing = {n for n in known if n.startswith("src/")} - {f"src/{n}" for n in inside}
    require(not missing, f"the wheel lacks {sorted(missing)}.")
    require(f"\nVersion: {version}\n" in metadata, "the wheel has another version.")
    with tarfile.open(sdist) as archive:
        names = {n.partition("/")[2] for n in archive.getnames()}
    stray = {n for n in names if n not in known | ADDED}
    require(not stray, f"the sdist has stray files: {sorted(stray)}.")


def empty_environment(folder: Path) -> Path:
    """Return the Python of a new environment."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def try_bare(python: Path, archive: Path, version: str, folder: Path) -> None:
    """Install without extras: the library works, the command asks for its extra."""
    run(python, "-m", "pip", "install", "--quiet", archive, cwd=folder)
    code = (
        "import mdec, numpy; X = numpy.random.default_rng(0).normal(size=(40, 6)); "
        "mdec.MDEC(2, ensemble_size=5).fit(X).labels_; print(mdec.__version__)"
    )
    said = run(python, "-c", code, cwd=folder).strip()
    require(said == version, f"{archive.name} says it is {said}.")
    sentence = run(python, "-m", "mdec", "fit", "x.csv", cwd=folder, code=2).strip()
    require(
        "mdec[cli]" in sentence and "\n" not in sentence,
        f"without extras the command says: {sentence}",
    )
    run(python, "-m", "pip", "check", cwd=folder)


def main() -> None:
    """Do everything, in order."""
    arguments = sys.argv[1:]
    here, version = sys.executable, version_everywhere()
    print(f"mdec {version}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        run(here, "-m", "build", "--outdir", folder, ROOT)
        (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
        told("built", start)
        run(here, "-m", "twine", "check", "--strict", wheel, sdist)
        look_through(wheel, sdist, version)
        run(Path(here).parent / "cffconvert", "--validate")
        run(Path(here).parent / "zizmor", "--offline", "--strict-collection", ".github")
        for archive in (wheel, sdist):
            start = time.perf_counter()
            python = empty_environment(folder / f"bare-{archive.suffix[1:]}")
            try_bare(python, archive, version, folder)
            told(f"{archive.name} installed alone", start)
        start = time.perf_counter()
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        source = folder / f"mdec-{version}"
        python = empty_environment(folder / "tests")
        run(python, "-m", "pip", "install", "--quiet", f"{source}[test]", cwd=folder)
        words = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2"]
        said = run(*words, "tests", *arguments, cwd=source)
        print("  " + said.strip().rpartition("\n")[2])
        told("tests from the sdist", start)
    print(f"mdec {version} is ready")


if __name__ == "__main__":
    main()
