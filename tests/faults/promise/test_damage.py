from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.promise.promise import UNKNOWN, Promise, elects_uncleanly
from sim.config import resolve
from sim.history import steps
from sim.history.findings import Violation
from sim.history.history import History
from sim.protocol.batch import Batch
from sim.protocol.modes import mode
from tests.sim.checkers.histories import ack, commit, commitments, log, replica, tell
from tests.sim.protocol.recording import Recorder, partition

if TYPE_CHECKING:
    from collections.abc import Iterable

ALL = (1, 2, 3)
RECORD = Batch(4, 5, 0, 10)
"""Records 10 and 11, which every story is about."""
BEYOND = 6


class Story:
    """Three replicas in the ISR, with LEO 6, and one batch that is committed and acknowledged at 10."""

    def __init__(self, *, min_isr: int = 2, committed_us: int = 10, leader_min_isr: int = 99) -> None:
        self.history = History()
        self.min_isr(0, min_isr)
        self.happens(steps.Assigned(ALL), 0)
        self.committed_us = committed_us
        self.is_committed = False
        self.leader_min_isr = leader_min_isr
        self.leader_isr: tuple[int, ...] = ()
        """The ISR that the leader goes by, if another one is persisted."""
        self.members: tuple[int, ...] = ALL
        self.happens(steps.Isr(ALL, 0), 0)
        self.incarnations = {1: 0, 2: 0, 3: 0, 4: 0}
        for broker in self.incarnations:
            self.back(broker, 0)

    def happens(self, step: steps.Step, at_us: int) -> Story:
        tell(self.history, step, at_us)
        return self

    def commit(self) -> None:
        self.is_committed = True
        commit(
            self.history, [RECORD], self.committed_us, isr=self.leader_isr or self.members, min_isr=self.leader_min_isr
        )
        ack(self.history, 10, 2, 4, self.committed_us)

    def until(self, at_us: int) -> None:
        """Time passes."""
        if self.committed_us <= at_us and not self.is_committed:
            self.commit()

    def end(self, broker: int, at_us: int, *, lossy: bool = False, clean: bool = False) -> Story:
        self.until(at_us)
        kind, lost = (steps.POWER_LOSS, [RECORD]) if lossy else (steps.KILL, [])
        return self.happens(steps.End(broker, kind, lost, unclean=not clean), at_us)

    def loses_later(self, broker: int, at_us: int, *lost: Batch, marker: bool) -> Story:
        """Its machine, while it is down."""
        return self.happens(
            steps.End(broker, steps.DISK_REPLACED, list(lost), unclean=not marker, was_down=True), at_us
        )

    def reaches(self, broker: int, at_us: int, leo: int) -> Story:
        step = steps.Recovered(broker, replica(), [])
        step.leo = leo
        return self.happens(step, at_us)

    def registers(self, broker: int, at_us: int) -> Story:
        return self.happens(steps.Registered(steps.REGISTERED, broker, self.incarnations[broker]), at_us)

    def back(self, broker: int, at_us: int, *, leo: int = BEYOND) -> Story:
        self.until(at_us)
        self.incarnations[broker] += 1
        started = self.happens(steps.Start(broker, self.incarnations[broker]), at_us)
        return started.reaches(broker, at_us, leo).registers(broker, at_us)

    def isr(self, at_us: int, *members: int) -> Story:
        self.until(at_us)
        self.members = members
        return self.happens(steps.Isr(members, 0), at_us)

    def min_isr(self, at_us: int, size: int) -> Story:
        return self.happens(steps.MinIsr(size), at_us)

    def gone(self, at_us: int) -> Story:
        """The last log loses the record."""
        return self.happens(steps.Truncate(9, partition(Recorder()), [RECORD]), at_us)

    def lost_for_good(self, kind: str, *ids: int) -> Story:
        """A checker finds that."""
        self.history.findings.violations.append(Violation(kind, 99, "", frozenset(ids)))
        return self

    def rejoins(self, broker: int, at_us: int, *, leo: int = BEYOND) -> Story:
        """Restart, fenced on the way, then back in the ISR."""
        self.back(broker, at_us, leo=leo)
        rest = [other for other in self.members if other != broker]
        return self.isr(at_us + 1, *rest).isr(at_us + 2, *rest, broker)

    def promise(self, name: str = "elr", *, unclean: bool = False) -> Promise:
        self.until(1 << 40)
        return Promise(self.history, mode(name).promise, unclean_election=unclean)

    @property
    def inside(self) -> tuple[int, int]:
        """By unclean ends, and by lossy ones."""
        promise = self.promise()
        assert promise.run_inside() == promise.inside_unclean
        assert self.promise("elr-recovery").run_inside() == promise.inside_lossy
        return promise.inside_unclean, promise.inside_lossy


