"""What the site and the playground have from pages of the tree."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from scenarios.format.catalogue import load
from tests.places import ROOT, ci_program
from tests.plain import needs_sources

pytestmark = needs_sources  # Pages and links are made from a checkout.


@pytest.fixture(scope="module")
def links() -> Any:
    return ci_program("playground.links")


@pytest.fixture(scope="module")
def build() -> Any:
    return ci_program("playground.build")


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("run kip101-scenario-1 --mode hw", "run kip101-scenario-1 --mode hw"),
        ("explain power --mode hw --seed 20   # in sentences", "explain power --mode hw --seed 20"),
        ("show power --mode hw --against kip101 -o a.html", "show power --mode hw --against kip101 -o a.html"),
        ("run reassignment-back --mode elr-4.3 --rule reassignment_completes=min-isr", ...),
        ("explore --mode kraft --losses 0", ...),
        ("explain store/power --mode hw --seed 20", ""),
        ("run --plan plan.json", ""),
        ("run kip101-scenario-1 --mode hw --plugin below_hw.py", ""),
        ("run SCENARIO --mode hw", ""),
        ("explore --mode kraft --output FILE", ""),
        ("explore --strict", ""),
        ("run racks --mode hw --rule NAME=VALUE", ""),
        ("run power --mode mine", ""),
        ("run power --no-such-option", ""),
        ("sweep power --seeds 0..10", ""),
        ("run 'power", ""),
    ],
)
def test_a_command_is_a_link_if_the_playground_can_carry_it_out(links: Any, line: str, command: Any) -> None:
    assert links.runnable(line) == (line if command is ... else command)


def test_links_are_relative_and_say_what_they_run(links: Any) -> None:
    text = "A `highwater run canary --mode hw` `highwater sweep power`\n\n```\n$ highwater run canary\nls\n```\nEnd"
    found = links.with_links("scenarios/modes/hw.md", text)
    there = "../../playground/index.html#run%20canary"
    assert found.startswith(f"A [`highwater run canary --mode hw`]({there}%20--mode%20hw ")
    assert "`highwater sweep power`" in found
    assert f"```\n\nIn the playground: [`run canary`]({there} " in found
    assert found.endswith("\nEnd")


def test_a_row_of_a_table_that_begins_with_a_scenario_leads_to_its_run(links: Any) -> None:
    rows = (
        "| `canary` | x |",
        "| [`recreated-topic`](#recreated-topic) | y |",
        "| `other` | z |",
        "| `chaos` | `highwater run chaos` |",
    )
    found = links.with_links("scenarios/modes/kraft.md", "\n".join(rows)).splitlines()
    assert found[0].startswith("| `canary` [▶](../../playground/index.html#explain%20canary%20--mode%20")
    assert "#recreated-topic) [▶](../../playground/index.html#explain%20recreated-topic%20--mode%20kraft " in found[1]
    assert found[2] == rows[2]
    assert found[3].startswith("| `chaos` | [`highwater run chaos`](")


def test_every_finding_every_guide_and_the_lesson_have_links(links: Any) -> None:
    docs = ci_program("docs")
    tree = docs.pages()
    for finding in docs.findings():
        command = links.told(finding)
        assert command.startswith(f"explain {finding} --mode ")
        assert links.runnable(command) == command
    assert "playground/index.html#explain%20" in links.with_links("a.md", tree["highwater/lab/confirm/FINDINGS.md"])
    for page in ("guide/kip-author", "guide/tutorial", "guide/lesson", "guide/committer"):
        name = f"notebooks/{page}.md"
        assert "playground/index.html#" in links.with_links(name, tree[name])
    for mode in ("hw", "kip101", "kip279", "kip320", "kraft", "elr", "elr-4.3"):
        name = f"scenarios/modes/{mode}.md"
        assert "playground/index.html#" in links.with_links(name, tree[name] + docs._of_mode(name))


def test_the_page_of_a_mode_lists_what_it_repairs() -> None:
    text = ci_program("docs")._scenarios_of("kip101")
    repaired, _, failing = text.partition("## What still fails")
    assert "`highwater show kip101-scenario-1 --mode hw --against kip101`" in repaired
    assert "`highwater explain kip279-scenario-1-equal --mode kip101`" in failing
    assert load("kip279-scenario-1-equal").expect["kip101"].verdict == "violates"


def test_the_lesson_has_five_exercises_with_folded_answers_that_the_playground_runs(links: Any, build: Any) -> None:
    page = build.lesson()
    exercises = re.findall(r"<h2>(\d)\. .*?(?=<h2>)", page, re.DOTALL)
    assert exercises == ["1", "2", "3", "4", "5"]
    for part in page.split("<h2>")[1:6]:
        commands = [line.removeprefix("highwater ") for block in _blocks(part) for line in block.splitlines()]
        assert commands
        assert [command for command in commands if not links.runnable(command)] == []
        assert re.search(r"<details>\s*<summary>Answer</summary>\s*<p>", part)
    assert "href" not in page


def _blocks(page: str) -> list[str]:
    return re.findall(r"<pre><code>(.*?)</code></pre>", page, re.DOTALL)


def test_what_is_fetched_has_a_hash(build: Any) -> None:
    pin = json.loads((ROOT / ".ci" / "playground" / "pyodide.json").read_text(encoding="utf-8"))
    assert pin["integrity"].startswith("sha512-")
    assert "http" not in json.dumps(pin)
