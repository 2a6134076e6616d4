"""Recognises that a process is out of memory; imports as little as possible."""

from __future__ import annotations

import errno
import os
import sys

NEEDS_MB = {"pyarrow": 600, "numpy": 120, "scipy": 200}
"""Addresses that libraries take, with a margin: pyarrow 290 MB when it is loaded, and more for its threads. With less,
they do not raise an error but abort or print their own messages.
"""
_FRUGAL = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""Variables that libraries read when they are loaded. Each of their threads takes up to 72 MB of addresses, and Arrow's
own memory pool a GB.
"""
_TEXTS = (
    "failed to map segment",
    "annot allocate memory",
    "can't start new thread",
    "Failed to launch worker thread",
)
"""Messages of other errors: a module that cannot be loaded, a thread without a stack."""
_NOTHING_LEFT_BYTES = 1 << 20
"""With less, the interpreter may lose a MemoryError, and raise a SystemError in its place (CPython 3.11)."""


def is_lacking(error: BaseException | None) -> bool:
    """Whether an exception or one of its causes is about memory."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if isinstance(error, SystemError) and (left := _left()) is not None and left < _NOTHING_LEFT_BYTES:
            return True
        if isinstance(error, Exception) and any(message in str(error) for message in _TEXTS):
            return True
        error = error.__cause__ or error.__context__
    return False


def tell(error: BaseException | None = None) -> None:
    """Report it in one line on stderr; for a library that the address space is too small for, with its name."""
    reason = "the system gives this process no more"
    while error is not None:
        if isinstance(error, AddressSpaceError):
            reason = str(error)
        error = error.__cause__ or error.__context__
    os.write(2, f"highwater: out of memory: {reason}\n".encode())


class AddressSpaceError(MemoryError):
    """The limit of the address space (``ulimit -v``) is too low for a library."""


class _Guard:
    """Refuses to load a library if the limit of the address space leaves less than the library takes."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002 - a finder's
        need_mb = NEEDS_MB.get(name)
        if need_mb is not None:
            _require(name, need_mb)


def guard() -> None:
    """If the address space is limited, check each library of `NEEDS_MB` before it is loaded, and let them take less."""
    if _limit() is not None and not any(isinstance(finder, _Guard) for finder in sys.meta_path):
        for name, value in _FRUGAL.items():
            os.environ.setdefault(name, value)
        sys.meta_path.insert(0, _Guard())


def _require(name: str, need_mb: int) -> None:
    """Raise an `AddressSpaceError` if less than `need_mb` is left."""
    left = _left()
    if left is not None and (left_mb := left >> 20) < need_mb:
        raise AddressSpaceError(f"{name} takes {need_mb:,} MB of addresses, and ulimit -v leaves {max(left_mb, 0):,}")


def _left() -> int | None:
    """Bytes of the address space that the process may still take; None if it is not limited."""
    limit = _limit()
    return None if limit is None else limit - used()


def _limit() -> int | None:
    """Bytes that the address space may have (``ulimit -v``); None without a limit, as always in WebAssembly."""
    try:
        import resource
    except ModuleNotFoundError:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def used() -> int:
    """Bytes of the address space that the process uses; 0 where the system does not tell."""
    try:
        handle = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return 0
    try:
        return int(os.read(handle, 99).split()[0]) * os.sysconf("SC_PAGE_SIZE")
    finally:
        os.close(handle)
