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
    "stay_us": 2 * S,
    "leave_us": 3 * S,
    "balance_us": 20 * S,
    "retry_us": 2 * S,
    "rejoin_us": 4 * S,
    "acknowledge_us": 5 * S,
    "request_us": 6 * S,
    "send_us": 1 * S,
    "client_us": 4 * S,
    "group_us": 5 * S,
}


class Cluster:
    """Three brokers, which run with open sessions; broker 1 leads, unless a test says otherwise."""

    def __init__(self, isr: tuple[int, ...] = (1, 2, 3), *, waits_for_restarted: bool = False) -> None:
        self.history = History()
        self.obstacles = Obstacles()
        bounds = WaitBounds(**BOUNDS, waits_for_restarted=waits_for_restarted)
        self.checker = NeedlessWait(self.history, bounds, self.obstacles)
        self.now_us = 0
        self.log = SimpleNamespace(log=SimpleNamespace(leo=0, log_start=0), hw=0, delayed=SimpleNamespace(waiting=[]))
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
    loaded = made(steps.Recovered, broker=3, leo=0)
    assert back.happens(loaded).found(200) == ["rejoin"]


def test_no_election_is_waited_for_without_a_candidate() -> None:
    assert Cluster(isr=(1,)).after(1, killed(1)).after(1, steps.SessionEnd(1)).found(100) == []


def test_a_member_of_the_elr_is_a_candidate() -> None:
    alone = Cluster(isr=(1,)).happens(steps.Elr((2,), (), 0))
    assert alone.after(1, killed(1)).after(1, steps.SessionEnd(1)).found(100) == ["elect"]


def test_a_controlled_shutdown_may_wait_for_the_session_of_an_ended_process() -> None:
    """Also that of the only candidate, which the controller then does not elect."""

    def leaderless() -> Cluster:
        return Cluster(isr=(1, 2)).after(1, steps.Elected(0, 1))

    assert leaderless().found(1.5) == ["elect"]
    assert leaderless().happens(killed(3)).found(2) == []
    assert leaderless().happens(killed(3)).found(2.5) == ["elect"]
    assert leaderless().happens(killed(3), steps.SessionEnd(3)).found(1.5) == ["elect"]
    assert leaderless().happens(killed(3), steps.Controller(1, 1)).found(1.5) == ["elect"]


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


def lagging(*now: steps.Step, after_s: float = 9, fetched: bool = False) -> Cluster:
    """A cluster in which something happens, and a second later the leader appends, and broker 2 fetches; `fetched`:
    broker 3, too.
    """
    cluster = Cluster().after(after_s, *now).after(1, appended(1), appended(2))
    return cluster.happens(appended(3)) if fetched else cluster


def appended(broker: int) -> steps.Step:
    return steps.Append(broker, Log(), Batch(0, 0, 0, 10))


def test_a_member_that_lacks_a_record_leaves_the_isr() -> None:
    paused = steps.Pause(steps.PAUSE, 3)
    for fault in (paused, killed(3), steps.LinkChange(steps.CUT, 3, 1), steps.Pause(steps.DISK_STALLED, 3)):
        assert lagging(fault).found(3) == []
        assert lagging(fault).found(3.5) == ["leave"]
        assert lagging(fault).after(1, steps.LinkChange(steps.SLOW, 3, 2, 5), steps.Pause(steps.PAUSE, 2)).found(2.5)
    assert lagging(paused, fetched=True).found(100) == []
    late = lagging(paused).after(1, steps.Pause(steps.RESUME, 3), appended(3))
    assert late.found(3) == []


@pytest.mark.parametrize(
    "fault",
    [
        steps.Pause(steps.PAUSE, 1),
        steps.Pause(steps.PAUSE, 0),
        steps.LinkChange(steps.CUT, 1, 0),
        steps.LinkChange(steps.SLOW, 101, 1, 5),
        steps.MessageStruck(steps.MESSAGE_HELD, 1, 2, "FetchRequest"),
        steps.MetadataDelay(3, 1_000),
        steps.ControllerProcess(steps.CONTROLLER_END, 100, "kill"),
        steps.Isr((1, 2), 1),
        steps.Elected(2, 1),
    ],
    ids=lambda step: step.kind.name,
)
def test_no_member_has_to_leave_if_the_leader_cannot_see_to_it(fault: steps.Step) -> None:
    assert lagging(steps.Pause(steps.PAUSE, 3), fault).found(100) == []


