"""`make hunt`: the independent checker, which reads the trace only, against the incremental ones on found failures."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict

from scenarios.format.catalogue import load
from scenarios.format.fields import VIOLATIONS
from sim.config import integer
from tests.named import run, run_row
from tests.verification import reference


def main() -> int:
    """Find that many failures of each kind, replay them, and compare the kinds found; 1 if any differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="power")
    parser.add_argument("--modes", default="hw,kip101")
    parser.add_argument("--seeds", type=int, default=20_000)
    parser.add_argument("--each", type=int, default=20)
    options = parser.parse_args()
    scenario = load(options.scenario)
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for seed in range(options.seeds):
        for mode in options.modes.split(","):
            row = run_row(scenario, mode, seed)
            for kind in filter(None, row["violations"].split(",")):
                found[kind].append((mode, seed))
        if len(found) == len(VIOLATIONS) and all(len(keys) >= options.each for keys in found.values()):
            break
    differ = []
    for mode, seed in sorted({key for keys in found.values() for key in keys[: options.each]}):
        result = run(scenario, mode, seed, trace=True)
        assert result.trace is not None
        replicas = range(1, integer(result.settings, "default.replication.factor") + 1)
        said = set(reference.check(result.trace, replicas)) - ({"no-progress"} if result.stalled else set())
        if said != set(result.row["violations"].split(",")):
            differ.append((mode, seed, result.row["violations"], sorted(said)))
    counts = {kind: min(len(keys), options.each) for kind, keys in found.items()}
    sys.stdout.write(f"replayed failures by kind: {counts}\ndiffering: {differ}\n")
    return int(bool(differ))


if __name__ == "__main__":
    raise SystemExit(main())
