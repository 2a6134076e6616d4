"""Hostile text stays text in all three forms."""

from __future__ import annotations

import re
from html import unescape

import pytest

from highwater.cli.console import Ui
from reports.document import escape
from reports.document.blocks import Block, Commands, Document, Heading, Items, Line, Table, Text
from reports.document.markdown import blocks_as_markdown, to_markdown
from reports.document.page import to_html
from tests.reports.page.pages import Page

HOSTILE = (
    "[x](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a | b",
    "`code` ``` ~~~",
    "*bold* _under_ ~~gone~~",
    "# 1",
    "- item",
    "1. item",
    "--- a",
    "> quoted",
    "&lt;b&gt; &#60;",
    "[red]not red[/red] [link=https://evil.example]x[/link] :smile:",
    "\\*",
)
MARKUP = re.compile(r"(?<!\\)(\\\\)*[\[\]*_`<>|#~]")


def blocks(text: str) -> list[Block]:
    return [
        Heading(text),
        Text(text),
        Text(text, "quoted"),
        Line(text),
        Items([text]),
        Table([text], [[text]], caption=text),
        Commands([text]),
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_on_a_page(text: str) -> None:
    page = Page(to_html(Document(text, blocks(text), text, text)))
    assert page.problems == []
    assert page.fetched == []
    assert {"script", "img", "a", "b"} & {*page.tags} == set()
    assert page.text.count(text) == 11


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_in_markdown(text: str) -> None:
    escaped = escape.markdown(text)
    assert not MARKUP.search(escaped)
    assert unescape(re.sub(r"\\([^a-z])", r"\1", escaped.replace("\\&", "&amp;"))) == text
    lines = to_markdown(Document(text, blocks(text))).splitlines()
    assert lines[0] == f"# {escaped}"
    assert f"| {escaped} |" in lines
    assert text in lines  # Between the fences.
    line = escape.markdown_line(text)
    assert {line, f"> {line}", f"- {line}"} <= {*lines}
    assert not re.match(r"([-+]|\d+[.)])\s", line)


def test_fences_are_longer_than_those_in_them() -> None:
    assert blocks_as_markdown([Commands(["a", "````", "b"], "sh")]) == "`````sh\na\n````\nb\n`````\n"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_on_a_terminal(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Ui(color="never").show(blocks(text))
    assert capsys.readouterr().out.count(text) == 9


@pytest.mark.parametrize("escaped", [escape.terminal, escape.markdown, escape.html])
def test_control_characters_and_secrets_are_shown_as_such(escaped: object) -> None:
    assert callable(escaped)
    shown = escaped("a\x1b[2J\x07 \x9b1m password=hunter2")
    assert [char for char in shown if not char.isprintable()] == []
    assert "x1b" in shown
    assert "hunter2" not in shown


def test_a_line_of_markdown_begins_no_list() -> None:
    assert escape.markdown_line("- a") == "\\- a"
    assert escape.markdown_line("2) a") == "2\\) a"
    assert escape.markdown_line("-1.5 s") == "-1.5 s"
    assert escape.markdown_line("a\n- b") == "a - b"
