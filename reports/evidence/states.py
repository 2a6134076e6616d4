"""The state of a cluster after each step, folded from a trace alone: the lanes of a picture are drawn from it.

`reports.film.states` reads the running cluster instead, since a film also shows flushed offsets and HW checkpoints,
which no trace contains.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from sim.history import steps
from sim.history.steps import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from sim.history.steps import Shown, StepKind

Brokers = tuple[int, ...]
LoggedBatch = tuple[int, int, int, int]
"""Base offset, last offset, leader epoch, id of the first record."""
NO_EPOCH: Final = -1
NONE: Final = 0
"""No broker."""


@dataclass(frozen=True, slots=True)
class BrokerState:
    """The state of one broker.

    Attributes:
        running: whether its process runs.
        pauses: number of pauses in force on its process.
        stalls: number of stalls in force on its disk.
        session_ended: whether its session ended (KRaft: it was fenced) and no new one is open.
        leads: leader epoch in which it presumes to lead; -1 if it does not.
        follows: leader that it presumes to follow; 0 for none.
        batches: its log, including batches below the log start, which can no longer be read.
        log_start: the first offset that can be read.
        leo: the log end offset.
        hw: its high watermark; if the process is down, the last one that it had.
    """

    running: bool = False
    pauses: int = 0
    stalls: int = 0
    session_ended: bool = False
    leads: int = NO_EPOCH
    follows: int = NONE
    batches: tuple[LoggedBatch, ...] = ()
    log_start: int = 0
    leo: int = 0
    hw: int = 0

    @property
    def log(self) -> tuple[LoggedBatch, ...]:
        """The batches that can be read."""
        return self.batches[bisect_left(self.batches, self.log_start, key=_last) :]


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The state of a cluster with one partition. Leader, epoch and lists are those that the control plane persisted.

    Attributes:
        brokers: broker id -> its state.
        leader: 0 if there is none.
        leader_epoch: its epoch.
        isr: in-sync replicas.
        elr: eligible leader replicas.
        last_known_elr: replicas that an unclean election may fall back on.
        replicas: the assignment.
        target: the assignment that a reassignment leads to; empty if none is under way.
        pauses: number of pauses in force on the control plane.
        links: (source, target) -> number of faults in force on that directed link.
        zookeeper: whether registration opens a session; in KRaft unfencing does.
    """

    brokers: Mapping[int, BrokerState]
    isr: Brokers
    replicas: Brokers
    leader: int = NONE
    leader_epoch: int = NO_EPOCH
    elr: Brokers = ()
    last_known_elr: Brokers = ()
    target: Brokers = ()
    pauses: int = 0
    links: Mapping[tuple[int, int], int] = field(default_factory=dict)
    zookeeper: bool = False


def states(trace: Iterable[Shown], first: ClusterState) -> Iterator[ClusterState]:
    """Yield the state after each step.

    Args:
        trace: the steps.
        first: the state before them; see `beginning`.
    """
    state = first
    for step in trace:
        state = after(state, step)
        yield state


def beginning(brokers: Iterable[int], replicas: Brokers, *, zookeeper: bool) -> ClusterState:
    """The state before the first step: no process runs, and all replicas are in the ISR."""
    return ClusterState(dict.fromkeys(brokers, BrokerState()), replicas, replicas, zookeeper=zookeeper)


def after(state: ClusterState, step: Shown) -> ClusterState:
    """The state after one more step."""
    kind = kind_of(step)
    of_broker = _OF_BROKERS.get(kind)
    number = step.get("broker", NONE)
    if of_broker is not None and number in state.brokers:
        broker = of_broker(state.brokers[number], step)
        state = replace(state, brokers={**state.brokers, number: broker})
    of_cluster = _OF_CLUSTER.get(kind)
    return state if of_cluster is None else of_cluster(state, step)


def _last(batch: LoggedBatch) -> int:
    return batch[1]


# Logs.


def _append(broker: BrokerState, step: Shown) -> BrokerState:
    batch = (step["offset"], step["last"], step["leader_epoch"], step["record"])
    return replace(broker, batches=(*broker.batches, batch), leo=step["leo"])


def _truncate(broker: BrokerState, step: Shown) -> BrokerState:
    """Remove batches that reach the offset; an offset beyond the LEO empties the log, which then starts there."""
    offset = step["offset"]
    if offset > broker.leo:
        return replace(broker, batches=(), log_start=offset, leo=offset)
    kept = broker.batches[: bisect_left(broker.batches, offset, key=_last)] if offset < broker.leo else broker.batches
    return replace(broker, batches=kept, log_start=min(broker.log_start, offset), leo=offset)


def _log_start(broker: BrokerState, step: Shown) -> BrokerState:
    return replace(broker, log_start=step["offset"], leo=max(broker.leo, step["offset"]))


