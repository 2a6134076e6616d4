"""Whether the tables' expectations fail if the core does nothing.

One of the core's abilities at a time is replaced by doing nothing: noting epochs, truncating, looking up where an
epoch ended; for the table about leaders, what a leader does. A run *depends* on the ability if it shows anything else
then: after any operation, any of the values that cases of its kind name, whether this case names it there or not; or
an error. Of the runs that depend, nearly all have to fail. (Often nothing depends on a call, as when a truncation finds
nothing to remove or a look-up only confirms what the leader's reply says.) A leader that does nothing at all has to
fail nearly all of its table.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

import pytest

from sim.protocol.client.consumer_position import ConsumerPosition
from sim.protocol.kraft.alter_partition_manager import AlterPartitionManager
from sim.protocol.kraft.isr_validation import IsrValidation
from sim.protocol.kraft.partition_change_builder import NOBODY, PartitionChangeBuilder
from sim.protocol.kraft.quorum_controller import QuorumController
from sim.protocol.kraft.replicated_controller import DeferredEventQueue
from sim.protocol.log.leader_epoch_file_cache import UNDEFINED, LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import NONE
from sim.protocol.raft.batch_accumulator import BatchAccumulator
from sim.protocol.raft.epoch_election import EpochElection
from sim.protocol.raft.epoch_states import FollowerState, ProspectiveState, ResignedState, UnattachedState
from sim.protocol.raft.fetch_purgatory import FetchPurgatory
from sim.protocol.raft.kafka_raft_client import KafkaRaftClient
from sim.protocol.raft.leader_state import LeaderState, ReplicaState
from sim.protocol.raft.quorum_state import QuorumState
from sim.protocol.raft.raft_log import OffsetAndEpoch, RaftLog
from sim.protocol.raft.raft_messages import NO_ERROR
from sim.protocol.raft.request_manager import NEVER, RequestManager
from sim.protocol.replica.fencing import LeaderEpochFencing
from sim.protocol.replica.followers import Followers
from sim.protocol.replica.isr import IsrMembership
from sim.protocol.replica.partition import Partition
from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread
from sim.protocol.rules import Rules
from tests.plain import needs_sources
from tests.verification.conformance.cases import BUNDLED, Case, read_cases
from tests.verification.conformance.driving import run_case
from tests.verification.conformance.kinds import KINDS
from tests.verification.conformance.kinds.raft_parts import snapshot_of
from tests.verification.conformance.runs import rules_for

pytestmark = needs_sources

ABILITIES: Final[dict[str, list[tuple[type, str, object]]]] = {
    "assign": [(LeaderEpochFileCache, "assign", None)],
    "truncate": [
        (LeaderEpochFileCache, "truncate_from_end", None),
        (LeaderEpochFileCache, "truncate_from_start", None),
        (Log, "truncate_to", []),
    ],
    "end-offset-for": [(LeaderEpochFileCache, "end_offset_for", UNDEFINED)],
}
"""Functions of the core, each with what it returns when it does nothing."""
LEADING: Final[dict[str, list[tuple[type, str, object]]]] = {
    "advance-hw": [(Partition, "advance_hw", None), (Partition, "follower_fetched", None)],
    "expand-isr": [(Partition, "_maybe_expand", False)],
    "shrink-isr": [(Partition, "shrink_isr", None), (Followers, "out_of_sync", ())],
    "end-isr-change": [(Partition, "isr_persisted", None), (Partition, "isr_refused", None)],
    "check-requests": [(LeaderEpochFencing, "compare", NONE), (Partition, "check_fetch", NONE)],
    "change-leadership": [(Partition, "become_leader", None), (Partition, "_resign", None)],
    "alter-partition": [(AlterPartitionManager, "submit", None), (AlterPartitionManager, "on_reply", None)],
}
"""What a leader does, for the table ``hwm_and_isr``."""
ON_FETCH: Final[dict[str, list[tuple[type, str, object]]]] = {
    "find-divergence": [(Partition, "_check_divergence", NONE)],
    "name-divergence": [(Partition, "diverging", UNDEFINED)],
    "truncate-on-fetch": [(ReplicaFetcherThread, "_truncate_on_fetch", None)],
    "compare-registrations": [(Partition, "refuses_registration", False), (IsrMembership, "_is_registered", True)],
}
"""What leaders and followers do with the epochs in fetches, for the two tables about replication."""
READING: Final[dict[str, list[tuple[type, str, object]]]] = {
    "seek": [(ConsumerPosition, "seek_validated", None), (ConsumerPosition, "seek_unvalidated", None)],
    "doubt": [(ConsumerPosition, "leader_seen", False), (ConsumerPosition, "_validate", None)],
    "take-answers": [(ConsumerPosition, "epoch_end", None), (ConsumerPosition, "complete_validation", None)],
    "move": [(ConsumerPosition, "consumed", None), (ConsumerPosition, "reset_to", False)],
    "reset": [(ConsumerPosition, "request_reset", None)],
}
"""What a consumer's position does, for the table ``consumer_truncation``."""
CONTROLLING: Final[dict[str, list[tuple[type, str, object]]]] = {
    "build": [(PartitionChangeBuilder, "build", None)],
    "elect": [(PartitionChangeBuilder, "elect", NOBODY)],
    "populate-elr": [(PartitionChangeBuilder, "_populate_elr", None)],
    "complete-reassignment": [(PartitionChangeBuilder, "_complete_reassignment", None)],
    "remember-last-leader": [(PartitionChangeBuilder, "_remember_last_leader", None)],
    "validate": [(IsrValidation, "refusal", NONE)],
    "fence": [(QuorumController, "fence", None), (QuorumController, "_removal_records", [])],
    "unfence": [(QuorumController, "_unfence_records", [])],
    "elect-leaders": [(QuorumController, "elect", NONE), (QuorumController, "_elect_in", 0)],
}
"""What a KRaft controller does, for the table ``elr_partition_change``."""
VOTING: Final[dict[str, list[tuple[type, str, object]]]] = {
    "grant-votes": [(UnattachedState, "can_grant_vote", False), (ProspectiveState, "can_grant_vote", False)],
    "grant-pre-votes": [(FollowerState, "can_grant_vote", False), (ResignedState, "can_grant_vote", False)],
    "count-votes": [(EpochElection, "record_vote", True), (EpochElection, "unrecorded_voters", [])],
    "store": [(QuorumState, "_durable_transition_to", None)],
    "change-state": [
        (QuorumState, transition, None)
        for transition in (
            "transition_to_unattached",
            "transition_to_follower",
            "transition_to_prospective",
            "transition_to_candidate",
            "transition_to_leader",
            "transition_to_resigned",
            "unattached_add_voted_state",
            "prospective_add_voted_state",
        )
    ],
    "check-requests": [
        (KafkaRaftClient, "_validate_voter_only_request", NO_ERROR),
        (KafkaRaftClient, "_validate_leader_only_request", NO_ERROR),
    ],
    "check-responses": [(KafkaRaftClient, "_maybe_handle_common_response", None)],
    "raise-high-watermark": [(LeaderState, "_maybe_update_high_watermark", False)],
    "learn-high-watermark": [(KafkaRaftClient, "_update_follower_high_watermark", None)],
    "note-fetches": [(ReplicaState, "update_follower_state", None)],
    "keep-fetches": [(FetchPurgatory, "wait", None)],
    "announce": [(KafkaRaftClient, "_maybe_send_begin_quorum_epoch_requests", NEVER)],
    "resign": [(KafkaRaftClient, "_transition_to_resigned", None)],
    "search-leader": [(KafkaRaftClient, "_maybe_send_fetch_to_any_bootstrap", NEVER)],
    "watch-quorum": [
        (LeaderState, "update_check_quorum_for_following_voter", None),
        (LeaderState, "reset_begin_quorum_epoch_timer", None),
        (LeaderState, "add_acknowledgement_from", None),
    ],
    "shut-down": [(KafkaRaftClient, "_completes_shutdown", False)],
    "send-requests": [(RequestManager, "on_request_sent", None)],
    "await-responses": [(RequestManager, "is_response_expected", True)],
    "end-requests": [(RequestManager, "on_response_result", None), (RequestManager, "reset_all", None)],
    "inform-listener": [
        (KafkaRaftClient, "_maybe_fire_leader_change", None),
        (KafkaRaftClient, "_update_listeners_progress", None),
    ],
    "take-records": [(BatchAccumulator, "append", 0), (KafkaRaftClient, "prepare_append", 0)],
    "wait-for-records": [(BatchAccumulator, "drain_at_us", 0)],
    "drain-records": [(BatchAccumulator, "drain", [])],
    "append-to-log": [(RaftLog, "append", None), (RaftLog, "update_high_watermark", None)],
    "truncate-log": [(RaftLog, "truncate_to", None)],
    "keep-snapshots": [(RaftLog, "add_snapshot", None)],
    "find-snapshots": [(RaftLog, "snapshot", None)],
    "lack-snapshots": [(RaftLog, "snapshot", snapshot_of(1, 1))],
    "send-snapshots": [(RaftLog, "snapshot_instead", None)],
    "send-records": [(RaftLog, "snapshot_instead", OffsetAndEpoch(0, 0))],
    "begin-at-snapshots": [(RaftLog, "truncate_to_latest_snapshot", True), (RaftLog, "delete_before_snapshot", True)],
    "answer-at-commit": [(DeferredEventQueue, "complete_up_to", None)],
    "order-answers": [(DeferredEventQueue, "highest_pending_offset", -1)],
    "diverge": [(RaftLog, "diverging", OffsetAndEpoch(0, 0))],
    "compare-logs": [(RaftLog, "diverging", None), (RaftLog, "end_offset_for_epoch", OffsetAndEpoch(0, 0))],
}
"""What a member of the metadata quorum does, for the table ``raft``."""
SHARE: Final = 0.8
FEWEST: Final = 20
FEWEST_LEADING: Final = 5
FEWEST_ON_FETCH: Final = 2
FEWEST_READING: Final = 2
FEWEST_CONTROLLING: Final = 3
FEWEST_VOTING: Final = 5
"""Runs that must depend on each ability, lest a share of nothing pass."""
UNALTERED: Final = {
    "raft-l11": "the timer of a sole voter does not start, and no method starts it",
    "raft-q11": "a member that has read nothing shows the same",
}
"""Cases about the quorum that no ability alters, with the reason why."""


