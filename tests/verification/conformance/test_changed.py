"""Which of Kafka's own cases a mode changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from scenarios.format.catalogue import mode
from sim.protocol.modes import MODES
from tests.verification.conformance import changed
from tests.verification.conformance.changed import Change, changed_cases
from tests.verification.oracle.subjects import SUBJECTS

if TYPE_CHECKING:
    import pytest


def test_only_rules_that_agree_with_the_base_are_changed() -> None:
    change = Change(MODES["elr"], mode("elr+reassignment_completes=min-isr"))
    other = change.of(MODES["kraft"].rules)
    assert other is not None
    assert other.as_dict() == {**MODES["kraft"].rules.as_dict(), "reassignment_completes": "min-isr"}
    assert change.of(MODES["elr-4.3"].rules) is None  # It has another value already.
    assert change.of(MODES["kip320"].rules) is None  # It has another control plane.


def test_cases_that_a_rule_changes_are_named() -> None:
    found = changed_cases(Change(MODES["kraft"], mode("kraft+hw_needs_min_isr=no")))
    assert found["run"] > 100
    assert 0 < len(found["changed"]) < 20
    assert all(one["told"] for one in found["changed"])


def test_answers_that_a_rule_changes_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(changed, "SUBJECTS", {name: SUBJECTS[name] for name in ("partition-change", "epoch-cache")})
    monkeypatch.setattr(changed, "changed_cases", lambda _: {})
    assert changed.main("elr", "elr+reassignment_completes=targets-if-fewer") == 0
    told = {(one["subject"], one["release"]): one for one in json.loads(capsys.readouterr().out)["answers"]}
    assert told["epoch-cache", "4.1.0"]["changed"] == 0
    one = told["partition-change", "4.1.0"]
    assert 0 < one["changed"] < one["run"]
    assert one["kafka"] != one["mode"]
    assert ("partition-change", "4.3.1") not in told
