"""``python -m tests.verification.confirm.reset_by_duration RELEASE``: scenario `reset-by-duration`, Kafka's clients.

`confirm` has a consumer of its own, so this starts a broker and the program beside it: a consumer of each group
protocol, with the scenario's duration and with one that is longer than request.timeout.ms. Nothing in Kafka is changed.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from highwater.lab.kafka import releases

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM: Final = Path(__file__).with_name("ResetByDuration.java")
PROTOCOLS: Final = ("classic", "consumer")
DURATIONS: Final = ("by_duration:PT6S", "by_duration:PT45S")
STARTS_S: Final = 60.0
_CLUSTER: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
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


def main() -> int:
    """Print what consumers of these releases read; exits with 1 if it is not what the scenario says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--repeat", type=int, default=1)
    asked = parser.parse_args()
    is_shown = True
    for release in asked.releases:
        for _ in range(asked.repeat):
            with tempfile.TemporaryDirectory() as folder:
                for protocol, duration, said in runs(release, Path(folder)):
                    sys.stdout.write(f"{release}, {protocol} group protocol, {duration}: {said}\n")
                    sys.stdout.flush()
                    expected = "read 0 of 5" if duration == DURATIONS[0] else "read 5 of 5"
                    is_shown = is_shown and said.startswith(expected)
    return 0 if is_shown else 1


def runs(release: str, folder: Path) -> Iterator[tuple[str, str, str]]:
    """Each group protocol and duration, with what the program says, beside one broker in a folder."""
    class_path = os.pathsep.join(map(str, releases.class_path(release)))
    subprocess.run(["javac", "-cp", class_path, "-d", str(folder), str(PROGRAM)], check=True)
    with _broker(class_path, folder) as port:
        for protocol in PROTOCOLS:
            for duration in DURATIONS:
                words = ["-cp", f"{class_path}{os.pathsep}{folder}", PROGRAM.stem, str(port), protocol, duration]
                done = subprocess.run(_java(*words), capture_output=True, text=True, check=True)
                yield protocol, duration, done.stdout.strip()


@contextmanager
def _broker(class_path: str, folder: Path) -> Iterator[int]:
    """A broker that is its own controller; its port."""
    port, controller = _free_port(), _free_port()
    properties = folder / "server.properties"
    properties.write_text(_PROPERTIES.format(port=port, controller=controller, folder=folder), encoding="utf-8")
    format_log = ["-cp", class_path, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(properties)]
    subprocess.run(_java(*format_log), check=True, capture_output=True)
    with (folder / "broker.log").open("wb") as log:
        broker = subprocess.Popen(
            _java("-Xmx400m", "-cp", class_path, "kafka.Kafka", str(properties)), stdout=log, stderr=log
        )
        try:
            _wait_for(port)
            yield port
        finally:
            broker.kill()
            broker.wait()


def _java(*words: str) -> list[str]:
    return [str(releases.java_command()), "-XX:TieredStopAtLevel=1", *words]


def _free_port() -> int:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    end = time.monotonic() + STARTS_S
    while True:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if time.monotonic() > end:
            raise TimeoutError(f"no broker answers at port {port}")
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
