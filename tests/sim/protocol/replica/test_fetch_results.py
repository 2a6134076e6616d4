from __future__ import annotations

import pytest

from sim.protocol.messages import NONE, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE, UNKNOWN_LEADER_EPOCH
from sim.protocol.modes import MODES
from sim.protocol.replica.fetch_results import IGNORED, READ, REFUSED, fetch_refusal, read_for_follower
from sim.protocol.replica.partition import Partition
from tests.sim.protocol.recording import Recorder, decision, filled

ELR = MODES["elr-4.3"].rules


def leader() -> tuple[Recorder, Partition]:
    """Broker 1, which leads in epoch 1 a log of three records of epoch 0."""
    host = Recorder()
    one = filled(host, {0: 3}, ELR)
    one.become_leader(decision(), 0)
    return host, one


@pytest.mark.parametrize(
    ("follower", "position", "error", "effect", "records"),
    [
        (2, ("t-0", 1, 1, 0), NONE, READ, 2),
        (2, ("t-0", 3, 1, 0), NONE, READ, 0),
        (2, ("t-0", 9, 1, -1), OFFSET_OUT_OF_RANGE, REFUSED, 0),
        (4, ("t-0", 1, 1, 0), UNKNOWN_LEADER_EPOCH, IGNORED, 0),
    ],
)
def test_a_follower_reads_or_is_refused(
    follower: int, position: tuple[str, int, int, int], error: str, effect: int, records: int
) -> None:
    host, one = leader()
    host.registered = {2: 7}
    result, found = read_for_follower(one, follower, 7, position)
    assert (result[0], result[1], len(result[2]), found) == ("t-0", error, records, effect)


def test_a_fetch_of_an_earlier_registration_is_not_counted() -> None:
    host, one = leader()
    host.registered = {2: 7}
    result, effect = read_for_follower(one, 2, 6, ("t-0", 1, 1, 0))
    assert (result[1], list(result[2]), effect) == (NOT_LEADER_OR_FOLLOWER, [], IGNORED)


def test_where_the_logs_diverge_is_no_error() -> None:
    host, one = leader()
    host.registered = {2: 7}
    result, effect = read_for_follower(one, 2, 7, ("t-0", 5, 1, 0))
    assert effect == IGNORED
    assert (result[1], result[6]) == (NONE, (0, 3))
    assert fetch_refusal(one, OFFSET_OUT_OF_RANGE, 0)[1] == OFFSET_OUT_OF_RANGE
