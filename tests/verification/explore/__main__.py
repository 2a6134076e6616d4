"""Every order of events, the slow searches included: what was found after how many events, in how many states.

``python -m tests.verification.explore [--only PART] [--mode MODE] [--most-states N] [--time SECONDS]
[--paths]``, limits per search. Ends with code 1 if a claim does not hold, else with 3 if a limit came before an answer.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from highwater.lab.explore.kraft.cluster import KRaftBounds
from highwater.lab.explore.zookeeper.cluster import ZooKeeperCluster
from sim.protocol.modes import mode
from tests.highwater.lab.explore.kraft.facts import BOUNDED, MARKS, NO_FAULTS, reductions_hide_nothing
from tests.highwater.lab.explore.zookeeper.facts import FACTS

if TYPE_CHECKING:
    from collections.abc import Collection

    from highwater.lab.explore.search import Found

PARTS = ("zookeeper", "reductions", "kraft", "marks")


@dataclass
class Tally:
    """Numbers of claims that did not hold, and that were not decided."""

    wrong: int = 0
    undecided: int = 0

    def note(self, name: str, found: Found[Any], shown: Collection[str], kinds: frozenset[str], mark: str = "") -> None:
        """Print a search, and whether what it has `shown` is as claimed."""
        said = ", ".join(f"{kind} after {len(path)} events" for kind, path in found.paths.items()) or "nothing"
        states = f"{'all' if found.exhausted else 'first'} {found.states:,} states, {found.seconds:.1f} CPU s"
        decided = found.exhausted or found.stopped
        if set(shown) - kinds or (decided and set(shown) != kinds):
            self.wrong += 1
            verdict = "NOT AS CLAIMED"
        elif decided:
            verdict = "as claimed"
        else:
            self.undecided += 1
            verdict = "no answer within the limits"
        sys.stdout.write(f"{name}: {said}; {states}; {verdict}{mark}\n")
        sys.stdout.flush()


def main(arguments: list[str] | None = None) -> int:
    """Search them all, or some."""
    parser = argparse.ArgumentParser(prog="explore")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--mode")
    parser.add_argument("--most-states", type=int)
    parser.add_argument("--time", type=float)
    parser.add_argument("--paths", action="store_true")
    given = parser.parse_args(arguments)
    tally = Tally()
    if given.only in (None, "zookeeper"):
        _zookeeper(tally, given)
    if given.only == "reductions" or (given.only is None and given.mode is None):
        for bounds in (NO_FAULTS, KRaftBounds(0, losses=0), KRaftBounds(0, fences=0)):
            hides_nothing = reductions_hide_nothing("elr-repaired", bounds)
            tally.wrong += not hides_nothing
            sys.stdout.write(f"reductions ({bounds.sentence}): {'hide nothing' if hides_nothing else 'HIDE STATES'}\n")
    for part, facts in (("kraft", BOUNDED), ("marks", MARKS)):
        if given.only in (None, part):
            for fact in facts:
                if given.mode in (None, fact.mode):
                    cluster, found = fact.search(most_states=given.most_states, time_limit=given.time)
                    tally.note(fact.name, found, found.paths, frozenset(fact.kinds), fact.mark(cluster))
                    tally.wrong += not fact.is_decided_as_claimed(cluster)
    return 1 if tally.wrong else 3 if tally.undecided else 0


def _zookeeper(tally: Tally, given: argparse.Namespace) -> None:
    for fact in FACTS:
        if given.mode not in (None, fact.mode):
            continue
        found = fact.check(max_states=given.most_states, seconds=given.time)
        tally.note(fact.name, found, fact.claimed(found.paths), fact.kinds)
        if given.paths:
            world = ZooKeeperCluster(mode(fact.mode).rules.override(dict(fact.rules)), fact.bounds)
            for kind, path in found.paths.items():
                sys.stdout.write(f"  {kind}\n" + "".join(f"    {world.event(action)}\n" for action, _ in path))


if __name__ == "__main__":
    sys.exit(main())
