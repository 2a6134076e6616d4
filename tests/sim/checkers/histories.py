"""Facts to judge, made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faults.promise.commitments import Commitments
from faults.promise.promise import Premises
from sim.history import steps
from sim.history.clients import Shown
from sim.history.ends import Ends, IncarnationEnd, Regained
from sim.history.history import History
from sim.history.membership import Membership
from sim.protocol.log.log import Log
from sim.protocol.messages import NONE, ProduceRequest, ProduceResponse
from sim.protocol.modes import MODES
from tests.sim.protocol.recording import Recorder, partition

if TYPE_CHECKING:
    from sim.protocol.batch import Batch
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


def tell(history: History, step: steps.Step, at_us: int) -> None:
    """Something happens, as far as no checker is concerned."""
    step.at_us = at_us
    if step.kind.kept:
        history.steps.append(step)
    for listener in (history.clients, history.commits, history.records):
        if step.kind.number in steps.heard_by(listener):
            step.tell([listener])


def make(history: History, *batches: Batch) -> None:
    """Leaders make batches."""
    for batch in batches:
        tell(history, steps.Append(1, Log(), batch), 0)


def commit(
    history: History,
    batches: list[Batch],
    at_us: int,
    *,
    leader: int = 0,
    isr: tuple[int, ...] = (),
    min_isr: int = 99,
) -> None:
    """A leader's HW passes these batches, by an ISR and a min ISR that it knows."""
    step = steps.HighWatermark(leader, partition(Recorder()), 0)
    step.committed, step.isr, step.min_isr = batches, isr, min_isr
    tell(history, step, at_us)


def ack(history: History, first_id: int, count: int, base_offset: int, at_us: int, *, acks: int = -1) -> None:
    """A producer hears of success."""
    reply = ProduceResponse(ProduceRequest(1001, "t-0", first_id, count, acks), NONE, base_offset)
    tell(history, steps.Ack(reply), at_us)


def acked(*acks: tuple[int, int, int], acks_all: bool = True) -> History:
    """A history with acknowledgements (first id, count, base offset)."""
    history = History()
    for first, count, base in acks:
        ack(history, first, count, base, 5, acks=-1 if acks_all else 1)
    return history


def shown(*reads: tuple[Batch, int]) -> History:
    """A history with batches that a consumer was shown from an offset on."""
    history = History()
    history.clients.shown = [Shown(batch, offset, 5) for batch, offset in reads]
    return history


def membership(history: History) -> Membership:
    """Who was a member, registered and up."""
    found = Membership()
    history.retell([found])
    return found


def commitments(history: History) -> Commitments:
    """When batches were committed, and what that rested upon."""
    members = Membership()
    found = Commitments(members)
    history.retell([members, found])
    return found


def ends(history: History) -> list[IncarnationEnd]:
    """How incarnations ended."""
    members = Membership()
    found = Ends(members)
    history.retell([members, found, Regained(found)])
    return found.ends


def premises(history: History) -> Premises:
    """What any promise depends on."""
    found = Premises()
    history.retell([found])
    return found


def warnings(history: History) -> list[str]:
    """Kinds of the early warnings found."""
    return [warning.kind for warning in history.findings.warnings]


def kinds(history: History) -> list[str]:
    """Kinds of the violations found."""
    return [violation.kind for violation in history.findings.violations]
