"""Pages that take runs: each is made in a worker process, from a task that can be pickled."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from highwater.lab.open.made_page import MadePage, page
from reports.document.blocks import Commands, Heading, Items, Link, Links, Text
from reports.document.page import to_html
from reports.evidence import replay
from scenarios.sweep.folder import open_folder
from sim.errors import UserError
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reports.document.blocks import Block
    from reports.evidence.replay import Origin
    from reports.film.choices import Choice
    from scenarios.shrinking.case import Case
    from sim.protocol.modes import Mode

EXPLAIN_S: Final = 60
"""Seconds for an explanation, as `highwater explain` takes by default."""
REPLAY: Final = "highwater replay "
_DIGEST: Final = re.compile(r" --expect-digest [0-9a-f]+")
What = Literal["film", "explanation", "ticket", "choose", "plan", "script"]
WHATS: Final[tuple[What, ...]] = ("film", "explanation", "ticket")
"""The pages of a run that others lead to."""
OF_CHOICES: Final[tuple[What, ...]] = ("choose", "plan", "script")
"""The page of what can be chosen at a step of a film; the files of a run after choices."""


@dataclass(frozen=True, slots=True)
class RunName:
    """A run.

    Attributes:
        source: a sweep's folder, a scenario or its file, or a recorded run, as a user would write it.
        is_sweep: whether it is a sweep's folder.
        variant: number of the scenario at a point of the sweep's grid; otherwise 0.
        mode: number of the mode.
        seed: the seed.
    """

    source: str
    is_sweep: bool
    variant: int
    mode: int
    seed: int


@dataclass(frozen=True, slots=True)
class RunTask:
    """Make a page about a run.

    Attributes:
        choices: the choices from which the run goes on.
        step: number of a step, from 1, at which the next event is chosen.
    """

    what: What
    run: RunName
    choices: tuple[Choice, ...] = ()
    step: int = 0


@dataclass(frozen=True, slots=True)
class SweepTask:
    """Make the report of a sweep, or group its failures by cause. `state` names the sweep's waves."""

    what: Literal["report", "causes"]
    folder: str
    state: str


Task = RunTask | SweepTask


def carry_out(task: Task) -> MadePage:
    """Make the page of a task; what cannot be done is said on it."""
    try:
        return _of_sweep(task) if isinstance(task, SweepTask) else _of_run(task)
    except UserError as error:
        links = Links([Link("Back to the sweep", "./" if isinstance(task, SweepTask) else "../")])
        return MadePage(page("This cannot be shown", [links, Items(error.problems)]), is_refused=True)


def origin_of(run: RunName) -> tuple[Origin, tuple[Mode, ...]]:
    """Where a run comes from, and the modes that its number counts.

    Raises:
        UserError: it cannot be run.
    """
    if not run.is_sweep:
        origin = replay.origin(run.source, run.seed, None, {}, {})
        return origin, modes_of(origin)
    from scenarios.sweep.store import Store

    folder = open_folder(run.source)
    store = Store(folder)
    variant = store.sweep.variants[run.variant]
    point = {key: variant.config[key] for key in store.grid}
    origin = replay.of_sweep(folder, run.seed, variant.name, point)
    return origin, origin.modes


def modes_of(origin: Origin) -> tuple[Mode, ...]:
    """The modes of a scenario: those of its [expect], then all others that its brokers can run."""
    from contextlib import suppress

    from scenarios.format.cluster_checks import check_control_plane

    found = list(origin.modes)
    for mode in MODES.values() if not origin.digests else ():  # A recorded run has its own.
        with suppress(UserError):
            check_control_plane(origin.scenario, [mode])
            found += [mode] if mode not in found else []
    return tuple(found)


def _of_sweep(task: SweepTask) -> MadePage:
    from reports.evidence import triage
    from reports.page import build
    from scenarios.sweep.store import Store

    store = Store(task.folder)
    if task.what == "report":
        return MadePage(build.page(store))
    links = Links([Link("Back to the sweep", "./"), "Causes"])
    found = triage.for_report(store)
    told = [Text("No run violated anything.")] if found is None else list(build.causes(found, store))
    return MadePage(to_html(build.document(store, [links, *told])))


