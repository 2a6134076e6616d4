"""An independent judge of waits: what a partition waited for, from the trace of a run alone.

It shares nothing with `sim.checkers.needless_wait` and its bounds. It makes a timeline of each fact (which processes
run, which sessions are open, who is elected, leads, is in sync, which faults last), cuts the run at every step that
changes one of them, and looks up all facts in the middle of each piece. Waits of three kinds are compared:
``elect``, ``lead`` and ``rejoin``; a trace does not tell min.insync.replicas. Runs of one partition only.

    python -m tests.verification.waits --seeds 0..50 [--modes kip320-repaired] [--scenarios chaos] [--rule NAME=VALUE]
"""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final

from scenarios.format import catalogue
from scenarios.single.run import run
from sim.protocol.modes import mode as mode_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scenarios.single.result import RunResult
    from sim.hosts.cluster import Cluster

Step = dict[str, Any]
WAITS: Final = ("elect", "lead", "rejoin")
_STOPS: Final = ("kill", "power-loss", "shutdown", "halt", "exit", "disk-replaced")
_BREAKS: Final = ("directory-failed", "directory-offline", "directory-replaced", "file-damaged")
_BEGINS: Final = ("cut", "slow", "lossy", "resent", "message-held", "message-copied", "pause", "disk-stalled")
_BEGINS_ELSEWHERE: Final = ("metadata-slowed", "controller-end", "controller-pause")
_ENDS: Final = ("heal", "message-late", "resume", "disk-works", "metadata-sped-up")
_TURNS: Final = (
    *(*_STOPS, *_BREAKS, *_BEGINS, *_BEGINS_ELSEWHERE, *_ENDS),
    *("controller-start", "controller-resume", "raft-leader", "message-lost", "corrupt-tail"),
    *("start", "recovered", "deleted", "registered", "unfenced", "session-end", "controller", "assigned"),
    *("elected", "epoch-raised", "lead", "follow", "isr", "elr"),
)


class Fact:
    """The values of something over time."""

    def __init__(self, first: Any) -> None:
        self._times = [-1]
        self._values = [first]

    def set(self, at_us: int, value: Any) -> None:
        """From now on."""
        self._times.append(at_us)
        self._values.append(value)

    @property
    def last(self) -> Any:
        """The newest value."""
        return self._values[-1]

    def at(self, time_us: int) -> Any:
        """The value at a time."""
        return self._values[bisect_right(self._times, time_us) - 1]


class Timeline:
    """The facts of a trace."""

    def __init__(self, trace: Sequence[Step], replicas: Sequence[int], end_us: int) -> None:
        self.kraft = any(step["step"] == "unfenced" for step in trace)
        brokers = {step.get("broker", 0) for step in trace} | {0}
        self.running = {broker: Fact(False) for broker in brokers}
        self.session = {broker: Fact(False) for broker in brokers}
        self.own = {broker: Fact(False) for broker in brokers}
        """Whether the running process has a session of its own."""
        self.whole = {broker: Fact(True) for broker in brokers}
        self.leads = {broker: Fact(-1) for broker in brokers}
        self.faults = Fact(())
        self.elected, self.epoch, self.controller = Fact(-1), Fact(-1), Fact(0)
        self.isr, self.elr, self.replicas = Fact(tuple(replicas)), Fact(()), Fact(tuple(replicas))
        self.turns = [0, *sorted({step["t"] for step in trace if step["step"] in _TURNS}), end_us]
        for step in trace:
            self._take(step["step"], step["t"], step.get("broker", 0), step)

    def _take(self, kind: str, now_us: int, broker: int, step: Step) -> None:
        if kind == "start":
            self.running[broker].set(now_us, True)
            self.own[broker].set(now_us, False)
        elif kind in _STOPS and self.running[broker].last:
            self.running[broker].set(now_us, False)
            self.own[broker].set(now_us, False)
            self.leads[broker].set(now_us, -1)
            left = tuple(one for one in self.faults.last if one not in (("still", broker), ("disk", broker)))
            self.faults.set(now_us, left)
        elif kind in _BREAKS:
            self.whole[broker].set(now_us, False)
            self.leads[broker].set(now_us, -1)
        elif kind == "recovered":
            self.whole[broker].set(now_us, True)
        elif kind == ("unfenced" if self.kraft else "registered"):
            self.session[broker].set(now_us, True)
            self.own[broker].set(now_us, self.running[broker].last)
        elif kind == "session-end":
            self.session[broker].set(now_us, False)
            self.own[broker].set(now_us, False)
        else:
            self._take_decision(kind, now_us, broker, step)

    def _take_decision(self, kind: str, now_us: int, broker: int, step: Step) -> None:
        if kind in ("elected", "epoch-raised"):
            self.epoch.set(now_us, step["leader_epoch"])
            if kind == "elected":
                self.elected.set(now_us, broker)
        elif kind == "controller":
            self.controller.set(now_us, broker)
        elif kind in ("lead", "follow", "deleted"):
            self.leads[broker].set(now_us, step["leader_epoch"] if kind == "lead" else -1)
        elif kind in ("isr", "elr"):
            (self.isr if kind == "isr" else self.elr).set(now_us, tuple(step[kind]))
        elif kind == "assigned":
            self.replicas.set(now_us, tuple(step["replicas"]))
        else:
            self._take_fault(kind, now_us, broker)

    def _take_fault(self, kind: str, now_us: int, broker: int) -> None:
        names = {
            **dict.fromkeys(("pause", "resume"), ("still", broker)),
            **dict.fromkeys(("disk-stalled", "disk-works"), ("disk", broker)),
            **dict.fromkeys(("metadata-slowed", "metadata-sped-up"), ("metadata", broker)),
            **dict.fromkeys(("message-held", "message-copied", "message-late"), ("message", 0)),
        }
        name, lasting = names.get(kind, ("link", 0)), list(self.faults.last)
        if kind in (*_BEGINS, *_BEGINS_ELSEWHERE):
            lasting.append(name)
        elif kind in _ENDS and name in lasting:
            lasting.remove(name)
        self.faults.set(now_us, tuple(lasting))

    def is_live(self, broker: int, at_us: int) -> bool:
        """Whether a broker's process runs with a session of its own and a whole replica."""
        facts = (self.running[broker], self.own[broker], self.whole[broker])
        return broker > 0 and all(fact.at(at_us) for fact in facts)


