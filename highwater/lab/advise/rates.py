"""How often faults strike a cluster: the causes that are modelled, rates from a file, and published ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final

from highwater.lab.advise.answers import DAY_S, Answers
from scenarios import paths
from sim.errors import ALIKE, InputError, UserError, did_you_mean, nearest
from sim.plurals import counted

EXCLUDED: Final = {"rack_power_losses": "rack", "outages": "everything"}
"""Causes that strike what loses power together -> the answer `together` that says so."""
PUBLISHED: Final = "published"
"""The word in place of a file."""
WEEKS_A_YEAR: Final = 365.25 / 7
YEAR_S: Final = 365.25 * 86_400
RATE_MAX: Final = 1e6
BATCHES_S: Final = (0.01, 100.0)
"""Bounds of ``batches_per_s``."""
BATCHES_MAX: Final = 3_000
"""Batches in one interaction time without ``batches_per_s``, at most."""


@dataclass(frozen=True, slots=True)
class Source:
    """A published rate, in events a year of what the cause strikes."""

    rate: float
    text: str


@dataclass(frozen=True, slots=True)
class FaultCause:
    """Why a fault strikes.

    Attributes:
        per: what has the rate: a broker, a rack, the cluster or a partition.
        one: the name of one such fault.
        text: what happens.
        lasts_s: seconds until it is over, at most; 0: at once; None: the answer `return_s`.
        loses: whether it can cost a broker its page cache or disk.
        sources: published rates by name, the first one used without a file.
    """

    per: str
    one: str
    text: str
    lasts_s: int | None
    loses: bool = False
    sources: tuple[tuple[str, Source], ...] = ()


CAUSES: Final[Mapping[str, FaultCause]] = {
    "process_crashes": FaultCause("broker", "process crash", "a broker's process is killed", None),
    "machine_crashes": FaultCause(
        "broker",
        "machine crash",
        "a machine loses power, or its kernel crashes: the page cache is lost",
        None,
        True,
        (
            ("dean-2008", Source(1_000 / 1_800, "1,000 machine failures in a year of 1,800 machines (J. Dean 2008)")),
            ("linkedin", Source(0.2, 'at least: of 1,800 brokers some "fail on a daily basis" (LinkedIn engineering)')),
        ),
    ),
    "disk_losses": FaultCause(
        "broker",
        "disk loss",
        "a broker's disk is replaced by an empty one",
        None,
        True,
        (
            ("backblaze-2025", Source(0.0136, "hard drives, 1.36 % a year (Backblaze 2025)")),
            ("backblaze-2024", Source(0.0157, "hard drives, 1.57 % a year (Backblaze 2024)")),
            ("aws-gp", Source(0.002, "cloud volumes, 0.1 to 0.2 % a year (AWS)")),
            ("aws-io2", Source(0.00001, "cloud volumes of type io2, 0.001 % a year (AWS)")),
        ),
    ),
    "pauses": FaultCause(
        "broker", "pause", "a broker's process stands still (garbage collection, a suspended machine)", 30
    ),
    "broker_cuts": FaultCause("broker", "broker cut", "a broker is cut off from the others and the control plane", 60),
    "rack_power_losses": FaultCause(
        "rack",
        "rack power loss",
        "all machines of a rack lose power",
        None,
        True,
        (("dean-2008", Source(20 / 30, "20 of about 30 racks of 40 to 80 machines in a year (J. Dean 2008)")),),
    ),
    "rack_cuts": FaultCause("rack", "rack cut", "a rack is cut off from the others and the control plane", 60),
    "outages": FaultCause(
        "cluster",
        "outage",
        "all machines lose power",
        None,
        True,
        (("dean-2008", Source(1 / 2.4, "1 power unit of 500 to 1,000 of 1,800 machines in a year (J. Dean 2008)")),),
    ),
    "planned_restarts": FaultCause("broker", "planned restart", "a broker is restarted in a controlled way", 30),
    "moves": FaultCause("partition", "move", "the partition is moved to other brokers", 0),
}
"""Name in a rates file -> cause."""
ASKED: Final = ("planned_restarts", "moves")
"""Causes with a question of their own, which a file may leave out."""
TABLES: Final = ("batches_per_s", "a_year", "lasts_s")


@dataclass(frozen=True, slots=True)
class Rates:
    """How often faults strike, and for how long.

    Attributes:
        a_year: cause -> events a year, of each broker, rack, ...
        lasts_s: cause -> seconds, at most; a fault lasts from half of that to all of it.
        batches_per_s: batches sent to the partition; None: one, or fewer with long faults.
        sources: cause -> where its rate comes from.
    """

    a_year: Mapping[str, float]
    lasts_s: Mapping[str, int]
    batches_per_s: float | None
    sources: Mapping[str, str]


def find(word: str, answers: Answers) -> Rates:
    """The rates of a file, or the published ones.

    Raises:
        InputError: the file is missing, not TOML, or has an unknown key, no number for a cause, or a bad one.
        StorageError: it cannot be read.
    """
    if word == PUBLISHED:
        return published(answers)
    file = Path(word)
    near = did_you_mean(word, [PUBLISHED])
    if near and not file.suffix and not file.exists():
        raise InputError(f"--rates {word}: no such file{near}")
    return of_file(file, answers)


def published(answers: Answers) -> Rates:
    """Published rates; causes without one are left out, and so is power of racks that the answers exclude."""
    a_year: dict[str, float] = {}
    sources: dict[str, str] = {}
    for name, cause in CAUSES.items():
        if name in ASKED:
            continue
        a_year[name] = 0.0
        if EXCLUDED.get(name, answers.together) != answers.together:
            sources[name] = f"excluded by together = {answers.together}"
        elif not cause.sources:
            sources[name] = "no rate is published: left out"
        else:
            _, source = cause.sources[0]
            a_year[name], sources[name] = source.rate, source.text
    return _complete(a_year, {}, None, sources, answers)


def of_file(file: Path, answers: Answers) -> Rates:
    """The rates of a TOML file."""
    try:
        data = paths.parse_toml(paths.read(file, paths.SCENARIO_BYTES).decode("utf-8-sig"))
    except UserError as error:
        raise type(error)(*(f"{file}: {problem}" for problem in error.problems)) from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: not UTF-8 text") from None
    try:
        return of_data(data, answers)
    except InputError as error:
        raise InputError(*(f"{file}: {problem}" for problem in error.problems)) from None


def of_data(data: Mapping[str, Any], answers: Answers) -> Rates:
    """The rates of a parsed file."""
    problems = [f"unknown key {name!r}{did_you_mean(name, TABLES)}" for name in data if name not in TABLES]
    tables: dict[str, Mapping[str, Any]] = {}
    for name in ("a_year", "lasts_s"):
        table = data.get(name, {})
        if not isinstance(table, Mapping):
            raise InputError(*problems, f"{name} is not valid: a table is needed")
        problems += (f"unknown key {name}.{key}{did_you_mean(key, CAUSES)}" for key in table if key not in CAUSES)
        tables[name] = {key: value for key, value in table.items() if key in CAUSES}
    missing = [name for name in CAUSES if name not in tables["a_year"] and name not in ASKED]
    if missing:
        needed = ", ".join(f"{name} (of a {CAUSES[name].per})" for name in missing)
        problems.append(f"missing in a_year: {needed}: give events a year, or 0")
    sources: dict[str, str] = {}
    a_year: dict[str, float] = {}
    lasts_s: dict[str, int] = {}
    for name, value in tables["a_year"].items():
        try:
            a_year[name] = _rate(name, value, sources)
        except InputError as error:
            problems += error.problems
    for name, value in tables["lasts_s"].items():
        try:
            lasts_s[name] = _seconds(name, value)
        except InputError as error:
            problems += error.problems
    batches = data.get("batches_per_s")
    low, high = BATCHES_S
    if batches is not None and (not _is_number(batches) or not low <= batches <= high):
        problems.append(f"batches_per_s = {_said(batches)} is not valid: a number from {low:g} to {high:g} is needed")
    if problems:
        raise InputError(*problems)
    return _complete(a_year, lasts_s, batches, sources, answers)


def contradictions(rates: Rates, answers: Answers) -> list[str]:
    """Where a rates file says other than the answer `together`, which the table follows."""
    return [
        f"{name}: {rates.a_year[name]:.3g} a year in the losses a year, as the rates file says, although together = "
        f"{answers.together}, which the table follows"
        for name, together in EXCLUDED.items()
        if (rates.a_year[name] > 0) > (answers.together == together)
    ] + [
        f"{name}: 0 a year in the losses a year, as the rates file says, although together = {together}, which the "
        "table follows"
        for name, together in EXCLUDED.items()
        if answers.together == together and not rates.a_year[name]
    ]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _said(value: object) -> str:
    """A number as it is; of anything else, only what it is."""
    return str(value) if isinstance(value, int | float) else f"a {type(value).__name__}"


def _rate(name: str, value: object, sources: dict[str, str]) -> float:
    known = dict(CAUSES[name].sources)
    if isinstance(value, str):
        if value not in known:
            if near := nearest(value, known, ALIKE):
                raise InputError(f"a_year.{name} = {value!r} is not valid; did you mean {near!r}?")
            names = f"; published rates: {', '.join(known)}" if known else "; none is published"
            raise InputError(f"a_year.{name} is not valid: a number is needed{names}")
        sources[name] = known[value].text
        return known[value].rate
    if not _is_number(value) or not 0 <= value <= RATE_MAX:  # type: ignore[operator]
        raise InputError(f"a_year.{name} = {_said(value)} is not valid: a number from 0 to {RATE_MAX:,.0f} is needed")
    sources[name] = "the rates file"
    return float(value)  # type: ignore[arg-type]


def _seconds(name: str, value: object) -> int:
    if CAUSES[name].lasts_s == 0:
        raise InputError(f"lasts_s.{name} has no effect: it is over at once")
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= DAY_S:
        raise InputError(f"lasts_s.{name} = {_said(value)} is not valid: a whole number from 1 to {DAY_S} is needed")
    return value


def _complete(
    a_year: dict[str, float],
    lasts_s: Mapping[str, int],
    batches_per_s: float | None,
    sources: dict[str, str],
    answers: Answers,
) -> Rates:
    asked = {"planned_restarts": answers.restarts, "moves": answers.moves}
    for name, a_week in asked.items():
        if name not in a_year:
            a_year[name] = a_week * WEEKS_A_YEAR
            sources[name] = f"the answer: {a_week:g} a week"
    found_s = {
        name: lasts_s.get(name, answers.return_s if cause.lasts_s is None else cause.lasts_s)
        for name, cause in CAUSES.items()
    }
    if not any(a_year.values()):
        raise InputError("every rate is 0: then no fault strikes, and nothing is lost")
    ordered = {name: a_year[name] for name in CAUSES}
    return Rates(ordered, found_s, batches_per_s, {name: sources[name] for name in CAUSES})


def in_words(counts: Mapping[str, int]) -> str:
    """Causes with their numbers: ``1 move, 2 planned restarts``."""
    return ", ".join(
        counted(number, CAUSES[name].one, name.replace("_", " ")) for name, number in counts.items() if number
    )
