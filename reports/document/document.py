"""A page of paragraphs, lists, tables and commands, as Markdown for a discussion thread or as HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

STYLE: Final = (
    "body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}td,th{border:1px solid #8888;padding:.2rem .5rem;"
    "text-align:left;vertical-align:top}body{overflow-wrap:anywhere}td,th{overflow-wrap:normal}"
    "pre{white-space:pre-wrap;border:1px solid #8888;padding:.5rem}"
    "blockquote{border-left:3px solid #8888;margin-left:0;padding-left:1rem}"
)
GENERATOR: Final = "Highwater review"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; a quotation if `quoted`."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """A list of sentences."""

    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    """A table."""

    headers: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True)
class Commands:
    """Command lines, or lines of another language."""

    lines: Sequence[str]
    language: str = ""


Block = Heading | Text | Items | Table | Commands


def to_markdown(title: str, blocks: Sequence[Block]) -> str:
    """The page as Markdown."""
    parts = [f"# {_escaped(title)}", *("\n".join(_markdown(block)) for block in blocks)]
    return "\n\n".join(parts) + "\n"


def _markdown(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f"## {_escaped(block.text)}"
    elif isinstance(block, Text):
        yield f"> {_escaped(block.text)}" if block.quoted else _escaped(block.text)
    elif isinstance(block, Items):
        yield from (f"- {_escaped(text)}" for text in block.texts)
    elif isinstance(block, Commands):
        yield from (f"```{block.language}", *block.lines, "```")
    else:
        yield from (_line(block.headers, _escaped), _line(["---" for _ in block.headers], str))
        yield from (_line(row, _escaped) for row in block.rows)


def _line(cells: Sequence[object], escape: Callable[[str], str]) -> str:
    return f"| {' | '.join(escape(str(cell)) for cell in cells)} |"


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", " ".join(text.split()))


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """The page as one HTML file, without scripts and network access."""
    head = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="generator" content="{GENERATOR}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n<body><h1>{html.escape(title)}</h1>\n"
    )
    return head + "\n".join(map(_html, blocks)) + "\n</body></html>\n"


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h2>{html.escape(block.text)}</h2>"
    if isinstance(block, Text):
        tag = "blockquote" if block.quoted else "p"
        return f"<{tag}>{html.escape(block.text)}</{tag}>"
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{html.escape(text)}</li>' for text in block.texts)}</ul>"
    if isinstance(block, Commands):
        return f"<pre>{html.escape(chr(10).join(block.lines))}</pre>"
    head = "".join(f"<th>{html.escape(text)}</th>" for text in block.headers)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row)}</tr>" for row in block.rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
