"""A controller under ZooKeeper: Kafka's KafkaController against `KafkaController`.

Operations: ``unclean`` (unclean election is allowed, from the beginning of the case on), ``change down up`` (brokers
go, others or the same come, before the controller looks), ``create replicas``, ``isr members`` (the leader writes
another ISR: itself and those of these that are replicas and registered), ``prefer``, ``reassign replicas``, ``shutdown
broker`` (it asks to be relieved), ``fail-over``. To be seen are the answer, leader, leader epoch, ISR, assignment and
the assignment that is asked for, as ZooKeeper has them when the controller has dealt with all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.protocol.decisions import Decision, Decisions
from sim.protocol.messages import LeaderAndIsr
from sim.protocol.zookeeper.controller_host import ControllerHost
from sim.protocol.zookeeper.election import BrokerInfo, Registry
from sim.protocol.zookeeper.kafka_controller import KafkaController
from tests.plain import skip_if_compiled
from tests.verification.oracle.releases import rules
from tests.verification.oracle.subject import Case, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from random import Random

    from sim.protocol.mutants import Mutation
    from sim.protocol.rules import Rules
    from sim.protocol.zookeeper.kafka_zk_client import Decide
    from sim.protocol.zookeeper.zk_operations import Operation, Steps

BROKERS: Final = (1, 2, 3, 4, 5)


class ZooKeeper:
    """The state that a controller wrote."""

    controller = 1

    def __init__(self) -> None:
        self.state = LeaderAndIsr("t", 0, -1, (), -1, ())
        self.registered: dict[int, int] = {}
        self.target: tuple[int, ...] = ()
        self.created = 0

    def brokers(self) -> dict[int, int]:
        """See `KafkaZkClient`."""
        return dict(self.registered)

    def registry(self) -> Registry:
        """See `KafkaZkClient`: each is in the process in which it joined."""
        return {broker: BrokerInfo(0, (-1, 0)) for broker in BROKERS}

    def read(self) -> tuple[LeaderAndIsr, tuple[int, ...]]:
        """See `KafkaZkClient`."""
        return self.state, self.target

    def update_state(self, controller_epoch: int, decide: Decide, *, fenced: Decision) -> LeaderAndIsr:
        """See `KafkaZkClient`."""
        change = decide(self.state, self.registry())
        if change is not None:
            self.write(*change, self.state.leader_epoch + 1, controller_epoch)
        return self.state

    def write(
        self, leader: int, isr: tuple[int, ...], replicas: tuple[int, ...], leader_epoch: int, controller_epoch: int
    ) -> None:
        """The next version of the partition's state."""
        version = self.state.partition_epoch + 1
        self.state = LeaderAndIsr("t", leader, leader_epoch, isr, version, replicas, controller_epoch)

    def assign(self, controller_epoch: int, replicas: tuple[int, ...], *, fenced: Decision) -> LeaderAndIsr:
        """See `KafkaZkClient`."""
        self.state = self.state.assigned(replicas)
        return self.state

    def delete_reassignment(self) -> None:
        """See `KafkaZkClient`."""
        self.target = ()

    def reached(self, probe: int) -> None:
        """See `KafkaZkClient`."""

    def elect(self, broker: int) -> int:
        """See `KafkaZkClient`; a controller does not request it."""
        raise NotImplementedError

    def write_isr(
        self, known: LeaderAndIsr, isr: tuple[int, ...], members: Mapping[int, int], checks: Decision, mutant: Mutation
    ) -> tuple[str, LeaderAndIsr]:
        """See `KafkaZkClient`; a controller does not request it."""
        raise NotImplementedError

    def notify_isr_change(self) -> None:
        """See `KafkaZkClient`; a controller does not request it."""
        raise NotImplementedError


HASH_ORDER: Final = {"1.1.1": (2, 5, 4, 1, 3), "2.0.0": (2, 5, 4, 1, 3), "2.6.0": (5, 1, 2, 3, 4)}
"""Brokers as a map of Scala's has them: mutable.HashMap of 2.11, immutable.HashMap of 2.13."""
SMALL_MAP: Final = 4


class HashOrdered(KafkaController):
    """Takes replicas offline in Kafka's order (groupBy in ReplicaStateMachine.handleStateChanges)."""

    release = ""

    def _take_replicas_offline(self, brokers: list[int]) -> Steps:
        order = HASH_ORDER[self.release]
        if len(brokers) > SMALL_MAP:  # The result of groupBy is immutable.
            order = HASH_ORDER["2.6.0"]
        yield from super()._take_replicas_offline(sorted(brokers, key=order.index))


