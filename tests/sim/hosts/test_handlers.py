from __future__ import annotations

import pytest

from scenarios.format.catalogue import load
from sim.hosts.consumer import Consumer
from sim.hosts.kraft_broker import KRaftBroker
from sim.hosts.producer import Producer
from sim.hosts.zk_broker import ZooKeeperBroker
from tests.named import run_row
from tests.plain import skip_if_compiled


@pytest.mark.parametrize(("scenario", "mode"), [("chaos", "kip320"), ("elr-chaos", "elr-4.3")])
def test_handlers_do_what_receive_does(scenario: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_if_compiled()
    drawn = load(scenario)
    digests = [run_row(drawn, mode, seed)["digest"] for seed in range(3)]
    for node in (ZooKeeperBroker, KRaftBroker, Producer, Consumer):
        assert node.handlers
        monkeypatch.setattr(node, "handlers", {})
    assert [run_row(drawn, mode, seed)["digest"] for seed in range(3)] == digests
