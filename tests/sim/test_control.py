from __future__ import annotations

import pytest

from sim.protocol.messages import IsrChange
from tests.sim.world import SECOND_US, World


def change(world: World, isr: tuple[int, ...], *, behind: int = 0, broker: int = 1) -> IsrChange:
    """A leader's wish for an ISR, on a partition epoch so far behind the present one."""
    state = world.cluster.control.state
    incarnations = dict.fromkeys((1, 2, 3), 1)
    return IsrChange(broker, state.name, isr, state.leader_epoch, state.partition_epoch - behind, incarnations)


def test_a_session_ends_when_heartbeats_stop_and_the_first_live_member_is_elected() -> None:
    world = World().ready()
    killed_us = world.cluster.kernel.now_us
    world.cluster.kill(1)
    world.run(30)
    ended = world.of("session-end", broker=1)[0]["t"]
    assert 18 * SECOND_US - 6 * SECOND_US <= ended - killed_us <= 18 * SECOND_US
    assert world.of("elected")[-1] == {"t": ended, "step": "elected", "broker": 2, "leader_epoch": 1}
    assert world.of("isr")[-1]["isr"] == [2, 3]


def test_a_follower_that_goes_leaves_the_isr_and_raises_the_leader_epoch() -> None:
    world = World().ready()
    world.cluster.kill(3)
    world.run(30)
    assert len(world.of("elected")) == 1
    assert [(step["isr"], step["leader_epoch"]) for step in world.of("isr")] == [([1, 2], 1)]
    assert world.of("lead", broker=1)[-1]["leader_epoch"] == 1


def test_the_last_member_stays_in_the_isr_and_is_waited_for() -> None:
    world = World(brokers=2).ready()
    world.cluster.kill(1)
    world.run(30)
    world.cluster.kill(2)
    world.run(30)
    assert world.of("elected")[-1]["broker"] == 0
    assert world.cluster.control.state.isr == (2,)
    world.cluster.start(1)
    world.run(10)
    assert world.of("elected")[-1]["broker"] == 0
    world.cluster.start(2)
    world.run(10)
    assert world.of("elected")[-1]["broker"] == 2


def test_unclean_election_takes_whoever_lives() -> None:
    world = World(brokers=2, config={"unclean.leader.election.enable": True}).ready()
    world.cluster.kill(1)
    world.run(30)
    world.cluster.kill(2)
    world.run(30)
    world.cluster.start(1)
    world.run(10)
    assert world.of("elected")[-1]["broker"] == 1
    assert world.cluster.control.state.isr == (1,)


def test_every_change_of_leader_or_isr_raises_the_epoch() -> None:
    world = World().ready()
    for broker in (1, 2):
        world.cluster.kill(broker)
        world.run(30)
        world.cluster.start(broker)
        world.run(30)
    epochs = [step["leader_epoch"] for step in world.steps if step["step"] in ("elected", "isr")]
    assert epochs == [0, 1, 1, 2, 3, 3, 4]  # A leader that goes is out of the ISR by the same decision.
    assert world.cluster.control.state.isr == (1, 2, 3)


def test_a_controlled_restart_ends_the_session_at_once() -> None:
    world = World().ready()
    told_us = world.cluster.kernel.now_us
    world.cluster.shut_down(1)
    world.run(1)
    assert world.of("session-end", broker=1)[0]["t"] - told_us < 10_000
    assert world.of("shutdown", broker=1)
    assert world.of("elected")[-1]["broker"] == 2


def test_a_restart_within_the_old_session_waits_for_its_end() -> None:
    world = World().ready()
    world.cluster.kill(3)
    world.run(1)
    world.cluster.start(3)
    world.run(30)
    assert len(world.of("recovered", broker=3)) == 2
    end, register = world.of("session-end", broker=3)[0]["t"], world.of("registered", broker=3)[1]["t"]
    assert end == register > world.of("recovered", broker=3)[1]["t"] + 5 * SECOND_US
    assert not [
        step for step in world.of("follow", broker=3) if world.of("recovered", broker=3)[1]["t"] < step["t"] < end
    ]


@pytest.mark.parametrize("end", ["kill", "shut_down"])
def test_a_process_that_ended_while_it_waited_is_never_registered(end: str) -> None:
    world = World().ready()
    world.cluster.kill(1)
    world.cluster.start(1)
    world.run(1)
    getattr(world.cluster, end)(1)
    world.run(30)
    assert len(world.of("registered", broker=1)) == 1
    assert world.of("elected")[-1]["broker"] == 2
    assert 1 not in world.cluster.control.sessions


def test_an_isr_change_counts_only_on_the_epoch_that_its_leader_knows() -> None:
    world = World().ready()
    control = world.cluster.control
    control.on_isr_change(change(world, (1, 2), behind=1))
    control.on_isr_change(change(world, (1, 2), broker=2))
    assert len(control.state.isr) == 3
    control.on_isr_change(change(world, (1, 2)))
    assert len(control.state.isr) == 2


@pytest.mark.parametrize(("rule", "isr"), [("any", (1, 2, 3)), ("registered", (1, 2))])
def test_whether_a_member_must_be_registered_is_a_rule(rule: str, isr: tuple[int, ...]) -> None:
    world = World(rules={"isr_eligibility": rule}).ready()
    control = world.cluster.control
    world.cluster.kill(3)
    world.run(30)
    control.on_isr_change(change(world, (1, 2, 3)))
    assert control.state.isr == isr


def test_an_eligible_member_is_of_the_incarnation_that_fetched() -> None:
    world = World(rules={"isr_eligibility": "registered"}).ready()
    control = world.cluster.control
    control.on_isr_change(change(world, (1, 2)))
    world.cluster.shut_down(3)
    world.run(0.1)
    world.cluster.cut(3, 1)
    world.cluster.start(3)
    world.run(0.25)
    assert control.sessions[3].incarnation == 2
    control.on_isr_change(change(world, (1, 2, 3)))
    assert control.state.isr == (1, 2)


def test_a_decision_that_was_missed_comes_again_with_a_heartbeat() -> None:
    world = World().ready()
    world.cluster.cut(0, 2)
    world.cluster.control.decide(3, (1, 2, 3))
    world.run(1)
    world.cluster.heal_links()
    assert not world.of("follow", broker=2, leader=3)
    world.run(6)
    assert world.of("follow", broker=2, leader=3)


def test_a_script_decides_until_it_lets_go() -> None:
    world = World(scripted=True).ready()
    control = world.cluster.control
    assert not world.of("elected")
    control.decide(2, (1, 2, 3))
    world.run()
    assert world.of("lead", broker=2)
    world.cluster.kill(2)
    world.cluster.start(2)
    world.run(1)
    assert len(world.of("registered", broker=2)) == 2
    world.cluster.kill(2)
    world.run(30)
    control.on_isr_change(change(world, (2,), broker=2))
    assert (control.state.leader, control.state.isr) == (2, (1, 2, 3))
    control.release()
    assert (control.state.leader, control.state.isr) == (1, (1, 3))
