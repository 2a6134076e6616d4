"""Lossy link: between two nodes some messages are lost for a while."""

from __future__ import annotations

from typing import ClassVar

from faults.kind import PERMILLE, Amount
from faults.kinds.links import OfLink
from sim.history import steps


class Lossy(OfLink):
    """See the module."""

    name: ClassVar[str] = "lossy"
    step: ClassVar[steps.StepKind] = steps.LOSSY
    meaning: ClassVar[str] = "lose so many of a thousand messages on a link; without for_ms until a heal"
    amount: ClassVar[Amount | None] = Amount("permille", PERMILLE, "of a thousand", bounds="loss_permille", most=1_000)
