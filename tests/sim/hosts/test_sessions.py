"""Sessions that pings do not keep: they end when they would end if every ping were simulated."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from sim.history import steps
from sim.hosts.broker_heartbeat_tracker import CHECKS_PER_TIMEOUT, RECHECK_US
from sim.hosts.consumer import Consumer
from sim.kernel.scheduler import Call, Watcher
from tests.sim.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.config import Value
    from sim.history.trace import Shown
    from sim.hosts.cluster import Cluster

FIXED: dict[str, Value] = {"sim.network.latency": "fixed"}


def sessions(mode: str, *, elision: bool, **config: Value) -> tuple[World, list[Shown]]:
    small = World(mode, config={**FIXED, "sim.elision": elision, **config}).ready()
    small.run(60)
    return small, small.of("session-end")


@pytest.mark.parametrize(
    ("mode", "interval_ms", "ends"),
    [
        ("kip320", 8_999, False),
        ("kip320", 9_001, True),
        ("kraft", 8_999, False),
        ("kraft", 9_001, True),
        ("elr", 8_999, False),
        ("elr", 9_000 + 9_000 // CHECKS_PER_TIMEOUT + 1, True),
    ],
)
def test_a_session_ends_where_its_timeout_is_shorter_than_the_interval(mode: str, interval_ms: int, ends: bool) -> None:
    timeout, interval = "broker.session.timeout.ms", "broker.heartbeat.interval.ms"
    if mode == "kip320":
        timeout, interval = "zookeeper.session.timeout.ms", "sim.heartbeat.interval.ms"
    timeout_ms = 9_000
    config = {timeout: timeout_ms, interval: interval_ms}
    small, found = sessions(mode, elision=True, **config)
    other, real = sessions(mode, elision=False, **config)
    assert small.steps == other.steps
    assert found == real
    assert bool(found) is ends


def test_since_4_0_sessions_are_checked_eight_times_a_timeout() -> None:
    ends = {}
    for mode in ("kraft", "elr"):
        small = World(mode, config=FIXED).ready()
        small.cluster.kill(2)
        small.run(12)
        (ends[mode],) = [step["t"] for step in small.of("session-end")]
    assert ends["kraft"] < ends["elr"] <= ends["kraft"] + 9_000_000 // CHECKS_PER_TIMEOUT


def test_a_broker_pings_three_times_in_a_session_unless_told_otherwise() -> None:
    small, found = sessions("kip320", elision=False, **{"zookeeper.session.timeout.ms": 6_000})
    assert not found
    assert small.cluster.settings[1].ping_us == 2_000_000


def test_the_first_slow_ping_may_cost_the_session() -> None:
    """The ping before it took no time."""
    found = []
    for elision in (True, False):
        config: dict[str, Value] = {**FIXED, "sim.elision": elision}
        config |= {"zookeeper.session.timeout.ms": 6_000, "sim.heartbeat.interval.ms": 5_000}
        small = World("kip320", config=config).ready()
        small.run(12)
        small.cluster.links.worsen(steps.SLOW, 2, 0, 2_000_000)
        small.run(60)
        found.append(small.steps)
        assert [step["broker"] for step in small.of("session-end")] == [2]
    assert found[0] == found[1]


@pytest.mark.parametrize("mode", ["kraft", "elr"])
@pytest.mark.parametrize(
    "happens",
    [
        lambda cluster: None,
        lambda cluster: cluster.zombie(2),
        lambda cluster: cluster.kill(2),
        lambda cluster: cluster.shut_down(2),
        lambda cluster: cluster.pause(2),
        lambda cluster: cluster.control.fail_over(),
        lambda cluster: cluster.links.worsen(steps.SLOW, 2, 0, 2_000_000),
    ],
    ids=["nothing", "zombie", "kill", "shutdown", "pause", "failover", "slow link"],
)
def test_heartbeats_of_a_broker_that_starts_are_elided(mode: str, happens: Callable[[Cluster], object]) -> None:
    found, events = [], []
    for elision in (True, False):
        small = World(mode, config={**FIXED, "sim.elision": elision, "sim.recovery.ms": 12_000})
        small.run(20)
        small.cluster.kill(2)
        small.run(12)
        small.cluster.start(2)
        small.run(1.005)
        before = small.cluster.kernel.events
        small.run(1)
        events.append(small.cluster.kernel.events - before)
        happens(small.cluster)
        small.run(30)
        found.append(small.steps)
    assert found[0] == found[1]
    assert events[0] < 20 < 200 < events[1]


@pytest.mark.parametrize("later", range(5))
@pytest.mark.parametrize("stops", [1, 2])
def test_a_heartbeat_under_way_tells_what_was_so_when_it_was_sent(stops: int, later: int) -> None:
    """Broker 2 has slow links. It is itself to stop, or a leader, who may when all others have replayed its leave."""
    found = []
    for elision in (True, False):
        small = World("kraft", config={**FIXED, "sim.elision": elision, "broker.heartbeat.interval.ms": 2_500}).ready()
        small.cluster.links.worsen(steps.SLOW, 2, 0, 2_000_000)
        small.cluster.links.worsen(steps.SLOW, 0, 2, 700_000)
        small.run(20 + later / 2)
        small.cluster.shut_down(stops)
        small.run(20)
        found.append(small.steps)
        assert small.of("shutdown", broker=stops)
    assert found[0] == found[1]


def test_a_repeated_fetch_does_not_time_out_for_an_older_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for elision in (True, False):
        small = World("kip320", config={**FIXED, "sim.elision": elision, "request.timeout.ms": 5_000}).ready()
        small.write(seconds=2)
        small.cluster.network.set_loss(1)
        small.cluster.consumer.restart()
        small.run(0.1)
        small.cluster.network.set_loss(0)
        given_up: list[int] = []
        with monkeypatch.context() as patch:
            patch.setattr(Consumer, "connection_lost", lambda self, given_up=given_up: given_up.append(self.node))
            small.run(20)
        found.append(given_up)
    assert found == [[], []]


@pytest.mark.parametrize(("age_ms", "next_ms"), [(1, 1_001), (100, 1_100), (1_000, 2_000), (1_700, 1_700)])
def test_metadata_are_refreshed_at_multiples_of_their_age(age_ms: int, next_ms: int) -> None:
    small = World("kip320", config={**FIXED, "metadata.max.age.ms": age_ms}).run()
    small.cluster.producer.begin()
    watcher = small.cluster.kernel.watcher = Watcher()
    small.run(2.5)
    assert [
        call.at_us
        for call in watcher.calls
        if isinstance(call.event, Call) and call.event.handler == small.cluster.producer._refresh_periodically
    ][:1] == [next_ms * 1_000]


@pytest.mark.parametrize(("mode", "apart_us"), [("kip320", 0), ("kraft", 0), ("elr", RECHECK_US)])
@pytest.mark.parametrize("seconds", range(0, 18, 3))
def test_sessions_that_end_at_once(mode: str, apart_us: int, seconds: int) -> None:
    """The control plane stood still: all sessions get their full timeout, and three brokers are gone. They end in order
    of id, and from Kafka 4 on in a random order.
    """
    found = []
    for elision in (True, False):
        small = World(mode, brokers=4, config={**FIXED, "sim.elision": elision}).ready()
        cluster = small.cluster
        cluster.kill(3)
        small.run(1.3)
        cluster.start(3)  # Its sessions begin when others are older.
        small.run(40 + seconds)
        cluster.pause(0)
        for broker in (4, 2, 3):
            cluster.kill(broker)
        cluster.resume(0)
        small.run(30)
        found.append(small.steps)
        ends = small.of("session-end")[-3:]
        brokers = [step["broker"] for step in ends]
        assert brokers == [2, 3, 4] if not apart_us else sorted(brokers) == [2, 3, 4]
        first_us = ends[0]["t"]
        assert [step["t"] - first_us for step in ends] == [0, apart_us, 2 * apart_us]
    assert found[0] == found[1]


@pytest.mark.world
@pytest.mark.parametrize("mode", ["kip320", "kraft", "elr"])
@pytest.mark.parametrize("restarted", [False, True])
def test_sessions_of_brokers_killed_together_end_in_any_order(mode: str, restarted: bool) -> None:
    firsts = Counter[int]()
    for seed in range(60):
        small = World(mode, brokers=4, config=FIXED, seed=seed).ready()
        if restarted:
            for broker in (3, 4):
                small.cluster.shut_down(broker)
            small.run(30)
            for broker in (3, 4):
                small.cluster.start(broker)
        small.run(20)
        before = len(small.of("session-end"))
        for broker in (3, 4):
            small.cluster.kill(broker)
        small.run(30)
        firsts[small.of("session-end")[before]["broker"]] += 1
    assert firsts.keys() == {3, 4}
    assert min(firsts.values()) >= 18, firsts


def test_a_seed_places_first_heartbeats_alike_in_all_modes_and_settings() -> None:
    def placed(mode: str, seed: int, brokers: int, interval_ms: int) -> dict[int, float]:
        intervals = {"broker.heartbeat.interval.ms": interval_ms, "sim.heartbeat.interval.ms": interval_ms}
        cluster = World(mode, config={**FIXED, **intervals}, seed=seed, brokers=brokers).ready().cluster
        interval_us = interval_ms * 1_000
        firsts = {broker: process.first_interval_us(interval_us) for broker, process in cluster.running.items()}
        assert all(0 < first_us <= interval_us for first_us in firsts.values())
        return {broker: round(first_us / interval_us, 4) for broker, first_us in firsts.items()}

    found = placed("kip320", 7, 3, 600)
    assert len(set(found.values())) == 3
    assert placed("elr", 7, 3, 600) == placed("kraft", 7, 3, 2_400) == found
    assert found.items() <= placed("kip320", 7, 4, 600).items()
    assert placed("kip320", 8, 3, 600) != found
