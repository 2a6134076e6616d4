"""Comparison of a simulated and a real run: what both show, whether it is equal, and the verdicts on real logs."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from highwater.lab.confirm.history import PartitionSnapshot
from scenarios.single.execution import PAUSE_US
from scenarios.single.script import matches
from sim.config import integer
from sim.history import steps as kinds
from sim.history.records import VALIDATION_IDS
from sim.hosts.client import CONSUMER, like_first
from sim.protocol.batch import NO_SEQUENCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from highwater.lab.confirm.real_run import RealRun, ReplicaFiles
    from scenarios.format.scenario import ScriptLine
    from scenarios.single.result import RunResult
    from sim.history.trace import Shown

JUDGED: Final = (
    *("committed-loss", "exposed-loss", "divergence", "hw-regression", "metadata-loss"),
    *("sequence-gap", "duplicate", "duplicate-across-epochs", "reordered-across-epochs", "reset-skip"),
)
"""Violations that can be detected from real logs, acknowledgements, failures and reads."""


@dataclass(frozen=True, slots=True)
class ComparedItem:
    """One item, in the simulation and on real brokers.

    Attributes:
        compared: whether both must be equal.
        equal: whether both are equal; None: if their texts are.
        why: why they count as equal although their texts are not.
    """

    what: str
    simulated: str
    real: str
    compared: bool = True
    equal: bool | None = None
    why: str = ""

    @property
    def agrees(self) -> bool:
        """Whether both are equal or need not be."""
        equal = self.simulated == self.real if self.equal is None else self.equal
        return equal or not self.compared

    def as_json(self) -> dict[str, Any]:
        """The row as plain data."""
        told = {"what": self.what, "simulated": self.simulated, "real": self.real}
        why = self.why if self.agrees and self.simulated != self.real else ""
        return {**told, "agrees": self.agrees, "compared": self.compared, "why": why}


@dataclass(frozen=True, slots=True)
class FurtherResult:
    """What the simulation shows of a partition besides the first, whose `replicas` were these when it was created."""

    result: RunResult
    replicas: tuple[int, ...]


_ALONE: Final[Mapping[str, FurtherResult]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ComparedPartition:
    """A partition in both runs.

    Attributes:
        name: its name, by which rows tell several partitions apart; empty if it is the only one.
        replicas: its replicas when it was created; empty: as ``default.replication.factor`` says.
    """

    name: str
    result: RunResult
    acted: RealRun
    replicas: Sequence[int] = ()

    @property
    def prefix(self) -> str:
        """The begin of the names of its rows."""
        return f"{self.name}: " if self.name else ""


def partitions_of(
    result: RunResult, acted: RealRun, further: Mapping[str, FurtherResult] = _ALONE
) -> list[ComparedPartition]:
    """Each partition in both runs; of several the first one's result has a name, too."""
    others = [
        ComparedPartition(name, part.result, acted.further[name], part.replicas) for name, part in further.items()
    ]
    return [ComparedPartition(result.shown if further else "", result, acted), *others]


def trace_of_all(result: RunResult, further: Mapping[str, FurtherResult] = _ALONE) -> Sequence[Shown]:
    """The steps of all partitions of a simulated run, in order of time; those of further ones name their partition."""
    assert result.trace is not None
    if not further:
        return result.trace
    others = [({**step, "partition": name} for step in part.result.trace or ()) for name, part in further.items()]
    return sorted(chain(result.trace, *others), key=lambda step: int(step["t"]))


@dataclass(frozen=True, slots=True)
class DecidedChange:
    """A state of the partition in the control plane; the epoch is its rank among the run's epochs."""

    leader: int
    epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None
    last_known_elr: tuple[int, ...] | None

    def to_text(self) -> str:
        """One line: ``leader 1 epoch 0 ISR 1 2``."""
        text = f"leader {self.leader or '-'} epoch {self.epoch} ISR {_listed(self.isr)}"
        if self.elr is not None:
            text += f" ELR {_listed(self.elr)} last known {_listed(self.last_known_elr or ())}"
        return text


