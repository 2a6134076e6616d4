"""The outcome of one run: as JSON, and why a stalled one has no leader."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from reports.formatting import moment
from sim.history.steps import ACK, kind_of
from sim.protocol.decisions import to_values
from sim.protocol.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scenarios.single.result import ReplicaView, RunResult
    from sim.protocol.modes import Mode

OFFLINE: Final = "OfflinePartitionsCount"
MANUAL: Final = "ManualLeaderElectionRequiredPartitionCount"


def since_us(result: RunResult) -> int:
    """The time since which a stalled run has had no leader."""
    at_us, _ = result.metrics[OFFLINE][-1]
    return at_us


def rule_effects(result: RunResult, base: Mode | None) -> list[str]:
    """For each rule that differs from the base's, or from the mode's where an option replaced it, whether its value
    decided otherwise in this run. Where all decided alike, both have the same history; an answer that differs may still
    leave it as it is.

    Args:
        result: the run.
        base: the mode on which the run's is based.
    """
    before = base or result.mode
    own, others = result.mode.override(result.rules).rules, before.rules
    decided = to_values(int(result.row["decided"], 16))
    return [
        f"{name}={own.value(name)} decided {'otherwise' if (name, others.value(name)) in decided else 'alike'} "
        f"in this run ({before.name}: {others.value(name)})"
        for name in RULES
        if own.value(name) != others.value(name)
    ]


def waits_for(result: RunResult) -> list[str]:
    """Why a stalled run has no leader, in sentences; none for other runs.

    By the rules, an administrator has to choose one. Missing batches are named only if the run was traced.
    """
    return list(_sentences(result)) if result.row["verdict"] == "stalled" else []


def _sentences(result: RunResult) -> Iterator[str]:
    state = result.partition
    why = (
        f"the ISR is {list(state.isr)}, and none of its members can be elected."
        if state.isr
        else "ISR and ELR are empty, so no replica is known to hold all committed records."
    )
    yield (
        f"Since {moment(since_us(result))} the partition is without a leader, in leader epoch {state.leader_epoch}: "
        f"{why}"
    )
    if result.metrics[MANUAL] and result.metrics[MANUAL][-1][1]:
        yield (
            "The unclean recovery waits as well: unclean.recovery.strategy = "
            f"{result.settings['unclean.recovery.strategy']} elects no leader by itself."
        )
    elif not state.isr:
        known = f"is {list(state.last_known_elr)}" if state.last_known_elr else "is empty, too"
        yield (
            f"The last known ELR {known}; without an administrator its member is elected only if it is the only one, "
            "and unfenced."
        )
    yield (
        "It waits for an administrator: kafka-leader-election.sh --election-type unclean, or "
        "unclean.leader.election.enable=true, elects a replica that is unfenced, and what that lacks is lost."
    )
    for replica in result.replicas:
        if replica.broker in state.replicas:
            yield f"Broker {replica.broker} {_lacks(result, replica)}."


def _lacks(result: RunResult, replica: ReplicaView) -> str:
    state = f"is {'up' if replica.running else 'down'}, with LEO {replica.leo}"
    acked = {step["record"] for step in result.trace or () if kind_of(step) is ACK}
    if not acked:
        return state
    missing = acked - {first_id for _, _, _, first_id in replica.batches}
    return f"{state}, and lacks {len(missing)} of {len(acked)} acknowledged batches"


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
