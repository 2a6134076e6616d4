"""The row that a run leaves behind: one per (scenario, mode, seed), the same from every executor.

Rows hold no clock time and nothing of the machine, so that sorted rows are equal however a sweep was run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from scenarios.format.grid import sql_type

SCHEMA_VERSION: Final = 5
"""Version 1 lacks `warnings` and rounds, version 2 availability and coverage; grids of settings came with version 3.
Version 3 lacks what is inside by damage, `last_standing`, and the last two measures of availability. Version 4 has no
verdict `exhausted`: such runs were an `error`.
"""

COLUMNS: Final[dict[str, str]] = {
    # Key.
    "scenario": "string",
    "mode": "string",
    "seed": "bigint",
    # Outcome.
    "verdict": "string",  # ok | violation | stalled | error | exhausted (a budget was used up)
    "expected": "boolean",  # agrees with the scenario's [expect]; exhausted: nothing that was seen breaks it
    "inside": "boolean",  # all acked records inside the mode's promise
    "inside_unclean": "int",  # 1 or 0: all of them inside, where damage is unclean ends (`faults.damage`); -1: no ELR
    "inside_lossy": "int",  # the same where damage is ends that lost the record
    "violations": "string",  # kinds, sorted, joined by commas; empty when none
    "violations_inside": "string",  # the kinds of `violations` that are inside the promise
    "warnings": "string",  # kinds of early warnings, sorted, joined by commas; among `violations` where they count
    "vacuous": "boolean",  # drawn scenarios: too little happened to count
    "first_violation_us": "bigint",  # simulated time, -1 when none
    "signature": "string",  # kinds and fault kinds before the first violation
    "error": "string",  # first lines of an exception or failed story; the budget that was used up; empty when none
    "digest": "string",
    # What happened.
    "plan_hash": "string",  # of the drawn plan: equal in every mode
    "faults_hash": "string",  # of the faults as realised
    "faults": "int",  # faults that took effect
    "elections": "int",  # after warm-up
    "truncations": "int",  # that removed records
    "rounds_1": "int",  # completed truncations that took one answer about an epoch's end
    "rounds_2": "int",  # two answers
    "rounds_more": "int",  # more than two
    "lossy_ends": "int",  # incarnations that ended and lost records
    "batches_acked": "int",
    "records_acked": "int",
    "records_acked_all": "int",
    "records_shown": "int",
    "records_lost": "int",  # acked with acks=all and gone
    "acks1_lost": "int",  # acked with acks=1 and gone: counted, never a violation
    "stale_reads": "int",
    "relocated": "int",  # acked, present at another offset only
    "last_standing": "int",  # records_lost that a last replica standing lacked when it was chosen (`last_standing.py`)
    # Availability, from the end of warm-up until healing (`sim.history.availability`); -1 in rows of older versions.
    "window_ms": "bigint",  # how long that is
    "leaderless_ms": "bigint",  # time without a leader that can be written to
    "batches_refused": "int",  # acks=all, told NOT_ENOUGH_REPLICAS at least once
    "batches_refused_after_append": "int",  # acks=all, told NOT_ENOUGH_REPLICAS_AFTER_APPEND at least once
    "hw_wait_ms": "bigint",  # since the first election or fault: time in which an acks=all write waited for the HW
    "hw_wait_max_ms": "bigint",  # the longest stretch of that in which the HW did not advance
    "under_min_isr_ms": "bigint",  # time with an ISR smaller than min.insync.replicas (`sim.history.metrics`)
    "acks1_hidden_ms": "bigint",  # as hw_wait_ms: time in which a batch acked with acks=1 was not readable yet
    "events": "int",
    "sim_us": "bigint",  # simulated time at the end
    "coverage": "string",  # probes and pairs that were reached: see scenarios/single/coverage_column.py
    # To do it again.
    "replay": "string",  # one command line for rows that are not as expected or that violate; else empty
}
"""Column name -> Spark SQL type, in order."""

KEY: Final = ("scenario", "mode", "seed")
AVAILABILITY: Final = (
    "leaderless_ms",
    "hw_wait_ms",
    "hw_wait_max_ms",
    "batches_refused",
    "batches_refused_after_append",
    "under_min_isr_ms",
    "acks1_hidden_ms",
)
"""Columns that say how available a run was: less is better."""
BY_DAMAGE: Final = ("inside_unclean", "inside_lossy")
"""Columns that say whether a run is inside, by what counts as damage."""
UNKNOWN: Final = -1
"""Stands in those columns of rows that were written before they existed, and of modes that have no such thing."""

UNTOLD: Final = "not as told: "
"""The error of a run whose script or story did not happen begins so: it is the scenario's, not the program's."""

Row = dict[str, Any]


def columns(grid: Iterable[str] = ()) -> dict[str, str]:
    """`COLUMNS`, and after them those of the settings that vary in a grid."""
    return {**COLUMNS, **{key: sql_type(key) for key in grid}}


def key(grid: Iterable[str] = ()) -> tuple[str, ...]:
    """The columns that tell rows apart, in the order in which they sort: scenario, mode, settings, seed."""
    *first, seed = KEY
    return (*first, *grid, seed)


def ddl(grid: Iterable[str] = ()) -> str:
    """The schema as Spark DDL; settings have dots in their names, so names are quoted."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns(grid).items())
