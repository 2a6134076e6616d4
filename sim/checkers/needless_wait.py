"""Needless waits: what Kafka has all it needs for, it does within a bound that its settings give.

A run is divided at its *turns*: ends, starts, pauses and sessions of processes, changes of links, elections, ISRs,
assignments, controllers. Between two turns all that an election, a return into the ISR or an acknowledgement needs is
constant. A wait is needless if it goes on for longer than its bound between two turns while no fault is in its way: no
process is paused, no disk stalls, no link is cut, slow or loses messages, no metadata is delayed, and the controller
runs. Time before the last turn never counts, so that each fault gives Kafka the whole bound again.

Verifies, for each partition:

- ``elect``: while the partition has no leader, and a member of ISR or ELR runs with an open session, that one is
  elected; if the leader's process has ended, its session ends;
- ``lead``: a running broker that was elected begins to lead;
- ``rejoin``: an assigned replica that runs with an open session enters the ISR of a leader that serves;
- ``acknowledge``: the HW passes what the leader has appended, while min.insync.replicas replicas run with open
  sessions;
- ``request``: a reassignment completes when its whole target is in the ISR;
- ``send``: a producer sends a batch to a leader that it knows and may send to, whatever another partition waits for.
  Faults elsewhere and turns are no excuse for it.

Does not verify: waits that turns interrupt again and again, as sessions that end and open without end; brokers
without a session; whether more was needed than Kafka needs; other answers to clients (delivery.timeout.ms ends those).
"""

from __future__ import annotations

from typing import ClassVar

from sim.checkers.bad_links import BadLinks
from sim.checkers.checker import ALWAYS, Checker, Finding, RunEnd
from sim.history import steps
from sim.history.availability import STANDS_STILL
from sim.history.history import History
from sim.protocol.replica.partition import NO_LEADER, Partition


class WaitBounds:
    """How long each wait may last, in us; `scenarios.single.wait_bounds` derives them from settings.

    Attributes:
        elect_us: from an open session of a candidate, without a leader, to its election.
        session_us: from the end of a leader's process to the end of its session.
        lead_us: from an election to the leadership.
        rejoin_us: from an open session and a serving leader to the ISR.
        acknowledge_us: from an append to the HW.
        request_us: from an ISR with the whole target to the end of a reassignment.
        send_us: for how long a producer holds a batch back.
        waits_for_restarted: whether the controller waits for all members of the ISR if all that run have restarted
            since they joined it (rule ``missed_bounce``, value ``noticed``, of no release).
    """

    __slots__ = (
        "acknowledge_us",
        "elect_us",
        "lead_us",
        "rejoin_us",
        "request_us",
        "send_us",
        "session_us",
        "waits_for_restarted",
    )

    def __init__(
        self,
        *,
        elect_us: int,
        session_us: int,
        lead_us: int,
        rejoin_us: int,
        acknowledge_us: int,
        request_us: int,
        send_us: int,
        waits_for_restarted: bool = False,
    ) -> None:
        self.elect_us = elect_us
        self.session_us = session_us
        self.lead_us = lead_us
        self.rejoin_us = rejoin_us
        self.acknowledge_us = acknowledge_us
        self.request_us = request_us
        self.send_us = send_us
        self.waits_for_restarted = waits_for_restarted

    @property
    def shortest_us(self) -> int:
        """The shortest of them."""
        return min(
            *(self.elect_us, self.session_us, self.lead_us),
            *(self.rejoin_us, self.acknowledge_us, self.request_us),
        )


class Obstacles(steps.Listener):
    """What stands in the way of all partitions: links, which only the recorder of the first partition hears of, and
    processes that stand still. One for all partitions of a run.

    Attributes:
        still: number of reasons why processes do not respond, over all partitions.
        waits: the checkers of the partitions that exist.
        lost_us: time over the bounds, in all partitions, also of deleted ones.
    """

    of_cluster: ClassVar[bool] = True

    def __init__(self) -> None:
        self._links = BadLinks()
        self.still = 0
        self.lost_us = 0
        self.waits: list[NeedlessWait] = []

    @property
    def are_present(self) -> bool:
        """Whether something stands in the way."""
        return self._links.are_present or self.still > 0

    def on_link(self, step: steps.LinkChange) -> None:
        for wait in self.waits:
            wait.turn(step.at_us)
        self._links.note(step)


