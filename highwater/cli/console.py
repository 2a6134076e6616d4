"""Output: results go to stdout, everything else to stderr.

Text off a terminal holds no ANSI sequence unless ``--color always`` or ``FORCE_COLOR`` asks for it. rich is imported
when something is shown, so that ``--help`` stays fast.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, Literal

from reports.formatting import plain
from scenarios.redaction import masked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console
    from rich.table import Table

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

WIDTH_OFF_TERMINAL: Final = 120
"""Width of tables in files and pipes if COLUMNS is not set."""
UNLIMITED: Final = 10_000
SHORT: Final = 24
"""A column of cells up to this long is not wrapped."""


@dataclass
class Ui:
    """Printing, and its options: -q, -v and --color."""

    quiet: bool = False
    verbose: bool = False
    color: str = "auto"

    def line(self, text: str = "", style: str = "") -> None:
        """Print one line of the result; it is never wrapped, so that commands in it can be copied."""
        from rich.text import Text

        self._console(sys.stdout).print(Text(plain(text), style), soft_wrap=True)

    def text(self, text: str) -> None:
        """Print the content of a file as it is."""
        self._console(sys.stdout).out(text, end="", highlight=False)

    def lines(self, texts: Iterable[str]) -> None:
        """Print lines of the result."""
        for text in texts:
            self.line(text)

    def section(self, title: str) -> None:
        """Print the heading of a part of the result, after an empty line."""
        self.line()
        self.line(title, style="bold")

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str] = ()) -> None:
        """Print a table; None is shown as ``-``, and columns titled as in `numbers` are aligned to the right."""
        from rich.console import ConsoleDimensions

        console, table = self._console(sys.stdout), _table(headers, rows, numbers)
        needed = console.measure(table, options=console.options.update(max_width=UNLIMITED)).minimum
        # Rather a line that the terminal wraps than a word cut short. (On a dumb one, rich heeds no width alone.)
        console.size = ConsoleDimensions(max(console.width, needed), console.height)
        console.print(table)

    def json(self, data: object) -> None:
        """Print the result as one JSON object."""
        text = json.dumps(_masked(data), indent=2, default=str)
        self._console(sys.stdout).out(text, highlight=False)

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
        from rich.text import Text

        try:
            self.stderr().print(Text(plain(text)), soft_wrap=True)
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
            width=None if stream.isatty() or "COLUMNS" in os.environ else WIDTH_OFF_TERMINAL,
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


def _table(headers: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str]) -> Table:
    from rich.table import Table
    from rich.text import Text

    cells = [["-" if cell is None else plain(str(cell)) for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, header in enumerate(headers):
        longest = max((len(row[index]) for row in cells), default=0)
        short = longest <= SHORT
        # A truncated number would be a different number.
        least = max(longest, len(header)) if short else None
        side: Literal["left", "right"] = "right" if header in numbers else "left"
        table.add_column(Text(header), justify=side, overflow="fold", no_wrap=short, min_width=least)
    for row in cells:
        table.add_row(*(Text(word, STYLES.get(word, "")) for word in row))
    return table
