from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.promise.promise import Promise
from sim.history import steps
from sim.history.clients import Shown
from sim.history.findings import Violation
from sim.history.history import History
from sim.protocol.batch import Batch
from sim.protocol.log.log import Log
from sim.protocol.modes import mode
from tests.sim.checkers.histories import ack, commit, membership, tell

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORD = Batch(0, 1, 0, 10)
"""Records 10 and 11, which every story is about."""


class Story:
    """Three replicas in the ISR, up since 0, and one batch that is committed and acknowledged at 10."""

    def __init__(self, *, committed_us: int | None = 10) -> None:
        self.history = History()
        self.isr(0, 1, 2, 3)
        self.incarnations = {1: 0, 2: 0, 3: 0}
        for broker in self.incarnations:
            self.back(broker, 0)
        if committed_us is not None:
            self.commit(RECORD, committed_us)
        ack(self.history, 10, 2, 0, committed_us or 0)

    def happens(self, step: steps.Step, at_us: int) -> Story:
        tell(self.history, step, at_us)
        return self

    def commit(self, batch: Batch, at_us: int, leader: int = 0) -> Story:
        commit(self.history, [batch], at_us, leader=leader)
        return self

    def end(self, broker: int, at_us: int, *, lossy: bool = False) -> Story:
        return self.happens(
            steps.End(broker, steps.POWER_LOSS if lossy else steps.KILL, [RECORD] if lossy else []), at_us
        )

    def back(self, broker: int, at_us: int) -> Story:
        self.incarnations[broker] += 1
        return self.happens(steps.Start(broker, self.incarnations[broker]), at_us).registers(broker, at_us)

    def expires(self, broker: int, at_us: int) -> Story:
        return self.happens(steps.SessionEnd(broker), at_us)

    def registers(self, broker: int, at_us: int) -> Story:
        return self.happens(steps.Registered(steps.REGISTERED, broker, self.incarnations[broker]), at_us)

    def regains(self, broker: int, at_us: int) -> Story:
        return self.happens(steps.Append(broker, Log(), RECORD), at_us)

    def isr(self, at_us: int, *members: int) -> Story:
        return self.happens(steps.Isr(members, 0), at_us)

    def promise(self, name: str = "kip101", *, unclean: bool = False, hw_waits: bool = False) -> Promise:
        promised = mode(name).override({"hw_needs_min_isr": "yes" if hw_waits else "no"}).promise
        return Promise(self.history, promised, unclean_election=unclean)

    @property
    def inside(self) -> bool:
        return self.promise().run_inside()


def test_kills_lose_nothing_and_excuse_nothing() -> None:
    story = Story()
    for broker in (1, 2, 3):
        story.end(broker, 20 + broker)
    assert story.inside


def test_one_member_that_lost_the_record_is_excused_by_nobody_else() -> None:
    assert Story().end(1, 20, lossy=True).inside
    assert Story().end(1, 20, lossy=True).end(2, 30).inside
    assert not Story().end(1, 20, lossy=True).end(2, 30).end(3, 40).inside


def test_promise_is_over_when_all_members_lost_the_record() -> None:
    story = Story()
    for broker in (1, 2, 3):
        story.end(broker, 20 + broker, lossy=True)
    assert not story.inside


def test_a_member_that_is_back_without_the_record_does_not_have_it() -> None:
    story = Story().end(2, 20, lossy=True).back(2, 30).end(3, 40).isr(41, 1, 2)
    assert not story.end(1, 50, lossy=True).inside


def test_a_member_that_was_given_the_record_back_has_it() -> None:
    story = Story().end(2, 20, lossy=True).back(2, 30).regains(2, 35).end(3, 40).isr(41, 1, 2)
    assert story.end(1, 50, lossy=True).inside


def test_a_member_without_a_session_is_not_up_although_its_process_runs() -> None:
    expired = Story().expires(2, 15).end(1, 20, lossy=True).end(3, 30)
    assert not expired.inside
    assert Story().expires(2, 15).registers(2, 18).end(1, 20, lossy=True).end(3, 30).inside
    twice = Story().expires(2, 15).expires(2, 16).registers(2, 18).registers(2, 19)
    assert membership(twice.history).up[2] == [(0, 15), (18, None)]


