"""``python -m tests.verification.confirm.random_scripts``: random scripts on real brokers, beside the simulation.

Each script is a sequence of batches and faults with random gaps, so it waits for nothing. It ends with an exit code of
``highwater confirm``: 0 (both agree), 1 (they differ), 3 (the brokers were not brought to the story), 2 (the simulation
cannot perform it).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.verification.confirm.shrunk import confirmed_with

if TYPE_CHECKING:
    from collections.abc import Iterator

BROKERS: Final = (1, 2, 3)
GAPS_MS: Final = ((0, 0), (0, 1_000), (0, 15_000))
"""Bounds of the gap before a line, each as likely as the others."""
LINES: Final = (4, 9)
STALL_MS: Final = (500, 15_000)
HEAD: Final = """\
schema = 1
name = "random-{seed}"
title = "A random script"
description = "Seed {seed} of random scripts."
brokers.count = 3
control = "real"

[config]
default.replication.factor = 3
min.insync.replicas = {min_isr}
auto.leader.rebalance.enable = false
acks = "{acks}"
enable.idempotence = {idempotence}

[[script]]
when = {{ step = "follow", broker = 3 }}
do = "produce"
batch = "m1"
"""
TAIL: Final = """
[[script]]
do = "wait"
after_ms = 20000

[expect]
kraft = "may-violate"
"elr-4.3" = "may-violate"
"""


@dataclass(slots=True)
class Script:
    """A script so far: the lines, the batches, and which brokers run or stand still."""

    random: Random
    lines: list[dict[str, Any]] = field(default_factory=list)
    batches: int = 1
    down: set[int] = field(default_factory=set)
    paused: set[int] = field(default_factory=set)
    cuts: set[tuple[int, int]] = field(default_factory=set)

    def draw(self) -> None:
        """Add a line."""
        up = [broker for broker in BROKERS if broker not in self.down | self.paused]
        kinds = ["produce", "produce", "produce"]
        kinds += ["kill", "power-loss", "controlled-restart", "pause", "cut", "preferred-election"] if up else []
        kinds += ["start", "start"] if self.down else []
        kinds += ["resume", "resume"] if self.paused else []
        kinds += ["heal", "heal"] if self.cuts else []
        do = self.random.choice(kinds)
        line: dict[str, Any] = {"do": do, "after_ms": self.random.randint(*self.random.choice(GAPS_MS))}
        if do == "produce":
            self.batches += 1
            line |= {"batch": f"m{self.batches}", "records": self.random.randint(1, 3)}
        elif do in ("kill", "controlled-restart", "power-loss"):
            broker = self.random.choice(up)
            self.down.add(broker)
            line |= {"brokers": [broker]} if do == "power-loss" else {"broker": broker}
        elif do == "pause":
            line["node"] = self.random.choice(up)
            self.paused.add(line["node"])
        elif do == "cut":
            ends = self.random.choice([(1, 2), (1, 3), (2, 3), (1, 0), (2, 0), (3, 0)])
            self.cuts.add(ends)
            line |= {"from": ends[0], "to": ends[1] or "control"}
        elif do == "start":
            line["broker"] = self.random.choice(sorted(self.down))
            self.down.discard(line["broker"])
        elif do == "resume":
            line["node"] = self.random.choice(sorted(self.paused))
            self.paused.discard(line["node"])
        elif do == "heal":
            ends = self.random.choice(sorted(self.cuts))
            self.cuts.discard(ends)
            line |= {"from": ends[0], "to": ends[1] or "control"}
        self.lines.append(line)


def script(seed: int) -> str:
    """The scenario file of a seed."""
    random = Random(seed)
    found = Script(random)
    for _ in range(random.randint(*LINES)):
        found.draw()
    head = HEAD.format(
        seed=seed,
        min_isr=random.randint(1, 2),
        acks=random.choice(["all", "all", "1"]),
        idempotence="false",
    )
    if 'acks = "all"' in head and random.random() < 1 / 3:
        head = head.replace("enable.idempotence = false", "enable.idempotence = true")
    lines = (
        "\n[[script]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in line.items())
        for line in found.lines
    )
    return head + "".join(lines) + TAIL


def performed(seeds: range, releases: list[str], pace: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Perform scripts, each on all releases; a line of JSON for each run."""
    for seed in seeds:
        path = folder / f"random-{seed}.toml"
        path.write_text(script(seed), encoding="utf-8")
        for release in releases:
            begin_s = time.monotonic()
            code, text, told = confirmed_with(path, release, pace)
            yield {
                "day": time.strftime("%Y-%m-%d"),
                "seed": seed,
                "release": release,
                "code": code,
                "seconds": round(time.monotonic() - begin_s, 1),
                "outcome": text,
                "runs": told.get("runs", []),
            }


def main() -> int:
    """Run the scripts; 1 if brokers and simulation differed in one."""
    parser = argparse.ArgumentParser(prog="python -m tests.verification.confirm.random_scripts", description=__doc__)
    parser.add_argument("--scripts", type=int, default=40, help="number of scripts")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--kafka", action="append", help="a release; by default 4.4.0 and 3.9.0")
    parser.add_argument("--pace", type=int, default=5, help="see highwater confirm")
    parser.add_argument("--output", type=Path, help="add a line of JSON for each run to this file")
    parser.add_argument("--show", action="store_true", help="print the scripts, and run nothing")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.scripts)
    releases = arguments.kafka or ["4.4.0", "3.9.0"]
    if arguments.show:
        sys.stdout.write("\n".join(map(script, seeds)))
        return 0
    tally: Counter[tuple[str, int]] = Counter()
    with tempfile.TemporaryDirectory(prefix="random-scripts-") as name:
        for run in performed(seeds, releases, arguments.pace, Path(name)):
            tally[run["release"], run["code"]] += 1
            sys.stdout.write(
                f"{run['seed']:5} {run['release']:9} {run['seconds']:6.1f} s  exit {run['code']}: {run['outcome']}\n"
            )
            sys.stdout.flush()
            if arguments.output is not None:
                with arguments.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(run) + "\n")
    for (release, code), number in sorted(tally.items()):
        sys.stdout.write(f"{release}: exit {code} in {number} of {len(seeds)}\n")
    return int(any(code == 1 for _, code in tally))


if __name__ == "__main__":
    sys.exit(main())
