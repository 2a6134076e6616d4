"""Partitions at risk: states from which acknowledged records can be lost, nobody can lead, or writes are refused.

Each check names what it found, what to do about it, and the finding that it belongs to
(highwater/lab/confirm/FINDINGS.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from highwater.lab.audit.controller import listed
from highwater.lab.audit.facts import ReplicaFacts
from highwater.lab.audit.records import NO_LEADER
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from highwater.lab.audit.image import ClusterImage, Key, RegisteredPartition
    from sim.protocol.rules import Rules

FINDINGS: Final = "highwater/lab/confirm/FINDINGS.md"


class Severity(StrEnum):
    """How bad it is."""

    LOSS = "loss"
    """Acknowledged records can be lost by clean stops, elections or reassignments alone."""
    LEADERLESS = "leaderless"
    """The partition has no leader, or may remain without one."""
    MARGIN = "margin"
    """One more failure, and acknowledged records can be lost, or writes with acks=all are refused."""


ORDER: Final = tuple(Severity)


@dataclass(frozen=True, slots=True)
class Risk:
    """Of one partition.

    Attributes:
        kind: name of the check.
        severity: see `Severity`.
        text: what is so, in a sentence.
        advice: what to do.
        finding: the scenarios of FINDINGS.md that show it; empty if Kafka promises no better.
        since: offset of the record since which it is so; -1 if unknown.
    """

    kind: str
    severity: Severity
    text: str
    advice: str
    finding: str = ""
    since: int = -1


@dataclass(frozen=True, slots=True)
class AuditedPartition:
    """A partition and all that checks look at."""

    image: ClusterImage
    key: Key
    state: RegisteredPartition
    min_isr: int
    facts: ReplicaFacts
    rules: Rules

    @property
    def knows_min_isr(self) -> bool:
        """Whether `min_isr` is not merely assumed."""
        return self.image.knows_min_isr(self.key)

    def is_active(self, broker: int) -> bool:
        """Whether a broker may lead and join ISRs."""
        return self.image.is_active(broker)


def _brokers(brokers: list[int]) -> str:
    return f"{'broker' if len(brokers) == 1 else 'brokers'} {listed(brokers)}"


def _back(view: AuditedPartition, absent: list[int]) -> str:
    """How replicas outside the ISR come back: those that are down are started, and those that are up catch up."""
    down = [broker for broker in absent if not view.is_active(broker)]
    behind = [broker for broker in absent if view.is_active(broker)]
    start, wait = f"start {_brokers(down)}", f"wait until {_brokers(behind)} {_is(behind)} in the ISR"
    return " and ".join([*([start] if down else []), *([wait] if behind else [])])


def _is(brokers: list[int]) -> str:
    return "is" if len(brokers) == 1 else "are"


def risks_of(image: ClusterImage, key: Key, facts: ReplicaFacts | None, rules: Rules) -> list[Risk]:
    """The risks of a partition, worst first."""
    view = AuditedPartition(image, key, image.partitions[key], image.min_isr(key), facts or ReplicaFacts(), rules)
    found = [risk for check in CHECKS for risk in check(view)]
    return sorted(found, key=lambda risk: ORDER.index(risk.severity))


def _elr_without_log(view: AuditedPartition) -> Iterator[Risk]:
    state = view.state
    for broker in state.elr:
        if broker in view.facts.emptied and broker in state.replicas:
            yield Risk(
                "elr-without-log",
                Severity.LOSS,
                f"broker {broker} is in the ELR, but left the assignment meanwhile: its log is deleted, or old",
                f"keep the leader up until broker {broker} is in the ISR; do not stop, move or elect meanwhile",
                "reassignment-back, reassignment-cancelled",
                view.facts.emptied[broker],
            )


def _elr_outside(view: AuditedPartition) -> Iterator[Risk]:
    state = view.state
    outside = [broker for broker in state.elr if broker not in state.replicas]
    if outside:
        yield Risk(
            "elr-outside-assignment",
            Severity.LOSS,
            f"ELR members {listed(outside)} are no replicas: their logs are deleted, or old",
            f"{_until_elr_is_cleared(view)} before another reassignment: one that adds {listed(outside)} again makes "
            "them electable with empty logs",
            "reassignment-back, elr-outside-assignment",
            state.offset,
        )
    known = [broker for broker in state.last_known_elr if broker not in state.replicas]
    if known:
        who = "is unknown (-1)" if NO_LEADER in known else f"{listed(known)} is no replica"
        yield Risk(
            "last-leader-outside-assignment",
            Severity.LEADERLESS,
            f"the last known leader {who} and cannot be elected",
            "an administrator has to elect another replica uncleanly, which may lose records",
            "elr-outside-assignment",
            state.offset,
        )


def _until_elr_is_cleared(view: AuditedPartition) -> str:
    """Until when to wait for an empty ELR. Kafka: PartitionChangeBuilder#maybePopulateTargetElr."""
    if len(view.state.isr) < view.min_isr:
        at_least = "" if view.knows_min_isr else "at least "
        return f"wait until the ISR has {at_least}{counted(view.min_isr, 'member')}"
    return "wait until the ELR is empty, as it is after the next change of the ISR,"