def _of_run(task: RunTask) -> MadePage:
    from scenarios.shrinking.case import Case

    origin, modes = origin_of(task.run)
    mode = modes[task.run.mode]
    case = Case(origin.scenario, mode, origin.seed, origin.rules)
    if task.choices or task.what in OF_CHOICES:
        from highwater.lab.open import choosing

        return choosing.carry_out(task.what, task.choices, task.step, origin, case)
    if task.what == "film":
        return MadePage(_film(origin, case), is_film=True)
    title = f"{origin.scenario.name}, mode {mode.name}, seed {origin.seed}"
    links = Links([Link("Back", "../"), *(_link(what, task.what) for what in WHATS)])
    made = _explained(origin, case) if task.what == "explanation" else _ticket(origin, case)
    return MadePage(page(title, [links, *(Text(line, "warning") for line in origin.warnings), *made]))


def _link(what: What, here: What) -> Link | str:
    text = what.capitalize()
    return text if what == here else Link(text, what)


def _film(origin: Origin, case: Case) -> str:
    from reports.evidence.narrative import SENTENCES
    from reports.film.choices import is_possible
    from reports.film.film import film
    from reports.film.page import page as film_page

    filmed = film(case, most=SENTENCES)
    digest, expected = filmed.observed.result.row["digest"], origin.digests.get(case.mode.name)
    differs = [] if expected in (None, digest) else [f"This is another run than the sweep's: {digest}, not {expected}."]
    choose = "choose?step=" if is_possible(case) else ""
    return film_page([filmed], [*origin.warnings, *differs], [("All runs", "../")], choose)


def _explained(origin: Origin, case: Case) -> Iterator[Block]:
    from highwater.cli.commands import explain
    from reports.drawing.explanation import explain as find
    from reports.evidence import shrunk_run
    from reports.evidence.narrative import SENTENCES
    from reports.evidence.story import outcome
    from scenarios.shrinking.criterion import Trials

    if not origin.scenario.drawn:
        result, story, tried = explain.explain_script(case, None, SENTENCES)
        yield Heading(outcome(result.row))
        yield from explain.script_blocks(result, story, tried)
    else:
        begin = time.monotonic()
        found, took = shrunk_run.shrunk(
            shrunk_run.failed_run(origin, case.mode), None, EXPLAIN_S / 2, lambda _case, _runs: None
        )
        small = shrunk_run.as_found(found, Path("plan.json"))
        explained = find(found, small, Trials(lambda: time.monotonic() - begin > EXPLAIN_S), SENTENCES)
        yield Heading(f"{shrunk_run.kept(found)}: the story of the smallest run with the same cause")
        yield from explain.blocks(found, took, explained)
    replayed = str(case.row()["replay"])
    if replayed:
        words = _DIGEST.sub("", replayed).removeprefix(REPLAY)
        yield Heading("On the command line")
        yield Commands([replayed, *(f"highwater {verb} {words}" for verb in ("explain", "show"))])


def _ticket(origin: Origin, case: Case) -> Iterator[Block]:
    from highwater.lab.tickets.ticket import findings, ticket
    from reports.evidence.triage import documented_by, recorded
    from scenarios.shrinking.criterion import Trials, symptom

    if origin.scenario.drawn:
        kept = symptom(case.row())
        names: Sequence[str] = documented_by(recorded(case, kept), kept, Trials())
    else:
        names = [origin.scenario.name]
    known = [name for name in names if name in findings()]
    if not known:
        yield Text(
            "No bug that FINDINGS.md describes and brokers have shown is the cause of this run: it has no ticket."
        )
        return
    written = ticket(known[0])
    name = known[0]
    yield Text(f"{name} shows this failure on brokers, too. highwater ticket {name} --output DIR writes these files.")
    yield from (Text(note, "note") for note in written.notes)
    for file, text in written.files.items():
        yield Heading(file)
        yield Commands(text.splitlines())
