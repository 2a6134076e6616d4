"""Runs a sweep on Spark: a task per chunk, a job per wave, and DataFrames only, so that Spark Connect works too.

On this machine, the tasks of a sweep into a folder need neither DataFrames nor a session: a context starts in half the
time.

It imports pyspark, and so it is imported only on the driver, when Spark is needed.
"""

from __future__ import annotations

import errno
import math
import os
import re
import secrets
import signal
import site
import sys
import threading
import warnings
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from importlib.machinery import PathFinder
from itertools import islice
from pathlib import Path
from socketserver import BaseServer
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from scenarios import plugged
from scenarios.format.plugins import ensure
from scenarios.redaction import masked
from scenarios.requirements import to_install
from scenarios.single.rows import ROWS_VERSION, ddl
from scenarios.single.run import prepare_process
from scenarios.sweep import ownership, parts
from scenarios.sweep.extent import runs_of, units
from scenarios.sweep.folder import LocalFolder
from scenarios.sweep.java import java_of_spark, kept, major_minor, shim
from scenarios.sweep.masters import check as check_master
from scenarios.sweep.units import grid_of, rows_of, variants_of
from scenarios.version import build, code_version
from sim.errors import InputError, StorageError, UnavailableError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from scenarios.single.rows import Row
    from scenarios.sweep.driver import Tick, WavePlan
    from scenarios.sweep.extent import Piece
    from scenarios.sweep.folder import Folder
    from scenarios.sweep.tables import RowTable

