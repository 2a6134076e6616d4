"""What every checker is: it says what it may find, is told of steps, and has a last look when the run has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from sim.history.findings import Violation
from sim.history.history import History
from sim.history.steps import Listener
from sim.protocol.log.log import Log
from sim.protocol.replica.partition import Partition

ANY_RECORD: Final = "any-record"
"""Inside the promise of a mode if one of the records concerned is, which it names."""
ALL_RECORDS: Final = "all-records"
"""Inside if all records concerned are, but for those that retention had deleted; or if it names none."""
READABLE: Final = "readable"
"""Inside if one of the records concerned is that consumers may rely on: acknowledged with acks=all, or any if the HW
waits for min ISR.
"""
RECORDS_OR_NONE: Final = "records-or-none"
"""As `ANY_RECORD`, and inside if it names none."""
IDEMPOTENT: Final = "idempotent"
"""Inside if brokers remember what idempotent producers have sent."""
NEVER_DIVERGES: Final = "never-diverges"
"""Inside whatever happens, if followers look for the largest common epoch; else always inside."""
ALWAYS: Final = "always"
"""Inside, whatever was lost."""
NOT_PROMISED: Final = "not-promised"
"""Outside: no mode promises it."""


class Finding:
    """A kind of violation, or of early warning.

    Args:
        kind: its name.
        promised: when a mode's promise covers it (`faults.promise.promise.Promise.covers`): one of the words above.
        is_warning: whether it is an early warning.
    """

    __slots__ = ("is_warning", "kind", "promised")

    def __init__(self, kind: str, promised: str, *, is_warning: bool = False) -> None:
        self.kind = kind
        self.promised = promised
        self.is_warning = is_warning


def warning(kind: str) -> Finding:
    """An early warning: inside if one of its records is, or if it names none."""
    return Finding(kind, RECORDS_OR_NONE, is_warning=True)


class RunEnd:
    """What there is when a run has ended.

    Args:
        leader: the leader's partition, None without one.
        logs: of all machines.
        live: partitions of the replicas that run, by broker.
        now_us: when that is.
    """

    __slots__ = ("leader", "live", "logs", "now_us")

    def __init__(
        self, leader: Partition | None, logs: Sequence[Log], live: Mapping[int, Partition], now_us: int
    ) -> None:
        self.leader = leader
        self.logs = logs
        self.live = live
        self.now_us = now_us


class Checker(Listener):
    """Looks for one thing.

    Args:
        history: what is known; where findings go.
    """

    __slots__ = ("_findings",)

    FINDINGS: ClassVar[tuple[Finding, ...]] = ()
    """What it may find."""

    def __init__(self, history: History) -> None:
        self._findings = history.findings

    def final(self, end: RunEnd) -> None:
        """The run has ended."""

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""

    def _violates(self, kind: str, at_us: int, detail: str, ids: frozenset[int] = frozenset()) -> None:
        self._findings.violations.append(Violation(kind, at_us, detail, ids))

    def _warns(self, kind: str, at_us: int, detail: str, ids: frozenset[int] = frozenset()) -> None:
        self._findings.warnings.append(Violation(kind, at_us, detail, ids))
