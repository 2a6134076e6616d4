"""Requests of commands and of Python functions: what can be asked, with its options (`highwater.option`) and checks.

An option that several requests have is declared once, above them. A request holds what was asked; its methods check it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import click

from highwater import values
from highwater.option import Argument, Option
from sim.config import Value
from sim.errors import InputError

if TYPE_CHECKING:
    from reports.evidence.replay import Origin
    from scenarios.format.grid import Grid
    from scenarios.format.scenario import Scenario
    from scenarios.properties.cluster import ClusterSettings
    from scenarios.properties.releases import Release
    from scenarios.sweep.stop_rules import StopRules
    from scenarios.sweep.store import Store
    from scenarios.sweep.units import Sweep
    from sim.protocol.modes import Mode as ModeOfKafka

RUNS_MAX: Final = 10**12
"""A thousand cores would need weeks for so many."""
COMBINATIONS_MAX: Final = 10_000
PROCESSES: Final = click.IntRange(1, 64)
FILE: Final = click.Path(path_type=Path)

# Options that several requests have.


def mode_option(help: str, metavar: str = "A,B", before: str = "") -> Option:  # noqa: A002 - click's name
    """--mode of a request."""
    return Option("--mode", "--modes", metavar=metavar, completes="modes", help=help, before=before)


def seed_option(help: str, before: str = "") -> Option:  # noqa: A002
    """--seed of a request."""
    return Option(metavar="N", read=values.seed, help=help, before=before)


def kind_option(help: str, before: str = "") -> Option:  # noqa: A002
    """--kind of a request."""
    return Option(metavar="KIND", completes="kinds", help=help, before=before)


def plan_option(help: str, before: str = "") -> Option:  # noqa: A002
    """--plan of a request."""
    return Option(metavar="FILE", help=help, before=before)


def budget(default: str, help: str, before: str = "") -> Option:  # noqa: A002 - click's name
    """--budget of a request, in seconds."""
    read = partial(values.duration, "--budget")
    return Option(
        "--budget",
        metavar="TIME",
        default=default,
        show_default=True,
        read=read,
        help=help,
        before=before,
        in_python=f"{help.partition(', as ')[0].rstrip('.')} (seconds).",
    )


def evidence_folder(part: str) -> Option:
    """--output of a request for evidence, in the folder `part`."""
    return Option(
        "--output",
        metavar="DIR",
        help=f"Gets {part}/<seed>-<mode>/; by default the sweep's folder, or store/SCENARIO here (store/SCENARIO/plans "
        "of a plan).",
    )


SOURCE: Final = "A sweep's folder, a scenario (name or .toml file), or a recorded run (plan.json)."
AsJson = Annotated[bool, Option("--json", help="Print the result as one JSON object.")]
Form = Literal["text", "markdown"]
Names = str | Iterable[str]
"""Names as ``A,B``, or one by one."""
Kind = Annotated[str | None, kind_option("Only this kind of violation.")]
Mode = Annotated[Names | None, mode_option("Mode; required if there are several.", "MODE", "scenario")]
FailedMode = Annotated[
    Names | None, mode_option("Mode; required if the sweep or [expect] has several.", "MODE", "scenario")
]
Source = Annotated[str | Path | None, Argument(metavar="DIR|SCENARIO|PLAN", completes="scenarios", help=SOURCE)]
FailedSource = Annotated[
    str | Path | None, Argument(metavar="DIR|SCENARIO|PLAN", required=False, completes="scenarios", help=SOURCE)
]
FailedSeed = Annotated[int | None, seed_option("Seed, decimal or 0x; a recorded run has its own.")]
Partition = Annotated[
    str | None,
    Option(metavar="TOPIC-N", help="Show this partition; by default that of the first violation, or the first."),
]
Rules = Annotated[
    Mapping[str, str],
    Option(
        "--rule",
        metavar="NAME=VALUE",
        multiple=True,
        read=values.rule_words,
        completes="rules",
        help="Override one rule of the mode (see 'highwater modes show').",
    ),
]
Settings = Annotated[
    Mapping[str, object],
    Option(
        "--set",
        metavar="KEY=VALUE",
        multiple=True,
        read=values.setting_words,
        completes="settings",
        help="Override one setting of the scenario (see 'highwater scenarios show --resolved').",
    ),
]
WithoutFaults = Annotated[
    Sequence[str],
    Option(
        "--without-fault",
        metavar="KIND",
        multiple=True,
        completes="faults",
        help="Draw the same faults, but without those of this kind.",
    ),
]
Strict = Annotated[bool, Option(help="Treat early warnings as violations (see 'sim/checkers/README.md').")]
KeepsCluster = Annotated[
    bool,
    Option("--keep-cluster", help="Shrink faults and batches only: brokers and settings stay.", before="partition"),
]


# One run.


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A request for one run.

    Without a `source`, `plan` brings it along; otherwise that is the ``plan.json`` of a run of `source`.
    """

    source: Source = field(kw_only=False)
    mode: Mode = field(default=None, kw_only=False)
    seed: Annotated[int | None, seed_option("Seed, decimal or 0x; a plan has its own.")] = field(
        default=None, kw_only=False
    )
    plan: Annotated[Path | None, "A recorded run, the plan.json of replay."] = None
    scenario: Annotated[
        str | None, Option(metavar="NAME", completes="scenarios", help="Scenario, if the sweep has several.")
    ] = None
    blow: Annotated[
        str, Option(metavar="WARNING@TIME_US.N", help="Continue it with a blow, as 'sweep --blows' does.")
    ] = ""
    partition: Annotated[str | None, "The partition to show."] = None
    rules: Rules = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)
    without_faults: WithoutFaults = ()
    strict: Strict = False

    def origin(self) -> Origin:
        """Scenario, seed and overrides of the run.

        Raises:
            InputError: the request is not valid.
        """
        from scenarios.format import selection

        found = self._origin()
        return replace(found, scenario=selection.showing(found.scenario, self.partition))

    def _origin(self) -> Origin:
        from reports.evidence import replay

        laid = values.rules(self.rules), values.settings(self.settings)
        number = None if self.seed is None else values.seed(self.seed)
        if self.plan is not None:
            if self.without_faults:
                raise InputError("a recorded run has its own faults: --without-fault goes without --plan")
            if self.blow:
                raise InputError("a recorded run has the faults of its blows in its plan: --blow goes without --plan")
            if self.scenario is not None:
                raise InputError("--scenario chooses among those of a sweep's folder, and goes without --plan")
            return replay.of_plan(self.plan, self._source, number, *laid, strict=self.strict)
        if self._source is None:
            raise InputError(
                "a failed run is missing: one of a sweep's folder, a scenario, or a recorded run: --plan FILE"
            )
        return replay.origin(
            self._source,
            number,
            self.scenario,
            *laid,
            strict=self.strict,
            blow=self.blow,
            without=self.without_faults,
        )

    @property
    def _source(self) -> str | None:
        return None if self.source is None else os.fspath(self.source)

    def one(self) -> tuple[Origin, ModeOfKafka]:
        """The run's `origin` and its mode.

        Raises:
            InputError: the request is not valid, or names no mode where there are several.
        """
        origin = self.origin()
        return origin, origin.only_mode(None if self.mode is None else values.names(self.mode))


