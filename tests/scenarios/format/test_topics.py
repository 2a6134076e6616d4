"""Topics of a scenario: partitions, replication factors, min.insync.replicas, and which of them are refused."""

from __future__ import annotations

import gc
import json
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from faults.kinds.topic_changes import OF_TOPICS
from faults.promise import promise
from reports.drawing.observed_run import observe
from scenarios.format import catalogue
from scenarios.format.schema import of_store, read
from scenarios.single import recording
from scenarios.single.coverage_column import width
from scenarios.single.ended_run import EndedRun
from scenarios.single.execution import Execution
from scenarios.single.rows import row as row_of
from scenarios.single.run import run, run_row
from sim.errors import InputError
from sim.hosts.cluster import TOPIC
from sim.protocol import probes
from sim.protocol.modes import MODES
from tests.plain import needs_sources

if TYPE_CHECKING:
    from pathlib import Path

    from scenarios.format.scenario import Scenario

DRAWN = catalogue.template("drawn", "mine").partition("[expect]")[0] + '[expect]\n"elr-4.3" = "may-violate"\n'
TOPICS = """
[[topics]]
name = "orders"
partitions = 2

[[topics]]
name = "audit"
replication_factor = 2
config = { min.insync.replicas = 1 }
"""
ELR = MODES["elr-4.3"]


def with_topics(topics: str = TOPICS) -> Scenario:
    return read(f"{DRAWN}{topics}", "mine.toml")


def executed(scenario: Scenario, seed: int = 1, mode: str = "elr-4.3") -> Execution:
    one = Execution(scenario, MODES[mode], seed, {}, None)
    one.execute()
    return one


def test_each_topic_has_its_partitions_and_settings() -> None:
    one = executed(with_topics())
    control = one.cluster.control
    assert [partition.name for partition in one.cluster.partitions] == ["orders-0", "orders-1", "audit-0"]
    states = [control.state_of(partition.name) for partition in one.cluster.partitions]
    assert [len(state.replicas) for state in states] == [3, 3, 2]
    assert len({state.replicas[0] for state in states}) == 3
    assert all(len(partition.recorder.history.clients.acks) > 20 for partition in one.cluster.partitions)
    assert all(convergence.converged for convergence in one.convergence.partitions)


def test_the_first_topic_replaces_settings_of_the_cluster() -> None:
    one = executed(with_topics(TOPICS.replace("partitions = 2", "replication_factor = 4")))
    assert len(one.cluster.replicas) == 4
    assert one.config["default.replication.factor"] == 4


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_digest_is_the_same_without_elision(seed: int) -> None:
    scenario = with_topics()
    row = run_row(scenario, ELR, seed)
    other = run_row(scenario.with_settings({"sim.elision": False}), ELR, seed)
    assert row["digest"] == other["digest"]
    assert row["events"] < other["events"]


def test_a_run_of_several_partitions_leaves_nothing_to_the_garbage_collector() -> None:
    scenario = with_topics()
    run_row(scenario, ELR, 0)
    gc.collect()
    gc.disable()
    try:
        run_row(scenario, ELR, 1)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_the_first_partition_is_drawn_as_without_others() -> None:
    alone, one = executed(with_topics("")), executed(with_topics())
    assert one.plan == alone.plan
    assert [send.due_us for send in one.sends["orders-0"]] == [send.due_us for send in alone.sends[TOPIC]]


def test_an_idle_topic_is_written_to_when_everything_is_healed() -> None:
    one = executed(with_topics(TOPICS.replace('name = "audit"', 'name = "audit"\nidle = true')))
    acks = [len(partition.recorder.history.clients.acks) for partition in one.cluster.partitions]
    assert acks[2] == 1
    assert all(convergence.converged for convergence in one.convergence.partitions)


