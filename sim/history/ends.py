"""How incarnations ended, what of their logs went with them, and when it came back: folds over the steps of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from sim.history import steps
from sim.history.membership import Membership
from sim.protocol.batch import Batch


@dataclass(slots=True)
class IncarnationEnd:
    """How an incarnation ended.

    Attributes:
        broker: its id.
        at_us: when.
        kind: one of `steps.ENDS`.
        lost: first ids of the batches that its log held then and lacks after recovery. A record that was appended
            twice is lost with either copy.
        in_isr: whether the persisted ISR held it then.
        unclean: whether no clean-shutdown marker that carries its broker epoch is left.
        regained: first id -> when the broker had that batch again, as far as `Regained` was told.
        forgotten_us: when its session ended, which may be later; None as long as it is open.
    """

    broker: int
    at_us: int
    kind: steps.StepKind
    lost: dict[int, Batch]
    in_isr: bool
    unclean: bool = True
    regained: dict[int, int] = field(default_factory=dict)
    forgotten_us: int | None = None


class Ends(steps.Listener):
    """Ends of incarnations, as far as it was told.

    Args:
        membership: what is told of each step before.

    Attributes:
        ends: in order.
        missing: broker -> first id -> ends that lost that batch, until the broker has it again.
    """

    __slots__ = ("_membership", "ends", "missing")

    def __init__(self, membership: Membership) -> None:
        self.ends: list[IncarnationEnd] = []
        self.missing: dict[int, dict[int, list[IncarnationEnd]]] = {}
        self._membership = membership

    def on_end(self, step: steps.End) -> None:
        """See `End`.

        A machine whose process was down already may lose its page cache, or its clean-shutdown marker: that belongs to
        the process's end.
        """
        broker, lost = step.broker, {batch.first_id: batch for batch in step.lost}
        if step.was_down:
            end = self._last(broker)
            if end is None:
                return
            end.unclean = end.unclean or step.unclean
            end.lost.update(lost)
        else:
            in_isr = broker in self._membership.isr
            end = IncarnationEnd(broker, step.at_us, step.kind, lost, in_isr, step.unclean)
            self.ends.append(end)
        for first in lost:
            self.missing.setdefault(broker, {}).setdefault(first, []).append(end)

    def on_session_end(self, step: steps.SessionEnd) -> None:
        """See `SessionEnd`: it may be that of an incarnation that is over."""
        last, periods = self._last(step.broker), self._membership.up.get(step.broker)
        opened_us = periods[-1][0] if periods else -1
        if last is not None and last.forgotten_us is None and opened_us <= last.at_us:
            last.forgotten_us = step.at_us

    def _last(self, broker: int) -> IncarnationEnd | None:
        return next((end for end in reversed(self.ends) if end.broker == broker), None)


class Regained(steps.Listener):
    """Notes when brokers have again what ends of their incarnations lost.

    Args:
        ends: what is told of each step before.
    """

    __slots__ = ("_ends",)

    def __init__(self, ends: Ends) -> None:
        self._ends = ends

    def on_append(self, step: steps.Append) -> None:
        """See `Append`."""
        all_missing = self._ends.missing
        if not all_missing:
            return
        missing = all_missing.get(step.broker)
        first_id = step.batch.first_id
        if missing and first_id in missing:
            for end in missing.pop(first_id):
                end.regained[first_id] = step.at_us
