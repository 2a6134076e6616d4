"""The base of checkers: each declares its findings, listens to steps, and has a final check at the end of the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from sim.config import Value
from sim.history.findings import Violation
from sim.history.history import History
from sim.history.steps import Deleted, End, Listener, Recovered
from sim.native import mypyc_attr
from sim.protocol.log.log import Log
from sim.protocol.replica.partition import Partition

ANY_RECORD: Final = "any-record"
"""Covered by a mode's promise if one of its records is."""
ALL_RECORDS: Final = "all-records"
"""Covered if all its records are, except those that retention deleted, or if it has none."""
READABLE: Final = "readable"
"""Covered if one of its records was acknowledged with acks=all; any record counts if the HW waits for min ISR."""
RECORDS_OR_NONE: Final = "records-or-none"
"""As `ANY_RECORD`, and covered if it has none."""
IDEMPOTENT: Final = "idempotent"
"""Covered if brokers keep the state of idempotent producers, unless a record of `Violation.unless_lost` was lost by an
end that the promise excuses.
"""
NEVER_DIVERGES: Final = "never-diverges"
"""Covered unconditionally if the mode promises `Promised.never_diverges` (followers look for the largest common epoch);
otherwise as `ALWAYS`.
"""
ALWAYS: Final = "always"
"""Covered whatever was lost."""
NOT_PROMISED: Final = "not-promised"
"""Never covered: no mode promises it."""


PROMISED: Final = (
    *(ANY_RECORD, ALL_RECORDS, READABLE, RECORDS_OR_NONE),
    *(IDEMPOTENT, NEVER_DIVERGES, ALWAYS, NOT_PROMISED),
)
"""All of them."""


NO_IDS: Final = frozenset[int]()


class Finding:
    """A kind of violation, or of early warning.

    `promised` says when a mode's promise covers it (`faults.promise.promise.Promise.covers`): one of the constants
    above.

    Attributes:
        kind: its name.
        promised: when a mode's promise covers it: a word of `PROMISED`.
        is_warning: whether it is an early warning.
    """

    __slots__ = ("is_warning", "kind", "promised")

    def __init__(self, kind: str, promised: str, *, is_warning: bool = False) -> None:
        self.kind = kind
        self.promised = promised
        self.is_warning = is_warning


def warning(kind: str) -> Finding:
    """An early warning: covered if one of its records is, or if it has none."""
    return Finding(kind, RECORDS_OR_NONE, is_warning=True)


NO_SETTINGS: Final[Mapping[str, Value]] = {}


class RunEnd:
    """The final state of a run: the leader's partition, None without a leader; the logs of all machines; the partitions
    of running replicas, by broker.

    Attributes:
        leader: the leader's partition, None without a leader.
        logs: the logs of all machines.
        live: broker -> partition of its running replica.
        now_us: the time.
        changed: the settings that were changed while the cluster ran, with the value that was acknowledged last.
        in_force: broker -> the settings that it uses for the partition, if the last change has reached it; 0: those of
            the active controller of a quorum.
    """

    def __init__(
        self,
        leader: Partition | None,
        logs: Sequence[Log],
        live: Mapping[int, Partition],
        now_us: int,
        changed: Mapping[str, Value] = NO_SETTINGS,
        in_force: Mapping[int, Mapping[str, Value]] | None = None,
    ) -> None:
        self.leader = leader
        self.logs = logs
        self.live = live
        self.now_us = now_us
        self.changed = changed
        self.in_force: Mapping[int, Mapping[str, Value]] = in_force or {}


@mypyc_attr(allow_interpreted_subclasses=True)
class Checker(Listener):
    """Checks one property of a run's history, which receives findings.

    Attributes:
        decided: whether it has met a case in which the property could have been violated. Otherwise a run without
            findings says nothing about it.
        _history: what is known of the run so far.
    """

    FINDINGS: ClassVar[tuple[Finding, ...]] = ()
    """The kinds of findings it may report."""

    def __init__(self, history: History) -> None:
        self.decided: bool = False
        self._history = history
        self._findings = history.findings

    def final(self, end: RunEnd) -> None:
        """Check the final state."""

    def close(self) -> None:
        """The partition was deleted: no further step is about it."""

    def dispose(self) -> None:
        """See `sim.hosts.cluster.Cluster.dispose`."""

    def _violates(
        self,
        kind: str,
        at_us: int,
        detail: str,
        ids: Iterable[int] = (),
        *,
        unless_lost: frozenset[int] = NO_IDS,
        promised: str = "",
    ) -> None:
        """Report a violation of a kind of `FINDINGS`, about these records; see `Violation`."""
        violation = Violation(
            self._known(kind), at_us, detail, frozenset(ids), unless_lost=unless_lost, promised=promised
        )
        self._findings.violations.append(violation)

    def _warns(self, kind: str, at_us: int, detail: str, ids: Iterable[int] = (), weak: tuple[int, ...] = ()) -> None:
        """Report an early warning of a kind of `FINDINGS`; `weak` are the brokers that it is about."""
        self._findings.warnings.append(Violation(self._known(kind), at_us, detail, frozenset(ids), weak=weak))

    def _known(self, kind: str) -> str:
        if all(finding.kind != kind for finding in self.FINDINGS):
            raise ValueError(f"{type(self).__name__} reports {kind!r}, which is not among its FINDINGS")
        return kind


@mypyc_attr(allow_interpreted_subclasses=True)
class LogsChecker(Checker):
    """Tracks the logs of all brokers, including stopped ones."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self._logs: dict[int, Log] = {}

    def on_recovered(self, step: Recovered) -> None:
        self._logs[step.broker] = step.replica.log

    def on_deleted(self, step: Deleted) -> None:
        self._logs[step.broker] = step.replica.log

    def on_end(self, step: End) -> None:
        # A replaced disk does not show in the old log that its batches are lost.
        log = self._logs.get(step.broker)
        if log is not None and step.lost and log.batches and log.batches[-1] is step.lost[-1]:
            del self._logs[step.broker]
