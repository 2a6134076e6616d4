"""The reference of scenario files is that of the models."""

from __future__ import annotations

from scenarios.format.json_schema import json_schema
from scenarios.format.reference import reference
from tests.plain import needs_sources

pytestmark = needs_sources  # Compiled classes have no comments on their fields.


def test_every_key_has_a_meaning() -> None:
    page = reference()
    rows = [line.replace("\\|", "/").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    assert [row[0] for row in rows if not row[2].strip("| ")] == []
    keys = {row[0].strip("| `") for row in rows}
    assert json_schema()["properties"].keys() <= keys
