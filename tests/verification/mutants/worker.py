"""The process that runs one mutant, or none: it replaces the module before anything imports it.

Its input is one JSON object (`Task`), its output another. The runs stand in a fixed order: in each round every random
scenario in each repaired mode, with the round as its seed; scenarios with a replicated quorum in each third round.
"""

from __future__ import annotations

import ast
import builtins
import json
import resource
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.places import ROOT
from tests.verification.mutants import marks
from tests.verification.mutants.operators import REACHED, Mutant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import CodeType, ModuleType

    from scenarios.format.scenario import Scenario
    from scenarios.single.rows import Row
    from sim.protocol.modes import Mode

FOLDERS: Final = ("sim/protocol", "sim/hosts", "sim/environment")
DATA: Final = (
    "rules",
    "modes",
    "mutants",
    "mutations",
    "decisions",
    "decision_points",
    "probe",
    "probes",
    "plugin_points",
)
"""Modules that only list, or that only record what is asked."""
REPAIRED: Final = ("kip320-repaired", "kraft-repaired", "elr-repaired")
JUDGED: Final = {"sim.judge.waits": True}
"""Besides early warnings, needless waits count."""
EXPENSIVE_EVERY: Final = 3
BUSY: Final = 10
"""A run with so many times the events of any run of its scenario without a mutant exceeds a bound: something loops."""
RUN_S: Final = 20
"""CPU time of one run, after which it counts as found; an unchanged run takes at most one second."""
MEMORY_BYTES: Final = 3 << 30

FOUND: Final = "found"
ERROR: Final = "error"
BOUND: Final = "bound"
SURVIVED: Final = "survived"
UNCHANGED: Final = "unchanged"


class Right(NamedTuple):
    """A run without a mutant.

    Attributes:
        digest: its digest.
        kinds: what was found inside the promise.
        seconds: its CPU time.
        blocks: the blocks that it executed, as bits in hexadecimal (`tests.verification.mutants.marks`).
        events: number of events.
    """

    digest: str
    kinds: str
    seconds: float
    blocks: str
    events: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    """What a process does.

    Attributes:
        mutant: None: the runs without one.
        runs: number of runs without a mutant, whose results are the output; with one, the runs after which a mutant
            that changes no digest is given up.
        seconds: CPU time after which a mutant counts as survived.
        right: the results of the runs without a mutant, in their order.
        reached: for each of them, whether it executed the block of the mutant; the others need not be run.
        only: the scenarios; empty: all.
    """

    mutant: Mutant | None
    runs: int
    seconds: float = 0.0
    right: Sequence[Right] = ()
    reached: Sequence[bool] = ()
    only: Sequence[str] = ()


@dataclass(slots=True)
class Hunted:
    """What came of a mutant.

    Attributes:
        outcome: found, by violations inside the promise or early warnings; error: a run ended with an exception;
            bound: one took too long, or too much; survived; unchanged: no digest changed.
        scenario: where it was found.
        mode: in which mode.
        seed: with which seed.
        kinds: the violations and warnings, the exception, or the bound.
        runs: number of runs.
        reached: how many of them executed the mutated place.
        changed: how many had another digest.
        first_changed: the first of them, with its number, or empty.
        seconds: CPU time of the runs. Those that need not be run count as they were without the mutant.
    """

    outcome: str = UNCHANGED
    scenario: str = ""
    mode: str = ""
    seed: int = -1
    kinds: str = ""
    runs: int = 0
    reached: int = 0
    changed: int = 0
    first_changed: str = ""
    seconds: float = 0.0
    by_scenario: dict[str, int] = field(default_factory=dict)


class _Changed(SourceFileLoader):
    """Loads a module of which the source is changed."""

    def __init__(self, name: str, path: str, change: Callable[[bytes], bytes | ast.Module]) -> None:
        super().__init__(name, path)
        self._change = change

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = compile(self._change(self.get_data(path)), path, "exec", dont_inherit=True)
        return code


