"""The cases of the conformance tables: facts of Kafka's real behaviour, in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

BUNDLED: Final = Path(__file__).parent / "tables"
TABLES: Final = (
    "leader_epoch_cache",
    "follower_truncation",
    "hwm_and_isr",
    "zk_leader_election",
    "consumer_truncation",
    "elr_partition_change",
    "elr_partition_change_4_3",
    "replica_4_3",
    "raft",
)
"""Tables that have drivers: the names of their files."""
_SCHEMA_VERSION: Final = 1
_KEYS: Final = frozenset(
    {"id", "kind", "source", "given", "ops", "steps", "op", "change", "applies_to", "note", "derived", "expect"}
)


class TableError(Exception):
    """A table has something that no driver understands. It is never skipped, always a failure."""


class Fields(Mapping[str, Any]):
    """A JSON object that records which of its fields were read, so that no field is ignored silently.

    Args:
        content: the object.
        where: what it is, for messages.
    """

    def __init__(self, content: Mapping[str, Any], where: str) -> None:
        self._content = content
        self._where = where
        self._read: set[str] = set()
        self._nested: dict[str, Fields] = {}

    def __getitem__(self, key: str) -> Any:
        value = self._content[key]
        self._read.add(key)
        if isinstance(value, dict):
            return self._nested.setdefault(key, Fields(value, f"{self._where}.{key}"))
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def part(self, key: str) -> Fields:
        """A nested object, empty if it is not there."""
        value = self.get(key)
        return value if isinstance(value, Fields) else Fields({}, f"{self._where}.{key}")

    def like(self, word: str) -> Any:
        """The value of the first field whose name contains a word, None without one."""
        return next((self[key] for key in self if word in key), None)

    def unread(self) -> list[str]:
        """Fields that were not read."""
        own = [f"{self._where}.{key}" for key in self._content if key not in self._read]
        return own + [name for nested in self._nested.values() for name in nested.unread()]


@dataclass(frozen=True)
class Case:
    """One case of a table; `source` is the test of Kafka's that it was read from, if there is one."""

    table: str
    id: str
    kind: str
    source: str
    given: Mapping[str, Any]
    ops: tuple[Mapping[str, Any], ...]
    applies_to: frozenset[str]

    @property
    def expectations(self) -> set[str]:
        """All keys with an expectation."""
        return {key for op in self.ops if isinstance(op.get("expect"), dict) for key in op["expect"]}


def read_cases(folder: Path) -> list[Case]:
    """The cases of a folder's tables that have drivers.

    Raises:
        TableError: there is no such table, or one of a newer schema.
    """
    paths = [folder / f"{table}.json" for table in TABLES]
    present = [path for path in paths if path.is_file()]
    if not present:
        raise TableError(f"{folder} holds none of {', '.join(path.name for path in paths)}")
    return [case for path in present for case in _read(path)]


def other_files(folder: Path) -> list[str]:
    """Names of the files of a folder that no driver reads."""
    return sorted(path.name for path in folder.iterdir() if path.stem not in TABLES)


def _read(path: Path) -> Iterator[Case]:
    table = json.loads(path.read_text(encoding="utf-8"))
    if table["schema_version"] != _SCHEMA_VERSION:
        raise TableError(f"{path.name} has schema_version {table['schema_version']}, not {_SCHEMA_VERSION}")
    for content in table["cases"]:
        unknown = content.keys() - _KEYS
        if unknown:
            raise TableError(f"case {content['id']} has unknown fields {sorted(unknown)}")
        yield Case(
            path.stem,
            content["id"],
            content.get("kind", table["area"]),
            _source(content),
            content["given"],
            tuple(content.get("ops") or content.get("steps") or [_only_op(content)]),
            frozenset(content.get("applies_to", ())),
        )


def _source(content: Mapping[str, Any]) -> str:
    source = content.get("source")
    if not isinstance(source, dict):
        return ""
    return ".".join(source[part] for part in ("class", "method") if source.get(part))


def _only_op(content: Mapping[str, Any]) -> dict[str, Any]:
    """The single operation of a case that has no list of operations."""
    given = content["given"]
    if "op" in content:
        return {key: content[key] for key in ("op", "change", "expect")}
    return {"op": given.get("election", given.get("event")), "expect": content["expect"]}
