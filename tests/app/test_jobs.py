"""Runs: one at a time, stopped and resumed, and ended by others in one sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import psutil
import pytest

from mdec.app.jobs import Jobs, judge_end

WORDS = ["fit", "people.csv", "--label-column", "kind", "--k", "3"]


def wait_for(jobs, number, *states, seconds=240.0):
    """Return a run once it is in one of these states."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        (job,) = (each for each in jobs.snapshot() if each["number"] == number)
        if job["state"] in states:
            return job
        time.sleep(0.05)
    raise AssertionError(f"run {number} is {job}")


def children():
    """Return the runs that this process has started."""
    return [each for each in psutil.Process().children(recursive=True)
            if any("mdec.app.jobs" in word for word in each.cmdline())]  # fmt: skip


def wait_for_members(folder, least):
    """Wait until so many base clusterings are kept, and return how many there are."""
    for _ in range(2400):
        found = len(list(folder.glob("checkpoint/member-*.npz")))
        if found >= least:
            return found
        time.sleep(0.05)
    raise AssertionError("no base clustering was kept")


def test_runs_wait_stop_go_on_and_end(root) -> None:
    jobs = Jobs(root)
    try:
        long = [*WORDS, "--ensemble-size", "4000", "--out", "long"]
        first = jobs.submit(long, "long")
        second = jobs.submit(
            [*WORDS, "--out", "short", "--ensemble-size", "20"], "short"
        )
        third = jobs.submit(["fit", "nothing.csv", "--out", "x"], "x")
        wait_for_members(root / "long", 5)
        rows = {each["number"]: each for each in jobs.snapshot()}
        assert rows[first]["step"] == "base clusterings"
        assert 0 < rows[first]["done"] < rows[first]["total"] == 4000
        assert (rows[second]["state"], rows[second]["ahead"]) == ("waiting", 1)
        assert len(children()) == 1
        with pytest.raises(ValueError, match="is not stopped"):
            jobs.resume(first)

        jobs.stop(first)
        assert wait_for(jobs, first, "stopped")["message"].startswith("Stopped")
        kept = wait_for_members(root / "long", 5)
        assert not (root / "long" / "labels.csv").exists()
        assert "nothing.csv" in wait_for(jobs, third, "failed")["message"]
        assert wait_for(jobs, second, "done")["message"] == ""
        # It is the same run as that of the command.
        ours = (root / "short" / "summary.json").read_text()
        assert json.loads(ours)["parameters"]["command"] == (
            "mdec fit people.csv --label-column kind --k 3 --out short "
            "--ensemble-size 20"
        )
        labels = [(root / name / "labels.csv").read_text()
                  for name in ("short", "people-result")]  # fmt: skip
        assert labels[0] == labels[1]

        jobs.resume(first)
        wait_for_members(root / "long", kept + 1)
        (child,) = children()
        child.kill()
        ended = wait_for(jobs, first, "failed")["message"]
        assert "SIGKILL" in ended
        assert "Resume" in ended
        kept = wait_for_members(root / "long", kept)
        jobs.resume(first)
        kept = wait_for_members(root / "long", kept + 1)
    finally:
        jobs.close()
    assert wait_for(jobs, first, "stopped")
    assert children() == []
    assert wait_for_members(root / "long", kept)
    left = {each.name for each in (root / "long").iterdir()}
    assert left == {"checkpoint"}


def test_a_run_is_stopped_where_interrupts_are_ignored(root) -> None:
    jobs, before = Jobs(root), signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        words = [*WORDS, "--ensemble-size", "9000", "--out", "background"]
        number = jobs.submit(words, "background")
        wait_for_members(root / "background", 1)
        jobs.stop(number)
        assert wait_for(jobs, number, "stopped")
    finally:
        signal.signal(signal.SIGINT, before)
        jobs.close()


def test_a_run_that_waits_can_leave_the_line(root) -> None:
    jobs = Jobs(root)
    first = jobs.submit([*WORDS, "--out", "a", "--ensemble-size", "9000"], "a")
    second = jobs.submit([*WORDS, "--out", "b"], "b")
    jobs.stop(second)
    assert wait_for(jobs, second, "stopped")["message"] == "Removed from the queue."
    jobs.close()
    assert wait_for(jobs, first, "stopped")
    assert not (root / "b").exists()


def test_a_run_may_only_write_into_the_folder(client) -> None:
    given = {"file": "people.csv", "options": {"label_column": "kind"}}
    for out in ("../x", "/tmp/x", "a/b", "-x", ".hidden", ""):
        answer = client.post("/api/run", json={**given, "out": out})
        assert answer.status_code == 400, out
    answer = client.post("/api/run", json={**given, "out": "x", "file": "../y.csv"})
    assert answer.status_code == 400
    assert client.post("/api/stop", json={"number": 99}).status_code == 400


@pytest.mark.parametrize(
    ("code", "words", "state"),
    [(0, "", "done"), (2, "no.", "failed"), (1, "", "failed"), (-9, "", "failed")],
)
def test_the_end_of_a_run_is_one_sentence(code, words, state) -> None:
    found, message = judge_end(code, words, asked=False)
    assert found == state
    assert (message == "") == (state == "done")
    assert judge_end(code or 130, words, asked=True)[0] == "stopped"


def test_a_server_answers_on_this_machine_and_ends_with_its_runs(root) -> None:
    started = subprocess.Popen(
        [sys.executable, "-m", "mdec", "app", "people.csv", "--no-browser"],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert started.stdout is not None
        address = started.stdout.readline().split()[1]
        base = address.partition("?")[0]
        token = address.partition("token=")[2]
        assert base.startswith("http://127.0.0.1:")
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        for _ in range(100):
            try:
                page = opener.open(address, timeout=60)
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        assert "Drop a table here" in page.read().decode()
        (listening,) = (each for each in psutil.Process(started.pid).net_connections()
                        if each.status == "LISTEN")  # fmt: skip
        assert listening.laddr.ip == "127.0.0.1"
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(base, timeout=60)

        def ask(act, given):
            request = urllib.request.Request(
                base + "api/" + act, json.dumps(given).encode()
            )
            request.add_header("Origin", base.rstrip("/"))
            return json.load(opener.open(request, timeout=60))

        assert ask("start", {})["start"] == "people.csv"
        options = {"label_column": "kind", "ensemble_size": 9000}
        ask("run", {"file": "people.csv", "out": "long", "options": options})
        assert [each["folder"] for each in ask("jobs", {})] == ["long"]
        wait_for_members(root / "long", 1)
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=90)
        assert started.returncode in (0, 130)
        assert token not in said
        assert "Traceback" not in said
        assert {each.name for each in (root / "long").iterdir()} == {"checkpoint"}
    finally:
        started.kill()
        started.wait()


def test_whoever_fits_loads_none_of_it() -> None:
    code = (
        "import sys\n"
        "from mdec.cli import main\n"
        "try: main(['fit', '--help'])\n"
        "except SystemExit: pass\n"
        "names = ('mdec.app', 'starlette', 'uvicorn')\n"
        "sys.stderr.write(str([n for n in sys.modules if n.startswith(names)]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert done.stderr == "[]"
