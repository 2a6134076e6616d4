"""What a leader knows of its followers: how far their logs reach, whether they lag, and whom the HW waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.protocol.messages import NO_BROKER_EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim.protocol.decisions import Decisions
    from sim.protocol.replica.isr import PartitionState

UNKNOWN_LEO: Final = -1
NEVER_US: Final = (1 << 50) - (1 << 62)
"""Before all times, and by less than 62 bits: compiled code reckons with more in objects."""


class FollowerState:
    """What a leader knows of a follower. Kafka: Replica, cluster.ReplicaState (3.9), replica.ReplicaState (4.1-4.3).

    Attributes:
        broker: its id.
        broker_epoch: of the registration that sent its last fetch, -1 if unknown (KIP-903).
        leo: its LEO as its last fetch showed it, `UNKNOWN_LEO` before the first in this epoch.
        caught_up_us: when it last had everything (lastCaughtUpTimeMs).
        fetch_us: time of its last fetch (lastFetchTimeMs).
        leader_leo_at_fetch: the leader's LEO at that time (lastFetchLeaderLogEndOffset).
        holds_hw: whether the HW waits for it: member of the ISR in memory, or of a larger one proposed (maximal ISR).
        in_isr: member of the ISR in memory.
    """

    __slots__ = (
        "broker",
        "broker_epoch",
        "caught_up_us",
        "fetch_us",
        "holds_hw",
        "in_isr",
        "leader_leo_at_fetch",
        "leo",
    )

    def __init__(self, broker: int, now_us: int, *, in_isr: bool) -> None:
        self.broker = broker
        self.broker_epoch = NO_BROKER_EPOCH
        self.leo = UNKNOWN_LEO
        self.caught_up_us = now_us if in_isr else NEVER_US
        self.fetch_us = NEVER_US
        self.leader_leo_at_fetch = UNKNOWN_LEO
        self.holds_hw = in_isr
        self.in_isr = in_isr

    def fetched(self, offset: int, leader_leo: int, broker_epoch: int, now_us: int) -> None:
        """It fetches at an offset, so it has everything below.

        A fetch that reaches the leader's LEO of the fetch before shows that it had caught up at that time (KIP-16).
        Kafka: Replica#updateFetchStateOrThrow (3.9-4.3), Replica#updateFetchState (2.6), Replica#updateLogReadResult
        (0.10.2-2.0).
        """
        if offset >= leader_leo:
            self.caught_up_us = now_us
        elif offset >= self.leader_leo_at_fetch >= 0:
            self.caught_up_us = max(self.caught_up_us, self.fetch_us)
        self.leader_leo_at_fetch = leader_leo
        self.fetch_us = now_us
        self.broker_epoch = broker_epoch
        self.leo = offset

    def refetched(self, at_us: int) -> None:
        """It fetched again at the leader's LEO, which has not moved, last at that time."""
        self.caught_up_us = self.fetch_us = at_us
        self.leader_leo_at_fetch = self.leo

    def forget_fetch(self) -> None:
        """Its last fetch was refused. Kafka: Replica#updateLogReadResult (0.10.2-2.0)."""
        self.leo = self.leader_leo_at_fetch = UNKNOWN_LEO
        self.fetch_us = NEVER_US

    def is_caught_up(self, leader_leo: int, now_us: int, lag_us: int) -> bool:
        """Whether it has everything, or had it not too long ago.

        Kafka: ReplicaState#isCaughtUp (3.9-4.3), Partition#isFollowerOutOfSync (2.6-4.3).
        """
        return self.leo == leader_leo or now_us - self.caught_up_us <= lag_us


class Followers:
    """The other replicas of a partition, as its leader knows them; none where the broker does not lead.

    Kafka: Partition#remoteReplicasMap (2.6-4.3), Partition#assignedReplicaMap (0.10.2), Partition#allReplicasMap
    (1.1-2.0).

    Args:
        lag_us: ``replica.lag.time.max.ms`` in us.
        decide: the leader's rules, of which ``isr_lag`` and ``lag_at_reelection`` decide.

    Attributes:
        states: by broker, in the order of the assignment.
        lag_us: see above.
    """

    __slots__ = ("_decide", "lag_us", "states")

    def __init__(self, lag_us: int, decide: Decisions) -> None:
        self.lag_us = lag_us
        self.states: dict[int, FollowerState] = {}
        self._decide = decide

    def begin_epoch(self, brokers: Iterable[int], isr: tuple[int, ...], leo: int, now_us: int, *, leads: bool) -> None:
        """A leader epoch begins, with the leader's LEO.

        Of followers that are known, as they are where this broker led before, LEO and broker epoch are kept; with rule
        ``lag_at_reelection=fetched`` all others count as having fetched now, too.
        Kafka: Replica#resetReplicaState (3.9-4.3), Replica#resetLastCaughtUpTime (0.10.2-2.6).
        """
        known = self.states
        self.states = {broker: FollowerState(broker, now_us, in_isr=broker in isr) for broker in brokers}
        for broker, follower in self.states.items():
            if not leads:
                continue
            follower.leader_leo_at_fetch = leo
            follower.fetch_us = now_us if follower.in_isr or self._decide.fetched_at_reelection.yes() else NEVER_US
            state = known.get(broker)
            if state is not None:
                follower.leo = state.leo
                follower.broker_epoch = state.broker_epoch

    def assign(self, brokers: Iterable[int], now_us: int) -> None:
        """The assignment changes under the same leader epoch. Kafka: Partition#updateAssignmentAndIsr (2.6-4.3)."""
        known = self.states
        self.states = {broker: known.get(broker) or FollowerState(broker, now_us, in_isr=False) for broker in brokers}

    def forget(self) -> None:
        """The broker leads no more."""
        self.states = {}

    def note_isr(self, state: PartitionState) -> None:
        """Note whom the HW waits for: with a change pending, the members of both ISRs.

        Kafka: cluster.PartitionState#maximalIsr (3.9-4.1), partition.PartitionState#maximalIsr (4.2-4.3).
        """
        isr, pending = state.isr, state.pending
        for broker, follower in self.states.items():
            follower.in_isr = broker in isr
            follower.holds_hw = follower.in_isr or broker in pending

    def out_of_sync(self, leo: int, now_us: int) -> tuple[int, ...]:
        """ISR members that miss something, and have missed something for longer than the lag allows.

        They are judged by the time at which they were last caught up (KIP-16). With rule ``isr_lag=time`` by that time
        alone.
        Kafka: Partition#getOutOfSyncReplicas.
        """
        by_time = self._decide.lags_by_time
        return tuple(
            state.broker
            for state in self.states.values()
            if state.in_isr and now_us - state.caught_up_us > self.lag_us and (state.leo != leo or by_time.yes())
        )

    def member_lacks(self, leo: int) -> bool:
        """Whether an ISR member misses something, however short its lag, or may lag without."""
        by_time = self._decide.lags_by_time
        return any(state.in_isr and (state.leo != leo or by_time.yes()) for state in self.states.values())

    def broker_epochs(self, isr: tuple[int, ...]) -> dict[int, int]:
        """Broker epochs of the followers in a proposed ISR, as an AlterPartition names them (KIP-903).

        That of each one's last fetch, -1 of those that have not fetched from this leader.
        Kafka: Partition#addBrokerEpochToIsr (3.9-4.3).
        """
        return {broker: state.broker_epoch for broker, state in self.states.items() if broker in isr}
