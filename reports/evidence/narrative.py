"""A run in a dozen sentences: elections, acknowledged records and their replicas, crashes, truncations."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from reports.evidence.sentences import records, sentence
from reports.evidence.story import worst_kind
from reports.formatting import moment
from scenarios.single.execution import CLIENTS_BEGIN_US
from scenarios.single.result import RunResult
from sim.history import steps
from sim.history.records import VALIDATION_IDS
from sim.history.steps import ASIDE, CHANGE, DETAIL, TURN, UNTOLD, Shown, StepKind, kind_of
from sim.plurals import counted
from sim.protocol.modes import MODES

FIRST_LINE: Final = 2
"""Line number of the first step in a trace file: line 1 identifies the run."""
SENTENCES: Final = 12
"""Maximum number of sentences in a story."""
END: Final = 0
"""Rank of the violation's sentence, which is always kept. Steps rank from `TURN` to `ASIDE`, as their kinds declare."""
NAMED: Final = 3
"""Batches to name one by one, at most."""
MIN_ISR: Final = "min.insync.replicas"
METADATA_LOSS: Final = "metadata-loss"


_CAUSES: Final = {
    "zombie": "Heartbeats of broker {target} are lost from now on, and it does not notice when its session ends.",
    "session-expiry": "The session of broker {target} expires although its process runs.",
    "controlled-restart": "Broker {target} begins a controlled shutdown, to be restarted.",
    "directory-added": "Broker {target} begins a controlled shutdown, to get another log directory.",
    "directory-removed": "Broker {target} begins a controlled shutdown, to lose a log directory.",
    "controller-failover": "The active controller resigns or loses its session: another one is elected.",
    "controller-pause": "The process of the active controller is paused.",
    "min-isr-change": "An administrator sets min.insync.replicas to {value}.",
    "unclean-election-change": "An administrator sets unclean.leader.election.enable to true.",
    "preferred-election": "An administrator asks for the election of the preferred leader.",
    "admin-election": "An administrator asks for an election ({election}).",
    "feature-change": "An administrator changes eligible.leader.replicas.version.",
}
"""Kind of fault of which no step tells -> what happens."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a story.

    Attributes:
        at_us: time of the event.
        text: the sentence.
        line: line of the step in the trace file; 0 if the event is not a step.
    """

    at_us: int
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class _Told:
    """A sentence, its rank, and a key that it shares with repetitions of the same step."""

    sentence: Sentence
    rank: int
    like: str = ""


@dataclass(slots=True)
class _Batch:
    first: int
    base: int
    last: int

    @property
    def name(self) -> str:
        return records(self.first, self.last - self.base + 1)


@dataclass(slots=True)
class _Election:
    """The steps of one decision of the control plane, which become one sentence."""

    at_us: int
    line: int
    leader: int | None = None
    epoch: int = -1
    lists: dict[StepKind, list[int]] = field(default_factory=dict)


