"""Runs a sweep in processes of this machine, without Spark."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Final

from scenarios import store
from scenarios.run import prepare_process
from scenarios.units import rows_of
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection
    from pathlib import Path

TRIES: Final = 4
"""How often a wave is taken up after a worker was killed."""
POLL_SECONDS: Final = 0.2


class LocalBackend:
    """A pool of worker processes.

    Workers are spawned, so nothing of the driver's state leaks into a run. They end when their pipe to the driver
    closes: at once when the sweep is stopped, and also when the driver is killed.

    Args:
        workers: how many processes.
    """

    name = "local"

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None
        self._lifeline: Connection | None = None

    def start(self, poll: Callable[[], None]) -> int:
        """Start the pool (the processes come with the first chunks); see `scenarios.sweep.Backend`."""
        poll()
        self._open()
        return self._workers

    def _open(self) -> ProcessPoolExecutor:
        end, self._lifeline = multiprocessing.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(
            self._workers, multiprocessing.get_context("spawn"), initializer=_begin_worker, initargs=(end,)
        )
        return self._pool

    def run_wave(self, sweep: str, chunks: Sequence[range], folder: Path, tick: Callable[[int], None]) -> None:
        """See `scenarios.sweep.Backend`; a chunk whose worker was killed is done again.

        Raises:
            InputError: workers are killed again and again.
        """
        store.clear(folder)
        left = dict(enumerate(chunks))
        for _ in range(TRIES):
            try:
                return self._run_chunks(sweep, left, folder, lambda: tick(len(chunks) - len(left)))
            except BrokenProcessPool:
                self.close()
                self._open()
        raise InputError(
            f"worker processes were killed {TRIES} times (out of memory?); with fewer of them, the same command goes on"
        )

    def _run_chunks(self, sweep: str, left: dict[int, range], folder: Path, tick: Callable[[], None]) -> None:
        assert self._pool is not None
        tasks = {self._pool.submit(_run_chunk, sweep, units, folder, index): index for index, units in left.items()}
        pending: set[Future[None]] = set(tasks)
        while pending:
            done, pending = wait(pending, POLL_SECONDS, "FIRST_COMPLETED")
            for task in done:
                task.result()
                del left[tasks[task]]
            tick()

    def close(self) -> None:
        """End the workers, whatever they are doing."""
        if self._lifeline is not None:
            self._lifeline.close()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._lifeline = self._pool = None


def _begin_worker(lifeline: Connection) -> None:
    # A terminal sends SIGINT to all; the driver decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    prepare_process()


def _end_with(lifeline: Connection) -> None:
    lifeline.poll(None)
    os._exit(1)


def _run_chunk(sweep: str, units: range, folder: Path, index: int) -> None:
    store.write_part(folder, index, list(rows_of(sweep, units)))
