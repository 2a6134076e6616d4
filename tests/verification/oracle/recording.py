"""`make oracle-record`: keeps a few cases of each subject and release, with Kafka's answers, for `make test`.

Of many drawn cases those are kept that reach a pair of lines in the core that none before them did (a branch, as
coverage tools see it), without the operations that they do not need for it; then the longest others, until there are
enough. Only cases in which both sides agree are kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from itertools import accumulate
from pathlib import Path
from types import FrameType
from typing import Any, Final

from tests.verification.oracle.differences import listed
from tests.verification.oracle.kafka import Kafka, plain
from tests.verification.oracle.subject import Case, Subject

FOLDER: Final = Path(__file__).parent.parent / "conformance" / "vectors"
SCHEMA_VERSION: Final = 1
DRAWN: Final = 3_000
MOST: Final = 120
CORE: Final = ("/sim/protocol/", "/sim/environment/storage")

Branch = tuple[str, int, int]


def record(pairs: Iterable[tuple[Subject, str]]) -> int:
    """Write the vectors of these subjects and releases anew; returns an exit code."""
    FOLDER.mkdir(exist_ok=True)
    for subject, release in pairs:
        cases = chosen(subject, release)
        with Kafka(subject, release) as kafka:
            answers = kafka.run(*cases)
        names = [entry.name for entry in listed(subject.name, release)]
        kept = []
        for case, answer in zip(cases, answers, strict=True):
            agreeing = [imitated for imitated in ([], names) if plain(subject.core(case, release, imitated)) == answer]
            if agreeing:
                kept.append([case, answer])
        write(subject, release, kept)
        sys.stdout.write(f"{subject.name} {release}: {len(kept)} of {len(cases)} cases kept\n")
    return 0


def path(subject: str, release: str) -> Path:
    """Path of the vectors of a subject and a release."""
    return FOLDER / f"{subject}-{release}.json"


def write(subject: Subject, release: str, vectors: list[Any]) -> None:
    """One vector a line: the operations, and what Kafka shows after each; no more than `Subject.recorded` allows."""
    texts = [json.dumps(vector, separators=(",", ":")) for vector in vectors]
    sizes = accumulate(map(len, texts))
    lines = ",\n".join(text for text, size in zip(texts, sizes, strict=True) if size <= subject.recorded)
    head = {"schema_version": SCHEMA_VERSION, "subject": subject.name, "kafka": release}
    text = json.dumps(head)[:-1] + f', "vectors": [\n{lines}\n]}}\n'
    path(subject.name, release).write_text(text, encoding="utf-8")


def chosen(subject: Subject, release: str) -> list[Case]:
    """Cases for a release: see the module."""
    reached: set[Branch] = set()
    kept: list[Case] = []
    rest: list[Case] = []
    for seed in range(DRAWN):
        case = subject.case(release, seed)
        new = branches(lambda case=case: subject.core(case, release)) - reached  # type: ignore[misc]
        if new and len(kept) < MOST:
            kept.append(_shortened(subject, release, case, new))
            reached |= new
        else:
            rest.append(case)
    rest.sort(key=len, reverse=True)
    return kept + rest[: MOST - len(kept)]


def _shortened(subject: Subject, release: str, case: Case, needed: set[Branch]) -> Case:
    for place in range(len(case) - 1, -1, -1):
        shorter = case[:place] + case[place + 1 :]
        if shorter and needed <= branches(lambda shorter=shorter: subject.core(shorter, release)):  # type: ignore[misc]
            case = shorter
    return case


def branches(call: Callable[[], object]) -> set[Branch]:
    """Pairs of lines of the core that were run one after the other in one frame."""
    found: set[Branch] = set()

    def enter(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        file = frame.f_code.co_filename
        if not any(part in file for part in CORE):
            return None
        before = 0

        def line(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
            nonlocal before
            if event == "line":
                found.add((file, before, frame.f_lineno))
                before = frame.f_lineno
            return line

        return line

    previous = sys.gettrace()
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(previous)
    return found
