"""Counts the faults of links that last, for checkers of what Kafka does once nothing is in its way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sim.history import steps

_HELD: Final = (steps.MESSAGE_HELD, steps.MESSAGE_COPIED)


class BadLinks:
    """The faults that last, and the messages that are held back."""

    __slots__ = ("_faults", "_held", "_lasting")

    def __init__(self) -> None:
        self._faults = 0
        self._held = 0
        self._lasting: dict[tuple[int, int], int] = {}
        """(source, target) -> number of its faults that last."""

    def are_between(self, nodes: Sequence[int], others: Sequence[int]) -> bool:
        """Whether a message is held back, or a link between one of these nodes and one of the others is bad."""
        if not (self._faults or self._held):
            return False
        return self._held > 0 or any(
            (source in nodes and target in others) or (source in others and target in nodes)
            for source, target in self._lasting
        )

    @property
    def are_present(self) -> bool:
        """Whether a link is cut, slow or loses messages, or a message is held back."""
        return self._faults > 0 or self._held > 0

    def note(self, step: steps.LinkChange) -> None:
        """A link changed."""
        if step.kind in _HELD:
            self._held += 1
        elif step.kind is steps.MESSAGE_LATE:
            self._held -= self._held > 0
        elif step.kind is steps.HEAL:
            self._faults -= 1
            link = step.broker, step.offset
            self._lasting[link] = lasting = self._lasting.get(link, 0) - 1
            if not lasting:
                del self._lasting[link]
        elif step.kind is not steps.MESSAGE_LOST:
            self._faults += 1
            link = step.broker, step.offset
            self._lasting[link] = self._lasting.get(link, 0) + 1
