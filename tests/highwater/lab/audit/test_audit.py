from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from highwater.lab.audit.audit import audit, rules_of
from highwater.lab.audit.explanations import Explainer
from highwater.lab.audit.image import ClusterImage
from highwater.lab.audit.records import from_json
from highwater.lab.audit.restart import check
from highwater.lab.audit.results import Named, restart_causes
from highwater.lab.audit.segments import read_batches
from sim.errors import InputError
from sim.protocol.modes import MODES
from tests.highwater.lab.audit import logs
from tests.highwater.lab.audit.logs import begun, change, config, feature, fenced, partition, registered, unfenced

if TYPE_CHECKING:
    from pathlib import Path

    from highwater.lab.audit.audit import Audit
    from highwater.lab.audit.records import MetadataBatch
    from tests.highwater.lab.audit.logs import Written


def audited(log: Written, folder: Path, **given: Any) -> Audit:
    return audit([log.segment(folder)], **given)


def at_last_batch(log: Written, folder: Path) -> tuple[ClusterImage, MetadataBatch]:
    """The state before the last batch, and that batch."""
    image = ClusterImage()
    *earlier, last = read_batches(next(log.segment(folder).iterdir()))
    for batch in earlier:
        for record in batch.records:
            image.replay(record)
    return image, last


def kinds(found: Audit) -> list[str]:
    return [risk.kind for risks in found.risks.values() for risk in risks]


def stopped(log: Written) -> Written:
    """Broker 3 is fenced and leaves the ISR."""
    log.add(change(isr=[1, 2]), fenced(3, 5))
    return log


def test_a_healthy_cluster_is_not_at_risk(tmp_path: Path) -> None:
    found = audited(begun(), tmp_path)
    assert not found.risks
    assert not found.unexplained
    assert (found.release, found.mode.name) == ("4.3", "elr-4.3")
    assert audited(stopped(begun()), tmp_path / "two").explained == {"one event": 1, "several events": 1}


def test_the_release_follows_the_feature_level(tmp_path: Path) -> None:
    found = {level: audited(begun(level=level), tmp_path / str(level)).release for level in (21, 25, 27, 29, 30, 31)}
    assert found == {21: "3.9", 25: "4.0", 27: "4.1", 29: "4.2", 30: "4.3", 31: "4.4"}
    assert [rules_of(release)[0].name for release in ("3.9.0", "4.0", "4.1.0", "4.2.1", "4.3.1", "4.4")] == [
        *("kraft", "elr", "elr", "elr"),
        *("elr-4.3", "elr-4.3"),
    ]
    for wrong in ("2.6.0", "newest"):
        with pytest.raises(InputError, match=f"--release '?{wrong}"):
            rules_of(wrong)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"isr": [1]}, "isr-below-min-isr"),
        ({"isr": [1], "eligibleLeaderReplicas": [2, 4]}, "elr-outside-assignment"),
        ({"isr": [], "leader": -1, "eligibleLeaderReplicas": [1]}, "leaderless"),
        ({"isr": [], "leader": -1, "eligibleLeaderReplicas": [7]}, "nobody-can-lead"),
        ({"isr": [], "leader": -1, "lastKnownElr": [1]}, "nobody-can-lead"),
        ({"isr": [], "leader": -1, "lastKnownElr": [9]}, "last-leader-outside-assignment"),
        ({"isr": [1, 2], "eligibleLeaderReplicas": [3]}, "elr-behind"),
        ({"addingReplicas": [4], "removingReplicas": [4], "replicas": [1, 2, 3, 4]}, "reassignment-stuck"),
        (
            {"isr": [1], "replicas": [1, 2, 3], "addingReplicas": [2], "removingReplicas": [1]},
            "completes-below-min-isr",
        ),
        ({"leaderRecoveryState": 1}, "unclean-leader"),
    ],
)
def test_each_check_finds_its_state(fields: dict[str, Any], kind: str, tmp_path: Path) -> None:
    log = begun()
    assert kind not in kinds(audited(log, tmp_path / "before"))
    log.add(change(**fields))
    assert kind in kinds(audited(log, tmp_path / "after"))


