"""A cluster's files and release are read in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scenarios.properties.cluster import ClusterSettings
from sim.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def test_the_user_comes_before_the_files(tmp_path: Path) -> None:
    server = tmp_path / "server.properties"
    server.write_text("process.roles=broker\nmin.insync.replicas=2\nreplica.lag.time.max.ms=20000\n")
    found = ClusterSettings.of([server], "4.1")
    assert found.settings({"min.insync.replicas": 1}) == {"replica.lag.time.max.ms": 20_000}
    assert (found.modes(None), found.modes("hw")) == ("elr", "hw")
    assert ClusterSettings.of([], None).modes(None) is None


def test_provided_values_have_to_be_given(tmp_path: Path) -> None:
    server = tmp_path / "server.properties"
    server.write_text("min.insync.replicas=${env:MIN}\n")
    found = ClusterSettings.of([server], None)
    assert found.settings({"min.insync.replicas": 1}) == {}
    with pytest.raises(InputError, match="a config provider inserts its value"):
        found.settings({})


def test_defaults_that_differ_are_noted_unless_they_are_set(tmp_path: Path) -> None:
    producer = tmp_path / "producer.properties"
    producer.write_text("bootstrap.servers=x\nenable.idempotence=true\n")
    assert ClusterSettings.of([producer], "4.1").notes({}) == []
    (note,) = ClusterSettings.of([], "4.1").notes({})
    assert note == "defaults of Kafka 4.1 that differ: enable.idempotence = true (Highwater's default: false)"
    assert ClusterSettings.of([], "4.1").notes({"acks": "1"}) == []
    assert ClusterSettings.of([producer], None).notes({}) == []
