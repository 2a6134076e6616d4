"""Exit codes; README.md beside this file lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scenarios.single.rows import STORY_ERROR
from sim.errors import InputError, StorageError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

EXPECTED: Final = 0
UNEXPECTED: Final = 1
BAD_INPUT: Final = InputError.exit_code
INCONCLUSIVE: Final = 3
DIGEST_DIFFERS: Final = 4
UNAVAILABLE: Final = UnavailableError.exit_code
INTERNAL: Final = 70
UNREADABLE: Final = StorageError.exit_code
INTERRUPTED: Final = 130

_PRECEDENCE: Final = (INTERNAL, DIGEST_DIFFERS, UNEXPECTED, INCONCLUSIVE, EXPECTED)


def worst(codes: Iterable[int]) -> int:
    """The code that wins when several runs ended differently."""
    return min(codes, key=_PRECEDENCE.index, default=EXPECTED)


def of_row(row: Mapping[str, Any]) -> int:
    """The code of a single run."""
    if row["verdict"] == "error" and not row["error"].startswith(STORY_ERROR):
        return INTERNAL
    if not row["expected"]:
        return UNEXPECTED
    return INCONCLUSIVE if row["verdict"] == "exhausted" else EXPECTED
