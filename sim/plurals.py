"""Counts in sentences."""

from __future__ import annotations

from collections.abc import Iterable


def counted(count: int, noun: str, plural: str = "") -> str:
    """``1 record``, ``3 records``; `plural` where it is not the noun with an "s"."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def listed(words: Iterable[str], most: int, noun: str) -> str:
    """``a, b and 3 more runs``: of many words, the first `most`."""
    found = list(words)
    more = f" and {len(found) - most:,} more {noun}" if len(found) > most else ""
    return f"{', '.join(found[:most])}{more}"


def named(ids: Iterable[int], offset: int, kind: str = "record") -> str:
    """``record 3 (offset 5)``, ``2 records from record 3 (offset 5) on``; `offset` is that of the lowest id, and `kind`
    says what records they are.
    """
    found = sorted(ids)
    if len(found) == 1:
        return f"{kind} {found[0]} (offset {offset})"
    return f"{len(found)} {kind}s from record {found[0]} (offset {offset}) on"
