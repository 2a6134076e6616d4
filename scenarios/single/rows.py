"""The row of a run: one per (scenario, mode, seed), the same from every executor.

Rows contain no wall-clock times or machine details, so sorted rows are equal however a sweep was run.

`COLUMNS` declares each column once. Rows, the schemas of Spark and Arrow, the reading of older stores, summaries,
comparisons, ``highwater columns`` and the table in README.md beside this file derive from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from scenarios.format.blow import to_text
from scenarios.format.grid import sql_type
from scenarios.single.vacuity import VACUOUS

if TYPE_CHECKING:
    from scenarios.single.ended_run import EndedRun

ROWS_VERSION: Final = 12
"""Of rows and of stores; see `Column.since`."""
OLDEST_VERSION: Final = 8
"""The oldest version that is read."""

UNKNOWN: Final = -1
"""Value of a numeric column that an older row lacks or that the mode does not have; not the same as 0."""
STORY_ERROR: Final = "not as told: "
"""Prefix of `error` if a script or story step did not occur: the scenario's error, not the program's."""
PLUGIN_ERROR: Final = " (plug-in"
"""In `error` if a plug-in's code raised it, or answered what is impossible."""

Cell = bool | int | str
Row = dict[str, Any]


def is_internal(error: str) -> bool:
    """Whether an error of a run is one of Highwater's own code, and neither the scenario's nor a plug-in's."""
    return not error.startswith(STORY_ERROR) and PLUGIN_ERROR not in error


class ColumnGroup(Enum):
    """Columns that are treated alike."""

    KEY = 1
    """Identify a run."""
    DAMAGE = 2
    """Whether the promise covers the run, by what counts as damage."""
    ROUNDS = 3
    """Count completed truncations by their number of answers."""
    AVAILABILITY = 4
    """Measure availability; less is better."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of rows, with its Spark SQL type.

    Attributes:
        meaning: with unit, and the value that means none.
        fill: computes its value; None: take the run's attribute of this name.
        group: the columns that are treated alike.
        since: the `ROWS_VERSION` that introduced it.
    """

    name: str
    type: str
    meaning: str
    fill: Callable[[EndedRun], Cell] | None = None
    group: ColumnGroup | None = None
    since: int = OLDEST_VERSION

    @property
    def missing(self) -> Cell | None:
        """Its value in rows of older versions; None if it is in each that is read."""
        if self.since == OLDEST_VERSION:
            return None
        return "" if self.type == "string" else UNKNOWN

    @property
    def before(self) -> str | None:
        """`missing` as text; None if the column is in every version."""
        return None if self.missing is None else json.dumps(self.missing)


_TO_JSON: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def _words(kinds: Iterable[str]) -> str:
    """Kinds as a cell."""
    return ",".join(sorted(set(kinds)))


def _violations(run: EndedRun) -> str:
    return _words([violation.kind for violation in run.findings.violations])


def _first_violation_us(run: EndedRun) -> int:
    return min([violation.at_us for violation in run.findings.violations], default=-1)


def _signature(run: EndedRun) -> str:
    if not run.findings.violations:
        return ""
    first_us = _first_violation_us(run)
    before = [fault.kind for fault in run.injection.realised if fault.effective and fault.at_us <= first_us]
    return "/".join([_violations(run), ",".join(before)])


def _window_us(run: EndedRun) -> int:
    begin_us, end_us = run.window_us
    return end_us - begin_us


def _lossy_ends(run: EndedRun) -> int:
    ends: set[tuple[int, int]] = set()
    for recorder in run.recorders:
        ends |= recorder.counts.lossy_ends
    return len(ends)


def _records_acked(run: EndedRun, *, all_only: bool = False) -> int:
    return sum(
        [
            ack.count
            for recorder in run.recorders
            for ack in recorder.history.clients.acks
            if not all_only or ack.acks == -1
        ]
    )


def _records_shown(run: EndedRun) -> int:
    read = [shown for recorder in run.recorders for shown in recorder.history.clients.shown]
    return sum([shown.batch.last_offset - shown.from_offset + 1 for shown in read])


def _leaderless_us(run: EndedRun) -> int:
    return sum([recorder.availability.leaderless_us for recorder in run.recorders])


