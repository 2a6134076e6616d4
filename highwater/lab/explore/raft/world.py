"""Three voters of a metadata quorum: which events are possible, what each does, and what is checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from highwater.lab.explore.interning import InternTable
from highwater.lab.explore.raft.machine import (
    DIRECTORY,
    VOTERS,
    Encoded,
    Snapshot,
    VoterMachine,
    VoterOutcome,
    election_of,
    formatted_log,
    is_expected,
    is_response,
    values_of,
)
from highwater.lab.explore.search import Action
from sim.protocol.decisions import Decisions
from sim.protocol.raft.leader_state import LeaderState
from sim.protocol.raft.raft_log import RaftBatch, RaftLog, VotersBatch
from sim.protocol.raft.raft_messages import NO_NODE
from sim.protocol.rules import Rules

KINDS: Final = {
    "two-leaders": "two members lead in one epoch, or know different leaders of it (ElectionSafety)",
    "committed-metadata-lost": "a leader lacks a record that was reported as committed (LeaderHasAllAckedValues)",
    "committed-metadata-changed": "another record was reported as committed at an offset (NoLogDivergence)",
    "high-watermark-regression": "the high watermark of the latest leader is below that of an earlier one",
    "member-ends": "a member meets a state that Kafka takes for impossible, so its process ends (NoIllegalState)",
}
"""Kind -> meaning, and the property of the public specifications that it stands for. The last one is a warning."""
VIOLATIONS: Final = tuple(kind for kind in KINDS if kind != "member-ends")
_MOST_WRITES: Final = 3
"""Writes of one event: a vote or an election, an append, a further flush."""


@dataclass(frozen=True, slots=True)
class QuorumBounds:
    """How often things happen.

    Attributes:
        epochs: the last epoch in which a member stands for election.
        candidates: voters 1 to this one may stand for election.
        records: records that controllers append.
        losses: power losses in the middle of an event; what that event has not yet written is lost.
        wipes: voters that start again with an empty disk.
        forgets: voters that start again without the file quorum-state.
        snapshots: snapshots that voters make, and with which their logs then begin.
        removals: voters that an administrator removes; then the quorum has kraft.version 1, and a voter with an empty
            disk is an observer.
    """

    epochs: int = 2
    candidates: int = 2
    records: int = 1
    losses: int = 1
    wipes: int = 0
    forgets: int = 0
    snapshots: int = 0
    removals: int = 0


class State(NamedTuple):
    """A state of the cluster.

    Attributes:
        members: numbers of the three voters' snapshots.
        network: numbers of (destination, message) pairs.
        leaders: (epoch, leader) pairs that were known so far.
        committed: what was reported as committed.
        high_watermark: the highest of a leader so far.
        left: what is left of records, losses, wipes, forgets, snapshots, removals.
        broken: kinds of violation that this event showed.
    """

    members: tuple[int, ...]
    network: tuple[int, ...]
    leaders: tuple[tuple[int, int], ...]
    committed: tuple[RaftBatch, ...]
    high_watermark: int
    left: tuple[int, int, int, int, int, int]
    broken: tuple[str, ...] = ()


class ExploredQuorum:
    """The quorum, by its rules, within bounds."""

    kinds = KINDS
    violations = VIOLATIONS

    def __init__(self, rules: Rules, bounds: QuorumBounds) -> None:
        # Leaders announce themselves; a search by fetches finds nothing else.
        self.decide: Final = Decisions(rules.override({"leader_search": "observers"}))
        self.machine: Final = VoterMachine(self.decide)
        self.bounds: Final = bounds
        self._states = InternTable()
        self._snapshots = InternTable()
        self._pairs = InternTable()

    def first(self) -> int:
        """All voters are formatted: no log, no quorum-state."""
        outcomes = [self.machine.start(member, self._first_log(), None, self._directory) for member in VOTERS]
        sent = [message for outcome in outcomes for message in outcome.sent]
        bounds = self.bounds
        left = bounds.records, bounds.losses, bounds.wipes, bounds.forgets, bounds.snapshots, bounds.removals
        members = [outcome.after for outcome in outcomes]
        numbers = tuple(self._snapshots.number(member) for member in members)
        return self._states.number(State(numbers, self._network(members, sent), (), (), 0, left))

    @property
    def _directory(self) -> int:
        return DIRECTORY if self.bounds.removals else 0

    def _first_log(self) -> RaftLog:
        return formatted_log() if self.bounds.removals else RaftLog()

    def successors(self, number: int) -> Iterator[tuple[Action, int]]:
        """All possible next events, with the resulting states."""
        state: State = self._states[number]
        for member, event, removed in self._events(state):
            before = self._member(state, member)
            spent = state
            if event[0] == "append":
                spent = state._replace(left=(state.left[0] - 1, *state.left[1:]))
            elif event[0] == "snapshot":
                spent = state._replace(left=(*state.left[:4], state.left[4] - 1, state.left[5]))
            elif event[0] == "remove":
                spent = state._replace(left=(*state.left[:5], state.left[5] - 1))
            outcome = self.machine.act(member, before, event)
            yield (member, *event), self._after(spent, member, outcome, removed)
            if state.left[1]:
                yield from self._losses(spent, member, event, removed)
        yield from self._disks(state)

    def findings(self, number: int) -> tuple[str, ...]:
        """Violations that the event before this state showed."""
        state: State = self._states[number]
        return state.broken

    def is_fault(self, kind: str) -> bool:
        """Whether the bounds limit how often this kind of event happens."""
        return kind in ("power-loss", "wipe", "forget")

    def _losses(
        self, state: State, member: int, event: tuple[Any, ...], removed: tuple[int, Encoded] | None
    ) -> Iterator[tuple[Action, int]]:
        spent = state._replace(left=(state.left[0], state.left[1] - 1, *state.left[2:]))
        for writes in range(_MOST_WRITES):
            outcome = self.machine.act(member, self._member(state, member), event, writes)
            if not outcome.restarted or outcome.ended:
                return
            yield ("power-loss", member, writes, *event), self._after(spent, member, outcome, removed)

    def _disks(self, state: State) -> Iterator[tuple[Action, int]]:
        records, losses, wipes, forgets, snapshots, removals = state.left
        for member in VOTERS:
            if wipes:
                spent = state._replace(left=(records, losses, wipes - 1, forgets, snapshots, removals))
                directory = self._member(state, member).directory
                directory += directory > 0
                outcome = self.machine.start(member, RaftLog(), None, directory)._replace(restarted=True)
                yield ("wipe", member), self._after(spent, member, outcome, None)
            if forgets:
                spent = state._replace(left=(records, losses, wipes, forgets - 1, snapshots, removals))
                before = self._member(state, member)
                outcome = self.machine.start(member, before.log.thawed(), None, before.directory)
                outcome = outcome._replace(restarted=True)
                yield ("forget", member), self._after(spent, member, outcome, None)

    def _events(self, state: State) -> Iterator[tuple[int, tuple[Any, ...], tuple[int, Encoded] | None]]:
        for pair in state.network:
            node, message = self._pairs[pair]
            yield node, ("receive", message), (node, message)
        for member in VOTERS:
            snapshot = self._member(state, member)
            cls, epoch = snapshot.state[:2]
            may_stand = epoch < self.bounds.epochs and member <= self.bounds.candidates and _is_voter(member, snapshot)
            if cls is LeaderState:
                if may_stand:
                    yield member, ("check-quorum",), None
                if state.left[0] and snapshot.next_offset > snapshot.state[4]:
                    yield member, ("append", f"r{self.bounds.records - state.left[0]}"), None
                if state.left[5] and snapshot.state[2] is not None:
                    for voter, *_ in snapshot.state[5][0]:
                        yield member, ("remove", voter), None
                if self._is_unknown(state, member, epoch):
                    yield member, ("announce",), None
            elif may_stand:
                yield member, ("timeout",), None
            if state.left[4] and snapshot.next_offset > snapshot.log.start_offset:
                yield member, ("snapshot",), None
            # From KIP-1166 on, whatever the answer would tell has answered the fetch before.
            if snapshot.parked and not self.decide.hw_answers_fetches.answer:
                yield member, ("expire",), None

    def _is_unknown(self, state: State, leader: int, epoch: int) -> bool:
        """Whether a voter does not follow a leader, and no announcement is under way."""
        waits = [node for node, _ in self._member(state, leader).requests]
        for voter in VOTERS:
            election = election_of(self._member(state, voter))
            if (
                voter != leader
                and voter not in waits
                and election.epoch <= epoch
                and (election.epoch, election.leader) != (epoch, leader)
            ):
                return True
        return False

    def _after(self, state: State, member: int, outcome: VoterOutcome, removed: tuple[int, Encoded] | None) -> int:
        members = [self._member(state, voter) for voter in VOTERS]
        members[member - 1] = outcome.after
        network: list[tuple[int, Encoded]] = [self._pairs[pair] for pair in state.network]
        if removed is not None:
            network.remove(removed)
        network += outcome.sent
        if outcome.restarted:
            own = outcome.sent
            network = [pair for pair in network if pair[0] != member or pair in own]
            self._fail(members, network, member)
        judged = _Judged(state)
        judged.elections(members)
        judged.told(outcome)
        judged.leader(members)
        after = State(
            tuple([self._snapshots.number(snapshot) for snapshot in members]),
            self._network(members, network),
            tuple(sorted(judged.leaders.items())),
            tuple(judged.committed),
            judged.high_watermark,
            state.left,
            tuple(sorted(judged.broken)),
        )
        return self._states.number(after)

    def _fail(self, members: list[Snapshot], network: list[tuple[int, Encoded]], member: int) -> None:
        """Break the connections to a process that ended, unless its response is under way already."""
        for other in VOTERS:
            if other == member:
                continue
            snapshot = members[other - 1]
            answered = any(
                node == other and is_response(message) and values_of(message)["source"] == member
                for node, message in network
            )
            waits = any(node == member for node, _ in snapshot.requests) and not answered
            if waits or any(values_of(request)["source"] == member for request, _ in snapshot.parked):
                failed = self.machine.act(other, snapshot, ("fail", (member,)))
                members[other - 1] = failed.after
                network += failed.sent

    def _member(self, state: State, member: int) -> Snapshot:
        snapshot: Snapshot = self._snapshots[state.members[member - 1]]
        return snapshot

    def _network(self, members: Sequence[Snapshot], network: Sequence[tuple[int, Encoded]]) -> tuple[int, ...]:
        """The messages that somebody waits for, in one order; others are lost with their connection."""
        return tuple(sorted({self._pairs.number(pair) for pair in network if _matters(members, *pair)}))

    # Words.

    def event(self, action: Action) -> str:
        """An event in words."""
        kind = action[0]
        if kind == "wipe":
            return f"voter {action[1]} starts with an empty disk"
        if kind == "forget":
            return f"voter {action[1]} starts without quorum-state"
        if kind == "power-loss":
            happens = self._happens(action[1], action[3:])
            return f"voter {action[1]} loses power before write {action[2] + 1} when {happens}"
        return self._happens(kind, action[1:])

    def _happens(self, member: int, event: Sequence[Any]) -> str:
        kind = event[0]
        if kind == "receive":
            message = event[1]
            values = values_of(message)
            name = message[0].__name__.removeprefix("Raft")
            epoch, source = values["epoch"], values["source"]
            pre = "pre-" if values.get("pre_vote") else ""
            more = ""
            if is_response(message) and values["error"] != "none":
                more = f": {values['error']}"
            elif "granted" in values:
                more = ": granted" if values["granted"] else ": refused"
            return f"voter {member} gets {pre}{name} of {source} (epoch {epoch}){more}"
        if kind == "append":
            return f"the controller of voter {member} appends {event[1]}"
        if kind == "snapshot":
            return f"voter {member} makes a snapshot, with which its log begins"
        if kind == "remove":
            return f"voter {member}, which leads, is asked to remove voter {event[1]}"
        if kind == "expire":
            return f"fetches that wait at voter {member} expire"
        if kind == "announce":
            return f"voter {member} announces again that it leads"
        return f"voter {member} no longer has a majority" if kind == "check-quorum" else f"a timeout of voter {member}"

    def describe(self, number: int) -> str:
        """A state in words."""
        state: State = self._states[number]
        parts = []
        for member in VOTERS:
            snapshot = self._member(state, member)
            cls, epoch, known = snapshot.state[:3]
            log = " ".join(
                _control(batch) if batch.is_control else str(batch.records[0]) for batch in snapshot.log.stands_for
            )
            if snapshot.log.start_offset:
                log += f" from {snapshot.log.start_offset}"
            name = cls.__name__.removesuffix("State")
            parts.append(f"{member} {name} {epoch} [{log}] HW {'-' if known is None else known}")
        return "; ".join(parts)


class _Judged:
    """What is remembered of a history, and what an event violates."""

    def __init__(self, state: State) -> None:
        self.leaders = dict(state.leaders)
        self.committed = list(state.committed)
        self.high_watermark = state.high_watermark
        self.broken: set[str] = set()

    def elections(self, members: Sequence[Snapshot]) -> None:
        """Look for two leaders of an epoch."""
        for snapshot in members:
            election = election_of(snapshot)
            epoch, leader = election.epoch, election.leader
            if leader != NO_NODE and self.leaders.setdefault(epoch, leader) != leader:
                self.broken.add("two-leaders")

    def told(self, outcome: VoterOutcome) -> None:
        """Compare what was reported as committed with what was before."""
        for place, batch in outcome.told:
            if place < len(self.committed) and self.committed[place] is not batch:
                self.broken.add("committed-metadata-changed")
            elif place == len(self.committed):
                self.committed.append(batch)
        if outcome.ended:
            self.broken.add("member-ends")

    def leader(self, members: Sequence[Snapshot]) -> None:
        """Compare the log and the high watermark of the latest leader with what was committed."""
        newest = max(self.leaders, default=0)
        for snapshot in members:
            cls, epoch, known = snapshot.state[:3]
            if cls is not LeaderState or epoch != newest:
                continue
            if list(snapshot.log.stands_for[: len(self.committed)]) != self.committed:
                self.broken.add("committed-metadata-lost")
            if known is not None and known < self.high_watermark:
                self.broken.add("high-watermark-regression")
            self.high_watermark = max(self.high_watermark, known or 0)


def _is_voter(member: int, snapshot: Snapshot) -> bool:
    """Whether a member counts itself as a voter."""
    if not snapshot.directory:
        return True
    voters = snapshot.control[0]
    return bool(voters) and any(node.key == (member, snapshot.directory) for node in voters[-1][1])


def _control(batch: RaftBatch) -> str:
    """A control batch in words: a leader's first one, or its voters."""
    if isinstance(batch, VotersBatch):
        return f"V{batch.epoch}:{''.join(map(str, batch.voters.ids))}"
    return f"L{batch.epoch}"


def _matters(members: Sequence[Snapshot], node: int, message: Encoded) -> bool:
    if is_response(message):
        return is_expected(members[node - 1], message)
    return (node, message) in members[values_of(message)["source"] - 1].requests
