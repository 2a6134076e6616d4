"""Holds a film against what it was made of: the steps of the history, the disks, and the end of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reports.film import states
from sim.history import steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reports.film.film import Film
    from sim.history.steps import Shown

ENDS = {kind.name for kind in steps.ENDS if kind not in steps.OF_REPLICAS}


def played(film: Film) -> Iterator[tuple[dict[str, Any], dict[int, dict[str, Any]]]]:
    """Partition and brokers after each step, from the changes alone."""
    partition: dict[str, Any] = {}
    brokers: dict[int, dict[str, Any]] = {}
    for change in film.changes:
        partition = {**partition, **change.partition}
        for broker, fields in change.brokers.items():
            before = brokers.get(broker, {"log": []})
            after = {**before, **fields}
            if "log" in fields:
                kept, dropped, new = fields["log"]
                after["log"] = [*before["log"][dropped : dropped + kept], *new]
            brokers[broker] = after
        yield partition, dict(brokers)


class Facts:
    """What the steps say: leader, epoch, ISR, ELR, assignment, and which processes run."""

    def __init__(self) -> None:
        self.of_partition: dict[str, Any] = {}
        self.runs: dict[int, bool] = {}

    def take(self, step: Shown) -> None:
        name, broker = step["step"], step.get("broker", 0)
        if name == "elected":
            self.of_partition["leader"] = broker
        if name in ("elected", "epoch-raised", "isr", "elr"):
            self.of_partition["leader_epoch"] = step["leader_epoch"]
        for field, key in (("isr", "isr"), ("elr", "elr"), ("last_known_elr", "last_known_elr")):
            if key in step:
                self.of_partition[field] = tuple(step[key])
        if name == "start":
            self.runs[broker] = True
        elif name in ENDS:
            self.runs[broker] = False


def problems(film: Film) -> Iterator[str]:
    """Each row at which the film says something else than the history, the disk, or the end of the run."""
    facts, observed = Facts(), film.observed
    partition: dict[str, Any] = {}
    brokers: dict[int, dict[str, Any]] = {}
    for place, (observation, (partition, brokers)) in enumerate(zip(observed.observations, played(film), strict=True)):
        facts.take(observation.step)
        where = f"row {place}, {observation.step}"
        if observation.step["step"] in ("elected", "isr", "elr"):
            # One decision is several steps: those to come are in the state already.
            for field, value in facts.of_partition.items():
                if field in observation.step and partition[field] != value:
                    yield f"{where}: {field} is {partition[field]}"
        for broker, runs in facts.runs.items():
            if (brokers[broker]["state"] != states.DOWN) is not runs:
                yield f"{where}: broker {broker} is {brokers[broker]['state']}"
        for broker, shown in brokers.items():
            if shown["state"] == states.DOWN and shown["log"] and shown["leo"] != shown["log"][-1][1] + 1:
                yield f"{where}: broker {broker} is down, with LEO {shown['leo']}"
        log = observation.log
        if log is not None:
            shown = brokers[observation.step["broker"]]
            if tuple(shown["log"]) != log.batches:
                yield f"{where}: log {shown['log']}"
            if (shown["hw"], shown["flushed"]) != (log.high_watermark, log.flushed):
                yield f"{where}: HW {shown['hw']}, flushed {shown['flushed']}"
    yield from _at_the_end(film, partition, brokers)


def _at_the_end(film: Film, partition: dict[str, Any], brokers: dict[int, dict[str, Any]]) -> Iterator[str]:
    result = film.observed.result
    end = result.partition
    for field in ("leader", "leader_epoch", "isr", "replicas"):
        if partition[field] != getattr(end, field):
            yield f"at the end: {field} is {partition[field]}, and was {getattr(end, field)}"
    if end.elr is not None and (partition["elr"], partition["last_known_elr"]) != (end.elr, end.last_known_elr):
        yield f"at the end: ELR {partition['elr']}, last known {partition['last_known_elr']}"
    for replica in result.replicas:
        shown = brokers[replica.broker]
        if shown["log"] != replica.batches:
            yield f"at the end: broker {replica.broker} has {shown['log']}, and had {replica.batches}"
        if (shown["leo"], shown["log_start"]) != (replica.leo, replica.log_start):
            yield f"at the end: broker {replica.broker} has LEO {shown['leo']}, log start {shown['log_start']}"
        if (shown["state"] != states.DOWN) is not replica.running:
            yield f"at the end: broker {replica.broker} is {shown['state']}"
