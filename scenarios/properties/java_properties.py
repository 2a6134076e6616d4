"""Reads Java's ``.properties`` files as ``java.util.Properties.load`` does.

A logical line is a key, a separator (``=``, ``:`` or white space) and a value. A backslash continues it on the next
line, or escapes a character; ``#`` and ``!`` begin a comment. The encoding is ISO-8859-1. Kafka's brokers read
``server.properties`` so (``Utils.loadProps``). Stricter than Java: files that no broker can have been started with on
purpose are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from sim.errors import InputError

_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_BLANK: Final = " \t\f"
_CONTINUED: Final = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
"""A line ends with an odd number of backslashes."""
_KEY: Final = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_ASSIGNED: Final = re.compile(r"(?P<key>[a-z0-9.-]+)[ \t\f]*[=:]")
"""The shape of a line that sets a key."""
_SEPARATOR: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BINARY: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x1f]")
_MARKS: Final = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
"""Byte order marks, of which Java would make a part of the first key."""


@dataclass(frozen=True, slots=True)
class PropertyEntry:
    """A key with its value as text.

    Attributes:
        line: number of its first line.
        continued: further lines that a backslash joined to it: number -> what looks like a key there; empty: nothing.
    """

    key: str
    value: str
    line: int
    continued: Mapping[int, str] = field(default_factory=dict, compare=False)


def parse(content: bytes) -> list[PropertyEntry]:
    """The entries of a file in their order; of a repeated key, Java keeps the last.

    Raises:
        InputError: it is binary, has another encoding, ends in the middle of a line, or has a bad escape.
    """
    for mark, name in _MARKS.items():
        if content.startswith(mark):
            raise InputError(
                f"it begins with the byte order mark of {name}, which Kafka does not skip; save it without"
            )
    text = content.decode("iso-8859-1")
    binary = _BINARY.search(text)
    if binary is not None:
        line = len(_LINE_END.findall(text, 0, binary.start())) + 1
        raise InputError(f"line {line}: it is binary, or has another encoding than ISO-8859-1 or UTF-8")
    return [_entry(line, words, continued) for line, words, continued in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[int, str, dict[int, str]]]:
    """Logical lines without leading blanks and comments, each with the number of its first line, and `continued`."""
    natural = _LINE_END.split(text)
    lines = iter(enumerate(natural[:-1] if not natural[-1] else natural, 1))
    for number, line in lines:
        words = line.lstrip(_BLANK)
        if not words or words[0] in "#!":
            continue
        continued: dict[int, str] = {}
        while _CONTINUED.search(words):
            further = next(lines, None)
            if further is None:
                raise InputError(f"line {number}: the file ends where its backslash continues a line")
            more = further[1].lstrip(_BLANK)
            assigned = _ASSIGNED.match(more)
            continued[further[0]] = "" if assigned is None else assigned["key"]
            words = words[:-1] + more
            if words[:1] in ("#", "!"):  # Nothing but backslashes was before.
                break
        else:
            if words:
                yield number, words, continued


def _entry(line: int, words: str, continued: Mapping[int, str]) -> PropertyEntry:
    key = _KEY.match(words)
    assert key is not None
    separator = _SEPARATOR.match(words, key.end())
    assert separator is not None
    return PropertyEntry(_unescaped(key[0], line), _unescaped(words[separator.end() :], line), line, continued)


def _unescaped(text: str, line: int) -> str:
    def replace(escape: re.Match[str]) -> str:
        letter = escape[1]
        if letter == "u":
            raise InputError(f"line {line}: \\u needs four hexadecimal digits")
        return chr(int(letter[1:], 16)) if len(letter) > 1 else _LETTERS.get(letter, letter)

    # A surrogate without its other half is no text.
    return _ESCAPE.sub(replace, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
