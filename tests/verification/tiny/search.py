"""Breadth-first search over all orders of events in a tiny cluster."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from tests.verification.tiny.world import Action, State, World

LOSS: Final = "loss"
DIVERGENCE: Final = "divergence"
KINDS: Final = (LOSS, DIVERGENCE)


@dataclass
class Found:
    """The result of a search.

    Attributes:
        states: distinct states seen.
        exhausted: there are no others within the bounds.
        stopped: all that was looked for was found before that. Neither: a limit was reached, and what was not found
            by then may still be possible.
        paths: kind of violation -> a shortest way to it, in words.
    """

    states: int = 0
    exhausted: bool = False
    stopped: bool = False
    paths: dict[str, list[str]] = field(default_factory=dict)


def search(
    world: World, *, until: Collection[str] = (), max_states: int | None = None, seconds: float | None = None
) -> Found:
    """Look for violations.

    Args:
        world: the cluster.
        until: stop as soon as all of these are found; none: go on to the end.
        max_states: give up before more distinct states than these are kept; at least 1.
        seconds: give up after this time (monotonic clock), looked at once per state visited.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    first = world.first()
    parents: dict[State, tuple[State, Action] | None] = {first: None}
    todo = deque([first])
    found = Found()
    while todo:
        if deadline is not None and time.monotonic() >= deadline:
            found.states = len(parents)
            return found
        state = todo.popleft()
        for action, after in world.successors(state):
            if after in parents:
                continue
            if max_states is not None and len(parents) >= max_states:
                found.states = len(parents)
                return found
            parents[after] = (state, action)
            lost = world.loses(after)
            for kind, violated in ((LOSS, lost), (DIVERGENCE, world.diverges(after))):
                if violated and kind not in found.paths:
                    found.paths[kind] = _path(world, parents, after)
                    if until and all(wanted in found.paths for wanted in until):
                        found.states = len(parents)
                        found.stopped = True
                        return found
            if not lost:
                todo.append(after)
    found.states = len(parents)
    found.exhausted = True
    return found


def _path(world: World, parents: dict[State, tuple[State, Action] | None], state: State) -> list[str]:
    steps = []
    while (parent := parents[state]) is not None:
        steps.append(world.tell(parent[1], state))
        state = parent[0]
    return steps[::-1]
