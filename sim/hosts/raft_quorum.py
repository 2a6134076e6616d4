"""The control plane of a KRaft cluster whose controllers are processes, with machines, disks and links of their own.

The node `CONTROL` stands for the quorum as a whole: no message reaches it. An administrator's requests reach the active
controller at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sim.config import Value
from sim.environment.elision import ElidingBroker
from sim.environment.network import Network
from sim.history import steps
from sim.hosts.control_plane import CONTROL, ControlPlaneSetup, PartitionSetup
from sim.hosts.controller_quorum import FORCED
from sim.hosts.metadata_history import candidates
from sim.hosts.metadata_ledger import MetadataLedger
from sim.hosts.quorum_plane import QuorumPlane, unsettled
from sim.hosts.raft_broker import ObserverSetup
from sim.hosts.raft_controller import ControllerSetup, RaftController
from sim.hosts.raft_controllers import RaftControllers
from sim.hosts.raft_member import RaftMember
from sim.hosts.settings import quorum_settings
from sim.kernel.scheduler import ALWAYS, noop
from sim.protocol.kraft.metadata import MIN_ISR, PartitionRegistration
from sim.protocol.kraft.quorum_controller import QuorumController
from sim.protocol.kraft.replicated_controller import Answer, Operation
from sim.protocol.messages import NONE
from sim.protocol.raft.kafka_raft_client import QuorumConfig
from sim.protocol.raft.raft_log import RaftBatch
from sim.protocol.raft.raft_messages import NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT
from sim.protocol.raft.voter_set import ReplicaKey, VoterNode
from sim.protocol.replica.partition import NO_LEADER

API_TIMEOUT_US: Final = 60_000_000
"""``default.api.timeout.ms``: how long an administrator's client repeats a request."""
REQUEST_TIMEOUT_US: Final = 30_000_000
"""``request.timeout.ms``: how long it waits for an answer."""
VOTERS_RETRY_US: Final = 1_000_000
"""How long it waits before it repeats one, at most (``retry.backoff.max.ms``)."""
REPEATED: Final = (REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER)
"""The errors after which an administrator's client repeats a request."""


