"""Writes a counterexample of a KRaft cluster as a scripted scenario.

The script holds back every message of each type that is in flight in the counterexample (``hold-messages``), and lets
one arrive where the counterexample does. The scenario is run in the simulation, and returned only if the same kind of
violation or early warning occurs. Holds without which it occurs as well are left out.
"""

from __future__ import annotations

import json
from itertools import accumulate, permutations, product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from highwater.lab.explore.kraft.messages import Alter, Altered, Register
from highwater.lab.explore.messages import Fetch, Fetched
from highwater.lab.explore.properties import KINDS, VIOLATIONS
from sim.history.steps import APPEND, ELECTED, FOLLOW, HW, ISR, LEAD, REGISTERED, TRUNCATE, UNFENCED
from sim.protocol.kraft.metadata import ELR_FEATURE, MIN_ISR
from sim.protocol.messages import ListOffsetsRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from highwater.lab.explore.kraft.cluster import KRaftCluster, KRaftControl
    from highwater.lab.explore.kraft.controller import ControllerView
    from highwater.lab.explore.search import Action
    from scenarios.single.result import RunResult
    from sim.history.trace import Shown
    from sim.protocol.modes import Mode

Path = list[tuple["Action", int]]
Hold = tuple[int, str]
"""A broker, and a type of message that it sends or receives."""
EVENT_MS: Final = 50
"""Time between two lines: messages that are not held take at most 2 ms, a heartbeat comes every 10 ms."""
START_MS: Final = 300
"""Time in which a broker loads its log."""
LAG_MS: Final = 10_000
ACKS: Final = ("all", "1")
"""Values of ``acks`` to try: with ``all``, the producer sends again what a leader has not acknowledged, which no
counterexample does.
"""
ENDS: Final = ("lose", "kill", "stop")
"""Events in which a process ends and starts again."""
LAST: Final = 3
"""The broker that follows last when the cluster starts."""
NAME: Final = "explored-"
"""First letters of the scenario's name."""
CODA: Final = (0, "coda")
"""The lines after the last event, by which a checker of the simulation looks at the state that has been reached."""
METADATA: Final = "MetadataRecords"
HEARTBEAT: Final = "BrokerHeartbeatRequest"
REGISTRATION: Final = "BrokerRegistrationRequest"
CONFIG: Final[Mapping[str, Any]] = {
    "default.replication.factor": 3,
    "replica.lag.time.max.ms": LAG_MS,
    "replica.fetch.wait.max.ms": 10,
    "replica.fetch.backoff.ms": 10,
    "broker.heartbeat.interval.ms": 10,
    "auto.leader.rebalance.enable": False,
}
AWAITED: Final[Mapping[str, tuple[str, ...]]] = {
    ISR.name: ("isr",),
    ELECTED.name: ("broker", "leader_epoch"),
    UNFENCED.name: ("broker",),
    REGISTERED.name: ("broker",),
    LEAD.name: ("broker", "leader_epoch"),
    FOLLOW.name: ("broker", "leader_epoch"),
    TRUNCATE.name: ("broker", "offset"),
    APPEND.name: ("broker", "offset"),
    HW.name: ("broker", "offset"),
}
"""Steps that lines wait for -> the fields by which they are recognised."""


class NotReproducedError(Exception):
    """The counterexample cannot be written as a script that shows the same; the text says why."""


class ScriptedLine(NamedTuple):
    """A line of the script.

    Attributes:
        keys: its action and parameters.
        needs: holds without any of which it is left out.
        after_ms: time since the line before.
        note: the event of the counterexample to which it belongs.
    """

    keys: dict[str, Any]
    needs: frozenset[Hold]
    after_ms: int
    note: str


class Wanted(NamedTuple):
    """What a script has to show.

    Attributes:
        kind: the violation or early warning.
        mode: the mode, before rules were overridden.
        rules: the overridden rules.
        command: the command that found the counterexample.
    """

    kind: str
    mode: Mode
    rules: Mapping[str, str]
    command: str


