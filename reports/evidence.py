"""The folder that a replay leaves: history, trace, plan, row, and each broker's files in Kafka's text forms."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from reports import kafka_text
from reports.history import history
from scenarios import rows
from sim import trace
from sim.config import shown
from sim.errors import InputError
from sim.metrics import integral_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from scenarios.run import ReplicaView, RunResult
    from scenarios.scenario import Scenario

TOPIC: Final = "highwater"
"""Name of the one topic; its one partition is 0."""
TOPIC_CONFIGS: Final = {
    "min.insync.replicas": "min.insync.replicas",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
    "log.flush.interval.messages": "flush.messages",
    "log.segment.bytes": "segment.bytes",
}
"""Settings that a topic may have -> their name there."""
SEGMENT: Final = "00000000000000000000.log.txt"
ROW: Final = "row.json"
METRICS_VERSION: Final = 1
"""``schema_version`` of metrics.json."""


def prepare(folder: Path) -> None:
    """Make an empty folder for a replay; what an earlier replay left in it goes.

    Raises:
        InputError: it cannot be made, or holds something else than a replay.
    """
    with _writing(folder):
        if folder.exists() and not (folder / ROW).is_file() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} holds something else than a replay; choose another --output")
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)


def write(folder: Path, scenario: Scenario, result: RunResult) -> None:
    """Write all files of a traced run.

    Args:
        folder: made by `prepare`.
        scenario: what was run.
        result: how it ended, with its trace.

    Raises:
        InputError: the folder cannot be written.
    """
    from scenarios import recording  # Knows how faults strike, which `--help` can do without.

    with _writing(folder):
        _write_json(folder / ROW, {"schema_version": rows.SCHEMA_VERSION, **result.row})
        (folder / "plan.json").write_text(recording.to_text(recording.to_json(scenario, result)), encoding="utf-8")
        _write_lines(folder / "trace.jsonl", _trace(result))
        _write_lines(folder / "history.txt", history(result))
        (folder / "describe.txt").write_text(kafka_text.describe(topic(scenario, result)), encoding="utf-8")
        _write_json(folder / "metrics.json", _metrics(result))
        for replica in result.replicas:
            _write_broker(folder / f"broker-{replica.broker}", replica)


def write_trace(file: Path, result: RunResult) -> None:
    """Write the trace as JSON lines, after a line that says what it is of.

    Raises:
        InputError: the file cannot be written.
    """
    with _writing(file):
        _write_lines(file, _trace(result))


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None


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


def _write_broker(folder: Path, replica: ReplicaView) -> None:
    partition = folder / f"{TOPIC}-0"
    partition.mkdir(parents=True)
    segment = partition / SEGMENT
    name = f"{folder.name}/{partition.name}/{SEGMENT.removesuffix('.txt')}"
    segment.write_text(kafka_text.dump_log(name, replica.log_start, replica.batches), encoding="utf-8")
    epochs = kafka_text.leader_epoch_checkpoint(replica.leader_epoch_checkpoint)
    (partition / "leader-epoch-checkpoint").write_text(epochs, encoding="utf-8")
    for file, offset in _checkpoints(replica).items():
        offsets = {} if offset is None else {(TOPIC, 0): offset}
        (folder / file).write_text(kafka_text.offset_checkpoint(offsets), encoding="utf-8")


def _checkpoints(replica: ReplicaView) -> Mapping[str, int | None]:
    return {
        "replication-offset-checkpoint": replica.replication_offset_checkpoint,
        "recovery-point-offset-checkpoint": replica.recovery_point_offset_checkpoint,
        "log-start-offset-checkpoint": replica.log_start_offset_checkpoint,
    }


def _write_json(file: Path, data: Any) -> None:
    file.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _write_lines(file: Path, lines: Iterable[str]) -> None:
    with file.open("w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines)
