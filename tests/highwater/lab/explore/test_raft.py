from __future__ import annotations

import pytest

from highwater.lab.explore.modes.subject import subject_of
from highwater.lab.explore.raft.world import KINDS, VIOLATIONS, ExploredQuorum, QuorumBounds
from highwater.lab.explore.search import Found, search
from sim.errors import InputError
from sim.protocol.modes import MODES
from sim.protocol.raft.raft_log import OffsetAndEpoch, RaftLog
from tests.plain import needs_sources


def explored(mode: str, bounds: QuorumBounds, most_states: int = 60_000) -> tuple[ExploredQuorum, Found[int]]:
    world = ExploredQuorum(MODES[mode].rules, bounds)
    return world, search(world, until=VIOLATIONS, most_states=most_states)


@pytest.mark.world
def test_one_election_and_one_power_loss_do_no_harm() -> None:
    _, found = explored("kraft", QuorumBounds(epochs=1, records=1, losses=1))
    assert (found.exhausted, found.states, found.paths) == (True, 43_924, {})


@pytest.mark.world
def test_pre_votes_do_no_harm() -> None:
    _, found = explored("elr-4.3", QuorumBounds(epochs=1, records=0, losses=0))
    assert (found.exhausted, found.paths) == (True, {})


@pytest.mark.world
def test_a_snapshot_with_which_a_log_begins_does_no_harm() -> None:
    _, found = explored("kraft", QuorumBounds(epochs=1, records=1, losses=0, snapshots=1), 80_000)
    assert (found.exhausted, found.states, found.paths) == (True, 64_900, {})


@pytest.mark.world
@pytest.mark.parametrize(("mode", "states", "events"), [("kraft", 12_559, 9), ("elr-4.3", 15_806, 11)])
def test_a_voter_that_is_removed_ends_the_leader_by_its_late_answer(mode: str, states: int, events: int) -> None:
    """LeaderState#addAcknowledgementFrom throws; Kafka 3.9.0, 4.1.2 and 4.4.0 do the same. Nothing is violated."""
    world, found = explored(mode, QuorumBounds(epochs=1, candidates=1, records=0, losses=0, removals=1))
    assert (found.exhausted, found.states, list(found.paths)) == (True, states, ["member-ends"])
    path = [world.event(action) for action, _ in found.paths["member-ends"]]
    assert len(path) == events
    assert path[-2:] == [
        "voter 1, which leads, is asked to remove voter 2",
        "voter 1 gets BeginQuorumEpochResponse of 2 (epoch 1)",
    ]


@needs_sources
def test_a_leader_that_sends_no_snapshot_reads_what_its_log_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RaftLog, "snapshot_instead", lambda *_: None)
    world, found = explored("kraft", QuorumBounds(epochs=1, records=0, losses=0, snapshots=1))
    events = [world.event(action) for action, _ in found.paths["member-ends"]]
    assert "voter 1 makes a snapshot, with which its log begins" in events
    assert events[-1].startswith("voter 1 gets FetchRequest of")


@pytest.mark.parametrize(("mode", "events"), [("kraft", 7), ("elr-4.3", 11)])
@pytest.mark.parametrize(
    "bounds", [QuorumBounds(1, 2, 0, 0, forgets=1), QuorumBounds(1, 2, 0, 0, wipes=1)], ids=["vote", "disk"]
)
def test_a_voter_that_lost_its_vote_elects_a_second_leader(mode: str, events: int, bounds: QuorumBounds) -> None:
    world, found = explored(mode, bounds)
    path = found.paths["two-leaders"]
    assert len(path) == events
    assert any(action[0] in ("forget", "wipe") for action, _ in path)
    assert world.describe(path[-1][1]).count("Leader 1") == 2


@needs_sources
def test_votes_for_shorter_logs_lose_committed_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OffsetAndEpoch, "is_up_to_date", lambda *_: True)
    _, found = explored("kraft", QuorumBounds(epochs=2, records=0, losses=0))
    assert set(found.paths) & {"committed-metadata-lost", "committed-metadata-changed"}


def test_every_event_and_state_has_words() -> None:
    bounds = QuorumBounds(epochs=2, records=1, losses=1, wipes=1, forgets=1, snapshots=1)
    world, found = explored("elr-4.3", bounds, 3_000)
    assert not found.exhausted
    for number in range(0, 2_000, 50):
        assert world.describe(number)
        assert all(world.event(action) for action, _ in world.successors(number))


def test_kinds_that_end_a_search_are_all_but_the_warning() -> None:
    assert set(KINDS) - set(VIOLATIONS) == {"member-ends"}


@pytest.mark.parametrize(
    ("mode", "given", "quorum", "message"),
    [
        ("hw", {}, True, "--quorum has no effect in hw"),
        ("kraft", {"fences": 1}, True, "--fences has no effect with --quorum"),
        ("kraft", {"wipes": 1}, False, "--wipes needs --quorum"),
        ("hw", {"fences": 1}, False, "--fences has no effect in hw"),
    ],
)
def test_options_of_another_cluster_are_refused(mode: str, given: dict[str, int], quorum: bool, message: str) -> None:
    with pytest.raises(InputError, match=message):
        subject_of(mode, {}, given, quorum=quorum)
