from __future__ import annotations

import pytest

from tests.plain import needs_sources
from tests.verification.hunt.walks import CASES, Case, Result, main, measure, row

pytestmark = needs_sources
BY_NAME = {case.about: case for case in CASES}
QUICK = (
    "HW under min ISR",
    "HW-truncation loss, 3 replicas",
    "KIP-101 divergence",
    "stale-log-start (divergence, clean elections)",
)


@pytest.mark.parametrize("name", QUICK)
def test_a_failure_is_found_and_its_repair_shows_nothing(name: str) -> None:
    case = BY_NAME[name]
    assert measure(case, [100], 60).seconds != [None]
    assert measure(case, [100], 0.3, repaired=True).seconds == [None]


def test_a_row_names_the_command_and_says_whether_the_mark_is_kept() -> None:
    case = Case("a case", "elr-repaired", {"mutant": "m"}, {"losses": 0}, "3", 1.0)
    kept, slow, missed = Result([0.5, 0.7, None]), Result([0.5, 1.2, 2.0]), Result([0.1, None, None])
    for result in (kept, slow, missed):
        result.walks = [1, 2, 30]
    start = "| a case | `--mode elr-repaired --rule mutant=m --losses 0 --strict` | 3 | 1 |"
    assert row(case, kept) == f"{start} 0.7 | 2 of 3 | 2 | yes |"
    assert row(case, slow) == f"{start} 1.2 | 3 of 3 | 2 | **no** |"
    assert row(case, missed) == f"{start} - | 1 of 3 | 2 | **no** |"


def test_the_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "HW under min ISR", "--seconds", "0"]) == 1
    assert capsys.readouterr().out.startswith(
        "| HW under min ISR | `--mode elr-repaired --rule mutant=hw-ignores-min-isr"
    )
