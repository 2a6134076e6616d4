"""All on one session of this machine, made as a sweep makes it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from socketserver import BaseServer
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import create_autospec

import pytest

pytest.importorskip("pyspark")

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from scenarios.format import plugins
from scenarios.format.catalogue import load
from scenarios.sweep import spark, store
from scenarios.sweep.driver import Interrupted, Progress, run_sweep
from scenarios.sweep.folder import open_folder
from scenarios.sweep.local import LocalBackend
from scenarios.sweep.spark import SparkBackend
from scenarios.version import build
from sim.errors import UnavailableError
from tests import named
from tests.places import ROOT
from tests.scenarios.sweep.here import Here
from tests.scenarios.sweep.spark_session import SECRET
from tests.scenarios.sweep.spark_session import session as session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from scenarios.format.grid import Grid
    from scenarios.sweep.driver import Backend

POWER = named.sweep((load("power"),), {"power": ("hw", "kip101")}, 0, 40)


@pytest.fixture
def backend(session: SparkSession) -> SparkBackend:
    return SparkBackend()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    output = tmp_path_factory.mktemp("local") / "sweep"
    run_sweep(POWER, output, Here(), chunks=4)
    return store.Store(output).rows()


@pytest.fixture(params=["tasks", "spark"])
def writer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who writes the parts: tasks on this machine, or Spark as on a cluster."""
    if request.param == "spark":
        monkeypatch.setattr(spark, "_is_local", lambda _: False)
    return str(request.param)


@pytest.mark.parametrize("chunks", [3, pytest.param(17, marks=pytest.mark.world)])
def test_rows_are_those_of_this_process(
    backend: SparkBackend, expected: dict[str, list[Any]], chunks: int, writer: str, tmp_path: Path
) -> None:
    seen: list[Progress] = []
    whole = run_sweep(POWER, tmp_path, backend, chunks=chunks, report=seen.append)
    assert whole["complete"]
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 80, 80)
    assert store.Store(tmp_path).rows() == expected
    suffix = {"tasks": "[0-9].parquet", "spark": "[0-9].zstd.parquet"}[writer]
    names = [path.name for path in tmp_path.glob("results/wave=*-00000/*.parquet")]
    assert len(names) == len([name for name in names if re.fullmatch(rf"part-.*{suffix}", name)]) == chunks


def test_settings_of_a_grid_are_columns_with_dots(backend: SparkBackend, session: SparkSession, tmp_path: Path) -> None:
    grid: Grid = {"min.insync.replicas": (1, 2), "unclean.leader.election.enable": (False, True), "acks": ("1", "all")}
    sweep = replace(POWER, end_seed=2, grid=grid)
    run_sweep(sweep, tmp_path / "spark", backend, chunks=3)
    run_sweep(sweep, tmp_path / "local", Here(), chunks=2)
    assert store.Store(tmp_path / "spark").rows() == store.Store(tmp_path / "local").rows()
    frame = session.read.parquet(str(tmp_path / "spark" / "results"))
    assert frame.where("`min.insync.replicas` = 2 and acks = 'all'").count() == 8


def test_runs_with_blows_have_the_same_rows(backend: SparkBackend, tmp_path: Path) -> None:
    sweep = replace(named.sweep((load("reassignments"),), {"reassignments": ("elr-4.3",)}, 22, 24), blows=1)
    run_sweep(sweep, tmp_path / "spark", backend, chunks=2)
    run_sweep(sweep, tmp_path / "local", Here(), chunks=1)
    spark_rows, local_rows = (
        store.Store(tmp_path / name).choose(runs=store.StoredRuns.ALL).rows() for name in ("spark", "local")
    )
    assert spark_rows == local_rows
    assert any(local_rows["blow"])


@pytest.mark.world
def test_rows_with_a_plugin_are_equal_with_any_number_of_workers(backend: SparkBackend, tmp_path: Path) -> None:
    backends: dict[str, Backend] = {"spark": backend, "one": LocalBackend(1), "two": LocalBackend(2)}
    with plugins.loaded(str(ROOT / "tests" / "fixtures" / "max_of_both.py")):
        sweep = named.sweep((load("blinks"),), {"blinks": ("kip320", "kip320-max")}, 8, 12)
        for name, one in backends.items():
            run_sweep(sweep, tmp_path / name, one, chunks=2)
        first, *others = (store.Store(tmp_path / name).rows() for name in backends)
    assert [rows == first for rows in others] == [True, True]
    assert set(first["verdict"]) <= {"ok", "violation"}
    assert "blink" in ",".join(first["fault_kinds"])


