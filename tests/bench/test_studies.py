"""Studies: planning, running, limits, resuming, and the same tables every time."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mdec import generate_ensemble
from mdec.bench import worker
from mdec.bench.methods import (
    METHODS,
    generate_components,
    generate_prepared_ensemble,
    resolve,
)
from mdec.bench.pages import write_report
from mdec.bench.records import (
    decode_labels,
    encode_labels,
    open_journal,
    read_records,
    run_key,
)
from mdec.bench.run import run_study
from mdec.bench.study import (
    make_study,
    narrow,
    plan_groups,
    read_study,
    seed_from_names,
    study_names,
)
from mdec.bench.summary import format_value, score_table
from mdec.bench.worker import commit
from mdec.preparation import ExpressionPreparation

TOY = """
import os, sys, time
import numpy as np

def by_first_feature(X, n_clusters, *, random_state):
    cuts = np.quantile(X[:, 0], np.linspace(0, 1, n_clusters + 1)[1:-1])
    return np.searchsorted(cuts, X[:, 0])

def at_random(X, n_clusters, *, random_state, pause=0.0):
    time.sleep(pause)
    return np.random.default_rng(random_state).integers(0, n_clusters, len(X))

def talkative(X, n_clusters, *, random_state):
    print("not a record")
    os.write(1, b"nor this\\\\n")
    return at_random(X, n_clusters, random_state=random_state)

def fails(X, n_clusters, *, random_state):
    raise ArithmeticError("seven is too many")

def sleeps(X, n_clusters, *, random_state):
    time.sleep(600)

def hogs(X, n_clusters, *, random_state):
    return np.ones(4 * 10**9, dtype=np.uint8).sum()

def killed(X, n_clusters, *, random_state):
    os.kill(os.getpid(), 9)

def needs_absent(X, n_clusters, *, random_state):
    from mdec._support.optional import import_optional
    import_optional("no_such_package", needed_for="this", install="no-such-package")

def misshapen(X, n_clusters, *, random_state):
    return [0, 1]
