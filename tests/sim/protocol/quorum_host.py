"""A KRaft controller without a node: what it commits and asks is written down, sessions are as the test says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.protocol.decisions import Decisions
from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem, Result
from sim.protocol.kraft.metadata import MetadataImage, PartitionRegistration, Record, Value
from sim.protocol.kraft.quorum_controller import QuorumController
from sim.protocol.kraft.quorum_messages import GetReplicaLogInfoRequest, GetReplicaLogInfoResponse
from sim.protocol.modes import mode
from sim.protocol.probes import PROBES
from sim.protocol.rules import Rules
from tests.sim.protocol.recording import branches

NOTHING = PartitionRegistration("?", 0, 0, (), 0, ())
CONFIG: Mapping[str, Value] = {"min.insync.replicas": 2}


class QuorumHost:
    """A controller, and the host that it asks.

    Attributes:
        controller: the active one.
        records: all that was committed.
        sessions: brokers whose session is valid.
        asked: (broker, partition) of GetReplicaLogInfo.
        timers: (number, delay) of the timers that a recovery set.
        decide: the rules.
        transitions: names of those that were reached.
        counters: of unclean recoveries: running, finished, waiting for an administrator.
    """

    def __init__(self, rules: Rules | str, config: Mapping[str, Value] = CONFIG) -> None:
        self.rules = mode(rules).rules if isinstance(rules, str) else rules
        self.decide = Decisions(self.rules)
        self.config = config
        self.records: list[Record] = []
        self.sessions: set[int] = set()
        self.asked: list[tuple[int, str]] = []
        self.timers: list[tuple[int, int]] = []
        self.transitions: set[str] = set()
        self.counters = (0, 0, 0)
        self._incarnation = 100
        self.controller = QuorumController(MetadataImage(), self.decide, self, config)

    # The host's side.

    def append(self, records: list[Record]) -> None:
        self.records += records
        assert self.controller.image.offset == len(self.records)

    def has_session(self, broker: int) -> bool:
        return broker in self.sessions

    def ask_log_info(self, broker: int, name: str) -> None:
        self.asked.append((broker, name))

    def record_recoveries(self, running: int, finished: int, manual: int) -> None:
        """See `QuorumControllerHost.record_recoveries`."""
        self.counters = (running, finished, manual)

    def schedule_recovery_timeout(self, timer: int, after_us: int) -> None:
        self.timers.append((timer, after_us))

    def reached(self, probe: int) -> None:
        self.transitions.add(PROBES[probe].name)

    @property
    def probes(self) -> set[str]:
        """What was reached: transitions, and branches of rules."""
        return self.transitions | branches(self.decide)

    # The test's side.

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    @property
    def state(self) -> PartitionRegistration:
        """The only partition."""
        (state,) = self.image.partitions.values()
        return state

    def lists(self) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Leader, ISR, ELR, last known ELR."""
        state = self.state
        return state.leader, state.isr, state.elr, state.last_known_elr

    def fail_over(self) -> None:
        """Another controller becomes active."""
        image = MetadataImage()
        for record in self.records:
            image.replay(record)
        self.controller = QuorumController(image, self.decide, self, self.config)
        self.controller.activate()

    def register(self, *brokers: int, clean: bool = False, directory: int = 0) -> None:
        """New incarnations register: after a clean shutdown, or not."""
        for broker in brokers:
            known = self.image.brokers.get(broker)
            self._incarnation += 1
            previous = known.broker_epoch if clean and known else -1
            assert not self.controller.register(broker, self._incarnation, previous, (directory,)).error
            self.sessions.discard(broker)

    def heard(self, broker: int, *, want_fence: bool = False, want_shut_down: bool = False) -> None:
        """A broker that has read all sends a heartbeat."""
        epoch, offset = self.image.brokers[broker].broker_epoch, self.image.offset
        self.sessions.add(broker)
        self.controller.heartbeat(broker, epoch, offset, want_fence=want_fence, want_shut_down=want_shut_down)

    def unfence(self, *brokers: int) -> None:
        """Their heartbeats show that they have read all."""
        for broker in brokers:
            epoch = self.image.brokers[broker].broker_epoch
            assert self.controller.heartbeat(broker, epoch, self.image.offset).is_caught_up
            self.sessions.add(broker)

    def start(self, *brokers: int, clean: bool = False) -> None:
        """Register and unfence."""
        self.register(*brokers, clean=clean)
        self.unfence(*brokers)

    def fence(self, *brokers: int) -> None:
        """Their sessions end, one after the other."""
        for broker in brokers:
            self.sessions.discard(broker)
            self.controller.fence(broker)

    def create(self, *replicas: int, name: str = "p") -> QuorumHost:
        """Brokers that are all there, and a partition."""
        self.start(*(broker for broker in sorted(replicas) if broker not in self.image.brokers))
        assert not self.controller.create_partition(name, replicas)
        return self

    def alter(self, *isr: int, **changed: Any) -> str:
        """The leader of the only partition wants another ISR; returns the error."""
        return self.request(*isr, name=self.state.name, **changed)[0]

    def request(
        self,
        *isr: int,
        name: str = "p",
        by: int | None = None,
        broker_epoch: int | None = None,
        leader_epoch: int | None = None,
        partition_epoch: int | None = None,
        broker_epochs: Mapping[int, int] | None = None,
        recovering: bool = False,
    ) -> Result:
        """A leader wants another ISR; what is not given is as the controller knows it. Returns its result."""
        state, brokers = self.image.partitions.get(name, NOTHING), self.image.brokers
        sender = state.leader if by is None else by
        epochs = {member: brokers[member].broker_epoch for member in isr if member in brokers}
        change = AlterPartitionItem(
            name,
            isr,
            state.leader_epoch if leader_epoch is None else leader_epoch,
            state.partition_epoch if partition_epoch is None else partition_epoch,
            epochs if broker_epochs is None else broker_epochs,
            recovering=recovering,
        )
        own = brokers[sender].broker_epoch if broker_epoch is None else broker_epoch
        error, results = self.controller.alter_partition(sender, own, [change])
        return (error, (), -1, -1, 0) if error else results[name]

    def answer(self, broker: int, last_epoch: int, leo: int, **changed: int) -> None:
        """A replica answers GetReplicaLogInfo."""
        epoch = changed.get("broker_epoch", self.image.brokers[broker].broker_epoch)
        leader_epoch = changed.get("leader_epoch", self.state.leader_epoch)
        asked = GetReplicaLogInfoRequest(broker, self.state.name)
        self.controller.on_log_info(GetReplicaLogInfoResponse(asked, epoch, last_epoch, leo, leader_epoch))
