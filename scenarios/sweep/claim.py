"""Claims: the driver at work in a sweep's folder, so that a second one stops instead of doing the same work.

A claim is advisory and no lock: manifests alone decide which waves count (`scenarios.sweep.manifest`). Each driver
writes its parts under the name of its own claim, renews the claim while it works, and stops after a takeover.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from scenarios.format.validation import OpenTable, validated
from scenarios.sweep.folder import Folder
from scenarios.sweep.ownership import CLAIM_START, CLAIMS
from sim.errors import InputError, UnavailableError

RENEW_SECONDS: Final = 10.0
STALE_SECONDS: Final = 60.0
"""A driver that has not renewed its claim for this long is taken for dead or suspended."""
_FILE: Final = re.compile(rf"{CLAIMS}/([0-9a-f]{{8}})\.json")


@dataclass(frozen=True, slots=True)
class Owner:
    """A driver: host, process with PID namespace and start time, and the time of its claim."""

    host: str
    space: str
    pid: int
    begun: str
    since: str

    @property
    def shown(self) -> str:
        """Its description in messages."""
        return f"process {self.pid} on {self.host}, since {self.since}"


class _Stored(OpenTable):
    state: str
    host: str
    space: str
    pid: int
    begun: str
    since: str


def _here() -> Owner:
    space = ""
    with contextlib.suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink())
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return Owner(socket.gethostname(), space, os.getpid(), _begun(os.getpid()), since)


def _begun(pid: int) -> str:
    """Start time of a process of this machine, because PIDs are reused; "" if it has ended or is unknown."""
    with contextlib.suppress(OSError, IndexError):
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return "" if state in "ZX" else rest[18]
    return ""


class FolderClaim:
    """A driver's claim on a folder; `name` has 8 hex digits and is part of the names of this driver's waves.

    Raises:
        UnavailableError: another driver is at work.
    """

    def __init__(self, folder: Folder) -> None:
        self.name = secrets.token_hex(4)
        self._folder = folder
        self._owner = _here()
        self._file = _file(self.name)
        self._over = threading.Event()
        self._lost: str | None = None
        self._write("asking")
        try:
            self._ask()
            self._write("working")
        except BaseException:
            self._remove()
            raise
        self._renewing = threading.Thread(target=self._renew, daemon=True)
        self._renewing.start()

    def _write(self, state: str) -> None:
        claim = {"state": state, "renewed": time.time(), **asdict(self._owner)}
        self._folder.write(self._file, json.dumps(claim).encode() + b"\n", CLAIM_START)

    def _ask(self) -> None:
        """Raise UnavailableError if another driver came first."""
        for name, state, owner, idle in others(self._folder, self.name):
            if state == "working" or name < self.name:
                raise UnavailableError(
                    f"{self._folder.shown}: another driver is at work ({owner.shown}, seen {idle:.0f} s ago); "
                    "when it has ended, the same command resumes the sweep"
                )

    def _renew(self) -> None:
        while not self._over.wait(RENEW_SECONDS):
            # A temporary failure of the storage must not end the sweep; a permanent one fails the next write.
            with contextlib.suppress(OSError, InputError):
                if self.is_lost():
                    return
                self._write("working")

    def is_lost(self) -> bool:
        """Whether another driver has taken over."""
        if self._lost is None and self._file not in self._folder.files(CLAIMS):
            self._lost = f"{self._folder.shown}: another driver has taken over while this one was suspended"
        return self._lost is not None

    def check(self) -> None:
        """Check that this driver still has its claim; raises UnavailableError if another one has taken over."""
        if self.is_lost():
            raise UnavailableError(str(self._lost))

    def end(self) -> None:
        """Release the claim."""
        self._over.set()
        self._renewing.join()
        self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self._folder.remove(self._file, CLAIM_START)
            self._folder.prune(CLAIMS)


def _file(name: str) -> str:
    return f"{CLAIMS}/{name}.json"


def others(folder: Folder, mine: str = "") -> list[tuple[str, str, Owner, float]]:
    """Claims of presumably live drivers: name, state, owner, seconds since renewal.

    Ages are measured by the storage's clock, against a claim of this driver if there is one.
    """
    return [found for found in _claims(folder, mine) if _is_alive(*found[2:])]


def dead(folder: Folder, mine: str = "") -> list[str]:
    """Names of claims of dead or suspended drivers."""
    return [name for name, _, owner, idle in _claims(folder, mine) if not _is_alive(owner, idle)]


def take_over(folder: Folder, names: Iterable[str]) -> None:
    """Remove claims of dead drivers; a driver that resumes then stops."""
    for name in names:
        folder.remove(_file(name), CLAIM_START)


def _claims(folder: Folder, mine: str) -> list[tuple[str, str, Owner, float]]:
    """All other claims; a file with another name or content is foreign."""
    files = folder.files(CLAIMS)
    own = files.get(_file(mine))
    now = own.written if own else time.time()
    found = []
    for path, entry in files.items():
        named = _FILE.fullmatch(path)
        if named is None or named[1] == mine or not entry.regular:
            continue
        with contextlib.suppress(FileNotFoundError, ValueError, RecursionError, InputError):
            claim = validated(_Stored, json.loads(folder.read(path)))
            owner = Owner(claim.host, claim.space, claim.pid, claim.begun, claim.since)
            found.append((named[1], claim.state, owner, max(0.0, now - entry.written)))
    return found


def _is_alive(owner: Owner, idle: float) -> bool:
    if idle > STALE_SECONDS:
        return False
    here = _here()
    if (owner.host, owner.space) != (here.host, here.space) or not owner.begun:
        return True
    return _begun(owner.pid) == owner.begun