"""


PREPARED = {"method": "MDEC-BG", "generator": "prepared"}


def _method(name: str, **parameters: Any) -> dict[str, Any]:
    return {"name": name, "function": f"toy:{name}", "parameters": parameters}


def _study(folder: Path, methods: list[Any], **keys: Any) -> Any:
    (folder / "toy.py").write_text(TOY)
    text = {"name": "toy", "datasets": ["wine", "gaussians"], "methods": methods}
    return make_study({**text, **keys}, folder)


def _tables(path: Path, folder: Path) -> dict[str, bytes]:
    write_report(read_records(path), folder, with_figures=False)
    wanted = [*(folder / "tables").iterdir(), folder / "scores.csv"]
    return {p.name: p.read_bytes() for p in wanted if p.stem != "cpu_seconds"}


def test_every_shipped_study_can_be_planned() -> None:
    assert {"paper-tables", "ensemble-size", "metrics", "sampling-ratio", "today"} <= {
        *study_names()
    }
    for name in study_names():
        groups = plan_groups(read_study(name))
        assert groups
        assert all(group.runs for group in groups)


@pytest.mark.slow
def test_kernels_are_mixed_with_and_without_preparation(tmp_path: Path) -> None:
    study = narrow(read_study("metrics-mixed"), datasets=["DS-3"], repetitions=1)
    groups = plan_groups(study)
    made = {
        (g.runs[0]["generator"], format_value(g.parameters["kernel"])) for g in groups
    }
    assert len(groups) == len(made) == 12
    assert ("prepared", "scaled_gaussian + correlation + cosine") in made
    kernels = ["cosine", ["cosine", "scaled_gaussian"]]
    text = {
        "name": "mixed",
        "datasets": ["gaussians"],
        "methods": ["MDEC-BG", {**PREPARED, "name": "prepared BG"}],
        "generators": {"mdec": {"ensemble_size": 6}, "prepared": {"ensemble_size": 6}},
        "parameters": {"generator": {"kernel": kernels}},
    }
    run_study(make_study(text), tmp_path / "r.jsonl")
    records = read_records(tmp_path / "r.jsonl")
    assert {run["status"] for run in records.runs.values()} == {"ok"}
    write_report(records, tmp_path / "report", with_figures=False)
    page = (tmp_path / "report" / "report.md").read_text()
    assert "| kernel | MDEC-BG | prepared BG |" in page
    lines = [line for line in page.splitlines() if line.startswith("| cosine + ")]
    assert lines
    assert all(
        re.fullmatch(r"\| cosine \+ scaled_gaussian( \|\D*\d.*){2}", line)
        for line in lines
    )


def test_a_preparation_is_that_of_the_command_line() -> None:
    rng = np.random.default_rng(0)
    raw = rng.lognormal(5.0, 2.0, size=(30, 300))
    made = generate_prepared_ensemble(raw, random_state=1, ensemble_size=3)
    own = generate_ensemble(
        raw, preparation="diversified", ensemble_size=3, random_state=1
    )
    np.testing.assert_array_equal(made.labels, own.labels)
    plain = rng.uniform(size=(30, 300))
    made = generate_prepared_ensemble(plain, random_state=1, ensemble_size=3)
    own = generate_ensemble(plain, ensemble_size=3, random_state=1)
    np.testing.assert_array_equal(made.labels, own.labels)


def test_one_generation_serves_all_that_share_it() -> None:
    study = narrow(read_study("paper-tables"), datasets=["DS-1"], repetitions=1)
    shared = {
        g.runs[0]["generator"]: [r["method"] for r in g.runs]
        for g in plan_groups(study)
    }
    assert shared == {
        "mdec": ["MDEC-HC", "MDEC-SC", "MDEC-BG"],
        "kmeans": ["KCC", "PTGP", "SEC", "ECC", "LWGP", "SPCE"],
        "stratified": ["SSCSPA", "SSHGPA", "SSMCLA"],
    }


def test_ensemble_sizes_share_their_largest_ensemble() -> None:
    study = narrow(read_study("ensemble-size"), datasets=["DS-1"], repetitions=1)
    groups = plan_groups(narrow(study, methods=["MDEC-HC"]))
    assert [group.parameters for group in groups] == [{"ensemble_size": 300}]
    sizes = [run["generator_parameters"]["ensemble_size"] for run in groups[0].runs]
    assert sizes == [20, 50, 100, 150, 200, 250, 300]


def test_repetitions_go_by_kind_dataset_and_method() -> None:
    text = {
        "name": "x",
        "datasets": ["gene expression", "DS-30", "DS-26"],
        "methods": ["Ward", "k-means"],
        "repetitions": {"default": 4, "gene expression": 7, "DS-30": 2, "Ward": 1},
    }
    groups = plan_groups(make_study(text))

    def count(dataset: str, method: str) -> int:
        return sum(
            g.dataset.name == dataset and any(r["method"] == method for r in g.runs)
            for g in groups
        )

    counted = [count(d, "k-means") for d in ("DS-1", "DS-30", "DS-26")]
    assert counted == [7, 2, 4]
    assert count("DS-1", "Ward") == 1


def test_seeds_depend_on_names_alone() -> None:
    def seeds(datasets: list[str], methods: list[str]) -> dict[tuple[Any, ...], int]:
        text = {"name": "x", "datasets": datasets, "methods": methods}
        return {
            (
                *(g.dataset.name, r["repetition"], r["method"]),
                g.seed,
            ): r["seed"]
            for g in plan_groups(make_study(text | {"repetitions": 2}))
            for r in g.runs
        }

    few = seeds(["wine"], ["MDEC-HC", "k-means"])
    many = seeds(["digits", "wine"], ["Ward", "k-means", "MDEC-HC", "MDEC-BG"])
    assert few.items() <= many.items()
    assert len(set(many.values())) == len(many)
    assert seed_from_names("a", "bc") != seed_from_names("ab", "c")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"colour": 1}, "the study has no colour; it has name"),
        ({"datasets": []}, "the study needs datasets; add"),
        ({"methods": ["K-MEANS"]}, "there is no method 'K-MEANS'"),
        ({"methods": [{"name": "x"}]}, "module:function"),
        ({"datasets": ["DS-99"]}, "no dataset 'DS-99'"),
        ({"limits": {"minutes": 1}}, "limits of the study has no minutes"),
        ({"methods": ["Ward", "Ward"]}, "two methods called 'Ward'"),
        ({"datasets": [{"path": "a/x.csv"}, {"path": "b/x.csv"}]}, "called 'x'"),
        ({"name": ["x"]}, "name of the study must be text; it is"),
        ({"datasets": "wine"}, "datasets of the study must be a list"),
        (
            {"datasets": [["wine"]]},
            r"datasets\[1\] of the study must be text or a table",
        ),
        ({"datasets": [{"name": "x"}]}, r"datasets\[1\] of the study needs path"),
        ({"datasets": [{"path": "x.csv", "targt": "y"}]}, r"datasets\[1\] .* no targt"),
        ({"datasets": [{"path": 1}]}, r"datasets\[1\].path of the study must be text"),
        (
            {"methods": [{"name": "Ward", "parameters": 1}]},
            r"methods\[1\].parameters .* a table",
        ),
        ({"repetitions": 1.5}, "a whole number or a table; it is 1.5"),
        ({"repetitions": True}, "a whole number or a table; it is True"),
        ({"repetitions": {"wine": "3"}}, "repetitions.wine"),
        ({"generators": {"x": 1}}, "generators.x of the study must be a table"),
        ({"generators": {"x": {"function": 1}}}, "generators.x.function"),
        ({"parameters": {"method": 1}}, "parameters.method"),
        ({"parameters": {"method": {"k": 1}}}, "parameters.method.k .* a list"),
        ({"limits": {"memory_gb": "1"}}, "limits.memory_gb"),
        ({"report": {"metrics": [1]}}, r"report.metrics\[1\]"),
        ({"report": {"times": 1}}, "report.times .* true or false"),
        ({"report": {"bars": {"x": "a"}}}, "report.bars of the study needs label"),
    ],
)
def test_bad_studies_get_one_sentence(change: dict[str, Any], words: str) -> None:
    text = {"name": "x", "datasets": ["wine"], "methods": ["k-means"]}
    with pytest.raises(ValueError, match=words):
        make_study(text | change)


def test_the_order_of_parameters_makes_no_other_run() -> None:
    run: Any = {"dataset": "d", "method": "m", "repetition": 0}
    run |= {"generator": "g", "generator_parameters": {"a": 1, "b": 2}}
    one = run | {"parameters": {"x": 1, "y": [2, 3]}}
    other = run | {"parameters": {"y": [2, 3], "x": 1}}
    assert run_key(one) == run_key(other)
    for change in (
        {"parameters": {"x": 1, "y": [3, 2]}},
        {"generator_parameters": {"a": 1}},
        {"repetition": 1},
        {"dataset": "e"},
        {"method": "n"},
    ):
        assert run_key(one | change) != run_key(one)


def test_labels_survive_packing() -> None:
    rng = np.random.default_rng(0)
    for high in (3, 2**15 - 1, 2**15, 10**6):
        labels = rng.integers(-1, high + 1, 1000)
        labels[0] = high
        np.testing.assert_array_equal(decode_labels(encode_labels(labels)), labels)
    assert decode_labels(encode_labels(np.zeros(0, dtype=int))).size == 0


def test_two_writers_of_one_file_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / "r.jsonl"
    another = pytest.raises(OSError, match="another process is writing")
    with open_journal(path), another, open_journal(path):
        pass


def test_records_describe_themselves_and_are_not_run_twice(tmp_path: Path) -> None:
    study = _study(
        tmp_path, [_method("by_first_feature"), _method("talkative")], repetitions=2
    )
    path = tmp_path / "r.jsonl"
    seen: list[str] = []
    end = run_study(study, path, notify=lambda now: seen.append(now.last))
    assert (end.n_done, end.n_runs, end.n_failed, len(seen)) == (8, 8, 0, 8)
    records = read_records(path)
    for run in records.runs.values():
        assert run["status"] == "ok"
        assert {"numpy", "mdec", "python"} <= run["versions"].keys()
        assert run["commit"] == commit()
        assert {"processor", "cores"} <= run["machine"].keys()
        assert run["consensus"]["seconds"] >= 0.0
        assert run["consensus"]["peak_bytes"] > 10**7
        n_samples = records.datasets[run["dataset"]]["n_samples"]
        assert decode_labels(run["labels"]).size == n_samples
    size = path.stat().st_size
    again = run_study(study, path)
    assert (again.n_done, path.stat().st_size) == (8, size)


def test_failures_are_statuses(tmp_path: Path) -> None:
    methods = ["fails", "needs_absent", "misshapen", "killed", "sleeps", "at_random"]
    study = _study(
        tmp_path,
        [_method(name) for name in methods],
        datasets=["wine"],
        limits={"seconds_per_run": 10.0},
    )
    path = tmp_path / "r.jsonl"
    end = run_study(study, path)
    assert (end.n_done, end.n_failed) == (6, 5)
    runs = {run["method"]: run for run in read_records(path).runs.values()}
    assert {name: run["status"] for name, run in runs.items()} == {
        "fails": "failed",
        "needs_absent": "missing",
        "misshapen": "failed",
        "killed": "OM",
        "sleeps": "timeout",
        "at_random": "ok",
    }
    assert runs["fails"]["message"] == "ArithmeticError: seven is too many"
    assert "pip install 'no-such-package'" in runs["needs_absent"]["message"]
    table = score_table(read_records(path), "ari")
    assert table.status[0].tolist() == [
        "failed", "missing", "failed", "OM", "timeout", "",
    ]  # fmt: skip
    left = narrow(study, methods=["fails", "at_random"])
    assert run_study(left, path, retry=True).n_failed == 1


@pytest.mark.skipif(sys.platform != "linux", reason="memory limits need Linux")
def test_too_much_memory_is_a_status(tmp_path: Path) -> None:
    study = _study(
        tmp_path,
        [_method("hogs"), _method("at_random")],
        datasets=["wine"],
        limits={"memory_gb": 1.0},
    )
    run_study(study, tmp_path / "r.jsonl")
    runs = read_records(tmp_path / "r.jsonl").runs.values()
    assert [run["status"] for run in runs] == ["OM", "ok"]


@pytest.mark.skipif(sys.platform != "linux", reason="memory limits need Linux")
@pytest.mark.parametrize("kind", ["AS", "DATA"])
def test_a_limit_on_the_process_counts_as_memory(kind: str) -> None:
    program = (
        "import resource; from mdec._support.memory import available_memory\n"
        f"resource.setrlimit(resource.RLIMIT_{kind}, (2**32, 2**32))\n"
        "print(available_memory())"
    )
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 2**30 < int(found.stdout) < 2**32


def test_the_budget_of_a_study_ends_it_between_runs(tmp_path: Path) -> None:
    study = _study(
        tmp_path,
        [_method("at_random", pause=0.4)],
        repetitions=5,
        limits={"seconds_total": 0.5},
    )
    end = run_study(study, tmp_path / "r.jsonl")
    assert 1 <= end.n_done < end.n_runs == 10


def test_an_absent_dataset_is_left_out_and_named(tmp_path: Path) -> None:
    study = _study(
        tmp_path, [_method("at_random")], datasets=["wine", {"path": "absent.csv"}]
    )
    end = run_study(study, tmp_path / "r.jsonl")
    assert list(end.unavailable) == ["absent"]
    assert end.n_done == end.n_runs == 1


KILLED = """
import os, signal, sys
from mdec.bench.run import run_study
from mdec.bench.study import read_study