def _under_min_isr_us(run: EndedRun) -> int:
    return sum([recorder.metrics.under_min_isr_us(recorder.availability.window_us) for recorder in run.recorders])


def _sum_of_rounds(place: int) -> Callable[[EndedRun], Cell]:
    return lambda run: sum([recorder.counts.rounds[place] for recorder in run.recorders])


def _rounds(name: str, place: int, meaning: str) -> Column:
    return Column(name, "int", meaning, _sum_of_rounds(place), ColumnGroup.ROUNDS)


# In functions: at module level, mypyc does not know the types of the recorder yet.


def _columns_of_key() -> tuple[Column, ...]:
    return (
        Column("scenario", "string", "name of the scenario", lambda run: run.scenario.name, group=ColumnGroup.KEY),
        Column("mode", "string", "name of the mode", group=ColumnGroup.KEY),
        Column("seed", "bigint", "every random choice derives from it", group=ColumnGroup.KEY),
        Column(
            "blow",
            "string",
            "blows with which the run continues after early warnings, as `--blow` takes them; empty: none",
            lambda run: to_text(run.scenario.blows),
        ),
        Column(
            "warning",
            "string",
            "kind of the early warning that the last blow follows; empty: none",
            lambda run: run.scenario.blows[-1].warning if run.scenario.blows else "",
        ),
        Column(
            "warning_us",
            "bigint",
            "simulated time of that warning in us; -1: none",
            lambda run: run.scenario.blows[-1].at_us if run.scenario.blows else UNKNOWN,
        ),
        Column(
            "variant",
            "int",
            "number of the last blow among those after its warning, from 0; -1: none",
            lambda run: run.scenario.blows[-1].variant if run.scenario.blows else UNKNOWN,
        ),
    )


def _columns_of_outcome() -> tuple[Column, ...]:
    return (
        Column("verdict", "string", "`ok`, `violation`, `stalled`, `error` or `exhausted` (a budget was used up)"),
        Column(
            "expected",
            "boolean",
            "the verdict is as `[expect]` says; for an exhausted run: nothing so far contradicts it",
        ),
        Column(
            "inside",
            "boolean",
            "the mode's promise covers every record acknowledged with acks=all; false after an error",
        ),
        Column(
            "inside_unclean",
            "int",
            "1 or 0: `inside` if unclean ends count as damage; -1: a mode without ELR, or an error",
            lambda run: run.inside_unclean if run.judged else UNKNOWN,
            group=ColumnGroup.DAMAGE,
        ),
        Column(
            "inside_lossy",
            "int",
            "as `inside_unclean`, if only ends that lost the record count as damage",
            lambda run: run.inside_lossy if run.judged else UNKNOWN,
            group=ColumnGroup.DAMAGE,
        ),
        Column("violations", "string", "kinds of violations, sorted, joined by commas; empty when none", _violations),
        Column(
            "violations_inside",
            "string",
            "the kinds of `violations` that are inside the promise; empty after an error, except of a missing step",
            lambda run: _words([entry.kind for entry in run.findings.violations if entry.inside and run.judged]),
        ),
        Column(
            "warnings",
            "string",
            "kinds of early warnings, sorted, joined by commas; those that count are also in `violations`",
            lambda run: _words([entry.kind for entry in run.findings.warnings]),
        ),
        Column("vacuous", "boolean", VACUOUS),
        Column("first_violation_us", "bigint", "simulated time in us; -1 when none", _first_violation_us),
        Column(
            "violated_partitions",
            "string",
            "partitions with a violation, sorted, joined by commas; empty when none, or if there is one partition",
            since=10,
        ),
        Column(
            "signature",
            "string",
            "kinds of violation, then the kinds of the faults that took effect before the first one, in order",
            _signature,
        ),
        Column(
            "error",
            "string",
            "first lines of an exception, or the failed story step, or the exhausted budget; empty when none",
        ),
        Column("digest", "string", "hash of all protocol steps: equal for equal histories"),
    )


