from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.protocol.log.leader_epoch_file_cache import UNDEFINED, LeaderEpochCheckpointFile, LeaderEpochFileCache

if TYPE_CHECKING:
    from sim.protocol.log.leader_epoch_file_cache import Entry

ASSIGN = st.tuples(st.just("assign"), st.integers(0, 8), st.integers(0, 20))
CUT = st.tuples(st.sampled_from(["end", "start"]), st.integers(0, 8), st.integers(-1, 20))
HISTORIES = st.lists(st.one_of(ASSIGN, ASSIGN, CUT), max_size=25)


def play(
    history: list[tuple[str, int, int]], *, strict: bool
) -> tuple[LeaderEpochFileCache, LeaderEpochCheckpointFile]:
    checkpoint = LeaderEpochCheckpointFile()
    cache = LeaderEpochFileCache(checkpoint, strict=strict)
    for action, epoch, offset in history:
        if action == "assign":
            cache.assign(epoch, offset)
        elif action == "end":
            cache.truncate_from_end(offset)
        else:
            cache.truncate_from_start(max(offset, 0))
    return cache, checkpoint


def end_by_search(entries: list[Entry], epoch: int, leo: int) -> int | None:
    """Where an epoch ends: where the next higher one begins, or at the LEO."""
    if not entries or epoch > entries[-1][0]:
        return None
    return next((start for other, start in entries if other > epoch), leo)


@given(HISTORIES, st.booleans())
def test_epochs_ascend_and_offsets_never_fall(history: list[tuple[str, int, int]], strict: bool) -> None:
    entries = play(history, strict=strict)[0].entries
    for (epoch, start), (later_epoch, later_start) in pairwise(entries):
        assert epoch < later_epoch
        assert start < later_start if strict else start <= later_start


@given(HISTORIES, st.booleans())
def test_every_change_is_in_the_file(history: list[tuple[str, int, int]], strict: bool) -> None:
    cache, checkpoint = play(history, strict=strict)
    assert LeaderEpochFileCache(checkpoint, strict=strict).entries == cache.entries


@given(HISTORIES, st.booleans(), st.integers(-1, 10))
def test_the_end_of_an_epoch_is_where_the_next_begins(
    history: list[tuple[str, int, int]], strict: bool, epoch: int
) -> None:
    cache = play(history, strict=strict)[0]
    leo = 25
    found, end = cache.end_offset_for(epoch, leo)
    expected = end_by_search(cache.entries, epoch, leo) if epoch >= 0 else None
    known = [one for one in cache.epochs if one <= epoch]
    if expected is None or (not known and not strict):
        assert (found, end) == UNDEFINED
    else:
        assert (found, end) == (known[-1] if known else epoch, expected)


@given(HISTORIES, st.integers(0, 20))
def test_truncation_removes_what_starts_at_or_after_it(history: list[tuple[str, int, int]], offset: int) -> None:
    cache = play(history, strict=True)[0]
    before = cache.entries
    cache.truncate_from_end(offset)
    assert cache.entries == [entry for entry in before if entry[1] < offset]


@given(HISTORIES, st.integers(0, 20), st.integers(0, 20))
def test_moving_the_start_keeps_the_epoch_of_what_remains(
    history: list[tuple[str, int, int]], start: int, further: int
) -> None:
    cache = play(history, strict=True)[0]
    before = cache.epoch_for_offset(start + further)
    cache.truncate_from_start(start)
    assert cache.epoch_for_offset(start + further) == before
    assert all(offset >= start for offset in cache.starts)


@given(HISTORIES, st.integers(0, 9))
def test_neighbours_of_an_epoch(history: list[tuple[str, int, int]], epoch: int) -> None:
    cache = play(history, strict=True)[0]
    entries = cache.entries
    assert cache.entry(epoch) == next((entry for entry in entries if entry[0] == epoch), None)
    assert cache.previous(epoch) == next((entry for entry in reversed(entries) if entry[0] < epoch), None)


def test_a_contradicting_epoch_removes_entries_only_if_strict() -> None:
    history = [("assign", 1, 0), ("assign", 2, 10), ("assign", 3, 5)]
    assert play(history, strict=True)[0].entries == [(1, 0), (3, 5)]
    assert play(history, strict=False)[0].entries == [(1, 0), (2, 10)]


def test_negative_numbers_are_refused() -> None:
    cache = LeaderEpochFileCache(LeaderEpochCheckpointFile())
    for entry in ((-1, 0), (0, -1)):
        with pytest.raises(ValueError, match="negative"):
            cache.assign(*entry)


def test_clearing_empties_the_file() -> None:
    cache, checkpoint = play([("assign", 1, 0)], strict=True)
    cache.clear()
    assert (cache.latest, checkpoint.entries) == (None, [])