def test_an_idle_partition_that_nothing_changed_converges_without_a_write() -> None:
    topics = (
        '[[topics]]\nname = "orders"\n[[topics]]\nname = "idle"\npartitions = 12\nreplication_factor = 1\nidle = true\n'
    )
    one = executed(with_topics(topics))
    control = one.cluster.control
    written = [partition for partition in one.cluster.partitions[1:] if partition.recorder.history.clients.acks]
    unchanged = [name for name in list(control.states)[1:] if control.state_of(name).partition_epoch == 0]
    assert unchanged
    assert {partition.name for partition in written} == set(list(control.states)[1:]) - set(unchanged)
    joined = {partition.name for partition in one.cluster.partitions[1:] if partition.has_clients}
    assert joined == {partition.name for partition in written}
    assert all(convergence.converged for convergence in one.convergence.partitions)


@pytest.mark.parametrize("seed", range(4))
def test_ends_before_the_first_record_excuse_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = '[[topics]]\nname = "orders"\n[[topics]]\nname = "idle"\npartitions = 12\nidle = true\n'
    row = run_row(with_topics(topics), ELR, seed)
    monkeypatch.setattr(promise, "FEW_BATCHES", -1)
    assert run_row(with_topics(topics), ELR, seed) == row


def test_many_idle_partitions_cost_little() -> None:
    events = []
    for count in (1, 100):
        topics = f'[[topics]]\nname = "orders"\n[[topics]]\nname = "idle"\npartitions = {count}\nidle = true\n'
        events.append(run_row(with_topics(topics), ELR, 1)["events"])
    assert events[1] < 3 * events[0]


def test_a_run_is_the_same_from_its_store_and_its_recording(tmp_path: Path) -> None:
    scenario = with_topics()
    assert replace(of_store(scenario.to_json()), source="") == scenario
    assert scenario.scenario_hash() != with_topics("").scenario_hash()
    result = run(scenario, ELR, 1)
    file = tmp_path / "plan.json"
    file.write_text(recording.to_text(recording.to_json(scenario, result)), encoding="utf-8")
    stored = recording.read(file)
    assert stored.scenario.topics == scenario.topics
    assert run_row(stored.scenario, ELR, 1)["digest"] == result.row["digest"]


def test_one_partition_of_that_name_has_the_same_history() -> None:
    named = run_row(with_topics('[[topics]]\nname = "orders"\n'), ELR, 1)
    assert named["digest"] == run_row(with_topics(""), ELR, 1)["digest"]


def test_a_run_is_shown_from_the_partition_that_lost_records() -> None:
    topics = TOPICS.replace("replication_factor = 2", "replication_factor = 1")
    text = re.sub(r"kinds = \[.*\]", 'kinds = ["disk-replaced"]', DRAWN)
    scenario = read(f"{text}{topics}", "mine.toml")

    def losing(seed: int) -> set[str]:
        return {
            violation.partition for violation in executed(scenario, seed).cluster.recorder.history.findings.violations
        }

    seed = next(seed for seed in range(30) if losing(seed) == {"audit-0"})
    result = run(scenario, ELR, seed, trace=True)
    assert result.shown == "audit-0"
    assert result.row["violations"].startswith("committed-loss")
    assert all(violation["detail"].startswith("audit-0: ") for violation in result.violations)
    (replica,) = result.partition.replicas
    assert result.trace is not None
    assert {step["broker"] for step in result.trace if step["step"] == "append"} == {replica}
    assert sum(step["step"] == "disk-replaced" for step in result.trace) >= 1
    batches = {view.broker: view.batches for view in result.replicas}
    assert [broker for broker, there in batches.items() if there] == [replica]


