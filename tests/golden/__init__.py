"""Digests that stay what they are until somebody changes the protocol on purpose.

`digests.json` holds one for each scenario, mode and a few seeds. ``python -m tests.golden --update "reason"`` computes
them anew; the reason is kept with them. Tests compare those of stories where stories run anyway
(`tests.scenarios.format.test_expectations`), and those of drawn scenarios in `test_golden`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from scenarios.format.catalogue import load, names
from tests.named import run_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FILE: Final = Path(__file__).parent / "digests.json"
SCHEMA_VERSION: Final = 1
SEEDS: Final = {True: range(8), False: range(2)}
"""Drawn scenarios differ from seed to seed, stories hardly."""
TO_KEEP: Final = 'to keep the new ones: python -m tests.golden --update "reason"'

Key: TypeAlias = tuple[str, str, int]
"""Scenario, mode and seed."""


def keys(*, drawn: bool | None = None) -> Iterator[Key]:
    """Scenario, mode and seed of each digest; only of drawn scenarios, or of stories, if that is given."""
    for name in names():
        scenario = load(name)
        if drawn in (None, scenario.drawn):
            for mode in scenario.expect:
                yield from ((name, mode, seed) for seed in SEEDS[scenario.drawn])


def text_of(key: Key) -> str:
    """How a digest is named in the file."""
    return "/".join(map(str, key))


def compute(keys: Iterable[Key]) -> dict[str, str]:
    """``scenario/mode/seed`` -> digest, or what went wrong."""
    digests = {}
    for name, mode, seed in keys:
        row = run_row(load(name), mode, seed)
        digests[text_of((name, mode, seed))] = row["error"] or row["digest"]
    return digests


def stored() -> dict[str, str]:
    """``scenario/mode/seed`` -> digest that is kept.

    Raises:
        ValueError: `schema_version` is newer than this code knows.
    """
    return entries_of(json.loads(FILE.read_text(encoding="utf-8")))


def entries_of(content: Mapping[str, Any]) -> dict[str, str]:
    """See `stored`."""
    if content["schema_version"] > SCHEMA_VERSION:
        version = content["schema_version"]
        raise ValueError(f"digests have schema_version {version}; this version reads {SCHEMA_VERSION}")
    entries: dict[str, str] = content["entries"]
    return entries


def differences(kept: Mapping[str, str], present: Mapping[str, str]) -> list[str]:
    """One line for each run that is not what was stored."""
    return [
        f"{key}: {kept.get(key, 'nothing')} was stored, {present.get(key, 'nothing')} came out"
        for key in sorted({*kept, *present})
        if kept.get(key) != present.get(key)
    ]


def update(reason: str, file: Path = FILE) -> None:
    """Write the present digests and why they were written."""
    content = {"schema_version": SCHEMA_VERSION, "reason": reason, "entries": compute(keys())}
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