class _Teller:
    """Follows leaders, ISR, ELR, logs and flushed offsets, and writes the sentences of the steps that matter.

    The story is about a kind of violation and the records in `about`; empty: all. `isr` and `min_isr` are initial ones.
    """

    def __init__(
        self, isr: Sequence[int], about: Collection[int], kind: str, rules: Mapping[str, str], min_isr: int
    ) -> None:
        self.told: list[_Told] = []
        self._kind = kind
        self._about = about
        self._rules = rules
        self._lists: dict[StepKind, list[int]] = {steps.ISR: sorted(isr), steps.ELR: []}
        self._logs: dict[int, list[_Batch]] = {}
        self._flushed: dict[int, int] = {}
        self._acked: dict[int, _Batch] = {}
        self._follows: dict[int, tuple[int, int]] = {}
        self._followed: dict[int, tuple[int, int]] = {}
        self._truncated: dict[int, int] = {}
        self._strayed: set[tuple[int, int]] = set()
        self._gone: set[int] = set()
        self._down: set[int] = set()
        self._still: set[int] = set()
        self._anew: set[int] = set()
        self._begins_at: dict[int, int] = {}
        self._raised = -1
        self._readers: dict[int, int] = {}
        self._min_isr: dict[int, int] = {}
        self._min_isr_at_first = min_isr
        self._led: dict[int, int] = {}
        self._leads: dict[int, int] = {}
        self._election: _Election | None = None
        self._metadata_lost_us = -1
        self._link_changed: Shown = {}
        self._end_told = 0
        self._leader_lacks = False
        self._is_begun = not about
        self._tellers: dict[StepKind, Callable[[Shown], tuple[int, str] | None]] = {
            **dict.fromkeys(steps.LOSSES, self._loss),
            steps.ACK: self._ack,
            steps.ACKNOWLEDGES: self._acknowledges,
            steps.APPEND: self._append,
            steps.DELETED: lambda step: self._log(step).clear(),
            steps.END_OFFSET: self._end_offset,
            steps.EPOCH_RAISED: self._epoch_raised,
            steps.FOLLOW: self._follow,
            steps.LEAD: self._lead,
            steps.READ: self._read,
            steps.RECOVERED: self._recovered,
            steps.REFUSED: self._refused,
            steps.REGISTERED: self._registered,
            steps.REPLICATED: lambda step: self._anew.discard(step["follower"]),
            steps.SESSION_END: self._session_end,
            steps.SETTLED: self._settled,
            steps.TRUNCATE: self._truncate,
            steps.UNFENCED: lambda step: self._gone.discard(step["broker"]),
        }
        """Kinds of steps that need state, or say more than the sentence that they declare."""

    def take(self, step: Shown, line: int, flushed: int | None) -> None:
        """Update the state with a step, and write a sentence, with its line in the trace file, if it matters.

        Below the offset `flushed` its broker's log is on disk after it, if that is known.
        """
        kind, broker = kind_of(step), step.get("broker", 0)
        self._runs(kind, broker)
        if kind is steps.METADATA_LOST:
            self._metadata_lost_us = step["t"]
        decides = kind in (steps.ELECTED, steps.ISR, steps.ELR)
        if self._election is not None and (not decides or self._is_another(step)):
            self.end()
        early = step["t"] < CLIENTS_BEGIN_US
        validates = step.get("record", 0) >= VALIDATION_IDS and step.get("record") not in self._about
        if decides:
            self._decide(kind, step, line)
            if early:
                self._election = None
        elif kind not in steps.LINKS or not self._merge_directions(step):
            found = self._tellers.get(kind, self._as_declared)(step)
            if found is not None and not early and (not validates or kind is steps.READ):
                self._tell(step["t"], found[1], line, found[0], _like(step))
        if flushed is not None:
            self._flushed[broker] = flushed

    def _merge_directions(self, step: Shown) -> bool:
        """If the other direction of a link just changed alike, let its sentence name both, and return True."""
        other = {**step, "source": step["target"], "target": step["source"]}
        before, self._link_changed = self._link_changed, step
        if before != other or not self.told or self.told[-1].sentence.at_us != step["t"]:
            return False
        told = self.told[-1]
        both = replace(told.sentence, text=f"{told.sentence.text[:-1]}, in both directions.")
        self.told[-1] = replace(told, sentence=both)
        return True

    def _runs(self, kind: StepKind, broker: int) -> None:
        """Keep track of whether a broker's process runs, and whether it is newer than the one that had caught up."""
        if kind in steps.ENDS:
            self._down.add(broker)
            self._anew.add(broker)
            self._leads.pop(broker, None)
            self._still.discard(broker)
        elif kind is steps.START:
            self._down.discard(broker)
        elif kind is steps.PAUSE:
            self._still.add(broker)
        elif kind is steps.RESUME:
            self._still.discard(broker)

    def end(self) -> None:
        """Write the sentence of the pending decision, if any."""
        election, self._election = self._election, None
        if election is not None:
            self._tell_election(election)

    def _tell(self, at_us: int, text: str, line: int, rank: int, like: str = "") -> None:
        self.told.append(_Told(Sentence(at_us, text, line), rank, like))

    # Decisions of the control plane.

    def _is_another(self, step: Shown) -> bool:
        election = self._election
        assert election is not None
        return step["t"] != election.at_us or (kind_of(step) is steps.ELECTED and election.leader is not None)

    def _decide(self, kind: StepKind, step: Shown, line: int) -> None:
        election = self._election or _Election(step["t"], line)
        self._election = election
        if kind is steps.ELECTED:
            election.leader, election.epoch = step["broker"], step["leader_epoch"]
            self._led[election.epoch] = 0
            return
        election.epoch = step.get("leader_epoch", election.epoch)
        before, self._lists[kind] = self._lists[kind], sorted(step[kind.name])
        if before != self._lists[kind]:
            election.lists[kind] = before

    def _tell_election(self, election: _Election) -> None:
        parts, rank, about = [], DETAIL, 0
        was_lost = election.at_us == self._metadata_lost_us
        lists = [f"the {kind.name.upper()} becomes {self._lists[kind]}" for kind in election.lists]
        if election.leader is not None:
            rank, about = self._matters(TURN), election.leader
            self._leader_lacks = bool(about and self._lacks(about))
            if about:
                parts.append(f"the controller elects broker {about} leader in leader epoch {election.epoch}")
                parts += self._elected_though(about, election)
            else:
                parts.append(f"the partition is without a leader, in leader epoch {election.epoch}")
        elif steps.ISR in election.lists:
            joined = sorted(set(self._lists[steps.ISR]) - set(election.lists[steps.ISR]))
            rank = DETAIL if joined else CHANGE
            lacking = [(broker, self._lacks(broker)) for broker in joined if self._lacks(broker)]
            if lacking:
                rank, about = DETAIL if self._leader_lacks else TURN, lacking[0][0]
            gone = [broker for broker in joined if broker in self._gone]
            if gone:
                rank = self._matters(TURN)
                if not was_lost:
                    lists.append(f"the session of broker {gone[0]} has ended ({self._by('isr_eligibility')})")
            if was_lost:
                lists.append(f"the change to {election.lists[steps.ISR]} was lost with the metadata")
        elif election.lists:
            rank = CHANGE
        parts += lists
        if not parts:
            return
        lacks = self._lacks(about) if about else ""
        text = "; ".join(parts) + (f"; broker {about} lacks {lacks}" if lacks else "")
        if lacks and election.leader is None and not was_lost:
            text += self._joins_though(about)
        like = f"elected {election.leader}" if election.leader else f"isr {self._lists[steps.ISR]}"
        self._tell(election.at_us, f"{text[0].upper()}{text[1:]}.", election.line, rank, like)

    def _elected_though(self, leader: int, election: _Election) -> Iterator[str]:
        """Reasons why this leader is a questionable choice."""
        if leader in self._down:
            knows = "" if leader in self._gone else ": the controller does not know it yet"
            yield f"broker {leader} is down{knows}"
        elif leader in self._still:
            yield f"broker {leader} is paused"
        if not any(leader in election.lists.get(kind, members) for kind, members in self._lists.items()):
            yield "it was not in the ISR"

    def _joins_though(self, broker: int) -> str:
        """Why a broker that lacks records may join the ISR."""
        if broker in self._gone:
            return ""
        if broker in self._anew:
            return f"; its process has restarted since it caught up ({self._by('isr_eligibility')})"
        log = self._logs.get(broker, ())
        leo = log[-1].last + 1 if log else 0
        epoch = max(self._led, default=-1)
        if leo < self._begins_at.get(epoch, 0) and self._rules.get("isr_join") == "high-watermark":
            return f", and has reached the HW that its leader knows ({self._by('isr_join')})"
        return ""

    # Steps by their kinds.

    def _as_declared(self, step: Shown) -> tuple[int, str] | None:
        kind = kind_of(step)
        return None if kind.weight == UNTOLD else (self._matters(kind.weight), sentence(step))

    def _matters(self, rank: int) -> int:
        """Lower the rank of steps before there is anything to lose."""
        return rank if self._is_begun else max(rank, CHANGE)

    def _session_end(self, step: Shown) -> tuple[int, str]:
        broker = step["broker"]
        self._gone.add(broker)
        return DETAIL if broker in self._down else self._matters(CHANGE), sentence(step)

    def _loss(self, step: Shown) -> tuple[int, str]:
        log, count = self._log(step), step.get("offset", 0)
        lost = log[len(log) - count :] if count else []
        del log[len(log) - count :]
        if not lost:
            return self._matters(TURN), sentence(step, whole="whole log" if log else "empty log")
        one = len(lost) == 1 and lost[0].base == lost[0].last
        return TURN, sentence(step, lost=_names(lost), is_gone="is no longer there" if one else "are no longer there")

    def _append(self, step: Shown) -> tuple[int, str] | None:
        batch = _Batch(step["record"], step["offset"], step["last"])
        self._log(step).append(batch)
        self._is_begun = self._is_begun or self._concerns(batch)
        if self._leads.get(step["broker"]) != step["leader_epoch"]:
            return self._fetches_on(step)
        if not self._concerns(batch, strictly=True):
            return None
        where = f"at offset {batch.base} in leader epoch {step['leader_epoch']}"
        others = self._elsewhere(step["broker"], batch)
        rank = CHANGE if others else DETAIL
        return rank, f"Broker {step['broker']} leads, and appends {batch.name} {where}{others}."

    def _elsewhere(self, leader: int, batch: _Batch) -> str:
        """Name the story's batch that another broker holds at the offset at which a leader appends a different one."""
        for broker, log in sorted(self._logs.items()):
            there = next((one for one in log if one.base <= batch.base <= one.last), None)
            if broker != leader and there is not None and there.first != batch.first and self._concerns(there):
                return f", where broker {broker} has {there.name}"
        return ""

    def _epoch_raised(self, step: Shown) -> tuple[int, str]:
        self._raised = step["leader_epoch"]
        return DETAIL, sentence(step)

    def _refused(self, step: Shown) -> tuple[int, str] | None:
        batch = _Batch(step["record"], 0, step["count"] - 1)
        return (DETAIL, sentence(step)) if self._concerns(batch, strictly=True) else None

    def _fetches_on(self, step: Shown) -> tuple[int, str] | None:
        """A follower that knows only an earlier leader epoch appends after batches that its leader lacks."""
        broker, epoch = step["broker"], step["leader_epoch"]
        leader, follows = self._follows.get(broker, (0, -1))
        if follows >= epoch:
            return None
        if self._led.get(epoch) != leader:  # The leader passes on what an earlier leader appended.
            epoch = self._leads.get(leader, epoch)
        if (broker, epoch) in self._strayed:
            return None
        knows = f"Broker {broker}, which knows of leader epoch {follows} only,"
        fetches = f"fetches from broker {leader} of epoch {epoch} ({self._by('fetch_fencing')})"
        return self._keeping(f"{knows} {fetches}", broker, leader, epoch)

    def _settled(self, step: Shown) -> tuple[int, str] | None:
        """A follower starts fetching without truncation, though it holds batches that its leader lacks."""
        broker, epoch = step["broker"], step["leader_epoch"]
        leader, follows = self._follows.get(broker, (0, -1))
        if follows != epoch or self._truncated.get(broker) == epoch or (broker, epoch) in self._strayed:
            return None
        before, knew = self._followed.get(broker, (0, -1))
        why = f" ({self._by('fetch_fencing' if knew + 1 == epoch else 'fetcher_restart')})" if before == leader else ""
        text = f"Broker {broker} follows broker {leader} in leader epoch {epoch} without truncating{why}"
        return self._keeping(text, broker, leader, epoch)

    def _truncate(self, step: Shown) -> tuple[int, str] | None:
        self._truncated[step["broker"]] = step["leader_epoch"]
        if not step["removed"]:
            return self._keeps(step)
        log = self._log(step)
        gone = log[len(log) - step["removed"] :]
        del log[len(log) - step["removed"] :]
        acked = [batch for batch in gone if batch.first in self._acked]
        said = f", of which {_names(acked)} had been acknowledged" if acked and len(acked) < len(gone) else ""
        said = said or (", which had been acknowledged" if acked else "")
        leader, _ = self._follows.get(step["broker"], (0, -1))
        follows = f" follows broker {leader} in leader epoch {step['leader_epoch']}," if leader else ""
        where = f"truncates to offset {step['offset']} ({self._by('follower_truncation')})"
        text = f"Broker {step['broker']}{follows} {where}, and drops {_names(gone)}{said}."
        matters = not self._leader_lacks and (acked or any(self._concerns(batch) for batch in gone))
        return TURN if matters else CHANGE, text

    def _keeps(self, step: Shown) -> tuple[int, str] | None:
        """A follower truncates nothing, though it holds batches that its leader lacks."""
        broker, epoch = step["broker"], step["leader_epoch"]
        leader, _ = self._follows.get(broker, (0, -1))
        truncates = f"truncates nothing ({self._by('follower_truncation')})"
        text = f"Broker {broker} follows broker {leader} in leader epoch {epoch}, {truncates}"
        return self._keeping(text, broker, leader, epoch)

    def _keeping(self, text: str, broker: int, leader: int, epoch: int) -> tuple[int, str] | None:
        """Tell how a follower comes to keep batches that its leader lacks, if it has any."""
        stray = self._stray(broker, leader)
        if not stray:
            return None
        self._strayed.add((broker, epoch))
        return TURN, f"{text}, and keeps {self._kept(stray, leader)}."

    def _stray(self, broker: int, leader: int) -> list[_Batch]:
        """The story's batches that a follower holds and its leader does not."""
        if not leader or not self._about:
            return []
        there = {(batch.first, batch.base) for batch in self._logs.get(leader, ())}
        log = self._logs.get(broker, ())
        return [batch for batch in log if self._concerns(batch) and (batch.first, batch.base) not in there]

    def _kept(self, stray: Sequence[_Batch], leader: int) -> str:
        """Name the batches that a follower keeps, and what its leader has instead."""
        first = stray[0]
        log = self._logs.get(leader, ())
        there = next((batch for batch in log if batch.base <= first.base <= batch.last), None)
        if there is not None and there.first != first.first:
            return f"{_names(stray)} at offset {first.base}, where broker {leader} has {there.name}"
        if any(batch.first == first.first for batch in log):
            return f"{_names(stray)} at offset {first.base}, which broker {leader} has at another"
        return f"{_names(stray)}, which broker {leader} lacks"

    def _by(self, rule: str) -> str:
        return f"{rule}={self._rules.get(rule, '')}"

    def _recovered(self, step: Shown) -> None:
        lost = step.get("lost") or ()
        log = self._log(step)
        log[:] = [batch for batch in log if batch.first not in lost]

    def _follow(self, step: Shown) -> None:
        self._followed[step["broker"]] = self._follows.get(step["broker"], (0, -1))
        self._follows[step["broker"]] = (step["leader"], step["leader_epoch"])
        self._leads.pop(step["broker"], None)

    def _registered(self, step: Shown) -> tuple[int, str]:
        self._gone.discard(step["broker"])
        log = self._log(step)
        leo = log[-1].last + 1 if log else 0
        lacks = self._lacks(step["broker"])
        return DETAIL, f"Broker {step['broker']} registers; its LEO is {leo}{f', it lacks {lacks}' if lacks else ''}."

    def _lead(self, step: Shown) -> tuple[int, str] | None:
        broker, epoch = step["broker"], step["leader_epoch"]
        before, self._led[epoch] = self._led.get(epoch, 0), broker
        self._leads[broker] = epoch
        self._begins_at[epoch] = step["offset"]
        again = before == broker
        lacks = self._lacks(broker)
        self._leader_lacks = bool(lacks)
        text = f"Broker {broker} leads {'again ' if again else ''}in leader epoch {epoch}, with LEO {step['offset']}"
        text += f", and lacks {lacks}" if lacks else ""
        if not again:
            return ASIDE, f"{text}."
        stays = f", but the epoch becomes {self._raised}" if self._raised > epoch else ", and the epoch stays"
        return TURN if lacks else CHANGE, f"{text}; there was no election{stays}."

    def _acknowledges(self, step: Shown) -> None:
        self._min_isr[step["record"]] = step["min_isr"]

    def _ack(self, step: Shown) -> tuple[int, str] | None:
        record = step["record"]
        batch = _Batch(record, step["offset"], step["offset"] + step["count"] - 1)
        self._acked[record] = batch
        if not self._about or not self._concerns(batch):
            return ASIDE, self._says_ack(step, batch)
        first = min(self._about, default=record)
        return TURN if record <= first else CHANGE, self._says_ack(step, batch)

    def _says_ack(self, step: Shown, batch: _Batch) -> str:
        holders = sorted(broker for broker, log in self._logs.items() if batch in log)
        flushed = [broker for broker in holders if self._flushed.get(broker, 0) > batch.last]
        disk = " in the page cache only" if self._flushed and not flushed else ""
        disk = f", {_brokers(flushed)} on disk" if flushed else disk
        acks = "all" if step["acks"] == -1 else step["acks"]
        min_isr = self._min_isr.get(batch.first, self._min_isr_at_first)
        if step["acks"] == -1 and min_isr != self._min_isr_at_first:
            acks = f"all, {MIN_ISR}={min_isr} for now"
        it = "it" if batch.base == batch.last else "them"
        return (
            f"The producer gets an ack for {batch.name} at offset {batch.base} (acks={acks}); the ISR is "
            f"{self._lists[steps.ISR]}; {_brokers(holders)} {'has' if len(holders) == 1 else 'have'} {it}{disk}."
        )

    def _read(self, step: Shown) -> tuple[int, str] | None:
        batch = _Batch(step["record"], step["offset"], step["last"])
        epoch = step["leader_epoch"]
        before = self._readers.get(step["consumer"])
        if self._kind != "consumer-skip":
            if not self._concerns(batch, strictly=True):
                return None
            return ASIDE, f"The consumer reads {batch.name} {self._where(step)}."
        if before is None and batch.first >= VALIDATION_IDS:
            return None
        self._readers[step["consumer"]] = epoch
        if before in (None, epoch):
            return CHANGE, f"The consumer reads {batch.name} {self._where(step)}."
        continues = f"The consumer continues at offset {step['position']} ({self._by('consumer_validation')})"
        return TURN, f"{continues}, and reads {batch.name} {self._where(step)}."

    def _where(self, step: Shown) -> str:
        return f"at offset {step['offset']} from the leader of epoch {step['leader_epoch']}"

    def _end_offset(self, step: Shown) -> tuple[int, str] | None:
        before, self._end_told = self._end_told, step["offset"]
        if step["offset"] >= before:
            return None
        return CHANGE, f"A consumer asks for the end offset and gets {step['offset']}, after {before}."

    # Lookups.

    def _log(self, step: Shown) -> list[_Batch]:
        return self._logs.setdefault(step.get("broker", 0), [])

    def _concerns(self, batch: _Batch, *, strictly: bool = False) -> bool:
        if not self._about:
            return not strictly
        return any(record in self._about for record in range(batch.first, batch.first + batch.last - batch.base + 1))

    def _lacks(self, broker: int) -> str:
        """Name the acknowledged batches that a broker lacks, if the story is about one of them."""
        there = {batch.first for batch in self._logs.get(broker, ())}
        missing = [batch for first, batch in self._acked.items() if first not in there and first < VALIDATION_IDS]
        about = [batch for batch in missing if self._concerns(batch)]
        if not about:
            return ""
        more = len(missing) - len(about)
        return f"{_names(about)}, acknowledged before" + (f" (and {more} more)" if more else "")


