"""What the actor makes of time, of sessions and of what the simulation had come to, without brokers."""

from __future__ import annotations

import os
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from reports.confirm.acting import Actor, NotBroughtError, size_of
from reports.confirm.actions import ACTIONS
from reports.confirm.history import State
from reports.confirm.milestones import Milestone
from reports.confirm.proxy import Link
from scenarios.format.scenario import Pattern, ScriptLine
from scenarios.single.script import RulesInForce
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def actor_of(**fields: Any) -> Any:
    """As much of an actor as a method needs."""
    cluster = SimpleNamespace(time_s=12.0, paced_ms=lambda ms: ms // 5, release=SimpleNamespace(kraft=False))
    return SimpleNamespace(cluster=cluster, config={"sim.supervisor.restart.ms": 10_000}, _timers=[], **fields)


@pytest.mark.parametrize(("ended_s", "next_s"), [(12.0, 14.0), (11.5, 13.5), (3.0, 13.0), (2.0, 12.0)])
def test_what_ended_is_tried_again_at_the_next_of_its_times(ended_s: float, next_s: float) -> None:
    started: list[int] = []
    actor = actor_of(start=started.append)
    Actor._try_again(actor, 2, ended_s)
    ((at_s, work),) = actor._timers
    assert at_s == next_s
    work()
    assert started == [2]


@pytest.mark.parametrize(
    ("recovered", "session", "kraft", "waits"),
    [(True, {2}, False, True), (False, {2}, False, False), (True, set(), False, False), (True, {2}, True, False)],
)
def test_only_who_was_refused_waits_for_the_session(
    recovered: bool, session: set[int], kraft: bool, waits: bool
) -> None:
    tried: list[int] = []
    observer = SimpleNamespace(has_recovered=lambda _: recovered, in_session=session)
    actor = actor_of(observer=observer, _healing=False, _refused={}, _try_again=lambda broker, _: tried.append(broker))
    actor.cluster.release.kraft = kraft
    actor.cluster.node = lambda _: None
    Actor._ended_by_itself(actor, 2)
    assert actor._refused == ({2: 12.0} if waits else {})
    assert tried == ([] if waits else [2])


def test_a_milestone_is_waited_for_until_one_was_in_vain() -> None:
    answers: list[bool] = []

    def wait(over: Any, _: float) -> bool:
        assert actor._behind
        answers.append(over([]))
        return answers[-1]

    states = [State(1, 0, (1, 2)), State(1, 0, (1,))]
    actor = actor_of(story=SimpleNamespace(met=[("a", 3), ("b", None)]), _wait=wait, _behind=False, _in_vain=False)
    actor.cluster.history = SimpleNamespace(states=states)
    Actor._reach(actor, Milestone(2, 1))
    assert answers == []
    Actor._reach(actor, Milestone(2, 2))
    Actor._reach(actor, Milestone(2, 2))
    assert answers == [False]
    assert not actor._behind
    actor._in_vain = False
    Actor._reach(actor, Milestone(3, 1))
    assert answers == [False, False]


def test_a_line_that_waits_for_nothing_forgets_nothing_that_the_next_one_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The broker followed while the partition was made."""
    done: list[str] = []
    for do in ("pause-consumer", "produce", "kill"):
        monkeypatch.setitem(ACTIONS, do, lambda *_, do=do: done.append(do))
    when = Pattern("follow", broker=2)
    script = (ScriptLine("pause-consumer"), ScriptLine("produce", when=when), ScriptLine("kill", when=when))
    actor = actor_of(
        scenario=SimpleNamespace(script=script),
        batches={},
        look=lambda: None,
        wait_for=lambda _fits, _seconds: False,
        _note=lambda _: None,
        _reach=lambda _: None,
        _rules=RulesInForce(MODES["kip320"].rules, {}),
        _seen=[{"step": "follow", "broker": 2, "offset": 0, "leader_epoch": 0}],
    )
    actor._has_happened = lambda pattern: Actor._has_happened(actor, pattern)
    actor._fits = lambda pattern: Actor._fits(actor, pattern)
    with pytest.raises(NotBroughtError, match="line 3 of the script waited in vain for 'follow broker=2'"):
        Actor._play(actor, [Milestone()] * 3)
    assert done == ["pause-consumer", "produce"]


def test_a_process_starts_while_it_hears_the_control_plane() -> None:
    links = {(2, 0): Link(), (0, 2): Link()}
    control = SimpleNamespace(id=0, alive=True, paused=False)
    actor = actor_of()
    actor.cluster.control, actor.cluster.proxies = control, SimpleNamespace(link=lambda *ends: links[ends])
    node: Any = SimpleNamespace(id=2)
    assert Actor._hears_control(actor, node)
    links[0, 2].cut = True
    assert not Actor._hears_control(actor, node)
    links[0, 2].cut, control.paused = False, True
    assert not Actor._hears_control(actor, node)


def test_a_log_that_is_deleted_while_the_disk_is_measured_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for broker in (1, 2):
        (tmp_path / f"{broker}" / "partition-0").mkdir(parents=True)
        (tmp_path / f"{broker}" / "partition-0" / "0.log").write_bytes(b"x" * 8_192)
    whole = size_of(tmp_path)
    walk = os.walk

    def walked(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        for place, folders, names in walk(folder):
            if place.endswith("1/partition-0"):
                shutil.rmtree(place)
            yield place, folders, names

    monkeypatch.setattr(os, "walk", walked)
    assert size_of(tmp_path) == whole // 2 > 0
