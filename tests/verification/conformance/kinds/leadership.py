"""Driver of the kinds about a leader's partition: followers' state, ISR, HW, and results of ISR changes.

The partition is the core's own. With rule ``isr_update=alter-partition`` its changes go to a sender of the core, whose
requests the case answers; with ``zookeeper-write`` the case says how the write ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.protocol.decisions import Decisions
from sim.protocol.kraft.alter_partition_manager import AlterPartitionItem, AlterPartitionManager
from sim.protocol.messages import (
    EARLIEST,
    LATEST,
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    LeaderAndIsr,
    ProduceRequest,
)
from sim.protocol.replica.become_follower import restarts_fetcher, stops_fetcher
from sim.protocol.replica.followers import NEVER_US, FollowerState
from sim.protocol.replica.partition import NO_LEADER
from sim.protocol.replica.replica_fetcher_thread import ReplicaFetcherThread
from tests.verification.conformance.cases import Fields, TableError
from tests.verification.conformance.driving import Kind, Matching, Seen
from tests.verification.conformance.world import (
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
    from collections.abc import Iterable

    from sim.protocol.replica.partition import Partition
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


BROKER_EPOCHS = {"old": 10, "stale": 10, "new": 20, "current": 20, "own": 30}
"""Numbers for tables' words."""


def broker_epoch_of(value: int | str) -> int:
    """A number, or what stands for a word.

    Raises:
        TableError: it is another word.
    """
    if isinstance(value, str) and value not in BROKER_EPOCHS:
        raise TableError(f"broker epoch {value!r} is not understood")
    return BROKER_EPOCHS[value] if isinstance(value, str) else value