@dataclass(frozen=True, kw_only=True)
class ShownRequest(RunRequest):
    """A request to show a run."""

    seed: Annotated[int | None, seed_option("Seed, decimal or 0x; a scripted scenario and a plan need none.")] = field(
        default=None, kw_only=False
    )
    partition: Partition = None


@dataclass(frozen=True, kw_only=True)
class ShrinkRequest(RunRequest):
    """A request to shrink a failed run."""

    source: FailedSource = field(default=None, kw_only=False)
    mode: FailedMode = field(default=None, kw_only=False)
    seed: FailedSeed = field(default=None, kw_only=False)
    plan: Annotated[Path | None, plan_option("Shrink a recorded run, the plan.json of replay.", "seed")] = None
    kind: Annotated[
        str | None, kind_option("The violation to keep; by default the first inside the promise.", "partition")
    ] = None
    budget_s: Annotated[float, budget("30s", "Time limit, as 30s or 2m.", before="partition")] = 30
    keeps_cluster: KeepsCluster = False


@dataclass(frozen=True, kw_only=True)
class ExplainRequest(ShrinkRequest):
    """A request to explain a failed run."""

    plan: Annotated[Path | None, plan_option("Explain a recorded run, the plan.json of replay.", "seed")] = None
    kind: Annotated[str | None, kind_option("The violation; by default the first inside the promise.", "partition")] = (
        None
    )
    budget_s: Annotated[float, budget("60s", "Total time; shrinking gets half of it.", before="partition")] = 60
    partition: Partition = None


