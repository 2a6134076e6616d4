"""``highwater bugs``: bugs of Kafka that a release repaired, and how Highwater shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from highwater.cli import completion
from highwater.cli.options import Command, json_option
from reports.document.blocks import Heading, Items, Line, Table, Terms
from sim import exit_codes
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from highwater.cli.console import Ui
    from highwater.lab.bugs.bugs import FixedBug
    from reports.document.blocks import Block

SCHEMA_VERSION: Final = 1


def _names() -> list[str]:
    from highwater.lab.bugs.bugs import fixed_bugs

    return [*fixed_bugs()]


@click.command("bugs", cls=Command)
@click.argument("word", metavar="[WORD]", default="", shell_complete=completion.of(_names))
@json_option
@click.pass_obj
def command(ui: Ui, /, word: str, as_json: bool) -> int:
    """List bugs of Kafka that a release repaired: those with a word in their texts, or one by its ticket.

    Each has a rule whose older value is the bug, with figures before and after the repair, or says what Highwater lacks
    to show it. Bugs that scenarios show are listed by `highwater zoo list` and `highwater rules`.
    """
    from highwater.lab.bugs.bugs import chosen

    bugs = chosen(word)
    if as_json:
        ui.json({"schema_version": SCHEMA_VERSION, "bugs": [_json(bug) for bug in bugs]})
    elif len(bugs) == 1:
        ui.show([*_bug(bugs[0]), Line("")])
    else:
        ui.show(_table(bugs))
    return exit_codes.EXPECTED


def _table(bugs: Sequence[FixedBug]) -> Iterator[Block]:
    from highwater.lab.bugs.bugs import MISSING, shown_by

    rows = [(bug.name, bug.fixed, bug.where, bug.effect, shown_by(bug)) for bug in bugs]
    yield Table(["bug", "fixed in", "where", "effect", "shown by"], rows, apart=False)
    if lacking := [word for word in MISSING if any(bug.older is None and bug.missing == word for bug in bugs)]:
        yield Heading("What Highwater lacks to show a bug")
        yield Terms({word: MISSING[word] for word in lacking})
    ruled = sum(bug.older is not None for bug in bugs)
    yield Line("")
    yield Line(f"{counted(len(bugs), 'bug')}, {ruled} with a rule; highwater bugs {bugs[0].name} prints one.")


def _bug(bug: FixedBug) -> Iterator[Block]:
    from highwater.lab.bugs.bugs import MISSING, measured

    yield Heading(f"{bug.name}: {bug.effect}")
    yield Items([bug.happens, *([f"Repaired: {bug.fix}"] if bug.fix else [])])
    since = f"since {bug.since}, " if bug.since else ""
    read = f"known here by its {bug.read}"
    yield Items([f"Where: {bug.where}; {since}fixed in {bug.fixed} (commits: {bug.commits}; {read})"])
    if bug.lacking:
        modes = ", ".join(bug.lacking)
        known = bug.since and not bug.since.startswith("about")
        unsure = "" if known else " (unless their releases are older than it: the first release with it is not known)"
        yield Items([f"Modes that behave better than their releases, which had it{unsure}: {modes}"])
    if bug.older is None or bug.repaired is None:
        yield Items([f"Not shown: Highwater lacks {MISSING[bug.missing]}. {bug.why}"])
        return
    older, repaired = "=".join(bug.older), "=".join(bug.repaired)
    yield Items([f"Rule: {older} has the bug, {repaired} the repair; mode {bug.mode}"])
    if bug.note:
        yield Items([bug.note])
    figures = measured().get(bug.name, {})
    rows = [
        (scenario, one.before, one.after, one.runs, f"{one.first_cpu_s:.1f}" if one.first_cpu_s >= 0 else "")
        for scenario, one in figures.items()
    ]
    headers = ["scenario", older, repaired, "of runs", "CPU s to the first"]
    yield Table(headers, rows, numbers=headers[1:], apart=False)
    asked = f"--modes {bug.mode} --rule {older} --set sim.judge.waits=true --seeds 0..400"
    yield Line(f"  highwater sweep {bug.scenarios[0]} {asked} --output store/{bug.name} --local 2")


def _json(bug: FixedBug) -> dict[str, Any]:
    from dataclasses import asdict

    from highwater.lab.bugs.bugs import measured

    figures = {scenario: asdict(one) for scenario, one in measured().get(bug.name, {}).items()}
    return {"name": bug.name, **asdict(bug), "lacking": bug.lacking, "measured": figures}
