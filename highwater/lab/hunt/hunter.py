"""The loop of a hunt: run random seeds, examine and shrink failures, run new ones on real brokers, and begin again.

The loop consists of steps, each of which ends by writing the state. The state alone decides on the next step and its
arm; the clock only decides when the hunt is over. Pending work comes first (runs on brokers, then failures), before
further seeds, so that little is pending.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.hunt import acting, examining
from highwater.lab.hunt import state as states
from highwater.lab.hunt.arms import next_arm
from highwater.lab.hunt.examining import FirstLook, ShrunkFailure, look, shrink_failure
from highwater.lab.hunt.state import FINDING, PLAN, SCRIPT, STORY, ArmState, FailureCause, HuntState, Written
from scenarios.campaign.runner import LocalRunner
from scenarios.single.run import run_row
from sim.errors import InputError, UnavailableError, UserError
from sim.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from highwater.lab.hunt.arms import Arm
    from scenarios.format.findings import KnownFinding

SEEDS: Final = 100
"""Seeds of a step."""
LOOKS: Final = 10
"""Failures that each process examines in a step."""
RETRIES: Final = 2
"""Further failures of a cause whose scripts are tried, if brokers do not confirm the first one's."""
REPEAT: Final = 3
"""Runs on real brokers for each new cause."""
NOTE_S: Final = 10.0
"""Seconds between two notes on progress."""
PAGE_S: Final = 60.0
"""Seconds after which the page is written again."""
ORACLE: Final = "oracle"
BROKERS: Final = "brokers"
BROKERS_WALL: Final = "brokers wall"
"""Keys of `HuntState.times`: CPU time and elapsed time of runs on brokers."""
BROKERS_SHARE: Final = 0.5
"""Largest share of the elapsed time that runs on brokers may take."""
FIRST_RUN_S: Final = 120.0
"""Expected seconds of the first run on brokers; later ones are expected to take as long as the longest so far."""
LONGEST: Final = "longest run on brokers"
"""Key of `HuntState.times`: elapsed time of the longest run on brokers."""
ELSEWHERE: Final = "elsewhere"
"""Key that all causes beyond the first `state.CAUSES_MAX` share."""


class Clock:
    """Elapsed time, and CPU time of this process."""

    def wall_s(self) -> float:
        """Elapsed seconds since an arbitrary moment."""
        return time.monotonic()

    def cpu_s(self) -> float:
        """CPU seconds of this process, and of its child processes that have ended."""
        spent = os.times()
        return spent.user + spent.system + spent.children_user + spent.children_system


@dataclass(frozen=True, slots=True)
class ArmResults:
    """The results of some seeds of an arm; `hits` are seeds with the violation to examine."""

    runs: int
    events: int
    inside: int
    outside: int
    stalled: int
    hits: list[tuple[int, str]]
    errors: list[list[str]]


