"""Driver of the table zk_leader_election: the controller's elections, and the resulting state of the partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.protocol.zookeeper import election
from tests.sim.protocol.controlling import Store, World
from tests.verification.conformance.driving import Kind, Seen

if TYPE_CHECKING:
    from sim.protocol.rules import Rules
    from tests.verification.conformance.cases import Fields

BOUNCE = "broker re-registers with a new ZooKeeper session before the controller saw it leave"


class Given:
    """What is given, as it stands."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        self.rules = rules.as_dict()
        self.unclean = bool(given.get("unclean", False))
        self.event = given.get("event", given.get("election"))
        self.assignment = tuple(given.get("assignment", (1, 2, 3)))
        self.isr = tuple(given.get("isr", self.assignment))
        self.live = given.get("live", [])
        self.shutting_down = given.get("shutting_down", [])
        self.leader = given["leader"] if "leader" in given else self.isr[0]
        self.leader_epoch = given.get("leader_epoch", 5)
        self.replica = given.get("replica")
        self.era = given.get("mode")

    def controller(self) -> World:
        """A controller that has seen all brokers."""
        registered = {broker: 10 + broker for broker in self.assignment}
        store = Store(self.leader, self.isr, epoch=self.leader_epoch, replicas=self.assignment, registered=registered)
        return World(store, rules=self.rules, unclean=self.unclean).elected()

    def without(self, *gone: int) -> Seen:
        """These brokers are gone."""
        world = self.controller()
        for broker in gone:
            del world.store.registered[broker]
        world.controller.brokers_changed()
        leader, isr, leader_epoch = world.run().decided
        unclean = int(leader > 0 and leader not in self.isr)
        return Seen(leader=leader or None, isr=isr, leader_epoch=leader_epoch, counted_unclean=unclean)


def _chosen(choice: election.ElectionResult) -> Seen:
    return Seen(leader=choice[0] if choice else None)


def _bounce(state: Given, _: Any) -> Seen:
    world = state.controller()
    world.told.clear()
    world.store.registered[state.leader] = 99
    world.controller.brokers_changed()
    world.run()
    lost = world.decided[0] != state.leader
    came = ("lead", state.leader) in [(kind, broker) for kind, broker, *_ in world.told]
    return Seen(treated_as="failure then startup" if lost and came else "nothing")


KIND = Kind(
    begin=Given,
    ops={
        "offline": lambda state, _: state.without(*(one for one in state.assignment if one not in state.live)),
        "replica offline": lambda state, _: state.without(state.replica),
        "reassign": lambda state, _: _chosen(election.reassigned(state.assignment, state.isr, state.live)),
        "preferred": lambda state, _: _chosen(election.preferred(state.assignment, state.isr, state.live)),
        "controlled_shutdown": lambda state, _: _chosen(
            election.controlled_shutdown(state.assignment, state.isr, state.live, state.shutting_down)
        ),
        BOUNCE: _bounce,
    },
)
