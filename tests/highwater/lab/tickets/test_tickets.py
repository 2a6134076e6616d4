"""Stories written for Kafka's developers: what a ticket says, and the script that repeats it."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from highwater.lab.tickets.instructions import action, instructions, wait
from highwater.lab.tickets.junit import junit
from highwater.lab.tickets.markdown import markdown
from highwater.lab.tickets.shell import shell
from highwater.lab.tickets.story import read_tried, tell
from highwater.lab.tickets.templates import filled, in_here_document, java_string, shell_text
from highwater.lab.tickets.ticket import WRITTEN, handwritten, read_confirmed, ticket
from scenarios.format import catalogue
from scenarios.format.findings import causes
from sim.errors import InputError
from sim.protocol.rules import RULES
from tests.places import ROOT
from tests.verification.oracle import names

if TYPE_CHECKING:
    from scenarios.format.scenario import Scenario

CONFIRM = ROOT / "tests/verification/confirm"
FINDINGS = (
    *("reassignment-back", "reassignment-cancelled", "reassignment-to-one", "reassignment-again"),
    *("reassignment-shrinks-isr", "reassignment-cancelled-power-loss", "elr-outside-assignment", "reassignment-stuck"),
    *("directory-assignment", "stale-log-start"),
)
"""Stories that Kafka's own tools can repeat."""


def test_every_cause_is_a_rule_with_kafkas_names() -> None:
    known = {reference.kafka for reference in names.references()} | set(names.sources())
    for rule, cause in causes().items():
        assert rule in RULES
        assert set(cause.kafka) <= known, rule


@pytest.mark.parametrize("name", FINDINGS)
def test_a_finding_has_a_ticket_with_a_script(name: str, tmp_path: Path) -> None:
    written, story = ticket(name), tell(name)
    text, script = written.files[f"{name}.md"], written.files[f"{name}.sh"]
    assert bool(written.notes) == (name in {"directory-assignment", "stale-log-start"})
    assert f"highwater confirm {name} --kafka {story.release}" in text
    for rule in story.rules():
        assert all(f"`{kafka}`" in text for kafka in causes()[rule].kafka)
    for trial in story.tried:
        assert f"| {trial.release} | {trial.agreed} of {trial.runs} |" in text
    assert not re.search("@[a-z_]+@", script)
    (tmp_path / "story.sh").write_text(script, encoding="utf-8")
    assert subprocess.run(["bash", "-n", str(tmp_path / "story.sh")], check=False).returncode == 0


def test_the_newest_release_that_fails_is_told() -> None:
    assert tell("reassignment-back").release == "4.4.0"
    assert tell("directory-assignment").release.startswith("4.2.")
    kept = [trial.release for trial in tell("directory-assignment").tried if not trial.fails]
    assert kept[0] == "4.3.1"


def test_steps_of_the_script_are_those_of_the_story() -> None:
    script = shell(tell("reassignment-back"))
    wanted = ("produce m2 all", "stop 2", "reassign 2,3", "has_no_log 1", "throttle", "reassign 1,2", "stop 3", "run 2")
    places = [script.rindex(f"\n{step}") if "has" not in step else script.rindex(step) for step in wanted]
    assert places == sorted(places)


def test_the_controllers_events_of_a_story() -> None:
    def calls(name: str) -> list[str]:
        _, source = junit(tell(name))
        assert not re.search("@[a-z_]+@", source)
        lines = [line.strip() for line in source.partition("before = partition();")[2].splitlines()]
        return [line for line in lines if line.endswith(");")]

    assert calls("reassignment-back") == [
        *("stop(2);", "reassign(2, 3);", "proposeIsr(1, 3);", "reassign(1, 2);", "stop(3);"),
        *("start(2, true);", "proposeIsr(1, 2);", "start(3, true);"),
    ]
    again = calls("reassignment-again")
    assert again[3:7] == ["proposeIsr(1, 4);", "reassign(2, 3, 4);", "endUncleanly(4);", "start(4, false);"]
    assert "reassign();" in calls("reassignment-cancelled")
    with pytest.raises(InputError, match=r"no JUnit test, because none of elr_outside_assignment, .* decides"):
        junit(tell("stale-log-start"))


