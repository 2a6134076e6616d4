"""What KRaft and the ELR rest on: a warning is found within a few seeds when its bug is put in, and not without it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from scenarios.format.catalogue import load
from sim.hosts.broker_metadata_publisher import BrokerMetadataPublisher
from sim.hosts.control_plane import CONTROL
from sim.hosts.controller_quorum import ControllerQuorum
from sim.protocol.kraft.partition_change_builder import UNCLEAN, PartitionChangeBuilder
from sim.protocol.kraft.quorum_controller import QuorumController
from sim.protocol.kraft.quorum_messages import MetadataRecords
from sim.protocol.kraft.replication_control_manager import NotAssignedError, ReplicationControlManager
from tests.named import run_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scenarios.format.scenario import Scenario

SEEDS = range(60)


@pytest.fixture(scope="module")
def chaos() -> Scenario:
    return replace(load("chaos"), strict=True)


def found(chaos: Scenario, mode: str, rules: dict[str, str] | None = None) -> Iterator[set[str]]:
    """Kinds that are found, early warnings among them, seed by seed."""
    for seed in SEEDS:
        row = run_row(chaos, mode, seed, rules or {})
        assert not row["error"]
        yield set(row["violations"].split(","))


def replays_twice(publisher: BrokerMetadataPublisher, message: MetadataRecords) -> None:
    """What has arrived already is taken for the next records."""
    if message.first <= publisher.received:
        original_arrive(publisher, appended(publisher, message, message.first))


def replays_across_gaps(publisher: BrokerMetadataPublisher, message: MetadataRecords) -> None:
    """Records that come before others which were lost are taken for the next ones."""
    original_arrive(publisher, appended(publisher, message, max(message.first, publisher.received)))


def appended(publisher: BrokerMetadataPublisher, message: MetadataRecords, first: int) -> MetadataRecords:
    """The records of a message from one on, as the next ones of the log."""
    received = publisher.received
    control = publisher._broker.network.nodes[CONTROL]
    assert isinstance(control, ControllerQuorum)
    publisher._log = [*publisher._log[:received], *control.server.log.records[first : message.end]]
    return MetadataRecords(received, len(publisher._log), message.subject)


def forgets_the_elr(change: PartitionChangeBuilder) -> None:
    """KIP-966's rule 2a left out: only who leaves the ISR with this change becomes eligible."""
    state = change.state
    kept = (state.elr, state.last_known_elr)
    state.elr = state.last_known_elr = change.elr = ()
    original_populate(change)
    state.elr, state.last_known_elr = kept


def fails_to_register_again(controller: QuorumController, broker: int, incarnation: int, *rest: Any) -> object:
    """A registration of a broker's second process is an unexpected event."""
    if incarnation:
        raise NotAssignedError("t-0", broker)
    return original_register(controller, broker, incarnation, *rest)


original_register = QuorumController.register
original_arrive = BrokerMetadataPublisher.on_metadata_records
original_populate = PartitionChangeBuilder._populate_elr


@pytest.mark.parametrize(
    ("kind", "mode", "owner", "name", "broken"),
    [
        ("metadata-mismatch", "kraft", BrokerMetadataPublisher, "on_metadata_records", replays_twice),
        ("metadata-mismatch", "elr", BrokerMetadataPublisher, "on_metadata_records", replays_across_gaps),
        ("controller-crashes", "kraft", QuorumController, "register", fails_to_register_again),
        ("recovery-quorum", "elr-4.3", PartitionChangeBuilder, "_populate_elr", forgets_the_elr),
        ("recovery-quorum", "elr-recovery", PartitionChangeBuilder, "_populate_elr", forgets_the_elr),
    ],
)
def test_a_defect_is_found(
    chaos: Scenario,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    mode: str,
    owner: Any,
    name: str,
    broken: Callable[..., Any],
) -> None:
    monkeypatch.setattr(owner, name, broken)
    assert any(kind in kinds for kinds in found(chaos, mode))


def test_a_log_start_that_a_restart_forgets_is_found() -> None:
    scenario = load("stale-log-start")
    broken = run_row(scenario, "elr-repaired", 0, {"log_start_checkpoint": "periodic"})
    assert "deleted-records-back" in broken["violations_inside"].split(",")
    assert "deleted-records-back" not in run_row(scenario, "elr-repaired", 0)["violations"]


def test_a_hw_that_does_not_wait_for_min_isr_passes_eligible_replicas(chaos: Scenario) -> None:
    """The question of KIP-966: could the HW move while there is an ELR member that does not replicate?"""
    kinds = list(found(chaos, "elr", {"hw_needs_min_isr": "no"}))
    assert any("quorum-not-superset" in kind for kind in kinds)
    assert any("candidate-incomplete" in kind and "leader-incomplete" not in kind for kind in kinds)


@pytest.mark.world
@pytest.mark.parametrize("mode", ["kraft", "elr-4.3", "elr-recovery"])  # A new disk empties the ELR of elr.
def test_seeds_are_clean_without_the_defects(chaos: Scenario, mode: str) -> None:
    clean = {
        "metadata-mismatch",
        "controller-crashes",
        "deleted-records-back",
        "recovery-quorum",
        "quorum-not-superset",
        "two-leaders-one-epoch",
    }
    assert not any(clean & kinds for kinds in found(chaos, mode))


def elects_anybody(manager: Any) -> int:
    """The periodic check elects uncleanly, whatever the setting says."""
    states = [state for state in manager.image.partitions.values() if state.leader == 0]
    return int(manager._elect_in(states, UNCLEAN))


def test_a_controller_that_elects_anybody_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, seeds = load("applications"), range(3)

    def kinds() -> list[str]:
        return [run_row(scenario, "kraft-repaired", seed)["violations_inside"] for seed in seeds]

    assert kinds() == ["", "", ""]
    monkeypatch.setattr(ReplicationControlManager, "check_unclean", elects_anybody)
    assert "forbidden-election" in kinds()[0].split(",")