def test_only_members_of_the_isr_count() -> None:
    alone = Story().isr(15, 1)
    assert not alone.end(1, 20, lossy=True).inside
    outsider = Story().isr(15, 1, 2).end(3, 20, lossy=True)
    assert outsider.end(1, 30).end(2, 40).inside


def test_a_broker_put_into_the_isr_while_down_is_a_member() -> None:
    joins = Story().isr(15, 2).end(1, 20, lossy=True).isr(25, 1, 2)
    assert joins.inside
    assert not joins.isr(30, 1).expires(2, 31).inside
    late = Story().isr(15, 2).end(1, 20, lossy=True).back(1, 24).isr(25, 1, 2).end(2, 30)
    assert late.inside


def test_broker_put_into_the_isr_when_its_session_is_over_excuses_nothing() -> None:
    forgotten = Story().isr(15, 2).end(1, 20, lossy=True).expires(1, 24).isr(25, 1, 2)
    assert forgotten.isr(30, 1).expires(2, 31).inside


def test_promise_is_judged_until_the_member_registers_again() -> None:
    early = Story().end(1, 20, lossy=True).back(1, 30).end(2, 40).end(3, 50)
    assert early.inside
    late = Story().end(1, 20, lossy=True).end(2, 40).end(3, 50).back(1, 60)
    assert not late.inside


def test_promise_is_judged_from_the_commit_on() -> None:
    before = Story(committed_us=35).end(2, 20).end(3, 21).end(1, 22, lossy=True).back(1, 30)
    assert before.inside
    after = Story(committed_us=25).end(2, 20).end(3, 21).end(1, 22, lossy=True).back(1, 30)
    assert not after.inside


def test_records_shown_by_a_checkpointed_hw_are_judged_from_then_on() -> None:
    """No leader's HW has passed it: the checkpoint was ahead of a log that had lost its end."""
    for shown_us, inside in ((60, True), (15, False)):
        story = Story(committed_us=None)
        story.history.clients.shown.append(Shown(RECORD, 0, shown_us))
        for broker in (1, 2, 3):
            story.end(broker, 20, lossy=True)
        for broker in (1, 2, 3):
            story.back(broker, 50)
        lost = Violation("exposed-loss", 99, "", frozenset({10, 11}))
        assert Promise(story.history, mode("kraft").promise, unclean_election=False).covers(lost) is inside


def test_power_that_goes_while_the_process_is_down_belongs_to_its_end() -> None:
    story = Story().end(2, 20).end(3, 21).end(1, 22)
    assert story.inside
    story.happens(steps.End(1, steps.POWER_LOSS, [RECORD], was_down=True), 23)
    assert not story.inside


def test_an_unclean_election_ends_every_promise() -> None:
    promise = Story().promise(unclean=True)
    assert not promise.run_inside()
    for kind in ("committed-loss", "divergence", "stuck-replica", "no-progress", "hw-regression"):
        assert not promise.covers(Violation(kind, 1, "", frozenset({10})))


@pytest.mark.parametrize("fact", [steps.SYNCED_LOST, steps.UNCLEAN_ELECTION, steps.FILE_MISSED])
def test_synced_corruption_and_unclean_elections_end_every_promise(fact: steps.StepKind) -> None:
    story = Story().end(1, 20, lossy=True)
    assert story.inside
    story.happens(steps.Fact(fact, 0), 30)
    promise = story.promise()
    assert not promise.run_inside()
    assert not promise.covers(Violation("divergence", 1, ""))


EXCUSED = Story().isr(15, 1).end(1, 20, lossy=True).promise()


def test_a_loss_needs_one_record_inside_and_a_regression_all() -> None:
    def covers(kind: str, *ids: int) -> bool:
        return EXCUSED.covers(Violation(kind, 1, "", frozenset(ids)))

    assert not covers("committed-loss", 10, 11)
    assert covers("committed-loss", 10, 99)
    assert covers("hw-regression", 99)
    assert not covers("hw-regression", 10, 99)
    assert covers("divergence", 10)
    assert covers("stuck-replica")
    assert covers("no-progress")


