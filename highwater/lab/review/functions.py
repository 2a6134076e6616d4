"""`highwater.review`, and its result as notebooks show it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from highwater.functions import check_number
from highwater.lab.review import page
from highwater.lab.review.review import review as find
from reports.document.blocks import Items
from reports.document.markdown import to_markdown
from reports.document.page import blocks_as_html
from scenarios.format import catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def review(
    mode: str,
    against: str,
    output: str | Path,
    *,
    claim: str = "",
    claim_kind: str = "",
    budget_s: float = 600,
    seeds: int | None = None,
    scenarios: str | Sequence[str] = (),
    processes: int = 1,
) -> Reviewed:
    """Review a mode against a base, as ``highwater review`` does, and write both pages.

    Args:
        mode: a mode's name or file.
        against: the base.
        output: folder that gets ``review.md``, ``review.html`` and the sweeps.
        claim: what is claimed of it; quoted on the page.
        claim_kind: the kind of violation or early warning that contradicts the claim.
        budget_s: time of the whole review, in seconds.
        seeds: seeds of each random scenario, in place of `budget_s`.
        scenarios: only these random scenarios; by default all that fit.
        processes: number of worker processes.

    Raises:
        UserError: what the command line would refuse.
    """
    check_number("processes", processes)
    chosen = [scenarios] if isinstance(scenarios, str) else list(scenarios)
    for name in chosen:
        catalogue.load(name)
    folder = Path(output)
    page.check_files("output", folder)
    found = find(
        catalogue.mode(mode),
        catalogue.mode(against),
        folder,
        claim=claim,
        claim_kind=claim_kind,
        budget_s=budget_s,
        seeds=seeds,
        processes=processes,
        scenarios=chosen,
    )
    page.write(found, folder)
    return Reviewed(found.verdict, tuple(page.answer(found)), found)
