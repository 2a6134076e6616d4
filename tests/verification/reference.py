"""The independent checker: reads only a written trace, and checks it by brute force.

It shares no code with the incremental checkers and the history. Each broker's log is rebuilt offset by offset from the
steps, with HWs, completed truncations, ISR and leadership; every claim is compared with everything, again after each
step that might matter. Where both checkers agree, a verdict does not hang on the bookkeeping of either.

Verifies: ``committed-loss``, ``exposed-loss``, ``divergence``, ``hw-regression``, ``consumer-skip``, ``reset-skip``,
``committed-offset-back``, ``deleted-records-back``, ``duplicate``, ``reordered``, ``duplicate-across-epochs``,
``reordered-across-epochs``, ``sequence-gap``, ``ack-under-min-isr``, ``controller-crashes``, ``quorum-leaders``,
``stuck-replica``, ``no-progress``,
and that the trace itself is consistent: LEOs, numbers of removed batches and lost records fit the rebuilt logs.

Does not verify: early warnings; ``stale-setting``, ``needless-wait``, ``quorum-stalled`` and ``metadata-loss``, because
a trace does not tell of settings and of batches of the metadata log (`UNTOLD`); whether a violation is inside the
promise; what was lost in which crash; stories.
Taken as they are: the HWs that steps report, and that an exposure received in the microsecond in which a request was
sent came before it. Where batches overlap, several records stand at an offset.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from sim.history.trace import TRACE_VERSION, Shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

VALIDATION_IDS: Final = 1 << 40
"""Records from this id on were written after healing, to see whether the cluster is whole."""
UNTOLD: Final = frozenset(
    {
        *("metadata-loss", "quorum-stalled", "stale-setting"),
        *("needless-wait", "needless-shrink", "forbidden-election", "wrong-offset"),
    }
)
"""Kinds of violation that no trace shows."""
_ENDS: Final = (
    *("kill", "power-loss", "shutdown", "halt", "exit", "disk-replaced", "corrupt-tail"),
    *("directory-failed", "directory-replaced", "directory-offline", "file-damaged"),
)

Record = tuple[int, int]
"""(record id, leader epoch)"""


class TraceError(Exception):
    """The trace contradicts itself, or is of a newer version."""


def read(lines: Iterable[str]) -> list[Shown]:
    """The steps of a written trace: JSON lines after a header line.

    Raises:
        TraceError: no header, or `schema_version` is newer than this code knows.
    """
    header, *steps = [json.loads(line) for line in lines]
    version = header.get("schema_version")
    if not isinstance(version, int) or version > TRACE_VERSION:
        raise TraceError(f"trace has schema_version {version!r}; this version reads {TRACE_VERSION}")
    return steps


def check(trace: Iterable[Shown], replicas: Sequence[int]) -> dict[str, str]:
    """Judge a whole run, to the end of validation.

    Args:
        trace: its steps.
        replicas: the assignment.

    Returns:
        Kind of violation -> the first one found, in words.

    Raises:
        TraceError: the trace contradicts itself.
    """
    judge = _Judge(replicas)
    for step in trace:
        judge.take(step)
    judge.conclude()
    return judge.findings


class _Copy:
    """One broker's copy of the partition, rebuilt from the steps."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, int, int]] = []
        self.at: list[tuple[Record, ...]] = []
        self.start = 0
        self.leo = 0
        self.hw = 0
        self.running = False
        self.completed: int | None = None
        self.leads: int | None = None
        self.lost: list[int] = []

    def append(self, base: int, last: int, epoch: int, first: int) -> None:
        if not self.batches and base < self.start:
            self.start = base
        self.batches.append((base, last, epoch, first))
        self.leo = last + 1
        self._place(base, last, epoch, first)

    def _place(self, base: int, last: int, epoch: int, first: int) -> None:
        at = self.at
        at.extend([()] * (last + 1 - len(at)))
        for offset in range(base, last + 1):
            at[offset] += ((first + offset - base, epoch),)

    def _keep(self, batches: list[tuple[int, int, int, int]]) -> None:
        self.batches = batches
        self.at = []
        for batch in batches:
            self._place(*batch)

    def truncate(self, offset: int) -> int:
        """Remove whole batches that reach the offset; beyond the LEO all: the log restarts there."""
        before = len(self.batches)
        if offset > self.leo:
            self._keep([])
            self.start = self.leo = self.hw = offset
        elif offset < self.leo:
            self._keep([batch for batch in self.batches if batch[1] < offset])
            self.leo = offset
            self.start = min(self.start, offset)
            self.hw = min(self.hw, offset)
        return before - len(self.batches)

    def lose(self, count: int) -> None:
        """Remove the newest batches, lost with the page cache."""
        kept = len(self.batches) - count
        for base, last, _, first in self.batches[kept:]:
            self.lost += range(first, first + last - base + 1)
        self._keep(self.batches[:kept])

    def stop(self) -> None:
        self.running = False
        self.completed = self.leads = None

    def ids(self) -> set[int]:
        """Records at or above the log start."""
        return {record for stands in self.at[self.start :] for record, _ in stands}

    def records_at(self, offset: int) -> tuple[Record, ...]:
        """Records at an offset."""
        return self.at[offset] if offset < len(self.at) else ()

    def holds(self, offset: int, record: int) -> bool:
        return any(found == record for found, _ in self.records_at(offset))


