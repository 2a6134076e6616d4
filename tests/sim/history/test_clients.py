from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sim.history.clients import Clients

EXPOSURES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=12)


@given(exposures=EXPOSURES, later=EXPOSURES)
def test_offsets_exposed_by_an_epoch_are_known_as_they_were(
    exposures: list[tuple[int, int]], later: list[tuple[int, int]]
) -> None:
    clients = Clients()
    for exposure in exposures:
        clients.expose(*exposure)
    known = clients.exposed
    for exposure in later:
        clients.expose(*exposure)
    for epoch in range(6):
        ends = [end for one, end in exposures if one <= epoch]
        assert (-1 if known is None else known.until(epoch)) == max(ends, default=-1)
    assert (-1 if known is None else known.end) == max((end for _, end in exposures), default=-1)
