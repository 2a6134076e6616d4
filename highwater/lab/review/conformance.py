"""Cases of Kafka's own tests, and recorded answers of its classes, that a mode changes.

They are in the source tree, whose program tests them; the installed package has neither.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scenarios import plugged

if TYPE_CHECKING:
    from sim.protocol.modes import Mode

ROOT: Final = Path(__file__).parents[3]
PROGRAM: Final = "tests.verification.conformance.changed"
LIMIT_S: Final = 600
"""Of a program that takes ten seconds."""


@dataclass(frozen=True, slots=True)
class ChangedCase:
    """A case of a conformance table that the mode changes: its id, the test of Kafka's that it comes from, and how it
    fails.
    """

    id: str
    source: str
    told: str


@dataclass(frozen=True, slots=True)
class ChangedAnswers:
    """Recorded answers of a class of Kafka's, of one release.

    Attributes:
        subject: the class, by the name that ``make oracle`` gives it.
        release: the release.
        run: recorded cases.
        changed: those in which the mode gives another answer.
        case: the shortest of these, up to the first other answer.
        kafka: Kafka's answer there.
        mode: that of the mode.
    """

    subject: str
    release: str
    run: int
    changed: int
    case: str = ""
    kafka: str = ""
    mode: str = ""


@dataclass(frozen=True, slots=True)
class Conformance:
    """What was tested and what changes.

    Attributes:
        case_count: cases of Kafka's tests that say something about the change.
        cases: those that it changes.
        answers: recorded answers, by subject and release.
    """

    case_count: int
    cases: tuple[ChangedCase, ...]
    answers: tuple[ChangedAnswers, ...]

    @property
    def changes(self) -> int:
        """The number of cases and answers that change."""
        return len(self.cases) + sum(answer.changed for answer in self.answers)


def is_here() -> bool:
    """Whether the program and its data are there."""
    return (ROOT / PROGRAM.replace(".", "/")).with_suffix(".py").is_file()


def changed(base: Mode, mode: Mode) -> Conformance | str:
    """What the mode changes; or why that is not known, in one line."""
    if not is_here():
        return "Kafka's own tests and recorded answers are in the source tree, not in the installed package"
    words = [one.source or one.name for one in (base, mode)]
    words += [plugin.word or plugin.name for plugin in plugged.LOADED.values()]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run(  # noqa: S603 - words of the same command line
            [sys.executable, "-m", PROGRAM, *words],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
        return _of_json(json.loads(done.stdout))
    except subprocess.CalledProcessError as error:
        last = (error.stderr or "").strip().splitlines()[-1:] or [f"exit code {error.returncode}"]
        return f"Kafka's own tests could not be run: {last[0]}"
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        return f"Kafka's own tests could not be run: {error}"


def _of_json(found: dict[str, Any]) -> Conformance:
    cases = tuple(ChangedCase(one["id"], one["source"], one["told"]) for one in found["cases"]["changed"])
    answers = tuple(
        ChangedAnswers(**{name: one[name] for name in ChangedAnswers.__slots__ if name in one})
        for one in found["answers"]
    )
    return Conformance(found["cases"]["run"], cases, answers)
