"""Spark's own servers on this machine: a standalone cluster, and Spark Connect."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.verification.spark_versions.environments import javas, number, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECT_JAR: Final = "org.apache.spark:spark-connect_2.12:3.5.7"
"""For 3.5, whose package of Python lacks the server; the newest that there is."""
START_SECONDS: Final = 120


def free_port() -> int:
    """A port that no process listens on."""
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a process listens."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with closing(socket.socket()) as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError(f"nothing listens on port {port}: {process.args!r}")


def home_of_spark(python: Path) -> Path:
    """The folder of pyspark in an environment."""
    (found,) = python.parents[1].glob("lib/python*/site-packages/pyspark")
    return found


@contextmanager
def daemon(python: Path, folder: Path, command: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of Spark's scripts, in a process group of its own, which gets SIGKILL at the end."""
    home = home_of_spark(python)
    environment = variables(
        SPARK_HOME=str(home),
        SPARK_DAEMON_MEMORY="256m" if command == "spark-class" else "1g",
        SPARK_WORKER_DIR=str(folder / "work"),
        PYSPARK_PYTHON=str(python),
        JAVA_HOME=str(javas()[17]),
    )
    with (folder / "daemons.log").open("ab") as log:
        process = subprocess.Popen(
            [str(home / "bin" / command), *words], stdout=log, stderr=log, env=environment, start_new_session=True
        )
    try:
        yield process
    finally:
        kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def connect_server(python: Path, version: str, folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server of Spark Connect with two cores."""
    words = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2,4]"]
    words += ["--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.ui.enabled=false"]
    if number(version) < (4, 0):
        words += ["--packages", CONNECT_JAR]
    if number(version) >= (4, 1):
        words += ["--conf", "spark.sql.python.filterPushdown.enabled=true"]
    with daemon(python, folder, "spark-submit", *words, "spark-internal") as process:
        wait_for_port(port, process)
        yield process


@dataclass(frozen=True, slots=True)
class Standalone:
    """A standalone cluster: URL of its master, its workers, and the folder that has a folder for each executor."""

    url: str
    workers: tuple[subprocess.Popen[bytes], ...]
    folder: Path

    def executors(self) -> list[int]:
        """The JVMs of executors, which belong to the process groups of their workers."""
        found = [process_of(worker, "CoarseGrainedExecutorBackend") for worker in self.workers]
        return [pid for pids in found for pid in pids]

    def started(self) -> int:
        """The number of executors that were ever started."""
        return sum(1 for path in self.folder.glob("work/app-*/*") if path.is_dir())


def process_of(leader: subprocess.Popen[bytes], words: str) -> list[int]:
    """The processes of a process group whose command has some words."""
    found = subprocess.run(["pgrep", "-g", str(leader.pid), "-f", words], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


@contextmanager
def standalone(python: Path, folder: Path) -> Iterator[Standalone]:
    """A master and two workers of one core."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    words = ["--host", "127.0.0.1", "--webui-port", "0"]
    with ExitStack() as stack:
        master = "org.apache.spark.deploy.master.Master"
        started = stack.enter_context(daemon(python, folder, "spark-class", master, *words, "--port", str(port)))
        wait_for_port(port, started)
        worker = "org.apache.spark.deploy.worker.Worker"
        limits = ["--cores", "1", "--memory", "1g"]
        workers = [
            stack.enter_context(daemon(python, folder, "spark-class", worker, *words, *limits, url)) for _ in range(2)
        ]
        yield Standalone(url, tuple(workers), folder)
