"""Numbers for values: a state of a cluster is kept as a few of them."""

from __future__ import annotations

from typing import Any


class InternTable:
    """Distinct values, numbered in the order in which they were first seen.

    Attributes:
        values: the values, by number.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """The number of a value."""
        known = self._numbers.get(value)
        if known is None:
            known = self._numbers[value] = len(self.values)
            self.values.append(value)
        return known

    def __getitem__(self, number: int) -> Any:
        return self.values[number]

    def __len__(self) -> int:
        return len(self.values)
