"""Fault plans: the concrete, serialisable list of what goes wrong in one run, and when.

A plan is drawn from the seed alone, one random stream for each fault, so that seed N means the same plan in every
mode. What of it took effect is recorded apart (`faults.injection`).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from sim.streams import choice

SCHEMA_VERSION: Final = 1
LEADER: Final = -1
"""As a target: whoever leads when the fault strikes."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        kind: name of its injector.
        at_us: when it strikes.
        targets: brokers, or `LEADER`; for a cut, source and target (0: the control plane).
        lasts_us: for a cut, until it is healed; for a stopped broker, until it is started again; -1: until the end.
        delays_us: for several targets, how long after `at_us` each is struck (empty: all at once).
        both_ways: for a cut, whether the other direction is cut, too.
    """

    kind: str
    at_us: int
    targets: tuple[int, ...]
    lasts_us: int = -1
    delays_us: tuple[int, ...] = ()
    both_ways: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """What faults are drawn within; pairs are inclusive bounds in us.

    Attributes:
        brokers: the brokers that may be struck.
        window_us: when faults strike.
        restart_us: until a stopped broker is started again.
        cut_us: how long a cut lasts.
    """

    brokers: tuple[int, ...]
    window_us: tuple[int, int]
    restart_us: tuple[int, int]
    cut_us: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults of one run, in order of time."""

    faults: tuple[Fault, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A JSON-able copy with `schema_version`."""
        return {"schema_version": SCHEMA_VERSION, "faults": [asdict(fault) for fault in self.faults]}

    def plan_hash(self) -> str:
        """Hash of the plan (16 hex digits)."""
        return hash_of(
            (fault.kind, fault.at_us, *fault.targets, fault.lasts_us, *fault.delays_us, fault.both_ways)
            for fault in self.faults
        )


def plan_from_json(data: Mapping[str, Any]) -> Plan:
    """Rebuild a plan.

    Raises:
        ValueError: `schema_version` is newer than this code knows.
    """
    if data["schema_version"] > SCHEMA_VERSION:
        raise ValueError(f"plan has schema_version {data['schema_version']}; this version reads {SCHEMA_VERSION}")
    return Plan(
        tuple(
            Fault(
                fault["kind"],
                fault["at_us"],
                tuple(fault["targets"]),
                fault["lasts_us"],
                tuple(fault["delays_us"]),
                fault["both_ways"],
            )
            for fault in data["faults"]
        )
    )


def aim(stream: random.Random, brokers: Sequence[int]) -> int:
    """A target: every other time whoever leads when the fault strikes, else a broker."""
    at_leader = stream.getrandbits(1)
    broker = choice(stream, brokers)
    return LEADER if at_leader else broker


def hash_of(rows: Iterable[tuple[str | int, ...]]) -> str:
    """Hash of rows of words and numbers (16 hex digits)."""
    text = ";".join([",".join(map(str, row)) for row in rows])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
