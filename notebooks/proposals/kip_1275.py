"""KIP-1275 beside KIP-966's unclean recovery: an operator's command, where no member of ISR or ELR is left.

KIP-966 (mode ``elr-recovery``) lets the controller look at logs by itself, and with Balanced it waits for every member
of the last known ELR. KIP-1275 (under discussion, KAFKA-20098) leaves such a partition offline until an operator runs a
command, which asks the replicas that are there for their log ends, and has the longest log elected. In the mode the
controller does not recover by itself; the command is a kind of fault, which has no effect while there is a leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from highwater.plugin import CLUSTER, KRAFT, FaultKind, Plugin

if TYPE_CHECKING:
    from highwater.plugin import Cluster, Fault, Targets

API_VERSION = 1


class UncleanRecoveryCommand(FaultKind):
    """Elects the longest log of the replicas that run: by the epoch of its last record, then by its end."""

    name: ClassVar[str] = "unclean-recovery-command"
    meaning: ClassVar[str] = "in KRaft, an operator has the longest log of the running replicas elected if nobody leads"
    targets: ClassVar[Targets] = CLUSTER
    remains: ClassVar[str] = "the leader stays"
    needs: ClassVar[tuple[str, ...]] = (KRAFT,)

    def strike(self, cluster: Cluster, fault: Fault, target: int) -> bool:  # noqa: ARG002 - the whole cluster
        """Ask the running replicas, and elect."""
        found = []
        for broker in cluster.replicas:
            process = cluster.running.get(broker)
            partition = None if process is None else process.partition
            if partition is not None:
                latest = partition.epochs.latest
                found.append((-1 if latest is None else latest, partition.log.leo, -broker))
        return bool(found) and cluster.control.elect_leader("DESIGNATED", -max(found)[2])


MODE: Final = """
schema = 1
name = "kip-1275"
title = "elr-recovery, but the controller recovers no partition by itself: an operator's command does"
base = "elr-recovery"
sources = ["KIP-1275", "KAFKA-20098"]

[rules]
unclean_recovery = "election"
"""

SCENARIO: Final = """
schema = 1
name = "operators-recover"
title = "The last members of ISR and ELR are lost, and operators run the command of KIP-1275"
description = '''
As elr-chaos: the ISR shrinks to one replica, which is then struck. Again and again an operator runs the command of
KIP-1275; while there is a leader it has no effect. Unclean election is off.
'''
brokers.count = 5
control = "real"

[config]
replica.socket.timeout.ms = 10000
sim.end.offsets.interval.ms = 120000

[draw]
default.replication.factor = [3, 3, 3, 5]
min.insync.replicas = [2, 2, 3]
unclean.recovery.timeout.ms = [10000, 300000]

[workload]
bursts = [5, 5]
batches = [5, 7]
gap_ms = [0, 500]
records = [1, 6]
acks_one_every = 12
near_percent = 80

[faults]
horizon_ms = 300000
count = [6, 9]
kinds = [
    "kill", "power-loss", "controlled-restart", "disk-replaced", "cut", "session-expiry", "controller-failover",
    "unclean-recovery-command",
]
aimed_percent = 30
burst_percent = 20
standing_percent = 50
restart_ms = [5000, 90000]
cut_ms = [1000, 40000]

[expect]
elr-recovery = "may-violate"
"kip-1275" = "may-violate"
"elr-4.3" = "may-violate"
"""

PLUGIN: Final = Plugin(modes=[MODE], faults=[UncleanRecoveryCommand], scenarios=[SCENARIO])
