"""The state of protocol objects as nested tuples, and back again.

Slots are found automatically, so that state which is added to the protocol is never forgotten. Rules and host, which
all states of a broker share, are left out. Batches never change: equal ones become the same object.

A compiled class makes no object without the arguments of its constructor, and refuses to set what is declared `Final`.
So there a constructor gets the frozen attributes by the names of its parameters, and the others are set afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from sim.kernel.build import COMPILED
from sim.kernel.message import Message
from sim.kernel.values import fields_of
from sim.protocol.batch import Batch
from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem
from sim.protocol.kraft.metadata import BrokerRegistration, ConfigRecord, MetadataImage, PartitionRegistration
from sim.protocol.log.leader_epoch_file_cache import LeaderEpochCheckpointFile, LeaderEpochFileCache
from sim.protocol.log.log import Log
from sim.protocol.log.producer_state_manager import ProducerStateManager
from sim.protocol.messages import (
    FetchRequest,
    Incremental,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
)
from sim.protocol.replica.delayed_produce import DelayedProduces
from sim.protocol.replica.fencing import LeaderEpochFencing
from sim.protocol.replica.fetch_session_handler import FetchSessionHandler
from sim.protocol.replica.followers import Followers, FollowerState
from sim.protocol.replica.isr import IsrMembership, PartitionState
from sim.protocol.replica.partition import Partition
from sim.protocol.replica.partition_fetch_state import PartitionFetchState
from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.protocol.decisions import Decisions

_SHARED: Final = {"decide": "decide", "_decide": "decide", "host": "host", "_host": "host", "process": "host"}
_ATOMS: Final = (int, bool, str, type(None))
_PARTITION: Final = "the partition"
_PARAMETERS: Final[dict[type[Any], str]] = {
    AlterPartitionItem: "name isr leader_epoch partition_epoch broker_epochs recovering",
    BrokerRegistration: "broker incarnation broker_epoch",
    ConfigRecord: "key value",
    DelayedProduces: "host",
    FetchRequest: "node leader replica broker_epoch positions leader_epochs version incremental",
    FetchSessionHandler: "decide",
    FollowerState: "broker now_us in_isr",
    Followers: "lag_us decide",
    Incremental: "session epoch places",
    IsrMembership: "decide host",
    LeaderEpochCheckpointFile: "",
    LeaderEpochFencing: "decide",
    LeaderEpochFileCache: "checkpoint",
    ListOffsetsRequest: "node replica name timestamp leader_epoch",
    Log: "",
    MetadataImage: "",
    OffsetsForLeaderEpochRequest: "node asks leader_epochs with_epoch is_repeated",
    Partition: "broker name log epochs hw decide host min_insync_replicas lag_us",
    PartitionFetchState: "replica leader_epoch fetch_offset state",
    PartitionRegistration: "name leader leader_epoch isr partition_epoch replicas",
    PartitionState: "",
    ProduceRequest: "client name first_id count acks sequence connection timeout_us",
    ProducerStateManager: "log_start",
    ReplicaFetcherThread: "leader decide host backoff_us",
}
"""Classes of frozen objects -> parameters of their constructors that have no default, or whose attribute is `Final`: a
compiled class does not tell them.
"""
_VALUES: Final = (BrokerRegistration, ConfigRecord, LeaderEpochFencing, PartitionRegistration)
"""Classes whose objects do not change: equal ones become the same object, which is frozen only once."""
_slots_of: Final[dict[type[Any], tuple[str, ...]]] = {}
_batches: Final[dict[tuple[Any, ...], Batch]] = {}


def slots_of(cls: type[Any]) -> tuple[str, ...]:
    """Names of the attributes of a class's objects. In a compiled build, `Message` has its constants as attributes."""
    known = _slots_of.get(cls)
    if known is None:
        constants = fields_of(Message)
        known = _slots_of[cls] = tuple([name for name in fields_of(cls) if name not in constants])
    return known


@dataclass(slots=True)
class _Plan:
    """How to thaw a class.

    Attributes:
        kept: names of attributes with frozen values.
        fixed: (name, value) of those that all states share.
        hosted: names of those for the host.
        arguments: of the compiled class's constructor: (parameter, place of its value). Places go through the above;
            then come the rules, the host, and 0 for other parameters.
        settable: (name, place) of attributes that the compiled class lets set, None until one of its objects was made.
    """

    kept: list[str]
    fixed: list[tuple[str, Any]]
    hosted: list[str]
    arguments: list[tuple[str, int]]
    settable: list[tuple[str, int]] | None = None


