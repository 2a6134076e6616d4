"""The control plane as a cluster sees it: persists leader, ISR and registrations, and offers its faults.

There are two implementations: `sim.hosts.zookeeper`, with controllers elected among brokers, and
`sim.hosts.controller_quorum`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sim.config import Value
from sim.environment.elision import ElidingBroker, SessionKeeper
from sim.history import steps
from sim.history.recorder import Recorder
from sim.history.steps.quorum import FIRST_CONTROLLER as FIRST_CONTROLLER
from sim.kernel.scheduler import Kernel
from sim.kernel.streams import Stream
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import MIN_ISR
from sim.protocol.kraft.partition_change_builder import DESIGNATED, UNCLEAN
from sim.protocol.kraft.replication_control_manager import LONGEST_AGGRESSIVE, LONGEST_BALANCED
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.replica.partition import NO_LEADER

CONTROL: Final = 0
"""Node id of the control plane: ZooKeeper, or the active controller of a quorum."""
CONTROLLERS: Final = (1, 3, 5)
"""How many of them a quorum may have."""
ELECTIONS: Final = {
    "longest-log-balanced": LONGEST_BALANCED,
    "longest-log-aggressive": LONGEST_AGGRESSIVE,
    "unclean": UNCLEAN,
    "designated": DESIGNATED,
}
"""Elections to request without a leader, by their names in scenario files; plans hold indices into it."""


@dataclass(slots=True)
class PartitionSetup:
    """A partition to create.

    Attributes:
        replicas: its assignment, the preferred leader first.
        min_isr: ``min.insync.replicas`` of its topic; None: that of the cluster.
        recorder: records its steps.
    """

    name: str
    replicas: tuple[int, ...]
    min_isr: int | None
    recorder: Recorder


@dataclass(slots=True)
class ControlPlaneSetup:
    """Arguments of a control plane.

    Attributes:
        partitions: what names no partition is about the first of them.
        brokers: number of brokers; when all are registered (in KRaft: unfenced), an administrator creates the topic.
        in_order: all brokers, in the order in which replicas are placed.
        min_isrs: ``min.insync.replicas`` of partitions whose topics have their own; later ones are added to it.
        expiry_ranks: broker -> its rank among sessions that have expired when a KRaft controller checks them.
        decide: the controllers' rules.
        config: full configuration of the cluster.
        stream: random numbers of controllers that are processes.
        controllers: number of these; 0: the quorum is one node that loses nothing.
        dynamic_voters: whether the quorum begins with kraft.version 1, so that its voters can change.
    """

    partitions: Sequence[PartitionSetup]
    brokers: int
    decide: Decisions
    config: Mapping[str, Value]
    kernel: Kernel
    recorder: Recorder
    in_order: tuple[int, ...]
    min_isrs: dict[str, int]
    expiry_ranks: Mapping[int, int]
    stream: Stream
    controllers: int = 0
    dynamic_voters: bool = False


class ControlPlane(SessionKeeper):
    """Base of both control planes; see the module.

    Attributes:
        states: the state of each partition, by name; partition epoch -1 before the topic is created, leader epoch -1
            before the first leader.
        setups: how each partition was created, by name.
        first: the first partition that exists, which what names none is about.
        acknowledged: the settings that were changed, with the value that was acknowledged last.
        changed: called after each decision and registration.
        ended: called with the broker after its session has ended.
        deletions: topics that are to be deleted, and still there; a quorum deletes topics at once.
        gone: called with each of them when it is deleted.
    """

    session_us: int

    def __init__(self, setup: ControlPlaneSetup) -> None:
        super().__init__(CONTROL)
        min_isr = setup.config[MIN_ISR]
        assert isinstance(min_isr, int)
        self._min_isr = min_isr
        self.acknowledged: dict[str, Value] = {}
        self._brokers = setup.brokers
        self.kernel = setup.kernel
        self.recorder = setup.recorder
        self.reached = setup.recorder.coverage.reached
        self.changed: Callable[[], None] | None = None
        self.ended: Callable[[int], None] | None = None
        self.deletions: dict[str, None] = {}
        self.gone: Callable[[str], None] | None = None
        self.states: dict[str, LeaderAndIsr] = {}
        self.setups: dict[str, PartitionSetup] = {}
        self._forgotten: dict[str, LeaderAndIsr] = {}
        self.first = setup.partitions[0].name
        for partition in setup.partitions:
            self.note_partition(partition)

    @property
    def controller(self) -> int:
        """The broker that is the controller; 0 or less if it is not a broker."""
        return 0

    def note_partition(self, setup: PartitionSetup) -> None:
        """Note a partition before it is created."""
        name, replicas = setup.name, setup.replicas
        self.setups[name] = setup
        self.states[name] = LeaderAndIsr(name, NO_LEADER, -1, replicas, -1, replicas)
        setup.recorder.record(steps.Isr(replicas, -1))
        self.record_state(name)

    def forget(self, name: str) -> None:
        """Forget a partition, because its topic was deleted; another one exists."""
        del self.setups[name]
        self._forgotten[name] = self.states.pop(name)
        if name == self.first:
            self.first = next(iter(self.states))

    @property
    def state(self) -> LeaderAndIsr:
        """The state of the first partition."""
        return self.states[self.first]

    def exists(self, name: str) -> bool:
        """Whether there is such a partition; no name stands for the first."""
        return not name or name in self.states

    def state_of(self, name: str) -> LeaderAndIsr:
        """The state of a partition; that of the first if there is none of that name."""
        return self.states.get(name) or self.states[self.first]

    def last_state_of(self, name: str) -> LeaderAndIsr:
        """The state of a partition, of a deleted one the last; without replicas before its creation. For observers."""
        state = self.states.get(name) or self._forgotten.get(name)
        return LeaderAndIsr(name, NO_LEADER, -1, (), -1, ()) if state is None else state

    def min_isr_of(self, name: str) -> int:
        """``min.insync.replicas`` of a partition, at most its number of replicas."""
        one = self.setups.get(name)
        min_isr = self._min_isr if one is None or one.min_isr is None else one.min_isr
        return min(min_isr, len(self.state_of(name).replicas))

    def record_state(self, name: str) -> None:
        """Record that a partition's state or ``min.insync.replicas`` changed."""
        self.setups[name].recorder.record(steps.Decided(self.states[name], self.min_isr_of(name)))

    def set_min_isr(self, min_isr: int) -> None:
        """Handle a change of ``min.insync.replicas``."""
        self._min_isr = min_isr
        for name, setup in self.setups.items():
            if setup.min_isr is None:
                self.record_state(name)

    # Faults.

    def expire_session(self, broker: int) -> bool:
        """Expire a live broker's session and notify the broker; False if there is none."""
        raise NotImplementedError

    def expire_silently(self, broker: int) -> bool:
        """Expire a session without notifying the broker; False if there is none."""
        raise NotImplementedError

    def pause_controller(self, broker: int, pause: Callable[[int], bool]) -> bool:
        """Pause the active controller, which is this broker if it is above 0; False while there is none."""
        return broker > 0 and pause(broker)

    def close_session(self, broker: int, broker_epoch: int) -> None:
        """Close the session of a broker after its controlled shutdown."""
        raise NotImplementedError

    def fail_over(self) -> bool:
        """Make the active controller resign; False if there is none."""
        raise NotImplementedError

    def renew_sessions(self) -> None:
        """Renew sessions after a pause of the control plane."""
        raise NotImplementedError

    def has_session(self, broker: int) -> bool:
        """Whether the broker has an open session."""
        raise NotImplementedError

    def waits_for_operator(self, state: LeaderAndIsr, offline: Sequence[int]) -> bool:  # noqa: ARG002 - for a quorum
        """Whether a partition has no leader, and the rules elect none until an administrator intervenes; `offline` are
        the replicas whose log directories were not repaired.
        """
        return False

    def unsettled_brokers(self, brokers: Iterable[int], running: Mapping[int, ElidingBroker]) -> str:  # noqa: ARG002
        """A description of the brokers that lag behind its state; "" if none."""
        return ""

    def unsettled_work(self, state: LeaderAndIsr, *, changes_isr: bool, writes_answered: bool) -> str:  # noqa: ARG002 - for a quorum
        """A description of work that a partition's leader and clients have pending with it; "" if none. `changes_isr`
        is whether an ISR change of the leader is pending.
        """
        return ""

    def eligible(self, state: LeaderAndIsr) -> tuple[tuple[int, ...], tuple[int, ...]] | None:  # noqa: ARG002
        """ELR and last known ELR of a partition; None if the ELR is not supported."""
        return None

    def reassignment(self, state: LeaderAndIsr) -> tuple[tuple[int, ...], tuple[int, ...]]:  # noqa: ARG002
        """Replicas that a partition's current reassignment adds, and those that it removes; both empty without one."""
        return (), ()

    # Operations of an administrator.

    def elect_preferred(self, name: str = "") -> bool:
        """Request a preferred election of a partition, the first by default; False without an active controller."""
        raise NotImplementedError

    def elect_leader(self, kind: str, desired: int = NO_LEADER, name: str = "") -> bool:  # noqa: ARG002 - for a quorum
        """Request an election of a kind for a partition; False without an active controller, or without a result."""
        return False

    def delay_metadata(self, broker: int, by_us: int) -> bool:  # noqa: ARG002 - for a quorum
        """Deliver committed records to a broker `by_us` later; a negative value removes a delay. False if brokers do
        not replay a log.
        """
        return False

    @property
    def is_quorum(self) -> bool:
        """Whether it is a KRaft quorum."""
        return False

    def has_elr_feature(self) -> bool:
        """Whether the release has feature ``eligible.leader.replicas.version``."""
        return False

    def unregister(self, broker: int) -> bool:  # noqa: ARG002 - for a quorum
        """Unregister a broker; False without an active controller, or if the broker is not registered."""
        return False

    def reassign(self, replicas: tuple[int, ...], name: str = "") -> bool:
        """Request a reassignment of a partition; False if the assignment is in place, or another one in progress."""
        raise NotImplementedError

    def cancel_reassignment(self, name: str = "") -> bool:  # noqa: ARG002 - for a quorum
        """Cancel the reassignment of a partition; False if none is in progress, or it cannot be cancelled."""
        return False

    def place(self, first: int, count: int, replication_factor: int) -> list[tuple[int, ...]]:  # noqa: ARG002
        """Assignments for so many new partitions, which begin at the `first`-th broker; none without an active
        controller or an active broker.
        """
        return []

    def create_partitions(self, setups: Sequence[PartitionSetup]) -> None:
        """Create partitions with assignments of `place`. Here they are noted, and then each control plane decides."""
        for setup in setups:
            self.note_partition(setup)
            min_isr = self._min_isr if setup.min_isr is None else setup.min_isr
            setup.recorder.record(steps.MinIsr(min(min_isr, len(setup.replicas))))

    def delete_topic(self, names: tuple[str, ...]) -> bool:  # noqa: ARG002 - for a quorum
        """Delete a topic with these partitions; False without an active controller."""
        return False

    def set_config(self, key: str, value: Value) -> None:
        """Change the dynamic configuration."""
        raise NotImplementedError

    # Settings in force, for observers.

    def changed_settings(self, name: str) -> dict[str, Value]:
        """The settings of `acknowledged` that apply to a partition."""
        one = self.setups.get(name)
        has_own = one is not None and one.min_isr is not None
        return {key: value for key, value in self.acknowledged.items() if not (has_own and key == MIN_ISR)}

    def settings_in_force(self, name: str) -> dict[str, Value]:  # noqa: ARG002 - for a quorum
        """The settings that the active controller of a quorum uses for a partition."""
        return {}

    def settings_arrived(self, broker: int, broker_epoch: int, received: int) -> bool:
        """Whether the last change of a setting has reached a broker with this broker epoch, which has replayed
        `received` metadata records, or handled so many watch events of its session.
        """
        raise NotImplementedError

    # Operations of a script.

    def decide(self, leader: int, isr: tuple[int, ...]) -> None:
        """Persist a script's decision on leader and ISR; only while the script replaces the controller."""
        raise NotImplementedError

    def release(self) -> None:
        """Let controllers decide from now on, because the script has ended; a no-op without a script."""
