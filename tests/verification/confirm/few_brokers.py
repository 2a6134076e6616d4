"""Some controllers and brokers for programs that perform a scenario with Kafka's own clients."""

from __future__ import annotations

import os
import subprocess
from base64 import urlsafe_b64encode
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from highwater.lab.kafka import releases
from tests.verification.confirm.beside_broker import CLUSTER_ID, compiled, free_port, java, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTROLLER: Final = 100
_PROPERTIES: Final = """\
process.roles={role}
node.id={node}
{quorum}
listeners={listener}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/logs-{node}
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
"""
_LOGGED: Final = [
    f"-Dorg.slf4j.simpleLogger.{name}"
    for name in ("logFile=System.out", "showDateTime=true", "dateTimeFormat=HH:mm:ss.SSS", "defaultLogLevel=info")
]


@dataclass(frozen=True, slots=True)
class FewBrokers:
    """Brokers that run.

    Attributes:
        class_path: the release's classes.
        folder: of all files; what a node prints is in ``NODE.log``.
        servers: ``bootstrap.servers``.
        processes: broker or controller -> its process.
    """

    class_path: str
    folder: Path
    servers: str
    processes: dict[int, subprocess.Popen[bytes]]

    def run(self, program: str, *arguments: str) -> str:
        """Compile a Java program of this folder and run it; what it says. Its first argument is ``bootstrap.servers``.

        Raises:
            RuntimeError: it failed; with the end of its errors.
        """
        with self.begin(program, *arguments) as running:
            said, errors = running.communicate()
        if running.returncode:
            raise RuntimeError(f"{program} failed: {errors[-2_000:]}")
        return said.strip()

    def begin(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        """Compile a program as `run` does, and start it."""
        class_path = compiled([self.class_path], self.folder, program)
        words = java("-cp", class_path, program, self.servers, *arguments)
        return subprocess.Popen(words, stdin=-1, stdout=-1, stderr=-1, text=True)

    def start(self, node: int) -> None:
        """Start a node that does not run; its files are there."""
        command = java("-Xmx300m", *_LOGGED, "-cp", self.class_path, "kafka.Kafka", str(self._properties(node)))
        with (self.folder / f"{node}.log").open("ab") as log:
            self.processes[node] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, node: int) -> None:
        """Kill a node's process."""
        self.processes[node].kill()
        self.processes[node].wait()

    def _properties(self, node: int) -> Path:
        return self.folder / f"{node}.properties"

    def prepare(self, node: int, port: int, voters: str, *, is_controller: bool, is_dynamic: bool) -> None:
        """Write the files of a node, and format its disk; with a dynamic quorum, for kraft.version 1."""
        text = _PROPERTIES.format(
            role="controller" if is_controller else "broker",
            listener=f"{'CONTROLLER' if is_controller else 'PLAINTEXT'}://127.0.0.1:{port}",
            quorum=f"controller.quorum.bootstrap.servers={_addresses(voters)}"
            if is_dynamic
            else f"controller.quorum.voters={voters}",
            node=node,
            folder=self.folder,
        )
        properties = self._properties(node)
        properties.write_text(text, encoding="utf-8")
        words = ["-cp", self.class_path, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
        if is_dynamic:
            initial = ",".join(f"{voter}:{_directory_id(int(voter.split('@')[0]))}" for voter in voters.split(","))
            words += ["--initial-controllers", initial] if is_controller else ["--no-initial-controllers"]
        subprocess.run(java(*words), check=True, capture_output=True)


def _addresses(voters: str) -> str:
    """The addresses of ``controller.quorum.voters``."""
    return ",".join(voter.partition("@")[2] for voter in voters.split(","))


def _directory_id(node: int) -> str:
    """A directory id: any that is not reserved."""
    return urlsafe_b64encode(node.to_bytes(16)).decode().rstrip("=")


@contextmanager
def few_brokers(
    release: str, folder: Path, brokers: int = 1, controllers: int = 1, *, is_dynamic: bool = False
) -> Iterator[FewBrokers]:
    """Brokers 1, 2, ... of a release, and controllers 100, ..., until the end of the block.

    With `is_dynamic` the voters of the quorum may change (kraft.version 1).
    """
    class_path = os.pathsep.join(map(str, [releases.tool("logging"), *releases.class_path(release)]))
    nodes = [*range(CONTROLLER, CONTROLLER + controllers), *range(1, brokers + 1)]
    ports = {node: free_port() for node in nodes}
    voters = ",".join(f"{node}@127.0.0.1:{ports[node]}" for node in nodes[:controllers])
    servers = ",".join(f"127.0.0.1:{ports[node]}" for node in nodes[controllers:])
    found = FewBrokers(class_path, folder, servers, {})
    for node in nodes:
        found.prepare(node, ports[node], voters, is_controller=node >= CONTROLLER, is_dynamic=is_dynamic)
    try:
        for node in nodes:
            found.start(node)
        for node in nodes[controllers:]:
            wait_for(ports[node])
        yield found
    finally:
        for node in found.processes:
            found.kill(node)
