"""`make hunt-settings`: runs of drawn scenarios with drawn settings in clusters of any shape.

Each number stands for a scenario, a mode, a seed, 1 to 7 brokers, a replication factor up to that, and settings drawn
over their whole ranges, extremes and "never" included; what no Kafka would start with is drawn again. One in two is run
with and without elision, and histories have to be equal; with the others, and any order of ties, no event lies in the
past and no run ends with an error. Horizons are short. A run that needs more events than the budget is counted
apart (an interval of 1 ms is legal, and so is a session that never ends); what came before that has to be equal, too.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING

from faults.kinds import KINDS
from scenarios.format.catalogue import load, names
from scenarios.single.run import _execute, prepare_process
from sim.config import KEYS, NEVER, Value, refusals, shown
from sim.kernel.scheduler import Kernel, PriorityKernel, ShuffledKernel
from sim.kernel.streams import Stream, Streams, choice, integer, sample
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scenarios.format.scenario import Scenario
    from sim.history.trace import Shown

OWN = ("default.replication.factor", "sim.network.latency", "sim.elision", "sim.event.budget", "sim.record.budget")
"""Keys that the hunt sets itself."""
EVENT_BUDGET = 60_000
HORIZONS_US = (20_000_000, 60_000_000, 60_000_000, 120_000_000)
CHUNK = 25
LEGAL = (
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("request.timeout.ms", "delivery.timeout.ms"),
)
"""No Kafka would start if the first were longer than the second: drawing again would leave few short ones."""


@dataclass(frozen=True, slots=True)
class Case:
    """What one number stands for."""

    number: int
    name: str
    mode: str
    seed: int
    brokers: int
    horizon_us: int
    all_kinds: bool
    settings: dict[str, Value]
    own: dict[int, dict[str, Value]]

    def scenario(self, **settings: Value) -> Scenario:
        """The drawn scenario in that cluster, with more settings."""
        found = DRAWN[self.name].with_settings({**self.settings, **settings})
        assert found.faults is not None
        kinds = tuple(KINDS) if self.all_kinds else found.faults.kinds
        faults = replace(found.faults, horizon_us=self.horizon_us, kinds=kinds)
        return replace(found, brokers=self.brokers, faults=faults, broker_config=self.own)

    def __str__(self) -> str:
        kinds = "all kinds" if self.all_kinds else "its kinds"
        about = f"{self.number}: {self.name} {self.mode} seed {self.seed}, {self.brokers} brokers"
        own = "".join(f"; broker {broker}: {_words(keys)}" for broker, keys in self.own.items())
        return f"{about}, {self.horizon_us // 1_000} ms, {kinds}: {_words(self.settings)}{own}"


def _words(settings: dict[str, Value]) -> str:
    return " ".join(f"{key}={shown(value)}" for key, value in settings.items())


DRAWN = {name: load(name) for name in names() if load(name).drawn}


def drawn_case(number: int) -> Case:
    """The case of a number."""
    stream = Streams(number)("hunt:settings")
    name = choice(stream, list(DRAWN))
    brokers = integer(stream, 1, 7)
    factor = integer(stream, 1, brokers)
    keys = [key for key in KEYS if key not in OWN]
    # Some change little, some everything: one extreme hides what another would show.
    count = integer(stream, 0, choice(stream, (4, 12, len(keys))))
    settings: dict[str, Value] = {}
    while not settings or _refused(DRAWN[name], settings):
        settings = {"default.replication.factor": factor}
        settings |= {key: _value(stream, key) for key in sample(stream, keys, count)}
        for shorter, longer in LEGAL:
            if longer in settings:
                settings[shorter] = min(
                    _number(settings.get(shorter, KEYS[shorter].default)), _number(settings[longer])
                )
    mode, seed = choice(stream, list(MODES)), integer(stream, 0, 1 << 40)
    horizon_us, all_kinds = choice(stream, HORIZONS_US), stream.random() * 3 < 1
    own: dict[int, dict[str, Value]] = {}
    while stream.random() * 5 < 1:
        broker = integer(stream, 1, brokers)
        keys_of_one = {key: _value(stream, key) for key in sample(stream, keys, 3)}
        if not _refused(DRAWN[name], {**settings, **keys_of_one}):
            own[broker] = keys_of_one
    return Case(number, name, mode, seed, brokers, horizon_us, all_kinds, settings, own)


def _refused(scenario: Scenario, settings: dict[str, Value]) -> bool:
    left = {key: values for key, values in scenario.draw_config.items() if key not in settings}
    return bool(refusals({**scenario.config, **settings}, left))


def _value(stream: Stream, key: str) -> Value:
    """Any value of a key: an extreme, one near the default or near another key's, or of any size."""
    spec = KEYS[key]
    if spec.choices:
        return choice(stream, spec.choices)
    default = spec.default
    if isinstance(default, bool):
        return bool(stream.getrandbits(1))
    assert isinstance(default, int)
    way = integer(stream, 0, 9)
    if way == 0:
        return choice(stream, (spec.minimum, spec.minimum + 1, spec.maximum, spec.maximum - 1))
    if way < 4:
        number = int(default * 4.0 ** (2 * stream.random() - 1)) if default < NEVER else integer(stream, 1, 100)
    elif way < 6:
        number = choice(stream, _DEFAULTS)
    else:
        number = int(2.0 ** (stream.random() * choice(stream, (8, 16, 20, 40, 63))))
    return min(max(number, spec.minimum), spec.maximum)