@dataclass(frozen=True)
class Outcome:
    """What a run showed of what cases of its kind name, and the error that ended it."""

    sights: tuple[str, ...]
    error: str | None


Runs = dict[str, tuple[Case, Rules]]


CASES: Final = read_cases(BUNDLED)
NAMED: Final = {kind: {key for case in CASES if case.kind == kind for key in case.expectations} for kind in KINDS}


def _runs(cases: list[Case]) -> Runs:
    return {f"{case.id}-{name}": (case, rules) for case in cases for name, rules in rules_for(case).items()}


ALL: Final = _runs(CASES)
ON_LEADERS: Final = _runs([case for case in CASES if case.table == "hwm_and_isr"])
ON_REPLICATION: Final = _runs([case for case in CASES if case.table in ("follower_truncation", "hwm_and_isr")])
ON_CONSUMERS: Final = _runs([case for case in CASES if case.table == "consumer_truncation"])
ON_CONTROLLERS: Final = _runs([case for case in CASES if case.table == "elr_partition_change"])

ON_QUORUM: Final = _runs([case for case in CASES if case.table == "raft"])


def _named(kind: str, sight: object) -> str:
    return repr({key: sight[key] for key in sight if key in NAMED[kind]} if isinstance(sight, dict) else sight)


def _outcome(case: Case, rules: Rules) -> Outcome:
    sights: list[object] = []
    error = None
    try:
        run_case(case, KINDS[case.kind], rules, sights)
    except Exception as raised:  # Whatever comes of a broken core.
        error = repr(raised)
    return Outcome(tuple(_named(case.kind, sight) for sight in sights), error)