# Many seeds.

Scenarios = Annotated[
    str | Sequence[str],
    Argument(
        metavar="SCENARIO...",
        nargs=-1,
        required=True,
        completes="scenarios",
        before="blows",
        help="Scenarios, by name or file.",
    ),
]
Modes = Annotated[
    str | Iterable[str],
    Option(
        "--modes",
        "--mode",
        metavar="A,B",
        read=values.comma_words,
        completes="modes",
        before="blows",
        help="Modes to run; by default those of each scenario's [expect].",
    ),
]
NamedModes = Annotated[
    Names, Option("--modes", "--mode", help="Modes to run; without any (''), those of each scenario's [expect].")
]
Seeds = Annotated[
    str | int | Sequence[int],
    Option(
        metavar="A..B|N",
        before="blows",
        help="Seeds from A to B, B excluded, or N seeds from 0 on; decimal or 0x.",
    ),
]
AllModes = Annotated[bool, Option(help="Run every mode.", before="blows")]


@dataclass(frozen=True, kw_only=True)
class ClusterRequest:
    """A request that may be about a real cluster."""

    server_properties: Annotated[
        str | Path | Sequence[str | Path],
        Option(
            metavar="FILE",
            multiple=True,
            type=FILE,
            before="strict",
            help="Settings of your brokers and topic: server.properties, or what kafka-configs.sh --describe prints.",
        ),
    ] = ()
    release: Annotated[
        str | None,
        Option(
            metavar="R",
            completes="releases",
            before="strict",
            help="Kafka's release, such as 3.9: picks the mode, and its own defaults.",
        ),
    ] = None

    @cached_property
    def cluster(self) -> ClusterSettings:
        """The settings of the files, and the release.

        Raises:
            InputError: a file is missing or not valid, or the release is unknown.
            StorageError: a file cannot be read.
        """
        from scenarios.properties.cluster import ClusterSettings

        return ClusterSettings.of(self._files(), self.release)

    def _files(self) -> Sequence[str | Path]:
        files = self.server_properties
        return [files] if isinstance(files, str | Path) else files


