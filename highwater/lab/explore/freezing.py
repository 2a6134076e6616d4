"""The state of protocol objects as nested tuples, and back again.

Slots are found automatically, so that state which is added to the protocol is never forgotten. Rules and host, which
all states of a broker share, are left out. Batches never change: equal ones become the same object.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from scenarios.version import PLAIN, build
from sim.errors import InputError
from sim.protocol.batch import Batch
from sim.protocol.kraft.metadata import ConfigRecord
from sim.protocol.replica.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sim.protocol.decisions import Decisions

_SHARED: Final = {"decide": "decide", "_decide": "decide", "host": "host", "_host": "host", "process": "host"}
_ATOMS: Final = (int, bool, str, type(None))
_PARTITION: Final = "the partition"
_Plan = tuple[list[str], list[tuple[str, Any]], list[str]]
_slots_of: Final[dict[type[Any], tuple[str, ...]]] = {}
_batches: Final[dict[tuple[Any, ...], Batch]] = {}


def _slots(cls: type[Any]) -> tuple[str, ...]:
    known = _slots_of.get(cls)
    if known is None:
        known = tuple(name for base in reversed(cls.__mro__) for name in vars(base).get("__slots__", ()))
        _slots_of[cls] = known
    return known


class Freezer:
    """Freezes and thaws objects.

    Args:
        decide: the rules that thawed objects get.
        constants: attributes that make no difference, by name, with the values that thawed objects get. They are not
            part of a frozen state, so states that differ only in them are one.

    Raises:
        InputError: the build is compiled: its objects cannot be made without their arguments.
    """

    def __init__(self, decide: Decisions, constants: Mapping[str, Any]) -> None:
        if build() != PLAIN:
            raise InputError("explore needs plain Python, and this build is compiled: install the plain wheel")
        self._decide = decide
        self._constants = dict(constants)
        self._plans: dict[type[Any], _Plan] = {}

    def freeze(self, value: Any, *, inside: bool = True) -> Any:
        """The value as an immutable, hashable one. A partition that others refer to is replaced by a mark."""
        cls = type(value)
        if cls in _ATOMS or isinstance(value, Enum):
            return value
        if cls is Batch:
            return _batches.setdefault(tuple([getattr(value, name) for name in _slots(cls)]), value)
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
        names = self._plan(cls)[0]
        assert _slots(cls), f"{cls.__name__} has no slots"
        return (cls, *[freeze(getattr(value, name)) for name in names])

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
        if cls is ConfigRecord:  # Its attributes cannot be set.
            return ConfigRecord(*frozen[1:])
        fresh: Any = object.__new__(cls)
        kept, fixed, hosted = self._plan(cls)
        for name, value in zip(kept, frozen[1:], strict=True):
            if type(value) is tuple or value is _PARTITION:
                value = thaw(value, host, partition)
            setattr(fresh, name, value)
        for name, value in fixed:
            setattr(fresh, name, value)
        for name in hosted:
            setattr(fresh, name, host)
        return fresh

    def _plan(self, cls: type[Any]) -> _Plan:
        """How to thaw a class: names of attributes with frozen values, those with fixed ones, those for the host."""
        known = self._plans.get(cls)
        if known is None:
            names, constants = _slots(cls), self._constants
            kept = [name for name in names if name not in constants and name not in _SHARED]
            fixed = [(name, constants[name]) for name in names if name in constants]
            fixed += [(name, self._decide) for name in names if _SHARED.get(name) == "decide"]
            known = self._plans[cls] = kept, fixed, [name for name in names if _SHARED.get(name) == "host"]
        return known