def test_jobs_say_what_is_run(session: SparkSession, tmp_path: Path) -> None:
    sweep = replace(POWER, end_seed=2)
    run_sweep(sweep, tmp_path, SparkBackend(title=sweep.title), chunks=1)
    jobs = session.sparkContext._jsc.sc().statusStore().jobsList(None)
    described = {jobs.apply(place).description().toString() for place in range(jobs.size())}
    assert any("highwater: power in hw, kip101, seeds 0..2, wave=" in one for one in described)


def test_credentials_reach_no_file(session: SparkSession, tmp_path: Path) -> None:
    run_sweep(POWER, tmp_path, SparkBackend("local[2]", {"spark.hadoop.fs.s3a.secret.key": SECRET}), chunks=1)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(SECRET.encode() in path.read_bytes() for path in files)


def test_a_session_that_was_there_goes_on(session: SparkSession, backend: SparkBackend, tmp_path: Path) -> None:
    assert backend.start(open_folder(tmp_path), lambda: None) == 2
    backend.close()
    assert session.range(3).count() == 3


@pytest.mark.world
def test_a_signal_cancels_the_job(
    backend: SparkBackend, session: SparkSession, writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = {"tasks": "results/*/part-*", "spark": "results/*/_temporary/*/task_*"}[writer]
    monkeypatch.setattr(spark, "STOP_SECONDS", 600)  # Were it not cancelled, the wave would be finished.

    def interrupt() -> None:
        while not list(tmp_path.glob(finished)):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(Interrupted):
        run_sweep(replace(POWER, end_seed=4_000), tmp_path, backend, chunks=100, wave_units=4_000)
    summary = store.read_json(open_folder(tmp_path), "summary.json")
    assert (summary["complete"], summary["exit_code"], summary["runs"]) == (False, 130, 0)
    assert {path.name for path in tmp_path.rglob("*")} <= {"run.json", "summary.json", "violations.jsonl", "results"}
    assert session.range(3).count() == 3


def test_other_code_on_workers_is_refused(
    backend: SparkBackend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spark, "code_version", lambda: "c0de")
    with pytest.raises(UnavailableError, match=r"workers have other code \(.*\) than this \(c0de\)"):
        run_sweep(POWER, tmp_path, backend, chunks=1)


DRIVER = """
import sys
from pathlib import Path
from scenarios.format.catalogue import load
from scenarios.sweep.spark import SparkBackend
from scenarios.sweep.driver import run_sweep
from tests import named
from tests.scenarios.sweep.here import Here

sweep = named.sweep((load("power"),), {"power": ("hw", "kip101")}, 0, 100)
run_sweep(sweep, Path(sys.argv[1]), SparkBackend("local[2]"), chunks=10, wave_units=40)
"""


@pytest.mark.world
def test_a_killed_driver_leaves_what_another_finishes(backend: SparkBackend, tmp_path: Path) -> None:
    sweep = replace(POWER, end_seed=100)
    output = tmp_path / "output"
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, output], env=environment, stderr=subprocess.DEVNULL)
    while not list(output.glob("results/*-00000/_MANIFEST.json")):
        assert driver.poll() is None
        time.sleep(0.02)
    driver.kill()
    driver.wait()
    assert store.Store(output).missing
    assert run_sweep(sweep, output, backend, chunks=3)["complete"]
    run_sweep(sweep, tmp_path / "undisturbed", Here(), chunks=4)
    assert store.Store(output).rows() == store.Store(tmp_path / "undisturbed").rows()


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", "local[1,4]"),
        ("local[3]", "local[3,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_local_masters_try_tasks_again(master: str, expected: str) -> None:
    assert spark._with_retries(master) == expected


def test_a_master_is_set_only_if_nothing_else_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert not spark._is_set_elsewhere({"spark.executor.memory": "1g"})
    assert spark._is_set_elsewhere({"spark.master": "yarn"})
    with monkeypatch.context() as context:
        context.setenv("SPARK_REMOTE", "sc://host")
        assert spark._is_set_elsewhere({})
    with monkeypatch.context() as context:
        context.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn pyspark-shell")
        assert spark._is_set_elsewhere({})
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    defaults = tmp_path / "spark-defaults.conf"
    defaults.write_text("spark.executor.memory 1g\n# spark.master yarn\n")
    assert not spark._is_set_elsewhere({})
    defaults.write_text("spark.master   yarn\n")
    assert spark._is_set_elsewhere({})


@pytest.mark.parametrize(
    ("master", "conf", "remote", "expected"),
    [
        (None, {}, "", True),
        ("local[2]", {"spark.driver.memory": "2g"}, "", True),
        (None, {"spark.master": "local[2]"}, "", False),
        ("spark://host:7077", {}, "", False),
        ("sc://host", {}, "", False),
        ("local[2]", {"spark.remote": "local[2]"}, "", False),
        ("local[2]", {"spark.api.mode": "connect"}, "", False),
        ("local[2]", {}, "sc://host", False),
    ],
)
def test_a_context_is_enough_on_this_machine_without_connect(
    monkeypatch: pytest.MonkeyPatch, master: str | None, conf: dict[str, str], remote: str, expected: bool
) -> None:
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    if remote:
        monkeypatch.setenv("SPARK_REMOTE", remote)
    assert spark._is_this_machine(master, conf) is expected


def test_the_daemon_imports_what_runs_need_and_starts_no_thread() -> None:
    code = "import os, sys; from scenarios.sweep import spark_daemon as d; d.prepare(); "
    code += "print(*(name in sys.modules for name in ('scenarios.single.execution', 'pyarrow', 'numpy'))); "
    code += "print(len(os.listdir('/proc/self/task')))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True False False\n1\n"


def test_missing_pyspark_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spark, "PathFinder", SimpleNamespace(find_spec=lambda _: None))
    with pytest.raises(UnavailableError, match=r"^pyspark is not installed: pip install .*, or .* --local N$"):
        run_sweep(POWER, tmp_path, SparkBackend(), chunks=1)