def _columns_of_events() -> tuple[Column, ...]:
    return (
        Column(
            "drawn_settings",
            "string",
            "settings drawn by `[draw]`, as a JSON object with sorted keys; `{}` when none",
            lambda run: _TO_JSON.encode(run.drawn),
        ),
        Column(
            "plan_hash", "string", "hash of the planned faults: equal in every mode", lambda run: run.plan.plan_hash()
        ),
        Column("faults_hash", "string", "hash of the realised faults", lambda run: run.injection.faults_hash()),
        Column("faults", "int", "faults that took effect", lambda run: run.injection.effective),
        Column(
            "fault_kinds",
            "string",
            "kinds of the faults that took effect, sorted, joined by commas; empty when none",
            lambda run: _words([fault.kind for fault in run.injection.realised if fault.effective]),
        ),
        Column("elections", "int", "elections after warm-up"),
        Column(
            "truncations",
            "int",
            "truncations that removed records",
            lambda run: sum([recorder.counts.truncations for recorder in run.recorders]),
        ),
        _rounds("rounds_1", 0, "truncations that completed after one answer about the end of an epoch"),
        _rounds("rounds_2", 1, "truncations that completed after two answers"),
        _rounds("rounds_more", 2, "truncations that completed after more than two answers"),
        Column(
            "lossy_ends",
            "int",
            "ends of broker processes that lost records",
            _lossy_ends,
        ),
        Column(
            "batches_acked",
            "int",
            "batches acknowledged",
            lambda run: sum([len(recorder.history.clients.acks) for recorder in run.recorders]),
        ),
        Column("records_acked", "int", "records acknowledged", _records_acked),
        Column(
            "records_acked_all",
            "int",
            "records acknowledged with acks=all",
            lambda run: _records_acked(run, all_only=True),
        ),
        Column(
            "records_shown",
            "int",
            "records shown to consumers",
            _records_shown,
        ),
        Column(
            "records_lost",
            "int",
            "lost records that were acknowledged with acks=all",
            lambda run: sum([recorder.history.findings.losses.lost for recorder in run.recorders]),
        ),
        Column(
            "acks1_lost",
            "int",
            "lost records that were acknowledged with acks=1; no `committed-loss`",
            lambda run: sum([recorder.history.findings.losses.acks1_lost for recorder in run.recorders]),
        ),
        Column(
            "stale_reads",
            "int",
            "ListOffsets answers of an older leader epoch, below the end that a consumer had been shown",
            lambda run: sum([recorder.history.findings.stale_reads for recorder in run.recorders]),
        ),
        Column(
            "relocated",
            "int",
            "acknowledged records that exist only at another offset",
            lambda run: sum([recorder.history.findings.losses.relocated for recorder in run.recorders]),
        ),
        Column(
            "last_standing",
            "int",
            "those of `records_lost` that a last replica standing lacked when it was elected",
        ),
        Column(
            "batches_failed",
            "int",
            "batches for which the application got an exception: delivery.timeout.ms or a fatal error",
            lambda run: sum([recorder.counts.batches_failed for recorder in run.recorders]),
            since=11,
        ),
        Column(
            "controller_crashes",
            "int",
            "exceptions by which an active controller resigned (KRaft)",
            lambda run: sum([recorder.counts.controller_crashes for recorder in run.recorders]),
            since=11,
        ),
        Column(
            "needless_stall",
            "int",
            "1: at the end a partition waits for an operator though a live replica has all committed records; else 0",
            since=11,
        ),
    )


