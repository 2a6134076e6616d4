from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from reports.drawing.causal_past import _before, past
from reports.drawing.observed_run import ObservedRun, observe
from scenarios.format.catalogue import load
from sim.protocol.modes import mode as mode_named
from tests.named import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

LOSES = ("chaos", "kraft", 50_000)
TIMED = re.compile(r" +[0-9]+\.[0-9]{6}  (?!\*\*\*)")


@cache
def seen(scenario: str, mode: str, seed: int) -> ObservedRun:
    return observe(load(scenario), mode_named(mode), seed, {}, trace=True)


def test_an_observed_run_is_the_run() -> None:
    observed = seen(*LOSES)
    plain = run(load(LOSES[0]), *LOSES[1:], trace=True)
    assert observed.result.row == plain.row
    assert observed.result.trace == plain.trace == [observation.step for observation in observed.observations]


def test_a_loss_comes_from_what_befell_its_record() -> None:
    observed = seen(*LOSES)
    places = past(observed)
    assert places is not None
    chosen = [observed.observations[place].step for place in sorted(places)]
    first = min(observed.concerned)
    assert {step["record"] for step in chosen if step["step"] == "append"} == {first}
    names = [step["step"] for step in chosen]
    assert names.count("corrupt-tail") == 2
    assert names.index("append") < names.index("corrupt-tail") < names.index("truncate")
    assert len(chosen) * 4 < len(observed.observations)


def test_causes_come_before() -> None:
    observed = seen(*LOSES)
    order = {number: place for place, number in enumerate(observed.causes)}
    assert all(order[before] < order[number] for number, many in observed.causes.items() for before in many)
    sent = [message for message in observed.messages if not message.lost and message.sent_in >= 0]
    assert all(message.sent_in in observed.causes[message.call] for message in sent)


def test_all_before_is_reached_through_any_cause() -> None:
    assert _before({1: (), 2: (1,), 3: (), 4: (2, 3), 5: (4,)}, [4]) == {1, 2, 3, 4}


def test_what_keeps_its_promise_has_no_past() -> None:
    assert past(seen("kip101-scenario-1", "kip101", 0)) is None


@pytest.mark.parametrize("words", [(), ("--all",)])
def test_a_history_shows_the_past_first(highwater: Callable[..., Call], tmp_path: Path, words: tuple[str, ...]) -> None:
    scenario, mode, seed = LOSES
    assert highwater("replay", scenario, "--mode", mode, "--seed", seed, "--output", tmp_path, *words).code == 0
    text = (tmp_path / "seeds" / f"{seed}-{mode}" / "history.txt").read_text()
    first, rest = text.split(" steps are about other records, or did not lead to it")
    *lines, count = first.splitlines()
    steps = len(seen(*LOSES).observations)
    places = past(seen(*LOSES))
    assert places is not None
    assert sum(1 for line in lines if TIMED.match(line)) == len(places) == steps - int(count)
    assert sum(1 for line in rest.splitlines() if TIMED.match(line)) == (int(count) if words else 0)
    assert sum("*** VIOLATION" in line for line in lines) == 2