def _listed(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers)) or "-"


def times_us(trace: Sequence[Shown], lines: Iterable[ScriptLine], batches: Mapping[str, int]) -> list[int]:
    """When each line of a script was performed in a simulated run."""
    found: list[int] = []
    now_us = 0
    for line in lines:
        if line.when is not None:
            pattern = line.when
            now_us = next(
                (step["t"] for step in trace if step["t"] >= now_us and matches(pattern, step, batches)), now_us
            )
        now_us += line.after_us
        found.append(now_us)
    return found


def script_end_us(trace: Sequence[Shown], lines: Iterable[ScriptLine], batches: Mapping[str, int]) -> int:
    """When the last line of a script was performed in a simulated run."""
    return max(times_us(trace, lines, batches), default=0)


_PARTS: Final = (kinds.ELECTED.name, kinds.ISR.name, kinds.ELR.name)


def simulated_changes(
    result: RunResult, end_us: int, *, elr: bool, replicas: Sequence[int] = ()
) -> list[DecidedChange]:
    """A partition's states in a trace up to a time, starting with all replicas in the ISR; for `replicas` see
    `ComparedPartition`.
    """
    assert result.trace is not None
    found: list[DecidedChange] = []
    isr = tuple(sorted(replicas) or range(1, integer(result.settings, "default.replication.factor") + 1))
    leader, epoch = -1, -1
    eligible: tuple[int, ...] = ()
    known: tuple[int, ...] = ()
    at_us = last = -1
    for step in result.trace:
        if step["t"] > end_us:
            break
        kind = step["step"]
        if kind == kinds.LEAD.name and step["broker"] == leader and step["leader_epoch"] > epoch:
            # A bare new leader epoch, as when replicas are removed, shows only in the leader's step.
            epoch = step["leader_epoch"]
            found.append(DecidedChange(leader, epoch, isr, eligible if elr else None, known if elr else None))
        elif kind in _PARTS:
            if kind == kinds.ELECTED.name:
                leader = step["broker"]
            elif kind == kinds.ISR.name:
                isr = tuple(sorted(step["isr"]))
            else:
                eligible, known = tuple(sorted(step["elr"])), tuple(sorted(step["last_known_elr"]))
            epoch = step["leader_epoch"]
            change = DecidedChange(leader, epoch, isr, eligible if elr else None, known if elr else None)
            # The steps of one change come at the same time, and in this order.
            part = _PARTS.index(kind)
            if found and step["t"] == at_us and part > last and found[-1].epoch == epoch:
                found[-1] = change
            else:
                found.append(change)
            at_us, last = step["t"], part
    return _ranked(_led(found))


def real_changes(states: Iterable[PartitionSnapshot], *, elr: bool) -> list[DecidedChange]:
    """The states of the partition that the control plane recorded."""
    found: list[DecidedChange] = []
    for state in states:
        elrs = (state.elr, state.last_known_elr) if elr else (None, None)
        change = DecidedChange(max(state.leader, 0), state.leader_epoch, state.isr, *elrs)
        found.append(change)
    return _ranked(_led(found))


def _led(changes: list[DecidedChange]) -> list[DecidedChange]:
    """Drop states before the first leader, and repeated ones."""
    start = next((place for place, change in enumerate(changes) if change.leader > 0), len(changes))
    found: list[DecidedChange] = []
    for change in changes[start:]:
        if not found or found[-1] != change:
            found.append(change)
    return found


def _ranked(changes: list[DecidedChange]) -> list[DecidedChange]:
    ranks = {epoch: rank for rank, epoch in enumerate(sorted({change.epoch for change in changes}))}
    return [replace(change, epoch=ranks[change.epoch]) for change in changes]


def entries_of_files(replica: ReplicaFiles, *, deleted: bool = False) -> list[tuple[int, int, int]]:
    """(offset, record, leader epoch) of a log on disk, without the records of the final validation; `deleted`: also
    of records below the log start.
    """
    return [
        (offset, batch.first_id + offset - batch.base_offset, batch.leader_epoch)
        for batch in replica.batches
        for offset in range(batch.base_offset, batch.last_offset + 1)
        if batch.first_id < VALIDATION_IDS and (deleted or offset >= replica.log_start)
    ]


