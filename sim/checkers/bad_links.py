"""Counts the faults of links that last, for checkers of what Kafka does once nothing is in its way."""

from __future__ import annotations

from typing import Final

from sim.history import steps

_HELD: Final = (steps.MESSAGE_HELD, steps.MESSAGE_COPIED)


class BadLinks:
    """The faults that last, and the messages that are held back."""

    __slots__ = ("_faults", "_held")

    def __init__(self) -> None:
        self._faults = 0
        self._held = 0

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
        elif step.kind is not steps.MESSAGE_LOST:
            self._faults += 1
