"""Records that a consumer never reads because it learns late of a new partition, by setting: KAFKA-20539, KIP-1327.

Runs of `applications` in which nothing fails: an administrator adds partitions, whose producers write to them at once.
`python -m tests.verification.expansions` prints a table; a run is the same in all modes.
"""

from __future__ import annotations

import re
import sys
from functools import partial
from typing import Final

from reports.analysis.statistics import interval
from scenarios.campaign.campaign import Campaign
from scenarios.campaign.runner import LocalRunner
from scenarios.format.selection import scenario as chosen
from scenarios.single.run import run
from sim.config import Value
from sim.protocol.modes import MODES

MODE: Final = "elr-4.3"
ADDED: Final = ("partition-creation", "topic-creation")
FAULTS: Final = ("kill", "power-loss", "controlled-restart", "pause", "cut", "session-expiry", "preferred-election")
AGES_MS: Final = (10_000, 30_000, 60_000)
CASES: Final = (
    *(("latest", age_ms, "") for age_ms in AGES_MS),
    *(("latest", age_ms, "new_partition_reset=earliest") for age_ms in AGES_MS),
    *((f"by_duration:PT{age_ms // 1_000 + 2}S", age_ms, "") for age_ms in AGES_MS),
    *((f"by_duration:PT{age_ms // 1_000 + 2}S", age_ms, "duration_reset=latest") for age_ms in AGES_MS),
    ("earliest", 60_000, ""),
    ("none", 60_000, ""),
)
"""``auto.offset.reset``, ``metadata.max.age.ms``, and a rule with its value."""
_SKIPPED: Final = re.compile(r"past (\d+) record")


def skips(policy: str, age_ms: int, rule: str, seed: int) -> tuple[int, int, int]:
    """Run a seed: partitions that were added, those with records that are never read, and the number of these."""
    settings: dict[str, Value] = {"auto.offset.reset": policy, "metadata.max.age.ms": age_ms}
    quiet = chosen("applications", settings, without=FAULTS)
    name, _, value = rule.partition("=")
    result = run(quiet, MODES[MODE], seed, {name: value} if name else {})
    found = [
        int(told[1])
        for violation in result.violations
        if violation["kind"] == "reset-skip" and (told := _SKIPPED.search(violation["detail"]))
    ]
    added = sum(fault["effective"] for fault in result.faults if fault["kind"] in ADDED)
    return added, len(found), sum(found)


def row(policy: str, age_ms: int, rule: str, seeds: int, processes: int) -> str:
    """A row of the table."""
    campaign = Campaign(partial(skips, policy, age_ms, rule), LocalRunner(processes))
    added, partitions, records = map(sum, zip(*(counts for _, counts in campaign.run(range(seeds))), strict=True))
    low, high = interval(partitions, added)
    mean = records / added
    share = f"{partitions / added:.1%} ({low:.1%} to {high:.1%})"
    return f"| {policy} | {age_ms:,} | {rule} | {added:,} | {share} | {mean:.2f} |"


def main() -> None:
    """Print the table; the arguments are the number of seeds and of processes."""
    seeds, processes = (*map(int, sys.argv[1:]), *(400, 2)[len(sys.argv) - 1 :])
    sys.stdout.write(
        "| auto.offset.reset | metadata.max.age.ms | rule | partitions added | with skipped records | "
        "records skipped, mean |\n|---|---|---|---|---|---|\n"
    )
    for case in CASES:
        sys.stdout.write(f"{row(*case, seeds, processes)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
