"""Output: results go to stdout, everything else to stderr.

Text off a terminal holds no ANSI sequence unless ``--color always`` or ``FORCE_COLOR`` asks for it. rich is imported
when something is shown, so that ``--help`` stays fast.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import IO, TYPE_CHECKING, Any, Final, Literal

from reports.document import escape
from reports.document.blocks import Commands, Fold, Heading, Items, Line, Terms, Text
from reports.document.blocks import Table as TableBlock
from reports.document.markdown import blocks_as_markdown
from scenarios.redaction import masked
from sim import exit_codes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console
    from rich.table import Table

    from reports.document.blocks import Block

STYLES: Final = {
    "ok": "green",
    "violation": "red",
    "stalled": "yellow",
    "exhausted": "yellow",
    "error": "magenta",
    "inside": "bold",
    "outside": "dim",
}
"""Word in a cell -> its colour, with one meaning everywhere."""
VERDICTS: Final = {exit_codes.EXPECTED: "green", exit_codes.UNEXPECTED: "red"}
"""Exit code -> colour of a verdict; all others are yellow."""

UNLIMITED: Final = 10_000
WIDTH: Final = 80
"""Width at which paragraphs are wrapped, and of tables: on wider terminals, and in files and pipes."""
MARKDOWN: Final = "markdown"
GAP: Final = 2
"""Blanks between columns."""
SHORT: Final = 24
"""A column of cells up to this long is not wrapped."""
NAME_MOST: Final = 50
"""Longest cell of the first column that is not wrapped: its names have to stay whole to be copied."""


@dataclass
class Ui:
    """Printing, and its options: -q, -v and --color.

    Attributes:
        errors_as_json: whether errors are one JSON object on stdout, too.
        has_json: whether an object is there already.
    """

    quiet: bool = False
    verbose: bool = False
    color: str = "auto"
    errors_as_json: bool = field(default=False, init=False)
    has_json: bool = field(default=False, init=False)
    _has_begun: bool = field(default=False, init=False)

    def line(self, text: str = "", style: str = "") -> None:
        """Print one line of the result; it is never wrapped, so that commands in it can be copied."""
        from rich.text import Text as Words

        self._has_begun = True
        self._console(sys.stdout).print(Words(escape.terminal(text), style), soft_wrap=True)

    def verdict(self, text: str, code: int) -> None:
        """Print the last line of a command that judges, in the colour of its exit code."""
        self.line(text, style=f"bold {VERDICTS.get(code, 'yellow')}")

    def text(self, text: str) -> None:
        """Print the content of a file as it is."""
        self._console(sys.stdout).out(text, end="", highlight=False)

    def lines(self, texts: Iterable[str]) -> None:
        """Print lines of the result."""
        for text in texts:
            self.line(text)

    def show(self, blocks: Iterable[Block], form: str = "text") -> None:
        """Print blocks as they come, as text or, if `form` is "markdown", as Markdown.

        As text, an empty line is above each heading that does not begin the output.
        """
        if form == MARKDOWN:
            self.text(blocks_as_markdown(blocks))
            return
        for block in blocks:
            self._show(block)

    def _show(self, block: Block) -> None:
        if isinstance(block, Heading):
            self._section(block.text, is_apart=self._has_begun)
        elif isinstance(block, Line):
            self.line(block.text, block.style)
        elif isinstance(block, Commands):
            self.lines(f"  {line}" for line in block.lines)
        elif isinstance(block, Fold):
            self.show([Heading(f"{block.title}{block.more}"), *block.blocks])
        elif isinstance(block, TableBlock):
            self._section(block.caption, is_apart=block.apart)
            self._table(block)
        else:
            self._paragraphs(block)

    def _paragraphs(self, block: Block) -> None:
        if isinstance(block, Text):
            self._wrapped(block.text, "")
        elif isinstance(block, Items):
            for text in block.texts:
                self._wrapped(text, "  ")
        elif isinstance(block, Terms):
            for term, meaning in block.meanings.items():
                self._wrapped(f"{term}: {meaning}", "  ")

    def _section(self, title: str, *, is_apart: bool) -> None:
        if is_apart:
            self.line()
        if title:
            self.line(title, style="bold")

    def _wrapped(self, text: str, indent: str) -> None:
        self.lines(wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))

    def _table(self, shown: TableBlock) -> None:
        console = self._console(sys.stdout)
        for place, part in enumerate(_parts(shown)):
            if place:
                self.line()
            self._print(console, _table(part))

    def _print(self, console: Console, table: Table) -> None:
        """Print a table without trailing blanks, which a terminal does not show."""
        from rich.console import ConsoleDimensions

        needed = console.measure(table, options=console.options.update(max_width=UNLIMITED)).minimum
        # Rather a line that the terminal wraps than a word cut short. (On a dumb one, rich heeds no width alone.)
        console.size = ConsoleDimensions(max(min(console.width, WIDTH), needed), console.height)
        if console.is_terminal:
            console.print(table)
            return
        with console.capture() as captured:
            console.print(table)
        console.out("\n".join(map(str.rstrip, captured.get().splitlines())), highlight=False)

    def json(self, data: object) -> None:
        """Print the result as one JSON object."""
        self.has_json = True
        text = json.dumps(_masked(data), indent=2, default=str)
        self._console(sys.stdout).out(text, highlight=False)

    def written(self, text: str) -> None:
        """Print on stdout where a file was written, unless ``-q``."""
        if not self.quiet:
            self.line(text)

    def note(self, text: str) -> None:
        """Print a note on stderr, unless ``-q``."""
        if not self.quiet:
            self.warn(text)

    def caution(self, texts: Iterable[str]) -> None:
        """Print problems on stderr."""
        for text in texts:
            self.warn(f"highwater: {text}")

    def warn(self, text: str) -> None:
        """Print a warning on stderr."""
        from rich.text import Text as Words

        try:
            self.stderr().print(Words(escape.terminal(text)), soft_wrap=True)
        except OSError:
            to_nowhere(sys.stderr)  # stderr is on a full disk; the result is unaffected.

    def stderr(self) -> Console:
        """The console for progress."""
        return self._console(sys.stderr)

    def _console(self, stream: IO[str]) -> Console:
        from rich.console import Console

        class Quietened(Console):
            def on_broken_pipe(self) -> None:
                """Continue without a reader (``| head``): the exit code still reports the verdict."""
                to_nowhere(stream)

        terminal = self._colored(stream)
        return Quietened(
            file=stream,
            force_terminal=terminal or stream.isatty(),
            color_system="auto" if terminal else None,
            width=None if stream.isatty() or "COLUMNS" in os.environ else WIDTH,
            markup=False,
            highlight=False,
            emoji=False,
        )

    def _colored(self, stream: IO[str]) -> bool:
        if self.color != "auto":
            return self.color == "always"
        if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
            return False
        return stream.isatty() or bool(os.environ.get("FORCE_COLOR"))


def to_nowhere(stream: IO[str]) -> None:
    """Discard all further output of a stream."""
    handle = os.open(os.devnull, os.O_WRONLY)
    os.dup2(handle, stream.fileno())
    os.close(handle)


def _masked(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {_masked(key): _masked(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_masked(value) for value in data]
    return masked(data) if isinstance(data, str) else data


def _parts(shown: TableBlock) -> Iterator[TableBlock]:
    """A table that does not fit `WIDTH` in parts that do, each with the columns that name a row: those before the first
    number, or the first one.
    """
    rows = [(*row, *("" for _ in shown.headers[len(row) :])) for row in shown.rows]
    widths = [
        max(len(header), *(len(str(row[place])) for row in rows), 0) if rows else len(header)
        for place, header in enumerate(shown.headers)
    ]
    least = [
        width if width <= _unwrapped(place) else len(header)
        for place, (header, width) in enumerate(zip(shown.headers, widths, strict=True))
    ]
    names = next((place for place, header in enumerate(shown.headers) if header in shown.numbers), 1) or 1
    if sum(least) + len(least) * GAP <= WIDTH + GAP or names == len(least):
        yield shown
        return
    of_names = sum(least[:names]) + names * GAP
    chosen: list[int] = []
    for place in range(names, len(least)):
        if chosen and of_names + sum(least[one] + GAP for one in (*chosen, place)) > WIDTH + GAP:
            yield _columns(shown, rows, [*range(names), *chosen])
            chosen = []
        chosen.append(place)
    yield _columns(shown, rows, [*range(names), *chosen])


def _unwrapped(place: int) -> int:
    """The longest cell of a column that is not wrapped."""
    return SHORT if place else NAME_MOST


def _columns(shown: TableBlock, rows: Sequence[tuple[object, ...]], places: Sequence[int]) -> TableBlock:
    headers = [shown.headers[place] for place in places]
    return replace(shown, headers=headers, rows=[tuple(row[place] for place in places) for row in rows])


def _table(shown: TableBlock) -> Table:
    from rich.table import Table
    from rich.text import Text as Words

    rows = [(*row, *("" for _ in shown.headers[len(row) :])) for row in shown.rows]
    cells = [["-" if cell is None else escape.terminal(cell) for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, header in enumerate(shown.headers):
        longest = max((len(row[index]) for row in cells), default=0)
        short = longest <= _unwrapped(index)
        # A truncated number would be a different number.
        least = max(longest, len(header)) if short else None
        side: Literal["left", "right"] = "right" if header in shown.numbers else "left"
        table.add_column(Words(escape.terminal(header)), justify=side, overflow="fold", no_wrap=short, min_width=least)
    for row in cells:
        table.add_row(*(Words(word, STYLES.get(word, "")) for word in row))
    return table