def to_toml(cluster: KRaftCluster, path: Path, wanted: Wanted) -> str:
    """The scenario file of a counterexample: the events, each with the state after it.

    Raises:
        NotScriptedError: an event has no counterpart in a script, or the simulation does not show the kind.
    """
    elects = any(_known(cluster, state).leader != 1 for _, state in path)
    orders = list(permutations(cluster.brokers)) if elects and cluster.bounds.any_order else [cluster.brokers]
    writer = _Writer(cluster, path, wanted)
    shown = ""
    for acks, order in product(ACKS, orders):
        lines = _Script(cluster, path, wanted.kind, order, acks).lines()
        result = writer.run(lines)
        if writer.is_shown_by(result):
            return writer.expecting(writer.with_steps(writer.shortened(lines)))
        kinds = dict.fromkeys(entry["kind"] for entry in (*result.violations, *result.warnings))
        shown = shown or str(result.row["error"] or ", ".join(kinds) or "no violation and no early warning")
    raise NotReproducedError(f"in the simulation, its script shows {shown}")


def _known(cluster: KRaftCluster, state: int) -> ControllerView:
    return cluster.controller.views[cluster.parts(state)[1].controller]


# Lines.


class _Script:
    """The lines of a counterexample, for one order of the assignment and one value of ``acks``."""

    def __init__(self, cluster: KRaftCluster, path: Path, kind: str, order: Sequence[int], acks: str) -> None:
        self._cluster = cluster
        self._path = path
        self._order = order
        self._kind = kind
        self._acks = acks
        self._lines: list[ScriptedLine] = []
        self._note = "The first state."
        self._silent: set[int] = set()
        """Brokers whose heartbeats are held back."""
        self._holds = self._in_flight()
        self._changes = any(action[0] in ENDS or _known(cluster, state).leader != 1 for action, state in path)
        """Whether leaders or processes change."""

    def _states(self) -> list[int]:
        return [self._cluster.first(), *(state for _, state in self._path)]

    def _in_flight(self) -> list[Hold]:
        """The messages to hold back: those that are in flight in any state."""
        found: set[Hold] = set()
        for state in self._states():
            _, control, flights = self._cluster.parts(state)
            found.update(hold for number in flights if (hold := self._hold_of(number))[1] != REGISTRATION)
            found.update((broker, METADATA) for broker in self._cluster.brokers if control.behind[broker - 1])
        return sorted(found)

    def _hold_of(self, number: int) -> Hold:
        message = self._cluster.messages[number]
        kind = type(message)
        if kind is Fetch:
            request = self._cluster.machine.payload(message.payload)
            name = "ListOffsetsRequest" if isinstance(request, ListOffsetsRequest) else "FetchRequest"
            return message.follower, name
        if kind is Fetched:
            is_fetch = self._cluster.machine.payload(message.payload)[0] == "fetch"
            return message.follower, "FetchResponse" if is_fetch else "ListOffsetsResponse"
        if kind is Alter:
            return message.broker, "AlterPartitionRequest"
        if kind is Altered:
            return message.broker, "AlterPartitionResponse"
        if kind is Register:
            return message.broker, REGISTRATION
        raise NotReproducedError("in the simulation no response outlives the process that it is for")

    def lines(self) -> list[ScriptedLine]:
        """The script."""
        self._begin()
        before = self._cluster.parts(self._cluster.first())[1]
        for number, (action, state) in enumerate(self._path, 1):
            self._note = f"{number}. {self._cluster.event(action)}"
            after = self._cluster.parts(state)[1]
            self._event(action, before, after)
            before = after
        sends = any(action[0] == "append" for action, _ in self._path)
        coda = [CODA] if sends else []  # A script has to send something.
        if not sends or self._kind == "quorum-not-superset":
            self._note = "A further record, so that a HW moves."
            self._add("produce", *coda, batch="after", acks=self._acks)
            self._release("Fetch", *coda)
        else:
            self._note = "A broker that is elected begins to lead."
            self._release("Metadata", *coda)
        self._add("wait")
        return self._lines

    def _add(self, do: str, *needs: Hold, after_ms: int = EVENT_MS, **params: Any) -> None:
        self._lines.append(ScriptedLine({"do": do, **params}, frozenset(needs), after_ms, self._note))

    def _release(self, start: str, *needs: Hold) -> None:
        """Let the messages of some types arrive."""
        for hold in self._holds:
            if hold[1].startswith(start):
                self._add("release-messages", *needs, hold, **_about(hold))

    def _begin(self) -> None:
        """Get to the first state: some brokers are fenced, outside of the ISR, and have lagged for long."""
        outside = self._cluster.brokers[self._cluster.bounds.isr :]
        if self._order != self._cluster.brokers:
            self._add("reassignment", replicas=list(self._order))
        for broker in outside:
            hold = broker, "FetchRequest"
            self._add("hold-messages", hold, **_about(hold))
            self._fence(broker)
        if outside:
            self._add("wait", after_ms=LAG_MS + 1_000)
        later = [hold for hold in self._holds if hold[1] != "FetchRequest"]
        for hold in self._holds:
            if hold not in later and hold[0] not in outside:
                self._add("hold-messages", hold, **_about(hold))
        for hold in later:
            self._add("hold-messages", hold, **_about(hold))

    def _fence(self, broker: int) -> None:
        if broker not in self._silent:
            self._silent.add(broker)
            self._add("hold-messages", broker=broker, message=HEARTBEAT)
        self._add("session-expiry", broker=broker)

    def _event(self, action: Action, before: KRaftControl, after: KRaftControl) -> None:
        kind, *details = action
        restarted = 0
        if kind == "arrive":
            restarted = self._arrive(details[0])
        elif kind == "append":
            self._add("produce", batch=f"r{details[1]}", acks=self._acks)
        elif kind == "expire":
            self._fence(details[0])
        elif kind == "heartbeat":
            self._silent.discard(details[0])
            self._add("release-messages", broker=details[0], message=HEARTBEAT)
        elif kind in ENDS:
            self._restart(str(kind), details[0], before)
        elif kind == "configure":
            self._add("set-config", config={MIN_ISR: details[0]})
        elif kind == "feature":
            self._add("set-config", config={ELR_FEATURE: details[0]})
        elif kind == "elect":
            raise NotReproducedError("no line elects a broker without another assignment before it")
        elif kind != "replay":
            raise NotReproducedError(
                "in the simulation the other follower would lag, too, while its messages are held back"
            )
        self._replay(before, after, restarted)

    def _arrive(self, number: int) -> int:
        """A message arrives. Returns the broker that it registers, or 0."""
        message, hold = self._cluster.messages[number], self._hold_of(number)
        broker, name = hold
        if name == REGISTRATION:
            self._add("release-messages", broker=broker, message=name, after_ms=START_MS)
            return broker
        which: dict[str, Any] = {}
        if self._changes and type(message) in (Fetch, Fetched):
            # What was sent before may still be held.
            is_stale = type(message) is Fetch and message.stale
            which = {"peer": message.leader} if is_stale else {"peer": message.leader, "newest": True}
        self._add("deliver-message", hold, **_about(hold), **which)
        return 0

    def _restart(self, kind: str, broker: int, before: KRaftControl) -> None:
        known = self._cluster.controller.views[before.controller].brokers[broker]
        self._add("hold-messages", broker=broker, message=REGISTRATION)
        if kind == "lose":
            self._add("power-loss", brokers=[broker])
        else:
            self._add("kill" if kind == "kill" else "controlled-restart", broker=broker)
        if not known.fenced:
            self._fence(broker)
        self._add("start", broker=broker)

    def _replay(self, before: KRaftControl, after: KRaftControl, restarted: int) -> None:
        """Brokers replay transactions: those of the event, and what makes no difference (`KRaftCluster.is_silent`)."""
        committed = before.controller != after.controller
        for broker in self._cluster.brokers:
            hold = broker, METADATA
            if hold not in self._holds:
                continue
            if broker == restarted:
                self._add("release-messages", hold, **_about(hold))
                self._add("hold-messages", hold, **_about(hold))
                continue
            count = before.behind[broker - 1] + committed - after.behind[broker - 1]
            for _ in range(count):
                self._add("deliver-message", hold, **_about(hold))


