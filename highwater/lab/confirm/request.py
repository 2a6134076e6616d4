"""A request to perform a scripted scenario on real brokers, and the attempts until one decides."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import accumulate, permutations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import click

from highwater.option import Argument, Option
from highwater.requests import Rules, Settings
from highwater.values import duration
from highwater.values import settings as checked_settings
from scenarios.requirements import to_install
from sim import exit_codes
from sim.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from highwater.lab.confirm.comparison import ComparedItem, ComparedPartition, FurtherResult
    from highwater.lab.confirm.milestones import Disks, Milestone
    from highwater.lab.confirm.real_run import RealRun
    from highwater.lab.confirm.release import InstalledRelease
    from scenarios.format.scenario import Scenario, ScriptLine, StoryLine
    from scenarios.single.result import RunResult
    from scenarios.single.run import Watch
    from scenarios.single.script import RulesInForce
    from sim.config import Value
    from sim.history.trace import Shown
    from sim.hosts.cluster import Cluster
    from sim.protocol.modes import Mode

LIMIT_SECONDS: Final = 240
ATTEMPTS: Final = 3
PACE: Final = 5
LIMIT_LEAST: Final = 10
LIMIT_MOST: Final = 3_600
_SEEDS: Final = 4
"""Seeds whose latencies are tried to find whether timing decides."""


def _count(most: int, default: int, help: str) -> Option:  # noqa: A002
    return Option(metavar="N", type=click.IntRange(1, most), default=default, show_default=True, help=help)


def _limit(text: str) -> int:
    """Read the time limit of an attempt, in seconds; raises InputError."""
    found = int(duration("--budget", text))
    if not LIMIT_LEAST <= found <= LIMIT_MOST:
        raise InputError(f"--budget {text!r} is not valid: from {LIMIT_LEAST}s to {LIMIT_MOST}s are needed")
    return found


@dataclass(frozen=True)
class ConfirmRequest:
    """A request to perform a scenario on real brokers; without a mode, in the release's mode and rules."""

    scenario: Annotated[str, Argument(completes="scenarios")]
    kafka: Annotated[
        str,
        Option(
            metavar="RELEASE|DIR",
            required=True,
            completes="releases",
            help="A release, or a folder with Kafka's libraries.",
        ),
    ]
    mode: Annotated[
        str | None,
        Option(metavar="MODE", completes="modes", help="Mode of the simulation; by default that of the release."),
    ] = None
    rules: Rules = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)
    keep: Annotated[Path | None, Option(metavar="DIR", help="Keep logs and data of the brokers.")] = None
    repeat: Annotated[int, _count(1000, 1, "Real runs.")] = 1
    limit: Annotated[
        int,
        Option(
            "--budget",
            metavar="TIME",
            default=f"{LIMIT_SECONDS}s",
            show_default=True,
            read=_limit,
            help="Time limit of an attempt.",
        ),
    ] = LIMIT_SECONDS
    attempts: Annotated[
        int,
        _count(
            20,
            ATTEMPTS,
            "Make up to N attempts, each on a fresh cluster, if brokers were not brought to the story or differ.",
        ),
    ] = ATTEMPTS
    pace: Annotated[int, _count(20, PACE, "Scenario seconds per real second; starts of JVMs are not faster.")] = PACE

    def prepare(self, note: Callable[[str], None]) -> Confirmation:
        """Simulate the scenario, and find the release; `note` is called with notes for the user.

        Raises:
            InputError: the release cannot perform the scenario, or its simulation fails.
            UnavailableError: a library, Java or the release is missing.
        """
        from highwater.lab.confirm import actions, class_archive, milestones, release, simulation
        from scenarios.format import selection
        from scenarios.single.script import RulesInForce

        scenario = selection.scenario(self.scenario, checked_settings(self.settings))
        if scenario.drawn or not scenario.script:
            raise InputError(
                f"{scenario.name} has no script: drawn scenarios cannot be acted out (see 'highwater shrink')"
            )
        check_keep(self.keep)
        check_library()
        found = release.find(self.kafka)
        mode = _mode(scenario, found, self.mode, note)
        values = {**(release.other_values(found) if self.mode is None else {}), **self.rules}
        rules = mode.override(values).rules
        force = RulesInForce(rules, dict.fromkeys(range(1, scenario.brokers + 1), rules))
        lines = [line for line in scenario.script if force.fit(line.rules, None)]
        if absent := actions.missing(scenario, lines, found):
            raise InputError(*(f"{scenario.name}: {problem}" for problem in absent))
        story = [line for line in scenario.story if force.fit(line.rules, line.pattern.broker)]
        if hidden := actions.unseen(story):
            note(f"steps that cannot be seen on real brokers: {', '.join(hidden)}")
        disks = {part.name: milestones.Disks(part.name) for part in simulation.partitions_in(scenario)}

        def watch(cluster: Cluster, name: str) -> Callable[[Shown], None]:
            return disks[name if len(disks) > 1 else next(iter(disks))].watch(cluster, name)

        result, further = simulation.simulate(scenario, mode, 0, values, watch)
        if result.row["verdict"] == "error":
            raise InputError(f"{scenario.name}, mode {mode.name}: {result.row['error']}")
        class_archive.make_archive(found, self.pace, note)
        first, *others = disks.values()
        parts = {name: (part, its_disks) for (name, part), its_disks in zip(further.items(), others, strict=True)}
        return Confirmation(self, scenario, found, mode, values, force, lines, story, result, first, note, parts)


