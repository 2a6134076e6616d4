"""The scenarios to perform, and the releases to perform them on: the tables ``[confirm]`` of scenario files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scenarios.format.catalogue import with_table
from scenarios.format.scenario import OnBrokers


@dataclass(frozen=True, slots=True)
class Entry:
    """A scenario on a release.

    Attributes:
        scenario: its name.
        release: of Kafka.
        pace: seconds of the scenario per real second.
    """

    scenario: str
    release: str
    pace: int = 5


_TABLES: Final = {data["name"]: OnBrokers(**data["confirm"]) for data in with_table("confirm")}
ENTRIES: Final = tuple(Entry(name, release, runs.pace) for name, runs in _TABLES.items() for release in runs.releases)
WITHOUT: Final = {name: runs.without for name, runs in _TABLES.items() if runs.without}
"""Scripted scenarios that are not acted out -> why."""
OTHERWISE: Final = {name: (runs.shown_on, runs.shown_by) for name, runs in _TABLES.items() if runs.shown_by}
"""Scenario -> releases on whose brokers it showed its failure with other settings, and in how many runs."""