@pytest.mark.parametrize(
    ("topics", "problem"),
    [
        (TOPICS.replace("audit", "orders"), "mine.toml: topics: two topics are called 'orders'"),
        (
            TOPICS.replace("factor = 2", "factor = 5"),
            "mine.toml: topics 2: replication_factor = 5: there are only 4 brokers",
        ),
        (TOPICS.replace("partitions = 2", "partitions = 0"), "mine.toml: topics 1: partitions = 0"),
        (TOPICS.replace("partitions = 2", "partitions = 200"), "mine.toml: topics: 201 partitions are more than 200"),
        (TOPICS.replace("partitions = 2", "idle = true"), "'orders' is the first"),
        (TOPICS.replace("min.insync.replicas = 1", "acks = 1"), "acks is not modelled for single topics"),
        (
            TOPICS.replace("replication_factor", "replicas"),
            "topics 2: unknown key 'replicas'; did you mean 'replication_factor'?",
        ),
    ],
)
def test_topics_that_cannot_be_are_refused_in_one_line(topics: str, problem: str) -> None:
    with pytest.raises(InputError) as refused:
        with_topics(topics)
    assert len(refused.value.problems) == 1
    assert problem in refused.value.problems[0]


ZOOKEEPER = ["hw", "kip101", "kip279", "kip320", "kip320-repaired"]


@pytest.mark.parametrize("mode", ZOOKEEPER)
def test_topics_are_created_enlarged_and_deleted_under_zookeeper(mode: str) -> None:
    scenario = changing()
    found = MODES[mode]
    results = [run(scenario, found, seed) for seed in range(4)]
    struck = {fault["kind"] for result in results for fault in result.faults if fault["effective"]}
    assert struck >= set(OF_TOPICS)
    assert [result.row["error"] for result in results] == [""] * len(results)
    without = scenario.with_settings({"sim.elision": False})
    assert [run_row(without, found, seed)["digest"] for seed in range(4)] == [one.row["digest"] for one in results]


def test_a_scripted_control_plane_decides_for_one_partition() -> None:
    text = catalogue.template("scripted", "mine").replace('control = "real"', 'control = "scripted"')
    with pytest.raises(InputError, match='control = "scripted" decides for one partition, and there are 2'):
        read(f'{text}\n[[topics]]\nname = "orders"\npartitions = 2\n', "mine.toml")


CHANGES = """
[[topics]]
name = "orders"

[[topics]]
name = "audit"
partitions = 2
created = false

[[topics]]
name = "events"
"""


def changing(horizon_ms: int = 120_000) -> Scenario:
    """Random faults among which topics are created, enlarged and deleted."""
    kinds = ", ".join(f'"{kind}"' for kind in (*OF_TOPICS, *OF_TOPICS, "kill", "power-loss", "cut"))
    text = re.sub(r"kinds = \[.*\]", f"kinds = [{kinds}]", DRAWN)
    text = re.sub(r"horizon_ms = \d+", f"horizon_ms = {horizon_ms}", re.sub(r"\ncount = .*", "\ncount = [8, 12]", text))
    return read(f"{text}{CHANGES}", "mine.toml")


@pytest.mark.parametrize("seed", range(6))
def test_topics_that_change_have_the_same_digest_without_elision(seed: int) -> None:
    row = run_row(changing(), ELR, seed)
    assert (row["violations_inside"], row["error"]) == ("", "")
    other = run_row(changing().with_settings({"sim.elision": False}), ELR, seed)
    assert row["digest"] == other["digest"]


@pytest.mark.parametrize("mode", ["kip320", "elr-4.3"])
def test_random_plans_change_topics_and_their_recordings_repeat_them(mode: str, tmp_path: Path) -> None:
    struck = set()
    for seed in range(6):
        result = run(changing(), MODES[mode], seed)
        struck |= {fault["kind"] for fault in result.faults if fault["effective"]}
        file = tmp_path / f"{seed}.json"
        file.write_text(recording.to_text(recording.to_json(changing(), result)), encoding="utf-8")
        stored = recording.read(file)
        assert run_row(stored.scenario, MODES[mode], seed)["digest"] == result.row["digest"]
    assert struck >= set(OF_TOPICS)


