"""What brokers wrote into server.log and state-change.log about committed records that were lost.

A metadata log shows who led, not what their logs held. These lines do (Kafka: Partition#makeLeader,
Partition#makeFollower, Partition#maybeShrinkIsr, ReplicaFetcherThread#truncate, UnifiedLog#truncateTo):

- a replica truncates below its own high watermark: what it removes was committed;
- a leader starts at an offset below a high watermark that some broker knew in an earlier leader epoch.

Epochs order the lines of different brokers, not their clocks. Without such a line no loss is claimed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from highwater.lab.audit.files import lines

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_TIME: Final = re.compile(r"\[?((?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d[.,]\d{3})")
_LEADER: Final = re.compile(
    r"Leader (?P<partition>\S+) with topic id (?:Some\()?(?P<topic>[^\s)]+)\)? starts at leader epoch (?P<epoch>\d+) "
    r"from offset (?P<offset>\d+) with partition epoch \d+, high watermark (?P<hw>\d+)"
)
_FOLLOWER: Final = re.compile(
    r"Follower (?P<partition>\S+) starts at leader epoch (?P<epoch>\d+) from offset (?P<offset>\d+) "
    r"with partition epoch \d+ and high watermark (?P<hw>\d+)(?:.*previous leader epoch was (?P<before>-?\d+))?"
)
_SHRINK: Final = re.compile(
    r"\[Partition (?P<partition>\S+) broker=(?P<broker>\d+)\] Shrinking ISR from .*highWatermark: (?P<hw>\d+)"
)
_TRUNCATION: Final = re.compile(
    r"Truncating (?P<partition>\S+) to offset (?P<offset>\d+) below high watermark (?P<hw>\d+)"
)
_BROKER: Final = re.compile(r"\[Broker id=(\d+)\]|\[Partition \S+ broker=(\d+)\]|\bbrokerId[=:] ?(\d+)")
_KAFKA: Final = "kafka"
"""What some line of each log of a broker holds: the names of classes."""
_CLUES: Final = ("leader epoch", "high watermark", "highWatermark", "[Broker id=")
_LONG_NUMBER: Final = re.compile(r"\d{19}")
"""Offsets, epochs and ids of Kafka have fewer digits."""
_LINE_MOST: Final = 1 << 14
"""Characters of a line that are looked at; those of Kafka with an ISR of a thousand brokers are shorter."""
UNKNOWN: Final = -1
"""No broker, or no epoch."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Committed records that were lost, by one line of a broker's log.

    Attributes:
        partition: as brokers name it, ``orders-0``.
        first: first lost offset.
        end: offset after the last one that is known to be lost.
        broker: that wrote the line; `UNKNOWN` if its file does not say.
        time: as the line says, in the time zone of the broker.
        text: what happened, in a sentence.
    """

    partition: str
    first: int
    end: int
    broker: int
    time: str
    text: str


@dataclass(frozen=True, slots=True)
class _Start:
    """A leader starts."""

    epoch: int
    offset: int
    broker: int
    time: str


@dataclass(frozen=True, slots=True)
class _Shrink:
    """A leader shrinks the ISR: server.log does not say in which epoch, state-change.log of the same broker does."""

    broker: int
    time: str
    hw: int


@dataclass(slots=True)
class _Partition:
    """What the lines say about a partition."""

    topics: set[str] = field(default_factory=set)
    starts: list[_Start] = field(default_factory=list)
    shrinks: list[_Shrink] = field(default_factory=list)
    known: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Leader epoch -> highest high watermark that a broker knew in it, and the broker."""

    def note(self, epoch: int, hw: int, broker: int) -> None:
        if hw > self.known.get(epoch, (0, 0))[0]:
            self.known[epoch] = hw, broker

    def note_shrinks(self) -> None:
        """Note the watermarks of shrinking ISRs, in the epoch in which their broker had begun to lead."""
        for shrink in self.shrinks:
            begun = [
                start
                for start in self.starts
                if start.broker == shrink.broker and len(start.time) == len(shrink.time) and start.time <= shrink.time
            ]
            if begun:
                self.note(max(begun, key=lambda start: start.time).epoch, shrink.hw, shrink.broker)


