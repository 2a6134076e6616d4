"""Kills drivers and executors of sweeps into Delta and Iceberg tables: `python -m tests.verification.tables`.

Each sweep is started again until it is complete; each time but the last its process group (driver, JVM, workers) or one
worker gets SIGKILL at a random moment. Then the table must have each row of the sweep once, and none besides. The first
run fetches the formats' jars (Ivy, which comes with pyspark).
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
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from tests.verification.spark_versions import environment

PACKAGES: Final = {
    "3.5.9": ("io.delta:delta-spark_2.12:3.3.3", "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.0"),
    "4.0.5": ("io.delta:delta-spark_2.13:4.0.1", "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0"),
}
"""pyspark -> the packages of Delta and of Iceberg for it."""
EXTENSIONS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
}
KEY: Final = ("scenario", "mode", "seed")
READ: Final = """
import sys
from scenarios.sweep import spark
conf = dict(word.split("=", 1) for word in sys.argv[3:])
session = spark.new_session("local[2]", conf)
form, name = sys.argv[1].split(":", 1)
rows = session.read.format("delta").load(name) if form == "delta" else session.table(name)
rows.select("scenario", "mode", "seed", "digest").coalesce(1).write.parquet(sys.argv[2])
"""


def sweep(python: Path, folder: Path, table: str, conf: list[str], seeds: int) -> subprocess.Popen[bytes]:
    """Start a sweep in a process group of its own."""
    words = [str(python), "-m", "highwater", "sweep", "power", "--modes", "hw,kip101", "--seeds", f"0..{seeds}"]
    words += ["--master", "local[2]", "--output", str(folder / "out"), "--table", table, "--quiet"]
    for each in conf:
        words += ["--conf", each]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)


def worker_of(process: subprocess.Popen[bytes]) -> int | None:
    """A Python worker of the sweep's Spark, if one is there."""
    found = subprocess.run(["pgrep", "-g", str(process.pid), "-f", "pyspark"], capture_output=True, text=True)
    workers = [int(pid) for pid in found.stdout.split() if int(pid) != process.pid]
    return max(workers, default=None)


def killed_often(python: Path, folder: Path, table: str, conf: list[str], kills: int, rng: random.Random) -> int:
    """Kill a sweep `kills` times, then let it end; returns its exit code. Each start asks for more seeds than the last.

    A sweep that ends before its moment comes is no kill: the next moments come earlier.
    """
    done = 0
    longest = 12.0
    while done < kills:
        process = sweep(python, folder, table, conf, 400 + 400 * done)
        try:
            process.wait(rng.uniform(3.0, longest))
        except subprocess.TimeoutExpired:
            worker = worker_of(process) if done % 3 == 2 else None
            if worker is None:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                os.kill(worker, signal.SIGKILL)
            done += 1
            if worker is not None:
                process.wait(600)
        else:
            longest = max(4.0, longest * 0.8)
        process.wait()
    last = sweep(python, folder, table, conf, 400 + 400 * kills)
    return last.wait(900)


def compared(python: Path, folder: Path, table: str, conf: list[str]) -> str:
    """What is wrong with the table; empty if it has each row of the folder once."""
    read = folder / "read"
    subprocess.run([str(python), "-c", READ, table, str(read), *conf], check=True)
    rows = pq.read_table(read).to_pylist()
    expected = pq.read_table(folder / "out" / "results", columns=[*KEY, "digest"]).to_pylist()
    found = {tuple(row[name] for name in KEY): row["digest"] for row in rows}
    wanted = {tuple(row[name] for name in KEY): row["digest"] for row in expected}
    if len(found) < len(rows):
        return f"{len(rows) - len(found)} rows twice"
    return "" if found == wanted else f"{len(wanted.keys() - found.keys())} rows missing, or other rows"


def main() -> int:
    """Kill and compare; exits with 1 if a table is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default="3.5.9", choices=PACKAGES)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    python = environment(asked.version)
    wrong = 0
    for form, package in zip(("delta", "iceberg"), PACKAGES[asked.version], strict=True):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            settings = {**EXTENSIONS, "spark.sql.catalog.lake.warehouse": str(folder / "lake")}
            conf = [f"spark.jars.packages={package}", f"spark.sql.warehouse.dir={folder / 'warehouse'}"]
            only = "lake" if form == "iceberg" else "delta"
            conf += [f"{key}={value}" for key, value in settings.items() if only in f"{key}{value}".lower()]
            table = f"delta:{folder / 'rows'}" if form == "delta" else "iceberg:lake.db.rows"
            begin = time.monotonic()
            code = killed_often(python, folder, table, conf, asked.kills, random.Random(asked.seed))
            problem = (
                compared(python, folder, table, conf) if code in (0, 1, 3) else (folder / "log").read_text()[-2000:]
            )
            count = len(pq.read_table(folder / "out" / "results", columns=["seed"]))
            took = time.monotonic() - begin
            sys.stdout.write(
                f"{form}, pyspark {asked.version}: {asked.kills} kills, {count} rows, exit {code}, {took:.0f} s: "
                f"{problem or 'each row once'}\n"
            )
            sys.stdout.flush()
            wrong += bool(problem)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
