"""Lossy link: between two nodes some messages are lost for a while."""

from __future__ import annotations

import random
from dataclasses import replace

from faults.drawing import Limits, aim_link
from faults.links import strike, undo
from faults.plan import Fault
from sim.kernel.streams import integer

__all__ = ["KIND", "draw", "strike", "undo"]

KIND = "lossy"


def draw(stream: random.Random, limits: Limits) -> Fault:
    """A link as for a cut, and how bad it is."""
    fault = aim_link(KIND, stream, limits)
    return replace(fault, value=integer(stream, *limits.bounds.loss_permille))
