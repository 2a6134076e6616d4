from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.golden import FILE, SCHEMA_VERSION, TO_KEEP, compute, differences, entries_of, keys, stored, text_of, update

if TYPE_CHECKING:
    from pathlib import Path

DRAWN = list(keys(drawn=True))


@pytest.mark.parametrize("later", [False, pytest.param(True, marks=pytest.mark.world)])
def test_digests_of_drawn_scenarios_are_what_they_were(later: bool) -> None:
    """The first seed of each, and all others."""
    chosen = [key for key in DRAWN if (key[2] > 0) is later]
    kept = stored()
    assert differences({key: kept.get(key, "nothing") for key in map(text_of, chosen)}, compute(chosen)) == [], TO_KEEP


def test_each_run_has_a_digest_and_the_file_a_reason() -> None:
    assert set(map(text_of, keys())) == stored().keys(), TO_KEEP
    assert json.loads(FILE.read_text(encoding="utf-8"))["reason"].strip()


def test_tampering_is_noticed() -> None:
    entries = stored()
    key = next(iter(entries))
    flipped = ("0" if entries[key][0] != "0" else "1") + entries[key][1:]
    for tampered in ({**entries, key: flipped}, {name: entries[name] for name in entries if name != key},
                     {**entries, "power/hw/99": flipped}):  # fmt: skip
        assert len(differences(tampered, entries)) == 1


def test_a_newer_file_is_refused() -> None:
    with pytest.raises(ValueError, match="schema_version 2"):
        entries_of({"schema_version": 2, "entries": {}})


def test_an_update_keeps_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.golden.keys", lambda: [("canary", "hw", 0)])
    update("because", tmp_path / "digests.json")
    written = json.loads((tmp_path / "digests.json").read_text(encoding="utf-8"))
    entries = {"canary/hw/0": stored()["canary/hw/0"]}
    assert written == {"schema_version": SCHEMA_VERSION, "reason": "because", "entries": entries}
