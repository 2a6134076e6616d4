"""What the pages show is what happens."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click
import pytest

from highwater.cli import main as cli
from highwater.cli.commands import spark_package
from highwater.cli.console import Ui
from scenarios.format import plugins
from scenarios.paths import is_path
from sim import exit_codes
from sim.protocol.modes import MODES
from sim.protocol.rules import parse_overrides
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.conftest import Call

PAGES = [
    page
    for folder in (".", "sim", "faults", "scenarios", "reports", "highwater", "notebooks")
    for page in sorted(ROOT.glob("*.md") if folder == "." else (ROOT / folder).rglob("*.md"))
]
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
README = TEXTS["README.md"]
COMMANDS = TEXTS["highwater/README.md"]
GUIDE = {
    page: text
    for page, text in TEXTS.items()
    if page.startswith(("notebooks/guide/", "notebooks/proposals/")) and "\n```" in text
}
"""Pages whose commands take minutes: they are read, and not run."""
BLOCKS = [
    block
    for text in (README, COMMANDS, *(TEXTS[page] for page in TEXTS if page not in GUIDE))
    for block in re.findall(r"^```\n(.*?)^```", text, re.M | re.S)
]
BLOCKS = [*dict.fromkeys(BLOCKS)]
PROGRAMS = ("highwater", "make", "git", "spark-submit")
SCRIPTS = [block for block in BLOCKS if re.sub(r"^#.*\n", "", block, flags=re.M).split()[0] in (*PROGRAMS, "export")]
ELSEWHERE = (
    "spark-package",
    "spark://host:7077",
    "confirm",
    "ticket",
    "kafka",
    "audit",
    "settings",
    "advise",
    "open",
    "out/advice.toml",
    "out/loss.json",
    "review",
    "--kafka",
    "--reuse",
    "store/mine",
    "stories/story-1-loss.toml",
)
"""What needs a cluster or its files, a network, a minute or an end, and has tests of its own."""
CODES: dict[tuple[str, ...], int] = {
    ("run", "canary", "--rule", "follower_truncation=leader-epoch"): exit_codes.UNEXPECTED,
    ("explore", "--mode", "elr-4.3", "--strict", "--losses", "0"): exit_codes.UNEXPECTED,
    (
        *("explore", "--mode", "elr-4.3", "--strict", "--losses", "0"),
        *("--output", "forgotten.toml"),
    ): exit_codes.UNEXPECTED,
    (
        *("explore", "--mode", "elr-repaired", "--strict", "--losses", "0"),
        *("--rule", "mutant=hw-ignores-min-isr"),
    ): exit_codes.UNEXPECTED,
    ("explore", "--mode", "hw", "--stops", "1"): exit_codes.UNEXPECTED,
    (
        *("explore", "--quorum", "--mode", "elr-4.3"),
        *("--epochs", "1", "--losses", "0", "--forgets", "1"),
    ): exit_codes.UNEXPECTED,
}
"""Commands that do not exit with 0."""
STUB = """\
#!/bin/sh
printf '%d\\0' "$#" >> calls
printf '%s\\0' "${0##*/}" "$@" >> calls
"""


def called(script: str, folder: Path) -> list[tuple[str, ...]]:
    """What a shell calls for a script, word by word; none of the programs is really run."""
    stubs = folder / "stubs"
    stubs.mkdir(parents=True)
    for program in PROGRAMS:
        (stubs / program).write_text(STUB)
        (stubs / program).chmod(0o755)
    environment = {**os.environ, "PATH": f"{stubs}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", "-euc", script], cwd=folder, env=environment, check=True)
    words = (folder / "calls").read_text().split("\0")[:-1]
    calls = []
    while words:
        count = int(words.pop(0)) + 1
        calls.append(tuple(words[:count]))
        del words[:count]
    return calls


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, ...]]:
    """The words of each command of Highwater."""
    calls = [call for script in SCRIPTS for call in called(script, tmp_path_factory.mktemp("shell") / "here")]
    return [words for program, *words in calls if program == "highwater"]  # type: ignore[misc]


def without_numbers(text: str) -> list[str]:
    """Lines with digests, times and counts blotted out: they move with every change of the protocol core."""
    return [re.sub(r"\b[0-9a-f]{32}\b|\d+", "#", line).rstrip() for line in text.strip().splitlines()]


def quick(words: Iterable[str]) -> list[str]:
    """The same words with few seeds, fewer of a grid, and two failures to look at."""
    given = ["2" if before == "--most" else word for before, word in pairwise(["", *words])]
    if given[0] == "report" and "--triage" not in given:
        given += ["--triage", "2"]
    seeds = "0..2" if any("," in word and "=" in word for word in given) else "0..21"
    return [seeds if re.fullmatch(r"\d+\.\.\d+", word) else word for word in given]


@pytest.mark.world
@pytest.mark.usefixtures("sweeps_here", "few_continuations")
def test_every_command_works(
    highwater: Callable[..., Call], commands: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in commands:
        if set(words) & {*ELSEWHERE}:
            continue
        call = highwater(*quick(words))
        assert call.code == CODES.get(tuple(words), 0), f"{words}: {call.err}"
        assert call.out, words


@pytest.mark.parametrize("page", GUIDE)
def test_commands_of_the_guide_are_understood(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file, text in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", GUIDE[page], re.M | re.S):
        (tmp_path / file).write_text(text)
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    monkeypatch.chdir(tmp_path)
    scripts = [
        block for language, block in re.findall(r"^```(\w*)\n(.*?)^```", GUIDE[page], re.M | re.S) if not language
    ]
    calls = [call for place, script in enumerate(scripts) for call in called(script, tmp_path / str(place))]
    assert calls
    for _, *words in (call for call in calls if call[0] == "highwater"):
        context = click.Context(cli.highwater)
        command: click.Command | None = cli.highwater
        while isinstance(command, click.Group):
            command = command.get_command(context, words.pop(0))
        assert command is not None
        with command.make_context("here", words, obj=Ui()) as asked:
            assert asked.args == []
            _check_names(asked.params, {*re.findall(r'^name = "(.*)"$', GUIDE[page], re.M)})
        plugins.unload()


def _check_names(asked: dict[str, Any], own: set[str]) -> None:
    """Modes, rules and scenarios that a command names are there, or files of the reader's own."""
    named = asked.get("modes") or asked.get("mode") or "hw"
    for mode in named.split(",") if isinstance(named, str) else named:
        base, _, rules = mode.partition("+")
        assert base in MODES or base in own or is_path(base)
        assert not rules or parse_overrides(rules.split("+"))
    against = asked.get("against")
    assert against is None or against in MODES or parse_overrides([against])