def check_keep(keep: Path | None) -> None:
    """Raise InputError if the folder for logs and data is not empty."""
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InputError(f"--keep {keep} is there already, and holds something; choose another folder")


def check_library() -> None:
    """Raise UnavailableError if the Kafka client library is not installed."""
    missing = [name for package, name in (("kafka", "kafka-python"), ("kazoo", "kazoo")) if find_spec(package) is None]
    if missing:
        raise UnavailableError(f"not installed: {', '.join(missing)}; {to_install('kafka')}")


def _mode(scenario: Scenario, found: InstalledRelease, name: str | None, note: Callable[[str], None]) -> Mode:
    from highwater.lab.confirm.release import mode_of
    from scenarios.format.catalogue import mode

    if name is not None:
        chosen = mode(name)
        if (chosen.rules.control_plane == "kraft") != found.kraft:
            raise InputError(f"--mode {name} and --kafka {found.name} have different control planes")
        return chosen
    chosen, exact = mode_of(found)
    if not exact:
        note(f"Kafka {found.name} has no mode of its own; the nearest is {chosen.name} ({chosen.release})")
    if chosen.name not in scenario.expect:
        note(f"{scenario.name} expects nothing of mode {chosen.name}")
    return chosen


@dataclass(frozen=True)
class Confirmation:
    """A prepared request: the release, and the simulation with its mode, changed rules, rules in force, and disks.

    `lines` and `story` are the script lines and expected steps that apply under these rules. `further` has the
    simulation and the disks of each further partition.
    """

    request: ConfirmRequest
    scenario: Scenario
    found: InstalledRelease
    mode: Mode
    values: Mapping[str, str]
    force: RulesInForce
    lines: list[ScriptLine]
    story: list[StoryLine]
    result: RunResult
    disks: Disks
    note: Callable[[str], None]
    further: Mapping[str, tuple[FurtherResult, Disks]] = field(default_factory=dict)

    @property
    def _further(self) -> dict[str, FurtherResult]:
        return {name: result for name, (result, _) in self.further.items()}

    def run(self, number: int) -> dict[str, Any]:
        """Make attempts until one decides, each on a new cluster; return the last, with the outcomes of earlier ones.

        After an attempt in which the expected steps did not occur, the pace is halved, which leaves more time.
        Repetitions have a `number` from 1 on.
        """
        request = self.request
        keep = request.keep / str(number) if request.keep is not None and request.repeat > 1 else request.keep
        begin_s, pace = time.monotonic(), request.pace
        made: list[dict[str, Any]] = []
        code = None
        while code is None:
            folder = keep / f"attempt-{len(made) + 1}" if keep is not None and made else keep
            made.append(self.attempt(folder, pace))
            code = exit_code(made, request.attempts)
            if code is None:
                self.note(f"attempt {len(made)} of {request.attempts}, pace {pace}: {outcome_text(made[-1])}")
                if made[-1]["failed"]:
                    pace = max(1, pace // 2)
        last = made[-1]
        last["seconds"]["all"] = round(time.monotonic() - begin_s, 1)
        return {**last, "before": made[:-1], "exit_code": code}

    def attempt(self, keep: Path | None, pace: int) -> dict[str, Any]:
        """Make one real run, and compare it with the simulation."""
        from highwater.lab.confirm import actions, comparison, milestones, script_runner
        from highwater.lab.confirm.processes import JavaProcesses

        begin_s = time.monotonic()
        result, lines, batches = self.result, self.lines, _batches(self.lines)
        elr, epochs = self.force.mode.elr == "on", not self.found.truncates_to_hw
        reached = milestones.milestones(result, lines, self.story, batches, self.disks, elr=elr, further=self.further)
        end = self._end(batches, elr=elr)
        failed, rows, seconds = "", [], {}
        used: dict[str, tuple[list[int], list[int]]] = {"": ([], [])}
        with closing(JavaProcesses(keep)) as processes:
            actor = script_runner.Actor(
                self.scenario, self.force, self.found, processes, self.request.limit, self.note, pace, actions.ACTIONS
            )
            try:
                acted = actor.act(reached, end)
                rows = comparison.compare(result, acted, lines, elr=elr, epochs=epochs, further=self._further)
                parts = comparison.partitions_of(result, acted, self._further)
                used = {part.name: comparison.epochs_used(part.result, part.acted) for part in parts}
                seconds = acted.seconds
                if not all(row.agrees for row in rows):
                    shrunk = self._shrunk(rows, acted, end)
                    timing = self._timing(rows, acted, pace, elr=elr, epochs=epochs)
                    failed = "; ".join(filter(None, [*acted.unlike, shrunk, timing]))
            except script_runner.NotBroughtError as error:
                failed = str(error)
            finally:
                actor.close()
                if keep is not None:
                    text = "".join(json.dumps(step, default=str) + "\n" for step in actor.observer.steps)
                    processes.work.write(processes.folder / "transcript.jsonl", text)
        took = {**seconds, "all": time.monotonic() - begin_s}
        return {
            "agrees": not failed and all(row.agrees for row in rows),
            "failed": failed,
            "seconds": {name: round(one, 1) for name, one in took.items()},
            "rows": [row.as_json() for row in rows],
            **_epochs(used),
        }

    def _end(self, batches: Mapping[str, int], *, elr: bool) -> Milestone:
        """The simulation's progress at the script's end."""
        from highwater.lab.confirm.comparison import script_end_us, simulated_changes, trace_of_all
        from highwater.lab.confirm.milestones import Milestone
        from scenarios.single.execution import PAUSE_US

        end_us = script_end_us(trace_of_all(self.result, self._further), self.lines, batches) + PAUSE_US
        further = {
            name: Milestone(simulated_changes(part.result, end_us, elr=elr, replicas=part.replicas))
            for name, part in self._further.items()
        }
        return Milestone(simulated_changes(self.result, end_us, elr=elr), further=further)

    def _differing(self, rows: Sequence[ComparedItem], acted: RealRun) -> list[ComparedPartition]:
        """The partitions whose rows differ; if only others do, all of them."""
        from highwater.lab.confirm.comparison import partitions_of

        parts = partitions_of(self.result, acted, self._further)
        wrong = [row.what for row in rows if not row.agrees]
        return [part for part in parts if any(what.startswith(part.prefix) for what in wrong)] or parts

    def _shrunk(self, rows: Sequence[ComparedItem], acted: RealRun, end: Milestone) -> str:
        """Where the ISR shrank early, if it did in each partition that differs; empty otherwise."""
        from highwater.lab.confirm.comparison import early_exit_from_isr

        found = []
        for part in self._differing(rows, acted):
            of_it = end.further.get(part.name, end)
            exit_text = early_exit_from_isr(of_it.changes, part.acted.states)
            found.append(exit_text and f"{part.prefix}{exit_text}")
        return "; ".join(found) if all(found) else ""

    def _timing(self, rows: Sequence[ComparedItem], acted: RealRun, pace: int, *, elr: bool, epochs: bool) -> str:
        """Why timing explains how the brokers differ, if it does: with other latencies, or with the durations that the
        brokers have at this pace, the simulation does what they did, or differs from itself in each of these rows.
        With its lines when brokers performed them, it counts in a row only if it does what they did.
        """
        from highwater.lab.confirm import comparison
        from scenarios.single.execution import PAUSE_US

        steps = comparison.trace_of_all(self.result, self._further)
        end_us = comparison.script_end_us(steps, self.lines, acted.all_batches) + PAUSE_US
        if all(
            comparison.is_ahead(part.result, part.acted, end_us, elr=elr, replicas=part.replicas)
            for part in self._differing(rows, acted)
        ):
            return (
                "by the script's end the brokers had come further than the simulation, which does the same afterwards"
            )
        seen = {row.what: {row.simulated} for row in rows}
        late = as_late(self.lines, [int(1_000_000 * pace * one) for one in acted.held_s])
        for what, lines, (result, further) in self._variants(pace, late):
            others = comparison.compare(result, acted, lines, elr=elr, epochs=epochs, further=further)
            if all(row.agrees for row in others):
                return f"{what}, the simulation does what the brokers did"
            for row in others:
                if row.agrees or lines is not late:
                    seen.setdefault(row.what, set()).add(row.simulated)
        differing = [row.what for row in rows if not row.agrees]
        if all(len(seen[what]) > 1 for what in differing):
            return f"timing decides in the simulation, too: {', '.join(differing)}"
        return ""

    def _variants(
        self, pace: int, late: list[ScriptLine]
    ) -> Iterator[tuple[str, list[ScriptLine], tuple[RunResult, dict[str, FurtherResult]]]]:
        """The simulation with other timing, also with its lines when brokers performed them, and these lines.

        Sessions, lag and the like go on while the script's clock stands still, so they end earlier by that clock.
        """
        from highwater.lab.confirm.cluster import BEAT_S, longer_ms
        from highwater.lab.confirm.producer import REQUEST_S
        from highwater.lab.confirm.simulation import simulate
        from scenarios.format import selection
        from sim.config import integer, resolve

        config = resolve({}, self.scenario.config)
        is_quorum = self.scenario.control == "quorum"
        longer: dict[str, Value] = {**longer_ms(config, pace, is_quorum=is_quorum)}
        timeout_ms = int(1_000 * REQUEST_S) * pace
        if integer(config, "request.timeout.ms") < timeout_ms <= integer(config, "delivery.timeout.ms"):
            longer["request.timeout.ms"] = timeout_ms

        def slow(cluster: Cluster, _: str) -> Callable[[Shown], None]:
            for source, target in permutations(cluster.settings, 2):
                cluster.network.add_latency(source, target, int(500_000 * BEAT_S * pace))
            return lambda _: None

        kept = "with the brokers' fetches" + "".join(f", {key}={value}" for key, value in longer.items())
        variants: list[tuple[str, int, Mapping[str, Value], Watch | None]] = [
            *((f"with the latencies of seed {seed}", seed, {}, None) for seed in range(_SEEDS)),
            *((f"{kept} and the latencies of seed {seed}", seed, longer, slow) for seed in range(_SEEDS)),
        ]
        at_their_times = ", and its lines at the times at which brokers performed them"
        for lines, suffix in ((self.lines, ""), *([(late, at_their_times)] if late != self.lines else [])):
            scenario = replace(self.scenario, script=tuple(lines))
            for what, seed, settings, watch in variants:
                if not (seed or settings or watch or suffix):
                    continue
                try:
                    selection.check_settings(scenario, settings)
                except InputError:
                    continue
                changed = scenario.with_settings(settings)
                found = simulate(changed, self.mode, seed, self.values, watch)
                if found[0].row["verdict"] != "error":
                    yield what + suffix, lines, found


def _epochs(used: Mapping[str, tuple[list[int], list[int]]]) -> dict[str, Any]:
    """The leader epochs of both runs as plain data: of the first partition, and of each if there are several."""
    told = {name: dict(zip(("simulated", "real"), of_both, strict=True)) for name, of_both in used.items()}
    several = {"leader_epochs_of": told} if len(told) > 1 else {}
    return {"leader_epochs": next(iter(told.values())), **several}


def as_late(lines: Sequence[ScriptLine], held_us: Sequence[int]) -> list[ScriptLine]:
    """Lines as much later as the script's clock stood still since the line before.

    If a broker was started before that, its process took so long to start. Here it starts at once, so it is started
    later, behind lines that were performed meanwhile.
    """
    found: list[ScriptLine] = []
    for line, us in zip(lines, held_us, strict=False):  # The last lines may not have been performed.
        place = len(found)
        while place and found[place - 1].do != "start" and not (found[place - 1].after_us or found[place - 1].when):
            place -= 1
        if not us or not place or found[place - 1].do != "start":
            found.append(replace(line, after_us=line.after_us + us))
            continue
        start = found.pop(place - 1)
        if place - 1 == len(found):
            found.append(replace(start, after_us=start.after_us + us))
        else:
            found[place - 1] = replace(found[place - 1], when=start.when, after_us=start.after_us)
            found.append(replace(start, when=None, after_us=us))
        found.append(line)
    return [*found, *lines[len(found) :]]


def _batches(lines: Iterable[ScriptLine]) -> dict[str, int]:
    """Batch name -> its first record."""
    produce = [line.params for line in lines if line.do == "produce"]
    firsts = accumulate((params.get("records", 1) for params in produce), initial=0)
    return {params["batch"]: first for params, first in zip(produce, firsts, strict=False)}


def outcome_text(run: Mapping[str, Any]) -> str:
    """The outcome of an attempt that does not agree, in a sentence."""
    differing = ", ".join(row["what"] for row in run["rows"] if not row["agrees"])
    return f"not brought to the story: {run['failed']}" if run["failed"] else f"differs in {differing}"


def exit_code(made: Sequence[Mapping[str, Any]], attempts: int) -> int | None:
    """The exit code of the attempts so far; None if another attempt is needed.

    A single difference may be due to timing: JVMs on a busy machine are less punctual than the simulation. A real
    difference in Kafka occurs again: it counts when a second attempt shows the same one, or when there may be only one
    attempt. If an attempt agrees and another one differs, timing decides, and nothing is confirmed.
    """
    last, *before = reversed(made)
    if last["agrees"]:
        return exit_codes.INCONCLUSIVE if any(_differences(one) for one in before) else exit_codes.EXPECTED
    if attempts == 1 and not last["failed"]:
        return exit_codes.UNEXPECTED
    if any(_differences(one) & _differences(last) for one in before):
        return exit_codes.UNEXPECTED
    return exit_codes.INCONCLUSIVE if len(made) == attempts else None


def _differences(attempt: Mapping[str, Any]) -> set[tuple[str, str]]:
    """The differences and their values on brokers, if the expected steps occurred."""
    if attempt["failed"]:
        return set()
    return {(row["what"], row["real"]) for row in attempt["rows"] if not row["agrees"]}
