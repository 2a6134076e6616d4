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
- ``leave``: a member of the ISR that lacks a record for longer than ``replica.lag.time.max.ms`` leaves it; what
  strikes that member or other followers is not in the way;
- ``stay`` (as ``needless-shrink``): a leader removes no member from the ISR that lacks records for less time, if
  nothing was in the way for long before;
- ``balance``: the preferred leader leads, if the controller balances leaders (``auto.leader.rebalance.enable``) and
  that one is in the ISR and runs with an open session;
- ``request``: a reassignment completes when its whole target is in the ISR;
- ``run``: a broker goes on while a log directory works that has a replica which it has loaded;
- ``hand over``: a leader that ran with an open session does not end its controlled shutdown before another live member
  of the ISR is elected;
- ``read``: a consumer that has read reads what the HW of a leader that serves has passed, unless it began to read
  elsewhere since;
- ``answer``: a producer receives success for what the HW of a leader that serves has passed;
- ``refuse``: a broker that leads no longer answers the writes that wait for the HW;
- ``commit``: in the history of ``__consumer_offsets``, its leader, as coordinator of the groups, answers consumers;
- ``write``: no batch without a sequence expires (``delivery.timeout.ms``) while a leader serves and
  min.insync.replicas live replicas are in sync;
- ``create``: the controller creates partitions if as many brokers run with open sessions as there are replicas;
- ``send``: a producer sends a batch to a leader that it knows and may send to, whatever another partition waits for.
  Faults elsewhere and turns are no excuse for it.

Does not verify: waits that turns interrupt again and again, as sessions that end and open without end; brokers
without a session; whether more was needed than Kafka needs; other answers to clients (delivery.timeout.ms ends those).
"""

from __future__ import annotations

from typing import ClassVar, Final

from sim.checkers.bad_links import BadLinks
from sim.checkers.checker import ALWAYS, Checker, Finding, RunEnd
from sim.checkers.laggards import NEVER_US, Laggards
from sim.history import steps
from sim.history.availability import STANDS_STILL
from sim.history.history import History
from sim.protocol.messages import REQUEST_TIMED_OUT
from sim.protocol.replica.partition import NO_LEADER, Partition

_CONTROLLERS: Final = range(steps.FIRST_CONTROLLER, steps.CLIENTS)
"""Ids of controllers that are processes."""
_WHILE_READING: Final = (steps.COMMIT, steps.PREFERRED_REPLICA, steps.OFFSET_FOR_TIME)
"""Steps about a consumer's position that leave it where it is."""
_CLIENTS_EACH: Final = 3
_CONSUMER: Final = 2
"""Ids of consumers, in each three of clients: other readers end after what they look for (`sim.hosts.client`)."""


class WaitBounds:
    """How long each wait may last, in us; `scenarios.single.wait_bounds` derives them from settings.

    Attributes:
        elect_us: from an open session of a candidate, without a leader, to its election.
        session_us: from the end of a leader's process to the end of its session.
        lead_us: from an election to the leadership.
        stay_us: how long a member of the ISR may lack a record before a leader may remove it.
        leave_us: from an append that a member of the ISR does not fetch until the leader removes that member.
        retry_us: how long a request to the controller, or a fetch, may take if it was lost.
        balance_us: from a preferred leader in the ISR to its election.
        rejoin_us: from an open session and a serving leader to the ISR.
        acknowledge_us: from an append to the HW.
        request_us: from an ISR with the whole target to the end of a reassignment.
        send_us: for how long a producer holds a batch back.
        client_us: for how long a client may wait for a leader that serves.
        group_us: for how long a consumer may wait for the coordinator of its group.
        waits_for_restarted: whether the controller waits for all members of the ISR if all that run have restarted
            since they joined it (rule ``missed_bounce``, value ``noticed``, of no release).
    """

    __slots__ = (
        "acknowledge_us",
        "balance_us",
        "client_us",
        "elect_us",
        "group_us",
        "lead_us",
        "leave_us",
        "rejoin_us",
        "request_us",
        "retry_us",
        "send_us",
        "session_us",
        "stay_us",
        "waits_for_restarted",
    )

    def __init__(
        self,
        *,
        elect_us: int,
        session_us: int,
        lead_us: int,
        stay_us: int,
        leave_us: int,
        balance_us: int,
        retry_us: int,
        rejoin_us: int,
        acknowledge_us: int,
        request_us: int,
        send_us: int,
        client_us: int,
        group_us: int,
        waits_for_restarted: bool = False,
    ) -> None:
        self.elect_us = elect_us
        self.session_us = session_us
        self.lead_us = lead_us
        self.stay_us = stay_us
        self.leave_us = leave_us
        self.balance_us = balance_us
        self.retry_us = retry_us
        self.rejoin_us = rejoin_us
        self.acknowledge_us = acknowledge_us
        self.request_us = request_us
        self.send_us = send_us
        self.client_us = client_us
        self.group_us = group_us
        self.waits_for_restarted = waits_for_restarted

    @property
    def shortest_us(self) -> int:
        """The shortest bound of the waits that `NeedlessWait` judges from turn to turn."""
        return min(
            *(self.elect_us, self.session_us, self.lead_us),
            *(self.rejoin_us, self.acknowledge_us, self.request_us),
        )


