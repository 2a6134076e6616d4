"""The folder that a replay writes: history, trace, plan, row, and each broker's files in Kafka's text formats."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reports import starts
from reports.evidence import kafka_text
from reports.evidence.story import history
from scenarios import own_files
from scenarios.single import rows
from sim.config import shown
from sim.errors import InputError, StorageError
from sim.history import trace
from sim.history.metrics import integral_ms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from scenarios.format.scenario import Scenario
    from scenarios.single.result import ReplicaView, RunResult

TOPIC: Final = "highwater"
"""Name of the only topic; its only partition is 0."""
TOPIC_CONFIGS: Final = {
    "min.insync.replicas": "min.insync.replicas",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
    "log.flush.interval.messages": "flush.messages",
    "log.segment.bytes": "segment.bytes",
}
"""Setting -> its name among the topic's settings."""
PARTITION: Final = f"{TOPIC}-0"
SEGMENT: Final = "00000000000000000000.log.txt"
EPOCHS: Final = "leader-epoch-checkpoint"
ROW: Final = "row.json"
SCENARIO: Final = "scenario.toml"
PLAN: Final = "plan.json"
FILES: Final = {
    ROW: own_files.json_start("scenario"),
    PLAN: own_files.json_start("scenario", "faults"),
    "trace.jsonl": starts.TRACE,
    "history.txt": starts.HISTORY,
    "describe.txt": starts.DESCRIPTION,
    "metrics.json": own_files.json_start("window_us"),
    SCENARIO: starts.SCRIPT,
}
"""File name -> how the file begins."""
CHECKPOINTS: Final = (
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
)
"""Files of a broker, called as the attributes of `ReplicaView`."""
_FOLDERS: Final = re.compile(rf"broker-[0-9]+(/{PARTITION})?")
_FILES: Final = (
    *((re.compile(re.escape(name)), start) for name, start in FILES.items()),
    (re.compile(f"broker-[0-9]+/({'|'.join(CHECKPOINTS)}|{PARTITION}/{EPOCHS})"), starts.CHECKPOINT),
    (re.compile(f"broker-[0-9]+/{PARTITION}/{re.escape(SEGMENT)}"), starts.LOG),
)
"""Path in the replay's folder -> how the file begins, for each file that a replay writes."""
METRICS_VERSION: Final = 1
"""``schema_version`` of metrics.json."""


@dataclass(frozen=True, slots=True)
class ReplayFolder:
    """The folder of a replay.

    Attributes:
        root: the folder that the user named.
        parts: path components below it, possibly read from a store; none leads out of `root`.
    """

    root: Path
    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The folder's path, for messages."""
        return self.root.joinpath(*self.parts)


def check(place: ReplayFolder) -> None:
    """Check early, without changing anything, what can be known of the errors that `prepare` would raise.

    Raises:
        InputError: it holds something other than a replay, or a file is in its place.
        StorageError: it cannot be written.
    """
    there = next(path for path in (place.path, *place.path.parents) if os.path.lexists(path))
    if not there.is_dir():
        raise InputError(f"{place.path} cannot be written: {there} is no folder")
    if not os.access(there, os.W_OK):
        raise StorageError(
            f"{place.path} cannot be written: {there}: {starts.denied(there)}; --output names another folder"
        )
    if there == place.path:
        _check_replay(place, own_files.below(place.root, *place.parts))


def prepare(place: ReplayFolder) -> None:
    """Create an empty folder for a replay; remove the files of an earlier replay, and no others.

    Raises:
        InputError: it holds something other than a replay, or a link leads out of it.
        StorageError: it cannot be created or emptied.
    """
    folder = own_files.below(place.root, *place.parts, create=True)
    _check_replay(place, folder)
    for path in sorted(folder.rglob("*"), reverse=True):
        with own_files.os_errors(path):
            if start := _start(folder, path):
                own_files.remove(path, start)
            elif path.is_dir() and not path.is_symlink():
                own_files.remove_empty(path)


def _check_replay(place: ReplayFolder, folder: Path) -> None:
    there = sorted(folder.rglob("*"))
    foreign = next((str(path.relative_to(folder)) for path in there if not _is_ours(folder, path)), None)
    if foreign or (there and not (folder / ROW).is_file()):
        what = f" ({foreign})" if foreign else ""
        raise InputError(f"{place.path} holds something else than a replay{what}; choose another --output")


