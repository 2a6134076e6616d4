"""KIP-1303 over KIP-1023: replicas that began at the tiered offset are elected last.

KIP-1023 (4.3, off by default): an empty follower that is out of range begins at the earliest offset that is not yet
uploaded, and so is in the ISR early, with few records of its own. KIP-1303 (under discussion) elects such replicas
after others.

The object store is not modelled: what was uploaded is safe, and no replica has to keep it. Here everything committed
counts as uploaded at once, so the follower begins at the leader's HW, the highest offset at which KIP-1023 lets it. It
need not be empty, only behind the log start; that is the same here, since it drops its log. Which replicas have
few records depends on data that the controller gets from brokers, and that may be out of date. The protocol needs only
that a member of the ISR is elected, whichever: here it is the last one in the order of the assignment, where Kafka
takes the first, and a leader that may stay is not replaced.
"""

from __future__ import annotations

from typing import Final

from highwater.plugin import WITH_KRAFT, Election, Plugin, ReplicaStart, Rule

API_VERSION = 1


def tiered_offset(_: int, at: ReplicaStart) -> int:
    """KIP-1023. Kafka: AbstractFetcherThread#fetchOffsetAndTruncate (4.3)."""
    return max(at.log_start, at.hw)


def others_first(leader: int, at: Election) -> int:
    """KIP-1303, as an order of all members."""
    members = at.isr or at.elr
    if leader not in members:
        return leader
    able = [broker for broker in at.replicas if broker in members and broker in at.candidates]
    return at.leader if at.leader in able else able[-1] if able else leader


MODES: Final = (
    """
schema = 1
name = "kip-1023"
title = "a follower that is out of range begins at the earliest offset that is not yet uploaded"
base = "elr-4.3"
sources = ["KIP-1023"]

[rules]
empty_replica = "tiered-offset"
""",
    """
schema = 1
name = "kip-1303"
title = "kip-1023, and replicas with few records of their own are elected last"
base = "kip-1023"
sources = ["KIP-1303"]

[rules]
election_order = "others-first"
""",
)

SCENARIO: Final = """
schema = 1
name = "tiered-replicas"
title = "Local retention, new disks and moved replicas: followers that begin at the tiered offset, and lead soon after"
description = '''
Five simulated minutes in which the leader deletes old segments, as with local.retention.bytes, brokers get new disks,
replicas are moved, and leaders stop. A new replica is behind the leader's log start, so that KIP-1023 applies to it.
'''
brokers.count = 5
control = "real"

[config]
replica.socket.timeout.ms = 10000
sim.end.offsets.interval.ms = 120000

[draw]
default.replication.factor = [2, 3, 3]
min.insync.replicas = [1, 2, 2]
sim.spare.brokers = [1, 2]
leader.imbalance.check.interval.seconds = [45, 300]

[workload]
bursts = [5, 6]
batches = [5, 7]
gap_ms = [0, 1500]
records = [1, 6]
acks_one_every = 12
near_percent = 80

[faults]
horizon_ms = 300000
count = [7, 10]
kinds = [
    "kill", "power-loss", "controlled-restart", "disk-replaced", "cut", "retention", "reassignment",
    "reassignment-cancel", "session-expiry", "controller-failover", "preferred-election",
]
aimed_percent = 40
burst_percent = 10
standing_percent = 20
moving_percent = 20
restart_ms = [2000, 40000]
cut_ms = [1000, 40000]

[expect]
"elr-4.3" = "may-violate"
"kip-1023" = "may-violate"
"kip-1303" = "may-violate"
"""

PLUGIN: Final = Plugin(
    rules=[
        Rule(
            "empty_replica",
            {"log-start": {}, "tiered-offset": {"replica_start": tiered_offset}},
            meaning="Where a follower begins whose LEO is below the leader's log start: at the leader's log start; or "
            "at the earliest offset that is not yet uploaded.",
            source="KIP-1023",
            where=WITH_KRAFT,
        ),
        Rule(
            "election_order",
            {"assignment": {}, "others-first": {"leader": others_first}},
            meaning="Which member of the ISR, or ELR, is elected: the first of the assignment; or those with few "
            "records of their own last.",
            source="KIP-1303",
            where=WITH_KRAFT,
        ),
    ],
    modes=MODES,
    scenarios=[SCENARIO],
)
