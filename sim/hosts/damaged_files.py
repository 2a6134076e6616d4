"""Files that are damaged while their broker is down, and repaired if it cannot start with them."""

from __future__ import annotations

from collections.abc import Callable, Container

from sim.environment.file_damage import FileDamage
from sim.hosts.machines import Machines
from sim.protocol.decisions import Decisions


class DamagedFiles:
    """Damages files, at once or when a process ends.

    Args:
        machines: the machines of the brokers.
        running: the brokers that run.
        decisions_of: the rules of a broker's next process.
        shut_down: shuts a broker down in a controlled way; False if none runs.
        start: starts a broker, unless it runs.
    """

    def __init__(
        self,
        machines: Machines,
        running: Container[int],
        decisions_of: Callable[[int], Decisions],
        shut_down: Callable[[int], bool],
        start: Callable[[int], bool],
    ) -> None:
        self._machines = machines
        self._running = running
        self._decisions_of = decisions_of
        self._shut_down = shut_down
        self._start = start
        self._waiting: list[tuple[int, FileDamage]] = []
        """What is damaged when the process of a broker ends."""

    def damage(self, broker: int, damage: FileDamage) -> bool:
        """Damage a file of a broker or of one of its replicas: now if it is down, otherwise at the end of its process,
        which is shut down in a controlled way. Returns whether a process ran, or the next one reads something else.
        """
        if broker in self._running:
            self._waiting.append((broker, damage))
            return self._shut_down(broker)
        return self._machines.damage_file(broker, damage, self._decisions_of(broker))

    def process_ended(self, broker: int) -> None:
        """Damage what waits for the end of this process."""
        if self._waiting:
            for entry in [entry for entry in self._waiting if entry[0] == broker]:
                self._waiting.remove(entry)
                self._machines.damage_file(broker, entry[1], self._decisions_of(broker))

    def repair(self, broker: int, damage: FileDamage) -> None:
        """Remove a half-written file over which a log directory failed, and start the broker, unless it runs with
        another directory: then it is restarted. A file that has not been damaged yet stays as it is.
        """
        self._waiting = [entry for entry in self._waiting if entry[0] != broker or entry[1].by is not damage.by]
        if self._machines.repair_file(broker, damage, self._decisions_of(broker)):
            self._shut_down(broker)
        self._start(broker)
