"""Manifests: a wave counts by a list of its parts, written last and once, after the parts were read back.

A wave without a manifest is a failed attempt. A manifest lists every part with size and digest, and the seeds of the
rows, so that a reader can find missing, torn and foreign parts. Two waves may contain the same seeds, because rows are
functions of their keys.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Strict

from scenarios.format.validation import OpenTable, validated
from scenarios.single.rows import ROWS_VERSION
from scenarios.sweep.extent import Piece
from sim.errors import InputError, StorageError

NAME: Final = "_MANIFEST.json"
"""Name of the file; Spark and pyarrow ignore names with an underscore."""
START: Final = re.compile(rb'\A\{"digest": "')
"""How the file begins."""


class DamageError(StorageError):
    """A file of a sweep (`where`, relative to its folder) was changed; readers treat its wave as missing."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where} {what}")
        self.where = where
        self.what = what


@dataclass(frozen=True, slots=True)
class Part:
    """A Parquet file of a wave: name, rows, bytes, and `digest_of` its content."""

    name: str
    rows: int
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a wave.

    Attributes:
        wave: name of its folder; a copy under another name is invalid.
        run: the driver's ``run.json``, from which a lost one can be restored.
        covers: the seeds of the rows, in all modes.
        parts: ordered by name.
    """

    wave: str
    run: Mapping[str, Any]
    covers: tuple[Piece, ...]
    parts: tuple[Part, ...]

    def to_bytes(self) -> bytes:
        """The content of the file, with its own digest."""
        body = {
            "schema_version": ROWS_VERSION,
            "wave": self.wave,
            "covers": self.covers,
            "parts": [[part.name, part.rows, part.bytes, part.digest] for part in self.parts],
            "run": self.run,
        }
        text = json.dumps(body)
        return json.dumps({"digest": digest_of(text.encode()), "manifest": text}).encode() + b"\n"


class _Sealed(OpenTable):
    digest: str
    manifest: str


class _Versioned(OpenTable):
    schema_version: int


class _Body(_Versioned):
    wave: str
    covers: list[Annotated[tuple[int, int, int], Strict(False)]]
    parts: list[Annotated[tuple[str, int, int, str], Strict(False)]]
    run: dict[str, Any]


def from_bytes(where: str, content: bytes) -> Manifest:
    """Read `Manifest.to_bytes`; raises DamageError if it is torn, was changed, or has a newer version."""
    try:
        data = _unsealed(content)
        version = validated(_Versioned, data).schema_version
        body = validated(_Body, data) if version <= ROWS_VERSION else None
    except (ValueError, RecursionError, InputError):
        raise DamageError(where, "is torn or was changed") from None
    if body is None:
        raise DamageError(where, f"has schema_version {version}; this highwater reads {ROWS_VERSION}")
    covers = tuple((variant, first, end) for variant, first, end in body.covers)
    return Manifest(body.wave, body.run, covers, tuple(Part(*part) for part in body.parts))


def _unsealed(content: bytes) -> Any:
    """The manifest of a file with a correct digest."""
    outer = validated(_Sealed, json.loads(content))
    if digest_of(outer.manifest.encode()) != outer.digest:
        raise ValueError("it was changed")
    return json.loads(outer.manifest)


def digest_of(content: bytes) -> str:
    """Digest of a file's content (32 hex digits)."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
