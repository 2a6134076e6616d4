"""Draws incidents of overtaking: a message is outdated when it arrives, because what it is about has changed meanwhile.

Brokers and controllers recognise outdated requests and responses by leader epochs, partition epochs, broker epochs and
offsets. An incident holds back, loses or doubles one message, mostly right after the step that sends it. Meanwhile, or
when it arrives, the brokers that it is about restart, stall, or lose leadership, or the controller fails over. Each
element is drawn on its own, so no known failure is spelt out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from faults.bounds import Limits
from faults.kinds.message_faults import LATE, MessageCopy, MessageHold, MessageLoss
from faults.kinds.registry import KINDS
from faults.plan import CONTROLLER, ISR_MEMBER, LAST_MEMBER, LAST_TARGET, LEADER, OUTSIDER, STEP_BROKER, Fault, Trigger
from faults.stories.strike import draw_strike
from sim.hosts.interceptions import MESSAGES, NAMES
from sim.kernel.streams import Stream, choice, integer

MESSAGE_KINDS: Final = (MessageHold.name, MessageLoss.name, MessageCopy.name)


@dataclass(frozen=True, slots=True)
class Sending:
    """Messages, and when and by which brokers they are sent or received.

    Attributes:
        messages: names of types.
        moments: steps around which they are sent; empty: when a broker starts, which the next fault restarts.
        targets: brokers that send or receive them; 0: any broker.
    """

    messages: tuple[str, ...]
    moments: tuple[str, ...]
    targets: tuple[int, ...]


SENDINGS: Final = (
    Sending(("AlterPartitionRequest", "AlterPartitionResponse"), ("isr-sent", "isr-sent", "settled"), (LEADER,)),
    Sending(("FetchRequest", "FetchResponse"), ("append", "follow", "elected", "isr-sent"), (ISR_MEMBER, OUTSIDER)),
    Sending(("MetadataRecords",), ("isr", "joined", "elected"), (LEADER, ISR_MEMBER, OUTSIDER)),
    Sending(("BrokerRegistrationRequest", "BrokerRegistrationResponse"), (), (0,)),
    Sending(("BrokerHeartbeatRequest", "BrokerHeartbeatResponse"), ("registered", "follow", "isr"), (LEADER, OUTSIDER)),
    Sending(
        ("ControllerRequestBatch", "ControlResponse"),
        ("elected", "isr", "controller", "session-end"),
        (LEADER, ISR_MEMBER, OUTSIDER),
    ),
    Sending(
        ("OffsetsForLeaderEpochRequest", "OffsetsForLeaderEpochResponse"), ("lead", "follow"), (ISR_MEMBER, OUTSIDER)
    ),
    Sending(("ProduceRequest", "ProduceResponse"), ("append", "replicated", "elected"), (LEADER,)),
)
LASTS_US: Final = ((100_000, 2_000_000), (2_000_000, 12_000_000), (8_000_000, 40_000_000))
"""How long a message is held: a few fetches, a heartbeat or half a session, or until a stopped broker is back."""
GAPS_US: Final = (2_000, 300_000, 3_000_000, 12_000_000)
"""Longest times between two elements."""
RESTART_US: Final = ((200_000, 3_000_000), (2_000_000, 20_000_000))
STALL_US: Final = ((500_000, 6_000_000), (5_000_000, 40_000_000))
TARGETS: Final = (LEADER, LEADER, LAST_TARGET, LAST_TARGET, STEP_BROKER, ISR_MEMBER, OUTSIDER, LAST_MEMBER, CONTROLLER)
"""Roles as targets, repeated by weight; every fifth target is a broker."""
MOMENTS: Final = ("isr-sent", "isr", "joined", "append", "ack", "hw", "registered", "follow", "elected", "session-end")
WAIT_US: Final = (1_000_000, 30_000_000)
"""How long an element waits for its step."""
LEAST: Final = 2


def draw(stream: Stream, faults: int, kinds: Sequence[str], limits: Limits, at_us: int, last_us: int) -> list[Fault]:
    """Draw one incident of at least `LEAST` faults, from its own stream; none without a fault of messages, or another.

    The `kinds` are repeated by the seed's weights; if none of them is of messages, or moves leadership, those of the
    limits are drawn. The limits hold except for durations. No fault strikes after `last_us`.
    """
    strikes = [kind for kind in kinds if kind in MESSAGE_KINDS]
    strikes = strikes or [kind for kind in limits.bounds.kinds if kind in MESSAGE_KINDS]
    others = [kind for kind in kinds if kind not in MESSAGE_KINDS]
    if not strikes or not others:
        return []
    moving = [kind for kind in others if KINDS[kind].moves_leader]
    moving = moving or [kind for kind in limits.bounds.kinds if KINDS[kind].moves_leader] or others
    plan: list[Fault] = []
    now_us = at_us
    message: Fault | None = None
    while len(plan) < faults:
        if message is not None and stream.random() * 4 >= 1:
            other = choice(stream, moving if stream.getrandbits(1) else others)
            fault = _strike(stream, other, limits, now_us, _target(stream, limits))
            when = stream.random() * 9
            if when < 5:
                fault = _meanwhile(stream, fault, message, last_us)
            elif when < 7:
                fault = _aimed(stream, fault, (LATE,), last_us)
            elif when < 8:
                fault = _aimed(stream, fault, MOMENTS, last_us)
            plan.append(fault)
        else:
            sending = choice(stream, SENDINGS)
            message = _message(stream, choice(stream, strikes), sending, limits, now_us, last_us)
            plan.append(message)
            if not sending.moments and len(plan) < faults:
                now_us = min(now_us + integer(stream, 0, GAPS_US[1]), last_us)
                plan.append(_strike(stream, choice(stream, moving), limits, now_us, LAST_TARGET))
        now_us = min(now_us + integer(stream, 0, choice(stream, GAPS_US)), last_us)
    return plan


def _meanwhile(stream: Stream, fault: Fault, message: Fault, last_us: int) -> Fault:
    """Let a fault strike while the message is under way: after the step that sends it, or after that fault's time."""
    gap_us = integer(stream, 0, choice(stream, GAPS_US))
    if message.trigger is None:
        return replace(fault, at_us=min(message.at_us + gap_us, last_us))
    sent = message.trigger
    trigger = Trigger(sent.moment, sent.occurrence, sent.after_us + gap_us, min(sent.until_us + gap_us, last_us))
    return replace(fault, at_us=message.at_us, trigger=trigger)


