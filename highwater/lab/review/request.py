"""A request to review a mode against another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from highwater.lab.review import page
from highwater.lab.review.review import check
from highwater.lab.review.review import review as find
from highwater.option import Argument, Option
from highwater.requests import FILE, PROCESSES, budget
from highwater.values import comma_words
from scenarios.format import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

    from highwater.lab.review.result import Review


@dataclass(frozen=True, kw_only=True)
class ReviewRequest:
    """A request for a review."""

    mode: Annotated[str, Argument(metavar="MODE", completes="modes", help="A mode's name or file.")] = field(
        kw_only=False
    )
    against: Annotated[
        str, Option(metavar="BASE", required=True, completes="modes", help="The mode to compare it with.")
    ] = field(kw_only=False)
    claim: Annotated[str, Option(metavar="TEXT", help="What is claimed of it; quoted on the page.")] = ""
    claim_kind: Annotated[
        str,
        Option(
            metavar="KIND",
            completes="kinds",
            help="The kind of violation or early warning that contradicts the claim.",
        ),
    ] = ""
    budget_s: Annotated[
        float, budget("10m", "Time of the whole review: as many seeds of random scenarios as it allows.")
    ] = 600
    seeds: Annotated[
        int | None, Option(metavar="N", type=click.IntRange(1, 1_000_000), help="Seeds of each, in place of --budget.")
    ] = None
    scenarios: Annotated[
        str | Sequence[str],
        Option(
            metavar="A,B",
            read=comma_words,
            completes="scenarios",
            help="Only these random scenarios; by default all that fit.",
        ),
    ] = ()
    processes: Annotated[
        int, Option("--local", metavar="N", type=PROCESSES, default=1, show_default=True, help="Processes.")
    ] = 1
    output: Annotated[
        str | Path, Option(metavar="DIR", type=FILE, required=True, help="Gets review.md, review.html and the sweeps.")
    ] = field(kw_only=False)

    def review(self, option: str, tell: Callable[[str], None]) -> Review:
        """Review, and write both pages.

        Args:
            option: name of `output` in errors.
            tell: called with what is done next.

        Raises:
            InputError: the request is not valid, or other files are in the way.
        """
        folder = Path(self.output)
        names = [self.scenarios] if isinstance(self.scenarios, str) else list(self.scenarios)
        mode, base = catalogue.mode(self.mode), catalogue.mode(self.against)
        for name in names:
            catalogue.load(name)
        check(mode, base, self.claim_kind, names)
        page.check_files(option, folder)
        found = find(
            mode,
            base,
            folder,
            claim=self.claim,
            claim_kind=self.claim_kind,
            budget_s=self.budget_s,
            seeds=self.seeds,
            scenarios=names,
            processes=self.processes,
            tell=tell,
        )
        page.write(found, folder)
        return found
