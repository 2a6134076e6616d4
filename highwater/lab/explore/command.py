"""``highwater explore``: every order of events in a small cluster."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

import click

from highwater.cli import completion
from highwater.cli.options import PATH, Command, json_option, option_of
from highwater.lab.explore.modes.subject import KRAFT, QUORUM, STATES_MAX, WALK_EVENTS, ZOOKEEPER, subject_of
from highwater.requests import Rules, Strict
from highwater.values import duration
from reports import starts
from reports.document.blocks import Line, Table
from scenarios import own_files
from sim import exit_codes
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from highwater.cli.console import Ui
    from highwater.lab.explore.kraft.cluster import KRaftCluster
    from highwater.lab.explore.modes.subject import Subject
    from highwater.lab.explore.search import Action, Found
    from reports.document.blocks import Block

MOST_STATES: Final = 100_000_000
WALKS_MAX: Final = 1_000_000_000
_BOUND: Final = click.IntRange(0, 5)


def _bound(name: str, meaning: str, values: click.IntRange = _BOUND) -> Callable[[Any], Any]:
    planes = ((KRAFT, "in KRaft"), (ZOOKEEPER, "in ZooKeeper modes"), (QUORUM, "with --quorum"))
    defaults = ", ".join(f"{known[name]} {where}" for known, where in planes if name in known)
    return click.option(f"--{name}", metavar="N", type=values, help=f"{meaning}  [default: {defaults}]")


@click.command("explore", cls=Command)
@click.option(
    "--mode",
    metavar="MODE",
    default="elr-4.3",
    show_default=True,
    shell_complete=completion.of("modes"),
    help="Mode of brokers and controller.",
)
@option_of("rules", Rules)
@option_of("strict", Strict)
@_bound("records", "Records that are sent.")
@_bound("losses", "Ends of a process that lose records.")
@_bound("stops", "Ends of a process that lose nothing.")
@_bound("fences", "Sessions of running brokers that expire.")
@_bound("lags", "Followers that lag.")
@_bound("deletions", "DeleteRecords requests; a process that starts does not know of them.")
@_bound("elections", "Preferred elections of running brokers.")
@_bound("min-isr", "min.insync.replicas at first.", click.IntRange(1, 3))
@_bound("min-isr-changes", "Times that an administrator sets min.insync.replicas to another value.")
@_bound("feature-changes", "Times that feature eligible.leader.replicas.version is disabled or enabled.")
@_bound("isr", "Members of the first ISR.", click.IntRange(1, 3))
@_bound("brokers", "Brokers; in KRaft there are three.", click.IntRange(2, 3))
@_bound("epochs", "Leader epochs, of a partition or of the quorum.", click.IntRange(1, 5))
@_bound("candidates", "Voters that may stand for election.", click.IntRange(1, 3))
@_bound("wipes", "Voters that start again with an empty disk.")
@_bound("forgets", "Voters that start again without the file quorum-state.")
@_bound("snapshots", "Snapshots that voters make, and with which their logs then begin.")
@_bound("removals", "Voters that an administrator removes, in a quorum with kraft.version 1.")
@click.option("--quorum", is_flag=True, help="Search three voters of the metadata quorum in place of brokers.")
@click.option("--fixed-order", is_flag=True, default=None, help="KRaft elections try 1, 2, 3, not in any order.")
@click.option(
    "--most-states",
    metavar="N",
    type=click.IntRange(1, MOST_STATES),
    default=STATES_MAX,
    show_default=True,
    help="Give up after N states (200 bytes each in KRaft).",
)
@click.option(
    "--walks",
    metavar="N",
    type=click.IntRange(1, WALKS_MAX),
    help="Follow N random orders of events instead of trying every one.",
)
@click.option("--walk-events", metavar="N", type=click.IntRange(1, 1000), help="Events of a walk.  [default: 60]")
@click.option("--seed", metavar="N", type=click.IntRange(0), help="Seed of the walks.  [default: 0]")
@click.option("--budget", "time_limit", metavar="TIME", help="Give up after this time, such as 60s or 10m.")
@click.option(
    "--output",
    metavar="FILE",
    type=PATH,
    help="Write what is found in KRaft as a scripted scenario, if the simulation shows it, too.",
)
@json_option
@click.pass_obj
def command(
    ui: Ui,
    /,
    mode: str,
    rules: Mapping[str, str],
    strict: bool,
    quorum: bool,
    most_states: int,
    walks: int | None,
    walk_events: int | None,
    seed: int | None,
    time_limit: str | None,
    output: Path | None,
    as_json: bool,
    **bounds: int | None,
) -> int:
    """Try every order of events in a small cluster, until one violates a property.

    In KRaft modes the defaults are the bounds of the public TLA+ specification of KIP-966. The shortest order of events
    that leads to a violation is printed.

    With --quorum, three voters of the metadata quorum elect leaders and replicate the metadata log, while voters lose
    power in the middle of a write, or start without their disk or their vote.

    With --walks, random orders of events are followed instead, as by TLC's -simulate. They reach violations that lie
    too deep for an exhaustive search. The counterexample is shortened, but may not be the shortest.

    With --output, what is found is written as a scripted scenario for `highwater run`, which holds back each message
    until the event at which it arrives. It is run first: if the simulation does not show the same kind of violation or
    early warning, nothing is written, and the command prints why. The exit code is still that of the search.

    Exit 0 when all states within the bounds were seen and none violates a property, 1 after a violation, 3 when a limit
    was reached first, or no walk found a violation.
    """
    from highwater.lab.explore.kraft.cluster import KRaftCluster
    from highwater.lab.explore.search import search
    from highwater.lab.explore.walk import walk

    if walks is None:
        for name, value in (("--walk-events", walk_events), ("--seed", seed)):
            if value is not None:
                raise InputError(f"{name} has no effect without --walks")
    seconds = None if time_limit is None else duration("--budget", time_limit)
    given = {name.replace("_", "-"): value for name, value in bounds.items() if value is not None}
    world = subject_of(mode, rules, given, quorum=quorum)
    if output is not None:
        if not isinstance(world, KRaftCluster):
            where = "with --quorum" if quorum else f"in {mode}, a mode with ZooKeeper"
            raise InputError(f"--output has no effect {where}")
        starts.check_file("--output", output, starts.EXPLORED)
    until = world.kinds if strict else world.violations
    found = (
        search(world, until=until, ends=world.violations, most_states=most_states, time_limit=seconds)
        if walks is None
        else walk(
            world,
            until=until,
            walks=walks,
            most_events=walk_events or WALK_EVENTS,
            seed=seed or 0,
            most_states=most_states,
            time_limit=seconds,
        )
    )
    code = exit_codes.EXPECTED if found.exhausted else exit_codes.INCONCLUSIVE
    code = exit_codes.UNEXPECTED if found.stopped else code
    if as_json:
        ui.json(_as_json(world, found))
    else:
        ui.show(_blocks(world, found))
        ui.verdict(_verdict(found), code)
    if output is not None and isinstance(world, KRaftCluster):
        words = [
            *(["--strict"] if strict else []),
            *_words(given),
            *_words({"walks": walks, "walk-events": walk_events, "seed": seed}),
        ]
        paths_found = {kind: found.paths[kind] for kind in until if kind in found.paths}
        _write(ui, output, world, paths_found, mode, rules, words)
    return code


def _words(options: Mapping[str, int | None]) -> list[str]:
    """Options as words of a command; a flag is True."""
    words: list[str] = []
    for name, value in options.items():
        if value is not None and value is not False:
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words


def _write(
    ui: Ui,
    file: Path,
    cluster: KRaftCluster,
    found: Mapping[str, list[tuple[Action, int]]],
    word: str,
    rules: Mapping[str, str],
    words: Sequence[str],
) -> None:
    """Write the first of the kinds found that the simulation shows, too, as a scripted scenario."""
    from highwater.lab.explore.kraft.scripting import NotReproducedError, Wanted, to_toml
    from scenarios.format.catalogue import mode

    chosen = ["--mode", word, *(part for name, value in rules.items() for part in ("--rule", f"{name}={value}"))]
    reason = "nothing was found"
    for kind, path in found.items():
        wanted = Wanted(kind, mode(word), rules, shlex.join(["highwater", "explore", *chosen, *words]))
        try:
            text = to_toml(cluster, path, wanted)
        except NotReproducedError as error:
            reason = str(error)
            continue
        own_files.write(file, text, starts.EXPLORED)
        ui.note(f"{kind} occurs in: {shlex.join(['highwater', 'run', str(file), *chosen, '--strict'])}")
        return
    ui.note(f"{file} was not written: {reason}")


def _blocks(subject: Subject, found: Found[Any]) -> Iterator[Block]:
    for kind, path in found.paths.items():
        caption = f"{kind} after {len(path)} events: {subject.kinds[kind]}"
        rows = [
            (number, subject.event(action), subject.describe(after)) for number, (action, after) in enumerate(path, 1)
        ]
        yield Table(["", "event", "state after it"], rows, [""], caption, apart=False)
        yield Line("")
    reached = f"{found.states:,} states, {found.transitions:,} transitions, {found.depth} events deep"
    if found.walks:
        reached = f"{found.walks:,} random walks, {reached}"
    yield Line(f"{reached}, {found.seconds:.1f} CPU s")
    mutant = subject.decide.rules.mutant
    if mutant in subject.decide.mutants.by_name:
        place = subject.decide.mutants.by_name[mutant]
        took = "executed" if place.took else "never executed"
        yield Line(f"mutant {mutant}: its place was {took}, and {'' if place.differed else 'never '}decided otherwise")


def _verdict(found: Found[Any]) -> str:
    kinds = ", ".join(found.paths)
    if found.stopped:
        return f"violation: {kinds}"
    if found.exhausted:
        return f"no violation in any order of events within the bounds{f'; early warnings: {kinds}' if kinds else ''}"
    return "no violation in these random walks" if found.walks else "no violation up to the limit"


def _as_json(subject: Subject, found: Found[Any]) -> dict[str, Any]:
    mutant = subject.decide.mutants.by_name.get(subject.decide.rules.mutant)
    return {
        "states": found.states,
        "transitions": found.transitions,
        "depth": found.depth,
        "walks": found.walks,
        "exhausted": found.exhausted,
        "violates": found.stopped,
        "cpu_s": round(found.seconds, 1),
        "paths": {
            kind: [[subject.event(action), subject.describe(after)] for action, after in path]
            for kind, path in found.paths.items()
        },
        "mutant": None if mutant is None else {"took": mutant.took, "differed": mutant.differed},
    }