@dataclass(frozen=True, kw_only=True)
class SeedsRequest(ClusterRequest):
    """A request for a range of seeds of some scenarios in some modes, or in those of some releases."""

    release: Annotated[
        Names | None,
        Option(
            metavar="R[,R...]",
            completes="releases",
            before="strict",
            help="Kafka's release, such as 3.9: picks the mode, and its own defaults. Several: the mode of each.",
        ),
    ] = None  # type: ignore[assignment]

    blows: Annotated[
        int, Option(metavar="N", type=int, help="Continue a run N times after its early warnings, with drawn faults.")
    ] = 0
    reuse: Annotated[
        bool | str | Path,
        Option(metavar="DIR", help="Take rows over from this sweep's folder, where its modes have the same history."),
    ] = True
    rules: Annotated[
        Mapping[str, str | Sequence[str]],
        Option(
            "--rule",
            metavar="NAME=VALUE[,VALUE...]",
            multiple=True,
            read=values.rule_list_words,
            completes="rules",
            help="Override one rule of the modes; of several values, sweep every combination, each as a mode of its "
            "own.",
        ),
    ] = field(default_factory=dict)
    settings: Annotated[
        Mapping[str, object],
        Option(
            "--set",
            metavar="KEY=VALUE[,VALUE...]",
            multiple=True,
            read=values.setting_list_words,
            completes="settings",
            help="Override one setting of the scenarios; of several values, sweep every combination.",
        ),
    ] = field(default_factory=dict)
    without_faults: WithoutFaults = ()
    strict: Strict = False

    def _sweep(
        self,
        scenarios: str | Sequence[str],
        modes: Names,
        seeds: str | int | Sequence[int],
        *,
        every_mode: bool = False,
    ) -> Sweep:
        """Check the request and return its sweep.

        Raises:
            InputError: the request is not valid.
        """
        from scenarios.format import selection
        from scenarios.format.blow import BLOWS_MAX
        from scenarios.format.grid import points
        from scenarios.sweep.units import Sweep

        numbers = values.seed_range(seeds)
        rules, varied = values.rule_lists(self.rules)
        given = values.setting_lists(self.settings)
        settings = {**{key: (value,) for key, value in self.cluster.settings(given).items()}, **given}
        grid = {key: found for key, found in settings.items() if len(found) > 1}
        fixed = {key: found[0] for key, found in settings.items() if key not in grid}
        chosen = self._chosen([scenarios] if isinstance(scenarios, str) else scenarios, fixed, grid)
        named = tuple(values.names(modes) if modes else ())
        if not named and not every_mode:
            named = tuple(dict.fromkeys(one.release.mode.name for one in self.clusters if one.release is not None))
        by_scenario = {
            scenario.name: _varied(selection.modes(scenario, named, everyone=every_mode), varied) for scenario in chosen
        }
        _check_size(numbers, grid, sum(map(len, by_scenario.values())))
        for scenario, point in product(chosen, points(grid)):
            selection.check_settings(scenario, point)
        if not 0 <= self.blows <= BLOWS_MAX:
            raise InputError(f"--blows {self.blows} is not valid: a number from 0 to {BLOWS_MAX} is needed")
        if self.blows and not any(scenario.drawn for scenario in chosen):
            raise InputError("--blows follow early warnings of random scenarios, and these are scripted")
        reuses = self.reuse is not False
        return Sweep(chosen, by_scenario, numbers.start, numbers.stop, rules, grid, self.blows, reuses, tuple(varied))

    @cached_property
    def clusters(self) -> tuple[ClusterSettings, ...]:
        """`cluster` for each release that is named; one if none is."""
        from scenarios.properties.cluster import ClusterSettings

        names = [None] if self.release is None else values.names(self.release)
        return tuple(ClusterSettings.of(self._files(), name) for name in names)

    @cached_property
    def cluster(self) -> ClusterSettings:
        """That of the first release."""
        return self.clusters[0]

    def _chosen(self, words: Sequence[str], settings: Mapping[str, Value], grid: Grid) -> tuple[Scenario, ...]:
        if not words:
            raise InputError("a scenario is missing")
        chosen, *others = (self._with_defaults(words, settings, grid, cluster.release) for cluster in self.clusters)
        for other, cluster in zip(others, self.clusters[1:], strict=True):
            _check_defaults(chosen, other, self.clusters[0].release, cluster.release)
        found = [scenario.name for scenario in chosen]
        twice = sorted({name for name in found if found.count(name) > 1})
        if twice:
            raise InputError(f"two scenarios are called {twice[0]!r}; rows could not distinguish them")
        return chosen

    def _with_defaults(
        self, words: Sequence[str], settings: Mapping[str, Value], grid: Grid, release: Release | None
    ) -> tuple[Scenario, ...]:
        from scenarios.format import selection

        return tuple(
            selection.scenario(
                word, settings, strict=self.strict, later=grid, release=release, without=self.without_faults
            )
            for word in dict.fromkeys(words)
        )


def _check_defaults(
    first: Iterable[Scenario], other: Iterable[Scenario], release: Release | None, later: Release | None
) -> None:
    """Raise InputError if a scenario has other settings with the defaults of another release: a sweep has one value."""
    assert release is not None
    assert later is not None
    for one, changed in zip(first, other, strict=True):
        keys = [key for key in {**one.config, **changed.config} if one.config.get(key) != changed.config.get(key)]
        if keys:
            told = ", ".join(f"{key} ({_default(one, key)}, {_default(changed, key)})" for key in keys)
            chosen = " ".join(f"--set {key}={_default(one, key)}" for key in keys)
            raise InputError(
                f"--release {release.name},{later.name}: their defaults of {told} differ, and a sweep has one value "
                f"for all its modes: choose, as by {chosen}"
            )


