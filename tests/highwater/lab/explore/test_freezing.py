from __future__ import annotations

import inspect
from typing import Any

import pytest

from highwater.lab.explore import freezing
from highwater.lab.explore.broker_machine import UP
from highwater.lab.explore.kraft.cluster import KRaftBounds, KRaftCluster
from highwater.lab.explore.modes.subject import subject_of
from highwater.lab.explore.search import search
from sim.protocol.modes import mode
from tests.plain import needs_sources


@needs_sources
@pytest.mark.parametrize("kind", list(freezing._PARAMETERS))
def test_a_compiled_class_gets_what_its_constructor_needs(kind: type[Any]) -> None:
    parameters = inspect.signature(kind).parameters.values()
    given = freezing._PARAMETERS[kind].split()
    required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    assert set(required) <= set(given) <= {parameter.name for parameter in parameters}


def test_what_is_thawed_freezes_as_before() -> None:
    cluster = KRaftCluster(mode("elr-repaired").rules, KRaftBounds(stops=1, lags=1, elections=1, min_isr_changes=1))
    search(cluster, until=(), most_states=2_000)
    machine = cluster.machine
    freezer = machine._freezer
    assert len([frozen for frozen in machine._snapshots if frozen[0] == UP]) > 50
    for number, frozen in enumerate(machine._snapshots):
        if frozen[0] == UP:
            assert machine._number(machine._thaw(frozen)) == number
    for payload in cluster.payloads.values:
        assert freezer.freeze(freezer.thaw(payload, None)) == payload


def test_plain_and_compiled_reach_the_same_states() -> None:
    """The counts are those of the plain build; the test runs in both."""
    counts = []
    for word, given in (("elr-4.3", {"losses": 0}), ("hw", {"stops": 1}), ("kip320-repaired", {"deletions": 1})):
        found = search(subject_of(word, {}, given), until=(), most_states=3_000)
        counts.append((found.states, found.transitions, found.depth, sorted(found.paths)))
    quorum = search(subject_of("kraft", {}, {}, quorum=True), until=(), most_states=1_000)
    assert [*counts, (quorum.states, quorum.transitions, quorum.depth, sorted(quorum.paths))] == [
        (3000, 7722, 6, []),
        (3000, 7162, 8, ["candidate-incomplete"]),
        (3000, 6278, 11, []),
        (1000, 2164, 5, []),
    ]