def _recovered(broker: BrokerState, step: Shown) -> BrokerState:
    return replace(broker, log_start=step["log_start"], leo=step["offset"], hw=step["hw"])


def _deleted(broker: BrokerState, _: Shown) -> BrokerState:
    return replace(broker, batches=(), log_start=0, leo=0, hw=0, leads=NO_EPOCH, follows=NONE)


def _lost(broker: BrokerState, step: Shown) -> BrokerState:
    """The process ends; the step's offset is the number of newest batches lost with it."""
    kept = broker.batches[: len(broker.batches) - step["offset"]]
    down = replace(broker, running=False, pauses=0, stalls=0, leads=NO_EPOCH, follows=NONE)
    return replace(down, batches=kept, leo=kept[-1][1] + 1 if kept else 0) if step["offset"] else down


def _disk_replaced(broker: BrokerState, step: Shown) -> BrokerState:
    return replace(_lost(broker, step), batches=(), log_start=0, leo=0, hw=0)


# Brokers.


def _lead(broker: BrokerState, step: Shown) -> BrokerState:
    return replace(broker, leads=step["leader_epoch"], follows=NONE)


def _follow(broker: BrokerState, step: Shown) -> BrokerState:
    return replace(broker, leads=NO_EPOCH, follows=step["leader"])


_OF_BROKERS: Final[Mapping[StepKind, Callable[[BrokerState, Shown], BrokerState]]] = {
    **dict.fromkeys(steps.ENDS, _lost),
    steps.DISK_REPLACED: _disk_replaced,
    steps.APPEND: _append,
    steps.TRUNCATE: _truncate,
    steps.LOG_START: _log_start,
    steps.RECOVERED: _recovered,
    steps.DELETED: _deleted,
    steps.HW: lambda broker, step: replace(broker, hw=step["offset"]),
    steps.LEAD: _lead,
    steps.FOLLOW: _follow,
    steps.START: lambda broker, _: replace(broker, running=True),
    steps.PAUSE: lambda broker, _: replace(broker, pauses=broker.pauses + 1),
    steps.RESUME: lambda broker, _: replace(broker, pauses=max(broker.pauses - 1, 0)),
    steps.DISK_STALLED: lambda broker, _: replace(broker, stalls=broker.stalls + 1),
    steps.DISK_WORKS: lambda broker, _: replace(broker, stalls=max(broker.stalls - 1, 0)),
    steps.SESSION_END: lambda broker, _: replace(broker, session_ended=True),
    steps.UNFENCED: lambda broker, _: replace(broker, session_ended=False),
}


# The control plane, and links.


def _elected(state: ClusterState, step: Shown) -> ClusterState:
    return replace(state, leader=step["broker"], leader_epoch=step["leader_epoch"])


def _isr(state: ClusterState, step: Shown) -> ClusterState:
    return replace(state, isr=tuple(step["isr"]), leader_epoch=step["leader_epoch"])


def _elr(state: ClusterState, step: Shown) -> ClusterState:
    elr, known = tuple(step["elr"]), tuple(step["last_known_elr"])
    return replace(state, elr=elr, last_known_elr=known, leader_epoch=step["leader_epoch"])


def _assigned(state: ClusterState, step: Shown) -> ClusterState:
    target = tuple(step["target_replicas"]) if step["reassignment"] in steps.UNDER_WAY else ()
    return replace(state, replicas=tuple(step["replicas"]), target=target)


def _link(by: int) -> Callable[[ClusterState, Shown], ClusterState]:
    def change(state: ClusterState, step: Shown) -> ClusterState:
        link = step["source"], step["target"]
        return replace(state, links={**state.links, link: max(state.links.get(link, 0) + by, 0)})

    return change


def _registered(state: ClusterState, step: Shown) -> ClusterState:
    number = step["broker"]
    if not state.zookeeper:
        return state
    return replace(state, brokers={**state.brokers, number: replace(state.brokers[number], session_ended=False)})


def _pause(by: int) -> Callable[[ClusterState, Shown], ClusterState]:
    """Broker 0 is the control plane."""

    def change(state: ClusterState, step: Shown) -> ClusterState:
        return state if step["broker"] else replace(state, pauses=max(state.pauses + by, 0))

    return change


_OF_CLUSTER: Final[Mapping[StepKind, Callable[[ClusterState, Shown], ClusterState]]] = {
    **dict.fromkeys(steps.LINKS, _link(1)),
    steps.HEAL: _link(-1),
    steps.ELECTED: _elected,
    steps.EPOCH_RAISED: lambda state, step: replace(state, leader_epoch=step["leader_epoch"]),
    steps.ISR: _isr,
    steps.ELR: _elr,
    steps.ASSIGNED: _assigned,
    steps.REGISTERED: _registered,
    steps.PAUSE: _pause(1),
    steps.RESUME: _pause(-1),
}
