"""How far a follower truncates after an OffsetsForLeaderEpoch response (KIP-101, KIP-279)."""

from __future__ import annotations

from sim.protocol.log.leader_epoch_file_cache import UNDEFINED_EPOCH, UNDEFINED_OFFSET, LeaderEpochFileCache


def truncation_state(
    epochs: LeaderEpochFileCache, leo: int, fetch_offset: int, reply_epoch: int, reply_end: int
) -> tuple[int, bool]:
    """The truncation that follows from a response to OffsetsForLeaderEpoch.

    Kafka: AbstractFetcherThread#getOffsetTruncationState (2.0-4.4), ReplicaFetcherThread#maybeTruncate (1.1-2.0).

    Args:
        epochs: the follower's own cache.
        leo: its LEO.
        fetch_offset: its HW when it became follower, or where the previous round truncated to.
        reply_epoch: epoch in the reply, -1 in version 0 (KIP-101).
        reply_end: end offset in the reply, -1 if undefined.

    Returns:
        (offset to truncate to, whether that completes truncation). If incomplete, ask again with the epoch that is then
        the latest (KIP-279).
    """
    if reply_end == UNDEFINED_OFFSET:
        return min(fetch_offset, leo), True
    if reply_epoch == UNDEFINED_EPOCH:
        return min(reply_end, leo), True
    own_epoch, own_end = epochs.end_offset_for(reply_epoch, leo)
    if own_end == UNDEFINED_OFFSET:
        return min(reply_end, leo), True
    if own_epoch != reply_epoch:
        return min(own_end, leo), False
    return min(own_end, reply_end, leo), True
