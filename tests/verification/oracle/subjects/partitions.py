"""Partitions of one broker, whose ISRs one manager proposes: Partition and DefaultAlterPartitionManager together.

Broker 1 has partitions 0 to 2. Operations: as those of `partition` in KRaft, each of ``lead``, ``follow``, ``append``,
``copy``, ``fetch``, ``shrink`` and ``min-isr`` with the partition as its first argument; ``answer error results`` (to
the request in flight: of each partition, whether it was asked for or not, an error, a leader epoch and a partition
epoch; the ISR is the one that was asked for, if any), ``fail how``, ``epoch`` (of the broker, one higher) and ``wait
ms``, in which what is due happens. To be seen are the answer, the requests, and of each partition the writes with
acks=all that are done with, and what `partition` shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem, AlterPartitionManager
from sim.protocol.messages import NONE
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Operation, Seen, Subject
from tests.verification.oracle.subjects import partition
from tests.verification.oracle.subjects.alter_partition_manager import REQUEST_ERRORS
from tests.verification.oracle.subjects.partition import ERRORS, OTHERS

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.protocol.rules import Rules

MOST: Final = 3
AROUND: Final = ("wait", "broker", "epoch", "answer", "fail")
"""Operations that are not of one partition."""


class Host(partition.Host):
    """The broker, as one of its partitions sees it."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(asks_controller=True)
        self.brokers = broker.brokers
        self.manager = broker.manager


class Broker:
    """The broker, its clock, its channel and its partitions."""

    def __init__(self, rules: Rules, imitated: Collection[str]) -> None:
        self.brokers: dict[int, tuple[str, int]] = {}
        self.manager = AlterPartitionManager(self)
        self._now_us = 0
        self._broker_epoch = 1
        self._due_us: list[int] = []
        self._sent: list[Any] = []
        self._drivers = [partition.Driver(rules, imitated, Host(self), str(number)) for number in range(MOST)]

    # What the manager asks.

    def send_alter_partition(self, changes: list[AlterPartitionItem]) -> None:
        """See `AlterPartitionHost`."""
        sent = [
            [
                int(change.name),
                [[member, change.broker_epochs[member]] for member in sorted(change.isr)],
                change.leader_epoch,
                change.partition_epoch,
            ]
            for change in changes
        ]
        self._sent.append([self._broker_epoch, sorted(sent)])

    def retry_alter_partition(self, after_us: int) -> None:
        """See `AlterPartitionHost`."""
        self._due_us.append(self._now_us + after_us)

    # Operations.

    def do(self, operation: Operation) -> list[Any]:
        """Run one operation; the visible state after it."""
        for driver in self._drivers:
            driver.host.completed = []
        name, *values = operation
        answer = None
        if name in AROUND:
            getattr(self, f"_{name}")(*values)
        else:
            number, *values = values
            answer = self._drivers[number].answer(name, *values)
        sent, self._sent = self._sent, []
        states = [[sorted(driver.host.completed), *driver.state()] for driver in self._drivers]
        return [answer, sent, *states]

    def _wait(self, ms: int) -> None:
        until_us = self._now_us + ms * 1_000
        while self._due_us and self._due_us[0] <= until_us:
            self._set_time(self._due_us.pop(0))
            self.manager.send()
        self._set_time(until_us)

    def _set_time(self, now_us: int) -> None:
        self._now_us = now_us
        for driver in self._drivers:
            driver.host.now_us = now_us

    def _broker(self, broker: int, state: str, epoch: int) -> None:
        self.brokers[broker] = state, epoch

    def _epoch(self) -> None:
        self._broker_epoch += 1

    def _answer(self, error: str, results: list[list[Any]]) -> None:
        if self.manager.in_flight is not None:
            wanted = {change.name: change.isr for change in self.manager.in_flight}
            decided = {
                str(number): (
                    refusal if refusal != "NONE" else NONE,
                    wanted.get(str(number), (partition.LOCAL,)),
                    partition_epoch,
                    leader_epoch,
                    0,
                )
                for number, refusal, leader_epoch, partition_epoch in results
            }
            self.manager.on_reply(error if error != "NONE" else NONE, decided, self._now_us)

    def _fail(self, how: str) -> None:
        self._answer(how, [])


