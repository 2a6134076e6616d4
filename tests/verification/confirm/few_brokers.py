"""A controller and a few brokers for programs that perform a scenario with Kafka's own clients."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack, contextmanager
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
controller.quorum.voters={controller_node}@127.0.0.1:{controller}
listeners={listener}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/logs-{node}
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
"""


@dataclass(frozen=True, slots=True)
class FewBrokers:
    """Brokers that run.

    Attributes:
        class_path: the release's classes.
        folder: of all files.
        servers: ``bootstrap.servers``.
        process_ids: broker -> its process.
    """

    class_path: str
    folder: Path
    servers: str
    process_ids: dict[int, int]

    def run(self, program: str, *arguments: str) -> str:
        """Compile a Java program of this folder and run it; what it says. Its first argument is ``bootstrap.servers``.

        Raises:
            RuntimeError: it failed; with the end of its errors.
        """
        class_path = compiled([self.class_path], self.folder, program)
        words = java("-cp", class_path, program, self.servers, *arguments)
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr[-2_000:]}")
        return done.stdout.strip()


@contextmanager
def few_brokers(release: str, folder: Path, brokers: int = 1) -> Iterator[FewBrokers]:
    """Brokers 1, 2, ... of a release, and their controller, until the end of the block."""
    class_path = os.pathsep.join(map(str, releases.class_path(release)))
    controller, ports = free_port(), {broker: free_port() for broker in range(1, brokers + 1)}
    with ExitStack() as stack:
        processes = {
            node: stack.enter_context(_process(class_path, folder, node, port, controller))
            for node, port in {CONTROLLER: controller, **ports}.items()
        }
        for port in ports.values():
            wait_for(port)
        servers = ",".join(f"127.0.0.1:{port}" for port in ports.values())
        yield FewBrokers(class_path, folder, servers, {broker: processes[broker].pid for broker in ports})


@contextmanager
def _process(class_path: str, folder: Path, node: int, port: int, controller: int) -> Iterator[subprocess.Popen[bytes]]:
    is_controller = node == CONTROLLER
    properties = folder / f"{node}.properties"
    text = _PROPERTIES.format(
        role="controller" if is_controller else "broker",
        listener=f"{'CONTROLLER' if is_controller else 'PLAINTEXT'}://127.0.0.1:{port}",
        controller_node=CONTROLLER,
        node=node,
        controller=controller,
        folder=folder,
    )
    properties.write_text(text, encoding="utf-8")
    format_log = ["-cp", class_path, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
    subprocess.run(java(*format_log), check=True, capture_output=True)
    with (folder / f"{node}.log").open("wb") as log:
        command = java("-Xmx300m", "-cp", class_path, "kafka.Kafka", str(properties))
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()
