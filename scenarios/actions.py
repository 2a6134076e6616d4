"""What a script may do: one table of actions and their parameters, read by `scenarios.schema` and by people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of an action.

    Attributes:
        kind: what it holds, one of `scenarios.schema.PARAMS`.
        required: whether a script line must give it.
        default: its value when it is not given; None: left out.
    """

    kind: str
    required: bool = False
    default: int | bool | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """One value of `do`.

    Attributes:
        meaning: one line.
        params: what it takes.
        scripted_only: whether it needs ``control = "scripted"``, where the script is the control plane.
        fault: whether it is a fault kind, which may also be drawn.
    """

    meaning: str
    params: Mapping[str, Param] = field(default_factory=dict)
    scripted_only: bool = False
    fault: bool = False


_BROKER: Final = Param("broker", required=True)
_ISR: Final = Param("replicas", required=True)
_RESTART: Final = Param("ms")

ACTIONS: Final[dict[str, Action]] = {
    "produce": Action(
        "send a batch; acks as configured unless given",
        {"batch": Param("batch", required=True), "records": Param("count", default=1), "acks": Param("acks")},
    ),
    "elect": Action(
        "choose leader and ISR", {"broker": Param("leader", required=True), "isr": _ISR}, scripted_only=True
    ),
    "isr": Action("persist an ISR", {"isr": _ISR}, scripted_only=True),
    "end-offsets": Action("let the consumer ask ListOffsets(latest)"),
    "delete-records": Action("move the log start", {"offset": Param("offset", required=True)}),
    "start": Action("start a stopped broker", {"broker": _BROKER}),
    "heal": Action("end every cut, or those of one link", {"from": Param("endpoint"), "to": Param("endpoint")}),
    "pause-consumer": Action("let the consumer stop fetching"),
    "resume-consumer": Action("let the consumer fetch again"),
    "wait": Action("nothing but wait"),
    "kill": Action(
        "kill a process; without restart_ms it stays down until a start",
        {"broker": _BROKER, "restart_ms": _RESTART},
        fault=True,
    ),
    "power-loss": Action(
        "cut the power of machines at the same instant; without restart_ms they stay down until a start",
        {"brokers": Param("brokers", required=True), "restart_ms": _RESTART},
        fault=True,
    ),
    "controlled-restart": Action(
        "shut a broker down in a controlled way; without restart_ms it stays down until a start",
        {"broker": _BROKER, "restart_ms": _RESTART},
        fault=True,
    ),
    "cut": Action(
        "cut a link; without for_ms until a heal",
        {
            "from": Param("endpoint", required=True),
            "to": Param("endpoint", required=True),
            "both_ways": Param("flag", default=True),
            "for_ms": Param("ms"),
        },
        fault=True,
    ),
}
"""Value of `do` -> what it does and takes."""

FAULT_KINDS: Final = tuple(name for name, action in ACTIONS.items() if action.fault)
"""Actions that are faults."""
