"""Draws incidents in a window: batches are sent while a change is under way, and a broker ends right after them.

Most rules of replication guard a window of some milliseconds: an ISR is proposed and not yet persisted, a leader is
elected and not yet known to all, a replica has returned and not yet fetched, a follower has fetched and does not know
the high watermark. A rule that is wrong there shows only if a record is acknowledged within the window, and a broker
that has the record fails before the window closes. An incident opens a window, perhaps keeps it open by a message that
is held, sends batches in it (fault `next-batches`), ends a broker right after a step of these batches, and goes on with
more of these parts while brokers return, or when the message arrives. Each part waits until the one before it has
struck. The change, the brokers that it concerns and the brokers that end are drawn, so no known failure is scripted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from faults.bounds import Limits
from faults.kinds.message_faults import LATE, MessageCopy, MessageHold
from faults.kinds.next_batches import NextBatches
from faults.kinds.registry import KINDS
from faults.plan import CONTROLLER, ISR_MEMBER, LAST_MEMBER, LAST_TARGET, LEADER, OUTSIDER, STEP_BROKER, Fault, Trigger
from faults.stories.strike import draw_strike
from sim.hosts.interceptions import MESSAGES, NAMES
from sim.kernel.streams import Stream, choice, integer

BATCHES: Final = NextBatches.name
OPENERS: Final[tuple[str, ...]] = (
    "controlled-restart",
    "kill",
    "power-loss",
    "pause",
    "disk-stall",
    "cut",
    "session-expiry",
    "preferred-election",
    "reassignment",
    "reassignment-cancel",
    "min-isr-change",
    "controller-failover",
    "metadata-lag",
)
"""Kinds that change ISR, leadership or assignment, or let a broker lag."""
ENDS: Final[tuple[str, ...]] = (
    *("kill", "kill", "kill", "power-loss", "disk-replaced"),
    *("controlled-restart", "session-expiry", "zombie", "pause"),
)
"""Kinds that end a broker, or its leadership, repeated by weight."""
OPENED: Final[tuple[str, ...]] = (
    *("isr-sent", "isr-sent", "isr", "joined"),
    *("elected", "lead", "lead", "follow", "follow"),
    *("registered", "truncate", "settled"),
)
"""Steps that open a window, repeated by weight."""
OF_BATCHES: Final[tuple[str, ...]] = ("append", "replicated", "replicated", "hw", "acknowledges", "ack", "ack", "ack")
"""Steps of the incident's batches, repeated by weight."""
LATER: Final[tuple[str, ...]] = (
    *("elected", "lead", "lead", "follow", "registered", "truncate", "settled"),
    *("isr-sent", "isr", "joined", "ack", "append", "hw"),
)
"""Steps that further parts wait for."""
HELD: Final[tuple[str, ...]] = (
    *("AlterPartitionRequest", "AlterPartitionRequest", "AlterPartitionResponse", "AlterPartitionResponse"),
    *("FetchRequest", "FetchResponse", "MetadataRecords", "MetadataRecords"),
    *("ControllerRequestBatch", "ControlResponse", "BrokerHeartbeatRequest"),
)
"""Types of the message that is held back, repeated by weight."""
OPENER_TARGETS: Final[tuple[int, ...]] = (ISR_MEMBER, ISR_MEMBER, OUTSIDER, LEADER, LEADER, LAST_MEMBER, CONTROLLER)
HELD_TARGETS: Final[tuple[int, ...]] = (LEADER, LEADER, ISR_MEMBER, OUTSIDER, STEP_BROKER)
END_TARGETS: Final[tuple[int, ...]] = (LEADER, LEADER, LEADER, LEADER, STEP_BROKER, ISR_MEMBER)
LATER_TARGETS: Final[tuple[int, ...]] = (LEADER, LEADER, STEP_BROKER, ISR_MEMBER, OUTSIDER, LAST_TARGET, LAST_MEMBER)
GAPS_US: Final = (0, 1_000, 20_000, 300_000, 3_000_000)
"""Longest times between a step and what strikes after it: from none to several fetches."""
OPEN_US: Final = (5_000_000, 40_000_000)
"""How long the batches wait for the step that opens the window."""
WAIT_US: Final = (2_000_000, 20_000_000)
"""How long other parts wait for their step."""
HOLD_US: Final = ((100_000, 3_000_000), (3_000_000, 25_000_000))
BACK_US: Final = ((300_000, 4_000_000), (4_000_000, 30_000_000))
"""How long other faults last: mostly the time until a stopped broker is started again."""
LEAST: Final = 3
MOST: Final = 6


