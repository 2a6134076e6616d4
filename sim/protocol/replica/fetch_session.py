"""A leader broker's fetch session with one follower: which of its partitions a fetch has to visit (KIP-227).

A follower's fetch names all partitions that it follows, but mostly few of them changed since the fetch before. The
session keeps the idle ones, for which the last fetch found no records and changed nothing at the leader, with the
result that each of them gets. A fetch visits the other ones, and those whose position changed. An idle partition is
visited again after any change of its state at the leader (`Followers.note_change`). Until then its follower's fetch
times are those of the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.protocol.messages import FetchRequest, FetchResult, Incremental

if TYPE_CHECKING:
    from sim.protocol.replica.delayed_fetch import DelayedFetch
    from sim.protocol.replica.partition import Partition


class CachedPartition:
    """A partition's entry in a session: its index in the session's fetches. Kafka: CachedPartition (1.1-4.4)."""

    __slots__ = ("place", "session")

    def __init__(self, session: FetchSession, place: int) -> None:
        self.session: Final = session
        self.place: Final = place


class FetchSession:
    """The session with one follower; see the module. Kafka: FetchSession (1.1-4.4).

    Args:
        number: its number, which no other session of the follower has.
        request: the first fetch, whose partitions the session has.
        partitions: these partitions.
        results: a list of as many results, which are not used.

    Attributes:
        request: the last fetch.
        epoch: its number.
        delayed: that fetch, while it waits.
    """

    __slots__ = (
        "_broker_epoch",
        "_fetched_us",
        "_follower",
        "_number",
        "_partitions",
        "_results",
        "_unsent",
        "_visited",
        "delayed",
        "epoch",
        "request",
    )

    def __init__(
        self, number: int, request: FetchRequest, partitions: list[Partition], results: list[FetchResult]
    ) -> None:
        self.request = request
        self.epoch = 0
        self._number = number
        self.delayed: DelayedFetch | None = None
        self._follower = request.replica
        self._broker_epoch = request.broker_epoch
        self._partitions = partitions
        self._results = results
        """The result of each idle partition."""
        self._visited = set(range(len(partitions)))
        """The indexes of partitions that the next fetch visits; the others are idle."""
        self._unsent: set[int] = set()
        """The indexes of idle partitions with another result than in the last response."""
        self._fetched_us = 0
        """When the idle partitions were last fetched."""
        for place, partition in enumerate(partitions):
            partition.followers.cached.append(CachedPartition(self, place))

    def is_continued_by(self, request: FetchRequest) -> bool:
        """Whether a fetch is the session's next one, or its last one arrives again."""
        if request is self.request:
            return True
        asked = request.incremental
        return (
            asked is not None
            and asked.session == self._number
            and asked.epoch == self.epoch + 1
            and request.broker_epoch == self._broker_epoch
        )

    def begin_fetch(self, request: FetchRequest, now_us: int) -> list[int]:
        """Begin to process a fetch; returns the indexes of the partitions that it visits."""
        asked = request.incremental
        if asked is not None:
            for place in asked.places:
                self.note_change(place)
        if request is not self.request:
            self.epoch += 1
            self.request = request
        self._fetched_us = now_us
        return sorted(self._visited)

    def note_idle(self, place: int, partition: Partition, result: FetchResult) -> None:
        """Note that a partition is idle: its follower gets this empty result until something changes."""
        if self._partitions[place] is not partition:  # The replica was deleted and created again.
            self._remove_entry(place)
            self._partitions[place] = partition
            partition.followers.cached.append(CachedPartition(self, place))
        self._visited.discard(place)
        self._results[place] = result
        self._unsent.add(place)

    def note_change(self, place: int) -> None:
        """Note that the next fetch has to visit a partition, because it changes."""
        if place not in self._visited:
            self.note_times(place)
            self._visited.add(place)

    def note_times(self, place: int) -> None:
        """Note the times of the fetches so far in the follower's state of a partition."""
        if place not in self._visited:
            state = self._partitions[place].followers.states.get(self._follower)
            if state is not None:
                state.caught_up_us = state.fetch_us = self._fetched_us

    def note_elided_fetches(self, at_us: int) -> None:
        """Note elided fetches of the idle partitions, the last of them at `at_us`."""
        self._fetched_us = at_us

    @property
    def visited(self) -> list[int]:
        """The indexes of the partitions that are not idle."""
        return sorted(self._visited)

    @property
    def changed(self) -> list[int]:
        """The indexes of the partitions whose result may differ from that in the last response."""
        return sorted(self._visited | self._unsent)

    @property
    def results(self) -> list[FetchResult]:
        """A new list of results, of which those of `visited` are to be replaced."""
        return self._results[:]

    def take_changed(self) -> Incremental:
        """`changed` for a response that is now sent."""
        changed = Incremental(self._number, self.epoch, self.changed)
        self._unsent.clear()
        return changed

    def close(self) -> None:
        """End the session. A fetch that waits is left to the caller."""
        for place in range(len(self._partitions)):
            self.note_times(place)
            self._remove_entry(place)
        self.dispose()

    def dispose(self) -> None:
        """Drop references, so that the garbage collector is not needed."""
        self._partitions = []
        self._visited.clear()
        self.delayed = None

    def _remove_entry(self, place: int) -> None:
        cached = self._partitions[place].followers.cached
        for number, entry in enumerate(cached):
            if entry.session is self and entry.place == place:
                del cached[number]
                return
