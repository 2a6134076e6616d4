"""A mode reviewed against another one: what a KIP's author wants to know before the vote.

Scripted scenarios run in both modes. Then all random scenarios that fit run on the same seeds in both, as many as the
time allows, and two more in which brokers are upgraded from the base to the mode, and back, one after the other.
"""

from __future__ import annotations

import shlex
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reports import starts
from reports.analysis import paired
from scenarios import paths
from scenarios.format import catalogue
from scenarios.format.cluster_checks import check_control_plane
from scenarios.single.run import run_modes, run_row
from scenarios.sweep.driver import run_sweep
from scenarios.sweep.local import LocalBackend
from scenarios.sweep.store import Store
from scenarios.sweep.units import Sweep
from sim.errors import InputError
from sim.protocol.decisions import to_values
from sim.protocol.modes import MODES, changed
from sim.protocol.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from reports.analysis.compare import Difference, Group, Pair
    from scenarios.format.scenario import Scenario
    from sim.protocol.modes import Mode

PILOT: Final = 3
"""Seeds that tell how long a scenario takes."""
LEAST: Final = 20
"""Fewest seeds of a scenario, whatever the time."""
MOST: Final = 100_000
LIVENESS: Final = ("no-progress", "stuck-replica")
SURE: Final = 1.8
"""Multiple of the 95 % interval's half beyond which a difference in availability counts: a review makes a hundred such
comparisons, of which five would exceed the interval by chance."""
UPGRADE: Final = "rolling-upgrade"
DOWNGRADE: Final = "rolling-downgrade"
LATER: Final = "99"
"""Release of the mode to which a downgraded broker returns: brokers restart in a later one."""


@dataclass(frozen=True, slots=True)
class StoryEnd:
    """How a scripted scenario ends in both modes; `worse` and `better` are about violations inside the promise."""

    scenario: str
    base: str
    mode: str
    commands: tuple[str, str]
    worse: bool
    better: bool


@dataclass(frozen=True, slots=True)
class Swept:
    """A random scenario on the same seeds in both modes.

    Attributes:
        effects: differing rule -> runs of the base in which the mode's value would have acted differently.
        touched: runs of the base in which any of them would have.
        only_mode: kinds inside the promise -> seeds on which only the mode shows them; `only_base` likewise.
    """

    name: str
    answer: paired.Answer
    pair: Pair
    groups: dict[str, Group]
    effects: dict[str, int]
    touched: int
    only_mode: dict[str, int]
    only_base: dict[str, int]
    commands: tuple[str, ...]

    @property
    def costs(self) -> list[Difference]:
        """Measures of availability that surely differ."""
        return [
            one
            for one in self.pair.availability
            if one.low is not None and one.high is not None and abs(one.mean) > SURE * (one.high - one.low) / 2
        ]


@dataclass(slots=True)
class Review:
    """A finished review.

    Attributes:
        rules: rules that differ: name, value of the base, of the mode.
        stories: number of scripted scenarios that ran, and those that end otherwise.
        swept: random scenarios.
        moved: upgrade and downgrade.
        skipped: what was not done, and why.
    """

    base: Mode
    mode: Mode
    claim: str
    rules: list[tuple[str, str, str]] = field(default_factory=list)
    story_count: int = 0
    stories: list[StoryEnd] = field(default_factory=list)
    swept: list[Swept] = field(default_factory=list)
    moved: list[Swept] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def lost(self) -> dict[str, int]:
        """Kind of violation inside the promise -> seeds on which only the mode shows it."""
        return _summed(self.swept)

    @property
    def broken(self) -> dict[str, int]:
        """The same for brokers that are upgraded or downgraded."""
        return _summed(self.moved)

    @property
    def is_worse(self) -> bool:
        """Whether the mode breaks its promise where the base does not."""
        return bool(self.lost or self.broken or any(story.worse for story in self.stories))


