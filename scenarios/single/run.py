"""One run: `run(scenario, mode, seed)` is a pure function, and this is it.

Settings, plan and workload come from the seed; the cluster runs under the plan until the horizon or to the end of the
script; everything is healed; convergence is awaited; then the final checks decide, and the promise labels what they
found.
"""

from __future__ import annotations

import gc
import shlex
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePath
from typing import Any, Final

from simpy.events import Event

from faults.kinds.injection import Injection
from faults.plan import Plan
from faults.promise.promise import Promise, elects_uncleanly
from scenarios.format.scenario import Continuation, PlannedSend, Scenario
from scenarios.single import coverage_column as coverage
from scenarios.single import final_logs, rows
from scenarios.single.convergence import Convergence
from scenarios.single.draws import draw
from scenarios.single.final_logs import VALIDATION_IDS
from scenarios.single.rows import STORY_ERROR, UNKNOWN, Row
from scenarios.single.script import RulesInForce, Script, Story, StoryError
from scenarios.single.verdict import as_expected, is_vacuous
from scenarios.version import check_build
from sim.checkers.checker import RunEnd
from sim.checkers.registry import Checkers
from sim.config import Value, integer, resolve
from sim.history import last_standing
from sim.history.availability import Waiting, waiting
from sim.history.findings import Violation
from sim.history.metrics import Series
from sim.history.recorder import Recorder
from sim.history.trace import Shown
from sim.hosts.cluster import Cluster
from sim.hosts.settings import acks_number, convergence_deadline_us
from sim.kernel.scheduler import ALWAYS, BudgetError, Environment, Kernel, PriorityKernel, ShuffledKernel
from sim.kernel.streams import Streams, choice
from sim.protocol.client.sender import ProducerBatch
from sim.protocol.modes import MODES, Mode
from sim.protocol.modes import mode as mode_named

END_US: Final = 1 << 62
"""Nothing happens later: steps are recorded with their time in 64 bits, and some deadlines are "never" away."""
CLIENTS_BEGIN_US: Final = 500_000
"""Clients start when brokers have loaded their logs and one leads: the end of warm-up."""
PAUSE_US: Final = 1_000_000
"""Between the end of a script and healing."""
Watch = Callable[[Cluster], Callable[[Shown], None]]


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """A broker's final log and checkpoint files; batches are (base, last, leader epoch, first record id)."""

    broker: int
    running: bool
    batches: list[tuple[int, int, int, int]]
    log_start: int
    leo: int
    high_watermark: int
    leader_epoch_checkpoint: list[tuple[int, int]]
    replication_offset_checkpoint: int | None
    recovery_point_offset_checkpoint: int | None
    log_start_offset_checkpoint: int | None
    clean_shutdown_marker: bool


