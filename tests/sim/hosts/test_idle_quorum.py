"""A quorum whose idle periods are elided has the history and the state of one that is simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sim.hosts.raft_broker import RaftBroker
from sim.protocol.raft.epoch_states import FollowerState
from sim.protocol.raft.leader_state import LeaderState
from tests.sim.world import World
from tests.verification.hunt.elision import INTERVALS, compare, scenario_of

if TYPE_CHECKING:
    from sim.config import Value
    from sim.hosts.raft_member import RaftMember

MODES = ("kraft", "elr", "elr-4.3")


def made(mode: str, *, elision: bool, controllers: int = 3, intervals: dict[str, Value] = INTERVALS) -> World:
    config = {"sim.elision": elision, "auto.leader.rebalance.enable": False, **intervals}
    return World(mode, controllers=controllers, config=config).ready()


def state_of(member: RaftMember) -> object:
    """What a member knows and when it acts."""
    client = member.client
    state, log = client.quorum.state, client.log
    if isinstance(state, LeaderState):
        replicas = [state.replica_state(node) for node in sorted(member.members)]
        known = [(one.end_offset, one.last_fetch_us, one.last_caught_up_us) for one in replicas if one is not None]
        times = (state.begin_quorum_epoch_at_us, state.check_quorum_at_us, client._fetches.expires_us(), *known)
    else:
        assert isinstance(state, FollowerState)
        times = (state.fetch_timeout_at_us, client.requests.since_us(state.leader), member._armed_us)
    sizes = sum(batch.size for batch in log.batches)
    return log.end_offset, log.flushed_offset, sizes, client.high_watermark, *times


def states(world: World) -> list[object]:
    """The members' states, the brokers' metadata offsets and sessions, and how many messages were sent."""
    world.cluster.network.end_idle()
    quorum = world.cluster.quorum
    assert quorum is not None
    members = next(iter(quorum.controllers.running.values())).member.members
    found = [state_of(member) for _, member in sorted(members.items())]
    active = quorum.active
    assert active is not None
    assert active.sessions is not None
    for broker, process in sorted(world.cluster.running.items()):
        assert isinstance(process, RaftBroker)
        found.append(
            (
                process.metadata_offset,
                process.loader.received,
                len(process.loader._records),
                active.sessions.valid_until_us(broker),
            )
        )
    nodes = [*quorum.controllers.running, *world.cluster.running]
    found.append([world.cluster.network.link(one, other).sent for one in nodes for other in nodes])
    found.append((quorum.ledger.image.offset, active.controller.image.offset, active.controller.stable_offset))
    return found


@pytest.mark.parametrize("controllers", [1, 3, 5])
@pytest.mark.parametrize("mode", MODES)
def test_after_any_time_all_members_have_the_state_of_a_full_simulation(mode: str, controllers: int) -> None:
    """Times end in the middle of a period, before and while a record is appended, fetched and committed."""
    elided, simulated = (made(mode, elision=elision, controllers=controllers) for elision in (True, False))
    assert elided.cluster.kernel.now_us == simulated.cluster.kernel.now_us
    for seconds in (5, 0.41, 7.3, 0.0101, 1.013, 3.0007, 0.4996, 2.0051, 0.0013, 0.5, 4.488, 0.0009, 6.5):
        assert states(elided.run(seconds)) == states(simulated.run(seconds))
    assert elided.steps == simulated.steps


@pytest.mark.parametrize("mode", MODES)
def test_late_metadata_and_a_stalled_disk_count(mode: str) -> None:
    worlds = [made(mode, elision=elision) for elision in (True, False)]
    for world in worlds:
        world.cluster.control.delay_metadata(2, 1_234_567)
        world.cluster.machines.stall_disk(3)
    for seconds in (5, 0.41, 3.3, 0.0101, 1.013, 0.0007):
        assert states(worlds[0].run(seconds)) == states(worlds[1].run(seconds))
    for world in worlds:
        world.cluster.control.delay_metadata(2, -1_234_567)
        world.cluster.machines.unstall_disk(3)
    for seconds in (0.6, 2, 0.0101, 5.013):
        assert states(worlds[0].run(seconds)) == states(worlds[1].run(seconds))
    assert worlds[0].steps == worlds[1].steps


def test_a_quiet_quorum_costs_little() -> None:
    quiet, ticking = (made("elr-4.3", elision=elision, intervals={}).run(20) for elision in (True, False))
    before, ticked = quiet.cluster.kernel.events, ticking.cluster.kernel.events
    quiet.run(600)
    ticking.run(60)
    # What is left: sessions are checked, and heartbeats that would meet a NoOpRecord are simulated.
    assert quiet.cluster.kernel.events - before < 1_000
    assert ticking.cluster.kernel.events - ticked > 3_000


@pytest.mark.parametrize(
    ("name", "mode", "seed", "all_kinds"),
    [
        ("quorum", "kraft", 0, False),
        ("quorum", "elr-4.3", 2, True),
        ("datacenter", "elr", 4, False),
    ],
)
def test_histories_of_random_plans_are_equal_with_and_without(
    name: str, mode: str, seed: int, *, all_kinds: bool
) -> None:
    """`make hunt` tries thousands. In the third, a broker that started published metadata in the past."""
    assert not compare(scenario_of(name, all_kinds=all_kinds), [(seed, mode)]).differ
