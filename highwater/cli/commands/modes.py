"""``highwater modes``: the modes and their rules."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import click

from highwater.cli import completion
from highwater.cli.options import SuggestingGroup, json_option
from reports.document.blocks import Line, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from highwater.cli.console import Ui
    from scenarios.format.mode_file import ModeFile
    from sim.protocol.modes import Mode


@click.group("modes", cls=SuggestingGroup)
def command() -> None:
    """List modes, or show one with its rules."""


@command.command("list")
@json_option
@click.pass_obj
def list_modes(ui: Ui, as_json: bool) -> None:
    """List the modes."""
    from sim.protocol.modes import MODES

    rows = [(mode.name, mode.release, mode.summary) for mode in MODES.values()]
    headers = ["mode", "release", "summary"]
    if as_json:
        ui.json({"modes": [dict(zip(headers, row, strict=True)) for row in rows]})
    else:
        ui.show([Table(headers, rows, apart=False)])


@command.command("show")
@click.argument("mode", shell_complete=completion.of("modes"))
@json_option
@click.pass_obj
def show(ui: Ui, mode: str, as_json: bool) -> None:
    """Show the page and the rules of MODE (a name or a .toml file): name, value, other values, source."""
    from scenarios import paths
    from scenarios.format import catalogue
    from sim.protocol.modes import NO_RELEASE

    page: str | None
    if paths.is_path(mode):
        from scenarios.format.mode_file import read

        found = read(mode)
        chosen, page = found.mode, _file_page(found)
    else:
        chosen = catalogue.mode(mode)
        added = catalogue.ADDED_MODES.get(chosen.name)
        page = _page(chosen.name) if added is None else _file_page(added)
    rules = _rules(chosen)
    if as_json:
        head = {"mode": chosen.name, "release": chosen.release, "summary": chosen.summary}
        ui.json({**head, "page": page, "rules": rules})
        return
    release = "" if chosen.release == NO_RELEASE else f"Kafka {chosen.release}, "
    ui.show([Line(page or f"{chosen.name}: {release}{chosen.summary}"), Line(""), *_rule_lines(rules)])


def _rule_lines(rules: list[dict[str, Any]]) -> Iterator[Line]:
    yield Line("Rules, each with all its values, oldest behaviour first. A text that describes several has this order.")
    for rule in rules:
        yield Line(f"{rule['name']} = {rule['value']}    ({', '.join(rule['values'])})", "bold")
        yield Line(f"    {rule['meaning']}")
        if rule["source"]:
            yield Line(f"    Source: {rule['source']}", "dim")


def _file_page(found: ModeFile) -> str:
    """The page of a mode file."""
    rules = [f"  {name} = {value}" for name, value in found.changed.items()]
    parts = [
        f"{found.mode.name}: {found.mode.summary}",
        found.description,
        "\n".join([f"Those of {found.base}, except:", *rules]) if rules else f"The rules of {found.base}.",
        "\n".join(["Sources:", *(f"  {source}" for source in found.sources)]) if found.sources else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _page(name: str) -> str | None:
    page = files("scenarios") / "modes" / f"{name}.md"
    return page.read_text(encoding="utf-8").rstrip() if page.is_file() else None


def _rules(mode: Mode) -> list[dict[str, Any]]:
    from sim.protocol.modes import RULES

    return [
        {
            "name": name,
            "value": value,
            "values": list(RULES[name].values),
            "meaning": RULES[name].meaning,
            "source": RULES[name].source,
        }
        for name, value in mode.rules.as_dict().items()
    ]
