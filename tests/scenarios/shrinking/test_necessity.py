from __future__ import annotations

from functools import cache

import pytest

from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import Symptom, Trials, symptom
from scenarios.shrinking.necessity import TRIES, Necessity, _NecessitySearch, find_necessity
from scenarios.shrinking.shrink import shrink
from scenarios.single.execution import CLIENTS_BEGIN_US
from sim.protocol.messages import FetchRequest, FetchResponse, ProduceRequest, ProduceResponse
from tests.scenarios.shrinking.failing import failing


@cache
def small(scenario: str, mode: str, first: int) -> tuple[Case, Symptom, int]:
    case = failing(scenario, mode, first)
    found = symptom(case.row())
    case = shrink(case, found, Trials()).case
    return (
        case,
        found,
        min(violation["at_us"] for violation in case.run().violations if violation["kind"] == found.kind),
    )


@cache
def asked(scenario: str, mode: str, first: int) -> Necessity:
    case, found, until_us = small(scenario, mode, first)
    return find_necessity(case, found, Trials(), until_us, until_us)


OUTAGE = ("sessions", "kip320", 50_029)
TWO = ("power", "kip101", 0)
RACE = ("chaos", "kip320", 0)


@pytest.mark.world
def test_an_outage_loses_what_both_replicas_had_and_one_answered() -> None:
    takes = asked(*OUTAGE)
    kinds = [type(message.message) for message in takes.messages]
    assert kinds[-4:] == [ProduceRequest, FetchResponse, FetchRequest, ProduceResponse]
    assert [goes for _, goes in (*takes.faults, *takes.sends)] == [True, True]
    assert takes.asked == takes.of
    assert takes.whole
    assert (takes.stays, takes.tries, takes.is_enough) == (TRIES, TRIES, True)


@pytest.mark.world
@pytest.mark.parametrize("run", [OUTAGE, TWO])
def test_without_any_message_of_the_set_the_violation_is_gone(run: tuple[str, str, int]) -> None:
    case, found, until_us = small(*run)
    asking = _NecessitySearch(case, found, Trials())
    takes = asked(*run)
    assert takes.messages
    for message in takes.messages:
        assert CLIENTS_BEGIN_US <= message.sent_us < message.arrives_us <= until_us
        assert found.kind not in asking._run(case, lost={message.name}).row["violations"]
    assert found.kind in asking._run(case).row["violations"]
    assert asking._run(case).row["digest"] == case.row()["digest"]


@pytest.mark.world
def test_messages_that_stand_for_each_other_are_told_together() -> None:
    case, found, _ = small(*TWO)
    asking = _NecessitySearch(case, found, Trials())
    groups = asked(*TWO).alternatives
    assert groups
    for group in groups:
        assert len(group.messages) > 1
        assert len({message.route for message in group.messages}) == 1
        for message in group.messages:
            assert not found.gone_from(asking._run(case, lost={message.name}).row)


@pytest.mark.world
def test_a_set_with_which_it_does_not_stay_is_not_enough() -> None:
    takes = asked(*RACE)
    assert takes.stays < 18
    assert not takes.is_enough


def test_a_used_up_budget_leaves_questions() -> None:
    case, found, until_us = small(*OUTAGE)
    cut = find_necessity(case, found, Trials(lambda: True), until_us, until_us)
    assert (cut.messages, cut.tries, cut.whole, cut.is_enough) == ([], 0, False, False)
