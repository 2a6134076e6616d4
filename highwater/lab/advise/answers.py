"""The seven questions about a cluster, their answers, and the TOML file with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from scenarios import paths
from sim.config import NEVER, Value, parse, shown
from sim.errors import InputError, UserError, did_you_mean

TOGETHER: Final = ("nothing", "rack", "everything")
"""What loses power together: single machines only, all machines of a rack, or all machines."""
BROKERS_MAX: Final = 9
DAY_S: Final = 86_400
_WHOLE: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
_DECIMAL: Final = re.compile(r"[0-9]{1,5}(\.[0-9]{1,6})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers to the seven questions.

    Attributes:
        replicas: replicas of a partition.
        racks: racks that the brokers are spread over.
        together: one of `TOGETHER`.
        return_s: seconds until a machine that went down is back.
        flush: records after which a log is flushed; `NEVER`: only by the kernel.
        restarts: planned restarts of a broker a week; 0.25: one in four weeks.
        moves: partitions moved a week, per partition.
        unclean: whether a replica outside the ISR may be elected.
    """

    replicas: int = 3
    racks: int = 3
    together: str = "nothing"
    return_s: int = 60
    flush: int = NEVER
    restarts: float = 1
    moves: float = 0
    unclean: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain data, as in an answers file."""
        return {**asdict(self), "flush": shown(self.flush) if self.flush == NEVER else self.flush}


@dataclass(frozen=True, slots=True)
class Question:
    """A question: the words for it, and how an answer is read.

    Attributes:
        text: the question.
        least: smallest number; largest is `most`.
        words: valid words, if the answer is a word.
        is_whole: whether a number has to be whole.
    """

    text: str
    least: int = 0
    most: int = 0
    words: tuple[str, ...] = ()
    is_whole: bool = True


QUESTIONS: Final[Mapping[str, Question]] = {
    "replicas": Question("How many replicas has a partition?", 1, 7),
    "racks": Question("Over how many racks are the brokers spread?", 1, 7),
    "together": Question("Which machines lose power together?", words=TOGETHER),
    "return_s": Question("After how many seconds is a machine back that went down?", 1, DAY_S),
    "flush": Question("After how many records is a log flushed (never: only by the kernel)?", 1, NEVER),
    "restarts": Question(
        "How many planned restarts has a broker a week (0.25: one in four)?", 0, 10_000, is_whole=False
    ),
    "moves": Question("How often is a partition moved a week?", 0, 10_000, is_whole=False),
    "unclean": Question("May a replica outside the ISR be elected (true or false)?", words=("true", "false")),
}
"""Field of `Answers` -> its question; restarts and moves are one question."""
KEYS_OF: Final[Mapping[str, str]] = {
    "replicas": "default.replication.factor",
    "flush": "log.flush.interval.messages",
    "unclean": "unclean.leader.election.enable",
}
"""Field of `Answers` -> the key that answers it."""


def read(name: str, given: object, said: str = "") -> Any:
    """Check one answer; `said`: what the user calls it.

    Raises:
        InputError: it is not valid.
    """
    question = QUESTIONS[name]
    said = said or f"{name} ="
    if name == "unclean":
        try:
            return parse(KEYS_OF[name], given)
        except InputError:
            raise InputError(f"{said} {given!r} is not valid{did_you_mean(str(given), question.words)}") from None
    if question.words:
        if given not in question.words:
            raise InputError(f"{said} {given!r} is not valid{did_you_mean(str(given), question.words)}")
        return given
    if name == "flush" and given == "never":
        return NEVER
    shape = _WHOLE if question.is_whole else _DECIMAL
    number = Decimal(str(given)) if not isinstance(given, bool) and shape.fullmatch(str(given)) else None
    if number is None or not question.least <= number <= question.most:
        most = "" if question.most == NEVER else f" and at most {question.most}"
        what = "a whole number" if question.is_whole else "a number"
        word = ", or 'never'," if name == "flush" else ""
        raise InputError(f"{said} {given!r} is not valid: {what} of at least {question.least}{most}{word} is needed")
    return int(number) if number == int(number) else float(number)


def in_words(answer: object) -> str:
    """An answer as a user writes it."""
    return f"{answer:g}" if isinstance(answer, float) else shown(answer)  # type: ignore[arg-type]


def of_settings(settings: Mapping[str, Value], racks: int = 0) -> dict[str, Any]:
    """The answers that a cluster's settings give.

    Args:
        settings: modelled keys with their values.
        racks: number of different values of ``broker.rack``; one value, of one broker perhaps, is no answer.
    """
    found: dict[str, Any] = {name: settings[key] for name, key in KEYS_OF.items() if key in settings}
    return {**found, "racks": racks} if racks > 1 else found


def of_file(path: Path) -> dict[str, Any]:
    """The answers of a TOML file, which may leave some out.

    Raises:
        InputError: it is missing, not TOML, or has an unknown key or a value that is not valid.
        StorageError: it cannot be read.
    """
    try:
        data = paths.parse_toml(paths.read(path, paths.SCENARIO_BYTES).decode("utf-8-sig"))
    except UserError as error:
        raise type(error)(*(f"{path}: {problem}" for problem in error.problems)) from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text") from None
    found: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in data.items():
        if name not in QUESTIONS:
            problems.append(f"{path}: unknown key {name!r}{did_you_mean(name, QUESTIONS)}")
            continue
        try:
            found[name] = read(name, value)
        except InputError as error:
            problems += (f"{path}: {problem}" for problem in error.problems)
    if problems:
        raise InputError(*problems)
    return found


def complete(*layers: Mapping[str, Any]) -> Answers:
    """Answers from several sources, later ones winning; raises InputError if they do not fit together."""
    given: dict[str, Any] = {}
    for layer in layers:
        given |= layer
    found = Answers(**{field.name: given[field.name] for field in fields(Answers) if field.name in given})
    if found.together == "rack" and found.racks == 1:
        raise InputError("together = 'rack' is not valid with racks = 1: then everything loses power together")
    return found
