"""`make hunt-settings`: random scenarios with random settings, faults and workloads in clusters of any shape.

Each number stands for a scenario file (a bundled one with other brokers, faults and bursts), a mode, a seed, and
settings drawn over their whole ranges, extremes and "never" included. Each is run as a user runs it, by
``highwater run`` with all its checks, in a process of its own. One that is refused (exit code 2) is counted; every
other one must end with a verdict and no error, within `CPU_S` and `MEMORY_MB`, whatever was drawn. The most expensive
runs are printed.

One in two is run once more with and without elision, and histories have to be equal. Those runs have a smaller budget
of events, and what came before it was used up has to be equal, too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import resource
import shlex
import sys
import tempfile
import tomllib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from faults.bounds import SHARES
from faults.kinds.groups import GROUPINGS
from faults.kinds.registry import KINDS
from faults.kinds.topic_changes import OF_TOPICS
from faults.stories import copies
from faults.stories.reassignments import MOVES
from highwater.cli import main as cli
from scenarios import memory
from scenarios.format import schema, selection
from scenarios.format.catalogue import load, names
from scenarios.single.ended_run import EndedRun
from scenarios.single.rows import row as row_of
from scenarios.single.run import _execute, prepare_process
from sim import exit_codes
from sim.config import KEYS, NEVER, Value, flatten, shown
from sim.errors import InputError
from sim.kernel.scheduler import Kernel
from sim.kernel.streams import Stream, Streams, choice, integer, sample
from sim.protocol.modes import MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from scenarios.format.scenario import Scenario
    from scenarios.single.execution import Execution
    from scenarios.single.rows import Row

_NEEDED: Final = {"moving_percent": (MOVES,), "copying_percent": copies.NEEDS}
"""Share of incidents -> the kinds of which they consist."""
CPU_S: Final = 30
"""CPU time that a run may take, compiled."""
MEMORY_MB: Final = 500
"""Resident memory that the process of a run may take, the interpreter included."""
KILLED_S: Final = 4 * CPU_S
KILLED_BYTES: Final = 4 * MEMORY_MB << 20
"""A run is killed at these limits of CPU time and of addresses."""
OWN: Final = (
    *("default.replication.factor", "sim.elision", "sim.judge.waits"),
    *("sim.event.budget", "sim.record.budget", "sim.state.budget"),
)
"""Keys that are drawn in another way or, as they bound what a run takes, not at all."""
ELISION_EVENTS: Final = 60_000
"""Budget of events of runs with and without elision."""
_VERDICT: Final = re.compile(r'"verdict": "(\w+)"')
CHUNK: Final = 25
PING: Final = "sim.heartbeat.interval.ms"
SESSION: Final = "zookeeper.session.timeout.ms"
LEGAL: Final = (
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("request.timeout.ms", "delivery.timeout.ms"),
)
"""Most of what is drawn would be refused if the first could be longer than the second."""


def _file(name: str) -> dict[str, Any]:
    """A bundled scenario as in its file, with dotted keys in the tables of settings."""
    found = tomllib.loads((files("scenarios") / "files" / f"{name}.toml").read_text())
    found.pop("topics", None)
    return {**found, **{table: dict(flatten(found[table])) for table in ("config", "draw")}}


def _runs_in_every_mode(scenario: Scenario) -> bool:
    """Whether it is drawn, has mostly one partition, and changes no topic, for which it needs another one."""
    faults, others = scenario.faults, scenario.topics[1:]
    changes = faults is not None and not set(OF_TOPICS).isdisjoint(faults.kinds)
    return scenario.drawn and not changes and all(topic.in_percent < 100 for topic in others)


DRAWN: Final = {name: _file(name) for name in names() if _runs_in_every_mode(load(name))}
"""The bundled scenarios that are drawn and run in every mode, without their further topics."""


@dataclass(frozen=True, slots=True)
class Case:
    """The case of a number.

    Attributes:
        number: see above.
        mode: in which it is run.
        seed: with which.
        file: the scenario file.
        settings: what is laid over it.
    """

    number: int
    mode: str
    seed: int
    file: Mapping[str, Any]
    settings: Mapping[str, Value]

    def scenario(self, **settings: Value) -> Scenario:
        """The scenario with these settings and more.

        Raises:
            InputError: the command line refuses it.
        """
        found = schema.read(toml(self.file), f"case {self.number}")
        selection.check_settings(found, self.settings)
        selection.modes(found, [self.mode])
        return found.with_settings({**self.settings, **settings})

    def words(self, folder: Path) -> list[str]:
        """Write its file into a folder; the arguments of ``highwater`` that run it."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self.number}.toml"
        file.write_text(toml(self.file))
        words = ["run", str(file), "--mode", self.mode, "--seed", str(self.seed)]
        for key, value in self.settings.items():
            words += ["--set", f"{key}={shown(value)}"]
        return words


