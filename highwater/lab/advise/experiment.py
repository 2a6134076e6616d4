"""The grid of an advice: a scenario from the answers, changes of one setting each, releases; run on the same seeds."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from highwater.lab.advise.answers import Answers
from scenarios.campaign.campaign import Campaign
from scenarios.campaign.record import Record
from scenarios.campaign.runner import Runner
from scenarios.format.cluster_checks import check_as_kafka
from scenarios.format.scenario import Scenario
from scenarios.format.schema import read
from scenarios.properties.releases import Release
from scenarios.single.run import run_modes
from sim.config import KEYS, NEVER, Value, shown
from sim.errors import InputError
from sim.protocol.modes import MODES, Mode
from sim.protocol.rules import unmet

NAME: Final = "advice"
WAVE: Final = 4
"""Seeds of a wave for each process, at most; the first wave has one, and waves are counted whole."""
FACTOR: Final = "default.replication.factor"
MIN_ISR: Final = "min.insync.replicas"
FLUSH: Final = "log.flush.interval.messages"
UNCLEAN: Final = "unclean.leader.election.enable"
ACKS: Final = "acks"
ELR: Final = "eligible.leader.replicas.version"
PRESENT: Final = "as it is"
NEWER: Final = {"zookeeper": ("kip320-2.6.1", "kraft", "elr-4.3"), "kraft": ("kraft", "elr", "elr-4.3")}
"""Control plane -> modes of releases to compare the present one with."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one setting, or of the number of racks; without either, the present ones.

    Attributes:
        racks: over how many racks the brokers are spread; 0: as they are.
    """

    settings: Mapping[str, Value] = field(default_factory=dict)
    racks: int = 0

    @property
    def name(self) -> str:
        """The change in words."""
        if self.racks:
            return f"racks = {self.racks}"
        return ", ".join(f"{key} = {shown(value)}" for key, value in self.settings.items()) or PRESENT

    @property
    def short(self) -> str:
        """The change in fewer words, those of the options of ``highwater advise``."""
        return ", ".join(_short(key, value) for key, value in self.settings.items()) or self.name

    @property
    def advised(self) -> str:
        """The change as an advice."""
        return f"Spread the brokers over {self.racks} racks" if self.racks else f"Set {self.name}"


_SHORT: Final = {FACTOR: "replicas", FLUSH: "flush", UNCLEAN: "unclean"}


def _short(key: str, value: Value) -> str:
    if key == ELR:
        return f"elr = {'on' if value else 'off'}"
    return f"{_SHORT.get(key, key)} = {shown(value)}"


@dataclass(slots=True)
class ExperimentCell:
    """The runs of one change in one mode, by seed: whether acknowledged records were lost, and sums."""

    lost: list[bool] = field(default_factory=list)
    leaderless_ms: int = 0
    window_ms: int = 0
    refused: int = 0
    acked: int = 0
    records: int = 0


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is run.

    Attributes:
        scenario: the cluster with its present settings.
        changes: the present settings first.
        modes: the present release first.
        idle: settings of the cluster that have no effect in any of the modes, and are left out.
        elr: what was assumed of the feature `ELR`, in a sentence; empty if it is given, or no mode has it.
    """

    answers: Answers
    scenario: Scenario
    text: str
    changes: tuple[Change, ...]
    modes: tuple[Mode, ...]
    idle: tuple[str, ...] = ()
    elr: str = ""

    @property
    def fingerprint(self) -> str:
        """Tells experiments apart whose runs differ."""
        return fingerprint(self.text, [change.name for change in self.changes], [mode.name for mode in self.modes])

    @property
    def given(self) -> dict[str, Value]:
        """The settings that the answers give."""
        return _given(self.answers)

    def variant(self, change: Change) -> Scenario:
        """The scenario with a change."""
        if change.racks:
            return _scenario(replace(self.answers, racks=change.racks), self.modes[0], self.scenario.config)[0]
        return self.scenario.with_settings(change.settings)


@dataclass(frozen=True, slots=True)
class ExperimentOutcome:
    """The cells of an experiment after some waves; `losing` are the seeds that the present settings lose, with the
    number of their faults.
    """

    experiment: Experiment
    seeds: int
    cells: Mapping[tuple[str, str], ExperimentCell]
    losing: Sequence[tuple[int, int]]

    def cell(self, change: Change, mode: Mode) -> ExperimentCell:
        """The runs of a change in a mode."""
        return self.cells[change.name, mode.name]


