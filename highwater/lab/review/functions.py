"""`highwater.review`, and its result as notebooks show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from highwater.functions import check_number
from highwater.lab.review import page
from highwater.lab.review.request import ReviewRequest
from highwater.option import as_function
from reports.document.blocks import Items
from reports.document.markdown import to_markdown
from reports.document.page import blocks_as_html

if TYPE_CHECKING:
    from highwater.lab.review.result import Review


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A review of a mode.

    Attributes:
        verdict: one of the verdicts of `highwater.lab.review.result`.
        said: the answer, a sentence each.
        found: all that was found.
    """

    verdict: str
    said: tuple[str, ...]
    found: Review

    @property
    def markdown(self) -> str:
        """The page, for a discussion thread."""
        return to_markdown(page.document(self.found))

    def _repr_html_(self) -> str:
        return blocks_as_html([Items(self.said)])


@as_function(ReviewRequest)
def review(asked: ReviewRequest) -> Reviewed:
    """Review a mode against a base, as ``highwater review`` does, and write both pages.

    Raises:
        UserError: what the command line would refuse.
    """
    check_number("processes", asked.processes)
    found = asked.review("output", lambda _: None)
    return Reviewed(found.verdict, tuple(page.answer(found)), found)