def test_a_request_of_the_leader_may_have_been_lost() -> None:
    paused = steps.Pause(steps.PAUSE, 3)
    lost = steps.MessageStruck(steps.MESSAGE_LOST, 1, 0, "AlterPartitionRequest")
    assert lagging(paused).happens(lost).found(5) == []
    assert lagging(paused).happens(lost).found(5.5) == ["leave"]
    controlled = lagging(paused, steps.Controller(2, 1))
    assert controlled.happens(steps.Pause(steps.PAUSE, 2)).found(100) == []


def shrinks(cluster: Cluster) -> list[str]:
    """What is found when leader 1 removes broker 3 from the ISR."""
    removal = made(steps.IsrSent, broker=1, isr=(1, 2), before=(1, 2, 3))
    cluster.happens(removal)
    return [violation.kind for violation in cluster.history.findings.violations]


def test_a_leader_removes_no_member_that_has_fetched_in_time() -> None:
    assert shrinks(lagging().after(2)) == ["needless-shrink"]
    assert shrinks(lagging().after(2.5)) == []
    assert shrinks(lagging().after(1, steps.Pause(steps.PAUSE, 3)).after(0.5)) == ["needless-shrink"]
    assert shrinks(lagging(steps.Pause(steps.PAUSE, 2)).after(1)) == []
    assert shrinks(lagging(after_s=3).after(1)) == []  # A fetch before may have been lost.
    assert shrinks(lagging(fetched=True).after(1)) == []  # The leader knows this better.
    again = lagging(killed(3), steps.SessionEnd(3), steps.Start(3, 2), steps.Registered(steps.REGISTERED, 3, 2))
    assert shrinks(again.after(1)) == []
    for end in (killed(3), steps.End(3, steps.DIRECTORY_FAILED, [])):
        assert shrinks(lagging(end).after(0.5)) == ["needless-shrink"]
        assert shrinks(lagging(end).after(1.5)) == []  # It was gone before the append.


def shut_down(cluster: Cluster, after_s: float) -> list[str]:
    """What is found when leader 1 has shut down in a controlled way."""
    return cluster.after(after_s, steps.End(1, steps.SHUTDOWN, [], unclean=False)).found(0)


def test_a_leader_hands_over_before_it_ends_its_controlled_shutdown() -> None:
    assert shut_down(Cluster(), 2) == ["hand over"]
    assert shut_down(Cluster().after(5, steps.Elected(2, 1), steps.Isr((2, 3), 1)), 0.1) == []


def test_a_leader_may_shut_down_as_long_as_no_other_can_be_elected() -> None:
    assert shut_down(Cluster(), 0.9) == []  # The controller may not have had the time.
    assert shut_down(Cluster(isr=(1,)), 2) == []
    assert shut_down(Cluster().happens(killed(2), killed(3)), 2) == []
    assert shut_down(Cluster().happens(steps.LinkChange(steps.CUT, 1, 0)), 2) == []
    assert shut_down(Cluster().happens(steps.Controller(3, 1), killed(3)), 2) == []
    assert Cluster().after(2, killed(1)).found(0) == []


def test_a_controller_refuses_no_topic_that_the_running_brokers_can_have() -> None:
    def refused(needed: int, brokers: tuple[int, ...] = (1, 2, 3), after_s: float = 2) -> list[str]:
        return Cluster().after(after_s, steps.TopicRefused(needed, brokers)).found(0)

    assert refused(3) == ["create"]
    assert refused(4) == []
    assert refused(3, (1, 2)) == []
    assert refused(3, after_s=0.5) == []
    assert Cluster().happens(killed(3)).after(2, steps.TopicRefused(3, (1, 2, 3))).found(0) == []


def test_a_broker_that_leads_no_longer_answers_the_writes_that_wait() -> None:
    def follows(*then: steps.Step) -> Cluster:
        cluster = Cluster()
        cluster.log.delayed.waiting = [(1, None, 0)]
        return cluster.after(0.1, made(steps.Follow, broker=1, epoch=1), *then)

    assert Cluster().after(0.1, made(steps.Follow, broker=1, epoch=1)).found(0.1) == []
    assert follows().found(0.1) == ["refuse"]
    assert follows(steps.Pause(steps.PAUSE, 1)).found(0.1) == []
    assert follows(killed(1)).found(0.1) == []


def test_a_broker_with_a_log_directory_that_works_does_not_halt() -> None:
    halts = steps.End(3, steps.HALT, [])
    loaded = made(steps.Recovered, broker=3, leo=0)
    assert Cluster().after(0.1, loaded, halts).found(0) == ["run"]
    assert Cluster().after(0.1, halts).found(0) == []  # It may have failed to load another one.
    assert Cluster().after(0.1, loaded, steps.End(3, steps.DIRECTORY_FAILED, []), halts).found(0) == []
    assert Cluster().after(0.1, loaded, killed(3)).found(0) == []


