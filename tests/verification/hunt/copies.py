"""A run is copied midway: original and copy continue with the same inputs, and end with the same row.

The row has the digest of all steps, so each state machine of the protocol (controllers, partitions, fetchers, logs,
epoch caches, producer state, clients) made the same calls with the same answers in both. Messages are values, which
both share. Both also share record batches: logs and fetch responses refer to the same ones, and checkers compare them
by identity. ``python -m tests.verification.hunt.copies`` tries 200 runs.

In a mode with ZooKeeper the run first continues until a broker's request to ZooKeeper is pending, for `WAIT_US` at
most. What cannot be copied is a controller of ZooKeeper in the middle of an event, because its handlers are generators.
Such a run is copied as soon as the controller has handled the event.
"""

from __future__ import annotations

import argparse
import copy
import sys
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from scenarios.format.catalogue import load
from scenarios.single import rows
from scenarios.single.ended_run import EndedRun
from scenarios.single.execution import CLIENTS_BEGIN_US, Execution
from sim.history.steps.base import StepKind
from sim.hosts.zk_broker import ZooKeeperBroker
from sim.kernel.message import Message
from sim.kernel.mixing import mixed
from sim.kernel.scheduler import ALWAYS
from sim.protocol.batch import Batch
from sim.protocol.modes import mode as mode_named
from tests.plain import refuse_compiled

if TYPE_CHECKING:
    from scenarios.single.rows import Row

PAIRS: Final = (
    ("chaos", "hw"),
    ("chaos", "kip101"),
    ("chaos", "kip320"),
    ("elr-chaos", "elr"),
    ("elr-chaos", "kraft"),
    ("elr-chaos", "elr-recovery"),
    ("reassignments", "elr"),
    ("reassignments", "kip320"),
)
STEP_US: Final = 500
"""Delay before the next attempt to copy a run."""
WAIT_US: Final = 20_000_000
"""How long a run waits for a pending request to ZooKeeper."""


def _itself(value: Any, _: object) -> Any:
    return value


def copied(run: Execution) -> Execution:
    """A copy of a run between two events, which shares only immutable objects with it."""
    shared = (run.scenario, run.mode, run.config, run.rules, ALWAYS)
    memo: dict[int, Any] = {id(one): one for one in shared}
    with (
        mock.patch.object(Message, "__deepcopy__", _itself, create=True),
        mock.patch.object(Batch, "__deepcopy__", _itself, create=True),
        mock.patch.object(StepKind, "__deepcopy__", _itself, create=True),
        mock.patch.dict(vars(copy)["_deepcopy_dispatch"], {type(blake2b()): lambda one, _: one.copy()}),
    ):
        return copy.deepcopy(run, memo)


def _zookeeper_brokers(run: Execution) -> list[ZooKeeperBroker]:
    return [broker for broker in run.cluster.running.values() if isinstance(broker, ZooKeeperBroker)]


def can_be_copied(run: Execution) -> bool:
    """Whether no controller of ZooKeeper is in the middle of an event."""
    return not any(broker.module.controller._events.is_handling for broker in _zookeeper_brokers(run))


def has_pending_request(run: Execution) -> bool:
    """Whether a request to ZooKeeper is pending."""
    return any(broker.zookeeper.pending for broker in _zookeeper_brokers(run))


def begun(name: str, mode: str, seed: int) -> Execution:
    """Run a seed up to a random time, and on to a time at which the run can be copied."""
    run = Execution(load(name), mode_named(mode), seed, {}, None)
    run.cluster.boot()
    run.kernel.call_at(CLIENTS_BEGIN_US, run.cluster.control.life, run._begin_clients, None)
    run._draw()
    run.kernel.run_until(CLIENTS_BEGIN_US + mixed(seed, 7) % (run.horizon_us // 2))
    if run.rules.control_plane == "zookeeper":
        until_us = min(run.kernel.now_us + WAIT_US, run.horizon_us // 2)
        while run.kernel.now_us < until_us and not (has_pending_request(run) and can_be_copied(run)):
            run.kernel.run_until(run.kernel.now_us + STEP_US)
    while not can_be_copied(run):
        run.kernel.run_until(run.kernel.now_us + STEP_US)
    return run


def ended(run: Execution) -> Row:
    """Continue a run to its end, and return its row."""
    run.kernel.run_until(run.horizon_us)
    run._heal()
    run._check()
    return rows.row(EndedRun(run, ""))


def differs(name: str, mode: str, seed: int) -> str:
    """Which columns are different for a run and its copy; "" if none."""
    return differences(begun(name, mode, seed))


def differences(run: Execution) -> str:
    """Copy a run, end both, and return the columns that are different; "" if none."""
    twin = copied(run)
    own, other = ended(run), ended(twin)
    return ", ".join(column for column in own if own[column] != other[column])


def main() -> int:
    """Copy runs and compare; 1 if a copy ended differently."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="how many")
    options = parser.parse_args()
    refuse_compiled(parser)
    wrong = with_request = 0
    for seed in range(options.runs):
        name, mode = PAIRS[seed % len(PAIRS)]
        run = begun(name, mode, seed)
        with_request += has_pending_request(run)
        found = differences(run)
        if found:
            wrong += 1
            sys.stdout.write(f"{name} {mode} {seed}: {found}\n")
    pending = f"{with_request} with a pending request to ZooKeeper"
    sys.stdout.write(f"{options.runs} runs copied ({pending}), {wrong} ended otherwise than their copy\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