def _grown(mode: str, seed: int, settings: dict[str, Value], name: str, **tables: dict[str, Any]) -> Case:
    """A case of a bundled scenario with other values in some tables."""
    file = json.loads(json.dumps(DRAWN[name]))
    for table, changes in tables.items():
        file[table] |= changes
    file["draw"].pop("default.replication.factor")
    return Case(-1 - len(KNOWN), mode, seed, file, settings)


KNOWN: Final[list[Case]] = []
"""Runs that once took more than any machine has, numbered from -1 downwards."""
# A broker that never loads its logs kept a copy of the metadata log with each heartbeat: 22 GB, and no end.
KNOWN.append(
    _grown(
        "elr",
        322729364713,
        {
            "default.replication.factor": 3,
            "leader.imbalance.check.interval.seconds": 1,
            "broker.session.timeout.ms": 28,
            "broker.heartbeat.interval.ms": 4229,
            "sim.recovery.ms": 2017843633517,
            "controller.socket.timeout.ms": 28,
            "retry.backoff.ms": 51330,
            "unclean.leader.election.enable": True,
            "replica.fetch.backoff.ms": 83939199,
        },
        "rolling",
        brokers={"count": 7},
        faults={"count": [6, 60]},
    )
)
# Each of 2,331 answers that went back kept the ids of all records that it was about: 1.8 GB for 19,000 events.
KNOWN.append(
    _grown(
        "elr-4.3",
        98570053128,
        {"default.replication.factor": 8, "sim.end.offsets.interval.ms": 95, "retry.backoff.ms": 1},
        "reassignments",
        brokers={"count": 9},
        workload={"bursts": [5, 50], "batches": [1, 10], "records": [1, 1000]},
        faults={"horizon_ms": 450_000, "count": [1, 300]},
    )
)
# Its 9,000 faults took longer to print than to simulate.
KNOWN.append(
    _grown(
        "kip320",
        623088580253,
        {"default.replication.factor": 1, "log.flush.interval.messages": 5_000},
        "power",
        brokers={"count": 1},
        faults={"horizon_ms": 10_000_000, "count": [9_000, 9_000]},
    )
)


def toml(data: Mapping[str, Any]) -> str:
    """The text of a scenario file; JSON values other than objects are valid TOML."""
    tables = {key: value for key, value in data.items() if isinstance(value, dict)}
    lines = [_line(key, value) for key, value in data.items() if key not in tables]
    for name, table in tables.items():
        parts = {key: value for key, value in table.items() if isinstance(value, dict)}
        lines += [f"[{name}]", *(_line(key, value) for key, value in table.items() if key not in parts)]
        for key, part in parts.items():
            lines += [f"[{name}.{key}]", *(_line(*entry) for entry in part.items())]
    return "".join(f"{line}\n" for line in lines)


def _line(key: str, value: object) -> str:
    return f"{json.dumps(key)} = {json.dumps(value)}"


