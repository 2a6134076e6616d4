"""The pages of a sweep: rates, failing runs, and what leads from them."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from highwater.lab.open import open_sweep, pages
from reports.starts import FILM, REPORT
from scenarios.sweep.driver import run_sweep
from tests import named
from tests.highwater.lab.open.served import plain, served
from tests.reports.page.pages import Page
from tests.scenarios.sweep.here import Here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scenarios.format.scenario import Scenario
    from tests.conftest import Call
    from tests.highwater.lab.open.served import Served


@pytest.fixture(scope="module")
def site(swept: Path) -> Iterator[Served]:
    with served(swept) as found:
        yield found


def rows(text: str) -> list[list[str]]:
    """The rows of the table of runs: seed, mode, and so on."""
    table = re.findall(r"<table>.*?</table>", text, re.DOTALL)[-1]
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]
    return [[re.sub(r"<[^>]*>", "", cell) for cell in row] for row in cells[1:]]


def test_the_first_page_is_that_of_the_sweep(site: Served) -> None:
    got = site.get()
    page = Page(got.text)
    assert (page.problems, page.tags.count("script")) == ([], 0)
    assert {link for link in page.links if link} <= {*page.names}
    said = plain(got)
    assert "On 20 runs of power, hw " in said
    assert "Inside the promise" in said
    assert "95 %" in said
    assert {"failing", "causes", "report"} <= {*got.links}
    assert 'http-equiv="refresh"' not in got.text


def test_each_number_leads_to_so_many_runs(site: Served) -> None:
    got = site.get()
    found = re.findall(r'<a href="(failing\?kind=[^"]*&amp;mode=[^"]*)">([\d,]+)</a>', got.text)
    assert found
    for link, count in found:
        page = site.get(site.home + link.replace("&amp;", "&"))
        assert f" of {count} failing run" in plain(page)


def test_failing_runs_are_50_a_page(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pages.ON_PAGE == 50
    monkeypatch.setattr(pages, "ON_PAGE", 7)
    seen: list[list[str]] = []
    link: str | None = "failing"
    while link is not None:
        got = site.get(site.home + link)
        assert len(rows(got.text)) <= 7
        seen += rows(got.text)
        link = next(
            (target for target, text in re.findall(r'<a href="([^"]*)">(\w+)</a>', got.text) if text == "next"), None
        )
        link = link and link.replace("&amp;", "&")
    assert f"of {len(seen)} failing runs" in plain(site.get(f"{site.home}failing"))
    assert len({tuple(row) for row in seen}) == len(seen) > 7
    assert [int(row[0]) for row in seen] == sorted(int(row[0]) for row in seen)
    for page in ("0", "-1", "x", "1" * 30, "999"):
        assert site.get(f"{site.home}failing?page={page}").status == 404


def test_failing_runs_are_those_of_the_mode_and_kind(site: Served) -> None:
    got = site.get(f"{site.home}failing?mode=hw&kind=committed-loss")
    found = rows(got.text)
    assert found
    assert {row[1] for row in found} == {"hw"}
    assert all("committed-loss" in f"{row[-2]} {row[-1]}" for row in found)
    assert site.get(f"{site.home}failing?mode=none").status == 404
    assert site.get(f"{site.home}failing?kind=none").status == 404


def test_a_row_leads_to_film_explanation_and_ticket(site: Served) -> None:
    got = site.get(f"{site.home}failing?mode=hw&kind=committed-loss")
    film, why, ticket, *_ = (link for link in got.links if re.match(r"\d+-\d+-\d+/", link))
    assert [link.rpartition("/")[2] for link in (film, why, ticket)] == ["film", "explanation", "ticket"]
    seed = film.partition("/")[0].rpartition("-")[2]
    found = site.get(site.home + film)
    assert found.status == 200
    assert FILM.search(found.text.encode())
    assert "script-src 'sha256-" in found.headers["Content-Security-Policy"]
    assert f"mode hw, seed {seed}: " in found.text
    told = plain(site.get(site.home + ticket))
    assert f"mode hw, seed {seed}" in told
    assert "ticket" in told


@pytest.mark.world
def test_an_explanation_is_that_of_explain(site: Served) -> None:
    got = site.get(f"{site.home}failing?mode=hw&kind=committed-loss")
    link = next(link for link in got.links if link.endswith("/explanation"))
    told = plain(site.get(site.home + link))
    for part in (
        "Story",
        "Necessary",
        "Point of no return",
        "What would have prevented it",
        "highwater explain power ",
    ):
        assert part in told


def test_the_report_is_that_of_report(site: Served) -> None:
    got = site.get(f"{site.home}report")
    assert REPORT.search(got.text.encode())
    assert "Modes in pairs" in got.text
    (task,) = [task for task in site.jobs.tasks if getattr(task, "what", "") == "report"]
    assert task.what == "report"


@pytest.mark.world
def test_causes_are_those_of_triage(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.evidence.triage.LIMIT_S", 2)
    told = plain(site.get(f"{site.home}causes"))
    assert "Failures and their causes" in told
    assert "looked at" in told


@pytest.mark.parametrize(
    "path",
    [
        *(
            "0-0-999999/film",
            "99-0-1/film",
            "0-99-1/film",
            "0-0-1/run",
            "0-0-1/",
            "0-0--1/film",
            "failing/",
            "run.json",
        ),
        *("..", "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "..%2f..%2fetc%2fpasswd", "results/", "//etc/passwd"),
        *("0-0-1/film/../../../run.json", "0-0-99999999999999999999/film", "\\..\\run.json"),
    ],
)
def test_an_address_names_no_path(site: Served, path: str) -> None:
    got = site.ask(f"{site.home}{path}")
    assert got.status in (404, 422)
    assert "schema_version" not in got.text
    assert "root:" not in got.text


def test_a_growing_sweep_is_followed(tmp_path: Path, power: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_sweep, "FRESH_S", 0.0)
    sweep = named.sweep((power,), {"power": ("hw", "elr")}, 0, 30)
    seen: list[str] = []
    with_rows: list[int] = []

    def look(wave: int) -> None:
        if not wave:
            return
        got = growing.get()
        assert '<meta http-equiv="refresh" content="5">' in got.text
        seen.append(plain(got))
        with_rows.append(int(re.search(r"(\d+) of 60 runs are done", seen[-1])[1]))  # type: ignore[index]

    first = tmp_path / "store"
    run_sweep(replace(sweep, end_seed=1), first, Here())
    with served(first) as growing:
        run_sweep(sweep, first, Here(look), wave_units=5)
        last = growing.get()
    assert with_rows == sorted({*with_rows})
    assert len(with_rows) > 2
    assert all("This sweep is running: " in said for said in seen)
    assert "runs/s" in seen[-1]
    assert "left. The page follows it." in seen[-1]
    assert "failing runs with the highest seeds so far" in seen[-1]
    assert "is running" not in plain(last)
    assert 'http-equiv="refresh"' not in last.text


def test_an_interrupted_sweep_says_so(tmp_path: Path, power: Scenario) -> None:
    class StopError(Exception):
        pass

    def stop(wave: int) -> None:
        if wave == 2:
            raise StopError

    with pytest.raises(StopError):
        run_sweep(named.sweep((power,), {"power": ("hw",)}, 0, 30), tmp_path / "store", Here(stop), wave_units=5)
    with served(tmp_path / "store") as site:
        got = site.get()
    assert "of 30 runs are done. The same sweep command resumes." in plain(got)
    assert 'http-equiv="refresh"' not in got.text


def test_a_damaged_wave_is_named_and_does_not_count(tmp_path: Path, swept: Path) -> None:
    shutil.copytree(swept, tmp_path / "torn")
    part = next((tmp_path / "torn").glob("results/*/part-*.parquet"))
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with served(tmp_path / "torn") as site:
        said = plain(site.get())
    assert "the wave does not count" in said


def test_a_sweep_that_is_removed_is_no_result_any_more(tmp_path: Path, swept: Path) -> None:
    shutil.copytree(swept, tmp_path / "store")
    with served(tmp_path / "store") as site:
        home = site.home
        shutil.rmtree(tmp_path / "store")
        assert site.get(home).status == 404
        assert plain(site.get()).endswith("0 results in " + str(tmp_path / "store") + ".")


def test_a_report_has_films_beside_it(highwater: Callable[..., Call], swept: Path, tmp_path: Path) -> None:
    call = highwater("report", swept, "-o", tmp_path / "a#b.html", "--triage", 0, "--films", 2)
    assert call.code == 0
    assert "with 2 films beside it" in call.out
    text = (tmp_path / "a#b.html").read_text(encoding="utf-8")
    links = re.findall(r'href="(\./[^"]*)"', text)
    assert links == ["./a%23b-film-1.html", "./a%23b-film-2.html"]
    for place in (1, 2):
        assert FILM.search((tmp_path / f"a#b-film-{place}.html").read_bytes())
    (tmp_path / "mine-film-1.html").write_text("mine")
    call = highwater("report", swept, "-o", tmp_path / "mine.html", "--triage", 0, "--films", 2)
    assert call.code == 2
    assert (tmp_path / "mine-film-1.html").read_text() == "mine"
