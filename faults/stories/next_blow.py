"""Draws the next blow: what strikes right after an early warning.

A warning names brokers that are weak: they lack committed records, or the leader does not wait for them. A loss needs
one or two more faults, in the right order and within a short time. A blow has up to five parts: it keeps a weak broker
from fetching, or the leader from learning of metadata; it sends batches, since the next ones of the workload may be far
away; it ends the leader or a broker that holds the records; it may end the other brokers that are not weak at the same
time, since the controller elects the first live member of the ISR in the order of replicas; and another fault may
strike while brokers return.

The first blow after a warning follows the recipe of its kind (`RECIPES`) and strikes the brokers that the warning
names. Every tenth blow injects any kind of fault at any broker. All others draw each part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from faults.bounds import Limits
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
KILLS: Final = ("kill",)
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
        others: whether the other brokers that are not weak end, too.
    """

    holds: bool
    late: bool
    ends: tuple[str, ...]
    target: int
    waits: bool
    others: bool = False


ANY: Final = Recipe(holds=True, late=False, ends=ENDS, target=LEADER, waits=True)
RECIPES: Final = {
    # The leader commits without the weak broker, until it learns what was persisted; then the weak one is elected.
    "quorum-not-superset": Recipe(holds=True, late=True, ends=KILLS, target=LEADER, waits=True, others=True),
    "hw-without-isr-member": Recipe(holds=True, late=True, ends=KILLS, target=LEADER, waits=True, others=True),
    # The weak broker is elected, before it fetches what it lacks.
    "candidate-incomplete": Recipe(holds=True, late=False, ends=KILLS, target=LEADER, waits=False, others=True),
    # The broker that has the records loses or truncates them before it is elected again.
    "leader-incomplete": Recipe(holds=False, late=False, ends=LOSSES, target=ISR_MEMBER, waits=False),
    # The brokers that are known to have the records lose them.
    "recovery-quorum": Recipe(holds=False, late=False, ends=LOSSES, target=WEAK, waits=False),
    # Only the leader has the record.
    "ack-above-hw": Recipe(holds=False, late=False, ends=ENDS, target=LEADER, waits=False),
}
"""Kind of warning -> recipe; `ANY` for all others."""


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
    weak = [broker for broker in weak if broker != leader] or weak
    others = [broker for broker in limits.brokers if broker != leader and broker not in weak]
    one = _Blow(stream, possible, weak, others, limits)
    if variant % UNIFORM_EVERY == UNIFORM_EVERY - 1:
        one.draw_uniform(at_us)
    else:
        one.draw(RECIPES.get(warning, ANY), at_us, aimed=not variant)
    return one.done()


class _Blow:
    """A blow that is being drawn."""

    def __init__(
        self, stream: Stream, possible: Sequence[str], weak: Sequence[int], others: Sequence[int], limits: Limits
    ) -> None:
        self._stream = stream
        self._possible = possible
        self._weak = weak
        self._others = others
        """Replicas that neither lead nor are weak."""
        self._limits = limits
        self._faults: list[Fault] = []
        self._batches: list[tuple[int, int]] = []
        self._latest_us = 0

    def draw(self, recipe: Recipe, at_us: int, *, aimed: bool) -> None:
        """Draw the parts: those of the recipe if `aimed`, or any."""
        stream = self._stream
        hold, late = stream.random() * 10 < 6, stream.random() * 10 < 3
        waits, again = bool(stream.getrandbits(1)), bool(stream.getrandbits(1))
        others = stream.random() * 10 < 4
        ends, target = choice(stream, (recipe.ends, ENDS, LOSSES)), choice(stream, (recipe.target, *ROLES[:-2]))
        if aimed:
            hold, late, waits, again, others = recipe.holds, recipe.late, recipe.waits, False, recipe.others
            ends, target = recipe.ends, recipe.target
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
        if others:
            self._add_others(end, ends)
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

    def _add_others(self, end: Fault, ends: Sequence[str]) -> None:
        """End the other brokers that are not weak at about the same time."""
        stream = self._stream
        for broker in self._others:
            after_us = integer(stream, 0, GAPS_US[1])
            other = self._fault(_of(stream, ends, self._possible), end.at_us, broker, choice(stream, BACK_US))
            if end.trigger is None:
                self._add(replace(other, at_us=end.at_us + after_us))
            else:
                self._add(other.with_trigger(replace(end.trigger, after_us=end.trigger.after_us + after_us)))

    def _broker(self, target: int) -> int:
        if target != WEAK:
            return target
        return choice(self._stream, self._weak) if self._weak else ISR_MEMBER

    def _fault(self, kind: str, at_us: int, target: int, lasts_us: tuple[int, int]) -> Fault:
        limits = self._limits
        bounds = replace(limits.bounds, restart_us=lasts_us, pause_us=lasts_us, cut_us=lasts_us)
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
