"""A controller without a broker: its wishes are fulfilled one by one, and what it sends is written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sim.protocol.decisions import Decision, Decisions
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.modes import mode
from sim.protocol.mutations import Mutation
from sim.protocol.probes import PROBES
from sim.protocol.zookeeper.controller_host import ControllerHost
from sim.protocol.zookeeper.election import BrokerInfo, Registry
from sim.protocol.zookeeper.kafka_controller import KafkaController
from sim.protocol.zookeeper.kafka_zk_client import ControllerMovedError, Decide
from sim.protocol.zookeeper.zk_operations import Operation
from tests.sim.protocol.recording import branches


class Store:
    """ZooKeeper as a controller sees it.

    Attributes:
        states: of the partitions; that of ``p`` first.
        targets: the requested reassignments by partition.
        deletions: the topics whose deletion is requested.
    """

    def __init__(
        self,
        leader: int,
        isr: tuple[int, ...],
        *,
        epoch: int = 5,
        replicas: tuple[int, ...] = (1, 2, 3),
        registered: dict[int, int],
        further: Sequence[LeaderAndIsr] = (),
    ) -> None:
        joined = {broker: broker for broker in isr}
        self.states = {"p": LeaderAndIsr("p", leader, epoch, isr, 1, replicas, joined=joined)}
        self.states.update({state.name: state for state in further})
        self.registered = registered
        self.targets: dict[str, tuple[int, ...]] = {}
        self.deletions: list[str] = []
        self.newest = 1
        self.controller = 1
        self.reached: Callable[[int], None] = lambda _: None
        self.registrations = {broker: BrokerInfo(broker, {}) for broker in replicas}

    @property
    def state(self) -> LeaderAndIsr:
        return self.states["p"]

    @state.setter
    def state(self, state: LeaderAndIsr) -> None:
        self.states["p"] = state

    @property
    def target(self) -> tuple[int, ...]:
        return self.targets.get("p", ())

    @target.setter
    def target(self, target: tuple[int, ...]) -> None:
        self.targets["p"] = target

    def brokers(self) -> dict[int, int]:
        return dict(self.registered)

    def registry(self) -> Registry:
        return self.registrations

    def read(self, names: tuple[str, ...] = ()) -> list[tuple[LeaderAndIsr, tuple[int, ...]]]:
        return [(self.states[name], self.targets.get(name, ())) for name in names or self.states]

    def update_state(self, controller_epoch: int, name: str, decide: Decide, *, fenced: Decision) -> LeaderAndIsr:
        old = self.states[name]
        if (self.newest if fenced.yes() else old.controller_epoch) > controller_epoch:
            raise ControllerMovedError
        change = decide(old, self.registrations)
        if change is not None:
            leader, isr, replicas = change
            self.states[name] = LeaderAndIsr(
                name, leader, old.leader_epoch + 1, isr, old.partition_epoch + 1, replicas, controller_epoch, old.joined
            )
        return self.states[name]

    def assign(self, controller_epoch: int, name: str, replicas: tuple[int, ...], *, fenced: Decision) -> LeaderAndIsr:
        if self.newest > controller_epoch and fenced.yes():
            raise ControllerMovedError
        self.states[name] = self.states[name].assigned(replicas)
        return self.states[name]

    def delete_reassignment(self, name: str) -> None:
        self.targets.pop(name, None)

    def exists(self, name: str) -> bool:
        return name in self.states

    def topic_deletions(self) -> tuple[str, ...]:
        return tuple(self.deletions)

    def delete_topic(self, controller_epoch: int, topic: str, names: tuple[str, ...], *, fenced: Decision) -> None:
        if self.newest > controller_epoch and fenced.yes():
            raise ControllerMovedError
        for name in names:
            del self.states[name]
        self.deletions.remove(topic)

    def elect(self, broker: int) -> int:
        raise NotImplementedError

    def write_isr(
        self, known: LeaderAndIsr, isr: tuple[int, ...], members: Mapping[int, int], checks: Decision, mutant: Mutation
    ) -> tuple[str, LeaderAndIsr]:
        raise NotImplementedError

    def notify_isr_change(self, names: tuple[str, ...]) -> None:
        raise NotImplementedError


class World(ControllerHost):
    """A controller whose wishes are fulfilled one by one, when `run` is called.

    Attributes:
        told: (kind of request, broker, leader epoch, ISR or live brokers) for each partition of a request.
        requests: (kind of request, broker, partitions with their leaders).
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
        self.requests: list[tuple[str, int, dict[str, int]]] = []
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

    def send_leader_and_isr(self, broker: int, states: tuple[LeaderAndIsr, ...]) -> None:
        for state in states:
            self.told.append(("lead", broker, state.leader_epoch, state.isr))
            self.assigned = state.replicas
        self._note("lead", broker, states)

    def send_update_metadata(self, broker: int, states: tuple[LeaderAndIsr, ...], live: Any) -> None:
        for state in states:
            self.told.append(("metadata", broker, state.leader_epoch, tuple(live)))
        self._note("metadata", broker, states)

    def send_stop_replica(self, broker: int, states: tuple[LeaderAndIsr, ...], *, delete: bool) -> None:
        (self.deleted if delete else self.stopped).append(broker)
        self._note("delete" if delete else "stop", broker, states)

    def _note(self, kind: str, broker: int, states: tuple[LeaderAndIsr, ...]) -> None:
        self.requests.append((kind, broker, {state.name: state.leader for state in states}))

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