def reads(cluster: Cluster, after_s: float, *then: steps.Step) -> list[str]:
    """What is found of a consumer that reads a batch so long after the HW has passed it."""
    batch = Batch(0, 0, 0, 7)
    hw = made(steps.HighWatermark, broker=1, committed=[batch])
    return cluster.happens(hw, *then).after(after_s, steps.Read(1002, [batch], 0, 0)).found(0)


def test_a_consumer_reads_what_a_leader_serves() -> None:
    assert reads(Cluster(), 4) == []
    assert reads(Cluster(), 4.5) == ["read"]
    assert reads(Cluster(), 4.5, steps.Position(steps.SEEK, 1002, 0)) == ["read"]
    assert reads(Cluster(), 100, steps.Pause(steps.PAUSE, 1)) == []
    assert reads(Cluster(), 1.5, killed(1)) == []
    sought = Cluster().happens(made(steps.HighWatermark, broker=1, committed=[Batch(0, 0, 0, 7)]))
    sought.after(9, steps.Position(steps.SEEK, 1002, 0))
    assert sought.after(1, steps.Read(1002, [Batch(0, 0, 0, 7)], 0, 0)).found(0) == []


def test_a_consumer_that_reads_no_more_is_found_before_it_reads() -> None:
    def waits(*then: steps.Step, consumer: int = 1002, log_start: int = 0) -> list[str]:
        cluster = Cluster()
        batches = [Batch(0, 0, 0, 7), Batch(1, 1, 0, 8)]
        cluster.log.log = SimpleNamespace(leo=2, log_start=log_start, between=lambda start, end: batches[start:end])
        cluster.log.hw = 2
        cluster.happens(made(steps.HighWatermark, broker=1, committed=batches))
        return cluster.after(1, steps.Read(consumer, batches[:1], 0, 0), *then).found(4.5)

    assert waits() == ["read"]
    assert waits(consumer=1003) == []  # It has read what it was to look for.
    assert waits(log_start=2) == []
    assert waits(steps.Position(steps.OUT_OF_RANGE, 1002, 1)) == []
    assert waits(steps.Position(steps.COMMIT, 1002, 1)) == ["read"]
    assert waits(steps.Pause(steps.PAUSE, 2)) == []


def test_a_producer_learns_that_a_leader_has_its_batch() -> None:
    def acknowledged(after_s: float) -> list[str]:
        cluster = Cluster().happens(made(steps.HighWatermark, broker=1, committed=[Batch(0, 0, 0, 7)]))
        return cluster.after(after_s, made(steps.Ack, first_id=7)).found(0)

    assert acknowledged(4) == []
    assert acknowledged(4.5) == ["answer"]


def test_no_batch_expires_while_a_leader_serves() -> None:
    def expired(cluster: Cluster, after_s: float, sequence: tuple[int, int, int] = (-1, -1, -1)) -> list[str]:
        return cluster.after(after_s, steps.BatchFailed(7, 1, sequence, "REQUEST_TIMED_OUT")).found(0)

    assert expired(Cluster(), 4.5) == ["write"]
    assert expired(Cluster(), 4) == []
    assert expired(Cluster(), 4.5, (1, 0, 0)) == []
    assert expired(Cluster(isr=(1,)), 3.9) == []
    assert Cluster().after(9, steps.BatchFailed(7, 1, (-1, -1, -1), "RECORD_TOO_LARGE")).found(0) == []


def test_a_coordinator_answers_the_consumers_of_its_groups() -> None:
    assert Cluster().after(5, steps.GroupRefused(1002, 0)).found(0) == []
    assert Cluster().after(5.5, steps.GroupRefused(1002, 0)).found(0) == ["commit"]
    assert Cluster().after(9, steps.GroupRefused(1002, 5 * S)).found(0) == []
    assert Cluster().happens(killed(1)).after(1.5, steps.GroupRefused(1002, 0)).found(0) == []


def test_the_preferred_leader_is_elected_in_time() -> None:
    other = Cluster().happens(steps.Elected(2, 1), made(steps.Follow, broker=1, epoch=1))
    led = other.after(0.1, other.leads(2, 1))
    assert led.found(20) == []
    assert led.found(20.5) == ["balance"]
    again = Cluster().happens(steps.Elected(2, 1), made(steps.Follow, broker=1, epoch=1))
    again.after(0.1, again.leads(2, 1)).after(19, steps.Pause(steps.PAUSE, 3)).after(1, steps.Pause(steps.RESUME, 3))
    assert again.found(19) == []
    assert Cluster().found(100) == []


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
