"""A request for a ticket, and its files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.tickets.junit import junit
from highwater.lab.tickets.markdown import markdown
from highwater.lab.tickets.shell import shell
from highwater.lab.tickets.story import is_tried, tell
from scenarios import paths
from scenarios.format.catalogue import load
from scenarios.format.findings import all_findings
from scenarios.format.validation import OpenTable, validated
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenarios.format.scenario import Scenario

SCRIPT: Final = "Shell script, with Kafka's own tools on a fresh cluster on loopback"
TEST: Final = (
    "JUnit test of the controller, for the test jars of kafka-metadata, server-common, raft and clients; it is red"
)
RESULT: Final = (
    "takes some minutes and says LOST, NO LEADER, NOT COMPLETED or DIVERGED (exit code 1) if it happened, KEPT (0) if "
    "not, NOT REPEATED (2) if a step did not come about."
)
WRITTEN: Final = Path(__file__).with_name("written")
"""Tickets written by hand, and what scripts and tests of tickets have shown on brokers."""
BY_HAND: Final = "<!-- Written by hand: "
"""Begin of the comment in tickets that `ticket` cannot write; the reason follows."""


@dataclass(frozen=True)
class Ticket:
    """The files of a ticket: name -> content; `notes` say what could not be written, and why."""

    files: dict[str, str]
    notes: list[str]


def ticket(name: str, confirmed: dict[str, Any] | None = None) -> Ticket:
    """Write a story as a ticket.

    Args:
        name: a scenario that was performed on brokers.
        confirmed: what ``highwater confirm --json`` printed of it.

    Raises:
        InputError: there is no such story, it fails on no release, or the run is of another scenario or settings.
    """
    if (text := _by_hand(name)) is not None:
        if confirmed is not None:
            raise InputError(f"{name}: its ticket is written by hand, so --confirmed does not fit")
        return _handwritten(name, text)
    story = tell(name)
    if confirmed is not None:
        _check_same(confirmed, story.scenario)
    files: dict[str, str] = {}
    named: dict[str, str] = {}
    notes: list[str] = []
    try:
        files[f"{story.scenario.name}.sh"] = shell(story)
        file = f"{story.scenario.name}.sh"
        named[SCRIPT] = f"[{file}]({file}). `KAFKA_HOME=~/kafka_2.13-{story.release} bash {file}` {RESULT}"
    except InputError as error:
        notes += error.problems
        named[SCRIPT] = f"none; {error.problems[0].removeprefix(f'{story.scenario.name}: ')}"
    try:
        test, source = junit(story)
        files[f"{test}.java"] = source
        named[TEST] = (
            f"[{test}.java]({test}.java). In a checkout of Kafka, copy it to "
            f"`metadata/src/test/java/org/apache/kafka/controller` and run `./gradlew metadata:test --tests {test}`."
        )
    except InputError as error:
        notes += error.problems
    return Ticket({f"{story.scenario.name}.md": markdown(story, confirmed, named), **files}, notes)


def _check_same(confirmed: Mapping[str, Any], scenario: Scenario) -> None:
    """Refuse a run of another scenario, also of one with the same name."""
    if confirmed["scenario"] != scenario.name:
        raise InputError(f"the run is of {confirmed['scenario']}, not of {scenario.name}")
    if confirmed["scenario_hash"] != scenario.scenario_hash():
        raise InputError(f"the run is of a {scenario.name} with another script, other faults or other settings")


def findings() -> list[str]:
    """The documented findings that have a ticket: brokers ran the present script, or it is written by hand."""
    return sorted(name for name in all_findings() if name in handwritten() or is_tried(load(name)))


def handwritten() -> list[str]:
    """The stories whose tickets are written by hand."""
    return sorted(path.stem for path in WRITTEN.glob("*.md") if BY_HAND in path.read_text(encoding="utf-8"))


def _by_hand(name: str) -> str | None:
    return (WRITTEN / f"{name}.md").read_text(encoding="utf-8") if name in handwritten() else None


def _handwritten(name: str, text: str) -> Ticket:
    """A ticket as it was written, with the tests that it links."""
    why = text.partition(BY_HAND)[2].partition(",")[0]
    tests = {file: (WRITTEN / file).read_text(encoding="utf-8") for file in re.findall(r"\]\((\w+\.java)\)", text)}
    return Ticket({f"{name}.md": text, **tests}, [f"{name}: this ticket is written by hand, because {why}"])


class _Row(OpenTable):
    what: str
    simulated: str
    real: str


class _Run(OpenTable):
    agrees: bool
    rows: list[_Row]


class _Confirmed(OpenTable):
    scenario: str
    scenario_hash: str
    kafka: str
    runs: list[_Run]


def read_confirmed(path: Path) -> dict[str, Any]:
    """What ``highwater confirm --json`` printed.

    Raises:
        InputError: the file is something else.
        StorageError: it cannot be read.
    """
    what = f"--confirmed {path} is not what 'highwater confirm --json' prints"
    try:
        found = validated(_Confirmed, paths.parse_json(paths.read(path, paths.JSON_BYTES))).model_dump()
    except InputError as error:
        raise InputError(f"{what}: {error.problems[0]}") from None
    if not found["runs"]:
        raise InputError(f"{what}: it has no runs")
    return found
