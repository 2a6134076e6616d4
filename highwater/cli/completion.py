"""The index of words that a shell completes (`highwater.cli.completing`).

It has the options of each command, and names of modes, scenarios, rules with values, settings with values, releases,
and kinds of fault and violation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from highwater.cli import completing

if TYPE_CHECKING:
    from collections.abc import Mapping


class of:  # noqa: N801 - used as a function.
    """Marks a parameter whose value is one of some words, as click's `shell_complete`.

    Args:
        what: a key of the index's words, or what makes a list of them.
    """

    def __init__(self, what: str | Callable[[], Iterable[str]]) -> None:
        self._what = what

    def __call__(self, _ctx: click.Context, _param: click.Parameter, _begun: str) -> list[str]:
        """Complete nothing: the index does."""
        return []

    @property
    def words(self) -> str | list[str]:
        """The key, or the words."""
        return self._what if isinstance(self._what, str) else [*self._what()]


def index(group: click.Group) -> Mapping[str, Any]:
    """The index of a command line, kept for the next time if that is possible."""
    made = {"commands": _command(group, click.Context(group)), "words": _words(), "values": _values()}
    _keep(made)
    return made


def _keep(made: Mapping[str, Any]) -> None:
    from contextlib import suppress

    from scenarios.own_files import json_start, replace
    from scenarios.sweep.java import cache_folder
    from sim.errors import UserError

    text = json.dumps({"schema_version": 1, "state": completing.state(), "index": made})
    with suppress(UserError, OSError):
        replace(cache_folder() / completing.NAME, text.encode(), json_start("state"))


def _command(command: click.Command, context: click.Context) -> dict[str, Any]:
    """A command's options with what they take (None: nothing), its arguments, and its own commands."""
    options: dict[str, Any] = {}
    arguments = []
    for param in command.get_params(context):
        if isinstance(param, click.Argument):
            arguments.append(takes(param))
        elif isinstance(param, click.Option) and not param.hidden:
            options |= {name: None if param.is_flag else takes(param) for name in (*param.opts, *param.secondary_opts)}
    commands = {}
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                commands[name] = _command(found, click.Context(found))
    return {"options": options, "arguments": arguments, "commands": commands}


def takes(param: click.Parameter) -> Any:
    """What completes a parameter's value: a key of the index's words, the words, files, folders, or nothing."""
    if isinstance(param.type, click.Choice):
        return [str(choice) for choice in param.type.choices]
    marked = getattr(param, "_custom_shell_complete", None)
    if marked is not None:
        return marked.words
    metavar = param.metavar or ""
    if "DIR" in metavar and "FILE" not in metavar:
        return completing.FOLDER
    return completing.FILE if isinstance(param.type, click.Path) or "FILE" in metavar else ""


def _words() -> dict[str, list[str]]:
    from faults.kinds.registry import KINDS
    from scenarios.format import catalogue
    from scenarios.properties.known import minors
    from sim.checkers.registry import FINDINGS
    from sim.config import KEYS
    from sim.protocol.modes import MODES, NO_RELEASE
    from sim.protocol.rules import RULES

    return {
        "modes": [*MODES],
        "scenarios": catalogue.names(),
        "faults": [*KINDS],
        "kinds": [*FINDINGS],
        "settings": [f"{key}=" for key in KEYS],
        "rules": [f"{name}=" for name in RULES],
        "rule-names": [*RULES],
        "releases": sorted({*minors(), *(mode.release for mode in MODES.values() if mode.release != NO_RELEASE)}),
    }


def _values() -> dict[str, dict[str, list[str]]]:
    from sim.config import KEYS
    from sim.protocol.rules import RULES

    settings = {
        key: [*spec.choices] or (["true", "false"] if isinstance(spec.default, bool) else [])
        for key, spec in KEYS.items()
    }
    return {"rules": {name: [*spec.values] for name, spec in RULES.items()}, "settings": settings}
