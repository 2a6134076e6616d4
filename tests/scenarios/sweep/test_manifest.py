from __future__ import annotations

import json
from typing import Any

import pytest

from scenarios.single.rows import ROWS_VERSION
from scenarios.sweep.manifest import DamageError, Manifest, Part, digest_of, from_bytes

MANIFEST = Manifest("wave=1", {"code_version": "x"}, ((0, 5, 9),), (Part("part-00000.parquet", 4, 100, "0f"),))


def sealed(**changes: Any) -> bytes:
    """A manifest whose digest is right, whatever it says."""
    body = json.loads(json.loads(MANIFEST.to_bytes())["manifest"]) | changes
    text = json.dumps(body)
    return json.dumps({"digest": digest_of(text.encode()), "manifest": text}).encode()


def test_manifest_is_read_as_it_was_written() -> None:
    assert from_bytes("x", MANIFEST.to_bytes()) == MANIFEST
    assert from_bytes("x", sealed()) == MANIFEST


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b'{"digest": 1, "manifest": "{}"}',
        MANIFEST.to_bytes()[:-9],
        MANIFEST.to_bytes().replace(b"wave=1", b"wave=2"),
        sealed(wave=1),
        sealed(covers=[[0, 5]]),
        sealed(covers=[[0, 5, "9"]]),
        sealed(parts=[["part-00000.parquet", 4, 100]]),
        sealed(run=[]),
        sealed(schema_version="5"),
    ],
)
def test_manifest_that_is_torn_or_says_something_else_is_damage(content: bytes) -> None:
    with pytest.raises(DamageError, match=r"^x is torn or was changed$"):
        from_bytes("x", content)


def test_manifest_of_a_newer_version_is_said() -> None:
    with pytest.raises(DamageError, match=f"has schema_version 99; this highwater reads {ROWS_VERSION}"):
        from_bytes("x", sealed(schema_version=99, parts="of another shape"))
