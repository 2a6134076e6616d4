"""The table of fixed bugs, and what was measured of those that a rule has.

`fixed.toml` declares each bug once. A bug with a rule has its older and its repaired value, the mode and the random
scenarios in which both are run; the others say what is missing. `measured.toml` is written by
``python -m tests.verification.bugs --write``.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from sim.errors import InputError
from sim.protocol.modes import MODES, NO_RELEASE

PREFIX: Final = "KAFKA-"
MISSING: Final = {
    "rule": "a rule value or a mutant",
    "scenario": "a script that brings just this situation about",
    "threads": "the steps of several threads inside one process, or inside one lock",
    "zookeeper": "ZooKeeper in detail: owners of nodes, watches, late callbacks",
    "controller-memory": "what a controller under ZooKeeper remembers beside ZooKeeper",
    "topic-deletion": "what a controller under ZooKeeper remembers of deletions of topics",
    "quorum": "the older behaviour of a metadata quorum that votes",
    "images": "metadata images from snapshots and deltas",
    "files": "files that are stale, empty or cannot be written",
    "segments": "segments and their indexes",
    "sizes": "sizes of records and responses",
    "malformed-batches": "batches that are damaged or malformed on their way",
    "groups": "consumer groups, and consumers of several partitions",
    "settings": "when a setting reaches each log",
    "transactions": "transactions",
    "mixed-versions": "controllers of several releases that write to one ZooKeeper",
    "slow-controller": "a controller whose queue is long",
}
"""Word of `FixedBug.missing` -> what Highwater lacks."""


@dataclass(frozen=True, slots=True)
class FixedBug:
    """A bug that a release repaired.

    Attributes:
        ticket: number of the ticket, without `PREFIX`.
        fixed: the releases that repaired it.
        since: the first release that had it; "about" if that is inferred, empty if it is unknown.
        where: the part of Kafka.
        happens: what happens.
        fix: how it was repaired; empty if `happens` says so.
        effect: what a user sees.
        commits: commits or the pull request that repaired it.
        read: what was read of these: the ``diff``, or only the ``message``.
        older: the rule value that has the bug, as (rule, value); None without one.
        repaired: that of the repair.
        mode: in which mode both are run.
        scenarios: the random scenarios that can show it.
        missing: what Highwater lacks, a word of `MISSING`; empty if there is a rule.
        why: the reason, in sentences.
        note: what a reader of the figures should know.
    """

    ticket: int
    fixed: str
    where: str
    happens: str
    effect: str
    commits: str
    read: str
    since: str = ""
    fix: str = ""
    older: tuple[str, str] | None = None
    repaired: tuple[str, str] | None = None
    mode: str = ""
    scenarios: tuple[str, ...] = ()
    missing: str = ""
    why: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """Its name in Kafka's tracker."""
        return f"{PREFIX}{self.ticket}"

    def is_in(self, release: str) -> bool:
        """Whether a release had it: from `since` on, and before the first release of its line that repaired it."""
        about = _numbers(release)
        repaired = [_numbers(one) for one in self.fixed.split(", ")]
        since = re.search(r"\d[\d.]*", self.since)
        if self.since and (since is None or about < _numbers(since[0])):
            return False
        line = 3 if about[0] == 0 else 2  # 0.10.2 is a line, and so is 2.6.
        return about < max(repaired) and not any(one[:line] == about[:line] and one <= about for one in repaired)

    @property
    def lacking(self) -> list[str]:
        """Modes whose releases had it, and that do not have it here: they behave better than their releases. Where
        `since` is unknown, a release may be older than the bug.
        """
        plane = "kraft" if re.search("KRaft|metadata|log directory move", self.where) else ""
        plane = "zookeeper" if re.search("ZK|control requests", self.where) else plane
        return [
            mode.name
            for mode in MODES.values()
            if mode.release != NO_RELEASE
            and plane in ("", mode.rules.control_plane)
            and self.is_in(mode.release)
            and not (self.older and getattr(mode.rules, self.older[0]) == self.older[1])
        ]

    @property
    def text(self) -> str:
        """What a search looks at."""
        rule = "=".join(self.older) if self.older else ""
        words = (self.name, self.fixed, self.where, self.happens, self.fix, self.effect, self.missing, self.why, rule)
        return " ".join(words).lower()


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of a bug in one scenario: runs with a violation inside the promise.

    Attributes:
        before: how many with the older value.
        after: how many with the repaired one.
        runs: how many were run with each.
        first_cpu_s: CPU time until the first violation with the older value, in s; -1: none was found.
    """

    before: int
    after: int
    runs: int
    first_cpu_s: float


def _numbers(release: str) -> tuple[int, ...]:
    """A release as four numbers, for comparisons."""
    numbers = [int(number) for number in release.split(".")]
    return (*numbers, *(4 - len(numbers)) * [0])


def _pair(text: str) -> tuple[str, str]:
    rule, value = text.split("=")
    return rule, value


def _bug(entry: dict[str, Any]) -> FixedBug:
    pairs: dict[str, Any] = {key: _pair(entry.pop(key)) for key in ("older", "repaired") if key in entry}
    return FixedBug(scenarios=tuple(entry.pop("scenarios", ())), **pairs, **entry)


def _read(file: str) -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath(file).read_text(encoding="utf-8"))


@cache
def fixed_bugs() -> dict[str, FixedBug]:
    """All of them by name, in the order of their tickets."""
    return {bug.name: bug for bug in map(_bug, _read("fixed.toml")["bug"])}


@cache
def measured() -> dict[str, dict[str, Measured]]:
    """Name of a bug -> scenario -> figures."""
    return {
        name: {scenario: Measured(**figures) for scenario, figures in scenarios.items()}
        for name, scenarios in _read("measured.toml").items()
    }


def chosen(word: str) -> list[FixedBug]:
    """The bug of that ticket, or all whose texts have the word; all without a word.

    Raises:
        InputError: there is none.
    """
    bugs = fixed_bugs()
    number = re.fullmatch(rf"(?:{PREFIX})?(\d+)", word, re.IGNORECASE)
    if number:
        name = f"{PREFIX}{number[1]}"
        if name not in bugs:
            raise InputError(f"no fixed bug {name}; `highwater rules {name}` searches rules and findings")
        return [bugs[name]]
    found = [bug for bug in bugs.values() if word.lower() in bug.text]
    if not found:
        raise InputError(f"no fixed bug has {word!r} in its text")
    return found


def shown_by(bug: FixedBug) -> str:
    """How it is shown, in a few words: its figures, or what is missing."""
    if bug.older is None:
        return f"lacks {bug.missing}"
    figures = measured().get(bug.name, {}).values()
    before, after, runs = (sum(getattr(one, key) for one in figures) for key in ("before", "after", "runs"))
    if not before:
        return f"{'='.join(bug.older)}: not shown in {runs:,} runs"
    return f"{'='.join(bug.older)}: {before} of {runs:,} runs, repaired {after}"
