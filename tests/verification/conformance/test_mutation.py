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
from sim.protocol.log.leader_epoch_file_cache import UNDEFINED, LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.messages import NONE
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
SHARE: Final = 0.8
FEWEST: Final = 20
FEWEST_LEADING: Final = 5
FEWEST_ON_FETCH: Final = 2
FEWEST_READING: Final = 2
FEWEST_CONTROLLING: Final = 3
"""Runs that must depend on each ability, lest a share of nothing pass."""


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


@pytest.mark.parametrize(
    ("runs", "abilities"), [(ON_LEADERS, LEADING), (ON_CONSUMERS, READING), (ON_CONTROLLERS, CONTROLLING)]
)
def test_core_that_does_nothing_fails_its_table(
    runs: Runs, abilities: dict[str, list[tuple[type, str, object]]]
) -> None:
    everything = [entry for ability in abilities.values() for entry in ability]
    outcomes = _outcomes(runs, *everything)
    passed = [name for name, outcome in outcomes.items() if outcome.error is None]
    assert len(passed) <= (1 - SHARE) * len(outcomes), passed
