"""Events and states of a cluster in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from highwater.lab.explore.broker_machine import DOWN, STARTING
from highwater.lab.explore.cluster import Alter, Altered, Fetch, Fetched, Register, Registered
from sim.protocol.messages import ListOffsetsRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from highwater.lab.explore.cluster import Action, Cluster


def event(cluster: Cluster, action: Action) -> str:
    """An event in words."""
    kind, *details = action
    if kind == "arrive":
        return _arrival(cluster, details[0])
    sentence = {
        "replay": "broker {0} replays metadata transactions: {1}",
        "append": "broker {0} appends r{1}",
        "lag": "broker {0} finds that broker {1} lags",
        "expire": "the session of broker {0} expires: it is fenced",
        "heartbeat": "a heartbeat of broker {0} arrives: it is unfenced",
        "configure": "an administrator sets min.insync.replicas to {0}",
        "feature": "an administrator sets feature eligible.leader.replicas.version to {0}",
        "elect": "a preferred election: broker {0} is elected",
        "lose": "broker {0} loses power, and starts again with {1} records",
        "kill": "broker {0} is killed, and starts again",
        "stop": "broker {0} stops cleanly, and starts again",
    }[str(kind)]
    return sentence.format(*details)


def _arrival(cluster: Cluster, number: int) -> str:
    message = cluster.messages[number]
    kind = type(message)
    if kind is Fetch:
        request = cluster.machine.payload(message.payload)
        late = ", sent before it moved on" if message.stale else ""
        if isinstance(request, ListOffsetsRequest):
            return f"broker {message.leader} serves ListOffsets of broker {message.follower}{late}"
        _, offset, _, _ = request.positions[0]
        where = f"at offset {offset} in leader epoch {request.leader_epochs[0]}"
        return f"broker {message.leader} serves the fetch of broker {message.follower} {where}{late}"
    if kind is Fetched:
        content = cluster.machine.payload(message.payload)
        return f"broker {message.follower} receives {_response(content)} from broker {message.leader}"
    if kind is Alter:
        _, item = cluster.machine.payload(message.payload)
        epochs = f"leader epoch {item.leader_epoch}, partition epoch {item.partition_epoch}"
        return f"the controller receives AlterPartition of broker {message.broker}: ISR {_list(item.isr)}, {epochs}"
    if kind is Altered:
        error, isr, *_ = cluster.machine.payload(message.payload)
        return f"broker {message.broker} receives its AlterPartition response: {error or 'ISR ' + _list(isr)}"
    if kind is Register:
        clean = "after a clean stop" if message.clean_epoch >= 0 else "after an unclean stop"
        return f"the controller registers broker {message.broker} {clean}"
    assert kind is Registered
    return f"broker {message.broker} receives the response to registration {message.incarnation}"


def _response(content: tuple[Any, ...]) -> str:
    if content[0] != "fetch":
        return "a ListOffsets response"
    _, error, batches, hw, _, _, diverging = content[1]
    if error:
        return str(error)
    if diverging:
        return f"a diverging epoch {diverging[0]} that ends at {diverging[1]}"
    held = ", ".join(f"r{one}" for batch in batches for one in batch.ids())
    return f"{held or 'no records'} and HW {hw}"


def state(cluster: Cluster, number: int) -> str:
    """A state in words: the controller's view, then each broker's role, leader epoch, log and HW."""
    snapshots, control, _ = cluster.parts(number)
    known = cluster.controller.views[control.controller]
    parts = [f"leader {known.leader or 'none'} in {known.epoch}, ISR {_list(known.isr)}"]
    if known.elr:
        parts[0] += f", ELR {_list(known.elr)}"
    if cluster.bounds.min_isr_changes:
        parts[0] += f", min ISR {known.min_isr}"
    if not known.elr_level and cluster.bounds.feature_changes:
        parts[0] += ", feature disabled"
    for broker, snapshot in zip(cluster.brokers, snapshots, strict=True):
        view = cluster.machine.views[snapshot]
        log = " ".join(f"r{one}@{epoch}" for one, epoch in view.records)
        if view.state == DOWN:
            role = "down"
        elif view.state == STARTING:
            role = "starts"
        elif view.leads:
            role = f"leads in {view.epoch}"
            if view.min_isr != known.min_isr:
                role += f" by min ISR {view.min_isr}"
        else:
            role = f"follows {view.follows} in {view.epoch}" if view.follows else f"waits in {view.epoch}"
        fenced = " fenced" if known.brokers[broker].fenced else ""
        parts.append(f"{broker}{fenced} {role} [{log}] HW {view.hw}")
    return "; ".join(parts)


def _list(brokers: Sequence[int]) -> str:
    return "[" + ", ".join(map(str, brokers)) + "]"
