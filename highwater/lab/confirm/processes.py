"""Java processes that cannot outlive the process that started them."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from highwater.lab.kafka import releases
from scenarios.own_files import REMOVAL, Workspace, new_workspace
from sim.errors import StorageError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TOKEN: Final = "HIGHWATER_CONFIRM"  # noqa: S105 - the name of a variable
_HEAP: Final = ("-Xmx256m", "-Xms48m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xss512k")
_NET: Final = ("-Djava.net.preferIPv4Stack=true", "-Djava.awt.headless=true")
_PORTS_TRIED: Final = 200

_REAPER: Final = f"""\
import os, signal, sys, time
token, folder, keep = sys.argv[1:4]
mark = ("HIGHWATER_CONFIRM=" + token).encode()
while True:
    try:
        if not os.read(0, 1):
            break
    except InterruptedError:
        pass
def alive():
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open("/proc/" + name + "/environ", "rb") as file:
                    if mark in file.read().split(b"\\0"):
                        yield int(name)
            except OSError:
                pass
# The environment of a process that is being started cannot be read for a moment: one look that finds nothing is none.
unseen = 0
for _ in range(100):
    left = list(alive())
    unseen = 0 if left else unseen + 1
    if unseen == 10:
        break
    for process in left:
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:
            pass
    time.sleep(0.05)
if keep == "keep":
    sys.exit()
{REMOVAL}"""
"""A guard process: waits until its parent is gone, for whatever reason, and kills all processes that carry the mark in
their environment."""


class JavaProcesses:
    """All processes of a run, and the folder that they work in, which is removed unless it has a path to `keep`.

    Raises:
        InputError: there is something in the folder to keep.
    """

    def __init__(self, keep: Path | None) -> None:
        self._java = str(releases.java_command())
        self._token = secrets.token_hex(8)
        try:
            self.work = new_workspace() if keep is None else Workspace(keep)
        except OSError as error:
            raise StorageError(f"no folder to work in: {error}") from None
        self.folder = self.work.root
        self._keep = keep is not None
        self._started: list[subprocess.Popen[bytes]] = []
        self._taken: set[int] = set()
        words = [sys.executable, "-S", "-c", _REAPER, self._token, str(self.folder), "keep" if self._keep else "remove"]
        self._reaper = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603

    def close(self) -> None:
        """End all processes, and remove the folder unless it is kept."""
        for process in self._started:
            end(process)
        assert self._reaper.stdin is not None
        with contextlib.suppress(OSError):
            self._reaper.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._reaper.wait(20)
        if not self._keep:
            self.work.end()

    def java(self, arguments: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start Java; its output is appended to a file."""
        environment = {**os.environ, _TOKEN: self._token}
        with self.work.append(log) as out:
            process = subprocess.Popen(  # noqa: S603
                [self._java, *_HEAP, *_NET, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
                cwd=self.folder,
            )
        self._started.append(process)
        return process

    def port(self) -> int:
        """A free port that was not returned before.

        Raises:
            UnavailableError: there is none.
        """
        for _ in range(_PORTS_TRIED):
            with contextlib.suppress(OSError), socket.socket() as one:
                one.bind(("127.0.0.1", 0))
                number = int(one.getsockname()[1])
                if number not in self._taken:
                    self._taken.add(number)
                    return number
        raise UnavailableError("no port is free on loopback")


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process if it still runs."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait()


def last_lines(log: Path, count: int = 4) -> str:
    """The last lines of a log, joined into one."""
    with contextlib.suppress(OSError):
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        told = [line for line in lines if "ERROR" in line or "FATAL" in line or "Exception" in line] or lines
        return " | ".join(line[:200] for line in told[-count:])
    return ""
