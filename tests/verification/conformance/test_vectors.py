"""What Kafka's released classes answered (`make oracle-record`), replayed by the core."""

from __future__ import annotations

import json
from typing import Final

import pytest

from tests.verification.oracle.differences import listed
from tests.verification.oracle.kafka import plain
from tests.verification.oracle.recording import FOLDER, SCHEMA_VERSION
from tests.verification.oracle.releases import LIKE, RULES
from tests.verification.oracle.subjects import SUBJECTS

FILES: Final = sorted(FOLDER.glob("*.json"))


def test_every_subject_and_set_of_rules_has_vectors() -> None:
    assert {file.stem for file in FILES} == {
        f"{name}-{release}" for name, subject in SUBJECTS.items() for release in subject.rules if release not in LIKE
    }
    assert all(RULES[release] == RULES[other] and other not in LIKE for release, other in LIKE.items())
    assert sum(file.stat().st_size for file in FILES) < 6_500_000


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_the_core_does_as_kafka_did(name: str) -> None:
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert content["schema_version"] == SCHEMA_VERSION
    subject, release = SUBJECTS[content["subject"]], content["kafka"]
    listed_names = [entry.name for entry in listed(subject.name, release)]
    assert 10 <= len(content["vectors"]) <= 100
    for case, kafka in content["vectors"]:
        core = plain(subject.core(case, release))
        if core != kafka and listed_names:
            core = plain(subject.core(case, release, listed_names))
        assert core == kafka, case
