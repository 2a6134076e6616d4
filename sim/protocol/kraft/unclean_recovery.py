"""Unclean recovery: without a clean candidate, elect the replica with the longest log (KIP-966; no release).

The controller asks replicas for the leader epoch of their last record and their LEO (GetReplicaLogInfo), and elects the
highest (epoch, LEO). ``unclean.recovery.strategy`` decides which responses it needs:

* ``Aggressive`` uses the responses that arrive within `WINDOW_US`, or the first one after that;
* ``Balanced`` needs the responses of all last known ELR members, so it begins once they are all unfenced, and uses
  those of other unfenced replicas within ``unclean.recovery.timeout.ms``. Without a last known ELR member it cannot
  recognise a complete log, so an administrator has to request it; then fenced members of ISR or ELR have to respond as
  well, that is, it waits for them as elections do;
* ``None`` leaves it to an administrator.

A response counts if its broker still has the registration it was sent under and is unfenced, and if it was sent under
the partition's current leader epoch. None of this is in the metadata log.
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
"""The "fixed amount of time" of `AGGRESSIVE`, for which KIP-966 gives no number: one heartbeat interval."""
RETRY_US: Final = 1_000_000
"""Back-off before a replica whose response is missing or outdated is asked again."""


class RecoveryHost(Protocol):
    """Callbacks to the controller's node."""

    def ask_log_info(self, broker: int, name: str) -> None:
        """Send GetReplicaLogInfo for a partition; `UncleanRecovery.on_log_info` receives the response."""

    def schedule_recovery_timeout(self, timer: int, after_us: int) -> None:
        """Call `UncleanRecovery.timed_out` with this number after that time, if the controller is active then."""

    def reached(self, probe: int) -> None:
        """A probe was reached (`sim.protocol.probes`)."""


class RecoveryController(Protocol):
    """Callbacks to the controller."""

    image: MetadataImage

    @property
    def unclean_enabled(self) -> bool:
        """``unclean.leader.election.enable``."""

    def min_isr(self, state: PartitionRegistration) -> int:
        """Effective ``min.insync.replicas``."""

    def config_value(self, key: str, default: Value) -> Value:
        """A configuration value."""

    def elect_longest(self, name: str, broker: int) -> None:
        """Elect the replica whose log is the longest."""


class Recovery:
    """A recovery in progress.

    Attributes:
        strategy: `BALANCED` or `AGGRESSIVE`.
        is_forced: an administrator requested it, so it runs until there is a leader.
        asked: broker epochs of the replicas that were asked.
        answers: the last response of each replica.
        is_due: its time limit has passed.
    """

    __slots__ = ("answers", "asked", "is_due", "is_forced", "name", "retry_set", "strategy")

    def __init__(self, name: str, strategy: str, *, is_forced: bool) -> None:
        self.name = name
        self.strategy = strategy
        self.is_forced = is_forced
        self.asked: dict[int, int] = {}
        self.answers: dict[int, GetReplicaLogInfoResponse] = {}
        self.is_due = False
        self.retry_set = False


