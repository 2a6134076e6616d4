"""A KRaft controller: Kafka's managers of replication, cluster, configuration and features against `QuorumController`.

Operations: ``register broker clean directory...`` (a new incarnation; whether it names the epoch of the former; the log
directories that it has, 0 unless told), ``assign topic broker place`` (it tells that its replica is there, in the first
unless told), ``again broker``
(the same one registers again), ``unregister broker``, ``heartbeat broker ago want-fence want-shut-down directory...``
(it has read what was committed so many operations ago; these directories have failed), ``time ms`` (sessions of 9 s are
looked at every ms), ``create topic replicas``,
``alter topic isr sender leader-epoch partition-epoch`` (sender 0 is the leader; what is added to the epochs), ``elect
topic kind``, ``reassign topic replicas``, ``cancel topic``, ``set key value`` (of all topics), ``elr level``,
``balance``, ``check-unclean``, ``fail-over``; ``segment`` (Kafka alone: its metadata log). Each takes 1 ms. An event
that throws makes another controller take over. To be seen are the answer, the brokers and the partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from sim.hosts.broker_heartbeat_tracker import BrokerHeartbeatTracker
from sim.kernel.scheduler import ALWAYS, Kernel
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem
from sim.protocol.kraft.metadata import ELR_FEATURE, MIN_ISR, BrokerRegistration, MetadataImage, Record, Value
from sim.protocol.kraft.quorum_controller import QuorumController
from sim.protocol.kraft.replication_control_manager import UNCLEAN_ELECTION, NotAssignedError
from sim.protocol.messages import UNKNOWN_SERVER_ERROR
from tests.verification.oracle.releases import since
from tests.verification.oracle.subject import Case, Seen, Subject
from tests.verification.oracle.subjects import partition_change

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.hosts.controller_server import ControllerServer
    from sim.protocol.rules import Rules

SESSION_MS: Final = 9_000
MS: Final = 1_000
"""In us."""
TOPICS: Final = ("a", "b")
SIZES: Final = (3, 3, 4, 5)
"""Numbers of brokers."""
UNREGISTERED: Final = -3
"""Names a log directory that no broker registers."""
CONFIG: Final[dict[str, Value]] = {MIN_ISR: 1}


class Host:
    """The core's controller, and the node that it lives in."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._committed: list[Record] = []
        self._incarnation = 100
        self._kernel = Kernel()
        self.life = ALWAYS
        self._sessions = BrokerHeartbeatTracker(
            cast("ControllerServer", self),
            SESSION_MS * MS,
            self._kernel,
            keeps_fenced=rules.fenced_session == "kept",
            begins_sessions=Decisions(rules).begins_sessions_at_activation,
            ranks={broker: broker for broker in range(1, max(SIZES) + 1)},
        )
        self.ends: list[int] = []
        self.controller = QuorumController(MetadataImage(), Decisions(rules), self, CONFIG)

    # What the controller asks.

    def append(self, records: list[Record]) -> None:
        """See `ReplicationHost`."""
        self._committed += records
        for record in records:
            if isinstance(record, BrokerRegistration):
                self._note_broker(record)

    def _note_broker(self, record: BrokerRegistration) -> None:
        if record.fenced:
            self._sessions.unfenced.discard(record.broker)
        else:
            self._sessions.unfenced.add(record.broker)

    def has_session(self, broker: int) -> bool:
        """See `QuorumControllerHost`."""
        return self._sessions.is_open(broker)

    def ask_log_info(self, broker: int, name: str) -> None:
        """See `RecoveryHost`."""

    def record_recoveries(self, running: int, finished: int, manual: int) -> None:
        """See `ReplicationHost`."""

    def schedule_recovery_timeout(self, timer: int, after_us: int) -> None:
        """See `RecoveryHost`."""

    def reached(self, probe: int) -> None:
        """See `RecoveryHost`."""

    # Operations.

    def register(self, broker: int, clean: int, *directories: int) -> Any:
        known = self.controller.image.brokers.get(broker)
        self._incarnation += 1
        previous = known.broker_epoch if known and clean else -1
        reply = self.controller.register(broker, self._incarnation, previous, directories or (0,))
        if not reply.error:
            self._sessions.registered(broker)
        return reply.error

    def assign(self, topic: str, broker: int, place: int = 0) -> Any:
        known = self.controller.image.brokers.get(broker)
        if known is None or topic not in self.controller.image.partitions or not known.directories:
            return "unknown"
        directory = sorted(known.directories)[place % len(known.directories)] if place >= 0 else -place
        return self.controller.assign_directory(topic, broker, known.broker_epoch, directory)

    def again(self, broker: int) -> Any:
        known = self.controller.image.brokers.get(broker)
        if known is None:
            return "unknown"
        reply = self.controller.register(broker, known.incarnation, -1, known.directories)
        self._sessions.note_reregistration(broker)
        return reply.error

    def unregister(self, broker: int) -> Any:
        error = self.controller.unregister(broker)
        if not error:
            self._sessions.unregistered(broker)
        return error

    def heartbeat(self, broker: int, ago: int, want_fence: int, want_shut_down: int, *offline: int) -> Any:
        known = self.controller.image.brokers.get(broker)
        if known is None:
            return "unknown"
        read = self.controller.image.offset if ago == 0 else 0 if ago > len(self.ends) else self.ends[-ago]
        self._sessions.note_heartbeat(broker, self._kernel.now_us)
        reply = self.controller.heartbeat(
            broker,
            known.broker_epoch,
            read,
            want_fence=bool(want_fence),
            want_shut_down=bool(want_shut_down),
            offline_directories=offline,
        )
        return reply.error or [reply.is_caught_up, reply.is_fenced, reply.should_shut_down]

    def pass_ms(self, ms: int) -> None:
        """Let time pass without checks of sessions."""
        self._kernel.now_us += ms * MS

    def time(self, ms: int) -> Any:
        sessions, kernel = self._sessions, self._kernel
        until_us = kernel.now_us + ms * MS
        while with_session := [broker for broker in sessions.brokers if sessions.valid_until_us(broker) >= 0]:
            broker = min(with_session, key=sessions.valid_until_us)
            over_us = sessions.valid_until_us(broker) + MS
            if over_us > until_us:
                break
            sessions.end(broker)
            kernel.now_us = max(kernel.now_us, over_us)
            self.controller.fence(broker)
        kernel.now_us = until_us
        return ""

    def create(self, topic: str, replicas: list[int]) -> Any:
        return self.controller.create_partition(topic, tuple(replicas))

    def alter(self, topic: str, isr: list[int], sender: int, leader_epoch: int, partition_epoch: int) -> Any:
        brokers = self.controller.image.brokers
        state = self.controller.image.partitions.get(topic)
        if state is None or not (sender or state.leader) or (sender or state.leader) not in brokers:
            return "unknown"
        sender = sender or state.leader
        wanted = AlterPartitionItem(
            topic,
            tuple(isr),
            state.leader_epoch + leader_epoch,
            state.partition_epoch + partition_epoch,
            {member: brokers[member].broker_epoch if member in brokers else -1 for member in isr},
        )
        error, results = self.controller.alter_partition(sender, brokers[sender].broker_epoch, [wanted])
        return error or results[topic][0]

    def elect(self, topic: str, kind: str) -> Any:
        return self.controller.elect(topic, kind)

    def reassign(self, topic: str, replicas: list[int]) -> Any:
        return self.controller.reassign(topic, tuple(replicas))

    def cancel(self, topic: str) -> Any:
        return self.controller.cancel_reassignment(topic)

    def set(self, key: str, value: Value) -> Any:
        return self.controller.set(key, value) if self.controller.image.partitions else "unknown"

    def elr(self, level: int) -> Any:
        return self.controller.set(ELR_FEATURE, level)

    def balance(self) -> Any:
        self.controller.balance()
        return ""

    def check_unclean(self) -> Any:
        self.controller.check_unclean()
        return ""

    def fail_over(self) -> Any:
        image = MetadataImage()
        for record in self._committed:
            image.replay(record)
        self.controller = QuorumController(image, Decisions(self._rules), self, CONFIG)
        self.controller.activate()
        self._sessions.begin()
        return ""

    def shown(self) -> list[Any]:
        """Brokers and partitions."""
        image = self.controller.image
        brokers = [[one, image.brokers[one].fenced, image.brokers[one].shutting_down] for one in sorted(image.brokers)]
        partitions = [
            [topic, *partition_change.shown(state), [state.directory(broker) for broker in state.replicas]]
            for topic in TOPICS
            if (state := image.partitions.get(topic)) is not None
        ]
        return [brokers, partitions]


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    host = Host(rules)
    seen: Seen = []
    for name, *values in case:
        host.pass_ms(1)
        try:
            answer = getattr(host, name.replace("-", "_"))(*values)
        except NotAssignedError:
            host.fail_over()
            answer = UNKNOWN_SERVER_ERROR
        host.ends.append(host.controller.image.offset)
        seen.append([answer or "NONE", *host.shown()])
    return seen