class OneDrawing(partition.Drawing):
    """Draws what happens to one of the partitions."""

    def __init__(self, rng: Random, release: str, epochs: dict[int, int]) -> None:
        super().__init__(rng, release)
        self._epochs = epochs

    def begin(self) -> None:
        """It has a leader."""
        self._lead()

    def step(self) -> None:
        """One operation; seldom none."""
        steps = [self._lead, self._follow, self._write, self._fetch, self.shrink, self._min_isr]
        self._rng.choices(steps, [3, 1, 14, 46, 8, 3])[0]()

    def catch_up(self) -> None:
        """Followers fetch from where the log ends, which lets them join the ISR."""
        for follower in self._others:
            if self._leads and self._rng.random() < 0.7:
                self._fetch_all(follower)

    def shrink(self) -> None:
        """Members of the ISR that have not caught up leave it."""
        self.case.append(["shrink"])

    def _min_isr(self) -> None:
        self.case.append(["min-isr", self._rng.choice((1, 2, 3))])

    def decision(self, number: int) -> list[Any]:
        """What the controller answers."""
        rng = self._rng
        error = "NONE" if rng.random() < 0.7 else rng.choice(ERRORS)
        self._partition_epoch += error == "NONE" and rng.choice((0, 1, 1, 1))
        return [number, error, self._leader_epoch - (rng.random() < 0.05), self._partition_epoch]


class Drawing:
    """Draws a case."""

    def __init__(self, rng: Random, release: str) -> None:
        self._rng = rng
        self._epochs = dict.fromkeys(OTHERS, 10)
        self._drawings = [OneDrawing(rng, release, self._epochs) for _ in range(rng.choice((1, 2, 2, 2, 3)))]
        self.case: Case = []

    def draw(self) -> Case:
        """A case."""
        rng = self._rng
        for broker in OTHERS:
            if rng.random() < 0.9:
                self.case.append(["broker", broker, "alive", 10])
        for number, drawing in enumerate(self._drawings):
            drawing.begin()
            self._take(number)
        for _ in range(rng.randint(6, 60)):
            roll = rng.random()
            if roll < 0.1:
                self._together()
            elif roll < 0.65:
                number = rng.randrange(len(self._drawings))
                self._drawings[number].step()
                self._take(number)
            else:
                self._around()
        return self.case

    def _together(self) -> None:
        """Several partitions propose an ISR, mostly while a request is in flight."""
        rng = self._rng
        if is_late := rng.random() < 0.4:
            self.case.append(["wait", 10_001])
        for number in rng.sample(range(len(self._drawings)), len(self._drawings)):
            drawing = self._drawings[number]
            (drawing.shrink if is_late else drawing.catch_up)()
            self._take(number)

    def _take(self, number: int) -> None:
        """Take what was drawn for a partition."""
        drawing = self._drawings[number]
        self.case += [[name, number, *values] for name, *values in drawing.case]
        drawing.case.clear()

    def _around(self) -> None:
        rng = self._rng
        roll = rng.random()
        if roll < 0.25:
            self.case.append(["wait", rng.choice((1, 49, 50, 51, 2_000, 5_000, 9_999, 10_000, 10_001))])
        elif roll < 0.4:
            broker = rng.choice(OTHERS)
            self._epochs[broker] += rng.choice((0, 0, 1))
            state = rng.choice(("alive", "alive", "fenced", "stopping"))
            self.case.append(["broker", broker, state, self._epochs[broker]])
        elif roll < 0.43:
            self.case.append(["epoch"])
        elif roll < 0.48:
            self.case.append(["fail", rng.choice(("version", "authentication"))])
        elif roll < 0.55:
            self.case.append(["answer", rng.choice(REQUEST_ERRORS), []])
        else:
            answered = [number for number in range(len(self._drawings)) if rng.random() < 0.85]
            self.case.append(["answer", "NONE", [self._drawings[number].decision(number) for number in answered]])


def draw(rng: Random, release: str) -> Case:
    """See `Subject.draw`."""
    return Drawing(rng, release).draw()


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    broker = Broker(rules, partition.differences_of_leader(release))
    return [broker.do(operation) for operation in case]


SUBJECT: Final = Subject(
    "partitions",
    "highwater.PartitionsSubject",
    since("3.9.0"),
    draw,
    run,
    quick=150,
    usual=1_000,
    deep=20_000,
    uses=("batches", "logs", "partition", "channels"),
    recorded=45_000,
    names_brokers=True,
)
