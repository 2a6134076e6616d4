"""Faults of one message: the next of a type that a broker sends or receives is lost, held back, or sent twice.

Everything else passes, so that a held message is overtaken by others, also by those that reach the same node over other
connections: in Kafka a broker has one for each purpose (fetches, AlterPartition, heartbeats, metadata). Copies are of
messages only that Kafka's senders resend unchanged after a lost connection (`sim.kernel.message.Message.again`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from faults.bounds import Limits
from faults.kind import DISTURBED, MACHINE, Amount, Duration, FaultKind, Param, Targets
from faults.plan import Fault
from sim.environment.network import Effect
from sim.hosts.cluster import Cluster
from sim.hosts.interceptions import DRAWN, MESSAGES, NAMES
from sim.kernel.streams import Stream, choice

LATE: Final = "message-late"
"""The moment at which a message that was held back, or its copy, arrives."""
_OFTEN: Final = ("AlterPartitionRequest", "AlterPartitionResponse", "FetchRequest", "FetchResponse", "MetadataRecords")
"""Messages drawn three times as often as others."""
_MESSAGE: Final = Amount(
    "message", Param("message", required=True), "number of the message", bounds=(1, len(MESSAGES)), least=1,
    most=len(MESSAGES),
)  # fmt: skip


class MessageFault(FaultKind):
    """See the module. The fault waits for its message until it is undone, and has no effect without it."""

    effect: ClassVar[Effect]
    targets: ClassVar[Targets] = MACHINE
    amount: ClassVar[Amount | None] = _MESSAGE
    duration: ClassVar[Duration | None] = DISTURBED

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Wait for the message; False if its sender never sends it twice, and that is asked for."""
        name = NAMES[fault.value]
        message = MESSAGES[name]
        if self.effect is Effect.COPY and not message.is_resent:
            return False
        cluster.links.intercept(
            self.effect, name, message.links(target, cluster.settings, cluster.producers), (fault, target)
        )
        return True

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Deliver what was held or copied; wait for no message any longer."""
        cluster.links.release((fault, target))

    def draw_value(self, stream: Stream, limits: Limits) -> int:  # noqa: ARG002 - see `FaultKind.draw_value`
        """Draw a message."""
        names = [name for name in DRAWN if self.effect is not Effect.COPY or MESSAGES[name].is_resent]
        often = [name for name in names if name in _OFTEN]
        return NAMES.index(choice(stream, [*names, *often, *often]))

    def value_of(self, params: Mapping[str, Any]) -> int:
        """The number of the message."""
        return NAMES.index(params["message"])

    def param_of(self, value: int) -> int | str:
        return NAMES[value]


class MessageLoss(MessageFault):
    """See the module."""

    name: ClassVar[str] = "message-loss"
    meaning: ClassVar[str] = "lose the next message of a type that a broker sends or receives"
    effect: ClassVar[Effect] = Effect.LOSE


class MessageHold(MessageFault):
    """See the module."""

    name: ClassVar[str] = "message-hold"
    meaning: ClassVar[str] = (
        "hold back the next message of a type that a broker sends or receives, while others pass; without for_ms until "
        "a heal"
    )
    effect: ClassVar[Effect] = Effect.HOLD


class MessageCopy(MessageFault):
    """See the module."""

    name: ClassVar[str] = "message-copy"
    meaning: ClassVar[str] = (
        "deliver the next message of a type that a broker sends or receives again when the fault is over, if senders "
        "resend it unchanged"
    )
    effect: ClassVar[Effect] = Effect.COPY
