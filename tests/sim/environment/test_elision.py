"""What is left out has its effect at the time at which it would have had it."""

from __future__ import annotations

from importlib import import_module
from inspect import getmembers, isclass
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import pytest

from sim import hosts
from sim.environment.elision import LOOKS, Fetch, Pings
from sim.environment.network import Network, Node
from sim.hosts.broker_heartbeat_tracker import BrokerHeartbeatTracker
from sim.hosts.consumer import Consumer
from sim.hosts.controller_quorum import ControllerQuorum
from sim.hosts.isr_expiration import IsrExpiration
from sim.hosts.kraft_broker import KRaftBroker
from sim.hosts.metadata_log import MetadataLog
from sim.hosts.serving import Serving
from sim.hosts.zk_broker import ZooKeeperBroker
from sim.hosts.zk_controller import ControllerModule
from sim.hosts.zookeeper import ZooKeeper
from sim.kernel.scheduler import Kernel
from tests.sim.world import World
from tests.verification.hunt.elision import FIXED, Compared, compare, scenario_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.history.trace import Shown

MODES = ("hw", "kip101", "kip320")


def world(*, elision: bool, **config: int) -> World:
    return World("kip320", config={**FIXED, "sim.elision": elision, **config}).ready()


def leaves_out(small: World, kind: type) -> bool:
    """Whether the cluster leaves out something of a kind at present."""
    nodes = small.cluster.network.nodes.values()
    return any(isinstance(omission, kind) for node in nodes for omission in node.life.omissions)


def compared(first: int, end: int, *, all_kinds: bool) -> Compared:
    pairs = [(seed, MODES[seed % len(MODES)]) for seed in range(first, end)]
    return compare(scenario_of("chaos", all_kinds=all_kinds), pairs)


def differs(*, all_kinds: bool) -> bool:
    """Whether the history of any of thirty plans does."""
    return any(compared(seed, seed + 1, all_kinds=all_kinds).differ for seed in range(30))


@pytest.mark.parametrize("all_kinds", [False, True])
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
    ],
)
def test_seeds_whose_histories_once_differed(name: str, mode: str, seed: int, *, all_kinds: bool) -> None:
    """Which of two brokers was unfenced first, and so elected, depended on whose heartbeats had been left out; in the
    last one, a heartbeat that failed did not know that those which had been left out before had not.
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


@pytest.mark.parametrize("story", [learnt, expired, caught_up])
def test_effects_have_their_times(story: Callable[[bool], list[Shown]]) -> None:
    assert story(True)
    assert story(True) == story(False)


def hw_told_at_once(patch: pytest.MonkeyPatch) -> None:
    ends = Serving.waits_until

    def waits_until(self: Serving, request: Any, expires_us: int) -> None:
        ends(self, request, self.kernel.now_us if request.replica >= 0 else expires_us)

    patch.setattr(Serving, "waits_until", waits_until)


def session_counted_from_the_cut(patch: pytest.MonkeyPatch) -> None:
    def settle(self: Pings, now_us: int) -> None:
        self._sessions.heard(self._pinger.node, now_us, 0)
        next_us = now_us + self._interval_us - (now_us - self._sent_us) % self._interval_us
        self._pinger.ping_again(self._channel, -1, next_us)

    patch.setattr(Pings, "settle", settle)


def fetch_ends_one_period_late(patch: pytest.MonkeyPatch) -> None:
    settle = Fetch.settle

    def late(self: Fetch, now_us: int) -> None:
        self._wait_us += self._wait_us if self._request.delayed else 0
        settle(self, now_us)

    patch.setattr(Fetch, "settle", late)


@pytest.mark.parametrize("plant", [hw_told_at_once, session_counted_from_the_cut, fetch_ends_one_period_late])
def test_mistakes_in_what_is_left_out_show_in_histories(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert differs(all_kinds=False)


@pytest.mark.parametrize(
    "name", ["on_metadata_records", "on_control", "on_watched_event", "on_register", "on_epoch_end"]
)
def test_calls_end_what_their_node_leaves_out(name: str) -> None:
    small = world(elision=True)
    small.run(60)
    (leader,) = (one for one in small.cluster.running.values() if one.leads)
    assert leaves_out(small, Fetch)
    assert leaves_out(small, Pings)

    def handler(_: object) -> None:
        found.append(list(leader.life.omissions))

    found: list[list[object]] = []
    for called in (sorted(LOOKS)[0], name):
        handler.__name__ = called
        small.cluster.kernel.call_at(small.cluster.kernel.now_us, leader.life, handler, None)
        small.run(0)
    assert len(found[0]) >= 3
    assert not found[1]


WHOSE = {
    "_age": "Client",
    "_announce_isr": "ZooKeeperBroker",
    "_balance": "ControllerModule",
    "_check": "BrokerHeartbeatTracker",
    "_check_session": "ZooKeeper",
    "_communicate": "KRaftBroker",
    "_expire_fetch": "Serving",
    "_metadata_timed_out": "Client",
    "_periodic": "ControllerQuorum",
    "_ping": "ZooKeeperBroker",
    "_registration_timed_out": "KRaftBroker",
    "_send_lost": "MetadataLog",
    "_shrink_isr": "IsrExpiration",
    "_time_out": "ControllerModule Following Producer",
    "_unanswered": "KRaftBroker",
    "ask_regularly": "Consumer",
    "on_fetch": "Server Serving",
    "on_fetch_reply": "Consumer Following",
    "on_heartbeat": "ControllerQuorum QuorumSessions",
    "on_heartbeat_reply": "Heartbeating KRaftBroker",
    "on_list_offsets": "Server Serving",
    "on_list_offsets_reply": "Consumer Following",
    "on_metadata": "Server Serving",
    "on_ping": "ScriptedZooKeeper ZooKeeper ZooKeeperSessions",
    "on_produce": "Server Serving",
}
"""The handlers that were looked at before their names came into `LOOKS`."""


def test_no_other_handler_bears_a_name_before_which_nothing_ends() -> None:
    found: dict[str, list[str]] = {}
    for module in iter_modules(hosts.__path__, "sim.hosts."):
        for name, one in getmembers(import_module(module.name), isclass):
            if one.__module__ == module.name:
                for handler in LOOKS & vars(one).keys():
                    found.setdefault(handler, []).append(name)
    assert {handler: " ".join(sorted(names)) for handler, names in found.items()} == WHOSE
    assert WHOSE.keys() == LOOKS


def kernel_ends_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Kernel, "end_omissions", lambda *_: None)


def nodes_end_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Node, "end_omissions", lambda *_: None)


def links_end_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Network, "_end_omissions", lambda *_: None)


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


def test_what_only_looks_is_a_handler_of_a_host() -> None:
    hosts = (Consumer, KRaftBroker, ZooKeeperBroker, ControllerQuorum, ZooKeeper)
    parts = (ControllerModule, BrokerHeartbeatTracker, IsrExpiration, MetadataLog)
    assert {name for host in (*hosts, *parts) for name in dir(host)} >= LOOKS
