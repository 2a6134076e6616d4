from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from highwater.lab.hunt import acting, hunter, page
from highwater.lab.hunt import state as states
from highwater.lab.hunt.arms import arms, next_arm
from highwater.lab.hunt.examining import FirstLook, ShrunkFailure
from highwater.lab.hunt.hunter import ArmResults, Clock, Hunt
from highwater.lab.hunt.request import HuntRequest
from highwater.lab.hunt.state import FINDING, ArmState, FailureCause, HuntState
from highwater.lab.zoo.findings import known
from reports.evidence import triage
from sim.errors import StorageError
from sim.protocol.modes import mode
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from highwater.lab.hunt.arms import Arm

ABOUT = {"kafka": "4.4.0", "mode": "elr-4.3", "seed": 0, "hidden": [], "acts": True, "build": "", "code": "0123"}
ARMS = arms(mode("elr-4.3"), ["reassignments", "operations"])


class Killed(BaseException):
    """The end of the process, in place of a signal."""


class Steady(Clock):
    """A second for each look at the clock."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def wall_s(self) -> float:
        self.now_s += 1
        return self.now_s

    def cpu_s(self) -> float:
        return self.now_s


PLAN = '{"schema_version": 1, "scenario": {}}'


def number(*words: object) -> int:
    return int.from_bytes(blake2b(repr(words).encode(), digest_size=4).digest())


def drawn_sweep(arm: Arm, first: int, count: int) -> ArmResults:
    """Every seventh seed fails; of control arms none does."""
    seeds = range(first, first + count)
    hits = [(seed, "committed-loss") for seed in seeds if number(arm.name, seed) % 7 == 0 and not arm.control]
    return ArmResults(count, 1_000 * count, len(hits), 0, 0, hits, [])


def drawn_look(arm: Arm, seed: int, kind: str, _known: object) -> FirstLook:
    cause = number(arm.name, seed, "cause") % 30
    return FirstLook("stale-log-start" if cause > 20 else "", f"{kind} {cause}")


def drawn_shrink(_arm: Arm, _seed: int, kind: str, first: FirstLook, _known: object, *, acts: bool) -> ShrunkFailure:
    name = first.known or first.looks.partition(" ")[2]
    known_as = FINDING if first.known else ""
    script = 'description = """\nShrunk from a run of chaos, seed 1.\n"""\n' * acts
    story = ("0 s: it dies",)
    return ShrunkFailure(f"{kind} {name}", name, known_as, ("a=b",), (), ("kill",), story, "run", PLAN, script)


@pytest.fixture
def stubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunter, "sweep", drawn_sweep)
    monkeypatch.setattr(hunter, "look", drawn_look)
    monkeypatch.setattr(hunter, "shrink_failure", drawn_shrink)


def confirmed(_script: Path, _kafka: str, _mode: str, _rules: object, _note: object) -> dict[str, str]:
    return {"result": acting.CONFIRMED, "told": ""}


def hunt(folder: Path, *, lacks: str = "no Java", **more: Any) -> Hunt:
    state = states.load(folder, ABOUT)
    return Hunt(folder, state, lambda _: ARMS, known(), "4.4.0", lacks, clock=Steady(), page=page.write, **more)


def steps(folder: Path, most: int, **more: Any) -> HuntState:
    """Go on until so many steps are done in the whole hunt."""
    with states.alone(folder):
        one = hunt(folder, **more)
        while one.state.steps < most:
            one.step()
        page.write(one)
        return one.state


def timeless(state: HuntState) -> dict[str, Any]:
    told = state.to_json()
    del told["times"]
    return told


def files(folder: Path) -> dict[str, str]:
    """What a hunt has written, but for its times."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_text(encoding="utf-8") for name, path in found.items() if not name.startswith("hunt.")}


