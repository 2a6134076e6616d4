"""Two-sided facts about ZooKeeper modes, by trying every order of events."""

from __future__ import annotations

import pytest

from highwater.lab.explore.search import search
from highwater.lab.explore.zookeeper.cluster import ZooKeeperCluster
from sim.protocol.modes import mode
from tests.highwater.lab.explore.zookeeper.facts import EMPTY, FACTS, Fact
from tests.verification.explore.__main__ import main

SMALL = 2
"""Replicas and records of the facts that every run of the tests checks; `.ci/run` checks all quick ones."""


def is_small(fact: Fact) -> bool:
    return fact.bounds.brokers <= SMALL and fact.bounds.records <= SMALL


@pytest.mark.parametrize(
    "fact",
    [
        pytest.param(fact, id=fact.name, marks=() if is_small(fact) else pytest.mark.world)
        for fact in FACTS
        if fact.quick
    ],
)
def test_fact(fact: Fact) -> None:
    found = fact.check()
    assert fact.claimed(found.paths) == fact.kinds, str(found.paths)
    assert found.exhausted or found.stopped


def test_a_search_keeps_no_more_states_than_it_may_and_says_that_it_did_not_end() -> None:
    world = ZooKeeperCluster(mode("kip320").rules, EMPTY)
    every = search(world, until=()).states
    cut = search(world, until=(), most_states=every - 1)
    assert (cut.states, cut.exhausted, cut.stopped) == (every - 1, False, False)
    whole = search(world, until=(), most_states=every)
    assert (whole.states, whole.exhausted) == (every, True)


def test_a_search_ends_when_its_time_is_over() -> None:
    cut = search(ZooKeeperCluster(mode("kip320").rules, EMPTY), until=(), time_limit=0)
    assert (cut.states, cut.exhausted, cut.stopped) == (1, False, False)


def test_a_limit_before_an_answer_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--mode", "kip320-2.1", "--most-states", "2"]) == 3
    assert capsys.readouterr().out.endswith("; no answer within the limits\n")
