"""Help, versions, completion and exit codes, as a shell sees them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mdec import __version__
from mdec.cli import COMMANDS as COMMANDS_AND_GROUPS
from mdec.cli import build_app, main

pytest.importorskip("typer")

COMMANDS = ["fit", "predict", "consensus", "compare", "demo", "app"]
COMMANDS += ["bench list", "bench run", "bench report"]
COMMANDS += [f"datasets {name}" for name in ("list", "info", "fetch", "path")]


def shell(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mdec", *words],
        capture_output=True,
        text=True,
        env=os.environ | {"NO_COLOR": "1", "COLUMNS": "100", **settings},
        check=False,
    )


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    code = caught.value.code
    return code if isinstance(code, int) else 0


def test_python_dash_m() -> None:
    done = shell("--version")
    assert (done.returncode, done.stdout) == (0, f"mdec {__version__}\n")


@pytest.mark.parametrize(
    "words", [["fit", "--version"], ["--version", "fit"], ["bench", "run", "--version"]]
)
def test_the_version_is_said_anywhere(words, capsys) -> None:
    main(words)
    assert capsys.readouterr().out == f"mdec {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_help_has_an_example(command, flag, capsys) -> None:
    assert call(*command.split(), flag) == 0
    printed = capsys.readouterr().out
    after = printed.partition("Examples:")[2]
    assert re.search(rf"^ *mdec {command}\b", after, re.M)


def test_the_list_of_commands_is_whole() -> None:
    import typer

    group = typer.main.get_command(build_app())
    found = []
    for name, command in group.commands.items():
        inner = getattr(command, "commands", None)
        found += [name] if inner is None else [f"{name} {each}" for each in inner]
    assert sorted(found) == sorted(COMMANDS)


def test_examples_use_options_that_exist(capsys) -> None:
    for command in COMMANDS:
        call(*command.split(), "-h")
        printed, _, after = capsys.readouterr().out.partition("Examples:")
        for option in re.findall(r"(?<!\S)--[\w-]+", after):
            assert option in printed, f"{command}: {option}"


def test_the_page_names_options_that_exist() -> None:
    import typer

    known = {"--help", "--install-completion", "--version", "--debug"}
    group = typer.main.get_command(build_app())
    for command in group.commands.values():
        for each in command.params:
            known |= {*each.opts, *each.secondary_opts}
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text("utf-8")
    named = set(re.findall(r"--[a-z][a-z0-9-]+", page))
    assert len(named) > 10
    assert named <= known


@pytest.mark.parametrize("command", ["fit", "predict", "consensus", "compare", "demo"])
def test_help_fits_80_columns(command) -> None:
    """In groups; no name is cut, and no switch is said to take a value."""
    done = shell(command, "-h", COLUMNS="80")
    assert done.returncode == 0
    assert "…" not in done.stdout
    assert "<bool>" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "─ Output ─" in done.stdout
    assert not re.search(
        r"--no-(quiet|overwrite|resume|dry-run|matrix)|--as-", done.stdout
    )
    if command == "fit":
        found = re.findall(r"^╭─ (\w+) ─", done.stdout, re.M)
        assert found[-4:] == ["Reading", "Clusters", "Method", "Output"]
        assert "--base-n-clusters-range " in done.stdout


def test_every_command_is_listed_with_its_own_words() -> None:
    """Help on all commands loads none of them, and says what their own help says."""
    import typer

    found = []
    for named in ((), COMMANDS_AND_GROUPS):
        group = typer.main.get_command(build_app(named))
        words = {name: each.help.split("\n\n") for name, each in group.commands.items()}
        found.append({name: " ".join(each[0].split()) for name, each in words.items()})
    assert found[0] == found[1]


@pytest.mark.parametrize("words", [["-h"], []])
def test_help_loads_no_command(words) -> None:
    code = (
        "import sys; from mdec.cli import main\n"
        f"try: main({words})\n"
        "except SystemExit: sys.exit('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == 0


def test_completion_knows_the_commands() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.argv[0] = 'mdec'; from mdec.cli import main; main()",
        ],
        capture_output=True,
        text=True,
        env=os.environ
        | {
            "_MDEC_COMPLETE": "complete_bash",
            "COMP_WORDS": "mdec co",
            "COMP_CWORD": "1",
        },
        check=False,
    )
    assert set(done.stdout.split()) == {"consensus", "compare"}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["-h"], 0),
        (["fit", "nothing.csv"], 2),
        (["fit"], 2),
        (["nonsense"], 2),
        (["fit", "a.csv", "--nonsense"], 2),
        (["fit", "a.csv", "--seed", "x"], 2),
    ],
)
def test_exit_codes(words, code, capsys) -> None:
    """What docs/command-line.md says."""
    assert call(*words) == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_shell_sees_the_sentence_and_its_code() -> None:
    done = shell("fit", "nothing.csv")
    assert done.returncode == 2
    assert done.stderr == "mdec: 'nothing.csv' is not a file; check its name.\n"


def test_an_error_of_mdec_itself_is_1() -> None:
    code = (
        "import mdec.cli; from mdec.cli import main\n"
        "def broken(named): raise ZeroDivisionError('no sentence')\n"
        "mdec.cli.build_app = broken\nmain(['demo'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_help_says_what_may_be_repeated() -> None:
    import typer

    command = typer.main.get_command(build_app()).commands["fit"]
    several = {each.name for each in command.params if getattr(each, "multiple", False)}
    said = {each.name for each in command.params if "may be rep" in (each.help or "")}
    assert {"view", "drop", "features"} <= several == said


def test_help_names_every_exit_code() -> None:
    page = " ".join(shell("-h").stdout.split())
    codes = re.findall(r"\b(\d+)\s+[a-z]", page.partition("Exit codes:")[2])
    text = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text("utf-8")
    assert codes == re.findall(r"^\| (\d+) \|", text, re.M)
    assert codes == ["0", "1", "2", "3", "130"]


def test_an_interrupt_is_130() -> None:
    code = (
        "import mdec.cli; from mdec.cli import main\n"
        "def stopped(named): raise KeyboardInterrupt\n"
        "mdec.cli.build_app = stopped\nmain(['demo'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "mdec: stopped.\n")
