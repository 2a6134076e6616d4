from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from highwater.lab.audit.audit import rules_of
from highwater.lab.audit.distance import Distances
from highwater.lab.audit.situations import Settings, renamed
from highwater.lab.audit.stories import START, Approach, new_partition, recorded_approach, scenario, shortest_approach
from scenarios.format.schema import read
from scenarios.single.run import run
from sim.protocol.modes import MODES
from tests.highwater.lab.audit.test_situations import STOP_3, after, model

if TYPE_CHECKING:
    from highwater.lab.audit.situations import Story


def test_a_story_is_a_scenario_that_loses_records_as_it_says() -> None:
    _, rules = rules_of("4.3.1")
    settings = Settings(rules, 2, elr=True, unclean=False)
    start = new_partition(range(1, 4), 2)
    story = Distances(settings).of(start).loss[0]
    text = scenario("story-1", Approach(start, (), {7: 1, 8: 2, 9: 3}), _named(story), settings, "elr-4.3", 'a"b\nc-0')
    assert START.match(text.encode())
    found = run(read(text, "story"), MODES["elr-4.3"], 0)
    assert found.row["expected"]
    assert "committed-loss" in found.row["violations"]
    repaired = run(read(text, "story"), MODES["elr-repaired"], 0)
    assert not repaired.row["violations"]


def _named(story: Story) -> Story:
    return replace(story, steps=tuple(step.renamed({1: 7, 2: 8, 3: 9}) for step in story.steps))


def test_the_shortest_way_to_a_situation() -> None:
    one = model()
    here = renamed(after(one, STOP_3), {1: 11, 2: 5, 3: 7, 4: 9})
    found = shortest_approach(here, one.settings)
    assert found is not None
    assert [step.text for step in found.steps] == ["broker 3 is stopped cleanly"]
    assert found.number == {11: 1, 5: 2, 7: 3, 9: 4}


def test_a_recorded_way_is_followed() -> None:
    one = model()
    path = [after(one), after(one, STOP_3)]
    found = recorded_approach(path, one.settings)
    assert found is not None
    assert found.steps == (STOP_3,)
    impossible = replace(path[1], partition=replace(path[1].partition, elr=(4,)))
    assert recorded_approach([path[0], impossible], one.settings) is None
