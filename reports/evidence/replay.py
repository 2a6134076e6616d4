"""Replay of one seed, from a scenario or a sweep's folder, with its digest checked."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reports import exits
from reports.evidence import outcome as single
from reports.evidence.folder import ReplayFolder
from scenarios.format import catalogue, selection
from scenarios.format.blow import parse, to_text
from sim import exit_codes
from sim.config import shown
from sim.errors import InputError, UserError, did_you_mean
from sim.history.digest import DIGEST_BYTES
from sim.protocol.modes import mode as mode_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scenarios.format.blow import Blow
    from scenarios.format.grid import Grid, Point
    from scenarios.format.scenario import Scenario
    from scenarios.single.result import RunResult
    from scenarios.sweep.folder import Folder
    from scenarios.sweep.store import Store
    from sim.config import Value
    from sim.protocol.modes import Mode

STORE: Final = Path("store")
"""Default folder for replays of scenarios."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Scenario, seed and overrides of a replay.

    Attributes:
        word: the source as the user wrote it.
        scenario: the scenario.
        seed: the seed.
        modes: the modes of the sweep or scenario.
        root: the folder that the user named, or `STORE`.
        parts: path components below it, to the default parent of ``seeds/<seed>-<mode>/``.
        rules: rules that the sweep overrode.
        digests: mode -> digest that the sweep stored for this seed.
        warnings: differences from the time of the sweep.
    """

    word: str
    scenario: Scenario
    seed: int
    modes: tuple[Mode, ...]
    root: Path
    parts: tuple[str, ...]
    rules: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def place(self, output: Path | None, seed: int, mode: str, part: str = "seeds") -> ReplayFolder:
        """The folder for the replay of a seed in a mode; below `output` if given."""
        above = self.parts if output is None else ()
        return ReplayFolder(output or self.root, (*above, part, f"{seed}-{mode}{self._after}"))

    def name(self, mode: Mode) -> str:
        """Name of a file about the run."""
        return f"{self.scenario.name}-{mode.name}-{self.seed}{self._after}"

    @property
    def _after(self) -> str:
        """The blows of the run as the end of a name; empty if it has none."""
        return "".join(f"-{blow.warning}-{blow.at_us}.{blow.variant}" for blow in self.scenario.blows)

    def only_mode(self, names: Sequence[str] | None) -> Mode:
        """The mode that the user named, or the only one.

        Raises:
            InputError: there are several, or it is unknown.
        """
        modes = selection.modes(self.scenario, self._names if names is None else names, own=self.modes)
        if len(modes) > 1:
            raise InputError(f"{self.word} runs in several modes; choose one with --mode: {', '.join(self._names)}")
        return modes[0]

    @property
    def _names(self) -> list[str]:
        return [mode.name for mode in self.modes]


@dataclass(frozen=True, slots=True)
class Replayed:
    """A replayed run, its folder, and the digest that it should have, if known."""

    result: RunResult
    folder: Path
    expected_digest: str | None

    @property
    def differs(self) -> bool:
        """Whether the digest differs from the known one."""
        return self.expected_digest not in (None, self.result.row["digest"])

    @property
    def exit_code(self) -> int:
        """Exit code of this run; a different digest takes precedence over an unexpected verdict."""
        digest = exit_codes.DIGEST_DIFFERS if self.differs else exit_codes.EXPECTED
        return exits.worst([exits.of_row(self.result.row), digest])

    @property
    def said(self) -> str:
        """One line about the digest."""
        if self.expected_digest is None:
            return "digest not checked: none is known"
        if self.differs:
            return f"DIGEST DIFFERS: expected {self.expected_digest}, got {self.result.row['digest']}"
        return "digest as expected"

    def as_json(self) -> dict[str, Any]:
        """The replay as one JSON-able object."""
        digest = {"expected": self.expected_digest, "differs": self.differs}
        return {**single.as_json(self.result), "digest": digest, "folder": str(self.folder)}


def origin(
    word: str,
    seed: int | None,
    name: str | None,
    rules: Mapping[str, str],
    settings: Mapping[str, Value],
    *,
    strict: bool = False,
    blow: str = "",
    without: Sequence[str] = (),
) -> Origin:
    """Find the run that the user wants to replay.

    Args:
        word: a bundled scenario's name (preferred to a folder of the same name), a sweep's folder, a scenario file, or
            the plan of a run, a file with the suffix ``.json``.
        seed: the seed; None: 0 for a script, the plan's own for a plan.
        name: scenario of the sweep; required if it has several.
        rules: rules to override.
        settings: settings to override; for a sweep over a grid, the point to run.
        strict: treat early warnings as violations, even if the sweep did not.
        without: kinds of fault that do not strike; for a scenario only.
        blow: blows with which the run continues (`scenarios.format.blow`); empty: none.

    Raises:
        InputError: the source is neither folder nor scenario, is ambiguous, or is a sweep with other rules or settings;
            or the seed is missing; or the blows are malformed, or the scenario is scripted.
    """
    from scenarios.sweep.folder import open_folder

    blows = parse(blow)
    if without and word not in catalogue.names() and not word.endswith(".toml"):
        raise InputError(f"{word} knows its faults: --without-fault goes with a scenario only")
    if word.endswith(".json"):
        if blows:
            raise InputError("a recorded run has the faults of its blows in its plan: --blow goes with a scenario")
        return of_plan(Path(word), None, seed, rules, settings, strict=strict)
    folder = open_folder(word)
    if word not in catalogue.names() and (folder.local is None or folder.local.is_dir()):
        if rules:
            raise InputError(f"{word} knows its rules: --rule goes with a scenario only")
        found = of_sweep(folder, _needed(word, seed), name, settings, blows)
        return replace(found, scenario=replace(found.scenario, strict=True)) if strict else found
    if name is not None:
        raise InputError(f"--scenario chooses among those of a sweep's folder, which {word!r} is not")
    scenario = _with_blows(selection.scenario(word, settings, strict=strict, without=without), blows)
    number = _needed(word, 0 if seed is None and not scenario.drawn else seed)
    # By its name: `ownership.RUN` needs pyarrow, which a browser lacks.
    is_both = word in catalogue.names() and Path(word, "run.json").is_file()
    warnings = (f"{word} is the bundled scenario here; the sweep of this name is ./{word}",) if is_both else ()
    modes = tuple(map(mode_named, scenario.expect))
    return Origin(word, scenario, number, modes, STORE, (scenario.name,), rules, warnings=warnings)


def _with_blows(scenario: Scenario, blows: tuple[Blow, ...]) -> Scenario:
    if blows and not scenario.drawn:
        raise InputError(f"--blow follows an early warning of a random scenario, and {scenario.name} is scripted")
    return replace(scenario, blows=blows)


def _needed(word: str, seed: int | None) -> int:
    if seed is None:
        raise InputError(f"{word} runs with any seed: choose one with --seed N")
    return seed


def of_plan(
    file: Path,
    word: str | None,
    seed: int | None,
    rules: Mapping[str, str],
    settings: Mapping[str, Value],
    *,
    strict: bool = False,
) -> Origin:
    """Read a recorded run, a ``plan.json`` that ``replay`` wrote; other arguments as in `origin`.

    `word` is its scenario, and required if the file holds only faults and no run.

    Raises:
        InputError: the file is no plan, belongs to another scenario, or has no seed.
        StorageError: it cannot be read.
    """
    from scenarios.single import recording

    found = recording.read(file, None if word is None else selection.scenario(word, settings, strict=strict))
    scenario = found.scenario
    number = _needed(str(file), found.seed if seed is None else seed)
    if found.mode is not None:
        selection.check_settings(scenario, settings)
        scenario = replace(scenario.with_settings(settings), strict=scenario.strict or strict)
    changed = rules or settings or number != found.seed or strict > found.scenario.strict
    digests = {found.mode.name: found.digest} if found.mode and found.digest and not changed else {}
    modes = (found.mode,) if found.mode else tuple(map(mode_named, scenario.expect))
    rules = {**(found.rules or {}), **rules}
    # The place of the scenario itself is that of the seed's whole run, which a plan may be a part of.
    return Origin(str(file), scenario, number, modes, STORE, (scenario.name, "plans"), rules, digests)


def expected_digests(origin: Origin, modes: Sequence[str], given: str | None) -> Mapping[str, str]:
    """Mode -> digest that its run must have, where known.

    Raises:
        InputError: one digest is given for several modes, or the value is not a digest.
    """
    if given is None:
        return origin.digests
    if len(modes) > 1:
        raise InputError(f"--expect-digest is of one run; choose one with --mode: {', '.join(modes)}")
    if re.fullmatch(f"[0-9a-fA-F]{{{2 * DIGEST_BYTES}}}", given) is None:
        raise InputError(f"--expect-digest {given!r} is no digest: {2 * DIGEST_BYTES} hex digits are needed")
    return {modes[0]: given.lower()}


def of_sweep(
    folder: Folder, seed: int, name: str | None, settings: Mapping[str, Value], blows: tuple[Blow, ...] = ()
) -> Origin:
    """Find a run of a sweep's folder; arguments and errors as in `origin`."""
    from scenarios.format import schema
    from scenarios.format.grid import words
    from scenarios.sweep.store import Store
    from scenarios.sweep.units import seed_ranges
    from sim.protocol.rules import check as check_rule

    store = Store(folder)
    run = store.run
    ranges = seed_ranges(run)
    if not any(first <= seed < end for first, end in ranges):
        held = ", ".join(f"{first}..{end}" for first, end in ranges)
        raise InputError(
            f"seed {seed} is outside the sweep: {folder.shown} holds seeds {held} (the end is not part of it)"
        )
    point = _point(folder.shown, store.grid, settings)
    stored = {entry["name"]: entry for entry in run["scenarios"]}
    name = _chosen(folder.shown, name, stored)
    try:
        scenario = schema.of_store(stored[name])
        selection.check_settings(scenario, point)
        for rule, value in run["rules"].items():
            check_rule(rule, value)
    except InputError as error:
        raise InputError(*(f"{folder.shown}/run.json: {problem}" for problem in error.problems)) from None
    # What a bucket holds is replayed onto this machine's disk.
    parts = [name] if len(stored) > 1 or folder.local is None else []
    parts += [words(point).replace(" ", ",")] if point else []
    scenario = _with_blows(scenario.with_settings(point), blows)
    modes, digests = store.sweep.modes[name], _digests(store, name, seed, point, to_text(blows))
    warnings = (*store.shortcomings(), *_warnings(run, scenario))
    root = folder.local or STORE
    return Origin(folder.shown, scenario, seed, modes, root, tuple(parts), run["rules"], digests, warnings)


