from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from highwater.lab.explore.kraft import scripting

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.conftest import Call

SHORT = ("explore", "--mode", "elr-repaired", "--strict", "--losses", "0", "--rule", "mutant=hw-ignores-min-isr")
NO_FAULTS = ("--losses", "0", "--fences", "0")


def test_all_states_without_a_violation(highwater: Callable[..., Call]) -> None:
    call = highwater("explore", "--mode", "elr-repaired", *NO_FAULTS)
    assert call.code == 0
    assert "no violation in any order of events within the bounds" in call.out


def test_a_mutant_is_found_and_its_events_are_printed(highwater: Callable[..., Call]) -> None:
    call = highwater(*SHORT)
    assert call.code == 1
    assert "candidate-incomplete after 3 events" in call.out
    assert "broker 1 appends r0" in call.out
    assert "mutant hw-ignores-min-isr: its place was executed, and decided otherwise" in call.out
    data = highwater(*SHORT, "--json").json
    assert (data["violates"], len(data["paths"]["candidate-incomplete"])) == (True, 3)
    assert data["mutant"] == {"took": True, "differed": True}


def test_a_limit_is_inconclusive(highwater: Callable[..., Call]) -> None:
    call = highwater("explore", *NO_FAULTS, "--most-states", "10")
    assert (call.code, call.out.splitlines()[-1]) == (3, "no violation up to the limit")


def test_a_mode_of_zookeeper_is_explored(highwater: Callable[..., Call]) -> None:
    call = highwater("explore", "--mode", "hw", "--stops", "1")
    assert call.code == 1
    assert "divergence after" in call.out


def test_an_option_of_the_other_control_plane_is_refused(highwater: Callable[..., Call]) -> None:
    call = highwater("explore", "--mode", "kip320", "--fences", "1")
    assert (call.code, call.out) == (2, "")
    assert "--fences has no effect in kip320, a mode with ZooKeeper" in call.err


@pytest.mark.world
def test_random_walks_find_a_mutant(highwater: Callable[..., Call]) -> None:
    words = ("explore", "--mode", "elr-repaired", "--strict", "--isr", "3", "--rule", "mutant=hw-ignores-min-isr")
    call = highwater(*words, "--walks", "1000", "--seed", "3")
    assert call.code == 1
    assert "broker 1 appends r0" in call.out
    assert "random walks," in call.out
    data = highwater(*words, "--walks", "1000", "--seed", "3", "--json").json
    assert data["violates"]
    assert data["walks"] >= 1


def test_random_walks_that_find_nothing_are_inconclusive(highwater: Callable[..., Call]) -> None:
    call = highwater("explore", "--mode", "elr-repaired", "--walks", "10", "--walk-events", "5")
    assert (call.code, call.out.splitlines()[-1]) == (3, "no violation in these random walks")
    assert call.out.splitlines()[0].startswith("10 random walks, ")


def test_an_option_of_walks_has_no_effect_on_a_search(highwater: Callable[..., Call]) -> None:
    call = highwater("explore", "--seed", "1")
    assert (call.code, call.out) == (2, "")
    assert "--seed has no effect without --walks" in call.err


def test_what_is_found_is_written_as_a_scenario_that_run_plays(highwater: Callable[..., Call], tmp_path: Path) -> None:
    file = tmp_path / "found.toml"
    call = highwater(*SHORT, "--output", file)
    chosen = ("--mode", "elr-repaired", "--rule", "mutant=hw-ignores-min-isr")
    assert call.code == 1
    assert f"candidate-incomplete occurs in: highwater run {file} {' '.join(chosen)} --strict" in call.err
    run = highwater("run", file, *chosen, "--strict", "--json").json["runs"][0]
    assert "candidate-incomplete" in [entry["kind"] for entry in run["violations"]]
    assert highwater("run", file, "--strict").code == 0
    text = file.read_text()
    assert f"Found by highwater explore {' '.join(chosen)} --strict --losses 0" in text
    highwater(*SHORT, "--output", file)
    assert file.read_text() == text


def test_a_scenario_that_shows_something_else_is_not_written(
    highwater: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise scripting.NotReproducedError("the reason")

    monkeypatch.setattr(scripting, "to_toml", refuse)
    file = tmp_path / "found.toml"
    call = highwater(*SHORT, "--output", file)
    assert (call.code, file.exists()) == (1, False)
    assert f"{file} was not written: the reason" in call.err
    nothing = highwater("explore", *NO_FAULTS, "--output", file)
    assert (nothing.code, file.exists()) == (0, False)
    assert f"{file} was not written: nothing was found" in nothing.err


def test_only_counterexamples_in_kraft_and_own_files_are_written(
    highwater: Callable[..., Call], tmp_path: Path
) -> None:
    call = highwater("explore", "--mode", "hw", "--output", tmp_path / "found.toml")
    assert (call.code, call.out) == (2, "")
    assert "--output has no effect in hw, a mode with ZooKeeper" in call.err
    other = tmp_path / "other.toml"
    other.write_text("mine")
    assert highwater(*SHORT, "--output", other).code == 2
    assert other.read_text() == "mine"
