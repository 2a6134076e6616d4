"""Results of comparisons so far: one line of JSON for each range of seeds, in the user's cache folder.

Counts hold for the code that they were made with, so each line names it: a hash over the protocol's sources, the
subject's driver and its harness. ``DEEP=1`` goes on behind the last seed of the same code.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from scenarios.sweep.java import cache_folder
from tests.places import ROOT
from tests.verification.oracle.kafka import sources
from tests.verification.oracle.subject import Subject

_SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A range of seeds that was compared."""

    schema_version: int
    subject: str
    release: str
    code: str
    first_seed: int
    cases: int
    operations: int
    differing: int
    date: str


def code_version(subject: Subject, release: str) -> str:
    """A hash of what decides about a subject's outcome."""
    driver = sys.modules[subject.run.__module__].__file__
    assert driver is not None
    core = sorted([*(ROOT / "sim" / "protocol").rglob("*.py"), ROOT / "sim" / "environment" / "storage.py"])
    digest = hashlib.blake2b(digest_size=6)
    for file in [*core, Path(driver), *sources(subject, release)]:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _file() -> Path:
    return cache_folder() / "oracle.jsonl"


def entries(subject: Subject, release: str) -> list[Entry]:
    """Ranges of seeds that were compared with the current code."""
    if not _file().is_file():
        return []
    code = code_version(subject, release)
    lines = [json.loads(line) for line in _file().read_text(encoding="utf-8").splitlines()]
    return [
        Entry(**line)
        for line in lines
        if (line["subject"], line["release"], line["code"]) == (subject.name, release, code)
    ]


def add(subject: Subject, release: str, first_seed: int, cases: int, operations: int, differing: int) -> None:
    """Note a range of seeds."""
    today = datetime.now(UTC).date().isoformat()
    code = code_version(subject, release)
    entry = Entry(_SCHEMA_VERSION, subject.name, release, code, first_seed, cases, operations, differing, today)
    with _file().open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(entry)) + "\n")
