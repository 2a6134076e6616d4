"""Two sides on the same seeds: who loses where, at which price, and the smallest seed that only one side loses."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from reports.analysis import compare, sentences
from reports.analysis.compare import MODE, Comparison, GroupRuns, Pair
from reports.formatting import share
from scenarios.format.grid import points
from scenarios.single.ended_run import replay_line
from sim.config import shown
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from reports.analysis.frame import Frame
    from scenarios.format.grid import Point
    from scenarios.format.scenario import Scenario
    from scenarios.sweep.store import Store
    from sim.protocol.modes import Mode

LOSS: Final = "committed-loss"
"""The kind that the first line is about, unless another is asked for."""
RULES_MOST: Final = 6
"""Most rules that a line about differences names."""


@dataclass(frozen=True, slots=True)
class Example:
    """The smallest seed that only one side shows a kind on.

    Attributes:
        side: name of the side.
        replay: the command that replays it; empty if the command line does not know its mode.
        show: the command that shows it beside the other side, or replays it on the other side.
    """

    side: str
    seed: int
    replay: str
    show: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a paired question, for one scenario at one point of a grid.

    Attributes:
        said: the first line.
        differs: in what the sides differ, a line each.
        examples: of each side, if there is one.
    """

    comparison: Comparison
    kind: str
    said: str
    differs: tuple[str, ...]
    examples: tuple[Example, ...]


@dataclass(slots=True)
class _Side:
    """One side: the runs of a mode in a folder at one point of its grid."""

    name: str
    store: Store
    scenario: Scenario
    mode: Mode
    point: Point
    runs: GroupRuns
    rules: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.rules = self.store.sweep.rules

    @property
    def word(self) -> str:
        """The mode as the command line takes it."""
        return self.mode.source or self.mode.name

    def row(self, seed: int) -> dict[str, Any]:
        """Digest and replay line of a seed."""
        columns = ["mode", "seed", "digest", "replay", *self.point]
        for _, table in self.store.tables([*columns, "scenario"]):
            for row in table.to_pylist():
                key = row["seed"], row["mode"], row["scenario"]
                if key == (seed, self.mode.name, self.scenario.name) and self.point.items() <= row.items():
                    return dict(row)
        raise KeyError(seed)


def of_stores(stores: Sequence[Store], kind: str | None = None, modes: Sequence[str] = ()) -> list[Answer]:
    """Compare two folders on their common seeds, scenario by scenario.

    Args:
        stores: the folders; one that is given twice is compared with itself, in two modes.
        kind: the kind of violation; None: `LOSS`, and tables of all.
        modes: a mode for each folder; by default the only one, or those with the same name.

    Raises:
        InputError: the folders have nothing in common, or it is not clear what to compare.
    """
    one, other = stores
    names = [name for name in one.scenarios if name in other.scenarios]
    if not names:
        raise InputError(f"{one.folder.shown} and {other.folder.shown} have no scenario in common")
    if list(one.grid) != list(other.grid):
        raise InputError(
            f"{one.folder.shown} varies {', '.join(one.grid) or 'no setting'}, "
            f"{other.folder.shown} {', '.join(other.grid) or 'none'}: sweep both at the same settings"
        )
    answers = []
    for name in names:
        frames = [compare.read(store, [*compare.COLUMNS, *store.grid], name) for store in stores]
        for first, second in _pairs(stores, name, modes):
            for point in points(one.grid):
                sides = _sides(stores, frames, name, (first, second), point)
                if sides is not None:
                    answers.append(_answer(sides, kind))
    if not answers:
        raise InputError(f"{one.folder.shown} and {other.folder.shown} have no seed in common")
    return answers


def _pairs(stores: Sequence[Store], scenario: str, modes: Sequence[str]) -> list[tuple[str, str]]:
    """The modes to compare, one of each folder."""
    there = [[mode.name for mode in store.sweep.modes[scenario]] for store in stores]
    if modes:
        first, second = modes[0], modes[-1]
        return [(first, second)]
    if len(there[0]) == len(there[1]) == 1:
        return [(there[0][0], there[1][0])]
    if common := [name for name in there[0] if name in there[1]]:
        return [(name, name) for name in common]
    told = [f"{store.folder.shown} has {', '.join(names)}" for store, names in zip(stores, there, strict=True)]
    raise InputError(f"{' and '.join(told)}: name a mode of each, --mode A,B")


def _sides(
    stores: Sequence[Store], frames: Sequence[Frame], scenario: str, modes: tuple[str, str], point: Point
) -> tuple[_Side, _Side] | None:
    """Both sides; None if one has no rows there."""
    found: list[_Side] = []
    for store, frame, mode in zip(stores, frames, modes, strict=True):
        by = [MODE, *point]
        groups = frame.groups(by) if len(frame) else {}
        places = groups.get((mode, *point.values()))
        if places is None:
            return None
        variants = {one.name: one for one in store.sweep.scenarios}
        own = next(one for one in store.sweep.modes[scenario] if one.name == mode)
        name = _name(stores, modes, len(found))
        runs = GroupRuns(name, frame, places)
        found.append(_Side(name, store, variants[scenario].with_settings(point), own, point, runs))
    return found[0], found[1]


def _name(stores: Sequence[Store], modes: tuple[str, str], place: int) -> str:
    """What tells a side from the other: its mode, or else its folder."""
    if modes[0] != modes[1]:
        return modes[place]
    folders = [store.folder.shown.rstrip("/").rpartition("/")[2] for store in stores]
    return folders[place] if folders[0] != folders[1] else ("first", "second")[place]


