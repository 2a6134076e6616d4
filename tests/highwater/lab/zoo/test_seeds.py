"""Seeds that texts of findings name: each fails today, and its cure keeps the records."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from scenarios.format import catalogue
from scenarios.format.findings import all_findings
from scenarios.single.run import run_row
from sim.protocol.modes import MODES

SEEDS = [
    ("counted-after-removal", "windows", "elr-repaired", 5000603, True),
    ("elr-disabled", "operations", "elr-repaired", 800009362, False),
    ("elr-kept-after-unclean-shutdown", "operations", "elr-repaired", 950007765, True),
    ("elr-kept-while-disabled", "operations", "elr-repaired", 910002114, True),
    ("min-isr-raised-late", "messages", "elr-repaired", 950023459, True),
    ("offline-directory", "removals", "elr-repaired", 600023383, False),
    ("reassignment-to-one", "reassignments", "elr-4.3", 5088, False),
]
"""Finding, random scenario, mode, seed, and whether only an early warning shows it (``--strict``)."""


@pytest.mark.world
@pytest.mark.parametrize(("name", "scenario", "mode", "seed", "strict"), SEEDS)
def test_a_named_seed_fails_and_its_cure_keeps_the_records(
    name: str, scenario: str, mode: str, seed: int, strict: bool
) -> None:
    finding, drawn = all_findings()[name], replace(catalogue.load(scenario), strict=strict)
    rule, cure = finding.repair
    broken = dict(finding.broken_by[mode]) if mode.endswith("-repaired") else {}
    assert run_row(drawn, MODES[mode], seed, broken)["violations"]
    assert not run_row(drawn, MODES[mode], seed, {rule: cure})["violations"]


def test_each_seed_in_a_text_is_tried() -> None:
    tried = {(name, str(seed)) for name, _, _, seed, _ in SEEDS}
    findings = all_findings().items()
    texts = {name: f"{catalogue.load(name).description}\n{finding.table.text}" for name, finding in findings}
    named = {
        (name, by_word or by_length)
        for name, text in texts.items()
        for by_word, by_length in re.findall(r"\bseed (\d+)\b|\b(\d{7,})\b", text)
    }
    assert named == tried
