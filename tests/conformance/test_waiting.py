from __future__ import annotations

from tests.conformance.cases import BUNDLED, read_cases
from tests.conformance.waiting import WAITING, waiting_reason

CASES = {case.id: case for case in read_cases(BUNDLED)}


def test_the_list_of_waiting_cases_is_exact() -> None:
    reasons = {name: waiting_reason(case) for name, case in CASES.items()}
    assert {name: reason for name, reason in reasons.items() if reason} == WAITING


def test_nothing_of_the_epoch_cache_waits() -> None:
    assert not [name for name in WAITING if CASES[name].kind == "leader_epoch_cache"]
