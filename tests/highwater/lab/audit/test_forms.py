"""One log of a cluster of three real brokers, in all forms: segments, snapshot and tail, dump, description.

A topic is reassigned with a throttle, broker 2 has been stopped cleanly, and broker 3 killed.
"""

from __future__ import annotations

import lzma
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from highwater.lab.audit.audit import audit
from highwater.lab.audit.log import LOG
from highwater.lab.audit.restart import check
from highwater.lab.audit.segments import SNAPSHOT
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from highwater.lab.audit.audit import Audit
    from highwater.lab.audit.risks import Risk
    from tests.conftest import Call

FORMS = ROOT / "tests" / "fixtures" / "metadata" / "three-forms-4.3.1"
SNAPSHOTS = sorted(path for path in (FORMS / LOG).iterdir() if SNAPSHOT.fullmatch(path.name))


def whole() -> Audit:
    return audit([FORMS])


def tail(snapshot: Path, folder: Path) -> Path:
    """The folder of a broker that has deleted all segments which end before a snapshot."""
    place = folder / LOG
    place.mkdir()
    segments = sorted((FORMS / LOG).glob("*.log"))
    first = max(path.name for path in segments if path.name[:20] <= snapshot.name[:20])
    for path in (snapshot, *(path for path in segments if path.name >= first)):
        shutil.copy(path, place)
    return place


def risks(found: Audit) -> dict[str, list[Risk]]:
    """By names, without the records since which they are so, which a snapshot does not know."""
    return {found.image.name(key): [replace(risk, since=-1) for risk in risks] for key, risks in found.risks.items()}


def restarts(found: Audit) -> dict[int, dict[str, list[str]]]:
    def of(broker: int) -> dict[str, list[str]]:
        name = found.image.name
        return {name(key): [reason.text for reason in told] for key, told in check(found, broker, name).reasons.items()}

    return {broker: of(broker) for broker in sorted(found.image.brokers)}


def test_the_log_holds_what_the_forms_are_compared_by() -> None:
    found = whole()
    assert {risk.kind for one in found.risks.values() for risk in one} == {
        "isr-below-min-isr",
        "leader-alone",
        "leaderless",
    }
    reassigned = [found.image.name(key) for key, state in found.image.partitions.items() if state.is_reassigned]
    assert sorted(reassigned) == ["logs-0", "logs-1"]
    assert [broker for broker, one in found.image.brokers.items() if not one.is_active] == [2, 3]
    assert not found.unexplained


def test_the_example_of_the_page_is_real(highwater: Callable[..., Call]) -> None:
    page = (ROOT / "highwater" / "lab" / "audit" / "README.md").read_text(encoding="utf-8")
    call = highwater("audit", FORMS, "--most", 2)
    assert f"```\nhighwater audit {FORMS.relative_to(ROOT)} --most 2\n```\n\n```\n{call.out}```\n" in page


def test_segments_and_dump_are_equal() -> None:
    assert audit([FORMS / "dump.txt.xz"]) == whole()


def test_files_are_read_as_their_folder_is() -> None:
    assert audit(sorted((FORMS / LOG).iterdir())) == whole()
    assert audit(SNAPSHOTS).notes == audit(SNAPSHOTS[-1:]).notes


@pytest.mark.parametrize("snapshot", SNAPSHOTS, ids=lambda path: path.name[15:20])
def test_a_snapshot_and_its_tail_differ_only_in_their_history(snapshot: Path, tmp_path: Path) -> None:
    full, short = whole(), audit([tail(snapshot, tmp_path)])
    assert (risks(short), restarts(short)) == (risks(full), restarts(full))
    assert list(risks(short)) == list(risks(full)), "in the same order"
    at = int(snapshot.name[:20])
    assert short.first_offset == at
    for key, state in full.image.partitions.items():
        assert short.image.partitions[key] == replace(state, offset=state.offset if state.offset >= at else -1)
    assert (short.image.brokers, short.image.topics) == (full.image.brokers, full.image.topics)
    assert short.image.settings == full.image.settings
    assert sum(short.explained.values()) < sum(full.explained.values())
    assert not short.unexplained
    (note,) = short.notes
    assert note.startswith(f"history begins at the snapshot before record {at}")


def dumped(*, first: int, snapshot: bool = True) -> str:
    """What the tool prints of the segments from one on, and of the last snapshot, in order of their names."""
    text = lzma.decompress((FORMS / "dump.txt.xz").read_bytes()).decode()
    parts = {part.split(".log", 1)[0]: f"Dumping {part}" for part in text.split("Dumping ")[1:]}
    kept = {name: part for name, part in parts.items() if int(name) >= first}
    if snapshot:
        kept |= {
            path.stem: lzma.decompress((FORMS / f"{path.stem}.txt.xz").read_bytes()).decode() for path in SNAPSHOTS[-1:]
        }
    return "".join(kept[name] for name in sorted(kept))


def test_a_dump_may_hold_snapshots(tmp_path: Path) -> None:
    snapshot = SNAPSHOTS[-1]
    place = tail(snapshot, tmp_path)
    first = min(int(path.stem) for path in place.glob("*.log"))
    file = tmp_path / "dump.txt"
    file.write_text(dumped(first=first))
    assert audit([file]) == audit([place])
    file.write_text(dumped(first=0))
    assert audit([file]) == whole()
    file.write_text(dumped(first=10_000))
    assert audit([file]).notes == audit(SNAPSHOTS).notes
    assert risks(audit([file])) == risks(audit(SNAPSHOTS))
    file.write_text(dumped(first=first, snapshot=False))
    assert audit([file, snapshot]) == audit([place])
    assert f"no snapshot holds the state before record {first}" in audit([file]).notes[0]


def test_two_dumps_are_read_in_order_of_their_records(tmp_path: Path) -> None:
    early, late = tmp_path / "b.txt", tmp_path / "a.txt"
    text = dumped(first=0, snapshot=False)
    at = text.index("Dumping 00000000000000000780")
    early.write_text(text[:at])
    late.write_text(text[at:])
    assert audit([late, early]) == whole()


def test_the_description_of_the_same_moment_has_the_same_risks() -> None:
    full, moment = whole(), audit([FORMS / "topics.txt"])
    assert (risks(moment), restarts(moment)) == (risks(full), restarts(full))