def test_a_session_on_a_cluster_shows_no_progress_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    asked: dict[str, str] = {}

    class Builder:
        def config(self, key: str, value: str) -> Builder:
            asked[key] = value
            return self

        def getOrCreate(self) -> None:  # noqa: N802 - Spark's name
            """As Spark's."""

    monkeypatch.setattr(spark, "shim", lambda home: home)
    monkeypatch.setattr(SparkSession, "builder", Builder())
    monkeypatch.setenv("JAVA_HOME", os.environ.get("JAVA_HOME", ""))
    spark.new_session("yarn", {})
    assert asked["spark.ui.showConsoleProgress"] == "false"
    spark.new_session("yarn", {"spark.ui.showConsoleProgress": "true"})
    assert asked["spark.ui.showConsoleProgress"] == "true"


def test_missing_java_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: str) -> None:
        raise UnavailableError("Spark needs Java")

    monkeypatch.setattr(spark, "java_of_spark", none)
    with pytest.raises(UnavailableError, match="Spark needs Java"):
        spark.new_session("yarn", {})


def test_an_error_of_the_jvm_or_of_a_package_is_one_line() -> None:
    class Session:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def range(self, *_: int) -> None:
            raise self.error

    java = Py4JError("An error occurred.\n: java.lang.NoClassDefFoundError: X")
    with pytest.raises(UnavailableError, match=r"^Spark's workers do not start: java.lang.NoClassDefFoundError: X$"):
        spark.check_workers(cast("Any", Session(java)), mixed_builds=False)
    with pytest.raises(UnavailableError, match=r"^Spark's workers do not start: pyarrow requires NumPy 2$"):
        spark.check_workers(cast("Any", Session(ImportError("pyarrow requires NumPy 2"))), mixed_builds=False)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "Spark failed: its Java has ended; "),
        (Py4JNetworkError("Error while sending or receiving"), "Spark failed: its Java has ended; "),
        (
            Py4JError(
                "An error occurred.\n: org.apache.spark.SparkException: Job aborted: ExecutorLostFailure\n\tat x"
            ),
            "Spark failed: org.apache.spark.SparkException: Job aborted: ExecutorLostFailure; ",
        ),
        (
            PySparkException('<_InactiveRpcError of RPC:\n\tstatus = UNAVAILABLE\n\tdetails = "refused"\n>'),
            "Spark failed: refused; ",
        ),
        (PySparkException("ModuleNotFoundError: No module named 'sim'"), "Spark's workers have no Highwater "),
    ],
)
def test_a_job_that_spark_cannot_finish_is_one_line(error: Exception, reason: str) -> None:
    failure = spark._failure(error)
    assert failure is not None
    assert str(failure).startswith(reason)
    assert "\n" not in str(failure)


