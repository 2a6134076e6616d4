"""A request for a ticket, and its files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reports.brokers.tickets.junit import junit
from reports.brokers.tickets.markdown import markdown
from reports.brokers.tickets.shell import shell
from reports.brokers.tickets.story import tell
from sim.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from reports.brokers.tickets.story import Story

SCRIPT: Final = "Shell script, with Kafka's own tools on a fresh cluster on loopback"
TEST: Final = (
    "JUnit test of the controller, for the test jars of kafka-metadata, server-common, raft and clients; it is red"
)


@dataclass(frozen=True)
class Ticket:
    """The files of a ticket: name -> content; `notes` say what could not be written."""

    story: Story
    files: dict[str, str]
    notes: list[str]


def ticket(name: str, confirmed: dict[str, Any] | None = None) -> Ticket:
    """Write a story as a ticket.

    Args:
        name: a scenario that was performed on brokers.
        confirmed: what ``highwater confirm --json`` printed of it.

    Raises:
        InputError: there is no such story, it fails on no release, or the run is of another scenario.
    """
    story = tell(name)
    if confirmed is not None and confirmed["scenario"] != story.scenario.name:
        raise InputError(f"the run is of {confirmed['scenario']}, not of {story.scenario.name}")
    files: dict[str, str] = {}
    named: dict[str, str] = {}
    notes: list[str] = []
    try:
        files[f"{story.scenario.name}.sh"] = shell(story)
        named[SCRIPT] = f"[{story.scenario.name}.sh]({story.scenario.name}.sh)"
    except InputError as error:
        notes += error.problems
        named[SCRIPT] = f"none; {error.problems[0].removeprefix(f'{story.scenario.name}: ')}"
    try:
        test, source = junit(story)
        files[f"{test}.java"] = source
        named[TEST] = f"[{test}.java]({test}.java)"
    except InputError as error:
        notes += error.problems
    return Ticket(story, {f"{story.scenario.name}.md": markdown(story, confirmed, named), **files}, notes)


def read_confirmed(path: Path) -> dict[str, Any]:
    """What ``highwater confirm --json`` printed.

    Raises:
        InputError: the file is something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or not {"scenario", "kafka", "runs"} <= found.keys() or not found["runs"]:
        raise InputError(f"--confirmed {path} is not what 'highwater confirm --json' prints")
    return found
