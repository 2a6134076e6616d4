from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from faults.kinds.injection import Injection, RealisedFault
from faults.kinds.message_faults import MessageFault
from faults.kinds.registry import KINDS
from faults.plan import Fault
from sim.history.steps import Shown
from sim.hosts.interceptions import MESSAGES, NAMES
from sim.hosts.topics import ClusterTopic, TopicPartition
from tests.sim.world import SECOND_US, World


def world(mode: str = "elr", **config: int) -> World:
    made = World(mode, config={key.replace("_", "."): value for key, value in config.items()})
    made.run(10)
    made.write()
    return made


def strike(world: World, kind: str, message: str, *, broker: int = 1, lasts_us: int = 5 * SECOND_US) -> RealisedFault:
    injection = Injection(world.cluster)
    injection.strike(Fault(kind, 0, (broker,), lasts_us, value=NAMES.index(message)))
    assert not injection.realised[0].effective  # It waits for its message.
    return injection.realised[0]


def struck(world: World) -> list[Mapping[str, object]]:
    kinds = ("message-lost", "message-held", "message-copied")
    return [_ends(step) for step in world.steps if step["step"] in kinds]


def _ends(step: Shown) -> Mapping[str, object]:
    return {name: step[name] for name in ("step", "source", "target", "message")}


def test_a_lost_response_is_noticed_by_timeout_and_sent_again() -> None:
    """The batch is in the log twice: the producer is not idempotent."""
    there = world()
    fault = strike(there, "message-loss", "ProduceResponse")
    first = there.write(seconds=0.5)
    assert fault.effective
    assert not there.of("ack", record=first)
    assert [step["message"] for step in struck(there)] == ["ProduceResponse"]
    there.run(40)
    assert len(there.of("ack", record=first)) == 1
    assert len(there.of("append", record=first, broker=1)) == 2


def test_only_one_message_is_struck() -> None:
    there = world()
    strike(there, "message-loss", "ProduceResponse")
    there.write()
    second = there.write()
    assert len(struck(there)) == 1
    assert there.of("ack", record=second)


def test_a_held_message_arrives_when_the_fault_is_over_and_is_overtaken() -> None:
    there = world()
    strike(there, "message-hold", "ProduceResponse")
    first = there.write()
    second = there.write()
    assert there.of("ack", record=second)
    assert not there.of("ack", record=first)
    there.run(5)
    assert len(there.of("ack", record=first)) == 1
    assert len(there.of("append", record=first, broker=1)) == 1


def test_a_held_message_of_a_process_that_ended_is_lost() -> None:
    there = world()
    strike(there, "message-hold", "ProduceResponse")
    first = there.write(seconds=0.5)
    there.cluster.kill(1)
    there.run(6)
    assert not there.of("ack", record=first)


def test_a_copied_batch_is_appended_twice() -> None:
    there = world()
    fault = strike(there, "message-copy", "ProduceRequest")
    first = there.write()
    assert len(there.of("append", record=first, broker=1)) == 1
    there.run(5)
    assert len(there.of("append", record=first, broker=1)) == 2
    assert len(there.of("ack", record=first)) == 1
    assert fault.effective


def test_a_message_that_nobody_resends_has_no_copy() -> None:
    there = world()
    fault = strike(there, "message-copy", "FetchRequest")
    there.write()
    assert not struck(there)
    assert not fault.effective


@pytest.mark.parametrize("mode", ["elr", "kip320"])
def test_an_idle_fetch_counts_as_a_message(mode: str) -> None:
    """Its elision ends until the fault is over."""
    there = world(mode)
    there.run(20)
    fault = strike(there, "message-loss", "FetchRequest", broker=2)
    there.run(2)
    assert struck(there) == [{"step": "message-lost", "source": 2, "target": 1, "message": "FetchRequest"}]
    assert fault.effective


def test_a_fault_without_its_message_leaves_nothing_behind() -> None:
    there = world()
    fault = strike(there, "message-hold", "BrokerRegistrationRequest")
    there.run(6)
    there.cluster.kill(1)
    there.cluster.start(1)
    there.run(30)
    assert not struck(there)
    assert not fault.effective
    assert 1 in there.cluster.control.state.isr


def test_a_held_response_lets_the_isr_change_late() -> None:
    """The leader takes the new ISR from metadata or from the response, whichever is first (KIP-497)."""
    there = world(replica_lag_time_max_ms=10_000)
    strike(there, "message-hold", "AlterPartitionRequest", lasts_us=28 * SECOND_US)
    there.cluster.links.cut(2, 1)
    there.write(acks=1, seconds=20)
    assert [step["message"] for step in struck(there)] == ["AlterPartitionRequest"]
    assert 2 in there.cluster.control.state.isr
    there.run(10)
    assert 2 not in there.cluster.control.state.isr


FURTHER: Final = "orders-0"


@pytest.mark.parametrize(
    ("kind", "message", "acks", "appends"),
    [
        ("message-loss", "ProduceRequest", 0, 0),
        ("message-loss", "ProduceResponse", 0, 1),
        ("message-hold", "ProduceRequest", 0, 0),
        ("message-hold", "ProduceResponse", 0, 1),
        ("message-copy", "ProduceRequest", 1, 1),
    ],
)
def test_messages_of_every_producer_are_struck(kind: str, message: str, acks: int, appends: int) -> None:
    """The first partition's producer is not the only one."""
    there = World("elr", further=[TopicPartition(FURTHER, 3)]).ready()
    fault = strike(there, kind, message, broker=there.cluster.control.state_of(FURTHER).leader)
    first = there.write(partition=1)
    assert [step["message"] for step in struck(there)] == [message]
    assert fault.effective
    found = there.of("append", record=first, broker=fault.targets[0], partition=FURTHER)
    assert (len(there.of("ack", record=first, partition=FURTHER)), len(found)) == (acks, appends)


def test_a_fault_meets_messages_of_a_producer_that_begins_later() -> None:
    orders = ClusterTopic("orders", 1, 3, created=False)
    there = World("elr", topics=(ClusterTopic("highwater", 1, 3, spared=True), orders)).ready()
    injection = Injection(there.cluster)
    for broker in (1, 2, 3):
        injection.strike(Fault("message-loss", 0, (broker,), value=NAMES.index("ProduceResponse")))
        injection.strike(Fault("duplicate", 0, (broker,), value=1_000))
    assert there.cluster.topics.create("orders")
    there.run()
    there.cluster.partitions[-1].producer.begin()
    first = there.write(partition=1)
    leader = there.cluster.control.state_of(FURTHER).leader
    assert [step["source"] for step in struck(there)] == [leader]
    assert [fault.targets for fault in injection.realised if fault.effective and "loss" in fault.kind] == [(leader,)]
    assert not there.of("ack", record=first, partition=FURTHER)
    assert len(there.of("append", record=first, broker=leader, partition=FURTHER)) == 2
    injection.heal()
    network, producer = there.cluster.network, there.cluster.partitions[-1].producer_node
    assert not network.link(producer, leader).disturbed
    assert not network.link(leader, producer).disturbed


def test_all_messages_can_be_named_and_read_back() -> None:
    for kind in KINDS.values():
        if isinstance(kind, MessageFault):
            for name in MESSAGES:
                fault = kind.scripted({"broker": 2, "message": name, "for_ms": 7}, 9)
                assert fault == Fault(kind.name, 9, (2,), 7_000, value=NAMES.index(name))
                assert kind.param_of(fault.value) == name
