"""What reading a metadata log showed: notes for the user."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

NOTES_MOST: Final = 100
"""Notes of each kind that are kept; more are counted."""


@dataclass(slots=True)
class Notes:
    """Sentences about what is missing or strange.

    Attributes:
        gaps: what is missing, so that the final state is not known for certain.
        others: what does not change the final state.
        more: how many are not kept.
    """

    gaps: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    more: int = 0

    def gap(self, text: str) -> None:
        """Note something that is missing in the state."""
        self._add(self.gaps, text)

    def note(self, text: str) -> None:
        """Note something else."""
        self._add(self.others, text)

    def _add(self, kept: list[str], text: str) -> None:
        if len(kept) < NOTES_MOST:
            kept.append(text)
        else:
            self.more += 1

    @property
    def all(self) -> list[str]:
        """All sentences."""
        more = [f"and {self.more:,} more of these notes"] if self.more else []
        return [*self.gaps, *self.others, *more]
