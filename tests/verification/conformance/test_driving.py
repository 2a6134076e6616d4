"""The drivers refuse what they do not understand: nothing in a table is skipped silently."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.verification.conformance.cases import Case, TableError, read_cases
from tests.verification.conformance.driving import run_case
from tests.verification.conformance.kinds import KINDS
from tests.verification.conformance.world import LATEST

ASSIGN = {"op": "assign", "epoch": 2, "start_offset": 10}
ENTRIES = {"op": "entries", "expect": [[2, 10]]}
EMPTY: dict[str, Any] = {"entries": []}


def _run(*ops: dict[str, Any], given: dict[str, Any] = EMPTY, kind: str = "leader_epoch_cache") -> int:
    return run_case(Case("table", "case", kind, "", given, ops, frozenset()), KINDS[kind], LATEST)


def test_expectations_are_counted() -> None:
    assert _run(ASSIGN, ENTRIES, ENTRIES) == 2


def test_an_expectation_that_is_not_met_fails() -> None:
    with pytest.raises(AssertionError, match=r"entries: expected \[\], got \[\[2, 10\]\]"):
        _run(ASSIGN, {"op": "entries", "expect": []})


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(TableError, match="unknown operation 'asign'; did you mean 'assign'"):
        _run({**ASSIGN, "op": "asign"}, ENTRIES)


def test_an_unknown_field_of_an_operation_is_refused() -> None:
    with pytest.raises(TableError, match=r"op 1\.twice"):
        _run({**ASSIGN, "twice": True}, ENTRIES)


def test_an_unknown_field_of_what_is_given_is_refused() -> None:
    with pytest.raises(TableError, match=r"given\.format"):
        _run(ASSIGN, ENTRIES, given={**EMPTY, "format": "old"})


def test_an_unknown_nested_field_is_refused() -> None:
    given = {"follower": {"log": [], "quota": 1}}
    with pytest.raises(TableError, match=r"given\.follower\.quota"):
        _run({"op": "append_batch", "batch": [0, 0, 0], "expect": {"leo": 1}}, given=given, kind="follower_append")


def test_an_unknown_expectation_is_refused() -> None:
    expect = {"epoch": 2, "end": 11}
    with pytest.raises(TableError, match="does not show 'end'"):
        _run(ASSIGN, {"op": "end_offset_for", "epoch": 2, "leo": 11, "expect": expect})


def test_a_case_that_compares_nothing_is_refused() -> None:
    with pytest.raises(TableError, match="compares nothing"):
        _run(ASSIGN)


def test_prose_alone_compares_nothing() -> None:
    log = {"log": [[0, 0, 1]], "leader_epoch": 1}
    op = {"op": "kip101_reply", "requested_epoch": 1, "expect": {"then": "all is well"}}
    with pytest.raises(TableError, match="compares nothing"):
        _run(op, given={"leader": log, "follower": log}, kind="derived_scenario")


def test_an_error_that_nobody_expects_is_not_swallowed() -> None:
    with pytest.raises(ValueError, match="negative"):
        _run({**ASSIGN, "epoch": -1}, {"op": "entries", "expect": []})


def test_a_truncation_that_fails_ends_its_partition_only() -> None:
    given = {"follower": {"partitions": 2, "truncation_fails_for": 1}, "leader": {}}
    expect = {"failed": [1], "tracked": [2]}
    assert _run({"op": "round", "expect": expect}, given=given, kind="conversation") == 2


def test_unknown_partition_gets_no_answer() -> None:
    expect = {"error": "UNKNOWN_TOPIC_OR_PARTITION", "epoch": -1, "end_offset": -1}
    op = {"op": "end_offset_request", "leader_epoch": 1, "expect": expect}
    assert _run(op, given={"partition": "unknown"}, kind="epoch_request_validation") == 3


def _write(folder: Path, **changes: Any) -> None:
    case = {"id": "lec-900", "source": {}, "given": EMPTY, "ops": [ASSIGN, ENTRIES]}
    table = {"schema_version": 1, "area": "leader_epoch_cache", "cases": [case]} | changes
    (folder / "leader_epoch_cache.json").write_text(json.dumps(table), encoding="utf-8")


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    _write(tmp_path, schema_version=2)
    with pytest.raises(TableError, match="schema_version 2"):
        read_cases(tmp_path)


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"holds none of leader_epoch_cache\.json, follower_truncation\.json, hwm"):
        read_cases(tmp_path)


@pytest.mark.world
def test_tables_of_another_folder_are_run(tmp_path: Path) -> None:
    _write(tmp_path)
    (tmp_path / "raft_votes.json").write_text("{}", encoding="utf-8")
    tests = Path(__file__).with_name("test_tables.py")
    words = ["-m", "pytest", str(tests), "--tables", str(tmp_path), "-p", "no:cacheprovider"]
    root = tests.parents[2]
    run = subprocess.run([sys.executable, *words], cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert "1 passed" in run.stdout
    assert run.stdout.count("conformance: no driver for raft_votes.json") == 1
