"""A controller without a broker: its wishes are fulfilled one by one, and what it sends is written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sim.protocol.decisions import Decision, Decisions
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.modes import mode
from sim.protocol.mutants import Mutation
from sim.protocol.probes import PROBES
from sim.protocol.zookeeper.controller_host import ControllerHost
from sim.protocol.zookeeper.election import BrokerInfo, Registry
from sim.protocol.zookeeper.kafka_controller import KafkaController
from sim.protocol.zookeeper.kafka_zk_client import ControllerMovedError, Decide
from sim.protocol.zookeeper.zk_operations import Operation
from tests.sim.protocol.recording import branches


class Store:
    """ZooKeeper as a controller sees it."""

    def __init__(
        self,
        leader: int,
        isr: tuple[int, ...],
        *,
        epoch: int = 5,
        replicas: tuple[int, ...] = (1, 2, 3),
        registered: dict[int, int],
    ) -> None:
        joined = {broker: broker for broker in isr}
        self.state = LeaderAndIsr("p", leader, epoch, isr, 1, replicas, joined=joined)
        self.registered = registered
        self.target: tuple[int, ...] = ()
        self.newest = 1
        self.controller = 1
        self.reached: Callable[[int], None] = lambda _: None
        self.registrations = {broker: BrokerInfo(broker, (-1, 0)) for broker in replicas}

    def brokers(self) -> dict[int, int]:
        return dict(self.registered)

    def registry(self) -> Registry:
        return self.registrations

    def read(self) -> tuple[LeaderAndIsr, tuple[int, ...]]:
        return self.state, self.target

    def update_state(self, controller_epoch: int, decide: Decide, *, fenced: Decision) -> LeaderAndIsr:
        if (self.newest if fenced.yes() else self.state.controller_epoch) > controller_epoch:
            raise ControllerMovedError
        change = decide(self.state, self.registrations)
        if change is not None:
            old = self.state
            leader, isr, replicas = change
            self.state = LeaderAndIsr(
                "p", leader, old.leader_epoch + 1, isr, old.partition_epoch + 1, replicas, controller_epoch, old.joined
            )
        return self.state

    def assign(self, controller_epoch: int, replicas: tuple[int, ...], *, fenced: Decision) -> LeaderAndIsr:
        if self.newest > controller_epoch and fenced.yes():
            raise ControllerMovedError
        self.state = self.state.assigned(replicas)
        return self.state

    def delete_reassignment(self) -> None:
        self.target = ()

    def elect(self, broker: int) -> int:
        raise NotImplementedError

    def write_isr(
        self, known: LeaderAndIsr, isr: tuple[int, ...], members: Mapping[int, int], checks: Decision, mutant: Mutation
    ) -> tuple[str, LeaderAndIsr]:
        raise NotImplementedError

    def notify_isr_change(self) -> None:
        raise NotImplementedError


class World(ControllerHost):
    """A controller whose wishes are fulfilled one by one, when `run` is called.

    Attributes:
        told: (kind of request, broker, leader epoch, ISR or live brokers).
        stopped: brokers that were told to stop following.
        deleted: brokers that were told to delete their replica.
        assigned: the assignment that was told last.
        working: whether it is controller.
    """

    def __init__(
        self, store: Store, name: str = "kip320", rules: dict[str, str] | None = None, *, unclean: bool = False
    ) -> None:
        self.store = store
        store.reached = self.reached
        self.told: list[tuple[str, int, int, tuple[int, ...]]] = []
        self.deleted: list[int] = []
        self.stopped: list[int] = []
        self.assigned: tuple[int, ...] = ()
        self.working = False
        self.transitions: set[str] = set()
        self._wish: Operation | None = None
        self.decide = Decisions(mode(name).rules.override(rules or {}))
        self.controller = KafkaController(1, self.decide, self, unclean_election=unclean)

    def ask_zookeeper(self, operation: Operation) -> None:
        assert self._wish is None
        self._wish = operation

    def step(self) -> bool:
        wish, self._wish = self._wish, None
        if wish is None:
            return False
        try:
            result: Any = wish.apply(self.store, self.decide)
        except ControllerMovedError:
            self.controller.on_controller_moved()
        else:
            self.controller.on_zookeeper_result(result)
        return True

    def session_lost(self) -> None:
        """The session ends; a wish that does not outlive it is dropped, as the broker does."""
        if self.decide.fences_controller_writes.answer:
            self._wish = None
        self.controller.session_lost()

    def run(self) -> World:
        while self.step():
            pass
        return self

    def elected(self) -> World:
        self.controller.elected(1)
        return self.run()

    def broker_added(self, broker: int) -> None:
        pass

    def broker_removed(self, broker: int) -> None:
        pass

    def send_leader_and_isr(self, broker: int, state: LeaderAndIsr) -> None:
        self.told.append(("lead", broker, state.leader_epoch, state.isr))
        self.assigned = state.replicas

    def send_update_metadata(self, broker: int, state: LeaderAndIsr, live: Any) -> None:
        self.told.append(("metadata", broker, state.leader_epoch, tuple(live)))

    def send_stop_replica(self, broker: int, state: LeaderAndIsr, *, delete: bool) -> None:
        (self.deleted if delete else self.stopped).append(broker)

    def flush(self) -> None:
        pass

    def active(self, epoch: int) -> None:
        self.working = True

    def resigned(self) -> None:
        self.working = False

    def reached(self, probe: int) -> None:
        self.transitions.add(PROBES[probe].name)

    @property
    def probes(self) -> set[str]:
        """What was reached: transitions, and branches of rules."""
        return self.transitions | branches(self.decide)

    def of(self, kind: str) -> list[tuple[int, int]]:
        return [(broker, epoch) for what, broker, epoch, _ in self.told if what == kind]

    @property
    def decided(self) -> tuple[int, tuple[int, ...], int]:
        state = self.store.state
        return state.leader, state.isr, state.leader_epoch
