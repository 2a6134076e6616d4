"""The ListOffsets requests of a consumer that has no position: their timestamp, and when the next one may be sent."""

from __future__ import annotations

from sim.protocol.messages import EARLIEST, LATEST


class CreationTimes:
    """When the records of a partition were created: their timestamps (CreateTime), for consumers that look for one."""

    __slots__ = ("_batches",)

    def __init__(self) -> None:
        self._batches: list[tuple[int, int, int]] = []
        """(time, first id, number of records)"""

    def add(self, at_us: int, first_id: int, count: int) -> None:
        """Note a new batch."""
        self._batches.append((at_us, first_id, count))

    def first_since(self, at_us: int) -> int:
        """The lowest id of a record created since a time; without one, an id above all."""
        since = [first_id for created_us, first_id, _ in self._batches if created_us >= at_us]
        return min(since) if since else max([first_id + count for _, first_id, count in self._batches], default=0)


class OffsetReset:
    """Resets of one consumer. Kafka: OffsetFetcher (3.9-4.4), AutoOffsetResetStrategy (4.1-4.4).

    Args:
        duration_us: the duration of ``auto.offset.reset=by_duration``.
        created: when records were created; None: the policy is another one.

    Attributes:
        from_us: earliest time of the next request; later than now after a response without an offset.
    """

    __slots__ = ("_created", "_duration_us", "from_us")

    def __init__(self, duration_us: int, created: CreationTimes | None) -> None:
        self._duration_us = duration_us
        self._created = created
        self.from_us = 0

    def timestamp(self, strategy: str, now_us: int) -> int:
        """The timestamp for ListOffsets; a record's time is its id, see `ListOffsetsRequest`.

        Kafka: AutoOffsetResetStrategy#timestamp (4.1-4.4).
        """
        if strategy == "earliest":
            return EARLIEST
        if strategy == "latest" or self._created is None:
            return LATEST
        return self._created.first_since(now_us - self._duration_us)