def test_a_member_of_the_isr_is_paused_where_a_link_is_cut() -> None:
    script = shell(tell("stale-log-start"))
    assert 'kill -STOP "$(node 2)"' in script
    assert (
        script.index('kill -STOP "$(node 2)"') < script.index("produce m1 1") < script.index('kill -CONT "$(node 2)"')
    )
    assert "broker.session.timeout.ms=60000" in script


def test_nobody_is_asked_where_no_broker_runs() -> None:
    script = shell(tell("stale-log-start"))
    assert script.index("crash 2\n") < script.index("\nsession_over 2\n") < script.index("\nrun 2\n")
    assert "sleep $((60000 / 1000 + 3))" in script


def test_deleted_records_are_not_missed() -> None:
    assert "for m in ; do" in shell(tell("stale-log-start"))
    assert "for m in m1 m2; do" in shell(tell("reassignment-back"))


def test_the_level_of_the_feature_is_changed_and_a_broker_restarted() -> None:
    script = shell(tell("elr-disabled"))
    wanted = ("stop 1", "run 3", "set_feature downgrade eligible.leader.replicas.version=0", "stop 3", "run 3", "run 1")
    found = [line for line in script.splitlines() if line in wanted]
    assert found[-len(wanted) :] == list(wanted)
    assert "--feature eligible.leader.replicas.version=0 " in shell(tell("elr-enabled"))
    text = list(instructions(tell("elr-disabled")))
    assert any("Set feature eligible.leader.replicas.version to 0" in line for line in text)


def test_power_is_lost_back_to_what_the_simulation_kept() -> None:
    assert "lose_power 4:m2 5:" in shell(tell("reassignment-shrinks-isr"))


def test_a_throttled_follower_that_lost_power_has_to_fetch_the_filler_again() -> None:
    empty = 'truncate -s 0 "$(log_of 2)/00000000000000000000.log"'
    script = shell(tell("elr-kept-after-unclean-shutdown"))
    assert script.index("lose_power 2:m1") < script.index("throttle 1\n") < script.index(empty)
    assert script.index(empty) < script.index("\nrun 2\n")
    assert "truncate -s 0" not in shell(tell("directory-assignment"))


def test_steps_can_be_followed_from_the_text() -> None:
    text = ticket("reassignment-again").files["reassignment-again.md"]
    assert "Let broker 4 lose power: kill it (SIGKILL), and cut from its log what it appended from m2 on." in text
    assert "Wait until the ISR is 1, 4." in text
    assert "lost: m2 (offset 1)\n" in text
    assert "no leader although all brokers run" in text
    assert "kafka-reassign-partitions.sh refuses brokers that are down" in text
    assert "bash reassignment-again.sh" in text
    assert "./gradlew metadata:test --tests ReassignmentAgainTest" in text
    assert (
        "cut from its log what it appended from m1 on"
        in ticket("reassignment-shrinks-isr").files["reassignment-shrinks-isr.md"]
    )
    assert "script pauses the follower (SIGSTOP)" in ticket("stale-log-start").files["stale-log-start.md"]


def test_waits_for_the_elr_are_told() -> None:
    text = ticket("min-isr-raised-late").files["min-isr-raised-late.md"]
    assert "Wait until the ELR is 2. Wait 2 s. Stop broker 1 (SIGTERM)." in text


def test_a_link_to_zookeeper_is_named() -> None:
    text = ticket("leo-of-skipped-epoch-zookeeper").files["leo-of-skipped-epoch-zookeeper.md"]
    assert "Delay the link between broker 1 and ZooKeeper by 1500 ms." in text
    assert "preferred-election has no counterpart" not in text


def test_waits_for_appends_truncations_and_elections_are_told() -> None:
    text = ticket("leo-of-skipped-epoch").files["leo-of-skipped-epoch.md"]
    assert "Wait until broker 3 has m1. Wait 1 s. Cut the link between broker 2 and the controller." in text
    assert "Elect the preferred leader (kafka-leader-election.sh)." in text
    assert "Wait until broker 3 has truncated its log to offset 0. Cut" in text
    assert "Wait until broker 2 is elected. Wait 1 s. Heal" in text


