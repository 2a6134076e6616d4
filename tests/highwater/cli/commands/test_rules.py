from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from highwater.cli.commands.rules import about, search
from scenarios.shrinking.kafka_code import in_kafka
from sim.protocol.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Call


def test_without_a_word_all_are_listed(highwater: Callable[..., Call]) -> None:
    call = highwater("rules")
    assert [line.split()[0] for line in call.out.splitlines()[1:] if not line.startswith(" ")] == [*RULES]
    assert max(map(len, call.out.splitlines())) <= 80
    assert [rule["name"] for rule in highwater("rules", "--json").json["rules"]] == [*RULES]


@pytest.mark.parametrize(
    ("word", "rule"),
    [
        ("KAFKA-19975", "reassignment_completes"),  # In a source.
        ("kafka-6361", "follower_truncation"),  # The ticket of a bug.
        ("targets-if-fewer", "reassignment_completes"),  # A value.
        ("forgotten-expansion", "equal_partition_epoch"),  # A finding.
        ("maybePopulateTargetElr", "elr_outside_assignment"),  # A method that a finding names.
    ],
)
def test_a_word_is_found_wherever_it_stands(word: str, rule: str) -> None:
    assert rule in [one["name"] for one in search(word)]


def test_a_rule_of_that_name_is_shown_alone(highwater: Callable[..., Call]) -> None:
    call = highwater("rules", "isr_lag")
    headings = [line for line in call.out.splitlines() if line and not line.startswith(" ")]
    assert headings == ["isr_lag"]
    assert max(map(len, call.out.splitlines())) <= 80
    assert "repairs: a follower that has everything leaves the ISR (KAFKA-7152)" in " ".join(call.out.split())


def test_what_a_value_repairs_and_who_has_it() -> None:
    (dropped,) = (one for one in about("elr_outside_assignment")["values"] if one["value"] == "dropped")
    assert "reassignment-back" in [finding["name"] for finding in dropped["findings"]]
    assert "elr-repaired" in dropped["modes"]
    assert dropped["releases"] == []


def test_a_word_that_nothing_has_is_refused(highwater: Callable[..., Call]) -> None:
    call = highwater("rules", "zzz")
    assert (call.code, call.out) == (2, "")
    assert call.err == (
        "highwater: no rule has 'zzz' in name, values, sources or findings; 'highwater rules' lists all\n"
    )


def test_code_of_kafka_is_that_of_the_finding_or_of_the_sources() -> None:
    assert in_kafka("elr_outside_assignment", "dropped") == "PartitionChangeBuilder.maybePopulateTargetElr"
    sources = in_kafka("isr_lag", "end-offset")
    assert sources.startswith(RULES["isr_lag"].source)
    assert "KAFKA-7152" in sources
    assert in_kafka("no_rule", "x") == ""
