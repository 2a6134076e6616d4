"""The control plane as a cluster sees it: where leader, ISR and registrations are persisted, and what faults do to it.

There are two: `sim.hosts.zookeeper` with the controllers that are elected in brokers, and
`sim.hosts.controller_quorum`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sim.config import Value
from sim.environment.elision import SessionKeeper
from sim.history import steps
from sim.history.recorder import Recorder
from sim.kernel.scheduler import Kernel
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import MIN_ISR
from sim.protocol.kraft.partition_change_builder import DESIGNATED, UNCLEAN
from sim.protocol.kraft.replication_control_manager import LONGEST_AGGRESSIVE, LONGEST_BALANCED
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.replica.partition import NO_LEADER

if TYPE_CHECKING:
    from sim.hosts.broker import Broker, Startup

CONTROL: Final = 0
"""Node id of the control plane: ZooKeeper, or the active controller of a quorum."""
ELECTIONS: Final = {
    "longest-log-balanced": LONGEST_BALANCED,
    "longest-log-aggressive": LONGEST_AGGRESSIVE,
    "unclean": UNCLEAN,
    "designated": DESIGNATED,
}
"""What an administrator may ask for where there is no leader, as scenario files call it; plans hold places in it."""


@dataclass(slots=True)
class Setup:
    """What a control plane is made with.

    Attributes:
        topic: the partition.
        replicas: its assignment, the preferred leader first.
        brokers: how many brokers there are; when all are registered (in KRaft: unfenced), an administrator creates the
            topic.
        decide: the controllers' rules.
        config: full configuration of the cluster.
        kernel: time and timers.
        recorder: where what is persisted is noted.
    """

    topic: str
    replicas: tuple[int, ...]
    brokers: int
    decide: Decisions
    config: Mapping[str, Value]
    kernel: Kernel
    recorder: Recorder


class ControlPlane(SessionKeeper):
    """See the module.

    Args:
        setup: what it is made with.

    Attributes:
        session_us: after which a silent broker's session ends.
        state: how things stand for the partition; partition epoch -1 before the topic is created, leader epoch -1
            before there was a leader.
        controller: the broker whose seat the controller's is; 0 or less if it is no broker's.
        changed: called after each decision and registration.
        ended: called with the broker when a session has ended.
    """

    state: LeaderAndIsr
    controller = 0
    session_us: int

    def __init__(self, setup: Setup) -> None:
        super().__init__(CONTROL)
        min_isr = setup.config[MIN_ISR]
        assert isinstance(min_isr, int)
        self._min_isr = min_isr
        self._topic = setup.topic
        self._brokers = setup.brokers
        self._kernel = setup.kernel
        self._recorder = setup.recorder
        self.reached = setup.recorder.coverage.reached
        self.changed: Callable[[], None] | None = None
        self.ended: Callable[[int], None] | None = None
        self.state = LeaderAndIsr(setup.topic, NO_LEADER, -1, setup.replicas, -1, setup.replicas)
        self._recorder.record(steps.Isr(setup.replicas, -1))
        self.decided()

    def broker(self, startup: Startup) -> Broker:
        """A broker's process of the kind that works with it."""
        raise NotImplementedError

    def decided(self) -> None:
        """`state` is another one, or ``min.insync.replicas``: tell whoever keeps account of that."""
        self._recorder.record(steps.Decided(self.state, min(self._min_isr, len(self.state.replicas))))

    def min_isr_changed(self, min_isr: int) -> None:
        """``min.insync.replicas`` has another value."""
        self._min_isr = min_isr
        self.decided()

    # Faults.

    def expire(self, broker: int) -> bool:
        """End a session though its broker lives, which hears of it; False if there is none."""
        raise NotImplementedError

    def forget(self, broker: int) -> bool:
        """End a session, and do not say so; False if there is none."""
        raise NotImplementedError

    def pause_controller(self, broker: int, pause: Callable[[int], bool]) -> bool:
        """The active controller stands still; False while there is none.

        Args:
            broker: whose seat the controller's is; 0 or less if it is no broker's.
            pause: lets the process of a broker stand still.
        """
        return broker > 0 and pause(broker)

    def closed(self, broker: int, broker_epoch: int) -> None:
        """A broker that has stopped in a controlled way closes its session."""
        raise NotImplementedError

    def fail_over(self) -> bool:
        """Another controller is to be found; False if there is none now."""
        raise NotImplementedError

    def touch(self) -> None:
        """It stood still and works again."""
        raise NotImplementedError

    def holds(self, broker: int) -> bool:
        """Whether a session of that broker is open."""
        raise NotImplementedError

    @property
    def waits_for_operator(self) -> bool:
        """Whether there is no leader, and by the rules there will be none until an administrator decides."""
        return False

    def unsettled_brokers(self, brokers: Iterable[int], running: Mapping[int, Broker]) -> str:  # noqa: ARG002
        """Which brokers have yet to come to where it is, in words; "" if none.

        Args:
            brokers: all of them.
            running: the processes that run.
        """
        return ""

    def unsettled_work(self, leader: Broker | None, *, writes_answered: bool) -> str:  # noqa: ARG002 - for a quorum
        """What leader and clients have yet to finish with it, in words; "" if nothing."""
        return ""

    @property
    def eligible(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """ELR and last known ELR; None where there is none."""
        return None

    @property
    def reassignment(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Replicas that the reassignment under way adds, and those that it removes; both empty if there is none."""
        return (), ()

    # What an administrator does here.

    def prefer(self) -> bool:
        """Ask for a preferred election; False while there is nobody to hear it."""
        raise NotImplementedError

    def elect_leader(self, kind: str, desired: int = NO_LEADER) -> bool:  # noqa: ARG002 - for a quorum
        """Ask for an election of a kind; False while nobody hears it, or if it elects nobody."""
        return False

    def lag(self, broker: int, by_us: int) -> bool:  # noqa: ARG002 - for a quorum
        """A broker hears so much later of what is committed; what is negative takes that back. False if none reads."""
        return False

    def reassign(self, replicas: tuple[int, ...]) -> bool:
        """Ask for another assignment; False if it is in place, or another one is asked for already."""
        raise NotImplementedError

    def cancel_reassignment(self) -> bool:
        """Ask for the former assignment back; False if no reassignment is under way, or it cannot be cancelled."""
        return False

    def set_config(self, key: str, value: Value) -> None:
        """Change the dynamic configuration."""
        raise NotImplementedError

    # What a script does here.

    def decide(self, leader: int, isr: tuple[int, ...]) -> None:
        """A script decides who leads, and what the ISR is; only where it has the controller's seat."""
        raise NotImplementedError

    def release(self) -> None:
        """A script has ended: let controllers decide from now on. They do so always, where there is no script."""