class Obstacles(steps.Listener):
    """What stands in the way of all partitions: links, which only the recorder of the first partition hears of, and
    processes that stand still. One for all partitions of a run.

    Attributes:
        links: the faults of links.
        still: number of reasons why processes do not respond, over all partitions.
        waits: the checkers of the partitions that exist.
        lost_us: time over the bounds, in all partitions, also of deleted ones.
    """

    of_cluster: ClassVar[bool] = True

    def __init__(self) -> None:
        self.links = BadLinks()
        self.still = 0
        self.lost_us = 0
        self.waits: list[NeedlessWait] = []

    def on_link(self, step: steps.LinkChange) -> None:
        for wait in self.waits:
            wait.on_any_link(step)
        self.links.note(step)


class NeedlessWait(Checker):
    """Tracks what elections, the ISR and acknowledgements need, from turn to turn."""

    FINDINGS: ClassVar = (Finding("needless-wait", ALWAYS), Finding("needless-shrink", ALWAYS))

    def __init__(self, history: History, bounds: WaitBounds, obstacles: Obstacles) -> None:
        super().__init__(history)
        self._bounds = bounds
        self._shortest_us = bounds.shortest_us
        self._obstacles = obstacles
        obstacles.waits.append(self)
        self._since_us = 0
        self._laggards = Laggards()
        self._able_us = 0
        """By when each request of a leader to the controller is answered that something in the way may have stopped."""
        self._calm_us = 0
        """When something was last in the way."""
        self._started_us: dict[int, int] = {}
        self._ended_us: dict[int, int] = {}
        self._loaded: set[int] = set()
        """Brokers whose process has loaded a replica."""
        self._unbalanced_us = NEVER_US
        """Since when the preferred leader could lead."""
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
        self._passed_us: dict[int, int] = {}
        """First record of a batch -> when the HW of a leader passed it."""
        self._began_us: dict[int, int] = {}
        """Consumer -> when it last began to read at another offset."""
        self._positions: dict[int, int] = {}
        """Consumer that has read -> its position; none after an error, or while it looks for one."""

    # Turns.

    def turn(self, now_us: int) -> None:
        """Judge the time since the last turn, in which nothing changed."""
        since_us = self._since_us
        self._since_us = now_us
        if self._epoch < 0 or now_us == since_us:
            return
        is_unobstructed = self._is_unobstructed()
        if not is_unobstructed:
            self._calm_us = now_us
        self._judge_balance(since_us, now_us)
        self._judge_laggards(now_us)
        self._judge_former_leaders(since_us, now_us)
        if is_unobstructed and now_us - since_us > self._shortest_us:
            self._judge(since_us, now_us)
            if now_us - since_us > self._bounds.client_us and self._is_served():
                self._judge_readers(since_us, now_us)

    def on_any_link(self, step: steps.LinkChange) -> None:
        """A link changes, wherever it is."""
        self.turn(step.at_us)
        if step.kind is steps.MESSAGE_LOST:
            self._disturb(step.at_us)

    def _disturb(self, now_us: int) -> None:
        """A request or a response may have been lost."""
        self._able_us, self._calm_us = now_us + self._bounds.retry_us, now_us

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
        if step.epoch >= self._epoch:
            self._laggards.lead(step.broker, step.partition.log.leo, step.at_us)

    def on_follow(self, step: steps.Follow) -> None:
        self.turn(step.at_us)
        self._leads.pop(step.broker, None)

    def on_isr(self, step: steps.Isr) -> None:
        self.turn(step.at_us)
        for broker in step.isr:
            if broker not in self._isr:
                self._joined[broker] = self._up.get(broker, -1)
                self._laggards.join(broker, step.at_us)
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
        self._disturb(step.at_us)
        self._unbalanced_us = NEVER_US
        self._controller = step.broker

    def on_controller_process(self, step: steps.ControllerProcess) -> None:
        self.turn(step.at_us)
        self._disturb(step.at_us)
        if step.kind in (steps.CONTROLLER_END, steps.CONTROLLER_PAUSE):
            self._controllers_down.add(step.node)
        else:
            self._controllers_down.discard(step.node)

    def on_raft_leader(self, step: steps.RaftLeader) -> None:
        self.turn(step.at_us)
        self._disturb(step.at_us)
        self._unbalanced_us = NEVER_US

    def on_topic_refused(self, step: steps.TopicRefused) -> None:
        since_us = self._since_us
        self.turn(step.at_us)
        live = [broker for broker in step.brokers if self._is_live(broker)]
        if self._epoch >= 0 and len(live) >= step.replication_factor and self._is_controlled():
            had = f"brokers {live} run with open sessions, and the controller refuses partitions of "
            had += f"{step.replication_factor} replicas each"
            self._wait("create", 0, since_us, step.at_us, self._bounds.elect_us, had)

    def on_held_back(self, step: steps.HeldBack) -> None:
        had = (
            f"the producer knew leader {step.broker} and could send to it, and held a batch back because one of "
            f"{step.because_of} had to wait"
        )
        self._wait("send", step.broker, step.at_us - step.held_us, step.at_us, self._bounds.send_us, had)

    # Logs, whose steps are no turns.

    def on_append(self, step: steps.Append) -> None:
        now_us = step.at_us
        calm_us = self._calm_us if self._is_unobstructed() else now_us
        self._laggards.append(step.broker, step.batch.last_offset + 1, now_us, calm_us)

    def on_truncate(self, step: steps.Truncate) -> None:
        self._laggards.replace(step.broker, step.offset, step.at_us)

    def on_isr_sent(self, step: steps.IsrSent) -> None:
        now_us, leader, bounds, laggards = step.at_us, step.broker, self._bounds, self._laggards
        if leader != laggards.leader or not self._is_served():
            return
        for broker in step.before:
            lacks_us, calm_us = now_us - laggards.lacks_since_us(broker), laggards.calm_before_us(broker)
            if broker in step.isr or calm_us <= bounds.stay_us + bounds.retry_us:
                continue
            if self._started_us.get(broker, now_us) > now_us - calm_us:
                continue
            has_replica = broker in self._up and broker not in self._broken
            down_us = 0 if has_replica else now_us - self._ended_us.get(broker, 0)
            if max(lacks_us, down_us) > bounds.stay_us:
                continue
            detail = (
                f"leader {leader} removes broker {broker} from the ISR; that broker lacks records for "
                f"{lacks_us / 1e6:.3f} s, and nothing was in the way for {calm_us / 1e6:.3f} s before"
            )
            self._violates("needless-shrink", now_us, detail)

    # Clients, whose steps are no turns.

    def on_hw(self, step: steps.HighWatermark) -> None:
        for batch in step.committed or ():
            self._passed_us[batch.first_id] = step.at_us

    def on_position(self, step: steps.Position) -> None:
        if step.kind not in _WHILE_READING:
            self._began_us[step.consumer] = step.at_us
            self._positions.pop(step.consumer, None)

    def on_read(self, step: steps.Read) -> None:
        first = step.batches[0].first_id
        since_us = max(self._passed_us.get(first, step.at_us), self._began_us.get(step.consumer, 0))
        self._judge_client("read", since_us, step.at_us, f"consumer {step.consumer} did not read record {first}")
        if (step.consumer - steps.CLIENTS) % _CLIENTS_EACH == _CONSUMER:
            self._positions[step.consumer] = step.end

    def _judge_readers(self, since_us: int, now_us: int) -> None:
        """Judge reads that have not come."""
        partition = self._partitions[self._leader]
        for consumer, position in self._positions.items():
            if partition.log.log_start <= position < partition.hw:
                # No batch is there if a truncation has left the LEO above the data.
                first = next((batch.first_id for batch in partition.log.between(position, position + 1)), -1)
                began_us = max(since_us, self._began_us.get(consumer, 0), self._passed_us.get(first, now_us))
                said = f"consumer {consumer} did not read record {first}"
                self._wait_of_client("read", began_us, now_us, said)

    def on_ack(self, step: steps.Ack) -> None:
        since_us = self._passed_us.get(step.first_id, step.at_us)
        had = f"the producer of record {step.first_id} did not learn that it was written"
        self._judge_client("answer", since_us, step.at_us, had)

    def on_batch_failed(self, step: steps.BatchFailed) -> None:
        # A batch with a sequence may be refused until it expires, because later ones are in the log.
        if step.error == REQUEST_TIMED_OUT and step.sequence[0] < 0 and self._has_min_isr():
            self._judge_client("write", 0, step.at_us, f"record {step.first_id} was not written")

    def on_group_refused(self, step: steps.GroupRefused) -> None:
        had = f"consumer {step.consumer} got no answer of the coordinator of its group"
        self._judge_client("commit", step.since_us, step.at_us, had, self._bounds.group_us)

    def _judge_client(self, kind: str, since_us: int, now_us: int, said: str, bound_us: int = 0) -> None:
        self._wait_of_client(kind, max(since_us, self._since_us), now_us, said, bound_us)

    def _wait_of_client(self, kind: str, since_us: int, now_us: int, said: str, bound_us: int = 0) -> None:
        leader, bound_us = self._leader, bound_us or self._bounds.client_us
        if now_us - since_us <= bound_us or not self._is_controlled() or not self._is_served():
            return
        if len(self._leads) > 1:
            return  # A client may be at a former leader, which does not know that it is one.
        had = f"leader {leader} served, and {said}"
        self._wait(kind, leader, since_us, now_us, bound_us, had)

    def _is_served(self) -> bool:
        return self._is_live(self._leader) and self._leads.get(self._leader, -2) == self._epoch

    def _has_min_isr(self) -> bool:
        return len([broker for broker in self._isr if self._is_live(broker)]) >= self._min_isr

    def on_start(self, step: steps.Start) -> None:
        self.turn(step.at_us)
        self._up[step.broker] = step.incarnation
        self._started_us[step.broker] = step.at_us
        self._loaded.discard(step.broker)

    def on_recovered(self, step: steps.Recovered) -> None:
        self.turn(step.at_us)
        self._broken.discard(step.broker)
        self._loaded.add(step.broker)
        self._laggards.replace(step.broker, step.leo, step.at_us)

    def on_deleted(self, step: steps.Deleted) -> None:
        self.turn(step.at_us)
        self._partitions.pop(step.broker, None)
        self._laggards.replace(step.broker, step.leo, step.at_us)
        self._leads.pop(step.broker, None)

    def on_registered(self, step: steps.Registered) -> None:
        self.turn(step.at_us)
        if step.opens:
            self._sessions[step.broker] = step.incarnation

    def on_session_end(self, step: steps.SessionEnd) -> None:
        self.turn(step.at_us)
        self._sessions.pop(step.broker, None)

    def on_end(self, step: steps.End) -> None:
        broker, since_us = step.broker, self._since_us
        self.turn(step.at_us)
        if step.kind is steps.SHUTDOWN and broker == self._leader and self._is_controlled():
            self._judge_shutdown(broker, since_us, step.at_us)
        if (
            step.kind is steps.HALT
            and broker in self._loaded - self._broken
            and broker in self._leads.keys() | self._isr
        ):
            had = f"the log directory of broker {broker} works, and the broker halts"
            self._wait("run", broker, since_us, step.at_us, -1, had)
        if step.kind in steps.OF_REPLICAS:  # Also while it is down: it may start without this replica.
            self._broken.add(broker)
            self._ended_us[broker] = step.at_us
            self._leads.pop(broker, None)
            self._partitions.pop(broker, None)
            return
        if step.was_down:
            return
        self._leads.pop(broker, None)
        self._partitions.pop(broker, None)
        self._up.pop(broker, None)
        self._ended_us[broker] = step.at_us
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

    def _is_metadata_late(self) -> bool:
        return len(self._controllers_down) > 0 or any(self._late.values())

    def _is_unobstructed(self) -> bool:
        obstacles = self._obstacles
        return not (obstacles.still or obstacles.links.are_present or self._is_metadata_late())

    def _is_controlled(self) -> bool:
        """Whether nothing stands in the way, and the controller runs."""
        return self._is_unobstructed() and (self._controller <= 0 or self._is_live(self._controller))

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

    def _may_shutdown_wait(self) -> bool:
        """Whether a controlled shutdown, in which a broker is no candidate, may wait for the end of a session.

        The controller lets a broker shut down once each unfenced broker has the metadata. A broker whose process has
        ended never has it, and counts as unfenced until its session ends.
        Kafka: BrokerHeartbeatManager#calculateNextBrokerState.
        """
        if self._controller > 0:
            return False
        return any(incarnation != self._up.get(broker, -1) for broker, incarnation in self._sessions.items())

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
                bound_us = self._bounds.session_us if self._may_shutdown_wait() else self._bounds.elect_us
                self._wait("elect", broker, since_us, now_us, bound_us, had)
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

    def _judge_balance(self, since_us: int, now_us: int) -> None:
        leader, preferred = self._leader, self._replicas[0] if self._replicas else NO_LEADER
        is_balanced = leader in (preferred, NO_LEADER) or len(self._target) > 0
        may_lead = preferred in self._isr and self._is_live(preferred)
        if is_balanced or not (may_lead and self._is_controlled() and self._is_served()):
            self._unbalanced_us = NEVER_US
        else:
            self._unbalanced_us = min(self._unbalanced_us, since_us)
            had = f"broker {leader} leads, and preferred leader {preferred} runs with an open session and is in the ISR"
            self._wait("balance", preferred, self._unbalanced_us, now_us, self._bounds.balance_us, had)

    def _judge_laggards(self, now_us: int) -> None:
        leader = self._leader
        if not self._is_leader_able():
            self._able_us = now_us + self._bounds.retry_us
            return
        for broker in self._isr:
            if broker != leader:
                since_us = max(self._laggards.lacks_since_us(broker), self._able_us)
                had = f"leader {leader} serves, and broker {broker}, which lacks a record, stays in the ISR"
                self._wait("leave", broker, since_us, now_us, self._bounds.leave_us, f"{had} {sorted(self._isr)}")

    def _judge_former_leaders(self, since_us: int, now_us: int) -> None:
        for broker, partition in self._partitions.items():
            if broker not in self._leads and not self._still.get(broker, 0) and partition.delayed.waiting:
                had = f"broker {broker} leads no longer, and {len(partition.delayed.waiting)} writes wait for its HW"
                self._wait("refuse", broker, since_us, now_us, 0, had)

    def _is_leader_able(self) -> bool:
        """Whether a leader serves, and its requests to the controller are answered."""
        leader, still = self._leader, self._still
        if self._is_metadata_late() or not self._is_served() or self._laggards.leader != leader or still.get(0, 0):
            return False
        needed = (leader, self._controller) if self._controller > 0 else (leader,)
        if any(not self._is_live(broker) or still.get(broker, 0) for broker in needed):
            return False
        links = self._obstacles.links
        between = links.are_between(needed, (0, *needed, *_CONTROLLERS)) or links.are_between((0,), _CONTROLLERS)
        return not between

    def _judge_shutdown(self, leader: int, since_us: int, now_us: int) -> None:
        others = [broker for broker in self._candidates() if broker != leader and broker in self._isr]
        if others and self._is_live(leader):
            had = f"leader {leader} runs with an open session, and so does broker {others[0]} of the ISR, and the "
            had += "leader ends its controlled shutdown before another one is elected"
            self._wait("hand over", leader, since_us, now_us, self._bounds.elect_us, had)

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
