"""The table ``[finding]`` of a scenario: a failure of Kafka's that it shows, and how further runs are recognised.

What hunts, triage, tickets and pages say of a finding comes from here; `scenarios.format.findings` lists all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sim.config import Value, flatten
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
    "session-expiry",
    "unregistration",
    "power-domain-loss",
    "host-loss",
    "rack-cut",
}
_DIRECTORY_FAILURES: Final = frozenset({"directory-failure", "directory-unrepaired", "directory-replaced"})
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


@dataclass(frozen=True, slots=True)
class FaultsNeeded:
    """Faults without which a run does not show the finding.

    Attributes:
        kinds: kinds of fault, or groups of them (`GROUPS`).
        least: least number of faults of these kinds together.
    """

    kinds: tuple[str, ...]
    least: int = 1

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

    scenario: str
    mode: str = "elr-4.3"
    tier: int = 2
    settings: Mapping[str, Value] = field(default_factory=dict)
    also_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lossy_ends: int | None = None


@dataclass(frozen=True, slots=True)
class WalkedIn:
    """Bounds of the random walks in which ``highwater zoo`` hunts the finding.

    Attributes:
        mode: a mode in which they find nothing; the rule that repairs the finding has its value in the mode of `hunt`.
        bounds: options of ``highwater explore`` with their values.
        strict: whether an early warning counts.
    """

    mode: str = "elr-repaired"
    bounds: Mapping[str, int] = field(default_factory=dict)
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
        cause: what they do.
        upstream: tickets and pull requests about it, as far as they could be searched.
        text: the finding for users, in Markdown: why, when, what an operator sees, what helps, the repair.
        hunt: where random runs hunt it; None: nowhere.
        walks: where walks hunt it; None: nowhere.
    """

    number: int | None = None
    of: str = ""
    kinds: tuple[str, ...] = ()
    any_kind: bool = False
    needs: tuple[FaultsNeeded, ...] = ()
    repair: Mapping[str, str] = field(default_factory=dict)
    also_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    not_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    contradicts: tuple[str, ...] = ()
    kafka: tuple[str, ...] = ()
    cause: str = ""
    upstream: str = ""
    text: str = ""
    hunt: HuntedIn | None = None
    walks: WalkedIn | None = None


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


def folded(text: str) -> str:
    """A paragraph in one line."""
    return " ".join(text.split())


def from_plain(data: Mapping[str, Any]) -> FindingTable:
    """Read the table as TOML has it, or as a stored scenario has it; its content has been checked."""
    given = dict(data)
    for key in ("kinds", "contradicts", "kafka"):
        given[key] = tuple(given.get(key, ()))
    given["needs"] = tuple(FaultsNeeded(tuple(part["kinds"]), part.get("least", 1)) for part in given.get("needs", ()))
    for key in ("also_by", "not_by"):
        given[key] = _values(given.get(key, {}))
    for key in ("cause", "upstream"):
        given[key] = folded(given.get(key, ""))
    if (hunt := given.get("hunt")) is not None:
        further = {"settings": dict(flatten(hunt.get("settings", {}))), "also_by": _values(hunt.get("also_by", {}))}
        given["hunt"] = HuntedIn(**{**hunt, **further})
    if (walks := given.get("walks")) is not None:
        given["walks"] = WalkedIn(**walks)
    return FindingTable(**given)


def _values(rules: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {rule: (values,) if isinstance(values, str) else tuple(values) for rule, values in rules.items()}
