"""What a script may do: one table of actions and their parameters, read by `scenarios.format.schema` and by people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of an action.

    Attributes:
        kind: what it holds, one of `scenarios.format.schema.PARAMS`.
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
_PERMILLE: Final = Param("permille", required=True)
_LINK: Final = {
    "from": Param("endpoint", required=True),
    "to": Param("endpoint", required=True),
    "both_ways": Param("flag", default=True),
}

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
    "heal": Action(
        "end every cut and whatever else is wrong with links, or with one link",
        {"from": Param("endpoint"), "to": Param("endpoint")},
    ),
    "resume": Action("take a pause of a process back", {"node": Param("endpoint", required=True)}),
    "set-config": Action("change settings of the topic while brokers run", {"config": Param("dynamic", required=True)}),
    "offsets-for-times": Action(
        "let the consumer ask for the offset of the first record that is not older than a batch",
        {"batch": Param("sent", required=True)},
    ),
    "commit": Action("let the consumer commit its position"),
    "restart-consumer": Action("let the consumer's process die and begin again at the committed offset"),
    "seek": Action(
        "let the consumer read on from an offset; with the epoch of the record before it, that is asked about first",
        {"offset": Param("offset", required=True), "epoch": Param("offset")},
    ),
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
        {**_LINK, "for_ms": Param("ms")},
        fault=True,
    ),
    "slow": Action(
        "slow a link down by so many ms; without for_ms until a heal",
        {**_LINK, "by_ms": Param("ms", required=True), "for_ms": Param("ms")},
        fault=True,
    ),
    "lossy": Action(
        "let a link lose so many messages of a thousand; without for_ms until a heal",
        {**_LINK, "permille": _PERMILLE, "for_ms": Param("ms")},
        fault=True,
    ),
    "duplicate": Action(
        "let so many of a thousand requests to a broker arrive twice, of kinds that senders repeat",
        {"broker": _BROKER, "permille": _PERMILLE, "for_ms": Param("ms")},
        fault=True,
    ),
    "pause": Action(
        "let a process stand still; without for_ms until a resume",
        {"node": Param("endpoint", required=True), "for_ms": Param("ms")},
        fault=True,
    ),
    "disk-replaced": Action(
        "stop a machine and replace its disk by an empty one; without restart_ms it stays down until a start",
        {"broker": _BROKER, "restart_ms": _RESTART},
        fault=True,
    ),
    "corrupt-tail": Action(
        "kill a process and make the newest batches of its log unreadable; without restart_ms it stays down until a "
        "start",
        {"broker": _BROKER, "batches": Param("count", default=1), "restart_ms": _RESTART},
        fault=True,
    ),
    "disk-stall": Action(
        "let a disk not answer; without for_ms until the end", {"broker": _BROKER, "for_ms": Param("ms")}, fault=True
    ),
    "retention": Action(
        "let the leader delete the oldest records, so many of a thousand committed ones",
        {"permille": _PERMILLE},
        fault=True,
    ),
    "session-expiry": Action("end a broker's session while its process lives", {"broker": _BROKER}, fault=True),
    "zombie": Action(
        "end a broker's session, which it does not notice: nothing but pings or heartbeats is missing; without for_ms "
        "until the end",
        {"broker": _BROKER, "for_ms": Param("ms")},
        fault=True,
    ),
    "controller-failover": Action("delete the controller's node, so that the brokers elect anew", fault=True),
    "controller-pause": Action(
        "let the controller's process stand still; without for_ms until the end", {"for_ms": Param("ms")}, fault=True
    ),
    "preferred-election": Action("ask for the first replica to lead", fault=True),
    "reassignment": Action(
        "give the partition other replicas", {"replicas": Param("brokers", required=True)}, fault=True
    ),
    "metadata-lag": Action(
        "in KRaft, let a broker replay the metadata log so many ms late; without for_ms until the end",
        {"broker": _BROKER, "by_ms": Param("ms", required=True), "for_ms": Param("ms")},
        fault=True,
    ),
    "min-isr-change": Action(
        "set min.insync.replicas to a value; without for_ms until the end",
        {"value": Param("count", required=True), "for_ms": Param("ms")},
        fault=True,
    ),
    "admin-election": Action(
        "in KRaft, ask for a leader where there is none: longest-log-balanced, longest-log-aggressive, unclean or "
        "designated, which names a broker",
        {"election": Param("election", required=True), "broker": Param("broker")},
        fault=True,
    ),
}
"""Value of `do` -> what it does and takes."""

FAULT_KINDS: Final = tuple(name for name, action in ACTIONS.items() if action.fault)
"""Actions that are faults."""
