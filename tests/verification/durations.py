"""How long a failover takes, simulated and on brokers: ``python -m tests.verification.durations RELEASE...``.

Three brokers and three controllers with Kafka's default timeouts. The leader is killed while Kafka's producer writes;
it is started again once a record was acknowledged. Times on brokers are from their logs, from the producer, and from an
administrator who asks for the partition's state every 5 ms. A machine without other work is needed.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from random import Random
from statistics import median
from subprocess import Popen
from typing import Any, Final

from scenarios.format.catalogue import load
from scenarios.properties import releases
from scenarios.single.run import run
from sim.protocol.modes import Mode
from tests.verification.confirm.few_brokers import CONTROLLER, FewBrokers, few_brokers

SCENARIO: Final = Path(__file__).with_suffix(".toml")
CONTROLLERS: Final = 3
CALM_S: Final = 3.0
LONGEST_S: Final = 2.0
"""The most that is added to it: heartbeats, fetches and retries are in any phase when the leader is killed."""
Step = Mapping[str, Any]
DURATIONS: Final = (
    "the leader is killed, until the controller elects another one",
    "it is elected, until it leads",
    "it is elected, until a producer has its first acknowledgement",
    "the killed broker has registered again, until it is unfenced",
    "it is unfenced, until it is in the ISR again",
)


def simulated(mode: Mode, seeds: Iterable[int]) -> list[list[float]]:
    """The durations of simulated runs, in seconds, in the order of `DURATIONS`."""
    return [_of_trace(run(load(str(SCENARIO)), mode, seed, trace=True).trace or []) for seed in seeds]


def _of_trace(steps: Sequence[Step]) -> list[float]:
    def first(after_s: float, kind: str, **fields: object) -> float:
        wanted = {"step": kind, **fields}
        times = (float(step["t"]) / 1e6 for step in steps if wanted.items() <= step.items())
        return next(at_s for at_s in times if at_s >= after_s)

    killed_s = first(0, "kill", broker=1)
    elected_s = first(killed_s, "elected", broker=2)
    acked_s = first(elected_s, "ack")
    registered_s = first(acked_s, "registered", broker=1)
    unfenced_s = first(registered_s, "unfenced", broker=1)
    return [
        elected_s - killed_s,
        first(elected_s, "lead", broker=2) - elected_s,
        acked_s - elected_s,
        unfenced_s - registered_s,
        first(unfenced_s, "isr", isr=[1, 2, 3]) - unfenced_s,
    ]


class Logs:
    """What the nodes of a cluster have logged, by times since 1970 in seconds."""

    def __init__(self, brokers: FewBrokers) -> None:
        self._folder = brokers.folder

    def first(self, nodes: Iterable[int], after_s: float, pattern: str) -> float:
        """The time of the first line after a time that has a pattern.

        Raises:
            ValueError: there is none.
        """
        found = [
            at_s
            for node in nodes
            for at_s, text in self._lines(node, after_s)
            if at_s >= after_s and re.search(pattern, text)
        ]
        return min(found)

    def _lines(self, node: int, day_s: float) -> Iterable[tuple[float, str]]:
        for line in (self._folder / f"{node}.log").read_text(encoding="utf-8", errors="replace").splitlines():
            clock, _, text = line.partition(" ")
            if re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}", clock):
                today = datetime.fromtimestamp(day_s).astimezone().date()
                yield datetime.fromisoformat(f"{today}T{clock}").astimezone().timestamp(), text


def _said(clients: Popen[str]) -> list[str]:
    """The words of the next line of `Failover`."""
    assert clients.stdout is not None
    if line := clients.stdout.readline():
        return line.split()
    raise RuntimeError(clients.communicate()[1][-2_000:])


def played(release: str, delay_s: float) -> list[float]:
    """The durations on brokers of a release, whose leader is killed so much later."""
    with tempfile.TemporaryDirectory() as folder, few_brokers(release, Path(folder), 3, CONTROLLERS) as brokers:
        logs, controllers = Logs(brokers), range(CONTROLLER, CONTROLLER + CONTROLLERS)
        with brokers.begin("Failover") as clients:
            assert clients.stdin is not None
            assert clients.stdout is not None
            assert clients.stdout.readline() == "ready\n", clients.communicate()[1]
            time.sleep(CALM_S + delay_s)
            killed_s = time.time()
            brokers.kill(1)
            clients.stdin.write("\n")
            clients.stdin.flush()
            seen = dict(_said(clients) for _ in ("elected", "acknowledged"))
            time.sleep(CALM_S)
            started_s = time.time()
            brokers.start(1)
            seen |= dict([_said(clients)])
        elected_s = logs.first(controllers, killed_s, "handleBrokerFenced: changing 1 partition")
        leads_s = logs.first([2], killed_s, r"Leader orders-0 .* starts at leader epoch")
        registered_s = logs.first([1], started_s, "Successfully registered broker 1")
        unfenced_s = logs.first([1], started_s, "The broker has been unfenced")
    at_s = {what: int(text) / 1_000 for what, text in seen.items()}
    return [
        elected_s - killed_s,
        leads_s - elected_s,
        at_s["acknowledged"] - elected_s,
        unfenced_s - registered_s,
        at_s["joined"] - unfenced_s,
    ]


def table(columns: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """A Markdown table: a row for each duration, with median, least and most in seconds."""
    lines = [f"| seconds, median (least to most) | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    for place, name in enumerate(DURATIONS):
        cells = []
        for runs in columns.values():
            values = [found[place] for found in runs]
            cells.append(f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--repeat", type=int, default=5, help="runs on brokers of each release")
    parser.add_argument("--seeds", type=int, default=200, help="simulated runs of each mode")
    asked = parser.parse_args()
    columns: dict[str, list[list[float]]] = {}
    for release in asked.releases:
        mode = releases.find(release, "kraft").mode
        columns[f"Kafka {release}"] = [
            played(release, Random(run).uniform(0, LONGEST_S)) for run in range(asked.repeat)
        ]
        columns[f"mode {mode.name}"] = simulated(mode, range(asked.seeds))
        sys.stdout.write(table(columns))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
