"""How ISR changes reach the controller: Kafka's DefaultAlterPartitionManager against `AlterPartitionManager`.

Operations: ``submit partition isr leader-epoch partition-epoch`` (members have broker epochs like their ids), ``then``
with the same (submitted as soon as the partition's present change has ended), ``answer error results`` (to what is in
flight; of each partition error, ISR, leader epoch and partition epoch, whether it was asked for or not), ``fail how``,
``epoch`` (of the broker, one higher), ``time ms``. To be seen are the requests that were sent, which changes ended how,
which wait, and the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem, AlterPartitionManager
from sim.protocol.messages import NONE
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Operation, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.protocol.rules import Rules

REQUEST_ERRORS: Final = ("STALE_BROKER_EPOCH", "CLUSTER_AUTHORIZATION_FAILED", "NOT_CONTROLLER", "UNKNOWN_SERVER_ERROR")
ERRORS: Final = (
    "INVALID_UPDATE_VERSION",
    "FENCED_LEADER_EPOCH",
    "NOT_LEADER_OR_FOLLOWER",
    "INELIGIBLE_REPLICA",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "INVALID_REQUEST",
    "NEW_LEADER_ELECTED",
)


class Broker:
    """The broker, its clock and its channel, as `sim.hosts.alter_partition_channel` has them."""

    def __init__(self) -> None:
        self._manager = AlterPartitionManager(self)
        self._now_us = 0
        self._broker_epoch = 0
        self._due_us: list[int] = []
        self._sent: list[Any] = []
        self._ended: list[list[Any]] = []
        self._next: dict[str, list[Any]] = {}

    # What the manager asks.

    def send_alter_partition(self, changes: list[AlterPartitionItem]) -> None:
        """See `AlterPartitionHost`."""
        sent = [
            [
                int(change.name),
                [[*entry] for entry in change.broker_epochs.items()],
                change.leader_epoch,
                change.partition_epoch,
            ]
            for change in changes
        ]
        self._sent.append([self._broker_epoch, sorted(sent)])

    def retry_alter_partition(self, after_us: int) -> None:
        """See `AlterPartitionHost`."""
        self._due_us.append(self._now_us + after_us)

    def ended(self, name: str, *how: Any) -> None:
        """A change was decided, or refused; another one may follow at once."""
        self._ended.append([int(name), [*how]])
        following = self._next.pop(name, None)
        if following is not None:
            self.submit(*following)

    # Operations.

    def do(self, operation: Operation) -> list[Any]:
        """Run one operation; the visible state after it."""
        name, *values = operation
        getattr(self, name)(*values)
        sent, self._sent = self._sent, []
        ended, self._ended = sorted(self._ended, key=_partition), []
        return [sent, ended, sorted(map(int, self._manager.pending)), self._now_us // 1_000]

    def submit(self, partition: int, isr: list[int], leader_epoch: int, partition_epoch: int) -> None:
        leader = Leader(self, str(partition))
        change = AlterPartitionItem(
            leader.name, tuple(isr), leader_epoch, partition_epoch, {member: member for member in isr}
        )
        self._manager.submit(leader, change, self._now_us)

    def then(self, partition: int, *change: Any) -> None:
        self._next[str(partition)] = [partition, *change]

    def answer(self, error: str, results: list[list[Any]]) -> None:
        if self._manager.in_flight is not None:
            decided = {
                str(partition): (refusal if refusal != "NONE" else NONE, tuple(isr), partition_epoch, leader_epoch, 0)
                for partition, refusal, isr, leader_epoch, partition_epoch in results
            }
            self._manager.on_reply(error if error != "NONE" else NONE, decided, self._now_us)

    def fail(self, how: str) -> None:
        self.answer(how, [])

    def epoch(self) -> None:
        self._broker_epoch += 1

    def time(self, ms: int) -> None:
        until_us = self._now_us + ms * 1_000
        while self._due_us and self._due_us[0] <= until_us:
            self._now_us = self._due_us.pop(0)
            self._manager.send()
        self._now_us = until_us


class Leader:
    """A partition that proposes ISR changes."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.name = name
        self._broker = broker

    def isr_persisted(
        self, isr: tuple[int, ...], partition_epoch: int, now_us: int, *, leader_epoch: int = -1, min_isr: int = 0
    ) -> None:
        """See `sim.protocol.kraft.alter_partition_manager.Proposer`."""
        self._broker.ended(self.name, "NONE", sorted(isr), leader_epoch, partition_epoch)

    def isr_refused(self, error: str, now_us: int) -> None:
        """See `sim.protocol.kraft.alter_partition_manager.Proposer`."""
        self._broker.ended(self.name, error)


def _partition(ended: list[Any]) -> Any:
    return ended[0]


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    broker = Broker()
    return [broker.do(operation) for operation in case]


def draw(rng: Random, release: str) -> Case:
    """Random operations on up to three partitions."""
    partitions = range(rng.randint(1, 3))
    case: Case = []
    for _ in range(rng.randint(5, 40)):
        name = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        match name:
            case "submit" | "then":
                case.append([name, rng.choice(partitions), _isr(rng), rng.randint(0, 3), rng.randint(0, 9)])
            case "answer" if rng.random() < 0.15:
                case.append([name, rng.choice(REQUEST_ERRORS), []])
            case "answer":
                answered = [partition for partition in partitions if rng.random() < 0.85]
                case.append([name, "NONE", [_result(rng, partition) for partition in answered]])
            case "fail":
                case.append([name, rng.choice(("version", "authentication"))])
            case "time":
                case.append([name, rng.choice((1, 49, 50, 51, 1_000))])
            case _:
                case.append([name])
    return case


def _isr(rng: Random) -> list[int]:
    return rng.sample((1, 2, 3), rng.randint(1, 3))


def _result(rng: Random, partition: int) -> list[Any]:
    error = "NONE" if rng.random() < 0.7 else rng.choice(ERRORS)
    return [partition, error, _isr(rng), rng.randint(0, 3), rng.randint(0, 9)]


_WEIGHTS: Final = {"submit": 30, "then": 8, "answer": 30, "fail": 4, "epoch": 3, "time": 20}


SUBJECT: Final = Subject(
    "alter-partition-manager",
    "highwater.AlterPartitions",
    since("3.9.0"),
    draw,
    run,
    quick=500,
    usual=5_000,
    deep=20_000,
    uses=("channels",),
    recorded=31_000,
    names_brokers=True,
)
