"""A consumer's position, and its validation against the leader's log.

KIP-320. Two holes exist in Kafka too: a response with an older epoch is accepted if its end offset is large enough, and
a log that was truncated and rewritten under an unchanged leader epoch is never validated.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sim.protocol.messages import NO_EPOCH
from sim.protocol.replica.partition import NO_LEADER

INITIALIZING: Final = "initializing"
"""No position yet: the committed offset has to be fetched."""
FETCHING: Final = "fetching"
AWAIT_RESET: Final = "await_reset"
"""No position: the leader has to be asked for the log's start or end."""
AWAIT_VALIDATION: Final = "await_validation"
"""The leader has to be asked where the epoch of the last record ended."""


class FetchPosition(NamedTuple):
    """A position. Kafka: SubscriptionState.FetchPosition (2.6-4.4).

    Attributes:
        offset: next offset to read.
        offset_epoch: leader epoch of the batch of the record before, `NO_EPOCH` if unknown.
        leader: the leader with which the position was set, `NO_LEADER` if unknown.
        leader_epoch: that leader's epoch, `NO_EPOCH` if unknown.
    """

    offset: int
    offset_epoch: int = NO_EPOCH
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH


class LogTruncation(NamedTuple):
    """The contents of a LogTruncationException.

    Kafka: LogTruncationException (2.6-4.4), SubscriptionState.LogTruncation (2.6-4.4).

    Attributes:
        position: the position before.
        divergent_offset: first offset known to differ from the records read, -1 if unknown.
        divergent_epoch: epoch that ends there in the leader's log, `NO_EPOCH` if unknown.
    """

    position: FetchPosition
    divergent_offset: int
    divergent_epoch: int


class ConsumerPosition:
    """The state machine; see `FetchPosition`. Kafka: SubscriptionState.TopicPartitionState.

    Attributes:
        state: `INITIALIZING`, `FETCHING`, `AWAIT_RESET` or `AWAIT_VALIDATION`.
        offset: -1 without a position.
        reset_strategy: ``earliest`` or ``latest`` in `AWAIT_RESET`, else empty.
        changes: how often what has to be asked for may have changed: each time, a request may be sent at once, although
            an earlier one has no response yet. Kafka: SubscriptionState.TopicPartitionState#nextRetryTimeMs (2.6-4.4).
    """

    __slots__ = ("_policy", "changes", "leader", "leader_epoch", "offset", "offset_epoch", "reset_strategy", "state")

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self.state = INITIALIZING
        self.reset_strategy = ""
        self.changes = 0
        self.offset = -1
        self.offset_epoch = NO_EPOCH
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH

    @property
    def position(self) -> FetchPosition | None:
        """The current position, or None. Kafka: SubscriptionState#position."""
        if self.offset < 0:
            return None
        return FetchPosition(self.offset, self.offset_epoch, self.leader, self.leader_epoch)

    def seek_validated(self, position: FetchPosition) -> None:
        """Set the position; it needs no validation. Kafka: SubscriptionState#seekValidated (2.6-4.4)."""
        self._place(position)
        self.state = FETCHING
        self.reset_strategy = ""

    def seek_unvalidated(self, position: FetchPosition) -> None:
        """Set the position; it has to be validated. Kafka: SubscriptionState#seekUnvalidated (2.6-4.4)."""
        self.seek_validated(position)
        self._validate()

    def leader_seen(self, leader: int, leader_epoch: int, *, can_validate: bool = True) -> bool:
        """Note the leader in metadata: a new leader or epoch requires validation of the position. Returns whether it
        awaits that.

        It is possible if consumer and leader support OffsetsForLeaderEpoch version 3 (2.3). Kafka:
        SubscriptionState#maybeValidatePositionForCurrentLeader (2.6-4.4).
        """
        if self.state == AWAIT_RESET or leader == NO_LEADER:
            return False
        if self.state != INITIALIZING and (
            not can_validate or leader != self.leader or leader_epoch != self.leader_epoch
        ):
            self.leader = leader
            self.leader_epoch = leader_epoch
            self.changes += 1
            self.state = FETCHING
            if can_validate:
                self._validate()
        return self.state == AWAIT_VALIDATION

    def consumed(self, offset: int, offset_epoch: int) -> None:
        """Advance past returned records: next offset, and epoch of the last batch. Kafka:
        SubscriptionState#position.
        """
        self.offset = offset
        self.offset_epoch = offset_epoch

    def complete_validation(self) -> None:
        """End validation: valid, or not checkable. Kafka: SubscriptionState#completeValidation (2.6-4.4)."""
        if self.offset >= 0:
            self.state = FETCHING

    def epoch_end(self, asked: FetchPosition | None, epoch: int, end_offset: int) -> LogTruncation | None:
        """Handle a leader's response to OffsetsForLeaderEpoch.

        Ignored if the position has changed since. On truncation with a reset policy the position goes back silently, by
        the policy if the leader knows no common epoch; without a policy the application has to be notified.
        Kafka: SubscriptionState#maybeCompleteValidation (2.6-4.4).

        Args:
            asked: the position when the request was sent.
            epoch: largest epoch up to the requested one, -1 if undefined.
            end_offset: where it ends, -1 if undefined.

        Returns:
            The truncation to report to the application, if any.
        """
        position = self.position
        if self.state != AWAIT_VALIDATION or position is None or position != asked:
            return None
        if epoch >= 0 and end_offset >= self.offset:
            self.state = FETCHING
            return None
        undefined = epoch < 0 or end_offset < 0
        if self._policy == "none":
            return LogTruncation(position, -1, NO_EPOCH) if undefined else LogTruncation(position, end_offset, epoch)
        if undefined:
            self.request_reset()
        else:
            self.seek_validated(position._replace(offset=end_offset, offset_epoch=epoch))
        return None

    def request_reset(self, strategy: str = "") -> None:
        """Request a reset to start or end (default: the policy). Kafka:
        SubscriptionState#requestOffsetReset (1.1-4.4).
        """
        self._place(FetchPosition(-1))
        self.state = AWAIT_RESET
        self.reset_strategy = strategy or self._policy

    def reset_to(self, strategy: str, position: FetchPosition) -> bool:
        """Reset to the offset in the leader's response, if the reset is still pending; returns whether it was.

        Kafka: SubscriptionState#maybeSeekUnvalidated (2.6-4.4).
        """
        if self.state != AWAIT_RESET or strategy != self.reset_strategy:
            return False
        self.seek_unvalidated(position)
        return True

    def _place(self, position: FetchPosition) -> None:
        self.changes += 1
        self.offset, self.offset_epoch, self.leader, self.leader_epoch = position

    def _validate(self) -> None:
        """Kafka: SubscriptionState.TopicPartitionState#validatePosition (2.6-4.4)."""
        if self.offset_epoch != NO_EPOCH and self.leader_epoch != NO_EPOCH:
            self.state = AWAIT_VALIDATION
