"""Progress is passed on, written at the steps that were asked for, and then ends."""

from __future__ import annotations

import pytest

from mdec._support.progress import (
    duration,
    progress_hooks,
    progress_to,
    report_progress,
)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (61.0, "1 min 1 s")),
        *((3599.0, "59 min 59 s"), (3600.0, "1 h 0 min"), (7380.0, "2 h 3 min")),
    ],
)
def test_times_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_hooks_hold_inside_the_block_alone() -> None:
    before = progress_hooks()
    calls: list[tuple[int, int]] = []
    with progress_to(members=lambda *now: calls.append(now)):
        progress_hooks().members(1, 4)
        with progress_to():
            progress_hooks().members(2, 4)
        progress_hooks().members(3, 4)
    assert progress_hooks() == before
    assert calls == [(1, 4), (3, 4)]
    with pytest.raises(ZeroDivisionError), progress_to(null=print):
        1 / 0  # noqa: B018
    assert progress_hooks() == before


@pytest.mark.parametrize(
    ("verbose", "total", "lines"),
    [
        (0, 20, []),
        (1, 20, [*range(2, 21, 2)]),
        (1, 25, [*range(2, 25, 2), 25]),
        (1, 3, [1, 2, 3]),
        (2, 20, [*range(1, 21)]),
    ],
)
def test_lines_of_progress(
    verbose: int,
    total: int,
    lines: list[int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seconds = iter(range(1000))
    monkeypatch.setattr("time.monotonic", lambda: 60.0 * next(seconds))
    calls: list[tuple[int, int]] = []
    hook = report_progress(lambda *now: calls.append(now), total, verbose)
    for done in range(1, total + 1):
        hook(done, total)
    assert calls == [(done, total) for done in range(1, total + 1)]
    expected = [
        f"mdec: {done} of {total} base clusterings in {duration(60.0 * number)}, "
        f"about {duration(60.0 * number * (total - done) / done)} left\n"
        for number, done in enumerate(lines, 1)
    ]
    assert capsys.readouterr().err == "".join(expected)
    report_progress(None, total, 0)(1, total)