def _columns_of_availability() -> tuple[Column, ...]:
    """See `sim.history.availability`."""
    return (
        Column(
            "window_ms",
            "bigint",
            "duration in which availability was measured, from warm-up to healing, in ms",
            lambda run: _window_us(run) // 1_000,
        ),
        Column(
            "leaderless_ms",
            "bigint",
            "time without a leader that accepts writes, in ms, summed over partitions",
            lambda run: _leaderless_us(run) // 1_000,
            group=ColumnGroup.AVAILABILITY,
        ),
        Column(
            "batches_refused",
            "int",
            "batches with acks=all that got NOT_ENOUGH_REPLICAS at least once",
            lambda run: sum([len(recorder.availability.refused) for recorder in run.recorders]),
            group=ColumnGroup.AVAILABILITY,
        ),
        Column(
            "batches_refused_after_append",
            "int",
            "batches with acks=all that got NOT_ENOUGH_REPLICAS_AFTER_APPEND at least once",
            lambda run: sum([len(recorder.availability.refused_after_append) for recorder in run.recorders]),
            group=ColumnGroup.AVAILABILITY,
        ),
        Column(
            "hw_wait_ms",
            "bigint",
            "time in which acks=all writes waited for the HW, from the first election or fault on, in ms, summed over "
            "partitions",
            lambda run: run.waited.total_us // 1_000,
            group=ColumnGroup.AVAILABILITY,
        ),
        Column(
            "hw_wait_max_ms",
            "bigint",
            "longest part of `hw_wait_ms` in which the HW of the partition did not advance, in ms",
            lambda run: run.waited.longest_us // 1_000,
            group=ColumnGroup.AVAILABILITY,
        ),
        Column(
            "under_min_isr_ms",
            "bigint",
            "time with an ISR smaller than min.insync.replicas, in ms, summed over partitions",
            lambda run: _under_min_isr_us(run) // 1_000,
            group=ColumnGroup.AVAILABILITY,
        ),
        Column(
            "acks1_hidden_ms",
            "bigint",
            "time in which a batch acknowledged with acks=1 could not be read yet, in ms; counted as `hw_wait_ms`",
            lambda run: run.hidden_us // 1_000,
            group=ColumnGroup.AVAILABILITY,
        ),
        Column(
            "needless_wait_ms",
            "bigint",
            "time over the bounds of waits (`needless-wait`), in ms, summed over partitions, until the run "
            "ends; -1: not judged",
            lambda run: run.needless_wait_us // 1_000 if run.needless_wait_us >= 0 else UNKNOWN,
            group=ColumnGroup.AVAILABILITY,
            since=12,
        ),
        Column("events", "int", "events of the simulation"),
        Column("sim_us", "bigint", "simulated time at the end, in us", lambda run: run.end_us),
        Column(
            "coverage",
            "string",
            "reached probes and pairs as a hexadecimal number, read by `highwater coverage`",
        ),
        Column(
            "decided",
            "string",
            "rule values that would have changed a decision: a hexadecimal number, see `sim/protocol/decisions.py`",
            lambda run: f"{run.run_coverage.decided:x}",
        ),
        Column(
            "reused",
            "string",
            "mode whose run gave this row, because no rule in which the modes differ had an effect; empty: it ran",
            since=9,
        ),
        Column(
            "replay", "string", "command that repeats a run that violates, stalls or is not as expected; else empty"
        ),
    )


COLUMNS: Final[dict[str, Column]] = {
    column.name: column
    for columns in (_columns_of_key(), _columns_of_outcome(), _columns_of_events(), _columns_of_availability())
    for column in columns
}
"""Name -> column, in the order of the row."""
_FILLS: Final = [(column.name, column.fill) for column in COLUMNS.values()]


def row(run: EndedRun) -> Row:
    """All columns of a run."""
    return {name: getattr(run, name) if fill is None else fill(run) for name, fill in _FILLS}


def _of(group: ColumnGroup) -> tuple[str, ...]:
    return tuple([column.name for column in COLUMNS.values() if column.group is group])


KEY: Final = _of(ColumnGroup.KEY)
AVAILABILITY: Final = _of(ColumnGroup.AVAILABILITY)
BY_DAMAGE: Final = _of(ColumnGroup.DAMAGE)
ROUNDS: Final = _of(ColumnGroup.ROUNDS)


def names(grid: Iterable[str] = ()) -> list[str]:
    """The columns of a row: `COLUMNS`, then the settings that vary in a grid."""
    return [*COLUMNS, *grid]


def type_of(name: str) -> str:
    """Spark SQL type of a column; any name not in `COLUMNS` is a setting."""
    return COLUMNS[name].type if name in COLUMNS else sql_type(name)


def key(grid: Iterable[str] = ()) -> tuple[str, ...]:
    """The columns that identify a row, in sort order: scenario, mode, settings, seed."""
    *first, seed = KEY
    return (*first, *grid, seed)


def ddl(grid: Iterable[str] = ()) -> str:
    """The schema as Spark DDL. Names are quoted, because settings contain dots."""
    return ", ".join(f"`{name}` {type_of(name)}" for name in names(grid))