def _brokers(brokers: Sequence[int]) -> str:
    return f"broker{'s' if len(brokers) > 1 else ''} {', '.join(map(str, brokers)) or 'none'}"


def _like(step: Shown) -> str:
    """A key that equal steps of the same place share; empty for steps about one record."""
    keys = ("step", "broker", "node", "cause", "source", "target", "reassignment", "target_replicas")
    return "" if "record" in step else " ".join(str(step.get(key, "")) for key in keys)


def _names(batches: Sequence[_Batch]) -> str:
    if len(batches) > 1 and len({batch.name for batch in batches}) == 1:
        return f"{batches[0].name}, {len(batches)} times,"
    if len(batches) > NAMED:
        return f"{len(batches)} batches from record {batches[0].first} on"
    names = [batch.name for batch in batches]
    if len(names) > 1 and all(batch.base == batch.last and batch.first < VALIDATION_IDS for batch in batches):
        numbers = [str(batch.first) for batch in batches]
        return f"records {', '.join(numbers[:-1])} and {numbers[-1]}"
    return " and ".join(names)


def story(
    result: RunResult,
    kind: str = "",
    concerned: Collection[int] = (),
    flushed: Sequence[int | None] = (),
    most: int | None = SENTENCES,
) -> list[Sentence]:
    """Tell a traced run in sentences, in order of time, ending with its violation.

    Args:
        result: the run.
        kind: kind of violation that the story is about; by default the worst, which the outcome names.
        concerned: ids of records that violations are about.
        flushed: for each step, the offset below which its broker's log is on disk after it, if known.
        most: maximum number of sentences, beyond which the least important are omitted, latest first; None: all.
    """
    kind = kind or worst_kind(result.violations)
    about = sorted(concerned)[: (NAMED if kind == "divergence" else 1)]
    rules = MODES[result.row["mode"]].override(result.rules).rules.as_dict() if result.row["mode"] in MODES else {}
    replicas = range(1, int(result.settings["default.replication.factor"]) + 1)
    teller = _Teller(replicas, about, kind, rules, int(result.settings[MIN_ISR]))
    marks = [entry["at_us"] for entry in result.violations if entry["kind"] == kind]
    seen_us = min(marks, default=None)
    for place, step in enumerate(result.trace or ()):
        if seen_us is not None and step["t"] > seen_us:
            break
        teller.take(step, place + FIRST_LINE, flushed[place] if flushed else None)
    teller.end()
    causes = _causes(result, min((one.sentence.at_us for one in teller.told), default=0), seen_us)
    told = sorted([*causes, *_once(teller.told), *_marks(result, kind)], key=lambda one: one.sentence.at_us)
    return [one.sentence for one in (told if most is None else _most(told, most))]