def _chosen(folder: str, name: str | None, scenarios: Mapping[str, object]) -> str:
    if name is None:
        if len(scenarios) > 1:
            raise InputError(f"{folder} holds several scenarios; choose one with --scenario: {', '.join(scenarios)}")
        return next(iter(scenarios))
    if name not in scenarios:
        raise InputError(f"{folder} holds no scenario {name!r}{did_you_mean(name, scenarios)}")
    return name


def _point(folder: str, grid: Grid, settings: Mapping[str, Value]) -> Point:
    """The point of a sweep's grid that the settings name.

    Raises:
        InputError: they name a key or value outside the grid, or omit a key that varies.
    """
    problems = []
    for key, value in settings.items():
        if key not in grid:
            problems.append(f"{folder} knows its settings: --set {key} goes with a scenario only")
        elif value not in grid[key]:
            there = ", ".join(map(shown, grid[key]))
            problems.append(f"{folder} holds no {key} = {shown(value)}; one of: {there}")
    for key in grid.keys() - settings.keys():
        there = ", ".join(map(shown, grid[key]))
        problems.append(f"{folder} holds several values of {key}; choose one with --set {key}=...: {there}")
    if problems:
        raise InputError(*sorted(problems))
    return {key: settings[key] for key in grid}


def _digests(store: Store, scenario: str, seed: int, point: Point, blow: str) -> dict[str, str]:
    from scenarios.sweep.store import StoredRuns

    wanted = {"scenario": scenario, "seed": seed, "blow": blow, **point}
    found: dict[str, str] = {}
    for _, table in store.choose(runs=StoredRuns.ALL).tables([*wanted, "mode", "digest"]):
        # Of a million rows, few become dictionaries.
        places = (table["seed"].to_numpy() == seed).nonzero()[0]
        rows = table.take(places).to_pylist()
        found |= {row["mode"]: row["digest"] for row in rows if all(row[name] == wanted[name] for name in wanted)}
    return found


def _warnings(run: Mapping[str, Any], scenario: Scenario) -> Iterator[str]:
    """Differences from the time when the sweep began."""
    from scenarios.version import code_version

    if run["code_version"] != code_version():
        yield f"the sweep ran code {run['code_version']}, this is {code_version()}: the digest may differ"
    # The scenario file may no longer exist; the sweep's own copy is replayed in any case.
    with contextlib.suppress(UserError):
        now = selection.scenario(scenario.source or scenario.name, selection.settings(scenario.overrides))
        if now.scenario_hash() != scenario.scenario_hash():
            yield (
                f"scenario {scenario.name} has changed since the sweep (hash {scenario.scenario_hash()} then, "
                f"{now.scenario_hash()} now); the sweep's is replayed"
            )
