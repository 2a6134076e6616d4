"""``highwater rules``: search the rules of the protocol."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from highwater.cli import completion
from highwater.cli.options import Command, json_option
from reports.document.blocks import Heading, Line, Table
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from highwater.cli.console import Ui
    from reports.document.blocks import Block

RULES_VERSION = 1
_INDENT = "    "


@click.command("rules", cls=Command)
@click.argument("word", required=False, shell_complete=completion.of("rule-names"))
@json_option
@click.pass_obj
def command(ui: Ui, word: str | None, as_json: bool) -> None:
    """List the rules in which releases differ; with WORD, those that have it in name, values, sources or findings.

    A rule of exactly this name is shown alone. Each comes with its values, the modes that have them, the code of Kafka
    that decides, and the bugs and findings that a value repairs.
    """
    found = list(search(word or ""))
    if not found:
        raise InputError(f"no rule has {word!r} in name, values, sources or findings; 'highwater rules' lists all")
    if as_json:
        ui.json({"schema_version": RULES_VERSION, "rules": found})
    elif word is None:
        rows = [(rule["name"], " | ".join(one["value"] for one in rule["values"])) for rule in found]
        ui.show([Table(["rule", "values"], rows, apart=False)])
        ui.note("highwater rules WORD shows the rules that mention WORD")
    else:
        ui.show(block for rule in found for block in _blocks(rule))


def search(word: str) -> Iterator[dict[str, Any]]:
    """The rules that have a word, in upper or lower case, in what `about` says of them; "": all."""
    from sim.protocol.rules import RULES

    for name in (word,) if word in RULES else RULES:
        rule = about(name)
        if word.lower() in str(rule).lower():
            yield rule


def about(name: str) -> dict[str, Any]:
    """What is known of a rule."""
    from scenarios.format.findings import all_findings
    from scenarios.shrinking.known_bugs import known
    from sim.protocol.modes import MODES, NO_RELEASE
    from sim.protocol.rules import RULES

    spec = RULES[name]
    shown = [finding for finding in all_findings().values() if finding.repair[0] == name and not finding.table.of]
    values = []
    for value in spec.values:
        modes = [mode for mode in MODES.values() if mode.rules.value(name) == value]
        bug = known(name, value)
        values.append(
            {
                "value": value,
                "modes": [mode.name for mode in modes],
                "releases": [mode.release for mode in modes if mode.release != NO_RELEASE],
                "repairs": bug and {"bug": bug.name, "ticket": bug.ticket},
                "findings": [
                    {"name": finding.name, "title": finding.title} for finding in shown if finding.repair[1] == value
                ],
            }
        )
    methods = [method.replace("#", ".") for finding in shown for method in finding.table.kafka]
    return {
        "name": name,
        "meaning": spec.meaning,
        "source": spec.source,
        "kafka": [*dict.fromkeys(methods)],
        "values": values,
    }


def _blocks(rule: dict[str, Any]) -> Iterator[Block]:
    yield Heading(rule["name"])
    yield from _wrapped(rule["meaning"])
    for one in rule["values"]:
        yield from _wrapped(f"= {one['value']}: {', '.join(one['modes']) or 'no mode'}")
        if one["repairs"]:
            yield from _wrapped(f"repairs: {one['repairs']['bug']} ({one['repairs']['ticket']})", 2)
        for finding in one["findings"]:
            yield from _wrapped(f"repairs finding {finding['name']}: {finding['title']}", 2)
    if rule["kafka"]:
        yield from _wrapped(f"Kafka's code: {', '.join(rule['kafka'])}")
    if rule["source"]:
        yield from _wrapped(f"Source: {rule['source']}")


def _wrapped(text: str, depth: int = 1) -> Iterator[Line]:
    indent = _INDENT * depth
    lines = wrap(text, 80, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False)
    yield from map(Line, lines)
