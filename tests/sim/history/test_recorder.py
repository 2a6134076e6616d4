from __future__ import annotations

import pytest

from sim.history import steps
from sim.history.recorder import Recorder
from sim.kernel.scheduler import BudgetError, Kernel
from sim.protocol.batch import Batch
from sim.protocol.messages import ProduceRequest, ProduceResponse
from tests.sim.checkers.histories import log

CODES = {
    "append": 0, "truncate": 1, "replicated": 2, "hw": 3, "elected": 4, "isr": 5, "lead": 6, "follow": 7, "settled": 8,
    "ack": 9, "read": 10, "end-offset": 11, "out-of-range": 12, "kill": 13, "power-loss": 14, "shutdown": 15,
    "halt": 16, "start": 17, "recovered": 18, "registered": 19, "session-end": 20, "log-start": 21, "cut": 22,
    "heal": 23, "exit": 24, "controller": 25, "deleted": 26, "epoch-raised": 27, "converged": 28, "acknowledges": 29,
    "reset": 30, "seek": 31, "truncation-detected": 32, "rewind": 33, "commit": 34, "restart-consumer": 35,
    "offset-for-time": 36, "producer-id": 37, "pause": 38, "resume": 39, "disk-stalled": 40, "disk-works": 41,
    "slow": 42, "lossy": 43, "resent": 44, "disk-replaced": 45, "corrupt-tail": 46, "unfenced": 47, "elr": 48,
    "message-lost": 49, "message-held": 50, "message-copied": 51,
    "directory-failed": 52, "directory-replaced": 53, "directory-offline": 54,
    "controller-start": 55, "controller-end": 56, "controller-pause": 57, "controller-resume": 58, "raft-leader": 59,
    "metadata-lost": 60, "file-damaged": 61, "discovery": 62,
    "preferred-replica": 63,
    "next-process": 64, "committed-offset": 65, "commit-ack": 66, "no-record-in-time": 68, "held-back": 69,
    "snapshot-made": 70, "snapshot-loaded": 71, "voters": 72,
}  # fmt: skip
"""As in every release: a step that is new gets a number of its own."""
TRACED_FACTS = [
    "assigned", "batch-failed", "controller-crashed", "coordinator-empty", "coordinator-failed", "coordinator-loaded",
    "coordinator-unloaded", "directory-assigned", "message-late",
    "metadata-slowed", "metadata-sped-up", "offsets-answer", "refused", "retention",
    "topic-created", "topic-deleted", "topic-refused",
]  # fmt: skip
"""In traces, though in no digest."""


def test_the_numbers_of_steps_in_digests_stay_what_they_are() -> None:
    assert {kind.name: kind.code for kind in steps.KINDS if kind.code != steps.FACT} == CODES
    assert list(steps.STEPS) == [*CODES, *TRACED_FACTS]


