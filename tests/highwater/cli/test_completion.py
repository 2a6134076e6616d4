"""Words that a shell completes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import click
import pytest

from highwater.cli import completing, completion
from highwater.cli import main as cli

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

LIMIT_S = 0.15


@cache
def index() -> Mapping[str, Any]:
    return completion.index(cli.highwater)


def completed(*words: str) -> list[str]:
    found = completing.completions(index(), words[:-1], words[-1])
    return [word for kind, word in found if kind == completing.PLAIN]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("compare", "store", "--mode", "kip101,kip27"), ["kip101,kip279"]),
        (("run", "--mode", "kip10"), ["kip101"]),
        (("explore", "--mode", "kip10"), ["kip101"]),
        (("zoo", "show", "reassignment-ba"), ["reassignment-back"]),
        (("claims", "idempot"), ["idempotence"]),
        (("modes", "show", "kip10"), ["kip101"]),
        (("run", "--mode=kip10"), ["--mode=kip101"]),
        (("run", "kip101-scenario-1"), ["kip101-scenario-1"]),
        (("run", "canary", "kip101-scenario-1"), ["kip101-scenario-1"]),
        (("compare", "store", "--kind", "committed-l"), ["committed-loss"]),
        (("sweep", "power", "--set", "min.insync"), ["min.insync.replicas="]),
        (("sweep", "power", "--set", "unclean.leader.election.enable="), None),
        (("show", "power", "--rule", "isr_join"), ["isr_join="]),
        (("run", "power", "--release", "3.9"), ["3.9", "3.9.0", "3.9.1"]),
        (("confirm", "canary", "--kafka", "4.3"), ["4.3", "4.3.1"]),
        (("zoo", "hu"), ["hunt"]),
        (("aud",), ["audit"]),
        (("run", "--last"), ["--last-failed"]),
        (("explain", "canary", "--format", "m"), ["markdown"]),
        (("run", "--quiet", "canar"), ["canary"]),
    ],
)
def test_names_are_completed(words: tuple[str, ...], found: list[str] | None) -> None:
    if found is None:
        found = [f"unclean.leader.election.enable={value}" for value in ("true", "false")]
    assert completed(*words) == found


def test_values_of_a_rule_and_kinds_of_fault_are_completed() -> None:
    assert "isr_lag=time" in completed("show", "power", "--rule", "isr_lag=")
    assert "duplicate" in completed("run", "power", "--without-fault", "")


def test_a_command_without_names_completes_none() -> None:
    assert completed("columns", "x") == []
    assert completed("columns", "--seedling", "x") == []


NAMED = {
    "MODE",
    "A,B",
    "SCENARIO",
    "SCENARIO...",
    "[SCENARIO]...",
    "MUTANT|BUG",
    "[MUTANT|BUG]...",
    "[CLAIM]...",
    "NAME",
}
UNNAMED = {"--hide"}
"""Takes the numbers of findings, too."""


def lacking(command: click.Command, context: click.Context) -> Iterator[str]:
    """Parameters that take a name, and complete nothing."""
    for param in command.params:
        takes_name = (param.metavar or param.name or "").upper() in NAMED
        if takes_name and not completion.takes(param) and not UNNAMED & {*param.opts}:
            yield f"{context.command_path} {param.opts[0]}"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from lacking(found, click.Context(found, context, name))


def test_whatever_takes_a_name_completes_it() -> None:
    assert list(lacking(cli.highwater, click.Context(cli.highwater, info_name="highwater"))) == []


def test_files_and_folders_are_left_to_the_shell() -> None:
    assert (completing.FILE, "x") in completing.completions(index(), ["run", "--trace"], "x")
    assert (completing.FILE, "x") in completing.completions(index(), ["run"], "x")
    assert list(completing.completions(index(), ["shrink", "canary", "--output"], "x")) == [(completing.FOLDER, "x")]


@pytest.mark.parametrize(
    ("shell", "words", "place", "said"),
    [
        ("bash", "highwater run --mode kip10", "3", "plain,kip101\n"),
        # bash takes "=" for a word, and replaces what follows it.
        ("bash", "highwater run --rule isr_lag = t", "5", "plain,time\n"),
        ("bash", "highwater run --rule isr_lag =", "4", None),
        ("zsh", "highwater run --mode kip10", "3", "plain\nkip101\n_\n"),
        ("fish", "highwater run --mode kip10", "kip10", "plain,kip101\n"),
        ("bash", "highwater run 'open", "2", "file,'open\n"),
    ],
)
def test_shells_get_their_form(
    shell: str, words: str, place: str, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", place)
    text = completing.answer(index(), f"{shell}_complete")
    expected = "".join(f"plain,{value}\n" for value in index()["values"]["rules"]["isr_lag"])
    assert text == (expected if said is None else said)
    assert completing.answer(index(), f"{shell}_source") is None


@pytest.mark.world
def test_the_second_time_takes_no_import_of_commands(tmp_path: Path) -> None:
    """The first time makes the index; a damaged one is made anew."""
    words = {"COMP_WORDS": "highwater run --mode kip10", "COMP_CWORD": "3", completing.REQUEST: "bash_complete"}
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), **words}
    command = [sys.executable, "-m", "highwater"]

    def call() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert (done.stdout, done.stderr) == ("plain,kip101\n", "")
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    call()
    assert min(call() for _ in range(5)) < LIMIT_S
    kept = tmp_path / "highwater" / completing.NAME
    text = kept.read_text()
    kept.write_text(text[:100])
    call()
    assert kept.read_text() == text


@pytest.mark.world
def test_the_function_of_the_shell_is_clicks(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), completing.REQUEST: "zsh_source"}
    done = subprocess.run(
        [sys.executable, "-m", "highwater"], env=environment, capture_output=True, text=True, check=True
    )
    assert "_HIGHWATER_COMPLETE=zsh_complete" in done.stdout
