"""Titles, sentences and tables for a terminal, or as Markdown."""

from __future__ import annotations

import re
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from reports.formatting import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from highwater.cli.console import Ui

WIDTH: Final = 80
"""Width at which sentences are wrapped."""


class Terminal:
    """Output of a result as text for a terminal."""

    def __init__(self, ui: Ui) -> None:
        self._ui = ui
        self._is_first = True

    def title(self, text: str) -> None:
        """A heading."""
        if not self._is_first:
            self._ui.line()
        self._is_first = False
        self._ui.line(text, style="bold")

    def text(self, text: str) -> None:
        """A paragraph."""
        self._wrapped(text, "")

    def items(self, texts: Iterable[str]) -> None:
        """A list of sentences."""
        for text in texts:
            self._wrapped(text, "  ")

    def commands(self, lines: Iterable[str]) -> None:
        """Command lines, which are never wrapped."""
        for line in lines:
            self._ui.line(f"  {line}")

    def _wrapped(self, text: str, indent: str) -> None:
        for line in wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False):
            self._ui.line(line)

    def table(
        self, caption: str, headers: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str]
    ) -> None:
        """A table; the columns that are `numbers` are aligned to the right."""
        self._ui.line()
        if caption:
            self._ui.line(caption, style="bold")
        self._ui.table(headers, rows, numbers)


class Markdown(Terminal):
    """Output as Markdown for a page or a comment."""

    def title(self, text: str) -> None:
        self._ui.line(f"## {escaped(text)}")
        self._ui.line()

    def text(self, text: str) -> None:
        self._ui.line(escaped(text))
        self._ui.line()

    def items(self, texts: Iterable[str]) -> None:
        for text in texts:
            self._ui.line(f"- {escaped(text)}")

    def commands(self, lines: Iterable[str]) -> None:
        self._ui.line("```")
        for line in lines:
            self._ui.line(plain(line))
        self._ui.line("```")
        self._ui.line()

    def table(
        self, caption: str, headers: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str]
    ) -> None:
        if caption:
            self._ui.line(f"**{escaped(caption)}**")
            self._ui.line()
        self._row(headers)
        self._row(["---:" if header in numbers else "---" for header in headers], escape=False)
        for row in rows:
            self._row(["-" if cell is None else str(cell) for cell in row])
        self._ui.line()

    def _row(self, cells: Iterable[str], *, escape: bool = True) -> None:
        self._ui.line(f"| {' | '.join(escaped(cell) if escape else cell for cell in cells)} |")


def escaped(text: str) -> str:
    """Escape text for Markdown."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", plain(text).replace("\n", " "))
