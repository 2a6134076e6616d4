"""What a kind of fault is: one class, which declares all that drawing, scripts, plans and tables need to know of it.

A kind has a file of its own and a place in `faults.kinds.registry`. README.md in this folder says how to write one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Final

from faults.bounds import FaultDraw, Limits, aim
from faults.plan import CONTROLLER, LEADER, Fault
from sim.hosts.cluster import Cluster
from sim.hosts.control_plane import CONTROL
from sim.kernel.streams import Stream, integer


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a script line.

    Attributes:
        kind: what it holds, one of `scenarios.format.schema.PARAMS`.
        required: whether a script line must give it.
        default: its value when it is not given; None: left out.
    """

    kind: str
    required: bool = False
    default: int | bool | None = None


@dataclass(frozen=True, slots=True)
class Targets:
    """What faults of a kind strike.

    Attributes:
        word: for people.
        params: how a script line names it.
        implied: who is struck where a script line names nobody; 0: the cluster as a whole.
        whole: whether 0, the control plane or the cluster as a whole, may be among a plan's targets.
        ends: how many targets a plan must name; 0: any number but none.
    """

    word: str
    params: Mapping[str, Param] = field(default_factory=dict)
    implied: int = 0
    whole: bool = False
    ends: int = 0


BROKER: Final = Targets("a broker", {"broker": Param("broker", required=True)})
MACHINES: Final = Targets("machines", {"brokers": Param("brokers", required=True)})
PROCESS: Final = Targets("a process", {"node": Param("endpoint", required=True)})
LINK: Final = Targets(
    "a link",
    {
        "from": Param("endpoint", required=True),
        "to": Param("endpoint", required=True),
        "both_ways": Param("flag", default=True),
    },
    whole=True,
    ends=2,
)
"""One fault strikes both ends of it, not each of them."""
THE_LEADER: Final = Targets("the leader", implied=LEADER, whole=True)
THE_CONTROLLER: Final = Targets("the controller", implied=CONTROLLER)
"""Whoever is it when the fault strikes, and nobody if there is none."""
CLUSTER: Final = Targets("the cluster", whole=True)


@dataclass(frozen=True, slots=True)
class Amount:
    """How much, which `Fault.value` holds.

    Attributes:
        param: its name in a script line.
        given: what a script line gives.
        unit: of `Fault.value`.
        scale: `Fault.value` for each 1 of a script line.
        bounds: inclusive bounds that it is drawn from, the field of `FaultDraw` that holds them, or `REPLICAS`.
        least: the smallest `Fault.value` that a plan may hold.
        most: the largest; None: there is none.
    """

    param: str
    given: Param
    unit: str
    bounds: tuple[int, int] | str
    scale: int = 1
    least: int = 0
    most: int | None = None


REPLICAS: Final = "replicas"
"""Bounds of an amount: from 1 to the number of replicas."""
PERMILLE: Final = Param("permille", required=True)
MS: Final = Param("ms")


@dataclass(frozen=True, slots=True)
class Lasting:
    """How long a fault lasts.

    Attributes:
        bounds: the field of `FaultDraw` that it is drawn from.
        param: its name in a script line, in ms; without it, the fault lasts until everything is healed.
        always: whether it is undone even without effect.
    """

    bounds: str
    param: str = "for_ms"
    always: bool = False


STOPPED: Final = Lasting("restart_us", "restart_ms", always=True)
"""A broker is down. When the time is over it is started, whichever fault stopped it."""
DISTURBED: Final = Lasting("cut_us")
"""A link, a setting or the metadata stream is disturbed."""
STALLED: Final = Lasting("pause_us")
"""A process or disk is stalled."""

KRAFT: Final = "KRaft"
"""It does nothing under ZooKeeper."""
OTHER_REPLICA: Final = "another replica"
OTHER_BROKER: Final = "another broker"


class Role(Enum):
    """What a kind of fault does in a known failure."""

    STOP_LEADER = "stops the leader"
    """In `faults.stories.swarm`, as `SILENCE` is."""
    SILENCE = "silences a broker that goes on running"
    LEAVE_ISR = "makes a follower leave the ISR"
    """In `faults.stories.last_replica` and `faults.stories.reassignments`, as `STRIKE_LAST` is."""
    STRIKE_LAST = "strikes the last member of the ISR"
    BACKGROUND = "strikes meanwhile"
    """In `faults.stories.last_replica`."""


