"""What happens to a follower's fetcher when LeaderAndIsr or metadata has another leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.protocol.replica import plugin_points

if TYPE_CHECKING:
    from sim.protocol.decisions import Decisions
    from sim.protocol.messages import LeaderAndIsr


def restarts_fetcher(decide: Decisions, leader: int, leader_epoch: int, decision: LeaderAndIsr) -> bool:
    """Whether a LeaderAndIsr makes a follower truncate and restart fetching.

    Kafka: Partition#makeFollower, ReplicaManager#makeFollowers (0.10.2-4.1), ReplicaManager#applyLocalFollowersDelta
    (3.9-4.4).

    Args:
        decide: its rules, of which ``fetcher_restart`` applies.
        leader: the leader that it followed before, 0 for none.
        leader_epoch: the leader epoch in which it did.
        decision: the LeaderAndIsr, whose leader is another broker.
    """
    is_other = decision.leader != leader
    restarts = decide.fetcher_restart.pick(
        {
            "leader-id-changed": is_other,
            "epoch-missed": is_other or decision.leader_epoch > leader_epoch + 1,
            "newer-epoch": decision.leader_epoch > leader_epoch,
        }
    )
    restarts = plugin_points.fetcher_restart(decide, leader, leader_epoch, decision, restarts)
    continues = decide.mutants.fetch_continues_in_new_epoch.when(restarts and not is_other)
    return restarts and not continues


def stops_fetcher(broker: int, decision: LeaderAndIsr, *, shutting_down: bool) -> bool:
    """Whether a follower that replays another state of its partition stops fetching (in KRaft).

    It stops if there is no leader, or if the broker is shutting down and has left the ISR, which it must not rejoin.
    Kafka: ReplicaManager#applyLocalFollowersDelta (3.9-4.4).
    """
    return decision.leader == 0 or (shutting_down and broker not in decision.isr)
