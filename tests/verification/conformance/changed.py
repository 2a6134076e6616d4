"""Cases of Kafka's own tests, and recorded answers of its classes, that a mode changes: ``highwater review`` runs this.

A case counts only if its rules agree with those of the base wherever base and mode differ: of other releases it says
nothing about the change. It is changed if the core meets its expectation with these rules, and no longer with the
values of the mode.

    python -m tests.verification.conformance.changed BASE MODE [PLUGIN ...]
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

from scenarios.format import catalogue, plugins
from sim.protocol.rules import RULES, Rules
from tests.verification.conformance.cases import BUNDLED, read_cases
from tests.verification.conformance.driving import run_case
from tests.verification.conformance.kinds import KINDS
from tests.verification.conformance.runs import rules_for
from tests.verification.oracle.comparing import first_difference
from tests.verification.oracle.differences import listed
from tests.verification.oracle.kafka import plain
from tests.verification.oracle.recording import FOLDER
from tests.verification.oracle.releases import LIKE
from tests.verification.oracle.subjects import SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sim.protocol.modes import Mode
    from tests.verification.conformance.cases import Case

SCHEMA_VERSION: Final = 1
SHOWN: Final = 400
"""Longest text of an answer, in characters."""


class Change:
    """The rules that differ between two modes.

    Args:
        base: the mode that is changed.
        mode: the changed one.
    """

    def __init__(self, base: Mode, mode: Mode) -> None:
        before, after = base.rules.as_dict(), mode.rules.as_dict()
        self._before = {name: before[name] for name in RULES if before[name] != after[name]}
        self._after = {name: after[name] for name in self._before}
        self._control_plane = base.rules.control_plane

    def of(self, rules: Rules) -> Rules | None:
        """These rules with the change; None if they disagree with the base on a rule that differs, or have another
        control plane.
        """
        own = rules.as_dict()
        differs = any(own[name] != value for name, value in self._before.items())
        if differs or rules.control_plane != self._control_plane:
            return None
        return rules.override(self._after)


def failure(case: Case, rules: Rules) -> str | None:
    """Why a case fails; empty if it does not, None if a compiled build cannot run it."""
    try:
        run_case(case, KINDS[case.kind], rules)
    except pytest.skip.Exception:
        return None
    except Exception as error:  # Whatever a rule value of a plug-in raises is an answer, too.
        return f"{error}" or type(error).__name__
    return ""


def changed_cases(change: Change) -> dict[str, Any]:
    """The number of cases that say something about the change, and those that it changes."""
    run: set[str] = set()
    found: dict[str, dict[str, str]] = {}
    for case in read_cases(BUNDLED):
        for rules in rules_for(case).values():
            other = change.of(rules)
            if other is None or failure(case, rules) != "":
                continue
            run.add(case.id)
            if told := failure(case, other):
                found.setdefault(case.id, {"id": case.id, "source": case.source, "told": told[:SHOWN]})
    return {"run": len(run), "changed": list(found.values())}


def changed_answers(change: Change) -> Iterator[dict[str, Any]]:
    """For each subject and release that says something about the change, its vectors and those that it changes."""
    for name, subject in SUBJECTS.items():
        for release, rules in subject.rules.items():
            other = change.of(rules)
            if other is None or release in LIKE:  # Answers are recorded once for equal rules.
                continue
            content = json.loads((FOLDER / f"{name}-{release}.json").read_text(encoding="utf-8"))
            imitated = [entry.name for entry in listed(name, release)]
            found: list[tuple[int, int, Any, Any, Any]] = []
            for number, (case, kafka) in enumerate(content["vectors"]):
                if plain(subject.run(case, release, rules, imitated)) != kafka:
                    continue
                try:
                    core = plain(subject.run(case, release, other, imitated))
                except Exception as error:
                    found.append((len(case), number, [], "", f"{type(error).__name__}: {error}"))
                    continue
                if core != kafka:
                    place = first_difference(kafka, core)
                    found.append((place, number, case[: place + 1], kafka[place], core[place]))
            first = min(found, default=None, key=lambda one: one[:2])
            told: dict[str, Any] = {"subject": name, "release": release, "run": len(content["vectors"])}
            told["changed"] = len(found)
            if first is not None:
                _, number, case, ours, theirs = first
                told |= {"number": number, "case": json.dumps(case), "kafka": json.dumps(ours)[:SHOWN]}
                told["mode"] = json.dumps(theirs)[:SHOWN]
            yield told


def main(base: str, mode: str, *words: str) -> int:
    """Print what changes as one object."""
    for word in words:
        plugins.load(word)
    change = Change(catalogue.mode(base), catalogue.mode(mode))
    answers = list(changed_answers(change))
    told = {"schema_version": SCHEMA_VERSION, "cases": changed_cases(change), "answers": answers}
    sys.stdout.write(f"{json.dumps(told)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
