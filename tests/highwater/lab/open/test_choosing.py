"""Pages on which the next event is chosen, and what they lead to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from highwater.cli.main import main
from tests.highwater.lab.open.served import Served, plain, served
from tests.highwater.lab.open.test_hostile import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    with served("reassignments") as found:
        yield found


def run_of(site: Served) -> str:
    """The address of a run's pages: mode hw, seed 253."""
    return f"{site.home}0-5-253/"


def choice_of(site: Served, kind: str) -> str:
    links = site.get(f"{run_of(site)}choose?step=60").links
    return next(link for link in links if kind in link).partition("?with=")[2]


def test_a_film_leads_to_choices_and_they_to_films_of_two_runs(site: Served) -> None:
    film = site.get(f"{run_of(site)}film")
    assert 'id="choose"' in film.text
    choose = site.get(f"{run_of(site)}choose?step=60")
    assert choose.status == 200
    assert "script-src" not in choose.headers["Content-Security-Policy"]
    assert "Up to this step the run stays as it was" in plain(choose)
    for kind in ("message-loss", "message-hold", "kill", "power-loss", "pause", "cut"):
        got = site.get(f"{run_of(site)}film?with={choice_of(site, kind)}")
        assert got.status == 200
        assert "with your choice" in got.text
        assert "the original run" in got.text
        assert "on the runs differ" in got.text
        assert "The two runs differ before" not in got.text


def test_choices_follow_one_another(site: Served) -> None:
    first = choice_of(site, "pause")
    further = site.get(f"{run_of(site)}choose?step=120&with={first}")
    assert "Chosen before: At" in plain(further)
    link = next(link for link in further.links if "_cut" in link)
    assert site.get(run_of(site) + link).status == 200
    eight = "_".join([first] * 8)
    assert "At most 8 choices" in plain(site.get(f"{run_of(site)}choose?step=1&with={eight}"))


def test_plan_and_scenario_file_are_downloads_that_run(
    site: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    word = choice_of(site, "kill")
    film = site.get(f"{run_of(site)}film?with={word}").text
    assert "highwater run --plan reassignments-hw-253-chosen.json" in film
    for part, end in (("plan", ".json"), ("script", ".toml")):
        got = site.get(f"{run_of(site)}{part}?with={word}")
        assert got.status == 200
        assert got.headers["Content-Disposition"] == f'attachment; filename="reassignments-hw-253-chosen{end}"'
        assert got.headers["Content-Type"].startswith("text/plain")
        (tmp_path / f"chosen{end}").write_text(got.text, encoding="utf-8")
    assert main(["run", "--plan", str(tmp_path / "chosen.json")]) == 0
    assert "digest as recorded" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "chosen.toml"), "--mode", "hw", "--seed", "253"]) == 0


@pytest.mark.parametrize("text", [*HOSTILE, "kill.1.99.0.0", "message-copy.1.1.3.0", "kill.99999999999999.1.0.0"])
def test_hostile_words_are_refused_in_one_line(site: Served, text: str) -> None:
    word = quote(text.encode(errors="replace"))
    for part in ("film", "choose", "plan", "script"):
        got = site.ask(f"{run_of(site)}{part}?with={word}")
        assert got.status in (404, 422)
        assert "<script" not in got.text
        assert len(re.findall(r"<li>", got.text)) == 2  # The link back, and the problem.
    assert site.ask(f"{run_of(site)}choose?step={word}").status in (404, 422)


def test_what_is_not_there_is_refused(site: Served) -> None:
    for path, problem in (
        ("choose?step=0", "has steps 1 to"),
        ("choose?step=99999", "has steps 1 to"),
        ("plan", "nothing was chosen"),
        ("explanation?with=kill.1.1.0.0", "there is no such page"),
    ):
        got = site.get(run_of(site) + path)
        assert got.status in (404, 422)
        assert problem in plain(got)


def test_a_script_goes_on_from_a_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served("last-replica-standing") as scripted:
        run = f"{scripted.home}0-0-0/"
        assert 'id="choose"' in scripted.get(f"{run}film").text
        links = scripted.get(f"{run}choose?step=30").links
        word = next(link for link in links if "kill" in link).partition("?with=")[2]
        film = scripted.get(f"{run}film?with={word}").text
        assert "highwater run last-replica-standing-hw-0-chosen.toml --mode hw --seed 0" in film
        assert "The next line of the script waits for a step that never comes" in film
        assert "plan?with" not in film
        assert scripted.get(f"{run}plan?with={word}").status == 422
        got = scripted.get(f"{run}script?with={word}")
    (tmp_path / "chosen.toml").write_text(got.text, encoding="utf-8")
    assert main(["run", str(tmp_path / "chosen.toml"), "--mode", "hw", "--seed", "0"]) == 0
    assert "as expected" in capsys.readouterr().out