def test_one_end_less_than_min_isr_is_tolerated_and_no_more() -> None:
    assert Story().end(1, 20, lossy=True).inside == (1, 1)
    assert Story().end(1, 20, lossy=True).end(2, 30, lossy=True).inside == (0, 0)
    assert Story(min_isr=3).end(1, 20, lossy=True).end(2, 30, lossy=True).inside == (1, 1)
    assert Story(min_isr=1).end(1, 20, lossy=True).inside == (0, 0)
    assert Story(min_isr=1).inside == (1, 1)


def test_kills_damage_for_a_controller_that_cannot_look_at_logs() -> None:
    assert Story().end(1, 20).end(2, 30).inside == (0, 1)
    assert Story().end(1, 20).end(2, 30, lossy=True).inside == (0, 1)
    assert Story().end(1, 20, clean=True).end(2, 30, clean=True).end(3, 40, clean=True).inside == (1, 1)


def test_a_replica_back_in_the_isr_with_the_record_is_not_damaged() -> None:
    assert Story().end(1, 20).rejoins(1, 30).end(2, 40).inside == (1, 1)
    assert Story().end(1, 20).isr(29, 2, 3).back(1, 30).end(2, 40).inside == (0, 1)


def test_a_replica_is_damaged_until_its_log_ends_beyond_the_record() -> None:
    short = Story().end(1, 20).rejoins(1, 30, leo=5)
    short.reaches(1, 40, BEYOND)
    assert short.end(2, 50).inside == (1, 1)
    early = Story().end(1, 20).rejoins(1, 30, leo=5).end(2, 35)
    early.reaches(1, 40, BEYOND)
    assert early.inside == (0, 1)


def test_replica_whose_old_session_keeps_it_in_the_isr_is_not_back() -> None:
    story = Story().end(1, 20)
    story.reaches(1, 22, BEYOND)  # Loaded, and refused as long as the old session is open.
    story.end(2, 25)
    story.registers(1, 30)
    assert story.inside == (0, 1)


def test_an_end_before_the_commit_counts_if_the_commit_rested_upon_it() -> None:
    assert Story().end(1, 5, lossy=True).end(2, 20, lossy=True).inside == (0, 0)
    assert Story().end(1, 5, lossy=True).isr(6, 2, 3).end(2, 20, lossy=True).inside == (1, 1)
    assert Story().end(1, 3, lossy=True).rejoins(1, 5).end(2, 20, lossy=True).inside == (1, 1)


def test_a_copy_of_a_batch_is_judged_from_its_own_commit_on() -> None:
    story = Story(committed_us=40).end(1, 20).rejoins(1, 22).end(2, 30).rejoins(2, 32)
    story.until(40)
    for broker in (1, 2):
        story.reaches(broker, 45, 10)
    copy = Batch(8, 9, 1, RECORD.first_id)
    commit(story.history, [copy], 50, isr=ALL)
    assert story.inside == (1, 1)
    assert story.end(1, 60).end(2, 61).inside == (0, 1)


def test_an_end_before_the_append_does_not_excuse_a_deposed_leaders_loss() -> None:
    story = Story().end(1, 20).rejoins(1, 22).end(2, 30).rejoins(2, 32)
    late = Batch(8, 9, 0, 20)
    for leader, at_us in ((1, 33), (3, 40)):
        story.happens(steps.Elected(leader, at_us), at_us)
    for broker in (1, 2):
        story.happens(steps.Append(broker, log(late), late), 45)
    commit(story.history, [late], 50, leader=1, isr=ALL)
    ack(story.history, 20, 2, 8, 50)
    assert commitments(story.history).at_us[20] == 40
    assert story.inside == (1, 1)
    assert story.end(1, 60).end(2, 61).inside == (0, 1)


