"""Ends of incarnations: what their logs lost, and when brokers had it again. Listeners over the steps of a run."""

from __future__ import annotations

from sim.history import steps
from sim.history.membership import Membership
from sim.protocol.batch import Batch


class IncarnationEnd:
    """How an incarnation ended.

    Attributes:
        kind: one of `steps.ENDS`.
        lost: first ids of the batches that its log held then and lacks after recovery. Losing one of two copies of a
            record counts.
        in_isr: whether it was in the persisted ISR then.
        unclean: whether it left no clean-shutdown marker with its broker epoch.
        regained: first id -> when the broker had that batch again; filled in by `Regained`.
        forgotten_us: when its session ended, which may be later; None while it is open.
    """

    __slots__ = ("at_us", "broker", "forgotten_us", "in_isr", "kind", "lost", "regained", "unclean")

    def __init__(
        self, broker: int, at_us: int, kind: steps.StepKind, lost: dict[int, Batch], in_isr: bool, unclean: bool = True
    ) -> None:
        self.broker = broker
        self.at_us = at_us
        self.kind = kind
        self.lost = lost
        self.in_isr = in_isr
        self.unclean = unclean
        self.regained: dict[int, int] = {}
        self.forgotten_us: int | None = None


class Ends(steps.Listener):
    """Collects the ends of incarnations, in order. The membership receives each step before this listener.

    Attributes:
        missing: broker -> first id -> the ends that lost that batch, while the broker lacks it.
    """

    def __init__(self, membership: Membership) -> None:
        self.ends: list[IncarnationEnd] = []
        self.missing: dict[int, dict[int, list[IncarnationEnd]]] = {}
        self._membership = membership

    def on_end(self, step: steps.End) -> None:
        """See `End`.

        If a machine loses its page cache or clean-shutdown marker while its process is down, that belongs to the
        process's end.
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

    def on_fact(self, step: steps.Fact) -> None:
        """An unregistered broker's shutdown counts as unclean when it registers again."""
        end = self._last(step.broker) if step.kind is steps.UNREGISTERED else None
        if end is not None:
            end.unclean = True

    def on_session_end(self, step: steps.SessionEnd) -> None:
        last, periods = self._last(step.broker), self._membership.up.get(step.broker)
        opened_us = periods[-1][0] if periods else -1
        if last is not None and last.forgotten_us is None and opened_us <= last.at_us:
            last.forgotten_us = step.at_us

    def _last(self, broker: int) -> IncarnationEnd | None:
        return next((end for end in reversed(self.ends) if end.broker == broker), None)


class Regained(steps.Listener):
    """Records when brokers regain batches that their earlier incarnations lost; `ends` receives each step before this
    listener.
    """

    def __init__(self, ends: Ends) -> None:
        self._ends = ends

    def on_append(self, step: steps.Append) -> None:
        all_missing = self._ends.missing
        if not all_missing:
            return
        missing = all_missing.get(step.broker)
        first_id = step.batch.first_id
        if missing and first_id in missing:
            for end in missing.pop(first_id):
                end.regained[first_id] = step.at_us
