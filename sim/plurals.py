"""Counts in sentences."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """``1 record``, ``3 records``; `plural` where it is not the noun with an "s"."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
