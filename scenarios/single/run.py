"""One run: `run(scenario, mode, seed)`, a pure function (`scenarios.single.execution`)."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import PurePath
from typing import Final, NamedTuple

from scenarios.format.blow import Blow
from scenarios.format.scenario import Scenario
from scenarios.single import rows
from scenarios.single.ended_run import EndedRun
from scenarios.single.execution import Execution
from scenarios.single.result import RunResult, entries, partition_view, replica_views
from scenarios.single.rows import STORY_ERROR, Row
from scenarios.single.script import StoryError
from scenarios.version import check_build
from sim.checkers.registry import LIVENESS
from sim.history.trace import Shown
from sim.hosts.cluster import Cluster
from sim.kernel.scheduler import BudgetError, Kernel
from sim.protocol.modes import Mode

SECOND_EVERY: Final = 4
"""One in this many blows follows a second warning, as well."""
LIVES: Final = frozenset([finding.kind for finding in LIVENESS])
"""Violations that are about convergence only: such a run may still lose records after a blow."""
Watch = Callable[[Cluster], Callable[[Shown], None]]


class MutantsSeen(NamedTuple):
    """What happened in a run at the places that mutants break, over all participants.

    Attributes:
        took: the mutants whose places were executed.
        differed: the mutants whose answers differed, or would have, from the right ones.
    """

    took: frozenset[str]
    differed: frozenset[str]


def _first_lines(error: Exception) -> str:
    """A short description of an exception with its innermost frame, without absolute paths."""
    if isinstance(error, StoryError):
        return f"{STORY_ERROR}{error}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} (at {PurePath(frame.filename).name}:{frame.lineno} in {frame.name})"[:500]


def _execute(
    scenario: Scenario,
    mode: Mode,
    seed: int,
    rules: Mapping[str, str],
    observers: list[Callable[[Shown], None]],
    kernel: Kernel | None = None,
    watch: Watch | None = None,
) -> tuple[Execution, str]:
    check_build()
    one = Execution(scenario, mode, seed, rules, kernel)
    for observer in observers:
        one.cluster.recorder.observe(observer)
    if watch is not None:
        one.cluster.recorder.observe(watch(one.cluster))
    error = ""
    try:
        one.execute()
    except BudgetError as reached:
        error = str(reached)
        one.abort()
    except MemoryError:
        raise  # Not a result of the run.
    except Exception as failure:
        error = _first_lines(failure)
    return one, error


@cache
def prepare_process() -> None:
    """Prepare a process for many runs: the garbage collector ignores permanent objects and runs less often, because a
    run leaves few cycles (`Cluster.dispose`).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def run_row(scenario: Scenario, mode: Mode, seed: int, rules: Mapping[str, str] | None = None) -> Row:
    """Run; return the row only. After an exception its verdict is ``error``; with a budget used up, ``exhausted``."""
    one, error = _execute(scenario, mode, seed, rules or {}, [])
    row = rows.row(EndedRun(one, error))
    one.dispose()
    return row


def run_mutated(scenario: Scenario, mode: Mode, seed: int) -> tuple[Row, MutantsSeen]:
    """`run_row`, and what happened at the places that mutants break."""
    one, error = _execute(scenario, mode, seed, {}, [])
    row = rows.row(EndedRun(one, error))
    tables = one.cluster.recorder.coverage.decisions
    took = [name for table in tables for name in table.mutants.took]
    differed = [name for table in tables for name in table.mutants.differed]
    one.dispose()
    return row, MutantsSeen(frozenset(took), frozenset(differed))


def run_blows(
    scenario: Scenario, mode: Mode, seed: int, rules: Mapping[str, str] | None = None, blows: int = 0
) -> Iterator[Row]:
    """Run as `run_row`, then with each of so many blows after the first early warning of each kind.

    A loss may follow from a warning that the mode's promise covers by the faults until then, in a run that loses
    nothing inside the promise. If a run with a blow keeps everything, but raises a warning of another kind or about
    other brokers than before, it goes on with every `SECOND_EVERY`-th blow after the first such warning.
    """
    given = rules or {}
    row, warnings = _row_and_warnings(scenario, mode, seed, given, follow=blows > 0)
    yield row
    kinds: set[str] = set()
    for kind, at_us in warnings:
        if kind in kinds:
            continue
        kinds.add(kind)
        for variant in range(blows):
            first = Blow(kind, at_us, variant)
            row, further = _row_and_warnings(replace(scenario, blows=(first,)), mode, seed, given)
            yield row
            for then, then_us in further[:1]:
                for second in range(0, blows, SECOND_EVERY):
                    yield run_row(replace(scenario, blows=(first, Blow(then, then_us, second))), mode, seed, given)


def _row_and_warnings(
    scenario: Scenario, mode: Mode, seed: int, rules: Mapping[str, str], *, follow: bool = True
) -> tuple[Row, list[tuple[str, int]]]:
    """A run's row, and if `follow`, kind and time of its early warnings that blows may follow: see `run_blows`."""
    one, error = _execute(scenario, mode, seed, rules, [])
    row = rows.row(EndedRun(one, error))
    found: list[tuple[str, int]] = []
    if follow and scenario.faults is not None and LIVES.issuperset(filter(None, row["violations_inside"].split(","))):
        since_us = scenario.blows[-1].at_us if scenario.blows else 0
        seen: set[tuple[str, tuple[int, ...]]] = set()
        for warning in one.cluster.recorder.history.findings.warnings:
            about = warning.kind, warning.weak
            if about not in seen and since_us < warning.at_us < one.horizon_us:
                found.append((warning.kind, warning.at_us))
            elif warning.at_us <= since_us:
                seen.add(about)
    one.dispose()
    if found:
        found = list(dict.fromkeys(found))
        probe = Execution(scenario, mode, seed, rules, None)
        covered = probe.covered(found)
        probe.dispose()
        found = [warning for warning, inside in zip(found, covered, strict=True) if inside]
    return row, found


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

    A fresh kernel may break ties in another way. `watch` is called with the cluster before it starts, and returns an
    observer of steps.
    """
    steps: list[Shown] = []
    one, error = _execute(scenario, mode, seed, rules or {}, [steps.append] if trace else [], kernel, watch)
    return _result(one, error, steps if trace else None)


def _result(run: Execution, error: str, trace: list[Shown] | None) -> RunResult:
    return RunResult(
        row=rows.row(EndedRun(run, error)),
        trace=trace,
        partition=partition_view(run.cluster, run.rules),
        mode=run.mode,
        faults=run.injection.to_json(),
        plan=run.plan.to_json(),
        story=[{"text": text, "met_at_us": at_us} for text, at_us in run.story.met],
        violations=entries(run.cluster.recorder.history.findings.violations),
        warnings=entries(run.cluster.recorder.history.findings.warnings),
        replicas=replica_views(run.cluster),
        metrics=run.cluster.recorder.metrics.series(),
        window_us=run.cluster.recorder.availability.window_us,
        settings=run.config,
        rules=run.overrides,
        sends=[(send.first_id, send.count, send.acks, send.due_us) for send in run.sends],
        horizon_us=run.horizon_us if run.scenario.drawn else None,
        older=run.older,
        stalled=run.stalled,
    )
