"""``python -m tests.verification.confirm.interruptions``: interrupt `confirm` at random; check what is left."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MARK: Final = "HIGHWATER_INTERRUPTED"
"""All that an interrupted command starts has this in its environment."""
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
RUNS: Final = (
    ("kip279-scenario-1-equal", "2.0.0", 12.0),
    ("kafka-2334", "0.10.2.2", 18.0),
    ("last-replica-standing", "4.1.0", 32.0),
    ("reassignment-back", "4.3.1", 24.0),
)
"""Scenario, release, and about how many seconds a run takes, of which the moment is drawn."""
PATIENCE_S: Final = 30.0
_LISTENS: Final = "0A"


def processes(token: str) -> Iterator[int]:
    """Processes with the token in their environment."""
    mark = f"{MARK}={token}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)


def listening() -> dict[str, int]:
    """Inode of each socket that listens -> its port."""
    found = {}
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path("/proc/net", name).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == _LISTENS:
                    found[words[9]] = int(words[1].rpartition(":")[2], 16)
    return found


def sockets(process: int) -> Iterator[str]:
    """Inodes of a process's sockets."""
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{process}/fd").iterdir():
            with contextlib.suppress(OSError):
                name = str(entry.readlink())
                if name.startswith("socket:["):
                    yield name[len("socket:[") : -1]


@dataclass
class Interruption:
    """What an interruption met and left.

    Attributes:
        running: what ran at that moment, in words.
        ended: the exit code if the command had ended before; None: it was interrupted.
        code: the exit code.
        problems: each process, port and folder that is left after `PATIENCE_S`.
    """

    running: str
    ended: int | None
    code: int
    problems: list[str]


def interrupt(
    arguments: Sequence[str],
    after_s: float,
    number: signal.Signals,
    place: Path,
    *,
    output: IO[bytes] | int = subprocess.DEVNULL,
    more_folders: Callable[[Sequence[int]], Sequence[Path]] = lambda _: (),
) -> Interruption:
    """Interrupt a command of Highwater after a time, and end what it leaves.

    Args:
        arguments: of the command line.
        after_s: time until the interruption.
        number: the signal.
        place: an empty folder for the command's temporary files.
        output: where its output goes.
        more_folders: folders outside `place` that the processes running at the interruption have to remove.
    """
    token = secrets.token_hex(8)
    words = [sys.executable, "-m", "highwater.cli.entry", *arguments]
    environment = {**os.environ, MARK: token, "TMPDIR": str(place)}
    command = subprocess.Popen(words, cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True)
    with contextlib.suppress(subprocess.TimeoutExpired):
        command.wait(after_s)
    ended = command.poll()
    running = list(processes(token))
    heard = listening()
    held = {inode for process in running for inode in sockets(process)} & heard.keys()
    folders = {*more_folders(running), *place.iterdir()}
    what = f"{len(running)} processes, {len(held)} ports, {len(folders)} folders"
    with contextlib.suppress(ProcessLookupError):
        os.kill(command.pid, number)
    left: list[str] = []
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        command.poll()
        left = [f"process {process}" for process in processes(token)]
        left += [f"port {heard[inode]}" for inode in held & listening().keys()]
        left += [f"folder {path}" for path in sorted(folders | {*place.iterdir()}) if path.exists()]
        if not left:
            break
        time.sleep(0.1)
    for process in processes(token):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return Interruption(what, ended, command.wait(), left)


def main() -> int:
    """Interrupt runs; 1 if anything is left over."""
    parser = argparse.ArgumentParser(prog="python -m tests.verification.confirm.interruptions", description=__doc__)
    parser.add_argument("--times", type=int, default=30, help="interruptions that meet a run")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    met = failed = tried = 0
    while met < arguments.times:
        scenario, release, longest_s = RUNS[tried % len(RUNS)]
        number = SIGNALS[tried % len(SIGNALS)]
        after_s = chance.uniform(0.0, longest_s)
        tried += 1
        with tempfile.TemporaryDirectory(prefix="interrupted-") as name:
            words = ["confirm", scenario, "--kafka", release, "-q", "--json"]
            one = interrupt(words, after_s, number, Path(name))
        met += one.ended is None
        failed += bool(one.problems)
        what = f"{one.running}, exit code {one.code}" if one.ended is None else "it had ended"
        told = "; ".join(one.problems) or "nothing left"
        sys.stdout.write(f"{met:3} {scenario:24} {release:9} {number.name:8} after {after_s:4.1f} s: {what}: {told}\n")
        sys.stdout.flush()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