OLDEST: Final = (3, 5)
TOO_NEW: Final = (4, 4)
"""Supported versions of pyspark, end exclusive."""
NEEDED: Final = f"pyspark>={OLDEST[0]}.{OLDEST[1]},<{TOO_NEW[0]}.{TOO_NEW[1]}"
TAGS: Final = (4, 0)
"""The first pyspark whose sessions have tags without Connect, too."""
_UNWRITABLE: Final = "Permission denied|Access ?Denied|Read-only file system|NoSuchBucket"
"""Messages of a storage that stopped accepting writes."""
SOURCES: Final = (4, 0)
"""The first pyspark that has data sources in Python."""
PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"
"""Whether filters of a query reach them: from 4.1 on, and there a reader that takes them fails if it is off."""
TASKS: Final = 64
"""Tasks of rows that are kept nowhere, unless a number is given or there are fewer seeds."""
TASK_SEEDS_MAX: Final = 1_000
"""Most seeds of such a task, unless the number of tasks is given: a failed task repeats them."""
POLL_SECONDS: Final = 0.2
STOP_SECONDS: Final = 15.0
BATCH_ROWS: Final = 1_000
"""Rows that a worker buffers."""
QUICK_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that lives shortly or only moves rows, a quick start matters more than the second compiler and parallel
collector."""
LOCAL_CONF: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Verifying the 18,000 classes of Spark's jars would take a sixth of the start.
    "spark.driver.extraJavaOptions": f"{QUICK_JVM} -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
    # On loopback TCP, each task waits 40 ms for delayed acknowledgements.
    "spark.python.unix.domain.socket.enabled": "true",
}
"""Defaults of a session on this machine."""
DAEMON: Final = "scenarios.sweep.spark_daemon"
"""The daemon of workers that only run seeds."""
QUIET: Final = {"spark.ui.showConsoleProgress": "false"}
"""A sweep shows its own progress."""
REDACTION: Final = {
    "spark.redaction.regex": "(?i)secret|passw|token|credential|[._-]?key",
    "spark.redaction.string.regex": r"(?<=://)[^/\s]+@",
}
"""Spark redacts settings with these names, and user info in URIs, in its pages and plans."""
LOG4J: Final = """\
# A failed job raises an exception; messages about retries and cancelled jobs are noise.
rootLogger.level = fatal
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
# Without its own level, this class sets the root's to WARN.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = fatal
"""

_VERSION: Final = {parts.VERSION_KEY: ROWS_VERSION}
_REFUSED: Final = r"Master URL|(IllegalArgument|NumberFormat)Exception|INVALID_CONF"

_LOCAL: Final = re.compile(r"local(\[.*\])?")
"""Masters on this machine."""

T = TypeVar("T")


class SparkBackend:
    """Runs waves on Spark.

    An existing session is used and not stopped. Otherwise one is created: as the environment says (``SPARK_REMOTE``,
    spark-submit, ``spark-defaults.conf``), else on `master`, else on all cores of this machine.

    Args:
        master: a Spark master, or ``sc://`` for Spark Connect.
        conf: Spark settings. They may contain credentials, so they are passed on and never stored.
        mixed_builds: whether workers may run another build (plain, compiled) than the driver.
        title: what is run, for the names of Spark's application and jobs.
        table: gets a copy of each wave.
    """

    name = "spark"

    def __init__(
        self,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        *,
        mixed_builds: bool = False,
        title: str = "",
        table: RowTable | None = None,
    ) -> None:
        self._master = master
        self._table = table
        self._title = f"highwater: {title}" if title else "highwater"
        self._conf = dict(conf or {})
        self._mixed_builds = mixed_builds
        self._spark: SparkSession | None = None
        self._context: SparkContext | None = None
        """Runs the tasks if they are processes of this machine and write into a folder of it."""
        self._own = False

    def start(self, folder: Folder, poll: Callable[[], None]) -> int:
        """Find or create a session, check the code of every worker, and try to write; see `Backend`.

        Raises:
            InputError: Spark refuses a setting.
            UnavailableError: pyspark, Java or a worker's code is missing or has another version.
            StorageError: executors cannot write to the folder, or write elsewhere.
        """
        self._spark, mixed = active_session(), self._mixed_builds
        is_here = isinstance(folder, LocalFolder)
        if self._spark is None:
            self._own = True
            conf = {"spark.app.name": self._title} | self._conf
            if is_here and self._table is None and _is_this_machine(self._master, conf):
                self._context = _attended(lambda: new_context(self._master, conf), poll)
            else:
                self._spark = _attended(lambda: new_session(self._master, conf), poll)
        if is_here and self._spark is not None and _is_local(self._spark):
            self._context = self._spark.sparkContext
        if (context := self._context) is not None:
            # These are all workers, and they write as this process does.
            return _attended(lambda: _check_workers_here(context, mixed_builds=mixed), poll)
        spark = self._spark
        assert spark is not None
        _attended(lambda: check_workers(spark, mixed_builds=mixed), poll)
        _attended(lambda: _check_folder(spark, folder), poll)
        # Executors may start with the first job, so only a later one reaches all of them.
        return _attended(lambda: check_workers(spark, mixed_builds=mixed), poll)

    def run_waves(self, sweep: str, folder: Folder, plans: Iterator[WavePlan], tick: Tick) -> Iterator[WavePlan]:
        """See `Backend`: a job for each wave; tasks of the second wave start when the first has no more."""
        begun: list[tuple[WavePlan, Future[None]]] = []

        def poll() -> None:
            tick((plan, min(_tasks_done(folder, plan.wave), len(plan.chunks))) for plan, _ in begun)

        try:
            while True:
                while len(begun) < 2 and (plan := next(plans, None)) is not None:
                    begun.append((plan, self._run_wave(sweep, folder, plan)))
                if not begun:
                    return
                plan, writing = begun[0]
                _attended(writing.result, poll)
                del begun[0]
                yield plan
        except BaseException as error:
            # In a thread, for a client of Connect calls a server that has ended again and again, for minutes.
            cancelling = [_in_thread(partial(self._cancel, _tag(plan))) for plan, _ in begun]
            wait([*cancelling, *(writing for _, writing in begun)], STOP_SECONDS)
            if "No space left on device" in str(error):
                raise OSError(errno.ENOSPC, "No space left on device") from None
            if isinstance(error, Exception) and re.search(_UNWRITABLE, str(error)):
                raise _cannot_write(folder, error) from None
            if isinstance(error, Exception) and (failure := _failure(error)) is not None:
                raise failure from None
            raise

    @property
    def copies(self) -> SparkBackend | None:
        """This object, if there is a table."""
        return None if self._table is None else self

    def copy(self, folder: Folder, wave: str, grid: Sequence[str], *, again: bool) -> None:
        """See `Copies`."""
        assert self._spark is not None
        assert self._table is not None
        try:
            self._table.copy(self._spark, folder, wave, grid, again=again)
        except Exception as error:
            if not _is_of_spark(error):
                raise
            place = f"{self._table.form} {self._table.name}"
            raise StorageError(masked(f"Spark cannot append {wave} to {place}: {_last_cause(error)}")) from None

    def close(self) -> None:
        """Stop the session or context if this object created it."""
        if self._own and (started := self._spark or self._context) is not None:
            stopping = _in_thread(started.stop)
            wait([stopping], STOP_SECONDS)
        self._spark = self._context = None

    def _run_wave(self, sweep: str, folder: Folder, plan: WavePlan) -> Future[None]:
        """Start the job of a wave, whose tasks write the rows of their chunks."""
        if self._context is not None:
            assert isinstance(folder, LocalFolder)
            return _in_thread(partial(_run_wave_here, self._context, sweep, folder, plan, self._title))
        assert self._spark is not None
        return _in_thread(partial(_run_wave, self._spark, sweep, folder, plan, self._title))

    def _cancel(self, tag: str) -> None:
        if self._context is not None:
            self._context.cancelJobsWithTag(tag)
        elif self._spark is not None:
            _cancel(self._spark, tag)


def active_session() -> SparkSession | None:
    """The active session; None if there is none.

    Raises:
        UnavailableError: pyspark or pandas is missing, or pyspark has another version than those supported.
    """
    for package in ("pyspark", "pandas"):
        if PathFinder.find_spec(package) is None:  # Not `importlib.util`, which asks `scenarios.spared`, too.
            raise UnavailableError(f"{package} is not installed: {to_install('spark')}, or sweep with --local N")
    # pyspark warns that pandas 3 is not fully supported yet; pandas is not used here.
    warnings.filterwarnings("ignore", message=".*pandas", category=FutureWarning)
    import pyspark
    from pyspark.sql import SparkSession

    if not OLDEST <= _pyspark() < TOO_NEW:
        raise UnavailableError(f"pyspark {pyspark.__version__} is installed: '{NEEDED}' is needed")
    return SparkSession.getActiveSession()


def _pyspark() -> tuple[int, int]:
    """The version of pyspark: major and minor."""
    import pyspark

    return major_minor(pyspark.__version__)


def new_session(master: str | None, conf: Mapping[str, str]) -> SparkSession:
    """Create a session on a master (see `SparkBackend`), silently if that is this machine. `conf` overrides all other
    settings.

    Raises:
        InputError: the master's URL or a setting is invalid.
        UnavailableError: Spark does not start; with the reason.
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for key, value in _settings(master, conf).items():
        builder = builder.config(key, value)
    return _started(builder.getOrCreate)