def _causes(result: RunResult, begin_us: int, end_us: int | None) -> Iterator[_Told]:
    """Faults of which no step tells, as far as they struck while the story goes on: its steps follow from them."""
    for fault in result.faults:
        at_us, text = fault["at_us"], _CAUSES.get(fault["kind"])
        if text and fault["effective"] and begin_us <= at_us and (end_us is None or at_us <= end_us):
            known = {"value": "another value", "election": "of a leader", **fault}
            yield _Told(Sentence(at_us, text.format(target=fault["targets"][-1], **known), 0), CHANGE)


def _once(told: Sequence[_Told]) -> Iterator[_Told]:
    """Merge repetitions into one sentence."""
    times: dict[str, list[_Told]] = {}
    for one in told:
        times.setdefault(one.like, []).append(one)
    for one in told:
        alike = times[one.like]
        if len(alike) <= NAMED or not one.like:
            yield one
        elif one is alike[0]:
            again, last_us = counted(len(alike) - 1, "time"), alike[-1].sentence.at_us
            text = f"{one.sentence.text} (And {again} more, until {moment(last_us)}.)"
            yield replace(one, sentence=replace(one.sentence, text=text))


def _marks(result: RunResult, kind: str) -> Iterator[_Told]:
    """The violation; lost metadata, which may be its cause; other kinds and early warnings share one sentence."""
    mine = [entry for entry in result.violations if entry["kind"] == kind]
    mine.sort(key=lambda entry: entry.get("partition", "") != result.shown)
    for entry in mine[:1]:
        detail, partition = _plain(entry["detail"]), entry.get("partition", "")
        if not partition or partition == result.shown:
            detail = _capital(detail.removeprefix(f"{partition}: "))
        yield _Told(Sentence(entry["at_us"], f"{detail} ({kind}).", 0), END)
    others = [entry for entry in (*result.violations, *result.warnings) if entry["kind"] != kind]
    lost = next((entry for entry in others if entry["kind"] == METADATA_LOSS), None)
    if lost is not None:
        text = f"{_capital(_plain(lost['detail']))} ({METADATA_LOSS})."
        yield _Told(Sentence(lost["at_us"], text, 0), CHANGE)
        others = [entry for entry in others if entry["kind"] != METADATA_LOSS]
    if others:
        others.sort(key=lambda entry: entry["at_us"])
        names = ", ".join(dict.fromkeys(f"{entry['kind']}{_where(entry, result.shown)}" for entry in others))
        last_us = mine[0]["at_us"] if mine else others[-1]["at_us"]
        text = f"Also, from {moment(others[0]['at_us'])} on: {names}."
        yield _Told(Sentence(max(last_us, others[0]["at_us"]), text, 0), CHANGE)


def _where(entry: Mapping[str, Any], shown: str) -> str:
    """The partition of a violation or warning, unless it is the one that is shown."""
    partition = entry.get("partition", shown)
    return "" if partition == shown else f" in {partition}"


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _plain(detail: str) -> str:
    """Replace ids of records of the final validation, which appear nowhere else in a story."""
    return re.sub(
        r"record (\d+)",
        lambda found: "a record of the final validation" if int(found[1]) >= VALIDATION_IDS else found[0],
        detail,
    )


def _most(told: Sequence[_Told], most: int) -> list[_Told]:
    """Drop the least important sentences until at most `most` are left."""
    left = list(told)
    for rank in (ASIDE, DETAIL, CHANGE, TURN):
        while len(left) > most and any(one.rank == rank for one in left):
            places = [place for place, one in enumerate(left) if one.rank == rank]
            del left[places[-1]]
    return left
