"""Slow link: messages between two nodes take longer for a while."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import Amount, Param
from faults.kinds.links import LinkFault
from sim.history import steps


class Slow(LinkFault):
    """See the module."""

    name: ClassVar[str] = "slow"
    step: ClassVar[steps.StepKind] = steps.SLOW
    meaning: ClassVar[str] = "delay messages on a link by by_ms; without for_ms until a heal"
    amount: ClassVar[Amount | None] = Amount("by_ms", Param("ms", required=True), "us", bounds="slow_us", scale=1_000)
