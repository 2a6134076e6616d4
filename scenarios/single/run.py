"""One run: `run(scenario, mode, seed)`, a pure function (`scenarios.single.execution`)."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import PurePath
from typing import Final, NamedTuple

from scenarios import plugged
from scenarios.format.blow import DIFFERENCE, Blow
from scenarios.format.scenario import PlannedSend, Scenario
from scenarios.single import differences, reuse, rows
from scenarios.single.differences import RunDifference
from scenarios.single.ended_run import EndedRun
from scenarios.single.execution import LIVES, Execution
from scenarios.single.result import RunResult, entries, partition_view, replica_views
from scenarios.single.rows import PLUGIN_ERROR, STORY_ERROR, Row
from scenarios.single.script import StoryError
from scenarios.version import check_build
from sim.config import GROUP_OFFSETS
from sim.errors import text_of
from sim.history.trace import Shown
from sim.hosts.cluster import Cluster
from sim.kernel.scheduler import BudgetError, Kernel
from sim.kernel.streams import Stream, Streams, choice
from sim.protocol.client.sender import ProducerBatch
from sim.protocol.modes import Mode

SECOND_EVERY: Final = 4
"""One in this many blows follows a second warning, as well."""
Observer = Callable[[Shown], None]
Watch = Callable[[Cluster, str], Observer]
"""Called with the cluster and a partition, before its first step; returns what its steps are passed to."""

_MESSAGE: Final = 250
"""Most characters of an exception's message, and of the line that raised it."""


class MutantsSeen(NamedTuple):
    """What happened in a run at the places that mutants break, over all participants.

    Attributes:
        took: the mutants whose places were executed.
        differed: the mutants whose answers differed, or would have, from the right ones.
        differences: when the answers of the mutant that is on differed, in order of time.
    """

    took: frozenset[str]
    differed: frozenset[str]
    differences: Sequence[RunDifference]


def _first_lines(error: BaseException) -> str:
    """A short description of an exception with its innermost frame, without absolute paths; of an exception that came
    from a plug-in, with the last line of that.
    """
    if isinstance(error, StoryError):
        return f"{STORY_ERROR}{error}"
    text = f"{type(error).__name__}: {text_of(error)}"
    if where := plugged.culprit(error):
        return f"{text[:_MESSAGE]}{PLUGIN_ERROR}, {where[:_MESSAGE]})"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{text} (at {PurePath(frame.filename).name}:{frame.lineno} in {frame.name})"[:500]


def _execute(
    scenario: Scenario,
    mode: Mode,
    seed: int,
    rules: Mapping[str, str],
    kernel: Kernel | None = None,
    prepare: Callable[[Execution], None] | None = None,
) -> tuple[Execution, str]:
    """Run; `prepare` is called before the run begins."""
    check_build()
    with plugged.bounded():
        return _bounded(scenario, mode, seed, rules, kernel, prepare)


def _bounded(
    scenario: Scenario,
    mode: Mode,
    seed: int,
    rules: Mapping[str, str],
    kernel: Kernel | None,
    prepare: Callable[[Execution], None] | None,
) -> tuple[Execution, str]:
    one = _built(scenario, mode, seed, rules, kernel)
    if prepare is not None:
        prepare(one)
    error = ""
    try:
        one.execute()
    except BudgetError as reached:
        error = str(reached)
        one.abort()
    except MemoryError:
        raise  # Not a result of the run.
    except BaseException as failure:  # A plug-in may call sys.exit, or hang.
        if isinstance(failure, KeyboardInterrupt):
            raise
        error = _first_lines(failure)
        one.traceback = "".join(traceback.format_exception(failure))
    return one, error


def _built(
    scenario: Scenario, mode: Mode, seed: int, rules: Mapping[str, str], kernel: Kernel | None = None
) -> Execution:
    """A run before it begins; one that a plug-in ended while its cluster was built fails when it begins."""
    try:
        return Execution(scenario, mode, seed, rules, kernel)
    except BaseException as failure:
        if not plugged.culprit(failure):
            raise
        return Execution(scenario, mode, seed, rules, None, failure)