def _outcomes(runs: Runs, *broken: tuple[type, str, object]) -> dict[str, Outcome]:
    with ExitStack() as patches:
        for owner, function, answer in broken:
            patches.enter_context(patch.object(owner, function, _nothing(answer)))
        return {name: _outcome(*run) for name, run in runs.items()}


def _nothing(answer: Any) -> Any:
    return lambda *_, **__: answer


@pytest.fixture(scope="module")
def intact() -> dict[str, Outcome]:
    outcomes = _outcomes(ALL)
    assert not [name for name, outcome in outcomes.items() if outcome.error]
    return outcomes


def _check(runs: Runs, intact: dict[str, Outcome], fewest: int, *ability: tuple[type, str, object]) -> None:
    broken = _outcomes(runs, *ability)
    depend = [name for name in runs if broken[name] != intact[name]]
    unnoticed = [name for name in depend if broken[name].error is None]
    assert len(depend) >= fewest
    assert len(unnoticed) <= (1 - SHARE) * len(depend), unnoticed


@pytest.mark.world
@pytest.mark.parametrize("ability", ABILITIES)
def test_a_core_that_does_nothing_is_noticed(intact: dict[str, Outcome], ability: str) -> None:
    _check(ALL, intact, FEWEST, *ABILITIES[ability])


