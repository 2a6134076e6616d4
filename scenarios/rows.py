"""The row that a run leaves behind: one per (scenario, mode, seed), the same from every executor.

Rows hold no clock time and nothing of the machine, so that sorted rows are equal however a sweep was run.
"""

from __future__ import annotations

from typing import Any, Final

SCHEMA_VERSION: Final = 3

COLUMNS: Final[dict[str, str]] = {
    # Key.
    "scenario": "string",
    "mode": "string",
    "seed": "bigint",
    # Outcome.
    "verdict": "string",  # ok | violation | stalled | error
    "expected": "boolean",  # agrees with the scenario's [expect]
    "inside": "boolean",  # all acked records inside the mode's promise
    "violations": "string",  # kinds, sorted, joined by commas; empty when none
    "violations_inside": "string",  # the kinds of `violations` that are inside the promise
    "warnings": "string",  # kinds of early warnings, sorted, joined by commas; among `violations` where they count
    "vacuous": "boolean",  # drawn scenarios: too little happened to count
    "first_violation_us": "bigint",  # simulated time, -1 when none
    "signature": "string",  # kinds and fault kinds before the first violation
    "error": "string",  # first lines of an exception or failed story; empty when none
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
    "events": "int",
    "sim_us": "bigint",  # simulated time at the end
    "coverage": "string",  # probes and pairs that were reached: see scenarios/coverage.py
    # To do it again.
    "replay": "string",  # one command line for rows that are not as expected or that violate; else empty
}
"""Column name -> Spark SQL type, in order."""

KEY: Final = ("scenario", "mode", "seed")

Row = dict[str, Any]


def ddl() -> str:
    """The schema as Spark DDL."""
    return ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
