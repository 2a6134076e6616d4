"""What tells that a process gets no more memory; imported with as little of it as can be."""

from __future__ import annotations

import errno
import os

_SAID = ("failed to map segment", "annot allocate memory", "can't start new thread", "Failed to launch worker thread")
"""How other errors say it: of a module that cannot be loaded, and of a thread that gets no stack."""


def is_lacking(error: BaseException | None) -> bool:
    """Whether an exception, or one that it came from, is about memory."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if isinstance(error, Exception) and any(said in str(error) for said in _SAID):
            return True
        error = error.__cause__ or error.__context__
    return False


def tell() -> None:
    """Say it in one line on stderr."""
    os.write(2, b"highwater: out of memory: the system gives this process no more\n")
