"""Work of pages in worker processes: few at a time, with a bounded queue, and the last pages kept."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from threading import Lock
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from scenarios.sweep.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T", bound="Hashable")
R = TypeVar("R")
PROCESSES: Final = 2
WAITING: Final = 12
"""Most tasks that are under way or wait."""
KEPT: Final = 64
"""Results that are kept."""
KEPT_BYTES: Final = 1 << 26
"""Their size, together."""
WAIT_S: Final = 2.0
"""Seconds that a request waits for its result; after that the page says that it is being made."""


class BusyError(Exception):
    """Too many tasks wait."""


class Jobs(Generic[T, R]):
    """Tasks and their results.

    Args:
        work: called with a task in a worker process; can be pickled.
        size: the size of a result in bytes.
    """

    def __init__(self, work: Callable[[T], R], size: Callable[[R], int]) -> None:
        self._work = work
        self._size = size
        self._workers: Workers | None = None
        self._under_way: dict[T, Future[R]] = {}
        self._done: OrderedDict[T, R] = OrderedDict()
        self._lock = Lock()

    def result(self, task: T, wait_s: float = WAIT_S) -> R | None:
        """The result of a task, which begins unless it has; None if it is not there within some seconds.

        Raises:
            BusyError: too many tasks wait.
            BrokenProcessPool: its process was killed; it begins anew when it is asked for again.
            Exception: what `work` raised.
        """
        with self._lock:
            if task in self._done:
                self._done.move_to_end(task)
                return self._done[task]
            future = self._begun(task)
        wait([future], wait_s)
        if not future.done():
            return None
        with self._lock:
            if self._under_way.get(task) is future:
                del self._under_way[task]
                if isinstance(future.exception(), BrokenProcessPool):
                    self._end_workers()
                elif future.exception() is None:
                    self._keep(task, future.result())
        return future.result()

    def _begun(self, task: T) -> Future[R]:
        if (there := self._under_way.get(task)) is not None:
            return there
        # What nobody has asked for again does not count.
        if sum(not future.done() for future in self._under_way.values()) >= WAITING:
            raise BusyError
        for old in [known for known, future in self._under_way.items() if future.done()]:
            ended = self._under_way.pop(old)
            if ended.exception() is None:
                self._keep(old, ended.result())
        if self._workers is None:
            self._workers = Workers(PROCESSES, has_numpy=True)
        try:
            future = self._workers.pool.submit(self._work, task)
        except BrokenProcessPool:
            self._end_workers()
            raise
        self._under_way[task] = future
        return future

    def _keep(self, task: T, result: R) -> None:
        self._done[task] = result
        while len(self._done) > KEPT or (len(self._done) > 1 and self._bytes() > KEPT_BYTES):
            self._done.popitem(last=False)

    def _bytes(self) -> int:
        return sum(map(self._size, self._done.values()))

    def _end_workers(self) -> None:
        if self._workers is not None:
            self._workers.close()
        self._workers = None

    def close(self) -> None:
        """End the worker processes at once."""
        with self._lock:
            self._end_workers()
