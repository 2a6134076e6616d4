from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import pytest

from reports.drawing import explanation
from reports.drawing.observed_run import observe
from reports.evidence import folder, narrative, sentences
from reports.evidence.story import worst_kind
from scenarios.format.catalogue import load
from sim.protocol.modes import mode as mode_named
from tests.named import run

if TYPE_CHECKING:
    from pathlib import Path

    from reports.evidence.narrative import Sentence

WORDS: Final = {
    "The producer hears": "ack",
    "The process of": ("kill", "pause", "resume"),
    "The machine of": "power-loss",
    "The session of": "session-end",
    "The link from": ("cut", "heal"),
    "The partition is without a leader": "elected",
    "The ISR becomes": "isr",
    "The ELR becomes": "elr",
}
"""How a sentence begins -> of which step it is."""


def texts(scenario: str, mode: str, *, most: int | None = None) -> list[str]:
    return [sentence.text for sentence in told(scenario, mode, most=most)]


def told(scenario: str, mode: str, seed: int = 0, kind: str = "", *, most: int | None = None) -> list[Sentence]:
    observed = observe(load(scenario), mode_named(mode), seed, {}, trace=True)
    return explanation.told(observed, kind, most)


def test_the_first_scenario_of_kip_101_in_sentences() -> None:
    found = texts("kip101-scenario-1", "hw", most=narrative.SENTENCES)
    held = "brokers 1, 2 have it in the page cache only."
    truncates = "truncates to offset 1 (follower_truncation=high-watermark), and drops record 1, which had been"
    lacks = "broker 1 lacks record 1, acknowledged before."
    expected = [
        f"The producer gets an ack for record 1 at offset 1 (acks=all); the ISR is [1, 2]; {held}",
        "The process of broker 1 is killed; its page cache stays.",
        f"Broker 1 follows broker 2 in leader epoch 0, {truncates} acknowledged.",
        "The process of broker 2 is killed; its page cache stays.",
        f"The controller elects broker 1 leader in leader epoch 1; the ISR becomes [1]; {lacks}",
    ]
    assert [text for text in found if text in expected] == expected, found
    assert len(found) <= narrative.SENTENCES
    assert found[-2].startswith("Lost: record 1 (offset 1), acknowledged at")
    assert found[-1].startswith("Also, from 7.519 s on: candidate-incomplete, ")


def test_each_sentence_points_at_its_line_of_the_trace(tmp_path: Path) -> None:
    result = run(load("kip966-walk"), "elr", 0, trace=True)
    file = tmp_path / "trace.jsonl"
    folder.write_trace(file, result)
    lines = file.read_text().splitlines()
    story = narrative.story(result, most=None)
    both = "The link from the control plane to broker 4 is cut, in both directions."
    assert both in [sentence.text for sentence in story]
    assert any("the ELR becomes [2, 3]" in sentence.text for sentence in story)
    assert any(sentence.text.startswith("The partition is without a leader") for sentence in story)
    assert [sentence.at_us for sentence in story] == sorted(sentence.at_us for sentence in story)
    for sentence in story:
        step = json.loads(lines[sentence.line - 1])
        assert step["t"] == sentence.at_us
        named = next((name for words, name in WORDS.items() if sentence.text.startswith(words)), None)
        assert named is None or step["step"] in named
        for broker in re.findall(r"^(?:The \w+ of b|B)roker (\d+)", sentence.text):
            assert step["broker"] == int(broker)


@pytest.mark.parametrize(("mode", "seed"), [("hw", 11), ("kraft", 50_000)])
def test_a_long_run_has_a_short_story_that_ends_with_the_violation(mode: str, seed: int) -> None:
    story = told("chaos", mode, seed, most=narrative.SENTENCES)
    whole = told("chaos", mode, seed)
    assert len(story) == narrative.SENTENCES < len(whole)
    assert set(story) <= set(whole)
    kind = worst_kind(run(load("chaos"), mode, seed).violations)
    assert sum(sentence.text.endswith(f" ({kind}).") for sentence in story) == 1


