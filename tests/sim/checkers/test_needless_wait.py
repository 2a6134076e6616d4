"""Waits for what Kafka could have done: within the bound, over it, and while a fault is in the way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.format.catalogue import load
from scenarios.single.run import run_row
from scenarios.single.wait_bounds import wait_bounds
from sim.checkers.needless_wait import NeedlessWait, Obstacles, WaitBounds
from sim.config import resolve
from sim.history import steps
from sim.history.history import History
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.modes import MODES
from sim.protocol.modes import mode as mode_named
from tests.sim.checkers.driven import end_of, made

if TYPE_CHECKING:
    from collections.abc import Callable

S = 1_000_000
BOUNDS = {
    "elect_us": 1 * S,
    "session_us": 2 * S,
    "lead_us": 3 * S,
    "rejoin_us": 4 * S,
    "acknowledge_us": 5 * S,
    "request_us": 6 * S,
    "send_us": 1 * S,
}


class Cluster:
    """Three brokers, which run with open sessions; broker 1 leads, unless a test says otherwise."""

    def __init__(self, isr: tuple[int, ...] = (1, 2, 3), *, waits_for_restarted: bool = False) -> None:
        self.history = History()
        self.obstacles = Obstacles()
        bounds = WaitBounds(**BOUNDS, waits_for_restarted=waits_for_restarted)
        self.checker = NeedlessWait(self.history, bounds, self.obstacles)
        self.now_us = 0
        self.log = SimpleNamespace(log=SimpleNamespace(leo=0), hw=0)
        for broker in (1, 2, 3):
            self.happens(steps.Start(broker, 1), steps.Registered(steps.REGISTERED, broker, 1))
        self.happens(steps.Elected(1, 0), steps.Isr(isr, 0))
        state = LeaderAndIsr("partition-0", 1, 0, isr, 0, (1, 2, 3))
        self.happens(steps.Decided(state, 2), self.leads(1, 0))

    def leads(self, broker: int, epoch: int) -> steps.Step:
        return made(steps.Lead, broker=broker, epoch=epoch, partition=self.log)

    def happens(self, *now: steps.Step) -> Cluster:
        for step in now:
            step.at_us = self.now_us
            if isinstance(step, steps.LinkChange):
                step.tell([self.obstacles])
            else:
                step.tell([self.checker])
        return self

    def after(self, seconds: float, *then: steps.Step) -> Cluster:
        self.now_us += int(seconds * S)
        return self.happens(*then)

    def found(self, after_s: float) -> list[str]:
        """The waits that are found if nothing more happens for that time."""
        self.checker.final(end_of(now_us=self.now_us + int(after_s * S)))
        return [violation.detail.split(":")[0] for violation in self.history.findings.violations]


def killed(broker: int) -> steps.Step:
    return steps.End(broker, steps.KILL, [])


def without_leader() -> Cluster:
    """The leader has died, and its session has ended, and no other leader was elected."""
    return Cluster().after(1, killed(1)).after(1, steps.SessionEnd(1))


def not_leading() -> Cluster:
    return Cluster().happens(steps.Elected(2, 1))


def out_of_sync() -> Cluster:
    return Cluster(isr=(1, 2))


def unacknowledged() -> Cluster:
    cluster = Cluster()
    cluster.log.log.leo = 1
    return cluster


def reassigning() -> Cluster:
    return Cluster().happens(steps.Assigned((1, 2, 3), (1, 2), ((1, 2, 3), ())))


WAITS: dict[str, tuple[Callable[[], Cluster], str]] = {
    "elect": (without_leader, "elect_us"),
    "expire": (lambda: Cluster().after(1, killed(1)), "session_us"),
    "lead": (not_leading, "lead_us"),
    "rejoin": (out_of_sync, "rejoin_us"),
    "acknowledge": (unacknowledged, "acknowledge_us"),
    "request": (reassigning, "request_us"),
}


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_over_its_bound_is_found_and_one_within_it_is_not(wait: str) -> None:
    make, bound = WAITS[wait]
    seconds = BOUNDS[bound] / S
    assert make().found(seconds) == []
    assert make().found(seconds + 0.5) == ["elect" if wait == "expire" else wait]


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize(
    "fault",
    [
        steps.Pause(steps.PAUSE, 2),
        steps.Pause(steps.DISK_STALLED, 3),
        steps.LinkChange(steps.CUT, 1, 2),
        steps.MessageStruck(steps.MESSAGE_HELD, 1, 2, "FetchRequest"),
        steps.MetadataDelay(3, 1_000),
        steps.ControllerProcess(steps.CONTROLLER_END, 100, "kill"),
    ],
    ids=lambda step: step.kind.name,
)
def test_no_wait_is_needless_while_a_fault_is_in_the_way(wait: str, fault: steps.Step) -> None:
    make, _ = WAITS[wait]
    assert make().happens(fault).found(100) == []


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        (steps.Pause(steps.PAUSE, 2), steps.Pause(steps.RESUME, 2)),
        (steps.LinkChange(steps.SLOW, 1, 2, 5), steps.LinkChange(steps.HEAL, 1, 2)),
        (steps.MetadataDelay(3, 1_000), steps.MetadataDelay(3, -1_000)),
        (
            steps.ControllerProcess(steps.CONTROLLER_PAUSE, 100),
            steps.ControllerProcess(steps.CONTROLLER_RESUME, 100),
        ),
    ],
    ids=lambda step: step.kind.name,
)
def test_the_end_of_a_fault_begins_the_bound_anew(begins: steps.Step, ends: steps.Step) -> None:
    assert out_of_sync().happens(begins).after(9, ends).found(4) == []
    assert out_of_sync().happens(begins).after(9, ends).found(4.5) == ["rejoin"]


def test_a_lost_message_begins_the_bound_anew() -> None:
    lost = steps.MessageStruck(steps.MESSAGE_LOST, 1, 2, "FetchRequest")
    assert out_of_sync().after(3, lost).found(4) == []


def test_a_broker_without_a_session_of_its_own_is_not_waited_for() -> None:
    assert Cluster(isr=(1, 2)).happens(steps.SessionEnd(3)).found(100) == []
    restarted = Cluster(isr=(1, 2)).happens(killed(3), steps.Start(3, 2))
    assert restarted.found(100) == []
    assert restarted.happens(steps.SessionEnd(3), steps.Registered(steps.REGISTERED, 3, 2)).found(100) == ["rejoin"]


def test_a_replica_in_a_failed_log_directory_is_not_waited_for() -> None:
    failed = steps.End(3, steps.DIRECTORY_FAILED, [])
    assert Cluster(isr=(1, 2)).happens(failed).found(100) == []


def test_a_broker_that_starts_without_the_replica_is_not_waited_for() -> None:
    """Seed 81 of disks with kraft-repaired: its log directory was replaced while it was down."""
    replaced = steps.End(3, steps.DIRECTORY_REPLACED, [], was_down=True)
    back = Cluster(isr=(1, 2)).happens(killed(3), steps.SessionEnd(3), replaced, steps.Start(3, 2))
    back.happens(steps.Registered(steps.UNFENCED, 3, 2))
    assert back.found(100) == []
    loaded = made(steps.Recovered, broker=3)
    assert back.happens(loaded).found(200) == ["rejoin"]


def test_no_election_is_waited_for_without_a_candidate() -> None:
    assert Cluster(isr=(1,)).after(1, killed(1)).after(1, steps.SessionEnd(1)).found(100) == []


def test_a_member_of_the_elr_is_a_candidate() -> None:
    alone = Cluster(isr=(1,)).happens(steps.Elr((2,), (), 0))
    assert alone.after(1, killed(1)).after(1, steps.SessionEnd(1)).found(100) == ["elect"]


def test_restarted_members_are_candidates_only_where_controllers_elect_them() -> None:
    """Rule missed_bounce, value noticed: they may have lost records, so that the controller waits for all."""

    def restarted(*, waits: bool) -> Cluster:
        cluster = Cluster(isr=(1, 2), waits_for_restarted=waits).after(1, killed(1), killed(2))
        cluster.happens(steps.SessionEnd(1), steps.SessionEnd(2))
        return cluster.happens(steps.Start(2, 2), steps.Registered(steps.REGISTERED, 2, 2))

    assert restarted(waits=False).found(100) == ["elect"]
    assert restarted(waits=True).found(100) == []
    back = restarted(waits=True).happens(steps.Elected(0, 1), steps.Start(1, 2))
    back.happens(steps.Registered(steps.REGISTERED, 1, 2))
    assert back.found(100) == ["elect"]


def test_no_controller_of_a_dead_broker_is_waited_for() -> None:
    controlled = Cluster(isr=(1, 2)).happens(steps.Controller(3, 1), killed(3))
    controlled.happens(steps.SessionEnd(3))
    assert controlled.found(100) == []


def test_an_acknowledgement_waits_from_the_append_on() -> None:
    def appended() -> Cluster:
        cluster = unacknowledged().after(10)
        cluster.history.steps.append(step := steps.Append(1, Log(), Batch(0, 0, 0, 10)))
        step.at_us = 9 * S
        return cluster

    assert appended().found(4) == []
    assert appended().found(5) == ["acknowledge"]
    later = appended()
    later.log.log.leo, later.log.hw = 2, 1  # The HW has passed the first batch.
    later.history.steps.append(second := steps.Append(1, Log(), Batch(1, 1, 0, 11)))
    second.at_us = 10 * S
    assert later.found(5) == []


def test_too_few_live_replicas_acknowledge_nothing() -> None:
    alone = unacknowledged().happens(killed(2), killed(3), steps.SessionEnd(2), steps.SessionEnd(3))
    assert alone.found(100) == []


def test_the_time_over_the_bounds_adds_up() -> None:
    cluster = out_of_sync().after(6, steps.EpochRaised(1, 0)).after(7)
    cluster.found(0)
    assert cluster.obstacles.lost_us == (2 + 3) * S
    assert len(cluster.history.findings.violations) == 1


def test_a_batch_that_another_partition_held_back_waited_needlessly() -> None:
    def held(seconds: int) -> list[str]:
        return Cluster().after(9, steps.HeldBack(1, 7, 2, seconds * S, "orders-0")).found(0)

    assert held(1) == []
    assert held(2) == ["send"]


def test_nothing_waits_for_a_deleted_partition() -> None:
    deleted = out_of_sync()
    deleted.checker.close()
    deleted.after(100, steps.LinkChange(steps.CUT, 1, 2))
    assert deleted.obstacles.lost_us == 0


def test_bounds_are_those_of_the_slowest_broker() -> None:
    fast, slow = resolve({}), resolve({"replica.lag.time.max.ms": 60_000, "replica.socket.timeout.ms": 90_000})
    rules = MODES["elr-4.3"].rules
    alone, together = wait_bounds([fast], rules), wait_bounds([fast, slow], rules)
    assert together.rejoin_us - alone.rejoin_us == 60_000_000
    assert together.acknowledge_us - alone.acknowledge_us == 60_000_000 + 45_000_000
    assert together.elect_us == alone.elect_us
    assert wait_bounds([fast], MODES["hw"].rules).session_us > 18_000_000


def judged(name: str, mode: str, seed: int, rules: dict[str, str] | None = None) -> dict[str, Any]:
    """The row of a run that judges waits."""
    return run_row(load(name).with_settings({"sim.judge.waits": True}), mode_named(mode), seed, rules)


def test_judging_changes_neither_digest_nor_other_verdicts() -> None:
    scenario, mode = load("chaos"), mode_named("kip320-repaired")
    rules = {"mutant": "end-of-next-epoch"}
    plain, with_waits = run_row(scenario, mode, 39, rules), judged("chaos", "kip320-repaired", 39, rules)
    assert plain["digest"] == with_waits["digest"]
    assert plain["violations_inside"] == ""
    assert plain["needless_wait_ms"] == -1
    assert with_waits["needless_wait_ms"] > 60_000
    assert judged("chaos", "kip320-repaired", 39)["needless_wait_ms"] == 0
    assert with_waits["violations_inside"] == "needless-wait"
    assert with_waits["violations"] == ",".join([*plain["violations"].split(","), "needless-wait"])


def test_scripts_that_decide_and_lossy_links_are_not_judged() -> None:
    scripted = load("kip101-scenario-1").with_settings({"sim.judge.waits": True})
    assert "needless-wait" not in run_row(scripted, mode_named("hw"), 0)["violations"]
    lossy = load("chaos").with_settings({"sim.judge.waits": True, "sim.network.loss.permille": 1})
    found = run_row(lossy, mode_named("kip320-repaired"), 39, {"mutant": "end-of-next-epoch"})
    assert "needless-wait" not in found["violations"]
