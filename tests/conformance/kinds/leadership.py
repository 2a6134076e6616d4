"""Driver of the kinds about a leader's partition: what it knows of followers, ISR, HW, and how changes of the ISR end.

The partition is the core's own. With rule ``isr_update=alter-partition`` its changes go to a sender of the core, whose
requests the case answers; with ``zookeeper-write`` the case says how the write ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.protocol.alter_partition import AlterPartitionSender, Change
from sim.protocol.fetcher import restarts_fetcher
from sim.protocol.messages import EARLIEST, LATEST, NO_EPOCH, NONE, LeaderAndIsr, ProduceRequest
from sim.protocol.partition import NEVER_US
from tests.conformance.cases import Fields, TableError
from tests.conformance.driving import Kind, Matching, Seen
from tests.conformance.world import (
    LEADER,
    RecordingHost,
    batches_of,
    entries_of,
    epoch_of,
    make_cache,
    make_log,
    make_partition,
    record_id,
    records,
)

if TYPE_CHECKING:
    from sim.protocol.partition import Partition
    from sim.protocol.rules import Rules

START_US = 1_000_000_000
"""The time of the first operation; tables count from there."""
FIRST_EPOCH = 5
UNMODELLED = {
    "log_start": "leaders keep no log starts of followers: they serve DeleteRecords only",
    "adding": "a LeaderAndIsr names the assignment only: adding and removing replicas serve metrics only",
    "read_committed": "transactions",
}


def some(count: int) -> Matching:
    """A number of records, or ``some``."""
    return Matching(count, lambda expected: count > 0 if expected == "some" else count == expected)


class Leading(RecordingHost):
    """The state of a case.

    Attributes:
        partition: the leader's.
        sender: where its changes go with ``isr_update=alter-partition``.
        requested: the change that was sent last.
        writes: how many writes of the ISR succeed at once: versions that ZooKeeper has then.
        dead: brokers that are not alive in the leader's metadata.
    """

    def __init__(self, given: Fields, rules: Rules) -> None:
        super().__init__()
        self.rules = rules
        self.now_us = START_US
        self.sender = AlterPartitionSender(self)
        self.requested: Change | None = None
        self.writes: list[int] = []
        self.dead: set[int] = set()
        for word in ("mode", "isr_update_path"):
            given.get(word)  # They decide about the rules.
        batches = batches_of(given.get("log_before_leader", given.get("log", ())))
        if "leader_leo" in given:
            batches = records(given["leader_leo"], 0)
        replicas = given.get("replicas", ())
        self.broker = given.get("local", given.get("leader", 0 if 0 in replicas else LEADER))
        self.partition: Partition = make_partition(
            make_log(batches),
            make_cache(entries_of(batches)),
            rules,
            hw=given.get("hw_checkpoint", given.get("hw", 0)),
            host=self,
            broker=self.broker,
            min_isr=given.get("min_isr", 1),
            lag_us=given.get("replica_lag_time_max_ms", 30_000) * 1_000,
        )
        if given.get("role", "leader") != "leader":
            raise TableError(f"a broker that is {given['role']!r} is not understood")
        if "role" in given or "isr" in given:
            isr = tuple(given.get("isr", replicas or (LEADER,)))
            self._lead(given.get("leader_epoch", FIRST_EPOCH), 0, isr, tuple(replicas or isr))
        if "open_transaction" in given:
            first, last = given["open_transaction"]
            self._append(first, last)

    # The host.

    def is_alive(self, broker: int) -> bool:
        """See `PartitionHost`."""
        return broker not in self.dead

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """See `PartitionHost`."""
        epochs = {member: partition.followers[member].broker_epoch for member in isr if member in partition.followers}
        change = Change(partition, isr, partition.leader_epoch, partition.partition_epoch, epochs)
        if self.rules.isr_update == "alter-partition":
            self.sender.submit(change, self.now_us)
            return
        self.requested = change
        if self.writes:
            partition.isr_persisted(isr, self.writes.pop(), self.now_us)

    def send_alter_partition(self, changes: list[Change]) -> None:
        """See `AlterPartitionHost`."""
        self.requested = changes[-1]

    def retry_alter_partition(self, after_us: int) -> None:
        """See `AlterPartitionHost`."""

    # Leadership.

    def _lead(self, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...], replicas: tuple[int, ...]) -> None:
        decision = LeaderAndIsr("0", self.broker, leader_epoch, isr, partition_epoch, replicas)
        self.partition.become_leader(decision, self.now_us)

    def make_leader(self, op: Fields) -> None:
        """A LeaderAndIsr that names this broker."""
        self._lead(op["leader_epoch"], op["partition_epoch"], tuple(op["isr"]), tuple(op["replicas"]))

    def make_follower(self, op: Fields) -> Seen:
        """One that names another."""
        partition = self.partition
        decision = LeaderAndIsr(
            "0", op["leader"], op["leader_epoch"], (), op.get("partition_epoch", 0), partition.replicas
        )
        restarts = restarts_fetcher(self.rules, partition.leader, partition.leader_epoch, decision)
        partition.become_follower(decision)
        return Seen(restart_fetcher=restarts)

    def update(self, op: Fields) -> None:
        """Another assignment, and whether this broker leads."""
        op.get("adding")
        op.get("removing")
        isr, replicas = tuple(op["isr"]), tuple(op["replicas"])
        if op["is_leader"]:
            self._lead(FIRST_EPOCH, 0, isr, replicas)
        else:
            self.partition.become_follower(LeaderAndIsr("0", replicas[0], FIRST_EPOCH, isr, 0, replicas))

    # Time, records, fetches.

    def advance(self, op: Fields) -> None:
        """Time passes."""
        self.now_us += op["ms"] * 1_000

    def _append(self, first: int, last: int) -> None:
        partition = self.partition
        if partition.log.leo != first:
            raise TableError(f"the log ends at {partition.log.leo}, not at {first}")
        request = ProduceRequest(0, "0", record_id(first, partition.leader_epoch), last - first + 1, 1)
        partition.produce(request, self.now_us)

    def append(self, op: Fields) -> None:
        """One batch of so many records."""
        leo = self.partition.log.leo
        self._append(leo, leo + op["records"] - 1)

    def append_batches(self, op: Fields) -> None:
        """Batches from offset to offset."""
        for first, last in op["batches"]:
            self._append(first, last)

    def fetch(self, op: Fields) -> Seen:
        """A follower's fetch, of which the leader learns, or a consumer's."""
        partition, offset = self.partition, op["offset"]
        consumer = op.get("by", "follower") == "consumer"
        self.writes = self._versions(op.get("zookeeper_write"))
        error = partition.check_fetch(offset, NO_EPOCH, client=consumer)
        batches = partition.read_committed(offset) if consumer else partition.read_uncommitted(offset)
        if not error and not consumer:
            replica = op["replica"] if "replica" in op else partition.replicas[-1]
            partition.follower_fetched(replica, NO_EPOCH, offset, partition.leader_epoch, self.now_us)
        return Seen(error=error or "NONE", records=some(sum(batch.count for batch in batches)))

    @staticmethod
    def _versions(write: str | None) -> list[int]:
        if write is None:
            return []
        outcome, _, version = write.partition(", version ")
        if outcome != "succeeds":
            raise TableError(f"a write that {outcome!r} is not understood")
        return [int(version)]

    def fetch_at(self, op: Fields) -> None:
        """A follower's fetch at a point in time."""
        self.now_us = START_US + op["at"] * 1_000
        self.fetch(op)

    def check_at(self, op: Fields) -> None:
        """Time passes up to a point."""
        self.now_us = START_US + op["at"] * 1_000

    def probe(self, op: Fields) -> None:
        """Nothing happens, but that the HW may be another."""
        if "hw" in op:
            self.partition.set_hw(op["hw"])

    # The ISR.

    def shrink(self, _: Fields) -> None:
        """The periodic task."""
        self.partition.shrink_isr(self.now_us)

    def set_broker_state(self, op: Fields) -> None:
        """The leader's metadata changes."""
        state = op["state"]
        if state in ("alive", "unfenced"):
            self.dead.discard(op["broker"])
        elif "fenced" in state or "shut" in state:
            self.dead.add(op["broker"])
        else:
            raise TableError(f"a broker that is {state!r} is not understood")

    def _reply(self, error: str, partition_epoch: int = -1) -> None:
        change = self.requested
        assert change is not None
        result = (error, change.isr, partition_epoch, change.leader_epoch)
        self.sender.on_reply(NONE, {self.partition.name: result}, self.now_us)

    def alter_partition_ok(self, op: Fields) -> None:
        """The controller persisted the change that was sent."""
        self._reply(NONE, op["partition_epoch"])

    def alter_partition_error(self, op: Fields) -> None:
        """It did not."""
        self._reply(op["error"])

    def list_offsets(self, op: Fields) -> Seen:
        """A client's look-up."""
        timestamps = {"latest": LATEST, "earliest": EARLIEST}
        timestamp = timestamps[op.get("timestamp", "latest")]
        current = epoch_of(op.get("current_leader_epoch"))
        error, offset = self.partition.list_offset(timestamp, current, replica=False)
        return Seen(error=error or "NONE", offset=offset, leader_epoch=self.partition.leader_epoch)

    # What can be seen.

    def _latest(self) -> Seen:
        partition = self.partition
        latest = [partition.list_offset(LATEST, NO_EPOCH, replica=replica) for replica in (True, False)]
        return Seen(none=latest[0][1], read_uncommitted=latest[1][1])

    def observe(self) -> Seen:
        """Everything that tables name."""
        partition = self.partition
        isr, pending = partition.isr, partition.pending
        led = partition.is_leader
        followers = {f"replica_{broker}": self._follower(broker) for broker in partition.followers}
        epochs = dict(self.requested.broker_epochs) if self.requested else {}
        return Seen(
            **followers,
            isr=isr,
            maximal_isr=pending if len(pending) > len(isr) else isr,
            in_flight=bool(pending),
            requested_isr=self.requested.isr if self.requested else None,
            isr_broker_epochs=Matching(epochs, lambda expected: set(epochs.values()) == {expected}),
            requests_outstanding=int(self.sender.in_flight is not None),
            state=("pending_expand" if len(pending) > len(isr) else "pending_shrink") if pending else "committed",
            hw=partition.hw,
            epoch_start=partition.epoch_start,
            partition_epoch=partition.partition_epoch,
            at_min_isr=led and len(isr) == partition.min_insync_replicas,
            under_min_isr=led and len(isr) < partition.min_insync_replicas,
            remote_replicas=sorted(partition.followers),
            out_of_sync=partition.out_of_sync(self.now_us),
            latest=self._latest(),
            earliest=partition.list_offset(EARLIEST, NO_EPOCH, replica=False)[1],
        )

    def _follower(self, broker: int) -> Seen:
        state = self.partition.followers[broker]
        caught_up: Any = (state.caught_up_us - START_US) // 1_000
        return Seen(leo=state.leo, last_caught_up="never" if state.caught_up_us == NEVER_US else caught_up)


KIND = Kind(
    begin=Leading,
    ops={
        "make_leader": Leading.make_leader,
        "make_follower": Leading.make_follower,
        "update": Leading.update,
        "advance": Leading.advance,
        "append": Leading.append,
        "append_batches": Leading.append_batches,
        "fetch": Leading.fetch,
        "fetch_state": Leading.fetch_at,
        "check": Leading.check_at,
        "list_offsets": Leading.list_offsets,
        "probe": Leading.probe,
        "maybe_shrink_isr": Leading.shrink,
        "set_broker_state": Leading.set_broker_state,
        "alter_partition_ok": Leading.alter_partition_ok,
        "alter_partition_error": Leading.alter_partition_error,
    },
    observe=Leading.observe,
    unmodelled=UNMODELLED,
)
