"""Work in other processes: waited for, kept, bounded."""

from __future__ import annotations

import os
import signal
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING

import pytest

from highwater.lab.open import jobs
from highwater.lab.open.jobs import BusyError, Jobs
from highwater.lab.open.made_page import MadePage
from highwater.lab.open.site import BUSY, REFUSED, Site
from highwater.lab.open.tasks import RunName, RunTask, SweepTask, carry_out

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_S = 600.0


def work(task: str) -> str:
    """Called in a worker process. A task that waits ends when its file is there."""
    what, _, rest = task.partition(" ")
    if what == "fail":
        raise ValueError(rest)
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    while what == "wait" and not Path(rest).exists():
        sleep(0.01)
    return task * 10


@pytest.fixture
def made() -> Iterator[Jobs[str, str]]:
    found = Jobs(work, len)
    yield found
    found.close()


def test_a_result_is_kept(made: Jobs[str, str]) -> None:
    first = made.result("x", LONG_S)
    assert first == "x" * 10
    assert made.result("x", LONG_S) is first


def test_what_takes_long_is_not_waited_for(made: Jobs[str, str], tmp_path: Path) -> None:
    task = f"wait {tmp_path / 'go'}"
    assert made.result(task, 0) is None
    assert made.result(task, 0) is None
    (tmp_path / "go").touch()
    assert made.result(task, LONG_S) == task * 10


def test_few_wait(made: Jobs[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "WAITING", 2)
    tasks = [f"wait {tmp_path / 'go'}{' ' * place}" for place in range(2)]
    assert [made.result(task, 0) for task in tasks] == [None, None]
    with pytest.raises(BusyError):
        made.result("x", 0)
    assert made.result(tasks[0], 0) is None


def test_few_results_are_kept(made: Jobs[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "KEPT", 2)
    first = made.result("a", LONG_S)
    made.result("b", LONG_S)
    assert made.result("a", LONG_S) is first
    made.result("c", LONG_S)
    assert made.result("a", LONG_S) is first
    monkeypatch.setattr(jobs, "KEPT_BYTES", 1)
    made.result("d", LONG_S)
    assert made.result("a", LONG_S) is not first


@pytest.mark.world
def test_an_error_and_a_killed_process_do_not_last(made: Jobs[str, str]) -> None:
    with pytest.raises(ValueError, match="why"):
        made.result("fail why", LONG_S)
    with pytest.raises(BrokenProcessPool):
        made.result("die", LONG_S)
    assert made.result("x", LONG_S) == "x" * 10


def test_pages_are_made_in_worker_processes(swept: Path) -> None:
    """With numpy and scipy, which those that only run seeds do not have."""
    made: Jobs[RunTask | SweepTask, MadePage] = Jobs(carry_out, lambda page: len(page.text))
    try:
        page = made.result(SweepTask("report", str(swept), ""), LONG_S)
        film = made.result(RunTask("film", RunName(str(swept), True, 0, 0, 0)), LONG_S)
    finally:
        made.close()
    assert page is not None
    assert "Modes in pairs" in page.text
    assert film is not None
    assert film.is_film
    assert "seed 0: " in film.text


def test_a_page_says_that_it_is_being_made_or_has_to_wait(swept: Path) -> None:
    class Slow:
        """Stands in for `Jobs`."""

        is_busy = False

        def result(self, _task: object) -> None:
            if self.is_busy:
                raise BusyError

    site, slow = Site(str(swept)), Slow()
    site.jobs = slow  # type: ignore[assignment]
    path = f"{site.answer('/', '').location}0-0-0/film"
    answer = site.answer(path, "")
    assert (answer.status, "the page comes by itself" in answer.text) == (200, True)
    assert '<meta http-equiv="refresh" content="2">' in answer.text
    slow.is_busy = True
    answer = site.answer(path, "")
    assert (answer.status, '<meta http-equiv="refresh" content="2">' in answer.text) == (BUSY, True)


def test_what_cannot_be_made_is_said(swept: Path) -> None:
    made = carry_out(RunTask("film", RunName(str(swept), True, 0, 0, 999)))
    assert made.is_refused
    assert "seed 999 is outside the sweep" in made.text
    site = Site(str(swept))
    key = site.answer("/", "").location

    class Refusing:
        """Stands in for `Jobs`."""

        def result(self, _task: object) -> MadePage:
            return made

    site.jobs = Refusing()  # type: ignore[assignment]
    assert site.answer(f"{key}0-0-999/film", "").status == REFUSED
