"""``highwater scenarios``: list, show, validate and begin scenarios."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from highwater.cli import completion, outline
from highwater.cli.options import PATH, SuggestingGroup, json_option
from reports.document.blocks import Table
from sim import exit_codes
from sim.errors import InputError, UserError

if TYPE_CHECKING:
    from pathlib import Path

    from highwater.cli.console import Ui
    from scenarios.format.scenario import Scenario


@click.group("scenarios", cls=SuggestingGroup)
def command() -> None:
    """List, show or validate scenarios, or write a new one."""


@command.command("list")
@json_option
@click.pass_obj
def list_scenarios(ui: Ui, as_json: bool) -> int:
    """List the bundled scenarios and what they expect of each mode."""
    from scenarios.format import catalogue

    rows = [_summary(catalogue.load(name)) for name in catalogue.names()]
    if as_json:
        ui.json({"scenarios": rows})
    else:
        headers = ["scenario", "faults", "title", "expect"]
        listed = [(row["name"], row["faults"], row["title"], _words(row["expect"])) for row in rows]
        ui.show([Table(headers, listed, apart=False)])
    return exit_codes.EXPECTED


@command.command("show")
@click.argument("scenario", shell_complete=completion.of("scenarios"))
@click.option("--resolved", is_flag=True, help="Show every setting, including defaults.")
@click.option("--toml", "as_toml", is_flag=True, help="Print its file, to begin your own with.")
@json_option
@click.pass_obj
def show(ui: Ui, scenario: str, resolved: bool, as_toml: bool, as_json: bool) -> int:
    """Show SCENARIO (a name or a .toml file): settings, faults, script, story, expectations."""
    from scenarios.format.catalogue import load, text

    if as_toml and (resolved or as_json):
        raise InputError("--toml prints the file as it is; it goes without --resolved and --json")
    if as_toml:
        ui.text(text(scenario))
        return exit_codes.EXPECTED
    chosen = load(scenario)
    if as_json:
        ui.json(outline.as_json(chosen))
    else:
        ui.show(outline.blocks(chosen, resolved=resolved))
    return exit_codes.EXPECTED


@command.command("new")
@click.argument("file", metavar="FILE.toml", type=PATH)
@click.option("--scripted", "kind", flag_value="scripted", help="A script: lines that wait for steps, and act.")
@click.option("--drawn", "kind", flag_value="drawn", help="Random faults and batches, drawn from the seed.")
@json_option
@click.pass_obj
def new(ui: Ui, file: Path, kind: str | None, as_json: bool) -> int:
    """Write FILE.toml, a commented and valid scenario to change; an existing file is never overwritten."""
    from scenarios import own_files, paths
    from scenarios.format import catalogue

    if kind is None:
        raise InputError("choose --scripted or --drawn")
    if file.suffix != ".toml":
        raise InputError(f"{file} is not valid: the name of a scenario file ends in .toml")
    own_files.create(file, catalogue.template(kind, file.stem))
    if as_json:
        ui.json({"file": str(file), "kind": kind})
        return exit_codes.EXPECTED
    word = shlex.quote(str(file) if paths.is_path(str(file)) else f"./{file}")
    ui.line(f"{file} is written. Change it, then: highwater scenarios validate {word}; highwater run {word}")
    return exit_codes.EXPECTED


@command.command("schema")
@json_option
@click.pass_obj
def schema(ui: Ui, as_json: bool) -> int:  # noqa: ARG001 - it is JSON anyway
    """Print the JSON Schema of scenario files, for editors that complete and check TOML."""
    from scenarios.format.json_schema import json_schema

    ui.json(json_schema())
    return exit_codes.EXPECTED


@command.command("validate")
@click.argument("files", metavar="SCENARIO...", nargs=-1, required=True, shell_complete=completion.of("scenarios"))
@json_option
@click.pass_obj
def validate(ui: Ui, files: tuple[str, ...], as_json: bool) -> int:
    """Check scenario files, list every mistake, and warn of runs that would say little."""
    checked = [_checked(file) for file in files]
    for file in checked:
        ui.caution(file["problems"])
        ui.caution(f"{file['file']}: {warning}" for warning in file["warnings"])
    code: int = max(file.pop("exit_code") for file in checked)
    if as_json:
        ui.json({"files": checked, "exit_code": code})
    else:
        for file in checked:
            ui.line(f"{file['file']}: {'valid' if file['valid'] else 'not valid'}")
    return code


def _summary(scenario: Scenario) -> dict[str, Any]:
    expect = {mode: outline.expectation(expected) for mode, expected in scenario.expect.items()}
    faults = "drawn" if scenario.drawn else "scripted"
    return {"name": scenario.name, "faults": faults, "title": scenario.title, "expect": expect}


def _words(expect: dict[str, str]) -> str:
    return ", ".join(f"{mode} {what}" for mode, what in expect.items())


def _checked(file: str) -> dict[str, Any]:
    from scenarios.format.catalogue import check
    from scenarios.single.vacuity import warnings

    problems: tuple[str, ...] = ()
    told: list[str] = []
    code = exit_codes.EXPECTED
    try:
        told = warnings(check(file))
    except UserError as error:
        problems, code = error.problems, error.exit_code
    return {"file": file, "valid": not problems, "problems": problems, "warnings": told, "exit_code": code}
