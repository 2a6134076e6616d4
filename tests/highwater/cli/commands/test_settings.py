"""``settings``, and --server-properties and --release of run and sweep."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

SERVERS = FIXTURES / "properties" / "servers"


@pytest.fixture
def server(tmp_path: Path) -> Path:
    file = tmp_path / "server.properties"
    file.write_text(
        "broker.id=1\nmin.insync.replicas=1\nssl.key.password=hunter2\nreplica.lag.time.max.ms=20000\nlistners=x\n"
    )
    return file


def test_settings_tells_of_each_key(highwater: Callable[..., Call], server: Path) -> None:
    called = highwater("settings", server)
    assert called.code == 0
    assert "In elr-4.3 (Kafka 4.3.1)" in called.out
    rows = [line.split() for line in called.out.splitlines()]
    assert ["min.insync.replicas", "2", "1"] in [row[:3] for row in rows]
    assert [row for row in rows if row[-1:] in (["key"], ["keys"])] == [
        *(["Unknown:", "1", "key"], ["Used:", "2", "keys"], ["Not", "modelled:", "2", "keys"])
    ]
    assert "did you mean" in " ".join(called.out.split())
    assert "hunter2" not in called.out + called.err


def test_settings_name_the_value_that_avoids_a_finding(highwater: Callable[..., Call], tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    advice = "to avoid finding leo-of-skipped-epoch: auto.leader.rebalance.enable=false in rolling restarts"
    for value, release, is_named in (("true", "4.3", True), ("false", "4.3", False), ("true", "2.6", False)):
        file.write_text(f"broker.id=1\nauto.leader.rebalance.enable={value}\n")
        (key,) = [
            key
            for key in highwater("settings", file, "--release", release, "--json").json["keys"]
            if key["name"] == "auto.leader.rebalance.enable"
        ]
        assert (key["status"], key["why"]) == ("used", advice if is_named else "")


def test_long_keys_are_not_cut(highwater: Callable[..., Call], tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("max.in.flight.requests.per.connection=5\nbroker.id=1\nlisteners=a\nlog.flush.interval.message=1\n")
    lines = highwater("settings", file).out.splitlines()
    assert any("max.in.flight.requests.per.connection" in line for line in lines)
    assert "Unknown: 1 key" in lines[:3]


def test_settings_of_a_release(highwater: Callable[..., Call]) -> None:
    called = highwater("settings", SERVERS / "aws-msk.properties", "--release", "2.6", "--json")
    assert called.json["modes"] == ["kip320"]
    assert called.json["defaults"] == {"acks": "1", "retry.backoff.max.ms": 100}
    assert called.json["settings"]["unclean.leader.election.enable"] is True


def test_a_run_has_the_settings_of_the_file(highwater: Callable[..., Call], server: Path) -> None:
    words = ("power", "--seed", "1", "--mode", "kip320", "--json")
    given = highwater("run", *words, "--server-properties", server)
    equal = highwater("run", *words, "--set", "min.insync.replicas=1", "--set", "replica.lag.time.max.ms=20000")
    assert given.json == equal.json
    assert "2 keys are used, 0 have no effect, 2 are not modelled, 1 are unknown" in given.err
    assert "listners: no release has it; did you mean listeners?" in given.err
    assert "hunter2" not in given.out + given.err


def test_set_comes_before_the_file(highwater: Callable[..., Call], server: Path) -> None:
    words = ("power", "--seed", "1", "--mode", "kip320", "--json")
    given = highwater("run", *words, "--server-properties", server, "--set", "min.insync.replicas=2")
    equal = highwater("run", *words, "--set", "min.insync.replicas=2", "--set", "replica.lag.time.max.ms=20000")
    assert given.json == equal.json


def test_a_release_picks_mode_and_defaults(highwater: Callable[..., Call]) -> None:
    words = ("run", "power", "--seed", "1", "--json")
    called = highwater(*words, "--release", "2.1")
    settings = "replica.lag.time.max.ms=10000 zookeeper.session.timeout.ms=6000 acks=1 retry.backoff.max.ms=100"
    equal = highwater(*words, "--mode", "kip320-2.1", *(word for one in settings.split() for word in ("--set", one)))
    assert called.json == equal.json
    assert (
        "defaults of Kafka 2.1 that differ: replica.lag.time.max.ms = 10000 (Highwater's default: 30000)" in called.err
    )


@pytest.mark.usefixtures("sweeps_here")
def test_a_sweep_has_the_settings_and_can_vary_others(
    highwater: Callable[..., Call], server: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    words = ("sweep", "power", "--seeds", "0..3", "--release", "2.6", "--output", folder, "--local", 1)
    called = highwater(*words, "--server-properties", server, "--set", "acks=1,all", "--json")
    assert called.code in (0, 3)
    assert [result["mode"] for result in called.json["results"]] == ["kip320"] * 2
    stored = (folder / "run.json").read_text()
    (scenario,) = json.loads(stored)["scenarios"]
    assert scenario["config"]["replica.lag.time.max.ms"] == 20_000
    assert "hunter2" not in stored
    again = highwater(*words, "--server-properties", server, "--set", "acks=1,all", "--json")
    assert again.code == called.code


def test_a_recorded_run_has_its_own_release(highwater: Callable[..., Call], tmp_path: Path) -> None:
    called = highwater("run", "--plan", tmp_path / "plan.json", "--release", "2.6")
    assert (called.code, called.err.count("\n")) == (2, 1)


@pytest.mark.parametrize("content", [b"a\\", b"\xff\xfea\x00", b"\x00\x01", b"", b"<p>=x", b"min.insync.replicas=x"])
def test_bad_files_are_one_line_and_exit_2(highwater: Callable[..., Call], tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(content)
    for words in (("settings", file), ("run", "power", "--server-properties", file)):
        called = highwater(*words)
        assert (called.code, called.out, called.err.count("\n")) == (2, "", 1)


def test_what_is_no_file_is_one_line_and_exit_2(highwater: Callable[..., Call], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "missing"):
        called = highwater("settings", path)
        assert (called.code, called.out, called.err.count("\n")) == (2, "", 1)
    called = highwater("settings")
    assert (called.code, called.err) == (2, "highwater: name a file, or --release\n")
    called = highwater("settings", "--release", "9.9")
    assert (called.code, called.err.count("\n")) == (2, 1)
