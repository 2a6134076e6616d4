"""Elision of what a replicated quorum does while nothing changes: NoOpRecords, fetches that wait, heartbeats.

Every ``metadata.max.idle.interval.ms`` the active controller appends a NoOpRecord, which all members
fetch; then all their fetches wait at the leader again. If they all wait when the next such record is due, nothing is in
flight between members, and all messages between them arrive, then each further period repeats the last one: it only
depends on the latencies of fetches, which are constant (`sim.kernel.message.ALIKE`). So no period is simulated until
something else happens to a member (`RaftMember.end_idle`). Then the periods that are over are computed: offsets grow by
one a period, and times are those of a period that was simulated before, as much later. What has passed of a period that
is not over is simulated (`Kernel.relive`), and so is the first period with the same voters and latencies.

What would change the history:

- A fetch that expires before the record arrives, or a period that is not over when the next begins: the latencies are
  too long, and the quorum is simulated.
- A broker on which committed records take effect later (a stalled disk, logs that are not loaded, late metadata).
- BeginQuorumEpoch, up to 4.1 sent every half fetch timeout to all voters: the latency of each depends on how many were
  sent before, so they are counted. They change nothing at a voter, if they are not under way when a period begins.
- A process that makes or removes a snapshot: idle times end a period before (`sim.hosts.snapshot_generator`).
- A heartbeat that arrives while a record waits for its commit is answered after the commit, so it is simulated.

See `sim.environment.elision` for what all elision needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from sim.environment.elision import ElidingBroker
from sim.hosts.raft_member import FSYNC_US, IdleTime, RaftMember, has_content
from sim.hosts.snapshot_generator import APPROACH_US
from sim.kernel.message import REPLY
from sim.kernel.scheduler import Gate, IdleCall, Kernel
from sim.protocol.decisions import Decisions
from sim.protocol.kraft.metadata import NO_OP
from sim.protocol.raft.kafka_raft_client import QuorumConfig
from sim.protocol.raft.raft_log import RaftBatch
from sim.protocol.raft.raft_messages import BeginQuorumEpochRequest, RaftFetchRequest

NO_OP_US: Final = 500_000
"""``metadata.max.idle.interval.ms``: how often the active controller appends a NoOpRecord."""
_LONGEST_US: Final = 100_000
"""The members have to be idle again that soon after a NoOpRecord was appended."""
_MARGIN_US: Final = 4_000
_MOST_HEARTBEATS: Final = 64
"""Heartbeats after which it is looked again whether they can be elided."""


class ActiveController(Protocol):
    """The active controller as an idle time sees it.

    Attributes:
        kernel: time.
        life: through which timers come.
        member: its Raft thread.
    """

    kernel: Kernel
    life: Gate
    member: RaftMember

    def append_no_op(self, epoch: object) -> None:
        """Append a NoOpRecord, or begin an idle time with it."""

    def skip_no_ops(self, count: int) -> None:
        """Note that so many of these records were appended."""

    def begin_heartbeats(self, broker: int, heard_us: Callable[[int], int]) -> None:
        """Keep the session of a broker whose heartbeats are elided; `heard_us` tells when the last one before a time
        arrived, -1 for none.
        """

    def end_heartbeats(self, broker: int, last_us: int, metadata_offset: int) -> None:
        """Let the session of a broker expire again: the last elided heartbeat arrived at that time (-1: none did), and
        reported that offset.
        """


class FollowerTimes(NamedTuple):
    """When the last fetch of a follower was sent and arrived, and when the follower stands for election without an
    answer; all counted from when the last NoOpRecord was due.
    """

    sent_us: int
    arrived_us: int
    timeout_us: int


class PeriodTimes:
    """What is known of the times of a period.

    Attributes:
        check_quorum_us: when the leader resigns unless a majority fetches.
        voters: times of the voters but the leader, by id.
        observers: latencies to and from the leader -> times of brokers with these.
    """

    __slots__ = ("check_quorum_us", "observers", "voters")

    def __init__(self, check_quorum_us: int) -> None:
        self.check_quorum_us = check_quorum_us
        self.voters: list[FollowerTimes] = []
        self.observers: dict[tuple[int, int], FollowerTimes] = {}


Situation = tuple[tuple[tuple[int, int], ...], tuple[int, ...]]
"""On what the times of a period depend: latencies of the voters but the leader, by id, to and from the leader; and the
voters that have fetched since a majority had.
"""


class _Follower:
    """A follower whose fetch waits at the leader, and the latencies to and from the leader."""

    __slots__ = ("is_voter", "latencies", "member")

    def __init__(self, member: RaftMember, latencies: tuple[int, int], *, is_voter: bool) -> None:
        self.member = member
        self.latencies = latencies
        self.is_voter = is_voter


class _Heartbeats:
    """A broker's elided heartbeats.

    Attributes:
        pinger: the broker.
        sent_us: when the first would have been sent.
        there_us: latency of each.
        round_us: time until its response arrives.
        period_us: time from one to the next.
        offset: the metadata offset that all of them report; -1: that of the time at which they are sent.
    """

    __slots__ = ("offset", "period_us", "pinger", "round_us", "sent_us", "there_us")

    def __init__(
        self, pinger: ElidingBroker, sent_us: int, there_us: int, back_us: int, interval_us: int, offset: int
    ) -> None:
        self.pinger = pinger
        self.sent_us = sent_us
        self.there_us = there_us
        self.round_us = there_us + back_us
        self.period_us = self.round_us + interval_us
        self.offset = offset

    def heard_us(self, now_us: int) -> int:
        """When the last one before a time arrived; -1: none did."""
        since_us = now_us - self.sent_us - self.there_us
        return -1 if since_us < 0 else now_us - since_us % self.period_us


class IdleQuorum(IdleTime):
    """See the module.

    Args:
        controller: the active controller.
        followers: those whose fetches wait at the leader, in the order in which they arrived.
        lag: number of committed records that followers do not know to be committed.
        busy_us: within this time after a NoOpRecord was appended, the quorum is idle again.
        announced_us: within this time after the leader has announced itself, the responses have arrived.
        config: settings of the quorum.
        known: the times of periods, as far as they are known.
    """

    def __init__(
        self,
        controller: ActiveController,
        followers: Sequence[_Follower],
        lag: int,
        busy_us: int,
        announced_us: int,
        config: QuorumConfig,
        known: dict[Situation, PeriodTimes],
    ) -> None:
        self._kernel = controller.kernel
        self._config = config
        self._controller = controller
        self._leader = controller.member
        self._followers = followers
        self._lag = lag
        self._known = known
        self._situation = self._present_situation()
        self._times = self._known_times()
        self._busy_us = busy_us
        if self._times is not None:
            self._busy_us = 1 + max([times.arrived_us for times in self._times])
        self._announced_us = announced_us
        self._first_us = self._kernel.now_us
        """When the first elided record is due."""
        self._offset = self._leader.client.log.end_offset - lag
        """How far all members know the log to be committed."""
        self._heartbeats: dict[int, _Heartbeats] = {}
        self._leader.begin_idle(self)
        for follower in followers:
            follower.member.begin_idle(self)
        if self._times is None:
            due_us = self._first_us + busy_us
            self._kernel.schedule(due_us, controller.life, IdleCall(self._end_first, None))

    def _end_first(self, _: object) -> None:
        """A period whose times are not known is over."""
        if self._leader.idle is self:
            self.end()

    def end(self) -> None:
        self._leader.idle = None
        for follower in self._followers:
            follower.member.idle = None
        now_us = since_us = self._kernel.now_us
        heartbeats: list[tuple[ElidingBroker, int]] = []
        for entry in self._heartbeats.values():
            next_us = self._settle(entry)
            heartbeats.append((entry.pinger, next_us))
            since_us = min(since_us, next_us)
        self._heartbeats.clear()
        since_us = self._announcing_us(since_us)
        periods, passed_us = divmod(since_us - self._first_us, NO_OP_US)
        if self._times is not None and passed_us >= self._busy_us:
            periods += 1
        due_us = self._first_us + periods * NO_OP_US
        since_us = self._announcing_us(min(since_us, due_us))

        def resume() -> None:
            leader = self._leader
            begun = [follower.member.client.next_poll_us(leader.owner.node) for follower in self._followers]
            if periods and self._times is not None:
                self._pass(periods, self._times, since_us)
            leader.drive()
            for place, follower in enumerate(self._followers):
                at_us = follower.member.armed_us
                if self._times is not None:
                    at_us = self._armed_us(follower, self._times[place], at_us, begun[place], since_us)
                follower.member.resume(at_us, now_us)
            for pinger, next_us in heartbeats:
                self._resume_pings(pinger, next_us)
            timer = IdleCall(self._controller.append_no_op, leader.client.quorum.epoch)
            self._kernel.schedule(due_us, self._controller.life, timer)

        self._kernel.relive(since_us, resume)
        if self._times is None and now_us - due_us >= self._busy_us and self._present_situation() == self._situation:
            self._learn(due_us)

    def _announcing_us(self, since_us: int) -> int:
        """When the leader has announced itself, if the responses may be under way at a time; otherwise that time."""
        at_us, interval_us = self._leader.client.announcements()
        if at_us < since_us:
            at_us += (since_us - 1 - at_us) // interval_us * interval_us
            if since_us - at_us < self._announced_us:
                return at_us
        return since_us

    # Whole periods.

    def _pass(self, periods: int, times: list[FollowerTimes], until_us: int) -> None:
        """Let whole periods pass."""
        leader = self._leader.client
        last_us = self._first_us + (periods - 1) * NO_OP_US
        end, epoch = leader.log.end_offset, leader.quorum.epoch
        batches = [RaftBatch(offset, epoch, 1, (NO_OP,)) for offset in range(end, end + periods)]
        self._controller.skip_no_ops(periods)
        requests: list[RaftFetchRequest] = []
        arrived_us: list[int] = []
        for follower, (sent_us, arrival_us, timeout_us) in zip(self._followers, times, strict=True):
            client = follower.member.client
            requests.append(client.follow_silently(batches, self._lag, last_us + sent_us, last_us + timeout_us))
            arrived_us.append(last_us + arrival_us)
        check_quorum_at_us = last_us + self._known[self._situation].check_quorum_us
        announced = leader.lead_silently(batches, requests, arrived_us, check_quorum_at_us, until_us)
        if announced and not leader.announces_to_silent_voters:
            node = leader.quorum.local_id
            about = BeginQuorumEpochRequest(node, leader.quorum.epoch).about()
            for voter in leader.quorum.voters:
                if voter != node:
                    self._leader.owner.out[voter].note_sent(about, announced)
                    self._leader.members[voter].owner.out[node].note_sent(REPLY + about, announced)

    @property
    def _voters(self) -> list[_Follower]:
        """The voters among the followers, by id."""
        voters = [follower for follower in self._followers if follower.is_voter]
        return sorted(voters, key=lambda follower: follower.member.owner.node)

    def _present_situation(self) -> Situation:
        latencies = [follower.latencies for follower in self._voters]
        return tuple(latencies), self._leader.client.fetched_voters

    def _armed_us(self, follower: _Follower, times: FollowerTimes, at_us: int, begun_us: int, since_us: int) -> int:
        """When the timer of a follower expires. A timer that expires sets another one, for when the answer to the last
        fetch, if none comes, is missed; an answer sets none. So after a pause, which holds timers and answers back, it
        matters when the timer expired.

        Args:
            follower: the follower.
            times: its times.
            at_us: when the timer was to expire when the idle time began.
            begun_us: when one that was set then would have expired.
            since_us: now.
        """
        config, (_, back_us) = self._config, follower.latencies
        first_us = config.append_linger_us + back_us
        next_us, last_next_us = first_us + config.request_timeout_us, times.sent_us + config.request_timeout_us
        if follower.is_voter:
            next_us = min(next_us + FSYNC_US, first_us + config.fetch_timeout_us)
            last_next_us = min(last_next_us, times.timeout_us)
        while at_us <= since_us:
            period, phase_us = divmod(at_us - self._first_us, NO_OP_US)
            before_us, due_us = at_us, self._first_us + period * NO_OP_US
            if phase_us >= times.sent_us:
                at_us = due_us + last_next_us
            elif phase_us >= first_us:
                at_us = due_us + next_us
            else:
                at_us = due_us - NO_OP_US + last_next_us if period else begun_us
            step_us = at_us - before_us
            if step_us % NO_OP_US == 0:
                at_us += max(0, since_us - at_us) // step_us * step_us
        return at_us

    def _known_times(self) -> list[FollowerTimes] | None:
        """The times of the followers in a period, None if they are not known."""
        known = self._known.get(self._situation)
        if known is None:
            return None
        voters, found = self._voters, list[FollowerTimes]()
        for follower in self._followers:
            times = known.observers.get(follower.latencies)
            if follower.is_voter:
                times = known.voters[voters.index(follower)]
            if times is None:
                return None
            found.append(times)
        return found

    def _present_times(self, since_us: int) -> list[FollowerTimes]:
        leader = self._leader.client
        node = leader.quorum.local_id
        found: list[FollowerTimes] = []
        for follower in self._followers:
            client = follower.member.client
            sent_us, timeout_us = client.fetch_times(node)
            arrived_us = leader.last_fetch_us(client.quorum.key)
            found.append(FollowerTimes(sent_us - since_us, arrived_us - since_us, timeout_us - since_us))
        return found

    def _learn(self, due_us: int) -> None:
        """Note the times of a period that was simulated."""
        known = self._known.get(self._situation)
        if known is None:
            known = self._known[self._situation] = PeriodTimes(self._leader.client.check_quorum_at_us() - due_us)
        times = dict(zip(self._followers, self._present_times(due_us), strict=True))
        known.voters = [times[follower] for follower in self._voters]
        for follower in self._followers:
            if not follower.is_voter:
                known.observers[follower.latencies] = times[follower]

    # Heartbeats.

    def elide_heartbeats(self, pinger: ElidingBroker, back_us: int, interval_us: int, offset: int) -> bool:
        now_us = self._kernel.now_us
        there_us = pinger.out[self._leader.owner.node].usual_us
        entry = _Heartbeats(pinger, now_us, there_us, back_us, interval_us, offset)
        count = self._heartbeats_until_busy(now_us + there_us, entry.period_us)
        if not count:
            return False
        self._heartbeats[pinger.node] = entry
        self._controller.begin_heartbeats(pinger.node, entry.heard_us)
        last_us = now_us + (count - 1) * entry.period_us + entry.round_us
        self._kernel.schedule(last_us, pinger.life, IdleCall(self._stop, entry))
        return True

    def _heartbeats_until_busy(self, at_us: int, period_us: int) -> int:
        """How many heartbeats, of which the first arrives at that time, arrive before one that finds a NoOpRecord
        waiting for its commit, or just committed.
        """
        phase_us, drift_us = (at_us - self._first_us) % NO_OP_US, period_us % NO_OP_US
        if phase_us >= self._busy_us and 0 < drift_us <= self._busy_us:
            return min(_MOST_HEARTBEATS, (NO_OP_US - phase_us - 1) // drift_us + 1)
        count = 0
        while phase_us >= self._busy_us and count < _MOST_HEARTBEATS:
            phase_us = (phase_us + drift_us) % NO_OP_US
            count += 1
        return count

    def _stop(self, entry: _Heartbeats) -> None:
        """Simulate a broker's heartbeats again: the response to an elided one has just arrived."""
        if self._heartbeats.get(entry.pinger.node) is entry:
            del self._heartbeats[entry.pinger.node]
            self._resume_pings(entry.pinger, self._settle(entry))

    def _settle(self, entry: _Heartbeats) -> int:
        """Note the elided heartbeats that were answered; returns when the next one was or will be sent."""
        now_us = self._kernel.now_us
        last_us = now_us - (now_us - entry.sent_us) % entry.period_us
        next_us = last_us + entry.period_us
        if last_us + entry.round_us > now_us:
            next_us = last_us
            last_us -= entry.period_us
        heard_us, offset = -1, entry.offset
        if last_us >= entry.sent_us:
            heard_us = last_us + entry.there_us
            if offset < 0:
                offset = self._offset + (last_us - self._first_us) // NO_OP_US + 1
        self._controller.end_heartbeats(entry.pinger.node, heard_us, offset)
        return next_us

    def _resume_pings(self, pinger: ElidingBroker, next_us: int) -> None:
        pinger.resume_pings(pinger.out[self._leader.owner.node], -1, next_us)


