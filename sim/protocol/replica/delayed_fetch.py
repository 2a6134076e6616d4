"""A fetch that waits at its leader until there is data, leadership changes, or it times out.

Kafka: DelayedFetch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.protocol.messages import FetchRequest


class DelayedFetch:
    """A waiting fetch; see the module. `since_us` is when it began to wait, `waits` whether it still does."""

    __slots__ = ("request", "since_us", "waits")

    def __init__(self, request: FetchRequest, since_us: int) -> None:
        self.request = request
        self.since_us = since_us
        self.waits = True
