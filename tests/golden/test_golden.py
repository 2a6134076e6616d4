from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.golden import FEW, FILE, SEEDS, compute, differences, update

if TYPE_CHECKING:
    from pathlib import Path


TO_KEEP = 'to keep the new ones: python -m tests.golden --update "reason"'


@pytest.fixture(scope="module")
def few() -> dict[str, str]:
    """Digests of the first seeds."""
    return compute(range(FEW))


@pytest.fixture
def stored() -> dict[str, Any]:
    assert FILE.exists(), 'none yet: python -m tests.golden --update "reason"'
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


@pytest.fixture
def stored_few(stored: dict[str, Any]) -> dict[str, Any]:
    entries = {key: digest for key, digest in stored["entries"].items() if int(key.rpartition("/")[2]) < FEW}
    return {**stored, "entries": entries}


def test_digests_of_the_first_seeds_are_what_they_were(stored_few: dict[str, Any], few: dict[str, str]) -> None:
    assert differences(stored_few, few) == [], TO_KEEP
    assert stored_few["reason"].strip()


@pytest.mark.world
def test_digests_of_all_seeds_are_what_they_were(stored: dict[str, Any], few: dict[str, str]) -> None:
    others = compute(range(FEW, SEEDS[True].stop))
    assert differences(stored, few | others) == [], TO_KEEP


def test_tampering_is_noticed(stored_few: dict[str, Any], few: dict[str, str]) -> None:
    entries = stored_few["entries"]
    key = next(iter(entries))
    flipped = ("0" if entries[key][0] != "0" else "1") + entries[key][1:]
    for tampered in ({**entries, key: flipped}, {name: entries[name] for name in entries if name != key},
                     {**entries, "power/hw/99": flipped}):  # fmt: skip
        assert len(differences({**stored_few, "entries": tampered}, few)) == 1


def test_a_newer_file_is_refused(stored: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="schema_version 2"):
        differences({**stored, "schema_version": 2}, {})


def test_an_update_keeps_its_reason(tmp_path: Path, few: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.golden.compute", lambda: few)
    update("because", tmp_path / "digests.json")
    written = json.loads((tmp_path / "digests.json").read_text(encoding="utf-8"))
    assert written == {"schema_version": 1, "reason": "because", "entries": few}
