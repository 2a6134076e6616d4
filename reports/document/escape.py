"""Text as it is: what a terminal, Markdown or HTML would take for markup is escaped.

Control characters and secrets are shown as such.
"""

from __future__ import annotations

import html as of_html
import re
from typing import Final

from reports.formatting import plain

_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|#~]|&(?=#?\w+;))")
_BEGIN: Final = re.compile(r"\A(?:(?P<number>\d{1,9})(?=[.)](\s|$))|[-+=]+(?=\s|$))")
"""At the beginning of a line: an item of a list, a rule, or the underline of a heading."""


def terminal(text: object) -> str:
    """Text for a terminal."""
    return plain(str(text))


def markdown(text: object) -> str:
    """A part of a line of Markdown."""
    return _MARKUP.sub(r"\\\1", " ".join(plain(str(text)).split()))


def markdown_line(text: object) -> str:
    """A whole line of Markdown."""
    return _BEGIN.sub(lambda begin: f"{begin[0]}\\" if begin["number"] else f"\\{begin[0]}", markdown(text))


def html(text: object) -> str:
    """A part of a page; a number and its unit stay together."""
    return of_html.escape(plain(str(text)).replace(" %", "\xa0%").replace("<= ", "<=\xa0"))
