from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from sim.protocol.raft.fetch_purgatory import FetchPurgatory
from sim.protocol.raft.kafka_raft_client import KafkaRaftClient
from sim.protocol.raft.leader_state import LeaderState
from sim.protocol.raft.quorum_state import QuorumState
from sim.protocol.raft.raft_log import RaftLog
from sim.protocol.raft.request_manager import RequestManager
from tests.plain import needs_sources
from tests.verification.conformance.driving_raft import ENDS, MODE_OF, Case, Member, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = {release: list(recorded(release)) for release in MODE_OF}


def differences(release: str, case: Case) -> Iterator[tuple[str, str, str]]:
    """The first line after which the member shows something else than Kafka's."""
    member = Member(MODE_OF[release], case[0][0])
    shown = member.show()
    for place, (line, expected) in enumerate(case):
        if place:
            shown = member.act(line)
        if release == "3.9.0":  # Its fetches have no high watermark.
            shown = re.sub(r"(:fetch \d+ \d+ \d+) -?\d+", r"\1 -1", shown)
        if shown != expected:
            yield line, shown, expected
        if shown != expected or expected == ENDS:
            return


@pytest.mark.parametrize("release", MODE_OF)
def test_a_member_shows_what_kafkas_client_shows(release: str) -> None:
    found = {
        number: different for number, case in enumerate(CASES[release]) for different in differences(release, case)
    }
    assert found == {}


@pytest.mark.parametrize("release", MODE_OF)
def test_the_cases_reach_every_state_and_request(release: str) -> None:
    shown = Counter(words for case in CASES[release] for _, line in case for words in re.findall(r"[A-Za-z_]+", line))
    wanted = {"Leader", "Candidate", "Follower", "Unattached", "Resigned", "vote", "begin", "end", "fetch", "diverging"}
    wanted |= {"FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "NOT_LEADER_OR_FOLLOWER", "INVALID_REQUEST", ENDS}
    wanted |= set() if release == "3.9.0" else {"Prospective", "prevote"}
    assert {word for word in wanted if shown[word] < 3} == set()


MUTATED = [
    (QuorumState, "_election_timeout_at_us", lambda self, now_us: now_us + 2 * self._election_timeout_us),
    (LeaderState, "_maybe_update_high_watermark", lambda _: False),
    (LeaderState, "non_leader_voters_by_descending_fetch_offset", lambda self: self.other_voters()[::-1]),
    (RaftLog, "diverging", lambda *_: None),
    (RequestManager, "is_backing_off", lambda *_: False),
    (RequestManager, "reset_all", lambda _: None),
    (FetchPurgatory, "take_all", lambda _: []),
    (KafkaRaftClient, "_end_epoch_election_backoff_us", lambda *_: 0),
    (KafkaRaftClient, "_has_consistent_leader", lambda *_: True),
]
"""Methods, each with one that does something else."""


@needs_sources
@pytest.mark.parametrize(("owner", "name", "other"), MUTATED, ids=[name for _, name, _ in MUTATED])
def test_the_cases_notice_a_change(owner: type, name: str, other: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, name, other)
    assert any(list(differences(release, case)) for release in MODE_OF for case in CASES[release])
