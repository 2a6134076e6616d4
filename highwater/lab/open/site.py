"""What each address answers. An address has keys and numbers, which are looked up, and never a path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from highwater.lab.open import pages, results
from highwater.lab.open.jobs import BusyError, Jobs
from highwater.lab.open.made_page import MadePage, page
from highwater.lab.open.open_sweep import OpenSweep
from highwater.lab.open.tasks import (
    OF_CHOICES,
    WHATS,
    RunName,
    RunTask,
    SweepTask,
    Task,
    carry_out,
    modes_of,
)
from reports.document.blocks import Items, Link, Links
from reports.document.page import POLICY
from reports.evidence import replay
from reports.film.choices import parse
from reports.film.page import policy as film_policy
from scenarios.format import catalogue
from scenarios.sweep import claim
from scenarios.sweep.folder import open_folder
from scenarios.sweep.ownership import RUN
from sim.errors import InputError, UserError, did_you_mean
from sim.kernel.streams import SEED_END

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from highwater.lab.open.tasks import What
    from scenarios.sweep.folder import Folder

_WHATS: Final = (*WHATS, *OF_CHOICES)
_ADDRESS: Final = re.compile(
    r"/(?:(?P<key>[0-9a-f]{12})/(?:(?P<part>failing|report|causes)"
    rf"|(?P<variant>\d{{1,6}})-(?P<mode>\d{{1,6}})-(?P<seed>\d{{1,19}})/(?P<what>{'|'.join(_WHATS)}))?)?",
    re.ASCII,
)
OK: Final = 200
FOUND: Final = 302
NOT_FOUND: Final = 404
REFUSED: Final = 422
FAILED: Final = 500
BUSY: Final = 503


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: status, page, what the page may load and run, and where to go instead; of a file to download, its
    name.
    """

    status: int
    text: str
    policy: str = POLICY
    location: str = ""
    file: str = ""


def refused(status: int, *problems: str) -> Answer:
    """An answer that says what is wrong."""
    return Answer(status, page("This cannot be shown", [Links([Link("To the first page", "/")]), Items(problems)]))


_POLICY_OF_PAGE: Final = '<meta http-equiv="Content-Security-Policy"'
_NO_PAGE: Final = "there is no such page"


