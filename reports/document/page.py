"""A document as a page: one HTML file without scripts and network access, for any width, in light and dark."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING, Final

from reports.document.blocks import (
    Cell,
    Commands,
    Contents,
    Figures,
    Fold,
    Heading,
    Items,
    Line,
    Link,
    Links,
    Table,
    Terms,
    Text,
)
from reports.document.escape import html
from reports.formatting import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from reports.document.blocks import Block, Document

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a page may load and run (Content-Security-Policy): its own style, and no script."""


def to_html(document: Document) -> str:
    """The whole page."""
    title = html(document.title)
    refresh = f'<meta http-equiv="refresh" content="{document.refresh_s}">' if document.refresh_s else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="generator" content="{html(document.generator)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">{refresh}\n'
        f"<title>{html(document.window or document.title)}</title><style>{document.style}{style()}</style></head>\n"
        f"<body><h1>{title}</h1>\n{blocks_as_html(document.blocks)}\n</body></html>\n"
    )


def style() -> str:
    """The style of all pages."""
    return colours() + resources.files("reports.document").joinpath("page.css").read_text(encoding="utf-8")


def colours() -> str:
    """The colours of all pages, in the light and in the dark."""
    return resources.files("reports.document").joinpath("colours.css").read_text(encoding="utf-8")


def blocks_as_html(blocks: Iterable[Block]) -> str:
    """Blocks as a part of a page."""
    there = list(blocks)
    return "\n".join(_contents(there) if isinstance(block, Contents) else _html(block) for block in there)


def _contents(blocks: Iterable[Block]) -> str:
    named = [block for block in blocks if isinstance(block, Heading) and block.name]
    links = "".join(f'<li><a href="#{html(heading.name)}">{html(heading.text)}</a></li>' for heading in named)
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
    if isinstance(block, Links):
        parts = (f"<li>{_link(part) if isinstance(part, Link) else html(part)}</li>" for part in block.parts)
        return f'<nav class="pages" aria-label="{html(block.name)}"><ul>{"".join(parts)}</ul></nav>'
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{html(text)}</li>' for text in block.texts)}</ul>"
    if isinstance(block, Commands):
        return f"<pre>{html(chr(10).join(map(plain, block.lines)))}</pre>"
    if isinstance(block, Terms):
        return f"<dl{_class('' if block.are_commands else 'terms')}>{_terms(block)}</dl>"
    if isinstance(block, Figures):
        return _figures(block)
    if isinstance(block, Fold):
        return _fold(block)
    return _table(block) if isinstance(block, Table) else ""


def _link(link: Link, text: str = "") -> str:
    return f'<a href="{html(link.target)}">{text or html(link.text)}</a>'


def _terms(block: Terms) -> str:
    begin, end = ("<code>", "</code>") if block.are_commands else ("", "")
    return "".join(
        f"<dt>{begin}{html(term)}{end}</dt><dd>{html(meaning)}</dd>" for term, meaning in block.meanings.items()
    )


def _figures(block: Figures) -> str:
    kind = _class("run" if block.is_wide else "")
    figures = [
        f"<figure{kind}>{svg}<figcaption>{html(caption)}</figcaption></figure>" for svg, caption in block.pictures
    ]
    if block.is_wide:
        return "".join(_wide(caption, figure) for figure, (_, caption) in zip(figures, block.pictures, strict=True))
    return figures[0] if len(figures) == 1 else f'<div class="beside">{"".join(figures)}</div>'


def _fold(block: Fold) -> str:
    name = f' class="cause" id="{html(block.name)}"' if block.name else ""
    title = f"<h4>{html(block.title)}</h4>{html(block.more)}" if block.more else html(block.title)
    is_open = " open" if block.is_open else ""
    return f"<details{name}{is_open}><summary>{title}</summary>\n{blocks_as_html(block.blocks)}</details>"


def _wide(name: str, content: str) -> str:
    """What scrolls sideways where it does not fit."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{html(name)}">{content}</div>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _table(table: Table) -> str:
    sides = ["n" if header in table.numbers else "" for header in table.headers]
    caption = f"<caption><span>{html(table.caption)}</span></caption>" if table.caption else ""
    head = "".join(
        f'<th scope="col"{_class(side)}>{_breakable(header)}</th>'
        for header, side in zip(table.headers, sides, strict=True)
    )
    body = "\n".join(_row(row, sides) for row in table.rows)
    return _wide(
        table.caption or ", ".join(table.headers),
        f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>",
    )


def _row(row: Sequence[object], sides: Sequence[str]) -> str:
    if len(row) == 1 < len(sides):
        return f'</tbody><tbody><tr><th scope="rowgroup" colspan="{len(sides)}">{html(row[0])}</th></tr>'
    cells: list[str] = []
    for cell, side in zip(row, sides, strict=True):
        style = _class(" ".join(filter(None, (side, cell.style if isinstance(cell, Cell | Link) else ""))))
        text = "-" if cell is None else str(cell)
        shown = html(text) if cells else _breakable(text)
        shown = _link(cell, shown) if isinstance(cell, Link) else shown
        cells.append(f"<td{style}>{shown}</td>" if cells else f'<th scope="row"{style}>{shown}</th>')
    return f"<tr>{''.join(cells)}</tr>"


def _breakable(text: str) -> str:
    """A name in the first column or row, which may break after a dot or an underscore."""
    return re.sub(r"(?<=[a-z])([._])(?=[a-z])", r"\1<wbr>", html(text))