@dataclass(frozen=True, slots=True)
class PartitionView:
    """How things stood for the partition at the end, as the control plane keeps it; `leader` 0 is none, ELR None where
    there is no such thing.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    controller_epoch: int
    replicas: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


@dataclass(slots=True)
class EndedRun:
    """What columns are filled from.

    Attributes:
        scenario: what was run,
        mode: in which mode,
        seed: with which seed.
        drawn: the settings that the seed decided.
        verdict: see `rows.COLUMNS`, as for all that is named like a column.
        expected: whether the scenario's [expect] agrees.
        inside: whether all acknowledged records are inside the mode's promise.
        inside_unclean: the same by unclean ends; `UNKNOWN` without ELR.
        inside_lossy: the same by lossy ends.
        vacuous: whether too little happened.
        error: why the run failed or was given up; empty if neither.
        digest: of the history.
        replay: the command line to do it again, if anybody should.
        plan: the faults as drawn.
        injection: the faults as realised.
        elections: after warm-up.
        recorder: the history, with what was acknowledged, shown and violated.
        last_standing: how many a last replica standing lacked.
        waited: what acks=all writes waited for the high watermark.
        hidden_us: how long batches acked with acks=1 were hidden from consumers.
        coverage: `scenarios.single.coverage_column`.
        events: how many there were.
        end_us: simulated time at the end.
    """

    scenario: Scenario
    mode: str
    seed: int
    drawn: Mapping[str, Value]
    verdict: str
    expected: bool
    inside: bool
    inside_unclean: int
    inside_lossy: int
    vacuous: bool
    error: str
    digest: str
    replay: str
    plan: Plan
    injection: Injection
    elections: int
    recorder: Recorder
    last_standing: int
    waited: Waiting
    hidden_us: int
    coverage: str
    events: int
    end_us: int


@dataclass(slots=True)
class RunResult:
    """All that a run shows.

    Attributes:
        row: what a sweep keeps.
        trace: steps, if asked for.
        faults: realised faults.
        plan: the drawn plan.
        story: what it says, with the time it came true or None.
        violations: what the checkers found.
        warnings: early warnings; those that count are among the violations, too.
        partition: leader, ISR and epochs at the end.
        replicas: final logs.
        metrics: Kafka's metrics of the partition as time series: name -> [(time in us, value from then on)].
        window_us: the time over which availability is counted.
        settings: the configuration that was in force, drawn keys included.
        rules: rule values that replaced the mode's.
        sends: the producer's batches.
        horizon_us: when a drawn run was healed; None in a scripted one.
        older: brokers that began in an older mode.
        stalled: whether there was no leader in the end, and the rules wait for an operator.
    """

    row: Row
    trace: list[Shown] | None
    partition: PartitionView
    faults: list[dict[str, Any]] = field(default_factory=list)
    plan: dict[str, Any] = field(default_factory=dict)
    story: list[dict[str, Any]] = field(default_factory=list)
    violations: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    replicas: list[ReplicaView] = field(default_factory=list)
    metrics: dict[str, Series] = field(default_factory=dict)
    window_us: tuple[int, int] = (0, 0)
    settings: dict[str, Value] = field(default_factory=dict)
    rules: Mapping[str, str] = field(default_factory=dict)
    sends: list[PlannedSend] = field(default_factory=list)
    horizon_us: int | None = None
    older: Mapping[int, str] = field(default_factory=dict)
    stalled: bool = False


class _Run:
    """Carries one run through its phases."""

    def __init__(
        self, scenario: Scenario, mode: Mode, seed: int, overrides: Mapping[str, str], kernel: Kernel | None
    ) -> None:
        self.scenario = scenario
        self.mode = mode
        self.seed = seed
        self.overrides = overrides
        self.streams = Streams(seed)
        self.drawn = self._draw_settings()
        self.config = resolve(scenario.config, self.drawn)
        in_force = mode.override(overrides)
        self.rules, self.promised = in_force.rules, in_force.promise
        brokers = self._brokers()
        broker_rules = dict.fromkeys(range(1, brokers + 1), self.rules)
        for broker, own_mode in scenario.broker_modes.items():
            if broker in broker_rules:
                broker_rules[broker] = mode_named(own_mode).rules.override(overrides)
        self.older = self._draw_older(list(broker_rules)) if scenario.recorded is None else scenario.recorded.older
        upgraded = {broker: broker_rules[broker] for broker in self.older}
        for broker, name in self.older.items():
            broker_rules[broker] = mode_named(name).rules.override(overrides)
        self.kernel = kernel or self._kernel()
        recorder = Recorder(self.kernel, integer(self.config, "sim.record.budget"))
        self.checkers = Checkers(recorder)
        self.cluster = Cluster(
            brokers=brokers,
            config=self.config,
            broker_config={
                broker: resolve(scenario.config, self.drawn, keys)
                for broker, keys in scenario.broker_config.items()
                if broker in broker_rules
            },
            rules=broker_rules,
            upgraded=upgraded,
            client_rules=self.rules,
            scripted=scenario.control == "scripted",
            first=scenario.first,
            kernel=self.kernel,
            streams=self.streams,
            recorder=recorder,
        )
        self.kernel.audit = self._audit
        self.injection = Injection(self.cluster)
        self.plan = Plan()
        self.convergence = Convergence(self.cluster, VALIDATION_IDS)
        self.rules_in_force = RulesInForce(self.rules, broker_rules)
        self.batches: dict[str, int] = {}
        self.story = Story(scenario.story, self.rules_in_force, self.batches)
        acks = acks_number(str(self.config["acks"]))
        self.script = Script(scenario.script, self.rules_in_force, self.cluster, self.injection, acks, self.batches)
        self.sends: list[ProducerBatch] = []
        self.waited = Waiting()
        self.hidden_us = 0
        self.warmup_elections = 0
        self.inside = True
        self.stalled = False
        self.exhausted = False
        self.inside_unclean = self.inside_lossy = UNKNOWN

    def dispose(self) -> None:
        """See `Cluster.dispose`."""
        self.cluster.dispose()
        self.checkers.dispose()

    def _draw_settings(self) -> dict[str, Value]:
        keys = self.scenario.draw_config
        number = self.streams.number
        return {key: keys[key][int(number(f"setting:{key}") * len(keys[key]))] for key in sorted(keys)}

    def _draw_older(self, brokers: Sequence[int]) -> dict[int, str]:
        """The brokers that begin in an older mode, and in the run's when they start again."""
        older = [
            one.name
            for one in map(mode_named, self.scenario.upgraded_from)
            if one.place < self.mode.place and one.rules.control_plane == self.rules.control_plane
        ]
        found = {}
        for broker in brokers if older else ():
            stream = self.streams(f"older:{broker}")
            name = choice(stream, older)
            if stream.random() * 3 < 2:
                found[broker] = name
        return found

    def _brokers(self) -> int:
        """How many of the scenario's brokers run."""
        replicas = integer(self.config, "default.replication.factor")
        return min(self.scenario.brokers, replicas + integer(self.config, "sim.spare.brokers"))

    def _kernel(self) -> Kernel:
        """The kernel that breaks ties as ``sim.ties`` says."""
        ties, budget = self.config["sim.ties"], integer(self.config, "sim.event.budget")
        if ties == "random":
            return ShuffledKernel(self.streams("ties"), budget)
        return PriorityKernel(self.streams("ties"), event_budget=budget) if ties == "pct" else Kernel(budget)

    def _audit(self) -> None:
        """See `Kernel.audit`."""
        budget, now_us = integer(self.config, "sim.state.budget"), self.kernel.now_us
        self.cluster.dispose_ended()
        if self.cluster.size + len(self.sends) + len(self.injection.realised) > budget:
            raise BudgetError("sim.state.budget", budget, "objects", f"{now_us / 1e6:.6f} s")

    def execute(self) -> None:
        """Warm up, go through faults or script, heal, converge, check."""
        cluster, kernel = self.cluster, self.kernel
        if self.scenario.script:
            cluster.recorder.observe(self.script.observe)
            cluster.recorder.observe(self.story.observe)
        cluster.boot()
        if self.scenario.script:
            environment = Environment(kernel)
            process = environment.process(self.script.play(environment))
            process.callbacks.append(self._script_ended)
        kernel.call_at(CLIENTS_BEGIN_US, cluster.control.life, self._begin_clients, None)
        if self.scenario.drawn:
            self._draw()
            kernel.run_until(self.horizon_us)
        else:
            kernel.run_until(END_US)
            kernel.run_until(kernel.now_us + PAUSE_US)
        self._heal()
        self._check()

    def _script_ended(self, process: Event) -> None:
        if process.ok:  # A failed one raises in the kernel.
            self.kernel.stop()

    def _begin_clients(self, _: object) -> None:
        cluster = self.cluster
        self.warmup_elections = cluster.recorder.counts.elections
        cluster.recorder.availability.begin(self.kernel.now_us)
        cluster.producer.begin()
        cluster.consumer.begin()
        if self.scenario.drawn:
            first_us = self.kernel.now_us + cluster.consumer.settings.end_offsets_us
            self.kernel.call_at(first_us, cluster.consumer.life, cluster.consumer.ask_regularly, None)

    @property
    def horizon_us(self) -> int:
        """When a drawn run is healed."""
        recorded, faults = self.scenario.recorded, self.scenario.faults
        if recorded is not None and recorded.horizon_us is not None:
            return recorded.horizon_us
        assert faults is not None
        return faults.horizon_us

    def _draw(self) -> None:
        """Get plan and batches, from the seed or from a recording, and let them come."""
        recorded = self.scenario.recorded
        batches = None if recorded is None else recorded.sends
        if batches is None:
            self.plan, batches = self._drawn()
        self.sends = [ProducerBatch(*batch) for batch in batches]
        if recorded is not None:
            self.plan = recorded.plan
            if recorded.continued is not None:
                at_us = recorded.continued.after_us + 1
                self.kernel.call_at(at_us, ALWAYS, self._continue, recorded.continued)
        self.injection.schedule(self.plan)
        self.cluster.producer.schedule(self.sends)

    def _continue(self, how: Continuation) -> None:
        """From now on it is not as recorded."""
        self.cluster.network.redraw(how.number)
        if not how.faults:
            self.injection.stop()

    def _drawn(self) -> tuple[Plan, tuple[PlannedSend, ...]]:
        faults, config = self.scenario.faults, self.config
        assert faults is not None
        return draw(
            self.seed,
            faults,
            self.scenario.workload,
            self.cluster.replicas,
            tuple(self.cluster.settings),
            acks_number(str(config["acks"])),
            integer(config, "sim.event.budget"),
            integer(config, "sim.record.budget"),
            integer(config, "sim.state.budget"),
        )

    def _heal(self) -> None:
        self.cluster.recorder.availability.end(self.kernel.now_us)
        self.cluster.control.release()
        self.injection.stop()
        self.injection.heal()
        self.convergence.begin()
        deadline_us = convergence_deadline_us(self.config, self.cluster.control.session_us) + self.scenario.settle_us
        self.kernel.run_until(min(self.kernel.now_us + deadline_us, END_US))

    def _check(self) -> None:
        """The final checks, then the labels."""
        cluster, now_us = self.cluster, self.kernel.now_us
        failure = self.convergence.failure(now_us)
        self.stalled = failure is not None and cluster.control.waits_for_operator
        if failure is not None and not self.stalled:
            cluster.recorder.history.findings.violations.append(failure)
        leader = cluster.leader
        # A broker that missed that it is no replica any more still has a log, which does not count.
        running = {broker: cluster.running.get(broker) for broker in cluster.replicas}
        live = {broker: process.partition for broker, process in running.items() if process and process.partition}
        logs = [storage.log for storage in cluster.machines.storages.values()]
        self.checkers.final(RunEnd(leader.partition if leader is not None else None, logs, live, now_us))
        self._label()
        self.story.check()
        final = {broker: storage.log for broker, storage in cluster.machines.storages.items()}
        final_logs.check(self.scenario.final, self.rules_in_force, final, self.batches)

    def give_up(self) -> None:
        """A budget is used up: what was seen until now is labelled, and that is all that the run tells."""
        self.exhausted = True
        self.cluster.recorder.availability.end(self.kernel.now_us)
        self._label()

    def _label(self) -> None:
        """What was found becomes inside or outside the promise, and warnings that count become violations."""
        self.waited, self.hidden_us = self._waiting()
        history = self.cluster.recorder.history
        findings = history.findings
        promise = Promise(history, self.promised, unclean_election=elects_uncleanly(self.config, self.rules))
        self.inside = promise.run_inside()
        self.inside_unclean, self.inside_lossy = promise.inside_unclean, promise.inside_lossy
        findings.violations += [warning for warning in findings.warnings if self.scenario.counts(warning.kind)]
        for violation in (*findings.violations, *findings.warnings):
            violation.inside = promise.covers(violation)

    def _waiting(self) -> tuple[Waiting, int]:
        """What acks=all writes waited for the HW, from the first election or fault on, and for how long batches that
        were acked with acks=1 were hidden from consumers.
        """
        availability, history = self.cluster.recorder.availability, self.cluster.recorder.history
        commits = history.commits.first_us
        end_us = availability.window_us[1]
        disturbed = [fault.at_us for fault in self.injection.realised if fault.effective][:1]
        if availability.disturbed_us >= 0:
            disturbed.append(availability.disturbed_us)
        patience_us = self.cluster.producer.settings.delivery_timeout_us
        writes = [
            (send.due_us, min(commits.get(send.first_id, end_us), send.due_us + patience_us))
            for send in self.sends or self.script.sends
            if send.acks == -1
        ]
        window_us = (min(disturbed, default=end_us), end_us)
        hidden = [(ack.at_us, commits.get(ack.first_id, end_us)) for ack in history.clients.acks if ack.acks == 1]
        return waiting(writes, sorted(commits.values()), window_us), waiting(hidden, (), window_us).total_us

    # What is kept.

    def row(self, error: str) -> Row:
        recorder, injection = self.cluster.recorder, self.injection
        violations = recorder.history.findings.violations
        elections = recorder.counts.elections - self.warmup_elections
        digest = recorder.digest()
        decided = not error or self.exhausted
        expected = decided and as_expected(self.scenario, self.mode.name, violations, to_the_end=not self.exhausted)
        return rows.row(
            EndedRun(
                scenario=self.scenario,
                mode=self.mode.name,
                seed=self.seed,
                drawn=self.drawn,
                verdict=self._verdict(error),
                expected=expected,
                inside=self.inside,
                inside_unclean=self.inside_unclean,
                inside_lossy=self.inside_lossy,
                vacuous=is_vacuous(
                    self.scenario,
                    batches_acked=len(recorder.history.clients.acks),
                    faults=injection.effective,
                    elections=elections,
                ),
                error=error,
                digest=digest,
                replay=self._replay_line(digest) if violations or error or self.stalled or not expected else "",
                plan=self.plan,
                injection=injection,
                elections=elections,
                recorder=recorder,
                last_standing=self._last_standing(),
                waited=self.waited,
                hidden_us=self.hidden_us,
                coverage=coverage.column(recorder.coverage, injection.realised),
                events=self.kernel.events,
                end_us=self.kernel.now_us,
            )
        )

    def _verdict(self, error: str) -> str:
        if self.exhausted:
            return "exhausted"
        if error:
            return "error"
        if self.cluster.recorder.history.findings.violations:
            return "violation"
        return "stalled" if self.stalled else "ok"

    def _last_standing(self) -> int:
        """Records among those that are lost by which a last replica standing was short."""
        history = self.cluster.recorder.history
        violations = history.findings.violations
        lost = frozenset(record for one in violations if one.kind == "committed-loss" for record in one.ids)
        return len(last_standing.taken(history, lost) & lost) if lost else 0

    def _replay_line(self, digest: str) -> str:
        """The command that runs it again; none where the command line does not know the mode."""
        if MODES.get(self.mode.name) != self.mode:
            return ""
        recorded = self.scenario.recorded
        words = ["highwater", "replay", self.scenario.source or self.scenario.name]
        if recorded is not None:
            words = ["highwater", "run", *recorded.words]
        words += ["--mode", self.mode.name, "--seed", str(self.seed)]
        for name, value in sorted(self.overrides.items()):
            words += ["--rule", f"{name}={value}"]
        for override in self.scenario.overrides:
            words += ["--set", override]
        if self.scenario.strict:
            words.append("--strict")
        return shlex.join(words if recorded is not None else [*words, "--expect-digest", digest])

    def replicas(self) -> list[ReplicaView]:
        views = []
        for broker, storage in self.cluster.machines.storages.items():
            process = self.cluster.running.get(broker)
            partition = process.partition if process else None
            log = storage.log
            if partition is not None:
                storage.catch_up(partition.hw, self.kernel.now_us)
            views.append(
                ReplicaView(
                    broker=broker,
                    running=process is not None,
                    batches=[(one.base_offset, one.last_offset, one.leader_epoch, one.first_id) for one in log.batches],
                    log_start=log.log_start,
                    leo=log.leo,
                    high_watermark=partition.hw if partition else storage.hw_file.content or 0,
                    leader_epoch_checkpoint=list(storage.epoch_checkpoint.entries),
                    replication_offset_checkpoint=storage.hw_file.content,
                    recovery_point_offset_checkpoint=storage.recovery_point_file.content,
                    log_start_offset_checkpoint=storage.log_start_file.content,
                    clean_shutdown_marker=storage.clean_shutdown,
                )
            )
        return views

    def partition(self) -> PartitionView:
        state = self.cluster.control.state
        elr = last_known_elr = None
        eligible = self.cluster.control.eligible
        if eligible is not None and self.rules.elr == "on":
            elr, last_known_elr = eligible
        return PartitionView(
            state.leader,
            state.leader_epoch,
            state.isr,
            state.partition_epoch,
            state.controller_epoch,
            state.replicas,
            elr,
            last_known_elr,
        )

    def result(self, error: str, trace: list[Shown] | None) -> RunResult:
        return RunResult(
            row=self.row(error),
            trace=trace,
            partition=self.partition(),
            faults=self.injection.to_json(),
            plan=self.plan.to_json(),
            story=[{"text": text, "met_at_us": at_us} for text, at_us in self.story.met],
            violations=_entries(self.cluster.recorder.history.findings.violations),
            warnings=_entries(self.cluster.recorder.history.findings.warnings),
            replicas=self.replicas(),
            metrics=self.cluster.recorder.metrics.series(),
            window_us=self.cluster.recorder.availability.window_us,
            settings=self.config,
            rules=self.overrides,
            sends=[(send.first_id, send.count, send.acks, send.due_us) for send in self.sends],
            horizon_us=self.horizon_us if self.scenario.drawn else None,
            older=self.older,
            stalled=self.stalled,
        )


