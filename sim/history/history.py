"""What is known of a run: by subject, and as the steps from which labels are worked out when it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sim.history.budget import RecordBudget
from sim.history.clients import Clients
from sim.history.commits import Commits
from sim.history.findings import Findings
from sim.history.records import Records
from sim.history.steps import KINDS, METHODS, Listener, Step, heard_by

_NOT_KEPT: Final = frozenset(kind.number for kind in KINDS if not kind.kept)


class History:
    """What happened in one run.

    Args:
        record_budget: records that may be appended to logs, shown to consumers, committed to a metadata log and
            replayed from it, and that end offsets which went back may be about.

    Attributes:
        budget: what is left of that.
        steps: those of which the kind is kept, in order.
        clients: what clients know.
        commits: what was committed.
        records: what was made and deleted.
        findings: what checkers found.
    """

    __slots__ = ("budget", "clients", "commits", "findings", "records", "steps")

    def __init__(self, record_budget: int = 1_000_000) -> None:
        self.budget = RecordBudget(record_budget)
        self.steps: list[Step] = []
        self.clients = Clients()
        self.commits = Commits()
        self.records = Records(self.steps)
        self.findings = Findings()

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""
        self.steps.clear()

    def retell(self, listeners: Sequence[Listener]) -> None:
        """Tell listeners of all that was kept, step by step, in this order; they ask for nothing else."""
        told: list[list[Listener]] = [[] for _ in METHODS]
        for listener in listeners:
            for number in heard_by(listener):
                assert number not in _NOT_KEPT
                told[number].append(listener)
        for step in self.steps:
            hearing = told[step.kind.number]
            if hearing:
                step.tell(hearing)
