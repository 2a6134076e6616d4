"""A cluster: machines, broker processes, control plane, clients and links, with the faults of processes.

Methods come in pairs: `kill`, `shut_down` and `start`; `pause` and `resume`; `zombie` and `unzombie`. Faults of disks
are in `sim.hosts.machines`, faults of links in `sim.hosts.links`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from sim.config import DIRECTORIES_MAX, Value, integer
from sim.environment.network import Network, Node
from sim.environment.storage import Storage
from sim.environment.topology import Topology
from sim.history import steps
from sim.history.recorder import Recorder
from sim.hosts.administrator import Administrator, note_settings
from sim.hosts.broker import NOT_REGISTERED, REFUSED, SHUTDOWN, Broker, Startup
from sim.hosts.broker_node import PHASE_BITS
from sim.hosts.client import ClientSetup, OffsetsTopic
from sim.hosts.control_plane import CONTROL, FIRST_CONTROLLER, ControlPlaneSetup, PartitionSetup
from sim.hosts.control_planes import control_plane, new_broker
from sim.hosts.damaged_files import DamagedFiles
from sim.hosts.full_disks import FullDisks
from sim.hosts.links import Links
from sim.hosts.machines import SILENT, Loss, Machines
from sim.hosts.raft_quorum import RaftQuorum
from sim.hosts.settings import broker_settings, client_settings, heeds_unclean_election
from sim.hosts.shared_producer import SharedProducer
from sim.hosts.supervisor import Supervisor
from sim.hosts.topics import ClusterPartition, ClusterTopic, TopicPartition, Topics
from sim.kernel.scheduler import ALWAYS, Kernel
from sim.kernel.streams import Streams
from sim.protocol import probes
from sim.protocol.decisions import Decisions, give_back, table_of
from sim.protocol.group.group_messages import OFFSETS, CommittedOffsets
from sim.protocol.kraft.metadata import MIN_ISR
from sim.protocol.messages import topic_of
from sim.protocol.replica.partition import Partition
from sim.protocol.rules import Rules

TOPIC: Final = "highwater-0"
BOOT_GAP_US: Final = 5_000
"""Gap between broker starts, so that brokers register in order of id."""
CALL_SIZE: Final = 4
"""Weight of a pending call in `Cluster.size`: it takes more memory than other objects, and slows the queue."""
CLOSING_US: Final = 300
"""Delay until the control plane learns that a stopping broker closed its session."""


class Cluster:
    """Partitions on some brokers, whose ids begin at 1. What names no partition is about the first one that exists.

    Args:
        brokers: number of brokers.
        config: full configuration of the cluster.
        broker_config: full configuration of the brokers that differ.
        rules: rules of each broker.
        upgraded: rules of brokers from their second start on, if they differ.
        client_rules: rules of producers and consumers.
        scripted: whether a script decides elections and ISR.
        first: the broker that starts first and so becomes controller.
        topology: the places of brokers.
        partitions: its partitions; by default one.
        topics: the topics that may be created, enlarged or deleted.
        places: topic -> number of the log directory in which its replicas are created; others are created in the
            directory with the fewest logs.
        controllers: number of controllers that are processes, see `sim.hosts.raft_quorum`; 0: the control plane is one
            node.
        dynamic_voters: whether the voters among these can change (kraft.version 1).
        kernel: time.
        streams: chance.
        recorder: records its steps; by default one without checkers.

    Attributes:
        running: the processes that run, by broker.
        control: the control plane, where decisions are persisted.
        quorum: the same, if its controllers are processes.
        controllers: ids of these.
        partitions: all partitions with their clients, also those that were deleted.
        topics: creates and deletes topics.
        is_healed: whether all faults are undone, so that each broker which shuts down by itself is started again.
        producer: that of the partition that was the first when the cluster was created.
        consumer: likewise.
    """

    __deletable__ = ("_supervisor", "damaged_files", "full_disks", "machines")

    def __init__(
        self,
        *,
        brokers: int,
        config: Mapping[str, Value],
        broker_config: Mapping[int, Mapping[str, Value]],
        rules: Mapping[int, Rules],
        upgraded: Mapping[int, Rules] | None = None,
        client_rules: Rules,
        scripted: bool,
        first: int = 1,
        topology: Topology | None = None,
        partitions: Sequence[TopicPartition] = (),
        topics: Sequence[ClusterTopic] = (),
        places: Mapping[str, int] | None = None,
        producers: int = 1,
        controllers: int = 0,
        dynamic_voters: bool = False,
        kernel: Kernel,
        streams: Streams,
        recorder: Recorder | None = None,
    ) -> None:
        self.kernel = kernel
        factor = integer(config, "default.replication.factor")
        partitions = partitions or (TopicPartition(TOPIC, factor),)
        first_name, *other_names = [partition.name for partition in partitions]
        self.recorder = recorder or Recorder(kernel, integer(config, "sim.record.budget"), name=first_name)
        for name in other_names:
            if name not in self.recorder.further:
                self.recorder.add_partition(name)
        self.network = Network(
            kernel,
            streams,
            integer(config, "sim.network.loss.permille"),
            fixed=config["sim.network.latency"] == "fixed",
            elides=bool(config["sim.elision"]),
        )
        common = broker_settings(config)
        self.settings = {
            broker: broker_settings(broker_config[broker]) if broker in broker_config else common
            for broker in range(1, brokers + 1)
        }
        decide = self._decisions(client_rules)
        if common.log_directories > 1 or broker_config:
            self._keep_one_directory(rules, decide)
        self.topology = topology or Topology()
        near = self.topology.numbered_rack(integer(config, "sim.client.rack"))
        if near:
            for settings in self.settings.values():
                settings.near_consumers = near
        self.rules = dict(rules)
        self._upgraded = dict(upgraded or {})
        self.running: dict[int, Broker] = {}
        self._ended: list[Broker] = []
        self._places = {} if places is None else dict(places)
        place = self._places.get(topic_of(first_name), 1)
        self.machines = Machines(self, self.settings, first_name, streams, kernel, self.recorder, place)
        self.links = Links(self.network, self.recorder)
        self._incarnations = dict.fromkeys(self.settings, 0)
        phases, ranks = streams("heartbeats"), streams("expirations")
        self._phases = {broker: phases.getrandbits(PHASE_BITS) for broker in self.settings}
        expiry_ranks = {broker: ranks.getrandbits(PHASE_BITS) for broker in self.settings}
        self._stopping: dict[int, bool] = {}
        self.is_healed = False
        self._pauses: list[tuple[int, object]] = []
        self._supervisor = Supervisor(kernel, self.settings, self._incarnations, self.start)
        self.damaged_files = DamagedFiles(self.machines, self.running, self._decisions_of, self.shut_down, self.start)
        self.full_disks = FullDisks(self.machines, self.running, kernel, self.shut_down, self.start)
        in_order = self.topology.placed(self.settings, len(self.settings))
        note_settings(self.recorder, config)
        setups = []
        for place, partition in enumerate(partitions):
            start = place % len(in_order)
            replicas = (in_order[start:] + in_order[:start])[: partition.replication_factor]
            recorder = self.recorder.of(partition.name)
            setups.append(PartitionSetup(partition.name, replicas, partition.min_isr, recorder))
            smallest = integer(config, MIN_ISR) if partition.min_isr is None else partition.min_isr
            recorder.record(steps.MinIsr(min(smallest, partition.replication_factor)))
        self._min_isrs = {
            partition.name: partition.min_isr for partition in partitions if partition.min_isr is not None
        }
        decide.has_quorum.note()
        setup = ControlPlaneSetup(
            setups,
            len(self.settings),
            decide,
            config,
            kernel,
            self.recorder,
            in_order,
            self._min_isrs,
            expiry_ranks,
            streams("quorum"),
            controllers,
            dynamic_voters,
        )
        self.control = control_plane(setup, scripted=scripted)
        self.quorum = self.control if isinstance(self.control, RaftQuorum) else None
        self.controllers = () if self.quorum is None else tuple(self.quorum.controllers.machines)
        heeds_unclean = heeds_unclean_election(config, client_rules)
        self.administrator = Administrator(self.control, self.recorder, config, heeds_unclean=heeds_unclean)
        self.control.ended = self._session_ended
        self._first = first
        bootstrap, of_clients = tuple(self.settings), client_settings(config)
        self._offsets: CommittedOffsets | None = None
        offsets: OffsetsTopic | None = None
        if any(partition.name == OFFSETS for partition in partitions):
            self._offsets = CommittedOffsets()
            offsets = OffsetsTopic(self._offsets, self.recorder.of(OFFSETS))
        shared: list[SharedProducer] = []
        if config["sim.producer.shared"]:
            ids = count(1)
            shared = [SharedProducer(ids, decide) for _ in range(producers)]
        self.partitions: list[ClusterPartition] = []
        for place, partition in enumerate(partitions):
            name, recorder = partition.name, self.recorder.of(partition.name)
            clients = ClientSetup(
                name, bootstrap, of_clients, kernel, self.network, recorder, decide, producers, offsets
            )
            of_all = () if name == OFFSETS else shared
            self.partitions.append(ClusterPartition(name, place, clients, idle=partition.idle, shared=of_all))
        self.producer, self.consumer = self.partitions[0].producer, self.partitions[0].consumer
        directories = self.machines.directories
        self.topics = Topics(topics, self.partitions, self.control, self._min_isrs, self.links, directories)

    def _keep_one_directory(self, rules: Mapping[int, Rules], decide: Decisions) -> None:
        """Give one log directory to brokers that know none, or whose controller knows none (KRaft before 3.7)."""
        for broker, settings in self.settings.items():
            own = table_of(rules[broker])
            give_back([own])  # It only answers here.
            knows = decide.has_quorum.answer and decide.knows_directories.answer and own.knows_directories.answer
            if not knows:
                self.settings[broker] = replace(settings, log_directories=1)

    def _decisions(self, rules: Rules) -> Decisions:
        """The `Decisions` of a set of rules, shared by all brokers with these rules."""
        tables = self.recorder.coverage.decisions
        for table in tables:
            if table.rules is rules or table.rules == rules:
                return table
        tables.append(table_of(rules))
        return tables[-1]

    def _decisions_of(self, broker: int) -> Decisions:
        """The rules of a broker's next process."""
        return self._decisions(self._upgraded.get(broker, self.rules[broker]))

    def boot(self) -> None:
        """Start everything, brokers one after the other."""
        self.network.join(self.control)
        if self.quorum is not None:
            self.links.controllers = self.controllers
            self.quorum.boot(self.network)
        for partition in self.partitions:
            if not partition.idle:
                partition.join()
        self._lengthen_links()
        order = sorted(self.settings, key=lambda broker: (broker != self._first, broker))
        for position, broker in enumerate(order, start=1):
            self.kernel.call_at(position * BOOT_GAP_US, ALWAYS, self.start, broker)

    def _lengthen_links(self) -> None:
        """Add the latency within and between racks."""
        nodes = [*self.settings, *self.controllers]
        for source in nodes:
            for target in nodes:
                added_us = self.topology.added_us(source, target) if source != target else 0
                if added_us:
                    self.network.add_latency(source, target, added_us)

    def dispose(self) -> None:
        """Break reference cycles after a run was evaluated, so that the garbage collector is not needed."""
        for process in self.running.values():
            process.end()
            process.dispose()
        self.running.clear()
        self.dispose_ended()
        self.control.ended = self.control.changed = None
        self.topics.dispose()
        for partition in self.partitions:
            partition.dispose()
        self.links.struck = None
        self.control.dispose()
        tables = self.recorder.coverage.decisions
        give_back(tables)
        tables.clear()
        del self._supervisor, self.machines, self.damaged_files, self.full_disks
        self.recorder.dispose()
        self.network.dispose()
        self.kernel.dispose()

    def dispose_ended(self) -> None:
        """Release references held by ended processes; called between events, since a process may end itself."""
        for process in self._ended:
            process.dispose()
        self._ended.clear()
        if self.quorum is not None:
            self.quorum.controllers.dispose_ended()

    @property
    def size(self) -> int:
        """Number of objects that may grow during the run: pending and held calls (each counts `CALL_SIZE`), message
        subjects, the producer's batches, and the kept history.
        """
        calls = self.kernel.pending + self.network.held
        batches = sum([partition.size for partition in self.partitions])
        return CALL_SIZE * calls + self.network.subjects + batches + self.recorder.size

    @property
    def name(self) -> str:
        """The first partition that exists, which what names none is about."""
        return self.control.first

    @property
    def replicas(self) -> tuple[int, ...]:
        """The assignment."""
        return self.control.state.replicas

    @property
    def producers(self) -> list[int]:
        """The nodes of all partitions' producers."""
        return [node for partition in self.partitions for node in partition.producer_nodes]

    # Processes.

    def start(self, broker: int) -> bool:
        """Start a broker's process; False if it runs, or all its log directories have failed. One that is shutting down
        is restarted once it is down.
        """
        if broker >= FIRST_CONTROLLER:
            return self.quorum is not None and self.quorum.controllers.start(broker, formats=self.is_healed)
        if broker in self.running:
            if broker in self._stopping:
                self._stopping[broker] = True
            return False
        if broker in self.machines.leaving:
            self.machines.remove_directory(broker)
        if broker in self.machines.growing:
            self.machines.growing.remove(broker)
            self.machines.directories[broker].add_directory()
        directories = self.machines.directories[broker]
        live = directories.online
        if not live:  # LogManager.createAndValidateLogDirs.
            return False
        if self._incarnations[broker] and broker in self._upgraded:
            self.rules[broker] = self._upgraded.pop(broker)
        self._incarnations[broker] += 1
        startup = Startup(
            broker,
            self._incarnations[broker],
            directories,
            live,
            self._decisions(self.rules[broker]),
            self.settings[broker],
            self.kernel,
            self.network,
            self.recorder,
            self.full_disks.process_loaded,
            self._exited,
            self._min_isrs,
            self._places,
            self._phases[broker],
            self._offsets,
        )
        process = self.running[broker] = new_broker(self.control, startup)
        self.recorder.record_for_all(steps.Start(broker, process.incarnation))
        if len(live) < len(directories.all):
            self.machines.started_without(process)
        process.start()
        return True

    def kill(self, broker: int) -> bool:
        """End a process at once; its page cache survives. False if none runs."""
        if broker >= FIRST_CONTROLLER:
            return self.quorum is not None and self.quorum.controllers.kill(broker)
        return self.end(broker, steps.KILL)

    def pause(self, node: int, by: object = None) -> bool:
        """Pause the process of a broker or controller (0: the control plane) until `resume` with the same `by`; False
        if none runs. Pauses nest.
        """
        if self.quorum is not None and (node == CONTROL or node >= FIRST_CONTROLLER):
            if self.quorum.controllers.pause(node):
                self._pauses.append((node, by))
                return True
            return False
        process = self._process(node)
        if process is None:
            return False
        self._pauses.append((node, by))
        self.network.pause(process)
        self.recorder.record_for_all(steps.Pause(steps.PAUSE, node))
        return True

    def resume(self, node: int, by: object = None) -> bool:
        """Undo the newest pause, or the one with this `by`; False if there is none."""
        found = next((pause for pause in reversed(self._pauses) if pause[0] == node and by in (None, pause[1])), None)
        if found is None:
            return False
        self._pauses.remove(found)
        if self.quorum is not None and (node == CONTROL or node >= FIRST_CONTROLLER):
            return self.quorum.controllers.resume(node)
        process = self._process(node)
        if process is None or not process.frozen:
            return False
        self.recorder.record_for_all(steps.Pause(steps.RESUME, node))
        if node == CONTROL:
            self.control.renew_sessions()
        self.network.resume(process)
        return True

    def _process(self, node: int) -> Node | None:
        return self.running.get(node) if node else self.network.nodes.get(node)

    def shut_down(self, broker: int) -> bool:
        """Controlled shutdown: move leadership, then close log and session. False if no process runs."""
        process = self.running.get(broker)
        if process is None:
            return False
        self._stopping.setdefault(broker, False)
        process.perform(_begin_shutdown, process)
        return True

    def _exited(self, broker: int, reason: str) -> None:
        if reason == SHUTDOWN:
            by_itself = broker not in self._stopping
            self.end(broker, steps.SHUTDOWN)
            if by_itself and self.is_healed:
                self._supervisor.exited(broker, in_vain=False)
            return
        refused = reason == REFUSED
        self.end(broker, steps.EXIT if refused or reason == NOT_REGISTERED else steps.HALT)
        self._supervisor.exited(broker, in_vain=refused and self.control.has_session(broker))

    def _session_ended(self, broker: int) -> None:
        process = self.running.get(broker)
        alive = process is not None and process.broker_epoch >= 0
        self.recorder.coverage.reached(probes.SESSION_EXPIRES_ALIVE if alive else probes.SESSION_EXPIRES_DEAD)
        self._supervisor.session_ended(broker)

    def end(self, broker: int, kind: steps.StepKind, loses: Loss = dict) -> bool:
        """End a process at once; False if none runs. `loses` makes its machine lose batches."""
        process = self.running.pop(broker, None)
        if process is None:
            return False
        self._ended.append(process)
        if kind is steps.SHUTDOWN and process.has_loaded:
            self._close_session(broker, process)
        uses_all = len(process.live_directories) == len(process.directories.all)
        offline = () if uses_all else self.machines.offline(process)
        lost = self.machines.ended(process, kind, loses)
        if self.network.nodes.get(broker) is process:
            self.network.leave(process, silently=kind in SILENT)
        else:
            process.end()
        unclean = not self.machines.marked_clean(process)
        self.machines.record_end(broker, kind, lost, unclean=unclean, offline=offline)
        self.damaged_files.process_ended(broker)
        self.full_disks.process_ended(process)
        if self._stopping.pop(broker, False):
            self.kernel.call_at(self.kernel.now_us, ALWAYS, self.start, broker)
        return True

    def _close_session(self, broker: int, process: Broker) -> None:
        """Close the session; over a cut link it expires instead."""
        if not self.network.is_cut(broker, CONTROL):
            self.kernel.call_at(
                self.kernel.now_us + CLOSING_US, self.control.life, self._session_closed, (broker, process.broker_epoch)
            )

    def _session_closed(self, entry: tuple[int, int]) -> None:
        self.control.close_session(*entry)

    # The control plane.

    def settings_in_force(self, name: str) -> dict[int, Mapping[str, Value]]:
        """Broker -> the dynamic settings that it uses for a partition, if the last change has reached it; 0: those of
        the active controller of a quorum. For observers.
        """
        control = self.control
        found: dict[int, Mapping[str, Value]] = {CONTROL: control.settings_in_force(name)}
        for broker, process in self.running.items():
            if control.settings_arrived(broker, process.broker_epoch, process.received_changes):
                found[broker] = process.settings_in_force(name)
        return found

    @property
    def controller(self) -> int:
        """The broker that is the controller, 0 if it is not a broker."""
        return max(self.control.controller, 0)

    def zombie(self, broker: int) -> bool:
        """Expire a session without its broker noticing or registering again until `unzombie`."""
        process = self.running.get(broker)
        if process is None or process.zombie:
            return False
        process.end_elision()
        self.control.expire_silently(broker)
        process.zombie = True
        return True

    def unzombie(self, broker: int) -> None:
        """End `zombie`: the broker notices with its next ping or heartbeat."""
        process = self.running.get(broker)
        if process is not None:
            process.zombie = False

    def repair_directory(self, broker: int, *, replaced: bool, by: object = None) -> bool:
        """Repair a failed log directory (`Machines.repair_directory`), and restart the broker, which then uses it.
        False if there is none.
        """
        if not self.machines.repair_directory(broker, replaced=replaced, by=by):
            return False
        self.shut_down(broker)
        self.start(broker)
        return True

    def move_replica(self, broker: int, name: str, place: int) -> bool:
        """Move a broker's replica of a partition to the log directory of this number, with 0 to the one after its own.
        False without a process that has a replica to move.
        """
        process, directories = self.running.get(broker), self.machines.directories[broker].all
        if process is None or len(directories) < 2:
            return False
        number = place or self.machines.place_of(broker, name, 0) + 1
        return process.move_replica(name, directories[(number - 1) % len(directories)])

    def throttle_moves(self, broker: int, *, throttled: bool) -> bool:
        """Begin or end a quota for the copies between a broker's log directories: see `LogDirectories.throttled`.
        False if nothing changes, or the broker has one directory.
        """
        directories, process = self.machines.directories[broker], self.running.get(broker)
        if not directories.are_several or directories.throttled == throttled:
            return False
        directories.throttled = throttled
        if process is not None and process.has_loaded:
            process.throttle_moves(throttled=throttled)
        return True

    def remove_directory(self, broker: int, place: int) -> bool:
        """Shut a broker down in a controlled way; its next process does not have the log directory of this number,
        unless no other works. False if the broker is down and nothing changes.
        """
        machines = self.machines
        directory = machines.directories[broker].all[place - 1]
        goes = broker not in machines.leaving and any(
            one is not directory for one in machines.directories[broker].online
        )
        if goes:
            machines.leaving[broker] = directory
        return self.shut_down(broker) or goes

    def add_directory(self, broker: int) -> bool:
        """Shut a broker down in a controlled way; its next process has one more log directory, which is empty.

        Only brokers that have several: those with one do not report directories here. False if the broker is down and
        nothing changes.
        """
        machines = self.machines
        grows = broker not in machines.growing and 1 < len(machines.directories[broker].all) < DIRECTORIES_MAX
        if grows:
            machines.growing.add(broker)
        return self.shut_down(broker) or grows

    def cordon_directory(self, broker: int, place: int, by: object = None) -> bool:
        """Cordon a log directory of a broker until `uncordon_directory` with the same `by`. False if it is cordoned,
        the broker, which has to take the request, does not run, or its release knows no such setting.

        Kafka: LogManager#updateCordonedLogDirs (4.3-4.4).
        """
        directories, process = self.machines.directories[broker], self.running.get(broker)
        directory = directories.all[place - 1]
        if directory.cordoned or process is None or not directories.are_several:
            return False
        if not process.decide.avoids_cordoned.yes():
            return False
        directory.cordoned, directory.cordoned_by = True, by
        process.perform(_cordon, process)
        return True

    def uncordon_directory(self, broker: int, by: object = None) -> None:
        """End `cordon_directory`."""
        process = self.running.get(broker)
        for directory in self.machines.directories[broker].all:
            if directory.cordoned and directory.cordoned_by is by:
                directory.cordoned, directory.cordoned_by = False, None
                if process is not None:
                    process.perform(_cordon, process)

    def fail_directory_for_good(self, broker: int, place: int, by: object = None) -> bool:
        """Fail a log directory (`Machines.fail_directory`) that nobody repairs.

        False also if the broker has no other that works, or if a partition would keep fewer than
        ``min.insync.replicas`` replicas whose directories work: it could not be written until a repair.
        """
        names = list(self.machines.directories[broker].all[place - 1].storages)
        works = len(self.machines.working_directories(broker)) > 1
        if not works or not all(self._has_enough_besides(broker, name) for name in names):
            return False
        return self.machines.fail_directory(broker, place, by=by)

    def _has_enough_besides(self, broker: int, name: str) -> bool:
        """Whether ``min.insync.replicas`` replicas of a partition have directories that work, besides a broker's."""
        replicas = self.control.state_of(name).replicas
        left = [replica for replica in replicas if replica != broker and self.machines.keeps_replica(replica, name)]
        return broker not in replicas or len(left) >= self.control.min_isr_of(name)

    # Views.

    @property
    def leader(self) -> Broker | None:
        """The process that the control plane elected and that knows it leads."""
        return self.leader_of(self.name)

    def files(self, broker: int, name: str) -> Storage:
        """A broker's files of a partition."""
        return self.machines.directories[broker].files(name)

    def replica(self, broker: int, name: str) -> Partition | None:
        """A broker's replica of a partition; None while its logs are not loaded."""
        process = self.running.get(broker)
        replica = None if process is None else process.replica(name)
        return None if replica is None else replica.partition

    def leader_of(self, name: str) -> Broker | None:
        """The process that the control plane elected leader of a partition and that knows it leads."""
        state = self.control.state_of(name)
        process = self.running.get(state.leader)
        replica = None if process is None else process.replica(name)
        if replica is None or not replica.partition.is_leader:
            return None
        return process if replica.partition.leader_epoch == state.leader_epoch else None


def _begin_shutdown(process: Broker) -> None:
    process.begin_shutdown()


def _cordon(process: Broker) -> None:
    process.cordon()
