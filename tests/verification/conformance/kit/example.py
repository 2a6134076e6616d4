"""An implementation of five subjects, written from README.md alone: it shares no code with `sim/protocol`.

It shows what a program for the kit looks like, and tests the page: `python3 -m tests.verification.conformance.kit
epoch-cache 4.3.1 -- python3 tests/verification/conformance/kit/example.py`. A subject is a generator that takes an
operation and yields its answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from typing import Any

Subject = Generator[Any, list[Any], None]


def epoch_cache(release: tuple[int, ...]) -> Subject:
    """A list of [epoch, start]."""
    log: list[list[int]] = []
    result: Any = None
    while True:
        name, *numbers = yield [result, log]
        result = None
        if name == "assign":
            after = assigned(release, log, *numbers)
            result, log = ("refused", log) if after is None else (None, after)
        elif name == "end":
            result = epoch_end(release, log, *numbers)
        elif name == "truncate-end":
            log = [one for one in log if numbers[0] < 0 or one[1] < numbers[0]]
        elif name == "truncate-start":
            (offset,) = numbers
            below = [one for one in log if one[1] < offset]
            rest = log[len(below) :]
            if below and all(start != offset for _, start in rest):
                rest = [[below[-1][0], offset], *rest]
            log = rest
        elif name == "clear":
            log = []
        elif name == "epoch-of":
            result = max((epoch for epoch, start in log if start <= numbers[0]), default=None)
        elif name == "near":
            result = neighbours([epoch for epoch, _ in log], *numbers)


def neighbours(epochs: list[int], wanted: int) -> list[Any]:
    """The result of `near`."""
    previous = max((epoch for epoch in epochs if epoch < wanted), default=None)
    return [previous, wanted in epochs, min((epoch for epoch in epochs if epoch > wanted), default=None)]


def assigned(release: tuple[int, ...], log: list[list[int]], epoch: int, start: int) -> list[list[int]] | None:
    """The list after `assign`, None if it is refused."""
    if release >= (3, 9) and (epoch < 0 or start < 0):
        return None
    if release < (2, 6):
        is_new = not log or (epoch > log[-1][0] and start >= log[-1][1])
        return [*log, [epoch, start]] if is_new else log
    if log and log[-1][0] == epoch and log[-1][1] <= start:
        return log
    return [*(one for one in log if one[0] < epoch and one[1] < start), [epoch, start]]


def epoch_end(release: tuple[int, ...], log: list[list[int]], epoch: int, leo: int) -> list[int]:
    """The table of `end`."""
    if epoch == -1 or not log or epoch > log[-1][0]:
        found = [-1, -1]
    elif epoch == log[-1][0]:
        found = [epoch, leo]
    elif epoch < log[0][0]:
        found = [-1, -1] if release < (2, 6) else [epoch, log[0][1]]
    else:
        place = max(index for index, one in enumerate(log) if one[0] <= epoch)
        found = [log[place][0], log[place + 1][1]]
    return found[1:] if release < (2,) else found


def zk_election(_: tuple[int, ...]) -> Subject:
    """Elects one broker after the other."""
    leader = 0
    while True:
        kind, assignment, isr, live, stopping = yield leader
        available = [broker for broker in assignment if broker in live and broker not in stopping]
        members = [broker for broker in available if broker in isr]
        if kind == "preferred":
            members = [broker for broker in members if broker == assignment[0]]
        elif kind == "unclean":
            members += available
        leader = members[0] if members else 0


def partition_change(release: tuple[int, ...]) -> Subject:
    """A registration is a dict by the names of README.md."""
    now = registration([1, 2, 3], 0, [1, 2, 3], [], [], 0)
    refused = False
    while True:
        name, *values = yield "refused" if refused else shown(now)
        refused = False
        if name == "state":
            now = registration(*values)
            continue
        new = dict(now)
        if asked(name, values[4:], new):
            now = changed(release, values[:4], values[5] if name == "change" else [], now, new)
        else:
            refused = True


def registration(
    replicas: list[int], leader: int, isr: list[int], elr: list[int], known: list[int], recovering: int
) -> dict[str, Any]:
    """A registration without a reassignment."""
    lists = {"replicas": replicas, "isr": isr, "elr": set(elr), "lastKnown": set(known), "adding": [], "removing": []}
    return {**lists, "leader": leader, "leaderEpoch": 0, "partitionEpoch": 0, "recovering": recovering == 1}


PLACES = (
    *("leader", "leaderEpoch", "isr", "elr", "lastKnown", "partitionEpoch"),
    *("replicas", "adding", "removing", "recovering"),
)


def shown(state: dict[str, Any]) -> list[Any]:
    """The ten places."""
    return [sorted(state[name]) if isinstance(state[name], set) else state[name] for name in PLACES]


def minus(ones: list[int], others: Any) -> list[int]:
    """`A - B`."""
    return [one for one in ones if one not in others]


def asked(name: str, values: list[Any], new: dict[str, Any]) -> bool:
    """Step 1; False if it is refused."""
    if name == "change":
        target, _, recovering = values
        if target is not None:
            new["isr"] = target
        if recovering is not None:
            new["recovering"] = recovering == 1
    elif name == "reassign":
        (target,) = values
        adding, removing = sorted(minus(target, new["replicas"])), sorted(minus(new["replicas"], target))
        new["replicas"] = target + removing
        new["adding"] = adding or new["adding"]
        new["removing"] = removing or new["removing"]
    elif name == "cancel":
        new["replicas"] = minus(new["replicas"], new["adding"])
        new["isr"] = minus(new["isr"], new["adding"])
        new["adding"] = new["removing"] = []
        if not new["isr"]:
            new["isr"] = new["replicas"][:1]
            return bool(values[0] == 1)
    return True


def changed(
    release: tuple[int, ...], head: list[Any], ended: list[int], old: dict[str, Any], new: dict[str, Any]
) -> dict[str, Any]:
    """Steps 2 to 9."""
    acceptable, min_isr, enabled, election = head
    complete(release, new)
    if enabled:
        both = old["elr"] | set(old["isr"])
        new["elr"] = set() if len(new["isr"]) >= min_isr else both - set(new["isr"]) - set(ended)
    leader, unclean = elected(acceptable, enabled, election, old, new)
    new["leader"] = leader
    bumped = leader != old["leader"]
    if bumped and leader in new["elr"]:
        new["isr"], new["elr"] = [leader], new["elr"] - {leader}
    if bumped and unclean:
        new["isr"], new["elr"] = [leader], set()
        new["recovering"] = new["recovering"] if old["recovering"] else True
    if not enabled:
        new["elr"] = set()
        new["isr"] = new["isr"] or old["isr"]
    bumped = bumped or bool(minus(old["replicas"], new["replicas"]))
    if enabled:
        new["lastKnown"] = last_known(release, old, new, bumped=bumped)
    new["leaderEpoch"] += bumped
    new["partitionEpoch"] += bumped or new != old
    return new


def complete(release: tuple[int, ...], new: dict[str, Any]) -> None:
    """Step 2."""
    adding, removing = new["adding"], new["removing"]
    replicas, isr = minus(new["replicas"], removing), minus(new["isr"], removing)
    if not (adding or removing) or not replicas or (removing and not isr):
        return
    done = not minus(replicas, isr)
    if release >= (4, 3, 1):
        done = not minus(adding, isr) and (len(adding) >= len(removing) or done)
    if done:
        new.update(replicas=replicas, isr=isr, adding=[], removing=[])


def elected(
    acceptable: list[int], enabled: int, election: str, old: dict[str, Any], new: dict[str, Any]
) -> tuple[int, bool]:
    """Step 4: the leader, and whether uncleanly."""
    valid = [broker for broker in acceptable if broker in (new["isr"] or new["elr"])]
    replicas = new["replicas"]
    if election == "PREFERRED" and replicas[0] in valid:
        return replicas[0], False
    for broker in [old["leader"], *replicas]:
        if broker in valid:
            return broker, False
    if enabled and not new["isr"] and not new["elr"] and len(old["lastKnown"]) == 1:
        (known,) = old["lastKnown"]
        if known in acceptable:
            return known, True
    possible = [broker for broker in replicas if broker in acceptable]
    return (possible[0], True) if election == "UNCLEAN" and possible else (0, False)


def last_known(release: tuple[int, ...], old: dict[str, Any], new: dict[str, Any], *, bumped: bool) -> set[int]:
    """Step 8."""
    known: set[int] = old["lastKnown"]
    if release < (4, 2):
        if old["isr"] and not new["isr"] and known != {old["leader"]}:
            return {old["leader"]}
        return set() if new["leader"] != 0 else known
    if bumped and new["leader"] != 0:
        return set()
    return {old["leader"]} if bumped and not known else known


class AlterPartitionManager:
    """Changes by partition; what happened since the last answer."""

    def __init__(self) -> None:
        self.time = self.broker_epoch = 0
        self.waiting: dict[int, list[Any]] = {}
        self.following: dict[int, list[Any]] = {}
        self.in_flight: list[int] = []
        self.again: list[int] = []
        self.requests: list[Any] = []
        self.ended: list[Any] = []

    def answer(self) -> list[Any]:
        """The four places."""
        requests, ended = self.requests, sorted(self.ended, key=lambda one: one[0])
        self.requests, self.ended = [], []
        return [requests, ended, sorted(self.waiting), self.time]

    def send(self) -> None:
        """To send."""
        if self.waiting and not self.in_flight:
            self.in_flight = sorted(self.waiting)
            changes = [[one, *self.waiting[one]] for one in self.in_flight]
            shown = [[one, [[member, member] for member in isr], *epochs] for one, isr, *epochs in changes]
            self.requests.append([self.broker_epoch, shown])

    def end(self, partition: int, outcome: list[Any]) -> None:
        """A change ends."""
        self.ended.append([partition, outcome])
        if partition in self.following:
            self.submit(partition, *self.following.pop(partition))

    def submit(self, partition: int, *change: Any) -> None:
        """The operation."""
        if partition in self.waiting:
            self.end(partition, ["OPERATION_NOT_ATTEMPTED"])
        else:
            self.waiting[partition] = [*change]
            self.send()

    def answered(self, error: str, results: list[list[Any]]) -> None:
        """The operation, with a request in flight."""
        if error != "NONE":
            self.in_flight = []
            self.again.append(self.time + 50)
            return
        asked = self.in_flight
        for partition, refusal, isr, *epochs in results:
            if partition in asked:
                del self.waiting[partition]
                self.end(partition, ["NONE", sorted(isr), *epochs] if refusal == "NONE" else [refusal])
        self.in_flight = []
        self.send()

    def pass_time(self, ms: int) -> None:
        """The operation."""
        until = self.time + ms
        while self.again and self.again[0] <= until:
            self.time = self.again.pop(0)
            self.send()
        self.time = until


def alter_partition_manager(_: tuple[int, ...]) -> Subject:
    """Hands operations on."""
    manager = AlterPartitionManager()
    while True:
        name, *values = yield manager.answer()
        if name == "submit":
            manager.submit(*values)
        elif name == "then":
            manager.following[values[0]] = values[1:]
        elif name in ("answer", "fail") and manager.in_flight:
            manager.answered(*values if name == "answer" else (values[0], []))
        elif name == "epoch":
            manager.broker_epoch += 1
        elif name == "time":
            manager.pass_time(*values)


class BrokerLifecycle:
    """A broker; times are in ms."""

    def __init__(self, release: tuple[int, ...]) -> None:
        self.backs_off = release < (4, 1)
        self.state = "STARTING"
        self.states = {self.state}
        self.time = self.offset = self.failures = 0
        self.registered = self.ready = self.urgent = self.delayed = False
        self.in_flight = "register"
        self.sent: list[list[Any]] = [["register", 7]]
        self.next: int | None = None

    def answer(self, *, done: bool) -> list[Any]:
        """The seven places."""
        self.states.add(self.state)
        sent, self.sent = self.sent, []
        flags = ["RECOVERY" in self.states, "RUNNING" in self.states, self.state == "SHUTTING_DOWN"]
        return [done, self.state, *flags, self.time, sent]

    def communicate(self) -> None:
        """To communicate."""
        if self.state == "SHUTTING_DOWN":
            return
        if self.in_flight:
            self.urgent = True
        elif self.registered:
            self.in_flight = "heartbeat"
            stops = self.state == "PENDING_CONTROLLED_SHUTDOWN"
            self.sent.append(["heartbeat", 100, self.offset, not self.ready, stops])
        else:
            self.in_flight = "register"
            self.sent.append(["register", 7])

    def schedule(self, ms: int) -> None:
        """To schedule after."""
        ms = 0 if self.urgent else ms
        self.urgent = False
        self.next = self.time + ms if ms else None
        if not ms:
            self.communicate()

    def answered(self, error: str, caught_up: int = 0, fenced: int = 0, stop: int = 0) -> bool:
        """The operations `answer` and `fail`."""
        asked, self.in_flight = self.in_flight, ""
        if not asked or self.state == "SHUTTING_DOWN":
            return bool(asked)
        if error != "NONE":
            self.urgent = False
            self.schedule(min(100 * 2**self.failures, 9000) if self.backs_off else 2000)
            self.failures += 1
            return True
        self.failures = 0
        if asked == "register":
            self.registered = True
            self.schedule(0)
        else:
            self.beats(caught_up, fenced, stop)
        return True

    def beats(self, caught_up: int, fenced: int, stop: int) -> None:
        """A heartbeat's answer."""
        if self.state == "STARTING":
            self.state = "RECOVERY" if caught_up else self.state
            self.schedule(10)
        elif self.state != "PENDING_CONTROLLED_SHUTDOWN":
            self.states.add(self.state)
            self.state = "RUNNING" if not fenced else self.state
            self.schedule(2000)
        elif stop:
            self.state = "SHUTTING_DOWN"
        else:
            self.schedule(2000 if self.delayed else 50)
            self.delayed = True

    def stop(self) -> None:
        """The operation."""
        if self.state == "RUNNING":
            self.states.add(self.state)
            self.state = "PENDING_CONTROLLED_SHUTDOWN"
            self.schedule(0)
        elif self.state != "PENDING_CONTROLLED_SHUTDOWN":
            self.state = "SHUTTING_DOWN"

    def pass_time(self, ms: int) -> None:
        """The operation."""
        until = self.time + ms
        timeout = 60_000 if self.time < 60_000 else until + 1
        while (due := min(timeout, until + 1 if self.next is None else self.next)) <= until:
            self.time = due
            if due == timeout:
                timeout = until + 1
                self.state = self.state if self.registered else "SHUTTING_DOWN"
            else:
                self.next = None
                self.communicate()
        self.time = until


def broker_lifecycle(release: tuple[int, ...]) -> Subject:
    """Hands operations on."""
    broker = BrokerLifecycle(release)
    answer: list[Any] = []
    while True:
        name, *values = yield answer
        done = True
        if name in ("answer", "fail"):
            done = broker.answered(*values)
        elif name == "ready":
            broker.ready = True
            broker.schedule(0)
        elif name == "stop":
            broker.stop()
        elif name == "replay":
            broker.offset += values[0]
        elif name == "time":
            broker.pass_time(*values)
        answer = broker.answer(done=done)


SUBJECTS = {
    "epoch-cache": epoch_cache,
    "zk-election": zk_election,
    "partition-change": partition_change,
    "alter-partition-manager": alter_partition_manager,
    "broker-lifecycle": broker_lifecycle,
}


def main() -> None:
    """Answers until stdin ends."""
    subject: Subject | None = None
    for line in sys.stdin:
        message = json.loads(line)
        if "case" in message:
            release = tuple(int(part) for part in message["kafka"].split("."))
            subject = SUBJECTS[message["subject"]](release)
            next(subject)
        else:
            assert subject is not None
            answer = subject.send(message["operation"])
            sys.stdout.write(json.dumps({"answer": answer}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
