"""The state of protocol objects as nested tuples, and back again.

Slots are found by themselves, so that state which is added to the core is never forgotten; what all states of a broker
share (its rules and its host) is left out. Batches never change: equal ones become the same object.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from sim.protocol.batch import Batch
from sim.protocol.replica.partition import Partition

if TYPE_CHECKING:
    from sim.protocol.decisions import Decisions

_SHARED: Final = {"decide": "decide", "_decide": "decide", "host": "host", "_host": "host", "process": "host"}
_TALLIES: Final = frozenset({"rounds"})
"""Counted for reports only. A follower that asks for ever (KAFKA-10706) would never come back to a known state."""
_ATOMS: Final = (int, bool, str, type(None))
_PARTITION: Final = "the partition"
_slots_of: Final[dict[type[Any], tuple[str, ...]]] = {}
_batches: Final[dict[tuple[Any, ...], Batch]] = {}


def _slots(cls: type[Any]) -> tuple[str, ...]:
    known = _slots_of.get(cls)
    if known is None:
        known = tuple(name for base in reversed(cls.__mro__) for name in vars(base).get("__slots__", ()))
        _slots_of[cls] = known
    return known


def freeze(value: Any, *, inside: bool = True) -> Any:
    """The value as an immutable, hashable one. A partition that others refer to is replaced by a mark."""
    cls = type(value)
    if cls in _ATOMS or isinstance(value, Enum):
        return value
    if cls is Batch:
        return _batches.setdefault(tuple([getattr(value, name) for name in _slots(cls)]), value)
    if cls is Partition and inside:
        return _PARTITION
    if cls is tuple:
        return tuple([freeze(one) for one in value])
    if cls is list:
        return (list, *[freeze(one) for one in value])
    if cls is dict:
        return (dict, *[(key, freeze(one)) for key, one in value.items()])
    if cls is set:
        return (set, *sorted(value))
    names = _slots(cls)
    assert names, f"{cls.__name__} has no slots"
    return (cls, *[freeze(getattr(value, name)) for name in names if name not in _SHARED and name not in _TALLIES])


def thaw(frozen: Any, decide: Decisions, host: Any, partition: Partition | None = None) -> Any:
    """A fresh copy of what was frozen."""
    if type(frozen) is not tuple:
        return partition if frozen is _PARTITION else frozen
    cls = frozen[0] if frozen else None
    if not isinstance(cls, type):
        return tuple([thaw(one, decide, host, partition) for one in frozen])
    if cls is list:
        return [thaw(one, decide, host, partition) for one in frozen[1:]]
    if cls is dict:
        return {key: thaw(one, decide, host, partition) for key, one in frozen[1:]}
    if cls is set:
        return set(frozen[1:])
    fresh: Any = object.__new__(cls)
    values = iter(frozen[1:])
    for name in _slots(cls):
        if name in _TALLIES:
            setattr(fresh, name, 0)
        elif name in _SHARED:
            setattr(fresh, name, decide if _SHARED[name] == "decide" else host)
        else:
            setattr(fresh, name, thaw(next(values), decide, host, partition))
    return fresh
