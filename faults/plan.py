"""Fault plans: the concrete, serialisable list of the faults of one run.

A plan is drawn from the seed alone, with one random stream for each fault, so a seed has the same plan in every mode.
`faults.kinds.injection` records which faults took effect.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

PLAN_VERSION: Final = 6
"""Version 1 lacks `Fault.value` and `Fault.replicas`, version 2 `Fault.trigger`, version 3 `Fault.partition`, version 4
`Trigger.sequence`, version 5 `Fault.directory`.
"""
ALL_DIRECTORIES: Final = 0
"""Log directory: all of them, and so the whole disk."""
ITS_DIRECTORY: Final = -1
"""Log directory: the one with the files of the partition that the fault is about."""
LEADER: Final = -1
"""Target: the leader when the fault strikes."""
CONTROLLER: Final = -2
"""Target: the active controller when the fault strikes; without one, the leader (for faults of controllers: none)."""
ISR_MEMBER: Final = -3
"""Target: the first follower in the ISR; without one, another replica."""
OUTSIDER: Final = -4
"""Target: the first replica outside the ISR; without one, another follower."""
LAST_MEMBER: Final = -5
"""Target: the only member of the ISR; if it has more, the leader."""
STEP_BROKER: Final = -6
"""Target: the broker of the step that the fault waited for; without one, the leader."""
LAST_TARGET: Final = -7
"""Target: the broker that was struck last; without one, the leader."""
FOLLOWERS: Final = -8
"""Target, the only one of its fault: each running follower. Not for links."""


@dataclass(init=False, slots=True, unsafe_hash=True)
class Trigger:
    """The protocol step that a fault waits for, from `Fault.at_us` on.

    Attributes:
        moment: one of `sim.history.steps.MOMENTS`.
        occurrence: which of these steps: 1 is the first.
        after_us: the delay between step and strike.
        until_us: the fallback time if the step never comes.
        sequence: number of a sequence of faults in the plan: each begins to wait only when the one before it has
            struck; 0: none.
    """

    moment: str
    occurrence: int
    after_us: int
    until_us: int
    sequence: int = 0

    def __init__(self, moment: str, occurrence: int, after_us: int, until_us: int, sequence: int = 0) -> None:
        self.moment = moment
        self.occurrence = occurrence
        self.after_us = after_us
        self.until_us = until_us
        self.sequence = sequence

    def row(self) -> str:
        """Its row in the plan's hash, the end of that of its fault."""
        sequence = f",in,{self.sequence}" if self.sequence else ""
        return f",at,{self.moment},{self.occurrence},{self.after_us},{self.until_us}{sequence}"


@dataclass(init=False, slots=True, unsafe_hash=True)
class Fault:
    """One fault; immutable. (The constructor is explicit: compiled, that of a frozen dataclass takes ten times as long,
    and a run creates a dozen faults.)

    Attributes:
        kind: one of `faults.kinds.registry.KINDS`.
        at_us: when it strikes, or starts to wait for its trigger.
        targets: brokers, or roles such as `LEADER`; for a link, its source and target. 0 is the control plane or the
            whole cluster.
        lasts_us: duration until it is undone (for a stopped broker: started again); -1: until the end.
        delays_us: for several targets, the delay of each after the strike; empty: none. The last delay also applies to
            all further targets.
        both_ways: for a link, whether to strike the other direction, too.
        value: amount in the unit of its kind (`faults.kind.Amount`).
        replicas: for a reassignment, the new assignment.
        trigger: the step that it waits for; None: it strikes at `at_us`.
        partition: the topic or partition that it is about; empty: the first partition, or a topic that `value` picks.
        directory: for kinds with `faults.kind.FaultKind.of_directory`, the number of the log directory that it strikes
            alone, counted on from 1 if there are not so many; `ALL_DIRECTORIES`, `ITS_DIRECTORY`.
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
    partition: str = ""
    directory: int = ALL_DIRECTORIES

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
        partition: str = "",
        directory: int = ALL_DIRECTORIES,
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
        self.partition = partition
        self.directory = directory

    def delay_us(self, place: int) -> int:
        """The delay between the strike and the target at index `place`."""
        delays_us = self.delays_us
        return delays_us[min(place, len(delays_us) - 1)] if delays_us else 0

    def with_trigger(self, trigger: Trigger) -> Fault:
        """A copy that waits for a step. (`dataclasses.replace` costs four times as much.)"""
        return self._copy(self.targets, trigger)

    def with_targets(self, targets: tuple[int, ...], delays_us: tuple[int, ...] | None = None) -> Fault:
        """A copy with other targets, and perhaps other delays."""
        found = self._copy(targets, self.trigger)
        if delays_us is not None:
            found.delays_us = delays_us
        return found

    def at(self, at_us: int) -> Fault:
        """A copy at another time."""
        found = self._copy(self.targets, self.trigger)
        found.at_us = at_us
        return found

    def within(self, directory: int) -> Fault:
        """A copy that strikes one log directory, or all of them."""
        found = self._copy(self.targets, self.trigger)
        found.directory = directory
        return found

    def about(self, partition: str) -> Fault:
        """A copy about another partition."""
        found = self._copy(self.targets, self.trigger)
        found.partition = partition
        return found

    def _copy(self, targets: tuple[int, ...], trigger: Trigger | None) -> Fault:
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
            self.partition,
            self.directory,
        )

    def row(self) -> str:
        """Its row in the plan's hash; a fault of an earlier plan version has the same row as then."""
        both_ways = "True" if self.both_ways else "False"
        row = f"{self.kind},{self.at_us}{_joined(self.targets)},{self.lasts_us}{_joined(self.delays_us)},{both_ways}"
        if self.value or self.replicas:
            row += f",with,{self.value}{_joined(self.replicas)}"
        if self.trigger is not None:
            row += self.trigger.row()
        if self.partition:
            row += f",of,{self.partition}"
        if self.directory:
            row += f",within,{self.directory}"
        return row


def _joined(numbers: tuple[int, ...]) -> str:
    """Numbers of a row, each after a comma."""
    text = ""
    for number in numbers:
        text += f",{number}"
    return text


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults of one run, ordered by time."""

    faults: tuple[Fault, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain data with `schema_version`."""
        return {"schema_version": PLAN_VERSION, "faults": [asdict(fault) for fault in self.faults]}

    def plan_hash(self) -> str:
        """Hash of the plan (16 hex digits)."""
        return hash_of([fault.row() for fault in self.faults])


def plan_from_json(data: Mapping[str, Any]) -> Plan:
    """Read a plan of this version or an older one; raises ValueError if `schema_version` is newer."""
    if data["schema_version"] > PLAN_VERSION:
        raise ValueError(f"plan has schema_version {data['schema_version']}; this version reads {PLAN_VERSION}")
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
                fault.get("partition", ""),
                fault.get("directory", ALL_DIRECTORIES),
            )
            for fault in data["faults"]
        )
    )


def directions(fault: Fault) -> list[tuple[int, int]]:
    """The directed links that a fault strikes; none if both ends are the same broker."""
    source, target = fault.targets
    if source == target:
        return []
    return [(source, target), (target, source)] if fault.both_ways else [(source, target)]


def hash_of(rows: list[str]) -> str:
    """Hash of rows (16 hex digits)."""
    return hashlib.blake2b(";".join(rows).encode(), digest_size=8).hexdigest()