def new_context(master: str | None, conf: Mapping[str, str]) -> SparkContext:
    """Create a context on this machine, whose workers only run seeds; errors as `new_session`."""
    from pyspark import SparkConf, SparkContext

    settings = _settings(master, conf)
    if not _is_archive(_code_root()):
        settings = {"spark.python.daemon.module": DAEMON} | settings
    return _started(lambda: SparkContext.getOrCreate(SparkConf().setAll(list(settings.items()))))


def _settings(master: str | None, conf: Mapping[str, str]) -> dict[str, str]:
    """All settings of a session or context; also prepares the environment of the JVM that is to start."""
    import pyspark

    settings = dict(conf)
    if master is None and not _is_set_elsewhere(conf):
        master = "local[*]"
    if named := master or settings.get("spark.remote") or settings.get("spark.master"):
        check_master(named)
    if master is not None and master.startswith("sc://"):
        settings["spark.remote"] = master
    elif master is not None:
        settings["spark.master"] = _with_retries(master)
        if master.startswith("local"):
            settings = LOCAL_CONF | settings
            _quieten()
            _import_as_here()
    if _starts_jvm(settings):
        settings = REDACTION | QUIET | settings
        _let_jvm_end_quietly()
        os.environ["JAVA_HOME"] = str(shim(java_of_spark(pyspark.__version__).home))
        os.environ.setdefault("SPARK_LAUNCHER_OPTS", QUICK_JVM)  # Of the JVM that finds the command of Spark's.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return settings