@pytest.mark.parametrize("mode", ["kip320", "elr-4.3"])
def test_each_new_topic_converges_and_gets_records_and_a_deleted_one_need_not(mode: str) -> None:
    ones = [executed(changing(), seed, mode) for seed in range(6)]
    late = [partition for one in ones for partition in one.cluster.partitions[2:] if not partition.deleted]
    acks = [len(partition.recorder.history.clients.acks) for partition in late]
    assert min(acks) >= 1
    assert max(acks) > 5
    for execution in ones:
        existing = [partition.name for partition in execution.cluster.partitions if not partition.deleted]
        assert [convergence.name for convergence in execution.convergence.partitions] == existing
        assert all(convergence.converged for convergence in execution.convergence.partitions)
    assert any("@2" in name for one in ones for name in one.cluster.control.states)


@pytest.mark.parametrize("mode", ["kip320", "elr-4.3"])
def test_a_run_that_changes_topics_leaves_nothing_to_the_garbage_collector(mode: str) -> None:
    run_row(changing(), MODES[mode], 0)
    gc.collect()
    gc.disable()
    try:
        run_row(changing(), MODES[mode], 1)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_script_creates_deletes_and_enlarges_topics() -> None:
    text = catalogue.template("scripted", "mine").partition("[[script]]")[0]
    lines = """
[[script]]
do = "topic-creation"
topic = "audit"
after_ms = 2000

[[script]]
do = "partition-creation"
topic = "orders"

[[script]]
do = "topic-deletion"
topic = "events"
for_ms = 1000

[[script]]
do = "produce"
batch = "m1"
after_ms = 5000

[[story]]
step = "topic-created"

[[story]]
step = "topic-deleted"

[expect]
"elr-4.3" = "clean:committed-loss"
"""
    scenario = read(f"{text}{CHANGES}{lines}", "mine.toml")
    one = executed(scenario)
    assert list(one.cluster.control.states) == ["orders-0", "audit-0", "audit-1", "orders-1", "events-0@2"]
    assert all(convergence.converged for convergence in one.convergence.partitions)
    alone = lines.replace('topic = "audit"', 'topic = "orders"').replace('topic = "events"', 'topic = "orders"')
    with pytest.raises(InputError, match="topic = 'orders': the only topic stays"):
        read(f'{text}[[topics]]\nname = "orders"\n{alone}', "mine.toml")
    with pytest.raises(InputError, match="topic = 'event': no such topic; did you mean 'events'"):
        read(f"{text}{CHANGES}{lines}".replace('topic = "events"', 'topic = "event"'), "mine.toml")


FIRST_DELETED = """
[[script]]
do = "produce"
batch = "m1"
after_ms = 3000

[[script]]
do = "topic-deletion"
topic = "orders"
after_ms = 1000
DURATION

[[script]]
when = { step = "topic-deleted" }
do = "produce"
batch = "m2"
after_ms = 2000

[[script]]
do = "kill"
broker = 2
after_ms = 1000

[[script]]
when = { step = "kill", broker = 2 }
do = "start"
broker = 2
after_ms = 1000

[[story]]
step = "ack"
batch = "m1"

[[story]]
step = "topic-deleted"

[[story]]
step = "ack"
batch = "m2"
partition = "events-0"

[[story]]
step = "kill"
broker = 2

[[story]]
step = "start"
broker = 2

[expect]
"elr-4.3" = "clean:committed-loss"
"""


def first_deleted(duration: str = "for_ms = 1000") -> Scenario:
    """The first topic is deleted; a script line that names no partition is then about `events-0`."""
    text = catalogue.template("scripted", "mine").partition("[[script]]")[0]
    return read(f"{text}{CHANGES}{FIRST_DELETED.replace('DURATION', duration)}", "mine.toml")