@cache
def prepare_process() -> None:
    """Prepare a process for many runs: the garbage collector ignores permanent objects and runs less often, because a
    run leaves few cycles (`Cluster.dispose`).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)  # More than the objects that a run of 200 partitions has at a time.


def run_row(scenario: Scenario, mode: Mode, seed: int, rules: Mapping[str, str] | None = None) -> Row:
    """Run; return the row only. After an exception its verdict is ``error``; with a budget used up, ``exhausted``."""
    one, error = _execute(scenario, mode, seed, rules or {})
    row = rows.row(EndedRun(one, error))
    one.dispose()
    return row


def run_mutated(scenario: Scenario, mode: Mode, seed: int) -> tuple[Row, MutantsSeen]:
    """`run_row`, and what happened at the places that mutants break."""
    watch = differences.MutantWatch()
    one, error = _execute(scenario, mode, seed, {}, prepare=watch.begin)
    row = rows.row(EndedRun(one, error))
    tables = one.cluster.recorder.coverage.decisions
    took = [name for table in tables for name in table.mutants.took]
    differed = [name for table in tables for name in table.mutants.differed]
    watch.end()
    one.dispose()
    return row, MutantsSeen(frozenset(took), frozenset(differed), watch.found)


def run_compared(scenario: Scenario, wrong: Mode, right: Mode, seed: int) -> tuple[Row, Sequence[RunDifference]]:
    """`run_row` in a mode, and where a run with the rule values of another one would have acted differently."""
    watch = differences.RuleWatch(right)
    one, error = _execute(scenario, wrong, seed, {}, prepare=watch.begin)
    row = rows.row(EndedRun(one, error))
    watch.end()
    one.dispose()
    return row, watch.found


def run_blows(
    scenario: Scenario, mode: Mode, seed: int, rules: Mapping[str, str] | None = None, blows: int = 0
) -> Iterator[Row]:
    """Run as `run_row`, then with each of so many blows after the first early warning of each kind.

    A loss may follow from a warning that the mode's promise covers by the faults until then, in a run that loses
    nothing inside the promise. If a run with a blow keeps everything, but raises a warning of another kind or about
    other brokers than before, it goes on with every `SECOND_EVERY`-th blow after the first such warning.
    """
    return run_modes(scenario, (mode,), seed, rules, blows)


def run_modes(
    scenario: Scenario,
    modes: Sequence[Mode],
    seed: int,
    rules: Mapping[str, str] | None = None,
    blows: int = 0,
    *,
    reuses: bool = True,
) -> Iterator[Row]:
    """`run_blows` in several modes, one after the other.

    If `reuses`, a run is not repeated in a later mode if that has the same history (`scenarios.single.reuse`).
    """
    family = _Family(rules or {}, seed, blows)
    for place, mode in enumerate(modes):
        yield from family.run(scenario, mode, modes[place + 1 :] if reuses else ())


def run_at_differences(
    scenario: Scenario, mode: Mode, seed: int, found: Sequence[RunDifference], blows: int
) -> Iterator[Row]:
    """Run with each of so many blows at differences of a run that matter, or with one blow if none of them does. A run
    with a blow goes on with another one: after its first early warning, if it keeps everything, and at one of its later
    differences that matter, if a mutant is on.
    """
    stream = Streams(seed)("differences")
    family = _Family({}, seed, blows)
    likely = [one for one in found if one.matters]
    for variant in range(blows if likely else min(1, blows, len(found))):
        yield from family.run_on(scenario, mode, _blow_at(choice(stream, likely or found), variant), stream)


def _blow_at(difference: RunDifference, variant: int) -> Blow:
    return Blow(DIFFERENCE, difference.at_us, variant, difference.brokers)


Warned = list[tuple[str, int]]
"""Kind and time of early warnings that blows may follow."""


class _Family:
    """The runs of one seed in several modes, with their blows: see `run_blows`."""

    def __init__(self, rules: Mapping[str, str], seed: int, blows: int) -> None:
        self._rules = rules
        self._seed = seed
        self._blows = blows
        self._ready: dict[tuple[str, tuple[Blow, ...]], tuple[Row, Warned]] = {}
        """Runs in later modes, by mode and blows, that need not be run."""

    def run(self, scenario: Scenario, mode: Mode, later: Sequence[Mode]) -> Iterator[Row]:
        """The rows of one mode; those that later modes have in common are kept for them."""
        blows = self._blows
        row, warnings = self._get(scenario, mode, later, follow=blows > 0)
        yield row
        kinds: set[str] = set()
        for kind, at_us in warnings:
            if kind in kinds:
                continue
            kinds.add(kind)
            for variant in range(blows):
                first = Blow(kind, at_us, variant)
                row, further = self._get(replace(scenario, blows=(first,)), mode, later, follow=True)
                yield row
                for then, then_us in further[:1]:
                    for second in range(0, blows, SECOND_EVERY):
                        both = replace(scenario, blows=(first, Blow(then, then_us, second)))
                        row, _ = self._get(both, mode, later, follow=False)
                        yield row

    def run_on(self, scenario: Scenario, mode: Mode, blow: Blow, stream: Stream) -> Iterator[Row]:
        """The row of a run with a blow at a difference, and those of runs with another blow: after its first early
        warning, and at one of its later differences.
        """
        watch = differences.MutantWatch()
        row, further = self._get(replace(scenario, blows=(blow,)), mode, (), follow=True, watch=watch)
        yield row
        then = [Blow(kind, at_us, 0) for kind, at_us in further[:1]]
        later = [one for one in watch.found if one.matters and one.at_us > blow.at_us]
        if later:
            then.append(_blow_at(choice(stream, later), blow.variant))
        for second in then:
            row, _ = self._get(replace(scenario, blows=(blow, second)), mode, (), follow=False)
            yield row

    def _get(
        self,
        scenario: Scenario,
        mode: Mode,
        later: Sequence[Mode],
        *,
        follow: bool,
        watch: differences.MutantWatch | None = None,
    ) -> tuple[Row, Warned]:
        """A run's row, and if `follow` the early warnings that blows may follow."""
        ready = self._ready.pop((mode.name, scenario.blows), None)
        if ready is not None:
            return ready
        rules = self._rules
        one, error = _execute(scenario, mode, self._seed, rules, prepare=None if watch is None else watch.begin)
        row = rows.row(EndedRun(one, error))
        if watch is not None:
            watch.end()
        alike: dict[str, Row] = {}
        for other in later:
            if (other.name, scenario.blows) in self._ready or not reuse.is_alike(scenario, row, mode, other, rules):
                continue
            judged = None if reuse.promise_alike(mode, other, rules) else one.judged_by(other.override(rules).promise)
            if judged is None or not self._blows:  # The promise decides which warnings blows follow.
                alike[other.name] = reuse.taken_over(scenario, row, mode, other, rules, judged)
        warned = _warnings(one, row) if follow else []
        if warned:
            try:
                warned = self._covered(scenario, mode, warned)
            except BaseException as failure:
                if not plugged.culprit(failure):
                    raise
                # Of a plug-in whose answers depend on more than their arguments: the same run came to its end before.
                row, warned, alike = rows.row(EndedRun(one, _first_lines(failure))), [], {}
        one.dispose()
        for name, shared in alike.items():
            self._ready[name, scenario.blows] = shared, warned
        return row, warned

    def _covered(self, scenario: Scenario, mode: Mode, warned: Warned) -> Warned:
        """The warnings of a run that the promise covers by the faults until then."""
        with plugged.bounded():
            probe = Execution(scenario, mode, self._seed, self._rules, None)
            covered = probe.covered(warned)
        probe.dispose()
        return [warning for warning, inside in zip(warned, covered, strict=True) if inside]