def test_the_smallest_min_isr_since_the_commit_decides() -> None:
    lowered = Story().end(1, 20)
    lowered.min_isr(30, 1)
    assert lowered.inside == (0, 1)
    for lowered_us, raised_us, inside in ((15, 17, (0, 1)), (5, 12, (0, 1)), (5, 7, (1, 1)), (25, 27, (0, 1))):
        story = Story()
        story.min_isr(lowered_us, 1)
        story.min_isr(raised_us, 2)
        assert story.end(1, 20).inside == inside
    assert Story(min_isr=2, leader_min_isr=1).end(1, 20).inside == (0, 1)
    assert Story(min_isr=2, leader_min_isr=3).end(1, 20).inside == (1, 1)


def test_a_min_isr_that_is_set_in_the_instant_of_the_commit_counts_from_then_on() -> None:
    before = Story(min_isr=1).min_isr(10, 3)
    before.commit()
    assert before.end(1, 20).inside == (1, 1)
    after = Story(min_isr=1)
    after.commit()
    assert after.min_isr(10, 3).end(1, 20).inside == (0, 1)


def test_only_assigned_replicas_are_damaged() -> None:
    assert Story().end(1, 20).end(4, 30).inside == (1, 1)
    moved = Story().end(1, 20).isr(25, 2, 3)
    moved.happens(steps.Assigned((2, 3, 4)), 30)
    assert moved.end(2, 40).inside == (1, 1)


def test_a_disk_that_is_replaced_later_takes_the_marker_along() -> None:
    story = Story().end(1, 20, clean=True).end(2, 21, clean=True)
    for broker in (1, 2):
        story.loses_later(broker, 22, RECORD, marker=True)
    assert story.inside == (1, 0)
    for broker in (1, 2):
        story.loses_later(broker, 23, marker=False)
    assert story.inside == (0, 0)


def test_ends_after_a_record_is_gone_excuse_nothing() -> None:
    def lost(gone_us: int) -> Story:
        story = Story().end(1, 20, lossy=True)
        story.lost_for_good("committed-loss", 10, 11).gone(gone_us)
        return story.end(2, 30)

    assert lost(25).inside == (1, 1)
    assert lost(30).inside == (0, 1)
    dropped = lost(25)
    dropped.happens(steps.Deleted(9, replica(), []), 35)
    assert dropped.inside == (0, 1)
    both = Story().end(1, 20, lossy=True).end(2, 30, lossy=True)
    assert both.lost_for_good("committed-loss", 10, 11).inside == (0, 0)
    lowered = Story().end(1, 20, lossy=True)
    lowered.gone(25)
    lowered.min_isr(30, 1)
    assert lowered.inside == (0, 0)
    lowered.lost_for_good("exposed-loss", 10)
    assert lowered.inside == (1, 1)


def test_a_log_in_a_failed_directory_that_nobody_repairs_has_not_lost_its_records() -> None:
    def lost(*, repaired: bool) -> Story:
        story = Story()
        story.happens(steps.Append(2, log(RECORD), RECORD), 9)
        story.end(1, 20, lossy=True)
        story.happens(steps.End(2, steps.DIRECTORY_FAILED, [], unclean=False), 22)
        if repaired:
            story.reaches(2, 24, BEYOND)
        story.lost_for_good("committed-loss", 10, 11).gone(25)
        return story.end(2, 30)

    assert lost(repaired=False).inside == (0, 1)
    assert lost(repaired=True).inside == (1, 1)


def test_damage_is_unknown_without_eligible_replicas() -> None:
    promise = Story().end(1, 20).promise("kraft")
    assert (promise.inside_unclean, promise.inside_lossy) == (UNKNOWN, UNKNOWN)


def test_records_must_keep_to_the_isr_while_the_feature_is_off() -> None:
    def alone() -> Story:
        return Story().isr(15, 1).end(1, 20, lossy=True)

    assert alone().promise().run_inside()
    story = alone()
    story.happens(steps.Fact(steps.ELR_OFF, 0), 30)
    assert not story.promise().run_inside()
    assert not alone().promise("kraft").run_inside()


