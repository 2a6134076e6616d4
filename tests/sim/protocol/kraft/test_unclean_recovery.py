"""Unclean recovery: when it begins, whom it asks, and which log it takes."""

from __future__ import annotations

import pytest

from sim.protocol.kraft.metadata import MIN_ISR
from sim.protocol.kraft.replication_control_manager import UNCLEAN_ELECTION
from sim.protocol.kraft.unclean_recovery import (
    AGGRESSIVE,
    BALANCED,
    RETRY_US,
    STRATEGY,
    TIMEOUT_MS,
    WINDOW_US,
    UncleanRecovery,
)
from sim.protocol.kraft.unclean_recovery import NONE as NO_STRATEGY
from sim.protocol.messages import ELECTION_NOT_NEEDED, NONE
from sim.protocol.modes import mode
from tests.sim.protocol.quorum_host import QuorumHost

KIP = mode("elr-recovery").rules
TIMEOUT_US = 300_000_000


def three(
    strategy: str = "default", *, takes_first: bool = False, unclean: bool = False, min_isr: int = 2
) -> QuorumHost:
    """Replicas 1, 2, 3 without a leader: 1 left first, then 2; 3 led last; all are fenced."""
    rules = KIP.override({"unclean_recovery": "first-replies"}) if takes_first else KIP
    quorum = QuorumHost(rules, {MIN_ISR: min_isr, STRATEGY: strategy, UNCLEAN_ELECTION: unclean}).create(1, 2, 3)
    quorum.fence(1, 2, 3)
    return quorum


def recovery(quorum: QuorumHost) -> UncleanRecovery:
    assert quorum.controller.recovery is not None
    return quorum.controller.recovery


def fire(quorum: QuorumHost, after_us: int) -> None:
    """The timers of that length fire."""
    due = [timer for timer, length in quorum.timers if length == after_us]
    quorum.timers = [entry for entry in quorum.timers if entry[0] not in due]
    assert due
    for timer in due:
        quorum.controller.recovery_timed_out(timer)


def balanced() -> QuorumHost:
    """2 and 3 ended uncleanly, and are back: all last known members of the ELR are there."""
    quorum = three()
    quorum.start(2, 3)
    assert quorum.lists() == (0, (), (), (2, 3))
    return quorum


# Balanced.


def test_balanced_waits_for_the_elr_and_then_for_those_who_were_in_it() -> None:
    quorum = three()
    assert recovery(quorum).strategy == BALANCED
    quorum.start(1)
    quorum.start(2)
    assert not quorum.asked
    assert quorum.lists() == (0, (), (3,), (2,))
    quorum.register(3)
    assert not quorum.asked, "3 is fenced"
    assert (recovery(quorum).partitions_count, recovery(quorum).manual_count) == (1, 0)
    quorum.unfence(3)
    assert quorum.asked == [(1, "p"), (2, "p"), (3, "p")]
    assert "recovery-begins" in quorum.probes
    assert recovery(quorum).partitions_count == 1


def test_the_longest_log_of_all_that_were_asked_leads() -> None:
    """D11, mended: 3, which led last, has lost its tail."""
    quorum = balanced()
    quorum.answer(3, 1, 8)
    assert quorum.lists()[0] == 0
    quorum.answer(2, 1, 10)
    assert quorum.lists() == (2, (2,), (), (3,))
    assert quorum.state.recovering
    assert recovery(quorum).finished == 1
    assert not recovery(quorum).running
    assert {"recovery-elects", "unclean_recovery=log-inspection"} <= quorum.probes


@pytest.mark.parametrize(
    ("two", "three_", "leader"), [((2, 5), (1, 9), 2), ((1, 5), (1, 9), 3), ((1, 5), (1, 5), 2), ((-1, 0), (0, 1), 3)]
)
def test_the_later_epoch_is_longer_whatever_its_offset(
    two: tuple[int, int], three_: tuple[int, int], leader: int
) -> None:
    quorum = balanced()
    quorum.answer(2, *two)
    quorum.answer(3, *three_)
    assert quorum.lists()[0] == leader


def test_other_replicas_are_waited_for_until_the_time_is_up() -> None:
    quorum = three()
    quorum.start(1, 2, 3)
    quorum.answer(2, 1, 5)
    quorum.answer(3, 1, 6)
    assert quorum.lists()[0] == 0
    fire(quorum, TIMEOUT_US)
    assert quorum.lists()[0] == 3