def _about(hold: Hold) -> dict[str, Any]:
    return {"broker": hold[0], "message": hold[1]}


# Runs.


class _Writer:
    """Runs scripts, and makes the shortest one a scenario."""

    def __init__(self, cluster: KRaftCluster, path: Path, wanted: Wanted) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._leaders = [action[1] for action, _ in path if action[0] == "append"]
        """The broker that appends each record first."""

    def run(self, lines: Sequence[ScriptedLine]) -> RunResult:
        """Run a script."""
        return self._play(_text(self._cluster, lines, self._wanted), self._wanted.rules)

    def _play(self, text: str, rules: Mapping[str, str]) -> RunResult:
        from scenarios.format.schema import read  # Imports pydantic.
        from scenarios.single.run import run

        return run(read(text, "the script"), self._wanted.mode, 0, rules, trace=True)

    def is_shown_by(self, result: RunResult) -> bool:
        """Whether the leaders of the counterexample append its records, and the kind occurs; an early warning has to
        before everything is healed.
        """
        kind, end_us = self._wanted.kind, result.window_us[1]
        found = [entry for entry in (*result.violations, *result.warnings) if entry["kind"] == kind]
        if result.row["error"] or not any(kind in VIOLATIONS or entry["at_us"] < end_us for entry in found):
            return False
        appends = [step for step in result.trace or () if step["step"] == APPEND.name]
        leaders = {step["record"]: step["broker"] for step in reversed(appends)}
        return all(leaders.get(record) == broker for record, broker in enumerate(self._leaders))

    def shortened(self, lines: Sequence[ScriptedLine]) -> Sequence[ScriptedLine]:
        """The script without the holds, and the last lines before the final one, that it does not need."""
        for hold in sorted({need for line in lines for need in line.needs}):
            fewer = [line for line in lines if hold not in line.needs]
            if self.is_shown_by(self.run(fewer)):
                lines = fewer
        while lines[-2].keys["do"] != "produce":
            fewer = [*lines[:-2], lines[-1]]
            if not self.is_shown_by(self.run(fewer)):
                break
            lines = fewer
        return lines

    def with_steps(self, lines: Sequence[ScriptedLine]) -> Sequence[ScriptedLine]:
        """The script in which each line waits for a step to which the line before has led, where there is one."""
        trace = self.run(lines).trace
        assert trace is not None
        began_us = next(step["t"] for step in trace if step["step"] == FOLLOW.name and step["broker"] == LAST)
        times = [began_us + 1_000 * ms for ms in accumulate(line.after_ms for line in lines)]
        waiting = [lines[0]]
        for line, since_us, until_us in zip(lines[1:-1], times, times[1:], strict=False):
            seen = [step for step in trace if since_us <= step["t"] < until_us and step["step"] in AWAITED]
            waiting.append(line._replace(keys={"when": _pattern(seen[-1]), **line.keys}) if seen else line)
        waiting.append(lines[-1])  # With other rules the last step may not occur.
        return waiting if self.is_shown_by(self.run(waiting)) else lines

    def expecting(self, lines: Sequence[ScriptedLine]) -> str:
        """The scenario with the kind as its expectation, if a run without overridden rules is as expected then."""
        kind, mode, rules, _ = self._wanted
        text = _text(self._cluster, lines, self._wanted, f"{'clean' if rules else 'violates'}:{kind}")
        if rules:
            text += _table("\n[broken_by]", {f'"{mode.name}"': dict(rules)})
        others = {entry["kind"]: entry["inside"] for entry in self._play(text, {}).violations if entry["kind"] != kind}
        for other, inside in others.items():
            about = {"label": "inside" if inside else "outside", "reason": "the script leads to it, too"}
            text += _table("\n[[also]]", {"kind": other, "modes": [mode.name], **about})
        if self._play(text, {}).row["expected"]:
            return text
        return _text(self._cluster, lines, self._wanted)


