"""Settings that no Kafka would start with are refused (`sim.config.NEEDED`), also drawn ones and a single broker's."""

from __future__ import annotations

from collections.abc import Container

from scenarios.format.scenario import Scenario
from sim.config import NEEDED, refusals
from sim.errors import InputError


def check(scenario: Scenario, about: Container[str] | None = None, later: Container[str] = ()) -> None:
    """Refuse a scenario's settings if Kafka would.

    Args:
        scenario: whose.
        about: keys that were just set, of which one has to be concerned; None: any. (Recorded runs of earlier versions
            can still be replayed as they are.)
        later: keys that are yet to be set: what concerns them is not looked at.

    Raises:
        InputError: all that Kafka would not start with.
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
