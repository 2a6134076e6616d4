"""Lossy link: some messages between two nodes are lost for a while."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import PERMILLE, Amount
from faults.kinds.links import LinkFault
from sim.history import steps


class Lossy(LinkFault):
    """See the module."""

    name: ClassVar[str] = "lossy"
    step: ClassVar[steps.StepKind] = steps.LOSSY
    meaning: ClassVar[str] = "lose messages on a link with a probability of permille/1000; without for_ms until a heal"
    amount: ClassVar[Amount | None] = Amount("permille", PERMILLE, "1/1000", bounds="loss_permille", most=1_000)
