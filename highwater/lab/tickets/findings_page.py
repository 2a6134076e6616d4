"""The page of all findings: what their scenarios say, and on which releases brokers showed them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from highwater.lab.tickets.story import is_tried, tried_on
from highwater.lab.tickets.templates import prose
from scenarios.format.catalogue import load
from scenarios.format.findings import all_findings
from scenarios.single.run import run_row
from sim.protocol.modes import MODES, NO_RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from scenarios.format.findings import KnownFinding
    from scenarios.format.scenario import Scenario
    from sim.protocol.modes import Mode

_HEAD: Final = """\
# Findings

What each finding does, on which releases brokers showed it, why, and what helps: the tables `[finding]` of
[scenario files](scenario-files.md), and the [runs on brokers](confirmed.md).
[How to repeat them](../highwater/lab/confirm/FINDINGS.md). `highwater scenarios show NAME` prints one with its script,
and [tickets](../tickets/index.md) have the steps for Kafka's developers.
"""


CONCERNED: Final[Mapping[str, bool]] = {"### Any cluster": False, "### Only with ELR": True}
"""Heading of a table of `concerned` -> whether its findings need ELR."""


def findings_page() -> str:
    """The page, as Markdown."""
    return (
        "\n".join([_HEAD, *_overview(), *(line for finding in all_findings().values() for line in _section(finding))])
        + "\n"
    )


def findings_of(mode: str) -> str:
    """The findings that scenarios show in a mode, as a section of its page; empty if there are none."""
    found = [finding for finding in all_findings().values() if finding.expect.get(mode, "").startswith("violates")]
    rows = (
        f"| [`{finding.name}`](../../reference/findings.md#{finding.name}) | {prose(finding.title)} "
        f"| `{finding.repair[0]}` |"
        for finding in found
    )
    head = ("## Findings", "", "| scenario | what happens | rule |", "|---|---|---|")
    return "\n".join(["", *head, *rows, ""]) if found else ""


def concerned() -> Iterator[str]:
    """Whether a reader is concerned, for FINDINGS.md: a table of the findings that need no feature, and one of those
    that need ELR, with a row for each finding.
    """
    numbered = [finding for finding in all_findings().values() if finding.table.number is not None]
    found = [(finding, *_concerned(finding)) for finding in numbered]
    for heading, needs_elr in CONCERNED.items():
        yield from (heading, "", "| finding | releases | what triggers it | what avoids it |", "|---|---|---|---|")
        yield from (_row(finding, releases) for finding, releases, needs in found if needs == needs_elr)
        yield ""


def _row(finding: KnownFinding, releases: str) -> str:
    about = finding.table.trigger, finding.table.avoid.replace("kafka-topics.sh --describe ", "")
    loses = "" if set(finding.table.kinds) & {"committed-loss", "exposed-loss"} else " (loses no acknowledged record)"
    return f"| `{finding.name}`{loses} | {releases} | {' | '.join(map(prose, about))} |"


def newest_failing(scenario: Scenario) -> str:
    """The mode of the newest release in which a scenario is expected to fail."""
    failing = [mode for mode, expected in scenario.expect.items() if expected.verdict == "violates"]
    return max(failing, key=lambda mode: (MODES[mode].release != NO_RELEASE, MODES[mode].place))


def _concerned(one: KnownFinding) -> tuple[str, bool]:
    """The releases that break their promise so, as modelled and on brokers, and whether none does without ELR."""
    scenario = load(one.name)
    modes = [MODES[name] for name in one.expect if MODES[name].release != NO_RELEASE]
    broken = [mode for mode in modes if run_row(scenario, mode, 0)["violations_inside"]]
    on_brokers, _ = _releases(one.name)
    by_program = scenario.confirm.shown_on if scenario.confirm is not None else ()
    releases = (*_named(broken), *on_brokers, *by_program)
    found = sorted({tuple(map(int, release.split(".")[:2])) for release in releases})
    first, last = (".".join(map(str, numbers)) for numbers in (found[0], found[-1]))
    needs_elr = bool(broken) and all(mode.rules.elr == "on" for mode in broken)
    return first if first == last else f"{first} to {last}", needs_elr


def _named(modes: Iterable[Mode]) -> list[str]:
    return [mode.release for mode in modes]


def _overview() -> Iterator[str]:
    yield from ("| scenario | what happens | on | not on |", "|---|---|---|---|")
    for finding in all_findings().values():
        shown, kept = _releases(finding.name)
        title = f"[`{finding.name}`](#{finding.name}) | {prose(finding.title)}"
        yield f"| {title} | {', '.join(shown)} | {', '.join(kept)} |"
    yield ""


def _releases(name: str) -> tuple[list[str], list[str]]:
    """The releases on which recorded runs on brokers failed as simulated, and the others."""
    scenario = load(name)
    agreed = [trial for trial in tried_on(scenario) if trial.agreed] if is_tried(scenario) else []
    others = [
        f"{trial.release}{' (outside the promise)' if trial.outside else ''}" for trial in agreed if not trial.fails
    ]
    shown = [trial.release for trial in agreed if trial.fails]
    if scenario.confirm is not None and scenario.confirm.shown_by:
        shown += [f"{release} ({scenario.confirm.shown_by})" for release in scenario.confirm.shown_on]
    return shown, others


def _section(one: KnownFinding) -> Iterator[str]:
    """A finding, or another scenario that shows it."""
    table, scenario = one.table, load(one.name)
    yield f"{'###' if table.of else '##'} {one.name}"
    yield from ("", f"**{prose(one.title)}.**", "")
    for paragraph in scenario.description.strip().split("\n\n"):
        yield from (prose(paragraph), "")
    if table.cause:
        methods = ", ".join(f"`{method}`" for method in table.kafka)
        yield from (f"**What decides in Kafka's code.** {methods}: {table.cause}", "")
        yield from (f"**The repair.** Rule `{one.repair[0]}` with value `{one.repair[1]}`.", "")
        yield from (f"**Known upstream.** {table.upstream}", "")
    if table.text:
        yield from (table.text.strip(), "")
    yield from (f"**Replay.** `highwater explain {one.name} --mode {newest_failing(scenario)}`", "")
