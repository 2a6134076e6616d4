"""Intended differences: ``differences.json``, at most ten entries.

An entry has a name, the subject and the releases in which it occurs, its smallest case, the reason why the core does
otherwise, and its effect on verdicts. The subject's driver knows the name, and imitates Kafka there when it is told
to: a case may differ if imitating makes it agree. An entry whose own case agrees without that occurs no more, and has
to go. An entry that is to be repaired (`to_repair`) does not count among the ten, and the oracle fails on it as long as
it is there: it is imitated so that what lies behind it shows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.verification.oracle.subject import Case

FILE: Final = Path(__file__).with_suffix(".json")
MOST: Final = 10
_SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Difference:
    """An entry: see the module."""

    name: str
    subject: str
    releases: tuple[str, ...]
    case: Case
    reason: str
    effect: str
    to_repair: bool = False


def listed(subject: str | None = None, release: str | None = None, file: Path = FILE) -> list[Difference]:
    """The entries, those of one subject and release only if they are named."""
    content = json.loads(file.read_text(encoding="utf-8"))
    assert content["schema_version"] == _SCHEMA_VERSION
    entries = [Difference(**{**entry, "releases": tuple(entry["releases"])}) for entry in content["differences"]]
    on_purpose = [entry for entry in entries if not entry.to_repair]
    assert len(on_purpose) <= MOST, f"{len(on_purpose)} differences are listed, {MOST} are allowed"
    return [
        entry
        for entry in entries
        if subject in (None, entry.subject) and (release is None or release in entry.releases)
    ]
