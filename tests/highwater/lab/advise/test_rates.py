"""Rates of faults come from a file or from published ones, and are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from highwater.lab.advise.answers import Answers
from highwater.lab.advise.rates import ASKED, CAUSES, WEEKS_A_YEAR, contradictions, find, in_words, of_data
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

ANSWERS = Answers()
NEEDED = [name for name in CAUSES if name not in ASKED]


def data(changed: dict[str, Any] | None = None, **tables: Any) -> dict[str, Any]:
    """A valid file with some rates changed, or tables added."""
    return {"a_year": {**dict.fromkeys(NEEDED, 0.5), **(changed or {})}, **tables}


def test_a_file_names_each_cause_and_answers_give_the_rest() -> None:
    found = of_data(data({"machine_crashes": "dean-2008"}, batches_per_s=2, lasts_s={"pauses": 5}), ANSWERS)
    assert list(found.a_year) == list(CAUSES)
    assert found.a_year["machine_crashes"] == pytest.approx(0.5556, abs=1e-4)
    assert "J. Dean 2008" in found.sources["machine_crashes"]
    assert found.a_year["planned_restarts"] == ANSWERS.restarts * WEEKS_A_YEAR
    assert (found.lasts_s["pauses"], found.lasts_s["disk_losses"]) == (5, ANSWERS.return_s)
    assert found.batches_per_s == 2


def test_published_rates_are_named_and_others_left_out() -> None:
    rack = find("published", Answers(together="rack"))
    assert rack.a_year["rack_power_losses"] > 0
    assert rack.a_year["outages"] == 0
    assert rack.sources["outages"] == "excluded by together = rack"
    unpublished = [name for name in NEEDED if not CAUSES[name].sources]
    assert {rack.sources[name] for name in unpublished} == {"no rate is published: left out"}
    assert not any(rack.a_year[name] for name in unpublished)
    assert find("published", Answers(together="everything")).a_year["outages"] > 0


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (data({"machine_crashes": -1}), "a_year.machine_crashes = -1 is not valid: a number from 0 to 1,000,000 is"),
        (data({"machine_crashes": True}), "a_year.machine_crashes = True is not valid"),
        (data({"machine_crashes": "dean"}), "a number is needed; published rates: dean-2008, linkedin"),
        (
            data({"machine_crashes": "dean-2009"}),
            "machine_crashes = 'dean-2009' is not valid; did you mean 'dean-2008'?",
        ),
        (data({"pauses": "dean-2008"}), "a number is needed; none is published"),
        (data({"disk_loss": 1}), "unknown key a_year.disk_loss; did you mean 'disk_losses'?"),
        ({"a_year": {}}, "missing in a_year: process_crashes (of a broker), machine_crashes (of a broker), "),
        ({"rates": {}}, "unknown key 'rates'"),
        ({"a_year": 3}, "a_year is not valid: a table is needed"),
        (data(lasts_s={"moves": 3}), "lasts_s.moves has no effect: it is over at once"),
        (data(lasts_s={"pauses": 0}), "lasts_s.pauses = 0 is not valid: a whole number from 1 to 86400 is needed"),
        (data(batches_per_s=0), "batches_per_s = 0 is not valid: a number from 0.01 to 100 is needed"),
        (data({**dict.fromkeys(NEEDED, 0), "planned_restarts": 0, "moves": 0}), "every rate is 0"),
    ],
)
def test_bad_rates_are_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as refused:
        of_data(given, ANSWERS)
    assert problem in refused.value.problems[0]


def test_all_problems_of_a_file_are_told_and_no_word_of_it() -> None:
    given = data({"machine_crashes": "hunter2", "pauses": -1}, lasts_s={"pauses": "hunter3"}, batches_per_s="hunter4")
    del given["a_year"]["disk_losses"]
    with pytest.raises(InputError) as refused:
        of_data(given, ANSWERS)
    told = "; ".join(refused.value.problems)
    assert len(refused.value.problems) == 5
    assert "hunter" not in told
    assert "missing in a_year: disk_losses (of a broker): give events a year, or 0" in told


def test_a_misspelt_word_in_place_of_a_file() -> None:
    with pytest.raises(InputError, match="did you mean 'published'"):
        find("publish", ANSWERS)


@pytest.mark.parametrize(
    ("together", "changed", "said"),
    [
        ("nothing", {"outages": 0}, ["rack_power_losses: 0.5 a year in the losses a year"]),
        ("rack", {"rack_power_losses": 0, "outages": 0}, ["rack_power_losses: 0 a year in the losses a year"]),
        ("rack", {"outages": 0}, []),
    ],
)
def test_a_file_that_contradicts_an_answer_is_told(together: str, changed: dict[str, Any], said: list[str]) -> None:
    answers = Answers(together=together)
    found = contradictions(of_data(data(changed), answers), answers)
    assert [line.partition(",")[0] for line in found] == said
    assert not contradictions(find("published", answers), answers)


def test_causes_in_words() -> None:
    assert in_words({"moves": 1, "machine_crashes": 2, "pauses": 0}) == "1 move, 2 machine crashes"


@pytest.mark.parametrize(
    "text",
    ["[a_year]\nmachine_crashes = -1\n", "[a_year]\ndisc_losses = 1\n", "[a_year]\n", "a_year = nan\n", "[a_year"],
)
def test_a_bad_file_is_refused_with_exit_code_2(highwater: Callable[..., Call], tmp_path: Path, text: str) -> None:
    file = tmp_path / "rates.toml"
    file.write_text(text)
    called = highwater("advise", "-q", "--rates", file, "--seeds", 1)
    assert (called.code, called.out) == (2, "")
    assert all("rates.toml" in line for line in called.err.splitlines())
    assert str(file) in called.err


def test_incidents_need_rates(highwater: Callable[..., Call]) -> None:
    called = highwater("advise", "-q", "--incidents", 10)
    assert (called.code, called.out, called.err.count("\n")) == (2, "", 1)