@pytest.mark.parametrize("mode", ["hw", "kip320", "kraft", "elr-4.3"])
def test_the_first_topic_is_deleted_like_any_other(mode: str) -> None:
    one = Execution(first_deleted(), MODES[mode], 1, {}, None)
    one.execute()
    cluster = one.cluster
    assert list(cluster.control.states) == ["events-0", "orders-0@2"]
    assert cluster.name == cluster.control.state.name == "events-0"
    assert [partition.deleted for partition in cluster.partitions] == [True, False, False]
    assert cluster.recorder.closed
    assert all(convergence.converged for convergence in one.convergence.partitions)
    later = cluster.recorder.of("orders-0@2").history
    assert later.clients.acks  # Writes that show convergence.
    assert not cluster.recorder.history.findings.violations
    ended_us = cluster.recorder.history.steps[-1].at_us
    assert ended_us < later.steps[-1].at_us
    for process in cluster.running.values():
        assert set(process.replicas) == {"events-0", "orders-0@2"}


def test_what_follows_the_deletion_of_the_first_topic_is_in_traces_and_rows() -> None:
    result = run(replace(first_deleted(), shown="orders-0"), ELR, 1, trace=True)
    assert result.row["error"] == ""
    assert result.trace is not None
    assert result.trace[-1]["step"] == "topic-deleted"
    assert (result.partition.leader_epoch, result.partition.isr) == (0, (1, 2, 3))  # As it was last.
    assert sum(step["step"] == "ack" for step in result.trace) == 1 < result.row["batches_acked"]
    other = run(replace(first_deleted(), shown="events-0"), ELR, 1, trace=True)
    assert other.trace is not None
    assert [step["broker"] for step in other.trace if step["step"] == "kill"] == [2]
    assert other.row == result.row


@pytest.mark.parametrize("mode", ["kip320", "elr-4.3"])
def test_a_run_whose_first_topic_is_deleted_is_the_same_without_elision(mode: str) -> None:
    scenarios = [first_deleted().with_settings({"sim.elision": elision}) for elision in (True, False)]
    rows = [run_row(scenario, MODES[mode], 1) for scenario in scenarios]
    assert rows[0]["digest"] == rows[1]["digest"]
    assert rows[0]["verdict"] == "ok"


def test_the_only_topic_that_exists_is_not_deleted() -> None:
    scenario = first_deleted("")
    line = replace(scenario.script[1], params={"topic": "events"})
    one = executed(replace(scenario, script=(*scenario.script[:2], line), story=()))
    assert next(iter(one.cluster.control.states)) == "events-0"
    assert [fault.effective for fault in one.injection.realised] == [True, False]


def test_random_plans_pick_no_first_topic_for_deletion() -> None:
    for seed in range(6):
        one = executed(changing(), seed)
        assert one.cluster.partitions[0].deleted is False


def test_kinds_that_change_topics_need_topics() -> None:
    text = re.sub(r"kinds = \[.*\]", 'kinds = ["topic-deletion"]', DRAWN)
    with pytest.raises(InputError, match=r"topic-deletion needs a second table of \[\[topics\]\], which it changes"):
        read(text, "mine.toml")


OTHERS = """
[[topics]]
name = "orders"
partitions = 2
"""
SCRIPT = """
[[script]]
do = "produce"
batch = "m1"
partition = "orders-1"
after_ms = 2000

[[script]]
do = "produce"
batch = "m2"

[[script]]
do = "kill"
broker = 2
restart_ms = 15000
when = { step = "ack", batch = "m1", partition = "orders-1" }

[[script]]
do = "produce"
batch = "m3"
partition = "orders-1"
when = { step = "elected", broker = 3, partition = "orders-1" }
after_ms = 1000

[[script]]
do = "reassignment"
replicas = [3, 1]
partition = "orders-1"
when = { step = "ack", batch = "m3", partition = "orders-1" }

[[script]]
do = "retention"
permille = 1000
partition = "orders-1"
after_ms = 5000

[[script]]
do = "preferred-election"
after_ms = 20000
partition = "orders-1"

[[script]]
do = "commit"
partition = "orders-1"

[[story]]
step = "assigned"
partition = "orders-1"

[[story]]
step = "retention"
partition = "orders-1"

[[story]]
step = "commit"
partition = "orders-1"

[[final]]
broker = 1
batches = ["m2"]

[[final]]
broker = 2
batches = []
partition = "orders-1"

[expect]
"elr-4.3" = "clean:committed-loss"
"""