def _elr_behind(view: AuditedPartition) -> Iterator[Risk]:
    state = view.state
    behind = [broker for broker in state.elr if broker in view.facts.behind]
    if behind:
        yield Risk(
            "elr-behind",
            Severity.LOSS,
            f"ELR members {listed(behind)} may lack acknowledged records: the ISR {listed(state.isr)} was large "
            "enough without them",
            f"keep {listed(state.isr) if state.isr else 'the last ISR'} up until {listed(behind)} are in the ISR",
            "reassignment-to-one",
            view.facts.behind[behind[0]],
        )


def _leaderless(view: AuditedPartition) -> Iterator[Risk]:
    state = view.state
    if state.leader != NO_LEADER:
        return
    waiting = state.isr or state.elr
    gone = [broker for broker in waiting if broker not in view.image.brokers or broker not in state.replicas]
    if not waiting:
        known = f"; the last known leader is {listed(state.last_known_elr)}" if state.last_known_elr else ""
        advice = "an unclean election is the only way, and it may lose records; first start all replicas"
        yield Risk("nobody-can-lead", Severity.LEADERLESS, f"no leader, and ISR and ELR are empty{known}", advice)
    elif len(gone) == len(waiting):
        text = f"no leader, and no member of ISR or ELR ({listed(waiting)}) is a registered replica"
        advice = f"start {_brokers(gone)} if they are replicas; otherwise only an unclean election helps"
        yield Risk("nobody-can-lead", Severity.LEADERLESS, text, advice, "elr-outside-assignment")
    else:
        one = f"broker {listed(waiting)}" if len(waiting) == 1 else f"one of brokers {listed(waiting)}"
        last = "" if len(waiting) == 1 else ", the one that stopped last"
        yield Risk("leaderless", Severity.LEADERLESS, f"no leader until {one} is back", f"start {one}{last}")


def _cancel(view: AuditedPartition) -> str:
    """How the reassignment is cancelled. Its added replicas leave the ISR then: if the others are too few, they stay in
    the ELR, though they are no replicas any more.
    """
    state = view.state
    kept = [broker for broker in state.isr if broker not in state.adding]
    others = [broker for broker in state.replicas if broker not in state.adding]
    if len(kept) == len(state.isr) or len(kept) >= min(view.image.min_isr_setting(view.key), len(others)):
        return "cancel the reassignment"
    missing = [broker for broker in others if broker not in kept]
    return f"{_back(view, missing)}, and only then cancel the reassignment"


