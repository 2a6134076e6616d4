from __future__ import annotations

import pytest

from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import MIN_ISR, BrokerUnregistration, ConfigRecord, PartitionRegistration, TopicRemoval
from sim.protocol.kraft.metadata_delta import MetadataDelta
from sim.protocol.modes import MODES


def state(name: str, epoch: int) -> PartitionRegistration:
    return PartitionRegistration(name, 1, epoch, (1,), epoch, (1,))


def test_the_last_record_of_a_partition_counts_in_the_place_of_the_first() -> None:
    last = state("a-0", 2)
    delta = MetadataDelta([state("a-0", 1), state("b-0", 1), last, ConfigRecord(MIN_ISR, 1), ConfigRecord(MIN_ISR, 2)])
    assert list(delta.partitions) == ["a-0", "b-0"]
    assert delta.partitions["a-0"] is last
    assert delta.configs == {MIN_ISR: 2}
    assert delta.registrations == []


def test_partitions_of_a_deleted_topic_have_no_new_state() -> None:
    gone = BrokerUnregistration(3, 1)
    delta = MetadataDelta([state("a-0", 1), state("b-0", 1), TopicRemoval(("a-0", "a-1")), gone])
    assert list(delta.partitions) == ["b-0"]
    assert delta.deleted == ["a-0", "a-1"]
    assert delta.registrations == [gone]


@pytest.mark.parametrize("value", ["before-topics", "after-topics"])
def test_rule_decides_when_the_configuration_applies(value: str) -> None:
    decide = Decisions(MODES["elr-4.3"].rules.override({"config_replay": value}))
    both = MetadataDelta([state("a-0", 1), ConfigRecord(MIN_ISR, 1)])
    assert both.applies_configs_last(decide, begins=False) is (value == "after-topics")
    assert not both.applies_configs_last(decide, begins=True)
    assert not MetadataDelta([ConfigRecord(MIN_ISR, 1)]).applies_configs_last(decide, begins=False)
    assert not MetadataDelta([state("a-0", 1)]).applies_configs_last(decide, begins=False)