def drawn_case(number: int) -> Case:
    """The case of a number; below 0 one of `KNOWN`."""
    if number < 0:
        return KNOWN[-1 - number]
    stream = Streams(number)("hunt:settings")
    name = choice(stream, list(DRAWN))
    file = json.loads(json.dumps(DRAWN[name]))
    brokers = integer(stream, 1, choice(stream, (7, 7, 7, 12, 99)))
    factor = integer(stream, 1, brokers)
    file["brokers"]["count"] = brokers
    file["draw"].pop("default.replication.factor", None)
    file["faults"] |= _faults(stream, file["faults"]["kinds"])
    if "topology" in file or not GROUPINGS.keys().isdisjoint(file["faults"]["kinds"]):
        file["topology"] = topology(brokers)
    file["workload"] |= _workload(stream)
    # Some change little, some everything: one extreme hides what another would show.
    keys = [key for key in KEYS if key not in OWN]
    count = integer(stream, 0, choice(stream, (4, 12, len(keys))))
    settings: dict[str, Value] = {"default.replication.factor": factor}
    settings |= {key: _value(stream, key) for key in sample(stream, keys, count)}
    for shorter, longer in LEGAL:
        if longer in settings:
            settings[shorter] = min(_number(settings.get(shorter, KEYS[shorter].default)), _number(settings[longer]))
    if _number(settings.get(PING, 0)) >= _number(settings.get(SESSION, KEYS[SESSION].default)):
        del settings[PING]
    if settings.get("enable.idempotence"):
        settings |= {"acks": "all", "max.in.flight.requests.per.connection": integer(stream, 1, 5)}
    while stream.random() * 5 < 1:
        own = {key: _value(stream, key) for key in sample(stream, keys, 3)}
        file["brokers"][str(integer(stream, 1, brokers))] = {key: _shown(value) for key, value in own.items()}
    return Case(number, choice(stream, list(MODES)), integer(stream, 0, 1 << 40), file, settings)


