from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from sim import exit_codes
from tests.highwater.lab.audit.logs import begun, change, fenced, partition
from tests.highwater.lab.audit.test_broker_logs import TRUNCATED
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

LOGS = ROOT / "tests" / "fixtures" / "metadata"
LOST = LOGS / "reassignment-back-4.3.1"


def test_an_audit_names_the_loss_and_the_bug(highwater: Callable[..., Call]) -> None:
    call = highwater("audit", LOST)
    assert call.code == exit_codes.EXPECTED
    assert call.out.startswith("No partition is at risk.")
    assert "broker 1 was elected; it had left the assignment (record 66)" in " ".join(call.out.split())
    assert "elr_outside_assignment" in "".join(call.out.split())
    markdown = highwater("audit", LOST, "--format", "markdown")
    assert "| 76 |" in markdown.out
    for asked in ("4.2.1", "4.1.0"):
        other = highwater("audit", LOST, "--release", asked)
        assert other.code == exit_codes.UNEXPECTED
        assert f"Records that Kafka {asked} does not write" in other.out


def test_json_has_a_version_and_hashes_names_if_asked(highwater: Callable[..., Call]) -> None:
    shown = json.loads(highwater("audit", LOST, "--json").out)
    assert (shown["schema_version"], shown["release"], shown["records"]["next"]) == (1, "4.3", 146)
    assert [one["partition"] for one in shown["happened"]] == ["partition-0"]
    hidden = highwater("audit", LOST, "--json", "--anonymous").out
    assert "partition-0" not in hidden
    assert json.loads(hidden)["happened"][0]["partition"].startswith("topic-")
    assert "localhost" not in hidden


def test_a_rolling_restart_can_ask(highwater: Callable[..., Call], tmp_path: Path) -> None:
    log = begun()
    healthy = log.segment(tmp_path / "healthy")
    log.add(change(isr=[1, 2]), fenced(3, 5))
    place = log.segment(tmp_path / "small")
    yes = highwater("audit", healthy, "--before-restart", 2)
    scope = "1 partition of the 1 topic in this log"
    answer = f"Can broker 2 be restarted now? Yes, as far as the {scope} show (1 with a replica on it)"
    assert (yes.code, yes.out.splitlines()[0]) == (0, answer)
    no = highwater("audit", place, "--before-restart", 2)
    assert (no.code, no.out.splitlines()[0]) == (
        1,
        "Can broker 2 be restarted now? No: 1 of 1 partition would refuse acks=all",
    )
    assert no.out.count("restarted now?") == 1
    assert (
        "Broker 3 is not in the ISR of 1 partition.\nDo: start broker 3 if down, wait until broker 3 is in this ISR"
        in no.out
    )
    assert "below min.insync.replicas 2" in no.out
    shown = json.loads(highwater("audit", place, "--before-restart", 2, "--json").out)
    assert shown["before_restart"]["broker"] == 2
    assert list(shown["before_restart"]["reasons"]) == ["orders-0"]
    assert shown["before_restart"]["causes"][0]["partitions"] == ["orders-0"]


def described(partitions: int, brokers: str = "4,5,6", isr: str = "4,6", min_isr: int = 2) -> list[str]:
    """What kafka-topics.sh --describe prints of a topic."""
    head = f"Topic: orders\tTopicId: zgf6HJciR8eg93g0qO1O6Q\tPartitionCount: {partitions}\tReplicationFactor: 3\t"
    row = "\tTopic: orders\tPartition: {}\tLeader: 4\tReplicas: {}\tIsr: {}\tElr: \tLastKnownElr: "
    rows = [row.format(place, brokers, isr if place < 15 else brokers) for place in range(partitions)]
    return [f"{head}Configs: min.insync.replicas={min_isr},segment.bytes=1024", *rows]