def _started(start: Callable[[], T]) -> T:
    try:
        return start()
    except Exception as error:  # the user has to repair it, whatever it is
        kind = InputError if re.search(_REFUSED, str(error)) else UnavailableError
        raise kind(masked(f"Spark does not start: {_reason(error)}")) from None


def _is_this_machine(master: str | None, conf: Mapping[str, str]) -> bool:
    """Whether a new session would start a JVM on this machine that runs the tasks, without Connect."""
    if {"spark.remote", "spark.api.mode"} & conf.keys() or "SPARK_REMOTE" in os.environ or not _starts_jvm({**conf}):
        return False
    return _LOCAL.fullmatch(master or ("" if _is_set_elsewhere(conf) else "local")) is not None


def _is_set_elsewhere(conf: Mapping[str, str]) -> bool:
    """Whether a platform or the user has chosen a master."""
    if {"spark.master", "spark.remote"} & conf.keys() or {"SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"} & os.environ.keys():
        return True
    home, folder = os.environ.get("SPARK_HOME"), os.environ.get("SPARK_CONF_DIR")
    defaults = Path(folder or Path(home or "") / "conf") / "spark-defaults.conf"
    has_default = defaults.is_file() and re.search(r"^\s*spark\.(master|remote)\b", defaults.read_text(), re.MULTILINE)
    return bool(has_default) or "--master" in os.environ.get("PYSPARK_SUBMIT_ARGS", "")


def _with_retries(master: str) -> str:
    """``local[N]`` never retries a task, ``local[N,4]`` does."""
    if master == "local":
        return "local[1,4]"
    return re.sub(r"^local\[(\d+|\*)\]$", r"local[\1,4]", master)


def _starts_jvm(settings: Mapping[str, str]) -> bool:
    remote = settings.get("spark.remote", os.environ.get("SPARK_REMOTE", ""))
    return not remote.startswith("sc://") and "PYSPARK_GATEWAY_PORT" not in os.environ


def _quieten() -> None:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if not {"SPARK_CONF_DIR", "SPARK_HOME"} & os.environ.keys():
        os.environ["SPARK_CONF_DIR"] = str(kept("spark", "log4j2.properties", LOG4J))


def _let_jvm_end_quietly() -> None:
    """Print no traceback of pyspark's thread for accumulators when the JVM is gone."""
    from pyspark import accumulators

    def handle_error(server: BaseServer, request: Any, address: Any) -> None:
        if not isinstance(sys.exception(), EOFError):
            BaseServer.handle_error(server, request, address)

    for kind in vars(accumulators).values():
        if isinstance(kind, type) and issubclass(kind, BaseServer):
            kind.handle_error = handle_error  # type: ignore[assignment, method-assign]


def _import_as_here() -> None:
    """Let workers on this machine import the driver's code, not a package in the current folder."""
    root = _code_root()
    if not _is_archive(root) and root not in site.getsitepackages():
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    os.environ["PYTHONSAFEPATH"] = "1"


def _code_root() -> str:
    """The folder or archive that the driver's code is imported from."""
    return str(Path(__file__).parents[2])


def _is_archive(root: str) -> bool:
    """Whether Spark ships it, so that workers do not have it as they start."""
    return root.endswith(".zip")


def _reason(error: Exception) -> str:
    """The most informative line: for a Java exception the second one, which begins with a colon."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return next((line.removeprefix(": ") for line in lines if line.startswith(": ")), lines[0])


def _in_thread(call: Callable[[], T]) -> Future[T]:
    """Call in a daemon thread, which does not keep the process alive as a pool's would."""
    future: Future[T] = Future()

    def body() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=body, daemon=True).start()
    return future


def _attended(call: Callable[[], T], poll: Callable[[], None]) -> T:
    """Call in a thread and poll until it is done, so that signals are handled."""
    future = _in_thread(call)
    while not wait([future], POLL_SECONDS).done:
        poll()
    # A signal to the process group also ends the JVM; report the signal, not the lost JVM.
    if future.exception() is not None:
        poll()
    return future.result()


def check_workers(spark: SparkSession, *, mixed_builds: bool) -> int:
    """Compare the code and build of all workers with the driver's; return their number."""

    def ask() -> list[str]:
        tasks = spark.range(0, 100_000).mapInArrow(partial(_worker_code, plugged.shipped()), "code string")
        return [row["code"] for row in tasks.collect()]

    return _check_code_of(ask, mixed_builds)