def _is_ours(folder: Path, path: Path) -> bool:
    """Whether a replay writes such a file there."""
    if path.is_dir() and not path.is_symlink():
        return _FOLDERS.fullmatch(path.relative_to(folder).as_posix()) is not None
    start = _start(folder, path)
    return start is not None and own_files.is_own_file(path, start)


def _start(folder: Path, path: Path) -> re.Pattern[bytes] | None:
    """How a file of a replay begins, by its name; None: no replay has a file of this name."""
    name = path.relative_to(folder).as_posix()
    return next((start for names, start in _FILES if names.fullmatch(name)), None)


def write(
    place: ReplayFolder,
    scenario: Scenario,
    result: RunResult,
    past: Collection[int] | None = None,
    *,
    everything: bool = True,
    script: str = "",
) -> None:
    """Write all files of a traced run to a folder that `prepare` created; see `reports.evidence.story.history`.

    `script` is the scenario file into which the run was converted, if it was.

    Raises:
        InputError: the folder has been replaced by something else.
        StorageError: the folder cannot be written.
    """
    from scenarios.single import recording

    folder = own_files.below(place.root, *place.parts)
    texts = {
        ROW: _json({"schema_version": rows.ROWS_VERSION, **result.row}),
        PLAN: recording.to_text(recording.to_json(scenario, result)),
        "trace.jsonl": _lines(_trace(result)),
        "history.txt": _lines(history(result, past, everything=everything)),
        "describe.txt": _describe(scenario, result),
        "metrics.json": _json(_metrics(result)),
        **({SCENARIO: script} if script else {}),
    }
    for replica in result.replicas:
        texts.update(_of_broker(f"broker-{replica.broker}", replica))
    for name, text in texts.items():
        _write(folder / name, text)


def _write(path: Path, text: str) -> None:
    """Create a file, which must not exist yet, and its parent folders."""
    with own_files.os_errors(path):
        own_files.make_folder(path.parent)
    own_files.create(path, text)


def write_trace(file: Path, result: RunResult) -> None:
    """Write the trace as JSON lines, after a line that identifies the run.

    Raises:
        InputError: the path is not that of a file.
        StorageError: the file cannot be written.
    """
    own_files.write(file, _lines(_trace(result)), starts.TRACE)


def _trace(result: RunResult) -> Iterator[str]:
    keys = ("scenario", "mode", "seed", "digest")
    yield json.dumps({"schema_version": trace.TRACE_VERSION, **{key: result.row[key] for key in keys}})
    yield from map(json.dumps, result.trace or ())


def _metrics(result: RunResult) -> dict[str, Any]:
    """Each metric as a series of (time in us, value from then on), and its integral over the measured time."""
    return {
        "schema_version": METRICS_VERSION,
        "window_us": list(result.window_us),
        "series": result.metrics,
        "integral_ms": {name: integral_ms(points, result.window_us) for name, points in result.metrics.items()},
    }


def _describe(scenario: Scenario, result: RunResult) -> str:
    """The partition's final state in the control plane."""
    given = {*scenario.config, *scenario.draw_config}
    configs = {name: shown(result.settings[key]) for key, name in TOPIC_CONFIGS.items() if key in given}
    return kafka_text.describe(TOPIC, result.partition, configs)


def _of_broker(broker: str, replica: ReplicaView) -> Iterator[tuple[str, str]]:
    log = f"{broker}/{PARTITION}"
    name = f"{log}/{SEGMENT.removesuffix('.txt')}"
    yield f"{log}/{SEGMENT}", kafka_text.dump_log(name, replica.log_start, replica.batches)
    yield f"{log}/{EPOCHS}", kafka_text.leader_epoch_checkpoint(replica.leader_epoch_checkpoint)
    for file in CHECKPOINTS:
        offset = getattr(replica, file.replace("-", "_"))
        yield f"{broker}/{file}", kafka_text.offset_checkpoint({} if offset is None else {(TOPIC, 0): offset})


def _json(data: Any) -> str:
    return json.dumps(data, indent=2) + "\n"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