def test_unacknowledged_reads_are_inside_only_if_the_hw_needs_min_isr() -> None:
    def covers(record: int, *, hw_waits: bool) -> bool:
        story = Story()
        violation = Violation("exposed-loss", 1, "", frozenset({record}))
        story.history.findings.violations.append(violation)
        return story.promise(hw_waits=hw_waits).covers(violation)

    assert [covers(99, hw_waits=False), covers(99, hw_waits=True), covers(10, hw_waits=False)] == [False, True, True]


# Against a walk through every instant.

BROKERS = st.integers(1, 3)
EVENT = st.one_of(
    st.tuples(st.sampled_from(["kill", "lose", "lose", "back", "back", "regain", "expire", "register"]), BROKERS),
    st.tuples(st.just("isr"), st.sets(BROKERS, min_size=1).map(lambda members: tuple(sorted(members)))),
)


def inside_by_walk(events: Iterable[tuple[str, Any]], committed_us: int) -> bool:
    """Keep the state at every instant, then look at each lossy end of an ISR member."""
    runs, up, damaged, isr = {1, 2, 3}, {1, 2, 3}, set[int](), (1, 2, 3)
    states = [(set(up), set(damaged), isr)]
    losses: list[tuple[int, object]] = []
    registered: list[tuple[int, object]] = []
    for at_us, (kind, what) in enumerate(events, start=1):
        if kind == "isr":
            isr = what
        elif kind == "back" and what not in runs:
            runs.add(what)
            up.add(what)
            registered.append((at_us, what))
        elif kind == "register" and what in runs - up:
            up.add(what)
            registered.append((at_us, what))
        elif kind == "expire":
            up.discard(what)
        elif kind == "regain" and what in runs:
            damaged.discard(what)
        elif kind in ("kill", "lose") and what in runs:
            runs.discard(what)
            up.discard(what)
            if kind == "lose" and what not in damaged:
                damaged.add(what)
                losses.append((at_us, what))
        states.append((set(up), set(damaged), isr))
    for end_us, member in losses:
        until = min((since for since, who in registered if who == member and since > end_us), default=len(states) + 99)
        isrs = [states[min(now_us, len(states) - 1)][2] for now_us in range(until)]
        begin = next((now_us for now_us in range(end_us, until) if member in isrs[now_us]), until)
        for now_us in range(max(begin, committed_us), until):
            alive, lost, members = states[min(now_us, len(states) - 1)]
            if not any(other != member and other in alive and other not in lost for other in members):
                return False
    return True


def played(events: Iterable[tuple[str, Any]], committed_us: int) -> Story:
    """The story in which these things happen, one at each instant from 1 on, as far as they can."""
    story = Story(committed_us=committed_us)
    runs, has = {1, 2, 3}, {1, 2, 3}
    for at_us, (kind, what) in enumerate(events, start=1):
        if kind == "isr":
            story.isr(at_us, *what)
            continue
        assert isinstance(what, int)
        if kind == "back" and what not in runs:
            story.back(what, at_us)
            runs.add(what)
        elif kind == "register" and what in runs:
            story.registers(what, at_us)
        elif kind == "expire":
            story.expires(what, at_us)
        elif kind == "regain" and what in runs:
            story.regains(what, at_us)
            has.add(what)
        elif kind in ("kill", "lose") and what in runs:
            story.end(what, at_us, lossy=kind == "lose" and what in has)
            runs.discard(what)
            has -= {what} if kind == "lose" else set()
    return story


def ended(story: Story) -> list[steps.End]:
    return [step for step in story.history.steps if isinstance(step, steps.End)]


EVENTS = st.lists(EVENT, max_size=14)
COMMITTED_US = st.integers(0, 8)


@given(EVENTS, COMMITTED_US)
def test_any_history_is_judged_as_by_a_walk_through_every_instant(
    events: list[tuple[str, Any]], committed_us: int
) -> None:
    assert played(events, committed_us).inside == inside_by_walk(events, committed_us)


# What must hold of any story.


@given(EVENTS, COMMITTED_US)
def test_everything_is_inside_without_a_loss(events: list[tuple[str, Any]], committed_us: int) -> None:
    kills = [("kill", what) if kind == "lose" else (kind, what) for kind, what in events]
    assert played(kills, committed_us).inside


