"""Kills drivers and executors of sweeps into Delta and Iceberg tables: `python -m tests.verification.tables`.

Each sweep runs on two executors and is started again until it is complete; each time but the last the process group of
its driver, an executor or a Python worker gets SIGKILL at a random moment. Then the table must have each row of the
sweep once, and none besides. The first run fetches the formats' jars (Ivy, which comes with pyspark).
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from tests.verification.spark_versions import programs
from tests.verification.spark_versions.clusters import kill_group, process_of
from tests.verification.spark_versions.environments import environment, unpack_wheel, variables

PACKAGES: Final[dict[str, dict[str, str]]] = {
    "3.5.9": {
        "delta": "io.delta:delta-spark_2.12:3.3.3",
        "iceberg": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.0",
    },
    "4.0.5": {
        "delta": "io.delta:delta-spark_2.13:4.0.1",
        "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
    },
    "4.1.4": {
        "delta": "io.delta:delta-spark_4.1_2.13:4.3.1",
        "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    },
    "4.2.1": {"delta": "io.delta:delta-spark_4.2_2.13:4.4.0"},
    "4.3.0": {},
}
"""pyspark -> format -> its package; some have none on the registry."""
DELTA: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
ICEBERG: Final = {
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
}
KEY: Final = ("scenario", "mode", "seed")
MASTER: Final = "local-cluster[2,1,512]"
"""Two executors, in processes of their own."""
EXECUTORS: Final = {
    "spark.executor.memory": "512m",
    "spark.task.maxFailures": "16",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
MORE: Final = 120
"""Seeds that each start adds: some waves."""
SECONDS: Final = 2.0
"""The longest time until a kill, from the moment on that it waits for."""
WAIT_SECONDS: Final = 900
VICTIMS: Final = {"executors": "CoarseGrainedExecutorBackend", "workers": "pyspark.(daemon|worker)"}
"""What is killed besides drivers -> words of its command."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What was killed, the rows of the sweep, and what is wrong with the table (empty if nothing is)."""

    kills: str
    rows: int
    problem: str


@dataclass(frozen=True, slots=True)
class Target:
    """A sweep's folder and its table."""

    python: Path
    folder: Path
    table: str
    settings: dict[str, str]

    def start(self, seeds: int) -> subprocess.Popen[bytes]:
        """Start the sweep in a process group of its own."""
        words = [str(self.python), "-m", "highwater", "sweep", "power", "--modes", "hw,kip101"]
        words += ["--seeds", f"0..{seeds}", "--master", MASTER, "--output", str(self.folder / "out"), "--quiet"]
        words += ["--task-seconds", "0.3"]
        words += ["--table", self.table]
        for key, value in {**EXECUTORS, **self.settings}.items():
            words += ["--conf", f"{key}={value}"]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(words, stdout=log, stderr=log, env=variables(), start_new_session=True)

    def compared(self) -> str:
        """What is wrong with the table."""
        read = self.folder / "read"
        settings = [f"{key}={value}" for key, value in self.settings.items()]
        words = [str(self.python), "-m", programs.__name__, "rows", "local[2]", self.table, str(read), *settings]
        subprocess.run(words, check=True, env=variables(), stdout=subprocess.DEVNULL)
        rows = pq.read_table(read).to_pylist()
        expected = pq.read_table(self.folder / "out" / "results", columns=[*KEY, "digest"]).to_pylist()
        found = {tuple(row[name] for name in KEY): row["digest"] for row in rows}
        wanted = {tuple(row[name] for name in KEY): row["digest"] for row in expected}
        if len(found) < len(rows):
            return f"{len(rows) - len(found)} rows twice"
        return "" if found == wanted else f"{len(wanted.keys() - found.keys())} rows missing, or other rows"


def target(form: str, python: Path, folder: Path, package: str) -> Target:
    """A table of a format in a folder."""
    settings = {"spark.jars.packages": package, "spark.sql.warehouse.dir": str(folder / "warehouse")}
    if form == "delta":
        return Target(python, folder, f"delta:{folder / 'rows'}", settings | DELTA)
    lake = {"spark.sql.catalog.lake.warehouse": str(folder / "lake")}
    return Target(python, folder, "iceberg:lake.db.rows", settings | ICEBERG | lake)


def killed_often(swept: Target, kills: int, rng: random.Random) -> tuple[Counter[str], int, int]:
    """Kill a sweep `kills` times, then let it end; returns what was killed, the last range of seeds, and the exit code.

    Executors and workers are killed while a wave is written; a driver also just after, when the table gets the wave. A
    sweep that has ended by then is no kill.
    """
    killed: Counter[str] = Counter()
    seeds = 0
    while killed.total() < kills:
        seeds += MORE
        process = swept.start(seeds)
        for kind in ("executors", "workers", "executors", "drivers"):
            late = kind == "drivers" and rng.random() < 2 / 3
            if killed.total() == kills or not _has_new(
                swept.folder, "_MANIFEST.json" if late else "*.parquet", process
            ):
                break
            time.sleep(rng.uniform(0.0, SECONDS))
            found = [process.pid] if kind == "drivers" else process_of(process, VICTIMS[kind])
            if process.poll() is not None:
                break
            if kind == "drivers":
                kill_group(process)
            elif found:
                os.kill(rng.choice(found), signal.SIGKILL)
            else:
                continue
            killed[kind] += 1
            sys.stderr.write(f"{killed.total()} of {kills}: {kind}\n")
        process.wait(WAIT_SECONDS)
    return killed, seeds + MORE, swept.start(seeds + MORE).wait(WAIT_SECONDS)


def _has_new(folder: Path, pattern: str, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the results have a new file; False if the process ends first."""
    results = folder / "out" / "results"
    before = set(results.rglob(pattern))
    while process.poll() is None:
        with suppress(FileNotFoundError):  # A folder that Spark removes meanwhile.
            if set(results.rglob(pattern)) - before:
                return True
        time.sleep(0.02)
    return False


def tried(form: str, python: Path, folder: Path, package: str, kills: int, rng: random.Random) -> Tried:
    """Kill sweeps into a table, and compare it with their folder."""
    swept = target(form, python, folder, package)
    killed, seeds, code = killed_often(swept, kills, rng)
    problem = swept.compared() if code in (0, 1, 3) else (folder / "log").read_text(encoding="utf-8")[-2000:]
    count = len(pq.read_table(folder / "out" / "results", columns=["seed"]))
    said = ", ".join(f"{number} {kind}" for kind, number in sorted(killed.items()))
    if not problem and count != 2 * seeds:
        problem = f"the sweep has {count} rows"
    return Tried(f"{said} killed", count, problem)


def main() -> int:
    """Kill and compare; exits with 1 if a table is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default="3.5.9", choices=[name for name, each in PACKAGES.items() if each])
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    python = environment(asked.version)
    unpack_wheel()
    wrong = False
    for form, package in PACKAGES[asked.version].items():
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            begin = time.monotonic()
            done = tried(form, python, Path(place), package, asked.kills, random.Random(asked.seed))
            took = time.monotonic() - begin
        said = f"{form}, pyspark {asked.version}: {done.kills}, {done.rows} rows, {took:.0f} s: "
        sys.stdout.write(f"{said}{done.problem or 'each row once'}\n")
        sys.stdout.flush()
        wrong |= bool(done.problem)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