def test_a_member_that_does_not_answer_is_waited_for_beyond_that() -> None:
    quorum = balanced()
    quorum.answer(2, 1, 5)
    fire(quorum, TIMEOUT_US)
    assert quorum.lists()[0] == 0
    quorum.answer(3, 1, 6)
    assert quorum.lists()[0] == 3


def test_a_replica_that_comes_later_is_asked_too() -> None:
    quorum = balanced()
    quorum.start(1)
    assert quorum.asked[-1] == (1, "p")
    quorum.answer(2, 1, 5)
    quorum.answer(3, 1, 6)
    quorum.answer(1, 2, 1)
    assert quorum.lists()[0] == 1


def test_a_recovery_ends_when_a_member_is_fenced_and_begins_anew() -> None:
    quorum = balanced()
    quorum.answer(2, 1, 5)
    quorum.fence(3)
    assert "recovery-dropped" in quorum.probes
    assert not recovery(quorum).running
    asked = len(quorum.asked)
    quorum.start(3)
    assert quorum.asked[asked:] == [(2, "p"), (3, "p")]
    fire(quorum, TIMEOUT_US)
    assert quorum.lists()[0] == 0


def test_balanced_elects_nobody_without_a_known_member() -> None:
    """A change of min ISR may clear what is known."""
    rules = KIP.override({"min_isr_change": "clears-elr"})
    quorum = QuorumHost(rules, {MIN_ISR: 2}).create(1, 2, 3)
    quorum.fence(1, 2, 3)
    quorum.controller.set(MIN_ISR, 1)
    assert quorum.lists() == (0, (), (), ())
    quorum.start(1, 2, 3)
    assert not quorum.asked
    assert (recovery(quorum).partitions_count, recovery(quorum).manual_count) == (0, 1)


# Answers.


def test_answers_that_are_too_old_do_not_count() -> None:
    quorum = balanced()
    quorum.answer(2, 9, 9, broker_epoch=quorum.image.brokers[2].broker_epoch - 1)
    quorum.answer(3, 9, 9, leader_epoch=quorum.state.leader_epoch - 1)
    assert "recovery-reply-stale" in quorum.probes
    assert quorum.lists()[0] == 0
    quorum.answer(2, 1, 5)
    quorum.answer(3, 1, 6)
    assert quorum.lists()[0] == 3


def test_an_answer_is_forgotten_with_the_incarnation_that_gave_it() -> None:
    quorum = three()
    quorum.start(1, 2, 3)
    quorum.answer(2, 9, 9)
    quorum.fence(2)
    quorum.start(2)
    quorum.answer(1, 1, 1)
    quorum.answer(3, 1, 6)
    assert quorum.lists()[0] == 0
    quorum.answer(2, 1, 5)
    assert quorum.lists()[0] == 3


def test_replica_that_does_not_answer_is_asked_again() -> None:
    quorum = balanced()
    quorum.answer(2, 1, 5)
    asked = len(quorum.asked)
    fire(quorum, RETRY_US)
    assert quorum.asked[asked:] == [(3, "p")]
    quorum.answer(3, 1, 6)
    assert quorum.lists()[0] == 3
    fire(quorum, RETRY_US)
    assert len(quorum.asked) == asked + 1


def test_answers_that_nobody_waits_for() -> None:
    quorum = three()
    quorum.answer(2, 1, 5)
    assert quorum.lists()[0] == 0
    other = QuorumHost("elr").create(1, 2, 3)
    other.answer(2, 1, 5)
    other.controller.recovery_timed_out(1)
    assert other.lists()[0] == 1


def test_another_controller_begins_anew() -> None:
    quorum = balanced()
    quorum.answer(2, 1, 5)
    quorum.asked.clear()
    quorum.fail_over()
    assert quorum.asked == [(2, "p"), (3, "p")]
    quorum.answer(3, 1, 6)
    assert quorum.lists()[0] == 0
    quorum.answer(2, 1, 5)
    assert quorum.lists()[0] == 3


# Aggressive.


@pytest.mark.parametrize("words", [{"strategy": AGGRESSIVE}, {"unclean": True}], ids=str)
def test_aggressive_takes_what_comes_in_time(words: dict[str, object]) -> None:
    quorum = three(**words)  # type: ignore[arg-type]
    assert recovery(quorum).running
    quorum.start(1)
    assert quorum.asked == [(1, "p")]
    quorum.answer(1, 0, 4)
    quorum.start(2)
    quorum.answer(2, 0, 5)
    assert quorum.lists()[0] == 0
    fire(quorum, WINDOW_US)
    assert quorum.lists() == (2, (2,), (), (3,))


