"""The folder that a replay leaves: history, trace, plan, row, and each broker's files in Kafka's text forms."""

from __future__ import annotations

import json
import os
import re
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reports import starts
from reports.evidence import kafka_text
from reports.evidence.story import history
from scenarios import paths
from scenarios.single import rows
from sim.config import shown
from sim.errors import InputError, StorageError
from sim.history import trace
from sim.history.metrics import integral_ms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from scenarios.format.scenario import Scenario
    from scenarios.paths import Directory
    from scenarios.single.run import ReplicaView, RunResult

TOPIC: Final = "highwater"
"""Name of the one topic; its one partition is 0."""
TOPIC_CONFIGS: Final = {
    "min.insync.replicas": "min.insync.replicas",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
    "log.flush.interval.messages": "flush.messages",
    "log.segment.bytes": "segment.bytes",
}
"""Settings that a topic may have -> their name there."""
PARTITION: Final = f"{TOPIC}-0"
SEGMENT: Final = "00000000000000000000.log.txt"
EPOCHS: Final = "leader-epoch-checkpoint"
ROW: Final = "row.json"
SCENARIO: Final = "scenario.toml"
PLAN: Final = "plan.json"
FILES: Final = {
    ROW: paths.JSON_START,
    PLAN: paths.JSON_START,
    "trace.jsonl": starts.TRACE,
    "history.txt": starts.HISTORY,
    "describe.txt": starts.DESCRIPTION,
    "metrics.json": paths.JSON_START,
    SCENARIO: starts.SCRIPT,
}
"""Name of a file -> how it begins."""
CHECKPOINTS: Final = (
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
)
_FOLDERS: Final = re.compile(rf"broker-[0-9]+(/{PARTITION})?")
_FILES: Final = (
    *((re.compile(re.escape(name)), start) for name, start in FILES.items()),
    (re.compile(f"broker-[0-9]+/({'|'.join(CHECKPOINTS)}|{PARTITION}/{EPOCHS})"), starts.CHECKPOINT),
    (re.compile(f"broker-[0-9]+/{PARTITION}/{re.escape(SEGMENT)}"), starts.LOG),
)
"""The files that a replay makes, by their paths in its folder, and how each begins."""
METRICS_VERSION: Final = 1
"""``schema_version`` of metrics.json."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a replay goes.

    Attributes:
        root: the folder that the user named.
        parts: components below it, which may come from a store; none of them leads elsewhere.
    """

    root: Path
    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The folder, to be shown."""
        return self.root.joinpath(*self.parts)


def check(place: Place) -> None:
    """Say before any time is spent on it what `prepare` would refuse, as far as it can be known; nothing changes.

    Raises:
        InputError: it holds something else than a replay, or what is no folder is in its way.
        StorageError: it cannot be written.
    """
    there = next(path for path in (place.path, *place.path.parents) if os.path.lexists(path))
    if not there.is_dir():
        raise InputError(f"{place.path} cannot be written: {there} is no folder")
    if not os.access(there, os.W_OK):
        raise StorageError(f"{place.path} cannot be written: {there} is not to be written to")
    if there == place.path:
        with paths.directory(place.root, *place.parts) as folder:
            _check_replay(place, folder)


def prepare(place: Place) -> None:
    """Make an empty folder for a replay; the files of an earlier replay in it go, and nothing else.

    Raises:
        InputError: it holds something else than a replay, or a link leads elsewhere.
        StorageError: it cannot be made or emptied.
    """
    with paths.directory(place.root, *place.parts, create=True) as folder:
        _check_replay(place, folder)
        _clear(folder)


def _check_replay(place: Place, folder: Directory) -> None:
    there, foreign = folder.names(), next(_foreign(folder), None)
    if foreign or (there and not folder.is_file(ROW)):
        what = f" ({foreign})" if foreign else ""
        raise InputError(f"{place.path} holds something else than a replay{what}; choose another --output")


def _foreign(folder: Directory, above: str = "") -> Iterator[str]:
    """What no replay writes there, also in folders below."""
    for part in folder.names():
        if _is_ours(folder, part, above):
            if folder.is_folder(part):
                with closing(folder.enter(part)) as below:
                    yield from _foreign(below, f"{above}{part}/")
        else:
            yield above + part


def _is_ours(folder: Directory, part: str, above: str) -> bool:
    if folder.is_folder(part):
        return _FOLDERS.fullmatch(above + part) is not None
    return any(names.fullmatch(above + part) and folder.is_own(part, start) for names, start in _FILES)


def _clear(folder: Directory, above: str = "") -> None:
    """Remove what a replay writes there."""
    for part in folder.names():
        if not _is_ours(folder, part, above):
            continue
        if folder.is_folder(part):
            with closing(folder.enter(part)) as below:
                _clear(below, f"{above}{part}/")
            folder.remove_folder(part)
        else:
            folder.remove(part)


def write(
    place: Place,
    scenario: Scenario,
    result: RunResult,
    past: Collection[int] | None = None,
    *,
    everything: bool = True,
) -> None:
    """Write all files of a traced run.

    Args:
        place: made by `prepare`.
        scenario: what was run.
        result: how it ended, with its trace.
        past: see `history`,
        everything: as well.

    Raises:
        InputError: the folder has been replaced by something else.
        StorageError: the folder cannot be written.
    """
    from scenarios.single import recording

    with paths.directory(place.root, *place.parts) as folder:
        folder.write(ROW, _json({"schema_version": rows.SCHEMA_VERSION, **result.row}))
        folder.write(PLAN, recording.to_text(recording.to_json(scenario, result)))
        folder.write("trace.jsonl", _lines(_trace(result)))
        folder.write("history.txt", _lines(history(result, past, everything=everything)))
        folder.write("describe.txt", kafka_text.describe(topic(scenario, result)))
        folder.write("metrics.json", _json(_metrics(result)))
        for replica in result.replicas:
            _write_broker(folder, f"broker-{replica.broker}", replica)


def write_scenario(place: Place, text: str) -> None:
    """Write the scenario that a run was made into.

    Raises:
        InputError: the folder has been replaced by something else.
        StorageError: the folder cannot be written.
    """
    with paths.directory(place.root, *place.parts) as folder:
        folder.write(SCENARIO, text)


def write_trace(file: Path, result: RunResult) -> None:
    """Write the trace as JSON lines, after a line that says what it is of.

    Raises:
        InputError: it is no file.
        StorageError: the file cannot be written.
    """
    paths.write(file, _lines(_trace(result)), starts.TRACE)


def _trace(result: RunResult) -> Iterator[str]:
    keys = ("scenario", "mode", "seed", "digest")
    yield json.dumps({"schema_version": trace.SCHEMA_VERSION, **{key: result.row[key] for key in keys}})
    yield from map(json.dumps, result.trace or ())


def _metrics(result: RunResult) -> dict[str, Any]:
    """Series of (time in us, value from then on), and what each sums up to over the time that counts."""
    return {
        "schema_version": METRICS_VERSION,
        "window_us": list(result.window_us),
        "series": result.metrics,
        "integral_ms": {name: integral_ms(points, result.window_us) for name, points in result.metrics.items()},
    }


def topic(scenario: Scenario, result: RunResult) -> kafka_text.Topic:
    """The partition as the control plane keeps it at the end."""
    state = result.partition
    given = {*scenario.config, *scenario.draw_config}
    configs = {name: shown(result.settings[key]) for key, name in TOPIC_CONFIGS.items() if key in given}
    return kafka_text.Topic(
        name=TOPIC,
        leader=state.leader or None,
        replicas=state.replicas,
        isr=state.isr,
        configs=configs,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        controller_epoch=state.controller_epoch,
        elr=state.elr,
        last_known_elr=state.last_known_elr,
    )


def _write_broker(folder: Directory, broker: str, replica: ReplicaView) -> None:
    with closing(folder.enter(broker, create=True)) as inside, closing(inside.enter(PARTITION, create=True)) as logs:
        name = f"{broker}/{PARTITION}/{SEGMENT.removesuffix('.txt')}"
        logs.write(SEGMENT, kafka_text.dump_log(name, replica.log_start, replica.batches))
        logs.write(EPOCHS, kafka_text.leader_epoch_checkpoint(replica.leader_epoch_checkpoint))
        for file, offset in _checkpoints(replica).items():
            offsets = {} if offset is None else {(TOPIC, 0): offset}
            inside.write(file, kafka_text.offset_checkpoint(offsets))


def _checkpoints(replica: ReplicaView) -> Mapping[str, int | None]:
    offsets = (
        replica.replication_offset_checkpoint,
        replica.recovery_point_offset_checkpoint,
        replica.log_start_offset_checkpoint,
    )
    return dict(zip(CHECKPOINTS, offsets, strict=True))


def _json(data: Any) -> str:
    return json.dumps(data, indent=2) + "\n"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
