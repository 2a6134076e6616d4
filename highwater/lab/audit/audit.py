"""An audit of one metadata log: what was read, which partitions are at risk, what explains its records."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from highwater.lab.audit import describe, risks
from highwater.lab.audit.explanations import CHANGE, CREATION, MOST_PER_BATCH, Explainer
from highwater.lab.audit.facts import ReplicaFacts
from highwater.lab.audit.histories import PartitionHistory
from highwater.lab.audit.image import CLUSTER_KEYS, METADATA_VERSION, ClusterImage
from highwater.lab.audit.log import open_log, what_instead
from highwater.lab.audit.records import NO_LEADER
from scenarios.properties import known
from sim.errors import InputError
from sim.plurals import counted
from sim.protocol.kraft.metadata import MIN_ISR
from sim.protocol.modes import MODES, SINCE_4_1_1

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from highwater.lab.audit.explanations import RecordExplanation
    from highwater.lab.audit.image import Key
    from highwater.lab.audit.notes import Notes
    from highwater.lab.audit.records import MetadataBatch, MetadataRecord
    from highwater.lab.audit.risks import Risk
    from sim.protocol.modes import Mode
    from sim.protocol.rules import Rules

AUDIT_VERSION: Final = 1
REPAIRED: Final = "elr-repaired"
LEVELS: Final[Mapping[str, int]] = {"4.4": 31, "4.3": 30, "4.2": 28, "4.1": 26, "4.0": 22, "3.9": 21}
"""Release -> the first feature level of its ``metadata.version``. Kafka: MetadataVersion."""
DESCRIBED: Final = "4.3"
DESCRIBED_WITHOUT_ELR: Final = "3.9"
"""Releases that a description is judged by, since it names none: without ELRs the newest one before 4.0."""
KEPT: Final = 1_000
"""Unexplained records, and occurrences of known bugs, that are kept one by one; more are counted."""


@dataclass(slots=True)
class Happened:
    """An election that lost, or may have lost, acknowledged records, by the record that shows it."""

    offset: int
    time_ms: int
    key: Key
    text: str


@dataclass(frozen=True, slots=True)
class RiskBegins:
    """From this record on a partition was at risk of a loss; `kind` is "" where the risk was over."""

    offset: int
    time_ms: int
    kind: str
    text: str


@dataclass(slots=True)
class Audit:
    """The result.

    Attributes:
        image: the final state.
        release: the release whose rules were applied.
        mode: the mode that models it.
        rules: its rules.
        recognised: whether the release was recognised by the log, not given.
        facts: by partition.
        risks: by partition, of the final state.
        explained: number of partitions' records with one event, several, or none.
        unexplained: the first of those without, and impossible records of brokers.
        bugs: records that only a known bug explains.
        happened: see `Happened`.
        histories: by partition; empty unless asked for.
        at_risk: by partition, the first `KEPT` records at which a risk of a loss begins or ends.
        notes: what is missing or strange in the log or text.
        gaps: those of the notes after which the final state is not known for certain.
        is_moment: whether only one moment is known, by ``kafka-topics.sh --describe``.
        batches: how many were read.
        first_offset: of the first record; -1 for one moment.
    """

    image: ClusterImage
    release: str
    mode: Mode
    rules: Rules
    recognised: bool
    facts: dict[Key, ReplicaFacts] = field(default_factory=dict)
    risks: dict[Key, list[Risk]] = field(default_factory=dict)
    explained: Counter[str] = field(default_factory=Counter)
    unexplained: list[RecordExplanation] = field(default_factory=list)
    bugs: list[RecordExplanation] = field(default_factory=list)
    happened: list[Happened] = field(default_factory=list)
    histories: dict[Key, PartitionHistory] = field(default_factory=dict)
    at_risk: dict[Key, list[RiskBegins]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    is_moment: bool = False
    batches: int = 0
    first_offset: int = -1


def audit(
    paths: Sequence[Path],
    *,
    release: str | None = None,
    static: Mapping[str, str] | None = None,
    explain: bool = True,
    keep_histories: bool = False,
) -> Audit:
    """Read a metadata log, or the state that ``kafka-topics.sh --describe`` printed, and check it.

    Args:
        paths: see `highwater.lab.audit.log.open_log`.
        release: whose rules apply; by default the newest one of the log's ``metadata.version``.
        static: settings of server.properties, which no record holds: ``min.insync.replicas``,
            ``unclean.leader.election.enable``.
        explain: whether to find an event for each record, which takes most of the time.
        keep_histories: whether to keep the situations of each partition, for `distance`.

    Raises:
        InputError: there is no metadata log, or it is of a kind that cannot be audited.
        StorageError: a file cannot be read, or is corrupt.
    """
    descriptions = [path for path in paths if describe.is_description(path)]
    if descriptions:
        _refuse_others(descriptions[0], paths)
        image, notes = describe.read(paths[0])
        image.static = dict(static or {})
        found = _begun(image, release, DESCRIBED if image.elr_enabled else DESCRIBED_WITHOUT_ELR)
        found.is_moment = True
    else:
        log = open_log(paths)
        image = log.start()
        image.static = dict(static or {})
        found = _begun(image, release, recognised_release(image))
        batches = log.read(image.next_offset)
        _read(found, batches, explain=explain, given=release is not None, keep_histories=keep_histories)
        notes, found.batches, found.first_offset = log.notes, log.batches, log.first_offset
        if not found.batches and not image.partitions:
            raise InputError(*(f"{path}: {what_instead(path)}" for path in paths))
    _note_unknown(image, notes)
    found.notes, found.gaps = notes.all, notes.gaps
    for key in sorted(image.partitions, key=image.order):
        if at_risk := risks.risks_of(image, key, found.facts.get(key), found.rules):
            found.risks[key] = at_risk
    return found


def _refuse_others(description: Path, paths: Sequence[Path]) -> None:
    """Refuse to read anything together with a description."""
    if others := [path for path in paths if path != description]:
        raise InputError(
            f"{others[0]}: {description} is the output of kafka-topics.sh, which is audited alone; settings of "
            f"server.properties are given with --static ({', '.join(CLUSTER_KEYS)})"
        )


def _begun(image: ClusterImage, release: str | None, recognised: str) -> Audit:
    name = release or recognised
    found = Audit(image, name, *rules_of(name), recognised=release is None)
    found.facts = {key: ReplicaFacts.of_state(state, image.min_isr(key)) for key, state in image.partitions.items()}
    return found


def _read(found: Audit, batches: Iterable[MetadataBatch], *, explain: bool, given: bool, keep_histories: bool) -> None:
    """Replay the batches; each record is explained by the state before it."""
    image = found.image
    explainer: Explainer | None = None
    for batch, following in _with_following(batches):
        if explain:
            explainer = explainer or _explainer(found.rules)
            explainer.begin(batch, following)
        level = image.features.get(METADATA_VERSION)
        for record in batch.records:
            explanation = None if explainer is None else explainer.explain(image, record)
            if explanation is not None:
                _count(found, explanation)
            _replay(found, record, batch)
        image.next_offset, image.time_ms = batch.next_offset, batch.time_ms
        if keep_histories:
            _note_histories(found, batch)
        if not given and image.features.get(METADATA_VERSION) != level:
            found.release = recognised_release(image)
            found.mode, found.rules = rules_of(found.release)
            explainer = None


_MOST_HELD: Final = 100
"""Full batches at once: a million partitions that one event changes."""


def _with_following(batches: Iterable[MetadataBatch]) -> Iterator[tuple[MetadataBatch, Sequence[MetadataBatch]]]:
    """Batches, each with those that may go on with its last event."""
    held: deque[MetadataBatch] = deque()
    for batch in batches:
        held.append(batch)
        if len(batch.records) < MOST_PER_BATCH or len(held) == _MOST_HELD:
            while held:
                yield held.popleft(), tuple(held)
    while held:
        yield held.popleft(), tuple(held)


def _note_histories(found: Audit, batch: MetadataBatch) -> None:
    """Note the situations of the partitions that a batch changed."""
    for record in batch.records:
        if record.is_known and record.type in (CREATION, CHANGE):
            key = record.fields["topicId"], record.fields["partitionId"]
            if key in found.image.partitions:
                history = found.histories.setdefault(key, PartitionHistory())
                history.note(found.image, key, found.facts[key], batch.time_ms)


def _replay(found: Audit, record: MetadataRecord, batch: MetadataBatch) -> None:
    """Apply a record to the image, and note what it tells about the replicas of its partition."""
    image = found.image
    if not record.is_known or record.type not in (CREATION, CHANGE):
        is_removal = record.is_known and record.type == "REMOVE_TOPIC_RECORD"
        removed = image.numbered(record.fields["topicId"]) if is_removal else ()
        image.replay(record)
        for key in removed:
            found.facts.pop(key, None)
        return
    key = record.fields["topicId"], record.fields["partitionId"]
    old = image.partitions.get(key)
    image.replay(record)
    state = image.partitions.get(key)
    if state is None:
        return
    facts = found.facts.setdefault(key, ReplicaFacts())
    if old is not None and state.leader not in (old.leader, NO_LEADER):
        _note_election(found, key, facts, batch)
    facts.note(old, state, image.min_isr(key))
    _note_risk(found, key, facts, batch)


def _note_election(found: Audit, key: Key, facts: ReplicaFacts, batch: MetadataBatch) -> None:
    state = found.image.partitions[key]
    leader = state.leader
    if leader in facts.emptied:
        left = facts.emptied[leader]
        text = f"broker {leader} was elected; it had left the assignment (record {left}), and its log is lost or old"
    elif leader in facts.behind:
        since = facts.behind[leader]
        text = f"broker {leader} was elected, which may lack acknowledged records{_since(since)}"
    elif state.recovering:
        text = f"broker {leader} was elected uncleanly"
    else:
        return
    found.happened.append(Happened(state.offset, batch.time_ms, key, text))


def _since(offset: int) -> str:
    return "" if offset < 0 else f", those after record {offset}"


def _note_risk(found: Audit, key: Key, facts: ReplicaFacts, batch: MetadataBatch) -> None:
    """Note where a risk of a loss begins or ends."""
    begun = found.at_risk.get(key)
    worst = next(iter(risks.risks_of(found.image, key, facts, found.rules)), None)
    now = worst if worst is not None and worst.severity == risks.Severity.LOSS else None
    kind, text = (now.kind, now.text) if now is not None else ("", "")
    if (begun[-1].kind if begun else "") != kind:
        begun = found.at_risk.setdefault(key, [])
        if len(begun) < KEPT:
            begun.append(RiskBegins(found.image.partitions[key].offset, batch.time_ms, kind, text))


def _count(found: Audit, explanation: RecordExplanation) -> None:
    events = len(explanation.events)
    found.explained["one event" if events == 1 else "several events" if events else "no event"] += 1
    if not events and len(found.unexplained) < KEPT:
        found.unexplained.append(explanation)
    if explanation.bugs:
        found.explained["known bug"] += 1
        if len(found.bugs) < KEPT:
            found.bugs.append(explanation)


def _explainer(rules: Rules) -> Explainer:
    repaired, values = MODES[REPAIRED].rules.as_dict(), rules.as_dict()
    return Explainer(rules, {rule: repaired[rule] for rule in CONTROLLER_BUGS if repaired[rule] != values[rule]})


CONTROLLER_BUGS: Final = (
    "reassignment_completes",
    "resubmitted_reassignment",
    "elr_outside_assignment",
    "directory_assignment",
    "min_isr_change",
)
"""Rules of the controller whose historical values are known bugs."""


def _note_unknown(image: ClusterImage, notes: Notes) -> None:
    for (kind, version), count in sorted(image.counts.items()):
        is_ = ("is", "was") if count == 1 else ("are", "were")
        records = counted(count, "record")
        notes.gap(f"{records} of {kind}, version {version}, {is_[0]} not modelled and {is_[1]} not applied")
    if unknown := {key[0] for key in image.partitions if not image.knows_min_isr(key)}:
        is_larger = any(topic in image.least_min_isr for topic in unknown)
        but = ", but as larger than an ISR beside which there is an ELR" if is_larger else ""
        notes.note(
            f"{MIN_ISR} of {counted(len(unknown), 'topic')} is unknown, taken as 1, Kafka's default{but} "
            f"(--static {MIN_ISR}=N gives it)"
        )


def recognised_release(image: ClusterImage) -> str:
    """The release that introduced the log's ``metadata.version``: brokers are as new; 4.3 without a level."""
    level = image.features.get(METADATA_VERSION, LEVELS["4.3"])
    return next((release for release, first in LEVELS.items() if level >= first), "3.9")


def rules_of(release: str) -> tuple[Mode, Rules]:
    """The mode that models a release, and the release's rules, which may differ in single values.

    Raises:
        InputError: the release is no KRaft release, or unknown.
    """
    known.minor(release)
    numbers = tuple(int(part) for part in release.split("."))
    fitting = [first for first in _MODES if first <= numbers]
    if not fitting:
        raise InputError(f"--release {release}: the rules of controllers are modelled from 3.9 on")
    name, values = _MODES[max(fitting)]
    return MODES[name], MODES[name].rules.override(values)


_MODES: Final[Mapping[tuple[int, ...], tuple[str, Mapping[str, str]]]] = {
    (3, 9): ("kraft", {}),
    (4, 0): ("elr", {}),
    (4, 1, 1): ("elr", SINCE_4_1_1),
    (4, 3): ("elr-4.3", {}),
}
"""First release -> mode and other values of the controller."""


def anonymous(name: str) -> str:
    """A topic's name as a hash, the same in each audit of this cluster's logs."""
    return f"topic-{hashlib.blake2b(name.encode(), digest_size=5).hexdigest()}"
