"""Exit codes of one or several runs; README.md beside this file lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from scenarios.single.rows import is_internal
from sim.exit_codes import DIGEST_DIFFERS, EXPECTED, INCONCLUSIVE, INTERNAL, UNEXPECTED

_PRECEDENCE: Final = (INTERNAL, DIGEST_DIFFERS, UNEXPECTED, INCONCLUSIVE, EXPECTED)


def worst(codes: Iterable[int]) -> int:
    """The most severe of several exit codes."""
    return min(codes, key=_PRECEDENCE.index, default=EXPECTED)


def of_row(row: Mapping[str, Any]) -> int:
    """Exit code of a single run."""
    if row["verdict"] == "error" and is_internal(row["error"]):
        return INTERNAL
    if not row["expected"]:
        return UNEXPECTED
    return INCONCLUSIVE if row["verdict"] == "exhausted" else EXPECTED
