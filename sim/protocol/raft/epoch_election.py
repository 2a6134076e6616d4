"""The votes that a candidate, or a prospective one, has received."""

from __future__ import annotations

from collections.abc import Sequence


class EpochElection:
    """Votes of one election. Kafka: EpochElection (4.1-4.4).

    Args:
        voters: ids of all voters.
    """

    __slots__ = ("_states",)

    def __init__(self, voters: Sequence[int]) -> None:
        self._states: dict[int, bool | None] = dict.fromkeys(voters)

    def record_vote(self, voter: int, *, granted: bool) -> bool:
        """Note a vote; returns whether it is the first of that voter. Kafka: EpochElection#recordVote (4.1-4.4)."""
        first = self._state(voter) is None
        self._states[voter] = granted
        return first

    def is_granted(self, voter: int) -> bool:
        """Whether that voter gave its vote. Kafka: EpochElection#isGrantedVoter (4.1-4.4)."""
        return self._state(voter) is True

    def is_rejected(self, voter: int) -> bool:
        """Whether that voter refused its vote. Kafka: EpochElection#isRejectedVoter (4.1-4.4)."""
        return self._state(voter) is False

    @property
    def is_vote_granted(self) -> bool:
        """Whether a majority gave its votes. Kafka: EpochElection#isVoteGranted (4.1-4.4)."""
        return len(self.granting_voters()) >= self._majority

    @property
    def is_vote_rejected(self) -> bool:
        """Whether no majority can give its votes any more. Kafka: EpochElection#isVoteRejected (4.1-4.4)."""
        return len(self._states) - len(self.rejecting_voters()) < self._majority

    def unrecorded_voters(self) -> list[int]:
        """Voters that have not responded. Kafka: EpochElection#unrecordedVoters (4.1-4.4)."""
        return [voter for voter, granted in self._states.items() if granted is None]

    def granting_voters(self) -> list[int]:
        """Voters that gave their votes. Kafka: EpochElection#grantingVoters (4.1-4.4)."""
        return [voter for voter, granted in self._states.items() if granted is True]

    def rejecting_voters(self) -> list[int]:
        """Voters that refused their votes. Kafka: EpochElection#rejectingVoters (4.1-4.4)."""
        return [voter for voter, granted in self._states.items() if granted is False]

    @property
    def _majority(self) -> int:
        return len(self._states) // 2 + 1

    def _state(self, voter: int) -> bool | None:
        if voter not in self._states:
            raise ValueError(f"{voter} is not a voter")
        return self._states[voter]