def waits(line: Timeline, bound: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """The waits over their bounds: (kind, broker)."""
    for begin_us, end_us in zip(line.turns, line.turns[1:], strict=False):
        at_us = (begin_us + end_us) // 2
        if not line.faults.at(at_us) and line.epoch.at(at_us) >= 0:
            for kind, broker, limit in _waiting(line, at_us):
                if end_us - begin_us > bound[limit]:
                    yield kind, broker


def _waiting(line: Timeline, at_us: int) -> Iterator[tuple[str, int, str]]:
    """What is waited for at a time: (kind, broker, name of the bound)."""
    leader, isr, controller = line.elected.at(at_us), line.isr.at(at_us), line.controller.at(at_us)
    candidates = [broker for broker in (*isr, *line.elr.at(at_us)) if line.is_live(broker, at_us)]
    has_session = leader > 0 and line.session[leader].at(at_us)
    if has_session and not line.own[leader].at(at_us):
        if candidates:
            yield "elect", leader, "expire"
    elif controller > 0 and not line.is_live(controller, at_us):
        return
    elif not has_session:
        if candidates:
            ended = [broker for broker in line.own if line.session[broker].at(at_us) and not line.own[broker].at(at_us)]
            yield "elect", candidates[0], "expire" if ended and controller <= 0 else "elect"
    elif not line.is_live(leader, at_us):
        return
    elif line.leads[leader].at(at_us) < line.epoch.at(at_us):
        yield "lead", leader, "lead"
    else:
        for broker in line.replicas.at(at_us):
            if broker not in isr and line.is_live(broker, at_us):
                yield "rejoin", broker, "rejoin"


def bounds(settings: Mapping[str, Any], *, kraft: bool) -> dict[str, int]:
    """The bounds in us, written out once more."""
    ms = {key: value for key, value in settings.items() if isinstance(value, int)}
    exchanges = 400
    other = ms["controller.quorum.fetch.timeout.ms"] + ms["controller.quorum.election.timeout.ms"] if kraft else 0
    elect = exchanges + other + 3 * ms["broker.heartbeat.interval.ms"]
    resent = ms["controller.socket.timeout.ms"]
    lead = exchanges + other + resent + ms["sim.recovery.ms"]
    fetch = ms["replica.socket.timeout.ms"] + ms["replica.fetch.backoff.ms"] + 2 * ms["replica.fetch.wait.max.ms"]
    session = ms["broker.session.timeout.ms"] if kraft else ms["zookeeper.session.timeout.ms"]
    found = {"elect": elect, "expire": session + elect, "lead": lead, "rejoin": lead + fetch + resent}
    return {kind: 1_000 * bound for kind, bound in found.items()}


def compared(scenario: str, mode: str, seed: int, rules: Mapping[str, str] | None = None) -> tuple[set[Any], set[Any]]:
    """What the verdict and this judge find in a run: (kind, broker)."""
    trace: list[Step] = []
    replicas: list[int] = []

    def watch(cluster: Cluster, name: str) -> Any:
        if name == cluster.name:
            cluster.recorder.observe(trace.append)
            replicas.extend(cluster.control.state.replicas)
        return lambda _: None

    judged = catalogue.load(scenario).with_settings({"sim.judge.waits": True})
    result: RunResult = run(judged, mode_named(mode), seed, rules, watch=watch)
    said = {violation["detail"] for violation in result.violations if violation["kind"] == "needless-wait"}
    verdict = {kind for kind in WAITS for detail in said if detail.startswith(f"{kind}:")}
    line = Timeline(trace, replicas, int(result.row["sim_us"]))
    return verdict, {kind for kind, _ in waits(line, bounds(result.settings, kraft=line.kraft))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare on seeds of random scenarios with one partition; 1 if the two disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    alone = [name for name in catalogue.names() if (one := catalogue.load(name)).faults is not None and not one.topics]
    parser.add_argument("--seeds", default="0..20")
    parser.add_argument("--modes", default="kip320,kraft-repaired,elr-repaired")
    parser.add_argument("--scenarios", default=",".join(alone))
    parser.add_argument("--rule", action="append", default=[])
    options = parser.parse_args(arguments)
    first, end = map(int, options.seeds.split(".."))
    rules = dict(rule.split("=", 1) for rule in options.rule)
    runs = differ = found = 0
    for scenario in options.scenarios.split(","):
        for mode in options.modes.split(","):
            for seed in range(first, end):
                verdict, judged = compared(scenario, mode, seed, rules)
                runs += 1
                found += bool(judged)
                if verdict != judged:
                    differ += 1
                    sys.stdout.write(f"{scenario} --mode {mode} --seed {seed}: verdict {verdict}, judge {judged}\n")
    sys.stdout.write(f"{runs} runs, {found} with needless waits, {differ} in which judge and verdict disagree\n")
    return int(differ > 0)


if __name__ == "__main__":
    raise SystemExit(main())