def test_a_text_that_is_incomplete_answers_nothing_about_restarts(
    highwater: Callable[..., Call], tmp_path: Path
) -> None:
    file = tmp_path / "topics.txt"
    lines = described(20)

    def asked(text: list[str], *words: object) -> Call:
        file.write_text("\n".join(text) + "\n", encoding="utf-8")
        return highwater("audit", file, "--before-restart", 4, *words)

    whole = asked(lines)
    first = "Can broker 4 be restarted now? No: 15 of 20 partitions would refuse acks=all"
    assert (whole.code, whole.out.splitlines()[0]) == (exit_codes.UNEXPECTED, first)
    assert (
        "Broker 5 is not in the ISR of 15 partitions.\nDo: start broker 5 if down, wait until broker 5 is in these ISRs"
        in whole.out
    )
    without = [line.replace("min.insync.replicas=2,", "") for line in lines]
    for text, problem in (
        ([line for line in lines if "PartitionCount" not in line], "1 topic without the line that has PartitionCount"),
        (lines[:3], "line 1: PartitionCount of 'orders' is 20, and the text has 2 partitions of it: it is incomplete"),
        ([*lines, lines[-1]], "line 22: no description of a topic or partition: line 21 is about the same partition"),
        ([lines[0], *lines], "line 2: no description of a topic or partition: line 1 is about the same topic"),
        (without, "min.insync.replicas of 20 partitions is unknown (the first: orders-0)"),
    ):
        call = asked(text)
        assert (call.code, call.out) == (exit_codes.BAD_INPUT, "")
        assert problem in call.err
    assert asked(without, "--static", "min.insync.replicas=2").out.splitlines()[0] == first
    assert asked(without, "--static", "min.insync.replicas=1").code == exit_codes.EXPECTED
    other = highwater("audit", file, "--before-restart", 7)
    assert other.code == exit_codes.BAD_INPUT
    assert "no partition of this text has a replica on it; one of: 4, 5, 6" in other.err
    hidden = highwater("audit", file, "--before-restart", 4, "--anonymous")
    assert "orders" not in hidden.out + hidden.err


def written(file: Path, *lines: str) -> Path:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def test_a_text_without_elrs_is_judged_as_the_last_release_before_them(
    highwater: Callable[..., Call], tmp_path: Path
) -> None:
    file = tmp_path / "topics.txt"
    shown = described(2)
    without = [line.partition("\tElr")[0] for line in shown]
    not_available = [line.replace("\tElr: \tLastKnownElr: ", "\tElr: N/A\tLastKnownElr: N/A") for line in shown]
    for lines, judged in ((shown, "Kafka 4.3 (mode elr-4.3)"), (without, "Kafka 3.9 (mode kraft)")):
        call = highwater("audit", written(file, *lines))
        assert f"Judged as {judged}" in call.out
        assert ("no ELR is shown" in call.err) == (lines is without)
        assert "3 brokers (1 down, or lagging, as the ISRs show)" in call.out
    assert highwater("audit", written(file, *not_available), "--json").json["release"] == "3.9"
    asked = highwater("audit", file, "--release", "4.3")
    assert "Judged as Kafka 4.3 (mode elr-4.3), as you asked." in asked.out


def test_partitions_without_a_spare_member_are_named_though_not_at_risk(
    highwater: Callable[..., Call], tmp_path: Path
) -> None:
    file = written(tmp_path / "topics.txt", *described(16))
    call = highwater("audit", file, "--most", 2)
    assert call.code == exit_codes.EXPECTED
    assert call.out.startswith("No partition is at risk. No spare in-sync replica: 15 of 16 partitions.")
    assert "leaves it): orders-0, orders-1, and 13 more." in " ".join(call.out.split())
    assert len(highwater("audit", file, "--json").json["without_spare"]) == 15
    for lines in (described(2, isr="4,5,6"), described(2, brokers="4,6")):
        assert highwater("audit", written(file, *lines)).out.startswith("No partition is at risk.\n")


def test_an_unknown_min_isr_is_said_and_no_advice_contradicts_the_isr(
    highwater: Callable[..., Call], tmp_path: Path
) -> None:
    file = tmp_path / "topics.txt"
    unknown = [line.replace("min.insync.replicas=2,", "") for line in described(1, isr="4")]
    call = highwater("audit", written(file, *unknown))
    assert "min.insync.replicas of 1 topic is unknown, taken as 1, Kafka's default (--static" in call.err
    assert "is alone in the ISR, and acknowledges alone if min.insync.replicas is 1" in " ".join(call.out.split())
    with_elr = [line.replace("Elr: \t", "Elr: 7\t") for line in unknown]
    call = highwater("audit", written(file, *with_elr))
    words = " ".join(call.out.split())
    assert "wait until the ISR has at least 2 members before another reassignment" in words
    assert "below min.insync.replicas (at least 2, since the ELR has members): acks=all is refused; ELR 7" in words
    assert "elr-behind" not in words
    given = highwater("audit", file, "--static", "min.insync.replicas=1")
    assert "unknown" not in given.err
    assert "wait until the ELR is empty, as it is after the next change of the ISR," in " ".join(given.out.split())


def test_quiet_silences_notes_but_not_gaps(highwater: Callable[..., Call], tmp_path: Path) -> None:
    lines = described(2)
    file = written(tmp_path / "topics.txt", *lines)
    assert "a snapshot without history" in highwater("audit", file).err
    assert highwater("audit", file, "-q").err == ""
    part = written(tmp_path / "part.txt", *lines[1:])
    assert "which of their partitions are missing" in highwater("audit", part, "-q").err


