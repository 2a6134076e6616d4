"""Settings that are not in force are found when a bug is put in, and not without it; no other checker finds the bug."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scenarios.format.schema import read
from sim.hosts.broker_metadata_publisher import BrokerMetadataPublisher
from sim.hosts.controller_server import ControllerServer
from sim.hosts.zk_broker import ZooKeeperBroker
from sim.protocol.kraft.metadata import ConfigRecord
from sim.protocol.kraft.metadata_delta import MetadataDelta
from tests.named import run_row

if TYPE_CHECKING:
    from collections.abc import Callable

ZOOKEEPER, QUORUMS = "kip320-repaired", ("kraft-repaired", "elr-repaired")
LOWER = 'do = "set-config"\nconfig = { min.insync.replicas = 1 }\n'
RAISE = 'do = "set-config"\nconfig = { min.insync.replicas = 3 }\n'
FAILOVER = 'do = "controller-failover"\n'
KILL, START = 'do = "kill"\nbroker = 3\n', 'do = "start"\nbroker = 3\n'


def kinds(mode: str, *actions: str) -> set[str]:
    """Kinds of violation inside the promise that these actions of an operator end in."""
    lines = "".join([f"[[script]]\nafter_ms = 4000\n{action}" for action in actions])
    scenario = read(
        f"""
schema = 1
name = "changed-setting"
title = "An operator changes min.insync.replicas"
description = "An operator changes min.insync.replicas."
control = "real"
brokers.count = 3
[config]
default.replication.factor = 3
min.insync.replicas = 2
[[script]]
when = {{ step = "follow", broker = 3 }}
do = "produce"
batch = "m1"
{lines}
[[script]]
after_ms = 30000
do = "wait"
[expect]
{mode} = "clean:stale-setting"
""",
        "changed-setting",
    )
    row = run_row(scenario, mode, 0)
    assert not row["error"]
    return set(row["violations_inside"].split(",")) - {""}


def forgets_settings(server: ControllerServer) -> None:
    """A new controller knows the static configuration only."""
    if server.epoch:
        server.active.image.settings.clear()
    original_take_over(server)


def starts_with_static_settings(publisher: BrokerMetadataPublisher, delta: MetadataDelta) -> None:
    """The records that a broker replays at its start do not change its settings."""
    if publisher.published_us < publisher._broker.kernel.now_us:
        original_apply(publisher, delta)


def keeps_the_first_value(delta: MetadataDelta, records: Any) -> None:
    """Of several values of a setting that are replayed together, the first stays."""
    original_delta(delta, records)
    for record in reversed(records):
        if isinstance(record, ConfigRecord):
            delta.configs[record.key] = record.value


def registers_with_static_settings(broker: ZooKeeperBroker, reply: Any) -> None:
    """A broker with a new session does not read the settings."""
    reply.config.clear()
    original_registered(broker, reply)


original_take_over = ControllerServer._take_over
original_apply = BrokerMetadataPublisher._apply_configs
original_delta = MetadataDelta.__init__
original_registered = ZooKeeperBroker.on_registered


@pytest.mark.parametrize("mode", [ZOOKEEPER, *QUORUMS])
def test_a_changed_setting_stays_in_force(mode: str) -> None:
    assert kinds(mode, LOWER, FAILOVER, KILL, RAISE, START, FAILOVER, LOWER) == set()


@pytest.mark.parametrize(
    ("owner", "name", "broken", "modes", "actions"),
    [
        (ControllerServer, "_take_over", forgets_settings, QUORUMS, (LOWER, FAILOVER)),
        (BrokerMetadataPublisher, "_apply_configs", starts_with_static_settings, QUORUMS, (LOWER, KILL, START)),
        (MetadataDelta, "__init__", keeps_the_first_value, QUORUMS, (LOWER, RAISE, KILL, START)),
        (ZooKeeperBroker, "on_registered", registers_with_static_settings, (ZOOKEEPER,), (LOWER, KILL, START)),
    ],
)
def test_a_setting_that_is_not_in_force_is_found(
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    broken: Callable[..., None],
    modes: tuple[str, ...],
    actions: tuple[str, ...],
) -> None:
    for mode in modes:
        assert kinds(mode, *actions) == set()
    monkeypatch.setattr(owner, name, broken)
    for mode in modes:
        assert kinds(mode, *actions) == {"stale-setting"}
