"""Steps of the protocol, each declared once: name, number, fields, packing, and its sentence.

A step is an event class. `sim.history.recorder` adds it to the digest, passes it to listeners, and keeps it if labels
are computed from it at the end. Replicas and partitions that a step refers to change later: only listeners called at
once may read them; later readers use numbers, tuples and batches.

A *fact* is an event that checkers, metrics or readers need but that is not a step of the protocol, so it is in no
digest. A fact with a sentence is in traces.

`base` has what all share, `listener` the listeners; the rest is by subject: `log`, `replication`, `control_plane`,
`quorum`, `clients`, `processes`.
"""

from __future__ import annotations

from typing import Final

from sim.history.steps.base import *
from sim.history.steps.clients import *
from sim.history.steps.control_plane import *
from sim.history.steps.listener import *
from sim.history.steps.log import *
from sim.history.steps.processes import *
from sim.history.steps.quorum import *
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
"""Moments that a fault may be aimed at (`sim.history.recorder.Recorder.arm`), available in every mode. A requested ISR
is a moment but no step of the trace.
"""


def kind_of(shown: Shown) -> StepKind:
    """The kind of a step in a trace; raises KeyError if there is none of that name."""
    return BY_NAME[shown["step"]]
