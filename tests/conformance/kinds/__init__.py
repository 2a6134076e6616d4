"""Drivers by kind of case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.conformance.kinds import (
    acceptance,
    become_follower,
    conversation,
    derived_scenario,
    epoch_request_validation,
    follower_append,
    leader_epoch_cache,
    log_recovery,
    truncation_decision,
)

if TYPE_CHECKING:
    from tests.conformance.driving import Kind

KINDS: Final[dict[str, Kind]] = {
    "leader_epoch_cache": leader_epoch_cache.KIND,
    "conversation": conversation.KIND,
    "truncation_decision": truncation_decision.KIND,
    "epoch_request_validation": epoch_request_validation.KIND,
    "become_follower": become_follower.KIND,
    "follower_append": follower_append.KIND,
    "log_recovery": log_recovery.KIND,
    "acceptance": acceptance.KIND,
    "derived_scenario": derived_scenario.KIND,
}
