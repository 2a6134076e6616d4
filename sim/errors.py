"""Errors reported without a traceback, their exit codes, and the hint at the nearest valid name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import ClassVar, Final, TypeVar

from sim import exit_codes

T = TypeVar("T")


class UserError(Exception):
    """An error outside the program, which the user can fix.

    The command line prints one line for each problem and exits with `exit_code`; each kind is a class of its own.

    Args:
        problems: one sentence for each problem, naming the offending key and value.
    """

    exit_code: ClassVar[int]

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class InputError(UserError):
    """Bad input: arguments, scenario files, result folders, and missing files."""

    exit_code = exit_codes.BAD_INPUT


class UnavailableError(UserError):
    """A command's requirement is missing: Java, a supported version of pyspark, a reachable Spark master."""

    exit_code = exit_codes.UNAVAILABLE


class StorageError(UserError):
    """A file or folder cannot be read or written: no permission, no space, a broken disk."""

    exit_code = exit_codes.UNREADABLE


class PluginError(Exception):
    """A plug-in's function returns or reports what is wrong; it ends the run with verdict ``error``.

    Attributes:
        where: where the function begins, as ``FILE:LINE in FUNCTION: TEXT``; empty if it is on the traceback.
    """

    def __init__(self, problem: str, where: str = "") -> None:
        super().__init__(problem)
        self.where = where


class PluginHangsError(BaseException):
    """A plug-in's function does not return; no `Exception`, which it may catch."""


def text_of(error: BaseException) -> str:
    """The message of an exception in one line, also of one that has none; what is no text is escaped."""
    try:
        return " ".join(str(error).split()).encode("utf-8", "backslashreplace").decode()
    except Exception:  # Of a plug-in's class.
        return "(its message cannot be shown)"


def is_text(value: object) -> bool:
    """Whether a value is a string that can be written: it has no lone surrogates."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


ALIKE: Final = 0.8
"""How like a valid word a misspelt one is: see `nearest`."""


def nearest(value: str, valid: Iterable[str], likeness: float = 0.5) -> str:
    """The valid word that is most like a given one; empty if none is so like it (0 to 1, by `difflib`)."""
    return next(iter(difflib.get_close_matches(value, valid, n=1, cutoff=likeness)), "")


LISTED_MOST: Final = 60
"""Valid words that a message lists; more are thousands of characters."""


def did_you_mean(value: str, valid: Iterable[str], listing: str = "") -> str:
    """A hint at the nearest valid word.

    Args:
        value: the given word.
        valid: the accepted words.
        listing: the command that lists them, if they are many.

    Returns:
        ``"; did you mean 'X'?"``, or ``"; one of: ..."`` when nothing is near.
    """
    words = list(valid)
    if near := nearest(value, words):
        return f"; did you mean {near!r}?"
    if len(words) > LISTED_MOST:
        return f"; {listing} lists the valid ones" if listing else f"; none of the {len(words)} valid words is near"
    return "; one of: " + ", ".join(words)


def parse_pairs(pairs: Iterable[str], option: str, form: str, read: Callable[[str, str], T]) -> dict[str, T]:
    """Parse words like ``NAME=VALUE``.

    Args:
        pairs: the words.
        option: the option that they were given to, for the message.
        form: their expected form, for the message.
        read: converts a name and its value into the result; raises `InputError`.

    Raises:
        InputError: all problems with them; a name is given twice.
    """
    found: dict[str, T] = {}
    given: set[str] = set()
    problems: list[str] = []
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            problems.append(f"{option} {pair!r} is not of the form {form}")
            continue
        if name in given:
            problems.append(f"{option} {name} is given twice, where one {form} is taken")
            continue
        given.add(name)
        try:
            found[name] = read(name, value)
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(*problems)
    return found
