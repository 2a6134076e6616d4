"""Shrunk runs of known bugs are explained by the right repair at the right moment (`make hunt-catalogue`)."""

from __future__ import annotations

import re

import pytest

from reports.drawing.explanation import told
from reports.drawing.observed_run import ObservedRun, observe
from reports.evidence import messages, narrative
from scenarios.shrinking.case import Case
from scenarios.shrinking.criterion import Symptom, Trials
from scenarios.shrinking.necessity import _NecessitySearch
from scenarios.shrinking.prevention import remedies
from scenarios.single import recording
from sim.protocol.messages import FetchRequest
from sim.protocol.modes import mode as mode_named
from tests.verification.hunt.catalogue import BUGS, FOLDER, Bug, in_order

CONTINUATIONS = 10


def case_of(bug: Bug) -> Case:
    found = recording.read(bug.file)
    assert found.mode == mode_named(bug.mode)
    assert found.seed == bug.seed
    return Case(found.scenario, mode_named(bug.mode), bug.seed, found.rules or {})


def observed_of(bug: Bug) -> ObservedRun:
    case = case_of(bug)
    return observe(case.scenario, case.mode, case.seed, case.rules, trace=True)


def test_every_bug_has_its_plan() -> None:
    assert sorted(file.name for file in FOLDER.glob("*.json")) == sorted(bug.file.name for bug in BUGS)


@pytest.mark.world
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_repair_keeps_the_data(bug: Bug) -> None:
    case, symptom = case_of(bug), Symptom(bug.kind, bug.inside)
    assert symptom.shown_by(case.row())
    assert bug.repair in [remedy.change for remedy in remedies(case, symptom, Trials()) if remedy.keeps]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_after_the_moment_it_is_as_good_as_lost(bug: Bug) -> None:
    case, symptom = case_of(bug), Symptom(bug.kind, bug.inside)
    whole = told(observed_of(bug), bug.kind, None)
    turns = [sentence.at_us for sentence in whole if re.search(bug.turn, sentence.text)]
    counts = {
        at_us: [
            sum(symptom.seen_in(case.continued(at_us + before, number).row()) for number in range(1, CONTINUATIONS + 1))
            for before in (-1, 0)
        ]
        for at_us in turns
    }
    assert any(later - sooner > CONTINUATIONS / 2 for sooner, later in counts.values()), counts


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_story_says_how_in_words_that_the_trace_bears_out(bug: Bug) -> None:
    observed = observed_of(bug)
    story = told(observed, bug.kind)
    assert len(story) <= narrative.SENTENCES
    assert in_order(bug.says, story) == []
    for sentence in story:
        if sentence.line:
            assert observed.observations[sentence.line - narrative.FIRST_LINE].at_us == sentence.at_us
    assert [sentence.text for sentence in story if sentence.text.endswith(f" ({bug.kind}).")]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_message_has_a_name_and_can_be_told(bug: Bug) -> None:
    sent = _NecessitySearch(case_of(bug), Symptom(bug.kind, bug.inside), Trials())._sent()
    assert all(messages.name_of(message.message) for message in sent)
    offsets = [messages.about(message.message) for message in sent if isinstance(message.message, FetchRequest)]
    assert offsets
    assert all("offset" in about for about in offsets)