@dataclass(slots=True)
class BrokerLogs:
    """The result.

    Attributes:
        lost: what was lost, by partition and offset.
        high_watermarks: partition -> highest high watermark that any broker knew: what is below had been committed.
        notes: files without any of these lines, and what could not be compared.
    """

    lost: list[Lost] = field(default_factory=list)
    high_watermarks: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_broker_logs(paths: Iterable[Path]) -> BrokerLogs:
    """Read logs of brokers, which may be compressed with gzip, bzip2 or xz, in any layout of log4j.

    Raises:
        InputError: a file is no text.
        StorageError: a file cannot be read.
    """
    found = BrokerLogs()
    partitions: dict[str, _Partition] = {}
    for path in paths:
        if not _File(found, partitions).read(path):
            found.notes.append(f"{path}: this is no log of a Kafka broker")
    if not any(partition.starts for partition in partitions.values()):
        found.notes.append("no leader is in these logs: brokers log their leaders in state-change.log")
    for name, partition in partitions.items():
        partition.note_shrinks()
        hw = max((hw for hw, _ in partition.known.values()), default=0)
        found.high_watermarks[name] = max(hw, found.high_watermarks.get(name, 0))
        if len(partition.topics) > 1:
            found.notes.append(f"{name}: its topic was created again, so leaders are not compared")
        else:
            found.lost += _of_leaders(name, partition)
    found.lost.sort(key=lambda lost: (lost.partition, lost.first, lost.time))
    return found


class _File:
    """Reads one broker's file."""

    def __init__(self, found: BrokerLogs, partitions: dict[str, _Partition]) -> None:
        self._found = found
        self._partitions = partitions
        self._epochs: dict[str, int] = {}
        self._broker = UNKNOWN

    def read(self, path: Path) -> bool:
        """Whether it is a broker's log."""
        is_log = False
        for _, text in lines(path):
            line = text[:_LINE_MOST]
            if any(clue in line for clue in _CLUES) and not _LONG_NUMBER.search(line):
                is_log |= self._line(line)
            is_log = is_log or _KAFKA in line
        return is_log

    def _line(self, line: str) -> bool:
        if named := _BROKER.search(line):
            self._broker = int(next(group for group in named.groups() if group))
        when = _TIME.match(line)
        time = when[1] if when else ""
        if said := _LEADER.search(line):
            one = self._of(said["partition"])
            epoch, offset = int(said["epoch"]), int(said["offset"])
            one.topics.add(said["topic"])
            one.starts.append(_Start(epoch, offset, self._broker, time))
            one.note(epoch, int(said["hw"]), self._broker)
            self._epochs[said["partition"]] = epoch
        elif said := _FOLLOWER.search(line):
            epoch, before = int(said["epoch"]), int(said["before"] or UNKNOWN)
            # A broker that has just started may have learned its watermark in this very epoch, before it stopped.
            learned = epoch if before == UNKNOWN else before
            self._of(said["partition"]).note(learned, int(said["hw"]), self._broker)
            self._epochs[said["partition"]] = epoch
        elif said := _SHRINK.search(line):
            epoch, one = self._epochs.get(said["partition"], UNKNOWN), self._of(said["partition"])
            if epoch != UNKNOWN:
                one.note(epoch, int(said["hw"]), self._broker)
            else:
                one.shrinks.append(_Shrink(int(said["broker"]), time, int(said["hw"])))
        elif said := _TRUNCATION.search(line):
            offset, hw = int(said["offset"]), int(said["hw"])
            text = f"broker {_shown(self._broker)} truncated to offset {offset}, below its high watermark {hw}"
            self._found.lost.append(Lost(said["partition"], offset, hw, self._broker, time, text))
            marks = self._found.high_watermarks
            marks[said["partition"]] = max(hw, marks.get(said["partition"], 0))
        return bool(said)

    def _of(self, partition: str) -> _Partition:
        return self._partitions.setdefault(partition, _Partition())


def _of_leaders(name: str, one: _Partition) -> list[Lost]:
    """Leaders that started below a high watermark of an earlier epoch."""
    found = []
    since = UNKNOWN
    for start in sorted(one.starts, key=lambda start: start.epoch):
        earlier = [(hw, broker, epoch) for epoch, (hw, broker) in one.known.items() if since <= epoch < start.epoch]
        hw, broker, epoch = max(earlier, default=(0, UNKNOWN, UNKNOWN))
        if start.offset < hw:
            text = (
                f"broker {_shown(start.broker)} leads from offset {start.offset} in leader epoch {start.epoch}, below "
                f"high watermark {hw}, which broker {_shown(broker)} knew in leader epoch {max(epoch, 0)}"
            )
            found.append(Lost(name, start.offset, hw, start.broker, start.time, text))
            since = start.epoch
    return found


def _shown(broker: int) -> str:
    return "(unknown)" if broker == UNKNOWN else str(broker)
