"""The library: what its functions give, and how that shows itself."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest

import highwater as hw
from highwater.lab.review import conformance, page
from highwater.lab.review import review as reviewing
from scenarios.shrinking.necessity import TRIES
from scenarios.sweep import local
from tests.places import ROOT
from tests.reports.page.pages import Page
from tests.scenarios.sweep.here import Here

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> hw.Swept:
    folder = tmp_path_factory.mktemp("library") / "out"
    return hw.sweep("power", range(36, 46), folder, modes=["hw", "kip101"], settings={"acks": ["1", "all"]})


def test_a_run_is_that_of_the_command_line() -> None:
    run = hw.run("canary", "hw")
    assert (run.row["verdict"], run.violations[0]["kind"]) == ("violation", "committed-loss")
    assert {step["step"] for step in run.trace} >= {"append", "ack"}
    page = Page(run._repr_html_())
    assert (page.problems, "canary, mode hw, seed 0: acknowledged record LOST" in page.text) == ([], True)


def test_rules_and_settings_are_laid_over() -> None:
    assert hw.run("canary", "hw", rules={"follower_truncation": "leader-epoch"}).row["verdict"] == "ok"
    run = hw.run("power", "hw", 3, settings={"log.flush.interval.messages": 1, "unclean.leader.election.enable": False})
    assert run.result.settings["log.flush.interval.messages"] == 1


def test_a_sweep_has_rows_and_comparisons(swept: hw.Swept) -> None:
    table = hw.rows(swept.folder, ["mode", "seed", "acks", "verdict"])
    assert (table.num_rows, table.column_names) == (40, ["mode", "seed", "acks", "verdict"])
    found = hw.compare(swept.folder, kind="any")
    assert [part.fixed for part in found.parts] == [{"acks": "1"}, {"acks": "all"}]
    assert found.said[1].startswith("On the same 10 seeds of power with acks = all, hw violates something in ")
    assert [(rate["mode"], rate["kind"], rate["n"]) for rate in found.rates()[:2]] == [
        ("hw", "any", 10),
        ("kip101", "any", 10),
    ]
    for shown in (swept, found):
        assert Page(shown._repr_html_()).problems == []


@pytest.mark.world
@pytest.mark.usefixtures("few_continuations")
def test_a_failure_is_shrunk_explained_and_drawn(tmp_path: Path) -> None:
    words: dict[str, Any] = {"modes": "kip320", "settings": {"acks": ["1", "all"]}}
    swept = hw.sweep("sessions", range(50_090, 50_091), tmp_path / "out", processes=1, **words)
    point = {"acks": "all"}
    told = hw.explain(swept.folder, "kip320", 50_090, settings=point, kind="committed-loss", budget_s=3_600)
    assert told.shrunk.found.symptom.kind == "committed-loss"
    assert told.shrunk.found.after.batches <= told.shrunk.found.before.batches
    assert any("committed-loss" in sentence.text for sentence in told.story)
    assert told.necessary.tries == TRIES
    assert len(told.necessary.faults) == told.shrunk.found.after.faults
    assert told.curve.shares[0].violating < told.curve.shares[-1].violating == told.curve.shares[-1].runs
    page = Page(told._repr_html_())
    assert (page.problems, told.shrunk.said in page.text) == ([], True)
    assert f"with other latencies {told.necessary.stays} of {TRIES} runs fail in the same way" in page.text
    assert "continuations end in committed-loss" in page.text
    drawn = hw.draw(told)
    assert drawn._repr_svg_().startswith("<svg ")
    assert Page(drawn.svg).fetched == []


def test_a_sweep_is_one_line_of_text(swept: hw.Swept) -> None:
    assert repr(swept) == f"Swept({swept.folder!r}: 40 runs in hw, kip101; {_violating(swept)} violate)"


def _violating(swept: hw.Swept) -> int:
    return sum(verdict == "violation" for verdict in hw.rows(swept.folder)["verdict"].to_pylist())


def test_names_are_escaped(swept: hw.Swept) -> None:
    summary = {"results": [{**swept.summary["results"][0], "scenario": "<script>x</script>\x1b[2J"}]}
    page = Page(hw.Swept("out", summary)._repr_html_())
    assert "script" not in page.tags
    assert "\x1b" not in page.text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("power", "kip102", 1), "kip102"),
        (("power", "hw"), "choose one with seed N"),
        (("nothing-of-that-name", "hw", 1), "nothing-of-that-name"),
    ],
)
def test_bad_input_is_an_error_that_names_it(words: tuple[str, ...], told: str) -> None:
    with pytest.raises(hw.InputError, match=told):
        hw.run(*words)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scenarios", "changes", "told"),
    [
        ([], {}, "a scenario is missing"),
        ("canary", {"seeds": range(0, 10, 2)}, "every seed"),
        ("canary", {"seeds": "0..9999999999999"}, "at most"),
        ("canary", {"processes": 0}, "processes = 0"),
        ("canary", {"modes": "hw,kip102"}, "unknown mode 'kip102'"),
        (["canary", "canary.toml"], {}, "two scenarios are called 'canary'"),
    ],
)
def test_a_sweep_refuses_what_the_command_line_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenarios: str | list[str], changes: dict[str, Any], told: str
) -> None:
    monkeypatch.chdir(ROOT / "scenarios" / "files")
    words: dict[str, Any] = {"seeds": "0..5", "modes": "hw", **changes}
    with pytest.raises(hw.InputError, match=told):
        hw.sweep(scenarios, output=tmp_path / "out", **words)
    assert not (tmp_path / "out").exists()


def test_an_interrupt_of_a_sweep_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_self: object, _folder: object, poll: Callable[[], None]) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        poll()
        return 1

    monkeypatch.setattr("scenarios.sweep.local.LocalBackend.start", interrupt)
    with pytest.raises(KeyboardInterrupt, match="the same command begins"):
        hw.sweep("canary", "0..5", tmp_path / "out")


def test_what_a_sweep_does_not_hold_is_refused(swept: hw.Swept) -> None:
    with pytest.raises(hw.InputError, match="unknown column 'digst'; did you mean 'digest'"):
        hw.rows(swept.folder, ["digst"])
    with pytest.raises(hw.InputError, match="holds no scenario 'powr'; did you mean 'power'"):
        hw.rows(swept.folder, scenario="powr")
    with pytest.raises(hw.InputError, match="most = -1"):
        hw.report(swept.folder, "report.html", most=-1)


def test_rows_that_are_missing_are_told(swept: hw.Swept, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(swept.folder, folder)
    for part in folder.rglob("part-*.parquet"):
        part.write_bytes(b"")
    with (
        pytest.warns(UserWarning, match="the wave does not count"),
        pytest.warns(UserWarning, match="40 of 40 runs are missing"),
    ):
        assert hw.rows(folder).num_rows == 0


def test_a_file_that_cannot_be_written_is_told(swept: hw.Swept) -> None:
    with pytest.raises(hw.UserError, match="/dev/full cannot be written"):
        hw.Drawing("<svg/>").save("/dev/full")
    with pytest.raises(hw.UserError, match="/dev/full cannot be written"):
        hw.report(swept.folder, "/dev/full", most=0)


def test_a_seed_that_does_not_fail_is_refused() -> None:
    with pytest.raises(hw.InputError, match="violates nothing"):
        hw.shrink("power", "kip320", 1)


def test_all_that_is_public_is_there() -> None:
    assert sorted(hw.__all__) == hw.__all__
    assert all(hasattr(hw, name) for name in hw.__all__)


def test_the_package_is_the_command_line(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "highwater", "run", "canary", "--mode", "hw", "-q"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("canary, mode hw, seed 0: acknowledged record LOST")


@pytest.mark.world
def test_a_review_is_that_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LocalBackend", lambda _: Here())
    monkeypatch.setattr(reviewing, "_run_stories", lambda _: None)
    monkeypatch.setattr(conformance, "changed", lambda *_: "not here")
    mode = "kip279+follower_truncation=high-watermark"
    found = hw.review(mode, "kip279", tmp_path / "out", claim="This is safe.", seeds=3, scenarios="power")
    assert isinstance(found, hw.Reviewed)
    assert found.said == tuple(page.answer(found.found))
    assert found.markdown == (tmp_path / "out" / "review.md").read_text()
    assert found.markdown.startswith("# Review of kip279")
    shown = Page(found._repr_html_())
    assert (shown.problems, found.said[-1] in shown.text) == ([], True)
    with pytest.raises(hw.InputError, match="processes = 0 is not valid"):
        hw.review(mode, "kip279", tmp_path / "out", processes=0)


def test_runs_are_those_of_a_sweep_and_need_no_folder(tmp_path: Path) -> None:
    settings = {"min.insync.replicas": [1, 2]}
    found = hw.runs(["power", "canary"], "hw,kip101", "3..5", settings=settings)
    hw.sweep(["power", "canary"], "3..5", tmp_path / "out", modes="hw,kip101", settings=settings)
    expected = hw.rows(tmp_path / "out")
    key = ("scenario", "mode", "min.insync.replicas", "seed")
    assert found.schema.equals(expected.schema)
    rows = [sorted(table.to_pylist(), key=itemgetter(*key)) for table in (found, expected)]
    assert rows[0] == rows[1]
    with pytest.raises(hw.InputError, match="unknown mode 'hv'"):
        hw.runs("power", "hv", "0..1")


def test_examples_hold_runs_that_fail_and_runs_that_do_not() -> None:
    found = hw.examples()
    assert found.num_rows == 40
    assert {"ok", "violation"} <= set(found["verdict"].to_pylist())
