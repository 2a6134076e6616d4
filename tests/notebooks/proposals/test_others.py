"""KAFKA-15665, KIP-1303 over KIP-1023, KIP-1275: what the proposals decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from highwater.plugin import Election, Reassignment, ReplicaStart, loaded
from notebooks.proposals import kafka_15665, kip_1303
from scenarios.format.catalogue import load, mode
from scenarios.single.run import run, run_row
from sim.history import steps
from tests.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def proposal(name: str) -> str:
    return str(ROOT / "notebooks" / "proposals" / f"{name}.py")


@pytest.mark.parametrize(
    ("adding", "isr", "min_isr", "done"),
    [
        ((3,), (3,), 2, False),  # As with KAFKA-19975 it would complete.
        ((3,), (2, 3), 2, True),
        ((3,), (1, 2), 2, False),
        ((3,), (3,), 1, True),
    ],
)
def test_a_reassignment_waits_for_min_isr(
    adding: tuple[int, ...], isr: tuple[int, ...], min_isr: int, *, done: bool
) -> None:
    at = Reassignment((2, 3, 4), adding, (1,), isr, min_isr)
    assert kafka_15665.completes(not done, at) == done


def test_the_first_version_keeps_the_record_that_the_release_loses() -> None:
    back = load("reassignment-back")
    with loaded(proposal("kafka_15665"), proposal("kafka_19975")):
        assert run_row(load("kafka-19975-moved-back"), mode("kafka-15665"), 0)["violations"] == ""
        assert run_row(back, mode("kafka-15665"), 0)["violations"] == ""
        assert "committed-loss" in run_row(back, mode("elr-4.3"), 0)["violations_inside"]  # Whatever is loaded.
    assert "committed-loss" in run_row(back, mode("elr-4.3"), 0)["violations_inside"]


def test_a_replica_begins_at_the_tiered_offset() -> None:
    assert kip_1303.tiered_offset(4, ReplicaStart(4, 9, 12)) == 9
    assert kip_1303.tiered_offset(4, ReplicaStart(4, 0, 12)) == 4


@pytest.mark.parametrize(
    ("leader", "present", "isr", "elected"),
    [
        (1, 0, (1, 2, 3), 3),
        (1, 2, (1, 2, 3), 2),  # A leader that may stay is not replaced, not even by the preferred one.
        (1, 3, (1, 2), 2),
        (4, 0, (1, 2, 3), 4),  # An unclean election is left alone.
        (0, 0, (1, 2, 3), 0),
    ],
)
def test_others_are_elected_first(leader: int, present: int, isr: tuple[int, ...], elected: int) -> None:
    at = Election(present, (1, 2, 3, 4), (1, 2, 3, 4), isr, (), (), unclean=False, min_isr=2)
    assert kip_1303.others_first(leader, at) == elected


BEHIND = """
schema = 1
name = "behind"
title = "A follower with a new disk is behind the leader's log start"
description = "After retention, broker 2 gets a new disk and begins anew."
brokers.count = 2
control = "real"

[config]
default.replication.factor = 2
min.insync.replicas = 1

[[script]]
when = { step = "follow", broker = 2 }
do = "produce"
batch = "m1"

[[script]]
when = { step = "ack", batch = "m1" }
do = "produce"
batch = "m2"

[[script]]
when = { step = "hw", broker = 2, offset = 2 }
after_ms = 1000
do = "retention"
permille = 500

[[script]]
after_ms = 1000
do = "disk-replaced"
broker = 2

[[script]]
when = { step = "session-end", broker = 2 }
do = "start"
broker = 2

[[script]]
when = { step = "unfenced", broker = 2 }
after_ms = 5000
do = "wait"

[[story]]
step = "ack"
batch = "m2"

[expect]
"elr-4.3" = "may-violate"
"""


def test_a_new_disk_begins_at_the_tiered_offset_and_is_in_the_isr(tmp_path: Path) -> None:
    file = tmp_path / "behind.toml"
    file.write_text(BEHIND)
    begins = []
    with loaded(proposal("kip_1303")):
        for name in ("elr-4.3", "kip-1023"):
            result = run(load(str(file)), mode(name), 0, trace=True)
            assert result.row["verdict"] == "ok"
            assert result.trace is not None
            begins.append(
                [step["offset"] for step in result.trace if step["step"] == steps.TRUNCATE.name and step["broker"] == 2]
            )
            isrs = [step["isr"] for step in result.trace if step["step"] == steps.ISR.name]
            assert isrs[-1] == [1, 2]
    assert begins == [[0, 1], [0, 2]]  # At the log start; or where everything committed has been uploaded.


COMMAND = """
schema = 1
name = "command"
title = "The command has the longest log elected"
description = "All members of ISR and ELR are lost; brokers 2 and 3 run, of which 3 has more."
brokers.count = 3
control = "real"

[config]
default.replication.factor = 3
min.insync.replicas = 1
auto.leader.rebalance.enable = false

[[script]]
when = { step = "follow", broker = 3 }
do = "produce"
batch = "m1"

[[script]]
when = { step = "hw", broker = 3, offset = 1 }
do = "kill"
broker = 2

[[script]]
when = { step = "isr", isr = [1, 3] }
do = "produce"
batch = "m2"

[[script]]
when = { step = "hw", broker = 3, offset = 2 }
do = "kill"
broker = 3

[[script]]
when = { step = "isr", isr = [1] }
do = "kill"
broker = 1

[[script]]
when = { step = "session-end", broker = 1 }
do = "start"
broker = 2

[[script]]
when = { step = "unfenced", broker = 2 }
do = "start"
broker = 3

[[script]]
when = { step = "unfenced", broker = 3 }
do = "unclean-recovery-command"

[[script]]
after_ms = 2000
do = "start"
broker = 1

[[story]]
step = "lead"
broker = 3
offset = 2

[expect]
"kip-1275" = "clean:committed-loss"
"""


def test_the_command_has_the_longest_log_elected(tmp_path: Path) -> None:
    file = tmp_path / "command.toml"
    with loaded(proposal("kip_1275")):
        file.write_text(COMMAND)
        row = run_row(load(str(file)), mode("kip-1275"), 0)
    assert (row["error"], row["violations"]) == ("", "")
