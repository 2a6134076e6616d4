"""Differences of two logs, in the terms of the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.protocol.log.log import Log


def _records(log: Log) -> dict[int, int]:
    return {batch.base_offset + place: record for batch in log.batches for place, record in enumerate(batch.ids())}


def _span(offsets: list[int]) -> list[int] | None:
    return [min(offsets), max(offsets)] if offsets else None


def diverged_range(leader: Log, follower: Log) -> list[int] | None:
    """First and last offset at which both logs have records, but different ones."""
    theirs, own = _records(leader), _records(follower)
    return _span([offset for offset in theirs.keys() & own.keys() if theirs[offset] != own[offset]])


def hole(leader: Log, follower: Log) -> list[int] | None:
    """First and last offset below the follower's last record that only the leader has."""
    theirs, own = _records(leader), _records(follower)
    return _span([offset for offset in theirs.keys() - own.keys() if offset < max(own, default=0)])
