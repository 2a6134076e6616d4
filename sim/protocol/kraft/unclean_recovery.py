"""Unclean recovery: when nobody can be elected cleanly, the replica with the longest log leads (KIP-966; no release).

The controller asks replicas for the leader epoch of their last record and for their LEO (GetReplicaLogInfo), and elects
the highest (epoch, LEO). Whose answers it needs is said by ``unclean.recovery.strategy``:

* ``Aggressive`` takes the answers that come within `WINDOW_US`, or the first one after that;
* ``Balanced`` needs those of all last known ELR members, so that it begins once they are all unfenced, and takes those
  that other unfenced replicas give within ``unclean.recovery.timeout.ms``. Without a last known ELR member, nothing
  tells a complete log from another: an administrator has to decide. If he wants it while members of ISR or ELR are
  fenced, they have to answer as well, that is, it waits for them as elections do;
* ``None`` leaves it to an administrator.

An answer counts while its broker has the registration that it names, and is unfenced, and if it was given under the
partition's present leader epoch. Nothing of this is in the metadata log.
"""

from __future__ import annotations

from typing import Final, Protocol

from sim.protocol import probes
from sim.protocol.kraft.metadata import MetadataImage, PartitionRegistration, Value
from sim.protocol.kraft.quorum_messages import GetReplicaLogInfoResponse
from sim.protocol.replica.partition import NO_LEADER

NONE: Final = "None"
BALANCED: Final = "Balanced"
AGGRESSIVE: Final = "Aggressive"
STRATEGY: Final = "unclean.recovery.strategy"
TIMEOUT_MS: Final = "unclean.recovery.timeout.ms"
WINDOW_US: Final = 2_000_000
"""The "fixed amount of time" of `AGGRESSIVE`, to which KIP-966 gives no number: one interval of heartbeats."""
RETRY_US: Final = 1_000_000
"""Until a replica is asked again whose answer did not come, or was too old."""


class RecoveryHost(Protocol):
    """What a recovery asks of the controller's node."""

    def ask_log_info(self, broker: int, name: str) -> None:
        """Send GetReplicaLogInfo for a partition; the answer goes to `UncleanRecovery.log_info`."""

    def recovery_due(self, timer: int, after_us: int) -> None:
        """Call `UncleanRecovery.timed_out` with this number after that time, if the controller is active then."""

    def reached(self, probe: int) -> None:
        """A probe was reached (`sim.protocol.probes`)."""


class Deciding(Protocol):
    """What a recovery asks of the controller."""

    image: MetadataImage

    @property
    def unclean_enabled(self) -> bool:
        """``unclean.leader.election.enable``."""

    def min_isr(self, state: PartitionRegistration) -> int:
        """Effective ``min.insync.replicas``."""

    def value(self, key: str, default: Value) -> Value:
        """A configuration value."""

    def elect_longest(self, name: str, broker: int) -> None:
        """Elect the replica whose log is the longest."""


class Recovery:
    """One that is under way.

    Attributes:
        name: the partition.
        strategy: `BALANCED` or `AGGRESSIVE`.
        is_forced: an administrator asked for it, so that it goes on until there is a leader.
        asked: broker epochs of the replicas that were asked.
        answers: the last one of each replica.
        is_due: its time is up.
        retries: a timer runs that asks again.
    """

    __slots__ = ("answers", "asked", "is_due", "is_forced", "name", "retries", "strategy")

    def __init__(self, name: str, strategy: str, *, is_forced: bool) -> None:
        self.name = name
        self.strategy = strategy
        self.is_forced = is_forced
        self.asked: dict[int, int] = {}
        self.answers: dict[int, GetReplicaLogInfoResponse] = {}
        self.is_due = False
        self.retries = False