class NeedlessWait(Checker):
    """Tracks what elections, the ISR and acknowledgements need, from turn to turn."""

    FINDINGS: ClassVar = (Finding("needless-wait", ALWAYS),)

    def __init__(self, history: History, bounds: WaitBounds, obstacles: Obstacles) -> None:
        super().__init__(history)
        self._bounds = bounds
        self._shortest_us = bounds.shortest_us
        self._obstacles = obstacles
        obstacles.waits.append(self)
        self._since_us = 0
        self._up: dict[int, int] = {}
        """Broker -> incarnation of its process."""
        self._sessions: dict[int, int] = {}
        """Broker -> incarnation to which its open session belongs."""
        self._broken: set[int] = set()
        """Brokers whose replica ended, and not their process, until they load one."""
        self._still: dict[int, int] = {}
        self._late: dict[int, int] = {}
        """Broker -> by how much its metadata is delayed, in us."""
        self._controllers_down: set[int] = set()
        self._controller = 0
        self._leader = NO_LEADER
        self._epoch = -1
        self._leads: dict[int, int] = {}
        self._partitions: dict[int, Partition] = {}
        self._isr: tuple[int, ...] = ()
        self._elr: tuple[int, ...] = ()
        self._replicas: tuple[int, ...] = ()
        self._target: tuple[int, ...] = ()
        self._min_isr = 0
        self._joined: dict[int, int] = {}
        """Broker -> incarnation in which it joined the ISR or was elected."""
        self._reported: set[tuple[str, int]] = set()

    # Turns.

    def turn(self, now_us: int) -> None:
        """Judge the time since the last turn, in which nothing changed."""
        since_us = self._since_us
        self._since_us = now_us
        if now_us - since_us > self._shortest_us and self._epoch >= 0 and self._is_unobstructed():
            self._judge(since_us, now_us)

    def on_elected(self, step: steps.Elected) -> None:
        self.turn(step.at_us)
        for broker in self._isr if self._epoch < 0 else (step.broker,):
            self._joined[broker] = self._up.get(broker, -1)
        self._leader, self._epoch = step.broker, step.epoch

    def on_epoch_raised(self, step: steps.EpochRaised) -> None:
        self.turn(step.at_us)
        self._epoch = step.epoch

    def on_lead(self, step: steps.Lead) -> None:
        self.turn(step.at_us)
        self._leads[step.broker] = step.epoch
        self._partitions[step.broker] = step.partition

    def on_follow(self, step: steps.Follow) -> None:
        self.turn(step.at_us)
        self._leads.pop(step.broker, None)

    def on_isr(self, step: steps.Isr) -> None:
        self.turn(step.at_us)
        for broker in step.isr:
            if broker not in self._isr:
                self._joined[broker] = self._up.get(broker, -1)
        self._isr, self._elr = step.isr, step.elr

    def on_elr(self, step: steps.Elr) -> None:
        self.turn(step.at_us)
        self._elr = step.elr

    def on_decided(self, step: steps.Decided) -> None:
        self.turn(step.at_us)
        self._replicas, self._min_isr = step.state.replicas, step.min_isr

    def on_assigned(self, step: steps.Assigned) -> None:
        self.turn(step.at_us)
        self._replicas, self._target = step.replicas, step.target

    def on_controller(self, step: steps.Controller) -> None:
        self.turn(step.at_us)
        self._controller = step.broker

    def on_controller_process(self, step: steps.ControllerProcess) -> None:
        self.turn(step.at_us)
        if step.kind in (steps.CONTROLLER_END, steps.CONTROLLER_PAUSE):
            self._controllers_down.add(step.node)
        else:
            self._controllers_down.discard(step.node)

    def on_raft_leader(self, step: steps.RaftLeader) -> None:
        self.turn(step.at_us)

    def on_held_back(self, step: steps.HeldBack) -> None:
        had = (
            f"the producer knew leader {step.broker} and could send to it, and held a batch back because one of "
            f"{step.because_of} had to wait"
        )
        self._wait("send", step.broker, step.at_us - step.held_us, step.at_us, self._bounds.send_us, had)

    def on_start(self, step: steps.Start) -> None:
        self.turn(step.at_us)
        self._up[step.broker] = step.incarnation

    def on_recovered(self, step: steps.Recovered) -> None:
        self.turn(step.at_us)
        self._broken.discard(step.broker)

    def on_deleted(self, step: steps.Deleted) -> None:
        self.turn(step.at_us)
        self._leads.pop(step.broker, None)

    def on_registered(self, step: steps.Registered) -> None:
        self.turn(step.at_us)
        if step.opens:
            self._sessions[step.broker] = step.incarnation

    def on_session_end(self, step: steps.SessionEnd) -> None:
        self.turn(step.at_us)
        self._sessions.pop(step.broker, None)

    def on_end(self, step: steps.End) -> None:
        broker = step.broker
        self.turn(step.at_us)
        if step.kind in steps.OF_REPLICAS:  # Also while it is down: it may start without this replica.
            self._broken.add(broker)
            self._leads.pop(broker, None)
            return
        if step.was_down:
            return
        self._leads.pop(broker, None)
        self._up.pop(broker, None)
        self._obstacles.still -= self._still.pop(broker, 0)

    def on_pause(self, step: steps.Pause) -> None:
        broker, change = step.broker, STANDS_STILL[step.kind]
        self.turn(step.at_us)
        still = self._still.get(broker, 0) + change
        if still >= 0:
            self._still[broker] = still
            self._obstacles.still += change

    def on_metadata_delay(self, step: steps.MetadataDelay) -> None:
        self.turn(step.at_us)
        change = step.delay_us if step.kind is steps.METADATA_SLOWED else -step.delay_us
        self._late[step.broker] = self._late.get(step.broker, 0) + change

    def final(self, end: RunEnd) -> None:
        self.turn(end.now_us)

    def close(self) -> None:
        self._obstacles.waits.remove(self)

    def dispose(self) -> None:
        self._partitions.clear()
        self._obstacles.waits.clear()

    # Judgement.

    def _is_unobstructed(self) -> bool:
        return not (self._obstacles.are_present or self._controllers_down or any(self._late.values()))

    def _is_live(self, broker: int) -> bool:
        """Whether a broker's process runs with an open session of its own, and its replica has not ended."""
        incarnation = self._up.get(broker, -1)
        return incarnation >= 0 and self._sessions.get(broker, -2) == incarnation and broker not in self._broken

    def _candidates(self) -> list[int]:
        """The live members of ISR and ELR that the controller may elect."""
        live = [broker for broker in (*self._isr, *self._elr) if self._is_live(broker)]
        if self._bounds.waits_for_restarted and any(broker not in live for broker in self._isr):
            return [broker for broker in live if self._joined.get(broker) == self._up[broker]]
        return live

    def _judge(self, since_us: int, now_us: int) -> None:
        self.decided = True
        leader = self._leader
        if leader != NO_LEADER and leader in self._sessions and self._sessions[leader] != self._up.get(leader, -1):
            if self._candidates():
                had = f"the process of leader {leader} has ended, and its session has not"
                self._wait("elect", leader, since_us, now_us, self._bounds.session_us, had)
            return
        if self._controller > 0 and not self._is_live(self._controller):
            return
        if leader == NO_LEADER or leader not in self._sessions:
            for broker in self._candidates()[:1]:
                where = f"ISR {sorted(self._isr)}" if broker in self._isr else f"ELR {sorted(self._elr)}"
                had = f"there is no leader, and broker {broker} of the {where} runs with an open session"
                self._wait("elect", broker, since_us, now_us, self._bounds.elect_us, had)
        elif not self._is_live(leader):
            return
        elif self._leads.get(leader, -2) < self._epoch:
            had = f"elected broker {leader} runs with an open session, and does not lead in leader epoch {self._epoch}"
            self._wait("lead", leader, since_us, now_us, self._bounds.lead_us, had)
        else:
            self._judge_followers(leader, since_us, now_us)

    def _judge_followers(self, leader: int, since_us: int, now_us: int) -> None:
        bounds, isr = self._bounds, self._isr
        live = [broker for broker in self._replicas if self._is_live(broker)]
        for broker in live:
            if broker not in isr:
                had = f"broker {broker} runs with an open session, leader {leader} serves, and the ISR is {sorted(isr)}"
                self._wait("rejoin", broker, since_us, now_us, bounds.rejoin_us, had)
        if self._target and set(self._target) <= {*isr} & {*live}:
            had = f"all of the reassignment's target {sorted(self._target)} are in the ISR"
            self._wait("request", leader, since_us, now_us, bounds.request_us, had)
        partition = self._partitions[leader]
        if len(live) >= self._min_isr and partition.log.leo > partition.hw:
            begun_us = self._appended_us(leader, partition, since_us)
            had = (
                f"leader {leader} has appended up to offset {partition.log.leo}, its HW is {partition.hw}, brokers "
                f"{sorted(live)} run with open sessions, and min.insync.replicas is {self._min_isr}"
            )
            self._wait("acknowledge", leader, begun_us, now_us, bounds.acknowledge_us, had)

    def _appended_us(self, leader: int, partition: Partition, since_us: int) -> int:
        """When the leader appended the first batch that its HW has not passed, if that was after `since_us`."""
        for step in reversed(self._history.steps):
            if step.at_us <= since_us:
                break
            if isinstance(step, steps.Append) and step.broker == leader and step.batch.base_offset <= partition.hw:
                return step.at_us
        return since_us

    def _wait(self, kind: str, subject: int, since_us: int, now_us: int, bound_us: int, had: str) -> None:
        over_us = now_us - since_us - bound_us
        if over_us <= 0:
            return
        self._obstacles.lost_us += over_us
        if (kind, subject) in self._reported:
            return
        self._reported.add((kind, subject))
        waited, bound, over = (f"{us / 1e6:.3f}" for us in (now_us - since_us, bound_us, over_us))
        detail = f"{kind}: for {waited} s, {over} s longer than the bound of {bound} s, {had}"
        self._violates("needless-wait", now_us, detail)
