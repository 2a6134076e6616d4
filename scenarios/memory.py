"""Recognises that a process is out of memory; imports as little as possible."""

from __future__ import annotations

import errno
import os

_TEXTS = (
    "failed to map segment",
    "annot allocate memory",
    "can't start new thread",
    "Failed to launch worker thread",
)
"""Messages of other errors: a module that cannot be loaded, a thread without a stack."""


def is_lacking(error: BaseException | None) -> bool:
    """Whether an exception or one of its causes is about memory."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if isinstance(error, Exception) and any(message in str(error) for message in _TEXTS):
            return True
        error = error.__cause__ or error.__context__
    return False


def tell() -> None:
    """Report it in one line on stderr."""
    os.write(2, b"highwater: out of memory: the system gives this process no more\n")
