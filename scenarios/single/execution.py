"""The phases of a run.

The seed decides settings, plan and workload. The cluster runs with the plan until the horizon or the end of the script.
Everything is healed, and the run waits for convergence. The final checks find violations, and the promise labels
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from simpy.events import Event

from faults.bounds import Limits
from faults.kinds.injection import Injection
from faults.kinds.topic_changes import OF_TOPICS
from faults.plan import Plan
from faults.promise.promise import UNKNOWN, Promise, elects_uncleanly
from faults.stories import next_blow
from faults.stories.controllers import aim_at_controllers
from scenarios.format.blow import DIFFERENCE, Blow
from scenarios.format.scenario import Continuation, PlannedSend, Scenario, Topic
from scenarios.single.convergence import Convergence, PartitionConvergence
from scenarios.single.draws import FIRST_BURST_US, draw, draw_sends, producer_of
from scenarios.single.script import RulesInForce, Script, StoryError, StoryMatcher, check_final_logs
from scenarios.single.standstill import complete_replica, needless_wait
from scenarios.single.wait_bounds import elections_us, idle_quorum_us, wait_bounds
from sim.checkers.checker import RunEnd
from sim.checkers.needless_wait import Obstacles, WaitBounds
from sim.checkers.registry import LIVENESS, Checkers
from sim.config import GROUP_OFFSETS, Value, integer, resolve
from sim.history import step_probes
from sim.history.availability import Waiting, waiting
from sim.history.findings import Violation
from sim.history.recorder import Recorder
from sim.history.records import VALIDATION_IDS
from sim.hosts.cluster import TOPIC, Cluster
from sim.hosts.settings import acks_number, convergence_deadline_us, converges_in_time
from sim.hosts.topics import ClusterPartition, ClusterTopic, TopicPartition
from sim.kernel.mixing import mixed
from sim.kernel.scheduler import ALWAYS, BudgetError, Environment, Kernel, PriorityKernel, ShuffledKernel
from sim.kernel.streams import Streams, choice
from sim.protocol.client.sender import ProducerBatch
from sim.protocol.group.group_messages import OFFSETS
from sim.protocol.kraft.metadata import MIN_ISR
from sim.protocol.log.log import Log
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.modes import Mode, Promised
from sim.protocol.modes import mode as mode_named
from sim.protocol.rules import Rules

LIVES: Final = frozenset([finding.kind for finding in LIVENESS])
"""Violations that are about convergence only."""
FACTOR: Final = "default.replication.factor"
OF_RECORDS: Final = ("retention", "record-deletion", "next-batches", "consumer-restart")
"""Kinds of fault about what applications write and read: __consumer_offsets is compacted, and has no application."""
END_US: Final = 1 << 62
"""Latest time, which steps can store in 64 bits: some deadlines mean "never"."""
CLIENTS_BEGIN_US: Final = 500_000
"""Clients start when brokers have loaded their logs and one leads: the end of warm-up."""
IDS_EACH: Final = 1 << 22
"""Record ids reserved for each partition that is created in a run; they begin at its `place` times this."""
PAUSE_US: Final = 1_000_000
"""Time between the end of a script and healing."""


@dataclass(frozen=True, slots=True)
class PromiseColumns:
    """The columns of a row about the promise, and the kinds of violations inside it (`kinds`)."""

    inside: bool
    inside_unclean: int
    inside_lossy: int
    kinds: frozenset[str]


class Execution:
    """Runs the phases of one run.

    Args:
        failure: the exception of a plug-in that ended a first attempt to build the cluster of this run. The cluster is
            now built without plug-ins, and the exception is raised when the run begins.
    """

    def __init__(
        self,
        scenario: Scenario,
        mode: Mode,
        seed: int,
        overrides: Mapping[str, str],
        kernel: Kernel | None,
        failure: BaseException | None = None,
    ) -> None:
        self.scenario = scenario
        self._failure = failure
        self.mode = mode
        self.seed = seed
        self.overrides = overrides
        self.streams = Streams(seed)
        self.drawn = self._draw_settings()
        first = of_first_topic(scenario)
        self.config = resolve(scenario.config, self.drawn, first)
        in_force = mode.override(overrides)
        self.rules, self.promised = self._runnable(in_force.rules), in_force.promise
        brokers = broker_count(scenario, self.config)
        broker_rules = dict.fromkeys(range(1, brokers + 1), self.rules)
        for broker, own_mode in scenario.broker_modes.items():
            if broker in broker_rules:
                broker_rules[broker] = self._runnable(mode_named(own_mode).rules.override(overrides))
        self.older = older_brokers(scenario, mode.place, self.rules, broker_rules, self.streams)
        upgraded = {broker: broker_rules[broker] for broker in self.older}
        for broker, name in self.older.items():
            broker_rules[broker] = self._runnable(mode_named(name).rules.override(overrides))
        self.producers = producer_count(scenario, self.config)
        self.kernel = kernel or self._kernel()
        of_cluster = resolve(scenario.config, self.drawn) if first else self.config
        self.topics = drawn_topics(scenario, self.streams)
        found = partitions(self.topics, of_cluster)
        if self.config[GROUP_OFFSETS] == "partition":
            factor = min(integer(self.config, "offsets.topic.replication.factor"), brokers)
            found.append(TopicPartition(OFFSETS, factor, idle=True))
        first_partition, *others = found
        recorder = Recorder(self.kernel, integer(self.config, "sim.record.budget"), name=first_partition.name)
        for partition in others:
            recorder.add_partition(partition.name)
        plugged, is_replicated = failure is None, scenario.controller_count > 0
        self._bounds, self._obstacles = self._wait_bounds(broker_rules), Obstacles()
        if self._bounds is not None:
            recorder.attach([self._obstacles])
        self.checkers = {
            partition.name: Checkers(
                recorder.of(partition.name),
                plugged=plugged,
                bounds=self._bounds,
                obstacles=self._obstacles,
                election_us=elections_us(self.config) if partition is first_partition and is_replicated else 0,
                idle_us=idle_quorum_us(self.config),
                judges_elections=self._judges_elections,
                recovers=self.rules.unclean_recovery != "election",
            )
            for partition in (first_partition, *others)
        }
        if step_probes.ADDED and plugged:
            probes = step_probes.StepProbes(recorder.coverage)
            recorder.attach_to(probes.kinds, probes)
        self.cluster = Cluster(
            brokers=brokers,
            config=self.config,
            broker_config={
                broker: resolve(scenario.config, self.drawn, keys, first)
                for broker, keys in scenario.broker_config.items()
                if broker in broker_rules
            },
            rules=broker_rules,
            upgraded=upgraded,
            client_rules=self.rules,
            scripted=scenario.control == "scripted",
            first=scenario.first,
            topology=scenario.topology,
            partitions=found,
            topics=cluster_topics(self.topics, of_cluster),
            places={topic.name: topic.directory for topic in self.topics if topic.directory is not None},
            producers=self.producers,
            controllers=scenario.controller_count,
            dynamic_voters=scenario.has_dynamic_voters,
            kernel=self.kernel,
            streams=self.streams,
            recorder=recorder,
        )
        self.cluster.topics.added = self._add_partition
        self.cluster.topics.removed = self._remove_partition
        self.kernel.audit = self._audit
        self.injection = Injection(self.cluster)
        self.plan = Plan()
        self.convergence = Convergence(self.cluster, VALIDATION_IDS)
        self.rules_in_force = RulesInForce(self.rules, broker_rules)
        self.batches: dict[str, int] = {}
        self.story = StoryMatcher(scenario.story, self.rules_in_force, self.batches)
        acks = acks_number(str(self.config["acks"]))
        self.script = Script(scenario.script, self.rules_in_force, self.cluster, self.injection, acks, self.batches)
        self.sends: dict[str, list[ProducerBatch]] = {}
        self.waited = Waiting()
        self.hidden_us = 0
        self.warmup_elections: dict[str, int] = {}
        self.window_us = (0, 0)
        self.inside = True
        self.stalled = self.needless_stall = False
        self.traceback = ""
        self.exhausted = False
        self.judged = False
        self.inside_unclean = self.inside_lossy = UNKNOWN
        self._blows_end_us = 0
        self.clients_began = False

    def dispose(self) -> None:
        """See `Cluster.dispose`."""
        self.cluster.dispose()
        self.convergence.dispose()
        for checkers in self.checkers.values():
            checkers.dispose()

    def _runnable(self, rules: Rules) -> Rules:
        """The rules of a broker; without values of plug-ins if a plug-in has failed."""
        return rules if self._failure is None else rules.without_added()

    @property
    def _judges_elections(self) -> bool:
        """Whether no setting allows a leader that may lack records, and no script chooses it."""
        return self.scenario.control != "scripted" and not self.config["unclean.leader.election.enable"]

    def _wait_bounds(self, brokers: Iterable[int]) -> WaitBounds | None:
        """The bounds of waits, if the run judges them. It does not while a script decides, or if any link may lose
        messages, because then no request needs to arrive.
        """
        scenario = self.scenario
        lossy = integer(self.config, "sim.network.loss.permille") > 0
        if not self.config["sim.judge.waits"] or scenario.control == "scripted" or lossy:
            return None
        own = [scenario.broker_config.get(broker, {}) for broker in brokers]
        configs = [resolve(scenario.config, self.drawn, keys, of_first_topic(scenario)) for keys in own]
        return wait_bounds(configs, self.rules)

    @property
    def needless_wait_us(self) -> int:
        """Time over the bounds of waits, in all partitions; -1: not judged."""
        return -1 if self._bounds is None else self._obstacles.lost_us

    def _draw_settings(self) -> dict[str, Value]:
        keys = self.scenario.draw_config
        number = self.streams.number
        return {key: keys[key][int(number(f"setting:{key}") * len(keys[key]))] for key in sorted(keys)}

    def _kernel(self) -> Kernel:
        """The kernel for ``sim.ties``."""
        ties, budget = self.config["sim.ties"], integer(self.config, "sim.event.budget")
        if ties == "random":
            return ShuffledKernel(self.streams("ties"), budget)
        return PriorityKernel(self.streams("ties"), event_budget=budget) if ties == "pct" else Kernel(budget)

    def _audit(self) -> None:
        """See `Kernel.audit`."""
        budget, now_us = integer(self.config, "sim.state.budget"), self.kernel.now_us
        self.cluster.dispose_ended()
        sends = sum([len(sends) for sends in self.sends.values()])
        if self.cluster.size + sends + len(self.injection.realised) > budget:
            raise BudgetError("sim.state.budget", budget, "objects", f"{now_us / 1e6:.6f} s")

    def execute(self) -> None:
        """Warm up, run faults or script, heal, converge, check."""
        kernel = self.kernel
        if self._failure is not None:
            raise self._failure
        self._begin()
        if self.scenario.drawn:
            kernel.run_until(self.horizon_us)
        else:
            kernel.run_until(END_US)
            kernel.run_until(kernel.now_us + PAUSE_US)
        self._heal()
        self._check()

    def covered(self, warnings: Sequence[tuple[str, int]]) -> list[bool]:
        """Run a random run up to early warnings, given by kind and time, in order of time; instead of `execute`.

        Returns for each whether the mode's promise covers it, judged by the faults until then, and no violation was
        found before.
        """
        self._begin()
        found = []
        history = self.cluster.recorder.history
        for kind, at_us in warnings:
            self.kernel.run_until(at_us)
            promise = self._promise(self.promised, self.cluster.recorder)
            there = [
                warning for warning in history.findings.warnings if warning.at_us == at_us and warning.kind == kind
            ]
            found.append(not history.findings.violations and any(promise.covers(violation) for violation in there))
        return found

    def _begin(self) -> None:
        """Schedule everything; a run with blows then runs until the last of their warnings."""
        cluster, kernel = self.cluster, self.kernel
        if self.scenario.script:
            cluster.recorder.observe(self.script.observe, everywhere=True)
            cluster.recorder.observe(self.story.observe, everywhere=True)
        cluster.boot()
        if self.scenario.script:
            environment = Environment(kernel)
            process = environment.process(self.script.play(environment))
            process.callbacks.append(self._script_ended)
        kernel.call_at(CLIENTS_BEGIN_US, cluster.control.life, self._begin_clients, None)
        if self.scenario.drawn:
            self._draw()
            for blow in self.scenario.blows:
                self._strike(blow)

    def _script_ended(self, process: Event) -> None:
        if process.ok:  # A failed process raises in the kernel.
            self.kernel.stop()

    def _begin_clients(self, _: object) -> None:
        cluster = self.cluster
        self.clients_began = True
        self.window_us = self.kernel.now_us, self.kernel.now_us
        for partition in cluster.partitions:
            self.warmup_elections[partition.name] = partition.recorder.counts.elections
            if not partition.deleted:
                partition.recorder.availability.begin(self.kernel.now_us)
            self._begin_clients_of(partition)

    def _begin_clients_of(self, partition: ClusterPartition) -> None:
        if partition.idle:
            return
        for producer in partition.producers:
            producer.begin()
        partition.consumer.begin()
        self._ask_regularly(partition)
        self._commit_regularly(partition)

    def _commit_regularly(self, partition: ClusterPartition) -> None:
        interval_us = partition.consumer.settings.auto_commit_us
        if interval_us:
            partition.consumer.commit_regularly_from(self.kernel.now_us + interval_us)

    def _ask_regularly(self, partition: ClusterPartition) -> None:
        if self.scenario.drawn:
            first_us = self.kernel.now_us + partition.consumer.settings.end_offsets_us
            partition.consumer.ask_regularly_from(first_us)

    # Topics.

    def _add_partition(self, partition: ClusterPartition) -> None:
        """A partition is about to be created while the cluster runs: it has records, checkers and clients of its own.

        Its records have other ids than those of other partitions, because a late response about a deleted topic may
        reach the log of another topic of that name.
        """
        first_id = partition.place * IDS_EACH
        self.checkers[partition.name] = Checkers(partition.recorder, bounds=self._bounds, obstacles=self._obstacles)
        if self.clients_began:
            partition.recorder.availability.begin(self.kernel.now_us)
        self.convergence.add(partition, first_id)
        self.kernel.call_at(self.kernel.now_us, ALWAYS, self._begin_added, (partition, first_id))

    def _begin_added(self, entry: tuple[ClusterPartition, int]) -> None:
        """Begin the clients of a new partition, and schedule its batches."""
        partition, first_id = entry
        if self.clients_began and partition.setup.settings.discovers_late and not partition.idle:
            for producer in partition.producers:
                producer.begin()
            # Consumers have begun at any time, so their periodic requests come at any time.
            wait_us = mixed(self.streams.key("discovery"), partition.place) % partition.setup.settings.metadata_age_us
            self.kernel.call_at(self.kernel.now_us + wait_us, ALWAYS, self._discover, partition)
        elif self.clients_began:
            self._begin_clients_of(partition)
        if self.scenario.drawn:
            self._schedule_sends(partition, self.kernel.now_us + FIRST_BURST_US, first_id)

    def _discover(self, partition: ClusterPartition) -> None:
        """The consumer's periodic metadata request names the partition, unless it is deleted already."""
        if not partition.deleted:
            partition.consumer.discover()
            self._ask_regularly(partition)
            self._commit_regularly(partition)

    def _remove_partition(self, partition: ClusterPartition) -> None:
        self.convergence.remove(partition)
        self.checkers[partition.name].close()
        partition.recorder.availability.end(self.kernel.now_us)

    @property
    def horizon_us(self) -> int:
        """The time at which a random run is healed."""
        recorded, faults = self.scenario.recorded, self.scenario.faults
        if self._blows_end_us:
            return self._blows_end_us
        if recorded is not None and recorded.horizon_us is not None:
            return recorded.horizon_us
        assert faults is not None
        return faults.horizon_us

    def _draw(self) -> None:
        """Schedule plan and batches, drawn or recorded."""
        recorded = self.scenario.recorded
        batches = None if recorded is None else recorded.sends
        if batches is None:
            plan, batches = self._drawn()
            self.plan = self._without(self._about_controllers(self._about_others(plan)))
        sends = [ProducerBatch(first_id, count, acks, due_us) for first_id, count, acks, due_us in batches]
        if recorded is not None:
            self.plan = recorded.plan
            if recorded.continued is not None:
                at_us = recorded.continued.after_us + 1
                self.kernel.call_at(at_us, ALWAYS, self._continue, recorded.continued)
        self.injection.schedule(self.plan)
        first, *others = self.cluster.partitions
        self.sends[first.name] = sends
        self._schedule(first, sends)
        for partition in others:
            self._schedule_sends(partition, FIRST_BURST_US, 0)

    def _schedule(self, partition: ClusterPartition, sends: Sequence[ProducerBatch]) -> None:
        """Let the producers of a partition send these batches."""
        for producer, own in zip(partition.producers, self._by_producer(sends), strict=True):
            producer.schedule(own)

    def _by_producer(self, sends: Sequence[ProducerBatch]) -> list[list[ProducerBatch]]:
        """The batches of each producer of a partition."""
        found: list[list[ProducerBatch]] = [[] for _ in range(self.producers)]
        for send in sends:
            found[producer_of(send.first_id, len(found)) - 1].append(send)
        return found

    def _schedule_sends(self, partition: ClusterPartition, since_us: int, first_id: int) -> None:
        """Schedule the batches of a partition besides the first, drawn with ids from `first_id` on, or recorded."""
        recorded = self.scenario.recorded
        if recorded is not None and recorded.sends is not None:
            sends = [ProducerBatch(*send) for send in recorded.further_sends.get(partition.name, ())]
        elif partition.idle or since_us >= self.horizon_us:
            sends = []
        else:
            sends = self._drawn_for(partition, since_us)
            if first_id:
                sends = [
                    ProducerBatch(first_id + batch.first_id, batch.count, batch.acks, batch.due_us) for batch in sends
                ]
        self.sends[partition.name] = sends
        if sends:
            self._schedule(partition, sends)

    def _continue(self, how: Continuation) -> None:
        """From now on use other latencies than the recorded run, and its faults only if they are wanted."""
        self.cluster.network.redraw(how.number)
        if not how.faults:
            self.injection.stop()

    def _strike(self, blow: Blow) -> None:
        """Run until a blow's warning, or its difference. From then on, its faults and batches replace those that are
        left.

        Raises:
            StoryError: the run has no such warning, or none from which it could go on.
        """
        faults = self.scenario.faults
        assert faults is not None
        at_us = blow.at_us
        if at_us < self.horizon_us:
            self.kernel.run_until(at_us)
        cluster = self.cluster
        leader = cluster.control.state.leader
        limits = Limits(faults, cluster.replicas, tuple(cluster.settings), (at_us, at_us))
        stream = self.streams(blow.stream)
        if blow.warning == DIFFERENCE:
            drawn = next_blow.draw_at_difference(stream, blow.brokers, leader, limits, at_us)
        else:
            weak = self._weak(blow)
            drawn = next_blow.draw(stream, blow.warning, blow.variant, weak, leader, limits, at_us)
        self.plan = self.injection.replace(self._without(Plan(drawn.faults)))
        first = cluster.partitions[0]
        planned = zip(first.producers, self._by_producer(self.sends[first.name]), strict=True)
        sends = sorted([send for producer, own in planned for send in own[: producer.sent]], key=_first_record)
        for send in sends:
            send.due_us = min(send.due_us, at_us)  # Those sent ahead of their times (fault `next-batches`).
        sent = len(sends)
        record = sends[-1].first_id + sends[-1].count if sent else 0
        acks = acks_number(str(self.config["acks"]))
        for due_us, count in drawn.batches:
            sends.append(ProducerBatch(record, count, acks, due_us))
            record += count
        self.sends[first.name] = sends
        self._schedule(first, sends[sent:])
        self._blows_end_us = drawn.end_us

    def _weak(self, blow: Blow) -> tuple[int, ...]:
        """The brokers that a blow's warning, which was just raised, is about.

        Raises:
            StoryError: as `_strike`.
        """
        at_us = blow.at_us
        for warning in self.cluster.recorder.history.findings.warnings:
            if warning.at_us == at_us and warning.kind == blow.warning:
                return warning.weak
        raise StoryError(f"there is no early warning {blow.warning} at {at_us} us, before everything is healed")

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

    def _about_controllers(self, plan: Plan) -> Plan:
        """The plan, with ``controllers_percent`` of its faults aimed at controllers that are processes."""
        faults, controllers = self.scenario.faults, self.cluster.controllers
        assert faults is not None
        if not controllers or not faults.controllers_percent:
            return plan
        return aim_at_controllers(plan, self.streams("controllers"), faults.controllers_percent, controllers)

    def _about_others(self, plan: Plan) -> Plan:
        """The plan; on ``others_percent`` of seeds its faults strike by the roles of another partition than the first
        (its leader, its followers), from its creation until its deletion. A stream of its own decides.
        """
        faults = self.scenario.faults
        assert faults is not None
        if not faults.others_percent:
            return plan
        stream = self.streams("others")
        names = [f"{topic.name}-{number}" for topic in self.topics for number in range(topic.partitions)][1:]
        if self.cluster.partitions[-1].name == OFFSETS:
            names.append(OFFSETS)
        if stream.random() * 100 >= faults.others_percent or not names:
            return plan
        name = choice(stream, names)
        spared = (*OF_TOPICS, *OF_RECORDS) if name == OFFSETS else OF_TOPICS
        return Plan(tuple([fault if fault.kind in spared else fault.about(name) for fault in plan.faults]))

    def _drawn_for(self, partition: ClusterPartition, since_us: int) -> list[ProducerBatch]:
        """The batches for a partition besides the first, from a stream of its own: they do not depend on the plan."""
        workload, config = self.scenario.workload, self.config
        if workload is None:
            return []
        return draw_sends(
            self.streams,
            workload,
            (since_us, self.horizon_us),
            acks_number(str(config["acks"])),
            record_budget=integer(config, "sim.record.budget"),
            state_budget=integer(config, "sim.state.budget"),
            stream=f"workload:{partition.name}",
        )

    def _without(self, plan: Plan) -> Plan:
        """A plan without the kinds of fault that the user excludes."""
        excluded = self.scenario.without_faults
        return Plan(tuple([fault for fault in plan.faults if fault.kind not in excluded])) if excluded else plan

    def _end_window(self) -> None:
        """Stop measuring availability, unless it was stopped."""
        if self.clients_began and self.window_us[0] == self.window_us[1]:
            self.window_us = self.window_us[0], self.kernel.now_us
        for partition in self.cluster.partitions:
            partition.recorder.availability.end(self.kernel.now_us)

    def _heal(self) -> None:
        self._end_window()
        self.cluster.network.end_idle()
        self.cluster.control.release()
        self.injection.stop()
        self.injection.heal()
        self.convergence.begin()
        deadline_us = convergence_deadline_us(self.config, self.cluster.control.session_us) + self.scenario.settle_us
        self.kernel.run_until(min(self.kernel.now_us + deadline_us, END_US))

    def _check(self) -> None:
        """The final checks, then the labels."""
        self.cluster.network.end_idle()
        for convergence in self.convergence.partitions:
            self._check_partition(convergence)
        self._label()
        if self.script.failure is not None:
            raise self.script.failure
        self.story.check()
        check_final_logs(self.scenario.final, self.rules_in_force, self._log_of, self.batches)

    def _log_of(self, broker: int, partition: str | None) -> Log:
        """A broker's log of a partition, of the first if that is None."""
        cluster = self.cluster
        return cluster.machines.directories[broker].log(partition or cluster.name)

    def _check_partition(self, convergence: PartitionConvergence) -> None:
        cluster, now_us = self.cluster, self.kernel.now_us
        name, history = convergence.name, cluster.recorder.of(convergence.name).history
        state, leader = cluster.control.state_of(name), cluster.leader_of(name)
        # A removed replica whose broker does not know it yet still has a log, which does not count.
        live = {}
        for broker in state.replicas:
            process = cluster.running.get(broker)
            replica = None if process is None else process.replica(name)
            if replica is not None:
                live[broker] = replica.partition
        failure = convergence.failure(now_us)
        offline = cluster.machines.offline_replicas(name, state.replicas)
        for_directory = failure is not None and failure.kind == "no-progress" and convergence.waits_for_directory
        if failure is not None and leader is not None and (for_directory or self._has_too_few(name, state, offline)):
            failure, self.stalled = None, True  # An operator has to repair a log directory.
        if failure is not None and cluster.control.waits_for_operator(state, offline):
            # Without ELR, only the last member of the ISR can be elected.
            counts = not state.isr or self.promised.counts_damage
            replicas = {broker: partition.log for broker, partition in live.items()}
            needless = needless_wait(history, replicas) if counts else ""
            self.needless_stall = self.needless_stall or complete_replica(history, replicas) > 0
            failure = Violation(failure.kind, now_us, needless) if needless else None
            self.stalled = self.stalled or failure is None
        failure = failure or convergence.stuck_consumer(now_us)
        if failure is not None:
            history.findings.violations.append(failure)
        logs = [directories.log(name) for directories in cluster.machines.directories.values()]
        led = None if leader is None else leader.replica(name)
        checkers = self.checkers[name]
        changed = cluster.control.changed_settings(name)
        in_force = cluster.settings_in_force(name) if changed else None
        checkers.final(RunEnd(None if led is None else led.partition, logs, live, now_us, changed, in_force))

    def _has_too_few(self, name: str, state: LeaderAndIsr, offline: Sequence[int]) -> bool:
        """Whether a partition has fewer replicas in working log directories than ``min.insync.replicas``, so that an
        operator has to repair one.
        """
        needed = min(self.cluster.control.min_isr_of(name), len(state.replicas))
        return bool(offline) and len(state.replicas) - len(offline) < needed

    def abort(self) -> None:
        """End an exhausted run: label the violations so far."""
        self.exhausted = True
        self._end_window()
        self._label()

    def _label(self) -> None:
        """Add warnings that count (`Scenario.counts`) to the violations, and label these by the promise."""
        for partition in self.cluster.partitions:
            self._note_waiting(partition)
        are_several, first, labels = len(self.cluster.partitions) > 1, self.cluster.recorder, []
        for partition in self.cluster.partitions:
            recorder, findings = partition.recorder, partition.recorder.history.findings
            if recorder is not first and not _may_be_covered(recorder):
                continue
            labels.append(self._label_partition(recorder))
            for violation in (*findings.violations, *findings.warnings) if are_several else ():
                if not violation.partition:  # A warning that counts is on both lists.
                    violation.partition = partition.name
                    violation.detail = f"{partition.name}: {violation.detail}"
            if recorder is not first:
                first.history.findings.violations += findings.violations
                first.history.findings.warnings += findings.warnings
        self.inside = all(inside for inside, _, _ in labels)
        self.inside_unclean = min([unclean for _, unclean, _ in labels])
        self.inside_lossy = min([lossy for _, _, lossy in labels])
        self.judged = True

    def _label_partition(self, recorder: Recorder) -> tuple[bool, int, int]:
        """Label the violations of a partition. Returns its ``inside``, ``inside_unclean`` and ``inside_lossy``, as in a
        row.
        """
        findings = recorder.history.findings
        promise = self._promise(self.promised, recorder)
        inside = promise.run_inside()
        findings.violations += [warning for warning in findings.warnings if self.scenario.counts(warning.kind)]
        for violation in (*findings.violations, *findings.warnings):
            violation.inside = self._covers(promise, violation)
        return inside, promise.inside_unclean, promise.inside_lossy

    def _covers(self, promise: Promise, violation: Violation) -> bool:
        """Whether a violation is inside the promise; of liveness, only with settings under which a cluster can live."""
        if not promise.covers(violation):
            return False
        if violation.kind not in LIVES:
            return True
        brokers: list[Mapping[str, Value]] = [{}, *self.scenario.broker_config.values()]
        return all(converges_in_time({**self.config, **own}, self.rules) for own in brokers)

    def _promise(self, promised: Promised, recorder: Recorder) -> Promise:
        """A promise to a partition, judged by its history so far."""
        unclean = elects_uncleanly(self.config, self.rules)
        return Promise(recorder.history, promised, unclean_election=unclean)

    def judged_by(self, promised: Promised) -> PromiseColumns:
        """How another mode's promise judges the ended run. The same settings must mean unclean election in both."""
        first, recorder = self.cluster.partitions[0].name, self.cluster.recorder
        violations = recorder.history.findings.violations  # Of all partitions.
        recorders = {first: recorder}
        recorders |= {name: further for name, further in recorder.further.items() if _may_be_covered(further)}
        promises = {name: self._promise(promised, of_partition) for name, of_partition in recorders.items()}
        kinds = frozenset(
            [
                violation.kind
                for violation in violations
                if self._covers(promises[violation.partition or first], violation)
            ]
        )
        inside = all(promise.run_inside() for promise in promises.values())
        unclean = min([promise.inside_unclean for promise in promises.values()])
        lossy = min([promise.inside_lossy for promise in promises.values()])
        return PromiseColumns(inside, unclean, lossy, kinds)

    def _note_waiting(self, partition: ClusterPartition) -> None:
        """Add how long acks=all writes to a partition waited for the HW, from the first election or fault on, and how
        long batches acked with acks=1 were hidden from consumers.
        """
        availability, history = partition.recorder.availability, partition.recorder.history
        commits = history.commits.first_us
        end_us = availability.window_us[1]
        disturbed = [fault.at_us for fault in self.injection.realised if fault.effective][:1]
        if availability.disturbed_us >= 0:
            disturbed.append(availability.disturbed_us)
        patience_us = self.cluster.producer.settings.delivery_timeout_us
        writes = [
            (send.due_us, min(commits.get(send.first_id, end_us), send.due_us + patience_us))
            for send in self.sends_to(partition.name)
            if send.acks == -1
        ]
        window_us = (min(disturbed, default=end_us), end_us)
        hidden = [(ack.at_us, commits.get(ack.first_id, end_us)) for ack in history.clients.acks if ack.acks == 1]
        waited = waiting(writes, sorted(commits.values()), window_us)
        self.waited.total_us += waited.total_us
        self.waited.longest_us = max(self.waited.longest_us, waited.longest_us)
        self.hidden_us += waiting(hidden, [], window_us).total_us

    def sends_to(self, name: str) -> Sequence[ProducerBatch]:
        """The batches of a partition, in order of their records."""
        return (self.script.sends if self.scenario.script else self.sends).get(name, ())