def _summed(swept: Sequence[Swept]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for one in swept:
        found.update(one.only_mode)
    return dict(sorted(found.items()))


def review(
    mode: Mode,
    base: Mode,
    folder: Path,
    *,
    claim: str = "",
    budget_s: float = 600.0,
    seeds: int | None = None,
    processes: int = 1,
    scenarios: Sequence[str] = (),
    tell: Callable[[str], None] = lambda _: None,
) -> Review:
    """Review a mode against another.

    Args:
        mode: the mode.
        base: the mode that it is compared with.
        folder: gets the sweeps, and the scenarios of upgrade and downgrade.
        claim: what the author claims.
        budget_s: time for random scenarios.
        seeds: seeds of each random scenario; None: as many as the time allows.
        processes: number of worker processes.
        scenarios: only these random scenarios; empty: all that fit.
        tell: called with what is done next.

    Raises:
        InputError: the modes have the same rules, or another control plane.
    """
    mine, theirs = mode.rules.as_dict(), base.rules.as_dict()
    rules = [(name, theirs[name], mine[name]) for name in RULES if mine[name] != theirs[name]]
    if not rules:
        raise InputError(f"{mode.name} and {base.name} have the same rules: there is nothing to review")
    if mode.rules.control_plane != base.rules.control_plane:
        raise InputError(f"{mode.name} and {base.name} have different control planes: no scenario compares them")
    found = Review(base, mode, claim, rules)
    tell("scripted scenarios")
    _run_stories(found)
    drawn = [load for load in _fitting(base) if load.faults is not None and (load.name in scenarios or not scenarios)]
    moves = list(_moves(found, folder))
    runs = [(scenario, (base, mode), scenario.name) for scenario in drawn]
    runs += [(scenario, modes, scenario.name) for scenario, modes in moves]
    numbers = _numbers(runs, budget_s * processes) if seeds is None else [seeds] * len(runs)
    for (scenario, modes, name), number in zip(runs, numbers, strict=True):
        tell(f"{name}, {number:,} seeds")
        swept = _sweep(found, folder / name, scenario, modes, number, processes)
        (found.moved if name in (UPGRADE, DOWNGRADE) else found.swept).append(swept)
    return found


def _fitting(base: Mode) -> Iterator[Scenario]:
    for name in catalogue.names():
        scenario = catalogue.load(name)
        try:
            check_control_plane(scenario, [base])
        except InputError:
            continue
        yield scenario


def _run_stories(found: Review) -> None:
    for scenario in _fitting(found.base):
        if scenario.drawn or scenario.broker_modes:
            continue
        found.story_count += 1
        rows = [run_row(scenario, mode, 0) for mode in (found.base, found.mode)]
        told = [_ending(row) for row in rows]
        if told[0] != told[1]:
            words = [mode.source or mode.name for mode in (found.base, found.mode)]
            commands = [shlex.join(["highwater", "run", scenario.name, "--mode", word]) for word in words]
            inside = [set(filter(None, row["violations_inside"].split(","))) for row in rows]
            worse, better = bool(inside[1] - inside[0]), bool(inside[0] - inside[1])
            found.stories.append(StoryEnd(scenario.name, told[0], told[1], (commands[0], commands[1]), worse, better))


def _ending(row: dict[str, Any]) -> str:
    """How a scripted run ends: what it violates, inside first; or the step that did not occur."""
    if row["error"]:
        return str(row["error"])
    inside = row["violations_inside"].split(",")
    kinds = [f"{kind} (inside)" if kind in inside else kind for kind in filter(None, row["violations"].split(","))]
    return ", ".join(kinds) or str(row["verdict"])


def _moves(found: Review, folder: Path) -> Iterator[tuple[Scenario, tuple[Mode, Mode]]]:
    """Scenarios in which brokers begin in one of the modes and restart in the other, and the modes to compare."""
    base, mode = found.base, found.mode
    if MODES.get(base.name) != base or base.place >= mode.place:
        found.skipped.append(
            f"Upgrade and downgrade were not tried: {mode.name} does not come after {base.name}, or {base.name} is no "
            "mode of Highwater."
        )
        return
    try:
        named = changed(base, {name: value for name, _, value in found.rules})
    except InputError as error:
        found.skipped.append(f"Upgrade and downgrade were not tried: {error}.")
        return
    yield _written(folder / f"{UPGRADE}.toml", UPGRADE, base.name, base), (base, mode)
    file = folder / "back.toml"
    text = f'schema = 1\nname = "back"\ntitle = "{base.name} again, after a downgrade"\nbase = "{base.name}"\n'
    paths.write(file, f'{text}release = "{LATER}"\n', starts.REVIEWED)
    yield _written(folder / f"{DOWNGRADE}.toml", DOWNGRADE, named.name, base), (base, catalogue.mode(str(file)))


def _written(file: Path, name: str, older: str, base: Mode) -> Scenario:
    """`rolling` with brokers that begin in another mode, as a file."""
    lines = []
    for line in catalogue.text("rolling").splitlines():
        if line.startswith("[expect]"):
            lines += [line, f'"{base.name}" = "may-violate"', ""]
            break
        if line.startswith("name ="):
            line = f'name = "{name}"'
        elif line.startswith("brokers.upgraded_from"):
            line = f'brokers.upgraded_from = ["{older}"]'
        lines.append(line)
    paths.write(file, "\n".join(lines), starts.REVIEWED)
    return replace(catalogue.load(str(file)), source=str(file))


def _numbers(runs: Sequence[tuple[Scenario, tuple[Mode, Mode], str]], budget_s: float) -> list[int]:
    """Seeds of each scenario, so that all take the same share of the time."""
    found = []
    for scenario, modes, _ in runs:
        begin = time.perf_counter()
        for seed in range(PILOT):
            for _row in run_modes(scenario, modes, seed):
                pass
        each_s = (time.perf_counter() - begin) / PILOT
        number = max(LEAST, min(MOST, int(budget_s / len(runs) / each_s)))
        digits = 10 ** max(0, len(str(number)) - 2)
        found.append(number // digits * digits)
    return found


def _sweep(
    found: Review, folder: Path, scenario: Scenario, modes: tuple[Mode, Mode], number: int, processes: int
) -> Swept:
    run_sweep(Sweep((scenario,), {scenario.name: modes}, 0, number), str(folder), LocalBackend(processes))
    stores = Store(str(folder)), Store(str(folder))
    (answer,) = paired.of_stores(stores, None, [mode.name for mode in modes])
    (pair,) = answer.comparison.pairs
    rows = stores[0].rows(["mode", "seed", "violations_inside", "decided"])
    inside: dict[str, dict[int, frozenset[str]]] = {mode.name: {} for mode in modes}
    effects: Counter[str] = Counter()
    touched = 0
    differing = {(name, value) for name, _, value in found.rules}
    for mode, seed, kinds, decided in zip(*rows.values(), strict=True):
        inside[mode][seed] = frozenset(filter(None, kinds.split(",")))
        if mode == found.base.name:
            asked = {name for name, _ in to_values(int(decided, 16)) & differing}
            effects.update(asked)
            touched += bool(asked)
    first, second = (inside[mode.name] for mode in modes)
    only = Counter(kind for seed, kinds in second.items() for kind in kinds - first.get(seed, frozenset()))
    other = Counter(kind for seed, kinds in first.items() for kind in kinds - second.get(seed, frozenset()))
    words = ",".join(mode.source or mode.name for mode in modes)
    where = scenario.source or scenario.name
    sweep = ["highwater", "sweep", where, "--modes", words, "--seeds", f"0..{number}", "--output", str(folder)]
    return Swept(
        scenario.name,
        answer,
        pair,
        {group.name: group for group in answer.comparison.groups},
        {name: effects[name] for name, *_ in found.rules},
        touched,
        dict(only),
        dict(other),
        (shlex.join([*sweep, "--local", str(processes)]), shlex.join(["highwater", "compare", str(folder)])),
    )
