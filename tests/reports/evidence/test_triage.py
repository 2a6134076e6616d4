from __future__ import annotations

import re
import signal
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

import highwater as hw
from reports.evidence.triage import (
    DOCUMENTED,
    Bucket,
    ExaminedFailure,
    Failure,
    NoFailureError,
    ShrunkSize,
    Triage,
    _buckets,
    _each,
    _whole,
    bug_of,
    failures,
    for_report,
    sample,
    triage,
)
from reports.page.build import page
from scenarios.format import findings
from scenarios.shrinking.cause import Repair
from scenarios.shrinking.known_bugs import KNOWN, known
from scenarios.sweep.store import Store
from sim.errors import UnavailableError
from sim.protocol.modes import MODES
from sim.protocol.rules import RULES
from tests.reports.page.pages import Page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Call

KEPT = Repair("follower_truncation", "leader-epoch", is_rule=True)
CHANCE = Repair("isr_join", "leader-epoch-start", is_rule=True)
FLUSHED = Repair("log.flush.interval.messages", 1, is_rule=False)


def failure(seed: int, *, inside: bool = True) -> Failure:
    return Failure("power", "hw", seed, "", "divergence", inside, f"highwater replay power --seed {seed}")


def test_a_bucket_is_named_after_the_repair_that_cures_most() -> None:
    group = [
        ExaminedFailure(failure(5), (CHANCE, KEPT, FLUSHED)),
        ExaminedFailure(failure(3), (KEPT,)),
        ExaminedFailure(failure(4), (KEPT, FLUSHED)),
        ExaminedFailure(failure(9), (FLUSHED,)),
        ExaminedFailure(failure(1)),
    ]
    truncation, flush, nothing = _buckets(group, 10, MODES["hw"])
    assert (truncation.repair, truncation.count, truncation.share) == (str(KEPT), 3, 0.3)
    assert (truncation.smallest.seed, truncation.others) == (3, ())
    assert truncation.ticket == "KAFKA-1211, KIP-101"
    assert (flush.repair, flush.count, flush.bug) == (str(FLUSHED), 1, "")
    assert (nothing.repair, nothing.smallest.seed) == (None, 1)


def test_a_sample_takes_half_from_inside() -> None:
    found = [failure(seed, inside=seed < 30) for seed in range(100)]
    counts = [(most, sum(one.inside for one in sample(found, most))) for most in (10, 40, 80, 100, 200)]
    assert counts == [(10, 5), (40, 20), (80, 30), (100, 30), (200, 30)]
    assert len(sample(found, 80)) == 80


