"""A page, or a file to download, as a worker process makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reports.document.blocks import Document
from reports.document.page import to_html

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reports.document.blocks import Block

GENERATOR: Final = "Highwater open"


@dataclass(frozen=True, slots=True)
class MadePage:
    """A page: its text, whether it is a film, which has a script, and whether it was refused; of a file to download,
    its name.
    """

    text: str
    is_film: bool = False
    is_refused: bool = False
    file: str = ""


def page(title: str, blocks: Sequence[Block], refresh_s: int = 0) -> str:
    """A page of this instrument."""
    return to_html(Document(title, blocks, GENERATOR, f"Highwater: {title}", refresh_s=refresh_s))
