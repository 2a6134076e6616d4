"""Programs in Java with Kafka's own clients, which run beside one broker: `confirm` has clients of its own."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from highwater.lab.kafka import releases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

STARTS_S: Final = 60.0
CLUSTER_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/logs
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
"""


@dataclass(frozen=True, slots=True)
class ClientStory:
    """A scenario with Kafka's clients.

    Attributes:
        about: what it does.
        program: the Java program in this folder, which gets the broker's port and the arguments of a case.
        cases: release -> arguments of each case -> how the scenario says that the program's output begins.
    """

    about: str | None
    program: str
    cases: Callable[[str], Mapping[tuple[str, ...], str]]

    def main(self) -> int:
        """Print what the programs say; exits with 1 if it is not what the scenario says."""
        parser = argparse.ArgumentParser(description=self.about)
        parser.add_argument("releases", nargs="+")
        parser.add_argument("--repeat", type=int, default=1)
        asked = parser.parse_args()
        is_shown = True
        for release in asked.releases:
            for _ in range(asked.repeat):
                with tempfile.TemporaryDirectory() as folder:
                    for case, expected, said in self.runs(release, Path(folder)):
                        sys.stdout.write(f"{release}, {', '.join(case)}: {said}\n")
                        sys.stdout.flush()
                        is_shown = is_shown and said.startswith(expected)
        return 0 if is_shown else 1

    def runs(self, release: str, folder: Path) -> Iterator[tuple[tuple[str, ...], str, str]]:
        """Each case, what is expected, and what the program says beside a new broker in a folder."""
        class_path = compiled(map(str, releases.class_path(release)), folder, self.program)
        with _broker(class_path, folder) as port:
            for case, expected in self.cases(release).items():
                words = ["-cp", class_path, self.program, str(port), *case]
                done = subprocess.run(java(*words), capture_output=True, text=True, check=True)
                yield case, expected, done.stdout.strip()


def compiled(jars: Iterable[str], folder: Path, *programs: str) -> str:
    """Compile programs of this folder into another one; the class path with both."""
    class_path = os.pathsep.join(jars)
    sources = [str(Path(__file__).with_name(f"{program}.java")) for program in programs]
    subprocess.run(["javac", "-cp", class_path, "-d", str(folder), *sources], check=True)
    return f"{class_path}{os.pathsep}{folder}"


@contextmanager
def _broker(class_path: str, folder: Path) -> Iterator[int]:
    """A broker that is its own controller; its port."""
    port, controller = free_port(), free_port()
    properties = folder / "server.properties"
    properties.write_text(_PROPERTIES.format(port=port, controller=controller, folder=folder), encoding="utf-8")
    format_log = ["-cp", class_path, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
    subprocess.run(java(*format_log), check=True, capture_output=True)
    with (folder / "broker.log").open("wb") as log:
        broker = subprocess.Popen(
            java("-Xmx400m", "-cp", class_path, "kafka.Kafka", str(properties)), stdout=log, stderr=log
        )
        try:
            wait_for(port)
            yield port
        finally:
            broker.kill()
            broker.wait()


def java(*words: str) -> list[str]:
    """A command that runs Java."""
    return [str(releases.java_command()), "-XX:TieredStopAtLevel=1", *words]


def free_port() -> int:
    """A port of loopback that nobody uses."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    """Wait until a process answers at a port; raises TimeoutError if none does."""
    end = time.monotonic() + STARTS_S
    while True:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if time.monotonic() > end:
            raise TimeoutError(f"no broker answers at port {port}")
        time.sleep(0.2)