def test_while_the_feature_is_off_the_elr_counts_as_the_isr_if_that_is_empty() -> None:
    """Broker 1 leaves the ISR as its last member, and then its disk is replaced."""

    def left(elr: tuple[int, ...]) -> Story:
        story = Story().isr(15, 1)
        story.happens(steps.Fact(steps.ELR_OFF, 0), 16)
        story.isr(18)
        story.happens(steps.Elr(elr, (), 1), 18)
        return story.end(1, 20, lossy=True)

    assert not left((1,)).promise().run_inside()
    assert left((2,)).promise().run_inside()


def test_an_unclean_election_ends_the_promise_and_divergence_stays_in_it() -> None:
    promise = Story().promise(unclean=True)
    assert not promise.run_inside()
    assert promise.inside_unclean == promise.inside_lossy == 0
    assert not promise.covers(Violation("committed-loss", 1, "", frozenset({10})))
    assert promise.covers(Violation("divergence", 1, ""))


def test_a_loss_is_covered_if_one_of_its_records_is_inside() -> None:
    promise = Story().end(1, 20).end(2, 30).promise()
    assert not promise.covers(Violation("committed-loss", 1, "", frozenset({10, 11})))
    assert promise.covers(Violation("committed-loss", 1, "", frozenset({10, 99})))
    assert Story().end(1, 20).promise().covers(Violation("committed-loss", 1, "", frozenset({10})))


@pytest.mark.parametrize(
    ("name", "unclean", "strategy", "expected"),
    [
        ("elr", False, "Aggressive", False),
        ("elr", True, "Balanced", True),
        ("elr-recovery", True, "default", True),
        ("elr-recovery", True, "Balanced", False),
        ("elr-recovery", False, "Aggressive", True),
        ("elr-recovery", False, "default", False),
    ],
)
def test_configurations_that_elect_uncleanly(name: str, unclean: bool, strategy: str, expected: bool) -> None:
    config = resolve({"unclean.leader.election.enable": unclean, "unclean.recovery.strategy": strategy})
    assert elects_uncleanly(config, mode(name).rules) is expected


# Against a walk through every instant.

BROKERS = st.integers(1, 3)
EVENT = st.one_of(
    st.tuples(st.sampled_from(["kill", "lose", "stop", "back", "back", "grow", "shrink"]), BROKERS),
    st.tuples(st.just("isr"), st.sets(BROKERS).map(lambda members: tuple(sorted(members)))),
    st.tuples(st.just("min-isr"), BROKERS),
)
EVENTS = st.lists(EVENT, max_size=14)
COMMITTED_US = st.integers(0, 8)
SIZES = st.integers(1, 3)


class Walk:
    """Plays events, one at each instant from 1 on, and keeps the state of every instant."""

    def __init__(self, events: Iterable[tuple[str, Any]], committed_us: int, min_isr: int) -> None:
        self.history = Story(committed_us=committed_us, min_isr=min_isr)
        self.committed_us = committed_us
        self.ends: list[tuple[int, int, bool, bool]] = []
        runs, self.leos, isr, size = {1, 2, 3}, dict.fromkeys((1, 2, 3), BEYOND), (1, 2, 3), min_isr
        self.states = [(isr, dict(self.leos), size)]
        for at_us, (kind, what) in enumerate(events, start=1):
            self.history.until(at_us - 1)
            if kind == "isr":
                self.history.isr(at_us, *what)
                isr = what
            elif kind == "min-isr":
                self.history.min_isr(at_us, what)
                size = what
            elif kind in ("kill", "lose", "stop") and what in runs:
                runs.remove(what)
                self.leos[what] = -1
                self.history.end(what, at_us, lossy=kind == "lose", clean=kind == "stop")
                self.ends.append((what, at_us, kind != "stop", kind == "lose"))
            elif kind == "back" and what not in runs:
                runs.add(what)
                self.leos[what] = 0
                self.history.back(what, at_us, leo=0)
            elif kind in ("grow", "shrink") and what in runs:
                self.leos[what] = BEYOND if kind == "grow" else 5
                self.history.reaches(what, at_us, self.leos[what])
            self.states.append((isr, dict(self.leos), size))

    def inside(self, *, lossy: bool) -> int:
        smallest = 9
        for now_us in range(self.committed_us, max(len(self.states), self.committed_us + 1)):
            smallest = min(smallest, self._state(now_us)[2])
            damaged = {end[0] for end in self.ends if self._is_damaged(end, now_us, lossy=lossy)}
            if len(damaged) >= smallest:
                return 0
        return 1

    def _state(self, now_us: int) -> tuple[tuple[int, ...], dict[int, int], int]:
        return self.states[min(now_us, len(self.states) - 1)]

    def _is_damaged(self, end: tuple[int, int, bool, bool], now_us: int, *, lossy: bool) -> bool:
        broker, at_us, unclean, loses = end
        relied = at_us >= self.committed_us or broker in self._state(self.committed_us)[0]
        states = [self._state(time) for time in range(at_us, now_us + 1)]
        back = any(broker in isr and leos[broker] >= BEYOND for isr, leos, _ in states)
        return (loses if lossy else unclean) and at_us <= now_us and relied and not back


