"""New causes on real brokers: `highwater confirm`, with what it says in a few words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm import release
from highwater.lab.confirm.request import ConfirmRequest, check_library, outcome_text
from highwater.lab.kafka import releases
from sim import exit_codes
from sim.errors import InputError, UnavailableError
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from highwater.lab.hunt.state import Written

CONFIRMED: Final = "confirmed"
DIFFERS: Final = "not confirmed"
UNDECIDED: Final = "undecided"
NOT_EXPRESSIBLE: Final = "not expressible"
NOT_TRIED: Final = "not tried"
LIMIT_S: Final = 240
"""Seconds of an attempt."""


def lacking(kafka: str) -> str:
    """Why nothing can be acted out on brokers here, in one line; empty: it can."""
    try:
        check_library()
        releases.java_command()
        if kafka in releases.known() and not releases.is_fetched(kafka):
            return f"Kafka {kafka} is not here (highwater kafka fetch {kafka})"
        release.find(kafka)
    except (InputError, UnavailableError) as error:
        return error.problems[0]
    return ""


def act(script: Path, kafka: str, mode: str, rules: Mapping[str, str], note: Callable[[str], None]) -> dict[str, str]:
    """Make one run on real brokers; raises InputError if they cannot perform the script."""
    request = ConfirmRequest(str(script), kafka, mode, rules, limit=LIMIT_S)
    return outcome(request.prepare(note).run(1))


def outcome(run: Mapping[str, Any]) -> dict[str, str]:
    """The result of a run on brokers, and what was different."""
    code = run["exit_code"]
    if code == exit_codes.EXPECTED:
        return {"result": CONFIRMED, "told": ""}
    if run["failed"]:
        return {"result": UNDECIDED, "told": outcome_text(run)}
    attempts = [run, *run["before"]]  # The last one may agree, after one that did not.
    rows = [row for attempt in attempts for row in attempt["rows"] if not row["agrees"]]
    told = "; ".join(
        f"{row['what']}: {row['simulated']} in the simulation, {row['real']} on brokers" for row in rows[:1]
    )
    return {"result": DIFFERS if code == exit_codes.UNEXPECTED else UNDECIDED, "told": told}


def judged(one: Written, wanted: int, lacks: str) -> tuple[str, str]:
    """The class of a new cause, and the reason.

    Args:
        one: the cause.
        wanted: runs on brokers that decide.
        lacks: why no broker runs here; empty: they do.
    """
    if one.obstacle:
        return NOT_EXPRESSIBLE, one.obstacle
    differing = [run["told"] for run in one.runs if run["result"] == DIFFERS]
    if differing:
        return DIFFERS, differing[0]
    confirmed = _count(one.runs, CONFIRMED)
    if confirmed and confirmed == len(one.runs):
        return (
            CONFIRMED,
            f"{confirmed} of {confirmed} runs" if confirmed >= wanted else f"{counted(confirmed, 'run')} so far",
        )
    undecided = [run["told"] for run in one.runs if run["result"] == UNDECIDED]
    if undecided:
        return UNDECIDED, f"{confirmed} of {len(one.runs)} runs agree; {undecided[0]}"
    return NOT_TRIED, lacks or "not yet"


def _count(runs: Sequence[Mapping[str, str]], result: str) -> int:
    return sum(run["result"] == result for run in runs)