class RaftQuorum(QuorumPlane):
    """See the module.

    Attributes:
        controllers: their machines and processes.
        ledger: what is committed.
        observer: what brokers need to observe the quorum.
    """

    __deletable__ = ("controllers", "ledger", "observer")

    controllers: RaftControllers
    ledger: MetadataLedger
    observer: ObserverSetup

    def __init__(self, setup: ControlPlaneSetup) -> None:
        super().__init__(setup)
        settings = quorum_settings(setup.config)
        self.session_us = settings.session_us
        self.ledger = MetadataLedger(self, setup)
        self.controllers = RaftControllers(setup.controllers, self.ledger, dynamic_voters=setup.dynamic_voters)
        self._dynamic_voters = setup.dynamic_voters
        raft = QuorumConfig(
            election_timeout_us=settings.election_us,
            fetch_timeout_us=settings.fetch_timeout_us,
            snapshot_retention_us=settings.snapshot_retention_us,
            has_bootstrap_servers=setup.dynamic_voters,
        )
        key = setup.stream.getrandbits(61)
        members: dict[int, RaftMember] = {}
        self.controllers.setup = ControllerSetup(
            self.controllers.machines,
            setup.decide,
            setup.config,
            settings,
            raft,
            setup.min_isrs,
            setup.expiry_ranks,
            setup.kernel,
            setup.recorder,
            key,
            self._on_commit,
            self._on_claim,
            self.controllers.crashed,
            members,
        )
        self.observer = ObserverSetup(
            self.controllers.machines, raft, settings.snapshot_interval_us, key, self._note_commit, members
        )

    def dispose(self) -> None:
        self.controllers.dispose()
        self.ledger.dispose()
        del self.controllers, self.ledger, self.observer

    def boot(self, network: Network) -> None:
        """Start all controllers."""
        self.controllers.boot(network)

    # What controllers report.

    def _note_commit(self, node: int, incarnation: int, batches: Sequence[RaftBatch]) -> None:
        lacks = self.controllers.lacking(batches[-1].end_offset)
        elided = self.kernel.relives
        self.recorder.record(steps.RaftCommit(node, incarnation, batches, elided=elided, lacks=lacks))

    def _on_commit(self, controller: RaftController, batches: Sequence[RaftBatch]) -> None:
        self._note_commit(controller.node, controller.incarnation, batches)
        for batch in batches:
            if self.ledger.commit(controller.node, batch):
                self._create()
                if self.changed is not None:
                    self.changed()

    def _on_claim(self, controller: RaftController) -> None:
        self.recorder.record_for_all(steps.Controller(CONTROL, controller.epoch))

    @property
    def active(self) -> RaftController | None:
        """The active controller; see `RaftControllers.active`."""
        return self.controllers.active

    @property
    def controller(self) -> int:
        active = self.active
        return 0 if active is None else active.node

    def _create(self) -> None:
        """Create all partitions, once all brokers are unfenced."""
        if self.state.partition_epoch >= 0:
            return
        brokers, active = self.ledger.image.brokers, self.active
        if active is None or active.active is None or active.active.image.partitions:
            return
        if len(brokers) == self._brokers and all(self.ledger.image.is_active(broker) for broker in brokers):
            first, *others = self.setups.values()
            active.run(lambda controller: controller.create_partition(first.name, first.replicas))
            active.run(lambda controller: controller.create_topic({setup.name: setup.replicas for setup in others}))

    def _request(self, operation: Operation, answer: Answer = noop) -> object:
        """An administrator's request to the active controller. Returns its result before it is committed, "" without
        such a controller.
        """
        active = self.active
        if active is None:
            return ""
        results: list[object] = []

        def execute(controller: QuorumController) -> object:
            result = operation(controller)
            results.append(result)
            return result

        active.run(execute, answer)
        return results[0] if results else ""

    # The voters of the quorum.

    def change_voters(self, node: int, *, adds: bool) -> bool:
        """An administrator adds a controller to the voters, or removes one; False if the voters are static, or it is
        (or is not) one already.

        Kafka: KafkaAdminClient#addRaftVoter (3.9-4.4), KafkaAdminClient#removeRaftVoter (3.9-4.4).
        """
        leader, machine = self.controllers.leader, self.controllers.machines.get(node)
        if not self._dynamic_voters or machine is None:
            return False
        if leader is not None and (node in leader.member.client.quorum.voters) == adds:
            return False
        self._request_voters((node, adds, self.kernel.now_us + API_TIMEOUT_US))
        return True

    def _request_voters(self, entry: tuple[int, bool, int]) -> None:
        """Send the request to the leader. Kafka's client repeats what times out or finds no leader."""
        node, adds, until_us = entry
        leader, errors = self.controllers.leader, list[str]()

        def answer(error: str) -> None:
            if not errors and error in REPEATED and self.kernel.now_us + VOTERS_RETRY_US < until_us:
                self.kernel.call_at(self.kernel.now_us + VOTERS_RETRY_US, ALWAYS, self._request_voters, entry)
            errors.append(error)

        def miss_answer(_: object) -> None:
            answer(REQUEST_TIMED_OUT)  # Unless it has come: the leader's process may have ended.

        if leader is None:
            answer(NOT_LEADER_OR_FOLLOWER)
            return
        self.kernel.call_at(self.kernel.now_us + REQUEST_TIMEOUT_US, ALWAYS, miss_answer, None)
        leader.end_idle()
        client, now_us = leader.member.client, self.kernel.now_us
        if adds:
            client.add_voter(VoterNode(self.controllers.machines[node].key(node)), answer, now_us)
        else:
            voters = client.quorum.voter_set
            client.remove_voter(ReplicaKey(node, voters.directory(node)), answer, now_us)
        leader.member.drive()

    # Faults of controllers.

    def fail_over(self) -> bool:
        active = self.active
        return active is not None and active.resign()

    def renew_sessions(self) -> None:
        """See `ControlPlane.renew_sessions`: controllers that were paused act as they find things."""

    def delay_metadata(self, broker: int, by_us: int) -> bool:
        self.end_elision()
        self.controllers.end_idle()
        self.observer.delays_us[broker] = self.observer.delays_us.get(broker, 0) + by_us
        self.recorder.record(steps.MetadataDelay(broker, by_us))
        return True

    # Sessions.

    def has_session(self, broker: int) -> bool:
        active = self.active
        return active is not None and active.has_session(broker)

    def expire_silently(self, broker: int) -> bool:
        active = self.active
        if active is None or active.active is None or active.sessions is None:
            return False
        known = active.active.image.brokers.get(broker)
        if known is None or known.fenced:
            return False
        active.end_idle()
        active.sessions.end(broker)
        active.run(lambda controller: controller.fence(broker))
        return True

    # State of the quorum.

    def _judge(self) -> QuorumController:
        active = self.active
        return self.ledger.view if active is None or active.active is None else active.active

    def unsettled_brokers(self, brokers: Iterable[int], running: Mapping[int, ElidingBroker]) -> str:
        if self.active is None:
            return "no controller is active"
        changed_at = self.ledger.changed_at
        behind = sorted(broker for broker, process in running.items() if process.metadata_offset < changed_at)
        return unsettled(self.ledger.image, brokers, behind)

    # Operations of an administrator.

    def _is_known(self, name: str) -> bool:
        """Whether an active controller knows a partition."""
        active = self.active
        if active is None or active.active is None or not self.exists(name):
            return False
        return (name or self.first) in active.active.image.partitions

    def elect_leader(self, kind: str, desired: int = NO_LEADER, name: str = "") -> bool:
        """See `ControlPlane.elect_leader`. Kafka: QuorumController#electLeaders."""
        if not self._is_known(name):
            return False
        history, before = self.ledger.history, self.ledger.history.forced
        history.forced = before or kind in FORCED

        def answer(error: str, _: object) -> None:
            if error:
                history.forced = before

        found = self._request(lambda active: (active.elect(name or self.first, kind, desired),), answer)
        succeeded = found == (NONE,)
        if not succeeded:
            history.forced = before
        return succeeded

    def reassign(self, replicas: tuple[int, ...], name: str = "") -> bool:
        """See `ControlPlane.reassign`. Kafka: QuorumController#alterPartitionReassignments."""
        return self._is_known(name) and self._request(
            lambda active: (active.reassign(name or self.first, replicas),)
        ) == (NONE,)

    def cancel_reassignment(self, name: str = "") -> bool:
        """See `ControlPlane.cancel_reassignment`: unclean if no electable replica is in the resulting ISR."""
        if not self._is_known(name):
            return False
        before = candidates(self.state_of(name))
        if self._request(lambda active: (active.cancel_reassignment(name or self.first),)) != (NONE,):
            return False
        active = self.active
        if active is not None and active.active is not None:
            after = active.active.image.partitions[name or self.first].isr
            if after and set(before).isdisjoint(after):
                self.recorder.of(name).record(steps.Fact(steps.UNCLEAN_ELECTION, after[0]))
        return True

    def place(self, first: int, count: int, replication_factor: int) -> list[tuple[int, ...]]:
        """See `ControlPlane.place`: none before the first topic is created."""
        active = self.active
        if not self._is_known("") or active is None or active.active is None:
            return []
        _, found = active.active.place(self._in_order, first, count, replication_factor)
        return found

    def create_partitions(self, setups: Sequence[PartitionSetup]) -> None:
        """See `ControlPlane.create_partitions`. Kafka: QuorumController#createTopics."""
        super().create_partitions(setups)
        self._request(lambda active: active.create_topic({setup.name: setup.replicas for setup in setups}))

    def delete_topic(self, names: tuple[str, ...]) -> bool:
        """See `ControlPlane.delete_topic`. Kafka: QuorumController#deleteTopics."""
        return self._request(lambda active: (active.delete_topic(names),)) == (NONE,)

    def unregister(self, broker: int) -> bool:
        """See `ControlPlane.unregister`. Kafka: QuorumController#unregisterBroker."""
        if self.state.partition_epoch < 0:
            return False
        return self._request(lambda active: (active.unregister(broker),)) == (NONE,)

    def set_config(self, key: str, value: Value) -> None:
        """See `ControlPlane.set_config`. Without a successful answer nobody knows whether the change takes effect: a
        controller that is deposed answers NOT_CONTROLLER, and the next one may commit the record.

        Kafka: QuorumController#incrementalAlterConfigs.
        """
        if self.active is None:
            return
        self.acknowledged.pop(key, None)

        def answer(error: str, result: object) -> None:
            if not error and not result:
                self.acknowledged[key] = value

        self._request(lambda active: active.set(key, value), answer)
        if key == MIN_ISR:
            self.set_min_isr(int(value))

    def settings_in_force(self, name: str) -> dict[str, Value]:
        state, active = self.state_of(name), self.active
        if active is None or active.active is None or not isinstance(state, PartitionRegistration):
            return {}
        active.end_idle()
        if active.controller.waits:  # Its state is tentative.
            return {}
        return active.active.settings_in_force(state)

    def settings_arrived(self, broker: int, broker_epoch: int, received: int) -> bool:  # noqa: ARG002 - for ZooKeeper
        return received >= self.ledger.configured_at