def test_a_stuck_reassignment_does_not_complete_with_a_small_isr(tmp_path: Path) -> None:
    """On real brokers of 4.3.1, the partition stayed so with replica 3 in the ISR, and without it."""
    log = begun()
    for isr in ([1, 3], [1]):
        log.add(change(isr=isr, replicas=[1, 2, 3], addingReplicas=[3], removingReplicas=[3]))
        found = kinds(audited(log, tmp_path / str(isr)))
        assert "reassignment-stuck" in found
        assert "completes-below-min-isr" not in found


def test_no_cancellation_is_advised_while_old_replicas_are_too_few(tmp_path: Path) -> None:
    """Real brokers of 4.3.1, told to cancel this, were left with ISR 1 and ELR 3, which was no replica any more."""
    log = begun()
    log.add(change(isr=[1, 3], replicas=[1, 2, 3], addingReplicas=[3], removingReplicas=[3]))
    (risk,) = audited(log, tmp_path / "few").risks[logs.TOPIC_ID, 0]
    assert risk.advice == "wait until broker 2 is in the ISR, and only then cancel the reassignment and submit it again"
    log.add(change(isr=[1, 2, 3]))
    (risk,) = audited(log, tmp_path / "enough").risks[logs.TOPIC_ID, 0]
    assert risk.advice == "cancel the reassignment and submit it again"


def test_members_that_are_fenced_and_a_leader_alone(tmp_path: Path) -> None:
    log = begun(min_isr=1)
    log.add(change(isr=[1]))
    log.add(fenced(1, 3))
    assert {"leader-alone", "idle-isr-member"} <= {*kinds(audited(log, tmp_path))}


def test_a_replica_that_left_and_returned_is_without_log_until_it_joins(tmp_path: Path) -> None:
    log = begun((1, 2))
    log.add(change(isr=[1], eligibleLeaderReplicas=[2]))
    log.add(change(replicas=[1, 3], isr=[1], eligibleLeaderReplicas=[2]))
    log.add(change(replicas=[1, 2]))
    assert "elr-without-log" in kinds(audited(log, tmp_path / "returned"))
    log.add(change(isr=[1, 2], eligibleLeaderReplicas=[]))
    assert not kinds(audited(log, tmp_path / "joined"))


def test_an_aborted_transaction_changed_nothing(tmp_path: Path) -> None:
    log = begun()
    before = audited(log, tmp_path / "before").image
    log.add(("BEGIN_TRANSACTION_RECORD", {}), change(isr=[1]), config("min.insync.replicas", "1"))
    during = audited(log, tmp_path / "during").image
    assert [state.isr for state in during.partitions.values()] == [(1,)]
    log.add(("ABORT_TRANSACTION_RECORD", {}))
    after = audited(log, tmp_path / "after").image
    assert (after.partitions, after.settings) == (before.partitions, before.settings)
    log.batches[-1] = [("END_TRANSACTION_RECORD", {})]
    ended = audited(log, tmp_path / "ended").image
    assert (ended.partitions, ended.settings) == (during.partitions, during.settings)


def test_topics_and_brokers_may_go(tmp_path: Path) -> None:
    log = begun()
    log.add(("REMOVE_TOPIC_RECORD", {"topicId": logs.TOPIC_ID}))
    log.add(fenced(3, 5), ("UNREGISTER_BROKER_RECORD", {"brokerId": 3, "brokerEpoch": 5}))
    found = audited(log, tmp_path)
    assert not found.image.partitions
    assert not found.facts
    assert sorted(found.image.brokers) == [1, 2]
    assert not found.unexplained


# Restarts.


def against(found: Audit, broker: int) -> dict[str, list[str]]:
    """What speaks against a restart."""
    restart = check(found, broker, found.image.name)
    return {found.image.name(key): [reason.text for reason in reasons] for key, reasons in restart.reasons.items()}


def causes(found: Audit, broker: int) -> list[tuple[str, list[int], list[str]]]:
    name = Named(found, hides=False)
    told = restart_causes(check(found, broker, name), name)
    return [(one["cause"], one["brokers"], one["partitions"]) for one in told]


