"""Files that a ticket is written from, and how a value is quoted in each language."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reports.formatting import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLACE: Final = re.compile(r"@([a-z_]+)@")


def filled(file: str, values: Mapping[str, str]) -> str:
    """A file of this folder with the value of each ``@NAME@``, in one pass: no value is searched for places."""
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    return _PLACE.sub(lambda place: values[place[1]], text)


def shell_text(text: str) -> str:
    """A shell word in double quotes, of which nothing is expanded."""
    return f'"{in_here_document(text, also=chr(34))}"'


def in_here_document(text: str, also: str = "") -> str:
    """A part of a here-document, of which nothing is expanded; `also` are further characters to escape."""
    return "".join(f"\\{char}" if char in "\\$`" + also else char for char in text)


def shell_comment(text: str) -> str:
    """The rest of a line after ``#``."""
    return " ".join(text.split())


def java_comment(text: str) -> str:
    r"""A part of a Javadoc comment, which HTML, ``*/`` and ``\u002a`` do not end."""
    return (
        escape(" ".join(text.split()), quote=False).replace("*", "&#42;").replace("\\", "&#92;").replace("@", "&#64;")
    )


def prose(text: str) -> str:
    """A paragraph of Markdown: code stays code, and there is no HTML, link or picture."""
    return re.sub(r"<|\\|\](?=[(\[:])", r"\\\g<0>", plain(" ".join(text.split())))


def java_string(text: str) -> str:
    """A literal of Java."""
    inside = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{inside}"'
