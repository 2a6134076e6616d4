"""`make hunt`: removing a fault, a batch or a broker from a run does not change the latencies of the rest.

Of the messages that are sent with and without it, 99 % must have the latency that they had. A message is the same if
link, type and all that it says are the same, and as many like it were sent before. Of what takes longer by a fault the
quantile counts, not the time. Beside that stands a stricter comparison: whatever is sent over the same link at the same
microsecond, of the same type.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from faults.plan import Plan
from scenarios.format.catalogue import load
from scenarios.single import execution
from scenarios.single.run import _execute, prepare_process
from sim.environment.network import Channel
from sim.kernel.mixing import mixed
from sim.protocol.modes import mode as mode_named
from tests.plain import refuse_compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from scenarios.format.scenario import PlannedSend, Scenario
    from sim.kernel.message import Message

    Batches = tuple[PlannedSend, ...]

CHUNK: Final = 20
MARK: Final = 0.99
WHATS: Final = ("fault", "batch", "broker")
PAIRS: Final = {
    "chaos": ("hw", "kip101", "kip279", "kip320"),
    "elr-chaos": ("kraft", "elr"),
    "power": ("kip320", "elr"),
    "partitions": ("kip101", "kip320"),
    "sessions": ("kip279", "kraft"),
}
NOT_SAID: Final = {"answered_us", "done", "operation", "result", "sent_us", "version"}
"""Fields that are no part of what a message says."""

Latencies = dict[tuple[Any, ...], int]
"""Quantile of each message."""


@dataclass
class Kept:
    """How many messages kept their latency after something was removed from a run.

    Attributes:
        same: by what was taken out: messages that are the same, and those of them that kept their latency.
        at_once: of those that were sent at the same time.
    """

    same: dict[str, Counter[bool]] = field(default_factory=lambda: {what: Counter() for what in WHATS})
    at_once: dict[str, Counter[bool]] = field(default_factory=lambda: {what: Counter() for what in WHATS})

    def add(self, other: Kept) -> None:
        """Add another tally."""
        for what in WHATS:
            self.same[what] += other.same[what]
            self.at_once[what] += other.at_once[what]


class _Quantiles(tuple[int, ...]):
    """A link's latency quantiles; notes which one was used."""

    __slots__ = ()
    taken = -1

    def __getitem__(self, index: Any) -> Any:
        _Quantiles.taken = index
        return super().__getitem__(index)


def said(value: Any) -> Any:
    """The contents of a message, or of a part of one."""
    if isinstance(value, (list, tuple)):
        return tuple(map(said, value))
    if isinstance(value, dict):
        return tuple((key, said(part)) for key, part in value.items())
    slots = [name for base in type(value).__mro__ for name in getattr(base, "__slots__", ())]
    if not slots:
        return value
    names = sorted(set(slots) - NOT_SAID)
    return (type(value).__name__, *(said(getattr(value, name)) for name in names if hasattr(value, name)))


def observe(
    scenario: Scenario, mode: str, seed: int, plan: Callable[[Plan], Plan], sends: Callable[[Batches], Batches]
) -> tuple[Latencies, Latencies, Any]:
    """Run with another plan and other batches: latencies by what messages say, and by when they were sent."""
    by_said: Latencies = {}
    by_time: Latencies = {}
    count: Counter[Any] = Counter()
    original, drawn = Channel.send, vars(execution)["draw"]

    def draw(*words: Any) -> tuple[Plan, Batches]:
        faults, batches = drawn(*words)
        return plan(faults), sends(batches)

    def send(channel: Channel[Any], message: Message) -> None:
        link = channel._link
        if type(link.table) is not _Quantiles:
            link.table = _Quantiles(link.table)
        _Quantiles.taken = -1
        original(channel, message)
        ends = next(ends for ends, one in channel.target.network._links.items() if one is link)
        what = (ends, said(message))
        by_said[what, count[what]] = _Quantiles.taken
        count[what] += 1
        when = (ends, type(message).__name__, channel._kernel.now_us)
        by_time[when, count[when]] = _Quantiles.taken
        count[when] += 1

    with (
        mock.patch.object(Channel, "send", send),
        mock.patch.object(execution, "draw", draw),
    ):
        run, error = _execute(scenario, mode_named(mode), seed, {})
    assert not error, error
    config = dict(run.config)
    run.dispose()
    return by_said, by_time, config


def without(scenario: Scenario, mode: str, seed: int) -> Kept:
    """Remove a fault, a batch and a broker from a run, each chosen at random by its seed."""
    found = Kept()
    plans: list[Plan] = []
    drawn: list[Batches] = []

    def keep_plan(plan: Plan) -> Plan:
        plans.append(plan)
        return plan

    def keep_sends(sends: Batches) -> Batches:
        drawn.append(sends)
        return sends

    whole = observe(scenario, mode, seed, keep_plan, keep_sends)
    faults = plans[0].faults
    for what, other in _runs(scenario, mode, seed, whole[2], faults, len(drawn[0])):
        for before, after, kept in zip(whole[:2], other[:2], (found.same, found.at_once), strict=True):
            for message in before.keys() & after.keys():
                kept[what][before[message] == after[message]] += 1
    return found


def _runs(
    scenario: Scenario, mode: str, seed: int, config: Any, faults: Sequence[Any], batches: int
) -> Iterator[tuple[str, Any]]:
    def same(any_: Any) -> Any:
        return any_

    if faults:
        left_out = mixed(seed, 1) % len(faults)
        fewer = Plan(tuple(fault for number, fault in enumerate(faults) if number != left_out))
        yield "fault", observe(scenario, mode, seed, lambda _: fewer, same)
    if batches:
        number = mixed(seed, 2) % batches
        yield "batch", observe(scenario, mode, seed, same, lambda sends: (*sends[:number], *sends[number + 1 :]))
    factor, spare = config["default.replication.factor"], config["sim.spare.brokers"]
    last = min(scenario.brokers, factor + spare)
    if last > 1:
        smaller = (
            {"sim.spare.brokers": spare - 1} if spare and last > factor else {"default.replication.factor": last - 1}
        )
        kept = Plan(tuple(fault for fault in faults if last not in fault.targets))
        yield "broker", observe(scenario.with_settings(smaller), mode, seed, lambda _: kept, same)


def _hunt(chunk: tuple[str, str, range]) -> Kept:
    name, mode, seeds = chunk
    prepare_process()
    scenario, found = load(name), Kept()
    for seed in seeds:
        found.add(without(scenario, mode, seed))
    return found


def main() -> int:
    """Remove parts of runs and print how many latencies stayed; 1 if fewer than 99 % of any kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=1_000, help="how many")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    refuse_compiled(parser)
    pairs = [(name, mode) for name, modes in PAIRS.items() for mode in modes]
    each = -(-options.plans // len(pairs))
    chunks = [(*pair, range(at, min(at + CHUNK, each))) for pair in pairs for at in range(0, each, CHUNK)]
    found = Kept()
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for part in pool.map(_hunt, chunks):
            found.add(part)
    for title, kept in (("the same", found.same), ("sent at the same time", found.at_once)):
        for what, count in kept.items():
            share = count[True] / max(count.total(), 1)
            sys.stdout.write(f"without a {what}: {count[True]:,} of {count.total():,} that are {title}, {share:.3%}\n")
    return int(any(count[True] < MARK * count.total() for count in found.same.values()))


if __name__ == "__main__":
    raise SystemExit(main())
