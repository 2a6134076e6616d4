"""When checkpoint files are written: what Kafka's LogManager and ReplicaManager schedule, against `Storage`.

Operations: ``settings hw recovery-point log-start`` (intervals in ms, of processes to come), ``start`` (a process,
whose logs are loaded), ``publish decides`` (its first metadata, in KRaft; whether it leads or follows by them),
``decide`` (it leads or follows from now on), ``end``, ``time ms``. To be seen is of each file during which operation it
was written last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.environment.storage import PeriodicFile, Storage, StorageSettings
from tests.verification.oracle.releases import RULES
from tests.verification.oracle.subject import Case, Operation, Seen, Subject

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from sim.protocol.rules import Rules

NEVER: Final = 1 << 60
INTERVALS_MS: Final = (5_000, 60_000, 60_000)


class Broker:
    """A broker's disk and the process on it, as `sim.hosts` has them."""

    def __init__(self, rules: Rules, *, has_log_start: bool) -> None:
        self._is_kraft = rules.control_plane == "kraft"
        self._has_log_start = has_log_start
        self._now_us = 0
        self._runs = False
        self._published_us = -1
        self._checkpoints_hw = False
        self._storage = self._with(*INTERVALS_MS)

    @staticmethod
    def _with(*intervals_ms: int) -> Storage:
        hw, recovery_point, log_start = [interval_ms * 1_000 for interval_ms in intervals_ms]
        return Storage(StorageSettings(NEVER, NEVER, NEVER, NEVER, 1, NEVER, NEVER, hw, recovery_point, log_start))

    @property
    def _files(self) -> tuple[PeriodicFile, ...]:
        storage = self._storage
        return storage.hw_file, storage.recovery_point_file, storage.log_start_file

    def do(self, operation: Operation, number: int) -> list[Any]:
        """Run one operation; the visible state after it."""
        name, *values = operation
        getattr(self, name)(*values)
        for file in self._files:
            file.catch_up(number, self._now_us)
        hw, recovery_point, log_start = self._files
        return [hw.content, recovery_point.content, log_start.content if self._has_log_start else None]

    def settings(self, *intervals_ms: int) -> None:
        if not self._runs:
            before = self._files
            self._storage = self._with(*intervals_ms)
            for file, old in zip(self._files, before, strict=True):
                file.content = old.content

    def start(self) -> None:
        if not self._runs:
            self._runs = True
            self._published_us = -1
            self._checkpoints_hw = False
            self._storage.log_manager_started(self._now_us)

    def publish(self, decides: int) -> None:
        if self._runs and self._published_us < 0:
            self._published_us = self._now_us
            if decides:
                self._checkpoint_hw(self._now_us)

    def decide(self) -> None:
        if not self._is_kraft:
            self._published_us = self._now_us
            self._checkpoint_hw(self._now_us)
        elif self._published_us >= 0:
            self._checkpoint_hw(self._now_us + 1)  # What was due by now had nothing to write.

    def _checkpoint_hw(self, now_us: int) -> None:
        if self._runs and not self._checkpoints_hw:
            self._checkpoints_hw = True
            self._storage.begin_hw_checkpoints(self._published_us, now_us)

    def end(self) -> None:
        self._runs = False
        for file in self._files:
            file.end()

    def time(self, ms: int) -> None:
        self._now_us += ms * 1_000


def run(case: Case, release: str, rules: Rules, imitated: Collection[str]) -> Seen:
    """See `Subject.run`."""
    broker = Broker(rules, has_log_start=release != "0.10.2.2")
    return [broker.do(operation, number) for number, operation in enumerate(case)]


def draw(rng: Random, release: str) -> Case:
    """Successive processes of a broker."""
    case: Case = []
    publishes = RULES[release].control_plane == "kraft"
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.5:
            case.append(["settings", *(rng.choice(choices) for choices in _INTERVALS_MS)])
        case += [["start"], *_time(rng)]
        if publishes:
            case += [["publish", rng.randint(0, 1)], *_time(rng)]
        case.append(["decide"])
        for _ in range(rng.randint(0, 8)):
            case += _time(rng)
            if rng.random() < 0.1:
                case.append(["decide"])
        case += [["end"], *_time(rng)]
    return case


_INTERVALS_MS: Final = ((500, 5_000, 7_000), (1_000, 60_000, 90_000), (1_000, 60_000, 25_000))


def _time(rng: Random) -> Case:
    if rng.random() < 0.3:
        return []
    return [
        [
            "time",
            rng.choice((1, 499, 500, 2_500, 5_000, 29_999, 30_000, 30_001, 60_000, 61_000, rng.randint(1, 99_999))),
        ]
    ]


SUBJECT: Final = Subject(
    "checkpoints",
    "highwater.Checkpoints",
    RULES,
    draw,
    run,
    quick=500,
    usual=5_000,
    deep=20_000,
    recorded=12_000,
)
