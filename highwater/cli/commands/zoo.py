"""``highwater zoo``: mutants of the protocol, and how many seeds random runs need to find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from highwater.cli.options import SuggestingGroup, json_option

if TYPE_CHECKING:
    from highwater.cli.console import Ui
    from sim.protocol.mutants import Mutant


@click.group("zoo", cls=SuggestingGroup)
def command() -> None:
    """List mutants of the protocol, or show one."""


@command.command("list")
@json_option
@click.pass_obj
def list_mutants(ui: Ui, as_json: bool) -> None:
    """List the mutants."""
    from sim.protocol.mutants import MUTANTS

    if as_json:
        ui.json({"mutants": [_as_json(mutant) for mutant in MUTANTS.values()]})
    else:
        rows = [(one.name, one.tier, one.scenario, one.mode, one.sentence) for one in MUTANTS.values()]
        ui.table(["mutant", "tier", "scenario", "mode", "what it does"], rows, numbers=["tier"])


@command.command("show")
@click.argument("mutant")
@json_option
@click.pass_obj
def show(ui: Ui, mutant: str, as_json: bool) -> None:
    """Show a mutant: what it does, its source, the place in Kafka's code, and where it is hunted."""
    from sim.protocol.mutants import named

    chosen = named(mutant)
    if as_json:
        ui.json(_as_json(chosen))
        return
    ui.line(chosen.sentence, style="bold")
    ui.line(f"Source: {chosen.source}")
    ui.line(f"Place: {chosen.place}")
    ui.line(f"Tier {chosen.tier}: to be found within {chosen.budget:,} seeds of {chosen.scenario} in {chosen.mode}")
    ui.line(f"Run: highwater run {chosen.scenario} --mode {chosen.mode} --seed 0 --rule mutant={chosen.name}")


def _as_json(mutant: Mutant) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(mutant), "budget": mutant.budget}