def _default(scenario: Scenario, key: str) -> str:
    from sim.config import KEYS, shown

    return shown(scenario.config.get(key, KEYS[key].default))


def _varied(modes: Sequence[ModeOfKafka], varied: Mapping[str, Sequence[str]]) -> tuple[ModeOfKafka, ...]:
    """Each mode with every combination of the values of varied rules."""
    from sim.protocol.modes import changed

    if not varied:
        return tuple(modes)
    combinations = [dict(zip(varied, chosen, strict=True)) for chosen in product(*varied.values())]
    if len(combinations) > COMBINATIONS_MAX:
        raise InputError(f"--rule asks for {len(combinations)} combinations; at most {COMBINATIONS_MAX} are possible")
    found = [changed(mode, rules) for mode in modes for rules in combinations]
    return tuple({mode.name: mode for mode in found}.values())


def _check_size(seeds: range, grid: Grid, runs_each: int) -> None:
    combinations = prod(map(len, grid.values()))
    if combinations > COMBINATIONS_MAX:
        raise InputError(f"--set asks for {combinations} combinations; at most {COMBINATIONS_MAX} are possible")
    runs = (seeds.stop - seeds.start) * combinations * runs_each
    if runs > RUNS_MAX:
        raise InputError(f"--seeds asks for {runs} runs in all; at most {RUNS_MAX} are possible")


@dataclass(frozen=True, kw_only=True)
class SweepRequest(SeedsRequest):
    """A request for a sweep."""

    scenarios: Scenarios = field(kw_only=False)
    modes: Modes = ()
    all_modes: AllModes = False
    seeds: Seeds = field(kw_only=False)
    output: Annotated[
        str | Path,
        Option(metavar="DIR|URI", required=True, before="blows", help="Folder of the results; also s3a://..."),
    ] = field(kw_only=False)
    until: Annotated[
        str | Iterable[str],
        Option(
            metavar="RULE,...",
            read=values.comma_words,
            before="rules",
            help="Stop before the last seed: committed-loss=20 runs, inside=5, width=0.1% of all intervals, or 8h.",
        ),
    ] = ()
    processes: Annotated[int, "Number of worker processes."] = 1

    def sweep(self) -> Sweep:
        """Check the request and return its sweep.

        Raises:
            InputError: the request is not valid.
        """
        return self._sweep(self.scenarios, self.modes, self.seeds, every_mode=self.all_modes)

    def stop_rules(self) -> StopRules | None:
        """The rules by which the sweep stops before its last seed; raises InputError if one is not valid."""
        from scenarios.sweep.stop_rules import parse

        return parse(self.until.split(",") if isinstance(self.until, str) else self.until) if self.until else None


@dataclass(frozen=True, kw_only=True)
class RowsRequest(SeedsRequest):
    """A request for the rows of seeds, which are kept nowhere."""

    scenarios: Scenarios = field(kw_only=False)
    modes: NamedModes = field(kw_only=False)
    seeds: Seeds = field(kw_only=False)
    reuse: Annotated[bool, "Take rows over from an earlier mode in which the seed has the same history."] = True
    tasks: Annotated[int | None, "Number of Spark tasks, at most one for each seed."] = None

    def sweep(self) -> Sweep:
        """Check the request and return its sweep.

        Raises:
            InputError: the request is not valid.
        """
        if self.tasks is not None and self.tasks < 1:
            raise InputError(f"tasks = {self.tasks} is not valid: at least 1 is needed")
        return self._sweep(self.scenarios, self.modes, self.seeds)


@dataclass(frozen=True, kw_only=True)
class StreamRequest(SeedsRequest):
    """A request for the rows of ever further seeds."""

    scenarios: Scenarios = field(kw_only=False)
    modes: NamedModes = field(kw_only=False)
    first: Annotated[int, "The first seed."] = 0
    per_batch: Annotated[int, "Number of seeds of a micro-batch."] = 1_000
    reuse: Annotated[bool, "Take rows over from an earlier mode in which the seed has the same history."] = True
    tasks: Annotated[int, "Number of Spark tasks of a micro-batch."] = 8

    def sweep(self) -> Sweep:
        """Check the request and return the sweep of its first seed.

        Raises:
            InputError: the request is not valid.
        """
        for name, number in (("per_batch", self.per_batch), ("tasks", self.tasks)):
            if number < 1:
                raise InputError(f"{name} = {number} is not valid: at least 1 is needed")
        return self._sweep(self.scenarios, self.modes, range(self.first, self.first + 1))


