"""What programs have in common that perform one scenario on brokers by themselves, because `confirm` cannot."""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from highwater.lab.confirm import wire
from highwater.lab.confirm.class_archive import archive_of, make_archive
from highwater.lab.confirm.clients import KafkaAdminClient, KafkaClients
from highwater.lab.confirm.cluster import KafkaCluster
from highwater.lab.confirm.observer import Observer
from highwater.lab.confirm.partitions import FIRST
from highwater.lab.confirm.processes import JavaProcesses
from highwater.lab.confirm.release import find, mode_of
from scenarios.format.selection import scenario
from sim.config import resolve
from sim.history.steps import UNFENCED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from highwater.lab.confirm.partitions import KafkaPartition
    from highwater.lab.confirm.release import InstalledRelease
    from sim.config import Value

BROKERS: Final = 3
_LOOK_S: Final = 0.02


class NotBroughtError(Exception):
    """The brokers could not be brought to the situation; the message says what was missing."""


class BrokerRun:
    """One run of a scenario on a cluster of its own.

    Args:
        release: of the brokers.
        processes: that run them.
        name: of the scenario, whose configuration the brokers get.
        pace: see `KafkaCluster`.
        whole_s: how long to wait for something, in seconds.
        defaults: settings that the scenario's replace.
        partitions: those that are observed.

    Attributes:
        CLUSTER: the class of its cluster.
    """

    CLUSTER: ClassVar[type[KafkaCluster]] = KafkaCluster

    def __init__(
        self,
        release: InstalledRelease,
        processes: JavaProcesses,
        name: str,
        pace: int,
        whole_s: float,
        defaults: Mapping[str, Value] | None = None,
        partitions: Sequence[KafkaPartition] = (FIRST,),
    ) -> None:
        wire.load()
        self.config = resolve(dict(defaults or {}), scenario(name, {}).config)
        self.begin_s = time.monotonic()
        self.cluster: KafkaCluster = self.CLUSTER(
            release,
            processes,
            BROKERS,
            self.config,
            {},
            lambda *message: self.observer.on_message(*message),
            pace,
            archive_of(release),
            partitions,
        )
        self.observer: Observer = Observer(self.cluster, lambda _: None)
        self.clients = self.new_clients(release)
        self.admin = KafkaAdminClient(self.cluster)
        self._whole_s = whole_s

    def new_clients(self, release: InstalledRelease) -> KafkaClients:
        """A producer and a consumer of the last of the partitions."""
        rules = mode_of(release)[0].rules
        return KafkaClients(self.cluster, self.observer, self.config, rules, self.cluster.partitions[-1])

    def close(self) -> None:
        """Close clients and links."""
        self.clients.close()
        self.cluster.close()

    def act(self) -> dict[str, Any]:
        """Perform the scenario, and return what came of it.

        Raises:
            NotBroughtError: the situation did not come about.
        """
        raise NotImplementedError

    def so_far(self) -> dict[str, Any]:
        """What is known of a run that was not brought to the situation."""
        raise NotImplementedError

    def boot(self) -> None:
        """Start controller and brokers, and wait until all are unfenced."""
        cluster = self.cluster
        cluster.prepare()
        cluster.start(cluster.control)
        for node in cluster.brokers.values():
            cluster.start(node)
        self.wait("all brokers are unfenced", lambda: all(self.is_unfenced(broker) for broker in cluster.brokers))

    def is_unfenced(self, broker: int, since: int = 0) -> bool:
        """Whether a broker was unfenced by one of the observed steps from this number on."""
        unfenced = (UNFENCED.name, broker)
        return any((step["step"], step.get("broker")) == unfenced for step in self.observer.steps[since:])

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Wait until something is so; raises NotBroughtError if that takes too long."""
        end_s = time.monotonic() + self._whole_s
        while not is_so():
            if time.monotonic() > end_s:
                raise NotBroughtError(f"not within {self._whole_s:g} s: {what}")
            self.pass_time(_LOOK_S)

    def pass_time(self, seconds: float) -> None:
        """Observe the brokers for some time."""
        end_s = time.monotonic() + seconds
        self.look()
        while time.monotonic() < end_s:
            time.sleep(_LOOK_S)
            self.look()

    def look(self) -> None:
        """Observe the brokers now."""
        self.observer.poll()

    @property
    def seconds(self) -> float:
        """Time since the begin, in seconds."""
        return round(time.monotonic() - self.begin_s, 1)


@dataclass(frozen=True, slots=True)
class Program:
    """A program that performs a scenario.

    Attributes:
        module: its name in this folder.
        about: what it does.
        variants: variant -> what happens in it.
        new_run: makes a run of a variant.
        text: an outcome as text.
        pace: of the brokers' start, for the archive of their classes.
        shows: the key of an outcome that is true if Kafka fails.
    """

    module: str
    about: str | None
    variants: Mapping[str, str]
    new_run: Callable[[InstalledRelease, JavaProcesses, str], BrokerRun]
    text: Callable[[dict[str, Any]], str]
    pace: int
    shows: str

    def run(self, release: InstalledRelease, variant: str, keep: Path | None) -> dict[str, Any]:
        """One run on a cluster of its own; what failed if it was not brought to the situation."""
        with closing(JavaProcesses(keep)) as processes, closing(self.new_run(release, processes, variant)) as one:
            try:
                outcome = one.act()
            except (NotBroughtError, TimeoutError) as error:
                outcome = {"failed": str(error), **one.so_far()}
            return {"release": release.name, "variant": variant, **outcome}

    def main(self) -> int:
        """Run; 1 if Kafka failed, 3 if a run was not brought to the situation."""
        parser = argparse.ArgumentParser(
            prog=f"python -m tests.verification.confirm.{self.module}", description=self.about
        )
        parser.add_argument("--kafka", default="4.3.1", help="a release, or a folder with Kafka's libraries")
        parser.add_argument(
            "--variant",
            choices=self.variants,
            default="scenario",
            help="; ".join(f"{name}: {what}" for name, what in self.variants.items()),
        )
        parser.add_argument("--repeat", type=int, default=1, help="number of runs")
        parser.add_argument("--keep", type=Path, help="keep the brokers' logs and data in this folder; with --repeat 1")
        parser.add_argument("--output", type=Path, help="add a line of JSON for each run to this file")
        arguments = parser.parse_args()
        release = find(arguments.kafka)
        make_archive(release, self.pace, lambda text: print(text, file=sys.stderr))  # noqa: T201
        made = []
        for _ in range(arguments.repeat):
            made.append(self.run(release, arguments.variant, arguments.keep))
            sys.stdout.write(self.text(made[-1]))
            sys.stdout.flush()
            if arguments.output is not None:
                with arguments.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"day": time.strftime("%Y-%m-%d"), **made[-1]}) + "\n")
        if any(one.get(self.shows) for one in made):
            return 1
        return 3 if any("failed" in one for one in made) else 0