def scripts() -> list[Scenario]:
    """All bundled scenarios with a script."""
    return [scenario for name in catalogue.names() if (scenario := catalogue.load(name)).script]


def test_each_line_of_a_script_is_a_sentence() -> None:
    lines = [line for scenario in scripts() for line in scenario.script]
    for line in lines:
        said = action(line.do, line.params, "the controller")
        assert line.do == "wait" or re.fullmatch(r"[A-Z].*\.", said), line
        waits = wait(line.when)
        assert line.when is None or line.when.elr == () or re.fullmatch(r"Wait until .*\.", waits), line.when
        assert not re.search(r"[{}]|\b(None|True|False)\b", f"{said} {waits}"), said


def test_an_action_without_a_sentence_has_its_meaning_and_parameters() -> None:
    said = action("message-loss", {"broker": 2, "message": "FetchRequest"}, "the controller")
    assert said == "Lose the next message of a type that a broker sends or receives (broker 2, message FetchRequest)."
    assert action("restart-consumer", {}, "ZooKeeper") == "Restart the consumer at its committed offset."


@pytest.mark.parametrize(
    ("do", "params", "said"),
    [
        ("zombie", {"broker": 2, "for_ms": 12_000}, "drop its heartbeats (ZooKeeper: its pings) for 12 s, and"),
        (
            "elect",
            {"broker": 0, "isr": (1, 2)},
            "As the controller, leave the partition without a leader, with the ISR 1, 2 (LeaderAndIsr).",
        ),
        (
            "deliver-message",
            {"broker": 1, "message": "ProduceRequest", "newest": False},
            "Let the oldest ProduceRequest of",
        ),
        ("cut", {"from": 1, "to": "control", "for_ms": 500}, "between broker 1 and ZooKeeper for 0.5 s."),
        ("pause", {"node": "control"}, "Pause ZooKeeper (SIGSTOP)."),
        ("produce", {"batch": "m1", "records": 3}, "Produce m1 (3 records) with acks=all."),
    ],
)
def test_parameters_are_in_the_sentence(do: str, params: dict[str, Any], said: str) -> None:
    assert said in action(do, params, "ZooKeeper")


@pytest.mark.world
def test_no_ticket_has_braces_bare_kinds_or_empty_sections() -> None:
    for name, about in read_tried().items():
        if catalogue.load(name).scenario_hash() != about["file"] or name in handwritten():
            continue
        try:
            story = tell(name)
        except InputError:  # No release fails.
            continue
        text = markdown(story, None, {})
        sections = dict(re.findall(r"^## (.*)\n\n((?:(?!## ).*\n)*)", text, re.MULTILINE))
        assert all(body.strip() for body in sections.values()), name
        assert not set("{}") & set(sections["Steps"]), name
        assert not re.search(r"^- [a-z]", sections["Expected"], re.MULTILINE), name
        assert "an early warning" not in sections["Affected releases"], name


def test_the_repair_of_a_finding_is_told() -> None:
    text = ticket("leo-of-skipped-epoch").files["leo-of-skipped-epoch.md"]
    section = text.partition("## Possible repair\n")[2].partition("\n## ")[0]
    assert "- Call `resetReplicaState` with isNewLeader also if the leader epoch is more than one above" in section
    assert "- In the simulation, mode `elr-4.3` does not fail with rule `skipped_epoch=forgets-leo`." in section
    assert "## Possible repair" not in ticket("canary").files["canary.md"]
    assert "`UnifiedLog#maybeIncrementLogStartOffset`" in ticket("stale-log-start").files["stale-log-start.md"]


def test_a_feature_that_the_failure_does_not_need_is_told() -> None:
    def configuration(name: str) -> str:
        return ticket(name).files[f"{name}.md"].partition("## Configuration\n\n")[2].partition("\n")[0]

    assert configuration("leo-of-skipped-epoch") == (
        "3 brokers, KRaft, one controller, from 4.1.2 on eligible.leader.replicas.version=1 (not needed for the "
        "failure: 3.9.0 fails without the feature); a topic of one partition."
    )
    assert "eligible.leader.replicas.version=1; a topic" in configuration("reassignment-back")