@given(EVENTS, COMMITTED_US, st.data())
def test_a_later_end_without_a_loss_puts_nothing_outside(
    events: list[tuple[str, Any]], committed_us: int, data: st.DataObject
) -> None:
    broker = data.draw(BROKERS)
    losses = [place for place, event in enumerate(events) if event == ("lose", broker)]
    milder = list(events)
    if losses:
        milder[losses[-1]] = ("kill", broker)
    assert played(milder, committed_us).inside >= played(events, committed_us).inside


@given(EVENTS, COMMITTED_US, st.data())
def test_a_record_that_is_given_back_for_good_puts_nothing_outside(
    events: list[tuple[str, Any]], committed_us: int, data: st.DataObject
) -> None:
    broker = data.draw(BROKERS)
    last = max((place for place, event in enumerate(events) if event == ("lose", broker)), default=0)
    place = data.draw(st.integers(last, len(events)))
    nothing = ("register", 0)  # So that the other things happen at the same instants.
    without, with_it = list(events), list(events)
    without.insert(place, nothing)
    with_it.insert(place, ("regain", broker))
    assert played(with_it, committed_us).inside >= played(without, committed_us).inside


@given(EVENTS, COMMITTED_US)
def test_losses_of_another_record_change_nothing(events: list[tuple[str, Any]], committed_us: int) -> None:
    story = played(events, committed_us)
    before = story.inside
    other = Batch(2, 3, 0, 20)
    for end in ended(story):
        end.lost = [*end.lost, other]
    for broker in (1, 2, 3):
        story.happens(steps.End(broker, steps.POWER_LOSS, [other], was_down=True), len(events) + 1)
    assert story.inside == before


@given(EVENTS, EVENTS, COMMITTED_US)
def test_a_run_is_inside_when_each_of_its_records_is(
    events: list[tuple[str, Any]], others: list[tuple[str, Any]], committed_us: int
) -> None:
    """Two records in the same places; what `others` calls losses is where the second one is lost."""
    both = [(kind, what) for kind, what in events if kind != "regain"]
    second = [
        ("lose" if kind in ("kill", "lose") and place < len(others) and others[place][0] == "lose" else kind, what)
        for place, (kind, what) in enumerate(both)
    ]
    first_history, second_history = played(both, committed_us), played(second, committed_us)
    apart = first_history.inside and second_history.inside
    other = Batch(2, 3, 0, 20)
    first_history.commit(other, committed_us)
    ack(first_history.history, 20, 2, 2, committed_us)
    for end, same in zip(ended(first_history), ended(second_history), strict=True):
        if same.lost:
            end.lost = [*end.lost, other]
    assert first_history.inside == apart


def test_commits_of_a_deposed_leader_were_promised_by_the_isr_that_it_led() -> None:
    """Broker 2 led, and stood still until long after; broker 1 lost what it had fetched and is back."""

    def committed(by: int, *, resent: bool = False) -> History:
        story = Story(committed_us=None).happens(steps.Elected(2, 1), 0)
        story.isr(5, 1, 2).end(1, 30, lossy=True).expires(2, 40)
        story.happens(steps.Elected(1, 2), 41)
        story.isr(41, 1).expires(1, 45).back(1, 50).registers(2, 60)
        if resent:
            story.commit(Batch(4, 5, 2, RECORD.first_id), 65, 1)
        return story.commit(RECORD, 70, by).history

    promised = mode("kip320").promise
    shown = Violation("exposed-loss", 99, "", frozenset((10, 11)))
    assert not Promise(committed(2), promised, unclean_election=False).covers(shown)
    assert Promise(committed(1), promised, unclean_election=False).covers(shown)
    again = Promise(committed(2, resent=True), promised, unclean_election=False)
    assert not again.covers(shown), "another copy was committed before broker 2 resumed"


@pytest.mark.parametrize(("name", "inside"), [("hw", False), ("kip101", False), ("kip279", True), ("kip320", True)])
def test_divergence_is_inside_from_kip_279_on_whatever_was_elected(name: str, inside: bool) -> None:
    assert Story().promise(name, unclean=True).covers(Violation("divergence", 20, "")) is inside
    assert Story().promise(name).covers(Violation("divergence", 20, ""))


def test_a_release_without_deduplication_promises_none() -> None:
    for kind in ("duplicate", "reordered"):
        assert not Story().promise("hw").covers(Violation(kind, 20, ""))
        assert Story().promise("kip101").covers(Violation(kind, 20, ""))