class Leading(RecordingHost):
    """The state of a case.

    Attributes:
        partition: the leader's.
        sender: where its changes go with ``isr_update=alter-partition``.
        requested: the change that was sent last.
        writes: how many writes of the ISR succeed at once: versions that ZooKeeper has then.
        dead: brokers that are not alive in the leader's metadata.
        registered: broker epochs that the leader's metadata shows, one look after the other; the last one stays.
    """

    def __init__(self, given: Fields, rules: Rules) -> None:
        super().__init__()
        self.rules = rules
        self.now_us = START_US
        self.sender = AlterPartitionManager(self)
        self.requested: AlterPartitionItem | None = None
        self.writes: list[int] = []
        self.dead: set[int] = set()
        self.registered: list[int] = [BROKER_EPOCHS["current"]]
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

    def registered_epoch(self, broker: int) -> int:
        """See `PartitionHost`."""
        return self.registered.pop(0) if len(self.registered) > 1 else self.registered[0]

    def propose_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """See `PartitionHost`. With a ZooKeeper nobody names broker epochs."""
        names_own = self.rules.isr_eligibility == "registered"
        own = BROKER_EPOCHS["own"] if names_own else NO_BROKER_EPOCH
        epochs = {member: partition.state.broker_epochs.get(member, NO_BROKER_EPOCH) for member in isr}
        epochs[partition.broker] = own
        change = AlterPartitionItem(partition.name, isr, partition.leader_epoch, partition.partition_epoch, epochs)
        if self.rules.isr_update == "alter-partition":
            self.sender.submit(partition, change, self.now_us)
            return
        self.requested = change
        if self.writes:
            partition.isr_persisted(isr, self.writes.pop(), self.now_us)

    def send_alter_partition(self, changes: list[AlterPartitionItem]) -> None:
        """See `AlterPartitionHost`."""
        self.requested = changes[-1]

    def retry_alter_partition(self, after_us: int) -> None:
        """See `AlterPartitionHost`."""

    # Leadership.

    def _lead(self, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...], replicas: tuple[int, ...]) -> None:
        decision = LeaderAndIsr("0", self.broker, leader_epoch, isr, partition_epoch, replicas)
        self.partition.become_leader(decision, self.now_us)

    def make_leader(self, op: Fields) -> None:
        """Handle a LeaderAndIsr with this broker as leader."""
        self._lead(op["leader_epoch"], op["partition_epoch"], tuple(op["isr"]), tuple(op["replicas"]))

    def make_follower(self, op: Fields) -> Seen:
        """Handle a LeaderAndIsr with another leader."""
        partition = self.partition
        decision = LeaderAndIsr(
            "0", op["leader"], op["leader_epoch"], (), op.get("partition_epoch", 0), partition.replicas
        )
        restarts = restarts_fetcher(Decisions(self.rules), partition.leader, partition.leader_epoch, decision)
        partition.become_follower(decision)
        return Seen(restart_fetcher=restarts)

    def update(self, op: Fields) -> None:
        """Change the assignment, and perhaps leadership."""
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
        changed = {}
        if not error and not consumer:
            replica = op["replica"] if "replica" in op else partition.replicas[-1]
            before = self._known(replica)
            error = self._count(replica, offset, op)
            changed = {f"replica_{replica}_state": "unchanged" if self._known(replica) == before else "changed"}
        return Seen(error=error or "NONE", records=some(sum(batch.count for batch in batches)), **changed)

    def _count(self, replica: int, offset: int, op: Fields) -> str:
        """Update the leader by a fetch, or refuse it (`sim.hosts.kafka_apis`)."""
        partition = self.partition
        if "cached_broker_epoch_at_fetch" in op:
            words = (op["cached_broker_epoch_at_fetch"], op["cached_broker_epoch_after"])
            self.registered = [broker_epoch_of(word) for word in words]
        broker_epoch = broker_epoch_of(op.get("broker_epoch", NO_BROKER_EPOCH))
        if partition.refuses_registration(replica, broker_epoch):
            return NOT_LEADER_OR_FOLLOWER
        partition.follower_fetched(replica, broker_epoch, offset, partition.leader_epoch, self.now_us)
        return NONE

    def _known(self, replica: int) -> list[object]:
        """The leader's state of a follower."""
        state = self.partition.followers.states[replica]
        names = [name for name in dir(FollowerState) if not name.startswith("__")]
        return [value for name in names if not callable(value := getattr(state, name))]

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
        """Advance to a time."""
        self.now_us = START_US + op["at"] * 1_000

    def probe(self, op: Fields) -> None:
        """Check the HW without another operation."""
        if "hw" in op:
            self.partition.set_hw(op["hw"])

    # The ISR.

    def shrink(self, _: Fields) -> None:
        """The periodic task."""
        self.partition.shrink_isr(self.now_us)

    def set_broker_state(self, op: Fields) -> None:
        """Change the leader's metadata."""
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
        result = (error, change.isr, partition_epoch, change.leader_epoch, 0)
        self.sender.on_reply(NONE, {self.partition.name: result}, self.now_us)

    def alter_partition_ok(self, op: Fields) -> None:
        """Answer that the controller persisted the change."""
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
        """All values that tables name."""
        partition = self.partition
        isr, pending = partition.state.isr, partition.state.pending
        led = partition.is_leader
        followers = {f"replica_{broker}": self._follower(broker) for broker in partition.followers.states}
        epochs = dict(self.requested.broker_epochs) if self.requested else {}
        return Seen(
            **followers,
            isr=isr,
            maximal_isr=pending if len(pending) > len(isr) else isr,
            in_flight=bool(pending),
            requested_isr=self.requested.isr if self.requested else None,
            isr_broker_epochs=Matching(epochs, lambda expected: epochs == _broker_epochs(expected, epochs)),
            requests_outstanding=int(self.sender.in_flight is not None),
            state=("pending_expand" if len(pending) > len(isr) else "pending_shrink") if pending else "committed",
            hw=partition.hw,
            epoch_start=partition.epoch_start,
            partition_epoch=partition.partition_epoch,
            at_min_isr=led and len(isr) == partition.min_insync_replicas,
            under_min_isr=led and len(isr) < partition.min_insync_replicas,
            remote_replicas=sorted(partition.followers.states),
            out_of_sync=partition.followers.out_of_sync(partition.log.leo, self.now_us),
            latest=self._latest(),
            earliest=partition.list_offset(EARLIEST, NO_EPOCH, replica=False)[1],
        )

    def _follower(self, broker: int) -> Seen:
        state = self.partition.followers.states[broker]
        caught_up: Any = (state.caught_up_us - START_US) // 1_000
        return Seen(leo=state.leo, last_caught_up="never" if state.caught_up_us == NEVER_US else caught_up)


