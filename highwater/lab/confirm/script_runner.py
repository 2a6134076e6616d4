"""Performs a script on real brokers: performs its lines, waits for the expected steps, and reads the final logs."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from faults.kinds.file_damage import FileOld
from highwater.lab.confirm import files, wire
from highwater.lab.confirm.class_archive import archive_of
from highwater.lab.confirm.clients import KafkaAdminClient, KafkaClients
from highwater.lab.confirm.cluster import KafkaCluster
from highwater.lab.confirm.comparison import departs, real_changes
from highwater.lab.confirm.milestones import FAULTS, next_truncation
from highwater.lab.confirm.observer import SEEN, Observer
from highwater.lab.confirm.partitions import TOPIC, partitions_of
from highwater.lab.confirm.processes import last_lines
from highwater.lab.confirm.producer import Send
from highwater.lab.confirm.quorum_history import QuorumLogReads
from highwater.lab.confirm.real_run import RealRun, ReplicaFiles
from highwater.lab.confirm.topics import create_topics
from scenarios.format.scenario import Pattern
from scenarios.single.execution import broker_count
from scenarios.single.script import LISTS, WAIT_LIMIT_US, RulesInForce, StoryMatcher, describe, matches
from sim.config import integer, resolve
from sim.history import steps as kinds
from sim.history.records import VALIDATION_IDS
from sim.hosts.raft_controllers import RESTART_US

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from highwater.lab.confirm.cluster import KafkaNode
    from highwater.lab.confirm.milestones import Milestone
    from highwater.lab.confirm.partitions import KafkaPartition
    from highwater.lab.confirm.processes import JavaProcesses
    from highwater.lab.confirm.release import InstalledRelease
    from scenarios.format.scenario import Scenario
    from sim.history.trace import Shown

_LOOK_S: Final = 0.005
_BOOT_S: Final = 60.0
_LEADERS_TRIED: Final = 20
_RECOVERY_S: Final = 20.0
_CHANGES_S: Final = 12.0
_REACH_S: Final = 30.0
_ACKS_S: Final = 5.0
"""Longest wait of a line for acknowledgements that came before it in the simulation. If brokers decide to send none,
the comparison shows it.
"""
_MARGIN_S: Final = 0.3
_QUIET_S: Final = 1.0
_WHOLE_S: Final = 15.0
_LEADERLESS_S: Final = 12.0
_NOTICES_S: Final = 10.0
_DISK_BYTES: Final = 700_000_000
VALIDATION: Final = "validation"
_OUTCOMES: Final = frozenset(
    kind.name for kind in (kinds.TRUNCATE, kinds.SETTLED, kinds.RECOVERED, kinds.LEAD, kinds.ACK, kinds.END_OFFSET)
)
"""Kinds of steps that are decisions: one with another outcome replaces the expected step."""


def in_order(pattern: Pattern) -> Pattern:
    """A pattern with its brokers in order of id, as in the steps here: in Kafka they are sets."""
    found = {name: getattr(pattern, name) for name in LISTS}
    lists: dict[str, Any] = {name: tuple(sorted(value)) for name, value in found.items() if value is not None}
    return replace(pattern, **lists)


class NotBroughtError(Exception):
    """The expected steps did not occur in the real run; the message names the first missing one."""


class Actor:
    """Performs a scenario.

    `rules` decide which script lines apply, `actions` perform them by the value of ``do``, within `limit_s` seconds.
    `note` is called with progress notes; `pace` as in `KafkaCluster`.
    """

    def __init__(
        self,
        scenario: Scenario,
        rules: RulesInForce,
        release: InstalledRelease,
        processes: JavaProcesses,
        limit_s: float,
        note: Callable[[str], None],
        pace: int,
        actions: Mapping[str, Callable[[Actor, Mapping[str, Any]], None]],
    ) -> None:
        wire.load()
        self._actions = actions
        self.scenario = scenario
        # A new controller first checks for preferred leaders after 5 s, at any pace.
        untimely = {"auto.leader.rebalance.enable": False}
        self.config = resolve(untimely, scenario.config)
        brokers = broker_count(scenario, self.config)
        partitions = partitions_of(scenario.topics, self.config, range(1, brokers + 1))
        own = {
            broker: resolve(untimely, scenario.config, keys)
            for broker, keys in scenario.broker_config.items()
            if broker <= brokers
        }
        self._rules = rules
        self._note = note
        self._deadline_s = time.monotonic() + limit_s
        self._limit_s = limit_s
        self.batches: dict[str, int] = {}
        self.next_id = 0
        self._seen: list[Shown] = []
        self._lines = [line for line in scenario.story if rules.fit(line.rules, line.pattern.broker)]
        seen = [replace(line, pattern=in_order(line.pattern)) for line in self._lines if line.pattern.step in SEEN]
        self.story = StoryMatcher(tuple(seen), rules, self.batches)
        self._timers: list[tuple[float, Callable[[], None]]] = []
        self._milestone: Milestone | None = None
        self._after_changes: list[tuple[int, float, Callable[[], None]]] = []
        self._awaiting_end: dict[int, list[Callable[[], None]]] = {}
        self._refused: dict[int, float] = {}
        self._disk_looked_s = 0.0
        self._looked_s = time.monotonic()
        self._behind = self._otherwise = self._healing = False
        self.acted = RealRun()
        self._other_hws: list[tuple[KafkaPartition, int, int, int, str]] = []
        archive = archive_of(release)
        self.cluster: KafkaCluster = KafkaCluster(
            release,
            processes,
            brokers,
            self.config,
            own,
            lambda *message: self.observer.on_message(*message),
            pace,
            archive,
            partitions,
            scenario.controller_count,
        )
        self.observer: Observer = Observer(self.cluster, self._seen.append)
        self.cluster.watched.update(line.params["file"] for line in scenario.script if line.do == FileOld.name)
        self.unrepaired: list[tuple[int, int, bool]] = []
        """Broker, number of its failed log directory, and whether it comes back empty."""
        self.clients_of = {
            partition.name: KafkaClients(self.cluster, self.observer, self.config, rules.mode, partition)
            for partition in partitions
        }
        """Partition -> its producer and consumer."""
        self.administrator: KafkaAdminClient = KafkaAdminClient(self.cluster)
        self._scripted: Any = None
        self.expiring: int | None = None

    def close(self) -> None:
        """Close clients and links."""
        for clients in self.clients_of.values():
            clients.close()
        if self._scripted is not None:
            self._scripted.close()
        self.cluster.close()

    # Polling.

    def look(self) -> list[Shown]:
        """Poll the cluster once, and perform what is due.

        Raises:
            NotBroughtError: the time limit or the disk quota is reached.
        """
        self.cluster.proxies.looks = (self.cluster.proxies.looks or 0) + 1
        self._keep_sessions()
        group = self.observer.poll()
        self._tick_story(list(group))
        self._ended(group)
        self._tick_timers()
        now_s = time.monotonic()
        if now_s > self._deadline_s:
            raise NotBroughtError(f"it was not over after {self._limit_s:g} s")
        if now_s > self._disk_looked_s + 2:
            self._disk_looked_s = now_s
            if size_of(self.cluster.folder) > _DISK_BYTES:
                raise NotBroughtError(f"it wrote more than {_DISK_BYTES // 1_000_000} MB")
        return group

    def _tick_timers(self) -> None:
        """Perform what is due."""
        for due in [due for due in self._after_changes if self._changes >= due[0]]:
            self._after_changes.remove(due)
            self.later(*due[1:])
        for timer in [timer for timer in self._timers if timer[0] <= self.cluster.time_s]:
            self._timers.remove(timer)
            timer[1]()

    def _keep_sessions(self) -> None:
        """While a JVM starts or stops, hold sessions of ended brokers and frames on slow links; while it starts, hold
        write-back and the script's waits, too. Sessions expire in the order in which their brokers were killed,
        except one that must expire first.

        With ZooKeeper, a broker that returns before its session expires finds it open, however slowly it starts, until
        everything is healed.
        """
        brokers = self.cluster.brokers.values()
        since_s = time.monotonic() - _RECOVERY_S
        starting = [
            node
            for node in brokers
            if node.alive and not node.paused and node.started_s > since_s and not self.observer.is_up(node)
        ]
        now_s = time.monotonic()
        loading = any(not self.observer.has_recovered(node) and self._hears_control(node) for node in starting)
        if loading or self._behind:
            self.cluster.loading_s += now_s - self._looked_s
        self._looked_s = now_s
        stopping = any(node.stopped and node.alive for node in brokers)
        self.cluster.proxies.frozen = bool(starting) or stopping
        gone = [node for node in brokers if not node.alive and node.id in self.observer.in_session]
        gone.sort(key=lambda node: node.ended_s)
        first = self.expiring
        paused = all(node.paused for node in self.cluster.controllers.values())
        if first is None and gone and not (starting and not paused):
            first = gone[0].id
        kept = {node.id for node in gone} - {first}
        if not self.cluster.release.kraft and not self._healing:
            kept.update(node.id for node in brokers if self.observer.is_back_early(node))
        self.cluster.proxies.kept = frozenset(kept)

    def _hears_control(self, node: KafkaNode) -> bool:
        """Whether a node can reach a node of the control plane, which it needs in order to start."""
        proxies = self.cluster.proxies

        def hears(control: KafkaNode) -> bool:
            links = (proxies.link(node.id, control.id), proxies.link(control.id, node.id))
            return control.alive and not control.paused and not any(link.cut or link.lost for link in links)

        return any(map(hears, self.cluster.controllers.values()))

    def _tick_story(self, group: list[Shown]) -> None:
        """Match expected steps; steps of one poll have no order, so any of them may match."""
        while (met := next(filter(self._meets, group), None)) is not None:
            group.remove(met)

    def _meets(self, step: Shown) -> bool:
        """Let the story observe a step; return whether it was expected."""
        before = self._lines_told
        self.story.observe(step)
        return self._lines_told > before

    def _ended(self, group: list[Shown]) -> None:
        for step in group:
            kind, broker = step["step"], step.get("broker", 0)
            if kind in (kinds.HALT.name, kinds.EXIT.name):
                self._note(f"broker {broker} ended by itself: {last_lines(self.cluster.node(broker).output)}")
                self._ended_by_itself(broker)
            elif kind == kinds.CONTROLLER_END.name and not step.get("cause"):
                controller = step["node"]
                told = last_lines(self.cluster.node(controller).output)
                self._note(f"controller {controller} ended by itself: {told}")
                delay_s = self.cluster.paced_ms(RESTART_US // 1000) / 1000
                self.later(delay_s, partial(self.start, controller))
            elif kind == kinds.SHUTDOWN.name and broker in self._awaiting_end:
                for work in self._awaiting_end.pop(broker):
                    work()
            elif kind == kinds.REGISTERED.name and self._scripted is not None:
                self._scripted.tell(broker)
            elif kind == kinds.SESSION_END.name:
                if self._scripted is not None:
                    self._scripted.gone(broker)
                if broker in self._refused:
                    self._try_again(broker, self._refused.pop(broker))

    def _ended_by_itself(self, broker: int) -> None:
        """Restart a broker that exited by itself, after a delay. With ZooKeeper, attempts while its old session is open
        would only be rejected again; they are skipped, as in `sim.hosts.supervisor`.
        """
        refused = self.observer.has_recovered(self.cluster.node(broker)) and broker in self.observer.in_session
        if refused and not self.cluster.release.kraft and not self._healing:
            self._refused[broker] = self.cluster.time_s
        else:
            self._try_again(broker, self.cluster.time_s)

    def _try_again(self, broker: int, ended_s: float) -> None:
        """Start a broker at the next scheduled retry."""
        every_s = self.cluster.paced_ms(integer(self.config, "sim.supervisor.restart.ms")) / 1000
        tries = max(1, math.ceil((self.cluster.time_s - ended_s) / every_s))
        self._timers.append((ended_s + tries * every_s, lambda: self.start(broker)))

    def wait_for(self, fits: Callable[[Shown], bool], seconds: float) -> bool:
        """Poll until a step matches; return False on timeout."""
        return self._wait(lambda group: any(fits(step) for step in group), seconds)

    def _wait(self, over: Callable[[list[Shown]], bool], seconds: float) -> bool:
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            if over(self.look()):
                return True
            time.sleep(_LOOK_S)
        return over(self.look())

    # Helpers of actions.

    def partition_of(self, params: Mapping[str, Any]) -> KafkaPartition:
        """The partition that a line of the script names, or the first."""
        first = self.cluster.partitions[0]
        named = params.get("partition", first.name)
        return next(partition for partition in self.cluster.partitions if partition.name == named)

    @property
    def clients(self) -> KafkaClients:
        """The clients of the first partition."""
        return self.clients_of[self.cluster.partitions[0].name]

    def note(self, step: str, **fields: Any) -> None:
        """Record a step that the script causes."""
        self.observer.add_step(step, **fields)

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        """Call back after a delay in scenario time."""
        self._timers.append((self.cluster.time_s + seconds, work))

    def later_as_simulated(self, work: Callable[[], None]) -> None:
        """Call back at the end of what the current line begins: as long after the partition's last state before it as
        in the simulation. When that state comes depends on the phase of the leader's checks.
        """
        assert self._milestone is not None
        changes, lasted_us = self._milestone.over
        self._after_changes.append((changes, self.cluster.paced_ms(lasted_us // 1000) / 1000, work))

    def when_down(self, broker: int, work: Callable[[], None]) -> None:
        """Call back when a broker has completed its controlled shutdown."""
        self._awaiting_end.setdefault(broker, []).append(work)

    def start(self, broker: int) -> None:
        """Start a broker; one that is shutting down is started once it is down."""
        node = self.cluster.node(broker)
        if node.alive and node.stopped:
            self.when_down(broker, lambda: self.start(broker))
        elif not node.alive:
            if self._scripted is not None:
                self._scripted.end_session(broker)
            self.cluster.proxies.silence(broker, ())
            self.cluster.proxies.stall(broker, stalled=False)
            self.cluster.start(node)
            if broker in self.cluster.brokers:
                self.note(kinds.START.name, broker=broker)
            else:
                self.note(kinds.CONTROLLER_START.name, broker=0, node=broker)

    def fail_directory(self, broker: int, place: int) -> None:
        """Fail a log directory of a broker, and wait until the broker has noticed it.

        Raises:
            TimeoutError: it has not.
        """
        node = self.cluster.node(broker)
        self.cluster.fail_directory(broker, place)

        def has_noticed(_: list[Shown]) -> bool:
            return not node.alive or self.observer.has_stopped_serving(node, place)

        if not self._wait(has_noticed, _NOTICES_S):
            raise TimeoutError(f"broker {broker} did not notice in {_NOTICES_S:g} s that log directory {place} failed")
        self.cluster.lose_in_directory(broker, place)

    def repair_directory(self, broker: int, place: int) -> None:
        """Repair a failed log directory, and restart its broker, which uses it again."""
        failure = next((one for one in self.unrepaired if one[:2] == (broker, place)), None)
        if failure is None:
            return
        self.unrepaired.remove(failure)

        def repair() -> None:
            self.cluster.repair_directory(broker, place, replaced=failure[2])
            self.observer.forget_failure(self.cluster.node(broker), place)
            self.start(broker)

        if self.cluster.node(broker).alive:
            self.when_down(broker, repair)
            self.cluster.stop(broker)
        else:
            repair()

    def repair_files(self, broker: int) -> None:
        """Repair half-written files of a broker, and start it. One that runs without the directory that failed over
        such a file is restarted; one that is about to fail over it is not waited for.
        """
        node = self.cluster.node(broker)
        if node.alive and node.half_written and not self.observer.is_up(node):
            self.cluster.kill([broker])

        def repair() -> None:
            self.cluster.repair_files(broker)
            self.start(broker)

        if node.alive and (node.half_written or node.stopped):
            self.when_down(broker, repair)
            self.cluster.stop(broker)
        else:
            repair()

    def heal(self, links: list[tuple[int, int]]) -> None:
        """Heal links."""
        for source, target in links:
            self.cluster.proxies.heal(source, target)
            self.note(kinds.HEAL.name, source=source, target=target)
        if self._scripted is not None:
            self._scripted.tell_again()

    def decide(self, leader: int, isr: list[int]) -> None:
        """Set leader and ISR as the script decides."""
        self._scripted.decide(leader, tuple(isr))

    def zookeeper(self) -> Any:
        """A ZooKeeper client."""
        from highwater.lab.confirm.scripted_control import client

        return client(self.cluster.control.port)

    def elect_preferred_by_znode(self, partition: KafkaPartition) -> None:
        """Request a preferred election in the way of releases before 2.2."""
        text = f'{{"version":1,"partitions":[{{"topic":"{partition.topic}","partition":{partition.number}}}]}}'
        self.zookeeper().create("/admin/preferred_replica_election", text.encode())

    # The run.

    def act(self, milestones: Sequence[Milestone], end: Milestone) -> RealRun:
        """Perform the whole script, given the simulation's progress before each line and at the end.

        Raises:
            NotBroughtError: the expected steps did not occur.
        """
        begin_s = time.monotonic()
        self._boot()
        booted_s = time.monotonic()
        self._play(milestones, end)
        self._wait(lambda _: not self._missing_changes(end), _CHANGES_S)
        self._wait(lambda _: False, _QUIET_S)
        self._after_script()
        played_s = time.monotonic()
        self._converge()
        end_s = time.monotonic()
        seconds = {"start": booted_s - begin_s, "script": played_s - booted_s, "convergence": end_s - played_s}
        self.acted.seconds = seconds
        return self.acted

    def _boot_quorum(self) -> None:
        """Start the controllers of a quorum; the first one leads, as in the simulation.

        Another one that leads is paused until it has lost its leadership.
        """
        cluster, history = self.cluster, self.cluster.history
        assert isinstance(history, QuorumLogReads)
        for controller in cluster.controllers.values():
            cluster.start(controller)
        first = next(iter(cluster.controllers))
        for _ in range(_LEADERS_TRIED):
            if not self._wait(lambda _: history.leader > 0, _BOOT_S):
                raise NotBroughtError(f"no controller led in {_BOOT_S:g} s")
            leader = history.leader
            if leader == first:
                return
            cluster.pause(leader, paused=True)
            self.wait_for(lambda step: step["step"] == kinds.RAFT_LEADER.name, _BOOT_S)
            cluster.pause(leader, paused=False)
        raise NotBroughtError(f"controller {first} did not become leader in {_LEADERS_TRIED} elections")

    def _boot(self) -> None:
        cluster = self.cluster
        cluster.prepare()
        if cluster.is_quorum:
            self._boot_quorum()
        else:
            cluster.start(cluster.control)
        brokers = sorted(cluster.brokers, key=lambda broker: broker != self.scenario.first)
        if cluster.release.kraft:
            for broker in brokers:
                cluster.start(cluster.brokers[broker])
        else:
            self._boot_zookeeper(brokers)
        up = kinds.UNFENCED.name if cluster.release.kraft else kinds.REGISTERED.name
        missing = set(brokers)

        def all_up(group: list[Shown]) -> bool:
            for step in self._seen:
                if step["step"] == up:
                    missing.discard(step["broker"])
            self._alive(group)
            return not missing

        if not self._wait(all_up, _BOOT_S):
            raise NotBroughtError(f"brokers {sorted(missing)} did not come up in {_BOOT_S:g} s")
        self._make_partitions()
        for partition in cluster.partitions:
            if not partition.idle:
                self.clients_of[partition.name].begin()

    def _boot_zookeeper(self, brokers: list[int]) -> None:
        cluster = self.cluster
        from highwater.lab.confirm.scripted_control import ScriptedControl, wait_for_zookeeper

        wait_for_zookeeper(cluster.control.port, _BOOT_S)
        if self.scenario.control == "scripted":
            self._scripted = ScriptedControl(cluster, TOPIC, cluster.partitions[0].replicas)
            for broker in brokers:
                cluster.start(cluster.brokers[broker])
            return
        first, *others = brokers
        cluster.start(cluster.brokers[first])
        for broker in others:
            # Together with the first one, unless the order decides who becomes controller.
            cluster.brokers[broker].stopped = True
        self._wait(lambda group: any(step["step"] == kinds.CONTROLLER.name for step in group), _BOOT_S)
        for broker in others:
            cluster.start(cluster.brokers[broker])

    def _make_partitions(self) -> None:
        if self._scripted is not None:
            return
        cluster = self.cluster
        cluster.observe_fetches()
        try:
            create_topics(cluster, self.administrator, self.scenario.topics)
        except TimeoutError as error:
            raise NotBroughtError(str(error)) from None

        def are_made(_: list[Shown]) -> bool:
            cluster.observe_fetches()
            return all(cluster.history.states_of(partition) for partition in cluster.partitions)

        if not self._wait(are_made, _BOOT_S):
            raise NotBroughtError("the partition was not made")

    def _alive(self, group: list[Shown]) -> None:
        for step in group:
            if step["step"] in (kinds.HALT.name, kinds.EXIT.name):
                log = self.cluster.node(step["broker"]).output
                raise NotBroughtError(f"broker {step['broker']} ended while it started: {last_lines(log)}")
        for node in self.cluster.controllers.values():
            if not node.alive:
                raise NotBroughtError(f"the control plane ended: {last_lines(node.output)}")

    def _play(self, milestones: Sequence[Milestone], end: Milestone) -> None:
        lines = [line for line in self.scenario.script if self._rules.fit(line.rules, None)]
        begun = False
        held_s = self.cluster.loading_s
        for number, (line, milestone) in enumerate(zip(lines, milestones, strict=True), start=1):
            if line.when is not None and not self._has_happened(line.when):
                pattern = in_order(line.when)
                fits = self._fits(pattern)
                if not self.wait_for(fits, self.cluster.paced_ms(WAIT_LIMIT_US // 1000) / 1000):
                    if self._did_otherwise(milestone):
                        return
                    raise NotBroughtError(f"line {number} of the script waited in vain for {describe(pattern)!r}")
            if line.after_us:
                self._pass(self.cluster.paced_ms(line.after_us // 1000) / 1000)
            self._reach(number, milestone)
            self.acted.held_s.append(self.cluster.loading_s - held_s)
            held_s = self.cluster.loading_s
            # In the simulation what waits for nothing comes before there is a partition, here when its brokers may
            # have said what the next line waits for.
            begun = begun or line.when is not None or line.after_us > 0
            since = list(self._seen)
            if begun:
                self._seen.clear()
            said = " ".join(f"{key}={value}" for key, value in line.params.items())
            self._note(f"{number}/{len(lines)} {line.do} {said}")
            self._milestone = milestone
            self._note_ahead(number, line.do, milestone, end)
            try:
                self._actions[line.do](self, line.params)
            except TimeoutError as error:
                raise NotBroughtError(f"line {number} of the script, do = {line.do!r}: {error}") from None
            self._note_unlike(number, line.do, milestone, since)

    def _fits(self, pattern: Pattern) -> Callable[[Shown], bool]:
        return lambda step: matches(pattern, step, self.batches)

    def _has_happened(self, pattern: Pattern) -> bool:
        self.look()
        return any(map(self._fits(pattern), self._seen))

    def _pass(self, seconds: float) -> None:
        """Wait for a duration in scenario time."""
        end_s = self.cluster.time_s + seconds
        self._wait(lambda _: self.cluster.time_s >= end_s, seconds + _BOOT_S)

    def _reach(self, number: int, milestone: Milestone) -> None:
        """Wait until the brokers have reached the simulation's progress. If they have decided something else instead,
        stop waiting: the comparison will show it.

        Raises:
            NotBroughtError: they are behind, without having decided anything else.
        """
        # Without a poll: frames held until a step was observed and acted on would pass at the second one.
        if self._otherwise or not (self._missing(milestone) or milestone.acked - self._acked):
            return
        self._behind = True
        reached = not self._missing(milestone) or self._wait(lambda _: not self._missing(milestone), _REACH_S)
        if reached and milestone.acked - self._acked:
            self._wait(lambda _: milestone.acked <= self._acked, _ACKS_S)
        self._behind = False
        if not reached and not self._did_otherwise(milestone):
            missing = "; ".join(self._missing(milestone))
            raise NotBroughtError(f"line {number} of the script waited {_REACH_S:g} s in vain: {missing}")

    def _missing(self, milestone: Milestone) -> list[str]:
        """What brokers lack of the simulation's progress."""
        found = self._missing_changes(milestone)
        lines = self._lines_told
        if lines < milestone.told:
            found.append(f"story: {self.story.met[lines][0]!r} has not come")
        for partition in self.cluster.partitions:
            for broker, least in milestone.of(partition).disks.items():
                disk = self.cluster.disk(broker, partition)
                of_broker = f"broker {broker}{self._of(partition)}"
                if disk.leo < least.leo and not _was_deleted(self._steps_of(partition), broker):
                    found.append(f"the log of {of_broker} ends at {disk.leo}, not {least.leo}")
                if self.cluster.release.truncates_to_hw and disk.hw < least.hw:
                    found.append(f"the HW file of {of_broker} says {disk.hw}, not {least.hw}")
        return found

    def _missing_changes(self, milestone: Milestone) -> list[str]:
        """Which partitions lack states of the simulation."""
        found = []
        for partition in self.cluster.partitions:
            changes, wanted = self._changes_of(partition), milestone.of(partition).changes
            if changes < len(wanted):
                following = f"states of {len(wanted)}; next: {wanted[changes].to_text()}"
                found.append(f"the partition{self._of(partition)} has gone through {changes} {following}")
        return found

    def _of(self, partition: KafkaPartition) -> str:
        """Which partition something is said of, if there are several."""
        return f" ({partition.name})" if len(self.cluster.partitions) > 1 else ""

    def _steps_of(self, partition: KafkaPartition) -> list[Shown]:
        """The steps of a partition, and those that concern all: ends of processes, with what they lose."""
        name = partition.tag.get("partition")
        lost = [kind.name for kind in kinds.LOSSES]
        return [
            step for step in self.observer.steps if step.get("partition") == name or (name and step["step"] in lost)
        ]

    @property
    def _acked(self) -> set[int]:
        """First records of the acknowledged batches."""
        sends = (send for clients in self.clients_of.values() for send in clients.sends)
        return {send.first_id for send in sends if send.offset is not None}

    @property
    def _changes(self) -> int:
        """Number of states of the first partition since its first leader."""
        return self._changes_of(self.cluster.partitions[0])

    def _changes_of(self, partition: KafkaPartition) -> int:
        return len(real_changes(self.cluster.history.states_of(partition), elr=True))

    @property
    def _lines_told(self) -> int:
        """Number of expected steps that have occurred."""
        return sum(at_us is not None for _, at_us in self.story.met)

    def _did_otherwise(self, milestone: Milestone) -> bool:
        """Whether brokers decided something other than the simulation. From then on nothing is waited for, and missing
        steps are not an error.
        """
        steps, lines = self.observer.steps, self._lines_told
        since_us = self.story.met[lines - 1][1] if lines else 0
        following = self.story.patterns[lines] if lines < len(self.story.patterns) else None
        late = [step for step in steps if step["t"] > (since_us or 0)]
        self._otherwise = (
            self._otherwise
            or any(self._has_departed(partition, milestone.of(partition)) for partition in self.cluster.partitions)
            or (following is not None and any(self._is_other(following, step) for step in late))
        )
        return self._otherwise

    def _has_departed(self, partition: KafkaPartition, milestone: Milestone) -> bool:
        """Whether a partition came into another state, or a log of it was truncated further."""
        return departs(milestone.changes, self.cluster.history.states_of(partition)) or any(
            self.cluster.disk(broker, partition).leo < wanted.leo and _was_truncated(self._steps_of(partition), broker)
            for broker, wanted in milestone.disks.items()
        )

    def _is_other(self, pattern: Pattern, step: Shown) -> bool:
        """Whether a step is an expected decision with another outcome."""
        same = Pattern(pattern.step, broker=pattern.broker, batch=pattern.batch, partition=pattern.partition)
        return step["step"] in _OUTCOMES and matches(same, step, self.batches) and not self._fits(pattern)(step)

    def _note_ahead(self, number: int, do: str, milestone: Milestone, end: Milestone) -> None:
        """Note if a fault finds the partition in a state into which it comes later in the simulation: a session may end
        while a process starts, which takes longer here.
        """
        for partition in self.cluster.partitions:
            place, ever = len(milestone.of(partition).changes), end.of(partition).changes
            elr = any(change.elr is not None for change in ever)
            found = real_changes(self.cluster.history.states_of(partition), elr=elr)[place : place + 1]
            if do in FAULTS and not self._otherwise and found and found == list(ever[place : place + 1]):
                where = f"line {number} of the script found the partition{self._of(partition)}"
                self.acted.unlike.append(f"{where} in a state that comes later: {found[0].to_text()}")

    def _note_unlike(self, number: int, do: str, milestone: Milestone, since: Sequence[Shown]) -> None:
        """Note where a line found disks in another state than the simulated ones because of write times, which may
        explain later differences; `since` are the steps since the previous line.
        """
        if self._otherwise or do not in FAULTS:
            return
        unlike = self.acted.unlike
        early_acks = self._acked - milestone.acked
        if early_acks:
            names = ", ".join(name for name, first in self.batches.items() if first in early_acks)
            unlike.append(f"line {number} of the script found {names} acknowledged already")
        for partition in self.cluster.partitions:
            self._note_unlike_disks(number, partition, milestone.of(partition), since)

    def _note_unlike_disks(
        self, number: int, partition: KafkaPartition, milestone: Milestone, since: Sequence[Shown]
    ) -> None:
        """`_note_unlike`, for what disks hold of a partition."""
        name, unlike = partition.tag.get("partition"), self.acted.unlike
        appended = [step for step in since if step["step"] == kinds.APPEND.name and step.get("partition") == name]
        found = f"line {number} of the script found"
        for broker, wanted in milestone.left.items():
            disk = self.cluster.disk(broker, partition)
            early = any(step["broker"] == broker and step["last"] >= wanted.leo for step in appended)
            if disk.leo > wanted.leo and early:
                log = f"broker {broker}'s log{self._of(partition)}"
                unlike.append(f"{found} {log} up to {disk.leo}, not {wanted.leo}")
            if broker in milestone.ended and disk.hw != wanted.hw:
                file = f"broker {broker}'s file{self._of(partition)}"
                said = f"{found} HW {disk.hw} in {file}, not {wanted.hw}"
                if self.cluster.release.truncates_to_hw:
                    unlike.append(said)
                elif broker in milestone.to_hw:
                    self._other_hws.append((partition, broker, disk.hw, self.observer.now_us, said))

    def _gone_to_other_hws(self) -> list[str]:
        """Notes about HW files to which brokers then truncated: brokers with leader epochs do so only if the leader has
        no answer.
        """
        return [
            said
            for partition, broker, hw, at_us, said in self._other_hws
            if next_truncation(self._steps_of(partition), broker, at_us) == hw
        ]

    def _after_script(self) -> None:
        self.acted.steps = self.observer.steps
        self.acted.unlike += self._gone_to_other_hws()
        for partition, acted in self._acted():
            clients = self.clients_of[partition.name]
            acted.states = list(self.cluster.history.states_of(partition))
            acted.after_script = self._disks(partition)
            acted.shown = list(clients.shown)
            acted.end_offsets = list(clients.end_offsets)

    def _acted(self) -> Iterator[tuple[KafkaPartition, RealRun]]:
        """Each partition, with what happened to it."""
        for partition in self.cluster.partitions:
            further = self.acted.further
            yield partition, further.setdefault(partition.name, RealRun()) if partition.place else self.acted

    def _disks(self, partition: KafkaPartition, *, end: bool = False) -> dict[int, ReplicaFiles]:
        observer = self.observer.partitions[partition.place]
        found = {}
        for number, node in self.cluster.brokers.items():
            folder = node.folder_of(partition)
            if number in partition.replicas or folder.is_dir():
                found[number] = ReplicaFiles(
                    files.read_log(folder),
                    files.epochs_in_checkpoint(folder / "leader-epoch-checkpoint"),
                    self.cluster.hw_file(number, partition),
                    node.alive if end else observer.is_settled(node),
                    observer.log_starts.get(number, 0),
                )
        return found

    def _converge(self) -> None:
        """Heal everything, and wait until all replicas are in sync, as in the simulation."""
        cluster = self.cluster
        self._healing = True
        self._heal_all()
        self._wait(lambda _: self._is_whole(), _WHOLE_S)
        self._wait(lambda _: all(map(cluster.leader_of, cluster.partitions)), _LEADERLESS_S)
        self._validate([partition for partition in cluster.partitions if cluster.leader_of(partition)])
        if self.config["enable.idempotence"]:  # What failed may have left a gap.
            expires_s = self.cluster.paced_ms(integer(self.config, "delivery.timeout.ms")) / 1000
            producers = [clients.producer for clients in self.clients_of.values()]
            self._wait(lambda _: all(producer.is_idle for producer in producers), expires_s + _MARGIN_S)
        self._at_the_end()

    def _heal_all(self) -> None:
        """Heal links and log directories, and start all processes."""
        cluster = self.cluster
        if self._scripted is not None:
            self._scripted.release()
            self._scripted = None
        self._timers.clear()
        self._after_changes.clear()
        self._refused.clear()
        for node in (*cluster.controllers.values(), *cluster.brokers.values()):
            cluster.pause(node.id, paused=False)
        for source, target in cluster.proxies.links():
            cluster.proxies.heal(source, target)
        for broker in cluster.brokers:
            cluster.proxies.silence(broker, ())
            cluster.proxies.lag(broker, 0.0)
            cluster.proxies.stall(broker, stalled=False)
        for clients in self.clients_of.values():
            clients.producer.release_all()
        for node in cluster.controllers.values():
            cluster.start(node)
        for broker, place, _ in list(self.unrepaired):
            self.repair_directory(broker, place)
        for node in cluster.brokers.values():
            if node.half_written:
                self.repair_files(node.id)
            self.start(node.id)
        for clients in self.clients_of.values():
            clients.resume()

    def _at_the_end(self) -> None:
        """Keep what each partition has come to."""
        for partition, acted in self._acted():
            clients = self.clients_of[partition.name]
            acted.final = self._disks(partition, end=True)
            acted.leader = self.cluster.leader_of(partition)
            acted.sends = [send for send in clients.sends if send.first_id < VALIDATION_IDS]
            acted.shown_until_end = list(clients.shown)
            acted.batches = {send.name: send.first_id for send in acted.sends}
            if partition.place:
                acted.steps = [without_partition(step) for step in self._steps_of(partition)]
        times = iter(self.story.met)
        self.acted.met = [
            (True, next(times)[1]) if line.pattern.step in SEEN else (False, None) for line in self._lines
        ]

    def _is_whole(self) -> bool:
        up = all(self.observer.is_up(node) for node in self.cluster.brokers.values())
        return up and all(map(self._is_in_sync, self.cluster.partitions))

    def _is_in_sync(self, partition: KafkaPartition) -> bool:
        """Whether a partition has a leader, and all replicas that can be in the ISR are."""
        states = self.cluster.history.states_of(partition)
        if not (states and states[-1].leader > 0):
            return False
        return set(states[-1].isr) == set(states[-1].replicas) - self.cluster.offline(partition.log)

    def _validate(self, partitions: Sequence[KafkaPartition]) -> None:
        """Write a record to each of these partitions, and wait until all replicas in sync have it."""
        if not partitions:
            return
        sends = {partition: Send(VALIDATION, VALIDATION_IDS, 1, -1) for partition in partitions}
        for partition, send in sends.items():
            self.clients_of[partition.name].produce(send)
        self._wait(lambda _: all(send.offset is not None for send in sends.values()), _LEADERLESS_S)
        self._wait(lambda _: self._is_whole(), _WHOLE_S)

        def in_sync() -> Iterator[tuple[KafkaPartition, int]]:
            for partition in partitions:
                for broker in self.cluster.history.states_of(partition)[-1].isr:
                    yield partition, broker

        def everywhere(_: list[Shown]) -> bool:
            observers = self.observer.partitions
            logs = [observers[partition.place].logs[broker] for partition, broker in in_sync()]
            return all(log and log[-1].first_id == VALIDATION_IDS for log in logs)

        self._wait(everywhere, _LEADERLESS_S)

        def committed(_: list[Shown]) -> bool:
            disks = [self.cluster.disk(broker, partition) for partition, broker in in_sync()]
            return all(disk.hw == disk.leo for disk in disks)

        # The HW files define up to which offset logs must be equal.
        self._wait(committed, self.cluster.hw_interval_ms / 1000 + _MARGIN_S)


