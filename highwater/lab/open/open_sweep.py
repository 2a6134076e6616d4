"""A sweep that is open: a snapshot of its folder, taken anew when waves were added, and its progress."""

from __future__ import annotations

import calendar
import time
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Final

from reports.analysis.tally import SweepTally
from scenarios.sweep import claim, manifest
from scenarios.sweep.ownership import RUN
from scenarios.sweep.parts import RESULTS, wave_path
from scenarios.sweep.store import Store
from sim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scenarios.sweep.folder import FileInfo, Folder

FRESH_S: Final = 1.0
"""A snapshot that is younger is not compared with the folder."""


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """How far a sweep is.

    Attributes:
        done: runs in finished waves.
        asked: runs that were asked for.
        drivers: processes at work.
        rate: runs a second of the driver at work; None: none, or no wave of it is finished.
    """

    done: int
    asked: int
    drivers: tuple[str, ...]
    rate: float | None

    @property
    def left_s(self) -> float | None:
        """Seconds until the end at this rate."""
        return (self.asked - self.done) / self.rate if self.rate else None


class OpenSweep:
    """A sweep's folder.

    Attributes:
        folder: the folder.
        key: its name in addresses.
    """

    def __init__(self, folder: Folder, key: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self.key = key
        self._clock = clock
        self._lock = Lock()
        self._looked: float | None = None
        self._state = ""
        self._store: Store | None = None
        self._tally: SweepTally | None = None

    def read(self) -> tuple[Store, SweepTally, str]:
        """The sweep with its counts, and a name of its present state, which changes when waves are added.

        Raises:
            UserError: the folder is no sweep's.
            OSError: it cannot be read.
        """
        with self._lock:
            now = self._clock()
            if self._store is None or self._tally is None or self._looked is None or now - self._looked >= FRESH_S:
                self._look()
                self._looked = self._clock()
            assert self._store is not None
            assert self._tally is not None
            return self._store, self._tally, self._state

    def _look(self) -> None:
        files = self.folder.files(RESULTS)
        told = [(path, info.size, info.written) for path, info in files.items() if path.endswith(manifest.NAME)]
        state = blake2b(repr((self._run(), told)).encode(), digest_size=8).hexdigest()
        if state == self._state:
            return
        store = Store(self.folder)
        if self._tally is None or self._store is None or self._store.run != store.run:
            self._tally = SweepTally(store.sweep)
        self._tally.update(store)
        self._store, self._state = store, state

    def _run(self) -> bytes:
        try:
            return self.folder.read(RUN)
        except FileNotFoundError:
            raise InputError(f"{self.folder.shown} is no longer the folder of a sweep: {RUN} is missing") from None

    def progress(self) -> SweepProgress:
        """How far it is; errors as `read`."""
        store, _, _ = self.read()
        working = claim.others(self.folder)
        done, asked = (store.sweep.count(extent.pieces()) for extent in (store.covered, store.asked))
        rates = [self._rate(store, name, owner.since) for name, _, owner, _ in working] if done < asked else []
        known = [rate for rate in rates if rate is not None]
        return SweepProgress(done, asked, tuple(owner.shown for _, _, owner, _ in working), sum(known) or None)

    def _rate(self, store: Store, name: str, since: str) -> float | None:
        """Runs a second in the waves of a driver; of one wave, since the driver began."""
        waves = [wave for wave in store.waves if wave.name.removeprefix("wave=").startswith(f"{name}-")]
        files: Mapping[str, FileInfo] = self.folder.files(RESULTS)
        ends = [
            (info.written, store.sweep.count(wave.covers))
            for wave in waves
            if (info := files.get(f"{wave_path(wave.name)}/{manifest.NAME}")) is not None
        ]
        ends.sort()
        if not ends:
            return None
        begin = _began(since) if len(ends) == 1 else ends[0][0]
        runs = sum(count for _, count in (ends if len(ends) == 1 else ends[1:]))
        return None if begin is None or ends[-1][0] <= begin else runs / (ends[-1][0] - begin)


def _began(since: str) -> float | None:
    try:
        return calendar.timegm(time.strptime(since, "%Y-%m-%dT%H:%M:%SZ"))
    except ValueError:
        return None