def test_restarts_that_leave_enough_members_are_possible(tmp_path: Path) -> None:
    found = audited(begun(), tmp_path)
    assert [against(found, broker) for broker in (1, 2, 3)] == [{}, {}, {}]
    with pytest.raises(InputError, match="--before-restart 4: no such broker is registered; one of: 1, 2, 3"):
        against(found, 4)


def test_reasons_against_a_restart(tmp_path: Path) -> None:
    found = audited(stopped(begun()), tmp_path / "small")
    assert against(found, 2) == {"orders-0": ["its ISR would have 1 member, below min.insync.replicas 2"]}
    assert causes(found, 2) == [("replicas-out-of-isr", [3], ["orders-0"])]
    assert against(found, 3) == {}
    log = stopped(begun(min_isr=1))
    log.add(change(isr=[1]), fenced(2, 4))
    found = audited(log, tmp_path / "alone")
    assert against(found, 1) == {
        "orders-0": [
            "it would have no leader until the broker is back",
            "its ISR would have 0 members, below min.insync.replicas 1",
        ]
    }
    assert causes(found, 1) == [("replicas-out-of-isr", [2, 3], ["orders-0"])]


def test_a_restart_where_the_isr_is_too_small_already(tmp_path: Path) -> None:
    log = begun(min_isr=3)
    log.add(change(isr=[1, 2]), fenced(3, 5))
    text = "its ISR has 2 members, which is below min.insync.replicas 3 already, and would have 1 member"
    assert against(audited(log, tmp_path), 2) == {"orders-0": [text]}


def test_partitions_that_can_spare_no_replica_are_named_apart(tmp_path: Path) -> None:
    log = begun(min_isr=2)
    log.add(partition([1, 2], 1), partition([2], 2), change(0, isr=[1, 2]), fenced(3, 5))
    found = audited(log, tmp_path)
    assert causes(found, 2) == [
        ("replicas-out-of-isr", [3], ["orders-0"]),
        ("only-replica", [], ["orders-2"]),
        ("min-isr-of-all-replicas", [], ["orders-1"]),
    ]
    told = restart_causes(check(found, 2, found.image.name), Named(found, hides=True))
    assert told[0]["text"] == "broker 3 is not in the ISR of 1 partition"
    assert told[0]["advice"] == "start broker 3 if down, wait until broker 3 is in this ISR, and ask again"
    assert told[2]["text"] == "min.insync.replicas of 1 partition equals the number of replicas"
    assert "orders" not in str(told)


def test_an_unknown_min_isr_is_asked_for(tmp_path: Path) -> None:
    log = begun()
    log.add(config("min.insync.replicas", None))
    place = log.segment(tmp_path)
    with pytest.raises(
        InputError, match=r"before-restart 2 has no answer, because min\.insync\.replicas of 1 partition"
    ):
        against(audit([place]), 2)
    assert against(audit([place], static={"min.insync.replicas": "2"}), 2) == {}
    log.add(fenced(2, 4))
    assert not check(audit([log.segment(tmp_path)]), 2, str).is_active, "a start needs no answer"


def test_a_log_with_gaps_answers_nothing_about_restarts(tmp_path: Path) -> None:
    log = begun()
    file = next(log.segment(tmp_path).iterdir())
    file.write_bytes(file.read_bytes() + logs.batch(log.offset + 5, [logs.encoded(*change(isr=[1, 2, 3]))]))
    with pytest.raises(InputError, match=rf"has no answer, because something is missing: .*records {log.offset} to"):
        against(audit([tmp_path]), 2)


# Explanations.