def entries_of_view(batches: Iterable[tuple[int, int, int, int]]) -> list[tuple[int, int, int]]:
    """(offset, record, leader epoch) of a simulated log."""
    return [
        (offset, first + offset - base, epoch)
        for base, last, epoch, first in batches
        for offset in range(base, last + 1)
        if first < VALIDATION_IDS
    ]


def compare(
    result: RunResult,
    acted: RealRun,
    lines: Iterable[ScriptLine],
    *,
    elr: bool,
    epochs: bool,
    further: Mapping[str, FurtherResult] = _ALONE,
) -> list[ComparedItem]:
    """Compare both runs item by item, partition by partition; `elr`: the mode has an ELR, `epochs`: records have leader
    epochs. Each row of several partitions begins with the name of its partition.
    """
    end_us = script_end_us(trace_of_all(result, further), lines, acted.all_batches)
    found = list(_story(result, acted))
    for partition in partitions_of(result, acted, further):
        rows = _of_partition(partition, end_us, elr=elr, epochs=epochs)
        found += [replace(row, what=f"{partition.prefix}{row.what}") for row in rows]
    return found


def _of_partition(partition: ComparedPartition, end_us: int, *, elr: bool, epochs: bool) -> list[ComparedItem]:
    result, acted = partition.result, partition.acted
    names = {first: name for name, first in acted.batches.items()}
    return [
        *_changes(partition, end_us, elr=elr),
        *_logs(result, acted, names, epochs=epochs),
        *_clients(result, acted, names, end_us + PAUSE_US),
        *_verdicts(result, acted),
    ]


def epochs_used(result: RunResult, acted: RealRun) -> tuple[list[int], list[int]]:
    """The leader epochs of a partition in both runs, of which the comparison shows ranks."""
    assert result.trace is not None
    lists = (kinds.ELECTED.name, kinds.ISR.name, kinds.LEAD.name)
    simulated = {step["leader_epoch"] for step in result.trace if step["step"] in lists}
    return sorted(simulated), sorted({state.leader_epoch for state in acted.states})


def _story(result: RunResult, acted: RealRun) -> Iterator[ComparedItem]:
    for line, (seen, at_us) in zip(result.story, acted.met, strict=True):
        real = _came(at_us) if seen else "cannot be seen"
        yield ComparedItem(f"story: {line['text']}", _came(line["met_at_us"]), real, compared=seen)


def _came(at_us: int | None) -> str:
    return "no" if at_us is None else "yes"


def _changes(partition: ComparedPartition, end_us: int, *, elr: bool) -> Iterator[ComparedItem]:
    real = real_changes(partition.acted.states, elr=elr)
    simulated = simulated_changes(partition.result, end_us + PAUSE_US, elr=elr, replicas=partition.replicas)
    word = "state" if partition.name else "partition"
    free = orders_of_joining(simulated, real)
    for number, changes in enumerate(zip_longest(simulated, real)):
        one, other = ("-" if change is None else change.to_text() for change in changes)
        equal = True if number in free else None
        yield ComparedItem(f"{word} {number + 1}", one, other, equal=equal, why="order of joining")


def orders_of_joining(simulated: Sequence[DecidedChange], real: Sequence[DecidedChange]) -> set[int]:
    """Find the places where only the order differs in which the same followers join the ISR one by one.

    That order depends on whose fetch comes first. Before and after, both must be equal; nothing else may change.
    """
    found: set[int] = set()
    start = 0
    for place in range(1, min(len(simulated), len(real))):
        if not (_joins(simulated[place - 1], simulated[place]) and _joins(real[place - 1], real[place])):
            start = place
        elif simulated[place] == real[place] and simulated[start] == real[start]:
            found.update(range(start + 1, place))
            start = place
    return found


