"""The state of a hunt: one JSON file that is written whole and renamed, after each step.

For the next author. What must hold: a step reads the state and changes it only after its work is done, so a hunt that
was killed has lost at most one step, and does it again in the same way. Nothing in the state but `times` depends on a
clock, except the runs on real brokers. Every list is bounded, so a hunt of a week needs no more memory than one of an
hour.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from scenarios import paths
from sim.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STATE: Final = "hunt.json"
STATE_VERSION: Final = 1
UNFINISHED: Final = ".unfinished"
"""End of the names of files and folders that are being written."""
FINDINGS: Final = "findings"
MARKDOWN: Final = "hunt.md"
HTML: Final = "hunt.html"
CAUSES_MAX: Final = 500
"""Most causes; further ones are counted together."""
ERRORS_MAX: Final = 20
"""Most runs that ended with an error and are listed."""


@dataclass(slots=True)
class ArmState:
    """The runs of one arm: seeds from `next` on are not run yet.

    Attributes:
        inside: runs that violated something inside the promise.
        outside: runs that violated something outside the promise only.
        stalled: runs without a leader that wait for an administrator.
        errors: runs that ended with an error.
    """

    next: int
    runs: int = 0
    events: int = 0
    inside: int = 0
    outside: int = 0
    stalled: int = 0
    errors: int = 0


@dataclass(slots=True)
class Cause:
    """What several failures have in common.

    Attributes:
        name: the known finding, or the repairs that cure it; see `reports.hunt.examining`.
        known: how it is known: ``finding``, ``repaired``: a later release repairs it; empty: it is new.
        control: the control arm that showed it; empty: none did.
        count: failures; `shrunk` of them were shrunk.
        arm: of the first failure, with its `seed`, and the `runs` of the hunt until then.
        arms: arm -> failures.
        finding: the number of its folder; 0: none.
    """

    name: str
    known: str
    control: str
    count: int
    shrunk: int
    arm: str
    seed: int
    runs: int
    arms: dict[str, int] = field(default_factory=dict)
    finding: int = 0


@dataclass(slots=True)
class Written:
    """A new cause, written to a folder of its own.

    Attributes:
        cause: its key.
        kind: the violation.
        cures: repairs that cure it under other latencies, too.
        together: two rule values that cure it only together; empty, or two.
        story: the first sentences of its story.
        faults: kinds of fault of the shrunk run, in order of time.
        replay: the command that runs the failed seed.
        script: whether there is a script for real brokers.
        folder: the name of its folder.
        obstacle: why it cannot be acted out; empty: it can, or was.
        runs: what each run on real brokers showed: ``result`` and ``told``.
        earlier: what brokers said of other failures of the cause, whose scripts were tried before.
    """

    cause: str
    kind: str
    cures: list[str]
    story: list[str]
    faults: list[str]
    replay: str
    script: bool
    folder: str
    obstacle: str = ""
    runs: list[dict[str, str]] = field(default_factory=list)
    earlier: list[str] = field(default_factory=list)
    together: list[str] = field(default_factory=list)


@dataclass(slots=True)
class State:
    """All that a hunt knows.

    Attributes:
        about: what identifies the hunt; another one needs another folder.
        arms: by name.
        causes: by key.
        provisional: what a failure looks like before it is shrunk -> how many there were, and the key of the cause that
            the last shrunk one had.
        pending: failures that wait to be examined, then to be shrunk: arm, seed, kind, and after the first look what it
            looks like.
        written: new causes by number.
        errors: commands of runs that ended with an error, and the error.
        oracle: how the classes of a build differ from the mode, one entry for each subject that has been compared.
        steps: number of steps.
        times: seconds of the clock and of CPU. ``cpu`` is the CPU time of runs and of what examines them, without
            brokers and the classes of a build; the seconds at which each cause was first seen are of this.
    """

    about: dict[str, Any]
    arms: dict[str, ArmState] = field(default_factory=dict)
    causes: dict[str, Cause] = field(default_factory=dict)
    provisional: dict[str, list[Any]] = field(default_factory=dict)
    pending: list[dict[str, Any]] = field(default_factory=list)
    written: dict[int, Written] = field(default_factory=dict)
    errors: list[list[str]] = field(default_factory=list)
    oracle: list[dict[str, Any]] = field(default_factory=list)
    steps: int = 0
    times: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain data with `schema_version`; `from_json` reads it."""
        return {"schema_version": STATE_VERSION, **asdict(self)}


def from_json(data: dict[str, Any]) -> State:
    """Read `State.to_json`; raises KeyError, TypeError or ValueError if it is something else."""
    data = dict(data)
    if data.pop("schema_version") > STATE_VERSION:
        raise ValueError("a later version wrote it")
    data["arms"] = {name: ArmState(**arm) for name, arm in data["arms"].items()}
    data["causes"] = {key: Cause(**cause) for key, cause in data["causes"].items()}
    data["written"] = {int(number): Written(**one) for number, one in data["written"].items()}
    return State(**data)


def load(folder: Path, about: dict[str, Any]) -> State:
    """The state of the hunt in a folder; a new one if it is empty or missing.

    Raises:
        InputError: the folder holds something else, or another hunt; the message names the first difference.
        StorageError: it cannot be read or created.
    """
    with paths.told(folder):
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in folder.iterdir() if not path.name.endswith(UNFINISHED))
    if STATE not in there:
        if there:
            raise InputError(f"--output {folder} holds something else than a hunt ({there[0]}); choose another folder")
        return State(about)
    try:
        state = from_json(json.loads(paths.read(folder / STATE, paths.JSON_BYTES)))
    except InputError as error:
        raise InputError(f"{folder / STATE} {error.problems[0]}") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(f"{folder / STATE} is no state of a hunt that this version can read") from None
    for name, value in about.items():
        if state.about.get(name) != value:
            raise InputError(
                f"--output {folder} holds another hunt: {name} is {shown(state.about.get(name))} there, and "
                f"{shown(value)} here; choose another folder"
            )
    return state


def shown(value: Any) -> str:
    """A value of `State.about` in a message."""
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def save(folder: Path, state: State) -> None:
    """Write the state completely or not at all; raises StorageError if that is not possible."""
    replace(folder / STATE, json.dumps(state.to_json(), separators=(",", ":")) + "\n")


def replace(path: Path, text: str) -> None:
    """Write a file of the hunt beside its place, then rename it."""
    beside = path.with_name(path.name + UNFINISHED)
    with paths.told(path):
        try:
            with beside.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other hunts out of a folder, and remove what a killed one was writing.

    Raises:
        UnavailableError: another hunt is at work.
    """
    with paths.told(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UnavailableError(f"{folder}: another hunt is at work there") from None
        for place in (folder, folder / FINDINGS):
            _sweep_up(place)
        yield
    finally:
        os.close(lock)


def _sweep_up(place: Path) -> None:
    if not place.is_dir() or place.is_symlink():
        return
    for path in sorted(place.glob(f"*{UNFINISHED}")):
        with paths.told(path):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
