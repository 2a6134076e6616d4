"""What a picture shows at a row is what was so then: who ran, led, was a replica, in the ISR and in the ELR."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.drawing.observed_run import observe
from reports.drawing.picture import picture
from scenarios.format.catalogue import load
from scenarios.single.run import run
from sim.protocol.kraft.metadata import PartitionRegistration
from sim.protocol.modes import mode as mode_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from reports.drawing.picture import Picture
    from sim.history.steps import Shown
    from sim.hosts.cluster import Cluster

Truth = dict[str, set[int]]
"""Kind of band -> the brokers that have it."""


def truths(scenario: str, mode: str, seed: int) -> dict[int, Truth]:
    """At each time of a step, how the cluster stood after the last step of that time."""
    found: dict[str, dict[int, Truth]] = {}

    def watch(cluster: Cluster, name: str) -> Callable[[Shown], None]:
        there = found.setdefault(name, {})

        def see(step: Shown) -> None:
            state = cluster.control.state_of(name)
            elr = state.elr if isinstance(state, PartitionRegistration) else ()
            there[step["t"]] = {
                "isr": set(state.isr),
                "elr": set(elr),
                "replica": set(state.replicas),
                "leader": {state.leader} - {0},
                "up": set(cluster.running),
                "down": set(cluster.settings) - set(cluster.running),
            }

        return see

    result = run(load(scenario), mode_named(mode), seed, watch=watch)
    return found[result.shown] if result.shown else next(iter(found.values()))


def shown(drawn: Picture, at_us: int) -> Truth:
    bands = [
        band for band in drawn.bands if band.since_us <= at_us and (band.until_us is None or at_us < band.until_us)
    ]
    kinds = ("isr", "elr", "replica", "leader", "up", "down")
    return {kind: {band.node for band in bands if band.kind == kind} for kind in kinds}


@pytest.mark.parametrize(
    ("scenario", "mode"),
    [("chaos", "hw"), ("elr-chaos", "elr"), ("reassignments", "kip320"), ("reassignments", "kraft")],
)
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_at_every_row_bands_are_what_was_so(scenario: str, mode: str, seed: int) -> None:
    expected = truths(scenario, mode, seed)
    observed = observe(load(scenario), mode_named(mode), seed, {})
    for everything in (False, True):
        drawn = picture(observed, [], everything=everything)
        for row in drawn.rows:
            if row.kind is not None:
                assert shown(drawn, row.at_us) == expected[row.at_us], row
        last_us = drawn.rows[-1].at_us
        assert all(band.since_us <= last_us and (band.until_us or 0) <= last_us for band in drawn.bands)
