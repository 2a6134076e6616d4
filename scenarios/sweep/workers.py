"""Worker processes that end with their parent."""

from __future__ import annotations

import copyreg
import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType, TracebackType
from typing import Any, Self

from faults.plan import Plan
from scenarios import memory, plugged
from scenarios.format.plugins import ensure
from scenarios.single.run import prepare_process
from scenarios.spared import spare
from sim.environment.topology import Topology
from sim.protocol.modes import Mode, Promised


def _call(frozen: Any) -> tuple[type, tuple[object, ...]]:
    """The call that makes an equal one. Pickle assigns to attributes, which a compiled frozen class refuses."""
    return type(frozen), tuple([getattr(frozen, field.name) for field in fields(frozen)])


for _kind in (Mode, Plan, Promised, Topology):
    copyreg.pickle(_kind, _call)  # Also for Spark's pickler.


class Workers:
    """A pool of worker processes, which start on demand; a context manager.

    Processes are spawned, so no state of this process leaks into a run. They end when their pipe to it closes: when the
    pool is closed, and also when this process is killed. Those that only run seeds need no numpy (`has_numpy`).
    """

    def __init__(self, number: int, *, has_numpy: bool = False) -> None:
        end, self._lifeline = multiprocessing.Pipe(duplex=False)
        spared = ("pandas",) if has_numpy else ("numpy", "pandas")
        arguments = (end, plugged.shipped(), spared)
        self.pool = ProcessPoolExecutor(number, _Context(), initializer=_begin, initargs=arguments)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the processes at once."""
        self._lifeline.close()
        self.pool.shutdown(wait=True, cancel_futures=True)


class _Process(SpawnProcess):
    def start(self) -> None:
        """Start without importing the main script, and without SIGINT.

        A spawned process imports the main script; a script that starts workers itself, as users of the library write
        them, would start them again in each. The parent handles Ctrl-C, which a terminal sends to all processes.
        """
        script = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            sys.modules["__main__"] = script

    def run(self) -> None:
        """Run; out of memory, exit silently, as if killed."""
        try:
            super().run()
        except Exception as error:
            if memory.is_lacking(error):
                os._exit(1)
            raise


class _Context(SpawnContext):
    Process = _Process


def _begin(lifeline: Connection, plug_ins: list[dict[str, Any]], spared: tuple[str, ...]) -> None:
    # The parent handles Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    if plug_ins:
        ensure(plug_ins)
    spare(*spared)
    prepare_process()


def _end_with(lifeline: Connection) -> None:
    lifeline.poll(None)
    os._exit(1)
