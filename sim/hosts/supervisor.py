"""Restarts brokers that exited by themselves, as an init system does."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sim.hosts.settings import BrokerSettings
from sim.kernel.scheduler import ALWAYS, Kernel


class Supervisor:
    """Restarts a broker ``sim.supervisor.restart.ms`` after its exit; `incarnations` counts the processes of each
    broker.
    """

    def __init__(
        self,
        kernel: Kernel,
        settings: Mapping[int, BrokerSettings],
        incarnations: Mapping[int, int],
        start: Callable[[int], object],
    ) -> None:
        self._kernel = kernel
        self._settings = settings
        self._incarnations = incarnations
        self._start = start
        self._refused: dict[int, tuple[int, int]] = {}

    def exited(self, broker: int, *, in_vain: bool) -> None:
        """Schedule a restart after a process exited by itself. If registration would be refused while the old session
        is open, retries are in vain, and elided.
        """
        now_us = self._kernel.now_us
        if in_vain:
            self._refused[broker] = now_us, self._incarnations[broker]
        else:
            self._restart_at(now_us + self._settings[broker].supervisor_us, broker)

    def session_ended(self, broker: int) -> None:
        """Make the next retry, because the old session has ended."""
        exited_us, incarnation = self._refused.pop(broker, (0, 0))
        if incarnation == self._incarnations[broker]:
            settings = self._settings[broker]
            first_us = exited_us + settings.supervisor_us
            period_us = settings.supervisor_us + settings.recovery_us
            missed_us = self._kernel.now_us - settings.recovery_us - first_us
            self._restart_at(first_us + max(0, -(-missed_us // period_us)) * period_us, broker)

    def _restart_at(self, at_us: int, broker: int) -> None:
        at_us = max(at_us, self._kernel.now_us)
        self._kernel.call_at(at_us, ALWAYS, self._restart, (broker, self._incarnations[broker]))

    def _restart(self, entry: tuple[int, int]) -> None:
        broker, incarnation = entry
        if self._incarnations[broker] == incarnation:
            self._start(broker)
