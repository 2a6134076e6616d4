"""Drawn histories as metadata logs: Kafka's controller classes handle the events and write the records."""

from __future__ import annotations

import base64
import json
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.audit.segments import read_batches
from tests.verification.oracle.kafka import Kafka
from tests.verification.oracle.subjects.kraft_controller import SUBJECT, TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from highwater.lab.audit.image import ClusterImage
    from highwater.lab.audit.records import MetadataBatch
    from tests.verification.oracle.subject import Case

RELEASES: Final = tuple(SUBJECT.rules)
SEGMENT: Final = f"{0:020}.log"
_ASKED: Final = 50
"""Cases that Kafka gets ahead."""


@dataclass(frozen=True, slots=True)
class History:
    """A drawn history and what Kafka wrote of it.

    Attributes:
        release: of Kafka.
        seed: of the case.
        case: the operations.
        segment: the metadata log, as Kafka encodes it.
        partitions: their final states, as the harness shows them.
    """

    release: str
    seed: int
    case: Case
    segment: bytes
    partitions: list[Any]

    def write(self, folder: Path) -> Path:
        """Write the log as a folder that an audit reads."""
        (folder / SEGMENT).write_bytes(self.segment)
        return folder

    def batches(self, folder: Path) -> list[MetadataBatch]:
        """The log's batches; the folder is used in between."""
        return list(read_batches(self.write(folder) / SEGMENT))


def histories(release: str, first: int, count: int) -> Iterator[History]:
    """The histories of some seeds."""
    with Kafka(SUBJECT, release) as kafka:
        asked: deque[tuple[int, Case]] = deque()
        seeds = iter(range(first, first + count))
        while True:
            while len(asked) < _ASKED and (seed := next(seeds, None)) is not None:
                case = SUBJECT.case(release, seed)
                kafka.ask([[*case, ["segment"]]])
                asked.append((seed, case))
            if not asked:
                return
            seed, case = asked.popleft()
            segment, _, partitions = kafka.answers(1)[0][-1]
            yield History(release, seed, case, base64.b64decode(segment), partitions)


def shown(image: ClusterImage) -> list[Any]:
    """The partitions of an image as the harness shows Kafka's."""
    named = {image.topics[key[0]]: state for key, state in image.partitions.items()}
    return [
        [
            topic,
            max(state.leader, 0),
            state.leader_epoch,
            list(state.isr),
            sorted(state.elr),
            sorted(max(broker, 0) for broker in state.last_known_elr),
            state.partition_epoch,
            *map(list, (state.replicas, state.adding, state.removing)),
            state.recovering,
        ]
        for topic in TOPICS
        if (state := named.get(topic)) is not None
    ]


def dump(batches: list[MetadataBatch]) -> str:
    """Batches as kafka-dump-log.sh prints them."""
    lines = []
    for batch in batches:
        lines.append(
            f"baseOffset: {batch.base_offset} lastOffset: {batch.next_offset - 1} count: {len(batch.records)} "
            f"partitionLeaderEpoch: {batch.controller_epoch} isTransactional: false isControl: false position: 0 "
            f"CreateTime: {batch.time_ms} size: 1 magic: 2 compresscodec: none crc: 1 isvalid: true"
        )
        for record in batch.records:
            payload = json.dumps({"type": record.type, "version": record.version, "data": record.fields})
            lines.append(f"| offset: {record.offset} CreateTime: {batch.time_ms} payload: {payload}")
    return "\n".join(lines) + "\n"
