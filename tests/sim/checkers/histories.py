"""Facts to judge, made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.history.ledger import Ack, Ledger, Shown
from sim.protocol.modes import MODES
from tests.sim.protocol.recording import Recorder, partition

if TYPE_CHECKING:
    from sim.protocol.batch import Batch
    from sim.protocol.log.log import Log
    from sim.protocol.replica.replica import Replica


def replica(*batches: Batch, hw: int = 0, start: int = 0) -> Replica:
    """A replica with these batches, appended as in 0.10: overlaps and gaps are possible."""
    one = partition(Recorder(), MODES["hw"].rules)
    for batch in batches:
        one.log.append(batch)
    one.set_hw(hw or one.log.leo)
    one.advance_log_start(start)
    return one


def log(*batches: Batch, start: int = 0) -> Log:
    """A log with these batches."""
    return replica(*batches, start=start).log


def make(ledger: Ledger, *batches: Batch) -> None:
    """Tell of batches that leaders have made."""
    ledger.made += batches


def acked(*acks: tuple[int, int, int], acks_all: bool = True) -> Ledger:
    """A ledger with acknowledgements (first id, count, base offset)."""
    ledger = Ledger()
    ledger.acks = [Ack(first, count, base, -1 if acks_all else 1, 5) for first, count, base in acks]
    return ledger


def shown(*reads: tuple[Batch, int]) -> Ledger:
    """A ledger with batches that a consumer was shown from an offset on."""
    ledger = Ledger()
    ledger.shown = [Shown(batch, offset, 5) for batch, offset in reads]
    return ledger


def warnings(ledger: Ledger) -> list[str]:
    """Kinds of the early warnings found."""
    return [warning.kind for warning in ledger.warnings]


def kinds(ledger: Ledger) -> list[str]:
    """Kinds of the violations found."""
    return [violation.kind for violation in ledger.violations]