@dataclass(slots=True)
class Hunt:
    """A hunt.

    Attributes:
        folder: its folder.
        state: its state, which is stored after each step.
        arms_with: returns the arms, by name, of the mode with some rules replaced.
        known: findings that are recognised.
        kafka: the release, or the folder of a build.
        lacks: why nothing can run on brokers here; empty: it can.
        repeat: runs on brokers for each new cause.
        compare: compares the build's classes for one of the `subjects` with the mode; no subjects: there is no build.
        processes: number of worker processes.
        clock: measures time.
        tell: called with notes for the user.
        page: called to write the page.
        act: makes one run on brokers.
    """

    folder: Path
    state: HuntState
    arms_with: Callable[[Mapping[str, str]], Mapping[str, Arm]]
    known: Sequence[KnownFinding]
    kafka: str
    lacks: str
    repeat: int = REPEAT
    compare: Callable[[str], dict[str, Any]] | None = None
    subjects: Sequence[str] = ()
    processes: int = 1
    clock: Clock = field(default_factory=Clock)
    tell: Callable[[str], None] = lambda _: None
    page: Callable[[Hunt], None] = lambda _: None
    act: Callable[[Path, str, str, Mapping[str, str], Callable[[str], None]], dict[str, str]] = acting.act
    arms: Mapping[str, Arm] = field(init=False)
    _limit_s: float = inf
    _runner: LocalRunner = field(default_factory=LocalRunner)

    def __post_init__(self) -> None:
        self.arms = self.arms_with(self.rules)
        for name in self.state.arms:
            if name not in self.arms:
                raise InputError(f"{self.folder / states.STATE}: this hunt has no arm {name!r}")

    @property
    def rules(self) -> dict[str, str]:
        """See `changed_rules`."""
        return changed_rules(self.state)

    def run(self, limit_s: float) -> bool:
        """Hunt until the hunt has taken `limit_s` in total; returns False if it was interrupted.

        Raises:
            StorageError: the state cannot be written; the file has that of the last step.
            UnavailableError: a process was killed.
        """
        self._limit_s = limit_s
        if not (self.folder / states.STATE).is_file():
            states.save(self.folder, self.state)  # So the same command goes on after an interruption of the first step.
        noted = paged = self.clock.wall_s()
        completed = True
        with ExitStack() as stack:
            self._runner = stack.enter_context(LocalRunner(self.processes))
            try:
                while self._time("wall") < limit_s:
                    written = len(self.state.written)
                    self.step()
                    now = self.clock.wall_s()
                    if now - noted >= NOTE_S:
                        noted = now
                        self.tell(self.progress)
                    if now - paged >= PAGE_S or len(self.state.written) != written:
                        paged = now
                        self.page(self)
            except KeyboardInterrupt:
                completed = False
                self.state = states.load(self.folder, self.state.about)  # As it was before the step that was cut short.
        self.page(self)
        return completed

    def step(self) -> None:
        """Make the next step, and write the state."""
        begin_s, cpu_s = self.clock.wall_s(), self.clock.cpu_s()
        name, work = self._next_step()
        spent = work()
        spent += self.clock.cpu_s() - cpu_s
        self._add(name, spent)
        if name not in (ORACLE, BROKERS):  # They cost CPU time too, but find nothing new.
            self._add("cpu", spent)
        self._add("wall", self.clock.wall_s() - begin_s)
        if name == BROKERS:
            took_s = self.clock.wall_s() - begin_s
            self._add(BROKERS_WALL, took_s)
            self.state.times[LONGEST] = max(self._time(LONGEST), took_s)
        self.state.steps += 1
        states.save(self.folder, self.state)

    @property
    def progress(self) -> str:
        """A line on progress."""
        state = self.state
        runs = sum(arm.runs for arm in state.arms.values())
        new = sum(not cause.known and not cause.control for cause in state.causes.values())
        return f"{runs:,} runs, {counted(len(state.causes), 'cause')}, {new} of them new, {self._time('cpu'):.0f} CPU s"

    def _next_step(self) -> tuple[str, Callable[[], float]]:
        """The next step: the key of its time, and a function that makes it and returns the CPU seconds of other
        processes.
        """
        if len(self.state.oracle) < len(self.subjects):
            return ORACLE, self._compare
        number = min(filter(self._awaits_brokers, self.state.written), key=self._broker_order, default=0)
        if number and self._time(BROKERS_WALL) <= BROKERS_SHARE * self._time("wall") and self._has_time_for_brokers():
            return BROKERS, lambda: self._run_on_brokers(number)
        # Each failure is examined before any is shrunk, so that the result is the same with any number of processes.
        unexamined = [one for one in self.state.pending if not one["looks"]]
        if unexamined:
            return "look", lambda: self._examine(unexamined[: LOOKS * self.processes])
        if self.state.pending:
            return "shrink", lambda: self._shrink(self.state.pending[: self.processes])
        return "sweep", self._sweep

    # Steps.

    def _compare(self) -> float:
        assert self.compare is not None
        subject = self.subjects[len(self.state.oracle)]
        self.tell(f"comparing the build's classes with the mode: {subject}")
        self.state.oracle.append(self.compare(subject))
        self.arms = self.arms_with(self.rules)
        return 0.0

    def _sweep(self) -> float:
        arm = next_arm(self.arms, self.state)
        done = self.state.arms.get(arm.name) or ArmState(self.state.about["seed"])
        size = -(-SEEDS // self.processes)
        first, end = done.next, done.next + SEEDS
        tasks = [(arm, start, min(size, end - start)) for start in range(first, end, size)]
        spent, found = self._run_tasks(sweep, tasks)
        for one in found:
            done.runs += one.runs
            done.events += one.events
            done.inside += one.inside
            done.outside += one.outside
            done.stalled += one.stalled
            done.errors += len(one.errors)
            self.state.errors += one.errors[: max(0, states.ERRORS_MAX - len(self.state.errors))]
            for seed, kind in one.hits:
                self.state.pending.append({"arm": arm.name, "seed": seed, "kind": kind, "looks": "", "known": ""})
        done.next = end
        self.state.arms[arm.name] = done
        return spent

    def _examine(self, chosen: list[dict[str, Any]]) -> float:
        tasks = [(self.arms[one["arm"]], one["seed"], one["kind"], self.known) for one in chosen]
        spent, found = self._run_tasks(_examine_task, tasks)
        kept = [one for one in self.state.pending if one["looks"]]
        left = self.state.pending[len(kept) + len(chosen) :]
        for one, seen in zip(chosen, found, strict=True):
            if seen.problem:
                self._note_error(one, seen.problem)
                continue
            arm = self.arms[one["arm"]]
            looks = f"{_control_label(arm)} {seen.looks}".strip()
            entry = self.state.provisional.setdefault(looks, [0, "", {}])
            entry[0] += 1
            if examining.is_shrunk(entry[0]):
                kept.append({**one, "looks": looks, "known": seen.known})
            else:
                entry[2][arm.name] = entry[2].get(arm.name, 0) + 1
                self._count_alike(looks)
        self.state.pending = kept + left
        return spent

    def _shrink(self, chosen: list[dict[str, Any]]) -> float:
        acts = self.state.about["acts"]
        tasks = []
        for one in chosen:
            arm = self.arms[one["arm"]]
            first = FirstLook(one["known"], one["looks"])
            tasks.append((arm, one["seed"], one["kind"], first, self.known, acts and not arm.control))
        spent, found = self._run_tasks(_shrink_task, tasks)
        for one, shrunk in zip(chosen, found, strict=True):
            if shrunk.problem:
                self._note_error(one, shrunk.problem)
                continue
            key = self._count_shrunk(self.arms[one["arm"]], one["seed"], shrunk)
            cause = self.state.causes[key]
            cause.shrunk += 1
            if not cause.known and key != ELSEWHERE:
                self._write(cause, key, one["kind"], shrunk)
            self.state.provisional[one["looks"]][1] = key
            self._count_alike(one["looks"])
        self.state.pending = self.state.pending[len(chosen) :]
        return spent

    @property
    def expected_s(self) -> float:
        """Seconds that the next run on brokers is expected to take."""
        return self._time(LONGEST) or FIRST_RUN_S

    @property
    def left_out(self) -> int:
        """Number of new causes for whose next run on brokers no time is left."""
        return 0 if self._has_time_for_brokers() else sum(map(self._awaits_brokers, self.state.written))

    def _has_time_for_brokers(self) -> bool:
        """Whether another run on brokers fits in the time left, and in the share for runs on brokers."""
        left_s = self._limit_s - self._time("wall")
        return self.expected_s <= min(left_s, BROKERS_SHARE * self._limit_s - self._time(BROKERS_WALL))

    def _awaits_brokers(self, number: int) -> bool:
        one = self.state.written[number]
        runs_left = one.script and not one.obstacle and len(one.runs) < self.repeat
        return bool(runs_left and not self.lacks and all(run["result"] != acting.DIFFERS for run in one.runs))

    def _broker_order(self, number: int) -> tuple[int, int]:
        """Sort key of new causes that wait for a run on brokers: those with most undecided runs come last."""
        runs = self.state.written[number].runs
        return sum(run["result"] == acting.UNDECIDED for run in runs), number

    def _run_on_brokers(self, number: int) -> float:
        one = self.state.written[number]
        self.tell(f"finding {number} on real brokers, run {len(one.runs) + 1} of {self.repeat}")
        script = self.folder / states.FINDINGS / one.folder / SCRIPT
        try:
            one.runs.append(self.act(script, self.kafka, self.state.about["mode"], self.rules, self.tell))
        except InputError as error:
            one.obstacle = error.problems[0]
        except UnavailableError as error:
            self.lacks = error.problems[0]
        except UserError as error:
            one.runs.append({"result": acting.UNDECIDED, "told": error.problems[0]})
        except Exception as error:
            one.runs.append({"result": acting.UNDECIDED, "told": f"{type(error).__name__}: {error}"})
        return 0.0

    # Causes.

    def _count_shrunk(self, arm: Arm, seed: int, shrunk: ShrunkFailure) -> str:
        """Count a shrunk failure for its cause; returns the key of the cause."""
        control = _control_label(arm)
        key = f"{control} {shrunk.key}".strip()
        causes = self.state.causes
        if key not in causes and len(causes) >= states.CAUSES_MAX:
            key = ELSEWHERE
        if key not in causes:
            runs = sum(state.runs for state in self.state.arms.values())
            known = "" if key == ELSEWHERE else shrunk.known
            causes[key] = FailureCause(shrunk.name, known, control, 0, 0, arm.name, seed, runs)
            self.state.times[f"first {key}"] = self._time("cpu")
        _count(causes[key], arm.name, 1)
        return key

    def _count_alike(self, looks: str) -> None:
        """Count failures that are not shrunk for the cause of one that looked alike and was shrunk."""
        _, key, waiting = self.state.provisional[looks]
        if key:
            for name, number in waiting.items():
                _count(self.state.causes[key], name, number)
            self.state.provisional[looks][2] = {}

    def _write(self, cause: FailureCause, key: str, kind: str, shrunk: ShrunkFailure) -> None:
        """Write the folder of a new cause; or, if brokers did not confirm it by its earlier failure, that of another
        failure.
        """
        number, earlier = cause.finding or len(self.state.written) + 1, list[str]()
        if cause.finding:
            before = self.state.written[number]
            name, why = acting.judged(before, self.repeat, self.lacks)
            decided = name in (acting.DIFFERS, acting.NOT_EXPRESSIBLE) or len(before.runs) >= self.repeat > 0
            if not (shrunk.script and decided) or name == acting.CONFIRMED or len(before.earlier) >= RETRIES:
                return
            earlier = [*before.earlier, f"{name}: {why}"]
        folder = f"{number}-{len(earlier) + 1}" if earlier else str(number)
        self._write_folder(folder, shrunk)
        self.state.written[number] = Written(
            key,
            kind,
            list(shrunk.cures),
            list(shrunk.story),
            list(shrunk.faults),
            shrunk.replay,
            bool(shrunk.script),
            folder,
            shrunk.obstacle,
            earlier=earlier,
            together=list(shrunk.together),
        )
        cause.finding = number

    def _write_folder(self, folder: str, shrunk: ShrunkFailure) -> None:
        story = "".join(f"{line}\n" for line in (states.STORY_TITLE, *shrunk.story))
        files = {PLAN: shrunk.plan, SCRIPT: shrunk.script, STORY: story}
        states.write_finding(self.folder, folder, {name: text for name, text in files.items() if text})

    def _note_error(self, one: Mapping[str, Any], problem: str) -> None:
        if len(self.state.errors) < states.ERRORS_MAX:
            self.state.errors.append([f"{one['arm']}, seed {one['seed']}", problem])
        self.state.arms[one["arm"]].errors += 1

    def _run_tasks(self, work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> tuple[float, list[Any]]:
        """Run tasks. Returns the CPU seconds of other processes, and the results in the order of the tasks."""
        done = list(self._runner.map(partial(_timed, work), tasks))
        spent = sum(spent for spent, _ in done) if self.processes > 1 else 0.0
        return spent, [result for _, result in done]

    def _time(self, name: str) -> float:
        return self.state.times.get(name, 0.0)

    def _add(self, name: str, seconds: float) -> None:
        self.state.times[name] = self._time(name) + seconds


def _count(cause: FailureCause, arm: str, number: int) -> None:
    cause.count += number
    cause.arms[arm] = cause.arms.get(arm, 0) + number


def _control_label(arm: Arm) -> str:
    """The label of a control arm in keys of causes; empty for any other arm."""
    return f"({arm.name.partition('/')[2]})" if arm.control else ""


def _timed(work: Callable[..., Any], task: tuple[Any, ...]) -> tuple[float, Any]:
    begin_s = time.process_time()
    result = work(*task)
    return time.process_time() - begin_s, result


def _examine_task(arm: Arm, seed: int, kind: str, known: Sequence[KnownFinding]) -> FirstLook:
    try:
        return look(arm, seed, kind, known)
    except MemoryError:
        raise
    except Exception as error:
        return FirstLook(problem=f"{type(error).__name__}: {error}")


def _shrink_task(
    arm: Arm, seed: int, kind: str, first: FirstLook, known: Sequence[KnownFinding], acts: bool
) -> ShrunkFailure:
    try:
        return shrink_failure(arm, seed, kind, first, known, acts=acts)
    except MemoryError:
        raise
    except Exception as error:
        return ShrunkFailure("", "", "", problem=f"{type(error).__name__}: {error}")


def sweep(arm: Arm, first: int, count: int) -> ArmResults:
    """Run seeds of an arm."""
    events = inside = outside = stalled = 0
    hits: list[tuple[int, str]] = []
    errors: list[list[str]] = []
    for seed in range(first, first + count):
        row = run_row(arm.scenario, arm.mode, seed, arm.rules)
        events += row["events"]
        stalled += row["verdict"] == "stalled"
        if row["error"]:
            errors.append([row["replay"] or f"{arm.name}, seed {seed}", str(row["error"]).splitlines()[0]])
        elif row["violations_inside"]:
            inside += 1
            hits.append((seed, examining.kind_of(row)))
        elif row["violations"]:
            outside += 1
    return ArmResults(count, events, inside, outside, stalled, hits, errors)


def changed_rules(state: HuntState) -> dict[str, str]:
    """The rule values with which the mode answers as the classes of a build do: for each subject that differs, that of
    the values explaining it which explains the most subjects.
    """
    candidates = [one["explained"] for one in state.oracle if one["differ"]]
    counts = Counter(word for words in candidates for word in words)
    best = [max(words, key=lambda word: (counts[word], word)) for words in candidates if words]
    pairs = (word.partition("=") for word in best)
    return {name: value for name, _, value in pairs}


def new_causes(state: HuntState) -> list[FailureCause]:
    """The causes outside of control arms that are not known."""
    return [cause for cause in state.causes.values() if not cause.known and not cause.control]


def defects(state: HuntState) -> list[FailureCause]:
    """The causes in control arms that are not known findings: defects of Highwater, or bugs that no repair prevents."""
    return [cause for cause in state.causes.values() if cause.control and cause.known != FINDING]


def as_json(hunt: Hunt) -> dict[str, Any]:
    """The hunt as one JSON-able object."""
    causes = {key: asdict(cause) for key, cause in hunt.state.causes.items()}
    return {"schema_version": states.STATE_VERSION, "about": hunt.state.about, "causes": causes}
