"""Where rules and settings have an effect: what their declarations say is what runs show."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from scenarios.format.catalogue import load
from scenarios.format.findings import all_findings
from scenarios.format.relevance import idle
from scenarios.single import recording
from sim.config import KEYS, Value
from sim.protocol.modes import MODES
from sim.protocol.rules import RULES, unmet
from tests.named import run_row
from tests.places import ROOT

if TYPE_CHECKING:
    from scenarios.format.scenario import Scenario

CORPUS: Final = ROOT / "tests" / "corpus"
DRAWN: Final = [(scenario, seed) for scenario in ("chaos", "elr-chaos", "sessions") for seed in (1, 5)]
OTHER: Final[dict[str, Value]] = {
    "eligible.leader.replicas.version": 0,
    "unclean.recovery.strategy": "Aggressive",
}
"""Another value than the default, where that is not simply a larger number."""
_REPAIRS: Final = {
    finding.repair[0]: (finding.name, finding.shown_in[0], 0, finding.repair[1])
    for finding in all_findings().values()
    if finding.main == finding.name
}
RULES_DECIDE: Final = _REPAIRS | {
    "follower_truncation": ("canary", "hw", 0, "leader-epoch"),
    "epoch_request_error": ("kafka-2334", "kip101", 0, "high-watermark"),
    "truncation_fencing": ("chaos", "kip101", 0, "yes"),
    "truncate_at_leo": ("chaos", "kraft", 7, "keeps-epochs"),
    "epoch_recorded_at": ("kip903", "kip101", 0, "election"),
    "fetcher_restart": ("jepsen-2013-clean", "hw", 0, "newer-epoch"),
    "fetch_fencing": ("missed-bounce", "hw", 0, "leader-epoch"),
    "session_epoch": ("kafka-6880", "kip320", 0, "first-fetch"),
    "fenced_fetcher": ("partitions", "kip320", 63, "retries"),
    "late_reply": ("last-replica-standing", "hw", 0, "leader-epoch"),
    "recreated_fetch": ("recreated-topic-request", "kip320", 0, "refused"),
    "append_check": ("kip101-scenario-2-batches", "hw", 0, "first-offset"),
    "append_error": ("sessions", "kip101", 1, "partition-fails"),
    "overlap_recovery": ("kip101-scenario-2-batches", "hw", 0, "passes"),
    "missing_topic_id": ("lost-partition-metadata", "elr", 0, "kept"),
    "unreadable_checkpoint": ("files", "kip320", 16, "ignored"),
    "out_of_range": ("kip903", "hw", 0, "truncates"),
    "hw_needs_min_isr": ("hw-under-min-isr", "hw", 0, "yes"),
    "min_isr_cap": ("reassignments", "kraft", 7, "none"),
    "hw_needs_epoch": ("kafka-6880", "hw", 0, "yes"),
    "same_leader": ("chaos", "kip320", 1, "forgets-leo"),
    "caught_up": ("datacenter", "kip320-repaired", 3, "this-fetch"),
    "isr_lag": ("sessions", "hw", 1, "end-offset"),
    "lag_at_reelection": ("sessions", "kip320", 3, "not-fetched"),
    "deleted_replica": ("chaos", "kip320-repaired", 1000000727, "forgets-epoch"),
    "unassigned_fetch": ("reassignments", "kraft", 9, "empty"),
    "refused_fetch": ("sessions", "kip320", 5, "forgets-leo"),
    "isr_join": ("kafka-7128", "hw", 0, "leader-epoch-start"),
    "isr_eligibility": ("all-min-isr-unclean", "hw", 1, "registered"),
    "isr_update": ("canary", "kip101", 0, "alter-partition"),
    "registration_epoch": ("all-min-isr-unclean", "hw", 0, "bumped"),
    "missed_bounce": ("all-min-isr-unclean", "hw", 0, "noticed"),
    "shutting_down_leader": ("rolling", "kip101", 6, "online"),
    "stopped_writes": ("reassignments", "kip320", 83, "unanswered"),
    "shutdown_recipients": ("rolling", "kip101", 0, "all-live"),
    "preferred_election": ("sessions", "kip101", 4, "if-needed"),
    "reassignment_state": ("chaos", "kip320", 39, "target"),
    "broker_epoch": ("chaos", "hw", 1, "checked"),
    "newer_broker_epoch": ("messages", "kip320", 16, "refused"),
    "control_retry": ("chaos", "hw", 18, "once"),
    "controller_writes": ("chaos", "hw", 38, "fenced"),
    "controller_startup": ("all-min-isr-unclean", "hw", 0, "all-replicas"),
    "last_isr_member": ("kip101-appendix", "hw", 0, "stays"),
    "broker_metadata": ("stuck-replica-kip320", "kip320", 36, "last-sent"),
    "list_offsets_guard": ("kafka-2334", "hw", 0, "yes"),
    "list_offsets_fencing": ("all-min-isr-unclean", "hw", 0, "yes"),
    "client_metadata": ("chaos", "hw", 2, "newest-epoch"),
    "lost_requests": ("chaos", "kip320", 2, "newest-first"),
    "consumer_validation": ("fsync-demo-other-order", "hw", 0, "yes"),
    "producer_dedup": ("chaos", "kip320", 5, "no"),
    "unknown_producer": ("chaos", "kip101", 11, "taken"),
    "producer_recovery": ("chaos", "kip320", 16, "new-producer-id"),
    "control_plane": ("canary", "hw", 0, "kraft"),
    "stale_fetch": ("chaos", "hw", 66, "refused"),
    "isr_shrink_epoch": ("all-min-isr-unclean", "kraft", 0, "bumped"),
    "reassignment_completes": ("reassignment-again", "kraft", 0, "adding-in-isr"),
    "elr": ("all-min-isr-unclean", "kraft", 0, "on"),
    "last_known_elr": ("all-min-isr-unclean", "elr", 0, "ejected-members"),
    "last_known_leader": ("jepsen-2013-clean", "elr", 0, "fenced-too"),
    "clean_shutdown": ("chaos", "elr", 22, "ignored"),
    "min_isr_change": ("min-isr-change", "elr", 0, "keeps-elr"),
    "unclean_registration": ("all-min-isr-unclean", "elr", 0, "removes"),
    "fenced_session": ("rolling", "elr", 0, "none"),
    "removed_voter": ("removed-voter-answers", "kraft", 0, "ignored"),
    "reassigned_replica": ("reassignments", "kraft", 0, "runs-on"),
    "activation_sessions": ("elr-chaos", "elr", 2, "at-heartbeat"),
    "lifecycle_retry": ("rolling", "elr", 0, "back-off"),
    "unclean_recovery": ("all-min-isr-unclean", "kraft", 0, "log-inspection"),
    "isr_floor": ("hw-under-min-isr", "hw", 0, "min-isr"),
    "stopped_partition": ("stopped-partition", "elr-4.3", 0, "passed-over"),
    "new_partition_reset": ("kafka-20539", "hw", 0, "earliest"),
    "duration_reset": ("reset-by-duration", "elr-4.3", 0, "latest"),
    "read_replica": ("follower-reads", "kip320", 0, "leader"),
    "group_coordinator": ("kafka-20634", "kraft", 0, "replayed"),
    "stopped_load": ("empty-coordinator", "kraft", 0, "fails"),
    "coordinator_hw": ("kafka-20634", "elr", 0, "leader"),
    "offset_fetch": ("empty-coordinator", "kraft", 0, "confirmed"),
}
"""Rule -> a run that another value of it changes: a scenario or a recorded run, mode, seed, and that value."""
KEYS_DECIDE: Final[dict[str, tuple[str, str, int, Value]]] = {
    "zookeeper.session.timeout.ms": ("all-min-isr-unclean", "hw", 0, 6_000),
    "controlled.shutdown.max.retries": ("chaos", "hw", 17, 1),
    "controlled.shutdown.retry.backoff.ms": ("chaos", "hw", 17, 10_000),
    "sim.heartbeat.interval.ms": ("all-min-isr-unclean", "hw", 3, 2_000),
    "broker.session.timeout.ms": ("all-min-isr-unclean", "kraft", 0, 30_000),
    "broker.heartbeat.interval.ms": ("all-min-isr-unclean", "kraft", 0, 1_000),
    "controller.quorum.election.timeout.ms": ("chaos", "elr", 1, 5_000),
    "controller.quorum.fetch.timeout.ms": ("chaos", "elr", 29, 5_000),
    "metadata.log.max.snapshot.interval.ms": ("quorum-snapshot-lost", "kraft", 0, 0),
    "metadata.max.retention.ms": ("quorum", "elr-4.3", 1, 0),
    "eligible.leader.replicas.version": ("all-min-isr-unclean", "elr", 0, 0),
    "sim.client.rack": ("follower-reads", "kip320", 0, 0),
    "sim.log.dirs": ("disks", "kraft", 1, 1),
    "unclean.recovery.strategy": ("all-min-isr-unclean", "elr-recovery", 0, "None"),
    "unclean.recovery.timeout.ms": ("all-min-isr-unclean", "elr-recovery", 0, 1_000),
}
"""The same for keys that do not decide everywhere."""
NEEDS: Final[dict[str, dict[str, Value]]] = {
    "producer_dedup": {"enable.idempotence": True, "acks": "all"},
    "unknown_producer": {"enable.idempotence": True, "acks": "all"},
    "producer_recovery": {"enable.idempotence": True, "acks": "all"},
    "unclean.recovery.timeout.ms": {"unclean.leader.election.enable": True},
    "metadata.max.retention.ms": {"metadata.log.max.snapshot.interval.ms": 5_000, "metadata.max.retention.ms": -1},
}
"""Rule or key -> settings under which its run shows it."""
RARE: Final = {
    "cordoned_directory": "an administrator has to cordon a directory: tests/sim/hosts/test_cordoned_directories.py",
    "log.dir.failure.timeout.ms": "a report has to be lost for 30 s: tests/sim/hosts/test_log_directories.py",
    "enabled_unclean_election": "nothing else may happen: tests/sim/protocol/kraft/test_quorum_controller.py",
    "hw_at_fetch": "an ISR is refused, and who was to join stops: tests/sim/protocol/replica/test_partition.py",
    "stop_replica": "a StopReplica has to be overtaken by what undoes it: cases of tests/verification/conformance",
    "producer_snapshots": "two restarts and a truncation: tests/sim/protocol/log/test_producer_state_manager.py",
    "clean_shutdown_file": "a broker has to stop within 0.2 s of its start: tests/sim/environment/test_storage.py",
    **dict.fromkeys(
        ("pre_vote", "leader_search", "observer_fetch_timeout", "raft_high_watermark", "begin_quorum_epoch"),
        "the simulation has no quorum that votes: tests/sim/protocol/raft",
    ),
    "unclean.leader.election.interval.ms": "something else looks sooner: cases of tests/verification/conformance",
}
"""Rule or key -> why no run of a few hundred shows it, and what does."""


@cache
def scenario(name: str) -> tuple[Scenario, int | None]:
    file = CORPUS / f"{name}.json"
    if not file.exists():
        return load(name), None
    found = recording.read(file)
    return found.scenario, found.seed


def others(mode: str, turn: int) -> tuple[dict[str, str], dict[str, Value]]:
    """Other values for all rules and keys that decide nothing in a mode: with two turns, all but few of them."""
    rules = MODES[mode].rules
    changed: dict[str, str] = {}
    for name, spec in RULES.items():
        if unmet(spec.where, [rules]):
            values = [value for value in spec.values if value != getattr(rules, name)]
            changed[name] = values[turn % len(values)]
    settings: dict[str, Value] = {}
    for key, one in KEYS.items():
        if unmet(one.where, [rules]):
            settings[key] = OTHER[key] if key in OTHER else int(one.default) * (turn + 2) + 1
    return changed, settings


def test_places_are_rules_and_some_of_their_values() -> None:
    for where in (*(rule.where for rule in RULES.values()), *(key.where for key in KEYS.values())):
        for rule, values in where:
            assert set(values) < set(RULES[rule].values)


@pytest.mark.world
@pytest.mark.parametrize("mode", MODES)
def test_histories_do_not_depend_on_what_decides_nothing_in_the_mode(mode: str) -> None:
    for turn in (0, 1):
        rules, settings = others(mode, turn)
        assert {"zookeeper.session.timeout.ms", "broker.session.timeout.ms"} & settings.keys()
        for name, seed in DRAWN:
            plain = run_row(load(name), mode, seed)
            other = run_row(load(name).with_settings(settings), mode, seed, rules)
            assert other["digest"] == plain["digest"], (name, seed, rules, settings)


def test_all_are_shown_to_decide_somewhere_but_for_the_rare() -> None:
    elsewhere = {key for key, one in KEYS.items() if one.where}
    listed = {*RULES_DECIDE, *KEYS_DECIDE, *RARE}
    assert listed == {*RULES, *elsewhere}, "RULES_DECIDE or KEYS_DECIDE names a run, or RARE a reason why there is none"


@pytest.mark.parametrize("name", [*RULES_DECIDE, *KEYS_DECIDE])
def test_something_depends_on_it_where_it_decides(name: str) -> None:
    word, mode, seed, value = (RULES_DECIDE | KEYS_DECIDE)[name]
    what, recorded = scenario(word)
    seed = seed if recorded is None else recorded
    what = what.with_settings(NEEDS.get(name, {}))
    where = RULES[name].where if name in RULES else KEYS[name].where
    assert not unmet(where, [MODES[mode].rules])
    rules, settings = ({name: str(value)}, {}) if name in RULES else ({}, {name: value})
    one, other = run_row(what, mode, seed), run_row(what.with_settings(settings), mode, seed, rules)
    assert one["digest"] != other["digest"], f"{name}={value} does not change the history of that run: name another one"


def test_a_line_tells_what_decides_nothing_in_which_modes_and_why() -> None:
    power, canary = load("power"), load("canary")
    runs = [(one, MODES[mode]) for one in (power, canary) for mode in ("hw", "kip320", "kraft", "elr")]
    rules = {"missed_bounce": "noticed", "isr_join": "high-watermark", "last_known_elr": "ejected-members"}
    assert idle(runs, rules, ["broker.session.timeout.ms", "acks"]) == [
        "rule missed_bounce has no effect in kraft, elr: it needs control_plane=zookeeper",
        "rule last_known_elr has no effect in hw, kip320, kraft: it needs elr=on",
        "setting broker.session.timeout.ms has no effect in hw, kip320: it needs control_plane=kraft",
    ]


def test_rules_that_an_asked_rule_needs_may_be_asked_for_as_well() -> None:
    rules = {"elr": "on", "last_known_elr": "ejected-members"}
    assert idle([(load("power"), MODES["kraft"])], rules) == []
    assert idle([(load("power"), MODES["hw"])], rules) == [
        "rule elr has no effect in hw: it needs control_plane=kraft",
        "rule last_known_elr has no effect in hw: it needs control_plane=kraft",
    ]


def test_brokers_of_other_modes_and_scripted_controllers_count() -> None:
    power = load("power")
    asked = {"epoch_request_error": "high-watermark"}
    assert idle([(power, MODES["hw"])], asked) == [
        "rule epoch_request_error has no effect in hw: it needs follower_truncation=leader-epoch|leader-epoch-rounds"
    ]
    assert idle([(replace(power, broker_modes={2: "kip101"}), MODES["hw"])], asked) == []
    session = ["zookeeper.session.timeout.ms"]
    assert len(idle([(power, MODES["kraft"])], settings=session)) == 1
    assert idle([(load("kafka-7164"), MODES["kraft"])], settings=session) == []


def test_what_only_controllers_have_that_are_processes_has_no_effect_without_them() -> None:
    power, quorum = (load("power"), MODES["elr"]), (load("quorum"), MODES["elr"])
    assert idle([power], {"pre_vote": "none"}, ["metadata.max.retention.ms"]) == [
        'rule pre_vote has no effect in elr: it needs control = "quorum"',
        'setting metadata.max.retention.ms has no effect in elr: it needs control = "quorum"',
    ]
    assert idle([quorum], {"pre_vote": "none"}, ["metadata.max.retention.ms"]) == []
