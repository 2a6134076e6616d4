"""What can be chosen at a step of a film, and the run that goes on from choices: its film and its files."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from highwater.lab.open.made_page import MadePage, page
from reports.document.blocks import Cell, Heading, Link, Links, Table, Text
from reports.evidence.narrative import SENTENCES
from reports.evidence.sentences import sentence
from reports.film import choices as choosing
from reports.film import chosen_script
from reports.film.film import film
from reports.formatting import seconds
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from reports.document.blocks import Block
    from reports.evidence.replay import Origin
    from reports.film.choices import Choice, Offer
    from reports.film.film import Film
    from scenarios.shrinking.case import Case

ORIGINAL: Final = "the original run"
CHOSEN: Final = "with your choice"
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9.-]+")


def carry_out(what: str, choices: tuple[Choice, ...], step: int, origin: Origin, case: Case) -> MadePage:
    """Make a page or file of choices: as `highwater.lab.open.tasks.RunTask`, of which these are the attributes.

    Raises:
        InputError: the run has no choices, or not these.
    """
    if not choosing.is_possible(case):
        raise InputError(
            "the next event can be chosen where events at the same time have a fixed order: here sim.ties draws it"
        )
    if what in ("plan", "script") and not choices:
        raise InputError("nothing was chosen")
    original = film(case, most=SENTENCES)
    name = _file(origin, case)
    chosen = choosing.chosen(case, original.observed.result, choices, f"{name}.json") if choices else case
    if what == "plan":
        if not case.scenario.drawn:
            raise InputError("a script has no plan: its scenario file runs it again")
        return _plan(chosen, f"{name}.json")
    if what == "script":
        return _script(chosen, f"{name}.toml")
    shown = film(chosen, most=SENTENCES) if choices else original
    if what == "choose":
        return _choose(choices, step, chosen, shown)
    return _film(choices, origin, (case, chosen), name, (original, shown))


def _file(origin: Origin, case: Case) -> str:
    """The name of a file without its end, of letters, digits, dots and dashes."""
    return f"{_NOT_IN_NAMES.sub('-', origin.name(case.mode)).strip('.-') or 'run'}-chosen"


def _plan(chosen: Case, file: str) -> MadePage:
    """The run as a plan, which `highwater run --plan` runs again."""
    from scenarios.single import recording

    return MadePage(recording.to_text(recording.to_json(chosen.scenario, chosen.run())), file=file)


def _script(chosen: Case, file: str) -> MadePage:
    """The run as a scenario file; raises InputError if it cannot be written as one."""
    from scenarios.shrinking.criterion import STALLED, symptom
    from scenarios.shrinking.script_export import NotScriptedError, to_toml, with_struck

    result = chosen.run()
    row = result.row
    words = f"--mode {chosen.mode.name} --seed {chosen.seed}"
    if not chosen.scenario.drawn:
        return _of_script(chosen, row, file, words)
    found = symptom(row) if row["violations"] or row["verdict"] == STALLED else None
    try:
        text = to_toml(with_struck(chosen, result.struck), found, "A chosen run", chosen.seed)
    except NotScriptedError as error:
        raise InputError(f"this run cannot be written as a scenario file: {error}. Its plan runs it again.") from None
    return MadePage(f"# With the latencies of the run: highwater run {file} {words}\n{text}", file=file)


def _of_script(chosen: Case, row: Mapping[str, Any], file: str, words: str) -> MadePage:
    from scenarios.format.schema import read
    from scenarios.single.run import run_row

    text = chosen_script.to_toml(chosen.scenario, row, chosen.mode.name)
    try:
        again = run_row(read(text, file), chosen.mode, chosen.seed, chosen.rules)
    except InputError as error:
        raise InputError(f"this run cannot be written as a scenario file: {error.problems[0]}") from None
    if again["digest"] != row["digest"]:
        raise InputError("this run cannot be written as a scenario file: that would be another run")
    return MadePage(f"# The same run: highwater run {file} {words}{_of_rules(chosen.rules)}\n{text}", file=file)


def _of_rules(rules: Mapping[str, str]) -> str:
    """The options of overridden rules, each after a space."""
    return "".join(f" --rule {name}={value}" for name, value in rules.items())


def _film(
    choices: tuple[Choice, ...], origin: Origin, cases: tuple[Case, Case], name: str, films: tuple[Film, Film]
) -> MadePage:
    """The film of the run after choices; cases and films are those of the original run and of this one."""
    from reports.film.page import page as film_page

    (case, chosen), (original, shown) = cases, films
    word = choosing.to_text(choices)
    notes = [*origin.warnings, *map(choosing.sentence, choices)]
    problem = choosing.departs(original.observed, shown.observed, choices)
    notes += [problem] if problem else []
    result = shown.observed.result
    is_script = not case.scenario.drawn
    of_script = f"{name}.toml --mode {result.row['mode']} --seed {result.row['seed']}{_of_rules(result.rules)}"
    again = of_script if is_script else f"--plan {name}.json"
    what = "scenario file" if is_script else "plan"
    notes.append(f"To run it again, save its {what}: highwater run {again}")
    if is_script and len(chosen.scenario.script) < len(case.scenario.script) + len(choices):
        rest_s = chosen_script.REST_US // 1_000_000
        notes.append(f"The next line of the script waits for a step that never comes: {rest_s} s later all is healed.")
    links = [("Original film", "film"), ("Scenario file", f"script?with={word}")]
    links[1:1] = [] if is_script else [("Plan", f"plan?with={word}")]
    if len(choices) > 1:
        links.insert(1, ("Without the last choice", f"film?with={choosing.to_text(choices[:-1])}"))
    both = [replace(shown, label=CHOSEN), replace(original, label=ORIGINAL)]
    return MadePage(film_page(both, notes, links, f"choose?with={word}&step="), is_film=True)


def _choose(choices: tuple[Choice, ...], number: int, case: Case, shown: Film) -> MadePage:
    observed = shown.observed
    last = len(observed.observations)
    if not 1 <= number <= last:
        raise InputError(f"the film has steps 1 to {last}, and not {number}")
    step = observed.observations[number - 1].step
    return MadePage(
        page(
            "Choose the next event",
            list(_blocks(choices, number, case, shown, f"{seconds(step['t'])}: {sentence(step)}")),
        )
    )


def _blocks(choices: tuple[Choice, ...], number: int, case: Case, shown: Film, now: str) -> Iterator[Block]:
    row = shown.observed.result.row
    film_at = f"film?with={choosing.to_text(choices)}" if choices else "film"
    yield Links([Link("Back to the film", film_at), Link("All runs", "../")])
    yield Text(f"{row['scenario']}, mode {row['mode']}, seed {row['seed']}, step {number} of {len(shown.changes)}.")
    yield Text(now, "question")
    yield from (Text(f"Chosen before: {choosing.sentence(choice)}", "note") for choice in choices)
    if len(choices) >= choosing.MOST:
        yield Text(f"At most {choosing.MOST} choices follow one another.", "none")
        return
    offers = choosing.offers(case, shown, number - 1)
    if not (offers.messages or offers.brokers or offers.links):
        yield Text("Everything is healed from here on: nothing can be chosen.", "none")
        return
    yield Text(
        "Up to this step the run stays as it was. A choice leads to the film of the run that goes on from it, beside "
        "the original one.",
        "note",
    )
    yield Heading("Messages in flight", name="messages")
    if offers.messages:
        yield _table("message", offers.messages, choices)
    else:
        yield Text("No message that a fault can strike alone is in flight at this step.", "none")
    yield Heading("Brokers", name="brokers")
    yield _table("broker", offers.brokers, choices)
    yield Heading("Links", name="links")
    yield _table("link between", offers.links, choices)


def _table(about: str, offers: Sequence[Offer], before: tuple[Choice, ...]) -> Table:
    """A row for each message, broker or link, with a link for each choice."""
    most = max(len(offer.choices) for offer in offers)
    rows = []
    for offer in offers:
        links: list[Link | Cell | None] = [
            Link(text, f"film?with={choosing.to_text((*before, choice))}") for text, choice in offer.choices
        ]
        rows.append((offer.about, *links, *[Cell("", "none")] * (most - len(links))))
    return Table([about, "choose", *[""] * (most - 1)], rows)
