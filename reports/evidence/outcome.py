"""One run as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from reports.evidence.waiting import waits_for

if TYPE_CHECKING:
    from scenarios.single.result import RunResult


def as_json(result: RunResult) -> dict[str, Any]:
    """A run as one JSON-able object."""
    return {
        "row": result.row,
        "settings": result.settings,
        "story": result.story,
        "waits_for": waits_for(result),
        "violations": result.violations,
        "warnings": result.warnings,
        "faults": result.faults,
        "partition": asdict(result.partition),
        "replicas": [asdict(replica) for replica in result.replicas],
    }