class _Judge:
    def __init__(self, replicas: Sequence[int]) -> None:
        self.findings: dict[str, str] = {}
        self._copies = {broker: _Copy() for broker in replicas}
        self._replicas = tuple(replicas)
        self._isr = self._replicas
        self._elected = 0
        self._epoch = -1
        self._senders: dict[tuple[int, int, int], tuple[int, int, int]] = {}
        self._acks: list[Shown] = []
        self._short: set[tuple[int, int]] = set()
        self._passed: dict[int, set[int]] = {}
        self._since: dict[int, list[Shown]] = {}
        self._reads: list[Shown] = []
        self._exposed: list[tuple[int, int, int]] = []
        self._deleted: set[int] = set()
        self._sought: dict[int, set[int]] = {}
        self._commits: dict[int, list[int]] = {}
        self._out: dict[int, int] = {}
        self._left: dict[tuple[int, str], set[int]] = {}
        self._failed: list[Shown] = []
        self._committed: set[tuple[int, int]] = set()
        self._lowest_start = 0
        self._crash = ""
        self._quorum_leaders: dict[int, int] = {}
        self._now_us = 0
        self._handlers: dict[str, Callable[[Shown], None]] = {
            "append": self._append,
            "truncate": self._truncate,
            "hw": self._hw,
            "lead": self._lead,
            "follow": self._follow,
            "settled": self._settled,
            "log-start": self._log_start,
            "recovered": self._recovered,
            **dict.fromkeys(_ENDS, self._ended),
            "elected": self.on_elected,
            "isr": self.on_isr,
            "acknowledges": self._acknowledges,
            "ack": self._ack,
            "read": self._read,
            "rewind": self._went_back,
            "restart-consumer": self._went_back,
            "next-process": self._replaced,
            "committed-offset": self._began_at_committed,
            "commit-ack": self._commit_acked,
            "offsets-answer": self._answered,
            "out-of-range": self._out_of_range,
            "reset": self._reset,
            "discovery": self._discovered,
            "seek": self._seek,
            "truncation-detected": self._told,
            "end-offset": self._end_offset,
            "batch-failed": self._failed.append,
            "controller-crashed": self._crashed,
            "raft-leader": self._quorum_led,
            **dict.fromkeys(("cut", "heal", "slow", "lossy", "pause", "resume", "disk-stalled"), self._disturbed),
            **dict.fromkeys(("disk-works", "metadata-slowed", "metadata-sped-up"), self._disturbed),
        }

    def take(self, step: Shown) -> None:
        """Apply one step."""
        if step["t"] < self._now_us:
            raise TraceError(f"time goes back to {step['t']} us at {step}")
        self._now_us = step["t"]
        handler = self._handlers.get(step["step"])
        if handler is not None and step.get("broker", 0) in (0, *self._replicas):  # Others have no log.
            handler(step)

    def _find(self, kind: str, detail: str) -> None:
        self.findings.setdefault(kind, f"{self._now_us} us: {detail}")

    @staticmethod
    def _expect(step: Shown, what: str, rebuilt: object, said: object) -> None:
        if rebuilt != said:
            raise TraceError(f"{what} should be {rebuilt} at {step}")

    # Logs.

    def _append(self, step: Shown) -> None:
        copy = self._copies[step["broker"]]
        copy.append(step["offset"], step["last"], step["leader_epoch"], step["record"])
        if "producer_id" in step:
            place = (step["offset"], step["leader_epoch"], step["record"])
            self._senders[place] = (step["producer_id"], step["producer_epoch"], step["sequence"])
        self._expect(step, "LEO", copy.leo, step["leo"])

    def _truncate(self, step: Shown) -> None:
        copy = self._copies[step["broker"]]
        removed = copy.truncate(step["offset"])
        self._expect(step, "number of removed batches", removed, step["removed"])
        self._expect(step, "LEO", copy.leo, step["offset"])
        self._compare_all()

    def _log_start(self, step: Shown) -> None:
        copy = self._copies[step["broker"]]
        if copy.leads is not None:
            self._deleted.update(record for held in copy.at[copy.start : step["offset"]] for record, _ in held)
        copy.start = step["offset"]
        copy.leo = max(copy.leo, copy.start)
        self._note_starts()
        self._compare_all()

    def _ended(self, step: Shown) -> None:
        copy = self._copies[step["broker"]]
        copy.stop()
        copy.lose(step["offset"])
        self._crash = ""

    def _recovered(self, step: Shown) -> None:
        copy = self._copies[step["broker"]]
        self._expect(step, "lost records", sorted(copy.lost), sorted(step["lost"]))
        copy.lost = []
        copy.running = True
        copy.start = step["log_start"]
        copy.leo = max([copy.start, *(last + 1 for _, last, _, _ in copy.batches)])
        copy.hw = step["hw"]
        self._expect(step, "LEO", copy.leo, step["offset"])

    def _note_starts(self) -> None:
        if self._isr:
            self._lowest_start = max(
                self._lowest_start, min(self._copies[one].start if one in self._copies else 0 for one in self._isr)
            )

    # Replication.

    def _hw(self, step: Shown) -> None:
        copy = self._copies[step["broker"]]
        copy.hw = step["offset"]
        if copy.leads is not None:
            for base, last, epoch, first in copy.batches:
                if last < copy.hw and (base, epoch, first) in self._senders:
                    self._committed.add((self._senders[base, epoch, first][0], first))
        self._compare_all()

    def _lead(self, step: Shown) -> None:
        copy = self._copies[step["broker"]]
        copy.leads = copy.completed = step["leader_epoch"]
        if step["leader_epoch"] >= self._epoch:  # Otherwise another broker has led since this one was elected.
            self._deleted_records(copy)
        self._epoch = max(self._epoch, step["leader_epoch"])
        self._compare_all()

    def _follow(self, step: Shown) -> None:
        copy = self._copies[step["broker"]]
        copy.leads = copy.completed = None
        self._epoch = max(self._epoch, step["leader_epoch"])

    def _settled(self, step: Shown) -> None:
        self._copies[step["broker"]].completed = step["leader_epoch"]
        self._compare_all()

    def on_elected(self, step: Shown) -> None:
        """See `Shown`."""
        self._elected = step["broker"]
        self._epoch = max(self._epoch, step["leader_epoch"])

    def on_isr(self, step: Shown) -> None:
        """See `Shown`."""
        self._isr = tuple(step["isr"])
        self._note_starts()
        self._epoch = max(self._epoch, step["leader_epoch"])

    # Divergence.

    def _compare_all(self) -> None:
        """Compare all pairs of copies that completed truncation in the current leader epoch."""
        self._compare([copy for copy in self._copies.items() if copy[1].completed == self._epoch])

    def _compare(self, copies: list[tuple[int, _Copy]]) -> None:
        for position, (broker, copy) in enumerate(copies):
            for other, peer in copies[position + 1 :]:
                start, end = max(copy.start, peer.start), min(copy.hw, peer.hw)
                if copy.at[start:end] != peer.at[start:end]:
                    self._find("divergence", f"brokers {broker} and {other} differ between {start} and {end}")

    # Clients.

    def _acknowledges(self, step: Shown) -> None:
        if len(self._isr) < step["min_isr"]:
            self._short.add((step["record"], step["t"]))

    def _ack(self, step: Shown) -> None:
        self._acks.append(step)
        if step["acks"] == -1 and (step["record"], step["answered_at"]) in self._short:
            self._find("ack-under-min-isr", f"record {step['record']} was answered at {step['answered_at']} us")

    def _read(self, step: Shown) -> None:
        self._reads.append(step)
        self._since.setdefault(step["consumer"], []).append(step)
        self._passed.setdefault(step["consumer"], set()).update(range(step["position"], step["last"] + 1))
        self._exposed.append((step["t"], step["leader_epoch"], step["last"] + 1))

    def _went_back(self, step: Shown) -> None:
        if step["consumer"] in self._out:
            self._told(step)
        self._reads_again(step)

    def _replaced(self, step: Shown) -> None:
        if step["consumer"] in self._out:
            self._told(step)

    def _began_at_committed(self, step: Shown) -> None:
        if step["offset"] >= 0:
            self._reads_again(step)

    def _commit_acked(self, step: Shown) -> None:
        """For __consumer_offsets, a commit that succeeded is an acknowledged record."""
        self._ack(step)
        self._commits.setdefault(step["consumer"], []).append(step["record"])

    def _answered(self, step: Shown) -> None:
        """A commit that was sent before one that had succeeded is too old; then it is the one that counts."""
        known = self._commits.get(step["consumer"], [])
        if known and step["record"] < known[-1]:
            self._find("committed-offset-back", f"record {step['record']} was answered, not {known[-1]}")
        if known:
            known.append(step["record"])

    def _reads_again(self, step: Shown) -> None:
        """What a consumer has passed, or left behind, at or above its new position, it reads from now on."""
        consumer = step["consumer"]
        left = [offsets for (one, _), offsets in self._left.items() if one == consumer]
        for offsets in [self._passed.get(consumer, set()), self._sought.get(consumer, set()), *left]:
            offsets.intersection_update(range(step["offset"]))

    def _told(self, step: Shown) -> None:
        self._notified(step)

    def _notified(self, step: Shown) -> set[int]:
        """What a consumer had passed until now."""
        consumer = step["consumer"]
        self._out.pop(consumer, None)
        self._since.pop(consumer, None)
        return self._passed.pop(consumer, set()) | self._sought.pop(consumer, set())

    def _out_of_range(self, step: Shown) -> None:
        self._out[step["consumer"]] = step["offset"]

    def _reset(self, step: Shown) -> None:
        out_at = self._out.get(step["consumer"])
        reached = self._notified(step)
        self._reads_again(step)
        begin = max(reached, default=step["offset"] - 1) + 1 if out_at is None else out_at
        behind = {offset for offset in reached | {*range(begin, step["offset"])} if offset < step["offset"]}
        self._left.setdefault((step["consumer"], step["policy"]), set()).update(behind)

    def _discovered(self, step: Shown) -> None:
        """As if the consumer had read up to the partition's start."""
        self._passed[step["consumer"]] = {step["offset"] - 1}

    def _seek(self, step: Shown) -> None:
        is_out = step["consumer"] in self._out
        reached = self._notified(step)
        self._reads_again(step)
        if not is_out:
            self._sought[step["consumer"]] = {offset for offset in reached if offset < step["offset"]}

    def _quorum_led(self, step: Shown) -> None:
        epoch, node = step["raft_epoch"], step["node"]
        known = self._quorum_leaders.setdefault(epoch, node)
        if known != node:
            self._find("quorum-leaders", f"controllers {known} and {node} lead in epoch {epoch}")

    def _crashed(self, step: Shown) -> None:
        if step["cause"] == self._crash:
            self._find("controller-crashes", self._crash)
        self._crash = step["cause"]

    def _disturbed(self, _: Shown) -> None:
        self._crash = ""

    def _end_offset(self, step: Shown) -> None:
        end, epoch = step["offset"], step["leader_epoch"]
        for since_us, exposed_epoch, exposed_end in self._exposed:
            if since_us <= step["asked_at"] and exposed_epoch <= epoch and end < exposed_end:
                self._find("hw-regression", f"{exposed_end} was exposed at {since_us} us, then {end} was answered")
        self._exposed.append((step["t"], epoch, end))

    # The end.

    def conclude(self) -> None:
        """Check the end of validation."""
        leader = self._leader()
        self._convergence(leader)
        self._committed_loss([leader] if leader else list(self._copies.values()))
        if leader:
            self._compare([copy for copy in self._copies.items() if copy[1].running])
            self._exposed_loss(leader)
            self._idempotence(leader)
            self._consumer_skip(leader)
            self._reset_skip(leader)
            self._sequence_gap(leader)
            self._deleted_records(leader)

    def _leader(self) -> _Copy | None:
        """The broker that was elected, runs, and leads in the current leader epoch."""
        copy = self._copies.get(self._elected)
        return copy if copy is not None and copy.leads == self._epoch else None

    def _committed_loss(self, copies: list[_Copy]) -> None:
        present = self._deleted.union(*(copy.ids() for copy in copies))
        start = max(copy.start for copy in copies)
        for ack in self._acks:
            if ack["acks"] != -1:
                continue
            for position in range(ack["count"]):
                if ack["record"] + position not in present and ack["offset"] + position >= start:
                    self._find("committed-loss", f"record {ack['record'] + position}, acknowledged at {ack['t']} us")

    def _exposed_loss(self, leader: _Copy) -> None:
        for shown in self._reads:
            for offset in range(max(shown["offset"], leader.start), shown["last"] + 1):
                record = shown["record"] + offset - shown["offset"]
                if record not in self._deleted and not leader.holds(offset, record):
                    self._find("exposed-loss", f"record {record}, shown at offset {offset} at {shown['t']} us")

    def _consumer_skip(self, leader: _Copy) -> None:
        """Below the HW, a consumer was shown what stands where its position went over, or was told of a jump.

        Judged as far as it has read of the final log.
        """
        for consumer, passed in self._passed.items():
            if consumer in self._out:
                continue
            shown = {
                read["record"] + offset - read["offset"]
                for read in self._reads
                if read["consumer"] == consumer
                for offset in range(read["offset"], read["last"] + 1)
            }
            read_of_it = [
                read["last"]
                for read in self._since.get(consumer, ())
                if (read["record"], read["batch_epoch"]) in leader.records_at(read["offset"])
            ]
            for offset in range(leader.start, min(leader.hw, max(read_of_it, default=0))):
                unseen = [record for record, _ in leader.at[offset] if record not in shown]
                if offset in passed and unseen:
                    self._find("consumer-skip", f"consumer {consumer} was not shown record {unseen[0]} at {offset}")

    def _reset_skip(self, leader: _Copy) -> None:
        """Below the HW, a consumer was shown what a reset left behind, at some time."""
        for (consumer, policy), left in self._left.items():
            shown = {
                read["record"] + offset - read["offset"]
                for read in self._reads
                if read["consumer"] == consumer
                for offset in range(read["offset"], read["last"] + 1)
            }
            for offset in range(leader.start, min(leader.hw, len(leader.at))):
                unseen = [record for record, _ in leader.at[offset] if record not in shown | self._deleted]
                if offset in left and unseen:
                    kind = "consumer-skip" if policy == "earliest" else "reset-skip"
                    self._find(kind, f"consumer {consumer} was reset past record {unseen[0]} at {offset}")

    def _sequence_gap(self, leader: _Copy) -> None:
        """Nothing of a producer's epoch stands behind a batch that was given up and is missing."""
        senders = [(self._senders.get((base, epoch, first)), last - base + 1, first)
                   for base, last, epoch, first in leader.batches]  # fmt: skip
        present = {first for _, _, first in senders}
        for failed in self._failed:
            if "sequence" not in failed or failed["record"] in present:
                continue
            by, sequence = (failed["producer_id"], failed["producer_epoch"]), failed["sequence"]
            own = [(sender[2], count) for sender, count, _ in senders if sender and sender[:2] == by]
            taken = any(begin <= sequence < begin + count for begin, count in own)
            lacks = any(producer == by[0] and first not in present for producer, first in self._committed)
            if max(own, default=(-1, 0))[0] > sequence and not taken and not lacks:
                self._find("sequence-gap", f"record {failed['record']} is missing before others of producer {by}")

    def _deleted_records(self, leader: _Copy) -> None:
        """No deleted record stands below a log start that all ISR members had."""
        if leader.start < self._lowest_start:
            back = [record for stands in leader.at[leader.start : self._lowest_start] for record, _ in stands]
            if not self._deleted.isdisjoint(back):
                self._find("deleted-records-back", f"the log begins at {leader.start} again")

    def _idempotence(self, leader: _Copy) -> None:
        """Each record once and in order, as far as one producer in one epoch wrote them."""
        written: dict[tuple[int, int], list[tuple[int, int]]] = {}
        copies: dict[tuple[int, int], int] = {}
        for base, last, epoch, first in leader.batches:
            if last >= leader.start and (base, epoch, first) in self._senders:
                *sender, sequence = self._senders[base, epoch, first]
                records = written.setdefault((sender[0], sender[1]), [])
                records += [(sequence + place, first + place) for place in range(last - base + 1)]
                for place in range(last - base + 1):
                    copies.setdefault((sender[0], first + place), sender[1])
        by_producer: dict[int, list[set[int]]] = {}
        for (producer, _), records in written.items():
            by_producer.setdefault(producer, []).append({record for _, record in records})
        if any(len(set().union(*epochs)) < sum(map(len, epochs)) for epochs in by_producer.values()):
            self._find("duplicate-across-epochs", "a producer wrote records in two of its epochs")
        once_each = [(*one, number) for one, number in copies.items() if one[1] < VALIDATION_IDS]
        pairs = ((one, other) for place, one in enumerate(once_each) for other in once_each[place + 1 :])
        if any(one[0] == other[0] and one[2] != other[2] and one[1] > other[1] for one, other in pairs):
            self._find("reordered-across-epochs", "a producer wrote a record behind a later one of another epoch")
        for by, records in written.items():
            once = list(dict.fromkeys(records))
            if len({record for _, record in records}) < len(records):
                self._find("duplicate", f"producer {by} wrote records twice")
            if once != sorted(once):
                self._find("reordered", f"producer {by} did not write in order")

    def _convergence(self, leader: _Copy | None) -> None:
        """A leader; all in the ISR and running; logs that end alike; one acks=all write acknowledged and read."""
        copies = self._copies.values()
        written = [ack for ack in self._acks if ack["record"] >= VALIDATION_IDS and ack["acks"] == -1]
        if leader is None:
            self._find("no-progress", "no leader")
        elif {*self._isr} != {*self._replicas} or not all(copy.running for copy in copies):
            self._find("stuck-replica", f"the ISR is {list(self._isr)}")
        elif not written:
            self._find("no-progress", "no write was acknowledged after healing")
        elif len({copy.leo for copy in copies}) > 1 or not any(self._was_read(ack) for ack in written):
            self._find("stuck-replica", "logs end differently, or a write was not read")

    def _was_read(self, ack: Shown) -> bool:
        return any(
            shown["t"] >= ack["t"] and 0 <= ack["record"] - shown["record"] <= shown["last"] - shown["offset"]
            for shown in self._reads
        )