def test_aggressive_takes_the_first_that_comes_later() -> None:
    quorum = three(AGGRESSIVE)
    fire(quorum, WINDOW_US)
    quorum.start(1)
    assert quorum.lists()[0] == 0
    quorum.answer(1, 0, 4)
    assert quorum.lists() == (1, (1,), (), (2, 3))


def test_aggressive_waits_no_longer_than_for_all() -> None:
    quorum = three(AGGRESSIVE)
    quorum.start(1)
    quorum.answer(1, 0, 4)
    quorum.start(2)
    quorum.answer(2, 0, 7)
    quorum.register(3)
    assert quorum.lists()[0] == 0
    quorum.unfence(3)
    quorum.answer(3, 0, 5)
    assert quorum.lists()[0] == 2


def test_a_clean_election_ends_an_aggressive_recovery() -> None:
    quorum = three(AGGRESSIVE)
    quorum.start(3, clean=True)
    assert quorum.lists() == (3, (3,), (2,), ())
    assert not recovery(quorum).running
    fire(quorum, WINDOW_US)
    assert quorum.lists()[0] == 3


# None, and administrators.


def test_administrator_decides_without_strategy() -> None:
    quorum = three(NO_STRATEGY)
    quorum.start(1, 2, 3)
    assert not quorum.asked
    assert recovery(quorum).manual_count == 1
    assert quorum.counters == (0, 0, 1)
    assert quorum.controller.elect("p", "LONGEST_LOG_BALANCED") == NONE
    assert quorum.asked == [(1, "p"), (2, "p"), (3, "p")]
    assert recovery(quorum).manual_count == 0
    assert quorum.counters == (1, 0, 0)
    for broker, leo in ((1, 3), (2, 5), (3, 4)):
        quorum.answer(broker, 0, leo)
    assert quorum.lists()[0] == 2
    assert quorum.counters == (0, 1, 0)
    assert quorum.controller.elect("p", "LONGEST_LOG_AGGRESSIVE") == ELECTION_NOT_NEEDED


def test_an_administrator_need_not_wait() -> None:
    quorum = three()
    quorum.start(1)
    assert quorum.controller.elect("p", "LONGEST_LOG_AGGRESSIVE") == NONE
    quorum.answer(1, 0, 4)
    fire(quorum, WINDOW_US)
    assert quorum.lists()[0] == 1


def test_an_administrators_balanced_election_waits_for_elr_members() -> None:
    """Who ended uncleanly and is back has an empty log; 3, which has not ended, is fenced only."""
    quorum = three()
    quorum.start(1, 2)
    assert quorum.lists() == (0, (), (3,), (2,))
    assert quorum.controller.elect("p", "LONGEST_LOG_BALANCED") == NONE
    for broker in (1, 2):
        quorum.answer(broker, 0, 0)
    fire(quorum, 300_000_000)
    assert quorum.lists()[0] == 0
    quorum.unfence(3)
    assert quorum.lists()[0] == 3
    assert "recovery-dropped" in quorum.probes


def test_the_strategy_changes_at_run_time() -> None:
    quorum = three(NO_STRATEGY)
    quorum.start(2, 3)
    quorum.controller.set(TIMEOUT_MS, 1)
    quorum.controller.set(STRATEGY, BALANCED)
    assert quorum.asked == [(2, "p"), (3, "p")]
    assert (1, 1_000) in [(1, length) for _, length in quorum.timers]
    quorum.controller.set(STRATEGY, NO_STRATEGY)
    assert not recovery(quorum).running


# The rejected alternative.


def test_the_first_answers_may_lack_what_others_have() -> None:
    """The KIP's case: 1 left early, 2 lost data, 3 has all and is not waited for."""
    quorum = three(takes_first=True)
    quorum.register(2, 3)
    quorum.unfence(2)
    quorum.start(1)
    quorum.answer(1, 0, 3)
    assert quorum.lists()[0] == 0
    quorum.answer(2, 0, 5)
    assert quorum.lists() == (2, (2,), (), (3,))
    assert "unclean_recovery=first-replies" in quorum.probes
