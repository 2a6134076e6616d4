"""A consumer's position: where it reads on, and whether the leader's log still is the one it has read.

KIP-320. Known holes that Kafka has, too: an answer with an older epoch passes if its end offset is large enough, and a
log that was cut and written anew under an unchanged leader epoch is never asked about.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sim.protocol.messages import NO_EPOCH
from sim.protocol.replica.partition import NO_LEADER

INITIALIZING: Final = "initializing"
"""No position yet: the committed offset is to be looked up."""
FETCHING: Final = "fetching"
AWAIT_RESET: Final = "await_reset"
"""No position: the leader is to be asked for the log's start or end."""
AWAIT_VALIDATION: Final = "await_validation"
"""The leader is to be asked where the epoch of the last record ended."""


class FetchPosition(NamedTuple):
    """A position. Kafka: SubscriptionState.FetchPosition (2.6-4.3).

    Attributes:
        offset: next offset to read.
        offset_epoch: leader epoch of the batch of the record before, `NO_EPOCH` if unknown.
        leader: the leader that it is bound to, `NO_LEADER` if unknown.
        leader_epoch: that leader's epoch, `NO_EPOCH` if unknown.
    """

    offset: int
    offset_epoch: int = NO_EPOCH
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH


class LogTruncation(NamedTuple):
    """What LogTruncationException tells the application.

    Kafka: LogTruncationException (2.6-4.3), SubscriptionState.LogTruncation (2.6-4.3).

    Attributes:
        position: where it was going to read on.
        divergent_offset: first offset that is known to differ from what it has read, -1 if unknown.
        divergent_epoch: epoch that ends there in the leader's log, `NO_EPOCH` if unknown.
    """

    position: FetchPosition
    divergent_offset: int
    divergent_epoch: int


class ConsumerPosition:
    """The state machine. Kafka: SubscriptionState.TopicPartitionState.

    Args:
        policy: ``auto.offset.reset``.

    Attributes:
        state: `INITIALIZING`, `FETCHING`, `AWAIT_RESET` or `AWAIT_VALIDATION`.
        offset: see `FetchPosition`; -1 without a position.
        offset_epoch: see `FetchPosition`.
        leader: see `FetchPosition`.
        leader_epoch: see `FetchPosition`.
        reset_strategy: ``earliest`` or ``latest`` in `AWAIT_RESET`, else empty.
    """

    __slots__ = ("_policy", "leader", "leader_epoch", "offset", "offset_epoch", "reset_strategy", "state")

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self.state = INITIALIZING
        self.reset_strategy = ""
        self.offset = -1
        self.offset_epoch = NO_EPOCH
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH

    @property
    def position(self) -> FetchPosition | None:
        """The present position, None while there is none. Kafka: SubscriptionState#position."""
        if self.offset < 0:
            return None
        return FetchPosition(self.offset, self.offset_epoch, self.leader, self.leader_epoch)

    def seek_validated(self, position: FetchPosition) -> None:
        """Read on from there. Kafka: SubscriptionState#seekValidated (2.6-4.3)."""
        self._place(position)
        self.state = FETCHING
        self.reset_strategy = ""

    def seek_unvalidated(self, position: FetchPosition) -> None:
        """Read on from there once the leader confirms it. Kafka: SubscriptionState#seekUnvalidated (2.6-4.3)."""
        self.seek_validated(position)
        self._validate()

    def leader_seen(self, leader: int, leader_epoch: int, *, can_validate: bool = True) -> bool:
        """Metadata names a leader: another one, or another epoch, makes the position doubtful.

        Kafka: SubscriptionState#maybeValidatePositionForCurrentLeader (2.6-4.3).

        Args:
            leader: its id.
            leader_epoch: its epoch, `NO_EPOCH` if the metadata has none.
            can_validate: whether consumer and leader know OffsetsForLeaderEpoch version 3 (2.3).

        Returns:
            Whether the position awaits validation.
        """
        if self.state == AWAIT_RESET or leader == NO_LEADER:
            return False
        if self.state != INITIALIZING and (
            not can_validate or leader != self.leader or leader_epoch != self.leader_epoch
        ):
            self.leader = leader
            self.leader_epoch = leader_epoch
            self.state = FETCHING
            if can_validate:
                self._validate()
        return self.state == AWAIT_VALIDATION

    def consumed(self, offset: int, offset_epoch: int) -> None:
        """Records were returned: next offset, and epoch of the last batch. Kafka: SubscriptionState#position."""
        self.offset = offset
        self.offset_epoch = offset_epoch

    def complete_validation(self) -> None:
        """The position is good, or the leader cannot tell. Kafka: SubscriptionState#completeValidation (2.6-4.3)."""
        if self.offset >= 0:
            self.state = FETCHING

    def epoch_end(self, asked: FetchPosition | None, epoch: int, end_offset: int) -> LogTruncation | None:
        """Take a leader's answer to OffsetsForLeaderEpoch.

        It is dropped if the position has changed since. With a reset policy a truncation makes the position go back
        silently, by the policy if the leader knows no common epoch; without one the application has to be told.
        Kafka: SubscriptionState#maybeCompleteValidation (2.6-4.3).

        Args:
            asked: the position when the request was sent.
            epoch: largest epoch up to the one asked for, -1 if undefined.
            end_offset: where it ends, -1 if undefined.

        Returns:
            What to tell the application.
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
        """Go to the log's start or end (default: the policy). Kafka: SubscriptionState#requestOffsetReset (1.1-4.3)."""
        self._place(FetchPosition(-1))
        self.state = AWAIT_RESET
        self.reset_strategy = strategy or self._policy

    def reset_to(self, strategy: str, position: FetchPosition) -> bool:
        """The leader named the offset: take it if that is still wanted.

        Kafka: SubscriptionState#maybeSeekUnvalidated (2.6-4.3).

        Returns:
            Whether it was taken.
        """
        if self.state != AWAIT_RESET or strategy != self.reset_strategy:
            return False
        self.seek_unvalidated(position)
        return True

    def _place(self, position: FetchPosition) -> None:
        self.offset, self.offset_epoch, self.leader, self.leader_epoch = position

    def _validate(self) -> None:
        """Kafka: SubscriptionState.TopicPartitionState#validatePosition (2.6-4.3)."""
        if self.offset_epoch != NO_EPOCH and self.leader_epoch != NO_EPOCH:
            self.state = AWAIT_VALIDATION
