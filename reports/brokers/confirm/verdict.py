"""The verdict of several attempts to perform a scenario.

A single difference may be due to timing: JVMs on a busy machine are less punctual than the simulation. A real
difference in Kafka occurs again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim import exit_codes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def exit_code(made: Sequence[Mapping[str, Any]], attempts: int) -> int | None:
    """The exit code of the attempts so far; None if another attempt is needed.

    A difference counts when a second attempt shows the same one, or when there is only one attempt. If an attempt
    agrees and another one differs, timing decides, and nothing is confirmed.

    Args:
        made: the attempts, in order.
        attempts: how many there may be.
    """
    last, *before = reversed(made)
    if last["agrees"]:
        return exit_codes.INCONCLUSIVE if any(_differences(one) for one in before) else exit_codes.EXPECTED
    if attempts == 1 and not last["failed"]:
        return exit_codes.UNEXPECTED
    if any(_differences(one) & _differences(last) for one in before):
        return exit_codes.UNEXPECTED
    return exit_codes.INCONCLUSIVE if len(made) == attempts else None


def _differences(attempt: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The differences and their values on brokers, if the expected steps occurred."""
    if attempt["failed"]:
        return set()
    return {(row["what"], row["real"]) for row in attempt["rows"] if not row["agrees"]}
