"""An elided exchange has its effects at the times at which it would have had them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sim.environment.elision import ElidedFetch, ElidedPings
from sim.environment.network import Channel, Network, Node
from sim.hosts.cluster import TOPIC
from sim.hosts.delayed_fetch_purgatory import DelayedFetchPurgatory
from sim.kernel.scheduler import ElidedExchange, Event, Gate, Kernel
from sim.protocol.messages import NO_BROKER_EPOCH, FetchRequest
from tests.sim.world import World
from tests.verification.hunt.elision import FIXED, Compared, compare, scenario_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.history.trace import Shown
    from sim.protocol.replica.delayed_fetch import DelayedFetch

MODES = ("hw", "kip101", "kip320")


def world(*, elision: bool, **config: int) -> World:
    return World("kip320", config={**FIXED, "sim.elision": elision, **config}).ready()


def elides(small: World, kind: type) -> bool:
    """Whether the cluster elides exchanges of a kind at present."""
    nodes = small.cluster.network.nodes.values()
    return any(isinstance(exchange, kind) for node in nodes for exchange in node.life.elided)


def compared(first: int, end: int, *, all_kinds: bool) -> Compared:
    pairs = [(seed, MODES[seed % len(MODES)]) for seed in range(first, end)]
    return compare(scenario_of("chaos", all_kinds=all_kinds), pairs)


def differs(*, all_kinds: bool) -> bool:
    """Whether the history of any of thirty plans does."""
    return any(compared(seed, seed + 1, all_kinds=all_kinds).differ for seed in range(30))


@pytest.mark.parametrize("all_kinds", [True, pytest.param(False, marks=pytest.mark.world)])
def test_histories_of_random_plans_are_equal_with_and_without(all_kinds: bool) -> None:
    """`make hunt` tries 20,000."""
    found = compared(0, 30, all_kinds=all_kinds)
    assert not found.differ
    assert found.idle[0] == 0 < found.idle[1]


@pytest.mark.parametrize(
    ("name", "mode", "seed", "all_kinds"),
    [
        ("elr-chaos", "elr", 1345, True),
        ("elr-chaos", "kraft", 1916, True),
        ("reassignments", "elr-repaired", 255, False),
        ("elr-chaos", "kraft", 1512, True),
        ("chaos", "kip320", 740_048, False),
        ("datacenter", "kraft", 45, True),
        ("datacenter", "elr", 21_013, True),
        ("quorum", "elr", 20_881, False),
    ],
)
def test_seeds_whose_histories_once_differed(name: str, mode: str, seed: int, *, all_kinds: bool) -> None:
    """Which of two brokers was unfenced first, and so elected, depended on whose heartbeats had been left out; in the
    fourth, a heartbeat that failed did not know that those which had been left out before had not. In the fifth, the
    rounds of a truncation that never completes delayed another response of the leader. In the sixth, a consumer's new
    process did not know that fetches which had been left out had reset the back-off. In the last ones, metadata that a
    stalled disk had held up was forgotten, and a voter truncated too much, as many NoOpRecords were one batch.
    """
    assert not compare(scenario_of(name, all_kinds=all_kinds), [(seed, mode)]).differ


def test_a_quiet_cluster_costs_nothing() -> None:
    quiet = world(elision=True)
    before = quiet.cluster.kernel.events
    quiet.run(600)
    ticking = world(elision=False)
    ticked = ticking.cluster.kernel.events
    ticking.run(600)
    # What is left: the check of balance, metadata that age.
    assert quiet.cluster.kernel.events - before < 50
    assert ticking.cluster.kernel.events - ticked > 10_000
    assert quiet.steps == ticking.steps


def learnt(elision: bool) -> list[Shown]:
    """A record is written, and again 0.9 s later: idle followers learn of its HW when their fetches expire."""
    small = world(elision=elision)
    small.write(seconds=0.9)
    small.write(seconds=2)
    return [step for step in small.of("hw") if not step["leader"]]


def expired(elision: bool) -> list[Shown]:
    """A broker is cut off 3 s after a ping."""
    small = world(elision=elision)
    small.run(5.753 * 2 + 3)
    small.cluster.links.cut(2, 0)
    small.run(20)
    return small.of("session-end")


def caught_up(elision: bool) -> list[Shown]:
    """A follower is cut off between two writes: until when it was caught up says when it leaves the ISR."""
    small = world(elision=elision)
    small.run(10.2)
    small.cluster.links.cut(3, 1)
    small.cluster.links.cut(1, 3)
    small.write(seconds=50)
    return small.of("isr")


def late_fetch(elision: bool) -> list[Shown]:
    """A fetch request that was under way for long takes back what the leader knows of a follower's LEO."""
    small = world(elision=elision)
    small.write(seconds=5.2)
    process = small.cluster.running[2]
    channel: Channel[Node] | None = process.reach(1)
    assert channel is not None
    epoch = small.cluster.control.state.leader_epoch
    channel.send_beside(FetchRequest(2, 1, 2, NO_BROKER_EPOCH, [(TOPIC, 0, epoch, epoch)], [epoch]))
    small.run(5)
    assert [step["offset"] for step in small.of("replicated", follower=2)] == [0, 1, 0, 1]
    return small.of("replicated")