def departs(simulated: Sequence[DecidedChange], states: Iterable[PartitionSnapshot]) -> bool:
    """Whether the partition's states differ from the simulated ones, as far as both have come."""
    real = real_changes(states, elr=any(change.elr is not None for change in simulated))
    free = orders_of_joining(simulated, real)
    return any(
        one != other
        and place not in free
        and not (place and _joins(simulated[place - 1], one) and _joins(real[place - 1], other))
        for place, (one, other) in enumerate(zip(simulated, real, strict=False))
    )


def early_exit_from_isr(simulated: Sequence[DecidedChange], states: Sequence[PartitionSnapshot]) -> str:
    """Members that left the ISR at the brokers' first departure from the simulation, if nothing else happens there;
    otherwise empty. When a follower lags too long, or a session expires, depends on timing.
    """
    elr = any(change.elr is not None for change in simulated)
    for place, after in enumerate(states):
        if not departs(simulated, states[: place + 1]) and len(real_changes(states[: place + 1], elr=elr)) <= len(
            simulated
        ):
            continue
        before = states[place - 1] if place else PartitionSnapshot()
        gone = set(before.isr) - set(after.isr)
        same = (before.leader, before.replicas) == (after.leader, after.replicas)
        if not gone or not same or not set(after.isr) < set(before.isr):
            return ""
        return f"the ISR shrank from {_listed(before.isr)} to {_listed(after.isr)} under leader {after.leader}"
    return ""


def is_ahead(result: RunResult, acted: RealRun, end_us: int, *, elr: bool, replicas: Sequence[int] = ()) -> bool:
    """Whether a partition went through more states on brokers by the script's end than in the simulation, which goes
    through the same ones afterwards.
    """
    real = real_changes(acted.states, elr=elr)
    ever = simulated_changes(result, _EVER, elr=elr, replicas=replicas)
    by_end = simulated_changes(result, end_us, elr=elr, replicas=replicas)
    return len(real) > len(by_end) and real == ever[: len(real)]


def _joins(before: DecidedChange, after: DecidedChange) -> bool:
    """Whether the only change is that a follower joins the ISR."""
    return set(before.isr) < set(after.isr) and replace(before, isr=after.isr) == after


def _logs(result: RunResult, acted: RealRun, names: Mapping[int, str], *, epochs: bool) -> Iterator[ComparedItem]:
    views = {view.broker: view for view in result.replicas}
    simulated, real = (logs.compared for logs in _final_logs(result, acted))
    for broker in sorted(set(acted.final) & set(result.partition.replicas)):
        one, other = simulated.get(broker, []), real[broker]
        texts = [_log(log, logs, names, epochs=epochs) for log, logs in ((one, simulated), (other, real))]
        yield _row(f"log of broker {broker}", texts)
        if epochs:
            kept = views[broker].leader_epoch_checkpoint, acted.final[broker].epochs
            caches = [_cache(cache, entries) for cache, entries in zip(kept, (one, other), strict=True)]
            yield _row(f"epoch cache of broker {broker}", caches)
        hws = views[broker].replication_offset_checkpoint, acted.final[broker].hw
        said = ["-" if hw is None else str(hw) for hw in hws]
        yield _row(f"HW checkpoint of broker {broker}", said, compared=False)


@dataclass(frozen=True, slots=True)
class _FinalLogs:
    """The logs of a run at its end, as (offset, record, leader epoch).

    Attributes:
        compared: broker -> its log up to the first write after everything healed, the whole log if it lacks that.
        later: what a log has behind that write.
    """

    compared: Mapping[int, list[tuple[int, int, int]]]
    later: AbstractSet[tuple[int, int, int]]

    def is_later(self, offset: int, record: int) -> bool:
        """Whether a record was appended at this offset only after everything healed."""
        return any(entry[:2] == (offset, record) for entry in self.later)


