"""The history of a run: by subject, and as kept steps from which labels are computed at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

from sim.history.clients import Clients
from sim.history.commits import Commits
from sim.history.findings import Findings
from sim.history.records import Records
from sim.history.steps import KINDS, METHODS, Listener, Step, places_by_method
from sim.kernel.scheduler import BudgetError

_NOBODY: Final[list[Listener]] = []
_NOT_KEPT: Final = frozenset(kind.number for kind in KINDS if not kind.kept)


class History:
    """The history of one run.

    The record budget limits the records appended to logs, shown to consumers, committed to and replayed from a metadata
    log, or covered by end offsets that went back; partitions share a `budget`.

    Attributes:
        steps: those of kept kinds, in order.
        clients: what clients were told.
        commits: what leaders' HWs have passed.
        records: what was appended and deleted.
        findings: violations and early warnings so far.
    """

    def __init__(self, record_budget: int = 1_000_000, *, budget: RecordBudget | None = None) -> None:
        self.budget = budget or RecordBudget(record_budget)
        self.steps: list[Step] = []
        self.clients = Clients()
        self.commits = Commits()
        self.records = Records(self.steps)
        self.findings = Findings()

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        self.steps.clear()

    def retell(self, listeners: Sequence[Listener]) -> None:
        """Pass all kept steps to listeners, each step in this order of listeners; they must need no other kinds."""
        told = [_NOBODY] * len(METHODS)
        for number, places in places_by_method(listeners):
            assert number not in _NOT_KEPT
            told[number] = [listeners[place] for place in places]
        for step in self.steps:
            hearing = told[step.kind.number]
            if hearing:
                step.tell(hearing)


class RecordBudget:
    """The rest of ``sim.record.budget``: `left`; below 0 it is used up (`end`)."""

    __slots__ = ("_records", "left")

    def __init__(self, records: int) -> None:
        self._records = self.left = records

    def take(self, records: int, now_us: int) -> None:
        """Count records; raises BudgetError if the budget is used up."""
        self.left -= records
        if self.left < 0:
            self.end(now_us)

    def end(self, now_us: int) -> NoReturn:
        """Raise the BudgetError."""
        raise BudgetError("sim.record.budget", self._records, "records", f"{now_us / 1e6:.6f} s")
