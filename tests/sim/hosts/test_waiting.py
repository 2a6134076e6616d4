from __future__ import annotations

import pytest

from sim.hosts.isr_expiration import IsrExpiration
from sim.hosts.kraft_broker import KRaftBroker
from sim.hosts.waiting import MAY_NEED, NEEDS_PARTITION
from sim.hosts.zk_broker import ZooKeeperBroker


@pytest.mark.parametrize("handler", sorted(NEEDS_PARTITION | MAY_NEED))
def test_what_has_to_wait_is_a_handler_of_a_broker(handler: str) -> None:
    assert any(callable(getattr(kind, handler, None)) for kind in (ZooKeeperBroker, KRaftBroker, IsrExpiration))