def _final_logs(result: RunResult, acted: RealRun) -> tuple[_FinalLogs, _FinalLogs]:
    """The logs of both runs.

    Nothing behind the first write after everything healed is compared, unless both runs wait for the results of all
    batches, as with an idempotent producer: whether a batch that was under way when a machine lost its power is sent
    again before the end depends on when the end is. A record that was acknowledged and lost is in no log.
    """
    simulated = {view.broker: view.batches for view in result.replicas}
    real = {
        broker: [
            (one.base_offset, one.last_offset, one.leader_epoch, one.first_id)
            for one in replica.batches
            if one.last_offset >= replica.log_start
        ]
        for broker, replica in acted.final.items()
    }
    whole = bool(result.settings["enable.idempotence"])
    return _divided(simulated, whole=whole), _divided(real, whole=whole)


def _divided(logs: Mapping[int, Sequence[tuple[int, int, int, int]]], *, whole: bool) -> _FinalLogs:
    """Batches of logs as entries, divided at each log's first write after everything healed; `whole`: not divided."""
    compared: dict[int, list[tuple[int, int, int]]] = {}
    later: set[tuple[int, int, int]] = set()
    for broker, batches in logs.items():
        ends = (base for base, _, _, first in batches if first >= VALIDATION_IDS)
        end = _EVER if whole else next(ends, _EVER)
        entries = entries_of_view(batches)
        compared[broker] = [entry for entry in entries if entry[0] < end]
        later.update(entry for entry in entries if entry[0] > end)
    return _FinalLogs(compared, later)


def _log(
    log: Sequence[tuple[int, int, int]],
    logs: Mapping[int, Sequence[tuple[int, int, int]]],
    names: Mapping[int, str],
    *,
    epochs: bool,
) -> str:
    ranks = {epoch: rank for rank, epoch in enumerate(sorted({entry[2] for one in logs.values() for entry in one}))}
    return _runs([(offset, record, f"@{ranks[epoch]}" if epochs else "") for offset, record, epoch in log], names)


def _runs(entries: Sequence[tuple[int, int, str]], names: Mapping[int, str]) -> str:
    """Format entries, with successive records of a batch as one: ``0-9:m1@0 10:m2@0``."""
    words: list[str] = []
    first = last = None
    for offset, record, tail in entries:
        batch = max((name for name in names if name <= record), default=record)
        if last is not None and first is not None and last == (offset - 1, record - 1, tail, batch):
            words[-1] = f"{first[0]}-{offset}:{record_name(first[1], names)}{tail}"
        else:
            first = (offset, record)
            words.append(f"{offset}:{record_name(record, names)}{tail}")
        last = (offset, record, tail, batch)
    return " ".join(words) or "-"


def record_name(record: int, names: Mapping[int, str]) -> str:
    """A record by its batch: ``m2``, or ``m2+1`` for its second record."""
    first = max((name for name in names if name <= record), default=None)
    if first is None:
        return str(record)
    return names[first] if first == record else f"{names[first]}+{record - first}"


def _row(what: str, said: Sequence[str], *, compared: bool = True) -> ComparedItem:
    simulated, real = said
    return ComparedItem(what, simulated, real, compared)


def _cache(cache: Sequence[tuple[int, int]], log: Sequence[tuple[int, int, int]]) -> str:
    """Leader epochs by rank, without those that began after the script's last record."""
    end = log[-1][0] + 1 if log else 0
    entries = [entry for entry in cache if entry[1] < end]
    return " ".join(f"{rank}@{offset}" for rank, (_, offset) in enumerate(entries)) or "-"


