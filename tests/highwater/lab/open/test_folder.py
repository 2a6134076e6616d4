"""A folder with several results, a scenario, a recorded run; and what is none of these."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from highwater.lab.open import results
from highwater.lab.open.site import Site
from scenarios.sweep import claim
from scenarios.sweep.folder import LocalFolder
from sim.errors import InputError
from tests.highwater.lab.open.served import plain, served

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

GENERATED = '<!doctype html>\n<html lang="en"><head><meta name="generator" content="Highwater {}">\n<title>{}</title>'


@pytest.fixture
def folder(tmp_path: Path, swept: Path, highwater: Callable[..., Call]) -> Path:
    """A folder with one result of each kind, and other files."""
    top = tmp_path / "store"
    shutil.copytree(swept, top / "deep" / "power")
    for what in ("hunt", "review", "audit"):
        (top / what).mkdir()
        page = GENERATED.format(what, f"About a {what}")
        (top / what / f"{what}.html").write_text(f"{page}<body>the {what}<script>alert(1)</script>")
    assert highwater("report", swept, "-o", top / "report.html", "--triage", 0).code == 0
    assert highwater("show", "kip101-scenario-1", "--mode", "hw", "-o", top / "film.html", "--budget", "1s").code == 0
    assert highwater("replay", "power", "--mode", "hw", "--seed", 0, "-o", top / "runs").code in (0, 1, 4)
    (top / "mine.html").write_text("<title>Highwater: mine</title>")
    (top / "run.json").mkdir()
    (top / "link.html").symlink_to(top / "report.html")
    (top / "elsewhere").symlink_to(swept)
    os.mkfifo(top / "pipe.html")
    return top


def test_a_folder_lists_what_the_program_wrote(folder: Path) -> None:
    found = [(result.what, result.name) for result in results.find(folder).values()]
    assert found == [
        ("audit", "audit/audit.html"),
        ("sweep", "deep/power"),
        ("hunt", "hunt/hunt.html"),
        ("report", "report.html"),
        ("review", "review/review.html"),
        ("film", "film.html"),
        ("recorded run", "runs/seeds/0-hw/plan.json"),
    ]
    with served(folder) as site:
        got = site.get()
        assert "7 results in " in plain(got)
        assert len(got.links) == 7
        assert "power, canary in " in plain(got) or "canary, power in " in plain(got)
        assert "About a review" in plain(got)
        for link in got.links:
            page = site.get(link)
            assert page.status == 200
            # The list is one link away; pages that were written as files are shown as they are.
            assert ("/?all=1" in page.links) == (
                link in [f"/{result.key}/" for result in results.find(folder).values() if result.path.suffix != ".html"]
            )


def test_no_script_of_a_page_runs_but_a_films(folder: Path) -> None:
    found = {result.what: result for result in results.find(folder).values()}
    with served(folder) as site:
        hunt, film = (site.get(f"/{found[what].key}/") for what in ("hunt", "film"))
    assert "<script>alert(1)" in hunt.text
    assert "script-src" not in hunt.headers["Content-Security-Policy"]
    assert hunt.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'; ")
    policy = film.headers["Content-Security-Policy"]
    assert policy.count("sha256-") == 2
    # The film itself names the same script and style.
    assert policy.split("; base-uri")[0] in film.text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<title>", '<meta HTTP-EQUIV="&#114;efresh" content="0;url=//example.org"><title>'),
        ("http-equiv=", "name="),
        ('http-equiv="Content-Security-Policy" content="', 'http-equiv="refresh" content="0;url=//example.org" x="'),
    ],
)
def test_a_film_that_leads_elsewhere_by_itself_is_none(folder: Path, before: str, after: str) -> None:
    film = folder / "film.html"
    film.write_text(film.read_text().replace(before, after, 1))
    found = {result.what: result for result in results.find(folder).values()}
    with served(folder) as site:
        policy = site.get(f"/{found['film'].key}/").headers["Content-Security-Policy"]
    assert policy.startswith("sandbox; ")
    assert "script-src" not in policy


def test_a_recorded_run_has_its_mode_and_seed(folder: Path) -> None:
    (run,) = (result for result in results.find(folder).values() if result.what == results.RUN_OF)
    with served(folder) as site:
        got = site.get(f"/{run.key}/")
        assert "power, seed 0" in plain(got)
        film = next(link for link in got.links if link.endswith("/film"))
        assert "mode hw, seed 0: " in site.get(f"/{run.key}/{film}").text
        assert site.get(f"/{run.key}/failing").status == 404
    with served(run.path) as site:
        assert "power, seed 0" in plain(site.get())


def test_a_scenario_has_its_modes(tmp_path: Path) -> None:
    with served("kip101-scenario-1") as site:
        got = site.get()
        assert "ticket0.10.2violates committed-loss" in plain(got)
        films = [link for link in got.links if link.endswith("/film")]
        assert len(films) > 5
        assert "kip101-scenario-1, mode hw, seed 0: " in site.get(site.home + films[0]).text
        told = plain(site.get(site.home + films[0].replace("film", "explanation")))
        assert "Story" in told
        assert "Prevented in newer modes: " in told
        assert site.get(f"{site.home}0-99-0/film").status == 404
        assert site.get(f"{site.home}1-0-0/film").status == 404
        assert site.get("/000000000001/").status == 404
    (tmp_path / "mine.toml").write_text("schema = 1\nname = 5\n")
    with pytest.raises(InputError):
        Site(str(tmp_path / "mine.toml"))


def test_a_random_scenario_has_seeds() -> None:
    with served("power") as site:
        assert [link for link in site.get().links if link.startswith("?seed")] == ["?seed=1"]
        got = site.get(f"{site.home}?seed=7")
        assert [link for link in got.links if link.startswith("?seed")] == ["?seed=6", "?seed=8"]
        assert all("-7/" in link for link in got.links if link.endswith("/film"))
        for seed in ("-1", "x", str(2**63)):
            assert site.get(f"{site.home}?seed={seed}").status == 404


def test_a_finding_has_its_ticket() -> None:
    with served("reassignment-back") as site:
        link = next(link for link in site.get().links if link.endswith("/ticket"))
        told = plain(site.get(site.home + link))
    assert "reassignment-back.sh" in told
    assert "KAFKA_HOME" in told


def test_a_folder_that_holds_nothing_is_refused(tmp_path: Path, highwater: Callable[..., Call]) -> None:
    (tmp_path / "run.json").write_text("{}")
    for word in (tmp_path, tmp_path / "none", "kip101-scenario-l", "http://localhost/"):
        call = highwater("open", word, "--no-browser")
        assert (call.code, call.out, call.err.count("\n")) == (2, "", 1)
    assert "did you mean" in call.err or "kip101" not in str(word)


def test_a_sweep_that_begins_is_waited_for(tmp_path: Path) -> None:
    own = claim.FolderClaim(LocalFolder(tmp_path))
    try:
        with served(tmp_path) as site:
            got = site.get()
            assert "A sweep begins here" in plain(got)
            assert '<meta http-equiv="refresh"' in got.text
    finally:
        own.end()


def test_few_entries_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in range(30):
        (tmp_path / f"{place:02}").mkdir()
        (tmp_path / f"{place:02}" / "hunt.html").write_text(GENERATED.format("hunt", json.dumps(place)))
    assert len(results.find(tmp_path)) == 30
    monkeypatch.setattr(results, "LISTED", 7)
    assert len(results.find(tmp_path)) == 7
    monkeypatch.setattr(results, "ENTRIES", 33)
    monkeypatch.setattr(results, "LISTED", 500)
    assert 0 < len(results.find(tmp_path)) < 7
