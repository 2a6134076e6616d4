from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.format.catalogue import load, names
from sim.checkers.registry import FINDINGS
from sim.history import records, steps
from sim.protocol.rules import RULES
from tests.named import run
from tests.verification import reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenarios.format.scenario import Scenario
    from sim.history.trace import Shown

STORIES = [
    (name, mode)
    for name in names()
    if not load(name).drawn and all(line.do != "reassignment" for line in load(name).script)
    for mode in list(load(name).expect)[:2]
]
"""A trace does not tell of reassignments, by which the reference checker would have to go."""


def test_ends_of_processes_are_those_that_steps_declare() -> None:
    assert {*reference._ENDS} == {kind.name for kind in steps.ENDS}


def agrees(scenario: Scenario, mode: str, seed: int, rules: Mapping[str, str] | None = None) -> set[str]:
    """Run, judge the trace, and return the kinds; both checkers must have found the same."""
    result = run(scenario, mode, seed, rules, trace=True)
    assert result.row["verdict"] != "error", result.row["error"]
    assert result.trace is not None
    replicas = result.settings["default.replication.factor"]
    assert isinstance(replicas, int)
    found = reference.check(result.trace, range(1, replicas + 1))
    if result.stalled:  # A trace does not say what the rules would do next.
        found.pop("no-progress")
    warnings = {kind for kind, finding in FINDINGS.items() if finding.is_warning}
    of_partition = [each for each in result.violations if each.get("partition", result.shown) == result.shown]
    kinds = {violation["kind"] for violation in of_partition} - warnings - reference.UNTOLD
    if result.row["verdict"] == "exhausted":  # What is judged at the end was not.
        assert kinds <= set(found), (scenario, mode, seed, rules, found, result.violations)
        return kinds
    assert set(found) == kinds, (scenario, mode, seed, rules, found, result.violations)
    return kinds


@pytest.mark.world
@pytest.mark.parametrize("chunk", range(2))
@pytest.mark.parametrize("mode", ["hw", "kip101"])
def test_agrees_with_the_incremental_checkers_on_random_seeds(power: Scenario, mode: str, chunk: int) -> None:
    seeds = random.Random(f"{mode}:{chunk}")
    seen: set[str] = set()
    for _ in range(60):
        seen |= agrees(power, mode, seeds.getrandbits(40))
    assert {"committed-loss", "exposed-loss", "hw-regression"} <= seen


@pytest.mark.parametrize("ties", ["fifo", "random", "pct"])
def test_agrees_under_any_rules_and_settings(power: Scenario, ties: str) -> None:
    stream = random.Random(ties)
    for _ in range(20):
        config = {
            **power.config,
            "sim.event.budget": 100_000,
            "sim.ties": ties,
            "unclean.leader.election.enable": stream.random() < 0.5,
            "log.segment.bytes": stream.choice([500, 1 << 30]),
            "replica.lag.time.max.ms": stream.choice([2_000, 30_000]),
            "enable.idempotence": stream.random() < 0.5,
            "auto.offset.reset": stream.choice(["earliest", "latest", "none"]),
        }
        rules = {name: stream.choice(spec.values) for name, spec in RULES.items()}
        agrees(replace(power, config=config), "kip101", stream.getrandbits(40), rules)


@pytest.mark.parametrize(("name", "mode"), [*STORIES, ("last-replica-standing", "kraft"), ("fsync-demo", "elr")])
def test_agrees_with_the_incremental_checkers_on_stories(name: str, mode: str) -> None:
    agrees(load(name), mode, 7)


def test_validation_is_recognised_by_its_record_ids() -> None:
    assert reference.VALIDATION_IDS == records.VALIDATION_IDS


# Hand-made traces: two brokers, broker 1 leads epoch 0 and replicates two records to broker 2.

VALIDATION = reference.VALIDATION_IDS


def step(kind: str, t: int = 0, **fields: Any) -> Shown:
    return {"t": t, "step": kind, **fields}


def append(broker: int, offset: int, record: int, epoch: int = 0, leo: int = -1) -> Shown:
    leo = offset + 1 if leo < 0 else leo
    return step("append", broker=broker, offset=offset, last=offset, leader_epoch=epoch, record=record, leo=leo)


