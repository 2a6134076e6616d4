"""Driver of kind ``alter_partition_sender``: one broker's ISR changes on their way to the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem, AlterPartitionManager, Result
from sim.protocol.messages import NO_EPOCH, NONE
from tests.verification.conformance.driving import Kind, Seen

if TYPE_CHECKING:
    from sim.protocol.rules import Rules
    from tests.verification.conformance.cases import Fields

SOME_ISR: Final = (1, 2, 3)


class Waiting:
    """Stands in for a partition, and records the results of its changes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.error: str | None = None

    def isr_persisted(
        self, isr: tuple[int, ...], partition_epoch: int, now_us: int, *, leader_epoch: int = NO_EPOCH, min_isr: int = 0
    ) -> None:
        """See `Partition`."""

    def isr_refused(self, error: str, now_us: int) -> None:
        """See `Partition`."""
        self.error = error


class Sending:
    """The state of a case: the sender, which talks to this object."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        assert not given
        self.sender = AlterPartitionManager(self)
        self.partitions: dict[str, Waiting] = {}
        self.requests: list[list[AlterPartitionItem]] = []
        self.now_us = 0
        self.retry_us: int | None = None

    def send_alter_partition(self, changes: list[AlterPartitionItem]) -> None:
        """See `AlterPartitionHost`."""
        self.requests.append(list(changes))

    def retry_alter_partition(self, after_us: int) -> None:
        """See `AlterPartitionHost`."""
        self.retry_us = self.now_us + after_us

    def _submit(self, name: str, isr: tuple[int, ...]) -> Seen:
        partition = self.partitions.setdefault(name, Waiting(name))
        partition.error = None
        self.sender.submit(partition, AlterPartitionItem(name, isr, 0, 0, {}), self.now_us)
        return Seen(error=partition.error)

    def submit(self, op: Fields) -> Seen:
        """Submit an ISR change of a partition."""
        return self._submit(str(op["partition"]), tuple(op.get("isr", SOME_ISR)))

    def submit_many(self, op: Fields) -> None:
        """Submit ISR changes of several partitions: ``1..9`` or ``1,2``."""
        first, dots, last = op["partitions"].partition("..")
        names = range(int(first), int(last) + 1) if dots else map(int, op["partitions"].split(","))
        for name in names:
            self._submit(str(name), SOME_ISR)

    def _results(self, error: str = NONE) -> dict[str, Result]:
        return {change.name: (error, change.isr, 1, 0, 0) for change in self.requests[-1]}

    def answer(self, op: Fields) -> None:
        """Answer as a controller that accepts the changes."""
        assert op.get("error", "NONE") == "NONE"
        results = self._results()
        if "partition" in op:
            results = {str(op["partition"]): results[str(op["partition"])]}
        self.sender.on_reply(NONE, results, self.now_us)

    def answer_omitting(self, op: Fields) -> None:
        """Answer for all partitions but one."""
        results = self._results()
        del results[str(op["partition"])]
        self.sender.on_reply(NONE, results, self.now_us)

    def refuse(self, op: Fields) -> None:
        """Refuse one partition's change."""
        name = str(op["partition"]) if "partition" in op else self.requests[-1][0].name
        self.sender.on_reply(NONE, {name: self._results(op["error"])[name]}, self.now_us)

    def fail(self, op: Fields) -> None:
        """Refuse the whole request."""
        self.sender.on_reply(op["error"], {}, self.now_us)

    def advance(self, op: Fields) -> Seen:
        """Advance time, and send requests that are due."""
        sent = len(self.requests)
        self.now_us += op["ms"] * 1_000
        if self.retry_us is not None and self.retry_us <= self.now_us:
            self.retry_us = None
            self.sender.send()
        return Seen(resent=len(self.requests) > sent)

    def observe(self) -> Seen:
        """Requests sent, and pending changes."""
        errors = [partition.error for partition in self.partitions.values()]
        return Seen(
            pending=bool(self.sender.pending),
            requests_sent=len(self.requests),
            partitions_in_second_request=len(self.requests[1]) if len(self.requests) > 1 else None,
            sent_isr=self.requests[-1][-1].isr if self.requests else None,
            future_failed_with=next((error for error in errors if error), None),
        )


KIND = Kind(
    begin=Sending,
    ops={
        "submit": Sending.submit,
        "submit_many": Sending.submit_many,
        "response": Sending.answer,
        "response_omitting": Sending.answer_omitting,
        "partition_error": Sending.refuse,
        "top_level_error": Sending.fail,
        "advance": Sending.advance,
    },
    observe=Sending.observe,
)
