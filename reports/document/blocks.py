"""A document: a title and blocks of plain text, which know nothing of terminals, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Role = Literal["", "answer", "none", "note", "question", "quoted", "warning"]


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
class Link:
    """A link, also as a cell of a table; a terminal and Markdown show its text.

    Attributes:
        text: what is shown.
        target: a relative address that the program made, never one from a file.
        style: style of its cell.
    """

    text: str
    target: str
    style: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Links:
    """Links to other pages, beside each other; a plain text is the page that is open."""

    parts: Sequence[Link | str]
    name: str = "Pages"


@dataclass(frozen=True, slots=True)
class Table:
    """A table; None is shown as ``-``.

    Attributes:
        headers: titles of the columns.
        rows: the rows; one of a single cell is the title of those below it.
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
class Terms:
    """Terms, or commands, and what each means."""

    meanings: Mapping[str, str]
    are_commands: bool = False


@dataclass(frozen=True, slots=True)
class Figures:
    """Pictures beside each other, each as the text of an SVG file with its caption; only a page shows them."""

    pictures: Sequence[tuple[str, str]]
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks that a reader unfolds.

    Attributes:
        title: its title.
        blocks: its blocks.
        more: what follows the title, which is a heading then.
        name: name for links.
        is_open: whether it is unfolded at first.
    """

    title: str
    blocks: Sequence[Block]
    more: str = ""
    name: str = ""
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Contents:
    """Links to the headings that have names, on a page."""


Block = Heading | Text | Line | Links | Items | Commands | Table | Terms | Figures | Fold | Contents


@dataclass(frozen=True, slots=True)
class Document:
    """A whole page.

    Attributes:
        title: its title.
        blocks: its blocks.
        generator: what wrote it.
        window: title of a browser's window; "": the title.
        style: what a page has besides the common style.
        refresh_s: seconds after which a browser loads the page again; 0: never.
    """

    title: str
    blocks: Sequence[Block]
    generator: str = "Highwater"
    window: str = ""
    style: str = ""
    refresh_s: int = 0
