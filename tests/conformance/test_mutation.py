"""Do the tables' expectations notice when the core does nothing?

One of the core's abilities at a time is replaced by doing nothing: noting epochs, truncating, looking up where an
epoch ended. A run *depends* on the ability if it shows anything else then: after any operation, any of the values that
cases of its kind name, whether this case names it there or not; or an error. Of the runs that depend, nearly all have
to fail. (Often nothing depends on a call, as when a truncation finds nothing to remove or a look-up only confirms what
the leader's reply says.)
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

import pytest

from sim.protocol.epochs import UNDEFINED, EpochCache
from sim.protocol.log import Log
from sim.protocol.rules import Rules
from tests.conformance.cases import BUNDLED, Case, read_cases
from tests.conformance.driving import run_case
from tests.conformance.kinds import KINDS
from tests.conformance.waiting import rules_for, waiting_reason

ABILITIES: Final[dict[str, list[tuple[type, str, object]]]] = {
    "assign": [(EpochCache, "assign", None)],
    "truncate": [
        (EpochCache, "truncate_from_end", None),
        (EpochCache, "truncate_from_start", None),
        (Log, "truncate_to", []),
    ],
    "end-offset-for": [(EpochCache, "end_offset_for", UNDEFINED)],
}
"""Functions of the core, each with what it returns when it does nothing."""
SHARE: Final = 0.8
FEWEST: Final = 20
"""Runs that must depend on each ability, lest a share of nothing pass."""


@dataclass(frozen=True)
class Outcome:
    """What a run showed, and the error that ended it."""

    sights: tuple[str, ...]
    error: str | None


@pytest.fixture(scope="module")
def runs() -> dict[str, tuple[Case, Rules]]:
    return {
        f"{case.id}-{name}": (case, rules)
        for case in read_cases(BUNDLED)
        if waiting_reason(case) is None
        for name, rules in rules_for(case).items()
    }


def _outcome(case: Case, rules: Rules) -> Outcome:
    sights: list[str] = []
    try:
        run_case(case, KINDS[case.kind], rules, sights)
    except Exception as error:  # Whatever comes of a broken core.
        return Outcome(tuple(sights), repr(error))
    return Outcome(tuple(sights), None)


def _nothing(answer: Any) -> Any:
    return lambda *_, **__: answer


@pytest.mark.parametrize("ability", ABILITIES)
def test_a_core_that_does_nothing_is_noticed(runs: dict[str, tuple[Case, Rules]], ability: str) -> None:
    intact = {name: _outcome(*run) for name, run in runs.items()}
    with ExitStack() as patches:
        for owner, function, answer in ABILITIES[ability]:
            patches.enter_context(patch.object(owner, function, _nothing(answer)))
        broken = {name: _outcome(*run) for name, run in runs.items()}
    depend = [name for name in runs if broken[name] != intact[name]]
    unnoticed = [name for name in depend if broken[name].error is None]
    assert not [name for name, outcome in intact.items() if outcome.error]
    assert len(depend) >= FEWEST
    assert len(unnoticed) <= (1 - SHARE) * len(depend), unnoticed
