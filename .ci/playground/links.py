"""Links from pages of the site to runs in the playground: commands that it can carry out, and scenarios in tables."""

from __future__ import annotations

import os
import re
import shlex
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import click

from highwater.cli import main as cli
from highwater.lab.tickets.findings_page import newest_failing
from scenarios.format.catalogue import load, names
from sim.errors import UserError
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDRESS: Final = "playground/index.html"
"""In the site."""
COMMANDS: Final = ("run", "explain", "show", "draw", "shrink", "explore", "replay")
_OF_MODES: Final = ("--mode", "--modes", "--against")
_OUTPUT: Final = ("-o", "--output")
_FOREIGN: Final = re.compile(r"^--plan$|^--plugin$|/|\.(toml|json|py)$")
"""Files, and options that take them."""
_PLACEHOLDER: Final = re.compile("[A-Z]")
_LINE: Final = re.compile(r"\$? ?highwater (.*)")
_CODE: Final = re.compile(r"(?<!\[)`highwater ([^`]+)`(?!\])")
_ROW: Final = re.compile(r"\| (?:\[`(?P<linked>[\w.-]+)`\]\([^)]*\)|`(?P<plain>[\w.-]+)`)")


def with_links(page: str, text: str) -> str:
    """A Markdown page with these links."""
    mode = re.fullmatch(r"scenarios/modes/(.+)\.md", page)
    return "\n".join(_lines(os.path.relpath(ADDRESS, Path(page).parent), text, mode[1] if mode else ""))


def _lines(address: str, text: str, mode: str) -> Iterator[str]:
    fence, commands = "", []
    for line in text.split("\n"):
        mark = re.match(r"(```+|~~~+)", line)
        if fence:
            yield line
            if mark and line.strip() == fence:
                fence = ""
                if commands:
                    yield from ("", f"In the playground: {', '.join(_link(address, one) for one in commands)}", "")
            elif (found := _LINE.fullmatch(line)) and (command := runnable(found[1])):
                commands.append(command)
        elif mark:
            fence, commands = mark[1], []
            yield line
        else:
            linked = _CODE.sub(lambda code: _link(address, runnable(code[1]), code[0]), line)
            row = _ROW.match(line)
            if row is not None and linked == line:
                name = row["linked"] or row["plain"]
                linked = f"{row[0]}{_start(address, name, mode)}{line[row.end() :]}"
            yield linked


def _link(address: str, command: str, text: str = "") -> str:
    text = text or f"`{command}`"
    return f'[{text}]({address}#{quote(command, safe="=,:")} "run it in the playground")' if command else text


def _start(address: str, name: str, mode: str) -> str:
    """What follows a scenario's name at the beginning of a table's row; nothing after another word."""
    return f" {_link(address, told(name, mode), '▶')}" if name in names() else ""


def told(name: str, mode: str = "") -> str:
    """The command that tells how a bundled scenario fails: in this mode, or else in one in which it does."""
    scenario = load(name)
    failing = [tried for tried, expected in scenario.expect.items() if expected.verdict == "violates"]
    if not failing:
        return f"run {name}"
    one = newest_failing(scenario) if scenario.finding is not None else failing[0]
    return f"explain {name} --mode {mode if mode in failing else one}"


@cache
def runnable(line: str) -> str:
    """The command of a line if the playground can carry it out, without comments; empty if it cannot.

    It has no file but those that commands write, and no plug-in.
    """
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return ""
    if not words or words[0] not in COMMANDS or not _is_complete(words):
        return ""
    context = click.Context(cli.highwater, info_name="highwater")
    command = cli.highwater.get_command(context, words[0])
    assert command is not None
    try:
        command.make_context(words[0], words[1:], parent=context)
    except (click.ClickException, UserError):
        return ""
    return shlex.join(words)


def _is_complete(words: list[str]) -> bool:
    """Whether the words name no file and no placeholder, but a scenario or, for `explore`, a mode."""
    for option, value in pairwise(words):
        if option in _OF_MODES and "=" not in value and not set(value.split(",")) <= MODES.keys():
            return False
        if _PLACEHOLDER.match(value) or (option not in _OUTPUT and _FOREIGN.search(value)):
            return False
    return "--mode" in words if words[0] == "explore" else any(word in names() for word in words[1:])