def design(answers: Answers, settings: Mapping[str, Value], release: Release | None) -> Experiment:
    """The experiment for a cluster.

    Args:
        answers: the answers.
        settings: its settings, which the answers override.
        release: its release, with its own defaults; None: the newest release.

    Raises:
        InputError: Kafka would not start with the settings.
    """
    given: dict[str, Value] = {**settings, **_given(answers)}
    present = MODES["elr-4.3"] if release is None else release.mode
    if release is not None:
        given = {**release.beside(given, {}), **given}
    modes = dict.fromkeys((present, *(MODES[name] for name in NEWER[present.rules.control_plane])))
    newer = [mode for mode in modes if mode.place >= present.place]
    idle = [key for key in given if unmet(KEYS[key].where, [mode.rules for mode in newer])]
    scenario, text = _scenario(answers, present, {key: value for key, value in given.items() if key not in idle})
    check_as_kafka(scenario)
    changes = (*_changes(scenario, present), *_racks(answers))
    elr = "" if ELR in settings else _assumed(present, newer, bool(given.get(ELR, KEYS[ELR].default)))
    return Experiment(answers, scenario, text, changes, tuple(newer), tuple(idle), elr)


def has_elr(mode: Mode) -> bool:
    """Whether a release has the feature `ELR`."""
    return not unmet(KEYS[ELR].where, [mode.rules])


def _assumed(present: Mode, modes: Sequence[Mode], is_on: bool) -> str:
    """See `Experiment.elr`."""
    if not has_elr(present):
        later = [mode.release for mode in modes if has_elr(mode)]
        return f"{ELR} = {int(is_on)} is assumed from Kafka {later[0]} on: {_WHO_HAS_IT}" if later else ""
    other = f"; the rows 'elr = {'off' if is_on else 'on'}' are the other case"
    return f"{ELR} = {int(is_on)} is assumed: {_WHO_HAS_IT}{other}"


_WHO_HAS_IT: Final = (
    "new clusters of Kafka 4.1 and later have it on, upgraded ones keep it off until kafka-features.sh turns it on "
    "(--elr on|off)"
)


def layout(scenario: Scenario) -> str:
    """Which broker is in which rack, and which ones have no replica at first."""
    racks = {} if scenario.topology is None else scenario.topology.racks
    replicas = int(scenario.config[FACTOR])
    brokers = range(1, scenario.brokers + 1)
    places = "; ".join(f"rack {name}: {', '.join(map(str, members))}" for name, members in racks.items())
    spare = [str(broker) for broker in brokers if broker > replicas]
    without = f"; without a replica at first: {', '.join(spare)}" if spare else ""
    return f"{places}{without}"


def _scenario(answers: Answers, mode: Mode, settings: Mapping[str, Value]) -> tuple[Scenario, str]:
    """The scenario of the answers, and its text."""
    text = _text(answers, mode, settings)
    return read(text, f"{NAME}.toml"), text


def _racks(answers: Answers) -> list[Change]:
    """A further rack, if racks lose power and replicas share one."""
    return [Change(racks=answers.racks + 1)] if answers.together == "rack" and answers.racks < answers.replicas else []


def _given(answers: Answers) -> dict[str, Value]:
    return {FACTOR: answers.replicas, FLUSH: answers.flush, UNCLEAN: answers.unclean}


def _text(answers: Answers, mode: Mode, settings: Mapping[str, Value]) -> str:
    """The scenario of the answers as a file."""
    brokers = max(answers.replicas + 1, answers.racks)
    racks = {
        f"r{rack + 1}": [broker for broker in range(1, brokers + 1) if (broker - 1) % answers.racks == rack]
        for rack in range(answers.racks)
    }
    domains = {"rack": racks, "everything": {"all": list(range(1, brokers + 1))}}.get(answers.together, {})
    kinds = ["kill", "power-loss", "cut"]
    kinds += ["power-domain-loss"] if domains else []
    kinds += ["rack-cut"] if answers.racks > 1 else []
    kinds += ["controlled-restart"] if answers.restarts else []
    kinds += ["reassignment"] if answers.moves else []
    most_ms = 1_000 * answers.return_s
    lines = [
        "schema = 1",
        f'name = "{NAME}"',
        'title = "A cluster and its faults, from the answers to seven questions"',
        f"brokers.count = {brokers}",
        'control = "real"',
        "",
        "[config]",
        *[f"{key} = {_value(value)}" for key, value in {"sim.end.offsets.interval.ms": 60_000, **settings}.items()],
        "",
        "[topology]",
        f"racks = {_groups(racks)}",
        *([f"power_domains = {_groups(domains)}"] if domains else []),
        "",
        "[workload]",
        "bursts = [5, 6]",
        "batches = [5, 7]",
        "gap_ms = [0, 500]",
        "records = [1, 6]",
        "near_percent = 70",
        "",
        "[faults]",
        f"horizon_ms = {max(300_000, 3 * most_ms)}",
        "count = [3, 6]",
        f"kinds = {kinds}".replace("'", '"'),
        f"restart_ms = [{max(500, most_ms // 2)}, {max(1_000, most_ms)}]",
        "cut_ms = [1000, 40000]",
        "aimed_percent = 50",
        "burst_percent = 15",
        "chain_percent = 15",
        *(["rolling_percent = 10"] if answers.restarts else []),
        *(["standing_percent = 30"] if answers.replicas > 1 else []),
        "",
        "[expect]",
        f'"{mode.name}" = "may-violate"',
        "",
    ]
    return "\n".join(lines)


