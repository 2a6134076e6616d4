"""The acceptance cases tell the modes apart: each repair makes the cases pass that it was made for, and no sooner."""

from __future__ import annotations

import pytest

from sim.protocol.modes import mode
from tests.verification.conformance.cases import BUNDLED, read_cases
from tests.verification.conformance.driving import run_case
from tests.verification.conformance.kinds.acceptance import KIND

CASES = {case.id: case for case in read_cases(BUNDLED) if case.kind == "acceptance"}


@pytest.mark.parametrize("name", ["ft-x02", "ft-x03"])
def test_leader_epochs_repair_what_high_watermarks_lost(name: str) -> None:
    with pytest.raises(AssertionError, match="logs_identical"):
        run_case(CASES[name], KIND, mode("hw").rules)
    assert run_case(CASES[name], KIND, mode("kip101").rules)


def test_looking_back_repairs_what_one_answer_left() -> None:
    with pytest.raises(AssertionError, match="logs_identical"):
        run_case(CASES["ft-x05"], KIND, mode("kip101").rules)


def test_unbroken_rules_pass_under_every_release() -> None:
    assert run_case(CASES["ft-x04"], KIND, mode("hw").rules)
