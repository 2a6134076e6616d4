"""Claims: each says what it needs, and runs give the recorded verdict."""

from __future__ import annotations

import pytest

from highwater.lab.claims.claims import BROKEN, HELD, UNTESTED, Evidence, KafkaClaim, claims, judge, named
from scenarios.campaign.runner import LocalRunner
from scenarios.format.catalogue import load
from scenarios.format.findings import all_findings
from sim.checkers.registry import FINDINGS
from sim.errors import InputError
from sim.protocol.modes import MODES

NAMES = [claim.name for claim in claims()]


def test_there_are_thirty_claims_with_a_source_each() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 30
    assert all(claim.sentence and claim.source and claim.means for claim in claims())


@pytest.mark.parametrize("claim", claims(), ids=NAMES)
def test_a_claim_names_what_would_contradict_it(claim: KafkaClaim) -> None:
    assert claim.verdict in (BROKEN, HELD, UNTESTED)
    assert bool(claim.evidence) == (claim.verdict != UNTESTED)
    assert bool(claim.why) == (claim.verdict != HELD)
    for test in claim.evidence:
        assert test.kinds
        assert set(test.kinds) <= FINDINGS.keys()
        assert test.mode in MODES
        if claim.verdict == BROKEN:  # One run shows it.
            assert test.seed is not None or not load(test.scenario).drawn


def test_findings_contradict_claims_that_there_are() -> None:
    known = {claim.name: claim for claim in claims()}
    for finding in all_findings().values():
        for name in finding.table.contradicts:
            assert known[name].verdict == BROKEN
            assert finding.name in {evidence.scenario for evidence in known[name].evidence}


def test_a_sentence_as_if_bugs_were_repaired_has_the_same_scenarios_in_repaired_modes() -> None:
    broken, repaired = named(["leo-reset", "leo-reset-repaired"])
    assert [evidence.scenario for evidence in broken.evidence] == [evidence.scenario for evidence in repaired.evidence]
    assert [evidence.mode for evidence in broken.evidence] == ["elr-4.3", "elr-4.3", "kip320-2.6.1"]
    assert [evidence.mode for evidence in repaired.evidence] == ["elr-repaired", "elr-repaired", "kip320-repaired"]
    assert {evidence.kinds for evidence in repaired.evidence} == {("committed-loss",)}


def test_runs_say_what_is_recorded() -> None:
    found = list(judge(claims(), range(3), LocalRunner()))
    assert [judgement.claim.name for judgement in found if not judgement.expected] == []
    assert all(judgement.runs for judgement in found if judgement.claim.evidence)


def test_a_run_that_contradicts_a_claim_is_told() -> None:
    held = KafkaClaim("x", "s", "s", "m", HELD, (Evidence("canary", "hw", ("committed-loss",)),))
    (found,) = judge([held], range(1), LocalRunner())
    assert (found.verdict, found.expected, found.broken_in) == (BROKEN, False, 1)
    assert found.seeds == [("canary", "hw", 0, ("committed-loss",))]
    other = KafkaClaim("x", "s", "s", "m", HELD, (Evidence("canary", "kip101", ("committed-loss",)),))
    (kept,) = judge([other], range(1), LocalRunner())
    assert (kept.verdict, kept.runs, kept.seeds) == (HELD, 1, [])


def test_losses_outside_the_promise_count_where_a_claim_says_so() -> None:
    anywhere = Evidence("fsync-demo", "elr-4.3", ("committed-loss",), promised=False)
    inside = Evidence("fsync-demo", "elr-4.3", ("committed-loss",))
    found = [
        next(judge([KafkaClaim("x", "s", "s", "m", HELD, (test,))], range(1), LocalRunner()))
        for test in (anywhere, inside)
    ]
    assert [judgement.verdict for judgement in found] == [BROKEN, HELD]


def test_an_unknown_claim_is_refused() -> None:
    with pytest.raises(InputError, match="unknown claim 'ack-all'; did you mean 'acks-all'"):
        named(["ack-all"])