def hw(broker: int, offset: int) -> Shown:
    return step("hw", broker=broker, offset=offset, leader_epoch=0, leader=broker == 1)


def ack(record: int, offset: int, acks: int = -1) -> Shown:
    return step("ack", record=record, count=1, offset=offset, acks=acks, answered_at=0)


def shown(record: int, offset: int, epoch: int = 0) -> Shown:
    place = {"offset": offset, "last": offset, "position": offset}
    return step("read", record=record, leader_epoch=epoch, batch_epoch=epoch, consumer=1002, **place)


def recovered(broker: int, leo: int = 0, hw: int = 0, lost: list[int] | None = None) -> Shown:
    return step("recovered", broker=broker, offset=leo, log_start=0, hw=hw, lost=lost or [])


def led(leader: int, follower: int, epoch: int) -> list[Shown]:
    return [
        step("elected", broker=leader, leader_epoch=epoch),
        step("lead", broker=leader, leader_epoch=epoch),
        step("follow", broker=follower, leader=leader, leader_epoch=epoch),
        step("settled", broker=follower, leader_epoch=epoch),
    ]


BEGIN = [recovered(1), recovered(2), *led(1, 2, 0), append(1, 0, 10), append(2, 0, 10), hw(1, 1), hw(2, 1)]
END = [append(1, 1, VALIDATION), append(2, 1, VALIDATION), hw(1, 2), hw(2, 2), ack(VALIDATION, 1), shown(VALIDATION, 1)]


def judged(*steps: Shown) -> set[str]:
    return set(reference.check(steps, (1, 2)))


def test_a_whole_cluster_is_clean() -> None:
    assert judged(*BEGIN, ack(10, 0), shown(10, 0), *END) == set()


def test_an_acknowledged_record_that_the_leader_lacks_is_a_loss() -> None:
    assert judged(*BEGIN, ack(11, 0), *END) == {"committed-loss"}
    assert judged(*BEGIN, ack(11, 0, acks=1), *END) == set()


def test_an_acknowledged_record_at_another_offset_is_relocated() -> None:
    assert judged(*BEGIN, ack(10, 1), *END) == set()


def test_deletion_explains_absence() -> None:
    moved = [step("log-start", broker=broker, offset=1) for broker in (1, 2)]
    assert judged(*BEGIN, ack(11, 0), shown(11, 0), *moved, *END) == set()


def test_records_deleted_by_a_leader_are_not_lost_with_its_disk() -> None:
    moved = step("log-start", broker=1, offset=1)
    empty = [step("disk-replaced", broker=broker, offset=1) for broker in (1, 2)]
    assert judged(*BEGIN, ack(10, 0), moved, *empty) == judged(*BEGIN, *empty)
    assert judged(*BEGIN, ack(10, 0), *empty) == {*judged(*BEGIN, *empty), "committed-loss"}


def test_record_on_any_replica_is_not_lost_without_a_leader() -> None:
    gone = [step("kill", broker=1, offset=0), step("elected", broker=0, leader_epoch=1)]
    assert judged(*BEGIN, ack(10, 0), *gone) == {"no-progress"}
    assert judged(*BEGIN, ack(11, 0), *gone) == {"no-progress", "committed-loss"}


def test_another_record_where_one_was_shown_is_an_exposed_loss() -> None:
    assert judged(*BEGIN, shown(11, 0), *END) == {"exposed-loss", "consumer-skip"}


def test_duplicates_and_disorder_of_an_idempotent_producer_are_found() -> None:
    def written(*records: int) -> set[str]:
        named = {"producer_id": 1, "producer_epoch": 0}
        own = [{**append(broker, 1 + place, record), **named, "sequence": record}
               for place, record in enumerate(records) for broker in (1, 2)]  # fmt: skip
        last = len(records) + 1
        end = [append(broker, last, VALIDATION) for broker in (1, 2)]
        return judged(
            *BEGIN, *own, *end, hw(1, last + 1), hw(2, last + 1), ack(VALIDATION, last), shown(VALIDATION, last)
        )

    assert written(11, 12, 13) == set()
    assert written(11, 12, 11) == {"duplicate"}
    assert written(11, 13, 12) == {"reordered"}