def _entries(found: Sequence[Violation]) -> list[dict[str, Any]]:
    return [
        {"kind": entry.kind, "inside": entry.inside, "at_us": entry.at_us, "detail": entry.detail} for entry in found
    ]


def _first_lines(error: Exception) -> str:
    """An exception in a few words, with the innermost place in our code, free of absolute paths."""
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
) -> tuple[_Run, str]:
    check_build()
    one = _Run(scenario, mode, seed, rules, kernel)
    for observer in observers:
        one.cluster.recorder.observe(observer)
    if watch is not None:
        one.cluster.recorder.observe(watch(one.cluster))
    error = ""
    try:
        one.execute()
    except BudgetError as reached:
        error = str(reached)
        one.give_up()
    except MemoryError:
        raise  # That is no finding about the run.
    except Exception as failure:
        error = _first_lines(failure)
    return one, error


@cache
def prepare_process() -> None:
    """For a process that makes many runs, once: the garbage collector leaves alone what lives for ever, and looks less
    often, since a run leaves little behind (`Cluster.dispose`).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def run_row(scenario: Scenario, mode: Mode, seed: int, rules: Mapping[str, str] | None = None) -> Row:
    """Run and keep the row only.

    Args:
        scenario: what to run.
        mode: one of `sim.protocol.modes.MODES`, or another.
        seed: any integer.
        rules: rule values that replace the mode's.

    Returns:
        The row; an exception in the run is in it, with verdict ``error``, and a budget that was used up, with verdict
        ``exhausted``.
    """
    one, error = _execute(scenario, mode, seed, rules or {}, [])
    row = one.row(error)
    one.dispose()
    return row


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
    """Run and keep everything.

    Args:
        scenario: what to run.
        mode: one of `sim.protocol.modes.MODES`, or another.
        seed: any integer.
        rules: rule values that replace the mode's.
        trace: whether to keep every step.
        kernel: a fresh kernel, to break ties otherwise.
        watch: is given the cluster before it begins, and returns who is shown each step.

    Returns:
        The result; an exception in the run is in its row, with verdict ``error``, and a budget that was used up, with
        verdict ``exhausted``.
    """
    steps: list[Shown] = []
    one, error = _execute(scenario, mode, seed, rules or {}, [steps.append] if trace else [], kernel, watch)
    return one.result(error, steps if trace else None)
