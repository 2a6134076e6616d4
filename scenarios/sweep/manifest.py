"""What makes a wave count: a list of its parts, written last and once, after they were read back.

A wave without one is an attempt that came to nothing, whoever made it. A manifest names every part with its size and
digest and says which seeds the rows are of, so that a reader finds out by itself what is missing, torn or foreign, and
two waves may hold the same seeds without harm: rows are functions of their keys.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Strict

from scenarios.format.validation import OpenTable, validated
from scenarios.single.rows import ROWS_VERSION
from sim.errors import InputError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenarios.sweep.extent import Piece

NAME: Final = "_MANIFEST.json"
"""Of the file, in the wave's folder; Spark and pyarrow take no file with such a name for data."""


class DamageError(StorageError):
    """Something in a sweep's folder is not as it was written: whoever reads a store counts it as missing.

    Args:
        where: the file or folder, relative to the sweep's.
        what: what is wrong with it.
    """

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where} {what}")
        self.where = where
        self.what = what


@dataclass(frozen=True, slots=True)
class Part:
    """A Parquet file of a wave: name in its folder, rows, bytes, and `digest_of` its content."""

    name: str
    rows: int
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a wave consists of.

    Attributes:
        wave: name of its folder; a copy under another name is none.
        run: ``run.json`` as the driver knew it, which the folder can be restored from.
        covers: seeds whose rows, in all modes, are there.
        parts: in order of name.
    """

    wave: str
    run: Mapping[str, Any]
    covers: tuple[Piece, ...]
    parts: tuple[Part, ...]

    def to_bytes(self) -> bytes:
        """As the file holds it, with a digest of its own."""
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
    """Read `Manifest.to_bytes`.

    Args:
        where: the file, for the message.
        content: what it holds.

    Raises:
        DamageError: it is torn, changed, or of a newer version.
    """
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
    """The manifest in a file whose digest is right."""
    outer = validated(_Sealed, json.loads(content))
    if digest_of(outer.manifest.encode()) != outer.digest:
        raise ValueError("it was changed")
    return json.loads(outer.manifest)


def digest_of(content: bytes) -> str:
    """Of a file's content (32 hex digits)."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