def test_what_comes_again_and_again_is_told_once() -> None:
    found = [sentence.text for sentence in told("chaos", "hw", 11, "committed-loss")]
    halts = [text for text in found if text.startswith("Broker 1 halts by itself")]
    assert len(halts) == 1
    assert re.search(r"\(And \d+ times more, until [0-9.]+ s\.\)$", halts[0])


@pytest.mark.parametrize(("scenario", "mode", "seed"), [("partitions", "kraft", 1250), ("chaos", "hw", 1191)])
def test_who_is_said_to_lead_and_append_leads(scenario: str, mode: str, seed: int) -> None:
    observed = observe(load(scenario), mode_named(mode), seed, {}, trace=True)
    trace = observed.result.trace or []
    appends = 0
    for kind in observed.result.row["violations"].split(","):
        for sentence in explanation.told(observed, kind, None):
            if " leads, and appends " in sentence.text:
                step = trace[sentence.line - narrative.FIRST_LINE]
                before = trace[: sentence.line - narrative.FIRST_LINE]
                own = [one for one in before if one["step"] in ("lead", "follow") and one["broker"] == step["broker"]]
                assert (own[-1]["step"], own[-1]["leader_epoch"]) == ("lead", step["leader_epoch"]), sentence
                appends += 1
    assert appends


def test_a_record_is_held_by_who_has_it_where_it_was_acknowledged() -> None:
    found = [sentence.text for sentence in told("chaos", "kraft", 1161, "committed-loss")]
    acked = next(text for text in found if text.startswith("The producer gets an ack for record 0 at offset 1 "))
    assert "; brokers 2, 3 have it " in acked  # Broker 1 has it at offset 0.


def test_what_only_validates_is_left_out() -> None:
    assert sum("The producer gets an ack" in text for text in texts("kip966-walk", "elr")) == 3


def test_power_takes_what_was_not_flushed() -> None:
    found = [sentence.text for sentence in told("sessions", "kip320", 50_090)]
    assert any(
        re.search(r"loses power; .*record \d+.* had not been flushed to disk, and (is|are) no longer there\.", text)
        for text in found
    )


def test_an_election_says_what_speaks_against_the_leader() -> None:
    found = texts("jepsen-2013", "hw")
    assert any("The controller elects broker" in text and "; it was not in the ISR; " in text for text in found)
    assert not any("; it was not in the ISR" in text for text in texts("kip101-scenario-1", "hw"))


def test_joining_without_acknowledged_records_is_told_with_its_rule() -> None:
    lacks = (
        r"^The ISR becomes \[1, 2\]; broker 2 lacks record \d+, acknowledged before; its process has restarted since"
    )
    assert any(re.search(lacks, text) for text in texts("kip903", "kip320"))
    assert not any("its process is another" in text for text in texts("kip903", "kip320-repaired"))
    assert any(
        "has reached the HW that its leader knows (isr_join=high-" in text for text in texts("kafka-7128", "kip279")
    )


def test_reassignments_are_told_from_their_beginning_to_their_end() -> None:
    zookeeper = [sentence.text for sentence in told("reassignments", "kip320", 310)]
    ends = [
        "The reassignment to [1, 3] completes; the replicas are [1, 3].",
        "The reassignment to [1, 2] begins; the replicas are [1, 3].",
        "The reassignment to [1, 2] completes; the replicas are [1, 2].",
    ]
    assert [text for text in zookeeper if text in ends] == ends
    kraft = [sentence.text for sentence in told("reassignments", "kraft", 0)]
    assert sum(text.startswith("The reassignment to ") and " is cancelled; " in text for text in kraft) == 1


def test_deleted_records_and_refused_ones_are_told() -> None:
    deleted = [sentence.text for sentence in told("stale-log-start", "kraft")]
    assert "Broker 2 deletes 3 records below offset 3 (DeleteRecords or retention)." in deleted
    step = {"t": 1, "step": "refused", "record": 3, "count": 2, "error": "NOT_ENOUGH_REPLICAS"}
    assert sentences.sentence(step) == "The producer receives NOT_ENOUGH_REPLICAS for records 3 to 4."


