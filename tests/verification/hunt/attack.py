"""`make attack`: attacks on sweeps and their stores, within ten minutes.

Parts, each with its own share of the time and its own figures:

- `drivers`: two or three drivers on one store, one of them stopped, killed or interrupted, while `compare`, `coverage`
  and `doctor` read it (`tests.verification.hunt.owners`);
- `disk`: a file system that fills up under a sweep, which a later driver finishes elsewhere;
- `workers`: worker processes of a sweep, on processes and on Spark, killed while they compute; a try counts only if the
  process was seen at work before, and gone afterwards;
- `environments`: few files, little memory, no home, a closed standard output, a store that is a file or a link;
- `settings`: random settings through the command line, with the worst time and memory
  (`tests.verification.hunt.settings`);
- `input`: random command lines, files and stores (`tests.verification.hunt.fuzz`).

Longer hunts: `make hunt-stores`, `make hunt-settings`, `make fuzz`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scenarios.sweep import checkup, store
from scenarios.sweep.folder import open_folder
from scenarios.version import PLAIN, build
from sim import exit_codes
from tests.places import ROOT
from tests.verification.hunt import fuzz, owners, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HIGHWATER: Final = (sys.executable, "-m", "highwater.cli.entry")
RUNS: Final = 240
"""Runs of the sweep that `disk`, `workers` and `environments` disturb."""
SWEEP: Final = ("sweep", "power", "--modes", "hw,kip101", "--seeds", f"0..{RUNS // 2}", "-q", "--chunks", "6")
EXIT_CODES: Final = {0, 1, 2, 3, 4, 69, 74, 130, 143}
"""Exit codes that the command line may return: all codes of reports/README.md but 70, an internal error."""
SECONDS: Final = 120
SLOWER: Final = 4
"""A command of a try takes at most `SECONDS`, or on a busy machine `SLOWER` times what the undisturbed sweep took."""
NO_NAMESPACE: Final = "no file system can be mounted here (unshare is missing or not permitted): not tried"


@dataclass(slots=True)
class Figures:
    """The results of a part.

    Attributes:
        tries: number of tries.
        counts: outcome -> number of tries.
        wrong: problems found.
        more: other figures, for readers.
    """

    tries: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    more: str = ""

    def note(self, what: str, problems: Sequence[str]) -> None:
        """Count a try; each problem is printed at once."""
        self.tries += 1
        self.counts[what] += 1
        for problem in problems:
            self.wrong.append(f"{what}: {problem}")
            sys.stdout.write(f"  {what}: {problem}\n")
            sys.stdout.flush()


@dataclass(slots=True)
class Attack:
    """State that the parts share.

    Attributes:
        folder: for stores and logs.
        stream: random stream for the tries.
        expected: rows of `SWEEP`, from an undisturbed driver.
        seconds: time limit for each command of a try.
    """

    folder: Path
    stream: random.Random
    expected: dict[str, list[object]]
    seconds: float

    def run(self, words: Sequence[str | Path], **more: object) -> tuple[int, str]:
        """Run a command of a try: `run`."""
        return run(words, self.seconds, **more)

    def place(self) -> Path:
        """A new folder for one try."""
        return Path(tempfile.mkdtemp(dir=self.folder))


def main() -> int:
    """Run the parts; 1 if something was wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.verification.hunt.attack",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="for all parts together (default: 10)")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part (may be given again)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of what is drawn (default: the time)")
    options = parser.parse_args()
    wanted = options.only or list(PARTS)
    begin_s = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="highwater-attack-"))
    sys.stdout.write(f"seed {options.seed}; logs in {folder}\n")
    alone = folder / "alone"
    code, said = run([*HIGHWATER, *SWEEP, "--local", "2", "--output", str(alone)], 60 * options.minutes)
    if code:
        sys.exit(f"the undisturbed sweep ended with {code}: {said[-300:]}")
    seconds = max(SECONDS, SLOWER * (time.monotonic() - begin_s))
    attack = Attack(folder, random.Random(options.seed), store.Store(alone).rows(), seconds)
    assert len(attack.expected["seed"]) == RUNS
    wrong = 0
    for place, name in enumerate(wanted):
        left_s = 60 * options.minutes - (time.monotonic() - begin_s)
        part_s = time.monotonic()
        figures = PARTS[name](attack, part_s + left_s / (len(wanted) - place))
        wrong += len(figures.wrong)
        told = ", ".join(f"{count} {what}" for what, count in sorted(figures.counts.items()))
        taken_s = time.monotonic() - part_s
        sys.stdout.write(
            f"{name:12} {figures.tries} tries in {taken_s:.0f} s ({told}{figures.more}): {len(figures.wrong)} wrong\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"{time.monotonic() - begin_s:.0f} s, {wrong} wrong\n")
    if not wrong:
        shutil.rmtree(folder)
    return int(wrong > 0)


# Commands.


def run(words: Sequence[str | Path], seconds: float, **more: object) -> tuple[int, str]:
    """Run a command; its exit code and what it printed, -SIGALRM if it does not end in time."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(  # type: ignore[call-overload]
            [str(word) for word in words],
            **{"env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **more},
            stdin=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -signal.SIGALRM, ""
    return done.returncode, (done.stdout or b"").decode(errors="replace")


def problems_of(code: int, said: str, allowed: set[int] = EXIT_CODES) -> list[str]:
    """Problems in how a command ended."""
    problems = [] if code in allowed else [f"exit code {code}: {said[-300:]!r}"]
    if "Traceback" in said or "internal error" in said:
        problems.append(f"a traceback or an internal error: {said[-300:]!r}")
    return problems


def finished(attack: Attack, output: Path) -> list[str]:
    """Problems of a store after an undisturbed driver has finished it."""
    code, said = attack.run([*HIGHWATER, *SWEEP, "--local", "2", "--output", output])
    problems = [f"the last driver: {problem}" for problem in problems_of(code, said, {0})]
    if problems:
        return problems
    if store.Store(output).rows() != attack.expected:
        problems.append("rows are lost, doubled or different")
    found = checkup.check(open_folder(output)).findings
    return problems + [str(defect) for defect in found if "has no _MANIFEST.json" not in defect.what]


# Parts.


def drivers(attack: Attack, deadline_s: float) -> Figures:
    """Several drivers on one store, and commands that read it meanwhile."""
    figures = Figures()
    tries = owners.Tries(attack.folder)
    first = attack.stream.randrange(1_000_000)
    while time.monotonic() < deadline_s:
        number = first + figures.tries
        problems = tries.one(number)
        figures.note(owners.told(number), problems)
    figures.more = f"; {tries.reads} reads beside them"
    return figures


def disk(attack: Attack, deadline_s: float) -> Figures:
    """A file system of a drawn size fills up under a sweep; what was kept is copied and finished elsewhere."""
    figures = Figures()
    if attack.run(["unshare", "-rm", "true"])[0]:
        figures.more = NO_NAMESPACE
        return figures
    while time.monotonic() < deadline_s:
        kib = attack.stream.randrange(8, 400)
        place = attack.place()
        small, kept = place / "small", place / "kept"
        small.mkdir()
        backend = "--local 2" if figures.tries % 3 else "--master local[2]"
        sweep = f"{' '.join(HIGHWATER)} {' '.join(SWEEP)} {backend} --output {small}/store"
        keep = f"if [ -e {small}/store ]; then cp -r {small}/store {kept}; fi"
        script = f"mount -t tmpfs -o size={kib}k none {small} && {{ {sweep}; code=$?; {keep}; exit $code; }}"
        code, said = attack.run(["unshare", "-rm", "sh", "-c", script])
        problems = problems_of(code, said, {0, 74})
        if code == 74 and "space" not in said:
            problems.append(f"the line does not say that the disk is full: {said[-300:]!r}")
        problems += finished(attack, kept)
        figures.note(f"{backend.split()[0]}: {'full' if code else 'large enough'}", problems)
        shutil.rmtree(place)
    return figures


def workers(attack: Attack, deadline_s: float) -> Figures:
    """Kill worker processes while they compute."""
    figures = Figures()
    while time.monotonic() < deadline_s:
        # Without retries, a task of local[2] that fails ends the sweep.
        backend = (["--local", "2"], ["--master", "local[2,4]"])[figures.tries % 2]
        output = attack.place() / "store"
        words = [*HIGHWATER, *SWEEP, *backend, "--output", str(output)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        log = output.with_name("log")
        with log.open("wb") as out:
            driver = subprocess.Popen(words, stdout=out, stderr=out, env=environment, start_new_session=True)
        hits = 0
        wanted = attack.stream.choice((1, 1, 2))
        while driver.poll() is None and hits < wanted:
            hits += _kill_a_busy_worker(driver.pid, attack.stream)
            time.sleep(attack.stream.uniform(0.05, 0.6))
        try:
            code = driver.wait(attack.seconds)
        except subprocess.TimeoutExpired:
            os.killpg(driver.pid, signal.SIGKILL)
            code = -signal.SIGALRM
        problems = problems_of(code, log.read_text(errors="replace"), {0, 69})
        problems += finished(attack, output)
        figures.note(f"{backend[0]}: {hits} killed", problems)
    return figures


def _kill_a_busy_worker(driver: int, stream: random.Random) -> bool:
    """Kill a descendant of a driver that computes runs; whether it was seen at work before, and gone afterwards."""
    before = {pid: _cpu(pid) for pid in _workers_of(driver)}
    time.sleep(0.1)
    busy = [pid for pid, ticks in before.items() if 0 <= ticks < _cpu(pid)]
    if not busy:
        return False
    victim = stream.choice(busy)
    with contextlib.suppress(ProcessLookupError):
        os.kill(victim, signal.SIGKILL)
    end_s = time.monotonic() + 5
    while time.monotonic() < end_s:
        if _cpu(victim) < 0:
            return True
        time.sleep(0.01)
    return False


def _workers_of(driver: int) -> list[int]:
    """Processes of a sweep's pool, or Python workers that Spark's daemon has forked."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (fields := _stat(int(entry.name))):
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, left = [], list(parents.get(driver, ()))
    while left:
        pid = left.pop()
        children = parents.get(pid, [])
        left += children
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"spawn_main" in words or (b"pyspark" in words and b"daemon" in words and not children):
                found.append(pid)
    return found


def _stat(pid: int) -> list[str]:
    """A process's state, parent and so on; [] once it has ended."""
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return [] if fields[0] in "ZX" else fields
    return []


def _cpu(pid: int) -> int:
    """Ticks of CPU time that a process has used; -1 once it has ended."""
    fields = _stat(pid)
    return int(fields[11]) + int(fields[12]) if fields else -1


def environments(attack: Attack, deadline_s: float) -> Figures:
    """Sweep in restricted environments."""
    figures = Figures()
    while time.monotonic() < deadline_s:
        name = attack.stream.choice(list(ENVIRONMENTS))
        place = attack.place()
        output = place / "store"
        code, said = attack.run(
            [part.format(place=place) for part in ENVIRONMENTS[name]] + _sweep_words(output), cwd=place
        )
        problems = problems_of(code, said)
        # A refused folder holds nothing of ours to finish.
        if output.is_dir() and not output.is_symlink() and code != exit_codes.BAD_INPUT:
            problems += finished(attack, output)
        figures.note(f"{name} ({code})", problems)
        shutil.rmtree(place)
    return figures


def _sweep_words(output: Path) -> list[str]:
    return [*HIGHWATER, *SWEEP, "--local", "2", "--output", str(output)]


_SHELL: Final = ("sh", "-c")
ENVIRONMENTS: Final[dict[str, tuple[str, ...]]] = {
    "few open files": (*_SHELL, 'ulimit -n 24; exec "$@"', "-"),
    "fewer open files": (*_SHELL, 'ulimit -n 12; exec "$@"', "-"),
    "files of at most 4 kB": (*_SHELL, 'ulimit -f 8; exec "$@"', "-"),
    "400 MB of memory": (*_SHELL, 'ulimit -v 400000; exec "$@"', "-"),
    "150 MB of memory": (*_SHELL, 'ulimit -v 150000; exec "$@"', "-"),
    "standard output is closed": (*_SHELL, 'exec "$@" >&-', "-"),
    "standard output is full": (*_SHELL, 'exec "$@" >/dev/full', "-"),
    "no home": ("env", "-u", "HOME", "-u", "XDG_CACHE_HOME"),
    "home is a file": (*_SHELL, 'touch {place}/home; HOME={place}/home exec "$@"', "-"),
    "no temporary folder": ("env", "TMPDIR={place}/absent"),
    "plain C locale": ("env", "LC_ALL=C", "PYTHONUTF8=0", "PYTHONIOENCODING=ascii"),
    "the store is a file": (*_SHELL, 'touch {place}/store; exec "$@"', "-"),
    "the store is a link to nothing": (*_SHELL, 'ln -s absent {place}/store; exec "$@"', "-"),
    "the store is another's folder": (*_SHELL, 'mkdir {place}/store; touch {place}/store/.mine; exec "$@"', "-"),
}
"""Environment -> the words in front of the sweep's command."""


def random_settings(attack: Attack, deadline_s: float) -> Figures:
    """Run drawn settings through the command line, and measure each run."""
    figures = Figures()
    slowest_s = largest_mb = 0.0
    # A run of the sources takes up to three times as long as a compiled one.
    cpu_s = settings.CPU_S * (3 if build() == PLAIN else 1)
    while time.monotonic() < deadline_s:
        number = attack.stream.randrange(1 << 40)
        found = settings.measured(settings.drawn_case(number), cpu_s)
        slowest_s, largest_mb = max(slowest_s, found.cpu_s), max(largest_mb, found.memory_mb)
        figures.note(found.verdict, [f"{found.why}: {settings.replay(number, attack.folder)}"] if found.why else [])
    figures.more = f"; at most {slowest_s:.1f} s of CPU and {largest_mb:.0f} MB"
    return figures


def random_input(attack: Attack, deadline_s: float) -> Figures:
    """Random command lines, files and stores."""
    figures = Figures()
    while time.monotonic() < deadline_s:
        report = fuzz.fuzz(attack.stream.randrange(1 << 32), 50)
        for code, count in report.codes.items():
            figures.counts[f"ended with {code}"] += count
        figures.tries += report.cases
        figures.wrong += [str(finding) for finding in report.findings]
        sys.stdout.writelines(f"  {finding}\n" for finding in report.findings)
    return figures


PARTS: Final[dict[str, Callable[[Attack, float], Figures]]] = {
    "drivers": drivers,
    "disk": disk,
    "workers": workers,
    "environments": environments,
    "settings": random_settings,
    "input": random_input,
}


if __name__ == "__main__":
    raise SystemExit(main())
