"""The state of a hunt: one JSON file that is written whole and renamed, after each step.

For the next author. What must hold: a step reads the state and changes it only after its work is done, so a hunt that
was killed has lost at most one step, and does it again in the same way. Nothing in the state but `times` depends on a
clock, except the runs on real brokers. Every list is bounded, so a hunt of a week needs no more memory than one of an
hour.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from reports import starts
from scenarios import own_files, paths
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

STATE: Final = "hunt.json"
FINDING: Final = "finding"
REPAIRED: Final = "repaired"
"""Values of `FailureCause.known`."""
STATE_VERSION: Final = 1
FINDINGS: Final = "findings"
MARKDOWN: Final = "hunt.md"
HTML: Final = "hunt.html"
PLAN: Final = "plan.json"
SCRIPT: Final = "scenario.toml"
STORY: Final = "story.txt"
STORY_TITLE: Final = "Story of a failure that highwater hunt found:"
FILES: Final = {STATE: own_files.json_start("about"), MARKDOWN: starts.HUNT, HTML: starts.HUNT_PAGE}
"""File name -> how the file begins."""
FINDING_FILES: Final = {
    PLAN: own_files.json_start("scenario", "faults"),
    SCRIPT: starts.SCRIPT,
    STORY: re.compile(rb"\A" + STORY_TITLE.encode()),
}
"""File name -> how the file begins, of the folder of a finding."""
_FOLDER: Final = re.compile(r"\d+(-\d+)?")
"""Names of folders of findings."""
_COMPARED: Final = {
    **dict.fromkeys(("subject", "release", "smallest", "problem"), str),
    **dict.fromkeys(("cases", "differ"), int),
    **dict.fromkeys(("lines", "explained"), list),
}
"""Keys of `HuntState.oracle` -> types."""
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
class FailureCause:
    """What several failures have in common.

    Attributes:
        name: the known finding, or the repairs that cure it; see `highwater.lab.hunt.examining`.
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
class HuntState:
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
    causes: dict[str, FailureCause] = field(default_factory=dict)
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


def from_json(data: dict[str, Any]) -> HuntState:
    """Read `HuntState.to_json`; raises InputError if it is something else."""
    from scenarios.format.validation import instance

    data = dict(data)
    version = data.pop("schema_version", None)
    if not isinstance(version, int) or version > STATE_VERSION:
        raise InputError("it has no schema_version that is known here")
    state = instance(HuntState, data)
    if not _is_consistent(state):
        raise InputError("its parts contradict each other")
    return state


def _is_consistent(state: HuntState) -> bool:
    """Whether lists have the entries, and keys the targets, that a hunt relies on."""
    pending = all(
        one.keys() == {"arm", "seed", "kind", "looks", "known"}
        and type(one["seed"]) is int
        and one["seed"] >= 0
        and all(isinstance(value, str) for key, value in one.items() if key != "seed")
        and one["arm"] in state.arms
        and (not one["looks"] or one["looks"] in state.provisional)
        for one in state.pending
    )
    provisional = all(
        [type(part) for part in entry] == [int, str, dict]
        and (not entry[1] or entry[1] in state.causes)
        and all(type(number) is int for number in entry[2].values())
        for entry in state.provisional.values()
    )
    compared = all(
        [type(one.get(key)) for key in _COMPARED] == list(_COMPARED.values())
        and all(isinstance(word, str) for key in ("lines", "explained") for word in one[key])
        for one in state.oracle
    )
    findings = all(
        _FOLDER.fullmatch(cause.folder) and all(run.keys() >= {"result", "told"} for run in cause.runs)
        for cause in state.written.values()
    )
    causes = all(
        cause.finding in (0, *state.written)
        and cause.arm in state.arms
        and cause.known in ("", FINDING, REPAIRED)
        and cause.count > 0
        for cause in state.causes.values()
    )
    errors = all(len(error) == 2 for error in state.errors) and all(arm.next >= 0 for arm in state.arms.values())
    return pending and provisional and compared and findings and causes and errors


def load(folder: Path, about: dict[str, Any]) -> HuntState:
    """The state of the hunt in a folder; a new one if it is empty or missing.

    Raises:
        InputError: the folder holds something else, or another hunt; the message names the first difference.
        StorageError: it cannot be read or created.
    """
    with own_files.os_errors(folder):
        own_files.make_folder(folder)
        there = sorted(path.name for path in folder.iterdir() if not own_files.is_leftover(path.name, FILES))
        foreign = [name for name in there if name in FILES and not own_files.is_own_file(folder / name, FILES[name])]
    if STATE not in there or STATE in foreign:
        if there:
            raise InputError(f"--output {folder} holds something else than a hunt ({there[0]}); choose another folder")
        return HuntState(about)
    if foreign:
        raise InputError(f"{folder / foreign[0]} was not written by highwater: move it elsewhere")
    try:
        data = paths.parse_json(paths.read(folder / STATE, paths.JSON_BYTES))
        state = from_json(data if isinstance(data, dict) else {})
    except InputError as error:
        raise InputError(
            f"{folder / STATE} is no state of a hunt that this version can read: {error.problems[0]}"
        ) from None
    for name, value in about.items():
        if state.about.get(name) != value:
            raise InputError(
                f"--output {folder} holds another hunt: {name} is {shown(state.about.get(name))} there, and "
                f"{shown(value)} here; choose another folder"
            )
    with own_files.os_errors(folder):
        own_files.remove_leftovers(folder, FILES)
    return state


def shown(value: Any) -> str:
    """A value of `HuntState.about` in a message."""
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def save(folder: Path, state: HuntState) -> None:
    """Write the state completely or not at all; raises StorageError if that is not possible."""
    write(folder, STATE, json.dumps(state.to_json(), separators=(",", ":")) + "\n")


def write(folder: Path, name: str, text: str) -> None:
    """Write a file of a hunt or of a finding, completely or not at all.

    Raises:
        InputError: something else is there.
        StorageError: it cannot be written.
    """
    with own_files.os_errors(folder / name):
        own_files.replace(folder / name, text.encode(), {**FILES, **FINDING_FILES}[name])


def write_finding(folder: Path, name: str, files: Mapping[str, str]) -> None:
    """Write the folder of a finding; a step that was killed before it wrote the state may have left files there.

    Raises:
        InputError: something else is there.
        StorageError: it cannot be written.
    """
    place = own_files.below(folder, FINDINGS, name, create=True)
    with own_files.os_errors(place):
        own_files.remove_leftovers(place, FINDING_FILES)
        for file in FINDING_FILES.keys() - files.keys():
            own_files.remove(place / file, FINDING_FILES[file])
    for file, text in files.items():
        write(place, file, text)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other hunts out of a folder.

    Raises:
        UnavailableError: another hunt is at work.
    """
    with own_files.os_errors(folder):
        own_files.make_folder(folder)
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        own_files.lock(opened, folder, "hunt")
        yield
    finally:
        os.close(opened)
