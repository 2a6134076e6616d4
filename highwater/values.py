"""Values of requests: text and what Python gives, checked and turned into a seed, a range, rules or settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from sim.config import KEYS, Value, parse
from sim.errors import InputError, parse_pairs
from sim.kernel.streams import SEED_END
from sim.protocol import rules as known_rules

T = TypeVar("T")
_SEED: Final = re.compile(r"0x[0-9a-f]{1,99}|[0-9]{1,99}", re.IGNORECASE)
_DURATION: Final = re.compile(r"(?P<number>[0-9]{1,6}(\.[0-9]{1,3})?)(?P<unit>[smh]?)", re.ASCII)


def seed(given: str | int) -> int:
    """Check a seed; text is decimal, or hexadecimal with ``0x``.

    Raises:
        InputError: it is not a seed.
    """
    number = given if isinstance(given, int) else -1
    if isinstance(given, str) and _SEED.fullmatch(given):
        number = int(given, 0 if given[1:2] in ("x", "X") else 10)
    if not 0 <= number < SEED_END:
        raise InputError(
            f"seed {str(given)!r} is not valid: a whole number from 0 to 2^63 - 1 is needed, decimal or 0x"
        )
    return number


def names(given: str | Iterable[str]) -> list[str]:
    """Names of modes or releases: as ``A,B``, or one by one."""
    return given.split(",") if isinstance(given, str) else [*given]


def seed_range(given: str | int | Sequence[int]) -> range:
    """Check a range of seeds; text is ``A..B`` (without B); ``N``, also as a number, is ``0..N``.

    Raises:
        InputError: it is not a range, has gaps, or is empty.
    """
    if isinstance(given, list | tuple) and given and all(isinstance(one, int) for one in given):
        seeds = range(given[0], given[-1] + 1)
        if [*given] != [*seeds]:
            raise InputError(f"seeds {given!r:.60} is not valid: a sweep runs every seed of a range")
        given = seeds
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    if isinstance(given, range):
        if given.step != 1:
            raise InputError(f"seeds {given} is not valid: a sweep runs every seed of a range")
        given = f"{given.start}..{given.stop}"
    if not isinstance(given, str):
        raise InputError(f"seeds {given!r:.60} is not valid: a range, A..B or a number of seeds is needed")
    first, dots, end = given.partition("..")
    if not dots and not _SEED.fullmatch(given):
        raise InputError(f"--seeds {given!r} is not a range: A..B is needed, as in 0..1000 (B is not part of it), or N")
    start, stop = (seed(first), seed(end)) if dots else (0, seed(first))
    if stop <= start:
        raise InputError(f"--seeds {given!r} is empty: the end is not part of the range and must be above the start")
    return range(start, stop)


def rules(given: Mapping[str, str] | None) -> dict[str, str]:
    """Check rules to override.

    Raises:
        InputError: with all their problems.
    """
    found = dict(given or {})
    _read_all(known_rules.check, found)
    return found


def rule_lists(given: Mapping[str, str | Sequence[str]] | None) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Check rules to override, and those of which lists or tuples of values are swept in every combination.

    Raises:
        InputError: with all their problems, among them empty lists and repeated values.
    """

    def read(name: str, value: object) -> tuple[str, ...]:
        values = tuple(value) if isinstance(value, list | tuple) else (str(value),)
        for one in values:
            known_rules.check(name, one)
        if not values or len(set(values)) < len(values):
            raise InputError(f"{name} = {value!r} is not valid: it {'names a value twice' if values else 'is empty'}")
        return values

    found = _read_all(read, given or {})
    fixed = {name: values[0] for name, values in found.items() if len(values) == 1}
    return fixed, {name: values for name, values in found.items() if len(values) > 1}


def settings(given: Mapping[str, object] | None) -> dict[str, Value]:
    """Check settings to override, one value each.

    Raises:
        InputError: with all their problems.
    """
    return _read_all(parse, given or {})


def setting_lists(given: Mapping[str, object] | None) -> dict[str, tuple[Value, ...]]:
    """Check settings to override; lists or tuples of values are swept in every combination.

    Raises:
        InputError: with all their problems, among them empty lists and repeated values.
    """

    def read(key: str, value: object) -> tuple[Value, ...]:
        values = tuple(parse(key, one) for one in (value if isinstance(value, list | tuple) else [value]))
        if not values or len(set(values)) < len(values):
            raise InputError(f"{key} = {value!r} is not valid: it {'names a value twice' if values else 'is empty'}")
        return values

    return _read_all(read, given or {})


def _read_all(read: Callable[[str, Any], T], given: Mapping[str, Any]) -> dict[str, T]:
    """Read each value; raise one InputError with all problems."""
    found: dict[str, T] = {}
    problems: list[str] = []
    for key, value in given.items():
        try:
            found[key] = read(key, value)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(*problems)
    return found


# Words of the command line.


def comma_words(text: str) -> list[str]:
    """Read ``A,B``."""
    return text.split(",")


def rule_words(pairs: Iterable[str]) -> dict[str, str]:
    """Read ``NAME=VALUE`` words; raises InputError with all problems."""
    return known_rules.parse_overrides(pairs)


def rule_list_words(pairs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Read ``NAME=VALUE,VALUE`` words.

    Raises:
        InputError: with all their problems, among them repeated values.
    """

    def read(name: str, text: str) -> tuple[str, ...]:
        values = tuple(text.split(","))
        for value in values:
            known_rules.check(name, value)
        return _distinct(values, f"--rule {name}={text}")

    return parse_pairs(pairs, "--rule", "NAME=VALUE[,VALUE...]", read)


def setting_words(pairs: Iterable[str]) -> dict[str, Value]:
    """Read ``KEY=VALUE`` words; raises InputError with all problems."""
    from scenarios.format.selection import settings

    return settings(pairs)


def setting_list_words(pairs: Iterable[str]) -> dict[str, tuple[Value, ...]]:
    """Read ``KEY=VALUE,VALUE`` words.

    Raises:
        InputError: with all their problems, among them repeated values.
    """

    def read(key: str, text: str) -> tuple[Value, ...]:
        values = tuple(parse(key, word) for word in (text.split(",") if key in KEYS else [text]))
        return _distinct(values, f"--set {key}={text}")

    return parse_pairs(pairs, "--set", "KEY=VALUE[,VALUE...]", read)


def _distinct(values: tuple[T, ...], where: str) -> tuple[T, ...]:
    if len(set(values)) < len(values):
        raise InputError(f"{where} lists a value twice")
    return values


def duration(option: str, text: str) -> float:
    """Read a duration such as ``30s``, ``2m``, ``8h``, or a number of seconds; return seconds.

    Raises:
        InputError: it is not a duration, or 0.
    """
    found = _DURATION.fullmatch(text)
    if found is None or float(found["number"]) == 0:
        raise InputError(f"{option} {text!r} is not valid: give a time such as 30s or 2m")
    return float(found["number"]) * {"m": 60, "h": 3600}.get(found["unit"], 1)