def test_a_release_that_does_not_fail_keeps_the_records() -> None:
    text = ticket("reassignment-back").files["reassignment-back.md"]
    assert "| 4.1.2 | 3 of 3 | records kept | " in text
    assert "- committed-loss: acknowledged record LOST\n" in text
    assert "- no-progress: no leader, no writes, or a reassignment" in ticket("elr-cleared").files["elr-cleared.md"]
    assert "| does not fail |" in ticket("reassignment-stuck").files["reassignment-stuck.md"]


def test_a_loss_outside_the_promise_is_told() -> None:
    text = ticket("throttled-move-killed").files["throttled-move-killed.md"]
    assert re.search(r"^\| 3\.9\.0 \| .* \| \*\*committed-loss, exposed-loss\*\* \|", text, re.MULTILINE)
    assert re.search(
        r"^\| 4\.4\.0 \| .* \| committed-loss, exposed-loss \(outside the promise: KIP-966", text, re.MULTILINE
    )
    assert "as expected" not in text


def test_what_kafkas_tools_cannot_do_is_said() -> None:
    assert "metadata-lag has no counterpart among Kafka's tools" in ticket("throttled-move").notes[0]
    written = ticket("forgotten-expansion")
    assert list(written.files) == ["forgotten-expansion.md"]
    assert len(written.notes) == 2
    assert "metadata-lag has no counterpart among Kafka's tools" in written.notes[0]
    assert "The shell script" not in written.files["forgotten-expansion.md"]
    assert "Partition#makeLeader" in written.files["forgotten-expansion.md"]