def test_a_state_to_which_no_event_leads(tmp_path: Path) -> None:
    log = begun()
    log.add(change(leader=3, isr=[3]))
    (one,) = audited(log, tmp_path).unexplained
    assert (one.offset, one.problem) == (log.offset - 1, "no event leads to this state")


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ([fenced(2, 9)], "broker 2 has broker epoch 4, the record says 9"),
        ([unfenced(2, 4)], "broker 2 is unfenced already"),
        ([fenced(7, 9)], "broker 7 is not registered"),
        ([partition([1, 2])], "it creates a partition that exists"),
        ([partition([1, 2], 1, leader=2)], "leader 2 of a new partition is not the first of its ISR 1 2"),
        ([partition([1, 2], 1, leaderEpoch=3)], "a new partition begins with leader epoch 3 and epoch 0"),
        ([fenced(1, 3), partition([1, 2], 1)], "the ISR of a new partition has broker 1, which is fenced or shutting"),
        ([registered(2, 5, "AAAAAAAAAAAAAAAAAAAAAQ")], "broker 2 registers with epoch 5; its registration is not"),
        ([registered(2, 5)], "broker 2 registers with epoch 5 instead of 4"),
        ([("CLEAR_ELR_RECORD", {"topicName": "orders"})], "the ELRs of orders are cleared, but min.insync.replicas"),
        ([change(5, isr=[1])], "it changes partition 5 of topic"),
    ],
)
def test_records_that_no_controller_writes(records: list[Any], problem: str, tmp_path: Path) -> None:
    log = begun()
    log.add(*records)
    found = audited(log, tmp_path)
    assert [explanation.problem for explanation in found.unexplained if problem in explanation.problem]


def test_unclean_elections_may_be_allowed_by_server_properties(tmp_path: Path) -> None:
    log = begun(min_isr=1, level=21)
    log.add(change(isr=[1]))
    log.add(change(leader=2, isr=[2], leaderRecoveryState=1), fenced(1, 3))
    image, last = at_last_batch(log, tmp_path)
    explainer = Explainer(MODES["kraft"].rules, {})
    explainer.begin(last)
    explanation = explainer.explain(image, last.records[0])
    assert explanation is not None
    event = "broker 1 is fenced, with unclean.leader.election.enable=true in server.properties"
    assert explanation.events == (event,)
    found = audited(log, tmp_path, static={"unclean.leader.election.enable": "true"})
    assert not found.unexplained
    assert [one.text for one in found.happened] == ["broker 2 was elected uncleanly"]


def test_min_isr_of_a_topic_comes_before_that_of_the_cluster(tmp_path: Path) -> None:
    log = begun()
    log.add(change(isr=[1, 2]))
    assert not kinds(audited(log, tmp_path / "cluster"))
    log.add(config("min.insync.replicas", "3", 2, "orders"))
    assert kinds(audited(log, tmp_path / "topic")) == ["isr-below-min-isr"]


def test_min_isr_of_server_properties(tmp_path: Path) -> None:
    log = begun(min_isr=1)
    log.batches[0].pop()
    log.batches[0].append(logs.feature("group.version", 1))
    log.add(change(isr=[1]))
    assert kinds(audited(log, tmp_path / "default")) == ["leader-alone"]
    found = audited(log, tmp_path / "static", static={"min.insync.replicas": "2"})
    assert kinds(found) == ["isr-below-min-isr"]


def left_alone(level: int = 30) -> Written:
    """Broker 1, the only replica, shuts down: it is in the ELR."""
    log = begun([1], level=level)
    stops = {"brokerId": 1, "brokerEpoch": 3, "inControlledShutdown": 1}
    offline = change(isr=[], leader=-1, eligibleLeaderReplicas=[1], lastKnownElr=[1])
    log.add(("BROKER_REGISTRATION_CHANGE_RECORD", stops), offline)
    return log


def test_an_election_that_elects_nobody_is_an_event(tmp_path: Path) -> None:
    """It applies that the ELR was disabled."""
    log = left_alone()
    log.add(feature("eligible.leader.replicas.version", 0))
    log.add(change(eligibleLeaderReplicas=[]))
    found = audited(log, tmp_path)
    assert (found.unexplained, found.explained["several events"]) == ([], 1)


def test_a_directory_reported_again_clears_the_elr(tmp_path: Path) -> None:
    """Up to 4.2, by a known bug."""
    log = left_alone(26)
    log.add(change(eligibleLeaderReplicas=[]))
    found = audited(log, tmp_path)
    assert not found.unexplained
    assert [(bug.events, bug.bugs) for bug in found.bugs] == [
        (("broker 1 reports the log directory of its replica",), ("directory_assignment",))
    ]


