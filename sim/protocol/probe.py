"""What a probe is, and the list of all."""

from __future__ import annotations

from typing import Final, NamedTuple

from sim.config import EVERYWHERE, Where

RULE_BRANCH: Final = "rule branch"
"""The group of all branches."""
CHECK: Final = "check"
"""The group of all checks."""


class Probe(NamedTuple):
    """A probe's name, group, and the meaning of reaching it.

    `where` are rules under which alone it can be reached: of the control plane, ELR, log directories, and recovery.
    """

    group: str
    name: str
    meaning: str
    where: Where = EVERYWHERE


PROBES: Final[list[Probe]] = []
"""By number; those of plug-ins last, which no wake of a fault has."""


def probe(group: str, name: str, meaning: str) -> int:
    """Define a probe; returns its number. Each group has a function that calls this one: by `functools.partial`, mypyc
    would make twice the C of it.
    """
    PROBES.append(Probe(group, name, meaning))
    return len(PROBES) - 1