def _clients(result: RunResult, acted: RealRun, names: Mapping[int, str], end_us: int) -> Iterator[ComparedItem]:
    assert result.trace is not None
    acks: dict[int, int] = {}
    ends: list[int] = []
    for step in result.trace:
        if step["step"] == kinds.ACK.name and step["record"] < VALIDATION_IDS:
            acks[step["record"]] = step["offset"]
        elif step["step"] == kinds.END_OFFSET.name and step["t"] <= end_us:
            ends.append(step["offset"])
    real_acks = {send.first_id: send.offset for send in acted.sends if send.offset is not None}
    of_both = list(zip((acks, real_acks), _final_logs(result, acted), strict=True))
    for record, name in sorted(names.items()):
        told = [_acknowledged(of_run.get(record), record, logs) for of_run, logs in of_both]
        yield _row(f"{name} acknowledged at", told)
    # When a consumer gives up a dead leader depends on timeouts, not on the protocol: one may have read more.
    reads = simulated_reads(result, end_us)
    both = min(len(reads), len(acted.shown))
    equal = reads[:both] == acted.shown[:both]
    told = [_runs([(*one, "") for one in shown], names) for shown in (reads, acted.shown)]
    yield ComparedItem("consumer read", told[0], told[1], equal=equal, why="as far as both read")
    if ends or acted.end_offsets:
        yield ComparedItem("end offsets", _listed(ends), _listed(acted.end_offsets))


def _acknowledged(offset: int | None, record: int, logs: _FinalLogs) -> str:
    """The offset at which a record was acknowledged before the end, also if it was lost later."""
    return "no" if offset is None or logs.is_later(offset, record) else str(offset)


def simulated_reads(result: RunResult, end_us: int) -> list[tuple[int, int]]:
    """(offset, record) that the simulated consumer read until a time."""
    assert result.trace is not None
    return [
        (step["offset"] + place, step["record"] + place)
        for step in result.trace
        if step["step"] == kinds.READ.name and like_first(step["consumer"]) == CONSUMER and step["t"] <= end_us
        for place in range(step["last"] - step["offset"] + 1)
        if step["record"] < VALIDATION_IDS
    ]


_EVER: Final = 1 << 62


def _verdicts(result: RunResult, acted: RealRun) -> Iterator[ComparedItem]:
    """Verdicts based on what both consumers read, and those of each run by itself if they differ."""
    own = (entry for entry in result.violations if entry.get("partition", "") in ("", result.shown))
    simulated = {violation["kind"] for violation in own} & set(JUDGED)
    reads = simulated_reads(result, _EVER)
    shown = [one for one in acted.shown_until_end if one[1] < VALIDATION_IDS]
    both = min(len(reads), len(shown))
    alone = [simulated, violations(acted, shown)]
    if reads[:both] == shown[:both]:
        leader = result.partition.leader
        view = next((view for view in result.replicas if view.broker == leader), None)
        lost = view is not None and _lost(reads[:both], entries_of_view(view.batches), view.log_start)
        simulated = simulated - {"exposed-loss"} | ({"exposed-loss"} if lost else set())
        shown = shown[:both]
    found = [simulated, violations(acted, shown)]
    yield _row("verdict", [_kinds_text(kinds) for kinds in found])
    if found != alone:
        yield _row("verdict of each alone", [_kinds_text(kinds) for kinds in alone], compared=False)


def _kinds_text(kinds: Iterable[str]) -> str:
    return ", ".join(sorted(kinds)) or "none that can be seen"


def _lost(shown: Iterable[tuple[int, int]], log: Iterable[tuple[int, int, int]], log_start: int) -> bool:
    kept = {(offset, record) for offset, record, _ in log}
    return any(one not in kept for one in shown if one[0] >= log_start)


def violations(acted: RealRun, shown: Iterable[tuple[int, int]]) -> set[str]:
    """Violations in real logs, acknowledgements and reads, by the criteria of `sim.checkers`."""
    found: set[str] = set()
    if _diverge(acted.after_script) or _diverge(acted.final):
        found.add("divergence")
    exposed = 0
    for offset in acted.end_offsets:
        if offset < exposed:
            found.add("hw-regression")
        exposed = max(exposed, offset)
    # Without a leader, a record is lost if it is in no log, as in `sim.checkers.committed_loss`.
    kept = [acted.final[acted.leader]] if acted.leader else acted.final.values()
    records = {record for files in kept for _, record, _ in entries_of_files(files, deleted=True)}
    for send in acted.sends:
        ids = set(range(send.first_id, send.first_id + send.count))
        if send.acks == -1 and send.offset is not None and not records >= ids:
            found.add("committed-loss")
    leader = acted.final[acted.leader] if acted.leader else None
    if leader is not None and _lost(shown, entries_of_files(leader), leader.log_start):
        found.add("exposed-loss")
    if any(step["step"] == kinds.METADATA_LOST.name for step in acted.steps):
        found.add("metadata-loss")
    steps = (step for step in acted.steps if "partition" not in step)
    if acted.leader and _left_by_resets(steps, shown, entries_of_files(acted.final[acted.leader])):
        found.add("reset-skip")
    return found | (_of_sequences(acted, acted.final[acted.leader]) if acted.leader else set())