def _warnings(one: Execution, row: Row) -> Warned:
    """Early warnings of an ended run after which it may lose more than it has lost, in order of time."""
    # A run with violations of liveness may still lose records after a blow.
    if one.scenario.faults is None or not LIVES.issuperset(filter(None, row["violations_inside"].split(","))):
        return []
    found: Warned = []
    since_us = one.scenario.blows[-1].at_us if one.scenario.blows else 0
    seen: set[tuple[str, tuple[int, ...]]] = set()
    warnings = one.cluster.recorder.history.findings.warnings  # Partition by partition.
    for warning in sorted(warnings, key=lambda warning: warning.at_us):
        about = warning.kind, warning.weak
        if about not in seen and since_us < warning.at_us < one.horizon_us:
            found.append((warning.kind, warning.at_us))
        elif warning.at_us <= since_us:
            seen.add(about)
    return list(dict.fromkeys(found))


def run(
    scenario: Scenario,
    mode: Mode,
    seed: int,
    rules: Mapping[str, str] | None = None,
    *,
    trace: bool = False,
    kernel: Kernel | None = None,
    watch: Watch | None = None,
) -> RunResult:
    """Run; return everything, as `run_row` does, and every step if `trace`.

    Of several partitions it shows `Scenario.shown`, else the one with the first violation, if there is any. So each of
    them is traced, unless it is known before the run which one is shown. A fresh kernel may break ties in another way.
    """
    traces: dict[str, list[Shown]] = {}

    def observe(run: Execution) -> None:
        recorder = run.cluster.recorder

        def traced(name: str) -> Observer:
            traces[name] = []
            return traces[name].append

        def watched(name: str) -> Observer:
            assert watch is not None
            return watch(run.cluster, name)

        for observer_of in ([traced] if trace else []) + ([watched] if watch is not None else []):
            if scenario.shown == recorder.name or scenario.shown in recorder.further:
                recorder.of(scenario.shown).observe(observer_of(scenario.shown))
            else:
                recorder.observe_each(observer_of)

    one, error = _execute(scenario, mode, seed, rules or {}, kernel, observe)
    shown = _to_show(one)
    return _result(one, error, shown, traces[shown] if trace else None)


