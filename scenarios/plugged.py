"""The plug-ins that are loaded in this process; `scenarios.format.plugins` loads them."""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import FrameType
from typing import Any, Final

from sim.errors import PluginError, PluginHangsError

GROUP: Final = "highwater.plugins"
"""The entry point group of installed plug-ins."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A plug-in.

    Attributes:
        name: the name of its module; that of a file is without ``.py``.
        word: how --plugin named it; empty if it was found by entry point.
        hash: of its sources (16 hex digits).
        sources: file -> content: one for a file, the Python and TOML files of a module.
        shipped: whether worker processes get the content, because it is a single file; others import the module.
    """

    name: str
    word: str
    hash: str
    sources: dict[str, str]
    shipped: bool

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which a worker process loads the same."""
        sources = self.sources if self.shipped else {}
        return {"name": self.name, "word": self.word, "hash": self.hash, "sources": sources, "shipped": self.shipped}


LOADED: Final[dict[str, Loaded]] = {}
"""Name -> plug-in, in the order in which they were loaded."""


def are_installed() -> bool:
    """Whether an installed package has a plug-in as entry point, in 2 ms: importing `importlib.metadata` takes 50."""
    for folder in map(Path, sys.path):
        with suppress(OSError):
            for entry in folder.iterdir():
                if entry.suffix in (".dist-info", ".egg-info"):
                    with suppress(OSError, UnicodeDecodeError):
                        if f"[{GROUP}]" in (entry / "entry_points.txt").read_text("utf-8"):
                            return True
    return False


def shipped() -> list[dict[str, Any]]:
    """The loaded plug-ins as plain data."""
    return [plugin.to_json() for plugin in LOADED.values()]


def hashes() -> dict[str, str]:
    """Name -> hash of the loaded plug-ins."""
    return {plugin.name: plugin.hash for plugin in LOADED.values()}


def options() -> list[str]:
    """The words of a command line that loads the same."""
    return [word for plugin in LOADED.values() if plugin.word for word in ("--plugin", plugin.word)]


def command(words: Iterable[str]) -> str:
    """A command line of Highwater, which loads the same plug-ins: what is copied from output has to be complete."""
    return shlex.join(["highwater", *words, *options()])


def remembered() -> list[str]:
    """`options`, with absolute paths: for a command line that is run again in another folder."""
    return [str(Path(word).absolute()) if word.endswith(".py") else word for word in options()]


def hash_of(sources: dict[str, str]) -> str:
    """The hash of a plug-in's sources."""
    digest = hashlib.blake2b(digest_size=8)
    for file, content in sorted(sources.items()):
        encoded = content.encode()
        digest.update(f"{PurePath(file).name} {len(encoded)}\n".encode() + encoded)
    return digest.hexdigest()


def culprit(error: BaseException) -> str:
    """The line of a plug-in that an exception is due to, as `last_line`; empty if it is due to none."""
    if isinstance(error, KeyboardInterrupt | MemoryError):
        return ""
    if isinstance(error, PluginError) and error.where:
        return error.where
    return last_line(error)


def last_line(error: BaseException, plug_ins: Iterable[Loaded] | None = None) -> str:
    """The last line of a plug-in's code that an exception came from, as ``FILE:LINE in FUNCTION: TEXT``; or empty.

    Args:
        error: the exception.
        plug_ins: the plug-ins; None: those that are loaded.
    """
    among = LOADED.values() if plug_ins is None else plug_ins
    own = {file: content for plugin in among for file, content in plugin.sources.items()}
    for frame in reversed(traceback.extract_tb(error.__traceback__) if own else []):
        if frame.filename in own and frame.lineno is not None:
            lines = own[frame.filename].splitlines()
            text = lines[frame.lineno - 1].strip() if frame.lineno <= len(lines) else ""
            return f"{PurePath(frame.filename).name}:{frame.lineno} in {frame.name}: {text}"
    return ""


# Functions that end the process.

_ENDING: Final = ("_exit", "abort", *(name for name in dir(os) if name.startswith("exec")))
_watched: Final[set[str]] = set()
"""Files of plug-ins, which must not end the process."""


def watch(files: Iterable[str]) -> None:
    """Make functions of `os` that end or replace the process raise PluginError where these files call them."""
    if not _watched:
        for name in _ENDING:
            setattr(os, name, _refusing(name, getattr(os, name)))
    _watched.update(files)


def _refusing(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        if sys._getframe(1).f_code.co_filename in _watched:  # noqa: SLF001
            raise PluginError(f"os.{name} would end the process")
        return real(*given, **named)

    return call


# Functions that do not return.

TICK_S: Final = 10.0
"""CPU time between two looks at the stack of a run with plug-ins."""
TICKS: Final = 2
"""After so many looks that find the same call of a plug-in's function, it is ended."""


@contextmanager
def bounded() -> Iterator[None]:
    """Bound the CPU time of each call of a plug-in's function, in the main thread only, since others get no signals.
    WebAssembly has no timers: there it is not bounded.

    Raises:
        PluginHangsError: in the function.
    """
    if not LOADED or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    watch = _Watch(sys._getframe(2))  # noqa: SLF001 - the caller's
    before = signal.signal(signal.SIGVTALRM, watch.look)
    signal.setitimer(signal.ITIMER_VIRTUAL, TICK_S, TICK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class _Watch:
    """Ends a call of a plug-in's function that is found at several looks."""

    def __init__(self, outer: FrameType) -> None:
        self._outer = outer
        self._files = {file for plugin in LOADED.values() for file in plugin.sources}
        self._call: FrameType | None = None
        self._looks = 0

    def look(self, _signal: int, frame: FrameType | None) -> None:
        """Handle the signal of a tick."""
        call = None
        while frame is not None and frame is not self._outer:
            if frame.f_code.co_filename in self._files:
                call = frame
            frame = frame.f_back
        if call is None or call is not self._call:
            self._call, self._looks = call, 0
            return
        self._looks += 1
        if self._looks >= TICKS:
            raise PluginHangsError(
                f"does not return: {call.f_code.co_name} has taken {TICK_S * TICKS:.0f} s of CPU time"
            )
