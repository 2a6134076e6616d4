"""Entry point of the command: Ctrl-C exits with 130 and no traceback, even while modules are being imported.

Imported only by the installed command: from its first lines on, signals end the process.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

from highwater import own_packages

if _problem := own_packages.problem():
    sys.stderr.write(f"highwater: {_problem}\n")
    sys.exit(own_packages.UNAVAILABLE)

from sim.exit_codes import EXPECTED, INTERRUPTED, UNAVAILABLE


def _leave(_signal: int, _frame: FrameType | None) -> None:
    # Nothing needs cleaning up yet, and an exception could be swallowed by an import.
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


for _number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(_number, _leave)

import threading  # noqa: E402 - signals end the process already

from highwater.cli import completing  # noqa: E402
from scenarios import memory  # noqa: E402


def _heed(lost: sys.UnraisableHookArgs) -> None:
    """Exit on an interrupt during a callback, which Python would print and ignore; print nothing if memory lacks."""
    if isinstance(lost.exc_value, KeyboardInterrupt):
        _leave(signal.SIGINT, None)
    if not memory.is_lacking(lost.exc_value):
        sys.__unraisablehook__(lost)


def _heed_thread(ended: threading.ExceptHookArgs) -> None:
    """Exit if a thread runs out of memory: others might wait for it for ever."""
    if memory.is_lacking(ended.exc_value):
        memory.tell(ended.exc_value)
        os._exit(UNAVAILABLE)
    threading.__excepthook__(ended)


def main() -> int:
    """Run the command line, and return the exit code."""
    sys.unraisablehook = _heed
    threading.excepthook = _heed_thread
    if request := os.environ.get(completing.REQUEST):
        index = completing.kept()
        text = None if index is None else completing.answer(index, request)
        if text is not None:
            sys.stdout.write(text)
            return EXPECTED
    try:
        from highwater.cli import main as cli

        signal.signal(signal.SIGINT, signal.default_int_handler)
        return cli.main()
    except Exception as error:
        if not memory.is_lacking(error):
            raise
        memory.tell(error)
        with suppress(Exception):
            sys.stdout.flush()
        os._exit(UNAVAILABLE)  # The interpreter's shutdown would print more MemoryErrors.
    finally:
        # Only the interpreter's shutdown remains.
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
