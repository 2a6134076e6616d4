"""A cluster of real brokers on loopback, with its control plane, its links and its disks."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import uuid
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm import file_damage, files, processes
from highwater.lab.confirm.file_damage import FormerVersions
from highwater.lab.confirm.files import Disk
from highwater.lab.confirm.history import MetadataLogReads, ZooKeeperHistory
from highwater.lab.confirm.partitions import FIRST, KafkaPartition
from highwater.lab.confirm.proxy import CONTROL, Proxies
from highwater.lab.confirm.quorum_history import QuorumLogReads
from scenarios.own_files import put
from scenarios.sweep.java import cache_folder
from sim.config import NEVER, Value, integer
from sim.environment.file_damage import HALF_WRITTEN, MARKER, PARTITION_METADATA
from sim.hosts.control_plane import FIRST_CONTROLLER

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from highwater.lab.confirm.history import ControlPlaneHistory
    from highwater.lab.confirm.processes import JavaProcesses
    from highwater.lab.confirm.proxy import OnMessage
    from highwater.lab.confirm.release import InstalledRelease

CONTROLLER: Final = 1000
"""Kafka's id of KRaft's controller, if it is the only one and no process of the scenario's."""
METADATA_LOG: Final = "__cluster_metadata-0"
BEAT_S: Final = 0.15
FORMAT_SECONDS: Final = 60

_BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"
_ZERO_CHECKPOINT: Final = f"{METADATA_LOG}/00000000000000000000-0000000000.checkpoint"
_FIRST_WITH_ZERO_CHECKPOINT: Final = (4, 4)

_HW_INTERVAL: Final = "replica.high.watermark.checkpoint.interval.ms"
_PLAIN: Final = (
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "log.flush.interval.messages",
    "log.segment.bytes",
    "auto.leader.rebalance.enable",
    "controlled.shutdown.max.retries",
)
_FLOORS_MS: Final = {
    "replica.lag.time.max.ms": 2_000,
    "replica.fetch.wait.max.ms": 100,
    "replica.fetch.backoff.ms": 200,
    "replica.socket.timeout.ms": 1_000,
    _HW_INTERVAL: 300,
    "log.flush.offset.checkpoint.interval.ms": 1_000,
    "log.flush.start.offset.checkpoint.interval.ms": 1_000,
    "zookeeper.session.timeout.ms": 3_000,
    "broker.session.timeout.ms": 3_000,
    "broker.heartbeat.interval.ms": 400,
    "controller.socket.timeout.ms": 1_000,
    "controlled.shutdown.retry.backoff.ms": 500,
    "unclean.leader.election.interval.ms": 1_000,
}
_QUORUM_FLOORS_MS: Final = {"controller.quorum.election.timeout.ms": 500, "controller.quorum.fetch.timeout.ms": 1_000}
"""The same of controllers that are processes of the scenario's."""
"""Settings that are scaled by the pace -> the shortest values that JVMs on a busy machine can keep."""
_UNREPORTED_MS: Final = 10_000
"""Shortest ``log.dir.failure.timeout.ms`` of brokers with several log directories."""
_NOTICED_MS: Final = 100
"""Interval at which brokers with several log directories write their HW files."""
_START_MS: Final = 15_000
"""Maximum start-up time of a JVM on a busy machine."""
_FIXED: Final = {
    "num.network.threads": 1,
    "num.io.threads": 2,
    "num.recovery.threads.per.data.dir": 1,
    "num.partitions": 1,
    "background.threads": 2,
    "log.cleaner.dedupe.buffer.size": 10485760,
    "log.index.size.max.bytes": 65536,
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "replica.fetch.min.bytes": 1,
    "log.retention.ms": -1,
    "group.initial.rebalance.delay.ms": 0,
    "socket.request.max.bytes": 10485760,
}
_LOG4J: Final = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.state.change.logger=TRACE
log4j.logger.org.apache.zookeeper=WARN
"""


@dataclass(slots=True)
class KafkaNode:
    """A broker, a controller, or the control plane.

    Attributes:
        id: its id in scripts; 0 is the control plane as one node.
        port: port on which it listens to other nodes.
        client_port: port on which a broker listens to clients.
        proxy_port: port of the proxy to which other nodes connect.
        control_port: port to which a broker connects for the control plane.
        command: arguments of Java.
        incarnation: number of starts, the last at `started_s`; the last kill was at `ended_s`.
        stopped: whether it was stopped on purpose; otherwise it must run.
        silent: whether its machine went down with it, so that clients must not notice its end by their connections.
        sizes: log and segment -> (time, size) at each observed change of size.
        directories: number of its log directories, from 1 on.
        failed: number of a log directory that has failed -> where its contents are.
        removed: numbers of the log directories that were taken out of ``log.dirs``.
        half_written: half-written file over which its log directory may fail -> what it contained before.
    """

    id: int
    folder: Path
    port: int
    client_port: int = 0
    proxy_port: int = 0
    control_port: int = 0
    process: subprocess.Popen[bytes] | None = None
    command: list[str] = field(default_factory=list)
    incarnation: int = 0
    started_s: float = 0.0
    ended_s: float = 0.0
    stopped: bool = True
    silent: bool = False
    paused: bool = False
    sizes: dict[tuple[str, str], list[tuple[float, int]]] = field(default_factory=dict)
    directories: int = 1
    failed: dict[int, Path] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)
    half_written: dict[Path, bytes] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        """Its data folder, which stands for its disk: the first log directory."""
        return self.folder / "data"

    @property
    def number(self) -> int:
        """Kafka's ``node.id``."""
        return CONTROLLER if self.id == CONTROL else self.id

    @property
    def metadata(self) -> Path:
        """The folder of a broker's metadata log, if it has several log directories: it outlives each of them."""
        return self.folder / "metadata"

    def directory(self, place: int) -> Path:
        """The path of a log directory."""
        return self.data if place == 1 else self.folder / f"data-{place}"

    def contents(self, place: int) -> Path:
        """The contents of a log directory, which a failed one keeps elsewhere."""
        return self.failed.get(place, self.directory(place))

    @property
    def places(self) -> list[int]:
        """The numbers of the log directories in ``log.dirs``."""
        return [place for place in range(1, self.directories + 1) if place not in self.removed]

    def place_of(self, log: str) -> int:
        """The number of the log directory with a log; the first if none has it."""
        places = self.places
        return next((place for place in places if (self.contents(place) / log).is_dir()), places[0])

    def folder_of(self, partition: KafkaPartition) -> Path:
        """The folder of its replica of a partition."""
        log = partition.log
        return self.data / log if self.directories == 1 else self.contents(self.place_of(log)) / log

    @property
    def output(self) -> Path:
        """The log of the process."""
        return self.folder / "broker.log"

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None


