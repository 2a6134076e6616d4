"""The comparison agrees with itself, and with nothing that was tampered with."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from highwater.lab.confirm import comparison
from highwater.lab.confirm.files import Stored
from highwater.lab.confirm.history import PartitionSnapshot
from highwater.lab.confirm.producer import Send
from highwater.lab.confirm.real_run import RealRun, ReplicaFiles
from scenarios.format.catalogue import load
from scenarios.single.execution import PAUSE_US
from scenarios.single.result import RunResult
from scenarios.single.run import run
from scenarios.single.script import RulesInForce
from sim.protocol.modes import mode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scenarios.format.scenario import ScriptLine

BATCHES = {"m1": 0, "m2": 1, "m3": 2}
SCENARIO = load("last-replica-standing")


def lines_of(name: str) -> list[ScriptLine]:
    rules = RulesInForce(mode(name).rules, {})
    return [line for line in SCENARIO.script if rules.fit(line.rules, None)]


def as_acted(
    result: RunResult,
    name: str,
    lines: Sequence[ScriptLine] = (),
    batches: Mapping[str, int] | None = None,
) -> RealRun:
    """A real run that shows just what a simulated one did."""
    assert result.trace is not None
    elr = mode(name).rules.elr == "on"
    batches = batches or BATCHES
    batches = batches or BATCHES
    end_us = comparison.script_end_us(result.trace, lines or lines_of(name), batches) + PAUSE_US
    changes = comparison.simulated_changes(result, end_us, elr=elr)
    disks = {}
    names = {first: batch for batch, first in batches.items()}
    for view in result.replicas[:3]:
        log = [
            Stored(base, last, 10 + epoch, names.get(first, "validation"), first, 0)
            for base, last, epoch, first in view.batches
        ]
        epochs = [(10 + epoch, offset) for epoch, offset in view.leader_epoch_checkpoint]
        disks[view.broker] = ReplicaFiles(log, epochs, view.replication_offset_checkpoint)
    acks = {step["record"]: step for step in result.trace if step["step"] == "ack"}
    reads = comparison.simulated_reads(result, end_us)
    return RealRun(
        met=[(True, line["met_at_us"]) for line in result.story],
        states=[
            PartitionSnapshot(
                change.leader or -1, 10 + change.epoch, change.isr, change.elr or (), change.last_known_elr or ()
            )
            for change in changes
        ],
        after_script=deepcopy(disks),
        final=disks,
        leader=result.partition.leader,
        sends=[Send(batch, first, 1, acks[first]["acks"], acks[first]["offset"]) for batch, first in batches.items()],
        shown=list(reads),
        shown_until_end=comparison.simulated_reads(result, 1 << 62),
        batches=dict(batches),
    )


@pytest.mark.parametrize("waits", [False, True])
def test_what_is_sent_again_after_the_end_counts_only_if_both_runs_wait_for_it(waits: bool) -> None:
    result = deepcopy(run(SCENARIO, mode("elr"), 0, trace=True))
    result.settings = {**result.settings, "enable.idempotence": waits}
    acted = as_acted(result, "elr")
    assert differing(result, acted, "elr") == []
    for replica in acted.final.values():
        end = replica.batches[-1]
        assert end.name == "validation"
        replica.batches.append(
            replace(end, base_offset=end.last_offset + 1, last_offset=end.last_offset + 1, first_id=1)
        )
    changed = set(differing(result, acted, "elr"))
    assert ({"log of broker 1", "log of broker 2"} <= changed) == waits


def acknowledged(result: RunResult, acted: RealRun, name: str) -> dict[str, tuple[str, str]]:
    rows = comparison.compare(result, acted, lines_of(name), elr=mode(name).rules.elr == "on", epochs=True)
    return {
        row.what.partition(" ")[0]: (row.simulated, row.real) for row in rows if row.what.endswith(" acknowledged at")
    }


def test_the_offset_of_an_acknowledgement_is_compared_also_if_the_record_is_lost() -> None:
    result = run(SCENARIO, mode("kraft"), 0, trace=True)
    acted = as_acted(result, "kraft")
    assert "committed-loss" in comparison.violations(acted, acted.shown_until_end)
    assert acknowledged(result, acted, "kraft") == {"m1": ("0", "0"), "m2": ("1", "1"), "m3": ("1", "1")}
    kept = {entry[1] for replica in acted.final.values() for entry in comparison.entries_of_files(replica)}
    lost = next(send for send in acted.sends if send.first_id not in kept)
    assert lost.offset is not None
    lost.offset += 1
    assert differing(result, acted, "kraft") == [f"{lost.name} acknowledged at"]


def test_an_acknowledgement_of_a_batch_sent_again_after_the_end_is_none() -> None:
    result = run(SCENARIO, mode("elr"), 0, trace=True)
    acted = as_acted(result, "elr")
    for replica in acted.final.values():
        log, validation = replica.batches[:-1], replica.batches[-1]
        late = log.pop()
        offset = validation.base_offset
        replica.batches[:] = [
            *log,
            replace(validation, base_offset=late.base_offset, last_offset=late.last_offset),
            replace(late, base_offset=offset, last_offset=offset),
        ]
    sent = next(send for send in acted.sends if send.first_id == late.first_id)
    sent.offset = offset
    assert acknowledged(result, acted, "elr")[sent.name][1] == "no"


@pytest.fixture(scope="module", params=["kraft", "elr"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def result(name: str) -> RunResult:
    return run(SCENARIO, mode(name), 0, trace=True)


def differing(result: RunResult, acted: RealRun, name: str) -> list[str]:
    elr = mode(name).rules.elr == "on"
    rows = comparison.compare(result, acted, lines_of(name), elr=elr, epochs=True)
    return [row.what for row in rows if not row.agrees]


def test_a_run_agrees_with_itself(result: RunResult, name: str) -> None:
    acted = as_acted(result, name)
    assert differing(result, acted, name) == []
    kinds = {"committed-loss", "exposed-loss"} if name == "kraft" else set()
    assert comparison.violations(acted, acted.shown_until_end) == kinds


def swap_records(acted: RealRun) -> None:
    log = acted.final[3].batches
    log[0], log[1] = replace(log[0], first_id=log[1].first_id), replace(log[1], first_id=log[0].first_id)


def drop_a_change_of_the_isr(acted: RealRun) -> None:
    del acted.states[1]


def turn_epochs_round(acted: RealRun) -> None:
    first, second = acted.states[0].leader_epoch, acted.states[-1].leader_epoch
    acted.states[0] = replace(acted.states[0], leader_epoch=second)
    acted.states[-1] = replace(acted.states[-1], leader_epoch=first)


def add_an_elr_member(acted: RealRun) -> None:
    acted.states[2] = replace(acted.states[2], elr=(2, 3))


def show_another_record(acted: RealRun) -> None:
    acted.shown[1] = (1, 2)


def forget_a_line_of_the_story(acted: RealRun) -> None:
    acted.met[-1] = (True, None)


def refuse_an_acknowledgement(acted: RealRun) -> None:
    acted.sends[1].offset = None


def give_records_another_epoch(acted: RealRun) -> None:
    acted.final[1].batches[1] = replace(acted.final[1].batches[1], leader_epoch=99)


def change_an_epoch_cache(acted: RealRun) -> None:
    acted.final[2].epochs[-1] = (acted.final[2].epochs[-1][0], 9)


@pytest.mark.parametrize(
    ("tamper", "row"),
    [
        (swap_records, "log of broker 3"),
        (drop_a_change_of_the_isr, "partition 2"),
        (turn_epochs_round, "partition 1"),
        (add_an_elr_member, "partition 3"),
        (show_another_record, "consumer read"),
        (forget_a_line_of_the_story, "story: "),
        (refuse_an_acknowledgement, "m2 acknowledged at"),
        (give_records_another_epoch, "log of broker 1"),
        (change_an_epoch_cache, "epoch cache of broker 2"),
    ],
)
def test_what_was_tampered_with_differs(
    result: RunResult, name: str, tamper: Callable[[RealRun], None], row: str
) -> None:
    if tamper is add_an_elr_member and name == "kraft":
        pytest.skip("no ELR")
    acted = as_acted(result, name)
    tamper(acted)
    assert any(what.startswith(row) for what in differing(result, acted, name))


def first(result: RunResult, kind: str, place: int = 0) -> dict[str, Any]:
    """A step of a simulated run."""
    assert result.trace is not None
    return [step for step in result.trace if step["step"] == kind][place]


def swap_simulated_records(result: RunResult) -> None:
    view = result.replicas[2]
    (base, last, epoch, record), (base_2, last_2, epoch_2, record_2), *others = view.batches
    result.replicas[2] = replace(
        view, batches=[(base, last, epoch, record_2), (base_2, last_2, epoch_2, record), *others]
    )


def shrink_a_simulated_isr(result: RunResult) -> None:
    first(result, "isr")["isr"] = [1]


def turn_simulated_epochs_round(result: RunResult) -> None:
    first(result, "elected")["leader_epoch"] = 99


def add_a_simulated_elr_member(result: RunResult) -> None:
    first(result, "elr")["elr"] = [2, 3]


def show_another_simulated_record(result: RunResult) -> None:
    first(result, "read")["record"] = 2


@pytest.mark.parametrize(
    ("tamper", "row"),
    [
        (swap_simulated_records, "log of broker 3"),
        (shrink_a_simulated_isr, "partition 2"),
        (turn_simulated_epochs_round, "partition 1"),
        (add_a_simulated_elr_member, "partition "),
        (show_another_simulated_record, "consumer read"),
    ],
)
def test_a_simulation_that_was_tampered_with_differs(
    result: RunResult, name: str, tamper: Callable[[RunResult], None], row: str
) -> None:
    if tamper is add_a_simulated_elr_member and name == "kraft":
        pytest.skip("no ELR")
    acted = as_acted(result, name)
    other = deepcopy(result)
    tamper(other)
    assert any(what.startswith(row) for what in differing(other, acted, name))


def changes_of(*isrs: tuple[int, ...], epoch: int = 0, elr: tuple[int, ...] = ()) -> list[comparison.DecidedChange]:
    return [comparison.DecidedChange(1, epoch, isr, elr, ()) for isr in isrs]


ALONE, WITH_2, WITH_3, ALL = (1,), (1, 2), (1, 3), (1, 2, 3)


@pytest.mark.parametrize(
    ("simulated", "real", "free"),
    [
        (changes_of(ALONE, WITH_2, ALL), changes_of(ALONE, WITH_3, ALL), {1}),
        (changes_of(ALONE, WITH_2, ALL, (1, 2, 3, 4)), changes_of(ALONE, WITH_3, ALL, (1, 2, 3, 4)), {1}),
        (changes_of(ALONE, WITH_2, ALL), changes_of(ALONE, ALL), set()),
        (changes_of(ALONE, WITH_2, ALL), changes_of(ALONE, WITH_3, (1, 3, 4)), set()),
        (changes_of(ALL, WITH_2, ALONE), changes_of(ALL, WITH_3, ALONE), set()),
        (changes_of(ALL, WITH_2, ALL), changes_of(ALL, WITH_3, ALL), set()),
        (changes_of(ALONE, WITH_2, ALL), [*changes_of(ALONE, WITH_3), *changes_of(ALL, epoch=1)], set()),
        (changes_of(ALONE, WITH_2, ALL), [*changes_of(ALONE), *changes_of(WITH_3, ALL, elr=(4,))], set()),
        (changes_of(ALONE, WITH_2, ALL), changes_of((2,), WITH_3, ALL), set()),
    ],
)
def test_who_joins_first_does_not_count_and_everything_else_does(
    simulated: list[comparison.DecidedChange], real: list[comparison.DecidedChange], free: set[int]
) -> None:
    assert comparison.orders_of_joining(simulated, real) == free


@pytest.mark.parametrize(
    ("real", "departs"),
    [
        ([PartitionSnapshot(1, 4, ALL)], False),
        ([PartitionSnapshot(1, 4, ALL), PartitionSnapshot(1, 4, WITH_2), PartitionSnapshot(2, 5, WITH_2)], False),
        ([PartitionSnapshot(1, 4, ALL), PartitionSnapshot(1, 4, WITH_3)], True),
        ([PartitionSnapshot(1, 4, ALL), PartitionSnapshot(1, 4, WITH_2), PartitionSnapshot(1, 5, WITH_2)], True),
    ],
)
def test_brokers_depart_by_another_state_but_not_by_being_late(real: list[PartitionSnapshot], departs: bool) -> None:
    simulated = [comparison.DecidedChange(1, 0, isr, None, None) for isr in (ALL, WITH_2)]
    assert comparison.departs([*simulated, comparison.DecidedChange(2, 1, WITH_2, None, None)], real) == departs


LED = PartitionSnapshot(1, 4, ALL, replicas=ALL)


@pytest.mark.parametrize(
    ("real", "told"),
    [
        ([LED, replace(LED, isr=WITH_2)], ""),
        ([LED, replace(LED, isr=WITH_3)], "the ISR shrank from 1 2 3 to 1 3 under leader 1"),
        ([LED, replace(LED, isr=WITH_2), replace(LED, isr=ALONE)], "the ISR shrank from 1 2 to 1 under leader 1"),
        ([LED, replace(LED, isr=WITH_2), LED], ""),
        ([LED, replace(LED, isr=WITH_3, leader=3)], ""),
        ([LED, replace(LED, isr=WITH_3, replicas=WITH_3)], ""),
        ([LED, replace(LED, isr=WITH_2, leader=2), replace(LED, isr=(2,), leader=2)], ""),
    ],
)
def test_who_leaves_the_isr_without_the_simulation_does_so_by_time(real: list[PartitionSnapshot], told: str) -> None:
    """Unless something else happens before it or with it."""
    simulated = [comparison.DecidedChange(1, 0, isr, None, None) for isr in (ALL, WITH_2)]
    assert comparison.early_exit_from_isr(simulated, real) == told


def test_who_joins_first_is_no_departure() -> None:
    simulated = [comparison.DecidedChange(1, 0, isr, None, None) for isr in (ALONE, WITH_2, ALL)]
    assert not comparison.departs(simulated, [PartitionSnapshot(1, 0, ALONE), PartitionSnapshot(1, 0, WITH_3)])
    assert comparison.departs(simulated, [PartitionSnapshot(1, 0, ALL), PartitionSnapshot(1, 0, WITH_3)])


def test_a_new_leader_epoch_alone_is_a_change() -> None:
    """In 4.2.1 a reassignment that removes a replica completes with a new leader epoch, and the ISR as it was."""
    result = run(load("reassignment-stuck"), mode("elr"), 0, trace=True)
    changes = comparison.simulated_changes(result, 1 << 62, elr=True)
    assert [(change.epoch, change.isr) for change in changes[:2]] == [(0, (1, 2, 3)), (1, (1, 2, 3))]


def test_a_consumer_may_have_read_more(result: RunResult, name: str) -> None:
    acted = as_acted(result, name)
    del acted.shown[1:]
    del acted.shown_until_end[1:]
    assert differing(result, acted, name) == []


def test_logs_that_differ_below_both_high_watermarks_diverge(result: RunResult, name: str) -> None:
    acted = as_acted(result, name)
    acted.after_script[2] = ReplicaFiles([replace(acted.after_script[2].batches[0], first_id=7)], [], 1)
    assert "divergence" in comparison.violations(acted, [])
    acted.after_script[2].hw = 0
    assert "divergence" not in comparison.violations(acted, [])
    acted.after_script[2].hw, acted.after_script[2].settled = 1, False
    assert "divergence" not in comparison.violations(acted, [])


def test_an_end_offset_that_goes_back(result: RunResult, name: str) -> None:
    acted = as_acted(result, name)
    acted.end_offsets = [2, 3, 1]
    assert "hw-regression" in comparison.violations(acted, [])


def test_records_are_called_by_their_batches() -> None:
    names = {0: "m1", 5: "m2"}
    assert [comparison.record_name(record, names) for record in (0, 4, 5, 6)] == ["m1", "m1+4", "m2", "m2+1"]
    assert comparison.record_name(3, {}) == "3"


def numbered(first_id: int, *sequence: int) -> Stored:
    producer_id, producer_epoch, base_sequence = sequence
    return Stored(0, 0, 0, f"m{first_id}", first_id, 0, (producer_id, producer_epoch, base_sequence))


@pytest.mark.parametrize(
    ("batches", "failed", "found"),
    [
        ([numbered(0, 7, 0, 0), numbered(1, 7, 0, 1)], False, set()),
        ([numbered(1, 7, 0, 1)], True, {"sequence-gap"}),
        ([numbered(1, 7, 0, 1)], False, set()),  # The producer may still send m0.
        ([numbered(1, 7, 1, 0)], True, set()),  # It began anew.
        ([numbered(0, 7, 0, 0), numbered(1, 7, 0, 1)], True, set()),  # Appended, although the producer gave it up.
        ([numbered(0, 7, 0, 0), numbered(0, 7, 0, 1)], False, {"duplicate"}),
        ([numbered(0, 7, 0, 0), numbered(0, 7, 1, 0)], False, {"duplicate-across-epochs"}),
        ([numbered(1, 7, 0, 1), numbered(0, 7, 1, 0)], False, {"reordered-across-epochs"}),
        ([numbered(0, -1, -1, -1), numbered(0, -1, -1, -1)], False, set()),
    ],
)
def test_what_an_idempotent_producer_promises_is_judged_in_real_logs(
    batches: list[Stored], failed: bool, found: set[str]
) -> None:
    sends = [Send("m0", 0, 1, -1, failed=failed, sequence=(7, 0, 0)), Send("m1", 1, 1, -1, sequence=(7, 0, 1))]
    acted = RealRun(final={1: ReplicaFiles(batches, [], 0)}, leader=1, sends=sends)
    assert comparison.violations(acted, []) == found


READ = {"step": "read", "offset": 0, "last": 9, "record": 0}
OUT_AT_10 = ({"step": "seek", "offset": 10}, {"step": "out-of-range", "offset": 10})


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([READ, *OUT_AT_10, {"step": "reset", "offset": 8}], {"reset-skip"}),
        ([READ, *OUT_AT_10, {"step": "reset", "offset": 5}], set()),
        ([READ, *OUT_AT_10], set()),
        ([READ, OUT_AT_10[1], {"step": "reset", "offset": 8}], set()),  # Kafka's consumer compares leader epochs.
        ([READ, *OUT_AT_10, {"step": "reset", "offset": 8}, {"step": "seek", "offset": 4}], set()),
        ([*OUT_AT_10, {"step": "reset", "offset": 8}], set()),  # It had not come there.
    ],
)
def test_a_reset_that_leaves_records_behind_is_judged_if_the_application_sought(
    steps: list[dict[str, Any]], found: set[str]
) -> None:
    """Records 10 to 12 stand at offsets 5 to 7 now."""
    log = [Stored(0, 4, 0, "m1", 0, 0), Stored(5, 7, 1, "m3", 10, 0)]
    acted = RealRun(final={1: ReplicaFiles(log, [], 0)}, leader=1, steps=steps)
    assert comparison.violations(acted, [(offset, offset) for offset in range(5)]) == found


@pytest.mark.parametrize(
    ("log_starts", "found"), [((0, 0), {"divergence"}), ((1, 1), set()), ((0, 1), set()), ((2, 2), set())]
)
def test_what_was_deleted_is_neither_lost_nor_different(log_starts: tuple[int, int], found: set[str]) -> None:
    """Two logs that differ at offset 0; the consumer has read both records of the first."""
    logs = [[Stored(0, 0, 0, name, first, 0), Stored(1, 1, 0, "m2", 1, 0)] for name, first in (("m1", 0), ("m3", 2))]
    final = {
        broker: ReplicaFiles(log, [], 2, log_start=log_start)
        for broker, (log, log_start) in enumerate(zip(logs, log_starts, strict=True), start=1)
    }
    sends = [Send("m1", 0, 1, -1, offset=0), Send("m2", 1, 1, -1, offset=1)]
    acted = RealRun(final=final, leader=1, sends=sends)
    assert comparison.violations(acted, [(0, 0), (1, 1)]) == found
    assert comparison.entries_of_files(final[1]) == [(offset, offset, 0) for offset in range(log_starts[0], 2)]
    assert len(comparison.entries_of_files(final[1], deleted=True)) == 2