def _value(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else f'"{shown(value)}"' if value == NEVER else shown(value)


def _groups(groups: Mapping[str, Sequence[int]]) -> str:
    return "{ " + ", ".join(f"{name} = {list(members)}" for name, members in groups.items()) + " }"


def _changes(scenario: Scenario, mode: Mode) -> tuple[Change, ...]:
    """Changes of one setting that Kafka accepts and the cluster has brokers for."""
    now = {key: scenario.config.get(key, KEYS[key].default) for key in (FACTOR, MIN_ISR, FLUSH, UNCLEAN, ACKS, ELR)}
    factor, min_isr = int(now[FACTOR]), int(now[MIN_ISR])
    wanted: list[dict[str, Value]] = [
        {FLUSH: NEVER if now[FLUSH] == 1 else 1},
        {MIN_ISR: min_isr + 1},
        {MIN_ISR: min_isr - 1},
        {FACTOR: factor + 1},
        {UNCLEAN: not now[UNCLEAN]},
        {ACKS: "1" if now[ACKS] == "all" else "all"},
    ]
    if has_elr(mode):
        wanted.append({ELR: 1 - int(now[ELR])})
    found = [Change()]
    for settings in wanted:
        resolved = {**now, **settings}
        if not 1 <= int(resolved[MIN_ISR]) <= int(resolved[FACTOR]) or int(resolved[FACTOR]) > scenario.brokers:
            continue
        try:
            check_as_kafka(scenario.with_settings(settings), settings)
        except InputError:
            continue
        found.append(Change(settings))
    return tuple(found)


def waves(
    experiment: Experiment, seeds: int | None, until_s: float, runner: Runner, record: Record | None = None
) -> Iterator[ExperimentOutcome]:
    """Run waves of seeds, all changes and modes on the same; after each, the outcome so far.

    Args:
        experiment: what to run.
        seeds: number of seeds; None: as many as the time allows, in whole waves, at least one for each process.
        until_s: when the time is over (`time.monotonic`), if there is no number of seeds.
        runner: where they run.
        record: keeps what has run.
    """
    begin = time.monotonic()
    variants = {change.name: experiment.variant(change) for change in experiment.changes}
    cells = {(name, mode.name): ExperimentCell() for name in variants for mode in experiment.modes}
    campaign = Campaign(partial(of_seed, variants, experiment.modes), runner, record)
    losing: list[tuple[int, int]] = []
    first, wave = 0, runner.processes
    while wave:
        end = first + wave if seeds is None else seeds
        for (_, seed), rows in campaign.run((experiment.fingerprint, seed) for seed in range(first, end)):
            for (place, cell), row in zip(cells.items(), rows, strict=True):
                _add(cell, row)
                if place == (PRESENT, experiment.modes[0].name) and has_lost(row):
                    losing.append((row["faults"], seed))
        first = end
        yield ExperimentOutcome(experiment, first, cells, losing)
        now = time.monotonic()
        fit = int((until_s - now) * first / (now - begin)) if seeds is None else 0
        wave = max(0, min(fit, WAVE * runner.processes))


COLUMNS: Final = (
    *("records_lost", "acks1_lost", "leaderless_ms", "window_ms"),
    *("batches_refused", "batches_acked", "records_acked", "faults"),
)
"""Columns of a row that an advice needs."""


def of_seed(variants: Mapping[str, Scenario], modes: Sequence[Mode], case: tuple[str, int]) -> list[dict[str, Any]]:
    """`COLUMNS` of the runs of a seed (with the fingerprint of the experiment): for each change, in each mode."""
    _, seed = case
    rows = (row for variant in variants.values() for row in run_modes(variant, modes, seed))
    return [{name: row[name] for name in COLUMNS} for row in rows]


def fingerprint(*parts: Any) -> str:
    """A hash of JSON values."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).hexdigest()


def has_lost(row: Mapping[str, Any]) -> bool:
    """Whether a run lost acknowledged records, with acks=all or acks=1."""
    return bool(row["records_lost"] > 0 or row["acks1_lost"] > 0)


def _add(cell: ExperimentCell, row: Mapping[str, Any]) -> None:
    cell.lost.append(has_lost(row))
    cell.leaderless_ms += max(row["leaderless_ms"], 0)
    cell.window_ms += max(row["window_ms"], 0)
    cell.refused += max(row["batches_refused"], 0)
    cell.acked += row["batches_acked"]
    cell.records += row["records_acked"]