def scripted(script: str = SCRIPT) -> Scenario:
    text = catalogue.template("scripted", "mine").partition("[[script]]")[0]
    text = re.sub(r"brokers.count = \d", "brokers.count = 3", text).replace("[config]", "[config]\n", 1)
    return read(f"{text}{OTHERS}{script}", "mine.toml")


def test_a_script_and_its_story_name_partitions() -> None:
    one = executed(scripted())
    state = one.cluster.control.state_of("orders-1")
    assert (state.replicas, state.leader) == ((3, 1), 3)
    first, other = (partition.recorder.history.clients for partition in one.cluster.partitions)
    assert [ack.first_id for ack in first.acks][:1] == [1]
    assert [ack.first_id for ack in other.acks][:2] == [0, 2]
    log = one.cluster.machines.directories[3].files("orders-1").log
    assert log.log_start == 2


def test_a_script_that_names_partitions_is_shown_alike_from_each() -> None:
    for shown in ("orders-0", "orders-1"):
        result = run(replace(scripted(), shown=shown), ELR, 1, trace=True)
        assert (result.row["error"], result.shown) == ("", shown)
        assert result.trace
        assert all("partition" not in step for step in result.trace)


@needs_sources
def test_a_run_is_made_once_whatever_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Execution] = []
    execute = Execution.execute

    def counted(one: Execution) -> None:
        runs.append(one)
        execute(one)

    monkeypatch.setattr(Execution, "execute", counted)
    scenario = catalogue.load("disks")
    late = run(scenario, ELR, 16, trace=True)
    assert (len(runs), late.shown) == (1, "audit-0")
    named = run(replace(scenario, shown="audit-0"), ELR, 16, trace=True)
    assert (len(runs), named.trace) == (2, late.trace)
    assert run(replace(scenario, shown="orders-0"), ELR, 16, trace=True).trace != late.trace
    assert run(replace(scenario, shown="audit-9"), ELR, 16).shown == "audit-0"


def test_a_partition_that_is_created_late_is_shown_from_its_creation() -> None:
    scenario = replace(changing(), shown="audit-0")
    result = run(scenario, ELR, 1, trace=True)
    assert result.trace
    assert {step["step"] for step in result.trace} >= {"elected", "append"}
    observed = observe(scenario, ELR, 1, {}, trace=True)
    assert (observed.partition, [observation.step for observation in observed.observations]) == (
        result.shown,
        result.trace,
    )
    assert len(observed.isr) == len(result.partition.replicas)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("order-1", "partition = 'order-1': no such topic: 'order'; did you mean 'orders'?"),
        ("orders", "partition = 'orders': a partition is a topic and a number, as in orders-0"),
    ],
)
def test_a_partition_of_no_topic_is_refused(name: str, problem: str) -> None:
    with pytest.raises(InputError) as refused:
        scripted(SCRIPT.replace('partition = "orders-1"', f'partition = "{name}"', 1))
    assert problem in refused.value.problems[0]


def test_an_action_on_a_partition_that_does_not_exist_is_an_error() -> None:
    row = run_row(scripted(SCRIPT.replace('partition = "orders-1"', 'partition = "orders-7"', 1)), ELR, 1)
    assert row["error"] == "not as told: there is no partition orders-7 when the script uses it"


def test_a_scenario_without_partitions_is_stored_as_before() -> None:
    stored = json.dumps(catalogue.load("kip101-scenario-1").to_json())
    assert "partition" not in stored
    assert "topics" not in stored


