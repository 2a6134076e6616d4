"""A metadata log given by paths: which files it consists of, from where its history is known, and what is missing."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from highwater.lab.audit import dumps, segments
from highwater.lab.audit.files import unpacked
from highwater.lab.audit.image import ClusterImage
from highwater.lab.audit.notes import Notes
from scenarios.paths import read
from sim.errors import InputError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from highwater.lab.audit.records import MetadataBatch

LOG: Final = "__cluster_metadata-0"
"""Name of the folder of a metadata log, in a broker's or controller's log directory."""
META: Final = "meta.properties"
META_MOST: Final = 1 << 16
"""Bytes of such a file."""
_LOOKED_AT: Final = 1 << 16
"""Bytes by which a file of another kind is recognised."""
_UNKNOWN: Final = -1
"""Offset of a record that only a snapshot holds."""
_CLUSTER_ID: Final = re.compile(r"^cluster\.id=(\S+)", re.MULTILINE)


@dataclass(slots=True)
class MetadataLogFiles:
    """The files of one metadata log, and what reading them showed.

    Attributes:
        snapshots: files that state all that holds before the first segment, in the order in which they are read.
        files: segments, or dumps, in order of their offsets.
        dumped: instead of `snapshots`, a dump and the offset after the snapshot that it has.
        notes: what is missing or strange.
        first_offset: of the first record of `files`; before it only the state is known, not how it came about.
        batches: how many were read.
    """

    files: list[Path]
    snapshots: list[Path] = field(default_factory=list)
    dumped: tuple[Path, int] | None = None
    notes: Notes = field(default_factory=Notes)
    first_offset: int = -1
    batches: int = 0

    def start(self) -> ClusterImage:
        """The state before the first segment, by a snapshot, which does not say since which records it is so."""
        image = ClusterImage()
        read = [(segments.read_batches(snapshot), _offset(snapshot)) for snapshot in self.snapshots]
        if self.dumped is not None:
            path, offset = self.dumped
            read.append((dumps.read_dump(path, self.notes, offset), offset))
        for batches, offset in read:
            for batch in batches:
                for record in batch.records:
                    image.replay(record._replace(offset=_UNKNOWN))
            image.next_offset = offset
        if self.files and image.partitions:
            self.notes.note(
                f"history begins at the snapshot before record {image.next_offset}: which replicas had left the "
                "assignment, or had fallen behind, is unknown"
            )
        return image

    def read(self, next_offset: int) -> Iterator[MetadataBatch]:
        """Read the batches from an offset on, noting gaps and repetitions.

        Raises:
            InputError: a file is no metadata log.
            StorageError: a file cannot be read, or is corrupt.
        """
        controller_epoch = -1
        for path in self.files:
            for batch in _batches(path, self.notes):
                if batch.next_offset <= next_offset:
                    continue  # In the snapshot, or twice among the files.
                if batch.controller_epoch < controller_epoch:
                    self.notes.gap(
                        f"{path}: at record {batch.base_offset} the controller epoch goes back from {controller_epoch} "
                        f"to {batch.controller_epoch}: these are parts of different logs"
                    )
                controller_epoch = batch.controller_epoch
                if self.first_offset < 0:
                    self.first_offset = batch.base_offset
                if batch.base_offset > next_offset and self.batches + bool(self.snapshots) + next_offset:
                    self.notes.gap(
                        f"{path}: records {next_offset} to {batch.base_offset - 1} are missing; "
                        "what follows is applied to the state before them"
                    )
                self.batches += 1
                next_offset = batch.next_offset
                yield batch


def open_log(paths: Sequence[Path]) -> MetadataLogFiles:
    """Find the files of a metadata log.

    Args:
        paths: a folder ``__cluster_metadata-0`` or the log directory that contains it; or segments, snapshots or dumps
            of one log.

    Raises:
        InputError: there is no metadata log, or several of them.
        StorageError: a path cannot be read.
    """
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        if not path.is_dir() and not path.is_file():
            raise InputError(f"{path}: neither a file nor a folder")
    folders = [path for path in paths if path.is_dir()]
    if not folders:
        _refuse_mixture(paths)
        return _of_files(list(paths))
    if len(paths) > 1:
        raise InputError(f"{folders[0]}: give one folder, files of one log, or only log directories of controllers")
    try:
        return _of_folder(folders[0])
    except OSError as error:
        raise StorageError(f"{error.filename or folders[0]}: {error.strerror}") from None


def _refuse_mixture(files: Sequence[Path]) -> None:
    """Refuse files of several clusters, as far as ``meta.properties`` beside their folders tells them apart."""
    of: dict[str, Path] = {}
    for file in files:
        for folder in file.absolute().parents[:2]:
            with suppress(InputError, StorageError):
                if found := _CLUSTER_ID.search(read(folder / META, META_MOST).decode(errors="replace")):
                    of.setdefault(found[1], file)
                    break
    if len(of) > 1:
        (one, file), (other, second) = list(of.items())[:2]
        raise InputError(f"{second} is of cluster {other}, {file} of cluster {one}; audit each log by itself")


def _of_folder(folder: Path) -> MetadataLogFiles:
    if (folder / LOG).is_dir():
        folder = folder / LOG
    files = sorted(path for path in folder.iterdir() if segments.SEGMENT.fullmatch(path.name))
    snapshots = sorted(path for path in folder.iterdir() if segments.SNAPSHOT.fullmatch(path.name))
    if not files and not snapshots:
        raise InputError(f"{folder}: {_what_instead_of_log(folder)}")
    if folder.name != LOG and not _is_metadata(files or snapshots):
        raise InputError(f"{folder}: this is the log of another topic; a metadata log is in a folder {LOG}")
    log = MetadataLogFiles(files)
    log.snapshots = _needed(files, snapshots, log.notes)
    return log


def _needed(files: list[Path], snapshots: list[Path], notes: Notes) -> list[Path]:
    chosen = _chosen(_offset(files[0]) if files else None, [(_offset(path), path) for path in snapshots], notes)
    return [] if chosen is None else [chosen[1]]


def _chosen(first: int | None, snapshots: list[tuple[int, Path]], notes: Notes) -> tuple[int, Path] | None:
    """The snapshot from which the segments go on, by its offset: the oldest one that joins up with them."""
    if first is None:
        if snapshots:
            notes.gap("there are no segments: only the state of the newest snapshot is known")
        return max(snapshots, default=None)
    if first == 0:
        return min((snapshot for snapshot in snapshots if snapshot[0] == 0), default=None)
    joining = [snapshot for snapshot in snapshots if snapshot[0] >= first]
    if not joining:
        notes.gap(f"no snapshot holds the state before record {first}, the first one: it is unknown")
    return min(joining, default=None)


def _offset(path: Path) -> int:
    """The offset in the name of a segment or snapshot."""
    found = segments.SEGMENT.fullmatch(path.name) or segments.SNAPSHOT.fullmatch(path.name)
    return int(found["offset"]) if found else -1


def _of_files(paths: list[Path]) -> MetadataLogFiles:
    snapshots = sorted(path for path in paths if segments.SNAPSHOT.fullmatch(path.name))
    log = MetadataLogFiles(sorted((path for path in paths if path not in snapshots), key=_offset))
    of_dumps = {path: dumps.parts(path) for path in log.files if not segments.SEGMENT.fullmatch(path.name)}
    if not of_dumps:
        log.snapshots = _needed(log.files, snapshots, log.notes)
        return log
    firsts = {path: of_dumps[path][0] if path in of_dumps else _offset(path) for path in log.files}
    first = min((one for one in firsts.values() if one is not None), default=None)
    offered = [(offset, path) for path, (_, offsets) in of_dumps.items() for offset in offsets]
    chosen = _chosen(first, [*offered, *((_offset(path), path) for path in snapshots)], log.notes)
    if chosen is not None and chosen[1] in of_dumps:
        log.dumped = chosen[1], chosen[0]
    elif chosen is not None:
        log.snapshots = [chosen[1]]
    if chosen is not None or first is not None:
        known = [(one, path) for path, one in firsts.items() if one is not None]
        log.files = [path for _, path in sorted(known)]
        for path, (begin, offsets) in of_dumps.items():
            if begin is None and not offsets:
                log.notes.note(f"{path}: {what_instead(path)}; it is left out")
    return log


def what_instead(file: Path) -> str:
    """What a file without a record of a metadata log is."""
    with unpacked(file) as content:
        begin = content.read(_LOOKED_AT)
    if not begin:
        return "the file is empty"
    if segments.SEGMENT.fullmatch(file.name) or segments.SNAPSHOT.fullmatch(file.name):
        return "no record of a metadata log in it"
    if b"\0" in begin:
        return "a binary file, which by its name is neither a segment (.log) nor a snapshot (.checkpoint)"
    return "a text, but neither of kafka-dump-log.sh --cluster-metadata-decoder nor of kafka-topics.sh --describe"


def _batches(path: Path, notes: Notes) -> Iterator[MetadataBatch]:
    return segments.read_batches(path) if segments.SEGMENT.fullmatch(path.name) else dumps.read_dump(path, notes)


def _is_metadata(files: list[Path]) -> bool:
    try:
        return any(batch.records for batch in segments.read_batches(files[0]))
    except (InputError, StorageError):
        return False


def _what_instead_of_log(folder: Path) -> str:
    names = {path.name for path in folder.iterdir()}
    if "version-2" in names or any(name.startswith("log.") for name in names):
        return "this is ZooKeeper's transaction log; an audit needs a KRaft cluster's metadata log"
    if META in names:
        return f"this log directory holds no {LOG}: a controller, or a broker's metadata.log.dir, has it"
    return f"no segments and no snapshots; a metadata log is in a folder {LOG}"
