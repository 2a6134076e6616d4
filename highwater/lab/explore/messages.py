"""Messages between brokers."""

from __future__ import annotations

from typing import NamedTuple


class Fetch(NamedTuple):
    """A follower's request in flight; it is stale if the follower no longer waits for the response."""

    follower: int
    leader: int
    payload: int
    stale: bool = False
    kind: str = "Fetch"


class Fetched(NamedTuple):
    """A leader's response in flight."""

    follower: int
    leader: int
    payload: int
    kind: str = "Fetched"
