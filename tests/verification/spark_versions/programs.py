"""What runs in the environments: `python -m tests.verification.spark_versions.programs NAME ARGUMENT...`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import highwater as hw
from scenarios.sweep.spark import takes_sources
from sim.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

RUNS: Final[dict[str, Any]] = {
    "scenarios": ["power", "canary"],
    "modes": "hw,kip101",
    "seeds": "40..44",
    "settings": {"min.insync.replicas": [1, 2]},
    "tasks": 4,
}
"""What `frames` asks for."""
STREAMED: Final[dict[str, Any]] = {"scenarios": "power", "modes": "hw,kip101"}
PER_BATCH: Final = 10
ENDLESS: Final = 1_000_000_000
"""Seeds that no query can run."""


def _say(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _write(frame: DataFrame, output: str) -> None:
    frame.coalesce(1).write.parquet(output)


def frames(master: str, folder: str) -> None:
    """The rows of `RUNS` by `highwater.spark.runs` and by the data source, and what that runs for a query."""
    session = hw.spark.session(master)
    _write(hw.spark.runs(session, **RUNS), f"{folder}/runs")
    if not takes_sources():
        try:
            hw.spark.register(session)
        except UnavailableError as error:
            _say(refused=str(error))
        return
    if master.startswith("sc://"):  # The server looks for sources in its own environment.
        hw.spark.register(session)
    options = {"scenarios": "power, canary", "modes": "hw,kip101", "seeds": "40..44", "tasks": "2"}
    reader = session.read.format("highwater").options(**options)
    _write(reader.option("settings", json.dumps(RUNS["settings"])).load(), f"{folder}/source")
    from highwater.spark_source import pushes_down

    hw.spark.register(session)
    pushed = pushes_down(session)
    session.sql(
        "CREATE OR REPLACE TEMPORARY VIEW runs USING highwater "
        f"OPTIONS (scenarios 'power', modes 'hw,kip101', seeds '40..{ENDLESS if pushed else 50}')"
    )
    rows = session.sql("SELECT seed, mode FROM runs WHERE seed >= 41 AND seed < 44 AND mode = 'kip101'").collect()
    _say(rows=sorted([row["seed"], row["mode"]] for row in rows), pushed=pushed)


def stream(master: str, folder: str) -> None:
    """Append seeds until it is killed."""
    session = hw.spark.session(master)
    frame = hw.spark.stream(session, **STREAMED, per_batch=PER_BATCH, tasks=2)
    writer = frame.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    query = writer.start(f"{folder}/rows")
    Path(folder, "started").touch()
    query.awaitTermination()


def end_stream(master: str, folder: str, output: str) -> None:
    """Add a last micro-batch, and read the sink as Spark does."""
    session = hw.spark.session(master)
    frame = hw.spark.stream(session, **STREAMED, per_batch=PER_BATCH, tasks=2)
    writer = frame.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).start(f"{folder}/rows").awaitTermination()
    _write(session.read.parquet(f"{folder}/rows"), output)


def _java_version(session: SparkSession) -> str:
    jvm: Any = session.sparkContext._jvm
    return str(jvm.System.getProperty("java.version"))


def java(master: str) -> None:
    """The Java on which 20 seeds run, or why there is none."""
    try:
        session = hw.spark.session(master)
        rows = hw.spark.runs(session, "canary", "hw", "0..20", tasks=2).collect()
    except UnavailableError as error:
        _say(refused=str(error))
    else:
        _say(java=_java_version(session), rows=len(rows))


def notebook(file: str) -> None:
    """Run a notebook, and compare what its cells show with what is kept in it."""
    from tests.notebooks.notebooks import run
    from tests.notebooks.test_notebooks import shown

    kept = json.loads(Path(file).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        found = shown(run(Path(file), Path(folder)))
    _say(cells=len(found), same=found == shown(kept))


def rows(master: str, table: str, output: str, *settings: str) -> None:
    """The keys and digests of a table of Delta Lake or Iceberg."""
    session = hw.spark.session(master, dict(word.split("=", 1) for word in settings))
    form, name = table.split(":", 1)
    found = session.read.format("delta").load(name) if form == "delta" else session.table(name)
    _write(found.select("scenario", "mode", "seed", "digest"), output)


PROGRAMS: Final[dict[str, Callable[..., None]]] = {
    program.__name__: program for program in (frames, stream, end_stream, java, notebook, rows)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