def _pattern(step: Shown) -> dict[str, Any]:
    """The pattern of a step."""
    fields = {name: step[name] for name in AWAITED[step["step"]] if name in step}
    return {"step": step["step"], **fields}


# Text.


def _text(cluster: KRaftCluster, lines: Sequence[ScriptedLine], wanted: Wanted, expected: str = "may-violate") -> str:
    kind = wanted.kind
    about = {
        "schema": 1,
        "name": f"{NAME}{kind}",
        "title": f"A counterexample: {KINDS[kind]}",
        "description": f"Found by {wanted.command}",
    }
    parts = [
        _table("", about),
        f'brokers.count = {len(cluster.brokers)}\ncontrol = "real"\n',
        _table("\n[config]", {**CONFIG, MIN_ISR: cluster.bounds.min_isr}),
    ]
    note = ""
    for place, line in enumerate(lines):
        parts.append("" if line.note == note else f"\n# {line.note}")
        note = line.note
        keys = {"when": {"step": FOLLOW.name, "broker": LAST}} if not place else {}
        keys |= {"when": line.keys["when"]} if "when" in line.keys else {}
        parts.append(_table("\n[[script]]", {**keys, "after_ms": line.after_ms, **line.keys}))
    parts.append(_table("\n[expect]", {f'"{wanted.mode.name}"': expected}))
    return "".join(parts)


def _table(head: str, keys: Mapping[str, Any]) -> str:
    pairs = "".join(f"{name} = {_value(value)}\n" for name, value in keys.items())
    return f"{head}\n{pairs}" if head else pairs


def _value(value: Any) -> str:
    """A value in TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_value(one)}" for name, one in value.items()) + " }"
    return json.dumps(value)
