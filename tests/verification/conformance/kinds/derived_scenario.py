"""Driver of kind ``derived_scenario``: truncation of two logs by KIP-101 and KIP-279, and within a batch.

An operation ``kip101_...`` runs under the rules of that mode, ``kip279_...`` under the newest ones; each is one epoch
request, after which the conversation goes on to its end unless the operation is one of several rounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.protocol.decisions import Decisions
from sim.protocol.replica.replica import Replica
from tests.verification.conformance.comparison import diverged_range, hole
from tests.verification.conformance.conversation import Conversation, LeaderLogs, make_replica
from tests.verification.conformance.driving import Kind, Seen
from tests.verification.conformance.world import (
    KIP101,
    LATEST,
    RecordingHost,
    batches_of,
    entries_of,
    fill,
    make_cache,
    make_log,
    make_partition,
    make_storage,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.protocol.log.log import Log
    from sim.protocol.rules import Rules
    from tests.verification.conformance.cases import Fields

NAME = "0"


class Scenario:
    """The state of a case: two logs that meet, or one log on its disk."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        self.leader: Fields | None = given.like("leader")
        self.follower: Fields | None = given.like("follower")
        self.rules = rules
        self.talk: Conversation | None = None
        if "log" in given:
            self.storage = make_storage()
            fill(self.storage, batches_of(given["log"]))
            self.storage.epoch_checkpoint.write([(epoch, start) for epoch, start in given["epoch_entries"]])
            self.replica = self._load()

    def _load(self) -> Replica:
        log, epochs, hw = self.storage.recover(Decisions(self.rules), clean=True)
        return Replica(NAME, log, epochs, hw, Decisions(self.rules), RecordingHost())

    def truncate(self, op: Fields) -> None:
        """Truncate the log and its cache."""
        self.replica.truncate_to(op["offset"])

    def restart(self, _: Fields) -> None:
        """Shut down cleanly, and load what is on the disk."""
        self.storage.close_cleanly(self.replica.hw)
        self.replica = self._load()

    # Conversations.

    def meet(self, rules: Rules) -> Conversation:
        """The two logs, as given, in a new conversation."""
        leader, follower = self.leader, self.follower
        assert leader is not None
        assert follower is not None
        theirs, own = batches_of(leader["log"]), batches_of(follower["log"])
        log = make_log(theirs)
        epoch = leader["leader_epoch"]
        strict = rules.epoch_recorded_at == "election"
        cache = make_cache(entries_of(theirs), strict=strict)
        partition = make_partition(log, cache, rules, name=NAME, hw=log.leo, leader_epoch=epoch, leads=True)
        talk = self.talk = Conversation(rules, LeaderLogs({NAME: partition}))
        replica = make_replica(
            NAME, own, rules, talk.host, entries=entries_of(own), hw=follower.get("hw", 0), strict=strict
        )
        talk.add(replica, follower.get("leader_epoch", epoch))
        return talk

    def ask(self, talk: Conversation, op: Fields) -> Seen:
        """Send an epoch request and apply its response."""
        requested = talk.replicas[NAME].epochs.latest
        if requested != op["requested_epoch"]:
            raise AssertionError(f"the follower asks for epoch {requested}, not {op['requested_epoch']}")
        talk.truncation_step()
        _, _, epoch, end_offset = talk.epoch_replies[-1]
        return Seen(
            epoch=epoch,
            end_offset=end_offset,
            truncate_to=talk.host.truncations[-1][1] if talk.host.truncations else None,
            complete=NAME in talk.host.settlements,
        )

    def ask_to_the_end(self, op: Fields, rules: Rules) -> Seen:
        """Send epoch requests and fetches until nothing changes."""
        talk = self.meet(rules)
        seen = self.ask(talk, op)
        talk.run_until_quiet()
        own, theirs = self.logs
        seen.update(
            logs_equal_at_end=shown(own.batches) == shown(theirs.batches),
            diverged_range=diverged_range(theirs, own),
            physical_log=shown(own.batches),
            leo=own.leo,
            **dict.fromkeys(("hole", "hole_range", "missing_range"), hole(theirs, own)),
        )
        return seen

    @property
    def logs(self) -> tuple[Log, Log]:
        """The follower's and the leader's."""
        assert self.talk is not None
        assert isinstance(self.talk.leader, LeaderLogs)
        return self.talk.replicas[NAME].log, self.talk.leader.partitions[NAME].log

    def observe(self) -> Seen:
        """The log on its disk, where the case has one."""
        if self.leader is not None:
            return Seen()
        log, epochs = self.replica.log, self.replica.epochs
        return Seen(physical_log=shown(log.batches), leo=log.leo, log_start=log.log_start, epoch_entries=epochs.entries)


def _reply(rules: Rules) -> Callable[[Scenario, Fields], Seen]:
    return lambda state, op: state.ask_to_the_end(op, rules)


def _first_round(rules: Rules) -> Callable[[Scenario, Fields], Seen]:
    return lambda state, op: state.ask(state.meet(rules), op)


def _next_round(state: Scenario, op: Fields) -> Seen:
    assert state.talk is not None
    return state.ask(state.talk, op)


KIND = Kind(
    begin=Scenario,
    ops={
        "kip101_reply": _reply(KIP101),
        "kip101_reply_round_1": _first_round(KIP101),
        "kip279_reply": _reply(LATEST),
        "kip279_reply_round_1": _first_round(LATEST),
        "log_truncate_to": Scenario.truncate,
        "restart_clean": Scenario.restart,
        **{f"kip{kip}_reply_round_{number}": _next_round for kip in (101, 279) for number in range(2, 6)},
    },
    observe=Scenario.observe,
)
