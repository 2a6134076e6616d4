"""Runs a sweep in processes of this machine, without Spark."""

from __future__ import annotations

from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Final

from scenarios.sweep import parts
from scenarios.sweep.units import rows_of
from scenarios.sweep.workers import Workers
from sim.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from scenarios.sweep.driver import Tick, WavePlan
    from scenarios.sweep.extent import Piece
    from scenarios.sweep.folder import Folder

TRIES: Final = 4
"""Attempts at a wave whose workers are killed."""
POLL_SECONDS: Final = 0.2


class LocalBackend:
    """A pool of worker processes."""

    name = "local"
    copies = None

    def __init__(self, workers: int) -> None:
        self._number = workers
        self._workers: Workers | None = None

    def start(self, folder: Folder, poll: Callable[[], None]) -> int:  # noqa: ARG002 - workers can write where the driver can
        """Start the pool (processes start with the first chunks); see `scenarios.sweep.driver.Backend`."""
        poll()
        self._workers = Workers(self._number)
        return self._number

    def run_waves(self, sweep: str, folder: Folder, plans: Iterator[WavePlan], tick: Tick) -> Iterator[WavePlan]:
        """See `scenarios.sweep.driver.Backend`; a chunk whose worker was killed is repeated, up to `TRIES` times in a
        row.
        """
        begun: list[_RunningWave] = []
        killed = 0

        def begin(wave: _RunningWave) -> None:
            assert self._workers is not None
            plan = wave.plan
            for index in wave.left:
                task = self._workers.pool.submit(
                    _run_chunk, sweep, folder, plan.wave, index, plan.chunks[index], plan.task_seconds
                )
                wave.tasks[task] = index

        while True:
            try:
                # Tasks of the next wave fill idle workers.
                while len(begun) < 2 and (not begun or len(begun[-1].left) <= self._number):
                    if (plan := next(plans, None)) is None:
                        break
                    begun.append(_RunningWave(plan))
                    begin(begun[-1])
                if not begun:
                    return
                wait([task for wave in begun for task in wave.tasks], POLL_SECONDS, "FIRST_COMPLETED")
                for wave in begun:
                    wave.collect()
            except BrokenProcessPool:
                killed += 1
                if killed == TRIES:
                    raise UnavailableError(
                        f"worker processes were killed {TRIES} times (out of memory?); with fewer of them, the same "
                        "command resumes the sweep"
                    ) from None
                self.close()
                self._workers = Workers(self._number)
                for wave in begun:
                    wave.tasks.clear()
                    begin(wave)
            tick((wave.plan, len(wave.plan.chunks) - len(wave.left)) for wave in begun)
            while begun and not begun[0].left:
                killed = 0
                yield begun.pop(0).plan

    def close(self) -> None:
        """End the workers at once."""
        if self._workers is not None:
            self._workers.close()
        self._workers = None


def _run_chunk(sweep: str, folder: Folder, wave: str, index: int, pieces: Sequence[Piece], seconds: float) -> None:
    parts.write_part(folder, wave, index, list(rows_of(sweep, pieces, seconds)))


class _RunningWave:
    """A running wave: its unfinished chunks, and their tasks."""

    def __init__(self, plan: WavePlan) -> None:
        self.plan = plan
        self.left = set(range(len(plan.chunks)))
        self.tasks: dict[Future[None], int] = {}

    def collect(self) -> None:
        """Note finished chunks; raises a task's exception."""
        for task in [task for task in self.tasks if task.done()]:
            task.result()
            self.left.remove(self.tasks.pop(task))
