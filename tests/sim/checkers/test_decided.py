"""Which checkers have decided in a run: the probes of `highwater coverage` for checks."""

from __future__ import annotations

import pytest

from scenarios.format.catalogue import load
from scenarios.single.coverage_column import width
from scenarios.single.run import run_row
from sim.checkers.checker import Checker
from sim.checkers.clean_elections import CleanElections
from sim.checkers.quorum_progress import QuorumProgress
from sim.checkers.registry import CHECKERS
from sim.protocol.modes import mode as mode_named
from sim.protocol.probes import CHECKS

REPLICATED_ONLY = {"metadata-loss", "quorum-leaders", "quorum-stalled", "committed-offset-back"}
"""They need controllers that are processes, or committed offsets that are records."""
KRAFT_ONLY = {"metadata-mismatch", "recovery-quorum", "controller-crashes"}
NOT_IN_CHAOS = {"duplicate", "sequence-gap", "deleted-records-back", "stale-setting"}


def decided(scenario: str, mode: str, seeds: range) -> set[str]:
    """The checks that decided in one of these runs."""
    found = 0
    for seed in seeds:
        found |= int(run_row(load(scenario), mode_named(mode), seed)["coverage"], 16)
    return {kind for kind, number in CHECKS.items() if found >> (width() - 1 - number) & 1}


def test_every_checker_has_a_probe() -> None:
    own: list[type[Checker]] = [*CHECKERS, QuorumProgress, CleanElections]
    assert list(CHECKS) == [checker.FINDINGS[0].kind for checker in own]


@pytest.mark.parametrize(
    ("scenario", "mode", "never"),
    [
        ("operations", "elr-4.3", {*REPLICATED_ONLY, "sequence-gap", "controller-crashes", "deleted-records-back"}),
        ("chaos", "hw", {*REPLICATED_ONLY, *KRAFT_ONLY, *NOT_IN_CHAOS, "epoch-cache-mismatch"}),
    ],
)
def test_checks_decide_where_they_can(scenario: str, mode: str, never: set[str]) -> None:
    """Mode hw has no leader-epoch cache, and chaos has no idempotent producer and changes no setting. In six runs of
    operations no batch of an idempotent producer fails, no controller crashes, and no election follows a move of the
    log start.
    """
    assert set(CHECKS) - decided(scenario, mode, range(6)) == never


def test_a_run_without_ends_decides_less() -> None:
    assert not decided("canary", "kip101", range(1)) & {"flushed-loss", *KRAFT_ONLY}
