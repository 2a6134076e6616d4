"""Drivers by kind of case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.verification.conformance.kinds import (
    acceptance,
    alter_partition_sender,
    become_follower,
    consumer_truncation,
    conversation,
    derived_scenario,
    epoch_request_validation,
    follower_append,
    hw_checkpoint,
    leader_epoch_cache,
    leader_reply_to_fetch,
    leadership,
    log_recovery,
    partition_change,
    quorum,
    raft,
    raft_client,
    raft_parts,
    requests_that_wait,
    stop_replica,
    truncation_decision,
    zk_leader_election,
)

if TYPE_CHECKING:
    from tests.verification.conformance.driving import Kind

KINDS: Final[dict[str, Kind]] = {
    "leader_epoch_cache": leader_epoch_cache.KIND,
    "conversation": conversation.KIND,
    "truncation_decision": truncation_decision.KIND,
    "epoch_request_validation": epoch_request_validation.KIND,
    "leader_reply_to_fetch": leader_reply_to_fetch.KIND,
    "become_follower": become_follower.KIND,
    "follower_append": follower_append.KIND,
    "log_recovery": log_recovery.KIND,
    "acceptance": acceptance.KIND,
    "derived_scenario": derived_scenario.KIND,
    "stop_replica": stop_replica.KIND,
    **dict.fromkeys(
        (
            "follower_state",
            "isr_expand",
            "isr_shrink",
            "alter_partition_error",
            "hw_rule",
            "min_isr",
            "make_leader",
            "list_offsets",
        ),
        leadership.KIND,
    ),
    **dict.fromkeys(("fetch_fencing", "acks"), requests_that_wait.KIND),
    "hw_checkpoint": hw_checkpoint.KIND,
    "alter_partition_sender": alter_partition_sender.KIND,
    "zk_leader_election": zk_leader_election.KIND,
    "position_state": consumer_truncation.POSITION,
    **dict.fromkeys(("validation_flow", "fetch_flow", "epoch_reply_handling"), consumer_truncation.FLOW),
    "derived_hole": consumer_truncation.HOLE,
    "partition_change": partition_change.KIND,
    **dict.fromkeys(("controller_scenario", "alter_partition_validation"), quorum.KIND),
    "quorum_state": raft.MEMBER,
    "leader_state": raft.LEADER,
    "raft_client": raft_client.KIND,
    "raft_log": raft_parts.LOG,
    "batch_accumulator": raft_parts.ACCUMULATOR,
    "request_manager": raft_parts.REQUESTS,
    "epoch_election": raft_parts.ELECTION,
    "purgatory": raft_parts.PURGATORY,
    "deferred_events": raft_parts.DEFERRED,
}