def test_an_exception_of_this_code_stays_an_internal_error() -> None:
    worker = Py4JError("An error.\n: PythonException: Traceback (most recent call last):\nKeyError: 'x'")
    assert spark._failure(worker) is None
    assert spark._failure(KeyError("x")) is None


def test_the_thread_for_accumulators_prints_no_end_of_the_jvm(capsys: pytest.CaptureFixture[str]) -> None:
    from pyspark import accumulators

    spark._let_jvm_end_quietly()
    (kind, *_) = (
        each for each in vars(accumulators).values() if isinstance(each, type) and issubclass(each, BaseServer)
    )
    server: Any = create_autospec(kind, instance=True)

    def said(call: Callable[[str], object], text: str) -> str:
        try:
            call(text)
        except Exception:
            kind.handle_error(server, cast("Any", None), None)
        return capsys.readouterr().err

    def end(text: str) -> None:
        raise EOFError(text)

    assert said(end, "") == ""
    assert "Traceback" in said(int, "x")


@pytest.mark.parametrize(
    ("version", "calls"),
    [((3, 5), ["addJobTag", "cancelJobsWithTag"]), ((4, 0), ["addTag", "interruptTag"])],
)
def test_before_4_0_the_context_has_the_tags(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int], calls: list[str]
) -> None:
    from pyspark.sql import SparkSession

    session = create_autospec(SparkSession, instance=True)
    monkeypatch.setattr(spark, "_pyspark", lambda: version)
    spark._set_tag(session, "t")
    spark._cancel(session, "t")
    assert [name.rpartition(".")[2] for name, _, _ in session.mock_calls if "__" not in name] == calls


def test_the_reason_is_the_line_that_says_it() -> None:
    java = (
        "An error occurred while calling X.\n: org.apache.spark.SparkException: Could not parse Master URL: 'x'\n\tat"
    )
    assert spark._reason(Exception(java)) == "org.apache.spark.SparkException: Could not parse Master URL: 'x'"
    assert spark._reason(Exception("[CODE] words\nmore")) == "[CODE] words"
    assert spark._reason(ValueError()) == "ValueError"


def test_workers_of_another_build_are_refused_unless_allowed(
    backend: SparkBackend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = build()
    monkeypatch.setattr(spark, "build", lambda: "another build")
    with pytest.raises(UnavailableError, match=rf"^Spark's workers run another build \({re.escape(here)}\) than this"):
        backend.start(open_folder(tmp_path), lambda: None)
    allowed = SparkBackend(mixed_builds=True)
    assert allowed.start(open_folder(tmp_path), lambda: None) > 0


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "E\nModuleNotFoundError: No module named 'sim'\n\tat x",
            "Spark's workers have no Highwater (No module named 'sim'): ",
        ),
        (
            "Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run",
            "Spark's workers have Python 3.12, this is 3.11: ",
        ),
        ("sim.errors.InputError: the sources in /x are not\n\n\tat", "Spark's workers: the sources in /x are not"),
    ],
)
def test_trouble_of_workers_is_one_line(text: str, line: str) -> None:
    refusal = spark._worker_refusal(text)
    assert refusal is not None
    assert refusal.startswith(line)
    assert "\n" not in refusal


def test_other_failures_of_workers_are_not_explained() -> None:
    assert spark._worker_refusal("java.io.IOException: lost") is None


def test_workers_here_import_what_the_driver_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    monkeypatch.setenv("PYTHONPATH", "/other")
    spark._import_as_here()
    assert os.environ["PYTHONPATH"] == f"{Path(spark.__file__).parents[2]}{os.pathsep}/other"
    assert os.environ["PYTHONSAFEPATH"] == "1"