def test_the_file_at_fault_is_named(highwater: Callable[..., Call], tmp_path: Path) -> None:
    topics = written(tmp_path / "topics.txt", *described(2))
    server = written(tmp_path / "server.properties", "broker.id=1")
    (tmp_path / "empty").touch()
    (tmp_path / "keys.jks").write_bytes(b"\xfe\xed\0\0")
    for words, problem in (
        ((topics, server), f"{server}: {topics} is the output of kafka-topics.sh, which is audited alone"),
        ((server, topics), f"{server}: {topics} is the output of kafka-topics.sh, which is audited alone"),
        ((server,), f"{server}: a text, but neither of kafka-dump-log.sh"),
        ((tmp_path / "empty",), "empty: the file is empty"),
        ((tmp_path / "keys.jks",), "keys.jks: a binary file, which by its name is neither a segment"),
    ):
        call = highwater("audit", *words)
        assert (call.code, call.out) == (exit_codes.BAD_INPUT, "")
        assert problem in call.err
    beside = highwater("audit", LOGS / "idempotent-retry-4.3.1.txt.xz", server)
    assert f"{server}: a text, but neither" in beside.err
    assert "it is left out" in beside.err


def test_headline_and_sections_count_alike(highwater: Callable[..., Call], tmp_path: Path) -> None:
    log = begun()
    log.add(partition([1, 2, 3], 1), change(0, isr=[1], eligibleLeaderReplicas=[2, 7]), fenced(3, 5), fenced(1, 4))
    out = highwater("audit", log.segment(tmp_path), "--most", 1).out
    headline = dict.fromkeys(re.findall(r"(\d+) of 2 partitions? \(([^)]*)\)", out))
    sections = [(number, name.lower()) for name, number in re.findall(r"^([\w ]+): (\d+) partitions?$", out, re.M)]
    assert sections == list(headline)
    assert ("2", "no margin") in sections
    assert out.count("orders-0: ") > len(sections)
    assert "and 1 more (--most, --json)" in out


def test_a_text_of_single_partitions_says_what_it_lacks(highwater: Callable[..., Call], tmp_path: Path) -> None:
    file = tmp_path / "under-replicated.txt"
    file.write_text("\n".join(described(2)[1:]) + "\n", encoding="utf-8")
    call = highwater("audit", file)
    assert call.code == exit_codes.EXPECTED
    assert "which of their partitions are missing, and their settings, is unknown" in " ".join(call.err.split())


def test_a_broker_in_no_isr_of_a_text(highwater: Callable[..., Call], tmp_path: Path) -> None:
    file = tmp_path / "topics.txt"
    file.write_text("\n".join(described(2)) + "\n", encoding="utf-8")
    call = highwater("audit", file, "--before-restart", 5)
    assert call.code == exit_codes.EXPECTED
    assert call.out.startswith(
        "Broker 5 leads nothing and is in no ISR that has a leader, in the 2 partitions of the 1 topic in this text"
    )


def test_the_isr_of_a_partition_without_a_leader_is_down(highwater: Callable[..., Call], tmp_path: Path) -> None:
    """Although it is in another ISR: the parts of a description are not of one moment."""
    file = tmp_path / "topics.txt"
    lines = [line.replace("\t", "\t") for line in described(2)]
    last = lines[-1].split("\t")
    isr = next(field for field in last if field.startswith("Isr: ")).removeprefix("Isr: ").split(",")
    last = [f"Isr: {isr[0]}" if field.startswith("Isr: ") else field for field in last]
    last = ["Leader: none" if field.startswith("Leader: ") else field for field in last]
    file.write_text("\n".join([*lines[:-1], "\t".join(last)]) + "\n", encoding="utf-8")
    call = highwater("audit", file)
    down = f"start broker {isr[0]}"
    assert (f"Do: {down}." in call.out, "(0 down" in call.out) == (True, False)


def test_a_broker_that_is_down_is_not_refused_a_start(highwater: Callable[..., Call], tmp_path: Path) -> None:
    log = begun([1, 2])
    log.add(fenced(3, 5))
    log.add(change(replicas=[1, 2, 3], addingReplicas=[3]))
    call = highwater("audit", log.segment(tmp_path), "--before-restart", 3)
    assert call.code == 0
    assert call.out.startswith("Broker 3 is down, fenced or shutting down already: a start harms nothing")
    assert "1 partition being reassigned." in call.out


