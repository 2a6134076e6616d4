"""The seven questions about a cluster, their answers, and the TOML file with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from scenarios import paths
from sim.config import NEVER, Value, parse, shown
from sim.errors import InputError, UserError, did_you_mean

TOGETHER: Final = ("nothing", "rack", "everything")
"""What loses power together: single machines only, all machines of a rack, or all machines."""
BROKERS_MAX: Final = 9
DAY_S: Final = 86_400


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers to the seven questions.

    Attributes:
        replicas: replicas of a partition.
        racks: racks that the brokers are spread over.
        together: one of `TOGETHER`.
        return_s: seconds until a machine that went down is back.
        flush: records after which a log is flushed; `NEVER`: only by the kernel.
        restarts: planned restarts of a broker a week.
        moves: partitions moved a week, per partition.
        unclean: whether a replica outside the ISR may be elected.
    """

    replicas: int = 3
    racks: int = 3
    together: str = "nothing"
    return_s: int = 60
    flush: int = NEVER
    restarts: int = 1
    moves: int = 0
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
    """

    text: str
    least: int = 0
    most: int = 0
    words: tuple[str, ...] = ()


QUESTIONS: Final[Mapping[str, Question]] = {
    "replicas": Question("How many replicas has a partition?", 1, 7),
    "racks": Question("Over how many racks are the brokers spread?", 1, 7),
    "together": Question("Which machines lose power together?", words=TOGETHER),
    "return_s": Question("After how many seconds is a machine back that went down?", 1, DAY_S),
    "flush": Question("After how many records is a log flushed (never: only by the kernel)?", 1, NEVER),
    "restarts": Question("How many planned restarts has a broker a week?", 0, 10_000),
    "moves": Question("How often is a partition moved a week?", 0, 10_000),
    "unclean": Question("May a replica outside the ISR be elected (true or false)?", words=("true", "false")),
}
"""Field of `Answers` -> its question; restarts and moves are one question."""


def read(name: str, given: object) -> Any:
    """Check one answer; raises InputError if it is not valid."""
    question = QUESTIONS[name]
    if name == "unclean":
        return parse("unclean.leader.election.enable", given)
    if question.words:
        if given not in question.words:
            raise InputError(f"{name} = {given!r} is not valid{did_you_mean(str(given), question.words)}")
        return given
    if name == "flush" and given == "never":
        return NEVER
    text = str(given)
    if isinstance(given, bool) or not text.isdecimal() or not question.least <= int(text) <= question.most:
        most = "" if question.most == NEVER else f" and at most {question.most}"
        raise InputError(
            f"{name} = {given!r} is not valid: a whole number of at least {question.least}{most} is needed"
        )
    return int(text)


def of_settings(settings: Mapping[str, Value]) -> dict[str, Any]:
    """The answers that a cluster's settings give."""
    keys = {
        "replicas": "default.replication.factor",
        "flush": "log.flush.interval.messages",
        "unclean": "unclean.leader.election.enable",
    }
    return {name: settings[key] for name, key in keys.items() if key in settings}


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
