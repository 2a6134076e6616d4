"""Compares final logs with those that the scenario expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from scenarios.format.scenario import FinalLog
from scenarios.single.script import RulesInForce, StoryError
from sim.protocol.log.log import Log

VALIDATION_IDS: Final = 1 << 40
"""First record id of validation writes."""


def check(finals: Iterable[FinalLog], rules: RulesInForce, logs: Mapping[int, Log], batches: Mapping[str, int]) -> None:
    """Compare the logs of brokers whose rules match with the expected ones; `batches` gives the first record id by
    name.

    Raises:
        StoryError: names the first log that differs.
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
            wanted = _shown(final.batches, final.leo)
            raise StoryError(f"final log of broker {final.broker}: {_shown(found, leo)}, expected {wanted}")


def _shown(batches: tuple[str, ...], leo: int | None) -> str:
    return " ".join(batches or ("nothing",)) + ("" if leo is None else f" up to {leo}")
