"""The independent judge of waits and the verdict find the same."""

from __future__ import annotations

import pytest

from tests.verification.waits import compared, main


@pytest.mark.parametrize(
    ("scenario", "mode", "seed", "rules", "kinds"),
    [
        ("chaos", "kip320-repaired", 39, {"mutant": "end-of-next-epoch"}, {"rejoin"}),
        ("chaos", "kip320-repaired", 18, {"control_retry": "once"}, {"lead"}),
        ("power", "kip320-repaired", 74, {"missed_bounce": "unnoticed"}, set()),
        ("chaos", "elr-repaired", 5, {}, set()),
    ],
)
def test_they_agree(scenario: str, mode: str, seed: int, rules: dict[str, str], kinds: set[str]) -> None:
    assert compared(scenario, mode, seed, rules) == (kinds, kinds)


def test_the_program_counts_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--scenarios", "chaos", "--modes", "kip320-repaired", "--seeds", "39..40"]
    assert main([*options, "--rule", "mutant=end-of-next-epoch"]) == 0
    assert "1 runs, 1 with needless waits, 0 in which judge and verdict disagree" in capsys.readouterr().out