@pytest.mark.parametrize("story", [learnt, expired, caught_up, late_fetch])
def test_effects_have_their_times(story: Callable[[bool], list[Shown]]) -> None:
    assert story(True)
    assert story(True) == story(False)


def hw_told_at_once(patch: pytest.MonkeyPatch) -> None:
    ends = DelayedFetchPurgatory.resume_wait

    def resume_wait(self: DelayedFetchPurgatory, delayed: DelayedFetch, expires_us: int) -> None:
        ends(self, delayed, self._broker.kernel.now_us if delayed.request.replica >= 0 else expires_us)

    patch.setattr(DelayedFetchPurgatory, "resume_wait", resume_wait)


def session_counted_from_the_cut(patch: pytest.MonkeyPatch) -> None:
    def settle(self: ElidedPings, now_us: int) -> None:
        self._sessions.resume_expiry(self._pinger.node, now_us, 0)
        next_us = now_us + self._interval_us - (now_us - self._sent_us) % self._interval_us
        self._pinger.resume_pings(self._channel, -1, next_us)

    patch.setattr(ElidedPings, "settle", settle)


def fetch_ends_one_period_late(patch: pytest.MonkeyPatch) -> None:
    settle = ElidedFetch.settle

    def late(self: ElidedFetch, now_us: int) -> None:
        self._wait_us += self._wait_us if self.delayed.waits else 0
        settle(self, now_us)

    patch.setattr(ElidedFetch, "settle", late)


@pytest.mark.world
@pytest.mark.parametrize("plant", [hw_told_at_once, session_counted_from_the_cut, fetch_ends_one_period_late])
def test_mistakes_in_what_is_left_out_show_in_histories(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert differs(all_kinds=False)


class Probe(Event):
    """Notes what a node elides when it happens."""

    def __init__(self, *, elision_safe: bool) -> None:
        self.elision_safe = elision_safe
        self.found: list[ElidedExchange] = []

    def happen(self, gate: Gate) -> None:
        self.found = list(gate.elided)


def test_an_event_ends_elision_at_its_node_unless_it_is_safe() -> None:
    small = world(elision=True)
    small.run(60)
    (leader,) = (
        broker for broker in small.cluster.running.values() if broker.replicas[small.cluster.name].partition.is_leader
    )
    assert elides(small, ElidedFetch)
    assert elides(small, ElidedPings)
    safe, other = Probe(elision_safe=True), Probe(elision_safe=False)
    for probe in (safe, other):
        small.cluster.kernel.schedule(small.cluster.kernel.now_us, leader.life, probe)
        small.run(0)
    assert len(safe.found) >= 3
    assert not other.found


def kernel_ends_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Kernel, "end_elision", lambda *_: None)


def nodes_end_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Node, "end_elision", lambda *_: None)


def links_end_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Network, "_end_elision_between", lambda *_: None)


@pytest.mark.parametrize("plant", [kernel_ends_nothing, nodes_end_nothing, links_end_nothing])
def test_what_does_not_end_shows_in_histories(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    try:
        quiet = [story(True) == story(False) for story in (learnt, expired)]
    except KeyError:  # A session that was over went on.
        quiet = [False]
    assert not all(quiet) or differs(all_kinds=True)
