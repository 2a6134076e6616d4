"""Kinds that concern clients are found within a few seeds when a bug is put in, and not without it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.format.catalogue import load
from sim.hosts.consumer import Consumer
from sim.hosts.hosted_replica import HostedReplica
from sim.protocol.client.consumer_position import ConsumerPosition, FetchPosition, LogTruncation
from sim.protocol.client.producer_sequences import ProducerSequences, Sequenced
from sim.protocol.log import producer_state_manager
from sim.protocol.messages import NONE, OFFSET_OUT_OF_RANGE, OUT_OF_ORDER_SEQUENCE_NUMBER, FetchResponse
from sim.protocol.replica.partition import Partition
from tests.named import run_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scenarios.format.scenario import Scenario
    from sim.protocol.messages import ProduceRequest

SEEDS = range(300)
CLEAN = SEEDS[:60]
"""Enough without a bug: `test_seeded_bugs` looks for all kinds in 250."""


def inside(scenario: Scenario, seeds: range, rules: dict[str, str] | None = None) -> Iterator[set[str]]:
    """Kinds that are found inside the promise, seed by seed."""
    for seed in seeds:
        row = run_row(scenario, "kip320-repaired", seed, rules)
        assert not row["error"]
        yield set(row["violations_inside"].split(",")) - {""}


def found(scenario: Scenario, kind: str, seeds: range, rules: dict[str, str] | None = None) -> bool:
    """Whether a kind is found in any seed, inside the promise or outside."""
    return any(kind in run_row(scenario, "kip320-repaired", seed, rules)["violations"] for seed in seeds)


def idempotent(name: str) -> Scenario:
    """A drawn scenario with an idempotent producer; none of Kafka sends with acks=1."""
    scenario = load(name)
    assert scenario.workload is not None
    return replace(
        scenario,
        config={**scenario.config, "enable.idempotence": True},
        workload=replace(scenario.workload, acks_one_every=0),
    )


def takes_all_for_in_sync(original: Callable[..., None]) -> Callable[..., None]:
    """The same, with an ISR that has not shrunk."""

    def patched(partition: Partition, *arguments: Any) -> None:
        isr, partition.state.isr = partition.state.isr, partition.replicas
        original(partition, *arguments)
        partition.state.isr = isr

    return patched


def appends_everything(*_: Any, **__: Any) -> tuple[str, None]:
    return NONE, None


def test_a_leader_that_forgets_its_producers_is_found(power: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = replace(power, config={**power.config, "enable.idempotence": True})
    missing = {"duplicate", "reordered"}
    assert missing.isdisjoint(set().union(*inside(scenario, CLEAN)))
    monkeypatch.setattr(producer_state_manager, "check", appends_everything)
    for kinds in inside(scenario, SEEDS):
        missing -= kinds
        if not missing:
            break
    assert missing == set()


@pytest.mark.world
@pytest.mark.parametrize(
    ("name", "kind", "rules"),
    [
        ("chaos", "sequence-gap", {"unknown_producer": "taken"}),
        ("power", "duplicate-across-epochs", {"snapshot_batches": "last"}),
    ],
)
def test_a_leader_that_knows_too_little_of_its_producers_is_found(name: str, kind: str, rules: dict[str, str]) -> None:
    scenario = idempotent(name)
    assert not any(kind in kinds for kinds in inside(scenario, CLEAN))
    assert any(kind in kinds for kinds in inside(scenario, SEEDS, rules))


def takes_refusals_for_gaps(sequences: ProducerSequences, batch: Sequenced, error: str, log_start: int) -> bool:
    """Whether a batch is retried; every one that is out of order raises the epoch, not only the next one."""
    if error == OUT_OF_ORDER_SEQUENCE_NUMBER and not batch.rewritten:
        sequences.wants_bump = True
        return True
    return original_may_retry(sequences, batch, error, log_start)


original_may_retry = ProducerSequences.may_retry


@pytest.mark.world
def test_a_producer_that_takes_refusals_for_gaps_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, scenario = "reordered-across-epochs", idempotent("chaos")
    assert not any(kind in kinds for kinds in inside(scenario, CLEAN))
    monkeypatch.setattr(ProducerSequences, "may_retry", takes_refusals_for_gaps)
    assert any(kind in kinds for kinds in inside(scenario, SEEDS, {"unknown_producer": "taken"}))


def resets_at_truncations(
    position: ConsumerPosition, asked: FetchPosition | None, epoch: int, end_offset: int
) -> LogTruncation | None:
    is_cut = end_offset < position.offset
    return original_epoch_end(position, asked, -1 if is_cut else epoch, -1 if is_cut else end_offset)


original_epoch_end = ConsumerPosition.epoch_end


def test_a_consumer_that_resets_where_it_should_go_back_is_found(
    power: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not found(power, "reset-skip", CLEAN)
    monkeypatch.setattr(ConsumerPosition, "epoch_end", resets_at_truncations)
    assert found(power, "reset-skip", SEEDS)


def test_a_consumer_that_does_not_ask_where_logs_part_is_found(power: Scenario) -> None:
    assert not found(power, "consumer-skip", CLEAN)
    assert found(power, "consumer-skip", SEEDS, {"consumer_validation": "no"})


def test_a_leader_that_takes_no_notice_of_its_isr_is_found(power: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every leader does so for the ms until it hears of a smaller ISR. Faults that wait for steps find that moment (seed
    # 89); others hardly ever do.
    assert power.faults is not None
    faults = replace(power.faults, aimed_percent=0, burst_percent=0, chain_percent=0)
    scenario = replace(power, faults=faults)
    assert not found(scenario, "ack-under-min-isr", CLEAN)
    for name in ("produce", "_complete_writes"):
        monkeypatch.setattr(Partition, name, takes_all_for_in_sync(getattr(Partition, name)))
    assert found(scenario, "ack-under-min-isr", SEEDS)


def test_a_consumer_that_does_not_retry_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(consumer: Consumer, reply: FetchResponse) -> None:
        error = reply.results[0][1]
        if error and error != OFFSET_OUT_OF_RANGE and reply.request is consumer._fetch:
            consumer._fetch = None
        else:
            original(consumer, reply)

    original = Consumer.on_fetch_reply
    scenario = load("partitions")
    assert not found(scenario, "stuck-consumer", CLEAN)
    monkeypatch.setattr(Consumer, "on_fetch_reply", forgets)
    monkeypatch.setattr(Consumer, "handlers", {**Consumer.handlers, FetchResponse: forgets})
    assert any("stuck-consumer" in kinds for kinds in inside(scenario, CLEAN))


def test_a_leader_that_answers_the_next_offset_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers_next(replica: HostedReplica, request: ProduceRequest, error: str, base_offset: int) -> None:
        original(replica, request, error, base_offset + (base_offset >= 0))

    original = HostedReplica.answer_produce
    scenario = load("chaos")
    assert not found(scenario, "wrong-offset", CLEAN[:10])
    monkeypatch.setattr(HostedReplica, "answer_produce", answers_next)
    assert any("wrong-offset" in kinds for kinds in inside(scenario, CLEAN))


def test_a_coordinator_that_loads_nothing_is_found() -> None:
    """As to 3.9; without the older rules, the same seed is clean."""
    scenario, seed = load("groups"), range(605, 606)
    assert list(inside(scenario, seed)) == [set()]
    older = {"stopped_load": "empty", "offset_fetch": "unconfirmed"}
    assert list(inside(scenario, seed, older)) == [{"committed-offset-back"}]
