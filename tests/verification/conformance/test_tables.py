from __future__ import annotations

from typing import TYPE_CHECKING

from tests.verification.conformance.cases import TableError
from tests.verification.conformance.driving import run_case
from tests.verification.conformance.kinds import KINDS

if TYPE_CHECKING:
    from sim.protocol.rules import Rules
    from tests.verification.conformance.cases import Case


def test_case(case: Case, rules: Rules) -> None:
    if case.kind not in KINDS:
        raise TableError(f"unknown kind of case {case.kind!r}")
    assert run_case(case, KINDS[case.kind], rules)
