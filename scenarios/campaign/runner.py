"""Where cases are judged: in this process, in several of this machine, or on Spark (`scenarios.campaign.spark`)."""

from __future__ import annotations

from collections import deque
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeVar

from scenarios.single.run import prepare_process
from scenarios.sweep.local import TRIES
from scenarios.sweep.workers import Workers
from sim.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future
    from types import TracebackType

T = TypeVar("T")
R = TypeVar("R")
AHEAD: Final = 4
"""Cases of each process that are under way or wait, by default."""


class Runner(Protocol):
    """Judges cases in parallel; a context manager.

    Attributes:
        processes: how many cases are judged at a time.
    """

    processes: int

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...

    def map(self, judge: Callable[[T], R], cases: Iterable[T], ahead: int = AHEAD) -> Iterator[R]:
        """The results, in the order of the cases.

        Args:
            judge: called in a process; it can be pickled.
            cases: each is taken when its turn comes.
            ahead: cases of each process that are under way or wait, at most; 1 if time limits the cases.

        Raises:
            UnavailableError: processes were killed.
        """


class LocalRunner:
    """Some worker processes, or this process if one is enough."""

    def __init__(self, processes: int = 1) -> None:
        self.processes = processes
        self._workers: Workers | None = None
        if processes == 1:
            prepare_process()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._close()

    def map(self, judge: Callable[[T], R], cases: Iterable[T], ahead: int = AHEAD) -> Iterator[R]:
        """See `Runner`; the cases of a process that was killed are judged again, up to `TRIES` times in a row."""
        if self.processes == 1:
            yield from map(judge, cases)
            return
        begun: deque[tuple[T, Future[R]]] = deque()
        killed = 0
        left = iter(cases)
        more = True
        while more or begun:
            try:
                while more and len(begun) < ahead * self.processes:
                    more = False
                    for case in left:
                        begun.append((case, self._submit(judge, case)))
                        more = True
                        break
                if not begun:
                    return
                result = begun[0][1].result()
            except BrokenProcessPool:
                killed += 1
                if killed == TRIES:
                    raise UnavailableError(
                        f"worker processes were killed {TRIES} times (out of memory?); use fewer of them: --local"
                    ) from None
                self._close()
                begun = deque((case, self._submit(judge, case)) for case, _ in begun)
                continue
            killed = 0
            begun.popleft()
            yield result

    def _submit(self, judge: Callable[[T], R], case: T) -> Future[R]:
        if self._workers is None:
            self._workers = Workers(self.processes)
        return self._workers.pool.submit(judge, case)

    def _close(self) -> None:
        if self._workers is not None:
            self._workers.close()
        self._workers = None
