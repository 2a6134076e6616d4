from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from highwater.lab.confirm import wire
from highwater.lab.confirm.clients import KafkaAdminClient, KafkaClients
from highwater.lab.confirm.partitions import FIRST
from sim.config import resolve
from sim.protocol.kraft.metadata import ELR_FEATURE
from sim.protocol.modes import MODES

pytest.importorskip("kafka")


def administrator(answer: Any, asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> KafkaAdminClient:
    """One whose requests all get the same answer."""
    cluster: Any = SimpleNamespace(history=SimpleNamespace(controller=1), partitions=[FIRST])
    made = KafkaAdminClient(cluster)

    def ask(request: Any, *, first: int) -> Any:
        assert first == 1
        asked.append(request)
        return answer

    monkeypatch.setattr(made, "ask", ask)
    return made


@pytest.mark.parametrize(("level", "kind"), [(1, 1), (0, 2)])
def test_a_feature_is_upgraded_or_downgraded(monkeypatch: pytest.MonkeyPatch, level: int, kind: int) -> None:
    """What else is set goes to the topic."""
    asked: list[Any] = []
    answer = SimpleNamespace(error_code=0, responses=[])
    administrator(answer, asked, monkeypatch).set_config({ELR_FEATURE: level, "min.insync.replicas": 2})
    update, configs = asked
    (feature,) = update.feature_updates
    assert (feature.feature, feature.max_version_level, feature.upgrade_type) == (ELR_FEATURE, level, kind)
    (resource,) = configs.resources
    assert [(config.name, config.value) for config in resource.configs] == [("min.insync.replicas", "2")]


def test_a_refused_feature_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = administrator(SimpleNamespace(error_code=95), [], monkeypatch)
    with pytest.raises(TimeoutError, match="UpdateFeaturesRequest was refused: error 95"):
        refusing.set_config({ELR_FEATURE: 1})


@pytest.mark.parametrize(
    ("policy", "told", "then"),
    [("latest", [("reset", 8)], 8), ("earliest", [("reset", 2)], 2), ("none", [], None)],
)
def test_a_consumer_continues_where_auto_offset_reset_says(
    monkeypatch: pytest.MonkeyPatch, policy: str, told: list[tuple[str, int]], then: int | None
) -> None:
    """The log has the offsets 2 to 7, and the application seeks to 10."""
    asked: list[int] = []
    steps: list[tuple[str, int]] = []

    class Connection:
        def __init__(self, *_: Any) -> None:
            pass

        def ask(self, request: Any) -> Any:
            asked.append(request.topics[0].partitions[0].fetch_offset)
            time.sleep(0.001)
            error = int(asked[-1] > 8)
            answer = SimpleNamespace(error_code=error, high_watermark=8, records=b"")
            return SimpleNamespace(responses=[SimpleNamespace(partitions=[answer])])

        def close(self) -> None:
            pass

    def list_offset(_port: int, request: Any, _seconds: float) -> Any:
        offset = {-1: 8, -2: 2}[request.topics[0].partitions[0].timestamp]
        return SimpleNamespace(topics=[SimpleNamespace(partitions=[SimpleNamespace(error_code=0, offset=offset)])])

    monkeypatch.setattr(wire, "Connection", Connection)
    monkeypatch.setattr(wire, "ask", list_offset)
    cluster: Any = SimpleNamespace(
        leader_of=lambda _: 1, node=lambda _: SimpleNamespace(client_port=1), release=SimpleNamespace(number=(3, 9, 0))
    )
    observer: Any = SimpleNamespace(
        add_step=lambda what, **fields: steps.append((what, fields["offset"])) if what != "leader-hw" else None
    )
    config = resolve({}, {"auto.offset.reset": policy})
    clients = KafkaClients(cluster, observer, config, MODES["kraft"].rules)
    clients.seek(10)
    clients.begin()
    deadline_s = time.monotonic() + 10
    while time.monotonic() < deadline_s and (len(steps) < 2 or (then is not None and asked[-1] != then)):
        time.sleep(0.001)
    clients.close()
    assert steps == [("seek", 10), ("out-of-range", 10), *told]
    assert asked[0] == 10
    if then is not None:
        assert asked[-1] == then
