from __future__ import annotations

from dataclasses import replace

import pytest

from faults.plan import Plan
from highwater import values
from scenarios.format import catalogue, selection
from scenarios.format.scenario import Recorded
from sim.config import NEVER
from sim.errors import InputError
from tests import named


@pytest.mark.parametrize(
    ("text", "seed"), [("0", 0), ("18446", 18446), ("0x1F", 31), ("007", 7), (f"{2**63 - 1}", 2**63 - 1)]
)
def test_seeds_are_decimal_or_hexadecimal(text: str, seed: int) -> None:
    assert values.seed(text) == seed


@pytest.mark.parametrize("text", ["", "-1", "1_000", "1.5", "0x", "abc", str(2**63), "0b1", " 1"])
def test_other_seeds_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="seed "):
        values.seed(text)


def test_a_range_leaves_its_end_out() -> None:
    assert values.seed_range("0x10..20") == range(16, 20)


def test_a_number_is_a_number_of_seeds() -> None:
    assert values.seed_range("5") == range(5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("five", "A..B"), ("5..5", "empty"), ("9..2", "empty"), ("..5", "seed ''"), ("0", "empty"), ("1..2..3", "seed")],
)
def test_bad_ranges_are_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        values.seed_range(text)


def test_settings_are_converted() -> None:
    found = selection.settings(["acks=-1", "log.flush.interval.messages=never", "unclean.leader.election.enable=TRUE"])
    assert found == {
        "acks": "all",
        "log.flush.interval.messages": NEVER,
        "unclean.leader.election.enable": True,
    }


def test_all_bad_settings_are_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        selection.settings(["acks", "min.insync.replica=2", "min.insync.replicas=zero", "acks=1"])
    form, name, value = caught.value.problems
    assert "'acks' is not of the form KEY=VALUE" in form
    assert "did you mean 'min.insync.replicas'?" in name
    assert "'zero'" in value


def test_setting_that_is_set_is_not_drawn() -> None:
    power = selection.scenario("power", {"min.insync.replicas": 2, "unclean.leader.election.enable": True})
    assert power.config["min.insync.replicas"] == 2
    drawn = catalogue.load("power").draw_config
    assert "min.insync.replicas" in drawn
    assert power.draw_config == {key: values for key, values in drawn.items() if key != "min.insync.replicas"}
    assert power.overrides == ("min.insync.replicas=2", "unclean.leader.election.enable=true")
    assert (power.name, power.source) == ("power", "power")


def test_scenario_without_settings_is_as_it_is() -> None:
    assert selection.scenario("power", {}).scenario_hash() == catalogue.load("power").scenario_hash()


def test_more_replicas_than_brokers_are_refused() -> None:
    with pytest.raises(InputError, match="power has 3 brokers"):
        selection.scenario("power", {"default.replication.factor": 4})


WAIT, LAG = "replica.fetch.wait.max.ms", "replica.lag.time.max.ms"


def test_settings_that_no_kafka_would_start_with_are_refused() -> None:
    with pytest.raises(InputError, match=r"40000 with replica.lag.time.max.ms = 30000: Kafka would not start"):
        selection.scenario("power", {WAIT: 40_000, "replica.socket.timeout.ms": 40_000})
    with pytest.raises(InputError, match=r"20000 with replica.lag.time.max.ms = 10000 \(drawn\)"):
        selection.scenario("sessions", {WAIT: 20_000, "replica.socket.timeout.ms": 20_000})
    assert selection.scenario("sessions", {WAIT: 10_000}).config[WAIT] == 10_000


def test_a_key_that_a_grid_sets_is_looked_at_with_its_values() -> None:
    fixed = {WAIT: 20_000, "replica.socket.timeout.ms": 20_000}
    found = selection.scenario("sessions", fixed, later=(LAG,))
    selection.check_settings(found, {LAG: 20_000})
    with pytest.raises(InputError, match=r"20000 with replica.lag.time.max.ms = 19999: Kafka"):
        selection.check_settings(found, {LAG: 19_999})


def test_only_what_is_set_now_is_looked_at() -> None:
    """A run that an earlier version recorded can still be replayed, and its other settings be changed."""
    odd = replace(catalogue.load("power"), config={WAIT: 40_000}, draw_config={}, recorded=Recorded(Plan()))
    selection.check_settings(odd, {"acks": "1"})
    with pytest.raises(InputError, match="Kafka would not start"):
        selection.check_settings(odd, {LAG: 39_000})


def test_modes_default_to_those_expected() -> None:
    power = catalogue.load("power")
    assert [mode.name for mode in selection.modes(power)] == list(power.expect)
    assert selection.modes(power, ["kip101", "kip101"]) == named.modes("kip101")


def test_unknown_modes_get_a_hint() -> None:
    with pytest.raises(InputError, match="did you mean 'kip101'"):
        selection.modes(catalogue.load("power"), ["kip10"])


@pytest.mark.parametrize(("names", "everyone"), [(("kip320", "kraft"), False), ((), True)])
def test_a_cluster_has_one_control_plane(names: tuple[str, ...], *, everyone: bool) -> None:
    scenario = catalogue.load("mixed-versions")
    with pytest.raises(InputError, match=r"mixed-versions does not run in kraft.*: its broker 2 is in mode hw"):
        selection.modes(scenario, names, everyone=everyone)
    with pytest.raises(InputError, match=r"does not run in hw: its broker 1 is in mode kraft-3\.5, under KRaft"):
        selection.modes(replace(scenario, broker_modes={1: "kraft-3.5"}), ("hw", "elr"))
    recorded = Recorded(Plan(), older={3: "kip101"})
    with pytest.raises(InputError, match="broker 3 is in mode kip101"):
        selection.modes(replace(scenario, broker_modes={}, recorded=recorded), ("kraft",))
    assert selection.modes(scenario, ("kip101", "kip320-2.1")) == named.modes("kip101", "kip320-2.1")
