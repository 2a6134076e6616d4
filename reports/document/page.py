"""A document as a page: one HTML file without scripts and network access, for any width, in light and dark."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Final

from reports.document.blocks import Cell, Commands, Contents, Heading, Items, Line, Table, Text
from reports.document.escape import html
from reports.formatting import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reports.document.blocks import Block, Document

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def to_html(document: Document) -> str:
    """The whole page."""
    title = html(document.title)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="generator" content="{html(document.generator)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{html(document.window or document.title)}</title><style>{style()}</style></head>\n"
        f"<body><h1>{title}</h1>\n{blocks_as_html(document.blocks)}\n</body></html>\n"
    )


def style() -> str:
    """The style of all pages."""
    return resources.files("reports.document").joinpath("page.css").read_text(encoding="utf-8")


def blocks_as_html(blocks: Iterable[Block]) -> str:
    """Blocks as a part of a page."""
    there = list(blocks)
    return "\n".join(_contents(there) if isinstance(block, Contents) else _html(block) for block in there)


def _contents(blocks: Iterable[Block]) -> str:
    named = [block for block in blocks if isinstance(block, Heading) and block.name]
    links = "".join(f'<li><a href="#{html(one.name)}">{html(one.text)}</a></li>' for one in named)
    return f'<nav aria-label="Parts"><ul>{links}</ul></nav>'


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        name = f' id="{html(block.name)}"' if block.name else ""
        return f"<h{block.level}{name}>{html(block.text)}</h{block.level}>"
    if isinstance(block, Text):
        tag, role = ("blockquote", "") if block.role == "quoted" else ("p", block.role)
        return f"<{tag}{_class(role)}>{html(block.text)}</{tag}>"
    if isinstance(block, Line):
        return f"<p{_class(block.style)}>{html(block.text)}</p>" if block.text else ""
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{html(text)}</li>' for text in block.texts)}</ul>"
    if isinstance(block, Commands):
        return f"<pre>{html(chr(10).join(map(plain, block.lines)))}</pre>"
    return _table(block) if isinstance(block, Table) else ""


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _table(table: Table) -> str:
    sides = ["n" if header in table.numbers else "" for header in table.headers]
    caption = f"<caption><span>{html(table.caption)}</span></caption>" if table.caption else ""
    head = "".join(
        f'<th scope="col"{_class(side)}>{html(header)}</th>' for header, side in zip(table.headers, sides, strict=True)
    )
    body = "\n".join(f"<tr>{_cells(row, sides)}</tr>" for row in table.rows)
    name = html(table.caption or ", ".join(table.headers))
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{name}"><table>{caption}'
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )


def _cells(row: Sequence[object], sides: Sequence[str]) -> str:
    cells: list[str] = []
    for cell, side in zip(row, sides, strict=True):
        style = _class(" ".join(filter(None, (side, cell.style if isinstance(cell, Cell) else ""))))
        text = "-" if cell is None else html(cell)
        cells.append(f"<td{style}>{text}</td>" if cells else f'<th scope="row"{style}>{text}</th>')
    return "".join(cells)
