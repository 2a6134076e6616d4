from __future__ import annotations

from tests.sim.world import World


def test_a_booted_cluster_elects_replicates_and_answers() -> None:
    world = World().ready()
    assert [step["broker"] for step in world.of("elected")] == [1]
    first = world.write(3)
    assert world.logs == [[0, 1, 2]] * 3
    assert world.of("ack", record=first, count=3, offset=0)
    assert world.of("read", record=first, last=2)


def test_a_process_that_is_still_loading_is_shut_down_when_nobody_heard_it() -> None:
    world = World().ready()
    cluster = world.cluster
    assert cluster.kill(3)
    assert cluster.start(3)
    assert cluster.shut_down(3)
    world.run(20)
    assert world.of("shutdown", broker=3)
    assert 3 not in cluster.running


def test_an_answer_to_a_dead_incarnation_is_no_concern_of_the_next() -> None:
    world = World().ready()
    cluster = world.cluster
    cluster.kill(3)
    cluster.start(3)
    world.run(0.4)  # It is up, and knows no leader yet; broker 1 still holds a fetch of its predecessor.
    world.write()
    world.run(30)
    assert world.logs == [[0]] * 3


def test_a_start_during_a_shutdown_happens_after_it() -> None:
    world = World().ready()
    cluster = world.cluster
    assert cluster.shut_down(2)
    assert not cluster.start(2)
    world.run()
    assert [step["step"] for step in world.steps if step.get("broker") == 2 and step["step"] in ("shutdown", "start")] \
        == ["start", "shutdown", "start"]  # fmt: skip


def test_what_a_fault_does_to_what_does_not_run_has_no_effect() -> None:
    world = World().ready()
    cluster = world.cluster
    assert not cluster.start(1)
    assert cluster.kill(1)
    assert not cluster.kill(1)
    assert not cluster.shut_down(1)
    assert not cluster.lose_power(1)


def test_power_loss_of_a_machine_whose_process_is_down_still_costs_its_page_cache() -> None:
    world = World().ready()
    world.write(2)
    cluster = world.cluster
    cluster.kill(3)
    assert cluster.lose_power(3)
    cluster.start(3)
    world.run()
    assert world.of("recovered", broker=3)[-1]["lost"] == [0, 1]
    ends = [end for end in cluster.journal.ledger.ends if end.broker == 3]
    assert [(end.kind, sorted(end.lost)) for end in ends] == [("kill", [0])]


def test_a_halted_broker_is_started_again_by_its_supervisor_unless_somebody_was_faster() -> None:
    world = World(config={"sim.supervisor.restart.ms": 3_000}).ready()
    for wait in (4.0, 1.0):
        world.cluster.running[2].halt("told to")
        world.run(0.01)
        assert 2 not in world.cluster.running
        if wait < 3:
            world.cluster.start(2)
        starts = len(world.of("start", broker=2))
        world.run(wait)
        assert 2 in world.cluster.running
        assert len(world.of("start", broker=2)) == starts + (wait > 3)
        world.run(30)


def test_cuts_add_up_and_are_all_healed() -> None:
    world = World().ready()
    cluster = world.cluster
    cluster.cut(1, 2)
    cluster.cut(1, 2)
    assert cluster.heal(1, 2)
    assert cluster.network.link(1, 2).cuts == 1
    cluster.heal_links()
    assert cluster.network.link(1, 2).cuts == 0
    assert not cluster.heal(1, 2)


def test_the_leader_is_one_that_knows_the_latest_decision() -> None:
    world = World().ready()
    cluster = world.cluster
    assert cluster.leader is cluster.running[1]
    cluster.control.decide(1, (1, 2))
    assert cluster.leader is None
    world.run()
    assert cluster.leader is cluster.running[1]
    cluster.kill(1)
    assert cluster.leader is None