def _left_by_resets(
    steps: Iterable[Shown], shown: Iterable[tuple[int, int]], log: Iterable[tuple[int, int, int]]
) -> bool:
    """Whether a reset left records of the final log behind that the consumer never reads.

    Only a reset after the application sought an offset without a leader epoch counts. In other cases Kafka's consumer
    compares leader epochs (KIP-320), and the one here does not.
    """
    passed: set[int] = set()
    left: set[int] = set()
    sought = out_at = -1
    for step in steps:
        kind, offset = step["step"], step.get("offset", 0)
        if kind == kinds.READ.name:
            passed.update(range(offset, step["last"] + 1))
            sought = -1
        elif kind == kinds.SEEK.name:
            sought = offset
            passed.intersection_update(range(offset))
        elif kind == kinds.OUT_OF_RANGE.name:
            out_at = offset
        elif kind == kinds.RESET.name:
            if sought == out_at:
                left.update(passed.intersection(range(offset)), range(out_at, offset))
            passed.intersection_update(range(offset))
        if kind in (kinds.SEEK.name, kinds.RESET.name):
            left.intersection_update(range(offset))
    read = set(shown)
    return any(offset in left and (offset, record) not in read for offset, record, _ in log)


def _of_sequences(acted: RealRun, leader: ReplicaFiles) -> set[str]:
    """Violations of what an idempotent producer promises, in the final log of the leader."""
    found: set[str] = set()
    numbered = [batch for batch in leader.batches if batch.sequence != NO_SEQUENCE]
    epochs: dict[tuple[int, int], int] = {}
    for batch in numbered:
        producer_id, producer_epoch, _ = batch.sequence
        later_ones = (
            epoch for (one, record), epoch in epochs.items() if one == producer_id and record > batch.first_id
        )
        if (producer_id, batch.first_id) not in epochs and any(epoch != producer_epoch for epoch in later_ones):
            found.add("reordered-across-epochs")
        if (producer_id, batch.first_id) in epochs:
            same = epochs[producer_id, batch.first_id] == producer_epoch
            found.add("duplicate" if same else "duplicate-across-epochs")
        epochs.setdefault((producer_id, batch.first_id), producer_epoch)
    present = {batch.first_id for batch in numbered}
    for send in acted.sends:
        later = (
            batch
            for batch in numbered
            if batch.sequence[:2] == send.sequence[:2] and batch.sequence[2] > send.sequence[2]
        )
        if send.failed and send.sequence != NO_SEQUENCE and send.first_id not in present and any(later):
            found.add("sequence-gap")
    return found


def _diverge(disks: Mapping[int, ReplicaFiles]) -> bool:
    """Whether two replicas hold different records, or one lacks one, at an offset below both their high watermarks.

    A high watermark counts only up to the log's end: checkpoint files outlive logs that were deleted or truncated.
    """
    logs = []
    for files in disks.values():
        if files.settled:
            log = {offset: (record, epoch) for offset, record, epoch in entries_of_files(files)}
            logs.append((log, min(files.hw or 0, max(log, default=-1) + 1)))
    return any(
        one.get(offset) != other.get(offset)
        for place, (one, hw) in enumerate(logs)
        for other, other_hw in logs[place + 1 :]
        for offset in one.keys() | other.keys()
        if max(min(one, default=0), min(other, default=0)) <= offset < min(hw, other_hw)
    )