_DEFAULTS = sorted(
    {spec.default for key, spec in KEYS.items() if key.endswith("ms") and type(spec.default) is int},
)


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value


@dataclass(slots=True)
class Found:
    """What came of cases.

    Attributes:
        failures: those that failed, with why.
        counts: how many of what kind.
    """

    failures: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def try_cases(cases: Iterable[Case], event_budget: int = EVENT_BUDGET) -> Found:
    """Run each case, one in two with and without elision."""
    found = Found()
    for case in cases:
        kind, why = _try(case, event_budget)
        found.counts[kind] += 1
        if why:
            found.failures.append(f"{case}: {why}")
    return found


def _try(case: Case, event_budget: int) -> tuple[str, str]:
    if case.number % 2:
        error, _, verdict = _run(case.scenario(), case, _kernel(case, event_budget))
        return _kind(error, verdict), "" if _is_budget(error) else error
    rows = []
    for elision in (True, False):
        error, digest, verdict = _run(_with(case, elision=elision), case, Kernel(event_budget))
        if error and not _is_budget(error):
            return "error", f"elision {elision}: {error}"
        rows.append((error, digest, verdict))
    if any(error for error, _, _ in rows):
        part = first_difference(case, event_budget)
        return ("differs", f"histories differ at {part} us") if part >= 0 else ("equal until exhausted", "")
    if rows[0][1:] != rows[1][1:]:
        return "differs", f"histories differ: {rows}"
    return "equal", ""


def first_difference(case: Case, event_budget: int) -> int:
    """When histories with and without elision first differ, as far as both were simulated; -1: they do not."""
    histories, ends = [], []
    for elision in (True, False):
        steps: list[tuple[int, str]] = []
        kernel = Kernel(event_budget)
        run, _ = _execute(_with(case, elision=elision), MODES[case.mode], case.seed, {}, [_noting(steps)], kernel)
        run.dispose()
        histories.append(steps)
        ends.append(kernel.now_us)
    one, other = ([step for step in steps if step[0] < min(ends)] for steps in histories)
    apart = [min(pair)[0] for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
    if apart or len(one) == len(other):
        return apart[0] if apart else -1
    return max(one, other, key=len)[min(len(one), len(other))][0]


def _noting(steps: list[tuple[int, str]]) -> Callable[[Shown], None]:
    return lambda step: steps.append((step["t"], repr(step)))


def _with(case: Case, *, elision: bool) -> Scenario:
    """Ties that are broken at random would be broken otherwise where there are others."""
    settings: dict[str, Value] = {"sim.elision": elision, "sim.ties": "fifo"}
    return case.scenario(**settings)


def _kernel(case: Case, event_budget: int) -> Kernel:
    ties, stream = case.settings.get("sim.ties", "fifo"), Streams(case.seed)("ties")
    if ties == "random":
        return ShuffledKernel(stream, event_budget)
    return PriorityKernel(stream, event_budget=event_budget) if ties == "pct" else Kernel(event_budget)


def _run(scenario: Scenario, case: Case, kernel: Kernel) -> tuple[str, str, str]:
    run, error = _execute(scenario, MODES[case.mode], case.seed, {}, [], kernel)
    row = run.row(error)
    run.dispose()
    return error, row["digest"], row["verdict"]


def _kind(error: str, verdict: str) -> str:
    if _is_budget(error):
        return "exhausted"
    return "error" if error else verdict


def _is_budget(error: str) -> bool:
    return error.startswith(("sim.event.budget:", "sim.record.budget:"))


def _hunt(numbers: range) -> Found:
    prepare_process()
    return try_cases(map(drawn_case, numbers))


def main() -> int:
    """Try cases and print those that fail; 1 if any does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="first number")
    parser.add_argument("--runs", type=int, default=50_000, help="how many numbers")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    end = options.first + options.runs
    chunks = [range(first, min(first + CHUNK, end)) for first in range(options.first, end, CHUNK)]
    counts: Counter[str] = Counter()
    failed = 0
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for numbers, found in zip(chunks, pool.map(_hunt, chunks), strict=True):
            counts += found.counts
            failed += len(found.failures)
            for failure in found.failures:
                sys.stdout.write(f"{failure}\n")
                sys.stdout.flush()
            if not numbers.stop % (40 * CHUNK):
                sys.stderr.write(f"up to {numbers.stop}: {dict(sorted(counts.items()))}; {failed} failed\n")
    sys.stdout.write(f"{options.runs} cases: {dict(sorted(counts.items()))}; {failed} failed\n")
    return int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(main())
