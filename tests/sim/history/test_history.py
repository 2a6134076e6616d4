from __future__ import annotations

import gc
from types import ModuleType

from scenarios.format.catalogue import load
from scenarios.single.run import _execute
from sim.history import steps
from sim.protocol.log.log import Log
from sim.protocol.modes import mode


def test_kept_steps_keep_no_log() -> None:
    """A broker has a new log after each restart: kept by steps, all of them would last as long as the run."""
    ended, error = _execute(load("reassignments"), mode("elr-4.3"), 7, {})
    assert not error
    kept = ended.cluster.recorder.history.steps
    for kind in (steps.Recovered, steps.Deleted):
        assert any(isinstance(step, kind) for step in kept)
    seen: set[int] = set()
    found: list[object] = list(kept)
    while found:
        one = found.pop()
        if id(one) not in seen and not isinstance(one, type | ModuleType):
            seen.add(id(one))
            assert not isinstance(one, Log)
            found.extend(gc.get_referents(one))