class Kind:
    """A kind of fault. Subclasses declare these attributes and define how it strikes and is undone.

    A kind with `lasts` must define `undo`. A kind without it says in `stays` why nothing has to be undone.

    Attributes:
        name: its name in scenario files, plans and rows.
        meaning: what it does, as an imperative.
        strikes: its targets.
        amount: its strength; None if it has none.
        lasts: its duration; None if it is over at once.
        stays: what remains after a kind that is over at once.
        needs: preconditions (`KRAFT`, `OTHER_REPLICA`, `OTHER_BROKER`); without them it has no effect.
        moves_leader: whether another broker leads after it has struck the leader.
        loses: whether a broker loses records from its disk or page cache.
        joins: its roles; kinds of older roles are named where plans are drawn.
    """

    name: ClassVar[str]
    meaning: ClassVar[str]
    strikes: ClassVar[Targets]
    amount: ClassVar[Amount | None] = None
    lasts: ClassVar[Lasting | None] = None
    stays: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    moves_leader: ClassVar[bool] = False
    loses: ClassVar[bool] = False
    joins: ClassVar[tuple[Role, ...]] = ()

    # What it does.

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:
        """Do it to one target; of a link, to the link.

        Returns:
            Whether it took effect.
        """
        raise NotImplementedError

    def undo(self, cluster: Cluster, fault: Fault, target: int) -> None:
        """Take it back, if it still is as this fault made it. Kinds that are over at once leave this alone."""

    # From a seed.

    def possible(self, limits: Limits) -> bool:
        """Whether it can do anything in a cluster of that size."""
        if OTHER_REPLICA in self.needs and len(limits.brokers) == 1:
            return False
        return OTHER_BROKER not in self.needs or len(limits.all_brokers) > 1

    def draw(self, stream: Stream, limits: Limits) -> Fault:
        """Draw a fault of this kind: when, whom, how much, how long. The order of draws is part of every plan."""
        at_us = integer(stream, *limits.window_us)
        target = self.draw_target(stream, limits)
        value = self.draw_value(stream, limits)
        return Fault(self.name, at_us, (target,), self.draw_lasts_us(stream, limits), value=value)

    def draw_target(self, stream: Stream, limits: Limits) -> int:
        """A broker or its name (`faults.bounds.aim`), unless it is clear who is struck."""
        strikes = self.strikes
        return aim(stream, limits) if strikes.params else strikes.implied

    def draw_value(self, stream: Stream, limits: Limits) -> int:
        """`Fault.value`; 0 for kinds without an amount."""
        amount = self.amount
        if amount is None:
            return 0
        bounds = amount.bounds
        if bounds == REPLICAS:
            bounds = (1, len(limits.brokers))
        low, high = _bounds(limits.bounds, bounds) if isinstance(bounds, str) else bounds
        return integer(stream, low, high)

    def draw_lasts_us(self, stream: Stream, limits: Limits) -> int:
        """`Fault.lasts_us`; -1 for kinds that are over at once."""
        lasts = self.lasts
        return -1 if lasts is None else integer(stream, *_bounds(limits.bounds, lasts.bounds))

    # In a script and in a plan.

    def params(self) -> dict[str, Param]:
        """Parameters of its script line: whom, how much, how long."""
        found = dict(self.strikes.params)
        amount, lasts = self.amount, self.lasts
        if amount is not None:
            found[amount.param] = amount.given
        if lasts is not None:
            found[lasts.param] = MS
        return found

    def scripted(self, params: Mapping[str, Any], at_us: int) -> Fault:
        """The fault that a script line is about.

        Args:
            params: what the line gives, checked against `params`.
            at_us: now.
        """
        lasts = self.lasts
        lasts_ms = -1 if lasts is None else params.get(lasts.param, -1)
        return Fault(
            self.name,
            at_us,
            self.targets_of(params),
            1_000 * lasts_ms if lasts_ms >= 0 else -1,
            both_ways="from" in params and params.get("both_ways", True),
            value=self.value_of(params),
        )

    def targets_of(self, params: Mapping[str, Any]) -> tuple[int, ...]:
        """The targets that a script line names."""
        if "from" in params:
            return node_of(params["from"]), node_of(params["to"])
        if "brokers" in params:
            return tuple(params["brokers"])
        named = params.get("node", params.get("broker"))
        return (self.strikes.implied if named is None else node_of(named),)

    def value_of(self, params: Mapping[str, Any]) -> int:
        """`Fault.value` by a script line."""
        amount = self.amount
        return 0 if amount is None else amount.scale * int(params.get(amount.param, 0))

    def problem(self, targets: tuple[int, ...], value: int) -> str:
        """What is wrong with a plan's fault of this kind, as ``field: why``; empty if nothing is.

        Args:
            targets: brokers, names, or 0, all of which are there.
            value: `Fault.value`.
        """
        strikes, amount = self.strikes, self.amount
        if CONTROL in targets and not strikes.whole:
            return f"targets: {self.name!r} strikes brokers, of which 0 is none"
        if not targets or (strikes.ends and len(targets) != strikes.ends):
            return f"targets: {list(targets)} cannot be the targets of {self.name!r}"
        if amount is not None and (value < amount.least or (amount.most is not None and value > amount.most)):
            upwards = "upwards" if amount.most is None else f"to {amount.most}"
            return f"value: {value}: {self.name!r} takes from {amount.least} {upwards}"
        return ""


def node_of(endpoint: int | str) -> int:
    """A node as scripts name it: a broker, or the control plane."""
    return CONTROL if endpoint == "control" else int(endpoint)


def _bounds(draw: FaultDraw, name: str) -> tuple[int, int]:
    low, high = getattr(draw, name)
    return low, high
