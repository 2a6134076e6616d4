"""Draws the next blow: what strikes right after an early warning.

A warning names brokers that are weak: they lack committed records, or the leader does not wait for them. A loss needs
one or two more faults, in the right order and within a short time. A blow has up to four parts: it keeps a weak broker
from fetching, or the leader from learning of metadata; it sends batches, since the next ones of the workload may be far
away; it ends the leader or a broker that holds the records; and another fault may strike while brokers return.

The first blow after a warning follows the recipe of its kind (`RECIPES`) and strikes the brokers that the warning
names. Every tenth blow injects any kind of fault at any broker. All others draw each part.

A run that begins to differ from another one raises no warning: what differs may be repaired by the next fetch. A blow
there (`draw_at_difference`) has more parts, because it has to bring the difference to light: other brokers stop, so
that a certain one is elected, batches are sent when it leads, and it ends as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from faults.bounds import Limits
from faults.kinds.message_faults import MessageHold
from faults.kinds.registry import KINDS, LINKS
from faults.plan import (
    CONTROLLER,
    ISR_MEMBER,
    LAST_MEMBER,
    LAST_TARGET,
    LEADER,
    OUTSIDER,
    STEP_BROKER,
    Fault,
    Trigger,
)
from sim.hosts.control_plane import CONTROL
from sim.hosts.interceptions import NAMES
from sim.kernel.streams import Stream, choice, integer

WEAK: Final = -99
"""Target of a part: one of the brokers that the warning is about; without one, an ISR member. It is in no plan."""
UNIFORM_EVERY: Final = 10
"""One in this many blows is drawn without any weight."""
HOLDS: Final = ("cut", "cut", "cut", "disk-stall", "pause", "slow")
"""Kinds that keep a broker from fetching, repeated by weight."""
LATE: Final = ("metadata-lag", "cut")
"""Kinds by which the leader learns of metadata late."""
ENDS: Final = ("controlled-restart", "kill", "kill", "power-loss", "power-loss", "session-expiry", "zombie", "pause")
"""Kinds that end a leader or a broker that holds records, repeated by weight."""
LOSSES: Final = ("power-loss", "power-loss", "disk-replaced", "kill")
"""Kinds that strike the only broker that holds records, repeated by weight."""
GAPS_US: Final = (1_000, 20_000, 300_000, 2_000_000)
"""Longest times between two parts: from less than a round trip of metadata to several fetches."""
WAIT_US: Final = (500_000, 12_000_000)
"""How long the fault that ends a broker waits for its step."""
LATER_US: Final = (2_000_000, 25_000_000)
"""How long the last fault waits for its step: while brokers are elected and return."""
HOLD_US: Final = ((500_000, 6_000_000), (4_000_000, 40_000_000))
"""How long a broker is kept from fetching; late metadata has the first of these bounds."""
BACK_US: Final = ((1_000_000, 8_000_000), (5_000_000, 40_000_000))
"""How long all other faults last: mostly the time until a stopped broker is started again."""
SETTLE_US: Final = 45_000_000
"""Time between the last fault and healing: a session expires, and all brokers return."""
AT_ONCE: Final = ("append", "replicated", "hw", "ack", "ack", "ack", "isr")
"""Steps of the blow's batches that the fault that ends a broker waits for, repeated by weight."""
MOMENTS: Final = ("elected", "lead", "isr", "registered", "follow", "truncate", "ack")
"""Steps that the last fault waits for."""
ROLES: Final = (LEADER, LEADER, WEAK, ISR_MEMBER, OUTSIDER, LAST_MEMBER, LAST_TARGET, STEP_BROKER)
"""Targets of the last fault, repeated by weight. The fault that ends a broker takes none of the last two."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """The parts of the first blow after a kind of warning.

    Attributes:
        holds: whether the weak broker is kept from fetching.
        late: whether the leader learns of metadata late.
        ends: kinds of the fault that ends a broker, repeated by weight.
        target: the broker that this fault strikes.
        waits: whether this fault waits until a batch of the blow is acknowledged.
    """

    holds: bool
    late: bool
    ends: tuple[str, ...]
    target: int
    waits: bool


ANY: Final = Recipe(holds=True, late=False, ends=ENDS, target=LEADER, waits=True)
RECIPES: Final = {
    # The leader commits without the weak broker, until it learns what was persisted; then the weak one is elected.
    "quorum-not-superset": Recipe(holds=True, late=True, ends=ENDS, target=LEADER, waits=True),
    # The weak broker is elected, before it fetches what it lacks.
    "candidate-incomplete": Recipe(holds=False, late=False, ends=ENDS, target=LEADER, waits=False),
    # The broker that has the records loses or truncates them before it is elected again.
    "leader-incomplete": Recipe(holds=False, late=False, ends=LOSSES, target=ISR_MEMBER, waits=False),
    # The brokers that are known to have the records lose them.
    "recovery-quorum": Recipe(holds=False, late=False, ends=LOSSES, target=WEAK, waits=False),
    # Only the leader has the record.
    "ack-above-hw": Recipe(holds=False, late=False, ends=ENDS, target=LEADER, waits=False),
}
"""Kind of warning -> recipe; `ANY` for all others."""


OPEN: Final = ("cut", "cut", "cut", "message-hold", "disk-stall", "pause")
"""Kinds that keep a broker from fetching at a difference."""
FETCHES: Final = ("FetchResponse", "FetchResponse", "FetchRequest", "MetadataRecords", "AlterPartitionResponse")
"""Messages that are held at a difference."""
CHANGES: Final = (
    *("session-expiry", "session-expiry", "kill", "kill", "power-loss", "disk-replaced"),
    *("controlled-restart", "controlled-restart", "preferred-election", "zombie", "pause"),
)
"""Kinds that end a leader, or its leadership, at a difference."""
SOON: Final = ("isr", "isr", "joined", "isr-sent", "ack", "ack", "acknowledges", "replicated", "hw", "read", "append")
"""Steps after a difference that the first end waits for."""
THEN: Final = ("elected", "lead", "lead", "follow", "ack", "read", "hw", "truncate", "settled", "isr", "registered")
"""Steps after a difference that all later parts wait for."""


@dataclass(frozen=True, slots=True)
class NextBlow:
    """Faults and batches right after a warning.

    Attributes:
        faults: ordered by time.
        batches: (time, records) of each, ordered by time.
        end_us: when the run is healed.
    """

    faults: tuple[Fault, ...]
    batches: tuple[tuple[int, int], ...]
    end_us: int


def draw(
    stream: Stream, warning: str, variant: int, weak: Sequence[int], leader: int, limits: Limits, at_us: int
) -> NextBlow:
    """Draw blow number `variant` after a warning.

    Args:
        stream: the random stream of this blow.
        warning: kind of the warning.
        variant: number among the blows after this warning.
        weak: the brokers that the warning is about.
        leader: who leads; 0: no broker.
        limits: possible kinds and brokers; durations are those of this module.
        at_us: time of the warning.
    """
    possible = [kind for kind in limits.bounds.kinds if KINDS[kind].is_possible(limits)]
    one = _Blow(stream, possible, [broker for broker in weak if broker != leader] or list(weak), limits)
    if variant % UNIFORM_EVERY == UNIFORM_EVERY - 1:
        one.draw_uniform(at_us)
    else:
        one.draw(RECIPES.get(warning, ANY), at_us, aimed=not variant)
    return one.done()


def draw_at_difference(stream: Stream, brokers: Sequence[int], leader: int, limits: Limits, at_us: int) -> NextBlow:
    """Draw a blow where a run begins to differ from another one; as `draw`, but `brokers` are those that the
    difference is about, and every kind of fault is possible that the scenario has or the parts name.
    """
    possible = [kind for kind in KINDS if KINDS[kind].is_possible(limits)]
    about = [broker for broker in brokers if broker in limits.brokers]
    weak = [broker for broker in about if broker != leader] or about or [one for one in limits.brokers if one != leader]
    one = _Blow(stream, possible, weak, limits)
    one.draw_at_difference(at_us)
    return one.done()


class _Blow:
    """A blow that is being drawn."""

    def __init__(self, stream: Stream, possible: Sequence[str], weak: Sequence[int], limits: Limits) -> None:
        self._stream = stream
        self._possible = possible
        self._weak = weak
        self._limits = limits
        self._faults: list[Fault] = []
        self._batches: list[tuple[int, int]] = []
        self._latest_us = 0

    def draw(self, recipe: Recipe, at_us: int, *, aimed: bool) -> None:
        """Draw the parts: those of the recipe if `aimed`, or any."""
        stream = self._stream
        hold, late = stream.random() * 10 < 6, stream.random() * 10 < 3
        waits, again = bool(stream.getrandbits(1)), bool(stream.getrandbits(1))
        ends, target = choice(stream, (recipe.ends, ENDS, LOSSES)), choice(stream, (recipe.target, *ROLES[:-2]))
        if aimed:
            hold, late, waits, again, ends, target = (
                recipe.holds,
                recipe.late,
                recipe.waits,
                False,
                recipe.ends,
                recipe.target,
            )
        now_us = at_us + 1
        if late:
            self._add_late(now_us)
            now_us += 1
        if hold:
            self._add_hold(WEAK if aimed else choice(stream, (WEAK, WEAK, WEAK, ISR_MEMBER, OUTSIDER)), now_us)
            now_us += 1
        now_us += integer(stream, 0, GAPS_US[0] if aimed else choice(stream, GAPS_US))
        self._send(now_us)
        now_us += 1 + integer(stream, 0, GAPS_US[1] if aimed else choice(stream, GAPS_US))
        end = self._fault(_of(stream, ends, self._possible), now_us, target, choice(stream, BACK_US))
        if waits:
            until_us = now_us + integer(stream, *WAIT_US)
            moment = "ack" if aimed else choice(stream, AT_ONCE)
            after_us = integer(stream, 0, choice(stream, GAPS_US))
            end = end.with_trigger(Trigger(moment, integer(stream, 1, 1 if aimed else 2), after_us, until_us))
            end = replace(end, at_us=at_us + 1)
            now_us = until_us
        self._add(end)
        if again:
            moment, target = choice(stream, MOMENTS), choice(stream, ROLES)
            kinds = choice(stream, (ENDS, LOSSES, self._possible))
            other = self._fault(_of(stream, kinds, self._possible), at_us + 2, target, choice(stream, BACK_US))
            until_us = now_us + integer(stream, *LATER_US)
            self._add(other.with_trigger(Trigger(moment, integer(stream, 1, 3), integer(stream, 0, 300_000), until_us)))
        self._send(now_us + integer(stream, *LATER_US))

    def draw_uniform(self, at_us: int) -> None:
        """Draw batches, and two faults of any kind."""
        stream = self._stream
        now_us = at_us + 1
        self._send(now_us)
        for _ in range(2):
            now_us += 1 + integer(stream, 0, choice(stream, GAPS_US))
            target = choice(stream, (LEADER, ISR_MEMBER, OUTSIDER, CONTROLLER, *self._limits.all_brokers))
            fault = self._fault(choice(stream, self._possible), now_us, target, choice(stream, BACK_US))
            if stream.getrandbits(1):
                moment = choice(stream, (*AT_ONCE, *MOMENTS))
                fault = fault.with_trigger(Trigger(moment, 1, 0, now_us + integer(stream, *LATER_US)))
            self._add(fault)
        self._send(now_us + integer(stream, *LATER_US))

    def draw_at_difference(self, at_us: int) -> None:
        """Draw a hold, batches, the end of other brokers, that of the leader, and up to three later parts."""
        stream = self._stream
        now_us = at_us + 1
        aims = (WEAK, WEAK, WEAK, LEADER, *self._limits.brokers)
        if stream.random() * 4 < 3:
            self._keep_open(WEAK if stream.random() * 4 < 3 else choice(stream, self._limits.brokers), now_us)
        if stream.random() * 3 < 2:
            self._send(now_us + integer(stream, 0, choice(stream, GAPS_US[:3])))
        if stream.random() * 3 < 1:
            other_us = now_us + integer(stream, 0, choice(stream, GAPS_US[:3]))
            self._add(self._fault(choice(stream, CHANGES), other_us, choice(stream, (ISR_MEMBER, *aims)), BACK_US[0]))
        end = self._fault(choice(stream, CHANGES), now_us, choice(stream, (LEADER, LEADER, LEADER, WEAK)), self._back())
        now_us = self._add_waiting(end, choice(stream, SOON) if stream.random() * 3 < 2 else "", now_us)
        for _ in range(integer(stream, 0, 3)):
            if stream.random() * 3 < 1:
                part = self._fault("next-batches", at_us + 2, 0, BACK_US[0])
            else:
                kinds = choice(stream, (CHANGES, LOSSES, OPEN))
                part = self._fault(choice(stream, kinds), at_us + 2, choice(stream, (*ROLES, *aims)), self._back())
            self._add_waiting(part, choice(stream, THEN), now_us)
        self._send(now_us + integer(stream, 0, choice(stream, (*GAPS_US, LATER_US[1]))))

    def _back(self) -> tuple[int, int]:
        return choice(self._stream, BACK_US)

    def _add_waiting(self, fault: Fault, moment: str, now_us: int) -> int:
        """Add a fault that strikes soon, or after a step; returns until when it waits."""
        stream = self._stream
        after_us = integer(stream, 0, choice(stream, GAPS_US))
        if not moment:
            self._add(replace(fault, at_us=now_us + after_us))
            return now_us + after_us
        until_us = now_us + integer(stream, *LATER_US)
        occurrence = 1 + stream.getrandbits(1) * stream.getrandbits(1)
        self._add(fault.with_trigger(Trigger(moment, occurrence, after_us, until_us)))
        return until_us

    def _keep_open(self, target: int, at_us: int) -> None:
        """Keep a broker from fetching, or hold a message to it or from it."""
        stream = self._stream
        kind, lasts_us = choice(stream, OPEN), choice(stream, (*HOLD_US, BACK_US[0]))
        broker = self._broker(target)
        if kind in LINKS:
            pair = choice(stream, ((broker, LEADER), (LEADER, broker)))
            cut = self._fault(kind, at_us, broker, lasts_us)
            self._add(replace(cut, targets=pair, both_ways=bool(stream.getrandbits(1))))
        else:
            fault = self._fault(kind, at_us, broker, lasts_us)
            held = kind == MessageHold.name
            self._add(replace(fault, value=NAMES.index(choice(stream, FETCHES))) if held else fault)

    def _send(self, at_us: int) -> None:
        """Send one to three batches."""
        stream = self._stream
        for _ in range(integer(stream, 1, 3)):
            self._batches.append((at_us, integer(stream, 1, 3)))
            at_us += 1 + integer(stream, 0, choice(stream, GAPS_US))

    def _add_hold(self, target: int, at_us: int) -> None:
        """Keep a broker from fetching from the leader."""
        stream = self._stream
        kind = _of(stream, HOLDS, self._possible)
        lasts_us = choice(stream, HOLD_US)
        if kind in LINKS:
            fault = self._fault(kind, at_us, target, lasts_us)
            self._add(replace(fault, targets=(self._broker(target), LEADER), both_ways=bool(stream.getrandbits(1))))
        else:
            self._add(self._fault(kind, at_us, target, lasts_us))

    def _add_late(self, at_us: int) -> None:
        """Delay metadata on the way to the leader."""
        kind = _of(self._stream, LATE, self._possible)
        fault = self._fault(kind, at_us, LEADER, HOLD_US[0])
        self._add(replace(fault, targets=(CONTROL, LEADER), both_ways=False) if kind in LINKS else fault)

    def _broker(self, target: int) -> int:
        if target != WEAK:
            return target
        return choice(self._stream, self._weak) if self._weak else ISR_MEMBER

    def _fault(self, kind: str, at_us: int, target: int, lasts_us: tuple[int, int]) -> Fault:
        limits = self._limits
        bounds = limits.bounds.within(lasts_us, lasts_us, lasts_us)
        aim = self._broker(target)
        own = Limits(
            bounds, limits.brokers, limits.all_brokers, (at_us, at_us), aim, LEADER if aim != LEADER else CONTROL
        )
        return KINDS[kind].draw(self._stream, own)

    def _add(self, fault: Fault) -> None:
        self._faults.append(fault)
        until_us = fault.at_us if fault.trigger is None else fault.trigger.until_us
        self._latest_us = max(self._latest_us, until_us)

    def done(self) -> NextBlow:
        """The blow, with the time of healing."""
        faults = sorted(self._faults, key=lambda fault: fault.at_us)
        batches = sorted(self._batches)
        return NextBlow(tuple(faults), tuple(batches), max(self._latest_us, batches[-1][0]) + SETTLE_US)


def _of(stream: Stream, kinds: Sequence[str], possible: Sequence[str]) -> str:
    """Draw one of the kinds that are possible; if none is, any possible kind."""
    return choice(stream, [kind for kind in kinds if kind in possible] or list(possible))
