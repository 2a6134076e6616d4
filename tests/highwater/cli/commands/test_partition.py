"""Scripts about a partition besides the first, and the partition that commands show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

SCRIPT = """
schema = 1
name = "hold-other-partition"
title = "The produce request of the second topic is held back for 5 s"
description = "A test."
brokers.count = 3
control = "real"

[config]
default.replication.factor = 3
min.insync.replicas = 2

[[topics]]
name = "orders"

[[topics]]
name = "audit"

[[script]]
when = { step = "follow", broker = 3, partition = "orders-0" }
after_ms = 3000
do = "hold-messages"
broker = 2
message = "ProduceRequest"

[[script]]
do = "produce"
batch = "m1"
partition = "audit-0"
after_ms = 100

[[script]]
do = "produce"
batch = "m0"
partition = "orders-0"

[[script]]
when = { step = "ack", batch = "m0", partition = "orders-0" }
do = "release-messages"
broker = 2
message = "ProduceRequest"
after_ms = 5000

[[story]]
step = "ack"
batch = "m0"
partition = "orders-0"

[[story]]
step = "append"
broker = 2
batch = "m1"
partition = "audit-0"

[[final]]
broker = 1
batches = ["m0"]
partition = "orders-0"

[[final]]
broker = 2
batches = ["m1"]
partition = "audit-0"

[expect]
"elr-4.3" = "clean:committed-loss"
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hold-other-partition.toml").write_text(SCRIPT, encoding="utf-8")
    return "hold-other-partition.toml"


def test_requests_of_any_partition_are_held_and_steps_may_name_the_first(
    highwater: Callable[..., Call], script: str
) -> None:
    call = highwater("run", script)
    assert (call.code, call.err) == (0, "")
    acked, appended = [float(line.split()[0]) for line in call.out.splitlines() if " batch=m" in line]
    assert appended - acked == pytest.approx(5, abs=0.01)
    assert "Replicas of orders-0 at the end" in call.out


@pytest.mark.parametrize(
    ("words", "evidence"),
    [
        (["run"], "Replicas of audit-0 at the end"),
        (["run", "--trace", "t.jsonl"], "Replicas of audit-0 at the end"),
        (["replay"], "Replicas of audit-0 at the end"),
        (["explain", "--all"], "ack for record 0"),
        (["draw", "--all", "--output", "out.svg"], ""),
        (["show", "--output", "out.html"], ""),
    ],
)
def test_each_command_shows_the_partition(
    words: list[str], evidence: str, highwater: Callable[..., Call], script: str, tmp_path: Path
) -> None:
    command, *more = words
    call = highwater(command, script, "--partition", "audit-0", *more)
    assert (call.code, call.err) == (0, "")
    assert evidence in call.out
    named = {"run": call.out, "explain": call.out}.get(command, "partition audit-0")
    assert "partition audit-0" in named or "Story of audit-0" in named
    if (tmp_path / "t.jsonl").exists():
        trace = (tmp_path / "t.jsonl").read_text(encoding="utf-8")
        assert '"broker": 2, "offset": 0, "last": 0' in trace
    if (tmp_path / "out.svg").exists():
        drawn = (tmp_path / "out.svg").read_text(encoding="utf-8")
        assert "shown: partition audit-0" in drawn
        assert "Produce: producer to broker 2" in drawn
        assert "Produce: producer to broker 1" not in drawn
        assert "Fetch response: broker 2 to consumer" in drawn
    if (tmp_path / "out.html").exists():
        page = (tmp_path / "out.html").read_text(encoding="utf-8")
        assert '["Produce", 1001, 2,' in page.replace(",", ", ").replace(",  ", ", ")
        assert "<p>shown: audit-0</p>" in page
        assert "1004" not in page


@pytest.mark.parametrize("command", ["run", "replay", "show", "draw", "explain"])
@pytest.mark.parametrize(
    ("partition", "problem"),
    [
        ("audt-0", "--partition 'audt-0': hold-other-partition has no such partition; did you mean 'audit-0'?"),
        ("audit-7", "--partition 'audit-7': there is no such partition in this run of hold-other-partition, mode elr"),
    ],
)
def test_other_partitions_are_refused(
    command: str, partition: str, problem: str, highwater: Callable[..., Call], script: str
) -> None:
    call = highwater(command, script, "--partition", partition)
    assert call.code == 2
    assert problem in call.err


def test_a_message_from_a_producer_is_named(highwater: Callable[..., Call], script: str) -> None:
    call = highwater("explain", script, "--partition", "orders-0", "--all")
    assert "One ProduceRequest from the producer to broker 2 is held back." in call.out


LOSES = """
schema = 1
name = "both-lose"
title = "The only replica of each topic loses its disk"
description = "A test."
brokers.count = 2
control = "real"

[config]
default.replication.factor = 1
min.insync.replicas = 1

[[topics]]
name = "orders"

[[topics]]
name = "audit"

[[script]]
do = "produce"
batch = "m1"
partition = "PARTITION"
after_ms = 3000

[[script]]
do = "preferred-election"
after_ms = 1000

[[script]]
do = "disk-replaced"
broker = 1
after_ms = 1000

[[script]]
do = "disk-replaced"
broker = 2
after_ms = 1000

[expect]
"elr-4.3" = "violates:committed-loss"
"""


@pytest.mark.parametrize("partition", ["orders-0", "audit-0"])
def test_each_violation_and_fault_names_its_partition(
    partition: str, highwater: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "both-lose.toml").write_text(LOSES.replace("PARTITION", partition), encoding="utf-8")
    call = highwater("run", "both-lose.toml", "--json")
    (result,) = json.loads(call.out)["runs"]
    assert {entry["partition"] for entry in result["violations"]} == {partition}
    assert all(entry["detail"].startswith(f"{partition}: ") for entry in result["violations"])
    text = highwater("run", "both-lose.toml").out
    assert f"shown: partition {partition}" in text
    assert "partition=orders-0" in next(line for line in text.splitlines() if "preferred-election" in line)
    other = {"orders-0": "audit-0", "audit-0": "orders-0"}[partition]
    for shown, sentence in (
        (partition, "  Lost: record 0 (offset 0)"),
        (other, f"{partition}: lost: record 0 (offset 0)"),
    ):
        told = highwater("explain", "both-lose.toml", "--partition", shown).out
        assert f"Story of {shown}" in told
        assert sentence in told
