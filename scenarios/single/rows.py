"""The row that a run leaves behind: one per (scenario, mode, seed), the same from every executor.

Rows hold no clock time and nothing of the machine, so that sorted rows are equal however a sweep was run.

`COLUMNS` declares each column once. Rows, Spark's and Arrow's schemas, the reading of older stores, what summaries and
comparisons count, ``highwater columns`` and the table in README.md beside this file derive from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scenarios.format.grid import sql_type

if TYPE_CHECKING:
    from scenarios.single.run import EndedRun

SCHEMA_VERSION: Final = 6
"""Of rows, and of the stores that hold them. `Column.since` says which columns came with a version. Besides, grids of
settings came with version 3, manifests and the verdict `exhausted` with version 5: such runs were an `error` before.
"""

UNKNOWN: Final = -1
"""Stands in a column of numbers of which an older row says nothing, which is not the same as 0, or a mode has none."""
UNTOLD: Final = "not as told: "
"""The error of a run whose script or story did not happen begins so: it is the scenario's, not the program's."""

Cell = bool | int | str
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """What rows say under one name.

    Attributes:
        name: of the column.
        type: Spark SQL's.
        meaning: with the unit, and what stands for none.
        fill: its value in the row of a run; None: the attribute of that name.
        role: of the groups of columns that are treated alike, the one that it belongs to: see `KEY` and below.
        since: the `SCHEMA_VERSION` that it came with,
        missing: and what rows of older versions have in its place.
    """

    name: str
    type: str
    meaning: str
    fill: Callable[[EndedRun], Cell] | None = None
    role: str = ""
    since: int = 1
    missing: Cell | None = None

    @property
    def before(self) -> str | None:
        """`missing` to read; None where there is no version before."""
        return None if self.missing is None else json.dumps(self.missing)


_TO_JSON: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def _words(kinds: Iterable[str]) -> str:
    """Kinds as a cell."""
    return ",".join(sorted(set(kinds)))


def _violations(run: EndedRun) -> str:
    return _words([violation.kind for violation in run.recorder.history.findings.violations])


def _first_violation_us(run: EndedRun) -> int:
    return min([violation.at_us for violation in run.recorder.history.findings.violations], default=-1)


def _signature(run: EndedRun) -> str:
    if not run.recorder.history.findings.violations:
        return ""
    first_us = _first_violation_us(run)
    before = [fault.kind for fault in run.injection.realised if fault.effective and fault.at_us <= first_us]
    return "/".join([_violations(run), ",".join(before)])


def _window_us(run: EndedRun) -> int:
    begin_us, end_us = run.recorder.availability.window_us
    return end_us - begin_us


def _columns() -> tuple[Column, ...]:
    # In a function: mypyc does not know the types of the recorder yet while it looks at the module itself.
    return (
        # Key.
        Column("scenario", "string", "name of the scenario", lambda run: run.scenario.name, role="key"),
        Column("mode", "string", "the mode that it was run in", role="key"),
        Column("seed", "bigint", "decides all that is drawn", role="key"),
        # Outcome.
        Column(
            "verdict",
            "string",
            "`ok`, `violation`, `stalled`, `error` or `exhausted` (a budget was used up)",
        ),
        Column(
            "expected",
            "boolean",
            "agrees with the scenario's `[expect]`; of an exhausted run, nothing that was seen breaks it",
        ),
        Column(
            "inside",
            "boolean",
            "all records acknowledged with acks=all are inside the mode's promise",
        ),
        Column(
            "inside_unclean",
            "int",
            "1 or 0: `inside`, where damage is unclean ends; -1: a mode without ELR",
            role="damage",
            since=4,
            missing=UNKNOWN,
        ),
        Column(
            "inside_lossy",
            "int",
            "as `inside_unclean`, where damage is ends that lost the record",
            role="damage",
            since=4,
            missing=UNKNOWN,
        ),
        Column("violations", "string", "kinds of violations, sorted, joined by commas; empty when none", _violations),
        Column(
            "violations_inside",
            "string",
            "the kinds of `violations` that are inside the promise",
            lambda run: _words([entry.kind for entry in run.recorder.history.findings.violations if entry.inside]),
        ),
        Column(
            "warnings",
            "string",
            "kinds of early warnings, sorted, joined by commas; among `violations` where they count",
            lambda run: _words([entry.kind for entry in run.recorder.history.findings.warnings]),
            since=2,
            missing="",
        ),
        Column("vacuous", "boolean", "of a drawn scenario: too little happened to count"),
        Column("first_violation_us", "bigint", "simulated time in us; -1 when none", _first_violation_us),
        Column(
            "signature",
            "string",
            "kinds of violations, and of the faults that took effect before the first one, in their order",
            _signature,
        ),
        Column(
            "error",
            "string",
            "first lines of an exception or failed story; the budget that was used up; empty when none",
        ),
        Column("digest", "string", "hash of the history: equal for equal histories"),
        # What happened.
        Column(
            "drawn_settings",
            "string",
            "the settings that the seed decided, as a JSON object with sorted keys; `{}` when none",
            lambda run: _TO_JSON.encode(run.drawn),
            since=6,
            missing="",
        ),
        Column(
            "plan_hash",
            "string",
            "hash of the faults as drawn: equal in every mode",
            lambda run: run.plan.plan_hash(),
        ),
        Column("faults_hash", "string", "hash of the faults as realised", lambda run: run.injection.faults_hash()),
        Column("faults", "int", "faults that took effect", lambda run: run.injection.effective),
        Column(
            "fault_kinds",
            "string",
            "kinds of the faults that took effect, sorted, joined by commas; empty when none",
            lambda run: _words([fault.kind for fault in run.injection.realised if fault.effective]),
            since=6,
            missing="",
        ),
        Column("elections", "int", "elections after warm-up"),
        Column("truncations", "int", "truncations that removed records", lambda run: run.recorder.counts.truncations),
        Column(
            "rounds_1",
            "int",
            "completed truncations that took one answer about an epoch's end",
            lambda run: run.recorder.counts.rounds[0],
            role="rounds",
            since=2,
            missing=0,
        ),
        Column(
            "rounds_2",
            "int",
            "completed truncations that took two answers",
            lambda run: run.recorder.counts.rounds[1],
            role="rounds",
            since=2,
            missing=0,
        ),
        Column(
            "rounds_more",
            "int",
            "completed truncations that took more than two answers",
            lambda run: run.recorder.counts.rounds[2],
            role="rounds",
            since=2,
            missing=0,
        ),
        Column(
            "lossy_ends",
            "int",
            "incarnations of brokers that ended and lost records",
            lambda run: run.recorder.counts.lossy_ends,
        ),
        Column("batches_acked", "int", "batches acknowledged", lambda run: len(run.recorder.history.clients.acks)),
        Column(
            "records_acked",
            "int",
            "records acknowledged",
            lambda run: sum([ack.count for ack in run.recorder.history.clients.acks]),
        ),
        Column(
            "records_acked_all",
            "int",
            "of `records_acked`, those with acks=all",
            lambda run: sum([ack.count for ack in run.recorder.history.clients.acks if ack.acks == -1]),
        ),
        Column(
            "records_shown",
            "int",
            "records shown to consumers",
            lambda run: sum(
                [shown.batch.last_offset - shown.from_offset + 1 for shown in run.recorder.history.clients.shown]
            ),
        ),
        Column(
            "records_lost",
            "int",
            "records acknowledged with acks=all and gone",
            lambda run: run.recorder.history.findings.losses.lost,
        ),
        Column(
            "acks1_lost",
            "int",
            "records acknowledged with acks=1 and gone: no `committed-loss`",
            lambda run: run.recorder.history.findings.losses.acks1_lost,
        ),
        Column(
            "stale_reads",
            "int",
            "ListOffsets answers of an older leader epoch, below what a consumer had been shown",
            lambda run: run.recorder.history.findings.stale_reads,
        ),
        Column(
            "relocated",
            "int",
            "records acknowledged and present at another offset only",
            lambda run: run.recorder.history.findings.losses.relocated,
        ),
        Column(
            "last_standing",
            "int",
            "of `records_lost`, those that a last replica standing lacked when it was chosen",
            since=4,
            missing=UNKNOWN,
        ),
        # Availability: `sim.history.availability`.
        Column(
            "window_ms",
            "bigint",
            "how long availability was observed, in ms: from the end of warm-up until healing",
            lambda run: _window_us(run) // 1_000,
            since=3,
            missing=UNKNOWN,
        ),
        Column(
            "leaderless_ms",
            "bigint",
            "time without a leader that can be written to, in ms",
            lambda run: run.recorder.availability.leaderless_us // 1_000,
            role="availability",
            since=3,
            missing=UNKNOWN,
        ),
        Column(
            "batches_refused",
            "int",
            "batches with acks=all that were told NOT_ENOUGH_REPLICAS at least once",
            lambda run: len(run.recorder.availability.refused),
            role="availability",
            since=3,
            missing=UNKNOWN,
        ),
        Column(
            "batches_refused_after_append",
            "int",
            "batches with acks=all that were told NOT_ENOUGH_REPLICAS_AFTER_APPEND at least once",
            lambda run: len(run.recorder.availability.refused_after_append),
            role="availability",
            since=3,
            missing=UNKNOWN,
        ),
        Column(
            "hw_wait_ms",
            "bigint",
            "time, from the first election or fault on, in which an acks=all write waited for the HW, in ms",
            lambda run: run.waited.total_us // 1_000,
            role="availability",
            since=3,
            missing=UNKNOWN,
        ),
        Column(
            "hw_wait_max_ms",
            "bigint",
            "the longest stretch of `hw_wait_ms` in which the HW did not advance, in ms",
            lambda run: run.waited.longest_us // 1_000,
            role="availability",
            since=3,
            missing=UNKNOWN,
        ),
        Column(
            "under_min_isr_ms",
            "bigint",
            "time with an ISR smaller than min.insync.replicas, in ms",
            lambda run: run.recorder.metrics.under_min_isr_us(run.recorder.availability.window_us) // 1_000,
            role="availability",
            since=4,
            missing=UNKNOWN,
        ),
        Column(
            "acks1_hidden_ms",
            "bigint",
            "as `hw_wait_ms`: time in which a batch acknowledged with acks=1 could not be read yet, in ms",
            lambda run: run.hidden_us // 1_000,
            role="availability",
            since=4,
            missing=UNKNOWN,
        ),
        Column("events", "int", "events of the simulation"),
        Column("sim_us", "bigint", "simulated time at the end, in us", lambda run: run.end_us),
        Column(
            "coverage",
            "string",
            "probes and pairs that were reached, as a hexadecimal number (`highwater coverage` reads it)",
            since=3,
            missing="",
        ),
        # To do it again.
        Column(
            "replay",
            "string",
            "the command line that runs it again, where it violates, stalls or is not as expected; else empty",
        ),
    )


COLUMNS: Final[dict[str, Column]] = {column.name: column for column in _columns()}
"""Name -> column, in the order of the row."""
_FILLS: Final = [(column.name, column.fill) for column in COLUMNS.values()]


def row(run: EndedRun) -> Row:
    """All columns of a run."""
    return {name: getattr(run, name) if fill is None else fill(run) for name, fill in _FILLS}


def _with(role: str) -> tuple[str, ...]:
    return tuple([column.name for column in COLUMNS.values() if column.role == role])


KEY: Final = _with("key")
AVAILABILITY: Final = _with("availability")
"""Columns that say how available a run was: less is better."""
BY_DAMAGE: Final = _with("damage")
"""Columns that say whether a run is inside, by what counts as damage."""
ROUNDS: Final = _with("rounds")
"""Columns that count completed truncations by how many answers they took."""


def names(grid: Iterable[str] = ()) -> list[str]:
    """The columns of a row: `COLUMNS`, and after them the settings that vary in a grid."""
    return [*COLUMNS, *grid]


def type_of(name: str) -> str:
    """Spark SQL type of a column; what is none of `COLUMNS` is a setting."""
    return COLUMNS[name].type if name in COLUMNS else sql_type(name)


def key(grid: Iterable[str] = ()) -> tuple[str, ...]:
    """The columns that tell rows apart, in the order in which they sort: scenario, mode, settings, seed."""
    *first, seed = KEY
    return (*first, *grid, seed)


def ddl(grid: Iterable[str] = ()) -> str:
    """The schema as Spark DDL; settings have dots in their names, so names are quoted."""
    return ", ".join(f"`{name}` {type_of(name)}" for name in names(grid))
