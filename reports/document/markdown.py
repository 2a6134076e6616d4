"""A document as Markdown, for a discussion, a ticket or a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from reports.document.blocks import Commands, Fold, Heading, Items, Line, Links, Table, Terms, Text
from reports.document.escape import markdown, markdown_line
from reports.formatting import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from reports.document.blocks import Block, Document


def to_markdown(document: Document) -> str:
    """The whole document."""
    return f"# {markdown(document.title)}\n\n{blocks_as_markdown(document.blocks)}"


def blocks_as_markdown(blocks: Iterable[Block]) -> str:
    """Blocks without a title."""
    parts = ("\n".join(_lines(block)) for block in blocks)
    return "\n\n".join(part for part in parts if part) + "\n"


def _lines(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f"{'#' * block.level} {markdown(block.text)}"
    elif isinstance(block, Text):
        yield f"{'> ' if block.role == 'quoted' else ''}{markdown_line(block.text)}"
    elif isinstance(block, Line):
        yield f"**{markdown(block.text)}**" if block.style == "bold" else markdown_line(block.text)
    elif isinstance(block, Links):
        yield markdown_line(", ".join(map(str, block.parts)))
    elif isinstance(block, Items):
        yield from (f"- {markdown_line(text)}" for text in block.texts)
    elif isinstance(block, Commands):
        yield from _fenced([plain(line) for line in block.lines], block.language)
    elif isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Terms):
        yield from (f"- **{markdown(term)}**: {markdown(meaning)}" for term, meaning in block.meanings.items())
    elif isinstance(block, Fold):
        yield from (f"**{markdown(block.title)}**{markdown(block.more)}", "", blocks_as_markdown(block.blocks).rstrip())


def _fenced(lines: Sequence[str], language: str) -> Iterator[str]:
    """Lines between fences that are longer than any in them."""
    longest = max((len(found) for line in lines for found in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"{fence}{language}", *lines, fence)


def _table(table: Table) -> Iterator[str]:
    if table.caption:
        yield from (f"**{markdown(table.caption)}**", "")
    yield _row(map(markdown, table.headers))
    yield _row("---:" if header in table.numbers else "---" for header in table.headers)
    for row in table.rows:
        cells = (*row, *("" for _ in table.headers[len(row) :]))
        yield _row("-" if cell is None else markdown(cell) for cell in cells)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