class UncleanRecovery:
    """The recoveries of the active controller.

    With rule ``unclean_recovery=first-replies``, the first min ISR responses of any replicas are enough.

    Attributes:
        running: recoveries by partition.
        finished: number of recoveries that elected a leader (unclean_recovery_finished_count).
    """

    def __init__(self, controller: RecoveryController, host: RecoveryHost, *, takes_first: bool) -> None:
        self.running: dict[str, Recovery] = {}
        self.finished = 0
        self._controller = controller
        self._host = host
        self._takes_first = takes_first
        self._timers: dict[int, tuple[Recovery, bool]] = {}
        """Timer number -> (recovery, whether the timer is its time limit)."""
        self._next_timer = 0

    # Which recoveries are needed.

    @property
    def strategy(self) -> str:
        """``unclean.recovery.strategy``; if not set, unclean election means Aggressive, and without it Balanced."""
        chosen = str(self._controller.config_value(STRATEGY, "default"))
        if chosen != "default":
            return chosen
        return AGGRESSIVE if self._controller.unclean_enabled else BALANCED

    def needed_strategy(self, state: PartitionRegistration) -> str | None:
        """The strategy of the recovery needed now, or None (KIP-966, unclean recovery, the four steps)."""
        strategy = self.strategy
        active = self._controller.image.is_active
        candidates = state.isr or state.elr
        if state.leader != NO_LEADER or strategy == NONE or any(active(broker) for broker in candidates):
            return None
        if strategy == AGGRESSIVE:
            return AGGRESSIVE
        known = _last_known_members(state)
        ready = self._takes_first or (bool(known) and all(active(broker) for broker in known))
        return BALANCED if ready and not candidates else None

    @property
    def partitions_count(self) -> int:
        """Partitions in recovery, including those that wait for last known ELR members to be unfenced
        (unclean_recovery_partitions_count).
        """
        return len(self.running) + sum(
            state.name not in self.running and self.strategy == BALANCED and bool(_last_known_members(state))
            for state in self._without_candidates()
        )

    @property
    def manual_count(self) -> int:
        """Leaderless partitions that wait for an administrator (manual_leader_election_required_partition_count)."""
        return sum(
            state.name not in self.running and (self.strategy == NONE or not _last_known_members(state))
            for state in self._without_candidates()
        )

    def _without_candidates(self) -> list[PartitionRegistration]:
        states = self._controller.image.partitions.values()
        return [state for state in states if not (state.leader or state.isr or state.elr)]

    # Events.

    def update(self) -> None:
        """Start and stop recoveries after a metadata change."""
        for name in [name for name in self.running if name not in self._controller.image.partitions]:
            self._host.reached(probes.RECOVERY_DROPPED)
            del self.running[name]
        for state in list(self._controller.image.partitions.values()):
            recovery = self.running.get(state.name)
            strategy = self.needed_strategy(state)
            if recovery is not None and (state.leader != NO_LEADER or self._is_over(recovery, strategy)):
                self._host.reached(probes.RECOVERY_DROPPED)
                del self.running[state.name]
                recovery = None
            if recovery is None and strategy is not None:
                self._begin(state, strategy, is_forced=False)
            elif recovery is not None:
                self._advance(recovery, state)

    def _is_over(self, recovery: Recovery, strategy: str | None) -> bool:
        return not recovery.is_forced and strategy != recovery.strategy

    def force(self, state: PartitionRegistration, strategy: str) -> None:
        """Start the recovery of a leaderless partition that an administrator requested."""
        self.running.pop(state.name, None)
        self._begin(state, strategy, is_forced=True)

    def _begin(self, state: PartitionRegistration, strategy: str, *, is_forced: bool) -> None:
        self._host.reached(probes.RECOVERY_BEGINS)
        recovery = self.running[state.name] = Recovery(state.name, strategy, is_forced=is_forced)
        timeout_us = int(self._controller.config_value(TIMEOUT_MS, 300_000)) * 1_000
        self._set_timer(recovery, timeout_us if strategy == BALANCED else min(WINDOW_US, timeout_us), ends=True)
        self._advance(recovery, state)

    def _set_timer(self, recovery: Recovery, after_us: int, *, ends: bool) -> None:
        self._next_timer += 1
        self._timers[self._next_timer] = recovery, ends
        self._host.schedule_recovery_timeout(self._next_timer, after_us)

    def timed_out(self, timer: int) -> None:
        """See `RecoveryHost.schedule_recovery_timeout`."""
        recovery, ends = self._timers.pop(timer)
        if self.running.get(recovery.name) is not recovery:
            return
        state = self._controller.image.partitions[recovery.name]
        if ends:
            recovery.is_due = True
        else:
            recovery.retry_set = False
            valid = self._valid_answers(recovery, state)
            recovery.asked = {one: epoch for one, epoch in recovery.asked.items() if one in valid}
        self._advance(recovery, state)

    def on_log_info(self, info: GetReplicaLogInfoResponse) -> None:
        """Handle a replica's response."""
        recovery = self.running.get(info.request.name)
        if recovery is None:
            return
        state = self._controller.image.partitions[recovery.name]
        if self._is_valid(info, state):
            recovery.answers[info.request.broker] = info
            self._advance(recovery, state)
        else:
            self._host.reached(probes.RECOVERY_REPLY_STALE)

    def _is_valid(self, info: GetReplicaLogInfoResponse, state: PartitionRegistration) -> bool:
        image, broker = self._controller.image, info.request.broker
        return (
            image.is_active(broker)
            and image.brokers[broker].broker_epoch == info.broker_epoch
            and info.leader_epoch == state.leader_epoch
            and broker in state.replicas
        )

    def _valid_answers(self, recovery: Recovery, state: PartitionRegistration) -> dict[int, GetReplicaLogInfoResponse]:
        """The responses that count, in order of the replicas."""
        answers = recovery.answers
        return {
            replica: answers[replica]
            for replica in state.replicas
            if replica in answers and self._is_valid(answers[replica], state)
        }

    def _advance(self, recovery: Recovery, state: PartitionRegistration) -> None:
        """Ask replicas not asked yet; elect if there are enough responses."""
        image = self._controller.image
        active = [broker for broker in state.replicas if image.is_active(broker)]
        for broker in active:
            if recovery.asked.get(broker) != image.brokers[broker].broker_epoch:
                recovery.asked[broker] = image.brokers[broker].broker_epoch
                self._host.ask_log_info(broker, state.name)
        valid = self._valid_answers(recovery, state)
        if valid and self._is_enough(recovery, state, valid, active):
            longest = max(valid, key=lambda broker: (valid[broker].last_epoch, valid[broker].leo))
            del self.running[state.name]
            self.finished += 1
            self._host.reached(probes.RECOVERY_ELECTS)
            self._controller.elect_longest(state.name, longest)
        elif len(valid) < len(active) and not recovery.retry_set:
            recovery.retry_set = True
            self._set_timer(recovery, RETRY_US, ends=False)

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
        needed = (*(state.isr or state.elr), *_last_known_members(state))
        return all(one in valid for one in needed) and (recovery.is_due or len(valid) == len(active))


def _last_known_members(state: PartitionRegistration) -> tuple[int, ...]:
    """Last known ELR members that are still replicas."""
    return tuple(broker for broker in state.last_known_elr if broker in state.replicas)
