"""Checks films of random runs against their histories: each row of a page must show the state at its step.

``python -m tests.verification.hunt.films`` looks at 2,000 runs of all drawn scenarios, in modes by turns; some minutes.
"""

from __future__ import annotations

import argparse
import sys
from itertools import islice

from reports.film.film import film
from scenarios.format import catalogue, selection
from scenarios.shrinking.case import Case
from sim.protocol.modes import MODES
from tests.reports.film.truth import problems


def main() -> int:
    """Check films, and print each wrong row; 1 if there is any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    scenarios = [one for one in (selection.scenario(name, {}) for name in catalogue.names()) if one.drawn]
    pairs = [(scenario, MODES[mode]) for scenario in scenarios for mode in scenario.expect]
    rows = wrong = 0
    for number in range(asked.runs):
        scenario, mode = pairs[number % len(pairs)]
        seed = asked.first + number // len(pairs)
        shown = film(Case(scenario, mode, seed))
        rows += len(shown.changes)
        for problem in islice(problems(shown), 3):
            wrong += 1
            sys.stdout.write(f"{scenario.name}, mode {mode.name}, seed {seed}: {problem}\n")
    sys.stdout.write(f"{asked.runs:,} runs, {rows:,} rows, {wrong} that were not so\n")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
