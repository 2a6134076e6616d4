"""All facts at tiny scale, the slow ones included: what was found after how many steps, in how many states.

``python -m tests.verification.tiny [--paths]``; ends with code 1 if a claim does not hold.
"""

from __future__ import annotations

import sys

from tests.verification.tiny.facts import FACTS


def main() -> int:
    """Check them all."""
    wrong = 0
    for fact in FACTS:
        found = fact.check()
        said = ", ".join(f"{kind} after {len(path)} steps" for kind, path in found.paths.items()) or "nothing"
        states = f"{'all' if found.exhausted else 'first'} {found.states:,} states"
        mark = "as claimed" if set(found.paths) == fact.kinds else "NOT AS CLAIMED"
        wrong += mark != "as claimed"
        sys.stdout.write(f"{fact.name}: {said}; {states}; {mark}\n")
        if "--paths" in sys.argv:
            for kind, path in found.paths.items():
                sys.stdout.write("".join([f"  {kind}\n", *[f"    {step}\n" for step in path]]))
        sys.stdout.flush()
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
