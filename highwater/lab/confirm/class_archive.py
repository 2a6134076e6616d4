"""Class data sharing for faster starts: an archive of a broker's classes, made once for each release and Java."""

from __future__ import annotations

import contextlib
import hashlib
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Final

from highwater.lab.confirm.cluster import KafkaCluster
from highwater.lab.confirm.observer import Observer
from highwater.lab.confirm.processes import JavaProcesses
from highwater.lab.confirm.scripted_control import wait_for_zookeeper
from highwater.lab.kafka import releases
from scenarios.own_files import put
from scenarios.sweep.java import cache_folder
from sim.config import resolve
from sim.history.steps import REGISTERED, UNFENCED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from highwater.lab.confirm.release import InstalledRelease

_START_S: Final = 60.0
_END_S: Final = 60.0


def archive_of(release: InstalledRelease) -> Path:
    """Path of a release's archive, if it exists; Java ignores an archive that does not match."""
    java = releases.java_command().resolve()
    key = hashlib.blake2b(f"{java}\n{release.class_path}".encode(), digest_size=6).hexdigest()
    return cache_folder() / "kafka" / "classes" / f"broker-{release.name}-{key}.jsa"


def make_archive(release: InstalledRelease, pace: int, note: Callable[[str], None]) -> None:
    """Create the archive with a broker that ends itself; do nothing if it exists or a build may change."""
    kept = archive_of(release)
    if kept.is_file() or release.source != "released":
        return
    note(f"Kafka {release.name} runs for the first time: its classes are archived, so that it starts faster")
    with contextlib.closing(JavaProcesses(None)) as processes:
        cluster = KafkaCluster(release, processes, 1, resolve({}), {}, lambda *_: None, pace)
        try:
            made = processes.folder / "classes.jsa"
            cluster.prepare()
            node = cluster.brokers[1]
            node.command = [f"-XX:ArchiveClassesAtExit={made}", *node.command]
            cluster.start(cluster.control)
            if not release.kraft:
                wait_for_zookeeper(cluster.control.port, _START_S)
            cluster.start(node)
            _wait_until_up(cluster)
            assert node.process is not None
            node.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                node.process.wait(_END_S)
            if made.is_file():
                put(kept, made.read_bytes())
        finally:
            cluster.close()


def _wait_until_up(cluster: KafkaCluster) -> None:
    observer = Observer(cluster, lambda _: None)
    end_s = time.monotonic() + _START_S
    while time.monotonic() < end_s and not any(step["step"] == _UP[cluster.release.kraft] for step in observer.steps):
        observer.poll()
        time.sleep(0.02)


_UP: Final = {True: UNFENCED.name, False: REGISTERED.name}
