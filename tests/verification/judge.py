"""An independent judge: what clients are left with at the end of a run, from its trace alone.

It shares nothing with checkers, history and promise. It repeats what each broker's log gains and loses, and asks at the
end: does the leader's log have every record that was acknowledged with acks=all, in the order of sending, and once if
its producer is idempotent? Are the logs of the ISR equal? Has a live replica every acknowledged record, although there
is no leader? A disagreement with the verdict is a defect of one of the two.

    python -m tests.verification.judge --seeds 0..100 [--modes kraft,elr-4.3] [--scenarios chaos,power]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from scenarios.format import catalogue
from scenarios.single.run import run
from sim.protocol.modes import mode as mode_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from scenarios.single.result import RunResult
    from sim.hosts.cluster import Cluster

Step = dict[str, Any]
MEANS: Final[Mapping[str, frozenset[str]]] = {
    "lost": frozenset({"committed-loss"}),
    "twice": frozenset({"duplicate", "duplicate-across-epochs"}),
    "order": frozenset({"reordered", "reordered-across-epochs"}),
    "unequal": frozenset({"divergence", "stuck-replica", "no-progress", "stalled"}),
    "leaderless": frozenset({"no-progress", "stalled"}),
}
"""What the judge finds -> the kinds of violation, or the verdict, that say the same."""
_SAYS: Final = {kind: word for word in ("lost", "twice", "order") for kind in MEANS[word]}
"""Kinds of violation that the judge has to find, too -> its word."""
NO_VERDICT: Final = ("error", "exhausted")
"""Values of column ``verdict`` of runs that were not judged."""
_AFTER_HEALING: Final = 1 << 40
"""Records from this id on test a healed cluster, and may be sent before others with lower ids."""
_ENDS: Final = (
    *("kill", "power-loss", "shutdown", "halt", "exit", "corrupt-tail", "disk-replaced"),
    *("directory-failed", "directory-offline", "directory-replaced", "file-damaged"),
)


class Partition:
    """A partition, repeated from the steps of its trace.

    Attributes:
        logs: broker -> its log: (offset, record, producer id, offset of its batch) of each record.
    """

    def __init__(self) -> None:
        self.logs: dict[int, list[tuple[int, int, int, int]]] = {}
        self._starts: Counter[int] = Counter()
        self._live: set[int] = set()
        self._gone: dict[int, set[int]] = {}
        """Broker whose replica has ended -> the batches, by offset, that its disk does not have."""
        self._acked: dict[int, int] = {}
        self._deleted: set[int] = set()
        self._isr: Sequence[int] = ()
        self._elected = self._leads = self._epoch = 0

    def take(self, step: Step) -> None:
        """Repeat a step."""
        kind, broker, offset = step["step"], step.get("broker", 0), step.get("offset", 0)
        log = self.logs.setdefault(broker, [])
        if kind == "append":
            first, producer = step["record"] - offset, step.get("producer_id", -1)
            log += [(at, first + at, producer, offset) for at in range(offset, step["last"] + 1)]
            self._live.add(broker)
        elif kind in ("truncate", "recovered", "deleted"):
            end: int = 0 if kind == "deleted" else offset
            self.logs[broker] = kept = [one for one in log if one[0] < end]
            # A log of which nothing is left begins where it ends: after what its leader has deleted, for example.
            self._starts[broker] = step.get("log_start", min(self._starts[broker], end) if kept else end)
            self._live.add(broker)
            self._gone.pop(broker, None)
        elif kind in ("log-start", "retention"):
            self._starts[broker] = max(self._starts[broker], offset)
            self._deleted.update(one[1] for one in log if one[0] < offset and kind == "retention")
        elif kind == "ack" and step["acks"] == -1:
            self._acked.update({step["record"] + place: offset + place for place in range(step["count"])})
        elif kind == "directory-replaced" and broker in self._live:
            pass  # The replica is in another directory by now.
        elif kind in _ENDS:  # `offset` is the number of its newest batches that are gone.
            gone = self._gone.setdefault(broker, set())
            gone.update(sorted({one[3] for one in log} - gone)[-offset:] if offset else ())
            self._live.discard(broker)
        elif kind == "isr":
            self._isr = step["isr"]
        elif kind == "elected":
            self._elected = broker
        elif kind == "lead" and step["leader_epoch"] >= self._epoch:
            self._leads, self._epoch = broker, step["leader_epoch"]

    def found(self) -> Iterator[str]:
        """What is wrong at the end: words of `MEANS`."""
        logs = {
            broker: [one for one in log if one[0] >= self._starts[broker] and one[3] not in self._gone.get(broker, ())]
            for broker, log in self.logs.items()
        }
        # What was deleted cannot be missed, nor a record whose offset the log start has passed.
        passed = max((self._starts[broker] for broker in self._live), default=0)
        due = {record for record, at in self._acked.items() if at >= passed} - self._deleted
        if self._elected not in self._live or self._leads != self._elected:
            if any(due <= {one[1] for one in logs[broker]} for broker in self._live):
                yield "leaderless"
            elif not due <= {one[1] for log in logs.values() for one in log}:
                yield "lost"
            return
        final = logs[self._elected]
        if not due <= {one[1] for one in final}:
            yield "lost"
        for producer in {one[2] for one in final} - {-1}:
            ids = [one[1] for one in final if one[2] == producer]
            if len(set(ids)) < len(ids):
                yield "twice"
            elif (sent := [record for record in ids if record < _AFTER_HEALING]) != sorted(sent):
                yield "order"
        start = max(self._starts[broker] for broker in (self._elected, *self._isr))
        # The last write that tests a healed cluster may still be on its way to followers.
        whole = {broker: [one for one in logs[broker] if one[0] >= start and one[1] < _AFTER_HEALING]
                 for broker in (self._elected, *self._isr)}  # fmt: skip
        if any(whole[broker] != whole[self._elected] for broker in self._isr):
            yield "unequal"


def judge(trace: Iterable[Step]) -> set[str]:
    """What is wrong at the end of a run in one of its partitions: words of `MEANS`."""
    partitions = {"": Partition()}
    for step in trace:
        if step["step"] == "topic-deleted":  # A topic of the same name may be created again.
            partitions |= {name: Partition() for name in step["partitions"].split(", ")}
        name = step.get("partition", "")
        partitions.setdefault(name, Partition())
        partitions[name].take(step)
    return {word for partition in partitions.values() for word in partition.found()}


def run_judged(scenario: str, mode: str, seed: int) -> tuple[RunResult, set[str]]:
    """A run, and what the judge finds in it."""
    trace: list[Step] = []

    def watch(cluster: Cluster, name: str) -> Any:
        if name == cluster.name:
            cluster.recorder.observe(trace.append, everywhere=True)
        return lambda _: None

    result = run(catalogue.load(scenario), mode_named(mode), seed, watch=watch)
    return result, judge(trace)


def disagreement(result: RunResult, found: set[str]) -> str:
    """How judge and verdict differ; "" if they agree, or if the run has no verdict."""
    if result.row["verdict"] in NO_VERDICT:
        return ""
    kinds = {*str(result.row["violations"]).split(","), *(["stalled"] if result.stalled else [])}
    missed = sorted(word for word in found if not MEANS[word] & kinds)
    more = sorted(kind for kind in kinds if kind in _SAYS and _SAYS[kind] not in found)
    return "; ".join(
        [*(f"the judge alone: {word}" for word in missed), *(f"the verdict alone: {kind}" for kind in more)]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare on seeds of random scenarios; 1 if judge and verdict disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    drawn = [name for name in catalogue.names() if catalogue.load(name).faults is not None]
    parser.add_argument("--seeds", default="0..20")
    parser.add_argument("--modes", default="kip320,kraft,elr-4.3")
    parser.add_argument("--scenarios", default=",".join(drawn))
    options = parser.parse_args(arguments)
    first, end = map(int, options.seeds.split(".."))
    runs, differ, unjudged = 0, 0, 0
    words: Counter[str] = Counter()
    for scenario in options.scenarios.split(","):
        for mode in options.modes.split(","):
            for seed in range(first, end):
                runs += 1
                result, found = run_judged(scenario, mode, seed)
                unjudged += result.row["verdict"] in NO_VERDICT
                words.update(found)
                if text := disagreement(result, found):
                    differ += 1
                    sys.stdout.write(f"{scenario} --mode {mode} --seed {seed}: {text}\n")
                    sys.stdout.flush()
    listed = ", ".join(f"{word} {words[word]}" for word in MEANS)
    sys.stdout.write(f"the judge found, in runs: {listed}\n")
    sys.stdout.write(f"{runs} runs, {unjudged} without a verdict, {differ} in which judge and verdict disagree\n")
    return int(differ > 0)


if __name__ == "__main__":
    raise SystemExit(main())
