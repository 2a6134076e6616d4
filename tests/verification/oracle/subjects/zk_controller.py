"""A controller under ZooKeeper: Kafka's KafkaController against `KafkaController`.

Operations: ``unclean`` (unclean election is allowed, from the beginning of the case on), ``change down up`` (brokers
go, others or the same come, before the controller looks), ``create assignments`` (a topic with up to three partitions),
``isr changes`` (leaders write other ISRs, and announce them together; of each partition: the leader and those of these
members that are replicas and registered), ``prefer partitions``, ``reassign changes`` (of several partitions at once),
``shutdown broker`` (it asks to be relieved), ``fail-over``. To be seen are the answer, and of each partition leader,
leader epoch, ISR, assignment and the assignment that is asked for, as ZooKeeper has them when the controller has dealt
with all.
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

    from sim.protocol.mutations import Mutation
    from sim.protocol.rules import Rules
    from sim.protocol.zookeeper.kafka_zk_client import Decide
    from sim.protocol.zookeeper.zk_operations import Operation, Steps

BROKERS: Final = (1, 2, 3, 4, 5)


class ZooKeeper:
    """The states that a controller wrote."""

    controller = 1

    def __init__(self) -> None:
        self.states: dict[str, LeaderAndIsr] = {}
        self.registered: dict[int, int] = {}
        self.targets: dict[str, tuple[int, ...]] = {}

    def brokers(self) -> dict[int, int]:
        """See `KafkaZkClient`."""
        return dict(self.registered)

    def registry(self) -> Registry:
        """See `KafkaZkClient`: each is in the process in which it joined."""
        return {broker: BrokerInfo(0, {}) for broker in BROKERS}

    def read(self, names: tuple[str, ...] = ()) -> list[tuple[LeaderAndIsr, tuple[int, ...]]]:
        """See `KafkaZkClient`."""
        return [(self.states[name], self.targets.get(name, ())) for name in names or self.states]

    def update_state(self, controller_epoch: int, name: str, decide: Decide, *, fenced: Decision) -> LeaderAndIsr:
        """See `KafkaZkClient`."""
        change = decide(self.states[name], self.registry())
        if change is not None:
            self.write(name, *change, self.states[name].leader_epoch + 1, controller_epoch)
        return self.states[name]

    def write(
        self,
        name: str,
        leader: int,
        isr: tuple[int, ...],
        replicas: tuple[int, ...],
        leader_epoch: int,
        controller_epoch: int,
    ) -> None:
        """The next version of a partition's state."""
        version = self.states[name].partition_epoch + 1
        self.states[name] = LeaderAndIsr(name, leader, leader_epoch, isr, version, replicas, controller_epoch)

    def assign(self, controller_epoch: int, name: str, replicas: tuple[int, ...], *, fenced: Decision) -> LeaderAndIsr:
        """See `KafkaZkClient`."""
        self.states[name] = self.states[name].assigned(replicas)
        return self.states[name]

    def delete_reassignment(self, name: str) -> None:
        """See `KafkaZkClient`."""
        del self.targets[name]

    def exists(self, name: str) -> bool:
        """See `KafkaZkClient`."""
        return name in self.states

    def topic_deletions(self) -> tuple[str, ...]:
        """See `KafkaZkClient`: no topic is deleted."""
        return ()

    def delete_topic(self, controller_epoch: int, topic: str, names: tuple[str, ...], *, fenced: Decision) -> None:
        """See `KafkaZkClient`."""
        raise NotImplementedError

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

    def notify_isr_change(self, names: tuple[str, ...]) -> None:
        """See `KafkaZkClient`; a controller does not request it."""
        raise NotImplementedError


HASH_ORDER: Final = {"1.1.1": (2, 5, 4, 1, 3), "2.0.0": (2, 5, 4, 1, 3), "2.6.0": (5, 1, 2, 3, 4)}
"""Brokers as a map of Scala's has them: mutable.HashMap of 2.11, immutable.HashMap of 2.13."""
SMALL_MAP: Final = 4


class HashOrdered(KafkaController):
    """Takes replicas offline in Kafka's order (groupBy in ReplicaStateMachine.handleStateChanges)."""

    release = ""

    def _take_brokers_offline(self, brokers: list[int]) -> Steps:
        order = HASH_ORDER[self.release]
        if len(brokers) > SMALL_MAP:  # The result of groupBy is immutable.
            order = HASH_ORDER["2.6.0"]
        yield from super()._take_brokers_offline(sorted(brokers, key=order.index))


class SetOrdered(KafkaController):
    """Takes replicas offline in the order of a set of replicas (KafkaController.onBrokerFailure of 0.10.2)."""

    def _take_brokers_offline(self, brokers: list[int]) -> Steps:
        replicas = [(broker, name) for broker in brokers for name in self.context.partitions_on(broker)]
        if len(replicas) > SMALL_MAP:  # An immutable.HashSet.
            replicas.sort(key=lambda replica: _place(_hash(replica[1], replica[0])))
        for broker, name in replicas:
            yield from self._replicas.take_offline(broker, (name,))