def draw(rng: Random, release: str) -> Case:
    """Sets up a cluster, then random operations."""
    size = rng.choice(SIZES)
    brokers = list(range(1, size + 1))
    directories = rng.choice(((), (), (0, 1)))
    case: Case = [["register", broker, 0, *directories] for broker in brokers]
    case += [["heartbeat", broker, 0, 0, 0] for broker in brokers if rng.random() < 0.9]
    replicas = {topic: rng.sample(brokers, rng.choice((1, 2, 3, 3))) for topic in TOPICS[: rng.choice((1, 1, 2))]}
    case += [["create", topic, list(some)] for topic, some in replicas.items()]
    case.append(["set", MIN_ISR, rng.choice((1, 2, 2, 3))])
    if rng.random() < 0.3:
        case.append(["set", UNCLEAN_ELECTION, True])
    weights = {name: weight for name, weight in _WEIGHTS.items() if name != "elr" or release != "3.9.0"}
    for _ in range(rng.randint(5, 40)):
        name = rng.choices(list(weights), list(weights.values()))[0]
        case += _drawn(rng, name, brokers, replicas)
    return case


_WEIGHTS: Final = {
    "heartbeat": 30,
    "register": 10,
    "again": 2,
    "unregister": 2,
    "assign": 6,
    "time": 8,
    "alter": 20,
    "elect": 4,
    "reassign": 5,
    "cancel": 2,
    "set": 3,
    "elr": 1,
    "balance": 2,
    "check-unclean": 2,
    "fail-over": 1,
}


