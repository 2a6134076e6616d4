from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

from reports.evidence import folder, telling
from scenarios.format.catalogue import load
from tests.named import run

if TYPE_CHECKING:
    from pathlib import Path


def test_the_first_scenario_of_kip_101_in_sentences() -> None:
    texts = [sentence.text for sentence in telling.story(run(load("kip101-scenario-1"), "hw", 0, trace=True))]
    told = [
        "The producer hears of success for record 1 at offset 1 (acks=all); the ISR is [1, 2], and [1, 2] hold it.",
        "The process of broker 1 is killed; its page cache stays.",
        "Broker 1 truncates to offset 1, and drops 1 batch.",
        "The process of broker 2 is killed; its page cache stays.",
        "Broker 1 is elected leader in leader epoch 1.",
        "Broker 1 leads with LEO 1, in leader epoch 1.",
    ]
    assert [text for text in texts if text in told] == told
    assert texts[-1].startswith("exposed-loss: ")


def test_each_sentence_points_at_its_line_of_the_trace(tmp_path: Path) -> None:
    result = run(load("kip966-walk"), "elr", 0, trace=True)
    file = tmp_path / "trace.jsonl"
    folder.write_trace(file, result)
    lines = file.read_text().splitlines()
    story = telling.story(result)
    texts = [sentence.text for sentence in story]
    assert "The ELR becomes [2, 3]." in texts
    assert "The link from the control plane to broker 4 is cut." in texts
    assert any(text.startswith("Nobody can be elected") for text in texts)
    assert [sentence.at_us for sentence in story] == sorted(sentence.at_us for sentence in story)
    for sentence in story:
        step = json.loads(lines[sentence.line - 1])
        assert step["t"] == sentence.at_us
        assert step["step"] in telling.HAPPENS


def test_what_changes_nothing_and_what_only_validates_is_left_out() -> None:
    result = run(load("kip966-walk"), "elr", 0, trace=True)
    texts = [sentence.text for sentence in telling.story(result)]
    lists = [text for text in texts if text.startswith("The ELR")]
    assert all(first != second for first, second in pairwise(lists))
    assert sum("The producer hears" in text for text in texts) == 3
