"""Steps of the protocol, each declared once: name, number, what it holds, how it is packed, what readers need.

A step says what happened; `sim.history.recorder` puts it into the digest, tells whoever asked for its kind, and keeps
it if labels are worked out from it when the run has ended. Objects that a step refers to (replicas, partitions) go on
changing: who is told may look at them at once, and who is told later reads numbers, tuples and batches only.

A *fact* is what checkers, metrics or readers have to know, but is no step of the protocol: it is in no digest. One that
has a sentence is in traces.

`base` has what all share, `listener` who is told; the rest is by subject: `log`, `replication`, `control_plane`,
`clients`, `processes`.
"""

from __future__ import annotations

from typing import Final

from sim.history.steps.base import *
from sim.history.steps.clients import *
from sim.history.steps.control_plane import *
from sim.history.steps.listener import *
from sim.history.steps.log import *
from sim.history.steps.processes import *
from sim.history.steps.replication import *

BY_NAME: Final[dict[str, StepKind]] = {kind.name: kind for kind in KINDS}
"""Name -> kind, facts included."""

STEPS: Final[dict[str, str]] = {
    kind.name: kind.meaning
    for kind in sorted(KINDS, key=lambda kind: (kind.code == FACT, kind.code, kind.name))
    if kind.is_traced
}
"""Step of a trace -> what its fields mean. Every step also has ``t`` (us) and, where it fits, ``broker``."""

MOMENTS: Final[dict[str, str]] = {moment: said for kind in KINDS for moment, said in kind.moments.items()}
"""Moments that a fault may be aimed at (`sim.history.recorder.Recorder.arm`): steps of the protocol in every mode. An
ISR that was asked for is no step of the trace."""


def kind_of(shown: Shown) -> StepKind:
    """The kind of a step in a trace.

    Raises:
        KeyError: no step and no fact has that name.
    """
    return BY_NAME[shown["step"]]
