from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from highwater.lab.confirm.clients import KafkaAdminClient
from sim.protocol.kraft.metadata import ELR_FEATURE

pytest.importorskip("kafka")


def administrator(answer: Any, asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> KafkaAdminClient:
    """One whose requests all get the same answer."""
    cluster: Any = SimpleNamespace(history=SimpleNamespace(controller=1))
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
    assert [(one.name, one.value) for one in resource.configs] == [("min.insync.replicas", "2")]


def test_a_refused_feature_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = administrator(SimpleNamespace(error_code=95), [], monkeypatch)
    with pytest.raises(TimeoutError, match="UpdateFeaturesRequest was refused: error 95"):
        refusing.set_config({ELR_FEATURE: 1})
