"""The budget of records that a run may handle."""

from __future__ import annotations

from sim.kernel.scheduler import BudgetError


class RecordBudget:
    """The rest of ``sim.record.budget``."""

    def __init__(self, records: int) -> None:
        self._records = self._left = records

    def take(self, records: int, now_us: int) -> None:
        """Count records; raises BudgetError if the budget is used up."""
        self._left -= records
        if self._left < 0:
            raise BudgetError("sim.record.budget", self._records, "records", f"{now_us / 1e6:.6f} s")
