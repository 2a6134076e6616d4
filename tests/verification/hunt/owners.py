"""Two drivers on one folder: `python -m tests.verification.hunt.owners`.

Each try lets two drivers run the same sweep into one folder, on processes or on Spark, with other numbers of chunks,
and stops, kills or interrupts one of them at a moment drawn from the try's number, while other commands read the store.
What must hold: a driver that finds another one at work ends with 69 and one line; readers end with a code of theirs and
no traceback; after a last driver has run alone, the store is sound, complete, and its rows are those of one driver that
nothing disturbed. In half of the tries drivers ignore claims, since safety must not rest on them.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scenarios.sweep import checkup, store
from scenarios.sweep.folder import open_folder
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

SEEDS: Final = 300
PAIRS: Final = (("local", "local"), ("local", "spark"), ("spark", "spark"))
DISTURBANCES: Final = ("none", "kill", "stop", "interrupt")
ALLOWED: Final = {0, 69, 130, -signal.SIGKILL}
READERS: Final = (("coverage",), ("doctor",), ("compare", "--brief"))
READERS_MAY: Final = {0, 1, 2, 3}
"""What a command that reads a store may end with while the store is being written."""
DRIVER: Final = """
import sys
from scenarios.sweep import claim
from scenarios.sweep import driver as sweep
from highwater.cli.main import main
if __name__ == "__main__":
    heed, *words = sys.argv[1:]
    sweep.WAVE_SECONDS = 1.0
    claim.STALE_SECONDS, claim.RENEW_SECONDS = 3.0, 0.5
    if heed == "no":
        claim.others = claim.dead = lambda *_: []
    sys.exit(main(words))
"""


def command(kind: str, chunks: int, output: Path, script: Path, *, heed: bool) -> list[str]:
    words = ["sweep", "power", "--modes", "hw,kip101", "--seeds", f"0..{SEEDS}", "--output", str(output), "-q"]
    words += ["--chunks", str(chunks)]
    words += ["--local", "2"] if kind == "local" else ["--master", "local[2]"]
    return [sys.executable, str(script), "yes" if heed else "no", *words]


def start(words: list[str], log: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with log.open("ab") as out:
        return subprocess.Popen(words, stdout=out, stderr=out, env=environment, start_new_session=True)


def disturb(process: subprocess.Popen[bytes], what: str) -> None:
    """Disturb a driver; a stopped one resumes later, when it may have lost its claim."""
    if what != "none":
        process.send_signal({"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "interrupt": signal.SIGINT}[what])


def told(number: int) -> str:
    """Description of a try, for messages."""
    kinds, what, heed = _kind(number)
    return f"{' and '.join(kinds)}, {what}, {'claims' if heed else 'no claims'}"


def _kind(number: int) -> tuple[tuple[str, str], str, bool]:
    return PAIRS[number % len(PAIRS)], DISTURBANCES[number // 3 % 4], bool(number % 2)


class Tries:
    """Tries in one folder.

    Attributes:
        reads: how many commands have read a store while drivers worked on it.
    """

    def __init__(self, folder: Path) -> None:
        self.reads = 0
        self._folder = folder
        self._script = folder / "driver.py"
        self._script.write_text(DRIVER, encoding="utf-8")
        start(command("local", 4, folder / "undisturbed", self._script, heed=True), folder / "undisturbed.log").wait()
        self._expected = store.Store(folder / "undisturbed").rows()
        assert len(self._expected["seed"]) == 2 * SEEDS

    def one(self, number: int) -> list[str]:
        """Problems of a try."""
        stream = random.Random(number)
        kinds, what, heed = _kind(number)
        output, log = self._folder / f"try-{number}", self._folder / f"try-{number}.log"
        drivers = [
            start(command(kind, stream.choice([3, 5, 8, 13]), output, self._script, heed=heed), log) for kind in kinds
        ]
        with ThreadPoolExecutor(1) as pool:
            readings = pool.submit(self._read, output, log, drivers)
            time.sleep(stream.uniform(0.5, 12.0))
            victim = stream.choice(drivers)
            disturb(victim, what)
            if what == "stop":
                time.sleep(5)  # Longer than a claim of these drivers lasts.
                if heed:
                    drivers.append(start(command("local", 4, output, self._script, heed=True), log))
                    time.sleep(stream.uniform(1, 5))
                victim.send_signal(signal.SIGCONT)
            problems = []
            for driver in drivers:
                code = driver.wait(600)
                if code not in ALLOWED:
                    problems.append(f"a driver ended with {code}")
            problems += readings.result()
        code = start(command("local", 7, output, self._script, heed=False), log).wait(600)
        if code:
            problems.append(f"the last driver ended with {code}")
        if store.Store(output).rows() != self._expected:
            problems.append("rows are not those of one driver")
        found = checkup.check(open_folder(output))
        # Attempts of killed drivers are named, and count for nothing. Without claims, both drivers may complete a wave:
        # `doctor` names it, and readers count its rows once.
        excused = ("has no _MANIFEST.json", "dead", *(() if heed else ("has the same rows as other waves",)))
        problems += [str(finding) for finding in found.findings if not any(words in finding.what for words in excused)]
        text = log.read_text()
        if "Traceback" in text or "internal error" in text:
            problems.append("a command said more than one line")
        return problems

    def _read(self, output: Path, log: Path, drivers: Sequence[subprocess.Popen[bytes]]) -> list[str]:
        """Read a store repeatedly while drivers work on it."""
        problems = []
        for words in cycle(READERS):
            if all(driver.poll() is not None for driver in drivers):
                break
            code = start([sys.executable, str(self._script), "yes", *words, str(output)], log).wait(600)
            self.reads += 1
            if code not in READERS_MAY:
                problems.append(f"{words[0]} ended with {code}")
        return problems


def main() -> int:
    """Run the tries; 1 if there was any problem."""
    parser = argparse.ArgumentParser(prog="python -m tests.verification.hunt.owners", description=__doc__)
    parser.add_argument("--tries", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="owners-"))
    tries = Tries(folder)
    wrong = 0
    for number in range(options.first, options.first + options.tries):
        problems = tries.one(number)
        wrong += bool(problems)
        sys.stdout.write(f"{number}: {told(number)}: {problems or 'ok'}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{options.tries} tries, {tries.reads} reads beside them, {wrong} went wrong; logs in {folder}\n")
    if not wrong:
        shutil.rmtree(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
