"""Names that become paths, and files from outside.

The attacker is the author of a store, plan or scenario file that was passed on, and controls every name, number and
link in it. So a name is one plain component, no link is followed below the folder that the user named, and a file is
regular, of a bounded size, and text. The attacker does not change folders while a command reads them: that needs the
user's own rights, with which no trick is necessary.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any, BinaryIO, Final

from sim.errors import InputError, StorageError, UserError, is_text

NAME_MAX: Final = 100
"""Characters of a name, so that a path made of several stays below every file system's limit."""
DEPTH_MAX: Final = 100
"""Deepest nesting of tables and lists."""
PARTS_MAX: Final = 16
"""Most parts of a dotted key, for whose number squared `tomllib` needs memory."""
INT_MAX: Final = (1 << 63) - 1
SCENARIO_BYTES: Final = 1 << 20
JSON_BYTES: Final = 1 << 26
_NAME: Final = re.compile(r"[a-z0-9.-]+")
_COMPONENT: Final = re.compile(r"[\w.,=+-]+", re.ASCII)
_NAMED_WRONGLY: Final = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.EINVAL,
)
"""Errors that are about the path itself, not about an existing file."""
_PART: Final = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_LONG_KEY: Final = re.compile(rf"(?<![\w-])(?:{_PART}\.[ \t]*+){{{PARTS_MAX}}}{_PART}[=.\]]")
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
"""Otherwise, opening a FIFO would wait for a writer that may never come."""


def of_os(error: OSError, problem: str, *, has_folder: bool = False) -> UserError:
    """The error to raise where a file or folder cannot be used: `InputError` if its path is wrong, `StorageError` if it
    is right.

    Args:
        error: of the system.
        problem: the failed operation, as in "cannot read run.json".
        has_folder: whether it was to be created in a folder that exists; then "no such file" is the refusal of a file
            system that takes none, as /proc.
    """
    is_refused = has_folder and error.errno == errno.ENOENT
    kind = InputError if error.errno in _NAMED_WRONGLY and not is_refused else StorageError
    return kind(f"{problem}: {error.strerror or error}")


# Names.


def name(value: object, what: str = "name") -> str:
    """Check a scenario's name, which appears in rows, folders and command lines; raises InputError."""
    if not isinstance(value, str) or not _NAME.fullmatch(value) or not value.strip(".") or len(value) > NAME_MAX:
        raise InputError(
            f"{_clipped(value)} is no {what}: [a-z0-9.-]+, at most {NAME_MAX} characters, and not of dots alone"
        )
    return value


def component(value: str) -> str:
    """Check one component of a path made of names, numbers and settings; raises InputError if it is unsafe."""
    if not _COMPONENT.fullmatch(value) or not value.strip(".") or len(value) > 2 * NAME_MAX:
        raise InputError(f"{_clipped(value)} cannot be the name of a folder")
    return value


def _clipped(value: object) -> str:
    text = repr(value)
    return text if len(text) <= NAME_MAX else f"{text[:NAME_MAX]}..."


def is_path(word: str) -> bool:
    """Whether a word names a file and not something bundled: it ends in ``.toml`` or holds a separator."""
    return word.endswith(".toml") or "/" in word or "\\" in word


# Files.


def regular(path: Path) -> BinaryIO:
    """Open an outside file; no pipe or device, which may never end.

    Raises:
        InputError: it is no regular file.
        OSError: it cannot be opened.
    """
    file = os.fdopen(os.open(path, _FILE), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise InputError("it is no regular file")
    return file


def read(path: Path, most: int) -> bytes:
    """Read an outside file that the user named.

    Raises:
        InputError: it does not exist, is no regular file, or is too long.
        StorageError: it cannot be read.
    """
    try:
        with regular(path) as file:
            content = file.read(most + 1)
    except InputError as error:
        raise InputError(f"cannot be read: {error.problems[0]}") from None
    except OSError as error:
        raise of_os(error, "cannot be read") from None
    except ValueError:
        raise InputError("cannot be read: no file has such a name") from None
    if len(content) > most:
        raise InputError(f"cannot be read: it has more than {most} bytes")
    return content


def parse_toml(text: str) -> Any:
    """Parse TOML; raises InputError if it is invalid, or contains values that are refused."""
    if found := _LONG_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise InputError(f"line {line}: a key of more than {PARTS_MAX} parts")
    try:
        return _checked(tomllib.loads(text))
    except RecursionError:
        raise InputError(_TOO_DEEP) from None
    except ValueError as error:
        raise InputError(f"not TOML{_instead(text) or f': {error}'}") from None


def _instead(text: str) -> str:
    """What a file that is no TOML is, and which command takes it, if it is JSON of this program."""
    try:
        found, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return ""
    if not isinstance(found, dict):
        return ""
    if found.keys() >= {"scenario", "seed", "horizon_us", "plan"}:
        return (
            ", but a recorded run (plan.json): 'highwater run --plan FILE', 'explain --plan FILE', "
            "'shrink --plan FILE', 'replay FILE', 'show FILE' and 'draw FILE' take it"
        )
    if found.keys() >= {"scenario", "seed", "digest"}:
        return ", but the row or trace of a run: 'highwater run --plan FILE' takes the plan.json beside it"
    return ", but JSON"


def parse_json(content: bytes, most: int = INT_MAX) -> Any:
    """Parse JSON; raises InputError if it is invalid, or contains values that are refused, as numbers above `most`."""
    try:
        return _checked(json.loads(content), most)
    except RecursionError:
        raise InputError(_TOO_DEEP) from None
    except ValueError:
        raise InputError("it is not JSON") from None


_TOO_DEEP: Final = f"tables or lists are nested more than {DEPTH_MAX} deep"


def _checked(data: Any, most: int = INT_MAX) -> Any:
    """Refuse deep nesting, long numbers and broken text, which would fail later."""
    left: list[tuple[Any, str, int]] = [(data, "", 0)]
    while left:
        value, where, depth = left.pop()
        if depth > DEPTH_MAX:
            raise InputError(_TOO_DEEP)
        if isinstance(value, dict):
            for key, entry in value.items():
                _check_text(key, where)
                left.append((entry, f"{where}.{key}" if where else key, depth + 1))
        elif isinstance(value, list):
            left += [(entry, where, depth + 1) for entry in value]
        elif isinstance(value, str):
            _check_text(value, where)
        elif isinstance(value, float) and not abs(value) < float("inf"):
            raise InputError(f"{where}: {value} is no number")
        elif isinstance(value, int) and not -INT_MAX - 1 <= value <= most:
            raise InputError(f"{where}: a number is beyond 64 bits")
    return data


def _check_text(text: str, where: str) -> None:
    if not is_text(text):
        raise InputError(f"{where or 'a key'}: {text!r} is no text")
