"""Comparing the logs at the end with what the scenario says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from scenarios.format.scenario import FinalLog
from scenarios.single.script import RulesInForce, StoryError
from sim.protocol.log.log import Log

VALIDATION_IDS: Final = 1 << 40
"""Records written by validation have ids from here on."""


def check(finals: Iterable[FinalLog], rules: RulesInForce, logs: Mapping[int, Log], batches: Mapping[str, int]) -> None:
    """Compare, where the rules of the broker fit.

    Args:
        finals: what the scenario says.
        rules: the rules in force.
        logs: the brokers' logs.
        batches: batch name -> first record id, for those that were sent.

    Raises:
        StoryError: names the first log that is not as it should be.
    """
    names = {first_id: name for name, first_id in batches.items()}
    for final in finals:
        if not rules.fit(final.rules, final.broker):
            continue
        log = logs[final.broker]
        scripted = [batch for batch in log.batches if batch.first_id < VALIDATION_IDS]
        found = tuple(names[batch.first_id] for batch in scripted)
        leo = next((batch.base_offset for batch in log.batches if batch.first_id >= VALIDATION_IDS), log.leo)
        if found != final.batches or final.leo not in (None, leo):
            wanted = _said(final.batches, final.leo)
            raise StoryError(f"final log of broker {final.broker}: {_said(found, leo)}, where the story has {wanted}")


def _said(batches: tuple[str, ...], leo: int | None) -> str:
    return " ".join(batches or ("nothing",)) + ("" if leo is None else f" up to {leo}")