class UncleanRecovery:
    """The recoveries of the active controller.

    Args:
        controller: that.
        host: its node.
        takes_first: rule ``unclean_recovery=first-replies``: as many answers as min ISR are enough, whoever gives them.

    Attributes:
        running: recoveries by partition.
        finished: how many have elected a leader (unclean_recovery_finished_count).
    """

    def __init__(self, controller: Deciding, host: RecoveryHost, *, takes_first: bool) -> None:
        self.running: dict[str, Recovery] = {}
        self.finished = 0
        self._controller = controller
        self._host = host
        self._takes_first = takes_first
        self._timers: dict[int, tuple[Recovery, bool]] = {}
        """By number: whose they are, and whether they end the waiting."""
        self._next_timer = 0

    # What is wanted.

    @property
    def strategy(self) -> str:
        """``unclean.recovery.strategy``; if not set, unclean election means Aggressive, and without it Balanced."""
        chosen = str(self._controller.value(STRATEGY, "default"))
        if chosen != "default":
            return chosen
        return AGGRESSIVE if self._controller.unclean_enabled else BALANCED

    def wanted(self, state: PartitionRegistration) -> str | None:
        """By which strategy a recovery is to run now, None if none is (KIP-966, unclean recovery, the four steps)."""
        strategy = self.strategy
        active = self._controller.image.is_active
        candidates = state.isr or state.elr
        if state.leader != NO_LEADER or strategy == NONE or any(active(broker) for broker in candidates):
            return None
        if strategy == AGGRESSIVE:
            return AGGRESSIVE
        known = _known(state)
        ready = self._takes_first or (bool(known) and all(active(broker) for broker in known))
        return BALANCED if ready and not candidates else None

    @property
    def partitions_count(self) -> int:
        """Partitions under recovery, those included that wait for last known ELR members to be unfenced
        (unclean_recovery_partitions_count).
        """
        return len(self.running) + sum(
            state.name not in self.running and self.strategy == BALANCED and bool(_known(state))
            for state in self._without_candidates()
        )

    @property
    def manual_count(self) -> int:
        """Leaderless partitions that wait for an administrator (manual_leader_election_required_partition_count)."""
        return sum(
            state.name not in self.running and (self.strategy == NONE or not _known(state))
            for state in self._without_candidates()
        )

    def _without_candidates(self) -> list[PartitionRegistration]:
        states = self._controller.image.partitions.values()
        return [state for state in states if not (state.leader or state.isr or state.elr)]

    # What happens.

    def look(self) -> None:
        """The metadata changed: begin what is wanted now, end what is wanted no more."""
        for state in list(self._controller.image.partitions.values()):
            recovery = self.running.get(state.name)
            strategy = self.wanted(state)
            if recovery is not None and (state.leader != NO_LEADER or self._is_over(recovery, strategy)):
                self._host.reached(probes.RECOVERY_DROPPED)
                del self.running[state.name]
                recovery = None
            if recovery is None and strategy is not None:
                self._begin(state, strategy, is_forced=False)
            elif recovery is not None:
                self._go_on(recovery, state)

    def _is_over(self, recovery: Recovery, strategy: str | None) -> bool:
        return not recovery.is_forced and strategy != recovery.strategy

    def force(self, state: PartitionRegistration, strategy: str) -> None:
        """An administrator wants the longest log of a leaderless partition."""
        self.running.pop(state.name, None)
        self._begin(state, strategy, is_forced=True)

    def _begin(self, state: PartitionRegistration, strategy: str, *, is_forced: bool) -> None:
        self._host.reached(probes.RECOVERY_BEGINS)
        recovery = self.running[state.name] = Recovery(state.name, strategy, is_forced=is_forced)
        timeout_us = int(self._controller.value(TIMEOUT_MS, 300_000)) * 1_000
        self._arm(recovery, timeout_us if strategy == BALANCED else min(WINDOW_US, timeout_us), ends=True)
        self._go_on(recovery, state)

    def _arm(self, recovery: Recovery, after_us: int, *, ends: bool) -> None:
        self._next_timer += 1
        self._timers[self._next_timer] = recovery, ends
        self._host.recovery_due(self._next_timer, after_us)

    def timed_out(self, timer: int) -> None:
        """See `RecoveryHost.recovery_due`."""
        recovery, ends = self._timers.pop(timer)
        if self.running.get(recovery.name) is not recovery:
            return
        state = self._controller.image.partitions[recovery.name]
        if ends:
            recovery.is_due = True
        else:
            recovery.retries = False
            valid = self._valid(recovery, state)
            recovery.asked = {one: epoch for one, epoch in recovery.asked.items() if one in valid}
        self._go_on(recovery, state)

    def log_info(self, info: GetReplicaLogInfoResponse) -> None:
        """A replica answers."""
        recovery = self.running.get(info.request.name)
        if recovery is None:
            return
        state = self._controller.image.partitions[recovery.name]
        if self._counts(info, state):
            recovery.answers[info.request.broker] = info
            self._go_on(recovery, state)
        else:
            self._host.reached(probes.RECOVERY_REPLY_STALE)

    def _counts(self, info: GetReplicaLogInfoResponse, state: PartitionRegistration) -> bool:
        image, broker = self._controller.image, info.request.broker
        return (
            image.is_active(broker)
            and image.brokers[broker].broker_epoch == info.broker_epoch
            and info.leader_epoch == state.leader_epoch
            and broker in state.replicas
        )

    def _valid(self, recovery: Recovery, state: PartitionRegistration) -> dict[int, GetReplicaLogInfoResponse]:
        """The answers that count now, in the order of the replicas."""
        answers = recovery.answers
        return {one: answers[one] for one in state.replicas if one in answers and self._counts(answers[one], state)}

    def _go_on(self, recovery: Recovery, state: PartitionRegistration) -> None:
        """Ask who was not asked yet; elect if there are answers enough."""
        image = self._controller.image
        active = [broker for broker in state.replicas if image.is_active(broker)]
        for broker in active:
            if recovery.asked.get(broker) != image.brokers[broker].broker_epoch:
                recovery.asked[broker] = image.brokers[broker].broker_epoch
                self._host.ask_log_info(broker, state.name)
        valid = self._valid(recovery, state)
        if valid and self._is_enough(recovery, state, valid, active):
            longest = max(valid, key=lambda broker: (valid[broker].last_epoch, valid[broker].leo))
            del self.running[state.name]
            self.finished += 1
            self._host.reached(probes.RECOVERY_ELECTS)
            self._controller.elect_longest(state.name, longest)
        elif len(valid) < len(active) and not recovery.retries:
            recovery.retries = True
            self._arm(recovery, RETRY_US, ends=False)

    def _is_enough(
        self,
        recovery: Recovery,
        state: PartitionRegistration,
        valid: dict[int, GetReplicaLogInfoResponse],
        active: list[int],
    ) -> bool:
        if self._takes_first:
            return len(valid) >= self._controller.min_isr(state)
        if recovery.strategy == AGGRESSIVE:
            return recovery.is_due or len(valid) == len(state.replicas)
        needed = (*(state.isr or state.elr), *_known(state))
        return all(one in valid for one in needed) and (recovery.is_due or len(valid) == len(active))


def _known(state: PartitionRegistration) -> tuple[int, ...]:
    """Last known ELR members that are replicas still."""
    return tuple(broker for broker in state.last_known_elr if broker in state.replicas)
