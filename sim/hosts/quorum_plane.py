"""What every metadata quorum has as a control plane, whether its controllers are one node or processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sim.hosts.control_plane import ControlPlane, ControlPlaneSetup
from sim.protocol.kraft.metadata import MetadataImage, PartitionRegistration
from sim.protocol.kraft.partition_change_builder import PREFERRED
from sim.protocol.kraft.quorum_controller import QuorumController
from sim.protocol.messages import LeaderAndIsr


class QuorumPlane(ControlPlane):
    """See the module."""

    def __init__(self, setup: ControlPlaneSetup) -> None:
        super().__init__(setup)
        self._decide = setup.decide
        self._in_order = setup.in_order

    def _judge(self) -> QuorumController:
        """The controller that knows what waits for an operator."""
        raise NotImplementedError

    def expire_session(self, broker: int) -> bool:
        """See `ControlPlane.expire_session`: the broker is fenced, and unfenced by its next heartbeat."""
        return self.expire_silently(broker)

    def close_session(self, broker: int, broker_epoch: int) -> None:
        """See `ControlPlane.close_session`: a no-op, since heartbeats have requested the shutdown."""

    def waits_for_operator(self, state: LeaderAndIsr, offline: Sequence[int]) -> bool:
        """See `ControlPlane.waits_for_operator`: no replica is electable, is the only last known leader (which needs
        ELR: PartitionChangeBuilder#canElectLastKnownLeader), or can be asked for its log.
        """
        if not isinstance(state, PartitionRegistration):
            return False
        judge = self._judge()
        electable = state.isr + state.elr
        recovery = judge.recovery
        if not electable and recovery is None and len(state.last_known_elr) == 1 and judge.tracks_elr(state):
            electable = state.last_known_elr
        if electable:
            return bool(offline) and all(broker in offline for broker in electable)
        return not state.leader and (recovery is None or recovery.manual_count > 0)

    def unsettled_work(self, state: LeaderAndIsr, *, changes_isr: bool, writes_answered: bool) -> str:
        found = []
        if changes_isr:
            found.append(f"broker {state.leader} waits for an ISR change")
        if isinstance(state, PartitionRegistration) and (state.adding or state.removing):
            found.append(f"a reassignment adds {list(state.adding)} and removes {list(state.removing)}")
        if not writes_answered:
            found.append("writes are not answered")
        return ", ".join(found)

    def eligible(self, state: LeaderAndIsr) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        return (state.elr, state.last_known_elr) if isinstance(state, PartitionRegistration) else None

    def reassignment(self, state: LeaderAndIsr) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (state.adding, state.removing) if isinstance(state, PartitionRegistration) else ((), ())

    def elect_preferred(self, name: str = "") -> bool:
        return self.elect_leader(PREFERRED, name=name)

    @property
    def is_quorum(self) -> bool:
        return True

    def has_elr_feature(self) -> bool:
        return self._decide.elr.yes()


def unsettled(image: MetadataImage, brokers: Iterable[int], behind: Sequence[int]) -> str:
    """The brokers that are fenced or shut down in an image, and those that are behind the metadata log; "" if none."""
    fenced = [broker for broker in brokers if not image.is_active(broker)]
    return f"fenced or shutting down: {fenced}, behind the metadata log: {behind}" if fenced or behind else ""
