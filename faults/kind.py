"""A kind of fault is one class that declares everything that drawing, scripts, plans and tables need.

Each kind has its own file and is listed in `faults.kinds.registry`. README.md explains how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Final

from faults.bounds import FaultBounds, Limits, aim
from faults.plan import ALL_DIRECTORIES, CONTROLLER, LEADER, Fault
from sim.hosts.cluster import Cluster
from sim.hosts.control_plane import CONTROL
from sim.kernel.streams import Stream, integer
from sim.native import mypyc_attr

PARAM_KINDS: Final[Mapping[str, str]] = {
    "batch": "the name of a new batch, which the line sends",
    "sent": "the name of a batch that a line of the script sends",
    "count": "an int from 1 on",
    "producer": "the number of a producer, an int from 1 to sim.producers",
    "directory": "the number of a log directory, an int from 1 on",
    "acks": "0, 1 or all",
    "broker": "a broker",
    "brokers": "a list of distinct brokers",
    "machine": "a broker, or a controller of a replicated quorum",
    "machines": "a list of distinct brokers, or controllers of a replicated quorum",
    "controller": "a controller of a replicated quorum",
    "leader": "a broker, or 0 for no leader",
    "replicas": "a list of distinct brokers that have a replica",
    "endpoint": "a broker or controller, or control for the control plane",
    "offset": "an int from 0 on",
    "ms": "a time, an int from 0 on",
    "election": "the election that an administrator requests",
    "message": "a kind of message",
    "file": "the name of a file in a log directory",
    "permille": "an int from 0 to 1000",
    "flag": "true or false",
    "partition": "a partition, as in orders-0",
    "topic": "a topic of the file",
    "deletable-topic": "a topic of the file, if there is another one",
    "dynamic": "settings of the topic that can change while brokers run",
}
"""Kind of a `Param` -> what it allows. `scenarios.format.values.PARAMS` has their types."""


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a script line. Without a default, it is omitted if it is not given.

    Attributes:
        kind: its type, one of `PARAM_KINDS`.
        required: whether a script line must have it.
        default: its value in a line that does not.
    """

    kind: str
    required: bool = False
    default: int | bool | None = None


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of a kind of fault.

    Attributes:
        label: for tables.
        params: the parameters of a script line that name them.
        implied: the target of a script line that names none; 0: the whole cluster.
        allows_zero: whether a plan may name 0, the control plane or the whole cluster.
        count: how many targets a plan must name; 0: at least one.
    """

    label: str
    params: Mapping[str, Param] = field(default_factory=dict)
    implied: int = 0
    allows_zero: bool = False
    count: int = 0


BROKER: Final = Targets("a broker", {"broker": Param("broker", required=True)})
"""One broker."""
MACHINE: Final = Targets("a machine", {"broker": Param("machine", required=True)})
"""The machine of a broker, or of a controller that is a process."""
REPLICATED: Final = Targets("a controller", {"broker": Param("controller", required=True)})
"""A controller that is a process."""
MACHINES: Final = Targets("machines", {"brokers": Param("machines", required=True)})
"""The machines of several brokers."""
PROCESS: Final = Targets("a process", {"node": Param("endpoint", required=True)})
"""The process of a broker, or the control plane."""
LINK: Final = Targets(
    "a link",
    {
        "from": Param("endpoint", required=True),
        "to": Param("endpoint", required=True),
        "both_ways": Param("flag", default=True),
    },
    allows_zero=True,
    count=2,
)
"""One fault strikes the link, not each of its ends."""
THE_LEADER: Final = Targets("the leader", implied=LEADER, allows_zero=True)
"""The leader when the fault strikes."""
THE_CONTROLLER: Final = Targets("the controller", implied=CONTROLLER)
"""The active controller when the fault strikes; without one, the fault has no effect."""
OF_CONTROLLERS: Final = (MACHINE, MACHINES, PROCESS, LINK, REPLICATED)
"""What may be of a controller that is a process, besides `THE_CONTROLLER`."""
CLUSTER: Final = Targets("the cluster", allows_zero=True)
"""The cluster as a whole: 0."""


@dataclass(frozen=True, slots=True)
class Amount:
    """The strength of a fault, stored in `Fault.value`.

    Attributes:
        given: the parameter's type.
        least: smallest `Fault.value` in a plan.
        param: its name in a script line.
        unit: unit of `Fault.value`.
        scale: factor from a script line's value to `Fault.value`.
        bounds: inclusive bounds for drawing it, the field of `FaultBounds` with them, or `REPLICAS`.
        most: largest `Fault.value` in a plan; None: no limit.
    """

    param: str
    given: Param
    unit: str
    bounds: tuple[int, int] | str
    scale: int = 1
    least: int = 0
    most: int | None = None


REPLICAS: Final = "replicas"
"""Bounds of an amount: 1 to the number of replicas."""
PERMILLE: Final = Param("permille", required=True)
"""A share in a script line, in permille."""
MS: Final = Param("ms")
"""A time in a script line, in ms."""


@dataclass(frozen=True, slots=True)
class Duration:
    """The duration of a fault, drawn within bounds that are a field of `FaultBounds`.

    Attributes:
        bounds: the field of `FaultBounds` within which it is drawn.
        param: its name in a script line, in ms; without it, the fault lasts until everything is healed.
        always: whether to undo the fault even if it had no effect.
    """

    bounds: str
    param: str = "for_ms"
    always: bool = False


STOPPED: Final = Duration("restart_us", "restart_ms", always=True)
"""A broker is down; then it is started, whichever fault stopped it."""
DISTURBED: Final = Duration("cut_us")
"""A link, a setting or the metadata stream is disturbed."""
STALLED: Final = Duration("pause_us")
"""A process or disk is stalled."""

KRAFT: Final = "KRaft"
"""The kind has no effect under ZooKeeper."""
OTHER_REPLICA: Final = "another replica"
"""Precondition: the partition has several replicas."""
OTHER_BROKER: Final = "another broker"
"""Precondition: the cluster has several brokers."""


class Role(Enum):
    """The role of a kind of fault in a known failure."""

    # In `faults.stories.swarm`.
    STOP_LEADER = "stops the leader"
    SILENCE = "silences a broker that keeps running"
    # In `faults.stories.last_replica` and `faults.stories.reassignments`.
    LEAVE_ISR = "makes a follower leave the ISR"
    STRIKE_LAST = "strikes the last member of the ISR"
    # In `faults.stories.last_replica`.
    BACKGROUND = "strikes at any time during the incident"
    # In `faults.stories.operations`.
    REQUEST = "is requested by an administrator"
    WHILE_DOWN = "strikes a machine that is down"


@mypyc_attr(allow_interpreted_subclasses=True)
class FaultKind:
    """A kind of fault. Subclasses declare these attributes and define `strike` and `undo`.

    A kind without `duration` declares in `remains` why there is nothing to undo.

    Attributes:
        name: its name in scenarios, plans and rows.
        targets: what it strikes.
        amount: its strength, if it has one.
        meaning: what it does, as an imperative.
        duration: None: it is over at once.
        remains: the state that a kind without duration leaves.
        needs: preconditions (`KRAFT`, `OTHER_REPLICA`, `OTHER_BROKER`); without them it has no effect.
        moves_leader: whether another broker leads after it has struck the leader.
        loses_records: whether a broker loses records from its disk or page cache.
        of_partition: whether it is about one partition, which a script may name.
        of_directory: whether it may strike one log directory alone (`faults.plan.Fault.directory`), which a script may
            name.
        roles: its roles in known failures; older kinds are listed where plans are drawn.
    """

    name: ClassVar[str]
    meaning: ClassVar[str]
    targets: ClassVar[Targets]
    amount: ClassVar[Amount | None] = None
    duration: ClassVar[Duration | None] = None
    remains: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    moves_leader: ClassVar[bool] = False
    loses_records: ClassVar[bool] = False
    of_partition: ClassVar[bool] = False
    of_directory: ClassVar[bool] = False
    roles: ClassVar[tuple[Role, ...]] = ()

    # Strike.

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Strike one target, or the link. Returns whether that took effect."""
        raise NotImplementedError

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Undo this fault if its effect is still in place. Kinds without duration do not define it."""

    # Draw.

    def is_possible(self, limits: Limits) -> bool:
        """Whether it can have an effect in a cluster of this size."""
        if OTHER_REPLICA in self.needs and len(limits.brokers) == 1:
            return False
        return OTHER_BROKER not in self.needs or len(limits.all_brokers) > 1

    def draw(self, stream: Stream, limits: Limits) -> Fault:
        """Draw a fault of this kind: time, target, amount, duration. Every plan depends on this order of draws."""
        at_us = integer(stream, *limits.window_us)
        target = self.draw_target(stream, limits)
        value = self.draw_value(stream, limits)
        return Fault(self.name, at_us, (target,), self.draw_lasts_us(stream, limits), value=value)

    def draw_target(self, stream: Stream, limits: Limits) -> int:
        """Draw a broker or role (`faults.bounds.aim`), unless the target is implied."""
        targets = self.targets
        return aim(stream, limits) if targets.params else targets.implied

    def draw_value(self, stream: Stream, limits: Limits) -> int:
        """Draw `Fault.value`; 0 for kinds without an amount."""
        amount = self.amount
        if amount is None:
            return 0
        bounds = amount.bounds
        if bounds == REPLICAS:
            bounds = (1, len(limits.brokers))
        low, high = _bounds(limits.bounds, bounds) if isinstance(bounds, str) else bounds
        return integer(stream, low, high)

    def draw_lasts_us(self, stream: Stream, limits: Limits) -> int:
        """Draw `Fault.lasts_us`; -1 for kinds without duration."""
        duration = self.duration
        return -1 if duration is None else integer(stream, *_bounds(limits.bounds, duration.bounds))

    # Script and plan.

    def params(self) -> dict[str, Param]:
        """Parameters of a script line: targets, amount, duration."""
        found = dict(self.targets.params)
        amount, duration = self.amount, self.duration
        if amount is not None:
            found[amount.param] = amount.given
        if duration is not None:
            found[duration.param] = MS
        if self.of_directory:
            found["directory"] = Param("directory")
        if self.of_partition:
            found["partition"] = Param("partition")
        return found

    def scripted(self, params: Mapping[str, Any], at_us: int) -> Fault:
        """The fault of a script line whose parameters were checked against `params`."""
        duration = self.duration
        lasts_ms = -1 if duration is None else params.get(duration.param, -1)
        return Fault(
            self.name,
            at_us,
            self.targets_of(params),
            1_000 * lasts_ms if lasts_ms >= 0 else -1,
            both_ways="from" in params and params.get("both_ways", True),
            value=self.value_of(params),
            partition=params.get("partition", ""),
            directory=params["directory"] if self.of_directory and "directory" in params else ALL_DIRECTORIES,
        )

    def targets_of(self, params: Mapping[str, Any]) -> tuple[int, ...]:
        """The targets of a script line."""
        if "from" in params:
            return node_of(params["from"]), node_of(params["to"])
        if "brokers" in params:
            return tuple(params["brokers"])
        named = params.get("node", params.get("broker"))
        return (self.targets.implied if named is None else node_of(named),)

    def value_of(self, params: Mapping[str, Any]) -> int:
        """`Fault.value` of a script line."""
        amount = self.amount
        return 0 if amount is None else amount.scale * int(params.get(amount.param, 0))

    def param_of(self, value: int) -> int | str:
        """The value of a script line for `Fault.value`; the inverse of `value_of`."""
        return value if self.amount is None else value // self.amount.scale

    def problem(self, targets: tuple[int, ...], value: int) -> str:
        """The problem of a plan's fault of this kind, as ``field: reason``; empty if there is none. Its targets are
        existing brokers, roles, or 0.
        """
        expected, amount = self.targets, self.amount
        if CONTROL in targets and not expected.allows_zero:
            return f"targets: {self.name!r} strikes brokers, of which 0 is none"
        if not targets or (expected.count and len(targets) != expected.count):
            return f"targets: {list(targets)} cannot be the targets of {self.name!r}"
        if amount is not None and (value < amount.least or (amount.most is not None and value > amount.most)):
            upwards = "upwards" if amount.most is None else f"to {amount.most}"
            return f"value: {value}: {self.name!r} takes from {amount.least} {upwards}"
        return ""


def node_of(endpoint: int | str) -> int:
    """The node that a script names: a broker, or the control plane."""
    return CONTROL if endpoint == "control" else int(endpoint)


def _bounds(bounds: FaultBounds, name: str) -> tuple[int, int]:
    low, high = getattr(bounds, name)
    return low, high