def _broker_epochs(expected: int | dict[str, int | str], members: Iterable[int]) -> dict[int, int]:
    """A table's broker epochs of members: one for all, or by member."""
    if isinstance(expected, int):
        return dict.fromkeys(members, expected)
    return {int(member): broker_epoch_of(epoch) for member, epoch in expected.items()}


class ShuttingDown:
    """A broker in controlled shutdown, and what its replicas make of changes that it replays.

    Tables number brokers from 0 on, which stands for nobody here.
    """

    def __init__(self, given: Fields, rules: Rules) -> None:
        given["mode"]
        if not given["shutting_down"]:
            raise TableError("the broker shuts down")
        self.broker = given["local"] + 1
        self.rules = rules
        self.host = RecordingHost()
        self.partitions: dict[str, Partition] = {}
        self.fetchers: dict[int, ReplicaFetcherThread] = {}
        partitions = given["partitions"]
        for name in partitions:
            self._add(name, partitions[name])

    def _add(self, name: str, said: str) -> None:
        """A partition as given: ``leader, sole ISR member`` or ``follower of 1, in ISR``."""
        partition = make_partition(
            make_log([]), make_cache([]), self.rules, name=name, host=self.host, broker=self.broker
        )
        self.partitions[name] = partition
        role, _, membership = said.partition(", ")
        if said == "leader, sole ISR member":
            partition.become_leader(LeaderAndIsr(name, self.broker, 0, (self.broker,), 0, (self.broker,)), START_US)
        elif role.startswith("follower of ") and membership in ("in ISR", "not in ISR"):
            leader = int(role.removeprefix("follower of ")) + 1
            isr = (leader, self.broker) if membership == "in ISR" else (leader,)
            partition.become_follower(LeaderAndIsr(name, leader, 0, isr, 0, (leader, self.broker)))
            fetcher = self.fetchers.setdefault(
                leader, ReplicaFetcherThread(leader, Decisions(self.rules), self.host, backoff_us=0)
            )
            fetcher.add(partition, 0, START_US)
        else:
            raise TableError(f"a replica that is {said!r} is not understood")

    def replay(self, op: Fields) -> Seen:
        """Changes of some partitions are replayed, each with a newer leader epoch."""
        before = {name: self._stands(name) for name in self.partitions}
        for name in op.get("removes_local_from_isr_of", ()):
            leader = self.partitions[name].leader
            self._take(name, leader, (leader,))
        for name in op.get("leaderless", ()):
            self._take(name, NO_LEADER, self.partitions[name].state.isr)
        after = {name: self._stands(name) for name in self.partitions}
        return Seen({name: "untouched" if after[name] == before[name] else after[name][0] for name in after})

    def _take(self, name: str, leader: int, isr: tuple[int, ...]) -> None:
        partition = self.partitions[name]
        state = LeaderAndIsr(
            name, leader, partition.leader_epoch + 1, isr, partition.partition_epoch + 1, partition.replicas
        )
        partition.become_follower(state)
        if stops_fetcher(self.broker, state, shutting_down=True):
            for fetcher in self.fetchers.values():
                fetcher.remove(name)

    def _stands(self, name: str) -> tuple[str, int]:
        """A replica's role, in a table's words, and its partition epoch."""
        partition = self.partitions[name]
        role = "leader" if partition.is_leader else "follower" if partition.leader else "not leader"
        fetches = any(name in fetcher.partitions for fetcher in self.fetchers.values())
        running = "running" if fetches else "stopped"
        return f"{role}, epoch {partition.leader_epoch}, fetcher {running}", partition.partition_epoch


def _begin(given: Fields, rules: Rules) -> Leading | ShuttingDown:
    return ShuttingDown(given, rules) if "shutting_down" in given else Leading(given, rules)


KIND = Kind(
    begin=_begin,
    ops={
        "make_leader": Leading.make_leader,
        "make_follower": Leading.make_follower,
        "metadata_delta": ShuttingDown.replay,
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
    observe=lambda state: state.observe() if isinstance(state, Leading) else {},
    unmodelled=UNMODELLED,
)