class Site:
    """The pages of a folder, of a sweep elsewhere, or of a scenario.

    Attributes:
        jobs: makes the pages that take runs.

    Args:
        word: a folder, a sweep's URI, a scenario's name or file, or a recorded run.

    Raises:
        UserError: it is none of these, or the folder holds no result.
    """

    def __init__(self, word: str) -> None:
        self.jobs: Jobs[Task, MadePage] = Jobs(carry_out, lambda made: len(made.text))
        self._sweeps: dict[str, OpenSweep] = {}
        self._lock = Lock()
        self._folder: Path | None = None
        self._single: str | None = None
        self._remote: Folder | None = None
        if word in catalogue.names() or word.endswith((".toml", ".json")):
            self._origin(word, 0)
            self._single = word
            return
        folder = open_folder(word)
        if folder.local is None:
            OpenSweep(folder, _REMOTE).read()
            self._remote = folder
            return
        if not folder.local.is_dir():
            raise InputError(
                f"{word} is no folder, and no scenario{did_you_mean(word, catalogue.names(), catalogue.LISTING)}"
            )
        self._folder = folder.local.absolute()
        if not results.find(self._folder) and not self._waits():
            raise InputError(f"{word} holds no result of highwater: no sweep, hunt, review, audit, report, film or run")

    def answer(self, path: str, query: str) -> Answer:
        """The answer to an address, whose parts are still percent-encoded; errors are answers."""
        found = _ADDRESS.fullmatch(path)
        if found is None:
            return refused(NOT_FOUND, _NO_PAGE)
        asked = {name: values[-1] for name, values in parse_qs(query, max_num_fields=10).items()}
        try:
            return self._answer(found, asked)
        except BusyError:
            text = pages.waiting("Many pages are being made: this one waits for its turn")
            return Answer(BUSY, text)
        except UserError as error:
            return refused(REFUSED, *error.problems)

    def _answer(self, found: re.Match[str], asked: Mapping[str, str]) -> Answer:
        key = found["key"]
        if key is None:
            return self._first(is_list="all" in asked)
        if self._single is not None:
            return self._of_single(found, asked) if key == _SINGLE else refused(NOT_FOUND, _NO_PAGE)
        if self._remote is not None:
            return self._of_sweep(self._remote, found, asked, 0) if key == _REMOTE else refused(NOT_FOUND, _NO_PAGE)
        there = self._results()
        if (result := there.get(key)) is None:
            return refused(NOT_FOUND, "there is no such result any more")
        if result.what == results.SWEEP:
            return self._of_sweep(open_folder(result.path), found, asked, len(there) - 1)
        if result.what == results.RUN_OF:
            return self._of_run(str(result.path), found, asked, len(there) - 1)
        if found["part"] or found["what"]:
            return refused(NOT_FOUND, _NO_PAGE)
        return _stored(result)

    def _results(self) -> dict[str, results.Result]:
        return {} if self._folder is None else results.find(self._folder)

    def _waits(self) -> bool:
        """Whether a sweep has claimed the folder, and has no run yet."""
        if self._folder is None or (self._folder / RUN).exists():
            return False
        return bool(claim.others(open_folder(self._folder)))

    def _first(self, *, is_list: bool) -> Answer:
        if self._single is not None:
            return _elsewhere(_SINGLE)
        if self._remote is not None:
            return _elsewhere(_REMOTE)
        there = self._results()
        own = next((result for result in there.values() if result.what == results.SWEEP and not result.name), None)
        if own is None and len(there) == 1:
            own = next(iter(there.values()))
        if own is not None and not is_list:
            return _elsewhere(own.key)
        return Answer(OK, pages.index(str(self._folder), there.values(), self._waits()))

    def _of_sweep(self, folder: Folder, found: re.Match[str], asked: Mapping[str, str], others: int) -> Answer:
        key = found["key"]
        with self._lock:
            sweep = self._sweeps.setdefault(key, OpenSweep(folder, key))
        store, tally, state = sweep.read()
        if (what := found["what"]) is not None:
            variants = store.sweep.variants
            variant, mode = int(found["variant"]), int(found["mode"])
            if variant >= len(variants) or mode >= len(store.sweep.modes[variants[variant].name]):
                return refused(NOT_FOUND, "the sweep has no such scenario or mode")
            name = RunName(_place(folder), True, variant, mode, int(found["seed"]))
            return self._of_name(_what(what), name, asked, f"{what.capitalize()} of seed {name.seed}")
        part = found["part"]
        if part == "report":
            return self._made(SweepTask("report", _place(folder), state), "Report")
        if part == "causes":
            return self._made(SweepTask("causes", _place(folder), state), "Causes of failures: up to two minutes")
        if part is None:
            return Answer(OK, pages.sweep(store, tally, sweep.progress(), others))
        mode_name, kind = asked.get("mode"), asked.get("kind")
        if mode_name not in (None, *tally.modes) or kind not in (None, *tally.shown_kinds):
            return refused(NOT_FOUND, "the sweep has no such mode or kind")
        text = pages.failing(store, tally, mode_name, kind, _number(asked.get("page"), 1))
        return refused(NOT_FOUND, _NO_PAGE) if text is None else Answer(OK, text)

    def _of_single(self, found: re.Match[str], asked: Mapping[str, str]) -> Answer:
        assert self._single is not None
        return self._of_run(self._single, found, asked, 0)

    def _of_run(self, source: str, found: re.Match[str], asked: Mapping[str, str], others: int) -> Answer:
        """The page of a scenario or recorded run, or one of a run of it."""
        if found["part"] is not None or int(found["variant"] or 0):
            return refused(NOT_FOUND, _NO_PAGE)
        seed = int(found["seed"]) if found["seed"] is not None else _number(asked.get("seed"), 0)
        if not 0 <= seed < SEED_END:
            return refused(NOT_FOUND, "a seed is a number from 0 to 2^63 - 1")
        origin = self._origin(source, seed)
        modes = modes_of(origin)
        what = found["what"]
        if what is None:
            return Answer(OK, pages.runs_of(origin, modes, others))
        if (mode := int(found["mode"])) >= len(modes):
            return refused(NOT_FOUND, "there is no such mode")
        name = RunName(source, False, 0, mode, origin.seed)
        return self._of_name(_what(what), name, asked, f"{what.capitalize()} of {origin.scenario.name}")

    def _of_name(self, what: What, name: RunName, asked: Mapping[str, str], title: str) -> Answer:
        """A page of a run, or of the run that goes on from choices; raises InputError if these are malformed."""
        choices = parse(asked.get("with", ""))
        if choices and what not in ("film", *OF_CHOICES):
            return refused(NOT_FOUND, _NO_PAGE)
        step = _number(asked.get("step"), 1) if what == "choose" else 0
        if step < 0:
            return refused(NOT_FOUND, "a step is a number from 1 on")
        return self._made(RunTask(what, name, choices, step), title)

    @staticmethod
    def _origin(source: str, seed: int) -> replay.Origin:
        """A scenario with a seed; a recorded run has its own."""
        return replay.origin(source, None if source.endswith(".json") else seed, None, {}, {})

    def _made(self, task: Task, title: str) -> Answer:
        made = self.jobs.result(task)
        if made is None:
            return Answer(OK, pages.waiting(title))
        policy = film_policy() if made.is_film else POLICY
        return Answer(REFUSED if made.is_refused else OK, made.text, policy, file=made.file)


_SINGLE: Final = "0" * 12
_REMOTE: Final = "0" * 11 + "1"


def _stored(result: results.Result) -> Answer:
    """A page that was written as a file, perhaps by somebody else: no script runs but that of this version's films, and
    nothing by itself, such as a refresh to another page.
    """
    text = results.read_page(result)
    if result.what == results.FILM and text.lower().count("http-equiv") == text.count(_POLICY_OF_PAGE) == 1:
        return Answer(OK, text, film_policy())
    return Answer(OK, text, f"sandbox; {POLICY}")


def _what(word: str) -> What:
    return next(what for what in _WHATS if what == word)


def _place(folder: Folder) -> str:
    """The folder as another process opens it."""
    return folder.shown if folder.local is None else str(folder.local)


def _number(text: str | None, default: int) -> int:
    """A number of a query; -1, which nothing has, if it is none."""
    if text is None:
        return default
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else -1


def _elsewhere(key: str) -> Answer:
    return Answer(FOUND, page("Elsewhere", [Links([Link("Go on", f"/{key}/")])]), location=f"/{key}/")
