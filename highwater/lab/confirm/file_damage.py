"""Damage to one file of a broker whose process is down, on the disk: what `sim.environment.file_damage` simulates.

A file is removed, replaced by its former version, or cut to its first lines. The former version is the content before
the last write: `FormerVersions` keeps it while brokers run.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from sim.environment.file_damage import EPOCHS, HALF_WRITTEN, LOST, MARKER, OLD, PARTITION_METADATA, SNAPSHOTS

if TYPE_CHECKING:
    from pathlib import Path

    from scenarios.own_files import Workspace

_OF_REPLICAS: Final = (EPOCHS, PARTITION_METADATA)
_HEAD: Final = 2
"""Lines of a checkpoint before its entries: version, and number of entries."""


class FormerVersions:
    """The last two versions of files that brokers write anew as a whole: each write makes another file."""

    def __init__(self) -> None:
        self._last: dict[Path, tuple[tuple[int, int], bytes]] = {}
        self._before: dict[Path, bytes] = {}

    def look(self, path: Path) -> None:
        """Read a file if it has been written since the last look. The last version of a removed file is kept."""
        try:
            with path.open("rb") as file:
                stat = os.fstat(file.fileno())
                stamp = stat.st_ino, stat.st_mtime_ns
                if path in self._last and self._last[path][0] == stamp:
                    return
                content = file.read()
        except OSError:  # It does not exist yet, or its folder is being removed.
            return
        if path in self._last:
            self._before[path] = self._last[path][1]
        self._last[path] = stamp, content

    def before(self, path: Path) -> bytes | None:
        """The content before the last write; of a file that was removed, its last content. None: there was none."""
        if not path.is_file() and path in self._last:
            return self._last[path][1]
        return self._before.get(path)


def paths(log: Path, file: str) -> list[Path]:
    """Where a file is, given the folder of a replica's log. Of snapshots there may be several, the oldest first."""
    if file == SNAPSHOTS:
        return sorted(log.glob("[0-9]*.snapshot"))
    return [(log if file in _OF_REPLICAS else log.parent) / file]


def damage(work: Workspace, log: Path, file: str, how: str, versions: FormerVersions) -> dict[Path, bytes]:
    """Damage a file of a replica, or of its log directory. Returns what files that changed contained before.

    As in the simulation, a checkpoint without entries is none, and one that was never written has no former version.
    """
    changed: dict[Path, bytes] = {}
    those = paths(log, file)
    for path in those if how == LOST else those[-1:]:
        versions.look(path)
        if not path.is_file() and how != OLD:
            continue
        content = path.read_bytes() if path.is_file() else None
        damaged: bytes | None
        if file == SNAPSHOTS:
            damaged = content[: len(content) // 2] if content and how == HALF_WRITTEN else None
        elif how == HALF_WRITTEN:
            damaged = _half(content or b"", file)
        else:
            damaged = None if how == LOST else versions.before(path)
            if how != LOST and damaged is None and file in (MARKER, PARTITION_METADATA):
                continue
        if _read(content, file) != _read(damaged, file):
            changed[path] = content or b""
            if damaged is None:
                work.remove(path)
            else:
                work.write(path, damaged)
    return changed


def _half(content: bytes, file: str) -> bytes:
    """The first lines: of a checkpoint those before its entries, of other files the first half."""
    if file == MARKER:
        return content[: len(content) // 2]
    lines = content.splitlines(keepends=True)
    if file == PARTITION_METADATA:
        return b"".join(lines[:1])
    return b"".join(lines[:_HEAD]) if len(lines) > _HEAD else content


def _read(content: bytes | None, file: str) -> object:
    """What a process reads in a file, as far as damage may change it; the marker of older releases is empty."""
    if content is None or file in (MARKER, PARTITION_METADATA, SNAPSHOTS):
        return content
    lines = content.splitlines()
    return (int(lines[1]), lines[_HEAD:]) if len(lines) > 1 and int(lines[1]) else None
