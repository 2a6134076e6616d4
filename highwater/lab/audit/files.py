"""Reading of files from outside: bounded, whatever they hold, and each problem names its file."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

from scenarios import paths
from sim.errors import InputError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_PACKED: Final[dict[bytes, Callable[[Any], Any]]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
"""First bytes of a compressed file -> its reader."""
LONGEST: Final = 1 << 22
"""Bytes of a line, of which Kafka's tools write at most some thousand."""
_NUMBER: Final = re.compile(r"[0-9]{1,10}", re.ASCII)
_INT32_MAX: Final = (1 << 31) - 1


def number(text: str) -> int:
    """A number from 0 on that fits into 32 bits, as partitions and brokers have; raises ValueError."""
    if _NUMBER.fullmatch(text) and (found := int(text)) <= _INT32_MAX:
        return found
    raise ValueError(f"{shortened(text)} is no number from 0 to {_INT32_MAX}")


def shortened(value: object) -> str:
    """A value for a message of one line."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file; errors of the system while it is read name it, too.

    Raises:
        InputError: it is no regular file.
        StorageError: it cannot be read.
    """
    try:
        file = paths.regular(path)
    except InputError as error:
        raise InputError(f"{path}: {error.problems[0]}") from None
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}") from None
    try:
        with file:
            yield file
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise StorageError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a text file that may be compressed with gzip, bzip2 or xz; errors as of `opened`."""
    with opened(path) as file:
        first = file.read(6)
        file.seek(0)
        unpack = next((unpack for magic, unpack in _PACKED.items() if first.startswith(magic)), None)
        if unpack is None:
            yield file
        else:
            with unpack(file) as content:
                yield content


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a text file that may be compressed.

    Raises:
        InputError: a line is too long for text, or the file is no regular file.
        StorageError: it cannot be read.
    """
    with unpacked(path) as file:
        number = 0
        while raw := file.readline(LONGEST):
            number += 1
            if len(raw) == LONGEST:
                raise InputError(f"{path}, line {number}: longer than {LONGEST:,} bytes; this is no text")
            yield number, raw.decode(errors="replace").rstrip("\r\n")
