from __future__ import annotations

import pytest

from sim.hosts.control_planes import CONTROL_PLANES
from sim.hosts.zookeeper import ScriptedZooKeeper
from sim.protocol.rules import RULES
from tests.sim.world import World


def test_each_value_of_the_rule_has_a_control_plane() -> None:
    assert set(CONTROL_PLANES) == set(RULES["control_plane"].values)


@pytest.mark.parametrize("mode", ["kip320", "elr"])
def test_a_script_holds_the_seat_in_every_mode(mode: str) -> None:
    assert type(World(mode, scripted=True).cluster.control) is ScriptedZooKeeper
    assert type(World(mode).cluster.control) in CONTROL_PLANES.values()
    assert type(World(mode).cluster.control) is not ScriptedZooKeeper


@pytest.mark.parametrize("mode", ["kip320", "elr"])
def test_only_a_quorum_has_more_to_settle_in_the_end(mode: str) -> None:
    world = World(mode).run()
    control, cluster = world.cluster.control, world.cluster
    assert bool(control.unsettled_work(control.state, changes_isr=False, writes_answered=False)) == (mode == "elr")
    assert control.unsettled_work(control.state, changes_isr=False, writes_answered=True) == ""
    cluster.kill(2)
    world.run(20)
    assert bool(control.unsettled_brokers(cluster.settings, cluster.running)) == (mode == "elr")
