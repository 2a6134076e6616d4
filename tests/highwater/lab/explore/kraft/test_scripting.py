"""Counterexamples written as scripted scenarios, which the simulation plays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from highwater.lab.explore.kraft.cluster import KRaftBounds, KRaftCluster
from highwater.lab.explore.kraft.scripting import NotReproducedError, Wanted, to_toml
from highwater.lab.explore.properties import KINDS, VIOLATIONS
from highwater.lab.explore.search import search
from scenarios.format.schema import read
from scenarios.single.run import run
from sim.protocol.modes import mode
from tests.highwater.lab.explore.kraft.facts import ONE_FENCE, ONE_LOSS

if TYPE_CHECKING:
    from highwater.lab.explore.search import Action
    from scenarios.format.scenario import Scenario
    from scenarios.single.result import RunResult


def found(
    mode_name: str, rules: dict[str, str], bounds: KRaftBounds
) -> tuple[KRaftCluster, list[tuple[Action, int]], Wanted]:
    """The first counterexample, and what its script has to show."""
    cluster = KRaftCluster(mode(mode_name).rules.override(rules), bounds)
    ((kind, path),) = search(cluster, until=KINDS, ends=VIOLATIONS).paths.items()
    return cluster, path, Wanted(kind, mode(mode_name), rules, "highwater explore")


def played(text: str, wanted: Wanted, rules: dict[str, str]) -> tuple[Scenario, RunResult]:
    scenario = read(text, "a test")
    return scenario, run(scenario, wanted.mode, 0, rules, trace=True)


def test_a_short_counterexample_happens_in_the_simulation_and_not_without_its_mutant() -> None:
    rules = {"mutant": "hw-ignores-min-isr"}
    cluster, path, wanted = found("elr-repaired", rules, ONE_FENCE)
    text = to_toml(cluster, path, wanted)
    assert (len(path), wanted.kind) == (3, "candidate-incomplete")
    assert "\n# 2. broker 1 appends r0\n[[script]]\nwhen = { step = " in text
    _, result = played(text, wanted, rules)
    assert not result.row["error"]
    assert [entry["detail"] for entry in result.warnings if entry["kind"] == wanted.kind] == [
        "broker 2 is in the ELR but lacks committed record 0 (offset 0)"
    ]
    scenario, result = played(text, wanted, {})
    assert (result.row["verdict"], result.row["expected"]) == ("ok", True)
    assert scenario.broken_by == {"elr-repaired": rules}


@pytest.mark.world
def test_the_forgotten_expansion_happens_in_the_simulation() -> None:
    cluster, path, wanted = found("elr-4.3", {}, ONE_FENCE)
    assert (len(path), wanted.kind) == (10, "quorum-not-superset")
    scenario, result = played(to_toml(cluster, path, wanted), wanted, {})
    assert scenario.expect["elr-4.3"].kinds == ("quorum-not-superset",)
    assert (result.row["verdict"], result.row["expected"]) == ("violation", True)
    (warning,) = [entry for entry in result.warnings if entry["kind"] == wanted.kind]
    assert warning["detail"] == "broker 1 leads and waits for [1, 2], while the persisted ISR is [1, 2, 3]"
    # Without the early warning's cause, it does not occur.
    repaired = run(scenario, mode("elr-repaired"), 0)
    assert wanted.kind not in [entry["kind"] for entry in repaired.warnings]


@pytest.mark.world
def test_a_broker_that_loses_power_starts_again_in_the_script() -> None:
    rules = {"mutant": "alter-partition-of-earlier-registration"}
    cluster, path, wanted = found("elr-repaired", rules, ONE_LOSS)
    scenario, result = played(to_toml(cluster, path, wanted), wanted, rules)
    assert [line.do for line in scenario.script if line.do in ("power-loss", "start")] == ["power-loss", "start"]
    assert wanted.kind in [entry["kind"] for entry in result.warnings]


def test_what_the_simulation_does_not_show_is_not_written() -> None:
    cluster, path, wanted = found("elr-repaired", {"mutant": "hw-ignores-min-isr"}, ONE_FENCE)
    with pytest.raises(NotReproducedError, match=r"in the simulation, its script shows .*candidate-incomplete"):
        to_toml(cluster, path, wanted._replace(kind="log-mismatch"))


@pytest.mark.parametrize(
    ("mutant", "bounds", "kinds", "reason"),
    [
        (
            "registration-of-another-request",
            KRaftBounds(stops=1),
            ("kill", "arrive"),
            "no response outlives the process",
        ),
        ("none", KRaftBounds(lags=1), ("lag",), "the other follower would lag, too"),
    ],
)
def test_an_event_without_a_counterpart_is_named(
    mutant: str, bounds: KRaftBounds, kinds: tuple[str, ...], reason: str
) -> None:
    rules = {"mutant": mutant}
    cluster = KRaftCluster(mode("elr-repaired").rules.override(rules), bounds)
    path: list[tuple[Action, int]] = []
    state = cluster.first()
    for kind in kinds:
        # The message that is sent last has the highest number.
        action, state = max(after for after in cluster.successors(state) if after[0][0] == kind)
        path.append((action, state))
    with pytest.raises(NotReproducedError, match=reason):
        to_toml(cluster, path, Wanted("log-mismatch", mode("elr-repaired"), rules, ""))