class Freezer:
    """Freezes and thaws objects.

    Args:
        decide: the rules that thawed objects get.
        constants: attributes that make no difference, by name, with the values that thawed objects get. They are not
            part of a frozen state, so states that differ only in them are one.
    """

    def __init__(self, decide: Decisions, constants: Mapping[str, Any]) -> None:
        self._decide = decide
        self._constants = dict(constants)
        self._plans: dict[type[Any], _Plan] = {}
        self._values: dict[Any, Any] = {}
        self._frozen: dict[int, Any] = {}
        """Ids of `_values` -> the keys."""

    def freeze(self, value: Any, *, inside: bool = True) -> Any:
        """The value as an immutable, hashable one. A partition that others refer to is replaced by a mark."""
        cls = type(value)
        if cls in _ATOMS or isinstance(value, Enum):
            return value
        if cls is Batch:
            return _batches.setdefault(tuple([getattr(value, name) for name in slots_of(cls)]), value)
        if cls is Partition and inside:
            return _PARTITION
        freeze = self.freeze
        if cls is tuple:
            return tuple([freeze(one) for one in value])
        if cls is list:
            return (list, *[freeze(one) for one in value])
        if cls is dict:
            return (dict, *[(key, freeze(one)) for key, one in value.items()])
        if cls is set:
            return (set, *sorted(value))
        if cls in _VALUES:
            known = self._frozen.get(id(value))
            if known is not None:
                return known
        assert slots_of(cls), f"{cls.__name__} has no slots"
        return (cls, *[freeze(getattr(value, name)) for name in self._plan(cls).kept])

    def thaw(self, frozen: Any, host: Any, partition: Partition | None = None) -> Any:
        """A fresh copy of what was frozen."""
        if type(frozen) is not tuple:
            return partition if frozen is _PARTITION else frozen
        cls = frozen[0] if frozen else None
        thaw = self.thaw
        if not isinstance(cls, type):
            return tuple([thaw(one, host, partition) for one in frozen])
        if cls is list:
            return [thaw(one, host, partition) if type(one) is tuple else one for one in frozen[1:]]
        if cls is dict:
            return {key: thaw(one, host, partition) if type(one) is tuple else one for key, one in frozen[1:]}
        if cls is set:
            return set(frozen[1:])
        if cls in _VALUES:
            return self._value(cls, frozen, host)
        return self._object(cls, frozen, host, partition)

    def _value(self, cls: type[Any], frozen: Any, host: Any) -> Any:
        """The one object of a class in `_VALUES` with this content."""
        known = self._values.get(frozen)
        if known is None:
            # The attributes of a ConfigRecord cannot be set.
            known = ConfigRecord(*frozen[1:]) if cls is ConfigRecord else self._object(cls, frozen, host, None)
            self._values[frozen] = known
            self._frozen[id(known)] = frozen
        return known

    def _object(self, cls: type[Any], frozen: Any, host: Any, partition: Partition | None) -> Any:
        plan, thaw = self._plan(cls), self.thaw
        if COMPILED:
            values = [
                thaw(part, host, partition) if type(part) is tuple or part is _PARTITION else part
                for part in frozen[1:]
            ]
            return self._construct(cls, plan, values, host)
        fresh: Any = object.__new__(cls)
        for name, value in zip(plan.kept, frozen[1:], strict=True):
            if type(value) is tuple or value is _PARTITION:
                value = thaw(value, host, partition)
            setattr(fresh, name, value)
        for name, value in plan.fixed:
            setattr(fresh, name, value)
        for name in plan.hosted:
            setattr(fresh, name, host)
        return fresh

    def _construct(self, cls: type[Any], plan: _Plan, values: list[Any], host: Any) -> Any:
        """An object of a compiled class with these values of `_Plan.kept`."""
        values += [value for _, value in plan.fixed]
        values += [host] * len(plan.hosted)
        values += self._decide, host, 0
        fresh = cls(**{word: values[place] for word, place in plan.arguments})
        if plan.settable is None:
            names = [*plan.kept, *[name for name, _ in plan.fixed], *plan.hosted]
            plan.settable = [(name, place) for place, name in enumerate(names) if _is_settable(fresh, name)]
        for name, place in plan.settable:
            setattr(fresh, name, values[place])
        return fresh

    def _plan(self, cls: type[Any]) -> _Plan:
        known = self._plans.get(cls)
        if known is None:
            names, constants = slots_of(cls), self._constants
            kept = [name for name in names if name not in constants and name not in _SHARED]
            fixed = [(name, constants[name]) for name in names if name in constants]
            fixed += [(name, self._decide) for name in names if _SHARED.get(name) == "decide"]
            hosted = [name for name in names if _SHARED.get(name) == "host"]
            places = [*kept, *[name for name, _ in fixed], *hosted, "decide", "host"]
            arguments = [(word, _place(word, places)) for word in _PARAMETERS[cls].split()]
            known = self._plans[cls] = _Plan(kept, fixed, hosted, arguments)
        return known


def _place(word: str, names: list[str]) -> int:
    """Where the attribute with the value of a parameter is, private or not; behind all of them without one."""
    return next((place for place, name in enumerate(names) if name in (word, f"_{word}")), len(names))


def _is_settable(made: object, name: str) -> bool:
    """Whether the attribute of an object may be set, because it is not `Final`."""
    try:
        setattr(made, name, getattr(made, name))
    except AttributeError:
        return False
    return True
