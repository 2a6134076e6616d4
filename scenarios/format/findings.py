"""All findings: what the tables ``[finding]`` of bundled scenarios and of plug-ins say, without checking them again.

Scenario files are parsed only when somebody asks, and those without such a table never.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from scenarios.format import catalogue, converter, fields
from scenarios.format.finding import FindingTable, Repair, repair_of
from sim.protocol.modes import MODES, NO_RELEASE


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """A finding.

    Attributes:
        name: the scripted scenario that shows it.
        title: the scenario's.
        main: the scenario whose table has repair, methods and text: this one, or that which shares its cause.
        repair: the rule value that cures it.
        broken_by: the scenario's.
        expect: the scenario's, as in its file.
        table: what the file says.
    """

    name: str
    title: str
    main: str
    repair: Repair
    broken_by: Mapping[str, Mapping[str, str]]
    expect: Mapping[str, str]
    table: FindingTable

    @property
    def shown_in(self) -> tuple[str, tuple[str, ...]]:
        """The mode of the newest release that shows it, and the kinds of violation there."""
        return self._newest("violates", [name for name, mode in MODES.items() if mode.release != NO_RELEASE])

    @property
    def kept_in(self) -> tuple[str, tuple[str, ...]]:
        """The newest mode with repairs, and the kinds of violation that do not occur there."""
        return self._newest("clean", [name for name in MODES if name.endswith("-repaired")])

    def _newest(self, verdict: str, modes: Iterable[str]) -> tuple[str, tuple[str, ...]]:
        found = [mode for mode in modes if self.expect.get(mode, "").startswith(verdict)]
        newest = max(found, key=lambda name: MODES[name].place)
        return newest, tuple(self.expect[newest].partition(":")[2].split("|"))


def all_findings() -> Mapping[str, KnownFinding]:
    """Scenario -> finding, by number; after each the scenarios without a number that share its cause."""
    return _resolved(tuple(catalogue.ADDED.values()))


def recognised() -> Mapping[str, KnownFinding]:
    """The findings by which hunts recognise failures.

    The first that matches counts, so those with more repairs to check come first.
    """
    found = [finding for finding in all_findings().values() if finding.table.kinds]
    found.sort(key=lambda finding: not (finding.table.also_by or finding.table.not_by))
    return {finding.name: finding for finding in found}


def shown_by(rule: str, value: str) -> tuple[str, ...]:
    """The scenarios that show the finding which a rule's value repairs; none if there is none."""
    return _documented().get((rule, value), ())


def documented() -> Mapping[Repair, tuple[str, ...]]:
    """Repair -> kinds of violation that are documented, which it cures; none: any."""
    found = all_findings().values()
    return {
        repair: ()
        if any(finding.table.any_kind for finding in found if finding.repair == repair)
        else tuple(dict.fromkeys(kind for finding in found if finding.repair == repair for kind in finding.table.kinds))
        for repair in _documented()
    }


def causes() -> Mapping[str, FindingTable]:
    """Rule -> the table that says which methods of Kafka's decide, and what is known upstream."""
    return {finding.repair[0]: finding.table for finding in all_findings().values() if finding.table.cause}


def _documented() -> dict[Repair, tuple[str, ...]]:
    """Repair -> scenarios, of findings by which failures are recognised."""
    found: dict[Repair, tuple[str, ...]] = {}
    known = all_findings()
    for finding in known.values():
        if known[finding.main].table.kinds:
            found[finding.repair] = (*found.get(finding.repair, ()), finding.name)
    return found


@cache
def _resolved(_added: tuple[str, ...]) -> Mapping[str, KnownFinding]:
    files = {data["name"]: data for data in catalogue.with_table("finding")}
    tables = {
        name: converter.of_file(FindingTable, data["finding"], fields.gather(data)) for name, data in files.items()
    }
    found = {}
    for name in sorted(files, key=lambda name: _place(name, tables)):
        data, main = files[name], tables[name].of or name
        repair = repair_of(tables[main], files[main].get("broken_by", {}))
        assert repair is not None, f"{main}: nothing says what repairs it"  # `scenarios.format.schema` checks it.
        about = data["title"], main, repair, data.get("broken_by", {}), data["expect"]
        found[name] = KnownFinding(name, *about, tables[name])
    return found


def _place(name: str, tables: Mapping[str, FindingTable]) -> tuple[int, str]:
    """Where a finding is listed."""
    own = tables[name]
    number = own.number if own.number is not None else tables[own.of].number
    assert number is not None
    return number, name if own.number is None else ""