def test_a_record_that_was_passed_unseen_and_untold_is_a_skip() -> None:
    def told(kind: str, offset: int = 1) -> Shown:
        return step(kind, consumer=1002, offset=offset, policy="latest")

    gone = [append(1, 1, 11), append(2, 1, 11), hw(1, 2), hw(2, 2), shown(11, 1)]
    other = [step("truncate", broker=broker, offset=1, removed=1) for broker in (1, 2)]
    other += [append(broker, 1, 12) for broker in (1, 2)]
    end = [append(1, 2, VALIDATION), append(2, 2, VALIDATION), hw(1, 3), hw(2, 3), ack(VALIDATION, 2)]
    end += [shown(VALIDATION, 2)]
    begin = [*BEGIN, shown(10, 0)]
    assert judged(*begin, *gone, *other, *end[:-1], {**end[-1], "consumer": 1003}) == {"exposed-loss"}
    assert judged(*begin, *gone, *other, *end) == {"consumer-skip", "exposed-loss"}
    assert judged(*begin, *gone, *other, told("out-of-range", 2), *end[:-1]) == {"exposed-loss", "stuck-replica"}
    assert judged(*begin, *gone, *other, told("reset", 2), *end) == {"reset-skip", "exposed-loss"}
    for report in ("reset", "seek", "truncation-detected"):
        assert judged(*begin, *gone, *other, told(report), *end) == {"exposed-loss"}
        assert judged(*begin, told(report), *gone, *other, *end) == {"consumer-skip", "exposed-loss"}
    for back in ("rewind", "restart-consumer"):
        assert judged(*begin, *gone, *other, told(back), *end) == {"exposed-loss"}
        assert judged(*begin, *gone, *other, told(back, 2), *end) == {"consumer-skip", "exposed-loss"}


def test_batch_that_came_to_its_old_offset_once_more_was_not_read_there() -> None:
    gone = [append(broker, offset, record) for broker in (1, 2) for offset, record in ((1, 11), (2, 13))]
    gone += [hw(1, 3), hw(2, 3), shown(10, 0), shown(11, 1), shown(13, 2)]
    emptied = [step("truncate", broker=broker, offset=1, removed=2) for broker in (1, 2)]
    again = [append(broker, offset, record, 1) for broker in (1, 2) for offset, record in ((1, 12), (2, 13))]
    end = [append(1, 3, VALIDATION), append(2, 3, VALIDATION), hw(1, 4), hw(2, 4), ack(VALIDATION, 3)]
    steps = [*BEGIN, *gone, *emptied, *again, *end]
    assert judged(*steps, {**shown(VALIDATION, 3), "consumer": 1003}) == {"exposed-loss"}
    assert judged(*steps, shown(13, 2, 1), shown(VALIDATION, 3)) == {"consumer-skip", "exposed-loss"}


def test_a_success_below_min_isr_is_found_when_it_is_received() -> None:
    def answered(*isr: int) -> list[Shown]:
        return [step("isr", isr=[*isr], leader_epoch=0), step("acknowledges", broker=1, record=10, min_isr=2),
                step("isr", isr=[1, 2], leader_epoch=0)]  # fmt: skip

    assert judged(*BEGIN, *answered(1, 2), ack(10, 0), *END) == set()
    assert judged(*BEGIN, *answered(1), *END) == set()
    assert judged(*BEGIN, *answered(1), ack(10, 0), *END) == {"ack-under-min-isr"}


def test_an_end_offset_below_an_exposed_one_is_a_regression() -> None:
    def asked(epoch: int, asked_at: int) -> list[Shown]:
        return [step("end-offset", offset=0, leader_epoch=epoch, asked_at=asked_at)]

    before = [*BEGIN, shown(10, 0, epoch=3)]
    assert judged(*before, *asked(3, 0), *END) == {"hw-regression"}
    assert judged(*before, *asked(2, 0), *END) == set()
    assert judged(*before, *asked(3, -1), *END) == set()


