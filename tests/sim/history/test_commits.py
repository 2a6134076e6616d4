from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sim.history.history import History
from sim.protocol.batch import Batch
from tests.sim.checkers.histories import commit


@given(
    places=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=8),
    more=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=8),
    offset=st.integers(0, 12),
    count=st.integers(1, 5),
)
def test_committed_batches_are_found_by_their_offsets(
    places: list[tuple[int, int]], more: list[tuple[int, int]], offset: int, count: int
) -> None:
    history, end = History(), offset + count
    commits = history.commits
    for part in (places, more):
        commit(history, [Batch(base, base + size - 1, 0, base) for base, size in part], 5)
        there = [batch for batch in commits.batches if batch.last_offset >= offset and batch.base_offset < end]
        assert list(commits.between(offset, end)) == there