def _hash(name: str, broker: int) -> int:
    """Hash code of PartitionAndReplica, a case class of Scala's 2.11 (Statics.mix, Statics.finalizeHash)."""
    topic, _, partition = name.partition("-")
    found = 0xCAFEBABE
    for value in (ord(topic), int(partition), broker):
        mixed = value * 0xCC9E2D51 & _INT
        mixed = (mixed << 15 | mixed >> 17) & _INT
        found ^= mixed * 0x1B873593 & _INT
        found = (found << 13 | found >> 19) & _INT
        found = found * 5 + 0xE6546B64 & _INT
    found ^= 3
    found = (found ^ found >> 16) * 0x85EBCA6B & _INT
    found = (found ^ found >> 13) * 0xC2B2AE35 & _INT
    return found ^ found >> 16


def _place(number: int) -> tuple[int, ...]:
    """The place in an immutable.HashSet: of the improved hash, five bits at a time."""
    number = (number + ~(number << 9)) & _INT
    number ^= number >> 14
    number = (number + (number << 4)) & _INT
    number ^= number >> 10
    return tuple((number >> bits) & 31 for bits in range(0, 32, 5))


_INT: Final = (1 << 32) - 1


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
            kind = HashOrdered if release in HASH_ORDER else SetOrdered
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

    def send_leader_and_isr(self, broker: int, states: tuple[LeaderAndIsr, ...]) -> None:
        """See `ControllerHost`."""

    def send_update_metadata(self, broker: int, states: tuple[LeaderAndIsr, ...], live: dict[int, int]) -> None:
        """See `ControllerHost`."""

    def send_stop_replica(self, broker: int, states: tuple[LeaderAndIsr, ...], *, delete: bool) -> None:
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

    def create(self, assignments: list[list[int]]) -> Any:
        states = self.store.states
        if states:
            return "unknown"
        for number, replicas in enumerate(assignments):
            states[_name(number)] = LeaderAndIsr(_name(number), 0, -1, (), 0, tuple(replicas))
        self.controller.topic_created(tuple(states))
        return ""

    def isr(self, changes: list[tuple[int, list[int]]]) -> Any:
        store = self.store
        changed = []
        for number, members in changes:
            state = store.states.get(_name(number))
            if state is None or state.leader not in store.registered:
                continue
            isr = tuple(
                replica
                for replica in state.replicas
                if replica == state.leader or (replica in members and replica in store.registered)
            )
            store.write(state.name, state.leader, isr, state.replicas, state.leader_epoch, state.controller_epoch)
            changed.append(state.name)
        if not changed:
            return "unknown"
        for name in changed:
            if name in store.targets:
                self.controller.isr_changed((name,))
        self.controller.isr_changed(tuple(changed))
        return ""

    def _existing(self, numbers: list[int]) -> list[str]:
        return [name for name in map(_name, numbers) if self.controller.context.exists(name)]

    def prefer(self, numbers: list[int]) -> Any:
        existing = self._existing(numbers)
        if not existing:
            return "unknown"
        self.controller.preferred_election(tuple(existing))
        return ""

    def reassign(self, changes: list[tuple[int, list[int]]]) -> Any:
        existing = self._existing([number for number, _ in changes])
        if not existing or self.store.targets:
            return "unknown"
        self.store.targets.update(
            {_name(number): tuple(replicas) for number, replicas in changes if _name(number) in existing}
        )
        self.controller.reassignment_requested(tuple(existing))
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
        found = []
        for state, target in self.store.read():
            found.append([state.leader, state.leader_epoch, list(state.isr), list(state.replicas), list(target)])
        return found


def _name(number: int) -> str:
    return f"t-{number}"


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


PARTITIONS: Final = {"0.10.2.2": (1, 2, 3), "1.1.1": (1, 2, 3), "2.0.0": (1, 2, 3), "2.6.0": (1, 2, 3)}
"""How many partitions the topic has."""


def draw(rng: Random, release: str) -> Case:
    """Brokers register, a topic is created, then random operations."""
    case: Case = [["unclean"]] if rng.random() < 0.3 else []
    brokers = list(BROKERS[: rng.choice((2, 3, 3, 4, 5))])
    several = range(rng.choice(PARTITIONS[release]))
    case.append(["change", [], [broker for broker in brokers if rng.random() < 0.9]])
    case.append(["create", [_replicas(rng, brokers) for _ in several]])
    for _ in range(rng.randint(5, 25)):
        name, broker = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0], rng.choice(brokers)
        some = sorted(rng.sample(several, rng.randint(1, len(several))))
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
                case.append([name, [[number, [one for one in brokers if rng.random() < 0.7]] for number in some]])
            case "prefer":
                case.append([name, some])
            case "reassign":
                case.append([name, [[number, _replicas(rng, brokers)] for number in some]])
            case "shutdown":
                case.append([name, broker])
            case _:
                case.append([name])
    return case


def _replicas(rng: Random, brokers: list[int]) -> list[int]:
    return rng.sample(brokers, rng.randint(1, min(len(brokers), 4)))


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