def _to_show(run: Execution) -> str:
    """The partition that a run of several is shown from: the scenario's, that of its first violation, or the first."""
    cluster, wanted = run.cluster, run.scenario.shown
    if any(partition.name == wanted for partition in cluster.partitions):
        return wanted
    found = [violation.partition for violation in cluster.recorder.history.findings.violations]
    return found[0] or cluster.name if found else cluster.name


def _planned(sends: Sequence[ProducerBatch]) -> list[PlannedSend]:
    return [(send.first_id, send.count, send.acks, send.due_us) for send in sends]


def _result(run: Execution, error: str, shown: str, trace: list[Shown] | None) -> RunResult:
    ended = EndedRun(run, error)
    keeps_offsets = run.config[GROUP_OFFSETS] == "partition"
    # One that was added may be shown.
    has_several = run.scenario.partitions > 1 or keeps_offsets or shown != run.cluster.name
    planned = {name: _planned(sends) for name, sends in run.sends.items()}
    return RunResult(
        row=rows.row(ended),
        trace=trace,
        partition=partition_view(run.cluster, shown, run.rules),
        mode=run.mode,
        faults=run.injection.to_json(),
        struck=tuple(run.injection.realised),
        played=tuple(run.script.played),
        plan=run.plan.to_json(),
        story=[{"text": text, "met_at_us": at_us} for text, at_us in run.story.met],
        violations=entries(run.cluster.recorder.history.findings.violations, judged=ended.judged),
        warnings=entries(run.cluster.recorder.history.findings.warnings, judged=ended.judged),
        replicas=replica_views(run.cluster, shown),
        metrics=run.cluster.recorder.of(shown).metrics.series(),
        window_us=run.cluster.recorder.of(shown).availability.window_us,
        settings=run.config,
        rules=run.overrides,
        sends=planned.pop(run.cluster.partitions[0].name, []),
        further_sends=planned,
        topics=[topic.name for topic in run.topics],
        horizon_us=run.horizon_us if run.scenario.drawn else None,
        older=run.older,
        shown=shown if has_several else "",
        unnamed=run.cluster.name if has_several else "",
        stalled=run.stalled,
        traceback=run.traceback,
    )