# The random scenario.


def test_a_second_partition_reaches_what_one_cannot() -> None:
    found = 0
    rows = [run_row(catalogue.load("topics"), ELR, seed) for seed in range(12)]
    for row in rows:
        found |= int(row["coverage"], 16)
    wanted = (probes.FETCHER_STAYS, probes.ISR_CHANGE_WAITS, probes.OWN_MIN_ISR, probes.UNKNOWN_TOPIC)
    assert [probes.PROBES[probe].name for probe in wanted if not found >> (width() - 1 - probe) & 1] == []
    assert sum(row["vacuous"] for row in rows) == 0


def test_a_share_of_seeds_has_each_topic_and_faults_about_other_partitions() -> None:
    ones = [Execution(catalogue.load("topics"), ELR, seed, {}, None) for seed in range(60)]
    names = Counter(topic.name for one in ones for topic in one.topics)
    assert names["orders"] == 60
    assert 30 <= names["audit"] <= 50
    assert 20 <= names["late"] <= 40
    for one in ones:
        one._draw()
    about = [{fault.partition for fault in one.plan.faults if fault.kind not in OF_TOPICS} for one in ones]
    assert all(len(partitions) == 1 for partitions in about)
    others = Counter(name for partitions in about for name in partitions)
    assert 8 <= 60 - others[""] <= 30
    assert set(others) == {"", "audit-0", "late-0"}


def test_a_row_without_faults_about_others_has_the_plan_of_the_first() -> None:
    scenario = catalogue.load("topics")
    assert scenario.faults is not None
    alone = replace(scenario, faults=replace(scenario.faults, others_percent=0))
    for seed in range(5):
        plans = []
        for one in (Execution(scenario, ELR, seed, {}, None), Execution(alone, ELR, seed, {}, None)):
            one._draw()
            plans.append([fault.about("") for fault in one.plan.faults])
        assert plans[0] == plans[1]


def test_a_power_loss_that_takes_records_of_several_partitions_is_one_lossy_end() -> None:
    text = re.sub(r"kinds = \[.*\]", 'kinds = ["power-loss"]', DRAWN)
    several = 0
    for seed in range(12):
        one = executed(read(f"{text}{TOPICS}", "mine.toml"), seed)
        ends = [partition.recorder.counts.lossy_ends for partition in one.cluster.partitions]
        row = row_of(EndedRun(one, ""))
        assert row["lossy_ends"] == len(set().union(*ends))
        several += row["lossy_ends"] < sum(map(len, ends))
    assert several


def test_records_that_another_partition_lost_count() -> None:
    topics = TOPICS.replace("replication_factor = 2", "replication_factor = 1")
    text = re.sub(r"kinds = \[.*\]", 'kinds = ["disk-replaced"]', DRAWN)
    rows = [run_row(read(f"{text}{topics}", "mine.toml"), ELR, seed) for seed in range(12)]
    lost = [row["records_lost"] for row in rows if row["violated_partitions"] == "audit-0"]
    assert any(lost)
    for row in rows:
        assert row["last_standing"] <= row["records_lost"]
        assert ("committed-loss" in row["violations"].split(",")) == (row["records_lost"] > 0)


def test_a_row_names_the_partitions_that_violate() -> None:
    topics = TOPICS.replace("replication_factor = 2", "replication_factor = 1")
    text = re.sub(r"kinds = \[.*\]", 'kinds = ["disk-replaced"]', DRAWN)
    rows = [run_row(read(f"{text}{topics}", "mine.toml"), ELR, seed) for seed in range(12)]
    found = {row["violated_partitions"] for row in rows}
    assert "audit-0" in found
    assert all(bool(row["violated_partitions"]) == bool(row["violations"]) for row in rows)
    alone = [run_row(with_topics(""), ELR, seed) for seed in range(6)]
    assert {row["violated_partitions"] for row in alone} == {""}