def test_every_command_is_shown(commands: list[tuple[str, ...]]) -> None:
    assert {words[0] for words in commands} == set(cli.COMMANDS)


def test_targets_that_pages_ask_make_for_exist(tmp_path: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    calls = [call for place, script in enumerate(SCRIPTS) for call in called(script, tmp_path / str(place))]
    asked = {word for program, *words in calls if program == "make" for word in words if "=" not in word}
    assert {"demo", "test"} <= asked <= {*targets}


@pytest.mark.world
@pytest.mark.usefixtures("sweeps_here")
def test_the_recipe_for_spark_submit(
    highwater: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a cluster: the shell's words, what they would send, the driver, and the sweep, without Spark."""
    (script,) = (script for script in SCRIPTS if "spark-submit" in script)
    (submit,) = called(script, tmp_path)
    archive = f"dist/{spark_package.ARCHIVE}#environment"
    place = submit.index(f"dist/{spark_package.DRIVER}")
    assert submit[1:place] == ("--master", "spark://host:7077", "--archives", archive)
    (tmp_path / "driver.py").write_text(spark_package.DRIVER_TEXT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, tmp_path / "driver.py", "modes", "list"], env=environment, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    words = quick(submit[place + 1 :])
    words[words.index("--output") + 1] = str(tmp_path / "out")
    assert highwater(*words, "--local", 1).code == 0


def test_the_example_is_what_is_printed(highwater: Callable[..., Call]) -> None:
    (block,) = (block for block in BLOCKS if block.startswith("$ highwater "))
    command, _, shown = block.partition("\n")
    assert block in README
    assert without_numbers(highwater(*shlex.split(command)[2:]).out) == without_numbers(shown)


def test_every_mode_and_exit_code_has_its_row() -> None:
    rows = [row for text in TEXTS.values() for row in re.findall(r"^\| `?([\w.-]+)`? \|", text, re.MULTILINE)]
    codes = (value for name, value in vars(exit_codes).items() if name.isupper() and type(value) is int)
    assert {*MODES, *map(str, codes)} <= {*rows}


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", TEXTS[page]) if "://" not in link]
    assert not [link for link in links if not (folder / link).exists()]


def test_decisions_name_a_test_or_say_that_there_is_none() -> None:
    pages = [text for page, text in TEXTS.items() if page.endswith("DESIGN.md")]
    decisions = [item for text in pages for item in re.findall(r"^- \*\*.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)]
    assert len(decisions) > 100
    told = re.compile(r"Tests?: (none|\[|as above|the )|; see \[")
    assert not [" ".join(item.split()) for item in decisions if not told.search(" ".join(item.split()))]


def test_the_changelog_keeps_two_versions_and_what_changed_results() -> None:
    heads = re.findall(r"^## (.+)$", TEXTS["CHANGELOG.md"], re.MULTILINE)
    assert len(heads) == len({*heads}) == 3
    assert heads[2] == "Results that changed"


def test_the_first_page_is_one_screen_and_the_page_of_commands_leads_to_all_others() -> None:
    """To designs by the page of designs, to modes and tickets by those that list them."""
    assert len(README.splitlines()) <= 70
    assert "highwater/README.md" in linked("README.md")
    found = linked("README.md") | linked("highwater/README.md") | linked("sim/DESIGN.md")
    listed = ("scenarios/modes/", "highwater/lab/tickets/written/")
    assert {page for page in TEXTS if not page.startswith(listed)} - {"README.md"} <= found


def test_each_command_of_the_first_pages_says_what_it_answers() -> None:
    """In words above its block, or beside it."""
    for text, _, block in re.findall(r"([^\n]*)\n+^```(\w*)\n(.*?)^```", README, re.M | re.S):
        assert len(text) > 40 or block.startswith("$"), block
        assert len(block.splitlines()) == 1 or block.startswith("$")
    lines = re.findall(r"^```\n(highwater scenarios .*?)^```", COMMANDS, re.M | re.S)[0].splitlines()
    assert len(lines) > 20
    assert [line for line in lines if not re.search(r" {2,}# \w", line)] == []


def linked(page: str) -> set[str]:
    """Pages that a page has links to."""
    links = re.findall(r"\]\(([^)#]+\.md)\)", TEXTS[page])
    return {os.path.relpath((ROOT / page).parent / link, ROOT) for link in links}


def test_the_committers_page_says_how_much_of_the_hosts_no_class_was_compared_with() -> None:
    lines = {path.name: len(path.read_text().splitlines()) for path in (ROOT / "sim" / "hosts").glob("*.py")}
    compared = lines["broker_heartbeat_tracker.py"]
    page = (ROOT / "notebooks" / "guide" / "committer.md").read_text()
    assert f"{100 - 100 * compared // sum(lines.values()) - 1} % of its lines were compared with none" in page


def test_the_picture_of_rates_has_the_numbers_beside_it() -> None:
    alt = re.findall(r"!\[(Rates [^]]+)\]\(([^)]+)\)", TEXTS["README.md"])[0]
    drawn = re.findall(r">([0-9,]+) of 2,000<", (ROOT / alt[1]).read_text(encoding="utf-8"))
    assert len(drawn) == 2
    assert re.findall(r"([0-9,]+) of 2,000", alt[0]) == drawn


def test_the_picture_of_a_run_is_what_draw_writes(highwater: Callable[..., Call], tmp_path: Path) -> None:
    """As `make pictures` does."""
    file = tmp_path / "run.svg"
    assert highwater("draw", "kip101-scenario-1", "--mode", "hw", "--output", file).code == 0
    kept = ROOT / "notebooks" / "pictures" / "run.svg"
    assert kept.read_text(encoding="utf-8") == file.read_text(encoding="utf-8")
