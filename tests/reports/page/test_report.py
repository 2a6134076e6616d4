"""The report of a sweep, read as a browser would; ``make test-browser`` opens it in one."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reports.page import plots
from reports.starts import PICTURE
from scenarios.sweep.store import Store
from tests.places import FIXTURES
from tests.reports.analysis.test_compare import LOSS, compared, run
from tests.reports.page.pages import Page

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Call


NO_TRIAGE = ("--triage", 0)


@pytest.fixture
def reported(highwater: Callable[..., Call], tmp_path: Path) -> Callable[..., Page]:
    """The page of a sweep."""

    def report(folder: Path, *words: object, code: int = 0) -> Page:
        call = highwater("report", folder, "-o", tmp_path / "report.html", *(words or NO_TRIAGE))
        assert call.code == code, call.err
        return Page((tmp_path / "report.html").read_text(encoding="utf-8"))

    return report


def test_a_report_is_whole_and_fetches_nothing(reported: Callable[..., Page], swept: Path) -> None:
    page = reported(swept)
    assert page.problems == []
    assert page.fetched == []
    assert "script" not in page.tags
    assert len(page.names) == len(set(page.names))
    assert {*page.links} <= {*page.names}
    assert {"part-0", "about-0", "reached", "reproduce", "legend"} <= {*page.links}


def test_a_report_tells_the_answer_and_how_to_reproduce_it(reported: Callable[..., Page], swept: Path) -> None:
    text = reported(swept).text
    assert "What do hw, " in text
    assert "On the same 20 seeds of power, hw " in text
    assert text.index("Inside the promise") < text.index("Outside the promise")
    assert f"highwater compare {swept}" in text
    assert "Kinds of fault that took effect in a run, by mode" in text


def test_a_report_of_buckets_draws_the_smallest(reported: Callable[..., Page], swept: Path, tmp_path: Path) -> None:
    page = reported(swept, "--triage", 3)
    assert page.problems == []
    assert {*page.links} <= {*page.names}
    assert "run-0" in page.names
    assert "looked at " in page.text
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    part = text[text.index('<h2 id="causes">') :].partition("<h2 ")[2].partition("<h2 ")[0]
    # First the kind, then the cause, its story, and the folded picture.
    places = [
        part.index(one) for one in ("<h3>", "<h4>", ">what happened</th>", "<summary>Picture of this run</summary>")
    ]
    assert places == sorted(places)
    assert re.search(r'<th scope="row">\d+\.\d{3} s</th><td>[A-Z]', part)
    assert re.search(r"</h4>; (all of these|\d of \d)", part)
    assert "highwater explain " in part
    assert "%" not in Page(part).text


def test_tables_and_pictures_are_named_for_those_who_hear_them(
    reported: Callable[..., Page], swept: Path, tmp_path: Path
) -> None:
    reported(swept)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    tables = re.findall(r"<table>(.*?)</table>", text, re.DOTALL)
    assert tables
    assert [table for table in tables if not re.match(r"<caption><span>[^<]+</span></caption>", table)] == []
    assert re.findall(r"<th(?=[ >])(?![^>]* scope=)[^>]*>", text) == []
    assert re.findall(r'<svg (?![^>]*aria-label="[^"]+")[^>]*class="plot"', text) == []
    assert [
        place for place in re.findall(r'<div class="wide"[^>]*>', text) if 'tabindex="0" role="region"' not in place
    ] == []


def test_plots_of_rates_have_one_axis_and_losses_are_apart(
    reported: Callable[..., Page], swept: Path, tmp_path: Path
) -> None:
    said = reported(swept).text
    assert said.index("Lost records, inside the promise") < said.index("Lost records, outside the promise")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    plots = [one for one in re.findall(r'<svg [^>]*class="plot".*?</figure>', text, re.DOTALL) if "logarithmic" in one]
    assert len(plots) >= 2
    assert len({tuple(re.findall(r'class="soft[^"]*">([^<]*) %<', plot)) for plot in plots}) == 1


@pytest.mark.usefixtures("sweeps_here")
def test_few_runs_have_counts_and_no_shares(
    highwater: Callable[..., Call], reported: Callable[..., Page], tmp_path: Path
) -> None:
    sweep = ["power", "--modes", "elr,hw", "--seeds", "30..36", "--local", 1, "--output", tmp_path / "few", "-q"]
    assert highwater("sweep", *sweep).code in (0, 1, 3)
    text = reported(tmp_path / "few").text
    assert " %" not in text.partition("How to read it")[2].partition("How to read it")[0].replace("95 %", "")
    assert re.search(r"runs\s*hw\s*elr\s*all that count\s*6\s*6", text)


@pytest.mark.parametrize("store", sorted(FIXTURES.glob("store-v*")), ids=lambda store: store.name)
def test_older_stores_are_reported_as_far_as_they_tell(store: Path, reported: Callable[..., Page]) -> None:
    page = reported(store)
    assert page.problems == []
    assert ("guarantee map" in page.text, "What was never reached" in page.text) == (True, True)


def test_what_names_hold_is_shown_and_never_obeyed(highwater: Callable[..., Call], swept: Path, tmp_path: Path) -> None:
    evil = tmp_path / "<script>alert(1)<b>\x1b[2J"
    evil.mkdir()
    for part in ("run.json", "summary.json", "results", "violations.jsonl"):
        (evil / part).symlink_to(swept / part)
    assert highwater("report", evil, "-o", tmp_path / "r.html", *NO_TRIAGE).code == 0
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "script" not in page.tags
    assert "<script>alert(1)" in page.text
    assert "\x1b" not in text


@pytest.mark.usefixtures("sweeps_here")
def test_a_grid_has_maps_of_its_settings(
    highwater: Callable[..., Call], reported: Callable[..., Page], tmp_path: Path
) -> None:
    sweep = ["power", "--modes", "hw", "--seeds", "30..36", "--set", "min.insync.replicas=1,2", "--set", "acks=1,all"]
    assert highwater("sweep", *sweep, "--local", 1, "--output", tmp_path / "grid", "-q").code in (0, 1, 3)
    page = reported(tmp_path / "grid")
    assert "hw: min.insync.replicas, by acks" in page.text
    assert "power, min.insync.replicas = 1, acks = all: rates" in page.text


@pytest.mark.usefixtures("sweeps_here")
def test_the_sweep_that_it_names_is_the_one_that_was_done(
    highwater: Callable[..., Call], reported: Callable[..., Page], tmp_path: Path
) -> None:
    words = [
        "sweep",
        "power",
        "--modes",
        "hw",
        "--rule",
        "isr_join=leader-epoch-start",
        "--set",
        "acks=all",
        "--strict",
    ]
    first, second = tmp_path / "the first", tmp_path / "second"
    for seeds in ("30..33", "40..42"):
        assert highwater(*words, "--seeds", seeds, "--local", 1, "--output", first, "-q").code in (0, 1, 3)
    told = re.findall(rf"highwater (sweep .*?--output {re.escape(shlex.quote(str(first)))})", reported(first).text)
    assert len(told) == 2
    for line in told:
        again = shlex.split(line.replace(str(first), str(second)))
        assert highwater(*again, "--local", 1, "-q").code in (0, 1, 3)
    assert Store(first).rows() == Store(second).rows()


def test_a_plot_draws_what_was_not_seen_as_a_bound() -> None:
    (power,) = compared(*(run("hw", seed, LOSS if seed < 3 else "") for seed in range(50)), run("elr", 0))
    svg = plots.alone(plots.rates(power.groups, [LOSS], inside=True))
    assert PICTURE.search(svg.encode())
    assert "var(" not in svg
    assert "3 of 50" in svg
    assert "0 of 1" in svg
    assert Page(svg).problems == []


def test_points_in_one_place_share_a_label() -> None:
    rates = [(30.0, (2, 100, 0.01, 0.05)), (30.5, (2, 100, 0.01, 0.05)), (9.0, (0, 100, 0.0, 0.03))]
    svg = plots.trade(rates, inside=False, most=(30.5, 0.05))
    assert Page(svg).problems == []
    assert re.findall(r'<text class="kind[^"]*"[^>]*>([^<]*)<', svg) == ["1, 2", "3"]
    assert re.findall(r'class="soft[^"]*">([^<]*)<', svg) == [
        "0",
        "10",
        "20",
        "30",
        "40",
        "mean time without a leader in a run, s",
    ]


@pytest.mark.parametrize("command", ["report", "triage"])
def test_what_is_no_sweep_is_refused_in_one_line(
    highwater: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    call = highwater(command, "empty")
    assert (call.code, call.out, call.err.count("\n")) == (2, "", 1)
    assert "is empty the folder of a sweep?" in call.err


def test_a_file_that_cannot_be_written_is_refused_first(highwater: Callable[..., Call], swept: Path) -> None:
    call = highwater("report", swept, "-o", swept / "nowhere" / "report.html")
    assert (call.code, call.err.count("\n")) == (2, 1)


def test_processes_are_refused_where_nothing_runs_in_them(highwater: Callable[..., Call], swept: Path) -> None:
    call = highwater("report", swept, *NO_TRIAGE, "--local", 2)
    assert (call.code, call.err) == (2, "highwater: --local needs --triage: nothing else uses processes\n")


def test_a_sweep_that_is_not_whole_is_inconclusive(highwater: Callable[..., Call], swept: Path, tmp_path: Path) -> None:
    run = json.loads((swept / "run.json").read_text())
    for part in ("summary.json", "results", "violations.jsonl"):
        (tmp_path / part).symlink_to(swept / part)
    (tmp_path / "run.json").write_text(json.dumps({**run, "seeds": [[0, 30]]}))
    call = highwater("report", tmp_path, "-o", tmp_path / "r.html", *NO_TRIAGE)
    assert (call.code, "is not complete" in call.err) == (3, True)
    assert "is not complete" in (tmp_path / "r.html").read_text(encoding="utf-8")
