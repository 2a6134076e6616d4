"""What a run has come to: its verdict, whether that is expected, and the command line that runs it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from scenarios import plugged
from scenarios.format.blow import to_text
from scenarios.format.scenario import Expectation, Scenario
from scenarios.single import coverage_column as coverage
from scenarios.single.execution import Execution
from scenarios.single.vacuity import is_vacuous
from sim.checkers.registry import FINDINGS
from sim.history import last_standing
from sim.history.findings import Violation
from sim.hosts.topics import ClusterPartition
from sim.protocol.modes import MODES, Mode


class EndedRun:
    """What columns are filled from, of a run that came through all of its phases or as far as it could.

    Attributes that are named like a column are its value (`rows.COLUMNS`).

    Attributes:
        drawn: the settings that the seed decided.
        error: why the run failed or was given up; empty if neither.
        judged: whether the promise judges it: not after an error before the end. A run in which a step of the script
            or story is missing is judged.
        plan: the faults as drawn.
        injection: the faults as realised.
        run_coverage: what was reached and decided.
        findings: the violations and warnings of all partitions.
        recorders: those of all partitions, also of deleted ones.
        window_us: start and end of the time in which availability is measured.
        waited: what acks=all writes waited for the high watermark.
        needless_wait_us: time over the bounds of waits, in all partitions; -1: not judged.
        hidden_us: how long batches acked with acks=1 were hidden from consumers.
    """

    def __init__(self, run: Execution, error: str) -> None:
        recorder, injection = run.cluster.recorder, run.injection
        violations, decided = recorder.history.findings.violations, not error or run.exhausted
        self.scenario = run.scenario
        self.mode = run.mode.name
        self.reused = ""
        self.seed = run.seed
        self.drawn = run.drawn
        self.verdict = _verdict(run, error)
        self.expected = decided and as_expected(run.scenario, self.mode, violations, to_the_end=not run.exhausted)
        self.judged = run.judged
        self.inside = run.inside and self.judged
        self.inside_unclean, self.inside_lossy = run.inside_unclean, run.inside_lossy
        self.error = error
        self.digest = recorder.digest()
        named = (
            [violation.partition or run.cluster.name for violation in violations]
            if len(run.cluster.partitions) > 1
            else []
        )
        self.violated_partitions = ",".join(sorted(set(named)))
        needs_replay = violations or error or run.stalled or not self.expected
        self.replay = replay_line(run.scenario, run.mode, run.seed, run.overrides, self.digest) if needs_replay else ""
        self.plan = run.plan
        self.injection = injection
        self.recorders = [partition.recorder for partition in run.cluster.partitions]
        self.elections = sum([_elections(run, partition) for partition in run.cluster.partitions])
        acked = sum([len(partition.recorder.history.clients.acks) for partition in run.cluster.partitions])
        faults = injection.effective
        self.vacuous = is_vacuous(run.scenario, batches_acked=acked, faults=faults, elections=self.elections)
        self.run_coverage = recorder.coverage
        self.needless_stall = int(run.needless_stall)
        self.needless_wait_us = run.needless_wait_us
        self.findings = recorder.history.findings
        self.window_us = run.window_us
        self.last_standing = _last_standing(run)
        self.waited, self.hidden_us = run.waited, run.hidden_us
        self.coverage = coverage.column(recorder.coverage, injection.realised)
        self.events = run.kernel.events
        self.end_us = run.kernel.now_us


def _elections(run: Execution, partition: ClusterPartition) -> int:
    """Elections after warm-up; the first leader of a partition that is created later is none."""
    elections = partition.recorder.counts.elections
    return elections - run.warmup_elections.get(partition.name, min(1, elections))


def _verdict(run: Execution, error: str) -> str:
    if run.exhausted:
        return "exhausted"
    if error:
        return "error"
    if run.cluster.recorder.history.findings.violations:
        return "violation"
    return "stalled" if run.stalled else "ok"


def _last_standing(run: Execution) -> int:
    """Records among those that are lost by which a last replica standing was short, over all partitions."""
    recorder = run.cluster.recorder
    count = 0
    for partition in run.cluster.partitions:
        history = partition.recorder.history
        name = partition.name if len(run.cluster.partitions) > 1 else ""
        losses = [violation for violation in recorder.history.findings.violations if violation.kind == "committed-loss"]
        lost = frozenset(record for loss in losses if loss.partition == name for record in loss.ids)
        count += len(last_standing.taken(history, lost) & lost) if lost else 0
    return count


def replay_line(scenario: Scenario, mode: Mode, seed: int, overrides: Mapping[str, str], digest: str) -> str:
    """The command that runs it again; none where the command line does not know the mode."""
    if MODES.get(mode.name) != mode and not mode.source:
        return ""
    recorded = scenario.recorded
    words = ["highwater", "replay", scenario.source or scenario.name]
    if recorded is not None:
        words = ["highwater", "run", *recorded.words]
    words += ["--mode", mode.source or mode.name, "--seed", str(seed), *plugged.options()]
    for name, value in sorted(overrides.items()):
        words += ["--rule", f"{name}={value}"]
    for override in scenario.overrides:
        words += ["--set", override]
    for kind in scenario.without_faults:
        words += ["--without-fault", kind]
    if scenario.blows:
        words += ["--blow", to_text(scenario.blows)]
    if scenario.strict:
        words.append("--strict")
    return shlex.join(words if recorded is not None else [*words, "--expect-digest", digest])


def as_expected(scenario: Scenario, mode: str, violations: list[Violation], *, to_the_end: bool = True) -> bool:
    """Whether one run is as the scenario's [expect] says.

    A recorded run must have its recorded violations, in its own mode. If a random scenario must violate, it is judged
    as a whole, and any single run is as expected. In a scripted scenario, all other kinds must be listed in `also` with
    their label; early warnings only if the expected kind must not occur, because otherwise they precede it. An
    incomplete run is only judged by the violations that it has.
    """
    expectation = scenario.expect.get(mode, Expectation("may-violate"))
    kinds = {violation.kind for violation in violations}
    recorded = scenario.recorded
    if recorded is not None and recorded.mode:
        shown = kinds >= set(recorded.kinds) or not to_the_end if recorded.kinds else not kinds
        return mode != recorded.mode or shown
    if expectation.verdict == "may-violate":
        return True
    if scenario.drawn:
        return drawn_as_expected(scenario, mode, {violation.kind for violation in violations if violation.inside})
    known = {(entry.kind, entry.label) for entry in scenario.also if mode in entry.modes}
    unlisted = [
        violation
        for violation in violations
        if violation.kind not in expectation.kinds
        and not (expectation.verdict == "violates" and FINDINGS[violation.kind].is_warning)
        and (violation.kind, "inside" if violation.inside else "outside") not in known
    ]
    occurs = bool(kinds & set(expectation.kinds))
    must = expectation.verdict == "violates"
    return not unlisted and (occurs == must or (must and not to_the_end))


def drawn_as_expected(scenario: Scenario, mode: str, inside: AbstractSet[str]) -> bool:
    """`as_expected` of a random scenario, by the kinds of violation inside the promise."""
    expectation = scenario.expect.get(mode, Expectation("may-violate"))
    if expectation.verdict != "clean":
        return True
    return not any(kind in inside for kind in expectation.kinds) if expectation.kinds else not inside
