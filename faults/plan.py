"""Fault plans: the concrete, serialisable list of what goes wrong in one run, and when.

A plan is drawn from the seed alone, one random stream for each fault, so that seed N means the same plan in every
mode. What of it took effect is recorded apart (`faults.kinds.injection`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

SCHEMA_VERSION: Final = 3
"""Version 1 lacks `Fault.value` and `Fault.replicas`, version 2 `Fault.trigger`."""
LEADER: Final = -1
"""As a target: whoever leads when the fault strikes."""
CONTROLLER: Final = -2
"""As a target: the active controller when the fault strikes; without one, who leads (faults of controllers: nobody)."""
ISR_MEMBER: Final = -3
"""As a target: the first of the ISR that does not lead; without one, another replica."""
OUTSIDER: Final = -4
"""As a target: the first replica that is not in the ISR; without one, another that does not lead."""
LAST: Final = -5
"""As a target: the only member of the ISR, whether it leads or not; of a larger ISR, who leads."""
THERE: Final = -6
"""As a target: the broker at which the step happened that a trigger waited for; else who leads."""
AGAIN: Final = -7
"""As a target: the broker that was struck last; else who leads."""
FOLLOWERS: Final = -8
"""As the only target: each replica that does not lead, and runs; none of a link."""


@dataclass(init=False, slots=True, unsafe_hash=True)
class Trigger:
    """A step of the protocol that a fault waits for, from its `Fault.at_us` on.

    Attributes:
        moment: which, one of `sim.history.steps.MOMENTS`.
        occurrence: which of these steps, counted from 1.
        after_us: how long after it the fault strikes.
        until_us: when it strikes at the latest, if the step never comes.
    """

    moment: str
    occurrence: int
    after_us: int
    until_us: int

    def __init__(self, moment: str, occurrence: int, after_us: int, until_us: int) -> None:
        self.moment = moment
        self.occurrence = occurrence
        self.after_us = after_us
        self.until_us = until_us

    def row(self) -> tuple[str | int, ...]:
        """What a plan's hash is made of."""
        return ("at", self.moment, self.occurrence, self.after_us, self.until_us)


@dataclass(init=False, slots=True, unsafe_hash=True)
class Fault:
    """One fault, never changed. (Its constructor is written out, and assigns: that of a frozen dataclass takes ten
    times as long where this is compiled, and a run makes a dozen.)

    Attributes:
        kind: one of `faults.kinds.registry.KINDS`.
        at_us: when it strikes, or, with a trigger, begins to wait.
        targets: brokers, or a name such as `LEADER`; of a link, source and target (0: the control plane, which also
            stands for the whole cluster).
        lasts_us: until it is undone (a stopped broker: started again); -1: until the end.
        delays_us: for several targets, how long after the strike each is hit (empty: all at once; the last delay is
            also that of targets beyond it).
        both_ways: for a link, whether the other direction is concerned, too.
        value: how much, in the unit of its kind (`faults.kind.Amount`).
        replicas: for a reassignment, the new assignment.
        trigger: the step that it waits for; None: it strikes at its time.
    """

    kind: str
    at_us: int
    targets: tuple[int, ...]
    lasts_us: int = -1
    delays_us: tuple[int, ...] = ()
    both_ways: bool = False
    value: int = 0
    replicas: tuple[int, ...] = ()
    trigger: Trigger | None = None

    def __init__(
        self,
        kind: str,
        at_us: int,
        targets: tuple[int, ...],
        lasts_us: int = -1,
        delays_us: tuple[int, ...] = (),
        both_ways: bool = False,
        value: int = 0,
        replicas: tuple[int, ...] = (),
        trigger: Trigger | None = None,
    ) -> None:
        self.kind = kind
        self.at_us = at_us
        self.targets = targets
        self.lasts_us = lasts_us
        self.delays_us = delays_us
        self.both_ways = both_ways
        self.value = value
        self.replicas = replicas
        self.trigger = trigger

    def delay_us(self, place: int) -> int:
        """How long after the strike the target at a place is hit."""
        delays_us = self.delays_us
        return delays_us[min(place, len(delays_us) - 1)] if delays_us else 0

    def waiting(self, trigger: Trigger) -> Fault:
        """This fault, when a step comes. (`dataclasses.replace` costs four times as much.)"""
        return self._but(self.targets, trigger)

    def aimed(self, targets: tuple[int, ...]) -> Fault:
        """This fault, with the brokers that its targets' names stand for."""
        return self._but(targets, self.trigger)

    def _but(self, targets: tuple[int, ...], trigger: Trigger | None) -> Fault:
        return Fault(
            self.kind,
            self.at_us,
            targets,
            self.lasts_us,
            self.delays_us,
            self.both_ways,
            self.value,
            self.replicas,
            trigger,
        )

    def row(self) -> tuple[str | int, ...]:
        """What a plan's hash is made of; faults that earlier versions had keep theirs."""
        more: tuple[str | int, ...] = ("with", self.value, *self.replicas) if self.value or self.replicas else ()
        if self.trigger is not None:
            more += self.trigger.row()
        return (self.kind, self.at_us, *self.targets, self.lasts_us, *self.delays_us, self.both_ways, *more)


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults of one run, in order of time."""

    faults: tuple[Fault, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A JSON-able copy with `schema_version`."""
        return {"schema_version": SCHEMA_VERSION, "faults": [asdict(fault) for fault in self.faults]}

    def plan_hash(self) -> str:
        """Hash of the plan (16 hex digits)."""
        return hash_of(fault.row() for fault in self.faults)


def plan_from_json(data: Mapping[str, Any]) -> Plan:
    """Rebuild a plan of this version or an older one.

    Raises:
        ValueError: `schema_version` is newer than this code knows.
    """
    if data["schema_version"] > SCHEMA_VERSION:
        raise ValueError(f"plan has schema_version {data['schema_version']}; this version reads {SCHEMA_VERSION}")
    return Plan(
        tuple(
            Fault(
                fault["kind"],
                fault["at_us"],
                tuple(fault["targets"]),
                fault["lasts_us"],
                tuple(fault["delays_us"]),
                fault["both_ways"],
                fault.get("value", 0),
                tuple(fault.get("replicas", ())),
                Trigger(**fault["trigger"]) if fault.get("trigger") else None,
            )
            for fault in data["faults"]
        )
    )


def directions(fault: Fault) -> list[tuple[int, int]]:
    """The directed links that a fault of a link is about; none between a broker and itself."""
    source, target = fault.targets
    if source == target:
        return []
    return [(source, target), (target, source)] if fault.both_ways else [(source, target)]


def hash_of(rows: Iterable[tuple[str | int, ...]]) -> str:
    """Hash of rows of words and numbers (16 hex digits)."""
    text = ";".join([",".join(map(str, row)) for row in rows])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
