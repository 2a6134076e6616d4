"""``highwater explore``: every order of events in a small cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from highwater.cli.options import Command, duration, json_option, rule_option, strict_option
from sim import exit_codes
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from highwater.cli.console import Ui
    from scenarios.exploring.cluster import Cluster
    from scenarios.exploring.search import Found
    from sim.protocol.rules import Rules

STATES_MAX: Final = 100_000_000
_BOUND: Final = click.IntRange(0, 5)


@click.command("explore", cls=Command)
@click.option("--mode", metavar="MODE", default="elr-4.3", show_default=True, help="A KRaft mode.")
@rule_option
@strict_option
@click.option(
    "--records", metavar="N", type=click.IntRange(0, 3), default=1, show_default=True, help="Records that are sent."
)
@click.option(
    "--isr", metavar="N", type=click.IntRange(1, 3), default=2, show_default=True, help="Members of the first ISR."
)
@click.option(
    "--losses", metavar="N", type=_BOUND, default=1, show_default=True, help="Power losses that lose records."
)
@click.option("--stops", metavar="N", type=_BOUND, default=0, show_default=True, help="Kills and clean stops.")
@click.option("--fences", metavar="N", type=_BOUND, default=1, show_default=True, help="Sessions that expire.")
@click.option("--lags", metavar="N", type=_BOUND, default=0, show_default=True, help="Followers that lag.")
@click.option("--fixed-order", is_flag=True, help="Elections try the replicas as 1, 2, 3, not in any order.")
@click.option(
    "--most-states",
    metavar="N",
    type=click.IntRange(1, STATES_MAX),
    default=2_000_000,
    show_default=True,
    help="Give up after N states (about 300 bytes each).",
)
@click.option("--time-limit", metavar="TIME", help="Give up after this time, such as 60s or 10m.")
@json_option
@click.pass_obj
def command(
    ui: Ui,
    mode: str,
    rules: Mapping[str, str],
    strict: bool,
    records: int,
    isr: int,
    losses: int,
    stops: int,
    fences: int,
    lags: int,
    fixed_order: bool,
    most_states: int,
    time_limit: str | None,
    as_json: bool,
) -> int:
    """Try every order of events in a cluster of three KRaft brokers, until one violates a property.

    The defaults are the bounds of the public TLA+ specification of KIP-966. The shortest order of events that leads to
    a violation is printed.

    Exit 0 when all states within the bounds were seen and none violates a property, 1 after a violation, 3 when a limit
    was reached first.
    """
    from scenarios.exploring.cluster import Bounds, Cluster
    from scenarios.exploring.properties import KINDS, VIOLATIONS
    from scenarios.exploring.search import search

    seconds = None if time_limit is None else duration("--time-limit", time_limit)
    bounds = Bounds(
        records=records, isr=isr, losses=losses, stops=stops, fences=fences, lags=lags, any_order=not fixed_order
    )
    cluster = Cluster(_rules(mode, rules), bounds)
    found = search(
        cluster,
        until=KINDS if strict else VIOLATIONS,
        ends=VIOLATIONS,
        most_states=most_states,
        time_limit=seconds,
    )
    if as_json:
        ui.json(_as_json(cluster, found))
    else:
        _show(ui, cluster, found)
    if found.stopped:
        return exit_codes.UNEXPECTED
    return exit_codes.EXPECTED if found.exhausted else exit_codes.INCONCLUSIVE


def _rules(word: str, overrides: Mapping[str, str]) -> Rules:
    from scenarios.format.catalogue import mode

    chosen = mode(word)
    rules = chosen.rules.override(overrides)
    if rules.control_plane != "kraft":
        raise InputError(f"--mode {word}: 'explore' needs a mode with KRaft ('highwater modes list')")
    return rules


def _show(ui: Ui, cluster: Cluster, found: Found) -> None:
    from scenarios.exploring import wording
    from scenarios.exploring.properties import KINDS

    for kind, path in found.paths.items():
        ui.line(f"{kind} after {len(path)} events: {KINDS[kind]}", style="bold")
        rows = [
            (number, wording.event(cluster, action), wording.state(cluster, after))
            for number, (action, after) in enumerate(path, 1)
        ]
        ui.table(["", "event", "state after it"], rows, numbers=[""])
        ui.line()
    ui.line(_verdict(found), style="bold")
    ui.line(_counts(cluster, found))
    mutant = cluster.decide.rules.mutant
    if mutant in cluster.decide.mutants.by_name:
        place = cluster.decide.mutants.by_name[mutant]
        took = "executed" if place.took else "never executed"
        ui.line(f"mutant {mutant}: its place was {took}, and {'' if place.differed else 'never '}decided otherwise")


def _verdict(found: Found) -> str:
    kinds = ", ".join(found.paths)
    if found.stopped:
        return f"violation: {kinds}"
    if found.exhausted:
        return f"no violation in any order of events within the bounds{f'; early warnings: {kinds}' if kinds else ''}"
    return "no violation up to the limit"


def _counts(cluster: Cluster, found: Found) -> str:
    reached = f"{found.states:,} states, {found.transitions:,} transitions, {found.depth} events deep"
    computed = f"{cluster.machine.computed:,} events computed at brokers, {cluster.controller.computed:,}"
    return f"{reached}, {found.seconds:.1f} CPU s; {computed} at the controller"


def _as_json(cluster: Cluster, found: Found) -> dict[str, Any]:
    from scenarios.exploring import wording

    mutant = cluster.decide.mutants.by_name.get(cluster.decide.rules.mutant)
    return {
        "states": found.states,
        "transitions": found.transitions,
        "depth": found.depth,
        "exhausted": found.exhausted,
        "violates": found.stopped,
        "seconds": round(found.seconds, 1),
        "paths": {
            kind: [[wording.event(cluster, action), wording.state(cluster, after)] for action, after in path]
            for kind, path in found.paths.items()
        },
        "mutant": None if mutant is None else {"took": mutant.took, "differed": mutant.differed},
    }