def test_metadata_that_comes_late_and_links_that_change_both_ways_are_told() -> None:
    found = texts("forgotten-expansion", "kraft", most=narrative.SENTENCES)
    assert found[:2] == [
        "From now on metadata reaches broker 1 with a delay of 14.000 s.",
        "The link from broker 1 to the control plane takes 1.500 s longer.",
    ]
    assert "The link from broker 1 to broker 2 is cut, in both directions." in found


def test_a_run_that_keeps_all_records_is_told_by_its_faults() -> None:
    found = [sentence.text for sentence in told("chaos", "kip320", 3, most=narrative.SENTENCES)]
    assert found[0] == "The disk of broker 1 is replaced by an empty one; its log was empty."
    assert not any(text.startswith("The producer gets an ack") for text in found)


def test_every_step_of_a_trace_has_a_sentence() -> None:
    trace = [
        step for name in ("reassignments", "elr-chaos") for step in run(load(name), "kraft", 0, trace=True).trace or ()
    ]
    assert len({step["step"] for step in trace}) > 20
    for step in trace:
        assert re.fullmatch(r"[A-Z][^{}]*[.)]", sentences.sentence(step)), step


def test_ids_of_the_final_validation_are_not_named() -> None:
    assert narrative._plain("broker 1 has record 1099511627776 of epoch 0 and broker 2 has record 7 of epoch 1") == (
        "broker 1 has a record of the final validation of epoch 0 and broker 2 has record 7 of epoch 1"
    )


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("reassignments", "zombie", "Heartbeats of broker {target} are lost from now on, and it does not notice when"),
        ("rolling", "controlled-restart", "Broker {target} begins a controlled shutdown, to be restarted."),
        ("operations", "min-isr-change", "An administrator sets min.insync.replicas to {value}."),
    ],
)
def test_faults_of_which_no_step_tells_are_told(name: str, kind: str, text: str) -> None:
    for seed in range(40):
        result = run(load(name), "elr-4.3", seed, trace=True)
        struck = [fault for fault in result.faults if fault["kind"] == kind and fault["effective"]]
        story = narrative.story(result, most=None)
        for fault in struck:
            if (
                story[0].at_us
                <= fault["at_us"]
                <= min([violation["at_us"] for violation in result.violations], default=1 << 62)
            ):
                said = text.format(target=fault["targets"][-1], **fault)
                assert any(sentence.at_us == fault["at_us"] and sentence.text.startswith(said) for sentence in story)
                return
    raise AssertionError("no run has such a fault")


def test_a_fault_is_shown_with_what_it_asks_for() -> None:
    result = run(load("reassignments"), "elr-4.3", 3, trace=True)
    asked = [fault for fault in result.faults if fault["kind"] == "reassignment"]
    assert asked
    told = [sentence.text for sentence in narrative.story(result, most=None)]
    for fault in asked:
        assert any(f"The reassignment to {fault['replicas']} begins" in text for text in told) or not fault["effective"]


def test_an_isr_that_goes_back_with_lost_metadata_is_no_decision_of_a_rule() -> None:
    found = texts("quorum-empty-voter", "elr-4.3")
    back = "The ISR becomes [1, 2, 3]; the change to [1] was lost with the metadata; broker 2 lacks record 1, "
    assert f"{back}acknowledged before." in found
    assert not any("isr_eligibility" in text for text in found)
    assert "Controller 102 has committed offset 19, where another batch was committed (metadata-loss)." in found


def test_ends_of_one_controller_are_counted_and_those_of_another_are_told() -> None:
    """100 ends at each start, by the same exception; 101 was killed before."""
    found = texts("quorum-empty-leader", "elr-4.3")
    cause = "a message names itself as the leader of epoch 1, which it is not"
    assert any(text.startswith(f"The process of controller 100 ends ({cause}).") for text in found)
    assert "The process of controller 101 ends (kill)." in found
    assert "The process of controller 100 ends (disk-replaced)." in found
