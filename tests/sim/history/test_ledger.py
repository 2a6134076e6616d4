from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sim.history.ledger import Ledger
from sim.protocol.batch import Batch
from tests.sim.checkers.histories import log, make

EXPOSURES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=12)


@given(exposures=EXPOSURES, later=EXPOSURES)
def test_what_was_exposed_by_an_epoch_is_known_as_it_was(
    exposures: list[tuple[int, int]], later: list[tuple[int, int]]
) -> None:
    ledger = Ledger()
    for exposure in exposures:
        ledger.expose(*exposure)
    known = ledger.exposed
    for exposure in later:
        ledger.expose(*exposure)
    for epoch in range(6):
        ends = [end for one, end in exposures if one <= epoch]
        assert (-1 if known is None else known.until(epoch)) == max(ends, default=-1)
    assert (-1 if known is None else known.end) == max((end for _, end in exposures), default=-1)


@given(
    places=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=8),
    more=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=8),
    offset=st.integers(0, 12),
    count=st.integers(1, 5),
)
def test_committed_batches_are_found_by_their_offsets(
    places: list[tuple[int, int]], more: list[tuple[int, int]], offset: int, count: int
) -> None:
    ledger, end = Ledger(), offset + count
    for part in (places, more):
        ledger.commit([Batch(base, base + size - 1, 0, base) for base, size in part], 5)
        there = [batch for batch in ledger.committed if batch.last_offset >= offset and batch.base_offset < end]
        assert list(ledger.committed_between(offset, end)) == there


def test_a_record_stands_in_any_copy_and_what_was_deleted_is_not_missed() -> None:
    first, again = Batch(0, 1, 0, 10), Batch(4, 5, 1, 10)
    ledger = Ledger()
    make(ledger, first, again)
    assert ledger.stands(first, log(again))
    assert not ledger.stands(first, log(Batch(0, 1, 0, 20)))
    ledger.deleted.add(10)
    assert not ledger.stands(first, log())
    ledger.deleted.add(11)
    assert ledger.stands(first, log())