def kill(progress):
    if progress.n_done == 5:
        os.kill(os.getpid(), signal.SIGKILL)

run_study(read_study(sys.argv[1]), sys.argv[2], notify=kill)
"""


def test_kill_and_resume_gives_the_same_tables(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY)
    study_file = tmp_path / "toy.toml"
    study_file.write_text(
        'name = "toy"\ndatasets = ["wine", "gaussians"]\nrepetitions = 6\n'
        'methods = [{name = "random", function = "toy:at_random"}, '
        '{name = "first", function = "toy:by_first_feature"}]\n'
    )
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    run_study(read_study(study_file), whole)
    command = [sys.executable, "-c", KILLED, str(study_file), str(killed)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert len(read_records(killed).runs) == 5
    with killed.open("ab") as file:  # as if the kill had come during a write
        file.write(b'{"record":"run","study":"toy"')
    run_study(read_study(study_file), killed)
    assert len(read_records(killed).runs) == 24
    assert _tables(killed, tmp_path / "a") == _tables(whole, tmp_path / "b")


@pytest.mark.slow
def test_tables_do_not_depend_on_the_number_of_jobs(tmp_path: Path) -> None:
    text = {
        "name": "jobs",
        "datasets": ["gaussians", "wine"],
        "methods": ["MDEC-HC", "MDEC-SC", "MDEC-BG", "k-means"],
        "repetitions": 2,
        "generators": {"mdec": {"ensemble_size": 8}},
        "report": {"metrics": ["nmi_max", "nmi_geometric", "ami", "ari", "purity"]},
    }
    study = make_study(text)
    for n_jobs in (1, 2):
        run_study(study, tmp_path / f"{n_jobs}.jsonl", n_jobs=n_jobs)
    one = _tables(tmp_path / "1.jsonl", tmp_path / "a")
    assert one == _tables(tmp_path / "2.jsonl", tmp_path / "b")
    assert b"MDEC-BG" in one["nmi_max.md"]


def test_mdec_by_study_is_mdec_by_hand(tmp_path: Path) -> None:
    from mdec import generate_ensemble
    from mdec.consensus import bipartite
    from mdec.datasets import load_dataset

    text = {
        "name": "hand",
        "datasets": ["wine"],
        "methods": ["MDEC-BG"],
        "parameters": {
            "generator": {"ensemble_size": [5, 9]},
            "method": {"weighting": ["entropy", "uniform"]},
        },
    }
    run_study(make_study(text), tmp_path / "r.jsonl")
    runs = list(read_records(tmp_path / "r.jsonl").runs.values())
    assert len(runs) == 4
    X = load_dataset("wine").data
    for run in runs:
        ensemble = generate_ensemble(
            X,
            ensemble_size=run["generator_parameters"]["ensemble_size"],
            random_state=seed_from_names("hand", "wine", 0, "mdec"),
        )
        uniform = run["parameters"]["weighting"] == "uniform"
        weights = np.ones(ensemble.n_base_clusters) if uniform else None
        labels = bipartite(ensemble, 3, weights, random_state=run["seed"])
        np.testing.assert_array_equal(decode_labels(run["labels"]), labels)


def test_an_interrupt_ends_the_workers_and_keeps_the_records(tmp_path: Path) -> None:
    study = _study(tmp_path, [_method("at_random"), _method("sleeps")])

    def stop(_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path / "r.jsonl", notify=stop)
    runs = read_records(tmp_path / "r.jsonl").runs.values()
    assert [run["method"] for run in runs] == ["at_random"]


def test_a_worker_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise RuntimeError('no numbers today')")
    study = _study(tmp_path, [_method("at_random")])
    with pytest.raises(RuntimeError, match=r"could not start: .*no numbers today"):
        run_study(study, tmp_path / "r.jsonl")


def test_study_text_is_kept_with_the_records(tmp_path: Path) -> None:
    study = _study(tmp_path, [_method("at_random")], title="A <b> title")
    run_study(narrow(study, datasets=["wine"]), tmp_path / "r.jsonl")
    lines = (tmp_path / "r.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["study"] == study.text


@pytest.mark.parametrize("name", ["k-means", "spectral kNN", "Ward", "HDBSCAN"])
def test_direct_methods_give_a_label_to_each_sample(name: str) -> None:
    from mdec.datasets import load_dataset

    dataset = load_dataset("gaussians")
    method = METHODS[name]
    labels = [
        resolve(method.function)(dataset.data, 4, random_state=3, **method.parameters)
        for _ in range(2)
    ]
    assert labels[0].shape == (240,)
    np.testing.assert_array_equal(*labels)


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("FINCH", "finch"),
        ("Leiden", "leidenalg"),
        ("Genie", "genieclust"),
        ("consensusclustering", "consensusclustering"),
        ("inmoose", "inmoose"),
        ("scanpy Leiden", "scanpy"),
        ("SC3s", "sc3s"),
    ],
)
def test_an_absent_package_is_named_with_its_cure(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", [_Hides(package), *sys.meta_path])
    for loaded in [m for m in sys.modules if m.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, loaded)
    with pytest.raises(ImportError, match=f"needs the package '{package}'; install"):
        resolve(METHODS[name].function)(np.eye(4), 2, random_state=0)


class _Scanpy(ModuleType):
    """Stands for scanpy: clusters of equal size, more at higher resolutions."""

    def __init__(self) -> None:
        super().__init__("scanpy")
        self.pp = SimpleNamespace(neighbors=lambda *_, **__: None)
        self.tl = SimpleNamespace(leiden=self.leiden)

    def AnnData(self, X: Any) -> Any:
        return SimpleNamespace(n=len(X), obs={})

    def leiden(self, cells: Any, *, resolution: float, **_: Any) -> None:
        # Never three clusters, as happens.
        n_clusters = max(1, int(resolution * 2.0))
        n_clusters += n_clusters == 3
        cells.obs["leiden"] = (np.arange(cells.n) % n_clusters).astype(str)


@pytest.mark.parametrize(("n_clusters", "found"), [(6, 6), (3, 2), (1, 1)])
def test_the_resolution_of_leiden_is_searched(
    n_clusters: int, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scanpy", _Scanpy())
    for name in ("leidenalg", "igraph"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    cluster = resolve(METHODS["scanpy Leiden"].function)
    labels = cluster(np.zeros((60, 2)), n_clusters, random_state=0)
    assert np.unique(labels).size == found
    own = cluster(np.zeros((60, 2)), n_clusters, random_state=0, search=False)
    assert np.unique(own).size == 2


def test_components_are_those_of_prepared_values() -> None:
    counts = np.random.default_rng(0).negative_binomial(1, 0.3, size=(40, 300))
    parts = generate_components(counts, random_state=0, n_components=6)
    assert parts.shape == (40, 6)
    values = ExpressionPreparation().fit_transform(counts)
    centred = values - values.mean(axis=0)
    spread = np.linalg.svd(centred, compute_uv=False)[:6]
    np.testing.assert_allclose(np.linalg.norm(parts, axis=0), spread, rtol=1e-2)


def test_fifty_components_are_taken_as_other_packages_do() -> None:
    counts = np.random.default_rng(0).negative_binomial(1, 0.3, size=(60, 300))
    assert generate_components(counts, random_state=0).shape == (60, 50)
    assert generate_components(counts[:20], random_state=0).shape == (20, 20)


def test_finch_is_asked_for_the_clusters_and_for_no_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cluster(X: Any, *, req_clust: int, verbose: bool = True) -> Any:
        if verbose:
            sys.stdout.write("partition 0")
        return np.zeros((len(X), 2)), [5, 3], np.arange(len(X)) % req_clust

    package = ModuleType("finch")
    package.FINCH = cluster  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "finch", package)
    labels = resolve(METHODS["FINCH"].function)(np.eye(9), 3, random_state=0)
    assert labels.tolist() == [0, 1, 2] * 3
    assert capsys.readouterr().out == ""


def test_the_commit_is_that_of_a_checkout_of_this_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    git = "git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"
    (tmp_path / "worker.py").touch()
    (tmp_path / "other.py").touch()
    for words in (["init"], ["add", "worker.py"], ["commit", "-m", "one"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
    found = []
    for name in ("worker.py", "other.py", "gone/worker.py"):
        monkeypatch.setattr(worker, "__file__", str(tmp_path / name))
        found.append(worker.commit.__wrapped__())
    assert found == [head.stdout.strip(), "", ""]
    assert capfd.readouterr() == ("", "")


class _Hides:
    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, *_: Any) -> None:
        if name.split(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
