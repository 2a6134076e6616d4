"""The voters of a quorum, each known by its id and by the id of the directory that has its log (KIP-853)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

NO_DIRECTORY: Final = 0
"""In place of a directory id: that of a voter of the configuration is unknown. Kafka: ReplicaKey#NO_DIRECTORY_ID."""


class ReplicaKey(NamedTuple):
    """A replica and the directory of its log: an empty disk that is formatted anew gets another directory id.

    Kafka: raft.ReplicaKey.
    """

    id: int
    directory: int = NO_DIRECTORY


class VoterNode(NamedTuple):
    """A voter. Kafka: VoterSet.VoterNode.

    Attributes:
        key: its id and directory id; without the latter, its id alone names it.
        listeners: a number for its addresses; 0 for those that all members know.
        max_version: the highest kraft.version that it supports.
    """

    key: ReplicaKey
    listeners: int = 0
    max_version: int = 1

    def is_voter(self, key: ReplicaKey) -> bool:
        """Whether a replica is this voter. Kafka: VoterSet.VoterNode#isVoter."""
        known = self.key
        return known.id == key.id and known.directory in (NO_DIRECTORY, key.directory)


class VoterSet:
    """The voters of a quorum; immutable. Kafka: VoterSet.

    Attributes:
        ids: their ids.
        nodes: the voters, in the same order.
    """

    __slots__ = ("_by_id", "ids", "nodes")

    def __init__(self, nodes: Sequence[VoterNode]) -> None:
        self.nodes: Final = tuple(nodes)
        self.ids: Final = tuple([node.key.id for node in nodes])
        self._by_id = dict(zip(self.ids, self.nodes, strict=True))

    def __repr__(self) -> str:
        return f"VoterSet({', '.join(f'{node.key.id}:{node.key.directory}' for node in self.nodes)})"

    def node(self, voter: int) -> VoterNode | None:
        """The voter with an id, None without it. Kafka: VoterSet#voterNode."""
        return self._by_id.get(voter)

    def directory(self, voter: int) -> int:
        """The directory id of a voter, `NO_DIRECTORY` if it is unknown."""
        node = self._by_id.get(voter)
        return NO_DIRECTORY if node is None else node.key.directory

    def is_voter(self, key: ReplicaKey) -> bool:
        """Whether a replica is a voter: of a voter without a directory id, the id counts. Kafka: VoterSet#isVoter."""
        node = self._by_id.get(key.id)
        return node is not None and node.is_voter(key)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        """Kafka: VoterSet#isOnlyVoter."""
        return len(self.ids) == 1 and self.is_voter(key)

    def needs_update(self, updated: VoterNode) -> bool:
        """Whether a voter is known with other addresses or versions. Kafka: VoterSet#voterNodeNeedsUpdate."""
        node = self._by_id.get(updated.key.id)
        return node is not None and node.is_voter(updated.key) and node != updated

    def add_voter(self, voter: VoterNode) -> VoterSet | None:
        """The set with one more voter, None if it has one with that id. Kafka: VoterSet#addVoter."""
        return None if voter.key.id in self._by_id else self._with(voter)

    def remove_voter(self, key: ReplicaKey) -> VoterSet | None:
        """The set without a voter, None if there is none with this id and directory id, or no other one.

        Kafka: VoterSet#removeVoter.
        """
        node = self._by_id.get(key.id)
        if node is None or node.key != key or len(self.ids) == 1:
            return None
        return VoterSet([other for other in self.nodes if other is not node])

    def update_voter(self, voter: VoterNode) -> VoterSet | None:
        """The set with a voter's latest addresses, None if it is no voter. Kafka: VoterSet#updateVoter."""
        return self._with(voter) if self.is_voter(voter.key) else None

    def _with(self, voter: VoterNode) -> VoterSet:
        others = [node for node in self.nodes if node.key.id != voter.key.id]
        return VoterSet(sorted([*others, voter]))

    def has_overlapping_majority(self, that: VoterSet) -> bool:
        """Whether each majority of one set shares a voter with each of the other.

        Kafka: VoterSet#hasOverlappingMajority.
        """
        these, those = {node.key for node in self.nodes}, {node.key for node in that.nodes}
        return len(these - those) <= 1 and len(those - these) <= 1


def static_voters(ids: Sequence[int]) -> VoterSet:
    """The voters of the configuration (``controller.quorum.voters``), whose directory ids are unknown.

    Kafka: VoterSet#fromInetSocketAddresses.
    """
    return VoterSet([VoterNode(ReplicaKey(voter), 0, 0) for voter in ids])
