from __future__ import annotations

from typing import Any

import pytest

from tests.verification.judge import disagreement, judge, run_judged

BEGIN: list[dict[str, Any]] = [
    {"step": "elected", "broker": 1, "leader_epoch": 0},
    {"step": "isr", "isr": [1, 2]},
    {"step": "lead", "broker": 1, "leader_epoch": 0},
]


def append(broker: int, offset: int, record: int, producer: int = 7) -> dict[str, Any]:
    return {"step": "append", "broker": broker, "offset": offset, "last": offset, "record": record,
            "producer_id": producer, "sequence": record}  # fmt: skip


def ack(record: int, offset: int, acks: int = -1) -> dict[str, Any]:
    return {"step": "ack", "record": record, "count": 1, "offset": offset, "acks": acks}


def both(*entries: tuple[int, int]) -> list[dict[str, Any]]:
    return [append(broker, *entry) for entry in entries for broker in (1, 2)]


def test_a_run_that_keeps_everything_has_nothing_wrong() -> None:
    assert judge([*BEGIN, *both((0, 10), (1, 11)), ack(10, 0), ack(11, 1)]) == set()


def test_an_acknowledged_record_that_is_gone_is_lost() -> None:
    cut: list[dict[str, Any]] = [{"step": "truncate", "broker": broker, "offset": 1} for broker in (1, 2)]
    assert judge([*BEGIN, *both((0, 10), (1, 11)), ack(11, 1), *cut]) == {"lost"}
    assert judge([*BEGIN, *both((0, 10), (1, 11)), ack(11, 1, acks=1), *cut]) == set()


def test_what_is_below_the_log_start_is_not_missed() -> None:
    starts: list[dict[str, Any]] = [{"step": "log-start", "broker": broker, "offset": 1} for broker in (1, 2)]
    assert judge([*BEGIN, *both((0, 10), (1, 11)), ack(10, 0), *starts]) == set()


def test_a_log_that_begins_behind_what_was_deleted_is_not_unequal() -> None:
    empty: dict[str, Any] = {"step": "truncate", "broker": 2, "offset": 0}
    begins: dict[str, Any] = {"step": "truncate", "broker": 2, "offset": 1}
    steps = [*BEGIN, append(1, 0, 10), append(1, 1, 11), append(2, 0, 10), empty, begins, append(2, 1, 11)]
    assert judge(steps) == set()
    assert judge([*steps[:-2], append(2, 1, 11)]) == {"unequal"}


def test_a_record_twice_or_out_of_order_is_found() -> None:
    assert judge([*BEGIN, *both((0, 10), (1, 10))]) == {"twice"}
    assert judge([*BEGIN, *both((0, 11), (1, 10))]) == {"order"}


def test_logs_of_the_isr_that_differ_are_found() -> None:
    assert judge([*BEGIN, *both((0, 10)), append(1, 1, 11), append(2, 1, 12)]) == {"unequal"}


def test_what_a_disk_keeps_is_not_lost() -> None:
    nobody: dict[str, Any] = {"step": "elected", "broker": 0, "leader_epoch": 1}
    whole = [*BEGIN, *both((0, 10), (1, 11)), ack(11, 1), nobody, {"step": "deleted", "broker": 2, "offset": 0}]
    for kind, gone, found in [
        ("power-loss", 0, set()),
        ("power-loss", 1, {"lost"}),
        ("directory-failed", 0, set()),
        ("directory-failed", 1, {"lost"}),
        ("disk-replaced", 2, {"lost"}),
    ]:
        assert judge([*whole, {"step": kind, "broker": 1, "offset": gone}]) == found
    down: dict[str, Any] = {"step": "kill", "broker": 1, "offset": 0}
    replaced: dict[str, Any] = {"step": "directory-replaced", "broker": 1, "offset": 2}
    assert judge([*whole, down, replaced]) == {"lost"}


def test_a_directory_that_a_replica_has_left_may_be_replaced() -> None:
    replaced: dict[str, Any] = {"step": "directory-replaced", "broker": 1, "offset": 2}
    assert judge([*BEGIN, *both((0, 10)), ack(10, 0), replaced]) == set()


def test_a_complete_replica_without_a_leader_is_found() -> None:
    ends: list[dict[str, Any]] = [{"step": "kill", "broker": 1}, {"step": "elected", "broker": 0, "leader_epoch": 1}]
    assert judge([*BEGIN, *both((0, 10)), ack(10, 0), *ends]) == {"leaderless"}
    assert judge([*BEGIN, append(1, 0, 10), ack(10, 0), *ends]) == set()


@pytest.mark.parametrize(
    ("scenario", "mode", "found"),
    [
        ("canary", "hw", {"lost"}),
        ("duplicates-across-epochs", "kraft", {"twice"}),
        ("kafka-15591-reordered", "kraft", {"order"}),
        ("elr-disabled", "elr-4.3", {"leaderless"}),
        ("canary", "kip101", set()),
    ],
)
def test_it_finds_what_the_verdict_says(scenario: str, mode: str, found: set[str]) -> None:
    result, judged = run_judged(scenario, mode, 0)
    assert judged == found
    assert disagreement(result, judged) == ""


@pytest.mark.parametrize("scenario", ["chaos", "operations", "topics", "messages"])
def test_judge_and_verdict_agree_on_random_seeds(scenario: str) -> None:
    assert [text for seed in range(5) if (text := disagreement(*run_judged(scenario, "elr-4.3", seed)))] == []