@pytest.mark.usefixtures("stubbed")
def test_thirty_kills_lose_nothing_and_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = steps(tmp_path / "whole", 60, lacks="", act=confirmed)
    rng, killed = Random(3), 0
    left = 0

    def dying(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed
            return function(*given, **named)

        return call

    for owner, name in ((os, "fsync"), (hunter, "sweep"), (hunter, "look"), (hunter, "shrink_failure")):
        monkeypatch.setattr(owner, name, dying(getattr(owner, name)))
    monkeypatch.setattr(Path, "replace", dying(Path.replace))
    folder = tmp_path / "killed"
    while killed < 30:
        left = rng.randrange(1, 25)
        try:
            with states.alone(folder):
                one = hunt(folder, lacks="", act=dying(confirmed))
                while one.state.steps < 60:
                    one.step()
            shutil.rmtree(folder)  # It was quicker: begin again.
        except Killed:
            killed += 1
    left = 0
    assert timeless(steps(folder, 60, lacks="", act=confirmed)) == timeless(whole)
    assert files(folder) == files(tmp_path / "whole")
    assert not list(folder.rglob(".*"))


@pytest.mark.usefixtures("stubbed")
def test_failures_are_counted_once_each(tmp_path: Path) -> None:
    state = steps(tmp_path, 200)
    while state.pending:
        state = steps(tmp_path, state.steps + 1)
    counted = sum(cause.count for cause in state.causes.values())
    waiting = sum(sum(entry[2].values()) for entry in state.provisional.values())
    assert counted + waiting == sum(arm.inside for arm in state.arms.values()) > 50
    assert {cause.known for cause in state.causes.values()} == {"", FINDING}
    shrunk = sum(cause.shrunk for cause in state.causes.values())
    assert shrunk < counted


def until(folder: Path, runs: int, **more: Any) -> dict[str, Any]:
    """The state after so many runs, when nothing is pending, without its number of steps."""
    state = steps(folder, 1, **more)
    while state.pending or sum(arm.runs for arm in state.arms.values()) < runs:
        state = steps(folder, state.steps + 1, **more)
    told = timeless(state)
    del told["steps"]
    return told


@pytest.mark.world
@pytest.mark.usefixtures("stubbed")
def test_the_same_from_three_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def here(_self: Hunt, work: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> tuple[float, list[Any]]:
        return 0.0, [work(*task) for task in tasks]

    one = until(tmp_path / "one", 3_000)
    monkeypatch.setattr(Hunt, "_run_tasks", here)
    assert until(tmp_path / "three", 3_000, processes=3) == one


@pytest.mark.usefixtures("stubbed")
def test_the_clock_ends_a_hunt_and_the_same_command_goes_on(tmp_path: Path) -> None:
    with states.alone(tmp_path):
        assert hunt(tmp_path).run(30.0)
    first = states.load(tmp_path, ABOUT)
    assert first.times["wall"] >= 30
    with states.alone(tmp_path):
        assert hunt(tmp_path).run(60.0)
    assert states.load(tmp_path, ABOUT).steps > first.steps
    assert {states.MARKDOWN, states.HTML, states.STATE} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.usefixtures("stubbed")
def test_an_interrupted_step_is_not_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> ArmResults:
        raise KeyboardInterrupt

    before = steps(tmp_path, 5)
    monkeypatch.setattr(hunter, "sweep", interrupted)
    with states.alone(tmp_path):
        one = hunt(tmp_path)
        assert not one.run(1e9)
    assert one.state == states.load(tmp_path, ABOUT)
    assert one.state.steps >= before.steps


@pytest.mark.usefixtures("stubbed")
def test_a_hunt_goes_on_after_its_first_step_was_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> ArmResults:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, states.alone(tmp_path):
        patch.setattr(hunter, "sweep", interrupted)
        assert not hunt(tmp_path).run(1e9)
    assert (tmp_path / states.MARKDOWN).is_file()
    with states.alone(tmp_path):
        assert hunt(tmp_path).run(30.0)
    assert states.load(tmp_path, ABOUT).steps > 0


@pytest.mark.usefixtures("stubbed")
def test_a_full_disk_ends_a_hunt_with_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = steps(tmp_path, 5)

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with states.alone(tmp_path), pytest.raises(StorageError, match="No space left"):
        hunt(tmp_path).run(1e9)
    assert timeless(states.load(tmp_path, ABOUT)) == timeless(before)


@pytest.mark.usefixtures("stubbed")
def test_new_causes_are_acted_out_three_times(tmp_path: Path) -> None:
    state = steps(tmp_path, 80, lacks="", act=confirmed)
    assert {len(ticket.runs) for ticket in state.written.values()} <= {0, 1, 2, 3}
    assert [ticket for ticket in state.written.values() if len(ticket.runs) == 3]


@pytest.mark.usefixtures("stubbed")
@pytest.mark.parametrize("limit_s", [100.0, 400.0])
def test_runs_on_brokers_take_half_of_the_time_at_most(limit_s: float, tmp_path: Path) -> None:
    with states.alone(tmp_path):
        one = hunt(tmp_path, lacks="")

        def act(*_: object) -> dict[str, str]:
            assert isinstance(one.clock, Steady)
            one.clock.now_s += 50
            return {"result": acting.CONFIRMED, "told": ""}

        one.act = act
        one.run(limit_s)
    acted_s = one.state.times.get(hunter.BROKERS_WALL, 0.0)
    assert acted_s <= limit_s / 2
    assert (acted_s > 0) == (limit_s / 2 > hunter.FIRST_RUN_S)
    assert one.left_out > 0
    assert "waited for brokers when the time was over" in (tmp_path / states.MARKDOWN).read_text(encoding="utf-8")


def differs(*explained: str, differ: int = 3) -> dict[str, Any]:
    told = {"subject": "PartitionChangeBuilder", "cases": 160_000, "differ": differ, "smallest": "cancel", "lines": []}
    told["release"] = "4.4.0"
    return {**told, "explained": list(explained), "problem": ""}


def test_rules_that_explain_most_classes_are_hunted_with() -> None:
    oracle = [
        differs("elr_outside_assignment=dropped", "isr_floor=min-isr"),
        differs("elr_outside_assignment=dropped"),
        differs("reassignment_completes=min-isr", differ=0),
        differs(),
    ]
    assert hunter.changed_rules(HuntState(ABOUT, oracle=oracle)) == {"elr_outside_assignment": "dropped"}


@pytest.mark.usefixtures("stubbed")
def test_the_classes_of_a_build_are_compared_first(tmp_path: Path) -> None:
    about = {**ABOUT, "build": "1f"}
    rules: list[dict[str, str]] = []

    def arms_with(changed: Any) -> Any:
        rules.append(dict(changed))
        return ARMS

    def build(subject: str) -> dict[str, Any]:
        return {**differs("elr_outside_assignment=dropped", differ=int(subject == "b")), "subject": subject}

    with states.alone(tmp_path):
        state = states.load(tmp_path, about)
        one = Hunt(tmp_path, state, arms_with, known(), "./build", "no Java", compare=build, subjects=["a", "b"])
        one.step()
        one = Hunt(tmp_path, states.load(tmp_path, about), arms_with, known(), "./build", "", compare=build)
        one.subjects = ["a", "b"]
        one.step()
        assert not one.state.arms
        one.step()
        page.write(one)
    assert [entry["subject"] for entry in one.state.oracle] == ["a", "b"]
    assert rules == [{}, {}, {}, {"elr_outside_assignment": "dropped"}]
    text = (tmp_path / states.MARKDOWN).read_text(encoding="utf-8").replace("\\", "")
    assert "b: 1 of 160,000 cases differ; the smallest: cancel. As with rule elr_outside" in text
    assert "The random runs follow the mode with elr_outside_assignment=dropped" in text


@pytest.mark.usefixtures("stubbed")
def test_another_failure_of_a_cause_is_tried_where_brokers_differ(tmp_path: Path) -> None:
    acted: list[str] = []

    def act(script: Path, *_: object) -> dict[str, str]:
        acted.append(script.parent.name)
        good = "-3" in script.parent.name
        return {"result": acting.CONFIRMED if good else acting.DIFFERS, "told": "a log"}

    state = steps(tmp_path, 250, lacks="", act=act)
    retried = [ticket for ticket in state.written.values() if len(ticket.earlier) == hunter.RETRIES]
    assert retried
    for ticket in retried:
        assert ticket.earlier == ["not confirmed: a log"] * 2
        assert (tmp_path / states.FINDINGS / ticket.folder / states.SCRIPT).is_file()
        assert ticket.folder.endswith("-3")
        assert acted.count(ticket.folder) == len(ticket.runs) <= 3


@pytest.mark.usefixtures("stubbed")
def test_what_brokers_were_not_brought_to_comes_last(tmp_path: Path) -> None:
    acted: list[str] = []

    def act(script: Path, *_: object) -> dict[str, str]:
        acted.append(script.parent.name)
        return {"result": acting.UNDECIDED if script.parent.name == "1" else acting.CONFIRMED, "told": "slow"}

    with states.alone(tmp_path):
        one = hunt(tmp_path, lacks="", act=act)
        while len(one.state.written) < 3:
            one.step()
        one.state.times = {"wall": 1e9}
        acted.clear()
        for entry in one.state.written.values():
            entry.runs.clear()
        for _ in range(9):
            one.step()
    assert acted == ["1", "2", "2", "2", "3", "3", "3", "1", "1"]


def test_control_arms_get_their_share() -> None:
    state = HuntState(ABOUT)
    for _ in range(400):
        arm = next_arm(ARMS, state)
        state.arms.setdefault(arm.name, ArmState(0)).events += 1_000
    control = sum(done.events for name, done in state.arms.items() if ARMS[name].control)
    assert control == pytest.approx(40_000, rel=0.05)
    assert set(state.arms) == set(ARMS)


def test_an_arm_that_finds_rare_causes_is_run_more() -> None:
    state = HuntState(ABOUT)
    rare = "operations/elr-4.3"
    state.causes = {str(place): FailureCause("", "", "", 1, 1, rare, 0, 0) for place in range(3)}
    for _ in range(1_000):
        state.arms.setdefault(next_arm(ARMS, state).name, ArmState(0)).events += 1_000
    assert state.arms[rare].events > 2 * state.arms["reassignments/elr-4.3"].events > 0


def test_runs_without_faults_have_none() -> None:
    quiet = next(arm for name, arm in ARMS.items() if name.endswith("/no-faults"))
    swept = hunter.sweep(quiet, 0, 2)
    assert (swept.inside, swept.outside, swept.errors) == (0, 0, [])
    assert swept.events > 0


@pytest.mark.world
def test_a_hunt_shrinks_what_a_later_release_repairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunter, "SEEDS", 1)
    monkeypatch.setattr(triage, "SHRINK_RUNS", 60)
    asked = HuntRequest("0.10.2.2", tmp_path, scenarios=["power"], seed=117, repeat=0)
    with asked.prepare(lambda _: None) as one:
        while not one.state.causes:
            one.step()
        page.write(one)
    (cause,) = one.state.causes.values()
    assert (cause.known, cause.name) == ("repaired", "truncation to the high watermark (KAFKA-1211, KIP-101)")
    assert "a later release repairs it" in (tmp_path / states.MARKDOWN).read_text(encoding="utf-8")


DRIVER = """
import sys
from highwater.lab.hunt import hunter
hunter.SEEDS = 2
from highwater.cli.main import main
sys.exit(main())
"""


@pytest.mark.world
def test_killed_processes_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [sys.executable, "-c", DRIVER, "hunt", "--kafka", "4.4.0", "--scenarios", "rolling", "--seed", "19"]
    words += ["--confirm", "0", "--for", "1h", "--output", str(tmp_path / "killed"), "-q"]
    for _ in range(3):
        process = subprocess.Popen(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        before = _steps(tmp_path / "killed")
        ends_s = time.monotonic() + 60
        while _steps(tmp_path / "killed") < before + 2 and time.monotonic() < ends_s:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
    monkeypatch.setattr(hunter, "SEEDS", 2)
    asked = HuntRequest("4.4.0", tmp_path / "whole", scenarios=["rolling"], seed=19, repeat=0)
    with asked.prepare(lambda _: None) as one:
        while one.state.steps < _steps(tmp_path / "killed"):
            one.step()
    killed = states.load(tmp_path / "killed", one.state.about)
    assert timeless(killed) == timeless(one.state)
    assert killed.steps >= 3


def _steps(folder: Path) -> int:
    try:
        return int(json.loads((folder / states.STATE).read_text(encoding="utf-8"))["steps"])
    except FileNotFoundError:
        return 0