class Host(ControllerHost):
    """The core's controller, and the broker that it lives in."""

    def __init__(self, rules: Rules, release: str, imitated: Collection[str], *, unclean: bool) -> None:
        self.store = ZooKeeper()
        self._wish: Operation | None = None
        self._registrations = 100
        self._epoch = 0
        kind = KafkaController
        if "zk-failed-together" in imitated:
            skip_if_compiled()
            kind = HashOrdered
        self._decide = Decisions(rules)
        self.controller = kind(0, self._decide, self, unclean_election=unclean)
        if isinstance(self.controller, HashOrdered):
            self.controller.release = release
        self.fail_over()

    # What the controller asks.

    def ask_zookeeper(self, operation: Operation) -> None:
        """See `ControllerHost`."""
        self._wish = operation

    def settle(self) -> None:
        """Execute all its requests."""
        while (wish := self._wish) is not None:
            self._wish = None
            self.controller.on_zookeeper_result(wish.apply(self.store, self._decide))

    def broker_added(self, broker: int) -> None:
        """See `ControllerHost`."""

    def broker_removed(self, broker: int) -> None:
        """See `ControllerHost`."""

    def send_leader_and_isr(self, broker: int, state: LeaderAndIsr) -> None:
        """See `ControllerHost`."""

    def send_update_metadata(self, broker: int, state: LeaderAndIsr, live: dict[int, int]) -> None:
        """See `ControllerHost`."""

    def send_stop_replica(self, broker: int, state: LeaderAndIsr, *, delete: bool) -> None:
        """See `ControllerHost`."""

    def flush(self) -> None:
        """See `ControllerHost`."""

    def active(self, epoch: int) -> None:
        """See `ControllerHost`."""

    def resigned(self) -> None:
        """See `ControllerHost`."""

    def reached(self, probe: int) -> None:
        """See `ControllerHost`."""

    # Operations.

    def unclean(self) -> Any:
        return ""

    def change(self, down: list[int], up: list[int]) -> Any:
        for broker in down:
            self.store.registered.pop(broker, None)
        for broker in up:
            self._registrations += 1
            self.store.registered.setdefault(broker, self._registrations)
        self.controller.brokers_changed()
        return ""

    def create(self, replicas: list[int]) -> Any:
        if self.store.state.partition_epoch >= 0:
            return "unknown"
        self.store.state = LeaderAndIsr("t", 0, -1, (), 0, tuple(replicas))
        self.controller.topic_created()
        return ""

    def isr(self, members: list[int]) -> Any:
        store, state = self.store, self.store.state
        if state.leader not in store.registered:
            return "unknown"
        isr = tuple(
            one for one in state.replicas if one == state.leader or (one in members and one in store.registered)
        )
        store.write(state.leader, isr, state.replicas, state.leader_epoch, state.controller_epoch)
        self.controller.isr_changed()
        return ""

    def prefer(self) -> Any:
        if self.store.state.leader_epoch < 0:
            return "unknown"
        self.controller.preferred_election()
        return ""

    def reassign(self, replicas: list[int]) -> Any:
        if self.store.state.leader_epoch < 0 or self.store.target:
            return "unknown"
        self.store.target = tuple(replicas)
        self.controller.reassignment_requested()
        return ""

    def shutdown(self, broker: int) -> Any:
        if broker not in self.store.registered:
            return "unknown"
        answers: list[Any] = []
        self.controller.controlled_shutdown(broker, 1 << 62, lambda error, led: answers.append(error or led))
        self.settle()
        return answers[0]

    def fail_over(self) -> Any:
        self._epoch += 1
        self.controller.resign()
        self.controller.elected(self._epoch)
        self.settle()
        return ""

    def shown(self) -> list[Any]:
        """What is compared."""
        state = self.store.state
        return [state.leader, state.leader_epoch, list(state.isr), list(state.replicas), list(self.store.target)]


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    host = Host(rules, release, imitated, unclean=["unclean"] in case)
    seen: Seen = []
    for name, *values in case:
        answer = getattr(host, name.replace("-", "_"))(*values)
        host.settle()
        seen.append([answer, host.shown()])
    return seen


_WEIGHTS: Final = {
    "up": 9,
    "down": 8,
    "bounce": 2,
    "change": 2,
    "isr": 10,
    "prefer": 3,
    "reassign": 3,
    "shutdown": 3,
    "fail-over": 1,
}


def draw(rng: Random, release: str) -> Case:
    """Brokers register, a topic is created, then random operations."""
    case: Case = [["unclean"]] if rng.random() < 0.3 else []
    brokers = list(BROKERS[: rng.choice((2, 3, 3, 4, 5))])
    case.append(["change", [], [broker for broker in brokers if rng.random() < 0.9]])
    case.append(["create", rng.sample(brokers, rng.randint(1, min(len(brokers), 4)))])
    for _ in range(rng.randint(5, 25)):
        name, broker = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0], rng.choice(brokers)
        match name:
            case "up":
                case.append(["change", [], [broker]])
            case "down":
                case.append(["change", [broker], []])
            case "bounce":
                case.append(["change", [broker], [broker]])
            case "change":
                down, up = ([one for one in brokers if rng.random() < 0.4] for _ in range(2))
                case.append([name, down, up])
            case "isr":
                case.append([name, [one for one in brokers if rng.random() < 0.7]])
            case "reassign":
                case.append([name, rng.sample(brokers, rng.randint(1, min(len(brokers), 4)))])
            case "shutdown":
                case.append([name, broker])
            case _:
                case.append([name])
    return case


SUBJECT: Final = Subject(
    "zk-controller",
    "kafka.controller.ZkController",
    rules("0.10.2.2", "1.1.1", "2.0.0", "2.6.0"),
    draw,
    run,
    quick=20,
    usual=100,
    deep=5_000,
    options=("-Dzookeeper.forceSync=no", "-Dzookeeper.admin.enableServer=false"),
    names_brokers=True,
)