def _may_be_covered(recorder: Recorder) -> bool:
    """Whether a partition has records that a promise could cover, or a finding."""
    history = recorder.history
    return bool(
        history.commits.batches or history.clients.acks or history.findings.violations or history.findings.warnings
    )


def older_brokers(
    scenario: Scenario, place: tuple[tuple[int, ...], bool], rules: Rules, brokers: Iterable[int], streams: Streams
) -> Mapping[int, str]:
    """Broker -> the older mode in which it starts, before it restarts in the run's mode; drawn, or recorded.

    `place` and `rules` are those of the run's mode.
    """
    if scenario.recorded is not None:
        return scenario.recorded.older
    older = [
        mode.name
        for mode in map(mode_named, scenario.upgraded_from)
        if mode.place < place and mode.rules.control_plane == rules.control_plane
    ]
    found = {}
    for broker in brokers if older else ():
        stream = streams(f"older:{broker}")
        name = choice(stream, older)
        if stream.random() * 3 < 2:
            found[broker] = name
    return found


def _first_record(send: ProducerBatch) -> int:
    return send.first_id


def producer_count(scenario: Scenario, config: Mapping[str, Value]) -> int:
    """Number of producers of each partition: as many as the settings or the script say."""
    named: list[int] = [line.params.get("producer", 1) for line in scenario.script]
    return max([integer(config, "sim.producers"), *named])