def test_partitions_at_risk_are_shown_with_what_to_do(highwater: Callable[..., Call], tmp_path: Path) -> None:
    log = begun()
    log.add(change(isr=[1], eligibleLeaderReplicas=[2, 7]))
    call = highwater("audit", log.segment(tmp_path))
    assert call.code == exit_codes.UNEXPECTED
    words = " ".join(call.out.split())
    assert "Acknowledged records can be lost: 1 partition orders-0" in words
    assert "orders-0: ELR members 7 are no replicas" in words
    assert "Do: wait until the ISR has 2 members before another reassignment" in words
    assert "No margin: 1 partition orders-0" in words


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["no-such-folder"], 2, "no-such-folder: no such file or folder"),
        ([LOST, "--release", "2.6.0"], 2, "the rules of controllers are modelled from 3.9 on"),
        ([LOST, "--release", "newest"], 2, "--release 'newest' is no release"),
        ([LOST, "--release", "9.9"], 2, "--release '9.9' is no release that Highwater knows; the newest one is 4.4"),
        ([LOST, "--release", "4"], 2, "--release '4' is no release that Highwater knows; one of: 4.0, "),
        ([LOST, "--before-restart", "one"], 2, "--before-restart 'one' is not valid: a whole number"),
        ([LOST, "--static", "min.insync.replica=2"], 2, "did you mean 'min.insync.replicas'?"),
        ([LOST, "--static", "min.insync.replicas=no"], 2, "this is no value of min.insync.replicas"),
        ([LOST, "--before-restart", "9"], 2, "no such broker is registered; one of: 1, 2, 3"),
        ([LOST, "--before-restart", "1", "--broker-log", "server.log"], 2, "ask one at a time"),
        ([LOGS.parent], 2, "no segments and no snapshots"),
    ],
)
def test_bad_input(words: list[object], code: int, message: str, highwater: Callable[..., Call]) -> None:
    call = highwater("audit", *words)
    assert call.code == code
    assert message in call.err
    assert "Traceback" not in call.err


@pytest.mark.world
def test_distances_and_their_stories(highwater: Callable[..., Call], tmp_path: Path) -> None:
    log = LOGS / "reassignment-again-4.3.1.txt.xz"
    stories = tmp_path / "stories"
    asked = ("--distance", "--partition", "partition-0", "--most-events", 3, "--stories", stories)
    call = highwater("audit", log, *asked)
    words = " ".join(call.out.split())
    assert "partition-0, loss: broker 1 is stopped cleanly; the partition is moved to 2 3 1; broker 1 starts." in words
    assert "3 clean events" in words
    played = highwater("run", stories / "story-1-loss.toml", "--mode", "elr-4.3")
    assert played.code == exit_codes.EXPECTED
    assert "committed-loss" in played.out
    shown = json.loads(highwater("audit", log, "--distance", "--most-events", 3, "--json").out)
    (distance,) = shown["distances"]
    assert [(story["unclean_ends"], story["others"]) for story in distance["loss"]] == [(0, 3)]
    assert distance["nearest"] is None
    (stories / "story-1-loss.toml").write_text("schema = 1\nname = 'mine'\n")
    refused = highwater("audit", log, *asked)
    assert refused.code == exit_codes.BAD_INPUT
    assert "did not write it" in refused.err


def test_questions_about_distances_that_make_no_sense(highwater: Callable[..., Call]) -> None:
    for words, problem in (
        (("--partition", "orders-0"), "--partition needs --distance"),
        (("--stories", "there"), "--stories needs --distance"),
        (("--distance", "--before-restart", 1), "two questions"),
        (("--distance", "--partition", "partition-1"), "did you mean 'partition-0'?"),
    ):
        call = highwater("audit", LOST, *words)
        assert (call.code, call.out) == (exit_codes.BAD_INPUT, "")
        assert problem in call.err


def test_logs_of_brokers_show_what_was_lost(highwater: Callable[..., Call], tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"{TRUNCATED}\n")
    call = highwater("audit", LOST, "--broker-log", log)
    assert "Committed records that were lost, by the brokers' logs" in call.out
    assert "0 to 1" in call.out
    hidden = highwater("audit", LOST, "--broker-log", log, "--anonymous", "--json").out
    assert json.loads(hidden)["broker_logs"]["lost"][0]["offsets"] == "0 to 1"
    assert "partition-0 " not in hidden
    safe = LOGS / "idempotent-retry-4.3.1.txt.xz"
    assert highwater("audit", safe).code == exit_codes.EXPECTED
    assert highwater("audit", safe, "--broker-log", log).code == exit_codes.UNEXPECTED
    log.write_text("nothing of interest\n")
    other = highwater("audit", LOST, "--broker-log", log)
    assert "The brokers' logs show no loss of committed records" in other.out
    assert "this is no log of a Kafka broker" in other.err