def begin_idle_time(
    controller: ActiveController, decide: Decisions, config: QuorumConfig, known: dict[Situation, PeriodTimes]
) -> bool:
    """Begin an idle time with a record that is due now, if nothing but that happens in the quorum; returns whether it
    has begun. For `known` see `IdleQuorum`.
    """
    kernel, leader = controller.kernel, controller.member
    owner, members = leader.owner, leader.members
    network = owner.network
    if not (network.elides and kernel.is_plain and not kernel.relives and leader.waits):
        return False
    requests = leader.client.idle_fetches(kernel.now_us + config.append_linger_us)
    soon_us = kernel.now_us + APPROACH_US
    if leader.next_snapshot_us() <= soon_us:
        return False
    if not requests or not _are_announcements_regular(leader, config, kernel.now_us):
        return False
    lag = 0 if decide.hw_answers_fetches.answer else 1
    node = owner.node
    followers: list[_Follower] = []
    most_us = longest_us = 0
    for request in requests:
        source = request.source
        follower = members.get(source)
        if follower is None or not _is_idle(follower, leader, request, lag) or follower.next_snapshot_us() <= soon_us:
            return False
        is_voter = follower.client.quorum.is_voter
        if is_voter != follower.client.flushes:  # Its times are neither those of a voter nor those of a broker.
            return False
        there, back = follower.owner.out.get(node), owner.out.get(source)
        if there is None or back is None or not network.is_steady(follower.owner, owner):
            return False
        followers.append(_Follower(follower, (there.usual_us, back.usual_us), is_voter=is_voter))
        most_us = max(most_us, there.usual_us, back.usual_us)
        longest_us = max(longest_us, there.longest_us, back.longest_us)
    busy_us = config.append_linger_us + 2 * FSYNC_US + 6 * most_us + _MARGIN_US
    if busy_us > _LONGEST_US:
        return False
    announced_us = 2 * (longest_us + FSYNC_US) + _MARGIN_US
    IdleQuorum(controller, followers, lag, busy_us, announced_us, config, known)
    return True


def _is_idle(follower: RaftMember, leader: RaftMember, request: RaftFetchRequest, lag: int) -> bool:
    """Whether a follower only waits for the answer to a fetch, and the records that come next act at once."""
    client = follower.client
    if not (
        follower.waits
        and client.quorum.epoch == leader.client.quorum.epoch
        and client.awaits_records(leader.owner.node, request)
        and follower.acts_at_once()
    ):
        return False
    uncommitted = client.uncommitted
    return sum([batch.size for batch in uncommitted]) == lag and not has_content(uncommitted)


def _are_announcements_regular(leader: RaftMember, config: QuorumConfig, now_us: int) -> bool:
    """Whether the leader announces itself at the same phase each time, and does not flush its log then."""
    at_us, interval_us = leader.client.announcements()
    flush_us = (at_us - now_us) % NO_OP_US - config.append_linger_us
    return interval_us % NO_OP_US == 0 and not 0 <= flush_us < FSYNC_US