def drawn_topics(scenario: Scenario, streams: Streams) -> list[Topic]:
    """The topics that exist on a seed; in a recording each has 0 or 100 percent."""
    return [
        topic
        for topic in scenario.topics
        if topic.in_percent == 100 or streams.number(f"topic:{topic.name}") * 100 < topic.in_percent
    ]


def partitions(topics: Sequence[Topic], config: Mapping[str, Value]) -> list[TopicPartition]:
    """The partitions; `config` is that of the cluster."""
    found = []
    for topic in topics:
        if not topic.created:
            continue
        factor = topic.replication_factor or integer(config, FACTOR)
        min_isr = integer(topic.config, MIN_ISR) if MIN_ISR in topic.config else None
        names = [f"{topic.name}-{number}" for number in range(topic.partitions)]
        found += [TopicPartition(name, factor, min_isr, idle=topic.idle) for name in names]
    if not found:
        return [TopicPartition(TOPIC, integer(config, FACTOR))]
    return [replace(found[0], min_isr=None), *found[1:]]  # The cluster has the settings of the first topic.


def cluster_topics(topics: Sequence[Topic], config: Mapping[str, Value]) -> list[ClusterTopic]:
    """The topics that may be created, enlarged or deleted; `config` is that of the cluster."""
    return [
        ClusterTopic(
            topic.name,
            topic.partitions,
            topic.replication_factor or integer(config, FACTOR),
            integer(topic.config, MIN_ISR) if MIN_ISR in topic.config else None,
            idle=topic.idle,
            created=topic.created,
            spared=place == 0,
        )
        for place, topic in enumerate(topics)
    ]


def of_first_topic(scenario: Scenario) -> dict[str, Value]:
    """Settings of the first topic, which replace those of the cluster in a run."""
    if not scenario.topics:
        return {}
    first = scenario.topics[0]
    own = {} if first.replication_factor is None else {FACTOR: first.replication_factor}
    return {**own, **first.config}


def broker_count(scenario: Scenario, config: Mapping[str, Value]) -> int:
    """Number of the scenario's brokers that run."""
    replicas = max([integer(config, FACTOR), *[topic.replication_factor or 1 for topic in scenario.topics]])
    return min(scenario.brokers, replicas + integer(config, "sim.spare.brokers"))
