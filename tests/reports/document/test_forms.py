"""One document as Markdown and as a page."""

from __future__ import annotations

import re

from reports.document.blocks import Cell, Contents, Document, Heading, Items, Line, Table, Text
from reports.document.markdown import to_markdown
from reports.document.page import style, to_html
from tests.reports.page.pages import Page

DOCUMENT = Document(
    "Title",
    [
        Text("answer", "answer"),
        Contents(),
        Heading("Part", name="part"),
        Line(""),
        Line("bold", "bold"),
        Items(["one", "two"]),
        Table(["mode", "n"], [("hw", 1), (None, Cell(20, "risk"))], ["n"], "Runs"),
    ],
    "Highwater test",
    "Window",
)


def test_markdown_has_one_empty_line_between_blocks() -> None:
    assert to_markdown(DOCUMENT) == (
        "# Title\n\nanswer\n\n## Part\n\n**bold**\n\n- one\n- two\n\n**Runs**\n\n"
        "| mode | n |\n| --- | ---: |\n| hw | 1 |\n| - | 20 |\n"
    )


def test_a_page_is_whole_and_fetches_nothing() -> None:
    text = to_html(DOCUMENT)
    page = Page(text)
    assert (page.problems, page.fetched) == ([], [])
    assert page.links == page.names == ["part"]
    assert "script" not in page.tags
    assert '<meta name="generator" content="Highwater test">' in text
    assert "<title>Window</title>" in text
    assert style() in text
    assert re.findall(r"<th(?=[ >])(?![^>]* scope=)[^>]*>", text) == []
    assert '<td class="n risk">20</td>' in text


def test_all_pages_have_both_schemes_and_narrow_windows() -> None:
    assert "@media (prefers-color-scheme: dark)" in style()
    assert "@media (max-width: 600px)" in style()
