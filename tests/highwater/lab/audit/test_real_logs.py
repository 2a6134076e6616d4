"""Metadata logs that real brokers wrote while they acted out the bundled scenarios, as Kafka's own tool prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from highwater.lab.audit.audit import audit, rules_of
from highwater.lab.audit.explanations import Explainer
from highwater.lab.audit.image import ClusterImage
from highwater.lab.audit.log import open_log
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from highwater.lab.audit.records import MetadataBatch

LOGS = ROOT / "tests" / "fixtures" / "metadata"
DUMPS = sorted(LOGS.glob("*.txt.xz"))
BUGS = {
    "directory-assignment-4.1.0": {"directory_assignment"},
    "directory-assignment-4.2.1": {"directory_assignment"},
    "elr-outside-assignment-4.2.1": {"reassignment_completes"},
    "elr-outside-assignment-4.3.1": {"elr_outside_assignment", "reassignment_completes"},
    "reassignment-again-4.2.1": {"reassignment_completes", "resubmitted_reassignment"},
    "reassignment-again-4.3.1": {"elr_outside_assignment", "reassignment_completes", "resubmitted_reassignment"},
    "reassignment-back-4.2.1": {"resubmitted_reassignment"},
    "reassignment-back-4.3.1": {"elr_outside_assignment", "reassignment_completes"},
    "reassignment-cancelled-4.1.0": {"elr_outside_assignment", "reassignment_completes"},
    "reassignment-cancelled-4.2.1": {"elr_outside_assignment", "reassignment_completes"},
    "reassignment-cancelled-4.3.1": {"elr_outside_assignment", "reassignment_completes"},
    "reassignment-cancelled-power-loss-4.2.1": {"elr_outside_assignment", "reassignment_completes"},
    "reassignment-cancelled-power-loss-4.3.1": {"elr_outside_assignment", "reassignment_completes"},
    "reassignment-shrinks-isr-4.3.1": {"elr_outside_assignment", "reassignment_completes"},
    "reassignment-stuck-4.3.1": {"reassignment_completes", "resubmitted_reassignment"},
    "reassignment-to-one-4.1.0": {"elr_outside_assignment"},
    "reassignment-to-one-4.3.1": {"elr_outside_assignment"},
}
"""Log -> rules whose historical values explain some of its records; none in all other logs."""
ELECTED = {
    "reassignment-back-4.3.1": 1,
    "reassignment-cancelled-4.1.0": 4,
    "reassignment-cancelled-4.2.1": 4,
    "reassignment-cancelled-4.3.1": 4,
    "reassignment-to-one-4.1.0": 2,
    "reassignment-to-one-4.3.1": 2,
}
"""Log -> the broker that was elected without the acknowledged records."""


def name(path: Path) -> str:
    return path.name.removesuffix(".txt.xz")


@pytest.mark.parametrize("dump", DUMPS, ids=name)
def test_every_record_of_a_real_log_is_explained(dump: Path) -> None:
    release = dump.name.removesuffix(".txt.xz").rpartition("-")[2]
    for given in (None, release):
        found = audit([dump], release=given)
        assert not found.unexplained
        assert found.explained["one event"] + found.explained["several events"] > 1
    rules = {rule for bug in found.bugs for rule in bug.bugs}
    assert rules == BUGS.get(name(dump), set())


def test_there_are_logs_of_four_releases() -> None:
    assert len(DUMPS) > 40
    assert {name(dump).rpartition("-")[2] for dump in DUMPS} == {"3.9.0", "4.1.0", "4.2.1", "4.3.1"}


@pytest.mark.parametrize("log", ELECTED)
def test_the_election_that_lost_records_is_found_and_the_partition_was_at_risk_before(log: str) -> None:
    found = audit([LOGS / f"{log}.txt.xz"])
    (election,) = [event for event in found.happened if "left the assignment" in event.text]
    assert f"broker {ELECTED[log]} was elected" in election.text
    (begun,) = found.at_risk.values()
    assert begun[0].kind
    assert begun[0].offset < election.offset
    assert "elr-without-log" in [risk.kind for risk in begun if risk.offset < election.offset]


def test_segments_and_their_dump_give_the_same_answers() -> None:
    dump = audit([LOGS / "reassignment-back-4.3.1.txt.xz"])
    segments = audit([LOGS / "reassignment-back-4.3.1"])
    assert segments == dump


def problems(batches: Iterable[MetadataBatch], explainer: Explainer) -> list[str]:
    image, found = ClusterImage(), []
    for batch in batches:
        explainer.begin(batch)
        for record in batch.records:
            explanation = explainer.explain(image, record)
            if explanation is not None and explanation.problem:
                found.append(explanation.problem)
            image.replay(record)
    return found


@pytest.mark.parametrize("dump", DUMPS[::5], ids=name)
def test_a_changed_broker_epoch_is_found(dump: Path) -> None:
    """Each in turn, of all registrations and their changes."""
    rules = rules_of(name(dump).rpartition("-")[2])[1]
    batches = list(open_log([dump]).read(0))
    places = [
        record.fields for batch in batches for record in batch.records if record.fields.get("brokerEpoch") is not None
    ]
    assert len(places) > 3
    for fields in places:
        fields["brokerEpoch"] -= 1
        assert problems(batches, Explainer(rules, {}))
        fields["brokerEpoch"] += 1
