"""Digests that stay what they are until somebody changes the protocol on purpose.

`digests.json` holds one for each scenario, mode and a few seeds. ``python -m tests.golden --update "reason"`` computes
them anew; the reason is kept with them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from scenarios.format.catalogue import load, names
from tests.named import run_row

FILE: Final = Path(__file__).parent / "digests.json"
SCHEMA_VERSION: Final = 1
SEEDS: Final = {True: range(8), False: range(2)}
"""Drawn scenarios differ from seed to seed, stories hardly."""
FEW: Final = 1
"""Seeds of each scenario and mode that every run of the tests computes; `.ci/run` computes all."""


def compute(seeds: range = SEEDS[True]) -> dict[str, str]:
    """``scenario/mode/seed`` -> digest, or what went wrong, of the stored seeds among these."""
    digests = {}
    for name in names():
        scenario = load(name)
        for mode in scenario.expect:
            for seed in SEEDS[scenario.drawn]:
                if seed not in seeds:
                    continue
                row = run_row(scenario, mode, seed)
                digests[f"{name}/{mode}/{seed}"] = row["error"] or row["digest"]
    return digests


def differences(stored: dict[str, Any], present: dict[str, str]) -> list[str]:
    """One line for each run that is not what was stored.

    Raises:
        ValueError: `schema_version` is newer than this code knows.
    """
    if stored["schema_version"] > SCHEMA_VERSION:
        raise ValueError(f"digests have schema_version {stored['schema_version']}; this version reads {SCHEMA_VERSION}")
    kept = stored["entries"]
    return [
        f"{key}: {kept.get(key, 'nothing')} was stored, {present.get(key, 'nothing')} came out"
        for key in sorted({*kept, *present})
        if kept.get(key) != present.get(key)
    ]


def update(reason: str, file: Path = FILE) -> None:
    """Write the present digests and why they were written."""
    content = {"schema_version": SCHEMA_VERSION, "reason": reason, "entries": compute()}
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