def _message(stream: Stream, kind: str, sending: Sending, limits: Limits, at_us: int, last_us: int) -> Fault:
    """Draw a fault of one message."""
    names = [name for name in sending.messages if kind != MessageCopy.name or MESSAGES[name].is_resent]
    target = choice(stream, sending.targets) or choice(stream, limits.all_brokers)
    name = choice(stream, names or [name for name, message in MESSAGES.items() if message.is_resent])
    fault = Fault(kind, at_us, (target,), integer(stream, *choice(stream, LASTS_US)), value=NAMES.index(name))
    return _aimed(stream, fault, sending.moments, last_us) if sending.moments else fault


def _target(stream: Stream, limits: Limits) -> int:
    return choice(stream, limits.all_brokers) if stream.random() * 5 < 1 else choice(stream, TARGETS)


def _strike(stream: Stream, kind: str, limits: Limits, at_us: int, target: int) -> Fault:
    """Draw a fault of another kind."""
    return draw_strike(stream, kind, limits, at_us, target, STALL_US, RESTART_US)


def _aimed(stream: Stream, fault: Fault, moments: Sequence[str], last_us: int) -> Fault:
    """Let a fault wait for one of some steps."""
    until_us = min(fault.at_us + integer(stream, *WAIT_US), last_us)
    after_us = integer(stream, 0, choice(stream, GAPS_US)) if stream.random() * 3 < 1 else 0
    return fault.with_trigger(Trigger(choice(stream, moments), integer(stream, 1, 2), after_us, until_us))
