"""Cases are judged once each, in order, in any number of processes, and again never."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scenarios.campaign.campaign import Campaign
from scenarios.campaign.record import Record
from scenarios.campaign.runner import LocalRunner
from sim.errors import InputError, StorageError, UnavailableError


def square(folder: Path | None, case: int) -> dict[str, Any]:
    """The square of a number; with a folder, a file tells that it was asked."""
    if folder is not None:
        with (folder / "asked").open("a") as file:
            file.write(f"{case}\n")
    return {"square": case * case}


def dies_once(folder: Path, case: int) -> int:
    mark = folder / f"died-{case}"
    if case == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return case


def dies(_case: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def asked(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "asked").read_text().split()]


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_the_order_of_the_cases_and_equal_cases_are_judged_once(processes: int, tmp_path: Path) -> None:
    with LocalRunner(processes) as runner:
        found = list(Campaign(partial(square, tmp_path), runner).run([3, 1, 3, 2, 1]))
    assert [case for case, _ in found] == [3, 1, 3, 2, 1]
    assert all(result == {"square": case * case} for case, result in found)
    assert sorted(asked(tmp_path)) == [1, 2, 3]


def test_no_case_is_judged_after_the_last_one_that_is_needed(tmp_path: Path) -> None:
    campaign = Campaign(partial(square, tmp_path), LocalRunner())
    found = list(campaign.run(range(10), until=lambda _, result: result["square"] >= 4))
    assert [case for case, _ in found] == [0, 1, 2] == asked(tmp_path)
    assert [case for case, _ in campaign.run(range(10), until=lambda case, _: case == 1)] == [0, 1]
    assert asked(tmp_path) == [0, 1, 2]


def test_a_record_resumes_also_after_half_a_line(tmp_path: Path) -> None:
    about = {"mode": "hw"}
    with Record(tmp_path / "kept", "squares", about) as record:
        assert [case for case, _ in Campaign(partial(square, tmp_path), LocalRunner(), record).run([1, 2])] == [1, 2]
    with record.path.open("a") as file:
        file.write('[3, {"squ')
    with Record(tmp_path / "kept", "squares", about) as record:
        found = list(Campaign(partial(square, tmp_path), LocalRunner(), record).run([0, 1, 2, 3]))
    assert [result["square"] for _, result in found] == [0, 1, 4, 9]
    assert asked(tmp_path) == [1, 2, 0, 3]
    assert [json.loads(line)[0] for line in record.path.read_text().splitlines()[1:]] == [1, 2, 0, 3]


def test_a_record_of_something_else_is_refused_and_stays(tmp_path: Path) -> None:
    with Record(tmp_path, "squares", {"mode": "hw"}) as record:
        record.add(1, 1)
    text = record.path.read_text()
    with pytest.raises(InputError, match="mode = 'hw', and this one has 'elr': name another folder"):
        Record(tmp_path, "squares", {"mode": "elr"})
    record.path.write_text(text + "[]\n")
    with pytest.raises(InputError, match="is damaged"):
        Record(tmp_path, "squares", {"mode": "hw"})
    record.path.write_text("mine\n")
    with pytest.raises(InputError, match="was not written by highwater"):
        Record(tmp_path, "squares", {"mode": "hw"})
    assert record.path.read_text() == "mine\n"


def test_a_record_of_another_judge_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judges are no part of the packages whose code determines a row."""
    with Record(tmp_path, "squares", {}):
        pass
    monkeypatch.setattr("scenarios.campaign.record.judging_version", lambda: "another")
    with pytest.raises(InputError, match=r"code_version = '[0-9a-f]{16}', and this one has 'another'"):
        Record(tmp_path, "squares", {})


def test_one_process_at_a_time_has_a_record(tmp_path: Path) -> None:
    with Record(tmp_path, "squares", {}), pytest.raises(UnavailableError, match="another process is at work"):
        Record(tmp_path, "squares", {})
    with Record(tmp_path, "squares", {}) as record:
        assert record.results == {}


def test_a_full_disk_keeps_what_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write

    def half(file: int, content: bytes) -> int:
        if monkeyed:
            raise OSError(28, "No space left on device")
        monkeyed.append(True)
        return whole(file, content[:3])

    with Record(tmp_path, "squares", {}) as record:
        record.add(1, 1)
        monkeyed: list[bool] = []
        monkeypatch.setattr(os, "write", half)
        with pytest.raises(StorageError, match="No space left"):
            record.add(2, 4)
        monkeypatch.undo()
        record.add(3, 9)
    with Record(tmp_path, "squares", {}) as record:
        assert record.results == {"1": 1, "3": 9}


@pytest.mark.world
def test_cases_of_a_killed_process_are_judged_again(tmp_path: Path) -> None:
    with LocalRunner(2) as runner:
        assert list(runner.map(partial(dies_once, tmp_path), range(8))) == list(range(8))


@pytest.mark.world
def test_processes_that_are_always_killed_end_it() -> None:
    with LocalRunner(2) as runner, pytest.raises(UnavailableError, match="killed 4 times"):
        list(runner.map(dies, range(2)))