def _drawn(rng: Random, name: str, brokers: list[int], replicas: dict[str, list[int]]) -> Case:
    broker, topic = rng.choice(brokers), rng.choice(list(replicas))
    match name:
        case "heartbeat":
            fence, stop = rng.choice(((0, 0), (0, 0), (0, 0), (1, 0), (0, 1), (0, 1), (1, 1)))
            failed = [] if rng.random() < 0.85 else [rng.randint(0, 2)]
            return [[name, broker, rng.choice((0, 0, 0, 0, 1, 3, 99)), fence, stop, *failed]]
        case "register":
            assigned = [["assign", topic, broker, rng.randint(0, 1)]] * rng.randint(0, 1)
            directories = [] if rng.random() < 0.5 else rng.sample((0, 1, 2), rng.choice((1, 2)))
            return [
                [name, broker, rng.randint(0, 1), *directories],
                *assigned,
                *[["heartbeat", broker, 0, 0, 0]] * rng.randint(0, 1),
            ]
        case "assign":
            return [[name, topic, broker, rng.choice((0, 1, UNREGISTERED))]]
        case "time":
            kept = [["heartbeat", one, 0, 0, 0] for one in brokers if rng.random() < 0.6]
            return [[name, rng.choice((100, 4_000, 5_000))], *kept, [name, rng.choice((10, 4_100, 5_000))]]
        case "alter":
            isr = [one for one in replicas[topic] if rng.random() < 0.75]
            wrong = rng.random() < 0.15
            sender = broker if wrong else 0
            epochs = [rng.choice((-1, 0, 0, 1)) if wrong else 0 for _ in range(2)]
            return [[name, topic, isr, sender, *epochs]]
        case "elect":
            return [[name, topic, rng.choice(("PREFERRED", "UNCLEAN"))]]
        case "reassign":
            return _reassigned(rng, topic, brokers, replicas)
        case "again" | "unregister" | "cancel":
            return [[name, topic if name == "cancel" else broker]]
        case "set":
            key = rng.choice((MIN_ISR, MIN_ISR, UNCLEAN_ELECTION))
            return [[name, key, rng.choice((1, 2, 3)) if key == MIN_ISR else rng.random() < 0.5]]
        case "elr":
            return [[name, rng.choice((0, 1))]]
        case "fail-over":
            return [[name], *(["heartbeat", one, 0, 0, 0] for one in brokers)]
    return [[name]]


def _reassigned(rng: Random, topic: str, brokers: list[int], replicas: dict[str, list[int]]) -> Case:
    """A reassignment; in every other case a broker stops, and one assigns a log directory that is not registered."""
    wanted = rng.sample(brokers, rng.choice((1, 2, 3, 3)))
    replicas[topic] = [*wanted, *(one for one in replicas[topic] if one not in wanted)]
    reassigns = ["reassign", topic, wanted]
    if rng.random() < 0.5:
        return [reassigns]
    stops, fails = rng.choice(wanted), rng.choice(wanted)
    return [reassigns, ["heartbeat", stops, 0, 0, 1], ["assign", topic, fails, UNREGISTERED]]


SUBJECT: Final = Subject(
    "kraft-controller",
    "org.apache.kafka.controller.KraftController",
    since("3.9.0"),
    draw,
    run,
    quick=300,
    usual=2_000,
    deep=40_000,
    names_brokers=True,
)