# A sweep's folder.


@dataclass(frozen=True, kw_only=True)
class StoreRequest:
    """A request for the rows of a sweep's folder."""

    folder: Annotated[str | Path, Argument(metavar="DIR", help="The sweep's folder.")] = field(kw_only=False)
    scenario: Annotated[str | None, Option(metavar="NAME", completes="scenarios", help="Only this scenario.")] = None
    mode: Annotated[Names | None, mode_option("Only these modes.")] = None

    def store(self) -> Store:
        """Open the folder.

        Raises:
            InputError: it is no sweep's, or has no such scenario or mode.
        """
        from scenarios.sweep.store import Store

        return Store(os.fspath(self.folder)).choose(
            self.scenario, None if self.mode is None else values.names(self.mode)
        )

    def pair(self, other: str) -> tuple[tuple[Store, Store], list[str]]:
        """Open this folder and another one, to compare them; also return the modes that are named for them.

        Raises:
            InputError: a folder is no sweep's, or lacks a scenario or mode, or there are more than two modes.
        """
        from scenarios.sweep.store import Store

        modes = [] if self.mode is None else values.names(self.mode)
        if len(modes) > 2:
            raise InputError(
                f"--mode {','.join(modes)!r} names {len(modes)} modes; with two folders, name one for each"
            )
        one, two = Store(os.fspath(self.folder)), Store(other)
        ends = zip((one, two), (modes[:1], modes[-1:]), strict=True)
        for store, named in ends:
            store.choose(self.scenario, named or None)
        return (one, two), modes


@dataclass(frozen=True, kw_only=True)
class StoredRowsRequest:
    """A request for the rows of a sweep's folder, as a table."""

    folder: Annotated[str | Path, "The sweep's folder."] = field(kw_only=False)
    columns: Annotated[Sequence[str] | None, "Columns to read (``highwater columns`` lists them); None: all."] = field(
        default=None, kw_only=False
    )
    scenario: Annotated[str | None, "Only rows of this scenario."] = field(default=None, kw_only=False)
    mode: Annotated[Names | None, mode_option("Only rows of these modes.")] = field(default=None, kw_only=False)
    blows: Annotated[bool, "The rows of runs with blows, in place of those of seeds."] = False

    def store(self) -> Store:
        """Open the folder; errors as `StoreRequest.store`."""
        return StoreRequest(self.folder, scenario=self.scenario, mode=self.mode).store()


@dataclass(frozen=True, kw_only=True)
class CompareRequest(StoreRequest):
    """A request to compare the modes of a sweep, or the values of a setting."""

    by: Annotated[
        str, Option(metavar="mode|KEY", help="What to compare: modes, or a setting that varied or was drawn.")
    ] = field(default="mode", kw_only=False)
    kind: Annotated[str | None, kind_option("Only this kind of violation; 'any' for all together.")] = field(
        default=None, kw_only=False
    )


@dataclass(frozen=True, kw_only=True)
class ReportRequest(StoreRequest):
    """A request for the report of a sweep."""

    kind: Kind = None
    file: Annotated[
        str | Path,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            type=FILE,
            default=Path("report.html"),
            show_default=True,
            help="HTML file to write.",
        ),
    ] = field(kw_only=False)
    most: Annotated[
        int | None,
        Option(
            "--triage",
            metavar="N",
            type=click.IntRange(0),
            help="Examine N failures: group them by cause, and tell a small run of each group.  [default: as many as "
            "two minutes allow]",
        ),
    ] = field(default=None, kw_only=False)
    processes: Annotated[
        int | None, Option("--local", metavar="N", type=PROCESSES, help="Processes for --triage; by default 1.")
    ] = field(default=None, kw_only=False)
    films: Annotated[
        int,
        Option(
            metavar="N",
            type=click.IntRange(0, 1_000),
            default=0,
            help="Write films of N failures beside the report, a sample as of 'triage', and link them.",
        ),
    ] = field(default=0, kw_only=False)