@given(EVENTS, COMMITTED_US, SIZES)
def test_any_history_is_judged_as_by_a_walk_through_every_instant(
    events: list[tuple[str, Any]], committed_us: int, min_isr: int
) -> None:
    walk = Walk(events, committed_us, min_isr)
    assert walk.history.inside == (walk.inside(lossy=False), walk.inside(lossy=True))


# What must hold of any story.


@given(EVENTS, COMMITTED_US, SIZES)
def test_records_inside_by_unclean_ends_are_inside_by_lossy_ones(
    events: list[tuple[str, Any]], committed_us: int, min_isr: int
) -> None:
    unclean, lossy = Walk(events, committed_us, min_isr).history.inside
    assert unclean <= lossy


@given(EVENTS, COMMITTED_US, SIZES)
def test_everything_is_inside_without_an_unclean_end(
    events: list[tuple[str, Any]], committed_us: int, min_isr: int
) -> None:
    calm = [("stop", what) if kind in ("kill", "lose") else (kind, what) for kind, what in events]
    assert Walk(calm, committed_us, min_isr).history.inside == (1, 1)


@given(EVENTS, COMMITTED_US, SIZES)
def test_a_larger_min_isr_puts_nothing_outside(events: list[tuple[str, Any]], committed_us: int, min_isr: int) -> None:
    larger = [(kind, min(3, what + 1)) if kind == "min-isr" else (kind, what) for kind, what in events]
    few = Walk(events, committed_us, min_isr).history.inside
    many = Walk(larger, committed_us, min(3, min_isr + 1)).history.inside
    assert few[0] <= many[0]
    assert few[1] <= many[1]


@given(EVENTS, COMMITTED_US, SIZES, st.data())
def test_an_end_that_is_milder_puts_nothing_outside(
    events: list[tuple[str, Any]], committed_us: int, min_isr: int, data: st.DataObject
) -> None:
    places = [place for place, (kind, _) in enumerate(events) if kind in ("lose", "kill")]
    milder = list(events)
    if places:
        place = data.draw(st.sampled_from(places))
        kind, what = events[place]
        milder[place] = ("kill" if kind == "lose" else "stop", what)
    before = Walk(events, committed_us, min_isr).history.inside
    after = Walk(milder, committed_us, min_isr).history.inside
    assert before[0] <= after[0]
    assert before[1] <= after[1]


@pytest.mark.parametrize(("isr", "inside"), [((1, 2, 3), False), ((1,), True)])
def test_ends_before_the_commit_count_by_the_isr_that_the_leader_went_by(isr: tuple[int, ...], inside: bool) -> None:
    """The controller has just made it smaller: the leader had heard of their LEOs, not of their ends."""
    story = Story(committed_us=30).end(2, 20).end(3, 21).isr(25, 1)
    story.leader_isr = isr
    story.commit()
    assert story.end(1, 40, lossy=True).inside[0] == inside