def draw(
    stream: Stream, faults: int, kinds: Sequence[str], limits: Limits, at_us: int, last_us: int, sequence: int
) -> list[Fault]:
    """Draw one incident of at least `LEAST` faults, from its own stream, as the sequence of that number.

    The `kinds` are repeated by the seed's weights; a part for which none of them fits takes one of the limits' kinds.
    The limits hold except for durations. No fault strikes after `last_us`.
    """
    one = _Incident(stream, kinds, limits, last_us, sequence)
    return one.draw(faults, at_us)


class _Incident:
    """An incident that is being drawn."""

    def __init__(self, stream: Stream, kinds: Sequence[str], limits: Limits, last_us: int, sequence: int) -> None:
        self._stream = stream
        self._kinds = kinds
        self._limits = limits
        self._last_us = last_us
        self._sequence = sequence
        self._now_us = 0
        """When all parts after the opener are due; each waits for the one before it."""
        self._until_us = 0
        """The fallback time of the latest part."""
        self._held = False
        """Whether a message is held back, or copied, and no part waits for it to arrive yet."""
        self._plan: list[Fault] = []

    def draw(self, faults: int, at_us: int) -> list[Fault]:
        """Draw the parts in their order."""
        stream = self._stream
        self._plan.append(self._fault(self._of(OPENERS), at_us, choice(stream, OPENER_TARGETS)))
        self._now_us = self._until_us = min(at_us + 1, self._last_us)
        if faults > LEAST and stream.random() * 3 < 2 and self._has(MessageHold.name):
            self._add_hold(choice(stream, OPENED))
        self._add(self._fault(BATCHES, self._now_us, 0), choice(stream, OPENED), OPEN_US)
        self._add_end(OF_BATCHES, END_TARGETS)
        while len(self._plan) < faults:
            part = stream.random() * 8
            if part < 2:
                self._add(self._fault(BATCHES, self._now_us, 0), choice(stream, LATER), WAIT_US)
            elif part < 3 and self._has(MessageHold.name):
                self._add_hold(choice(stream, LATER))
            elif part < 6:
                self._add_end(LATER, LATER_TARGETS)
            else:
                self._add_end(OF_BATCHES, LATER_TARGETS)
        return self._plan

    def _add(self, fault: Fault, moment: str, wait_us: tuple[int, int]) -> None:
        """Add a part that waits for a step after the part before it."""
        stream = self._stream
        occurrence = 1 + stream.getrandbits(1) * stream.getrandbits(1)
        if self._held and stream.random() * 3 < 1:
            self._held = False
            moment, occurrence, wait_us = LATE, 1, OPEN_US
        self._until_us = min(self._until_us + integer(stream, *wait_us), self._last_us)
        after_us = integer(stream, 0, choice(stream, GAPS_US))
        self._plan.append(fault.with_trigger(Trigger(moment, occurrence, after_us, self._until_us, self._sequence)))

    def _add_end(self, moments: Sequence[str], targets: Sequence[int]) -> None:
        """Add a part that ends a broker, or changes something else."""
        stream = self._stream
        kind = self._of(ENDS if stream.random() * 5 >= 1 else OPENERS)
        self._add(self._fault(kind, self._now_us, choice(stream, targets)), choice(stream, moments), WAIT_US)

    def _add_hold(self, moment: str) -> None:
        """Add a part by which a message, or a copy of it, arrives late: the one sent at a step, or at once the next."""
        stream = self._stream
        target, name = choice(stream, HELD_TARGETS), choice(stream, HELD)
        lasts_us = integer(stream, *choice(stream, HOLD_US))
        copies = MESSAGES[name].is_resent and self._has(MessageCopy.name) and stream.random() * 3 < 1
        kind = MessageCopy.name if copies else MessageHold.name
        fault = Fault(kind, self._now_us, (target,), lasts_us, value=NAMES.index(name))
        if stream.getrandbits(1):
            self._add(fault, moment, OPEN_US)
        else:
            self._plan.append(fault)
        self._held = True

    def _has(self, kind: str) -> bool:
        return kind in self._limits.bounds.kinds

    def _of(self, kinds: Sequence[str]) -> str:
        """Draw one of these kinds, as the seed enables and weighs them if it enables any."""
        enabled = [kind for kind in self._kinds if kind in kinds]
        possible = [kind for kind in kinds if self._has(kind) and KINDS[kind].is_possible(self._limits)]
        return choice(self._stream, enabled or possible or self._kinds)

    def _fault(self, kind: str, at_us: int, target: int) -> Fault:
        return draw_strike(self._stream, kind, self._limits, at_us, target, HOLD_US, BACK_US)
