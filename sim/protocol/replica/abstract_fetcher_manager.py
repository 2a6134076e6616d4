"""The fetchers of a broker, one for each leader that it follows."""

from __future__ import annotations

from sim.protocol import probes
from sim.protocol.decisions import Decisions
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.replica.become_follower import restarts_fetcher
from sim.protocol.replica.partition import NO_LEADER, Partition
from sim.protocol.replica.partition_fetch_state import FETCHING
from sim.protocol.replica.replica_fetcher_thread import FetcherHost, ReplicaFetcherThread


class AbstractFetcherManager:
    """See the module. Kafka: AbstractFetcherManager.

    Args:
        host: the broker, as its fetchers see it.
        decide: its rules.
        backoff_us: ``replica.fetch.backoff.ms`` in us.

    Attributes:
        fetchers: by leader.
        keeps_idle: whether fetchers without partitions keep running until `shut_down_idle`.
    """

    __slots__ = ("_added", "_backoff_us", "_decide", "_host", "fetchers", "keeps_idle")

    def __init__(self, host: FetcherHost, decide: Decisions, backoff_us: int) -> None:
        self._host = host
        self._decide = decide
        self._backoff_us = backoff_us
        self.fetchers: dict[int, ReplicaFetcherThread] = {}
        self.keeps_idle = False
        self._added: list[ReplicaFetcherThread] | None = None
        """The fetchers that get partitions, while they are to send requests only once they have all of them."""

    def is_fetching_from(self, leader: int, name: str) -> bool:
        """Whether a fetcher fetches this partition from that broker."""
        fetcher = self.fetchers.get(leader)
        return fetcher is not None and name in fetcher.partitions

    def restarts(self, partition: Partition, decision: LeaderAndIsr) -> bool:
        """Whether a partition that is to follow the leader of a decision truncates and restarts fetching; asked before
        it becomes its follower.
        """
        return not self.is_fetching_from(decision.leader, partition.name) or restarts_fetcher(
            self._decide, partition.leader, partition.leader_epoch, decision
        )

    def add(self, partition: Partition, decision: LeaderAndIsr, now_us: int, *, unclean_election: bool = False) -> None:
        """Begin to fetch a partition, a follower already, from the leader of a decision.

        Kafka: AbstractFetcherManager#addFetcherForPartitions, ReplicaFetcherManager#createFetcherThread.
        """
        leader, name = decision.leader, partition.name
        fetcher = self.fetchers.get(leader)
        if fetcher is None:
            fetcher = self.fetchers[leader] = ReplicaFetcherThread(
                leader, self._decide, self._host, backoff_us=self._backoff_us, unclean_election=unclean_election
            )
        fetcher.remove(name)
        self.remove(name, spared=leader)
        added = self._added
        fetcher.add(partition, decision.leader_epoch, now_us, steps=added is None)
        if added is not None and fetcher not in added:
            added.append(fetcher)

    def goes_on(self, name: str, decision: LeaderAndIsr) -> bool:
        """Go on to fetch a partition in the leader epoch of a decision. Returns whether its truncation is complete."""
        fetcher = self.fetchers[decision.leader]
        fetch = fetcher.partitions[name]
        fetch.leader_epoch = decision.leader_epoch
        fetcher.note_change()
        return fetch.state is FETCHING

    def remove(self, name: str, *, spared: int = NO_LEADER) -> None:
        """Remove a partition from all fetchers but that of the leader `spared`. A fetcher without partitions is shut
        down; a dead one that still has partitions stays, and stays dead.

        Kafka: AbstractFetcherManager#removeFetcherForPartitions.
        """
        for leader, fetcher in list(self.fetchers.items()):
            if leader != spared and name in fetcher.partitions:
                fetcher.remove(name)
                if fetcher.partitions:
                    if fetcher.in_flight is not None:
                        self._host.reached(probes.FETCHER_STAYS)
                elif not self.keeps_idle:
                    del self.fetchers[leader]

    def begin_changes(self) -> None:
        """Begin to apply several changes together: see `end_changes`."""
        self.keeps_idle = True
        self._added = []

    def end_changes(self, now_us: int) -> None:
        """Let fetchers fetch all partitions that they got, and shut down those without partitions.

        Kafka: AbstractFetcherManager#addFetcherForPartitions, AbstractFetcherManager#shutdownIdleFetcherThreads.
        """
        added, self._added = self._added, None
        self.keeps_idle = False
        for fetcher in added or ():
            fetcher.step(now_us)
        self.shut_down_idle()

    def shut_down_idle(self) -> None:
        """Shut down fetchers without partitions, after several changes were applied together.

        Kafka: AbstractFetcherManager#shutdownIdleFetcherThreads.
        """
        for leader, fetcher in list(self.fetchers.items()):
            if not fetcher.partitions:
                del self.fetchers[leader]
