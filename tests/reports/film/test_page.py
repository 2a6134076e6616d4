"""The page of a film: complete without a network, escaped, and bound to its one script and style."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from highwater.cli.main import main
from reports.document.markdown import blocks_as_markdown
from reports.evidence.narrative import Sentence
from reports.evidence.run_document import story_blocks
from reports.film.page import page
from tests.reports.film.test_film import LOSES, shown

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

EVIL = "</script><img src=x onerror=alert(1)> & `x` | <b>"


def data(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="film">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    read: dict[str, Any] = json.loads(found[1])
    return read


def test_script_and_style_are_those_that_the_policy_allows() -> None:
    text = page([shown(*LOSES)])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    for tag in ("script", "style"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy[1]
    assert len(re.findall(r"<script>(.*?)</script>", text, re.DOTALL)[0].encode()) <= 60_000


def test_nothing_of_the_page_comes_from_elsewhere() -> None:
    text = page([shown(*LOSES)])
    assert re.findall(r'(?:src|href)="(?!data:image/svg)', text) == []
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) <= {"http://www.w3.org/2000/svg"}


def test_what_a_run_says_is_escaped() -> None:
    film = shown(*LOSES)
    told = replace(film, story=[Sentence(1, EVIL, 0)])
    text = page([told])
    assert "<img src=x" not in text
    assert data(text)["runs"][0]["story"][0][2] == EVIL
    assert r"\</script\>\<img src=x onerror=alert(1)\> & \`x\` \| \<b\>" in data(text)["markdown"]


def test_story_and_picture_are_there_without_scripts() -> None:
    film = shown(*LOSES)
    without = re.sub(r"<script.*?</script>", "", page([film]), flags=re.DOTALL)
    for sentence in film.story:
        assert sentence.text.partition("'")[0] in without
    assert "data:image/svg+xml;base64," in without
    assert '<details id="picture" open>' in without


def test_the_markdown_ends_with_the_replay_line() -> None:
    film = shown(*LOSES)
    lines = blocks_as_markdown(story_blocks(film.observed.result, film.story)).splitlines()
    assert lines[0].startswith("### reassignments, mode elr-4.3, seed 253: acknowledged record LOST")
    assert lines[-2] == film.observed.result.row["replay"]


def test_show_writes_the_page_and_replaces_only_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.html"
    words = ["show", "kip101-scenario-1", "--mode", "hw", "--against", "kip101", "--output", str(file)]
    assert main(words) == 0
    assert f"Open {file} in a browser" in capsys.readouterr().out
    assert [run["mode"] for run in data(file.read_text())["runs"]] == ["hw", "kip101"]
    assert main(words) == 0
    file.write_text("mine")
    assert main(words) == 2
    assert file.read_text() == "mine"


def test_show_refuses_a_kind_that_the_run_does_not_violate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "kip101-scenario-1", "--mode", "hw", "--kind", "divergence"]) == 2
    assert "divergence" in capsys.readouterr().err


def test_run_writes_the_page_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.html"
    assert main(["run", "kip101-scenario-1", "--mode", "hw", "--show", str(file)]) == 0
    assert data(file.read_text())["runs"][0]["mode"] == "hw"
    assert main(["run", "kip101-scenario-1", "--show", str(file)]) == 2
    assert "--show writes one run; choose one with --mode" in capsys.readouterr().err
    assert main(["run", "canary", "kip101-scenario-1", "--mode", "hw", "--show", str(file)]) == 2
    assert "--show is for one run" in capsys.readouterr().err
