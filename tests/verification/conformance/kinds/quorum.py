"""Driver of cases that tell a KRaft controller what happens, and of those about the ISR changes that it refuses.

Brokers count from 0 in the table, and from 1 here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sim.protocol.kraft.metadata import BrokerRegistration, PartitionRegistration, Record
from sim.protocol.messages import NONE
from tests.sim.protocol.quorum_host import QuorumHost
from tests.verification.conformance.cases import Fields, TableError
from tests.verification.conformance.driving import Kind, Seen
from tests.verification.conformance.kinds.partition_change import NAME, look, ours, registration, theirs

if TYPE_CHECKING:
    from sim.protocol.rules import Rules

BROKERS: Final = range(6)
"""All that a case without a list of brokers names."""
UNCLEAN: Final = "unclean.leader.election.enable"
EJECTED, OTHER, LAST_LEADER = "one ELR member", "the other ELR member", "the last known leader"
_ERRORS: Final = {NONE: "NONE"}
ORDER: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("UNKNOWN_TOPIC_OR_PARTITION", {"name": "?"}),
    ("NOT_CONTROLLER if leader epoch newer", {"leader_epoch": 9}),
    ("NOT_CONTROLLER if partition epoch newer", {"partition_epoch": 9}),
    ("FENCED_LEADER_EPOCH if leader epoch older", {"leader_epoch": 0}),
    ("INVALID_REQUEST if sender not leader", {"by": 1}),
    ("INVALID_UPDATE_VERSION if partition epoch older", {"partition_epoch": 0}),
    ("INVALID_REQUEST bad ISR / leader missing / recovery rules", {"isr": (2, 3, 3)}),
    ("INELIGIBLE_REPLICA (OPERATION_NOT_ATTEMPTED for request version <= 1)", {"isr": (1, 2, 3)}),
)
"""What is wrong with a request, in the order of the checks, for a partition that 2 leads while 1 is fenced."""


class World:
    """A controller with its partitions; a case's only partition is the one called `NAME`."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        self.elr = given.get("elr_enabled", False)
        assert self.elr == (rules.elr == "on")
        # Chosen by rules_for.
        given.get("metadata_version")
        self.unclean = given.get("unclean_config")
        if self.unclean not in (None, "static", "dynamic_node"):
            raise TableError(f"unclean_config {self.unclean!r} is not understood")
        config = {"min.insync.replicas": given.get("min_isr", 1), UNCLEAN: self.unclean == "static"}
        self.host = QuorumHost(rules, config)
        brokers = given.get("brokers", BROKERS)
        self.host.register(*ours(brokers))
        self.host.unfence(*ours(given.get("unfenced", brokers)))
        for name, replicas in given.part("partitions").items():
            self.host.create(*ours(replicas), name=name)
        if "partition" in given:
            self._create(given["partition"])
        self.before_alter: PartitionRegistration | None = None
        self.roles: dict[str, int] = {}

    def _create(self, given: Fields) -> None:
        """A partition as given: made by the controller, or as it stands after some history."""
        if given["replicas"] == "any order of 1,2,3":
            self.host.create(2, 3, 4, name=NAME)
            return
        self.host.create(*ours(given["replicas"]), name=NAME)
        self.host.fence(*ours(given.get("fenced", ())))
        wanted = registration(given, name=NAME)
        if look(wanted) != look(self.host.image.partitions[NAME]):
            self.commit(wanted)

    def commit(self, record: Record) -> None:
        """Add records that are in the log already."""
        self.host.image.replay(record)
        self.host.records.append(record)

    def see(self) -> Seen:
        """The only partition, and all of them by name."""
        states = {name: look(state) for name, state in self.host.image.partitions.items()}
        return Seen(states.get(NAME, {}), **states)


def _broker(op: Fields) -> int:
    return int(op["broker"]) + 1


def _fence(world: World, op: Fields) -> None:
    world.host.fence(*ours(op["brokers"]))


def _fence_all(world: World, _: Fields) -> None:
    host = world.host
    host.fence(*sorted(host.image.brokers))
    (last,) = host.state.last_known_elr
    (other,) = set(host.state.elr) - {last}
    world.roles = {EJECTED: last, LAST_LEADER: last, OTHER: other}


def _unfence(world: World, op: Fields) -> Seen | None:
    if "brokers" in op:
        world.host.unfence(*ours(op["brokers"]))
        return None
    world.host.unfence(world.roles[op["broker"]])
    return _named(world)


def _register(world: World, op: Fields) -> Seen:
    before = world.host.state.last_known_elr
    world.host.register(world.roles[op["broker"]])
    seen = _named(world)
    if world.host.state.last_known_elr == before:
        seen["last_known_elr"] = "unchanged"
    return seen


def _named(world: World) -> Seen:
    """The only partition, with the parts that brokers have in the case for their numbers."""
    names = {world.roles[role]: role for role in (EJECTED, OTHER)}
    state = world.host.state
    return Seen(
        leader=names.get(state.leader),
        isr=[names[broker] for broker in state.isr],
        elr=[names[broker] for broker in state.elr],
        last_known_elr=[names[broker] for broker in state.last_known_elr],
    )


