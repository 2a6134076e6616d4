from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.golden import FILE, compute, differences, update

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def present() -> dict[str, str]:
    return compute()


@pytest.fixture
def stored() -> dict[str, Any]:
    assert FILE.exists(), 'none yet: python -m tests.golden --update "reason"'
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


def test_digests_are_what_they_were(stored: dict[str, Any], present: dict[str, str]) -> None:
    told = 'to keep the new ones: python -m tests.golden --update "reason"'
    assert differences(stored, present) == [], told
    assert stored["reason"].strip()


def test_tampering_is_noticed(stored: dict[str, Any], present: dict[str, str]) -> None:
    entries = stored["entries"]
    key = next(iter(entries))
    flipped = ("0" if entries[key][0] != "0" else "1") + entries[key][1:]
    for tampered in ({**entries, key: flipped}, {name: entries[name] for name in entries if name != key},
                     {**entries, "power/hw/99": flipped}):  # fmt: skip
        assert len(differences({**stored, "entries": tampered}, present)) == 1


def test_a_newer_file_is_refused(stored: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="schema_version 2"):
        differences({**stored, "schema_version": 2}, {})


def test_an_update_keeps_its_reason(tmp_path: Path, present: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.golden.compute", lambda: present)
    update("because", tmp_path / "digests.json")
    written = json.loads((tmp_path / "digests.json").read_text(encoding="utf-8"))
    assert written == {"schema_version": 1, "reason": "because", "entries": present}