def _check_workers_here(context: SparkContext, *, mixed_builds: bool) -> int:
    """As `check_workers`, on this machine."""
    number = context.defaultParallelism
    function = partial(_worker_code_here, plugged.shipped())
    return _check_code_of(context.parallelize(range(number), number).mapPartitions(function).collect, mixed_builds)


def _check_code_of(ask: Callable[[], list[str]], mixed_builds: bool) -> int:
    try:
        found = ask()
    except Exception as error:
        if not _is_of_spark(error):
            raise
        reason = _worker_refusal(str(error)) or masked(f"Spark's workers do not start: {_reason(error)}")
        raise UnavailableError(reason) from None
    workers = {tuple(code.split(" ", 1)) for code in found}
    codes = {code for code, *_ in workers}
    if codes != {code_version()}:
        raise UnavailableError(
            f"Spark's workers have other code ({', '.join(sorted(codes))}) than this ({code_version()})"
        )
    builds = sorted({named for _, *rest in workers for named in rest} - {build()})
    if builds and not mixed_builds:
        raise UnavailableError(
            f"Spark's workers run another build ({', '.join(builds)}) than this ({build()}): ship this one, as "
            "`highwater spark-package` makes it, or allow both with --mixed-builds"
        )
    return len(found)


def _failure(error: Exception) -> UnavailableError | None:
    """What a user can repair where a job failed; None for an exception of this code, on a worker or here."""
    text = str(error)
    if refusal := _worker_refusal(text):
        return UnavailableError(refusal)
    lost = isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError"
    if not (lost or _is_of_spark(error)) or "Traceback (most recent call last)" in text:
        return None
    reason = "its Java has ended" if lost else "".join(re.findall(r'details = "(.*?)"', text)[:1]) or _reason(error)
    return UnavailableError(masked(f"Spark failed: {reason}; the same command resumes the sweep"))


def _is_of_spark(error: Exception) -> bool:
    """Whether Spark raised it, the JVM (by py4j, which a client of Connect lacks), or a package that does not fit."""
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException | ImportError) or type(error).__module__.startswith("py4j.")


def _worker_refusal(text: str) -> str | None:
    """Why workers cannot run the code, from an exception's text; None if it does not say."""
    if missing := re.findall(r"ModuleNotFoundError: (.*)", text):
        return f"Spark's workers have no Highwater ({missing[-1]}): ship it with --py-files, or install it"
    if other := re.findall(r"Python in worker has different version: (\S+) than that in driver: ([\d.]+)", text):
        return "Spark's workers have Python {}, this is {}: the minor version must be the same".format(*other[-1])
    if stale := re.findall(r"InputError: (.*)", text):
        return f"Spark's workers: {stale[-1]}"
    return None


