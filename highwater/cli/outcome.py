"""Output of one run: verdict, story, violations, faults, final logs, and the replay command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from faults.kinds.registry import KINDS
from highwater.cli.outline import expectation
from reports.document.blocks import Heading, Line, Table, Text
from reports.evidence.outcome import rule_effects, waits_for
from reports.evidence.story import batches, heading, outcome
from reports.formatting import pairs, seconds, side
from scenarios.format.catalogue import base_of
from scenarios.single.vacuity import VACUOUS
from sim.config import shown
from sim.plurals import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from highwater.cli.console import Ui
    from reports.document.blocks import Block
    from scenarios.format.scenario import Expectation, Scenario
    from scenarios.single.result import ReplicaView, RunResult
    from scenarios.single.rows import Row

MOST_ROWS: Final = 1_000
"""Maximum number of table rows; more take longer to lay out than to simulate."""
NAMED_MOST: Final = 5
"""Runs that were not as expected which a verdict names."""


def show(ui: Ui, scenario: Scenario, result: RunResult) -> None:
    """Print a run of a scenario."""
    if ui.verbose and result.traceback:
        ui.warn(result.traceback.rstrip())
    ui.show(_blocks(scenario, result))


def _blocks(scenario: Scenario, result: RunResult) -> Iterator[Block]:
    first, *rest = heading(result)
    yield Heading(first)
    yield from map(Line, rest)
    if not result.row["expected"] and result.row["mode"] in scenario.expect:
        expected = scenario.expect[result.row["mode"]]
        yield Line(f"the scenario expects {expectation(expected)}{_not_expected(scenario, expected, result)}")
    if scenario.draw_config:
        yield Line(f"drawn: {pairs({key: shown(result.settings[key]) for key in scenario.draw_config})}")
    if result.row["vacuous"]:
        yield Line(f"vacuous: {VACUOUS}; a sweep with more than 5 % of these is inconclusive")
    if result.row["verdict"] != "error":
        yield from map(Line, rule_effects(result, base_of(result.mode)))
    yield from _table("Story", ["happened", "step"], [(seconds(p["met_at_us"]), p["text"]) for p in result.story])
    if waits := waits_for(result):
        yield Heading("Stalled")
        yield from map(Line, waits)
    yield from _table("Violations", ["kind", "promise", "at", "detail"], map(_violation, result.violations))
    early = [warning for warning in result.warnings if warning not in result.violations]
    yield from _table("Early warnings", ["kind", "promise", "at", "detail"], map(_violation, early))
    faults = [_fault(fault, result.unnamed) for fault in result.faults]
    yield from _table("Faults", ["at", "kind", "what", "took effect"], faults)
    headers = ["broker", "state", "log start", "LEO", "HW", "log (offsets@leader epoch)"]
    of = f" of {result.shown}" if result.shown else ""
    yield from _table(f"Replicas{of} at the end", headers, map(_replica, result.replicas))
    if result.row["replay"]:
        yield Line("")
        yield Line(f"Replay: {result.row['replay']}")


def _not_expected(scenario: Scenario, expected: Expectation, result: RunResult) -> str:
    """The kinds of violation of a run that its scenario does not name, or must not have; empty if there is none."""
    named = {entry.kind for entry in scenario.also if result.row["mode"] in entry.modes}
    named |= set(expected.kinds if expected.verdict == "violates" else ())
    kinds = dict.fromkeys(violation["kind"] for violation in result.violations if violation["kind"] not in named)
    if not kinds:
        return ""
    had = {violation["kind"] for violation in result.violations}
    if expected.verdict == "violates" and had & set(expected.kinds):
        return f"; it had that, and {', '.join(kinds)}, which neither [expect] nor [[also]] lists"
    return f"; it had {', '.join(kinds)}"


class Board:
    """Runs of several scenarios as a table: a line for each, with a letter for each mode that any of them runs in."""

    MARKS: Final = {"ok": ".", "violation": "v", "stalled": "s", "exhausted": "x", "error": "E"}
    """Verdict -> letter, if it is as expected."""
    UNEXPECTED: Final = "F"
    LEGEND: Final = (
        "One letter a run: . nothing lost, v the failure that the scenario is about, s waits for an operator as it "
        "should, F surprise (-v: every run in full)"
    )

    def __init__(self, ui: Ui, names: Sequence[str], modes: Sequence[str]) -> None:
        self._ui = ui
        self._width = max(map(len, names))
        self._modes = modes
        numbers = [str(number) for number in range(1, len(modes) + 1)]
        digits = len(numbers[-1])
        columns = ", ".join(f"{number} {mode}" for number, mode in zip(numbers, modes, strict=True))
        ui.show([Text(self.LEGEND), Text(f"Modes: {columns}"), Line("")])
        for row in zip(*(number.rjust(digits) for number in numbers), strict=True):
            ui.line(f"{'':{self._width}} {' '.join(row)}".rstrip())

    def line(self, name: str, results: Iterable[RunResult]) -> None:
        """Print one scenario's runs."""
        marks = {result.row["mode"]: self._mark(result) for result in results}
        cells = " ".join(marks.get(mode, " ") for mode in self._modes)
        self._ui.line(f"{name:{self._width}} {cells}".rstrip())

    def _mark(self, result: RunResult) -> str:
        return self.MARKS[result.row["verdict"]] if result.row["expected"] else self.UNEXPECTED


