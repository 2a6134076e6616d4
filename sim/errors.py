"""Errors that a user can mend, and the hint at the nearest valid name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


class InputError(Exception):
    """Bad input from outside: arguments, scenario files, result folders.

    The command line prints the message on one line (several problems: one line each) and exits with 2.

    Args:
        problems: one sentence for each thing that is wrong, naming the offending key and value.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class BudgetError(Exception):
    """A run did as much as it may: it goes round in circles, or more was asked of it than anybody has time for.

    Args:
        key: the setting that says how much that is.
        budget: its value.
        what: what is counted.
        when: what it was enough for, after "by".
    """

    def __init__(self, key: str, budget: int, what: str, when: str) -> None:
        super().__init__(f"{key}: {budget:,} {what} by {when}")


def did_you_mean(value: str, valid: Iterable[str]) -> str:
    """A hint that names the nearest valid word.

    Args:
        value: what was given.
        valid: the words that would have been accepted.

    Returns:
        ``"; did you mean 'X'?"``, or ``"; one of: ..."`` when nothing is near.
    """
    words = list(valid)
    near = difflib.get_close_matches(value, words, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    return "; one of: " + ", ".join(words)


def parse_pairs(pairs: Iterable[str], option: str, form: str, read: Callable[[str, str], T]) -> dict[str, T]:
    """Read words like ``NAME=VALUE``.

    Args:
        pairs: the words.
        option: the option that they were given to, for the message.
        form: what they should look like, for the message.
        read: turns a name and its value into what is kept; raises `InputError`.

    Raises:
        InputError: all that is wrong with them.
    """
    found: dict[str, T] = {}
    problems: list[str] = []
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            problems.append(f"{option} {pair!r} is not of the form {form}")
            continue
        try:
            found[name] = read(name, value)
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(*problems)
    return found