def test_different_records_below_both_high_watermarks_diverge() -> None:
    other = [append(1, 1, 11), append(2, 1, 12), append(1, 2, VALIDATION), append(2, 2, VALIDATION)]
    rest = [hw(1, 3), hw(2, 3), ack(VALIDATION, 2), shown(VALIDATION, 2)]
    assert judged(*BEGIN, *other, *rest) == {"divergence"}
    assert judged(*BEGIN, append(1, 1, 11), append(2, 1, 12), step("truncate", broker=2, offset=1, removed=1),
                  append(2, 1, 11), append(1, 2, VALIDATION), append(2, 2, VALIDATION), *rest) == set()  # fmt: skip


def test_a_replica_that_has_yet_to_truncate_is_compared_at_the_end_only() -> None:
    stale = [append(1, 1, 11), append(2, 1, 12), step("follow", broker=2, leader=1, leader_epoch=0), hw(1, 2), hw(2, 2)]
    healed = [step("truncate", broker=2, offset=1, removed=1), append(2, 1, 11), step("settled", broker=2,
              leader_epoch=0), append(1, 2, VALIDATION), append(2, 2, VALIDATION), ack(VALIDATION, 2),
              shown(VALIDATION, 2)]  # fmt: skip
    assert judged(*BEGIN, *stale, *healed) == set()
    assert "divergence" in judged(*BEGIN, *stale)


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ([*BEGIN], "no-progress"),
        ([*BEGIN, *END[:-1]], "stuck-replica"),
        ([*BEGIN, *END, step("isr", isr=[1], leader_epoch=0)], "stuck-replica"),
        ([*BEGIN, *END, step("kill", broker=2, offset=0)], "stuck-replica"),
        ([*BEGIN, *END, step("kill", broker=1, offset=0)], "no-progress"),
        ([*BEGIN, *END, append(1, 2, 12)], "stuck-replica"),
        ([*BEGIN, *END, step("isr", isr=[1, 2], leader_epoch=1)], "no-progress"),
    ],
)
def test_missing_parts_of_a_whole_cluster_have_names(steps: list[Shown], kind: str) -> None:
    assert judged(*steps) == {kind}


def test_power_loss_takes_the_newest_batches() -> None:
    off = [step("power-loss", broker=broker, offset=1) for broker in (1, 2)]
    on = [recovered(1, lost=[10]), recovered(2, lost=[10]), *led(1, 2, 1)]
    write = [append(1, 0, VALIDATION), append(2, 0, VALIDATION), hw(1, 1), hw(2, 1), ack(VALIDATION, 0)]
    assert judged(*BEGIN, ack(10, 0), *off, *on, *write, shown(VALIDATION, 0)) == {"committed-loss"}


@pytest.mark.parametrize(
    "wrong",
    [
        append(1, 1, 11, leo=3),
        step("truncate", broker=1, offset=0, removed=2),
        recovered(2, lost=[10]),
        recovered(2, leo=2),
        step("heal", t=-1),
    ],
)
def test_a_trace_that_contradicts_itself_is_refused(wrong: Shown) -> None:
    with pytest.raises(reference.TraceError):
        judged(*BEGIN, wrong)


def test_reads_a_written_trace_and_refuses_a_newer_one() -> None:
    lines = [json.dumps({"schema_version": 1}), *map(json.dumps, BEGIN)]
    assert reference.read(lines) == BEGIN
    with pytest.raises(reference.TraceError, match="schema_version 2"):
        reference.read([json.dumps({"schema_version": 2})])
    with pytest.raises(reference.TraceError, match="schema_version None"):
        reference.read([json.dumps(BEGIN[0])])


def test_two_leaders_of_the_quorum_in_one_epoch_are_found() -> None:
    leaders = [step("raft-leader", t, broker=0, node=node, raft_epoch=epoch) for t, (node, epoch) in enumerate(LEADERS)]
    assert "quorum-leaders" not in reference.check(leaders[:3], (1, 2))
    assert reference.check(leaders, (1, 2))["quorum-leaders"] == "3 us: controllers 101 and 102 lead in epoch 2"


LEADERS = ((100, 1), (101, 2), (100, 3), (102, 2))
