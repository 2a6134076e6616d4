"""A document: a title and blocks of plain text, which know nothing of terminals, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Role = Literal["", "answer", "note", "question", "quoted", "warning"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; a link of the document's `Contents` leads to it if it has a name."""

    text: str
    level: int = 2
    name: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str
    role: Role = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line that a terminal does not wrap; "" is an empty one."""

    text: str
    style: Literal["", "bold", "dim"] = ""


@dataclass(frozen=True, slots=True)
class Items:
    """A list of sentences."""

    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Commands:
    """Command lines, or lines of another language."""

    lines: Sequence[str]
    language: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table with a style of pages."""

    text: object
    style: str

    def __str__(self) -> str:
        return str(self.text)


@dataclass(frozen=True, slots=True)
class Table:
    """A table; None is shown as ``-``.

    Attributes:
        headers: titles of the columns.
        rows: the rows.
        numbers: titles of the columns that are aligned to the right.
        caption: what the table shows.
        apart: whether a terminal shows an empty line above it.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[object]]
    numbers: Sequence[str] = ()
    caption: str = ""
    apart: bool = True


@dataclass(frozen=True, slots=True)
class Contents:
    """Links to the headings that have names, on a page."""


Block = Heading | Text | Line | Items | Commands | Table | Contents


@dataclass(frozen=True, slots=True)
class Document:
    """A whole page.

    Attributes:
        title: its title.
        blocks: its blocks.
        generator: what wrote it.
        window: title of a browser's window; "": the title.
    """

    title: str
    blocks: Sequence[Block]
    generator: str = "Highwater"
    window: str = ""
