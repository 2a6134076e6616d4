"""A leader's view of its followers: their LEOs, whether they lag, and which of them the HW waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.protocol.messages import NO_BROKER_EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sim.protocol.decisions import Decisions
    from sim.protocol.replica.fetch_session import CachedPartition
    from sim.protocol.replica.isr import PartitionState

UNKNOWN_LEO: Final = -1
NEVER_US: Final = (1 << 50) - (1 << 62)
"""Before all times, yet within 62 bits: compiled code handles larger integers slowly."""


class FollowerState:
    """A leader's view of a follower. Kafka: Replica, cluster.ReplicaState (3.9), replica.ReplicaState (4.1-4.4).

    Attributes:
        broker: its id.
        broker_epoch: of the registration that sent its last fetch, -1 if unknown (KIP-903).
        leo: its LEO by its last fetch, `UNKNOWN_LEO` before the first in this epoch.
        caught_up_us: when it was last caught up (lastCaughtUpTimeMs).
        fetch_us: time of its last fetch (lastFetchTimeMs).
        leader_leo_at_fetch: the leader's LEO at that time (lastFetchLeaderLogEndOffset).
        in_maximal_isr: whether the HW waits for it: it is in the ISR in memory, or in a larger proposed one.
        in_isr: whether it is in the ISR in memory.
    """

    __slots__ = (
        "broker",
        "broker_epoch",
        "caught_up_us",
        "fetch_us",
        "in_isr",
        "in_maximal_isr",
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
        self.in_maximal_isr = in_isr
        self.in_isr = in_isr

    def fetched(self, offset: int, leader_leo: int, broker_epoch: int, now_us: int) -> None:
        """Note a fetch at an offset, which shows that the follower has everything below.

        A fetch at or above the leader's LEO at the previous fetch shows that the follower had caught up at that time
        (KIP-16).
        Kafka: Replica#updateFetchStateOrThrow (3.9-4.4), Replica#updateFetchState (2.6), Replica#updateLogReadResult
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

    def note_elided_fetches(self, at_us: int) -> None:
        """Account for elided fetches at the unchanged LEO of the leader; `at_us` is the last one's time."""
        self.caught_up_us = self.fetch_us = at_us
        self.leader_leo_at_fetch = self.leo

    def forget_fetch(self) -> None:
        """Note that its last fetch was refused. Kafka: Replica#updateLogReadResult (0.10.2-2.0)."""
        self.leo = self.leader_leo_at_fetch = UNKNOWN_LEO
        self.fetch_us = NEVER_US

    def is_caught_up(self, leader_leo: int, now_us: int, lag_us: int) -> bool:
        """Whether it has everything, or had within the allowed lag.

        Kafka: ReplicaState#isCaughtUp (3.9-4.4), Partition#isFollowerOutOfSync (2.6-4.4).
        """
        return self.leo == leader_leo or now_us - self.caught_up_us <= lag_us