@pytest.mark.parametrize("ability", LEADING)
def test_a_leader_that_leaves_something_undone_is_noticed(intact: dict[str, Outcome], ability: str) -> None:
    _check(ON_LEADERS, intact, FEWEST_LEADING, *LEADING[ability])


@pytest.mark.parametrize("ability", ON_FETCH)
def test_a_fetch_whose_epochs_mean_nothing_is_noticed(intact: dict[str, Outcome], ability: str) -> None:
    _check(ON_REPLICATION, intact, FEWEST_ON_FETCH, *ON_FETCH[ability])


@pytest.mark.parametrize("ability", READING)
def test_a_position_that_leaves_something_undone_is_noticed(intact: dict[str, Outcome], ability: str) -> None:
    _check(ON_CONSUMERS, intact, FEWEST_READING, *READING[ability])


@pytest.mark.parametrize("ability", CONTROLLING)
def test_a_controller_that_leaves_something_undone_is_noticed(intact: dict[str, Outcome], ability: str) -> None:
    _check(ON_CONTROLLERS, intact, FEWEST_CONTROLLING, *CONTROLLING[ability])


def test_each_case_about_the_quorum_fails_without_some_ability() -> None:
    unnoticed = set(ON_QUORUM)
    for ability, broken in VOTING.items():
        failed = {name for name, outcome in _outcomes(ON_QUORUM, *broken).items() if outcome.error}
        assert len(failed) >= FEWEST_VOTING, ability
        unnoticed -= failed
    assert {ON_QUORUM[name][0].id for name in unnoticed} == UNALTERED.keys()


@pytest.mark.parametrize(
    ("runs", "abilities"),
    [(ON_LEADERS, LEADING), (ON_CONSUMERS, READING), (ON_CONTROLLERS, CONTROLLING), (ON_QUORUM, VOTING)],
)
def test_core_that_does_nothing_fails_its_table(
    runs: Runs, abilities: dict[str, list[tuple[type, str, object]]]
) -> None:
    everything = [entry for ability in abilities.values() for entry in ability]
    outcomes = _outcomes(runs, *everything)
    passed = [name for name, outcome in outcomes.items() if outcome.error is None]
    assert len(passed) <= (1 - SHARE) * len(outcomes), passed