def _answer(sides: tuple[_Side, _Side], kind: str | None) -> Answer:
    scenario = sides[0].scenario.name
    kinds = None if kind is None else [kind]
    about = kind or LOSS
    comparison = compare.of_sides(scenario, dict(sides[0].point), [side.runs for side in sides], kinds, about)
    (pair,) = comparison.pairs
    if not pair.n:
        raise InputError(f"{scenario}: {sides[0].name} and {sides[1].name} have no seed in common")
    common = _common(sides)
    inside = [int(runs.show("violations_inside", about).sum()) for runs in common]
    names = [side.mode.name for side in sides]
    same = f"mode {names[0]}" if names[0] == names[1] else ""
    said = _first_line(comparison, pair, about, inside, same)
    examples = _examples(sides, common, about)
    return Answer(comparison, about, said, tuple(_differences(*sides)), tuple(examples))


def _first_line(comparison: Comparison, pair: Pair, kind: str, inside: Sequence[int], same: str) -> str:
    """Losses on each side, on one side only, p, and the price in availability; `same` is what both sides share."""
    found = next(one for one in pair.kinds if one.kind == kind)
    k = found.both + found.only_a, found.both + found.only_b
    point = [f"{key} = {shown(value)}" for key, value in comparison.fixed.items()]
    where = ", ".join([comparison.scenario, *([same] if same else []), *point])
    blame = f"inside the promise: {inside[0]:,} and {inside[1]:,}; " if any(inside) else ""
    of = {group.name: group.stalled for group in comparison.groups}
    waits = f"stalled: {of[pair.a]:,} and {of[pair.b]:,}; " if any(of.values()) else ""
    what = sentences.does(kind)
    costs = sentences.costs(pair, pair.b)
    price = f"{pair.b}, mean of a run: {', '.join(costs)}" if costs else "availability does not differ"
    return (
        f"{where}: on {pair.n:,} common seeds, {pair.a} {what} in {share(k[0], pair.n)} and {pair.b} in "
        f"{share(k[1], pair.n)}; {blame}only {pair.a}: {found.only_a:,}, only {pair.b}: {found.only_b:,} "
        f"(p = {found.p:.2g}); {waits}{price}."
    )


def _differences(one: _Side, other: _Side) -> Iterator[str]:
    mine, yours = one.mode.override(one.rules).rules.as_dict(), other.mode.override(other.rules).rules.as_dict()
    rules = [name for name in mine if mine[name] != yours.get(name)]
    if rules:
        told = [f"{name} ({mine[name]}, {yours.get(name)})" for name in rules[:RULES_MOST]]
        more = f" and {len(rules) - RULES_MOST} more" if len(rules) > RULES_MOST else ""
        yield f"Rules that differ ({one.name}, {other.name}): {', '.join(told)}{more}"
    settings = one.scenario.config, other.scenario.config
    keys = [key for key in {**settings[0], **settings[1]} if settings[0].get(key) != settings[1].get(key)]
    if keys:
        told = [f"{key} ({_of(settings[0], key)}, {_of(settings[1], key)})" for key in keys]
        yield f"Settings that differ ({one.name}, {other.name}): {', '.join(told)}"
    if one.store.run["code_version"] != other.store.run["code_version"]:
        yield "The folders were written by different versions of the code, which may differ, too"


def _of(config: Mapping[str, Any], key: str) -> str:
    return shown(config[key]) if key in config else "not given"


def _common(sides: tuple[_Side, _Side]) -> tuple[GroupRuns, GroupRuns]:
    """The runs of both sides on their common seeds."""
    import numpy as np

    one, other = (side.runs.without("error") for side in sides)
    _, first, second = np.intersect1d(
        one.numbers("seed"), other.numbers("seed"), assume_unique=True, return_indices=True
    )
    return one.only(first), other.only(second)


def _examples(sides: tuple[_Side, _Side], common: tuple[GroupRuns, GroupRuns], kind: str) -> Iterator[Example]:
    have = [runs.show("violations", kind) for runs in common]
    for place, side in enumerate(sides):
        only = common[place].numbers("seed")[have[place] & ~have[1 - place]]
        if len(only):
            yield _example(side, sides[1 - place], int(only.min()))


def _example(side: _Side, other: _Side, seed: int) -> Example:
    replay = side.row(seed)["replay"]
    return Example(side.name, seed, replay, _show(side, other, seed, replay) if replay else "")


def _show(side: _Side, other: _Side, seed: int, replay: str) -> str:
    """The command that shows a seed on both sides; where `show` cannot, that which replays it on the other side."""
    words = shlex.split(replay)
    words = words[: words.index("--expect-digest")] if "--expect-digest" in words else words
    same = side.scenario.config == other.scenario.config and side.scenario.draw_config == other.scenario.draw_config
    mine, yours = dict(side.rules), dict(other.rules)
    changed = [f"{name}={value}" for name, value in yours.items() if mine.get(name) != value]
    if same and mine == yours:
        return shlex.join([words[0], "show", *words[2:], "--against", other.word])
    if same and side.mode == other.mode and len(changed) == 1 and mine.keys() <= yours.keys():
        return shlex.join([words[0], "show", *words[2:], "--against", changed[0]])
    return replay_line(other.scenario, other.mode, seed, other.rules, other.row(seed)["digest"])