def test_a_leaving_replica_that_reports_a_directory_completes(tmp_path: Path) -> None:
    """Up to 4.2, by a known bug. Nobody leads if the last replica is shutting down."""
    log = begun([1, 2], min_isr=1, level=28)
    log.add(("BROKER_REGISTRATION_CHANGE_RECORD", {"brokerId": 1, "brokerEpoch": 3, "inControlledShutdown": 1}))
    log.add(change(replicas=[1], removingReplicas=[], leader=-1))
    image, last = at_last_batch(log, tmp_path)
    key = logs.TOPIC_ID, 0
    image.partitions[key] = replace(image.partitions[key], isr=(1,), removing=(2,))
    explanation = Explainer(rules_of("4.2.1")[1], {}).explain(image, last.records[0])
    assert explanation is not None
    assert "broker 2 reports the log directory of its replica" in explanation.events


def test_a_second_controlled_shutdown_has_no_record_of_the_broker(tmp_path: Path) -> None:
    """A broker that is unfenced while it shuts down stays marked."""
    log = begun()
    log.add(
        ("BROKER_REGISTRATION_CHANGE_RECORD", {"brokerId": 1, "brokerEpoch": 3, "inControlledShutdown": 1}),
        change(isr=[2, 3], leader=2),
    )
    log.add(fenced(1, 3))
    log.add(unfenced(1, 3))
    log.add(change(isr=[1, 2, 3]))
    log.add(change(leader=1))
    log.add(change(isr=[2, 3], leader=2))
    image, last = at_last_batch(log, tmp_path)
    explanation = Explainer(rules_of("4.3.1")[1], {}).explain(image, last.records[0])
    assert explanation is not None
    assert explanation.events == ("broker 1 begins controlled shutdown",)


def cut_up(log: Written) -> None:
    """The fencing of the leader, of which two records are in a full batch and the others in the next."""
    log.add(change(0, leader=2, isr=[2, 3]), change(1, leader=3, isr=[3, 2]))
    log.add(change(2, leader=2, isr=[2, 3]), fenced(1, 3))


@pytest.mark.parametrize(("most", "unexplained"), [(2, 0), (3, 2)])
def test_an_event_may_be_cut_into_full_batches(
    most: int, unexplained: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("audit", "explanations"):
        monkeypatch.setattr(f"highwater.lab.audit.{module}.MOST_PER_BATCH", most)
    log = begun()
    log.add(partition([1, 3, 2], 1), partition([1, 2, 3], 2))
    cut_up(log)
    found = audited(log, tmp_path)
    assert len(found.unexplained) == unexplained
    assert found.explained["no event"] == unexplained


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"isr": [1, 3]}, "not its active replicas"),
        ({"isr": [1, 2, 3, 4]}, "broker 4"),
        ({"addingReplicas": [3]}, "addingReplicas"),
    ],
)
def test_a_new_partition_begins_in_order(tmp_path: Path, wrong: dict[str, Any], problem: str) -> None:
    log = begun()
    log.add(partition([1, 2, 3], 1, **wrong))
    assert problem in audited(log, tmp_path).unexplained[0].problem


def test_a_last_known_leader_does_not_hide_alter_partition(tmp_path: Path) -> None:
    """The last known ELR stays as it was when the feature was disabled."""
    log = begun(level=28)
    log.add(partition([1, 2], 1, isr=[1, 2]))
    log.add(feature("eligible.leader.replicas.version", 0))
    image, batch = at_last_batch(log, tmp_path)
    key = logs.TOPIC_ID, 1
    image.partitions[key] = replace(image.partitions[key], isr=(1,), last_known_elr=(1,))
    kind, data = change(1, isr=[1, 2])
    record = from_json(batch.next_offset, {"type": kind, "version": 2, "data": data})
    explanation = Explainer(rules_of("4.2.1")[1], {}).explain(image, record)
    assert explanation is not None
    assert explanation.events == ("leader 1 proposes ISR 1 2 (AlterPartition)",)
