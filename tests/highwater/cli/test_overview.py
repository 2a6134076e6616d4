"""The list of commands and their examples: complete, short enough for a terminal, and each can be parsed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click
import pytest

from highwater.cli import main as cli
from highwater.cli.console import Ui
from highwater.cli.overview import EXAMPLES, GROUPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Call


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command, groups replaced by what is in them."""
    context = click.Context(cli.highwater)
    for name in cli.COMMANDS:
        command = cli.highwater.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {part}", one) for part, one in command.commands.items())
        else:
            yield name, command


def test_help_lists_commands_in_groups_of_uncut_lines(highwater: Callable[..., Call]) -> None:
    lines = highwater("--help").out.splitlines()
    for heading, group in GROUPS.items():
        place = lines.index(f"{heading}:")
        listed = lines[place + 1 : place + 1 + len(group)]
        assert [line.split()[0] for line in listed] == list(group)
        assert [line.split(maxsplit=1)[1] for line in listed] == list(group.values())
        assert max(map(len, listed)) <= 80


def test_every_command_has_an_example_in_its_help(highwater: Callable[..., Call]) -> None:
    assert [name for name, _ in commands()] == sorted(EXAMPLES, key=[name for name, _ in commands()].index)
    for name in EXAMPLES:
        assert highwater(*name.split(), "--help").out.endswith(f"Example:\n  {EXAMPLES[name]}\n")


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_understood(name: str) -> None:
    command = dict(commands())[name]
    words = shlex.split(EXAMPLES[name])[1 + len(name.split()) :]
    with command.make_context(name, words, obj=Ui()) as context:
        assert context.args == []
