"""What the actor makes of time, of sessions and of what the simulation had come to, without brokers."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from highwater.lab.confirm.comparison import DecidedChange
from highwater.lab.confirm.files import Disk
from highwater.lab.confirm.history import PartitionSnapshot
from highwater.lab.confirm.milestones import ENDING, Milestone
from highwater.lab.confirm.partitions import KafkaPartition
from highwater.lab.confirm.producer import Send
from highwater.lab.confirm.proxy import ProxyLink
from highwater.lab.confirm.real_run import RealRun
from highwater.lab.confirm.script_runner import Actor, NotBroughtError, size_of
from scenarios.format.scenario import Pattern, ScriptLine, StoryLine
from scenarios.single.script import RulesInForce, StoryMatcher
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sim.history.trace import Shown


def actor_of(**fields: Any) -> Any:
    """As much of an actor as a method needs."""
    cluster = SimpleNamespace(
        time_s=12.0, loading_s=3.0, paced_ms=lambda ms: ms // 5, release=SimpleNamespace(kraft=False)
    )
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


FIRST, SHRUNK = DecidedChange(1, 0, (1, 2), None, None), DecidedChange(1, 0, (1,), None, None)
BOTH, ALONE = PartitionSnapshot(1, 0, (1, 2)), PartitionSnapshot(1, 0, (1,))
ONLY = KafkaPartition()
TRUNCATES = Pattern("truncate", broker=1, offset=2)


def come_to(
    states: tuple[PartitionSnapshot, ...] = (BOTH, ALONE),
    disks: dict[int, Disk] | None = None,
    steps: list[Shown] | None = None,
    *,
    to_hw: bool = True,
    acked: bool = False,
) -> Any:
    """An actor whose brokers have come so far, and come no further. The story tells of one truncation."""
    actor: Any = Actor.__new__(Actor)
    release, found = SimpleNamespace(truncates_to_hw=to_hw), list(states)
    held = disks or {}
    actor.cluster = SimpleNamespace(
        partitions=[ONLY],
        history=SimpleNamespace(states=found, states_of=lambda _: found),
        disk=lambda broker, _: held[broker],
        release=release,
    )
    actor.batches = {"m1": 0}
    sends = [Send("m1", 0, 1, -1, offset=0 if acked else None)]
    actor.clients_of = {ONLY.name: SimpleNamespace(sends=sends)}
    actor.story = StoryMatcher((StoryLine(TRUNCATES),), RulesInForce(MODES["hw"].rules, {}), actor.batches)
    actor.observer = SimpleNamespace(steps=[{"t": 1, "broker": 1, **step} for step in steps or []])
    for step in actor.observer.steps:
        actor.story.observe(step)
    actor.acted = RealRun()
    actor._behind = actor._otherwise = False
    actor._other_hws = []
    actor.waits = []

    def wait(over: Any, _: float) -> bool:
        assert actor._behind
        actor.waits.append(over([]))
        return bool(actor.waits[-1])

    actor._wait = wait
    return actor


def test_a_broker_that_is_shutting_down_starts_once_it_is_down() -> None:
    actor: Any = Actor.__new__(Actor)
    node = SimpleNamespace(alive=True, stopped=True, id=2)
    started: list[int] = []
    proxies = SimpleNamespace(silence=lambda *_: None, stall=lambda *_, **__: None)
    actor.cluster = SimpleNamespace(
        node=lambda _: node, start=lambda one: started.append(one.id), proxies=proxies, brokers={2: node}
    )
    actor.observer = SimpleNamespace(add_step=lambda *_, **__: None)
    actor._awaiting_end, actor._scripted = {}, None
    actor.start(2)
    assert started == []
    node.alive = False
    actor._ended([{"step": "shutdown", "broker": 2, "t": 0}])
    assert started == [2]


@pytest.mark.parametrize(
    ("alive", "up", "done"),
    [
        (True, True, ["stop", "repair", "start", "more"]),
        (True, False, ["kill", "repair", "start"]),
        (False, False, ["repair", "start"]),
    ],
)
def test_half_written_files_are_repaired_while_no_process_runs(alive: bool, up: bool, done: list[str]) -> None:
    actor: Any = Actor.__new__(Actor)
    node = SimpleNamespace(alive=alive, stopped=False, id=2, half_written={"file": b""})
    found: list[str] = []

    def kill(_: list[int]) -> None:
        found.append("kill")
        node.alive = False

    actor.cluster = SimpleNamespace(
        node=lambda _: node,
        kill=kill,
        stop=lambda _: found.append("stop"),
        repair_files=lambda _: found.append("repair"),
    )
    actor.observer = SimpleNamespace(is_up=lambda _: up)
    actor.start = lambda _: found.append("start")
    actor._awaiting_end, actor._scripted = {}, None
    actor.repair_files(2)
    if node.alive:
        actor.when_down(2, lambda: found.append("more"))
        actor._ended([{"step": "shutdown", "broker": 2, "t": 0}])
    assert found == done


def test_a_stall_ends_when_the_partition_has_changed_as_often_as_simulated_and_some_time_has_passed() -> None:
    actor = come_to(states=(BOTH,))
    actor._timers, actor._after_changes, actor._milestone = [], [], Milestone(over=(2, 3_000_000))
    actor.cluster.time_s, actor.cluster.paced_ms = 10.0, lambda ms: ms // 3
    ended: list[bool] = []
    actor.later_as_simulated(lambda: ended.append(True))
    actor._tick_timers()
    actor.cluster.history.states.append(ALONE)
    actor.cluster.time_s = 20.0
    actor._tick_timers()
    actor.cluster.time_s = 20.9
    actor._tick_timers()
    assert ended == []
    actor.cluster.time_s = 21.0
    actor._tick_timers()
    actor._tick_timers()
    assert ended == [True]


def test_the_script_waits_only_for_missing_milestones() -> None:
    actor = come_to(disks={1: Disk(2, 1)}, steps=[{"step": "truncate", "offset": 2}])
    actor._reach(3, Milestone((FIRST, SHRUNK), 1, {1: Disk(2, 1)}))
    assert actor.waits == []
    assert not actor._behind


@pytest.mark.parametrize("acked", [True, False])
def test_a_line_waits_for_acknowledgements_but_brokers_may_send_none(acked: bool) -> None:
    actor = come_to(acked=acked)
    actor._reach(3, Milestone(acked=frozenset({0})))
    assert actor.waits == ([] if acked else [False])
    assert not actor._behind


@pytest.mark.parametrize(
    ("do", "before", "end", "noted"),
    [
        ("kill", (FIRST,), (FIRST, SHRUNK), True),  # The ISR shrinks after the line in the simulation, and has here.
        ("kill", (FIRST, SHRUNK), (FIRST, SHRUNK), False),
        ("kill", (FIRST,), (FIRST,), False),  # The simulation never comes into that state: a difference.
        ("produce", (FIRST,), (FIRST, SHRUNK), False),
    ],
)
def test_a_fault_that_finds_a_later_state_is_noted(
    do: str, before: tuple[DecidedChange, ...], end: tuple[DecidedChange, ...], noted: bool
) -> None:
    actor = come_to()
    actor._note_ahead(3, do, Milestone(before), Milestone(end))
    said = "line 3 of the script found the partition in a state that comes later: leader 1 epoch 0 ISR 1"
    assert actor.acted.unlike == ([said] if noted else [])


def test_a_fault_that_finds_a_batch_acknowledged_too_early_is_noted() -> None:
    actor = come_to(acked=True)
    actor._note_unlike(3, "kill", Milestone(acked=frozenset({0})), [])
    assert actor.acted.unlike == []
    actor._note_unlike(3, "kill", Milestone(), [])
    assert actor.acted.unlike == ["line 3 of the script found m1 acknowledged already"]


@pytest.mark.parametrize(
    ("milestone", "missing"),
    [
        (
            Milestone((FIRST, SHRUNK, FIRST)),
            "the partition has gone through 2 states of 3; next: leader 1 epoch 0 ISR 1 2",
        ),
        (Milestone(told=1), "story: 'truncate broker=1 offset=2' has not come"),
        (Milestone(disks={1: Disk(3, 1)}), "the log of broker 1 ends at 2, not 3"),
        (Milestone(disks={1: Disk(2, 2)}), "the HW file of broker 1 says 1, not 2"),
    ],
)
def test_brokers_that_have_done_less_are_not_brought_to_the_story(milestone: Milestone, missing: str) -> None:
    actor = come_to(disks={1: Disk(2, 1)})
    with pytest.raises(NotBroughtError, match="line 3 of the script waited 30 s in vain: ") as error:
        actor._reach(3, milestone)
    assert str(error.value).endswith(f": {missing}")
    assert actor.waits == [False]


def test_hw_files_are_waited_for_only_if_they_decide_truncation() -> None:
    actor = come_to(disks={1: Disk(2, 1)}, to_hw=False)
    actor._reach(3, Milestone(disks={1: Disk(2, 2)}))
    assert actor.waits == []


APPENDED: Shown = {"step": "append", "offset": 2, "last": 2}


@pytest.mark.parametrize(
    ("states", "steps", "milestone"),
    [
        ((BOTH, PartitionSnapshot(2, 1, (2,))), [], Milestone((FIRST, SHRUNK, FIRST))),
        ((BOTH, ALONE), [{"step": "truncate", "offset": 1}], Milestone(told=1)),
        ((BOTH, ALONE), [APPENDED, {"step": "truncate", "offset": 2}], Milestone(disks={1: Disk(3, 0)})),
    ],
)
def test_brokers_that_have_done_otherwise_differ(
    states: tuple[PartitionSnapshot, ...], steps: list[Shown], milestone: Milestone
) -> None:
    """Another state of the partition, another truncation, a log that was cut: the comparison is to tell, at once."""
    actor = come_to(states, {1: Disk(2, 1)}, steps)
    actor._reach(3, milestone)
    actor._reach(4, milestone)
    assert actor.waits == [False]


def test_a_log_that_was_deleted_already_is_not_waited_for() -> None:
    actor = come_to(disks={1: Disk(0, 0)}, steps=[APPENDED, {"step": "deleted"}])
    actor._reach(3, Milestone(disks={1: Disk(3, 0)}))
    assert actor.waits == []
    with pytest.raises(NotBroughtError, match="the log of broker 1 ends at 0, not 3"):
        come_to(disks={1: Disk(0, 0)}, steps=[{"step": "deleted"}, APPENDED])._reach(
            3, Milestone(disks={1: Disk(3, 0)})
        )


@pytest.mark.parametrize(
    "steps",
    [
        [{"step": "truncate", "offset": 2}],
        [{"step": "truncate", "offset": 2}, APPENDED],
        [APPENDED, {"step": "power-loss"}, {"step": "truncate", "offset": 2}],
        [APPENDED, {"step": "truncate", "offset": 2, "broker": 2}],
    ],
)
def test_a_log_that_is_short_though_nothing_was_truncated_is_late(steps: list[Shown]) -> None:
    actor = come_to(disks={1: Disk(2, 1)}, steps=steps)
    with pytest.raises(NotBroughtError, match="the log of broker 1 ends at 2, not 3"):
        actor._reach(3, Milestone(disks={1: Disk(3, 0)}))


@pytest.mark.parametrize(
    ("do", "held", "since", "to_hw", "unlike"),
    [
        ("kill", Disk(2, 1), [], True, []),
        ("kill", Disk(2, 2), [], True, ["line 3 of the script found HW 2 in broker 1's file, not 1"]),
        ("kill", Disk(2, 2), [], False, []),
        ("kill", Disk(3, 1), [APPENDED], True, ["line 3 of the script found broker 1's log up to 3, not 2"]),
        ("kill", Disk(3, 1), [], True, []),
        ("cut", Disk(3, 2), [APPENDED], True, ["line 3 of the script found broker 1's log up to 3, not 2"]),
        ("power-loss", Disk(1, 1), [], True, []),
        ("produce", Disk(3, 2), [APPENDED], True, []),
    ],
)
def test_what_faults_found_otherwise_by_when_it_was_written_is_noted(
    do: str, held: Disk, since: list[Shown], to_hw: bool, unlike: list[str]
) -> None:
    actor = come_to(disks={1: held}, to_hw=to_hw)
    ended = (1,) if do in ENDING else ()
    milestone = Milestone(left={1: Disk(2, 1)}, ended=ended)
    steps = [{"broker": 1, **step} for step in since]
    actor._note_unlike(3, do, milestone, steps)
    assert actor.acted.unlike == unlike
    actor._otherwise, actor.acted.unlike = True, []
    actor._note_unlike(3, do, milestone, steps)
    assert actor.acted.unlike == []


@pytest.mark.parametrize(
    ("to_hw", "truncated", "unlike"),
    [((1,), 2, True), ((1,), 1, False), ((1,), None, False), ((), 2, False)],
)
def test_another_hw_file_counts_with_leader_epochs_if_it_decided(
    to_hw: tuple[int, ...], truncated: int | None, unlike: bool
) -> None:
    steps = [] if truncated is None else [{"step": "truncate", "offset": truncated, "t": 9}]
    actor = come_to(disks={1: Disk(3, 2)}, steps=[{"step": "truncate", "offset": 2, "t": 3}, *steps], to_hw=False)
    actor.observer.now_us = 5
    actor._note_unlike(3, "kill", Milestone(left={1: Disk(3, 1)}, ended=(1,), to_hw=to_hw), [])
    assert actor.acted.unlike == []
    said = "line 3 of the script found HW 2 in broker 1's file, not 1"
    assert actor._gone_to_other_hws() == ([said] if unlike else [])


def test_a_line_without_a_wait_keeps_observed_steps_for_the_next() -> None:
    """The broker followed while the partition was made."""
    done: list[str] = []
    actions = {do: lambda *_, do=do: done.append(do) for do in ("pause-consumer", "produce", "kill")}
    when = Pattern("follow", broker=2)
    script = (ScriptLine("pause-consumer"), ScriptLine("produce", when=when), ScriptLine("kill", when=when))
    actor = actor_of(
        scenario=SimpleNamespace(script=script),
        _actions=actions,
        batches={},
        look=lambda: None,
        wait_for=lambda _fits, _seconds: False,
        _note=lambda _: None,
        _reach=lambda *_: None,
        _did_otherwise=lambda _: False,
        _note_ahead=lambda *_: None,
        _note_unlike=lambda *_: None,
        _rules=RulesInForce(MODES["kip320"].rules, {}),
        _seen=[{"step": "follow", "broker": 2, "offset": 0, "leader_epoch": 0}],
        acted=RealRun(),
    )
    actor._has_happened = lambda pattern: Actor._has_happened(actor, pattern)
    actor._fits = lambda pattern: Actor._fits(actor, pattern)
    with pytest.raises(NotBroughtError, match="line 3 of the script waited in vain for 'follow broker=2'"):
        Actor._play(actor, [Milestone()] * 3, Milestone())
    assert done == ["pause-consumer", "produce"]
    assert actor.acted.held_s == [0, 0]


def test_a_process_starts_while_it_hears_the_control_plane() -> None:
    links = {(2, 0): ProxyLink(), (0, 2): ProxyLink()}
    control = SimpleNamespace(id=0, alive=True, paused=False)
    actor = actor_of()
    actor.cluster.controllers, actor.cluster.proxies = {0: control}, SimpleNamespace(link=lambda *ends: links[ends])
    node: Any = SimpleNamespace(id=2)
    assert Actor._hears_control(actor, node)
    links[0, 2].cut = True
    assert not Actor._hears_control(actor, node)
    links[0, 2].cut, control.paused = False, True
    assert not Actor._hears_control(actor, node)
    actor.cluster.controllers[100] = SimpleNamespace(id=100, alive=True, paused=False)
    links[2, 100], links[100, 2] = ProxyLink(), ProxyLink()
    assert Actor._hears_control(actor, node)


def test_a_log_deleted_during_the_measurement_counts_as_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


ORDERS, AUDIT = KafkaPartition("orders-0"), KafkaPartition("audit-0", 1, "audit", 0)


def come_to_in_audit(states: tuple[PartitionSnapshot, ...], steps: list[Shown] | None = None, leo: int = 2) -> Any:
    """An actor of two partitions: the first is in the first state, the second in these, with such a log on broker 1."""
    actor = come_to((BOTH,), {1: Disk(2, 1)}, steps)
    actor.cluster.partitions = [ORDERS, AUDIT]
    actor.cluster.history.states_of = lambda partition: list(states if partition is AUDIT else (BOTH,))
    actor.cluster.disk = lambda _, partition: Disk(leo if partition is AUDIT else 2, 1)
    return actor


def test_the_script_waits_for_each_partition() -> None:
    with pytest.raises(NotBroughtError) as error:
        come_to_in_audit((BOTH,))._reach(3, Milestone(further={"audit-0": Milestone((FIRST, SHRUNK))}))
    missing = "the partition (audit-0) has gone through 1 states of 2; next: leader 1 epoch 0 ISR 1"
    assert str(error.value).endswith(f": {missing}")
    with pytest.raises(NotBroughtError, match=r"the log of broker 1 \(audit-0\) ends at 1, not 2"):
        come_to_in_audit((BOTH,), leo=1)._reach(3, Milestone(further={"audit-0": Milestone(disks={1: Disk(2, 0)})}))
    actor = come_to_in_audit((BOTH, ALONE))
    actor._reach(3, Milestone((FIRST,), further={"audit-0": Milestone((FIRST, SHRUNK), disks={1: Disk(2, 1)})}))
    assert actor.waits == []


@pytest.mark.parametrize(
    ("states", "steps", "leo"),
    [
        ((BOTH, PartitionSnapshot(2, 1, (2,))), [], 2),
        ((BOTH,), [{**APPENDED, "partition": "audit-0"}, {"step": "truncate", "offset": 1, "partition": "audit-0"}], 1),
    ],
)
def test_another_course_of_the_second_partition_ends_the_waits(
    states: tuple[PartitionSnapshot, ...], steps: list[Shown], leo: int
) -> None:
    actor = come_to_in_audit(states, steps, leo)
    wanted = Milestone((FIRST, SHRUNK, FIRST), disks={1: Disk(2, 0)})
    actor._reach(3, Milestone((FIRST,), further={"audit-0": wanted}))
    assert actor._otherwise


def test_a_truncation_of_one_partition_is_none_of_another() -> None:
    steps: list[Shown] = [APPENDED, {"step": "truncate", "offset": 2}]
    actor = come_to_in_audit((BOTH,), steps, 1)
    with pytest.raises(NotBroughtError, match=r"the log of broker 1 \(audit-0\) ends at 1, not 2"):
        actor._reach(3, Milestone((FIRST,), further={"audit-0": Milestone((FIRST,), disks={1: Disk(2, 0)})}))


def test_a_power_loss_is_a_step_of_each_partition() -> None:
    lost: Shown = {"step": "power-loss", "broker": 2}
    steps = [lost, {**APPENDED, "partition": "audit-0"}, APPENDED, {"step": "start", "broker": 2}]
    actor = come_to_in_audit((BOTH,), steps)
    of_first, of_audit = (
        [(step["step"], step.get("partition")) for step in actor._steps_of(partition)] for partition in (ORDERS, AUDIT)
    )
    assert of_first == [("power-loss", None), ("append", None), ("start", None)]
    assert of_audit == [("power-loss", None), ("append", "audit-0")]


def test_what_faults_found_otherwise_in_the_second_partition_is_noted() -> None:
    actor = come_to_in_audit((BOTH, ALONE), leo=3)
    wanted = Milestone(further={"audit-0": Milestone((FIRST,), left={1: Disk(2, 1)})})
    since = [{**APPENDED, "broker": 1, "partition": "audit-0"}]
    actor._note_unlike(3, "cut", wanted, since)
    actor._note_ahead(3, "cut", wanted, Milestone(further={"audit-0": Milestone((FIRST, SHRUNK))}))
    found = "line 3 of the script found"
    assert actor.acted.unlike == [
        f"{found} broker 1's log (audit-0) up to 3, not 2",
        f"{found} the partition (audit-0) in a state that comes later: leader 1 epoch 0 ISR 1",
    ]


def test_a_line_names_its_partition_or_is_about_the_first() -> None:
    actor = come_to_in_audit((BOTH,))
    assert actor.partition_of({}) is ORDERS
    assert actor.partition_of({"partition": "orders-0"}) is ORDERS
    assert actor.partition_of({"partition": "audit-0"}) is AUDIT


def test_partitions_are_whole_if_each_is() -> None:
    actor = come_to_in_audit((replace(BOTH, replicas=(1, 2)),))
    actor.cluster.brokers, actor.observer.is_up = {1: None}, lambda _: True
    actor.cluster.offline = lambda _: set()
    first = replace(BOTH, replicas=(1, 2))
    for audit, whole in ((first, True), (replace(ALONE, replicas=(1, 2)), False), (replace(first, leader=-1), False)):
        actor.cluster.history.states_of = lambda partition, audit=audit: [audit if partition is AUDIT else first]
        assert actor._is_whole() == whole
