"""ISR membership, registrations and up times of brokers: a listener over the steps of a run.

*Up* is a process that runs with an open session: what Kafka's documentation calls alive.
"""

from __future__ import annotations

from sim.history import steps


class Membership(steps.Listener):
    """Membership so far.

    Attributes:
        isr_history: (time, persisted ISR), beginning with the assignment.
        elr_history: (time, persisted ELR).
        up: broker -> when its process ran with an open session: [(opened, ended or None)].
        registrations: broker -> when its processes registered, while they ran.
    """

    def __init__(self) -> None:
        self.isr_history: list[tuple[int, tuple[int, ...]]] = []
        self.elr_history: list[tuple[int, tuple[int, ...]]] = []
        self.up: dict[int, list[tuple[int, int | None]]] = {}
        self.registrations: dict[int, list[int]] = {}
        self._running: dict[int, int] = {}

    @property
    def isr(self) -> tuple[int, ...]:
        """The persisted ISR; empty before the partition is created."""
        return self.isr_history[-1][1] if self.isr_history else ()

    def runs(self, broker: int, incarnation: int) -> bool:
        """Whether a process runs."""
        return self._running.get(broker) == incarnation

    def on_isr(self, step: steps.Isr) -> None:
        self.isr_history.append((step.at_us, step.isr))

    def on_elr(self, step: steps.Elr) -> None:
        self.elr_history.append((step.at_us, step.elr))

    def on_start(self, step: steps.Start) -> None:
        self._running[step.broker] = step.incarnation

    def on_registered(self, step: steps.Registered) -> None:
        broker = step.broker
        if not self.runs(broker, step.incarnation):
            return
        if step.kind is not steps.UNFENCED:
            self.registrations.setdefault(broker, []).append(step.at_us)
        if step.opens:
            periods = self.up.setdefault(broker, [])
            if not (periods and periods[-1][1] is None):
                periods.append((step.at_us, None))

    def on_session_end(self, step: steps.SessionEnd) -> None:
        self._up_no_more(step)

    def on_end(self, step: steps.End) -> None:
        if not step.was_down:
            self._running.pop(step.broker, None)
            self._up_no_more(step)

    def _up_no_more(self, step: steps.Step) -> None:
        periods = self.up.get(step.broker)
        if periods and periods[-1][1] is None:
            periods[-1] = (periods[-1][0], step.at_us)
