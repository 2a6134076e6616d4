"""Requests of consumers to a group coordinator, and the records of committed offsets."""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import count
from typing import Final, NamedTuple

from sim.kernel.message import KIND, REPLY, Message
from sim.protocol.messages import NO_EPOCH, ProduceResponse

OFFSETS: Final = "__consumer_offsets-0"
"""The partition of committed offsets, if they are records (``sim.group.offsets=partition``): one for all groups."""

COORDINATOR_NOT_AVAILABLE: Final = "COORDINATOR_NOT_AVAILABLE"
COORDINATOR_LOAD_IN_PROGRESS: Final = "COORDINATOR_LOAD_IN_PROGRESS"
NOT_COORDINATOR: Final = "NOT_COORDINATOR"
UNSTABLE_OFFSET_COMMIT: Final = "UNSTABLE_OFFSET_COMMIT"

FIND_COORDINATOR: Final = 9 << KIND
OFFSET_COMMIT: Final = 10 << KIND
OFFSET_FETCH: Final = 11 << KIND


class OffsetCommit(NamedTuple):
    """A record of the offsets partition: the offset that a group has committed for a partition.

    Kafka: common.OffsetAndMetadata (0.10.2-3.9), coordinator.group.OffsetAndMetadata (3.9-4.4).

    Attributes:
        record: its record id, by which its contents are known wherever a log has it (`CommittedOffsets.records`).
        name: the partition; empty in a record without an offset, which only confirms that its writer leads.
        offset: the committed offset.
        leader_epoch: the leader epoch of the record before it, `NO_EPOCH` if unknown.
    """

    record: int
    name: str
    offset: int = -1
    leader_epoch: int = NO_EPOCH


class CommittedOffsets:
    """Contents of the records of the offsets partition, by record id: a log has ids only.

    Attributes:
        records: record id -> contents, of all records that were ever appended to any log.
        ids: the record ids that are not used yet.
    """

    __slots__ = ("ids", "records")

    def __init__(self) -> None:
        self.records: dict[int, OffsetCommit] = {}
        self.ids: Iterator[int] = count(1)


class FindCoordinatorRequest(Message):
    """A consumer's request for the coordinator of its group. Kafka: FindCoordinatorRequest (1.1-4.4).

    Attributes:
        node: the consumer.
        number: counts the consumer's requests.
    """

    __slots__ = ("node", "number")

    def __init__(self, node: int, number: int) -> None:
        self.node: Final = node
        self.number: Final = number

    def has_to_wait(self, *, registered: bool) -> bool:
        """See `Event.has_to_wait`: an unregistered broker knows no leader."""
        return not registered

    def about(self) -> int:
        return FIND_COORDINATOR + self.number


class FindCoordinatorResponse(Message):
    """Response: the broker that leads the offsets partition in the metadata of the one that answers.

    Kafka: FindCoordinatorResponse (1.1-4.4).

    Attributes:
        request: the request.
        error: Kafka's name of the error; empty for success.
        coordinator: the broker.
    """

    __slots__ = ("coordinator", "error", "request")

    def __init__(self, request: FindCoordinatorRequest, error: str, coordinator: int) -> None:
        self.request: Final = request
        self.error: Final = error
        self.coordinator: Final = coordinator

    def about(self) -> int:
        return REPLY + self.request.about()


class _OfOffsets(Message):
    """A request that needs the offsets partition, also to write to it."""

    __slots__ = ()
    needs_partition = True

    def writes_to(self, names: Container[str]) -> bool:
        return OFFSETS in names

    def needs(self, names: Container[str]) -> bool:
        """See `Event.needs`."""
        return OFFSETS in names


class OffsetCommitRequest(_OfOffsets):
    """A consumer commits an offset. Kafka: requests.OffsetCommitRequest.

    Attributes:
        node: the consumer.
        commit: the record.
    """

    __slots__ = ("commit", "node")

    def __init__(self, node: int, commit: OffsetCommit) -> None:
        self.node: Final = node
        self.commit: Final = commit

    def about(self) -> int:
        return OFFSET_COMMIT + self.commit.record


class OffsetCommitResponse(Message):
    """Response to a commit. Kafka: requests.OffsetCommitResponse.

    Attributes:
        request: the request.
        error: Kafka's name of the error; empty for success.
        write: the success of the record's append, None with an error. For checkers, and not a field on the wire.
    """

    __slots__ = ("error", "request", "write")

    def __init__(self, request: OffsetCommitRequest, error: str, write: ProduceResponse | None) -> None:
        self.request: Final = request
        self.error: Final = error
        self.write: Final = write

    def about(self) -> int:
        return REPLY + self.request.about()


class OffsetFetchRequest(_OfOffsets):
    """A new process of a consumer asks where to begin, with ``RequireStable`` where the release knows it (KIP-447).

    Kafka: requests.OffsetFetchRequest.

    Attributes:
        node: the consumer.
        name: the partition.
        number: counts the consumer's requests.
    """

    __slots__ = ("name", "node", "number")

    def __init__(self, node: int, name: str, number: int) -> None:
        self.node: Final = node
        self.name: Final = name
        self.number: Final = number

    def about(self) -> int:
        return OFFSET_FETCH + self.number


class OffsetFetchResponse(Message):
    """Response: the committed offset, None if there is none. Kafka: requests.OffsetFetchResponse.

    Attributes:
        request: the request.
        error: Kafka's name of the error; empty for success.
        commit: the record that has the offset, of which the wire carries offset and leader epoch.
    """

    __slots__ = ("commit", "error", "request")

    def __init__(self, request: OffsetFetchRequest, error: str, commit: OffsetCommit | None) -> None:
        self.request: Final = request
        self.error: Final = error
        self.commit: Final = commit

    def about(self) -> int:
        return REPLY + self.request.about()
