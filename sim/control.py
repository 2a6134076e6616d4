"""The control plane: sessions, elections and the persisted ISR of one partition.

`SimpleControl` stands where Kafka has a controller over ZooKeeper, with the same effect and less machinery: sessions
with a timeout, the first live ISR member elected, ISR changes conditional on the partition epoch. Its messages cross
links like all others. `ScriptedControl` lets a script decide instead, and goes on as the simple one when it ends.

Every change of leader or ISR raises the leader epoch, as ZooKeeper's controller does when a follower dies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.broker import CONTROL
from sim.network import Node
from sim.protocol.messages import Goodbye, Heartbeat, IsrChange, LeaderAndIsr
from sim.protocol.partition import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.journal import Journal
    from sim.kernel import Kernel
    from sim.protocol.rules import Rules


class Session:
    """A registered incarnation; `last_us` is its last heartbeat."""

    __slots__ = ("incarnation", "last_us")

    def __init__(self, incarnation: int, last_us: int) -> None:
        self.incarnation = incarnation
        self.last_us = last_us


class SimpleControl(Node):
    """Decides who leads.

    Args:
        topic: the partition.
        replicas: its assignment, the preferred leader first.
        rules: for ``isr_eligibility``.
        session_us: ``zookeeper.session.timeout.ms`` in us.
        unclean_election: ``unclean.leader.election.enable``.
        kernel: time and timers.
        journal: where decisions are noted.

    Attributes:
        state: the present decision.
        sessions: open sessions by broker.
        changed: called after each decision and registration.
    """

    def __init__(
        self,
        topic: str,
        replicas: tuple[int, ...],
        rules: Rules,
        *,
        session_us: int,
        unclean_election: bool,
        kernel: Kernel,
        journal: Journal,
    ) -> None:
        super().__init__(CONTROL)
        self.sessions: dict[int, Session] = {}
        self.changed: Callable[[], None] | None = None
        self._waiting: dict[int, int] = {}
        self._checks_members = rules.isr_eligibility == "registered"
        self._session_us = session_us
        self._unclean_election = unclean_election
        self._kernel = kernel
        self._journal = journal
        self.state = LeaderAndIsr(topic, NO_LEADER, -1, replicas, -1, replicas)
        journal.isr(replicas, -1)

    # Sessions.

    def on_heartbeat(self, beat: Heartbeat) -> None:
        """A sign of life; of an incarnation without a session: its registration.

        While the session of an earlier incarnation is open, the new one waits for its end.
        """
        session = self.sessions.get(beat.broker)
        if session is None:
            self._register(beat.broker, beat.incarnation)
        elif session.incarnation == beat.incarnation:
            session.last_us = self._kernel.now_us
            if beat.partition_epoch < self.state.partition_epoch:
                self._send(beat.broker)
        elif session.incarnation < beat.incarnation:
            self._waiting[beat.broker] = beat.incarnation

    def _register(self, broker: int, incarnation: int) -> None:
        session = self.sessions[broker] = Session(incarnation, self._kernel.now_us)
        self._kernel.call_at(self._kernel.now_us + self._session_us, self.life, self._expire, (broker, session))
        self._journal.registered(broker, incarnation)
        self.registered(broker)
        if self.changed is not None:
            self.changed()

    def _expire(self, entry: tuple[int, Session]) -> None:
        broker, session = entry
        if self.sessions.get(broker) is not session:
            return
        due_us = session.last_us + self._session_us
        if due_us > self._kernel.now_us:
            self._kernel.call_at(due_us, self.life, self._expire, entry)
            return
        self._end_session(broker)

    def on_goodbye(self, goodbye: Goodbye) -> None:
        """A broker shuts down in a controlled way: its session ends at once."""
        session = self.sessions.get(goodbye.broker)
        if session is not None and session.incarnation == goodbye.incarnation:
            self._end_session(goodbye.broker)
        if self._waiting.get(goodbye.broker) == goodbye.incarnation:
            del self._waiting[goodbye.broker]
        channel = self.reach(goodbye.broker)
        if channel is not None:
            channel.send(channel.target.on_goodbye_reply, goodbye)  # type: ignore[attr-defined]

    def _end_session(self, broker: int) -> None:
        del self.sessions[broker]
        self._journal.session_end(broker)
        self.session_ended(broker)
        incarnation = self._waiting.pop(broker, None)
        process: Any = self.network.nodes.get(broker)
        # One that died while it waited never registers.
        if incarnation is not None and process is not None and process.incarnation == incarnation:
            self._register(broker, incarnation)

    # Decisions.

    def registered(self, broker: int) -> None:
        """A broker came: elect if there is no leader, else tell it how things stand."""
        if self.state.leader != NO_LEADER or not self._elect(self.state.isr):
            self._send(broker)

    def session_ended(self, broker: int) -> None:
        """A broker went: it leaves the ISR, unless it is the last member, and leads no more."""
        isr = self.state.isr
        if broker in isr and len(isr) > 1:
            isr = tuple(member for member in isr if member != broker)
        if self.state.leader == broker:
            if not self._elect(isr):
                self.decide(NO_LEADER, isr)
        elif isr != self.state.isr:
            self.decide(self.state.leader, isr)

    def _elect(self, isr: tuple[int, ...]) -> bool:
        """Choose the first live ISR member in assignment order; else, if allowed, the first live replica."""
        for broker in self.state.replicas:
            if broker in isr and broker in self.sessions:
                self.decide(broker, isr)
                return True
        if self._unclean_election:
            for broker in self.state.replicas:
                if broker in self.sessions:
                    self.decide(broker, (broker,))
                    return True
        return False

    def on_isr_change(self, change: IsrChange) -> None:
        """A leader's ISR write: it counts only on the partition epoch that the leader knows."""
        state = self.state
        stale = change.partition_epoch != state.partition_epoch or change.broker != state.leader
        if stale or (self._checks_members and not all(self._eligible(change, member) for member in change.isr)):
            channel = self.reach(change.broker)
            if channel is not None:
                channel.send(channel.target.on_isr_refused, change)  # type: ignore[attr-defined]
            return
        self.decide(state.leader, change.isr)

    def _eligible(self, change: IsrChange, member: int) -> bool:
        session = self.sessions.get(member)
        if session is None:
            return False
        return member == change.broker or member in self.state.isr or change.incarnations[member] == session.incarnation

    def decide(self, leader: int, isr: tuple[int, ...]) -> None:
        """Persist a decision and tell the live brokers."""
        old = self.state
        epoch = old.leader_epoch + 1
        self.state = LeaderAndIsr(old.name, leader, epoch, isr, old.partition_epoch + 1, old.replicas)
        if leader != old.leader:
            self._journal.elected(leader, epoch)
        if isr != old.isr:
            self._journal.isr(isr, epoch)
        for broker in self.state.replicas:
            if broker in self.sessions:
                self._send(broker)
        if self.changed is not None:
            self.changed()

    def _send(self, broker: int) -> None:
        """Tell a broker how things stand, over the connection of the incarnation that registered.

        A later incarnation that still waits for the end of that session hears nothing: it is not part of the cluster.
        """
        channel = self.reach(broker)
        if channel is None or self.state.partition_epoch < 0:
            return
        process: Any = channel.target
        if process.incarnation == self.sessions[broker].incarnation:
            channel.send(process.on_leader_and_isr, self.state)

    def release(self) -> None:
        """Decide by itself from now on; the simple control plane always has."""


class ScriptedControl(SimpleControl):
    """Leaves decisions to a script until `release`; a broker that starts is registered at once."""

    scripted = True

    def on_heartbeat(self, beat: Heartbeat) -> None:
        """See `SimpleControl.on_heartbeat`."""
        session = self.sessions.get(beat.broker)
        if self.scripted and session is not None and session.incarnation < beat.incarnation:
            del self.sessions[beat.broker]
            self._journal.session_end(beat.broker)
        super().on_heartbeat(beat)

    def registered(self, broker: int) -> None:
        """See `SimpleControl.registered`."""
        if self.scripted:
            self._send(broker)
        else:
            super().registered(broker)

    def session_ended(self, broker: int) -> None:
        """See `SimpleControl.session_ended`."""
        if not self.scripted:
            super().session_ended(broker)

    def on_isr_change(self, change: IsrChange) -> None:
        """See `SimpleControl.on_isr_change`."""
        if not self.scripted:
            super().on_isr_change(change)

    def release(self) -> None:
        """Take over: what happened to sessions meanwhile has its effect now."""
        self.scripted = False
        for broker in self.state.replicas:
            if broker not in self.sessions:
                self.session_ended(broker)
        if self.state.leader == NO_LEADER:
            self._elect(self.state.isr)
