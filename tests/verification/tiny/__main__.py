"""All facts at tiny scale, the slow ones included: what was found after how many steps, in how many states.

``python -m tests.verification.tiny [--mode MODE] [--max-states N] [--time SECONDS] [--paths]``, limits per fact. Ends
with code 1 if a claim does not hold, else with 3 if a limit came before an answer.
"""

from __future__ import annotations

import argparse
import sys

from tests.verification.tiny.facts import FACTS


def main(arguments: list[str] | None = None) -> int:
    """Check them all, or those of one mode."""
    parser = argparse.ArgumentParser(prog="tiny")
    parser.add_argument("--mode", choices=sorted({fact.mode for fact in FACTS}))
    parser.add_argument("--max-states", type=int)
    parser.add_argument("--time", type=float)
    parser.add_argument("--paths", action="store_true")
    given = parser.parse_args(arguments)
    wrong = unanswered = 0
    for fact in FACTS:
        if given.mode not in (None, fact.mode):
            continue
        found = fact.check(max_states=given.max_states, seconds=given.time)
        said = ", ".join(f"{kind} after {len(path)} steps" for kind, path in found.paths.items()) or "nothing"
        states = f"{'all' if found.exhausted else 'first'} {found.states:,} states"
        if set(found.paths) - fact.kinds or ((found.exhausted or found.stopped) and set(found.paths) != fact.kinds):
            mark = "NOT AS CLAIMED"
            wrong += 1
        elif found.exhausted or found.stopped:
            mark = "as claimed"
        else:
            mark = "no answer within the limits"
            unanswered += 1
        sys.stdout.write(f"{fact.name}: {said}; {states}; {mark}\n")
        if given.paths:
            for kind, path in found.paths.items():
                sys.stdout.write("".join([f"  {kind}\n", *[f"    {step}\n" for step in path]]))
        sys.stdout.flush()
    return 1 if wrong else 3 if unanswered else 0


if __name__ == "__main__":
    sys.exit(main())
