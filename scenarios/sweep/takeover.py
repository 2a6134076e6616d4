"""Units of a sweep whose rows are taken over from another sweep's folder: see `scenarios.single.reuse`.

A unit is taken over if each of its modes has the same history as a mode of the other sweep at this seed, and the same
promise, by which the other row was judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from scenarios.single.reuse import is_alike, promise_alike, taken_over
from scenarios.single.rows import COLUMNS, Row
from scenarios.sweep.extent import Extent, Piece, runs_of
from scenarios.version import code_version
from sim.errors import InputError

if TYPE_CHECKING:
    from scenarios.format.scenario import Scenario
    from scenarios.sweep.store import Store
    from scenarios.sweep.units import Sweep

WITHOUT: Final = ("title", "description", "confirm", "finding", "source", "overrides")
"""Fields of a scenario that change no row but its replay line."""


def check(sweep: Sweep, source: Store) -> None:
    """Check that rows of a folder can be taken over at all.

    Raises:
        InputError: other code or other rules ran there, or the sweep has blows.
    """
    where = source.folder.shown
    if source.run["code_version"] != code_version():
        there = source.run["code_version"]
        raise InputError(f"--reuse {where}: its rows are of code {there}, this is {code_version()}: sweep it again")
    if dict(source.sweep.rules) != dict(sweep.rules):
        raise InputError(f"--reuse {where}: it ran with --rule {dict(source.sweep.rules)}, this is {dict(sweep.rules)}")
    if sweep.blows:
        raise InputError("--reuse takes over runs without blows only: leave out --blows")
    known = [_about(variant) for variant in source.sweep.variants]
    if not any(_about(variant) in known for variant in sweep.variants):
        raise InputError(f"--reuse {where}: it has none of the scenarios with the same settings")


def batches(sweep: Sweep, source: Store, missing: Extent) -> Iterator[tuple[list[Piece], list[Row]]]:
    """For each wave of a folder, the missing units that can be taken over, and their rows."""
    there = {_key(source, place): place for place in range(len(source.sweep.variants))}
    abouts = [_about(variant) for variant in sweep.variants]
    wanted = {}
    for key, other in there.items():
        about = _about(source.sweep.variants[other])
        if about in abouts:
            wanted[key] = abouts.index(about)
    for _, table in source.tables():
        found: dict[tuple[int, int], list[Row]] = defaultdict(list)
        for row in table.to_pylist():
            variant = wanted.get((row["scenario"], *(row[key] for key in source.grid)))
            if variant is not None and missing.has(variant, row["seed"]):
                found[variant, row["seed"]].append(row)
        rows: list[Row] = []
        seeds: dict[int, list[int]] = defaultdict(list)
        for (place, seed), candidates in found.items():
            unit = _unit(sweep, source, place, candidates)
            if unit is not None:
                rows += unit
                seeds[place].append(seed)
        if rows:
            yield [(place, *ends) for place, each in sorted(seeds.items()) for ends in runs_of(each)], rows


def _unit(sweep: Sweep, source: Store, place: int, candidates: list[Row]) -> list[Row] | None:
    """The rows of a unit in all modes; None if a mode has to run."""
    scenario = sweep.variants[place]
    modes = {mode.name: mode for mode in source.sweep.modes[scenario.name]}
    settings = {key: scenario.config[key] for key in sweep.grid}
    rows = []
    for mode in sweep.modes[scenario.name]:
        for row in candidates:
            first = modes[row["mode"]]
            if promise_alike(first, mode, sweep.rules) and is_alike(scenario, row, first, mode, sweep.rules):
                plain = {name: row[name] for name in COLUMNS}
                rows.append(taken_over(scenario, plain, first, mode, sweep.rules, None) | settings)
                break
        else:
            return None
    return rows


def _key(source: Store, place: int) -> tuple[Any, ...]:
    variant = source.sweep.variants[place]
    return variant.name, *(variant.config[key] for key in source.grid)


def _about(scenario: Scenario) -> dict[str, Any]:
    return {name: value for name, value in scenario.to_json().items() if name not in WITHOUT}
