"""Calls a function for many items, in this process or in several."""

from __future__ import annotations

from collections import deque
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Final, Self, TypeVar

from scenarios.single.run import prepare_process
from scenarios.sweep.workers import Workers
from sim.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future
    from types import TracebackType

T = TypeVar("T")
R = TypeVar("R")
AHEAD: Final = 4
"""Items of each process that are under way or wait, by default."""


class Pool:
    """Some worker processes, or none if one is enough; a context manager."""

    def __init__(self, processes: int = 1) -> None:
        self.processes = processes
        self._workers = Workers(processes) if processes > 1 else None
        if self._workers is None:
            prepare_process()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._workers is not None:
            self._workers.close()

    def map(self, function: Callable[[T], R], items: Iterable[T], ahead: int = AHEAD) -> Iterator[R]:
        """The results, in the order of the items.

        Args:
            function: called in a process.
            items: each is taken when its turn comes.
            ahead: items of each process that are under way or wait, at most; 1 if time limits the items.

        Raises:
            UnavailableError: a worker process was killed.
        """
        if self._workers is None:
            yield from map(function, items)
            return
        begun: deque[Future[R]] = deque()
        try:
            for item in items:
                begun.append(self._workers.pool.submit(function, item))
                if len(begun) >= ahead * self.processes:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        except BrokenProcessPool:
            raise UnavailableError("a worker process was killed (out of memory?); use fewer of them: --local") from None
