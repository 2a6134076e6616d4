"""The table ``[finding]`` of a scenario: a failure of Kafka's that it shows, and how further runs are recognised.

What hunts, triage, tickets and pages say of a finding comes from here; `scenarios.format.findings` lists all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from faults.kinds.registry import KINDS
from scenarios.format import fields, values
from scenarios.format.values import Bounds, Check
from sim.protocol.modes import mode as mode_named

Repair = tuple[str, str]
"""A rule, and its value."""
_DELAYS: Final = frozenset({"metadata-lag", "slow", "message-hold", "message-loss", "pause", "cut", "zombie"})
_DEPARTURES: Final = _DELAYS | {
    "kill",
    "power-loss",
    "controlled-restart",
    "disk-replaced",
    "corrupt-tail",
    "disk-stall",
    "disk-full",
    "session-expiry",
    "unregistration",
    "power-domain-loss",
    "host-loss",
    "rack-cut",
}
_DIRECTORY_FAILURES: Final = frozenset({"directory-failure", "directory-unrepaired", "directory-replaced", "disk-full"})
GROUPS: Final[Mapping[str, frozenset[str]]] = {
    "reassignments": frozenset({"reassignment", "reassignment-cancel"}),
    "delays": _DELAYS,
    "departures": _DEPARTURES,
    "lossy-ends": frozenset({"power-loss", "disk-replaced", "corrupt-tail", "power-domain-loss", "host-loss"}),
    "directory-failures": _DIRECTORY_FAILURES,
    "unmarked-directories": _DIRECTORY_FAILURES | {"directory-added", "disk-replaced"},
}
"""Name -> kinds of fault. By departures a broker leaves the ISR or loses leadership; after faults of
unmarked-directories, a directory in use has no clean-shutdown marker, and the broker or replica has stopped.
"""


def folded(text: str) -> str:
    """A paragraph in one line."""
    return " ".join(text.split())


Paragraph = Annotated[values.Words, Check(lambda text, _: folded(text))]


def _fault(value: str, _: fields.Facts) -> str:
    return value if value in GROUPS else fields.one_of(value, [*GROUPS, *KINDS], fields.FAULT_KIND)


@dataclass(frozen=True, slots=True)
class FaultsNeeded:
    """Faults without which a run does not show the finding.

    Attributes:
        kinds: kinds of fault, or groups of them (`GROUPS`).
        least: least number of faults of these kinds together.
    """

    kinds: Annotated[tuple[Annotated[str, Check(_fault, [*GROUPS, *KINDS])], ...], Bounds(min_length=1)]
    least: values.Positive = 1

    @property
    def all_kinds(self) -> frozenset[str]:
        """The kinds, with those of groups."""
        return frozenset().union(*(GROUPS.get(kind, {kind}) for kind in self.kinds))


@dataclass(frozen=True, slots=True)
class HuntedIn:
    """Where ``highwater zoo`` hunts the finding with random runs.

    Attributes:
        scenario: a random scenario.
        mode: the mode.
        tier: 1: runs should find it within 10,000 seeds; 2: within 1,000,000.
        settings: settings that differ from the scenario's.
        also_by: further rules with values each of which has to cure a failure there.
        lossy_ends: most incarnations that may have ended with losses; None: any number.
    """

    scenario: values.Name
    mode: values.ModeName = "elr-4.3"
    tier: Literal[1, 2] = 2
    settings: values.Settings = field(default_factory=dict)
    also_by: values.RuleValues = field(default_factory=dict)
    lossy_ends: values.Natural | None = None


@dataclass(frozen=True, slots=True)
class WalkedIn:
    """Bounds of the random walks in which ``highwater zoo`` hunts the finding.

    Attributes:
        mode: a mode in which they find nothing; the rule that repairs the finding has its value in the mode of `hunt`.
        bounds: options of ``highwater explore`` with their values.
        strict: whether an early warning counts.
    """

    mode: values.ModeName = "elr-repaired"
    bounds: Mapping[values.Name, values.Natural] = field(default_factory=dict)
    strict: bool = True


@dataclass(frozen=True, slots=True)
class FindingTable:
    """What a scenario file says of the finding that it shows.

    Attributes:
        number: place among all findings, in which they are listed and recognised.
        of: the scenario with the same cause, whose repair, methods and text count here, too.
        kinds: kinds of violation, of which a failure has one; without any, no failure is recognised by this scenario.
        any_kind: whether ``triage --all-but-known`` skips failures of other kinds, too, if the repair cures them.
        needs: the faults that it needs.
        repair: the rule value that cures it; without it, what `broken_by` breaks in a repaired mode.
        also_by: rules with values each of which cures it, too.
        not_by: rules with values none of which cures it alone.
        contradicts: sentences of Kafka that it contradicts, as ``highwater claims`` names them.
        kafka: the deciding methods of Kafka's.
        trigger: for operators: what has to happen.
        avoid: for operators: what keeps it from happening, or ends it.
        cause: what they do.
        upstream: tickets and pull requests about it, as far as they could be searched.
        text: the finding for users, in Markdown: why, when, what an operator sees, what helps, the repair.
        hunt: where random runs hunt it; None: nowhere.
        walks: where walks hunt it; None: nowhere.
    """

    number: values.Positive | None = None
    of: values.Name = ""
    kinds: tuple[values.Violation, ...] = ()
    any_kind: bool = False
    needs: tuple[FaultsNeeded, ...] = ()
    repair: values.RuleValue = field(default_factory=dict)
    also_by: values.RuleValues = field(default_factory=dict)
    not_by: values.RuleValues = field(default_factory=dict)
    contradicts: tuple[values.Name, ...] = ()
    kafka: tuple[Annotated[str, Bounds(pattern=r"^\w+#\w+$")], ...] = ()
    trigger: Paragraph = ""
    avoid: Paragraph = ""
    cause: Paragraph = ""
    upstream: Paragraph = ""
    text: values.Words = ""
    hunt: HuntedIn | None = None
    walks: WalkedIn | None = None

    @staticmethod
    def check_table(table: Any) -> None:
        """Check what keys demand of each other; raises ValueError."""
        if table.number is None and not table.of:
            raise ValueError("'number' is missing, its place among the findings, or 'of', the one with the same cause")


def repair_of(table: FindingTable, broken_by: Mapping[str, Mapping[str, str]]) -> Repair | None:
    """The rule value that cures a finding: the one that it names, or what a repaired mode has in place of the only
    value that breaks it; None: neither says.
    """
    for rule, value in table.repair.items():
        return rule, value
    for name, rules in broken_by.items():
        if name.endswith("-repaired") and len(rules) == 1:
            (rule,) = rules
            return rule, mode_named(name).rules.as_dict()[rule]
    return None


def pairs(rules: Mapping[str, tuple[str, ...]]) -> tuple[Repair, ...]:
    """Rules with values, one pair for each value."""
    return tuple((rule, value) for rule, values in rules.items() for value in values)