class Spy(steps.Listener):
    """Notes which of its methods is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattribute__(self, name: str) -> object:
        if name.startswith("on_"):
            object.__getattribute__(self, "asked").append(name)
        return object.__getattribute__(self, name)


STEPS = [kind for kind in vars(steps).values() if isinstance(kind, type) and issubclass(kind, steps.Step)]


@pytest.mark.parametrize("kind", [kind for kind in STEPS if kind not in (steps.Step, steps.InEpoch, steps.NewLog)])
def test_each_step_calls_a_method_that_kinds_name(kind: type[steps.Step]) -> None:
    spy = Spy()
    kind.__new__(kind).tell([spy])
    assert spy.asked[0] in {kind.method for kind in steps.KINDS}
    assert spy.asked[1:] in (["on_step"], [])


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_a_success_that_a_client_received_is_no_brokers_moment(acks: int) -> None:
    """A fault that strikes where the moment was has no broker to strike there."""
    request = ProduceRequest(1001, "highwater-0", 3, 1, acks)
    assert steps.Ack(ProduceResponse(request, "", base_offset=5)).moments() == [("ack", 0)]


def test_each_method_of_a_listener_is_named_by_a_kind() -> None:
    methods = {name for name in vars(steps.Listener) if name.startswith("on_")}
    assert methods == {kind.method for kind in steps.KINDS}


def test_completed_truncations_are_counted_by_their_rounds() -> None:
    recorder = Recorder(Kernel())
    for rounds in (0, 1, 1, 2, 3, 7):
        recorder.record(steps.Settled(1, 0, rounds))
    assert recorder.counts.rounds == [2, 1, 2]


def test_records_are_counted_wherever_they_come_to() -> None:
    recorder, first, second = Recorder(Kernel(), 7), Batch(0, 2, 0, 0), Batch(3, 3, 0, 3)
    for broker in (1, 2):
        recorder.record(steps.Append(broker, log(first), first))
    digest = recorder.digest()
    with pytest.raises(BudgetError, match=r"^sim\.record\.budget: 7 records by 0\.000000 s$"):
        recorder.record(steps.Read(1002, [first], 1, 0))
    assert recorder.digest() == digest
    with pytest.raises(BudgetError):
        recorder.record(steps.Append(1, log(first, second), second))
    with pytest.raises(BudgetError):
        recorder.record(steps.Metadata(steps.REPLAYED_METADATA, 1, 0, []))


class Rounds(steps.Listener):
    """Is told of one kind of step."""

    def __init__(self, told: list[object]) -> None:
        self.told = told

    def on_settled(self, step: steps.Settled) -> None:
        self.told.append(step.rounds)


def test_listeners_receive_their_steps_moments_first_and_traces_last() -> None:
    recorder = Recorder(Kernel())
    told: list[object] = []
    recorder.attach([Rounds(told)])
    recorder.observe(lambda shown: told.append(shown["step"]))
    recorder.arm("settled", told.append)
    recorder.record(steps.Settled(3, 0, 7))
    recorder.record(steps.Controller(1, 1))
    assert told == [3, 7, "settled", "controller"]


def test_an_armed_moment_calls_back_once_unless_it_is_disarmed() -> None:
    recorder = Recorder(Kernel())
    told: list[tuple[str, int]] = []

    def third(broker: int) -> None:
        told.append(("third", broker))
        recorder.disarm("settled", third)

    def second(broker: int) -> None:
        told.append(("second", broker))

    def never(_: int) -> None:
        raise AssertionError

    recorder.arm("settled", third, 3)
    recorder.arm("settled", never, 3)
    for broker in range(1, 6):
        recorder.record(steps.Settled(broker, 0, 7))
        if broker == 1:
            recorder.arm("settled", second, 2)
            recorder.disarm("settled", never)
            recorder.disarm("settled", never)
    assert told == [("third", 3), ("second", 3)]
    assert list(recorder.armed) == ["settled"]
    recorder.disarm("settled", second)
    assert not recorder.armed


def test_partitions_share_the_digest_and_each_has_a_history() -> None:
    digests = []
    for place in range(3):
        recorder = Recorder(Kernel())
        others = [recorder.add_partition(name) for name in ("other-0", "other-1")]
        first, *_ = everyone = [recorder, *others]
        everyone[place].record(steps.LogStart(1, 7))
        assert [len(one.history.steps) for one in everyone] == [int(place == other) for other in range(3)]
        assert first.of("other-1") is others[1]
        assert first.of("any") is first
        digests.append(first.digest())
    alone = Recorder(Kernel())
    alone.record(steps.LogStart(1, 7))
    assert digests[0] == alone.digest()
    assert len(set(digests)) == 3


def test_a_step_of_a_process_is_in_each_history_and_once_in_the_digest() -> None:
    recorder, alone = Recorder(Kernel()), Recorder(Kernel())
    other = recorder.add_partition("other-0")
    traced: list[steps.Shown] = []
    recorder.observe(traced.append, everywhere=True)
    for one in (recorder, alone):
        one.record_for_all(steps.Start(1, 1))
    assert recorder.digest() == alone.digest()
    assert [step.kind for step in other.history.steps] == [steps.START]
    other.record(steps.LogStart(1, 7))
    assert [(step["step"], step.get("partition")) for step in traced] == [("start", None), ("log-start", "other-0")]


def test_the_first_partition_may_be_deleted_before_others() -> None:
    recorder, alone = Recorder(Kernel()), Recorder(Kernel())
    other = recorder.add_partition("other-0")
    traced: list[steps.Shown] = []
    of_first: list[steps.Shown] = []
    recorder.observe(traced.append, everywhere=True)
    recorder.observe(of_first.append)
    waited: list[int] = []
    recorder.arm("session-end", waited.append)
    recorder.record_for_all(steps.Start(1, 1))
    recorder.close()
    for one in (recorder, alone):
        one.record_for_all(steps.Start(2, 1))
        one.record_for_all(steps.End(2, steps.KILL, []))
        one.record_for_all(steps.SessionEnd(2))
        one.record(steps.LinkChange(steps.CUT, 1, 2))
    assert [step["step"] for step in traced] == ["start", "start", "kill", "session-end", "cut"]
    assert [step["step"] for step in of_first] == ["start"]
    assert waited == [2]
    kinds = [steps.START, steps.START, steps.KILL, steps.SESSION_END]
    assert [step.kind for step in recorder.history.steps] == kinds[:1]
    assert [step.kind for step in other.history.steps] == kinds
    late = recorder.add_partition("late-0")
    recorder.catch_up(late)
    assert [step.kind for step in late.history.steps] == kinds
    alone_too = Recorder(Kernel())
    for recorded in (steps.Start(1, 1), steps.Start(2, 1), steps.End(2, steps.KILL, []), steps.SessionEnd(2)):
        alone_too.record_for_all(recorded)
    alone_too.record(steps.LinkChange(steps.CUT, 1, 2))
    assert recorder.digest() == alone_too.digest() != alone.digest()


def test_partitions_share_one_record_budget() -> None:
    recorder = Recorder(Kernel(), 3)
    other = recorder.add_partition("other-0")
    one = log(Batch(0, 2, 0, 0))
    recorder.record(steps.Append(1, one, one.batches[0]))
    with pytest.raises(BudgetError):
        other.record(steps.Append(1, one, one.batches[0]))