def _alter(world: World, op: Fields) -> Seen:
    name = str(op.get("partition", NAME))
    by = int(op["by"]) + 1
    broker_epoch = None
    if "broker_epoch" in op:
        if op["broker_epoch"] != "current-1":
            raise TableError(f"broker_epoch {op['broker_epoch']!r} is not understood")
        broker_epoch = world.host.image.brokers[by].broker_epoch - 1
    before = len(world.host.records)
    world.before_alter = world.host.image.partitions[name]
    error, isr, partition_epoch, leader_epoch, _ = world.host.request(
        *ours(op["new_isr"]),
        name=name,
        by=by,
        broker_epoch=broker_epoch,
        leader_epoch=op.get("leader_epoch"),
        partition_epoch=op.get("partition_epoch"),
        recovering=op.get("recovery") == "RECOVERING",
    )
    state = world.host.image.partitions[name]
    if not error and (isr, partition_epoch, leader_epoch) != (state.isr, state.partition_epoch, state.leader_epoch):
        raise AssertionError(
            f"the answer does not echo the partition: {theirs(isr)}, {partition_epoch}, {leader_epoch}"
        )
    return Seen(error=_ERRORS.get(error, error), record_written=len(world.host.records) > before)


def _order(world: World, _: Fields) -> list[str]:
    """Combine each error of a request with the next one: the earlier check has to win."""
    host = world.host
    host.fence(1)
    found = []
    for (label, wrong), (_next, also) in zip(ORDER, [*ORDER[1:], ORDER[-1]], strict=True):
        request: dict[str, Any] = {"by": 2, "isr": (2, 3), "name": NAME} | also | wrong
        error = host.request(*request.pop("isr"), **request)[0]
        found.append(label if label.split()[0] == error else error)
    return found


def _mark(world: World, op: Fields) -> None:
    known = world.host.image.brokers[_broker(op)]
    world.commit(replace(known, shutting_down=True))


def _elect(world: World, op: Fields) -> Seen:
    controller = world.host.controller
    errors = {name: controller.elect(name, op["type"]) for name in world.host.image.partitions}
    return Seen(
        {name: _ERRORS.get(error, error) for name, error in errors.items()},
        state=world.see(),
        leader=world.see().get("leader"),
    )


def _is_imbalanced(world: World, _: Fields) -> bool:
    return any(state.leader != state.replicas[0] for state in world.host.image.partitions.values())


def _balance(world: World, op: Fields) -> Seen:
    world.host.controller.balance()
    return Seen(still_imbalanced=_is_imbalanced(world, op))


def _periodic(world: World, op: Fields) -> None:
    if world.unclean == "dynamic_node":
        world.host.controller.set(UNCLEAN, True)
    changed = world.host.controller.check_unclean()
    if changed != (0 if op["records"] == "none" else int(op["records"])):
        raise AssertionError(f"expected {op['records']} records, got {changed}")


def _set_config(world: World, op: Fields) -> None:
    world.host.controller.set(UNCLEAN, op["unclean"])


def _shut_down(world: World, op: Fields) -> Seen:
    host, broker, before = world.host, _broker(op), len(world.host.records)
    epoch = host.image.brokers[broker].broker_epoch
    host.controller.heartbeat(broker, epoch, host.image.offset, want_shut_down=True)
    return Seen(records=[_told(record) for record in host.records[before:]])


def _told(record: Record) -> str:
    if isinstance(record, PartitionRegistration):
        isr = ",".join(str(broker) for broker in theirs(record.isr))
        return f"partition {record.name}: isr [{isr}], leader {record.leader - 1}"
    assert isinstance(record, BrokerRegistration)
    return f"broker {record.broker - 1} {'in controlled shutdown' if record.shutting_down else 'registered'}"


def _reassign(world: World, op: Fields) -> None:
    error = world.host.controller.reassign(NAME, ours(op["to"]))
    if error:
        raise AssertionError(f"refused with {error}")


def _cancel(world: World, op: Fields) -> None:
    if "not replayed" in op.get("note", ""):
        assert world.before_alter is not None
        world.commit(world.before_alter)
    error = world.host.controller.cancel_reassignment(NAME)
    if error:
        raise AssertionError(f"refused with {error}")


KIND = Kind(
    begin=World,
    ops={
        "fence": _fence,
        "fence_all": _fence_all,
        "unfence": _unfence,
        "register_new_incarnation": _register,
        "alter_partition": _alter,
        "order": _order,
        "mark_in_controlled_shutdown": _mark,
        "elect_leaders": _elect,
        "imbalanced": _is_imbalanced,
        "balance": _balance,
        "periodic_unclean_check": _periodic,
        "set_config": _set_config,
        "heartbeat_want_shutdown": _shut_down,
        "reassign": _reassign,
        "cancel_reassign": _cancel,
    },
    observe=World.see,
)