def topology(brokers: int) -> dict[str, dict[str, list[int]]]:
    """Two racks, three power domains, and hosts of two brokers."""
    ids = range(1, brokers + 1)
    return {
        "racks": _groups((broker, broker % 2) for broker in ids),
        "power_domains": _groups((broker, broker % 3) for broker in ids),
        "hosts": _groups((broker, broker // 2) for broker in ids),
    }


def _groups(placed: Iterable[tuple[int, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for broker, group in placed:
        found.setdefault(f"group-{group}", []).append(broker)
    return found


def _faults(stream: Stream, kinds: list[str]) -> dict[str, Any]:
    """Random faults: number, kinds, times and durations."""
    drawn: dict[str, Any] = {"horizon_ms": choice(stream, (20_000, 60_000, 120_000, 450_000, 10_000_000))}
    if stream.random() * 2 < 1:
        drawn["count"] = _pair(stream, choice(stream, (10, 60, 300, 3_000, 15_000)))
    if stream.random() * 3 < 1:
        drawn["kinds"] = kinds = [kind for kind in KINDS if kind not in OF_TOPICS]
    if stream.random() * 3 < 1:
        left = 100
        for share in SHARES:
            drawn[share] = integer(stream, 0, left) if set(_NEEDED.get(share, ())) <= set(kinds) else 0
            left -= drawn[share]
        drawn["aimed_percent"] = integer(stream, 0, 100)
    for name in ("restart_ms", "cut_ms", "pause_ms", "slow_ms"):
        if stream.random() * 4 < 1:
            drawn[name] = _pair(stream, choice(stream, (10, 1_000, 100_000, 10_000_000)))
    return drawn


def _workload(stream: Stream) -> dict[str, Any]:
    """Random bursts."""
    drawn: dict[str, Any] = {}
    for name, least, ends in (
        ("bursts", 0, (5, 50, 1_000, 20_000)),
        ("batches", 1, (10, 10, 100, 1_000)),
        ("gap_ms", 0, (0, 10, 2_000)),
        ("records", 1, (1, 6, 1_000, 20_000)),
    ):
        if stream.random() * 2 < 1:
            drawn[name] = _pair(stream, choice(stream, ends), least)
    return drawn


def _pair(stream: Stream, end: int, least: int = 0) -> list[int]:
    return sorted((integer(stream, least, max(least, end)), integer(stream, least, max(least, end))))


def _shown(value: Value) -> Value:
    return "never" if type(value) is int and value == NEVER else value


def _value(stream: Stream, key: str) -> Value:
    """A random value of a key: an extreme, one near its default or near another key's value, or any."""
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


# As a user runs it.


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of a case, and its cost.

    Attributes:
        number: of the case.
        verdict: of the run; ``refused``, ``killed`` or ``error``.
        why: what is wrong with it; empty if nothing is.
        cpu_s: CPU time.
        memory_mb: the most resident memory.
    """

    number: int
    verdict: str
    why: str
    cpu_s: float
    memory_mb: float


def measured(case: Case, cpu_s: float = CPU_S, memory_mb: float = MEMORY_MB) -> Measured:
    """Run a case in a copy of this process, which has all imports done."""
    with tempfile.TemporaryDirectory() as folder:
        words, output = case.words(Path(folder)), Path(folder) / "output"
        child = os.fork()
        if not child:
            os._exit(_run(words, output))
        _, status, usage = os.wait4(child, 0)
        code = os.waitstatus_to_exitcode(status)
        verdict, why = _outcome(code, output.read_text(errors="replace"))
    used_s, used_mb = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    if not why and (used_s > cpu_s or used_mb > memory_mb):
        why = f"{used_s:.1f} s of {cpu_s} s, {used_mb:.0f} MB of {memory_mb} MB"
    return Measured(case.number, verdict, why, used_s, used_mb)


def _run(words: list[str], output: Path) -> int:
    """Run ``highwater`` with these arguments and return its exit code, in a process that ends afterwards."""
    resource.setrlimit(resource.RLIMIT_CPU, (KILLED_S, KILLED_S))
    most = memory.used() + KILLED_BYTES  # This process may have imported much.
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    with output.open("w") as stream, contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        os.dup2(stream.fileno(), 2)  # What lacks memory is told there.
        return cli.main([*words, "--json", "--color", "never"])


def _outcome(code: int, output: str) -> tuple[str, str]:
    """Verdict and problem, from exit code and output."""
    if code == exit_codes.BAD_INPUT:
        return "refused", ""
    if code < 0:
        return "killed", f"killed by signal {-code}"
    told = _VERDICT.search(output)
    if (
        told is None
        or code == exit_codes.INTERNAL
        or code not in (exit_codes.EXPECTED, exit_codes.UNEXPECTED, exit_codes.INCONCLUSIVE)
    ):
        return "error", f"exit code {code}: {output[:2_000]}"
    return told[1], ""


# With and without elision.


def compared(case: Case, event_budget: int = ELISION_EVENTS) -> tuple[str, str]:
    """Run a case with and without elision: verdict and problem."""
    try:
        one, other = (_row(_with(case, elision=elision), case, event_budget) for elision in (True, False))
    except InputError:
        return "refused", ""
    for row in (one, other):
        if row["verdict"] == "error":
            return "error", row["error"]
    if "exhausted" in (one["verdict"], other["verdict"]):
        part = first_difference(case, event_budget)
        return ("differs", f"histories differ at {part} us") if part >= 0 else ("equal until exhausted", "")
    if one["digest"] != other["digest"] or one["verdict"] != other["verdict"]:
        return "differs", f"histories differ: {one['digest']} {one['verdict']}, {other['digest']} {other['verdict']}"
    return "equal", ""


def first_difference(case: Case, event_budget: int) -> int:
    """When histories with and without elision first differ, up to the end of the shorter one; -1: they are equal."""
    histories, ends = [], []
    for elision in (True, False):
        steps: list[tuple[int, str]] = []
        kernel = Kernel(event_budget)
        run, _ = _execute(_with(case, elision=elision), MODES[case.mode], case.seed, {}, kernel, _noting(steps))
        run.dispose()
        histories.append(steps)
        ends.append(kernel.now_us)
    one, other = ([step for step in steps if step[0] < min(ends)] for steps in histories)
    apart = [min(pair)[0] for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
    if apart or len(one) == len(other):
        return apart[0] if apart else -1
    return max(one, other, key=len)[min(len(one), len(other))][0]


def _noting(steps: list[tuple[int, str]]) -> Callable[[Execution], None]:
    return lambda run: run.cluster.recorder.observe(lambda step: steps.append((step["t"], repr(step))))


def _with(case: Case, *, elision: bool) -> Scenario:
    """Ties that are broken at random would be broken otherwise where there are others."""
    settings: dict[str, Value] = {"sim.elision": elision, "sim.ties": "fifo"}
    return case.scenario(**settings)


def _row(scenario: Scenario, case: Case, event_budget: int) -> Row:
    run, error = _execute(scenario, MODES[case.mode], case.seed, {}, Kernel(event_budget))
    row = row_of(EndedRun(run, error))
    run.dispose()
    return row


# Many.


def _hunt(numbers: range) -> list[tuple[Measured, tuple[str, str]]]:
    prepare_process()
    cases = [drawn_case(number) for number in numbers]
    runs = [measured(case) for case in cases]  # First: they are copies of this process, and as large.
    return list(zip(runs, [compared(case) if case.number % 2 == 0 else ("", "") for case in cases], strict=True))


def main() -> int:
    """Run cases; print failures and the most expensive cases; 1 if any fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="first number")
    parser.add_argument("--runs", type=int, default=50_000, help="how many numbers")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--folder", type=Path, default=Path("build/hunt-settings"), help="gets the files of runs that are printed"
    )
    options = parser.parse_args()
    end = options.first + options.runs
    chunks = [range(first, min(first + CHUNK, end)) for first in range(options.first, end, CHUNK)]
    chunks.insert(0, range(-len(KNOWN), 0))
    verdicts: Counter[str] = Counter()
    histories: Counter[str] = Counter()
    failed = 0
    slowest = largest = Measured(0, "", "", 0, 0)
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for numbers, found in zip(chunks, pool.map(_hunt, chunks), strict=True):
            for run, (history, differs) in found:
                verdicts[run.verdict] += 1
                histories[history] += 1
                slowest = max(slowest, run, key=lambda one: one.cpu_s)
                largest = max(largest, run, key=lambda one: one.memory_mb)
                for why in filter(None, (run.why, differs)):
                    failed += 1
                    _say(f"{run.number}: {why}\n  {replay(run.number, options.folder)}")
            if not numbers.stop % (8 * CHUNK):
                _say(f"up to {numbers.stop}: {_words(verdicts, histories, slowest, largest)}; {failed} failed")
    counts = _words(verdicts, histories, slowest, largest)
    _say(f"{options.runs} runs, {len(KNOWN)} known ones: {counts}; {failed} failed")
    for what, run in (("slowest", slowest), ("largest", largest)):
        _say(f"{what}: {run.cpu_s:.1f} s, {run.memory_mb:.0f} MB, {run.verdict}")
        _say(f"  {replay(run.number, options.folder)}")
    return int(bool(failed))


def replay(number: int, folder: Path) -> str:
    """Write a case's file into a folder; the command that runs it."""
    return shlex.join(["highwater", *drawn_case(number).words(folder)])


def _words(verdicts: Counter[str], histories: Counter[str], slowest: Measured, largest: Measured) -> str:
    counts = (
        f"{dict(sorted(verdicts.items()))}, elision { ({key: histories[key] for key in sorted(histories) if key}) }"
    )
    return f"{counts}, at most {slowest.cpu_s:.1f} s ({slowest.number}), {largest.memory_mb:.0f} MB ({largest.number})"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