def without_partition(step: Shown) -> Shown:
    """A step as the trace of its own partition has it."""
    return {name: value for name, value in step.items() if name != "partition"}


def _was_deleted(steps: Sequence[Shown], broker: int) -> bool:
    """Whether a broker's log was deleted and is still empty, as when its replica is removed."""
    names = (step["step"] for step in reversed(steps) if step.get("broker") == broker)
    return next(
        (kind == kinds.DELETED.name for kind in names if kind in (kinds.APPEND.name, kinds.DELETED.name)), False
    )


def _was_truncated(steps: Sequence[Shown], broker: int) -> bool:
    """Whether the last change to a broker's log was a truncation that removed batches."""
    end: int | None = None
    lost = (kinds.DELETED.name, *(kind.name for kind in kinds.LOSSES))
    for step in reversed(steps):
        if step.get("broker") != broker or step["step"] not in (kinds.APPEND.name, kinds.TRUNCATE.name, *lost):
            continue
        if end is None and step["step"] == kinds.TRUNCATE.name:
            end = step["offset"]
        elif end is None or step["step"] in lost:
            return False
        elif step["step"] == kinds.APPEND.name and int(step["last"]) >= end:
            return True
    return False


def size_of(folder: Path) -> int:
    """Bytes on disk, ignoring files that are deleted meanwhile, such as logs of removed replicas."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                size += (Path(place) / name).stat().st_blocks * 512
    return size
