"""States of brokers over time, folded from the steps of a run.

`reports.film.states` reads the running cluster instead: a film also shows logs, flushed offsets and HW checkpoints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sim.history import steps
from sim.history.steps import Shown, kind_of

PAINTED: Final = ("replica", "isr", "elr", "down", "up", "still", "fenced", "leader")
"""Kinds of bands, in painting order: later ones cover earlier ones."""


@dataclass(frozen=True, slots=True)
class Band:
    """A state of a broker over an interval of time.

    Attributes:
        node: the broker.
        kind: one of `PAINTED`.
        since_us: beginning of the interval.
        until_us: end of the interval; None: the end of the run.
        epoch: leader epoch of a leader.
    """

    node: int
    kind: str
    since_us: int
    until_us: int | None
    epoch: int = -1


class ClusterState:
    """The state of a cluster: before the first step no process runs, and all replicas are in the ISR.

    Attributes:
        leader: 0 if there is none; leader, epoch and `members` are those that the control plane persisted.
        leader_epoch: its epoch.
        members: kind of band -> its brokers.
        running: brokers whose process runs.
        pauses: broker -> number of pauses in force on its process.
        stalls: broker -> number of stalls in force on its disk.
        fenced: brokers whose session ended (KRaft: that were fenced) and that have no new one.
    """

    def __init__(self, replicas: Sequence[int], *, zookeeper: bool) -> None:
        self.leader = 0
        self.leader_epoch = -1
        self.members: dict[str, Sequence[int]] = {"replica": replicas, "isr": replicas, "elr": ()}
        self.running: set[int] = set()
        self.pauses = Counter[int]()
        self.stalls = Counter[int]()
        self.fenced: set[int] = set()
        self._opens = steps.REGISTERED if zookeeper else steps.UNFENCED
        """The step after which a broker has a session."""

    def take(self, step: Shown) -> None:
        """Update the state with one more step."""
        kind, broker = kind_of(step), step.get("broker", 0)
        if kind in steps.OF_REPLICAS:
            return  # The process goes on.
        if kind in steps.ENDS:
            self.running.discard(broker)
            self.pauses[broker] = self.stalls[broker] = 0
        elif kind is steps.START:
            self.running.add(broker)
        elif kind is steps.PAUSE:
            self.pauses[broker] += 1
        elif kind is steps.RESUME:
            self.pauses[broker] = max(self.pauses[broker] - 1, 0)
        elif kind is steps.DISK_STALLED:
            self.stalls[broker] += 1
        elif kind is steps.DISK_WORKS:
            self.stalls[broker] = max(self.stalls[broker] - 1, 0)
        elif kind is steps.SESSION_END:
            self.fenced.add(broker)
        elif kind is self._opens:
            self.fenced.discard(broker)
        else:
            self._decide(step)

    def _decide(self, step: Shown) -> None:
        kind = kind_of(step)
        if kind is steps.ELECTED:
            self.leader = step["broker"]
        elif kind is steps.ASSIGNED:
            self.members["replica"] = step["replicas"]
        elif kind in (steps.ISR, steps.ELR):
            self.members[kind.name] = step[kind.name]
        if kind in (steps.ELECTED, steps.ISR, steps.ELR, steps.EPOCH_RAISED):
            self.leader_epoch = step["leader_epoch"]

    def kinds(self, broker: int) -> Iterator[tuple[str, int]]:
        """The kinds of bands of a broker, each with the leader epoch if it leads."""
        for kind, members in self.members.items():
            if broker in members:
                yield kind, -1
        yield ("up" if broker in self.running else "down"), -1
        if self.pauses[broker] or self.stalls[broker]:
            yield "still", -1
        if broker in self.fenced:
            yield "fenced", -1
        if self.leader == broker:
            yield "leader", self.leader_epoch


def bands(brokers: Sequence[int], state: ClusterState, seen: Iterable[Shown]) -> list[Band]:
    """Bands of the brokers' states during steps, in painting order.

    Args:
        brokers: the brokers.
        state: the state before the first step.
        seen: the steps.
    """
    found: list[Band] = []
    there: dict[tuple[int, str, int], int] = {}

    def note(at_us: int) -> None:
        now = {(broker, kind, epoch) for broker in brokers for kind, epoch in state.kinds(broker)}
        for node, kind, epoch in [one for one in there if one not in now]:
            since_us = there.pop((node, kind, epoch))
            if since_us < at_us:
                found.append(Band(node, kind, since_us, at_us, epoch))
        for one in sorted(now - there.keys()):
            there[one] = at_us

    note(0)
    for step in seen:
        state.take(step)
        note(step["t"])
    still = [Band(node, kind, since_us, None, epoch) for (node, kind, epoch), since_us in there.items()]
    return sorted([*found, *still], key=lambda band: PAINTED.index(band.kind))
