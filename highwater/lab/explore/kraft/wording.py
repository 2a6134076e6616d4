"""Events of a KRaft cluster in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from highwater.lab.explore import wording
from highwater.lab.explore.kraft.messages import Alter, Altered, Register, RegistrationAnswer
from highwater.lab.explore.wording import listed

if TYPE_CHECKING:
    from highwater.lab.explore.kraft.broker import KRaftBrokerMachine

SENTENCES: Final = {
    **wording.SENTENCES,
    "replay": "broker {0} replays metadata transactions: {1}",
    "expire": "the session of broker {0} expires: it is fenced",
    "heartbeat": "a heartbeat of broker {0} arrives: it is unfenced",
    "configure": "an administrator sets min.insync.replicas to {0}",
    "feature": "an administrator sets feature eligible.leader.replicas.version to {0}",
    "elect": "a preferred election: broker {0} is elected",
    "lose": "broker {0} loses power, and starts again with {1} records",
    "kill": "broker {0} is killed, and starts again",
    "stop": "broker {0} stops cleanly, and starts again",
}
"""Kind of an event -> its sentence."""


def arrival(machine: KRaftBrokerMachine, message: Any) -> str:
    """The arrival of a message in words."""
    if isinstance(message, Alter):
        _, item = machine.payload(message.payload)
        epochs = f"leader epoch {item.leader_epoch}, partition epoch {item.partition_epoch}"
        return f"the controller receives AlterPartition of broker {message.broker}: ISR {listed(item.isr)}, {epochs}"
    if isinstance(message, Altered):
        error, isr, *_ = machine.payload(message.payload)
        return f"broker {message.broker} receives its AlterPartition response: {error or 'ISR ' + listed(isr)}"
    if isinstance(message, Register):
        clean = "after a clean stop" if message.clean_epoch >= 0 else "after an unclean stop"
        return f"the controller registers broker {message.broker} {clean}"
    if isinstance(message, RegistrationAnswer):
        return f"broker {message.broker} receives the response to registration {message.incarnation}"
    return wording.arrival(machine, message)
