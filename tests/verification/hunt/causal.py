"""Faults that a violation cannot depend on: without one of them, the violation must still occur.

The causal past of a violation is an overestimate: it contains every fault, except for three sorts.

- ``later``: all of its effects came after the violation.
- ``idle``: it had no effect. (This excludes faults that stop a broker: even if the broker is stopped already, they
  start it at the end of their duration.)
- ``unmet``: a cut that met no message. None was under way or sent in its direction, and no process at either end
  ended, so no node noticed.

That two nodes exchanged no message for so long that a fault of one could not reach the other is no sort of its own:
pings and fetches connect all of them every few seconds.

When has a violation happened? What is seen at once (divergence, hw-regression, ack-under-min-isr, early warnings) when
it is seen. A committed record is lost when the last log that held it has lost it and the success has arrived, whatever
is found out in the end; an exposed one likewise, with its offset, once the producer has heard of a success and sends it
no more. If records are deleted after that (which faults decide where the log starts then, and so what counts as lost?),
and with all else that only the final checks find (stuck replicas, no progress, skipped, repeated or reordered records,
a divergence that nobody saw before), it happens at the end, and no fault is later.

Without a fault of the first sort all steps before it must be the same, without one of the others all steps of the run,
but for the cut's own. A fault that waits for a step changes nothing before it strikes; and whoever is struck *again* is
so because of the fault before, so in a plan with such a target no cut is `unmet`.

``python -m tests.verification.hunt.causal`` tries many. ``--inside`` also leaves out the faults inside the past,
one by one, and counts the violations that stay.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from faults.kinds.injection import Injection, is_always_undone
from faults.plan import LAST_TARGET, Fault, Plan, directions
from scenarios.format.catalogue import load
from scenarios.single import execution
from scenarios.single.run import _execute, prepare_process
from sim.checkers.registry import FINDINGS
from sim.environment.network import LATENCY_US, Channel
from sim.history.steps import ENDS as STEP_ENDS
from sim.history.steps import LOSSES
from sim.protocol.modes import mode as mode_named
from tests.plain import refuse_compiled
from tests.verification.hunt.elision import scenario_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scenarios.format.scenario import PlannedSend, Scenario
    from sim.environment.network import Link
    from sim.history.trace import Shown

LATER: Final = "later"
IDLE: Final = "idle"
UNMET: Final = "unmet"
INSIDE: Final = "inside"
_WARNINGS: Final = [kind for kind, finding in FINDINGS.items() if finding.is_warning]
SEEN_AT_ONCE: Final = ("divergence", "hw-regression", "ack-under-min-isr", *_WARNINGS)
LOSES: Final = tuple(kind.name for kind in LOSSES)
"""Steps whose ``offset`` is how many batches a log lost at its end."""
DELETES: Final = ("log-start", "deleted")
"""Steps after which the final checks may take a lost record for a deleted one."""
ENDS: Final = tuple(kind.name for kind in STEP_ENDS)
OWN_STEPS: Final = ("cut", "heal")
NEVER_US: Final = 1 << 62


@contextmanager
def planned(change: Callable[[Plan], Plan]) -> Iterator[None]:
    """Give runs another plan than the random one."""
    original = vars(execution)["draw"]

    def draw(*words: Any) -> tuple[Plan, tuple[PlannedSend, ...]]:
        plan, batches = original(*words)
        return change(plan), batches

    with mock.patch.object(execution, "draw", draw):
        yield


@dataclass(slots=True, unsafe_hash=True)
class _Numbered(Fault):
    """A numbered fault, recognised when it strikes: a plan may have equal faults, and names of targets are replaced."""

    number: int = -1

    def with_targets(self, targets: tuple[int, ...], delays_us: tuple[int, ...] | None = None) -> Fault:
        """See `Fault.with_targets`."""
        return replace(self, targets=targets, delays_us=self.delays_us if delays_us is None else delays_us)


@dataclass
class Observed:
    """A run, and what of it decides about causes.

    Attributes:
        kinds: kind -> when it happened first.
        plan: the faults.
        strikes: by number of the fault: when it struck, and whether it took effect.
        trace: all steps.
        sent: (when, source, target) of each message.
        end_us: when the run was over.
    """

    kinds: dict[str, int] = field(default_factory=dict)
    plan: Plan = field(default_factory=Plan)
    strikes: dict[int, list[tuple[int, bool]]] = field(default_factory=dict)
    trace: list[Shown] = field(default_factory=list)
    sent: list[tuple[int, int, int]] = field(default_factory=list)
    end_us: int = 0


def observe(scenario: Scenario, mode: str, seed: int, without: int = -1) -> Observed:
    """Run a seed, optionally without one fault of its plan."""
    seen = Observed()
    links: list[tuple[int, Link]] = []

    def hit(injection: Injection, entry: tuple[Fault, int]) -> None:
        struck = len(injection.realised)
        original_hit(injection, entry)
        assert isinstance(entry[0], _Numbered)
        number = entry[0].number
        for realised in injection.realised[struck:]:
            seen.strikes.setdefault(number, []).append((realised.at_us, realised.effective))

    def send(channel: Channel[Any], message: Any) -> None:
        links.append((channel._kernel.now_us, channel._link))
        original_send(channel, message)

    def deliver_at(channel: Channel[Any], arrival_us: int, message: Any) -> None:
        links.append((channel._kernel.now_us, channel._link))
        original_delivery(channel, arrival_us, message)

    def spare(plan: Plan) -> Plan:
        seen.plan = plan
        numbered = []
        for number, fault in enumerate(plan.faults):
            words: dict[str, Any] = {one.name: getattr(fault, one.name) for one in fields(Fault)}
            numbered.append(_Numbered(**words, number=number))
        return Plan(tuple(fault for fault in numbered if fault.number != without))

    original_hit, original_send, original_delivery = Injection._hit, Channel.send, Channel.deliver_at
    with (
        planned(spare),
        mock.patch.object(Injection, "_hit", hit),
        mock.patch.object(Channel, "send", send),
        mock.patch.object(Channel, "deliver_at", deliver_at),
    ):
        one, error = _execute(
            scenario, mode_named(mode), seed, {}, prepare=lambda run: run.cluster.recorder.observe(seen.trace.append)
        )
    assert not error, error
    ends = {link: nodes for nodes, link in one.cluster.network._links.items()}
    seen.sent = [(at_us, *ends[link]) for at_us, link in links]
    seen.end_us = one.kernel.now_us
    lost = lost_at(seen.trace)
    deleted_us = max((step["t"] for step in seen.trace if step["step"] in DELETES), default=-1)
    lost = {kind: at_us for kind, at_us in lost.items() if at_us > deleted_us}
    for violation in one.cluster.recorder.history.findings.violations:
        kind = violation.kind
        at_us = lost.get(kind, NEVER_US) if kind in lost else violation.at_us
        if kind not in SEEN_AT_ONCE and kind not in lost:
            at_us = seen.end_us
        seen.kinds[kind] = min(seen.kinds.get(kind, NEVER_US), at_us)
    return seen


class _Copies:
    """Tracks which logs, also on disks, hold each record, and when the last copy was lost."""

    def __init__(self) -> None:
        self._logs: dict[int, list[tuple[int, int, int]]] = {}
        self._held: Counter[Any] = Counter()
        self.gone: dict[Any, int] = {}

    def append(self, broker: int, batch: tuple[int, int, int]) -> None:
        self._logs.setdefault(broker, []).append(batch)
        for key in _keys(batch):
            self._held[key] += 1
            self.gone.pop(key, None)

    def drop(self, broker: int, keep: slice, at_us: int) -> None:
        log = self._logs.setdefault(broker, [])
        kept = log[keep]
        dropped = log[len(kept) :] if keep.start is None else log[: len(log) - len(kept)]
        self._logs[broker] = kept
        for batch in dropped:
            for key in _keys(batch):
                self._held[key] -= 1
                if not self._held[key]:
                    self.gone[key] = at_us

    def take(self, step: Shown) -> None:
        name, at_us, broker = step["step"], step["t"], step.get("broker", 0)
        log = self._logs.get(broker, [])
        if name == "append":
            self.append(broker, (step["record"], step["offset"], step["last"]))
        elif name == "truncate" and step["removed"]:
            self.drop(broker, slice(None, len(log) - step["removed"]), at_us)
        elif name in LOSES and step["offset"]:
            self.drop(broker, slice(None, len(log) - step["offset"]), at_us)
        elif name == "deleted":
            self.drop(broker, slice(None, 0), at_us)
        elif name == "log-start":
            self.drop(broker, slice(sum(batch[2] < step["offset"] for batch in log), None), at_us)


def _keys(batch: tuple[int, int, int]) -> Iterator[Any]:
    """Keys of a record: its id, and its id with its offset."""
    first, base, last = batch
    for offset in range(base, last + 1):
        yield first + offset - base
        yield first + offset - base, offset


def lost_at(trace: list[Shown]) -> dict[str, int]:
    """When records were lost for good, by kind of violation: ``committed-loss`` and ``exposed-loss``.

    What was shown may come back to its place as long as the producer, who has heard of no success, may send it again.
    """
    copies = _Copies()
    acked: dict[int, int] = {}
    committed: dict[int, int] = {}
    shown: dict[tuple[int, int], int] = {}
    for step in trace:
        copies.take(step)
        if step["step"] == "ack":
            for record in range(step["record"], step["record"] + step["count"]):
                acked.setdefault(record, step["t"])
                if step["acks"] == -1:
                    committed.setdefault(record, step["t"])
        elif step["step"] == "read":
            for offset in range(step["offset"], step["last"] + 1):
                shown.setdefault((step["record"] + offset - step["offset"], offset), step["t"])
    gone = copies.gone
    lost = {
        "committed-loss": [max(at_us, gone[record]) for record, at_us in committed.items() if record in gone],
        "exposed-loss": [
            max(at_us, gone[place], acked[place[0]])
            for place, at_us in shown.items()
            if place in gone and place[0] in acked
        ],
    }
    return {kind: min(times) for kind, times in lost.items() if times}


# The causal past.


def is_unmet(seen: Observed, number: int) -> bool:
    """Whether a cut met no message, and no end of a process at one of its ends, and no fault is aimed at these ends."""
    fault = seen.plan.faults[number]
    if fault.kind != "cut" or any(LAST_TARGET in other.targets for other in seen.plan.faults):
        return False
    struck = {(step["source"], step["target"], step["t"]) for step in seen.trace if step["step"] == "cut"}
    begin_us = min(at_us for at_us, _ in seen.strikes[number])
    # As it was realised: whoever led then is named in the trace.
    ways = [(source, target) for source, target, at_us in struck if at_us == begin_us] or directions(fault)
    end_us = begin_us + fault.lasts_us if fault.lasts_us >= 0 else NEVER_US
    nodes = {node for way in ways for node in way}
    messages = ((source, target) for at_us, source, target in seen.sent if begin_us - LATENCY_US[-1] <= at_us <= end_us)
    ended = (step for step in seen.trace if step["step"] in ENDS and step["broker"] in nodes)
    return not any(way in ways for way in messages) and not any(begin_us <= step["t"] <= end_us for step in ended)


def outside(seen: Observed) -> list[tuple[int, str, list[str]]]:
    """Faults outside the causal past: (number, sort, kinds of violations whose past it is)."""
    found = []
    for number, fault in enumerate(seen.plan.faults):
        strikes = seen.strikes.get(number, [])
        begin_us = min((at_us for at_us, _ in strikes), default=NEVER_US)
        effective = any(took for _, took in strikes)
        later = [kind for kind, at_us in seen.kinds.items() if at_us < begin_us]
        if not strikes or (not effective and not is_always_undone(fault.kind)):
            found.append((number, IDLE, list(seen.kinds)))
        elif effective and is_unmet(seen, number):
            found.append((number, UNMET, list(seen.kinds)))
        elif later:
            found.append((number, LATER, later))
    return found


def differs(seen: Observed, other: Observed, number: int, sort: str) -> str:
    """How a run without a fault differs from what is required; empty if it does not differ."""
    steps, others = seen.trace, other.trace
    if sort == LATER:
        begin_us = min(at_us for at_us, _ in seen.strikes[number])
        steps = [step for step in steps if step["t"] < begin_us]
        others = [step for step in others if step["t"] < begin_us]
    elif sort == UNMET:
        steps = [step for step in steps if step["step"] not in OWN_STEPS]
        others = [step for step in others if step["step"] not in OWN_STEPS]
    if steps == others:
        return ""
    first = next((pair for pair in zip(steps, others, strict=False) if pair[0] != pair[1]), (None, None))
    return f"steps differ: {first[0]} became {first[1]}"


@dataclass
class Tally:
    """Results over all faults that were removed.

    Attributes:
        tried: by sort.
        kept: by sort, those after which every violation concerned was still there.
        exceptions: what was not kept, one line each.
        failures: runs that were looked at.
    """

    tried: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    exceptions: list[str] = field(default_factory=list)
    failures: int = 0

    def add(self, scenario: Scenario, mode: str, seed: int, *, inside: bool = False) -> None:
        """If a run failed, remove each fault outside the causal past, or each within it."""
        seen = observe(scenario, mode, seed)
        if not seen.kinds:
            return
        self.failures += 1
        found = outside(seen)
        for number, sort, kinds in found:
            other = observe(scenario, mode, seed, without=number)
            missing = [kind for kind in kinds if kind not in other.kinds]
            difference = differs(seen, other, number, sort)
            self._count(sort, not missing and not difference)
            if missing or difference:
                fault = seen.plan.faults[number]
                self.exceptions.append(
                    f"{scenario.name} {mode} {seed}: without the {fault.kind} at {fault.at_us} us ({sort}): "
                    f"{missing} missing; {difference or 'steps as they must be'}"
                )
        others = set(range(len(seen.plan.faults))) - {number for number, _, _ in found} if inside else ()
        for number in sorted(others):
            other = observe(scenario, mode, seed, without=number)
            self._count(INSIDE, set(seen.kinds) <= set(other.kinds))

    def _count(self, sort: str, kept: bool) -> None:
        self.tried[sort] += 1
        self.kept[sort] += kept


def main() -> int:
    """Remove faults from many runs; 1 if a violation disappeared, or a step changed that must not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", default="chaos,power")
    parser.add_argument("--modes", default="hw,kip101,kip279,kip320")
    parser.add_argument("--failures", type=int, default=25, help="of each scenario in each mode, the first ones")
    parser.add_argument("--inside", action="store_true", help="leave out the faults inside the past, too")
    parser.add_argument("--fixed", action="store_true", help="all messages of a link take the same time")
    options = parser.parse_args()
    refuse_compiled(parser)
    prepare_process()
    failed = False
    total = Tally()
    for name in options.scenarios.split(","):
        for mode in options.modes.split(","):
            tally = Tally()
            scenario, seed = scenario_of(name, all_kinds=False, latency="fixed") if options.fixed else load(name), 0
            while tally.failures < options.failures:
                tally.add(scenario, mode, seed, inside=options.inside)
                seed += 1
            sys.stdout.write(f"{name} {mode}: {tally.failures} failures in {seed} seeds; kept of tried:")
            sys.stdout.write(", ".join(f" {sort} {tally.kept[sort]}/{n}" for sort, n in sorted(tally.tried.items())))
            sys.stdout.write("".join(f"\n  {line}" for line in tally.exceptions) + "\n")
            sys.stdout.flush()
            failed |= bool(tally.exceptions)
            total.tried += tally.tried
            total.kept += tally.kept
            total.failures += tally.failures
    kept = ", ".join(f"{sort} {total.kept[sort]}/{n}" for sort, n in sorted(total.tried.items()))
    sys.stdout.write(f"all: {total.failures} failures; kept of tried: {kept}\n")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
