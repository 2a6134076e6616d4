"""Two drivers on one folder: `python -m tests.hunt.owners`.

Each try lets two drivers run the same sweep into one folder, on processes or on Spark, with other numbers of chunks,
and stops or kills one of them at a moment drawn from the try's number. What must hold: whoever is told that another one
is at work ends with 69 and one line; after a last driver has run alone, the store is sound, complete, and its rows are
those of one driver that nobody disturbed. In half of the tries drivers do not heed claims, since safety must not rest
on them.
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
from pathlib import Path
from typing import Final

from scenarios.sweep import checkup, store
from scenarios.sweep.folder import open_folder

ROOT: Final = Path(__file__).parents[2]
SEEDS: Final = 1_000
PAIRS: Final = (("local", "local"), ("local", "spark"), ("spark", "spark"))
DISTURBANCES: Final = ("none", "kill", "stop", "interrupt")
ALLOWED: Final = {0, 69, 130, -signal.SIGKILL}
DRIVER: Final = """
import sys
from scenarios.sweep import claim
from scenarios.sweep import driver as sweep
from reports.cli import main
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
    """Do something to a driver; one that is stopped goes on later, when it may have lost its claim."""
    if what != "none":
        process.send_signal({"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "interrupt": signal.SIGINT}[what])


def one_try(number: int, folder: Path, expected: dict[str, list[object]]) -> list[str]:
    """What went wrong in a try; nothing, one hopes."""
    stream = random.Random(number)
    kinds, what, heed = PAIRS[number % len(PAIRS)], DISTURBANCES[number // 3 % 4], bool(number % 2)
    output, log, script = folder / f"try-{number}", folder / f"try-{number}.log", folder / "driver.py"
    drivers = [start(command(kind, stream.choice([3, 5, 8, 13]), output, script, heed=heed), log) for kind in kinds]
    time.sleep(stream.uniform(0.5, 12.0))
    victim = stream.choice(drivers)
    disturb(victim, what)
    if what == "stop":
        time.sleep(5)  # Longer than a claim of these drivers lasts.
        if heed:
            drivers.append(start(command("local", 4, output, script, heed=True), log))
            time.sleep(stream.uniform(1, 5))
        victim.send_signal(signal.SIGCONT)
    problems = []
    for driver in drivers:
        code = driver.wait(600)
        if code not in ALLOWED:
            problems.append(f"a driver ended with {code}")
    code = start(command("local", 7, output, script, heed=False), log).wait(600)
    if code:
        problems.append(f"the last driver ended with {code}")
    if store.read_rows(output) != expected:
        problems.append("rows are not those of one driver")
    found = checkup.check(open_folder(output))
    # Attempts of drivers that were killed are named, and count for nothing.
    problems += [
        str(one) for one in found.findings if "has no _MANIFEST.json" not in one.what and "dead" not in one.what
    ]
    text = log.read_text()
    if "Traceback" in text or "internal error" in text:
        problems.append("a driver said more than one line")
    sys.stdout.write(
        f"{number}: {' and '.join(kinds)}, {what}, {'claims' if heed else 'no claims'}: {problems or 'ok'}\n"
    )
    sys.stdout.flush()
    return problems


def main() -> int:
    """Run the tries; 1 if anything went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.hunt.owners", description=__doc__)
    parser.add_argument("--tries", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="owners-"))
    script = folder / "driver.py"
    script.write_text(DRIVER, encoding="utf-8")
    start(command("local", 4, folder / "alone", script, heed=True), folder / "alone.log").wait()
    expected = store.read_rows(folder / "alone")
    assert len(expected["seed"]) == 2 * SEEDS
    wrong = sum(
        bool(one_try(number, folder, expected)) for number in range(options.first, options.first + options.tries)
    )
    sys.stdout.write(f"{options.tries} tries, {wrong} went wrong; logs in {folder}\n")
    if not wrong:
        shutil.rmtree(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
