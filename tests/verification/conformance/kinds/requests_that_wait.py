"""Driver of kinds ``fetch_fencing`` and ``acks``: fetches, look-ups and writes that brokers refuse, or let wait.

A case that says what log the leader has goes to the driver of kinds about leaders.

Requests that wait are sent to a simulated broker, the others to a partition of the core. Nobody fetches from a
follower here, so that where a table allows it only the epoch check of the fetch is there to use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.hosts.cluster import TOPIC
from sim.protocol.messages import LATEST, NO_EPOCH, FetchRequest, FetchResponse, ProduceRequest, ProduceResponse
from tests.verification.conformance.cases import Fields, TableError
from tests.verification.conformance.driving import Kind, Matching, Seen
from tests.verification.conformance.kinds.leadership import Leading
from tests.verification.conformance.simulated import ASKER, SECOND_US, Asker, RunningCluster, ScriptedBroker
from tests.verification.conformance.world import (
    FOLLOWER,
    LEADER,
    epoch_of,
    make_cache,
    make_log,
    make_partition,
    record_id,
)

if TYPE_CHECKING:
    from sim.protocol.replica.partition import Partition
    from sim.protocol.rules import Rules

BROKERS = 3
"""Stands for a table's ``N``."""
LONGEST_US = 60 * SECOND_US


class Requests:
    """The state of a case.

    Attributes:
        broker: the simulated broker, for requests that wait.
        running: the cluster of cases that need a whole one.
        waits: the request that was not answered at once.
    """

    def __init__(self, given: Fields, rules: Rules) -> None:
        self.rules = rules
        self.role = given.get("role", "leader")
        self.leader_epoch = epoch_of(given.get("leader_epoch", 0))
        self.others = [broker for broker in given.get("isr", ()) if broker]
        self.broker: ScriptedBroker | None = None
        self.running: tuple[RunningCluster, Asker] | None = None
        self.error: str | None = None
        if "min_isr" in given:
            if (given["replicas"], given["min_isr"]) != ("N", "N"):
                raise TableError("the ISR has to be full")
            cluster = RunningCluster(BROKERS, rules, {"min.insync.replicas": BROKERS})
            self.running = (cluster, Asker(cluster.cluster))

    # Refused at once.

    def _partition(self, *, leads: bool) -> Partition:
        return make_partition(make_log([]), make_cache([]), self.rules, leader_epoch=self.leader_epoch, leads=leads)

    def fetch_with_epoch(self, op: Fields) -> Seen:
        """A consumer's or a follower's fetch."""
        leads = op.get("to", self.role) == "leader"
        by = op.get("by", "follower")
        current = epoch_of(op["current_leader_epoch"])
        partition = self._partition(leads=leads)
        if by == "consumer with client metadata" or ("to" in op and not leads) or not op.get("only_leader", True):
            error = partition.fencing.compare(current, partition.leader_epoch)
        else:
            error = partition.check_fetch(0, current, client=by == "consumer")
        return Seen(error=error or "NONE")

    def list_offsets(self, op: Fields) -> Seen:
        """A client's look-up."""
        partition = self._partition(leads=self.role == "leader")
        current = epoch_of(op["current_leader_epoch"])
        if op["only_leader"]:
            error, _ = partition.list_offset(LATEST, current, replica=False)
        else:
            error = partition.fencing.compare(current, partition.leader_epoch)
        return Seen(error=error or "NONE")

    # Answered later.

    def _leading(self) -> ScriptedBroker:
        self.broker = ScriptedBroker(self.rules)
        self.broker.decide(LEADER, self.leader_epoch)
        return self.broker

    def fetch(self, op: Fields) -> Seen:
        """Send a fetch that finds no data; it waits at the broker."""
        broker = self._leading()
        epoch = epoch_of(op.get("current_leader_epoch"))
        op.get("max_wait_ms")  # It is over only after what comes next.
        replica = FOLLOWER if op["by"] == "follower" else -1
        request = FetchRequest(ASKER, LEADER, replica, -1, [(TOPIC, 0, epoch, NO_EPOCH)], [self.leader_epoch])
        broker.asker.send(LEADER, request)
        broker.pass_time(SECOND_US // 10)
        return Seen(answered=bool(broker.asker.answers))

    def produce(self, op: Fields) -> Seen:
        """Write to a leader without followers, or to one with all of them."""
        request = ProduceRequest(ASKER, TOPIC, record_id(0, self.leader_epoch), 1, op["acks"])
        if self.running is None:
            broker = self._leading()
            broker.asker.send(LEADER, request)
            broker.pass_time(SECOND_US)
            return Seen(answered=bool(broker.asker.answers))
        cluster, asker = self.running
        asker.answers.clear()
        asker.send(cluster.leader, request)
        kernel = cluster.cluster.kernel
        deadline_us = kernel.now_us + LONGEST_US
        while not asker.answers and kernel.now_us < deadline_us:
            kernel.run_until(kernel.now_us + SECOND_US)
        error = self._answer(asker) or "NONE" if asker.answers else "timeout"
        return Seen(error=error, error_in=Matching(error, lambda allowed: error in allowed))

    def stop_one_broker(self, _: Fields) -> None:
        """Shut a follower down."""
        assert self.running is not None
        cluster, _asker = self.running
        cluster.stop(next(broker for broker in cluster.cluster.replicas if broker != cluster.leader))

    def make_follower(self, op: Fields) -> Seen:
        """Make another broker the leader; tables call it 1 or 2."""
        assert op["leader"] in (1, 2)
        assert self.broker is not None
        self.broker.decide(FOLLOWER, op.get("leader_epoch", self.leader_epoch + 1))
        return self._answered()

    def stop_replica(self, op: Fields) -> Seen:
        """Remove the replica."""
        assert self.broker is not None
        self.broker.stop_replica(self.leader_epoch + 1, delete=op["delete"])
        return self._answered()

    def _answered(self) -> Seen:
        assert self.broker is not None
        answers = self.broker.asker.answers
        error = self._answer(self.broker.asker) or "NONE" if answers else None
        return Seen(produce_error=error, fetch_error=error)

    @staticmethod
    def _answer(asker: Asker) -> str:
        answer: Any = asker.answers[-1]
        if isinstance(answer, ProduceResponse):
            return answer.error
        assert isinstance(answer, FetchResponse)
        return answer.results[0][1]


def _begin(given: Fields, rules: Rules) -> Requests | Leading:
    return Leading(given, rules) if "log_before_leader" in given else Requests(given, rules)


KIND = Kind(
    begin=_begin,
    ops={
        "fetch_with_epoch": Requests.fetch_with_epoch,
        "list_offsets": Requests.list_offsets,
        "make_leader": Leading.make_leader,
        "fetch": lambda state, op: state.fetch(op),
        "produce": Requests.produce,
        "stop_one_broker": Requests.stop_one_broker,
        "make_follower": Requests.make_follower,
        "stop_replica": Requests.stop_replica,
    },
)
