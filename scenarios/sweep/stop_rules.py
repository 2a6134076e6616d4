"""Rules by which a sweep stops before its last seed (``--until``).

A sweep with such rules runs its seeds in steps, all variants and modes of a step together, and looks at its counts
between two steps only. So what is run, and where it stops, is the same from any number of processes, and after any
interruption. Only a time limit depends on the machine.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sim.checkers.registry import FINDINGS
from sim.errors import InputError, did_you_mean

STEP_SEEDS: Final = 1_000
"""Seeds of the first steps; later ones are a tenth of what has run, so that many cores have enough to do."""
Z: Final = 1.959963984540054
"""Of a 95 % interval."""
WIDTH: Final = "width"
INSIDE: Final = "inside"
"""In place of a kind: runs that violate something inside the promise."""
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600}
_FORMS: Final = "KIND=N (committed-loss=20, inside=5), width=P% (width=0.1%) or a time (90s, 15m, 8h) is needed"


@dataclass(frozen=True, slots=True)
class StopRules:
    """Rules, of which the first that is met stops a sweep.

    Attributes:
        kinds: kind of violation, or `INSIDE` -> number of runs, over all scenarios, modes and settings of the sweep.
        width: largest width of the 95 % intervals (Wilson's) of what violates the promise, a share; None: no rule.
        seconds: time limit of this process; None: none.
    """

    kinds: Mapping[str, int]
    width: float | None = None
    seconds: float | None = None

    def met(self, results: Sequence[Mapping[str, Any]], seconds: float) -> str | None:
        """Which rule the counts meet (``results`` of ``summary.json``), as a sentence; None if none does."""
        for kind, asked in self.kinds.items():
            found = sum(_runs(result, kind) for result in results)
            if found >= asked:
                what = "a violation inside the promise" if kind == INSIDE else kind
                return f"{what} in {found:,} runs: --until {kind}={asked} is met"
        if self.width is not None:
            widest = max(_width(result["inside"], _decided(result)) for result in results)
            if widest <= self.width:
                return f"no 95 % interval is wider than {widest:.3%}: --until width={100 * self.width:g}% is met"
        if self.seconds is not None and seconds >= self.seconds:
            return f"{seconds:.0f} s have passed: the time limit of --until"
        return None


def ends(first: int, end: int) -> Iterator[int]:
    """The ends of the steps of a range of seeds; the last one is `end`."""
    reached = first
    while reached < end:
        reached = min(end, reached + max(STEP_SEEDS, (reached - first) // 10))
        yield reached


def _runs(result: Mapping[str, Any], kind: str) -> int:
    runs: int = result["inside"] if kind == INSIDE else result["kinds"].get(kind, {"n": 0})["n"]
    return runs


def _decided(result: Mapping[str, Any]) -> int:
    runs: int = result["runs"] - result["verdicts"]["error"]
    return runs


def _width(k: int, n: int) -> float:
    """Width of Wilson's score interval for k of n; 1 without runs."""
    if not n:
        return 1.0
    return 2 * Z / (n + Z * Z) * math.sqrt(k * (n - k) / n + Z * Z / 4)


def parse(words: Iterable[str]) -> StopRules:
    """Rules such as ``committed-loss=20``, ``width=0.1%`` and ``8h``.

    Raises:
        InputError: with the problems of all words.
    """
    kinds: dict[str, int] = {}
    width: float | None = None
    seconds: float | None = None
    problems: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        try:
            if not equals:
                seconds = _seconds(word)
            elif name == WIDTH:
                width = _share(word, value)
            else:
                kinds[_kind(name)] = _number(word, value)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(*problems)
    return StopRules(kinds, width, seconds)


def _seconds(word: str) -> float:
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smh])", word)
    if found is None or not float(found[1]):
        raise InputError(f"--until {word!r} is not valid: {_FORMS}")
    return float(found[1]) * _UNITS_S[found[2]]


def _share(word: str, value: str) -> float:
    found = re.fullmatch(r"(\d{1,3}(?:\.\d{1,9})?)%", value)
    if found is None or not 0 < float(found[1]) <= 100:
        raise InputError(f"--until {word!r} is not valid: a width in percent is needed, as in width=0.1%")
    return float(found[1]) / 100


def _kind(name: str) -> str:
    known = [*FINDINGS, INSIDE, WIDTH]
    if name not in known:
        raise InputError(
            f"--until {name!r} is no kind of violation, {INSIDE} (of the promise) or {WIDTH}{did_you_mean(name, known)}"
        )
    return name


def _number(word: str, value: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,11}", value):
        raise InputError(f"--until {word!r} is not valid: a number of runs is needed, at least 1")
    return int(value)
