"""Driver of kind ``acceptance``: a whole simulated cluster.

Brokers go by Kafka's ids of the source test in the table, and by 1, 2, ... in the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.verification.conformance.cases import Fields, TableError
from tests.verification.conformance.driving import Kind, Matching, Seen
from tests.verification.conformance.simulated import RunningCluster

if TYPE_CHECKING:
    from sim.protocol.rules import Rules

FIRST_ID = 100
"""Id of the first broker in the tables."""


def _number(broker: int | str) -> int:
    return int(broker) - FIRST_ID + 1


def _acks(value: int | str) -> int:
    return -1 if value == "all" else int(value)


class Acceptance:
    """The state of a case: a cluster that is ready for the operations."""

    def __init__(self, given: Fields, rules: Rules) -> None:
        brokers = given["brokers"]
        given.get("replicas")  # All brokers, in order.
        settings = {
            # The source tests are over before the first check.
            "auto.leader.rebalance.enable": False,
            "unclean.leader.election.enable": given.get("unclean", False),
            "min.insync.replicas": given.get("min_isr", 1),
        }
        self.cluster = RunningCluster(brokers, rules, settings, _acks(given.get("acks", "all")))
        self.brokers = range(1, brokers + 1)
        if "records" in given:
            self._lose(given)

    def _lose(self, given: Fields) -> None:
        """Write, stop all brokers, the later one first; then the earlier one's machine loses the end of its log."""
        if not given.get("one_batch_each", True):
            raise TableError("all records are batches of their own")
        records = given["records"]
        self.cluster.write(records)
        for broker in given.get("stop_order", [FIRST_ID + 1, FIRST_ID]):
            self.cluster.stop(_number(broker))
        marker = given.like("clean_shutdown_file")
        loss = given["broker_100_loses"] if "broker_100_loses" in given else given["broker_100_tail_lost"]
        if marker != "deleted" or loss not in ("half its log", *range(records + 1)):
            raise TableError(f"loss of {loss!r} with the clean-shutdown file {marker!r} is not understood")
        self.cluster.lose_tail(1, records // 2 if isinstance(loss, str) else loss)

    def start(self, op: Fields) -> None:
        """Start a broker."""
        self.cluster.start(_number(op["broker"]))

    def stop(self, op: Fields) -> None:
        """Shut a broker down."""
        self.cluster.stop(_number(op["broker"]))

    def produce(self, op: Fields) -> None:
        """Batches of one record."""
        self.cluster.write(op["n"])

    def produce_batches(self, op: Fields) -> None:
        """Write two batches; compression makes no difference here."""
        self.cluster.write(2, op["records_each"])

    def bounce_leader(self, _: Any) -> None:
        """Restart the leader."""
        self.cluster.bounce(self.cluster.leader)

    def bounce_follower(self, _: Any) -> None:
        """Restart the follower."""
        self.cluster.bounce(next(broker for broker in self.brokers if broker != self.cluster.leader))

    def repeat(self, op: Fields) -> None:
        """Repeat named steps."""
        steps = {
            "produce": lambda count: self.cluster.write(int(count)),
            "bounce follower": self.bounce_follower,
            "bounce leader": self.bounce_leader,
        }
        for _ in range(op["times"]):
            for step in op["steps"]:
                verb, _, count = step.rpartition(" ") if step[-1].isdigit() else (step, "", "")
                if verb not in steps:
                    raise TableError(f"unknown step {step!r}")
                steps[verb](count)
        self.cluster.quiet()

    def observe(self) -> Seen:
        """The logs of the brokers that run."""
        partitions = {
            broker: self.cluster.partition(broker) for broker in self.brokers if broker in self.cluster.cluster.running
        }
        logs = {repr(partition.log.batches) for partition in partitions.values()}
        ends = {partition.log.leo for partition in partitions.values()}
        ascending = {broker for broker, partition in partitions.items() if not partition.log.overlaps()}
        leader = partitions.get(self.cluster.leader)
        followers = [partition for partition in partitions.values() if partition is not leader]
        return Seen(
            record_epoch=leader.log.batches[-1].leader_epoch if leader and leader.log.batches else None,
            leader_cache=leader.epochs.entries if leader else None,
            follower_cache=followers[0].epochs.entries if len(followers) == 1 else None,
            logs_identical=len(partitions) == len(self.brokers) and len(logs) == 1,
            both_leo_equal_records_written=ends == {self.cluster.written},
            offsets_strictly_increasing_on=Matching(ascending, lambda broker: _number(broker) in ascending),
        )


KIND = Kind(
    begin=Acceptance,
    ops={
        "start": Acceptance.start,
        "stop": Acceptance.stop,
        "produce": Acceptance.produce,
        "produce_two_compressed_batches": Acceptance.produce_batches,
        "bounce_leader": Acceptance.bounce_leader,
        "bounce_follower": Acceptance.bounce_follower,
        "repeat": Acceptance.repeat,
        "run_until_quiet": lambda state, _: state.cluster.quiet(),
    },
    observe=Acceptance.observe,
)
