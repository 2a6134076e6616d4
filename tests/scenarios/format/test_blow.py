from __future__ import annotations

import pytest

from scenarios.format.blow import Blow, parse, to_text
from scenarios.format.catalogue import load
from scenarios.format.scenario import from_json
from sim.errors import InputError

TEXT = "quorum-not-superset@81234567.3+candidate-incomplete@81300000.0"


def test_text_and_blows_are_the_same() -> None:
    blows = parse(TEXT)
    assert blows == (Blow("quorum-not-superset", 81_234_567, 3), Blow("candidate-incomplete", 81_300_000, 0))
    assert to_text(blows) == TEXT
    assert parse("") == ()
    assert to_text(()) == ""


def test_a_blow_at_a_difference_names_its_brokers() -> None:
    text = "difference:3:1@81234567.3+difference@81300000.0"
    blows = parse(text)
    assert blows == (Blow("difference", 81_234_567, 3, (3, 1)), Blow("difference", 81_300_000, 0))
    assert to_text(blows) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("quorum-not-superset", "WARNING@TIME_US.VARIANT is needed"),
        ("quorum-not-superset@-1.0", "WARNING@TIME_US.VARIANT is needed"),
        ("quorum-not-supreset@1.0", "did you mean 'quorum-not-superset'?"),
        ("committed-loss@1.0", "no early warning is called 'committed-loss'"),
        ("global-loss@5.0+global-loss@5.1", "must ascend"),
        ("global-loss:2@5.0", "only a difference names brokers"),
        ("difference:@5.0", "WARNING@TIME_US.VARIANT is needed"),
    ],
)
def test_malformed_blows_are_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=r"--blow") as refused:
        parse(text)
    assert problem in str(refused.value)


def test_blows_are_never_stored_with_the_scenario() -> None:
    from dataclasses import replace

    scenario = load("reassignments")
    blown = replace(scenario, blows=parse(TEXT))
    assert blown.to_json() == scenario.to_json()
    assert from_json(blown.to_json()).blows == ()
    assert blown.scenario_hash() == scenario.scenario_hash()