def test_more_of_a_sample_are_the_same_and_others() -> None:
    found = [failure(seed, inside=seed < 30) for seed in range(100)]
    for most in range(1, 101):
        assert sample(found, most) == sample(found, None)[:most]
        inside = sum(one.inside for one in sample(found, most))
        assert inside == min(30, (most + 1) // 2)
    assert sorted(one.seed for one in sample(found, None)) == list(range(100))


@pytest.mark.world
def test_a_time_limit_decides_only_how_many(swept: Path) -> None:
    store = Store(swept)
    parts: list[float] = []

    def is_late(part: float) -> bool:
        parts.append(part)
        return len(parts) > 1

    timed = triage(store, None, "committed-loss", is_late=is_late)
    assert timed == triage(store, 2, "committed-loss")
    assert {*parts} <= {0.5, 1}
    assert "looked at 1 of " in timed.looked


@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_late_is_left(processes: int) -> None:
    done: list[int] = []
    found = _each(abs, [-1, -2, -3, -4, -5, -6], processes, lambda one, _: done.append(one), lambda: len(done) >= 3)
    assert (found, done) == ([1, 2, 3], [1, 2, 3])


@pytest.mark.parametrize(
    ("repair", "kind", "told"),
    [
        (("min_isr_change", "clears-if-enough"), "no-progress", "(finding elr-cleared)"),
        (("min_isr_change", "clears-if-enough"), "committed-loss", "(finding elr-cleared-power-loss)"),
        (("elr_outside_assignment", "dropped"), "committed-loss", "(finding reassignment-back)"),
        (("elr_outside_assignment", "dropped"), "no-progress", "(finding elr-outside-assignment)"),
        (("elr_outside_assignment", "dropped"), "divergence", "finding reassignment-back, with another outcome"),
    ],
)
def test_a_bucket_has_the_finding_with_its_kind_of_violation(repair: tuple[str, str], kind: str, told: str) -> None:
    ticket = ", ".join(findings.shown_by(*repair))
    bucket = Bucket("s", "elr-4.3", kind, True, "=".join(repair), (), "", DOCUMENTED, ticket, 1, 1.0, failure(1))
    assert bug_of(bucket).endswith(told)


def test_a_report_examines_as_many_as_its_time_allows(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def stands_in(_store: Store, most: int | None, *rest: object) -> object:
        asked.append(most)
        is_late = cast("Callable[[float], bool]", rest[-1])
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 61)
        asked.extend((is_late(0.5), is_late(1)))
        raise NoFailureError("none")

    monkeypatch.setattr("reports.evidence.triage.triage", stands_in)
    store = Store(swept)
    assert for_report(store, 0) is None
    assert for_report(store) is None
    assert asked == [None, True, False]
    monkeypatch.undo()


def test_a_sample_has_equal_parts_of_each_kind() -> None:
    found = [replace(failure(seed), kind="no-progress" if seed % 50 else "committed-loss") for seed in range(400)]
    counts = [Counter(one.kind for one in sample(found, most)) for most in (8, 12, 40)]
    assert [(count["committed-loss"], count["no-progress"]) for count in counts] == [(4, 4), (6, 6), (8, 32)]


def test_shares_are_those_of_all_failures() -> None:
    rare = [replace(failure(seed), kind="committed-loss") for seed in range(10)]
    found = [*rare, *(failure(seed) for seed in range(90)), *(failure(seed, inside=False) for seed in range(500))]
    looked = [*(ExaminedFailure(one) for one in rare[:5]), *(ExaminedFailure(one) for one in found[10:15])]
    wholes = {kind: _whole(found, looked, kind) for kind in ("committed-loss", "divergence")}
    assert {kind: 5 / whole for kind, whole in wholes.items()} == {"committed-loss": 0.1, "divergence": 0.9}
    told = [*looked[:5], *(replace(one, documented=True) for one in looked[5:])]
    assert 5 / _whole(found, told, "committed-loss") == 1


def test_every_known_bug_is_the_repair_of_a_rule() -> None:
    assert [(rule, value) for rule, value in KNOWN if value not in RULES[rule].values[1:]] == []
    assert [bug for bug in KNOWN.values() if not bug.ticket.startswith(("KAFKA-", "KIP-"))] == []
    assert known("isr_floor", "min-isr") is None


@pytest.mark.world
def test_buckets_are_the_same_from_any_number_of_processes(swept: Path) -> None:
    store = Store(swept)
    one, two = (triage(store, 2, "committed-loss", processes, shrunk=1) for processes in (1, 2))
    assert one == two
    assert one.buckets[0].small is not None
    assert sum(bucket.count for bucket in one.buckets) + len(one.unexplained) == 2
    assert len(one.unexplained) == 1  # canary is a script.
    assert one.inside_looked + one.outside_looked == 1
    assert "looked at 0 of " in one.said


def test_failures_come_in_an_order_of_their_own(swept: Path) -> None:
    found = failures(Store(swept))
    assert found == failures(Store(swept))
    assert [one.seed for one in found] != sorted(one.seed for one in found)


def test_triage_is_shown_and_told_as_json(highwater: Callable[..., Call], swept: Path) -> None:
    call = highwater("triage", swept, "--most", 2)
    assert call.code == 0
    assert "1 bucket; looked at " in call.out
    told = [line for line in call.out.splitlines() if line.startswith("highwater explain ")]
    assert told
    assert all(" --scenario power --mode " in line for line in told)  # Buckets are of power alone, the sweep is not.
    data = highwater("triage", swept, "--most", 2, "--json").json
    assert data["schema_version"] == 1
    assert data["inside"]["looked_at"] + data["outside"]["looked_at"] + len(data["unexplained"]) == 2


def test_buckets_of_several_scenarios_are_told_with_theirs(
    highwater: Callable[..., Call], swept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = [ExaminedFailure(failure(seed), (KEPT,)) for seed in (4, 5)]
    one = replace(_buckets(looked, 4, MODES["hw"])[0], small=ShrunkSize((), 1, whole=True))
    other = replace(one, scenario="chaos", smallest=replace(one.smallest, scenario="chaos", seed=6))
    both = Triage(4, 4, 0, 0, (one, other), ())
    monkeypatch.setattr("reports.evidence.triage.triage", lambda *_, **__: both)
    told = highwater("triage", swept).out
    assert re.search(r"scenario +mode +kind .*\npower +hw +divergence .*\nchaos +hw +divergence ", told)
    assert "\nchaos, hw, divergence, follower_truncation=leader-epoch" in told
    text = Page(page(Store(swept), both)).text
    cause = (
        r"hw: truncation to the high watermark \(KAFKA-1211, KIP-101\). .* \(rule follower_truncation=leader-epoch\)"
    )
    assert re.search(rf"divergence, inside the promise\s.*\s+power, {cause}", text)
    assert re.search(rf"\s+chaos, {cause}", text)
    alone = Page(page(Store(swept), replace(both, buckets=(one,)))).text
    assert re.search(rf"\s+{cause}", alone)


@pytest.mark.parametrize("kind", ["duplicate", "comitted-loss"])
def test_a_kind_that_was_not_violated_is_refused(highwater: Callable[..., Call], swept: Path, kind: str) -> None:
    call = highwater("triage", swept, "--kind", kind)
    assert (call.code, call.out, call.err.count("\n")) == (2, "", 1)
    assert "was violated in no run" in call.err


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep in which findings and other failures occur."""
    folder = tmp_path_factory.mktemp("moved") / "store"
    hw.sweep("reassignments", "0..30", folder, modes="elr-4.3")
    return folder


@pytest.mark.world
def test_what_the_findings_tell_is_skipped(moved: Path) -> None:
    store = Store(moved)
    one, two = (triage(store, 2, None, processes, shrunk=0, all_but_known=True) for processes in (1, 2))
    assert one == two
    assert one.inside_looked + one.outside_looked <= 2
    assert one.documented > 0
    assert f"skipped {one.documented} that FINDINGS.md documents" in one.said
    assert not any(bucket.bug == "documented in FINDINGS.md" for bucket in one.buckets)
    every = triage(store, 6, shrunk=0)
    assert every.documented == 0
    assert {bucket.ticket for bucket in every.buckets if bucket.bug == "documented in FINDINGS.md"} <= {
        ", ".join(findings.shown_by(*repair)) for repair in findings.documented()
    }
    for inside in {bucket.inside for bucket in every.buckets}:
        assert sum(bucket.share for bucket in every.buckets if bucket.inside == inside) == pytest.approx(1)


@pytest.mark.world
def test_buckets_name_what_a_user_can_do(
    highwater: Callable[..., Call], moved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reports.evidence.triage._shrink", lambda _: (None, None))
    options = ["--mode", "elr-4.3", "--scenario", "reassignments", "--most", 4]
    call = highwater("triage", moved, *options)
    assert call.code == 0
    assert re.search(r"mode +kind +failures +share +smallest +what to do +repair", call.out)
    buckets = highwater("triage", moved, *options, "--json").json["buckets"]
    assert all(re.search(r"=|^Kafka |^no (release yet|single repair)$", bucket["advice"]) for bucket in buckets)


@pytest.mark.world
def test_a_process_that_is_killed_is_told() -> None:
    with pytest.raises(UnavailableError, match="processes were killed 4 times"):
        _each(signal.raise_signal, [signal.SIGKILL, signal.SIGKILL], 2)


def test_an_interrupt_ends_the_processes_at_once_and_silently(capfd: pytest.CaptureFixture[str]) -> None:
    def interrupt(_done: int, _all: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _each(time.sleep, [0, 600, 600, 600], 2, interrupt)
    assert capfd.readouterr().err == ""
