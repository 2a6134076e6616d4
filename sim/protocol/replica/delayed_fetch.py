"""A fetch that waits at its leader until there is data, leadership changes, or it times out.

Kafka: DelayedFetch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.protocol.messages import FetchRequest
    from sim.protocol.replica.fetch_session import FetchSession


class DelayedFetch:
    """A waiting fetch; see the module.

    Attributes:
        request: the fetch.
        since_us: when it began to wait.
        waits: whether it still does.
        session: its fetch session, if it has one.
    """

    __slots__ = ("request", "session", "since_us", "waits")

    def __init__(self, request: FetchRequest, since_us: int, session: FetchSession | None = None) -> None:
        self.request = request
        self.since_us = since_us
        self.session = session
        self.waits = True