def _worker_code(plug_ins: list[dict[str, Any]], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The worker's code and build. A function of this module, so that Spark ships its name and not its content."""
    for code in _worker_code_here(plug_ins, batches):
        # One column: a worker of an older version sends its code alone, which must be understood.
        yield pa.RecordBatch.from_pylist([{"code": code}])


def _worker_code_here(plug_ins: list[dict[str, Any]], tasks: Iterable[object]) -> Iterator[str]:
    # When Spark ends, idle workers find their socket closed: exit without a traceback.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    ensure(plug_ins)
    prepare_process()
    for _ in tasks:
        pass
    yield f"{code_version()} {build()}"


def _check_folder(spark: SparkSession, folder: Folder) -> None:
    """Have an executor write something and look for it from here.

    Raises:
        UnavailableError: it has no file system of that kind.
        StorageError: it cannot, or it writes elsewhere.
    """
    place = f"{ownership.CLAIMS}/probe-{secrets.token_hex(4)}"
    try:
        spark.range(1).withMetadata("id", _VERSION).write.parquet(f"{folder.spark_uri}/{place}")
    except Exception as error:  # whatever keeps Spark from writing, it is the user's to mend
        raise _cannot_write(folder, error) from None
    finally:
        found = folder.files(place)
        ownership.clear(folder, place)
    if not any(parts.is_part(path.rpartition("/")[2]) for path in found):
        raise StorageError(
            f"Spark's executors write {folder.shown} elsewhere than this driver reads it: a folder that both share is "
            "needed, or a URI"
        )


def _cannot_write(folder: Folder, error: Exception) -> UserError:
    text = str(error)
    if "ClassNotFoundException" in text and "S3AFileSystem" in text:
        return UnavailableError(
            f"Spark cannot write to {folder.shown}: it has no S3A; --conf "
            "spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION brings it"
        )
    return StorageError(masked(f"Spark cannot write to {folder.shown}: {_last_cause(error)}"))


def _last_cause(error: Exception) -> str:
    """What the storage said: the last cause of an exception of the JVM, or its most informative line."""
    causes = re.findall(r"^Caused by: (.*)$", str(error), re.MULTILINE)
    return causes[-1] if causes else _reason(error)


def _tag(plan: WavePlan) -> str:
    return f"highwater-{plan.wave.removeprefix('wave=')}"


def _run_wave(spark: SparkSession, sweep: str, folder: Folder, plan: WavePlan, title: str) -> None:
    _set_tag(spark, _tag(plan))
    with suppress(Exception):  # With Spark Connect, a session has no context.
        spark.sparkContext.setJobDescription(f"{title}, {plan.wave}")
    # Spark has no place for a file's own metadata, but keeps a column's.
    rows = data_frame(spark, sweep, plan.chunks, plan.task_seconds).withMetadata("scenario", _VERSION)
    place = f"{folder.spark_uri}/{parts.wave_path(plan.wave)}"
    rows.write.option("compression", "zstd").parquet(place)


def _run_wave_here(context: SparkContext, sweep: str, folder: LocalFolder, plan: WavePlan, title: str) -> None:
    context.addJobTag(_tag(plan))
    context.setJobDescription(f"{title}, {plan.wave}")
    folder.create(parts.wave_path(plan.wave))
    numbers = context.parallelize(range(len(plan.chunks)), len(plan.chunks))
    numbers.mapPartitions(_part_writer(sweep, folder, plan)).collect()


def _is_local(spark: SparkSession) -> bool:
    """Whether all tasks run on this machine, each in one attempt at a time (a local master has no speculation)."""
    with suppress(Exception):  # With Spark Connect, a session has no context.
        return _LOCAL.fullmatch(str(spark.sparkContext.master)) is not None
    return False


def _part_writer(sweep: str, folder: LocalFolder, plan: WavePlan) -> Callable[[Iterable[int]], Iterable[int]]:
    """A function that writes a part for each chunk. Spark's own writer takes a tenth of the CPU time of short runs."""
    wave, chunks, seconds, code = plan.wave, list(plan.chunks), plan.task_seconds, code_version()

    def write_chunks(numbers: Iterable[int]) -> Iterator[int]:
        _prepare_worker(sweep, code)
        for chunk in numbers:
            rows = list(rows_of(sweep, chunks[chunk], seconds))
            # A worker may go on for two seconds after its job was cancelled and the driver removed the wave.
            if folder.has_folder(parts.wave_path(wave)):
                parts.write_part(folder, wave, chunk, rows)
            yield chunk

    return write_chunks


def _has_tags(spark: SparkSession) -> bool:
    """Whether a session has tags; before 4.0, without Connect, its context has them."""
    from pyspark.sql import SparkSession

    return _pyspark() >= TAGS or not isinstance(spark, SparkSession)


def _set_tag(spark: SparkSession, tag: str) -> None:
    if _has_tags(spark):
        spark.addTag(tag)
    else:
        spark.sparkContext.addJobTag(tag)


def _cancel(spark: SparkSession, tag: str) -> None:
    if not _has_tags(spark):
        spark.sparkContext.cancelJobsWithTag(tag)
    # Without Connect, a tag is known only to the thread that has set it, and that one is busy.
    elif not spark.interruptTag(tag):
        spark.interruptAll()


def task_count(pieces: Sequence[Piece], asked: int | None) -> int:
    """The number of tasks for some pieces whose rows are kept nowhere."""
    return asked or max(TASKS, -(-units(pieces) // TASK_SEEDS_MAX))


def takes_sources() -> bool:
    """Whether pyspark has data sources in Python."""
    return _pyspark() >= SOURCES


def data_frame(
    spark: SparkSession, sweep: str, chunks: Sequence[Sequence[Piece]], task_seconds: float = math.inf
) -> DataFrame:
    """The rows of some chunks of a sweep (`Sweep.to_text`), one task each; nothing runs before Spark needs them.

    A task starts no further unit after `task_seconds`. It fails if its worker runs other code than this process.
    """
    grid = grid_of(sweep)
    return _tasks(spark, chunks).mapInArrow(_mapper(sweep, chunks, task_seconds, grid), ddl(grid))


def seed_stream(spark: SparkSession, sweep: str, first: int, per_batch: int, tasks: int) -> DataFrame:
    """The rows of a sweep (`Sweep.to_text`) for ever further seeds from `first` on, `per_batch` in a micro-batch.

    Spark's own source counts the seeds: before 4.2 a source in Python does not survive a restart.
    """
    grid = grid_of(sweep)
    source = spark.readStream.format("rate-micro-batch")
    numbers = source.option("rowsPerBatch", per_batch).option("numPartitions", tasks).load().select("value")
    return numbers.mapInArrow(_seed_mapper(sweep, first, grid), ddl(grid))


def _tasks(spark: SparkSession, chunks: Sequence[Sequence[Piece]]) -> DataFrame:
    """The numbers of chunks, one task each."""
    return spark.range(0, len(chunks), 1, len(chunks))


def _chunks_of(batches: Iterator[pa.RecordBatch], sweep: str, expected: str) -> Iterator[int]:
    """The chunks of a task, whose worker must run the driver's code, with the plug-ins of the sweep."""
    _prepare_worker(sweep, expected)
    for batch in batches:
        for row in batch.to_pylist():
            yield row["id"]


def _prepare_worker(sweep: str, expected: str) -> None:
    prepare_process()
    grid_of(sweep)  # Loads the sweep's plug-ins, which are part of the code.
    check_code(expected)


def check_code(expected: str) -> None:
    """Raise UnavailableError if this worker runs other code than the driver."""
    if code_version() != expected:
        raise UnavailableError(f"this worker of Spark has other code ({code_version()}) than the driver ({expected})")


def _mapper(
    sweep: str, chunks: Sequence[Sequence[Piece]], seconds: float, grid: Sequence[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    chunks, schema, code = list(chunks), parts.schema(grid), code_version()

    def run_chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk in _chunks_of(batches, sweep, code):
            yield from _batches(rows_of(sweep, chunks[chunk], seconds), schema)

    return run_chunks


def batches_of(sweep: str, pieces: Sequence[Piece], code: str) -> Iterator[pa.RecordBatch]:
    """The rows of some pieces of a sweep (`Sweep.to_text`), on a worker that must run the code `code`."""
    prepare_process()
    grid = grid_of(sweep)  # Loads the sweep's plug-ins, which are part of the code.
    check_code(code)
    yield from _batches(rows_of(sweep, pieces), parts.schema(grid))


def _batches(rows: Iterator[Row], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    while some := list(islice(rows, BATCH_ROWS)):
        yield pa.RecordBatch.from_pylist(some, schema)


def _seed_mapper(
    sweep: str, first: int, grid: Sequence[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    schema, code = parts.schema(grid), code_version()

    def run_seeds(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_process()
        variants = range(variants_of(sweep))  # Loads the sweep's plug-ins, which are part of the code.
        check_code(code)
        for batch in batches:
            seeds = runs_of(first + row["value"] for row in batch.to_pylist())
            pieces = [(variant, *ends) for variant in variants for ends in seeds]
            yield from _batches(rows_of(sweep, pieces), schema)

    return run_seeds


def _tasks_done(folder: Folder, wave: str) -> int:
    """Tasks that have written their part, or were committed by Hadoop's committer, where the driver sees the folder."""
    if folder.local is None:
        return 0
    place = folder.local / parts.wave_path(wave)
    with suppress(OSError):
        return sum(1 for pattern in ("_temporary/*/task_*", "part-*") for _ in place.glob(pattern))
    return 0
