"""Tells losses per partition-year."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reports.document.blocks import Heading, Line, Table
from reports.formatting import decimal, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from highwater.lab.advise.yearly import Estimate
    from reports.document.blocks import Block

ROWS: Final = 20
"""Strata that are printed; --json has all."""


def blocks(estimate: Estimate) -> Iterator[Block]:
    """Figure, strata, rates and assumptions."""
    from highwater.lab.advise import yearly

    exposed = estimate.exposed
    yield Heading(f"Losses per partition-year, by {estimate.runs:,} incidents")
    yield from map(Line, yearly.answer(estimate))
    tallies = sorted(estimate.tallies, key=lambda tally: (-tally.losses_a_year[0], -tally.weight))
    headers = ["faults", "incidents a year", "lose records", "95 %", "losses a year", "95 % "]
    rows = [
        (
            tally.stratum.name,
            decimal(tally.stratum.a_year, 3),
            f"{tally.lost} of {tally.runs}",
            _between(*map(percent, tally.share)),
            decimal(tally.losses_a_year[0]),
            _between(*map(decimal, tally.losses_a_year[1:])),
        )
        for tally in tallies[:ROWS]
    ]
    yield Table(headers, rows, headers[1:], "Strata: incidents by the faults in them")
    if len(tallies) > ROWS:
        yield Line(f"{len(tallies) - ROWS} more strata: --json")
    yield Heading("Rates")
    for name, rate in exposed.rates.a_year.items():
        if rate:
            each, total = decimal(rate, 3), decimal(exposed.a_year[name], 3)
            yield Line(f"{name}: {each} a year of each, {total} in all ({exposed.rates.sources[name]})")
    yield Heading("Assumed")
    yield from (Line(f"- {line}") for line in yearly.assumptions(estimate))
    yield Heading("Not in the figure")
    yield from (Line(f"- {line}") for line in (*yearly.left_out(estimate), *yearly.NOT_MODELLED))


def of_changes(present: Estimate, changed: Sequence[tuple[str, Estimate]]) -> Iterator[Block]:
    """The losses a year with each advised change."""
    from highwater.lab.advise.experiment import PRESENT

    if not changed:
        return
    rows = [
        (
            name,
            decimal(estimate.losses_a_year[0]),
            _between(*map(decimal, estimate.losses_a_year[1:])),
            f"{estimate.runs:,}",
        )
        for name, estimate in ((PRESENT, present), *changed)
    ]
    headers = ["change", "losses a year", "95 %", "incidents"]
    yield Table(headers, rows, headers[1:], "Losses a year with each advised change, under the same rates")


def _between(low: str, high: str) -> str:
    return f"{low} to {high}"


def as_json(estimate: Estimate) -> dict[str, Any]:
    """Plain data."""
    from highwater.lab.advise import yearly

    exposed = estimate.exposed
    dominating = estimate.dominating
    return {
        "losses_a_year": list(estimate.losses_a_year),
        "incidents": estimate.runs,
        "larger_incidents_a_year": estimate.larger_a_year,
        "dominating": None if dominating is None else dominating.stratum.name,
        "widest": estimate.widest.stratum.name,
        "strata": [
            {
                "name": tally.stratum.name,
                "incidents_a_year": tally.stratum.a_year,
                "runs": tally.runs,
                "lost": tally.lost,
                "stalled": tally.stalled,
                "exhausted": tally.exhausted,
                "share": list(tally.share),
                "losses_a_year": list(tally.losses_a_year),
            }
            for tally in estimate.tallies
        ],
        "rates": {
            name: {"a_year": rate, "lasts_s": exposed.rates.lasts_s[name], "source": exposed.rates.sources[name]}
            for name, rate in exposed.rates.a_year.items()
        },
        "interaction_s": exposed.gap_us / 1_000_000,
        "batches_per_s": exposed.batches_per_s,
        "assumptions": yearly.assumptions(estimate),
        "not_in_the_figure": [*yearly.left_out(estimate), *yearly.NOT_MODELLED],
    }