class KafkaCluster:
    """Brokers and their control plane. Durations, in settings and delays, are shorter by `pace` than the scenario's.

    `on_message` is notified of messages between brokers; `archive` is that of the brokers' classes (`class_archive`);
    `partitions` are those that are observed; `controllers` is the number of controllers that the scenario may strike
    one by one, 0 if the control plane is one node; of files in `watched`, former versions are kept.
    """

    def __init__(
        self,
        release: InstalledRelease,
        processes: JavaProcesses,
        brokers: int,
        config: Mapping[str, Value],
        broker_config: Mapping[int, Mapping[str, Value]],
        on_message: OnMessage,
        pace: int,
        archive: Path | None = None,
        partitions: Sequence[KafkaPartition] = (FIRST,),
        controllers: int = 0,
    ) -> None:
        self.partitions = partitions
        self.versions = FormerVersions()
        self.watched: set[str] = set()
        self._pace = pace
        self.loading_s = 0.0
        self._archive = archive
        self.release = release
        self.config = config
        self._broker_config = broker_config
        self._processes = processes
        self.folder = processes.folder
        self._work = processes.work
        self.proxies = Proxies(on_message, BEAT_S)
        self.cluster_id = _identity()
        port = processes.port
        self.control = KafkaNode(CONTROL, self.folder / "control", port())
        self.controllers = {CONTROL: self.control}
        self.is_quorum = controllers > 0
        if self.is_quorum:
            ids = range(FIRST_CONTROLLER, FIRST_CONTROLLER + controllers)
            self.controllers = {
                one: KafkaNode(one, self.folder / f"controller-{one}", port(), proxy_port=port()) for one in ids
            }
        self.proxies.controllers = tuple(self.controllers)
        self.brokers = {
            number: KafkaNode(number, self.folder / f"broker-{number}", port(), port(), port(), port())
            for number in range(1, brokers + 1)
        }
        self.history: ControlPlaneHistory = self._new_history()
        for number, node in self.brokers.items():
            node.directories = integer({**config, **broker_config.get(number, {})}, "sim.log.dirs")
        for node in self.brokers.values():
            self.proxies.listen(node.proxy_port, node.port, source=None, target=node.id, kafka=True)
            if not self.is_quorum:
                self.proxies.listen(
                    node.control_port, self.control.port, source=node.id, target=CONTROL, kafka=release.kraft
                )
        if self.is_quorum:
            for node in self.controllers.values():
                self.proxies.listen(node.proxy_port, node.port, source=None, target=node.id, kafka=True)

    def _new_history(self) -> ControlPlaneHistory:
        if self.is_quorum:
            folders = {number: node.data / METADATA_LOG for number, node in self.controllers.items()}
            return QuorumLogReads(folders, self.partitions, self.release.jars)
        if self.release.kraft:
            return MetadataLogReads(self.control.data / METADATA_LOG, self.partitions, self.release.jars)
        return ZooKeeperHistory(self.control.data / "version-2", self.partitions)

    def close(self) -> None:
        """Close the links; `JavaProcesses` ends the processes."""
        self.proxies.close()

    def paced_ms(self, value_ms: int) -> int:
        """A duration of the scenario, converted to these brokers' pace."""
        return value_ms if value_ms >= NEVER // self._pace else max(1, value_ms // self._pace)

    def node(self, number: int) -> KafkaNode:
        """The node with this id in scripts."""
        found = self.brokers.get(number)
        return self.controllers[number] if found is None else found

    def links(self, source: int, target: int) -> list[tuple[int, int]]:
        """The links for which one stands: those of all controllers, if an end is the control plane."""
        if source and target:
            return [(source, target)]
        others = [number for number in self.controllers if number not in (source, target) or not self.is_quorum]
        return [(source or number, target or number) for number in others]

    # Starting.

    def prepare(self) -> None:
        """Write the nodes' configuration, and format disks."""
        self._work.write(self.folder / "log4j.properties", _LOG4J)
        if self.release.kraft:
            for node in self.controllers.values():
                self._prepare_controller(node)
        else:
            self._prepare_zookeeper()
        for node in self.brokers.values():
            node.command = [*self._java_options(), "kafka.Kafka", str(self._write_properties(node))]
            self.format(node)

    def _write_properties(self, node: KafkaNode) -> Path:
        path = node.folder / "server.properties"
        self._work.write(path, files.properties(self._broker_properties(node)))
        return path

    def _java_options(self) -> list[str]:
        simple = "-Dorg.slf4j.simpleLogger."
        options = [
            f"{simple}logFile=System.out",
            f"{simple}showDateTime=true",
            f"{simple}dateTimeFormat=HH:mm:ss.SSS",
            f"{simple}showThreadName=false",
            f"{simple}defaultLogLevel=info",
            f"{simple}log.org.apache.zookeeper=warn",
            f"{simple}log.org.apache.kafka.common.config=warn",
            f"{simple}log.kafka.server.KafkaConfig=warn",
            f"-Dlog4j.configuration=file:{self.folder / 'log4j.properties'}",
            "-Dzookeeper.forceSync=no",
            "-Dzookeeper.preAllocSize=256",
            "-Dzookeeper.admin.enableServer=false",
            "-Dzookeeper.4lw.commands.whitelist=*",
        ]
        if self._archive is not None and self._archive.is_file():
            options.insert(0, f"-XX:SharedArchiveFile={self._archive}")
        return [*options, "-cp", self.release.class_path]

    def _settings(self, broker: int | None) -> dict[str, object]:
        config = {**self.config, **self._broker_config.get(broker or 0, {})}
        found: dict[str, object] = {key: _text(config[key]) for key in _PLAIN}
        for key in self._floors_ms:
            found[key] = self._time_ms(config, key)
        found["leader.imbalance.check.interval.seconds"] = max(
            1, integer(config, "leader.imbalance.check.interval.seconds") // self._pace
        )
        return found

    @property
    def _floors_ms(self) -> dict[str, int]:
        return _floors_ms(is_quorum=self.is_quorum)

    def _time_ms(self, config: Mapping[str, Value], key: str) -> int:
        """A duration setting, scaled by the pace. Where HW files decide truncation, a slow start of a process must not
        cause an extra write of one.
        """
        value = integer(config, key)
        held_ms = _START_MS if key == _HW_INTERVAL and self.release.truncates_to_hw else 0
        return max(min(self._floors_ms[key], value), self.paced_ms(value)) + held_ms

    @property
    def hw_interval_ms(self) -> int:
        """Interval at which brokers write their HW files."""
        return self._time_ms(self.config, _HW_INTERVAL)

    def disk(self, number: int, partition: KafkaPartition = FIRST) -> Disk:
        """What a broker's disk holds of a partition."""
        leo = files.log_end(self.node(number).folder_of(partition))
        return Disk(leo, min(leo, self.hw_file(number, partition) or 0))

    def hw_file(self, number: int, partition: KafkaPartition = FIRST) -> int | None:
        """A partition's high watermark in a broker's HW file, if any."""
        path = self.node(number).folder_of(partition).parent / "replication-offset-checkpoint"
        return files.offset_in_checkpoint(path, partition.topic, partition.number)

    def _broker_properties(self, node: KafkaNode) -> dict[str, object]:
        names = "PEERS:PLAINTEXT,CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT"
        common = {
            **_FIXED,
            **self._settings(node.id),
            "listeners": f"PEERS://127.0.0.1:{node.port},CLIENTS://127.0.0.1:{node.client_port}",
            "advertised.listeners": f"PEERS://127.0.0.1:{node.proxy_port},CLIENTS://127.0.0.1:{node.client_port}",
            "listener.security.protocol.map": names,
            "inter.broker.listener.name": "PEERS",
            "log.dirs": ",".join(str(node.directory(place)) for place in node.places),
        }
        if node.directories > 1:
            common |= self._of_several_directories(node)
        if self.release.kraft:
            return {
                **common,
                "process.roles": "broker",
                "node.id": node.id,
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": self._voters(node),
                "initial.broker.registration.timeout.ms": 60_000,
            }
        return {
            **common,
            "listener.security.protocol.map": "PEERS:PLAINTEXT,CLIENTS:PLAINTEXT",
            "broker.id": node.id,
            "zookeeper.connect": f"127.0.0.1:{node.control_port}",
            "zookeeper.connection.timeout.ms": 120_000,
        }

    def _of_several_directories(self, node: KafkaNode) -> dict[str, object]:
        """A broker notices by writing its HW file that a log directory has failed: here, it does so at once."""
        timeout = "log.dir.failure.timeout.ms"
        value_ms = integer({**self.config, **self._broker_config.get(node.id, {})}, timeout)
        return {
            "metadata.log.dir": node.metadata,
            timeout: max(min(_UNREPORTED_MS, value_ms), self.paced_ms(value_ms)),
            _HW_INTERVAL: _NOTICED_MS,
        }

    def _voters(self, node: KafkaNode) -> str:
        """The voters as a node reaches them. All use one proxy of a controller, which sees in requests who sends."""
        if not self.is_quorum:
            return f"{CONTROLLER}@127.0.0.1:{node.control_port or node.port}"
        return ",".join(f"{one.number}@127.0.0.1:{one.proxy_port}" for one in self.controllers.values())

    def _prepare_controller(self, node: KafkaNode) -> None:
        path = node.folder / "server.properties"
        values = {
            **_controller_properties(node.number, node.port, node.data),
            "controller.quorum.election.timeout.ms": 500,
            **self._settings(None),
            "controller.quorum.voters": self._voters(node),
            "metadata.log.max.record.bytes.between.snapshots": 1 << 30,
            "metadata.log.max.snapshot.interval.ms": 0,
        }
        if self.is_quorum:  # Leaders tell others where they are.
            values["advertised.listeners"] = f"CONTROLLER://127.0.0.1:{node.proxy_port}"
        self._work.write(path, files.properties(values))
        node.command = [*self._java_options(), "kafka.Kafka", str(path)]
        self.format(node)

    @property
    def _checkpoint(self) -> str:
        """The file, below the data folder, to which formatting writes feature levels (KAFKA-19648)."""
        return _ZERO_CHECKPOINT if self.release.number >= _FIRST_WITH_ZERO_CHECKPOINT else _BOOTSTRAP_CHECKPOINT

    def _template(self) -> Path:
        """The files that formatting writes for this release and these features; made once."""
        level = integer(self.config, "eligible.leader.replicas.version")
        wanted = self.release.number >= (4, 0)
        # A build can change without its version: it is formatted anew.
        folder = self.folder if self.release.source != "released" else cache_folder() / "kafka" / "formatted"
        kept = folder / f"{self.release.name}-elr-{level if wanted else 0}.checkpoint"
        if kept.is_file():
            return kept
        work = self.folder / "format"
        path = work / "server.properties"
        self._work.write(path, files.properties(_controller_properties(CONTROLLER, 9, work / "data")))
        words = [*self._java_options(), "kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", str(path)]
        if wanted:
            words += ["--feature", f"eligible.leader.replicas.version={level}"]
        process = self._processes.java(words, work / "format.log")
        process.wait(FORMAT_SECONDS)
        made = work / "data" / self._checkpoint
        if not made.is_file():
            raise RuntimeError(f"formatting failed: {processes.last_lines(work / 'format.log')}")
        put(kept, made.read_bytes())
        return kept

    def _prepare_zookeeper(self) -> None:
        node = self.control
        values = {
            "tickTime": 250,
            "dataDir": node.data,
            "clientPort": node.port,
            "clientPortAddress": "127.0.0.1",
            "maxClientCnxns": 0,
            "minSessionTimeout": 500,
            "maxSessionTimeout": 600_000,
            "autopurge.purgeInterval": 0,
            "snapCount": 1_000_000,
        }
        path = node.folder / "zookeeper.properties"
        self._work.write(path, files.properties(values))
        node.command = [*self._java_options(), "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(path)]
        self._work.make(node.data)

    def format(self, node: KafkaNode) -> None:
        """Format an empty disk with a new directory id for a node, that of a controller with the feature levels."""
        if self.release.kraft and node.id in self.controllers:
            self._work.write(node.data / self._checkpoint, self._template().read_bytes())
        for place in range(1, node.directories + 1):
            self.format_directory(node, node.directory(place))
        if node.directories > 1:
            self.format_directory(node, node.metadata)

    def format_directory(self, node: KafkaNode, folder: Path) -> None:
        """Format an empty log directory with a new directory id."""
        self._work.make(folder)
        if self.release.kraft:
            values = {
                "version": 1,
                "cluster.id": self.cluster_id,
                "node.id": node.number,
                "directory.id": _identity(),
            }
            self._work.write(folder / "meta.properties", files.properties(values))

    def start(self, node: KafkaNode) -> None:
        """Start a node, unless it runs."""
        if node.alive:
            return
        node.incarnation += 1
        node.process = self._processes.java(node.command, node.output)
        node.started_s = time.monotonic()
        node.stopped = node.silent = False

    # Ends.

    def kill(self, numbers: Iterable[int], *, silently: bool = False) -> None:
        """Kill processes simultaneously; `silently`: see `KafkaNode.silent`."""
        nodes = [self.node(number) for number in numbers]
        for node in nodes:
            node.stopped = True
            node.silent = silently
            node.ended_s = time.monotonic()
            if node.alive:
                assert node.process is not None
                with contextlib.suppress(ProcessLookupError):
                    os.kill(node.process.pid, signal.SIGKILL)
        for node in nodes:
            node.paused = False
            if node.process is not None:
                node.process.wait()

    def stop(self, number: int) -> None:
        """Request a controlled shutdown of a process."""
        node = self.node(number)
        node.stopped = True
        if node.alive:
            assert node.process is not None
            os.kill(node.process.pid, signal.SIGTERM)

    def pause(self, number: int, *, paused: bool) -> None:
        """Pause or resume a process."""
        node = self.node(number)
        if node.alive and node.paused != paused:
            assert node.process is not None
            os.kill(node.process.pid, signal.SIGSTOP if paused else signal.SIGCONT)
            node.paused = paused

    @property
    def time_s(self) -> float:
        """The clock for the script's waits and write-back, which stands still while a JVM starts and loads its logs."""
        return time.monotonic() - self.loading_s

    def look_at_disks(self, now_s: float) -> None:
        """Record the sizes of segments, and the versions of files that are watched."""
        for node in self.brokers.values():
            for partition in self.partitions if self.watched else ():
                for file in self.watched:
                    for path in file_damage.paths(node.folder_of(partition), file):
                        self.versions.look(path)
            for partition, segment in self._segments(node):
                with contextlib.suppress(FileNotFoundError):
                    size = segment.stat().st_size
                    seen = node.sizes.setdefault((partition.log, segment.name), [])
                    if not seen or seen[-1][1] != size:
                        seen.append((now_s, size))

    def _segments(self, node: KafkaNode, place: int = 0) -> Iterator[tuple[KafkaPartition, Path]]:
        """The segments of a node's logs, with their partitions; `place`: only those in this log directory."""
        for partition in self.partitions:
            if place in (0, node.place_of(partition.log)):
                for segment in files.segments(node.folder_of(partition)):
                    yield partition, segment

    def lose_power(self, numbers: Iterable[int]) -> None:
        """Kill processes, and cut each log to what had reached the disk by Kafka's fsyncs or the kernel's write-back.
        Kafka fsyncs checkpoint files as it writes them.
        """
        numbers = list(numbers)
        self.kill(numbers, silently=True)
        now_s = self.time_s
        self.look_at_disks(now_s)
        for number in numbers:
            self._cut_to_flushed(self.node(number), now_s)

    def _cut_to_flushed(self, node: KafkaNode, now_s: float, place: int = 0) -> None:
        """Cut the logs, with a `place` those in this log directory, to what had reached the disk by a time."""
        config = {**self.config, **self._broker_config.get(node.id, {})}
        if config["log.flush.interval.messages"] == 1:
            return
        # The latest that the kernel's flusher takes: it runs every so often, and writes what has expired.
        latest_ms = integer(config, "sim.writeback.expire.ms") + integer(config, "sim.writeback.interval.ms")
        due_s = now_s - self.paced_ms(latest_ms) / 1000
        for partition, segment in self._segments(node, place):
            self._cut(segment, node.sizes.get((partition.log, segment.name), []), due_s)

    def _cut(self, segment: Path, seen: list[tuple[float, int]], due_s: float) -> None:
        size = segment.stat().st_size
        kept = next((length for at_s, length in reversed(seen) if at_s <= due_s), 0)
        since = [length for at_s, length in seen if at_s > due_s]
        kept = min([kept, size, *since])  # What was truncated since has not come back.
        self._work.cut(segment, kept)

    def flushed(self, node: KafkaNode) -> None:
        """Mark all that a node wrote as synced: it shut down cleanly."""
        for partition, segment in self._segments(node):
            node.sizes[partition.log, segment.name] = [(0.0, segment.stat().st_size)]

    def replace_disk(self, number: int) -> None:
        """Kill a process and replace its disk with an empty one."""
        self.kill([number], silently=True)
        node = self.node(number)
        for place in range(1, node.directories + 1):
            self._work.remove(node.contents(place))
            if place in node.failed:
                self._work.remove(node.directory(place))
        if node.directories > 1:
            self._work.remove(node.metadata)
        node.failed.clear()
        node.sizes.clear()
        self.format(node)

    def lose_quorum_state(self, number: int) -> None:
        """Kill a controller, and remove its file quorum-state."""
        self.kill([number])
        self._work.remove(self.node(number).data / METADATA_LOG / "quorum-state")

    # Files.

    def damage_file(self, number: int, partition: KafkaPartition, file: str, how: str) -> bool:
        """Damage a file of a broker that is down; False if the next process would read the same."""
        node = self.node(number)
        changed = file_damage.damage(self._work, node.folder_of(partition), file, how, self.versions)
        if how == HALF_WRITTEN and file != MARKER:
            node.half_written |= changed
        return bool(changed)

    def repair_files(self, number: int) -> None:
        """Remove half-written files, and write a ``partition.metadata`` again; no process runs."""
        half_written, self.node(number).half_written = self.node(number).half_written, {}
        for path, content in half_written.items():
            if path.name == PARTITION_METADATA:
                self._work.write(path, content)
            elif path.is_file():
                self._work.remove(path)

    # Log directories.

    def fail_directory(self, number: int, place: int) -> None:
        """Put a file in place of a log directory: nothing more can be written to it, now or by the next process.

        What is in it stays aside. Files that the process has open there it may write until it notices.
        """
        node = self.node(number)
        path = node.directory(place)
        aside = path.with_name(f"{path.name}-failed-{node.incarnation}")
        self._work.move(path, aside)
        self._work.write(path, "")
        node.failed[place] = aside

    def lose_in_directory(self, number: int, place: int) -> None:
        """Cut the logs in this directory to what had reached the disk."""
        now_s = self.time_s
        self.look_at_disks(now_s)
        self._cut_to_flushed(self.node(number), now_s, place)

    def repair_directory(self, number: int, place: int, *, replaced: bool) -> None:
        """Put a failed log directory back, with its contents or empty; no process runs."""
        node = self.node(number)
        aside = node.failed.pop(place)
        path = node.directory(place)
        self._work.remove(path)
        if replaced:
            self.format_directory(node, path)
        else:
            self._work.move(aside, path)

    def remove_directory(self, number: int, place: int) -> None:
        """Take a log directory, unless it is the last one, out of ``log.dirs``; no process runs."""
        node = self.node(number)
        if node.places != [place]:
            node.removed.add(place)
            self._write_properties(node)

    def offline(self, log: str) -> set[int]:
        """The brokers whose replica is in a log directory that has failed."""
        return {node.id for node in self.brokers.values() if node.failed and node.place_of(log) in node.failed}

    def corrupt_tail(self, number: int, batches: int) -> None:
        """Kill a process and corrupt the newest batches of each of its logs."""
        self.kill([number])
        for partition in self.partitions:
            self._corrupt(self.node(number).folder_of(partition), batches)

    def _corrupt(self, log: Path, batches: int) -> None:
        for segment in reversed(files.segments(log)):
            data = bytearray(segment.read_bytes())
            ends = [0, *files.boundaries(bytes(data))]
            struck = ends[max(0, len(ends) - 1 - batches) : -1]
            for at in struck:
                data[at + 17] ^= 0xFF  # Of the checksum in format 2, of what it is of before.
            self._work.write(segment, bytes(data))
            batches -= len(struck)
            if batches <= 0:
                return

    def observe_fetches(self) -> None:
        """If there are several partitions, tell the proxies which topic names, and ids as soon as there are some, they
        have in fetches.
        """
        if len(self.partitions) > 1:
            ids = self.history.topic_ids
            self.proxies.observed = {
                (name, partition.number): partition.tag
                for partition in self.partitions
                for name in (partition.topic, ids.get(partition.topic))
                if name is not None
            }

    @property
    def leader(self) -> int:
        """The first partition's leader according to the control plane; 0 for none."""
        return self.leader_of(FIRST)

    def leader_of(self, partition: KafkaPartition) -> int:
        """A partition's leader according to the control plane; 0 for none."""
        states = self.history.states_of(partition)
        return max(states[-1].leader, 0) if states else 0


def _floors_ms(*, is_quorum: bool) -> dict[str, int]:
    return _FLOORS_MS | _QUORUM_FLOORS_MS if is_quorum else _FLOORS_MS


def longer_ms(config: Mapping[str, Value], pace: int, *, is_quorum: bool = False) -> dict[str, int]:
    """The durations that brokers cannot keep at a pace: those that they have instead, as durations of the scenario."""
    floors = _floors_ms(is_quorum=is_quorum)
    given = {key: integer(config, key) for key in floors}
    return {key: pace * floor_ms for key, floor_ms in floors.items() if floor_ms <= given[key] < pace * floor_ms}


def _controller_properties(number: int, port: int, data: Path) -> dict[str, object]:
    return {
        "process.roles": "controller",
        "node.id": number,
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "controller.quorum.voters": f"{number}@127.0.0.1:{port}",
        "log.dirs": data,
    }


def _text(value: Any) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _identity() -> str:
    """A new id of a cluster or directory. StorageTool would take one that begins with ``-`` for an option."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