def verdict(rows: Sequence[Row]) -> str:
    """How many runs were as expected, how many of these show a known failure, and which were not as expected."""
    if len(rows) == 1:
        return outcome(rows[0])
    failed = [row for row in rows if not row["expected"]]
    known = sum(row["verdict"] == "violation" for row in rows if row["expected"])
    scenarios, modes = ({row[key] for row in rows} for key in ("scenario", "mode"))
    runs = counted(len(rows), "run")
    if len(scenarios) > 1:
        runs = f"{counted(len(scenarios), 'scenario')} in {counted(len(modes), 'mode')}: {runs}"
    if failed:
        names = [f"{row['scenario']} in {row['mode']} (seed {row['seed']})" for row in failed]
        return f"{runs}, {len(failed)} NOT as expected: {listed(names, NAMED_MOST, 'of them')}"
    undecided = sum(row["verdict"] == "exhausted" for row in rows)
    if undecided:
        return f"{runs}, {undecided} undecided: stopped at the event limit"
    shows = f"; {known} {'shows' if known == 1 else 'show'} a known failure" if known else ""
    return f"{runs}, all as expected{shows}"


def _table(caption: str, headers: list[str], rows: Iterable[tuple[object, ...]]) -> Iterator[Block]:
    rows = list(rows)
    if rows:
        yield Table(headers, rows[:MOST_ROWS], caption=caption)
    if len(rows) > MOST_ROWS:
        yield Line(f"and {len(rows) - MOST_ROWS:,} more; --json has them all")


def _violation(violation: Mapping[str, Any]) -> tuple[object, ...]:
    return violation["kind"], side(violation["inside"]), seconds(violation["at_us"]), violation["detail"]


def _fault(fault: Mapping[str, Any], unnamed: str) -> tuple[object, ...]:
    names_place = "partition" in fault or "directory" in fault
    if unnamed and KINDS[fault["kind"]].of_partition and not names_place:
        fault = {**fault, "partition": unnamed}
    whole = ("targets",) if fault["targets"] == [0] else ()  # The cluster.
    what = pairs(fault, hide=("at_us", "kind", "effective", *whole))
    return seconds(fault["at_us"]), fault["kind"], what, "yes" if fault["effective"] else "no"


def _replica(replica: ReplicaView) -> tuple[object, ...]:
    state = "running" if replica.running else "stopped"
    log = batches(replica.batches) or "(empty)"
    return replica.broker, state, replica.log_start, replica.leo, replica.high_watermark, log