def _reassignment(view: AuditedPartition) -> Iterator[Risk]:
    state = view.state
    if not (state.adding or state.removing):
        return
    stuck = [broker for broker in state.adding if broker in state.removing]
    if stuck:
        yield Risk(
            "reassignment-stuck",
            Severity.MARGIN,
            f"replicas {listed(stuck)} are marked both as added and as removed: the reassignment may never complete",
            f"{_cancel(view)} and submit it again",
            "reassignment-stuck",
            state.offset,
        )
        return  # By the rules under which the next check applies, it does not complete.
    after = {broker for broker in (*state.isr, *state.adding) if broker not in state.removing}
    needed = min(view.image.min_isr_setting(view.key), len(state.target))
    rules = view.rules
    waits_for_all = (
        rules.reassignment_completes == "targets-in-isr"
        or rules.reassignment_completes == "min-isr"
        or (rules.reassignment_completes == "targets-if-fewer" and len(state.adding) < len(state.removing))
    )
    if len(after) < needed and not waits_for_all:
        yield Risk(
            "completes-below-min-isr",
            Severity.LOSS,
            f"the reassignment to {listed(state.target)} completes when {listed(state.adding)} joins the ISR, with "
            f"{counted(len(after), 'member')} of min.insync.replicas {needed}",
            f"{_back(view, [broker for broker in state.target if broker not in after])} first, or {_cancel(view)}",
            "reassignment-shrinks-isr, reassignment-back",
            state.offset,
        )


def _of_min_isr(view: AuditedPartition) -> str:
    return str(view.min_isr) if view.knows_min_isr else f"(at least {view.min_isr}, since the ELR has members)"


def has_no_spare(image: ClusterImage, key: Key) -> bool:
    """Whether one in-sync replica less would let acks=all be refused, though there are more replicas. No risk by
    itself: the ISR is as large as it was asked to be.
    """
    state = image.partitions[key]
    return 1 < len(state.isr) == image.min_isr(key) < len(state.replicas) and state.leader != NO_LEADER


def _small_isr(view: AuditedPartition) -> Iterator[Risk]:
    state = view.state
    if state.leader == NO_LEADER:
        return
    idle = [broker for broker in state.isr if not view.is_active(broker)]
    if idle:
        yield Risk(
            "idle-isr-member",
            Severity.MARGIN,
            f"ISR members {listed(idle)} are fenced or shutting down",
            f"start {_brokers(idle)}",
        )
    absent = [broker for broker in state.replicas if broker not in state.isr]
    if len(state.isr) < view.min_isr:
        elr = f"; ELR {listed(state.elr)}" if state.elr else "; the ELR is empty" if view.image.elr_enabled else ""
        yield Risk(
            "isr-below-min-isr",
            Severity.MARGIN,
            f"ISR {listed(state.isr)} is below min.insync.replicas {_of_min_isr(view)}: acks=all is refused{elr}",
            f"{_back(view, absent)} before anything else",
            "directory-assignment" if view.image.elr_enabled and not state.elr else "",
            state.offset,
        )
    elif len(state.isr) == 1 and len(state.replicas) > 1:
        yield Risk(
            "leader-alone",
            Severity.MARGIN,
            f"leader {state.leader} is alone in the ISR, and acknowledges alone"
            f"{'' if view.knows_min_isr else ' if min.insync.replicas is 1'}",
            f"{_back(view, absent)} before broker {state.leader} is stopped",
            since=state.offset,
        )
    if state.recovering:
        yield Risk(
            "unclean-leader",
            Severity.MARGIN,
            f"leader {state.leader} was elected uncleanly and has not confirmed its recovery",
            "it does with the next change of its ISR; --broker-log tells what was lost",
            since=state.offset,
        )


CHECKS: Final[tuple[Callable[[AuditedPartition], Iterable[Risk]], ...]] = (
    _elr_without_log,
    _elr_outside,
    _elr_behind,
    _leaderless,
    _reassignment,
    _small_isr,
)
