"""How many records a run may handle."""

from __future__ import annotations

from sim.kernel.scheduler import BudgetError


class RecordBudget:
    """What is left of ``sim.record.budget``.

    Args:
        records: the budget.
    """

    __slots__ = ("_left", "_records")

    def __init__(self, records: int) -> None:
        self._records = self._left = records

    def take(self, records: int, now_us: int) -> None:
        """Count records.

        Raises:
            BudgetError: there are more than a run may have.
        """
        self._left -= records
        if self._left < 0:
            raise BudgetError("sim.record.budget", self._records, "records", f"{now_us / 1e6:.6f} s")