class Finder:
    """Finds the modules that are changed, by their files, and no other ones."""

    def __init__(self, changes: Mapping[str, Callable[[bytes], bytes | ast.Module]]) -> None:
        self._changes = {_module(file): (file, change) for file, change in changes.items()}

    def find_spec(self, fullname: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder.find_spec`."""
        if fullname not in self._changes:
            return None
        name, change = self._changes[fullname]
        file = str(ROOT / name)
        is_package = name.endswith("__init__.py")
        places = [str((ROOT / name).parent)] if is_package else None
        loader = _Changed(fullname, file, change)
        return spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=places)


def _module(file: str) -> str:
    return file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


class _Reached:
    """Whether the mutated place was executed since it was last asked."""

    def __init__(self) -> None:
        self._yes = False

    def note(self) -> None:
        self._yes = True

    def take(self) -> bool:
        found, self._yes = self._yes, False
        return found


def install(mutant: Mutant) -> _Reached:
    """Let this process import the mutant."""
    reached = _Reached()
    setattr(builtins, REACHED, reached.note)
    sys.meta_path.insert(0, Finder({mutant.file: mutant.applied}))
    return reached


def mark(executed: set[int]) -> None:
    """Let this process note in the set which blocks it executes."""
    setattr(builtins, marks.MARKS, executed)
    texts = {file: (ROOT / file).read_bytes() for file in mutated_files()}
    changes = {}
    first = 0
    for file, text in texts.items():
        changes[file] = partial(marks.marked, first=first)
        first += len(marks.blocks({file: text}))
    sys.meta_path.insert(0, Finder(changes))


def mutated_files() -> list[str]:
    """The files that are mutated, in order."""
    files = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py"))]
    kept = [file for file in files if file.stem not in DATA and not file.stem.endswith("_probes")]
    return [str(file.relative_to(ROOT)) for file in kept]


def schedule(only: Sequence[str] = ()) -> Iterator[tuple[Scenario, Mode, int]]:
    """The runs, without end."""
    from scenarios.format import selection
    from scenarios.format.catalogue import load, names
    from sim.errors import InputError
    from sim.protocol.modes import mode as mode_named

    pairs = []
    for scenario in map(load, only or names()):
        for name in REPAIRED if scenario.drawn else ():
            with suppress(InputError):
                selection.modes(scenario, [name])
                pairs.append((replace(scenario, strict=True).with_settings(JUDGED), mode_named(name)))
    for seed in count():
        for scenario, mode in pairs:
            if scenario.control != "quorum" or seed % EXPENSIVE_EVERY == 0:
                yield scenario, mode, seed


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"more than {RUN_S} s")


def _run(scenario: Scenario, mode: Mode, seed: int) -> Row:
    from scenarios.single.run import run_row

    signal.setitimer(signal.ITIMER_VIRTUAL, RUN_S)
    try:
        return run_row(scenario, mode, seed)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def unmutated(task: Task, executed: set[int]) -> list[Right]:
    """The runs; `executed` has the blocks of the present one."""
    found = []
    for scenario, mode, seed in islice(schedule(task.only), task.runs):
        executed.clear()
        begun = time.process_time()
        row = _run(scenario, mode, seed)
        if row["verdict"] in ("error", "exhausted"):
            raise AssertionError(f"{scenario.name} {mode.name} {seed}: {row['verdict']} {row['error']}")
        seconds = round(time.process_time() - begun, 4)
        blocks = f"{marks.number(executed):x}"
        found.append(Right(row["digest"], row["violations_inside"], seconds, blocks, row["events"]))
    return found


def known_kinds(task: Task) -> dict[tuple[str, str], set[str]]:
    """(scenario, mode) -> what is found without a mutant, which does not count."""
    known: dict[tuple[str, str], set[str]] = {}
    for (scenario, mode, _), right in zip(schedule(task.only), task.right, strict=False):
        known.setdefault((scenario.name, mode.name), set()).update(filter(None, right.kinds.split(",")))
    return known


def _most_events(task: Task) -> dict[str, int]:
    """Scenario -> the events beyond which one of its runs exceeds a bound; none if it was not run without a mutant."""
    most: dict[str, int] = {}
    for (scenario, _, _), right in zip(schedule(task.only), task.right, strict=False):
        most[scenario.name] = max(most.get(scenario.name, 0), BUSY * right.events)
    return most


def hunted(task: Task, reached: _Reached) -> Hunted:
    """Run until the mutant is found, or time is up."""
    known = known_kinds(task)
    most_events = _most_events(task)
    found = Hunted()
    spared = 0.0
    begun = time.process_time()
    for number, (scenario, mode, seed) in enumerate(schedule(task.only)):
        right = task.right[number] if number < len(task.right) else None
        found.runs += 1
        is_found = False
        if right is not None and not task.reached[number]:
            spared += right.seconds
        else:
            kinds = known.get((scenario.name, mode.name), set())
            is_found = _finds(found, scenario, mode, seed, right, kinds, most_events.get(scenario.name, 0))
        if reached.take():
            found.reached += 1
            found.by_scenario[scenario.name] = found.by_scenario.get(scenario.name, 0) + 1
        found.seconds = round(time.process_time() - begun + spared, 2)
        is_unchanged = found.runs >= task.runs and not found.changed
        if is_found or is_unchanged or found.seconds > task.seconds:
            break
    return found


def _finds(
    found: Hunted, scenario: Scenario, mode: Mode, seed: int, right: Right | None, known: set[str], most_events: int
) -> bool:
    """Whether a run finds the mutant."""
    try:
        row = _run(scenario, mode, seed)
    except MemoryError:
        row = None
    if right is not None and (row is None or row["digest"] != right.digest):
        found.outcome = SURVIVED
        found.changed += 1
        found.first_changed = found.first_changed or f"{scenario.name} {mode.name} {seed}"
    outcome, kinds = _judged(row, known, most_events)
    if outcome:
        found.outcome, found.kinds = outcome, kinds
        found.scenario, found.mode, found.seed = scenario.name, mode.name, seed
    return bool(outcome)


def _judged(row: Row | None, known: set[str], most_events: int = 0) -> tuple[str, str]:
    if row is None:
        return BOUND, "memory"
    if row["verdict"] == "exhausted" or f"{TimeoutError.__name__}: " in row["error"]:
        return BOUND, row["error"]
    if row["verdict"] == "error":
        return ERROR, row["error"]
    if 0 < most_events < row["events"]:
        return BOUND, f"{row['events']} events"
    kinds = set(filter(None, row["violations_inside"].split(","))) - known
    return (FOUND, ",".join(sorted(kinds))) if kinds else ("", "")


def mutant_of(found: dict[str, Any]) -> Mutant:
    """A mutant from its JSON object."""
    return Mutant(**{**found, "source": tuple(found["source"])})


def task_of(found: dict[str, Any]) -> Task:
    """A task from its JSON object."""
    mutant = found.pop("mutant")
    if mutant is not None:
        mutant = mutant_of(mutant)
    right = [Right(*one) for one in found.pop("right")]
    return Task(mutant, right=right, **found)


def main() -> int:
    """Read a task, do it, write what came of it."""
    task = task_of(json.load(sys.stdin))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGVTALRM, _too_long)
    reached, executed = None, set[int]()
    if task.mutant is not None:
        reached = install(task.mutant)
    else:
        mark(executed)
    try:
        from scenarios.single.run import prepare_process

        prepare_process()
        if reached is None:
            result: Any = unmutated(task, executed)
        else:
            found = hunted(task, reached)
            result = {name: getattr(found, name) for name in Hunted.__slots__}
    except Exception as error:
        if reached is None or isinstance(error, ModuleNotFoundError):  # The environment, not the mutant.
            raise
        result = {"outcome": ERROR, "kinds": f"at the start: {type(error).__name__}: {error}"[:300]}
    json.dump(result, sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
