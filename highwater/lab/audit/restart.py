"""Whether a broker can be restarted cleanly now: what speaks against it, by partition and by cause."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from highwater.lab.audit.controller import outcome, shut_down
from highwater.lab.audit.facts import ReplicaFacts
from highwater.lab.audit.records import NO_LEADER
from sim.errors import InputError
from sim.plurals import counted
from sim.protocol.kraft.metadata import MIN_ISR

if TYPE_CHECKING:
    from collections.abc import Callable

    from highwater.lab.audit.audit import Audit
    from highwater.lab.audit.image import ClusterImage, Key
    from sim.protocol.rules import Rules

ABSENT: Final = "replicas-out-of-isr"
LOSSY: Final = "next-leader-lacks-records"
OUTSIDE: Final = "next-leader-out-of-isr"
ADDED: Final = "being-added"
NO_SPARE: Final = "min-isr-of-all-replicas"
ONLY: Final = "only-replica"
CAUSES: Final = (LOSSY, OUTSIDE, ABSENT, ADDED, ONLY, NO_SPARE)
"""Causes, the worst first; those at the end forbid every restart, whatever the state of the cluster is."""
LOSES: Final = "may lose acknowledged records"
LEADERLESS: Final = "would have no leader"
REFUSES: Final = "would refuse acks=all"
LED_OUTSIDE: Final = "would be led from outside the ISR"
MOVING: Final = "would have its reassignment interrupted"
EFFECTS: Final = (LOSES, LEADERLESS, REFUSES, LED_OUTSIDE, MOVING)
"""What a restart would do to a partition, the worst first."""


@dataclass(frozen=True, slots=True)
class Reason:
    """What speaks against a restart in one partition.

    Attributes:
        effect: one of `EFFECTS`.
        cause: one of `CAUSES`.
        brokers: who causes it.
        text: what would happen, in a sentence.
    """

    effect: str
    cause: str
    brokers: tuple[int, ...]
    text: str


@dataclass(slots=True)
class Restart:
    """The answer for one broker.

    Attributes:
        broker: which one.
        is_active: whether it serves now; else it is down, fenced or shutting down, as far as is known.
        replicas: number of partitions that have a replica on it.
        reasons: what speaks against it, by partition.
    """

    broker: int
    is_active: bool
    replicas: int
    reasons: dict[Key, list[Reason]] = field(default_factory=dict)

    def by_effect(self) -> dict[str, int]:
        """Effect -> number of partitions of which it is the worst; the worst effect first."""
        worst = [min((reason.effect for reason in reasons), key=EFFECTS.index) for reasons in self.reasons.values()]
        return {effect: worst.count(effect) for effect in EFFECTS if effect in worst}

    def by_cause(self) -> dict[tuple[str, tuple[int, ...]], list[Key]]:
        """Cause and brokers -> partitions; the worst cause, and the one of most partitions, first."""
        found: dict[tuple[str, tuple[int, ...]], list[Key]] = {}
        for key, reasons in self.reasons.items():
            for cause, brokers in dict.fromkeys((reason.cause, reason.brokers) for reason in reasons):
                found.setdefault((cause, brokers), []).append(key)
        return dict(sorted(found.items(), key=lambda item: (CAUSES.index(item[0][0]), -len(item[1]), item[0][1])))


def check(audit: Audit, broker: int, name: Callable[[Key], str]) -> Restart:
    """Whether a broker can be restarted; `name` names partitions in messages.

    Raises:
        InputError: the broker is not known, or what is known of its partitions does not suffice for an answer.
    """
    image = audit.image
    asked = f"--before-restart {broker}"
    if audit.gaps:
        raise InputError(*(f"{asked} has no answer, because something is missing: {gap}" for gap in audit.gaps))
    if broker not in image.brokers:
        known = ", ".join(map(str, sorted(image.brokers)))
        what = "no partition of this text has a replica on it" if audit.is_moment else "no such broker is registered"
        raise InputError(f"{asked}: {what}; one of: {known or 'none'}")
    keys = [
        key
        for key in sorted(image.partitions, key=image.order)
        if broker in (*image.partitions[key].replicas, image.partitions[key].leader)
    ]
    found = Restart(broker, image.is_active(broker), len(keys))
    if not found.is_active:
        return found  # What is down already is only started.
    if unknown := [key for key in keys if image.setting(key, MIN_ISR) is None]:
        raise InputError(
            f"{asked} has no answer, because {MIN_ISR} of {counted(len(unknown), 'partition')} is unknown (the first: "
            f"{name(unknown[0])}): no topic, broker or cluster sets it here. Give the value of server.properties by "
            f"--static {MIN_ISR}=N (Kafka's default is 1)"
        )
    for key in keys:
        if reasons := _reasons(image, key, audit.facts.get(key), audit.rules, broker):
            found.reasons[key] = reasons
    return found


def _reasons(image: ClusterImage, key: Key, facts: ReplicaFacts | None, rules: Rules, broker: int) -> list[Reason]:
    """What speaks against a clean restart of an active broker in a partition of it; empty: nothing."""
    state = image.partitions[key]
    known = facts or ReplicaFacts()
    states = outcome(image, key, state, rules, shut_down(broker))
    after = states[0] if states else state
    leader, remaining = after.leader, [other for other in after.isr if other != broker]
    absent = tuple(
        sorted(
            other
            for other in state.replicas
            if other != broker and (other not in state.isr or not image.is_active(other))
        )
    )
    reasons = []
    if leader == NO_LEADER and state.leader != NO_LEADER:
        text = "it would have no leader until the broker is back"
        reasons.append(Reason(LEADERLESS, ABSENT if absent else ONLY, absent, text))
    if leader not in (NO_LEADER, state.leader):
        if leader in known.emptied:
            text = f"broker {leader} would be elected, whose log is deleted or old, as it left the assignment: loss"
            reasons.append(Reason(LOSES, LOSSY, (leader,), text))
        elif leader in known.behind:
            text = f"broker {leader} would be elected, which may lack acknowledged records: loss"
            reasons.append(Reason(LOSES, LOSSY, (leader,), text))
        elif leader not in state.isr:
            text = f"broker {leader} would be elected from outside the ISR"
            reasons.append(Reason(LED_OUTSIDE, OUTSIDE, (leader,), text))
    min_isr = image.min_isr(key)
    if broker in state.isr and len(remaining) < min_isr and len(state.replicas) > 1:
        members = counted(len(remaining), "member")
        below = f"below {MIN_ISR} {min_isr}"
        text = f"its ISR would have {members}, {below}"
        if len(state.isr) < min_isr:
            text = (
                f"its ISR has {counted(len(state.isr), 'member')}, which is {below} already, and would have {members}"
            )
        reasons.append(Reason(REFUSES, ABSENT if absent else NO_SPARE, absent, text))
    if broker not in state.isr and broker in state.adding:
        reasons.append(Reason(MOVING, ADDED, (broker,), "the broker is being added by a reassignment"))
    return reasons


def told(cause: str, brokers: tuple[int, ...], partitions: int, restarted: int) -> tuple[str, str]:
    """A cause, and what to do about it, for readers."""
    who = f"{'broker' if len(brokers) == 1 else 'brokers'} {', '.join(map(str, brokers))}"
    is_, these = "is" if len(brokers) == 1 else "are", "this ISR" if partitions == 1 else "these ISRs"
    number = counted(partitions, "partition")
    if cause == ABSENT:
        wait = f"start {who} if down, wait until {who} {is_} in {these}, and ask again"
        return f"{who} {is_} not in the ISR of {number}", wait
    if cause == LOSSY:
        what = f"{who} would lead {number} and lacks, or may lack, acknowledged records"
        return what, f"keep broker {restarted} up until {who} {is_} in {these}, and ask again"
    if cause == OUTSIDE:
        return f"{who} would lead {number} from outside the ISR", f"wait until {who} {is_} in {these}, and ask again"
    if cause == ADDED:
        return f"a reassignment adds {who} to {number}", "wait until it is completed, and ask again"
    if cause == ONLY:
        advice = "add replicas, or accept that there is no leader during the restart"
        return f"{number} {'has' if partitions == 1 else 'have'} no other replica", advice
    advice = (
        f"each restart of a replica stops acks=all there, now and later: lower {MIN_ISR}, add replicas or accept it"
    )
    return f"{MIN_ISR} of {number} equals the number of replicas", advice