class Followers:
    """The followers of a partition as its leader sees them; empty if the broker does not lead.

    Kafka: Partition#remoteReplicasMap (2.6-4.4), Partition#assignedReplicaMap (0.10.2), Partition#allReplicasMap
    (1.1-2.0).

    Args:
        lag_us: ``replica.lag.time.max.ms`` in us.
        decide: the leader's rules, of which ``isr_lag`` and ``lag_at_reelection`` apply.

    Attributes:
        states: by broker, in the order of the assignment.
        lag_us: see above.
        cached: the partition's entries in their fetch sessions.
    """

    __slots__ = ("_decide", "_former", "cached", "lag_us", "states")

    def __init__(self, lag_us: int, decide: Decisions) -> None:
        self.lag_us = lag_us
        self.states: dict[int, FollowerState] = {}
        self.cached: list[CachedPartition] = []
        self._decide = decide
        self._former: dict[int, FollowerState] = {}
        """The followers when the broker last lost leadership, for a mutant."""

    def note_change(self) -> None:
        """Note a change that may concern a follower's next fetch: of log, HW, leadership, ISR or followers. Called
        before followers or their states change.
        """
        for entry in self.cached:
            entry.session.note_change(entry.place)

    def note_fetch(self, state: FollowerState, offset: int, leader_leo: int, broker_epoch: int, now_us: int) -> None:
        """`FollowerState.fetched`, under ``caught_up``. The HW may advance then, which depends on the times of other
        followers.

        Kafka: Replica#updateLogReadResult (0.10.2-2.0).
        """
        if self.cached:
            self.note_change()
        had_all = leader_leo > offset >= state.leader_leo_at_fetch >= 0 and state.fetch_us > state.caught_up_us
        if had_all and not self._decide.counts_previous_fetch.yes():
            state.leader_leo_at_fetch = UNKNOWN_LEO
        state.fetched(offset, leader_leo, broker_epoch, now_us)

    def forget_fetch(self, state: FollowerState) -> None:
        """`FollowerState.forget_fetch`."""
        self.note_change()
        state.forget_fetch()

    def begin_epoch(self, brokers: Iterable[int], isr: tuple[int, ...], leo: int, now_us: int, *, leads: bool) -> None:
        """Begin a leader epoch, with the leader's LEO.

        With `leads` (this broker led before), known followers keep LEO and broker epoch; with rule
        ``lag_at_reelection=fetched`` all others count as having fetched now.
        Kafka: Replica#resetReplicaState (3.9-4.4), Replica#resetLastCaughtUpTime (0.10.2-2.6).
        """
        self.note_change()
        known = self.states
        self.states = {broker: FollowerState(broker, now_us, in_isr=broker in isr) for broker in brokers}
        self._keep_former(isr, leads=leads)
        if not leads:
            return
        for broker, follower in self.states.items():
            follower.leader_leo_at_fetch = leo
            follower.fetch_us = now_us if follower.in_isr or self._decide.fetched_at_reelection.yes() else NEVER_US
            state = known.get(broker)
            if state is not None:
                follower.leo = state.leo
                follower.broker_epoch = state.broker_epoch

    def _keep_former(self, isr: tuple[int, ...], *, leads: bool) -> None:
        """Begin with what was known of the followers when the broker led before, if a mutant does so."""
        mutant = self._decide.mutants.leo_from_earlier_leadership
        mutant.took = True
        if leads:
            return
        for broker, follower in self.states.items():
            former = self._former.get(broker)
            if former is None or former.leo == UNKNOWN_LEO:
                continue
            if mutant.differs(broker, former.leo if broker in isr else 0):  # The HW waits for members only.
                follower.leo = former.leo
                follower.broker_epoch = former.broker_epoch

    def assign(self, brokers: Iterable[int], now_us: int) -> None:
        """Change the assignment within a leader epoch. Kafka: Partition#updateAssignmentAndIsr (2.6-4.4)."""
        self.note_change()
        known = self.states
        self.states = {broker: known.get(broker) or FollowerState(broker, now_us, in_isr=False) for broker in brokers}

    def forget(self) -> None:
        """Clear, because the broker lost leadership."""
        self.note_change()
        self._former = self.states
        self.states = {}

    def note_isr(self, state: PartitionState) -> None:
        """Note the followers that the HW waits for: with a pending change, the members of both ISRs.

        Kafka: cluster.PartitionState#maximalIsr (3.9-4.1), partition.PartitionState#maximalIsr (4.2-4.4).
        """
        self.note_change()
        isr, pending = state.isr, state.pending
        for broker, follower in self.states.items():
            follower.in_isr = broker in isr
            follower.in_maximal_isr = follower.in_isr or broker in pending
        self._narrow_maximal_isr(pending)

    def _narrow_maximal_isr(self, pending: tuple[int, ...]) -> None:
        """Do not wait for joining members, or for leaving ones, if a mutant does so."""
        mutants = self._decide.mutants
        joining, leaving = mutants.hw_without_joining_members, mutants.hw_without_leaving_members
        joining.took = leaving.took = True
        if not pending:
            return
        for broker, follower in self.states.items():
            if follower.in_isr != (broker in pending):
                mutant = leaving if follower.in_isr else joining
                follower.in_maximal_isr = not mutant.differs(broker)

    def out_of_sync(self, leo: int, now_us: int) -> tuple[int, ...]:
        """ISR members that lack records and have not been caught up for longer than the allowed lag.

        This compares the time at which they were last caught up (KIP-16); with rule ``isr_lag=time`` that alone.
        Kafka: Partition#getOutOfSyncReplicas.
        """
        for entry in self.cached:
            entry.session.note_times(entry.place)
        by_time = self._decide.lags_by_time
        return tuple(
            state.broker
            for state in self.states.values()
            if state.in_isr and now_us - state.caught_up_us > self.lag_us and (state.leo != leo or by_time.yes())
        )

    def any_member_behind(self, leo: int) -> bool:
        """Whether an ISR member lacks records, even briefly, or may lag without lacking any."""
        by_time = self._decide.lags_by_time
        return any(state.in_isr and (state.leo != leo or by_time.yes()) for state in self.states.values())

    def broker_epochs(self, isr: tuple[int, ...]) -> dict[int, int]:
        """Broker epochs of the followers in a proposed ISR, for AlterPartition (KIP-903).

        That of each follower's last fetch, -1 without one from this leader.
        Kafka: Partition#addBrokerEpochToIsr (3.9-4.4).
        """
        return {broker: state.broker_epoch for broker, state in self.states.items() if broker in isr}
