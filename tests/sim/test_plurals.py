"""Counts in sentences."""

from __future__ import annotations

from sim.plurals import counted


def test_a_count_of_one_takes_the_singular_and_any_other_the_plural() -> None:
    assert [counted(count, "record") for count in (0, 1, 2)] == ["0 records", "1 record", "2 records"]
    assert [counted(count, "batch", "batches") for count in (1, 2)] == ["1 batch", "2 batches"]
