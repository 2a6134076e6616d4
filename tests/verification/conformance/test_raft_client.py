"""The recorded cases of `raft-client` reach every state and request of Raft, and notice changes of its methods."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

from sim.protocol.raft.fetch_purgatory import FetchPurgatory
from sim.protocol.raft.kafka_raft_client import KafkaRaftClient
from sim.protocol.raft.leader_state import LeaderState
from sim.protocol.raft.quorum_state import QuorumState
from sim.protocol.raft.raft_log import RaftLog
from sim.protocol.raft.request_manager import RequestManager
from sim.protocol.raft.voter_set import ReplicaKey
from tests.plain import needs_sources
from tests.verification.oracle.kafka import plain
from tests.verification.oracle.recording import FOLDER
from tests.verification.oracle.subjects.raft_client import SUBJECT

if TYPE_CHECKING:
    from tests.verification.oracle.subject import Case, Seen

VECTORS: Final[dict[str, list[tuple[Case, Seen]]]] = {
    release: json.loads((FOLDER / f"raft-client-{release}.json").read_text(encoding="utf-8"))["vectors"]
    for release in ("3.9.0", "4.1.0", "4.2.1", "4.3.1")
}


@pytest.mark.parametrize("release", VECTORS)
def test_the_cases_reach_every_state_and_request(release: str) -> None:
    shown = Counter(re.findall(r"[A-Za-z_-]+", json.dumps([kafka for _, kafka in VECTORS[release]])))
    wanted = {"Leader", "Candidate", "Follower", "Unattached", "Resigned", "vote", "begin", "end", "fetch", "diverging"}
    wanted |= {"FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "NOT_LEADER_OR_FOLLOWER", "INVALID_REQUEST", "ends"}
    wanted |= {"fetch-snapshot", "SNAPSHOT_NOT_FOUND", "commit", "snapshot", "leader"}
    wanted |= set() if release == "3.9.0" else {"Prospective", "prevote"}
    assert {word for word in wanted if shown[word] < 2} == set()


MUTATED = [
    (QuorumState, "_election_timeout_at_us", lambda self, now_us: now_us + 2 * self._election_timeout_us),
    (LeaderState, "_maybe_update_high_watermark", lambda _: False),
    (
        LeaderState,
        "non_leader_voters_by_descending_fetch_offset",
        lambda self: [ReplicaKey(voter) for voter in self.other_voters()[::-1]],
    ),
    (RaftLog, "diverging", lambda *_: None),
    (RaftLog, "snapshot_instead", lambda *_: None),
    (RaftLog, "truncate_to_latest_snapshot", lambda _: False),
    (RaftLog, "delete_before_snapshot", lambda *_: False),
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
    assert any(plain(SUBJECT.core(case, release)) != kafka for release in VECTORS for case, kafka in VECTORS[release])
