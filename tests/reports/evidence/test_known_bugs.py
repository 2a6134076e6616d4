"""Shrunk runs of known bugs are explained by the right rule at the right moment."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import pytest

from reports.drawing.observed import observe
from reports.evidence import messages, telling
from scenarios.shrinking.case import Case
from scenarios.shrinking.keeping import Symptom, Trials
from scenarios.shrinking.necessary import _Asking
from scenarios.single import recording
from sim.protocol.modes import mode as mode_named

FOLDER: Final = Path(__file__).parents[2] / "fixtures" / "explained"
CONTINUATIONS: Final = 10


class Bug(NamedTuple):
    """What its explanation has to say."""

    name: str
    kind: str
    rule: tuple[str, str]
    turn_us: int
    """After what happens then nothing keeps the data any more; just before something does."""
    says: str
    """In the story."""


BUGS: Final = (
    Bug(
        "A1",
        "committed-loss",
        ("follower_truncation", "leader-epoch"),
        10_000_000,
        "Broker 3 follows broker 2 in leader epoch 1, truncates to offset 0 (follower_truncation=high-watermark), and "
        "drops record 0, which had been acknowledged.",
    ),
    Bug(
        "A13",
        "divergence",
        ("registration_epoch", "bumped"),
        40_000_000,
        "Broker 1 leads again in leader epoch 0, with LEO 0, and lacks record 0, acknowledged before; there was no "
        "election, and the epoch stays.",
    ),
    Bug(
        "B1",
        "divergence",
        ("follower_truncation", "leader-epoch-rounds"),
        70_000_000,
        "The machine of broker 2 loses power; record 1 had not been flushed to disk, and is gone.",
    ),
)


def case_of(bug: Bug) -> Case:
    found = recording.read(FOLDER / f"{bug.name}.json")
    assert found.mode is not None
    assert found.seed is not None
    return Case(found.scenario, mode_named(found.mode), found.seed, found.rules or {})


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_rule_cures_it(bug: Bug) -> None:
    case, symptom = case_of(bug), Symptom(bug.kind, inside=True)
    assert symptom.shown_by(case.row())
    assert symptom.cured_in(case.with_rule(*bug.rule).row())


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_after_the_moment_nothing_helps(bug: Bug) -> None:
    case, symptom = case_of(bug), Symptom(bug.kind, inside=True)
    for after_us, violates in ((bug.turn_us - 1, False), (bug.turn_us, True)):
        seen = {symptom.seen_in(case.continued(after_us, number).row()) for number in range(1, CONTINUATIONS + 1)}
        assert seen == {violates}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_story_says_how_in_words_that_the_trace_bears_out(bug: Bug) -> None:
    case = case_of(bug)
    observed = observe(case.scenario, case.mode, case.seed, case.rules, trace=True)
    flushed = [None if one.log is None else one.log.flushed for one in observed.observations]
    story = telling.story(observed.result, bug.kind, observed.concerned, flushed)
    assert len(story) <= telling.SENTENCES
    said = [sentence for sentence in story if sentence.text == bug.says]
    assert len(said) == 1
    assert observed.observations[said[0].line - telling.FIRST_LINE].at_us == said[0].at_us


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_message_has_a_name_and_can_be_told(bug: Bug) -> None:
    case = case_of(bug)
    sent = _Asking(case, Symptom(bug.kind, inside=True), Trials())._sent()
    assert {one.handler for one in sent} <= messages.WORDS.keys()
    offsets = [messages.about(one.message) for one in sent if one.handler == "on_fetch"]
    assert offsets
    assert all("offset" in about for about in offsets)
