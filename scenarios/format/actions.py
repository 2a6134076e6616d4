"""The actions of scripts: one table of actions and their parameters, read by `scenarios.format.schema`.

Each kind of fault declares its own script parameters (`faults.kind.FaultKind`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from faults.kind import FaultKind, Param
from faults.kinds.registry import KINDS


@dataclass(frozen=True, slots=True)
class Action:
    """An action of a script, a value of `do`. `scripted_only`: it needs ``control = "scripted"``, where the script is
    the control plane.
    """

    meaning: str
    params: Mapping[str, Param] = field(default_factory=dict)
    scripted_only: bool = False


_BROKER: Final = Param("broker", required=True)
_ISR: Final = Param("replicas", required=True)
_OF: Final[dict[str, Param]] = {"partition": Param("partition")}
"""The partition of an action; without it, the first."""
_BY: Final[dict[str, Param]] = {"producer": Param("producer"), **_OF}
"""The producer that acts, by its number among those of the partition; without it, the first."""
_HELD: Final[dict[str, Param]] = {"broker": _BROKER, "message": Param("message", required=True)}
"""The messages that an action of ``hold-messages`` is about."""

_OWN: Final[dict[str, Action]] = {
    "produce": Action(
        "send a batch; acks as configured unless given",
        {"batch": Param("batch", required=True), "records": Param("count", default=1), "acks": Param("acks"), **_BY},
    ),
    "elect": Action("set leader and ISR", {"broker": Param("leader", required=True), "isr": _ISR}, scripted_only=True),
    "isr": Action("persist an ISR", {"isr": _ISR}, scripted_only=True),
    "end-offsets": Action("let the consumer send ListOffsets(latest)", _OF),
    "delete-records": Action("move the log start", {"offset": Param("offset", required=True), **_OF}),
    "start": Action("start a stopped broker or controller", {"broker": Param("machine", required=True)}),
    "heal": Action(
        "heal all links, or one link",
        {"from": Param("endpoint"), "to": Param("endpoint")},
    ),
    "resume": Action("resume a paused process", {"node": Param("endpoint", required=True)}),
    "set-config": Action("change settings of the topic while brokers run", {"config": Param("dynamic", required=True)}),
    "offsets-for-times": Action(
        "let the consumer ask for the offset of the first record not older than a batch",
        {"batch": Param("sent", required=True), **_OF},
    ),
    "commit": Action("let the consumer commit its position", _OF),
    "restart-consumer": Action("restart the consumer at its committed offset", _OF),
    "restart-producer": Action(
        "restart the producer: an idempotent one begins with another producer id, and forgets what it has not sent", _BY
    ),
    "seek": Action(
        "let the consumer seek to an offset; with the epoch of the record before it, the position is validated first",
        {"offset": Param("offset", required=True), "epoch": Param("offset"), **_OF},
    ),
    "pause-consumer": Action("let the consumer stop fetching", _OF),
    "resume-consumer": Action("let the consumer fetch again", _OF),
    "hold-messages": Action(
        "hold back every message of a type that a broker sends or receives, while others pass, until each is delivered",
        _HELD,
    ),
    "deliver-message": Action(
        "let the oldest message that hold-messages has held back arrive, or the newest; with peer, one from or to it. "
        "If none is held, let the next one pass",
        {**_HELD, "peer": Param("endpoint"), "newest": Param("flag", default=False)},
    ),
    "release-messages": Action(
        "let all messages arrive that hold-messages has held back, and hold back no further ones", _HELD
    ),
    "wait": Action("only wait"),
}


def with_faults(actions: Mapping[str, Action], kinds: Iterable[FaultKind]) -> dict[str, Action]:
    """Add the kinds of fault to actions; raises ValueError if one has the name of an action."""
    joined = dict(actions)
    for kind in kinds:
        if kind.name in joined:
            raise ValueError(f"the fault kind {kind.name} has the name of a script action: rename it")
        joined[kind.name] = Action(kind.meaning, kind.params())
    return joined


ACTIONS: Final = with_faults(_OWN, KINDS.values())
"""Value of `do` -> action."""
