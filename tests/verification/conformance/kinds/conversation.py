"""Driver of kind ``conversation``: a follower and a leader, each with a log, round after round.

Source: AbstractFetcherThreadTest. Its test double of a follower claims latest epoch 0 for an empty log, so an empty
log is given the epoch entry (0, its start), unless the table says that there is no latest epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.protocol.messages import (
    EARLIEST,
    LATEST,
    NONE,
    EpochEndResult,
    FetchRequest,
    FetchResult,
    OffsetsForLeaderEpochRequest,
)
from sim.protocol.modes import MODES
from sim.protocol.replica.partition_fetch_state import FETCHING
from sim.protocol.replica.replica import Replica
from tests.verification.conformance.cases import Fields, TableError
from tests.verification.conformance.conversation import BrokenLog, Conversation, LeaderLogs, UncutReplica, make_replica
from tests.verification.conformance.driving import Kind, Matching, Seen
from tests.verification.conformance.world import batches_of, entries_of, make_cache, make_log, make_partition, shown

if TYPE_CHECKING:
    from sim.protocol.batch import Batch
    from sim.protocol.replica.partition import Partition
    from sim.protocol.rules import Rules

UNREQUESTED = "unrequested"


class FaultyLeader(LeaderLogs):
    """Leader's partitions, with the errors that a table injects.

    Args:
        partitions: see `LeaderLogs`.
        given: the table's ``leader``.
    """

    def __init__(self, partitions: dict[str, Partition], given: Fields) -> None:
        super().__init__(partitions)
        self.request_error = given.get("fetch_fails_with")
        self.partition_errors = dict(zip(partitions, given.get("per_partition_error", ()), strict=False))
        self.lookup_errors = {
            EARLIEST: [given.get("earliest_offset_lookup_fails_with")],
            LATEST: [given.get("first_latest_offset_lookup_fails_with")],
        }
        self.answers_unrequested = given.get("reply_contains_unrequested_partition", False)
        self.corrupts_next = bool(given.like("corrupt"))

    def epoch_ends(self, request: OffsetsForLeaderEpochRequest) -> list[EpochEndResult]:
        """See `Leader`."""
        extra: list[EpochEndResult] = [(UNREQUESTED, NONE, 0, 0)] if self.answers_unrequested else []
        return super().epoch_ends(request) + extra

    def fetched(self, request: FetchRequest) -> list[FetchResult] | None:
        """See `Leader`."""
        if self.request_error:
            return None
        corrupts, self.corrupts_next = self.corrupts_next, False
        return [
            (result[0], self._error(result, corrupts=corrupts), *result[2:])
            for result in map(self.fetch, request.positions)
        ]

    def _error(self, result: FetchResult, *, corrupts: bool) -> str:
        injected: str = self.partition_errors.get(result[0], "NONE")
        if injected != "NONE":
            return injected
        # Batches have no checksum here; what follows from a bad one is what follows from any other error.
        return "CORRUPT_MESSAGE" if corrupts else result[1]

    def offset(self, request: Any) -> tuple[str, int]:
        """See `Leader`."""
        error, offset = super().offset(request)
        injected = self.lookup_errors[request.timestamp]
        return (injected.pop() if injected else None) or error, offset


class Rounds:
    """The state of a case.

    Attributes:
        single: one partition is given, so that it needs no number.
        talk: the conversation.
    """

    def __init__(self, given: Fields, rules: Rules) -> None:
        follower, leader = given.part("follower"), given.part("leader")
        self.single = "partitions" not in follower
        self.names = [str(number) for number in range(1, follower.get("partitions", 1) + 1)]
        self.offered = follower.get("fetch_offset", 0)
        self.rules = rules
        self.broken = str(follower.get("append_fails_for", ""))
        self.uncut = next((str(follower[key]) for key in follower if "trunc" in key and "fail" in key), "")
        self.talk = Conversation(rules, LeaderLogs({}), truncating=follower.get("initial_state") == "truncating")
        for name in self.names:
            self._add(name, follower)
        self.begins = self.talk.replicas[self.name].log.leo
        self.talk.leader = self.leader = FaultyLeader(
            {name: self._leader_partition(name, leader) for name in self.names}, leader
        )
        if follower.get("removed_before_truncation"):
            self.remove()
        if self.leader.answers_unrequested:
            self.talk.truncate_first()

    def _add(self, name: str, given: Fields) -> None:
        if given.get("initial_state", "truncating") != "truncating":
            raise TableError(f"a fetcher is never put into state {given['initial_state']!r}")
        replica = self._replica(name, batches_of(given.get("log", ())), given)
        self.talk.add(replica, given.get("leader_epoch", 0), given.get("fetch_offset"))

    def _replica(self, name: str, batches: list[Batch], given: Fields) -> Replica:
        entries = entries_of(batches) or [(0, 0)]
        if "latest_epoch" in given and given["latest_epoch"] is None:
            entries = []
        log = BrokenLog() if name == self.broken else None
        kind = UncutReplica if name == self.uncut else Replica
        return make_replica(
            name, batches, self.rules, self.talk.host, entries=entries, hw=given.get("hw", 0), log=log, kind=kind
        )

    def _leader_partition(self, name: str, given: Fields) -> Partition:
        """A leader whose log the table leaves out holds what the follower holds below its HW."""
        replica = self.talk.replicas[name]
        if "log" in given:
            batches = batches_of(given["log"])
        elif self.broken:
            batches = batches_of([[0, 0, 0]])
        else:
            batches = [batch for batch in replica.log.batches if batch.last_offset < replica.hw]
        answers_epochs = given.like("support") in (None, True)
        log = make_log(batches, start=given.get("log_start"))
        return make_partition(
            log,
            make_cache(entries_of(batches)),
            self.rules if answers_epochs else MODES["hw"].rules,
            name=name,
            hw=given.get("hw", log.leo),
            leader_epoch=given.get("leader_epoch", 0),
            leads=True,
        )

    # Operations.

    @property
    def name(self) -> str:
        """The partition that operations without a number mean."""
        return self.names[0]

    def round(self, _: Fields) -> None:
        """One round."""
        self.talk.round()

    def rounds(self, op: Fields) -> None:
        """Several rounds; their number depends on whether truncation is a separate phase."""
        numbers = {
            "leader-epoch-rounds": op.get("n_offsets_for_leader_epoch"),
            "on-fetch": op.get("n_truncate_on_fetch"),
        }
        number = numbers.get(self.rules.follower_truncation)
        number = op.get("n", 0) if number is None else number
        if self.rules.follower_truncation == "on-fetch" and self.offered > self.begins:
            number -= 1  # One for a fetch from beyond its LEO, where no fetcher here begins.
        for _ in range(number):
            self.talk.round()

    def diverge(self, op: Fields) -> None:
        """Answer the fetch in flight with a diverging epoch; then the next one is sent."""
        self.talk.answer_diverging(self.name, (op["epoch"], op["end_offset"]), op.get("leader_hw", 0))

    def round_while(self, op: Fields, change: Any) -> None:
        """One round, with an event before the response to the epoch request arrives."""
        if "epoch" not in op["during"]:
            raise TableError(f"cannot interfere during {op['during']!r}")
        self.talk.truncate_first()
        self.talk.meanwhile = change
        self.talk.round()
        if self.talk.meanwhile is not None:
            raise AssertionError("there was no epoch request to interfere with")

    def remove(self) -> None:
        """Remove the partition from the fetcher: it has another leader, or leads itself."""
        self.talk.fetcher.remove(self.name)

    def change_epoch(self, epoch: int) -> None:
        """A newer LeaderAndIsr: removed, and added again under the new epoch with an empty log."""
        self.remove()
        self.talk.add(self._replica(self.name, [], Fields({}, "")), epoch)

    def add_again(self, op: Fields) -> None:
        """Add the partition again."""
        self.talk.add(self.talk.replicas[self.name], op["leader_epoch"], op["offset"])

    def new_leader_epoch(self, op: Fields) -> None:
        """A leader change for one of several partitions. The source test has it truncate in both modes."""
        self.talk.truncating = True
        self.talk.add(self.talk.replicas[str(op["partition"])], op["epoch"])

    def remove_and_show(self, _: Fields) -> Seen:
        """Remove it; Kafka hands back the fetch state, whose offset is the LEO."""
        self.remove()
        return Seen(last_fetch_offset=self.talk.replicas[self.name].log.leo)

    def set_leader_epoch(self, op: Fields) -> None:
        """Add an epoch at the leader."""
        self.leader.partitions[self.name].leader_epoch = op["epoch"]

    def replace_leader_log(self, op: Fields) -> None:
        """Replace the leader's log."""
        partition = self.leader.partitions[self.name]
        batches = batches_of(op["log"])
        partition.log = make_log(batches, start=op["log_start"])
        partition.epochs = make_cache(entries_of(batches))
        partition.set_hw(op["hw"])

    # What can be seen.

    def _last_epoch(self) -> dict[str, int | None]:
        """The epoch that the next fetch carries, where fetches do."""
        if self.rules.follower_truncation != "on-fetch":
            return {}
        return {"last_fetched_epoch": self.talk.replicas[self.name].epochs.latest}

    def observe(self) -> Seen:
        """All values that tables name."""
        talk, name = self.talk, self.name
        replica, fetch = talk.replicas[name], talk.fetch_state(name)
        own, theirs = shown(replica.log.batches), shown(self.leader.partitions[name].log.batches)
        request = talk.fetcher.in_flight
        tracked = [int(each) for each in self.names if talk.fetch_state(each)]
        failed = [int(each) for each in self.names if each in talk.fetcher.failed]
        return Seen(
            {f"state_of_{each}": talk.state(each) for each in self.names},
            follower_leo=replica.log.leo,
            follower_hw=replica.hw,
            follower_log=own,
            follower_log_size=len(own),
            follower_log_start=replica.log.log_start,
            logs_equal=own == theirs,
            state=talk.state(name),
            current_leader_epoch=fetch.leader_epoch if fetch else None,
            tracked=bool(tracked) if self.single else tracked,
            failed=bool(failed) if self.single else failed,
            delayed=[talk.is_delayed(each) for each in self.names],
            all_partitions_delayed=all(talk.is_delayed(each) for each in self.names),
            slept_at_least_ms=Matching(talk.slept_us // 1_000, lambda least: talk.slept_us >= least * 1_000),
            **self._last_epoch(),
            next_fetch_offset=request.positions[0][1] if isinstance(request, FetchRequest) else replica.log.leo,
            truncation_offset=talk.host.truncations[-1][1] if talk.host.truncations else None,
            truncation_complete=fetch is not None and fetch.state is FETCHING and bool(talk.host.settlements),
            truncations_so_far=len(talk.host.truncations),
            earliest_offset_looked_up=EARLIEST in self.leader.lookups,
        )


KIND = Kind(
    begin=Rounds,
    ops={
        "round": Rounds.round,
        "rounds": Rounds.rounds,
        "run_until_quiet": lambda state, _: state.talk.run_until_quiet(),
        "fetch_is_sent": lambda state, _: state.talk.truncation_step(),
        "diverging_epoch_in_fetch_response": Rounds.diverge,
        "leader_epoch_becomes": Rounds.set_leader_epoch,
        "leader_log_replaced": Rounds.replace_leader_log,
        "add_partition_again": Rounds.add_again,
        "new_leader_epoch_for": Rounds.new_leader_epoch,
        "remove_partition": Rounds.remove_and_show,
        "round_with_partition_removed": lambda state, op: state.round_while(op, state.remove),
        "round_with_follower_epoch_changed_to": lambda state, op: state.round_while(
            op, lambda: state.change_epoch(op["epoch"])
        ),
    },
    observe=Rounds.observe,
)
