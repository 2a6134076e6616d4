"""``highwater claims``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from highwater.lab.claims import claims as module
from highwater.lab.claims.claims import HELD, Evidence, KafkaClaim, claims

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call


def test_all_are_listed_with_their_verdict(highwater: Callable[..., Call]) -> None:
    call = highwater("claims")
    assert call.code == 0
    assert all(claim.name in call.out for claim in claims())
    assert " broken, " in call.out


def test_one_is_told_with_the_command_that_shows_it(highwater: Callable[..., Call]) -> None:
    call = highwater("claims", "acks-all", "--seeds", "0..1")
    assert call.code == 0
    assert "as long as at least one in-sync replica remains alive" in " ".join(call.out.split())
    assert "highwater run forgotten-expansion --mode elr-4.3" in " ".join(call.out.split())
    assert "1 of 1 runs contradict it" in call.out


def test_runs_that_differ_from_the_record_exit_with_1(
    highwater: Callable[..., Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = KafkaClaim(
        "x", "a sentence", "a source", "a meaning", HELD, (Evidence("canary", "hw", ("committed-loss",)),)
    )
    monkeypatch.setattr(module, "named", lambda _: [held])
    call = highwater("claims", "--seeds", "0..1", "--json")
    assert call.code == 1
    assert "x: recorded as held, broken by these 1 runs" in call.err
    (entry,) = json.loads(call.out)["claims"]
    assert (entry["verdict"], entry["runs"], entry["contradict"]) == ("broken", 1, 1)
    assert entry["seeds"] == [{"scenario": "canary", "mode": "hw", "seed": 0, "kinds": ["committed-loss"]}]


def test_the_same_command_resumes(
    highwater: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("claims", "acks-all", "--seeds", "0..30", "--output", tmp_path / "kept")
    first = highwater(*words, "--local", 2)
    kept = (tmp_path / "kept" / "claims.jsonl").read_bytes()

    def again(_case: object) -> None:
        raise AssertionError

    monkeypatch.setattr(module, "run_case", again)
    assert highwater(*words).out == first.out
    assert (tmp_path / "kept" / "claims.jsonl").read_bytes() == kept
    refused = highwater(*words, "--master", "local[2]", "--local", 2)
    assert (refused.code, refused.err) == (2, "highwater: --local excludes Spark's options --master and --conf\n")


def test_bad_input(highwater: Callable[..., Call]) -> None:
    call = highwater("claims", "ack-all")
    assert (call.code, call.err.count("\n")) == (2, 1)
    assert "did you mean 'acks-all'?" in call.err
    assert highwater("claims", "--seeds", "x").code == 2
