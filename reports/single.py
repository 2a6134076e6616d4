"""One run for a reader: verdict, story, violations, faults, final logs, and the line that replays it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from reports.console import pairs, seconds
from reports.history import batches, head

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scenarios.run import ReplicaView, RunResult

    from reports.console import Ui


def show(ui: Ui, result: RunResult) -> None:
    """Print a run."""
    first, *rest = head(result.row)
    ui.line(first, style="bold")
    for line in rest:
        ui.line(line)
    _section(ui, "Story", ["happened", "step"], [(seconds(p["met_at_us"]), p["text"]) for p in result.probes])
    _section(ui, "Violations", ["kind", "promise", "at", "detail"], map(_violation, result.violations))
    _section(ui, "Faults that took effect", ["at", "kind", "what"], map(_fault, result.faults))
    headers = ["broker", "state", "log start", "LEO", "HW", "log (offsets@leader epoch)"]
    _section(ui, "Replicas at the end", headers, map(_replica, result.replicas))
    if result.row["replay"]:
        ui.line()
        ui.line(f"Replay: {result.row['replay']}")


def as_json(result: RunResult) -> dict[str, Any]:
    """A run as one JSON-able object."""
    return {
        "row": result.row,
        "story": result.probes,
        "violations": result.violations,
        "faults": result.faults,
        "replicas": [asdict(replica) for replica in result.replicas],
    }


def _section(ui: Ui, title: str, headers: list[str], rows: Iterable[tuple[object, ...]]) -> None:
    rows = list(rows)
    if rows:
        ui.line()
        ui.line(title, style="bold")
        ui.table(headers, rows)


def _violation(violation: Mapping[str, Any]) -> tuple[object, ...]:
    promise = "inside" if violation["inside"] else "outside"
    return violation["kind"], promise, seconds(violation["at_us"]), violation["detail"]


def _fault(fault: Mapping[str, Any]) -> tuple[object, ...]:
    return seconds(fault.get("t")), fault.get("kind"), pairs(dict(fault), hide=("t", "kind"))


def _replica(replica: ReplicaView) -> tuple[object, ...]:
    state = "running" if replica.running else "stopped"
    log = batches(replica.batches) or "(empty)"
    return replica.broker, state, replica.log_start, replica.leo, replica.high_watermark, log