def test_a_ticket_that_is_written_by_hand_is_given_whole() -> None:
    assert handwritten() == ["min-isr-of-first-partition", "recreated-topic"]
    written = ticket("recreated-topic")
    assert written.files == {
        name: (WRITTEN / name).read_text(encoding="utf-8") for name in ("recreated-topic.md", "RecreatedTopicTest.java")
    }
    assert written.notes == ["recreated-topic: this ticket is written by hand, because confirm does not delete topics"]
    with pytest.raises(InputError, match="its ticket is written by hand"):
        ticket("recreated-topic", {"scenario": "recreated-topic"})


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("recreated-topic", {"lost": ["m2"], "diverged": True}),
        ("min-isr-of-first-partition", {"lost": ["m1"]}),
    ],
)
def test_a_ticket_written_by_hand_has_the_recorded_runs(name: str, outcome: dict[str, Any]) -> None:
    file = CONFIRM / f"{name.replace('-', '_')}.jsonl"
    runs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    runs = [run for run in runs if run["variant"] == "scenario" and re.fullmatch(r"[\d.]+", run["release"])]
    lost = Counter(run["release"] for run in runs if outcome.items() <= run.items())
    text = ticket(name).files[f"{name}.md"]
    rows = re.findall(r"^\| ([\d.]+) \| (\d+) of (\d+) \| \*\*", text, re.MULTILINE)
    assert {release: (int(agreed), int(count)) for release, agreed, count in rows} == {
        release: (lost[release], count) for release, count in Counter(run["release"] for run in runs).items()
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("power", "power has no script"),
        ("mixed-versions", "no run on brokers is recorded; known are "),
        ("kip966-walk", "no recorded release of Kafka fails in it"),
    ],
)
def test_a_story_without_a_failure_on_brokers(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        tell(name)


def test_the_brokers_transcript_is_that_of_a_run(tmp_path: Path) -> None:
    row = {"what": "partition 1", "simulated": "leader 1", "real": "leader 2", "agrees": False, "compared": True}
    run = {
        "scenario": "reassignment-back",
        "scenario_hash": catalogue.load("reassignment-back").scenario_hash(),
        "kafka": "4.4.0",
        "runs": [{"agrees": False, "rows": [row]}],
    }
    (tmp_path / "run.json").write_text(json.dumps(run), encoding="utf-8")
    text = ticket("reassignment-back", read_confirmed(tmp_path / "run.json")).files["reassignment-back.md"]
    assert "| partition 1 | leader 1 | leader 2 |" in text
    assert "brokers of 4.4.0 DIFFER" in text
    with pytest.raises(InputError, match="the run is of reassignment-back, not of reassignment-again"):
        ticket("reassignment-again", run)
    with pytest.raises(InputError, match="the run is of a reassignment-back with another script"):
        ticket("reassignment-back", {**run, "scenario_hash": "0" * 16})


@pytest.mark.parametrize(
    "changed", [{"runs": []}, {"runs": [1]}, {"runs": [{"agrees": True, "rows": [1]}]}, {"kafka": None}]
)
def test_a_file_that_confirm_did_not_print(changed: dict[str, Any], tmp_path: Path) -> None:
    run = {"scenario": "reassignment-back", "scenario_hash": "0" * 16, "kafka": "4.4.0", "runs": []}
    (tmp_path / "run.json").write_text(json.dumps(run | changed), encoding="utf-8")
    with pytest.raises(InputError, match=r"run\.json is not what 'highwater confirm --json' prints: "):
        read_confirmed(tmp_path / "run.json")


def _file(tmp_path: Path, old: str = "", new: str = "") -> str:
    """A copy of the file of `reassignment-back`, in which a text is replaced."""
    file = tmp_path / "reassignment-back.toml"
    file.write_text(catalogue.text("reassignment-back").replace(old, new, 1), encoding="utf-8")
    return str(file)


def test_runs_of_another_file_of_that_name_are_not_claimed(tmp_path: Path) -> None:
    assert tell(_file(tmp_path)).tried == tell("reassignment-back").tried
    with pytest.raises(InputError, match=r"reassignment-back: no run of this file on brokers is recorded\. .*another"):
        tell(_file(tmp_path, "after_ms = ", "after_ms = 1"))


HOSTILE = ('a*/ \\u002a/ @properties@ @checks@ $(touch PWNED) `touch PWNED` "; touch PWNED #', "x</code><img src=x>")


@pytest.mark.parametrize("title", HOSTILE)
def test_a_title_stays_in_its_comment(title: str, tmp_path: Path) -> None:
    story = tell("reassignment-back")
    hostile = replace(story, scenario=replace(story.scenario, title=title, description=f"{title} [x](y) ![x](y)"))
    assert set(shell(hostile).splitlines()) - set(shell(story).splitlines()) == {f"# {title}"}
    (_, java), (_, plain) = junit(hostile), junit(story)
    added = set(java.splitlines()) - set(plain.splitlines())
    assert len(added) == 1
    assert not re.search(r"\*/|\\u|[<>]|@", added.pop())
    text = markdown(hostile, None, {})
    assert not re.search(r"(?<!\\)<img|(?<!\\)\]\(y\)", text)


def test_values_are_filled_in_once() -> None:
    values = dict.fromkeys(("name", "title", "release", "brokers", "servers", "session_ms", "lag_ms"), "@isr@")
    values |= dict.fromkeys(("properties", "feature", "assignment", "topic_configs", "isr"), "@name@")
    text = filled("head.sh", values)
    assert "# @isr@\n" in text
    assert re.search('^await 60 "the ISR is @name@"', text, re.MULTILINE)
    with pytest.raises(KeyError):
        filled("head.sh", {})


@pytest.mark.parametrize("text", ["m1", 'a"b', "a$b", "a`touch PWNED`", "$(touch PWNED)", "a\\", "a\\$HOME", "*"])
def test_values_are_quoted_for_the_shell(text: str, tmp_path: Path) -> None:
    script = f"printf '%s\\n' {shell_text(text)}\ncat <<END\nkey={in_here_document(text)}\nEND\n"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == f"{text}\nkey={text}\n"
    assert not list(tmp_path.iterdir())


def test_values_are_quoted_for_java() -> None:
    assert java_string('a"b\\u0022\n') == r'"a\"b\\u0022\n"'


def test_recorded_runs_name_scenarios_and_releases() -> None:
    assert {"4.3.1", "4.4.0"} <= read_tried()["reassignment-back"]["releases"].keys()
