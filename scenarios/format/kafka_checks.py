"""Refuses settings with which Kafka would not start (`sim.config.NEEDED`), also drawn ones and those of one broker."""

from __future__ import annotations

from collections.abc import Container

from scenarios.format.scenario import Scenario
from sim.config import NEEDED, refusals
from sim.errors import InputError


def check(scenario: Scenario, about: Container[str] | None = None, later: Container[str] = ()) -> None:
    """Check a scenario's settings as Kafka does.

    With `about`, only what concerns these keys is checked, which were just set: so recorded runs of earlier versions
    can be replayed. What concerns a key that will be set `later` is skipped.

    Raises:
        InputError: names all settings with which Kafka would not start.
    """
    needs = [
        needed
        for needed in NEEDED
        if (about is None or any(key in about for key in needed.keys)) and not any(key in later for key in needed.keys)
    ]
    found = refusals(scenario.config, scenario.draw_config, needs)
    for broker, keys in scenario.broker_config.items():
        drawn = {key: values for key, values in scenario.draw_config.items() if key not in keys}
        own = [needed for needed in needs if any(key in keys for key in needed.keys)]
        found += [f"broker {broker}: {text}" for text in refusals({**scenario.config, **keys}, drawn, own)]
    if found:
        raise InputError(*found)
