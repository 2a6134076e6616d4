from __future__ import annotations

from dataclasses import fields

import pytest

from sim.errors import InputError
from sim.protocol.modes import MODES, mode
from sim.protocol.rules import RULES, Rules, parse_overrides


def test_every_rule_has_values_a_meaning_and_a_source() -> None:
    assert [field.name for field in fields(Rules)] == list(RULES)
    for spec in RULES.values():
        assert len(set(spec.values)) == len(spec.values) >= 2
        assert spec.meaning
        assert spec.source


def test_kip101_differs_in_truncation_append_check_and_deduplication() -> None:
    hw, kip101 = (MODES[name].rules.as_dict() for name in ("hw", "kip101"))
    assert {name for name in RULES if hw[name] != kip101[name]} == {
        "follower_truncation",
        "append_check",
        "producer_dedup",
    }


def test_an_override_leaves_the_mode_as_it_is() -> None:
    rules = mode("hw").rules.override({"follower_truncation": "leader-epoch"})
    assert rules.follower_truncation == "leader-epoch"
    assert mode("hw").rules.follower_truncation == "high-watermark"


def test_overrides_are_read_from_words() -> None:
    assert parse_overrides(["isr_join=leader-epoch-start", "fetch_fencing=leader-epoch"]) == {
        "isr_join": "leader-epoch-start",
        "fetch_fencing": "leader-epoch",
    }


def test_all_that_is_wrong_with_overrides_is_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        parse_overrides(["isr_joins=x", "isr_join=leader-epoch-stat", "fetch_fencing"])
    first, second, third = caught.value.problems
    assert first == "unknown rule 'isr_joins'; did you mean 'isr_join'?"
    assert second == "rule isr_join has no value 'leader-epoch-stat'; did you mean 'leader-epoch-start'?"
    assert third == "--rule 'fetch_fencing' is not of the form NAME=VALUE"


def test_an_unknown_mode_or_value_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'kip101'"):
        mode("kip11")
    with pytest.raises(InputError, match="rule fetch_fencing has no value 'maybe'"):
        mode("hw").rules.override({"fetch_fencing": "maybe"})
