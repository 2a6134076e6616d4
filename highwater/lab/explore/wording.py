"""Events and states of a cluster in words: what both control planes have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from highwater.lab.explore.broker_machine import DOWN, EPOCH_ENDS, FETCHED, STARTING
from highwater.lab.explore.messages import Fetch
from sim.protocol.messages import FetchRequest, ListOffsetsRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from highwater.lab.explore.broker_machine import BrokerMachine, View
    from highwater.lab.explore.messages import Fetched

SENTENCES: Final[Mapping[str, str]] = {
    "append": "broker {0} appends r{1}",
    "lag": "broker {0} finds that broker {1} lags",
}
"""Kind of an event -> its sentence."""


def arrival(machine: BrokerMachine[Any], message: Fetch | Fetched) -> str:
    """The arrival of a message between brokers in words."""
    content = machine.payload(message.payload)
    follower, leader = message.follower, message.leader
    if not isinstance(message, Fetch):
        return f"broker {follower} receives {_response(content)} from broker {leader}"
    late = ", sent before it moved on" if message.stale else ""
    if isinstance(content, ListOffsetsRequest):
        return f"broker {leader} serves ListOffsets of broker {follower}{late}"
    if not isinstance(content, FetchRequest):
        return f"broker {leader} serves OffsetsForLeaderEpoch {content.asks[0][2]} of broker {follower}{late}"
    _, offset, _, _ = content.positions[0]
    where = f"at offset {offset} in leader epoch {content.leader_epochs[0]}"
    return f"broker {leader} serves the fetch of broker {follower} {where}{late}"


def _response(content: tuple[Any, ...]) -> str:
    kind, result, *_ = content
    if kind == EPOCH_ENDS:
        _, error, _, offset = result[0]
        return str(error) or f"end offset {offset}"
    if kind != FETCHED:
        return "a ListOffsets response"
    _, error, batches, hw, _, _, diverging = result
    if error:
        return str(error)
    if diverging:
        return f"a diverging epoch {diverging[0]} that ends at {diverging[1]}"
    held = ", ".join(f"r{record}" for batch in batches for record in batch.ids())
    return f"{held or 'no records'} and HW {hw}"


def role(view: View, note: str = "") -> str:
    """A broker in words: its role, with a note about how it leads, its log, and its HW."""
    if view.state == DOWN:
        text = "down"
    elif view.state == STARTING:
        text = "starts"
    elif view.leads:
        text = f"leads in {view.epoch}{note}"
    else:
        text = f"follows {view.follows} in {view.epoch}" if view.follows else f"waits in {view.epoch}"
    log = " ".join("-" if record is None else f"r{record[0]}@{record[1]}" for record in view.records)
    start = f" log start {view.log_start}" if view.log_start else ""
    return f"{text} [{log}]{start} HW {view.hw}"


def listed(brokers: Sequence[int]) -> str:
    """Brokers in words."""
    return "[" + ", ".join(map(str, brokers)) + "]"
